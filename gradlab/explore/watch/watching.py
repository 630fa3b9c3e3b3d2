"""`Watch`, a context manager around any training loop of gradlab or PyTorch.

Hooks on the optimizer detect steps; without an optimizer, `log` ends a step. The hooks hold the watch weakly, and are removed
when the block ends, also by an error. The watch stores numbers, one copy of the weights that is overwritten, and, if `replay` is
given, the batch of the current step. It keeps nothing else of the program.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from time import sleep
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries.backward_calls import BackwardCalls
from gradlab.explore.libraries.clipping import ClippingCalls
from gradlab.explore.libraries.gauging import UnreadableError
from gradlab.explore.libraries.loss_scaling import overflow_to_read
from gradlab.explore.trace.loops import loops_of
from gradlab.explore.trace.notes import Frame, times
from gradlab.explore.views import VIEWS, open_view
from gradlab.explore.watch.announcing import Announcer
from gradlab.explore.watch.examination import FULL, Examination, examination_of
from gradlab.explore.watch.hooks import remove_all, weakly
from gradlab.explore.watch.judging import Judge
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.loss_name import logged_name
from gradlab.explore.watch.measuring import Measuring, rate_of
from gradlab.explore.watch.replaying import BadStep, Replay
from gradlab.explore.watch.saving import RunDisplay
from gradlab.explore.watch.scaled_loss import ScaledLosses
from gradlab.explore.watch.stepping import OptimizerSteps, optimizers_of
from gradlab.explore.watch.sweep_inspection import WatchInspector
from gradlab.explore.watch.tracking.writing import Tracking

POLL = 0.05  # seconds between two checks whether a pause has ended


class Watch(RunDisplay):
    """The history of a run and the findings on it, as returned by `watch`.

    Attributes
    ----------
    steps : int
        How many steps have been made.
    layers : tuple of str
        The names of the watched layers.
    ended : bool
        Whether the block has ended.
    target : WatchedModel
        The watched model or tensors.
    measuring : Measuring
        The measurements.
    """

    def __init__(
        self,
        target: WatchedModel,
        optimizer: Any,
        *,
        every: int = 1,
        loss: str | None = None,
        replay: Callable[..., Any] | None = None,
        to: Any = None,
        frames: Sequence[Frame] = (),
    ) -> None:
        self.target, self.every, self.loss_name, self._is_named = target, every, loss or "loss", bool(loss)
        optimizers = optimizers_of(optimizer)
        self.optimizer_name = " and ".join(dict.fromkeys(type(one).__name__ for one in optimizers))
        self.library = target.library.name
        self._is_manual = not optimizers
        self.optimizer_steps = OptimizerSteps(self, target.library.unseen, optimizers)
        self.measuring = Measuring(target, every)
        self._judge = Judge(self.measuring, target, self.loss_name, self.optimizer_name)
        self.measuring.on_frame, self.measuring.on_nonfinite = self._on_frame, self.keep_bad_step
        self.on_rows: list[Callable[[np.ndarray, np.ndarray], None]] = []  # called with the steps and rows of each frame
        self.announcer = Announcer(self)
        self.tracking = Tracking(self, to)
        self._replay = Replay(target, replay)
        self._has_hooks = True  # whether anything besides the end of steps is hooked
        self._unit_hooks: list[Any] = []  # on activations
        self._probe_hooks: list[Any] = []  # on the smallest parameter, to see its `.grad` before the next gradient is accumulated
        self._probe = min(range(len(target.params)), key=lambda i: int(np.prod(tuple(target.params[i].shape))))
        self._extent: Any = None
        self._error: BaseException | None = None  # the error that stopped the block, while it ends
        self._computed_loss: Any = None  # a weak reference to the last result of `loss`
        self.total: int | None = None  # total number of steps, if known
        self.framework_total: int | None = None  # the total as given by the framework that runs the loop
        self.ended = False
        self.interrupted = ""  # the name of the error that stopped the block, if any
        self.trouble = ""  # an error in the watch itself; the training continues
        self.faults = Faults("watched the training")
        self.listeners: list[Callable[[Watch], None]] = []  # called with this watch after each step
        self.quiet = False  # whether to show no live view in a notebook
        self.owns_sweep = True  # whether the running sweep belongs to this training
        self.observes_backward = True  # whether this watch detects calls of `backward` itself
        self._is_paused, self._is_single_step = False, False
        self._caller = (frames[0].globals, frames[0].code.co_filename) if frames else None
        self.outer_loops = loops_of(frames)  # the loops around the block
        self._examination: Examination | None = None
        self.sweep_inspector = WatchInspector(self, self._replay)
        self._sweeps = BackwardCalls(weakly(self.before_backward), self.sweep_inspector, self.faults)
        self.scaled = ScaledLosses(self, self._replay)
        self.measuring.scaling, self._judge.scaled = self.scaled.calls, self.scaled
        self._clipping = ClippingCalls(target.library.unseen(weakly(self.measuring.before_clipping)), self.faults)

    # ------------------------------------------------------------------------------------------------------- the block
    def __enter__(self) -> Watch:
        if self._extent is not None:
            raise RuntimeError("this watch was already entered, and a watch records one run. Create another: gl.watch(…).")
        self._extent = scope_guard(self._open, self._close)
        self._extent.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.interrupted = "" if kind is None else kind.__name__
        self._error = error
        try:
            self._extent.__exit__(None, None, None)  # the `with` statement itself raises the error
        finally:
            self._error = None

    def _open(self) -> None:
        if not self._is_manual:
            self.optimizer_steps.open()
        else:
            with self.safely():
                self.measuring.begin()
        with self.safely():
            self._examination, self._caller = examination_of(self._caller), None
            if self._examination is not None:
                self._examination.join(self)
                self.measuring.measure_first_steps(FULL)
        with self.safely():
            self.update_hooks()
        self._clipping.open()
        self.scaled.calls.open()
        if self.observes_backward and not self.measuring.gauge.waits:
            self._sweeps.open()
        show = VIEWS.get("a run")
        if show is not None and not self.quiet:
            with self.safely():
                show(self)

    @property
    def has_begun(self) -> bool:
        """Return whether the block was entered."""
        return self._extent is not None

    def release(self) -> None:
        """Release the model and its tensors. The numbers stay."""
        self.target.release()
        self.measuring.release()

    def _make_hook(self, method: Any, *first: Any) -> Callable[..., None]:
        """Return a hook for the library that calls a method of this watch."""
        return self.target.library.unseen(weakly(method, *first))

    def update_hooks(self) -> None:
        """Hook only the measurements of the current step: hooks cost time even if they do nothing."""
        measuring, step = self.measuring, self.measuring.row.step
        self._has_hooks = is_due = measuring.is_due and self.target.is_held
        self.optimizer_steps.hook_before_step(is_due)
        if is_due and measuring.units.due(step):
            if not self._unit_hooks:
                output_hook = self.target.library.output_hook
                for i, one in enumerate(self.target.activations):
                    self._unit_hooks.append(one.module.register_forward_hook(output_hook(weakly(self._on_output, i))))
        else:
            remove_all(self._unit_hooks)
        if is_due and measuring.gradients.due(step):
            if not self._probe_hooks:
                probe = self.target.params[self._probe]
                self._probe_hooks.append(probe.register_hook(self._make_hook(self._before_accumulate, self._probe)))
                self._probe_hooks.append(probe.register_post_accumulate_grad_hook(self._make_hook(self._after_accumulate)))
                if self._is_manual:
                    for i, p in enumerate(self.target.params):
                        hook = self._make_hook(self._on_manual_gradient, i)
                        self._probe_hooks.append(p.register_post_accumulate_grad_hook(hook))
        else:
            remove_all(self._probe_hooks)

    def _close(self) -> None:
        remove_all(self._unit_hooks)
        remove_all(self._probe_hooks)
        self._sweeps.close()
        self._clipping.close()
        self.scaled.calls.close()
        self.optimizer_steps.remove()
        self.optimizer_steps.end()
        if self._examination is not None:
            with self.safely():
                self._judge.examination = self._examination.leave(self, self._error)
            self._examination = None
        if not self.ended:
            self.ended = True
            self._is_paused = False
            with self.safely():
                self.measuring.frame(whole=True)
            with self.safely():
                self._replay.release_batch()
                self.sweep_inspector.release()
                self.announcer.announce(now=True)
            with self.safely():
                self.tracking.close()
            self._notify()

    # --------------------------------------------------------------------------------------------------------- the hooks
    def before_step(self, *, has_gradients: bool) -> None:
        """Measure before the weights are updated; see `stepping.StepListener`."""
        try:
            self.measuring.before_step(has_gradients=has_gradients)
        except Exception as error:  # noqa: BLE001  (as in `safely`, but faster; so in all hooks)
            self.handle_error(error)

    def after_closure(self) -> None:
        """Measure the gradients that a closure has computed."""
        try:
            self.measuring.after_closure()
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)

    def after_step(self, made: list[Any]) -> None:
        """End the step that these optimizers made."""
        try:
            if self.optimizer_steps.is_single:
                self.measuring.after_step(rate_of(made[0]), overflow=overflow_to_read(made[0]))
            else:
                held = {id(p) for one in made if one is not None for group in one.param_groups for p in group["params"]}
                self.measuring.after_step(float("nan"), [i for i, p in enumerate(self.target.params) if id(p) not in held])
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)
        self._finish_step()

    def _on_manual_gradient(self, i: int, _: Any) -> None:
        try:
            if self.owns_sweep:
                self.measuring.add_manual_gradient(i)
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)

    def _on_output(self, i: int, module: Any, inputs: Any, output: Any) -> None:
        if module.training:
            try:
                self.measuring.add_output(i, output)
            except Exception as error:  # noqa: BLE001
                self.handle_error(error)

    def _before_accumulate(self, i: int, _: Any) -> None:
        try:
            if self.owns_sweep:
                self.measuring.before_accumulate(self.target.params[i].grad)
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)

    def _after_accumulate(self, _: Any) -> None:
        if self.owns_sweep:
            self.measuring.after_accumulate()

    def before_backward(self, loss: Any) -> None:
        """Examine the graph of a tensor whose `backward` is called, if it is not finite. The sweep will free the graph."""
        if self.observes_backward and self.optimizer_steps.made:
            self.optimizer_steps.end()
        if self.scaled.calls.is_active and self.scaled.before_backward(loss):
            return
        if self._replay.bad_step is not None or self.measuring.gauge.waits:
            return
        began = clock.now()
        try:
            if not isfinite(self.measuring.swept_loss(loss)):
                self.target.library.unseen(self._keep_bad_loss)(loss)
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)
        self.measuring.spent += clock.now() - began

    def _keep_bad_loss(self, loss: Any) -> None:
        is_one = self.target.library.is_tensor(loss) and loss.numel() == 1
        if is_one and self.measuring.gauge.is_nonfinite(loss) and self.target.trains(loss):
            self._replay.keep_loss(self.measuring.row.step, loss)
            self._judge.bad_step = self._replay.bad_step

    @contextmanager
    def safely(self) -> Iterator[None]:
        """Handle errors of the watch, so that the training continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self.handle_error(error)

    def handle_error(self, error: Exception) -> None:
        if not isinstance(error, UnreadableError):
            self.faults.handle(error)
        self.trouble = self.trouble or f"Watching failed: {type(error).__name__}: {error}."

    # ----------------------------------------------------------------------------------------------------- in the loop
    def log(self, loss: Any) -> None:
        """Record the loss of a step, before or after `optimizer.step()`. Without an optimizer this ends the step.

        Parameters
        ----------
        loss : Tensor of one element, or number
            Its value is stored, not its graph. A value on a device is read later, together with others.

        Raises
        ------
        TypeError
            If it is not a number.
        ValueError
            If it is a tensor of several elements.
        """
        if self._extent is None or self.ended:
            raise RuntimeError("log(loss) was called outside the block. Call it inside: with gl.watch(…) as w: … w.log(loss)")
        if self._computed_loss is None or self._computed_loss() is not loss:
            self.measuring.note_loss(loss)
        if not self._is_named:
            self._is_named = True
            with self.safely():
                self.loss_name = self._judge.loss_name = logged_name(sys._getframe(1), "log") or self.loss_name
        if self._is_manual or self.optimizer_steps.made:
            self.end_step()

    def end_step(self) -> None:
        """End the current step. Steps of a single optimizer are ended by its hook."""
        self.optimizer_steps.end()
        if self._is_manual and not self.ended:
            with self.safely():
                bad, step = self.bad_step, self.measuring.row.step + 1
                if bad is not None and bad.step == step and bad.what == "gradient" and bad.sweep is None:
                    self._replay.complete(self.measuring.nonfinite_manual_gradients())  # it was kept at the first of them
                self.measuring.end_manual_step()
            self._finish_step()

    def note_loss(self, loss: Any) -> None:
        """Record the loss of the current step, when its backward begins."""
        with self.safely():
            self.measuring.note_loss(loss, is_new=True)

    def loss(self, *batch: Any) -> Any:
        """Compute the loss of a batch with `replay`, and keep the batch and the random state until the next call.

        Parameters
        ----------
        *batch
            The arguments of `replay`.

        Returns
        -------
        Tensor
            The result of `replay`, which is also logged. Call `backward()` on it.
        """
        loss = self._replay.compute(batch)
        self.measuring.note_loss(loss, is_new=True)
        self._computed_loss = weakref.ref(loss)
        return loss

    @property
    def steps(self) -> int:
        """The number of steps made so far."""
        return self.measuring.steps

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the watched layers."""
        return self.target.layers

    @property
    def findings(self) -> Diagnosis:
        """The findings on the run so far: Problems and Notes, the most important first."""
        self.flush()
        return self._judge.diagnosis(self.trouble)

    @property
    def skipped_steps(self) -> int:
        """The number of steps that a GradScaler of PyTorch has skipped. They are not counted in `steps`."""
        return self.scaled.steps.skipped

    @property
    def loss_scale(self) -> float | None:
        """The factor by which a GradScaler of PyTorch multiplied the last loss; None without one. All numbers of gradients are
        those of the loss itself."""
        return None if self.scaled.scale is None else float(self.scaled.scale)

    @property
    def bad_step(self) -> BadStep | None:
        """The first step with a non-finite gradient or loss, with its batch; None if all were finite."""
        return self._replay.bad_step

    def replay(self) -> Any:
        """Recompute the first step with a non-finite gradient or loss, and return a report.

        The weights, the batch and the random state of that step are restored for it, and the current ones afterwards. No `.grad`
        is written.

        Returns
        -------
        Report

        Raises
        ------
        RuntimeError
            If every loss and gradient was finite, or `replay=` was not given.
        """
        return self._replay.report()

    # ---------------------------------------------------------------------------------------------------------- as data
    @property
    def cost(self) -> dict[str, float]:
        """The cost of watching: "seconds" in total; after the first "examined" steps, seconds per "step" and the "share" of the
        step itself. "gradients", "updates", "units" and "histograms": steps between two measurements of each."""
        m = self.measuring
        step, share = m.cost
        return {
            "seconds": m.spent,
            "share": share,
            "step": step,
            "examined": self._judge.examination.steps or (self.steps if m.in_first_steps else 0),
            "gradients": m.gradients.stride,
            "updates": m.updates.stride,
            "units": m.units.stride,
            "histograms": max(m.histogram_pace.stride, m.histograms.stride),
        }

    # --------------------------------------------------------------------------------------------------------- as a view
    def widget(self, **options: Any) -> Any:
        """Return the live view for a notebook. Call `display(w.widget())` inside the block, before the loop."""
        return open_view("watch", self, **options)

    def pause(self) -> None:
        """Pause the loop after the current step until `resume`. Call it from another thread, as the live view does."""
        self._is_paused = True

    def resume(self, *, once: bool = False) -> None:
        """Resume the loop, with `once` for one step."""
        self._is_single_step = once
        self._is_paused = False

    @property
    def is_paused(self) -> bool:
        """Return whether the loop is paused, or will be after this step."""
        return self._is_paused

    # --------------------------------------------------------------------------------------------------------- internal
    def keep_bad_step(self, what: str) -> None:
        """Keep the first step with a non-finite "gradient" or "loss" on the host. A GradScaler skips a step with such a loss."""
        if self._replay.bad_step is None and not (what == "loss" and self.scaled.scale is not None):
            with self.safely():
                self._replay.keep(self.measuring.row.step if what == "gradient" else self._step_of_loss(), what)
                self._judge.bad_step = self._replay.bad_step
                self.sweep_inspector.attach()

    def _on_frame(self, steps: np.ndarray, rows: np.ndarray, old_gradients: dict[int, float]) -> None:
        """Judge the rows of a frame, and pass them to listeners."""
        self._judge.add_rows(steps, rows, old_gradients)
        for listener in self.on_rows:
            with self.safely():
                listener(steps, rows)

    def _step_of_loss(self) -> int:
        last = self.measuring.last
        return last.step if last is not None and self.measuring.row.loss is None else self.measuring.row.step

    def _finish_step(self) -> None:
        if not self.ended:
            try:
                if self.measuring.in_first_steps or self._replay.bad_step is not None:
                    self._judge.end_step(next(times))
                    self._examine()
                if self._has_hooks or self.measuring.is_due:
                    self.update_hooks()
                if self.announcer.listeners:
                    self.announcer.announce()
                if self.tracking.queue:
                    self.tracking.write_next()
            except Exception as error:  # noqa: BLE001
                self.handle_error(error)
        if self._is_paused or self._is_single_step:
            self._wait()
        elif self.listeners:
            self._notify()

    def _wait(self) -> None:
        """Pause the loop until it is resumed. If it was resumed for one step, this was it."""
        if self._is_single_step:
            self._is_single_step, self._is_paused = False, True
        with self.safely():
            self.measuring.frame()
        self._notify()
        began = clock.now()
        while self._is_paused:
            sleep(POLL)
        self.measuring.add_pause(clock.now() - began)

    def _examine(self) -> None:
        """Add the time of the doctor's recording, and end it after the first steps."""
        examination = self._examination
        if examination is not None and self.measuring.in_first_steps:
            self.measuring.spent += examination.new_cost()
            self.total = examination.total_of(self) or self.total
            if (result := examination.end_if_complete(self) or examination.result_of(self)) is not None:
                self._judge.examination = result
                self.measuring.measure_first_steps(0)
                self.announcer.announce(now=True)

    def find_recording(self) -> None:
        """Find the doctor's recording of this training, while the tensors are held."""
        if self._examination is not None:
            with self.safely():
                self._examination.training_of(self)

    def _notify(self) -> None:
        for listener in self.listeners:
            with self.safely():
                listener(self)

    def add_cost(self, seconds: float) -> None:
        """Add time that a live view or a tracker took in the loop."""
        self.measuring.spent += seconds

    def first_changed_column(self, *, reset: bool = False) -> int:
        """Return the first column that changed since the last call with `reset`."""
        columns = self.measuring.columns
        first = columns.first_changed
        if reset:
            columns.first_changed = columns.used
        return min(first, columns.used)

    def last_histogram_step(self) -> int:
        """Return the last step with histograms, counted from 0; −1 if there is none."""
        moments = self.measuring.histograms.moments
        return moments[-1].step if moments else -1

    def flush(self) -> None:
        """Read all measurements into the columns."""
        with self.safely():
            self.measuring.frame(whole=self.ended)

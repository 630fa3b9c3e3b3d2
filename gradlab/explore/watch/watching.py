"""`watch`: a context manager around any training loop, gradlab's or PyTorch's.

Steps are found by hooks on the optimizer, or end with `log` where weights are moved by hand. The hooks hold the watch weakly, and
are taken away when the block ends, however it ends. Of the program nothing is kept but numbers, a copy of the weights in one
place that is used again and again, and, where `replay` was given, the batch of the step that runs.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from time import sleep
from typing import Any, overload

import numpy as np

from gradlab import clock
from gradlab.core.scopes import scope_guard
from gradlab.diagnose.faults import Faults
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries.backward_calls import BackwardCalls
from gradlab.explore.libraries.clipping import ClippingCalls
from gradlab.explore.libraries.gauging import UnreadableError
from gradlab.explore.trace.loops import loops_of
from gradlab.explore.trace.notes import Frame, times
from gradlab.explore.views import VIEWS, open_view
from gradlab.explore.watch.announcing import Announcer
from gradlab.explore.watch.comparing import RunComparison
from gradlab.explore.watch.examination import FULL, Examination, examination_of
from gradlab.explore.watch.history import columns_of, frame_maker
from gradlab.explore.watch.hooks import remove_all, weakly
from gradlab.explore.watch.judging import Judge
from gradlab.explore.watch.keeping import Keeping
from gradlab.explore.watch.layers import WatchedModel
from gradlab.explore.watch.loss_name import logged_name
from gradlab.explore.watch.measuring import Measuring, rate_of
from gradlab.explore.watch.replaying import KeptStep, Replay
from gradlab.explore.watch.saving import Shown
from gradlab.explore.watch.stepping import OptimizerSteps
from gradlab.explore.watch.tracking.writing import Tracking

NAP = 0.05  # seconds between two looks whether a pause is over


def optimizers_of(optimizer: Any) -> list[Any]:
    """Return none, one or several optimizers as a list."""
    return [] if optimizer is None else list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]


class Watch(Shown):
    """What `watch` returns: the history of a run, and what is found in it.

    Attributes
    ----------
    steps : int
        How many steps have been made.
    layers : tuple of str
        What is watched.
    ended : bool
        Whether the block is over.
    of : WatchedModel
        What is watched, with its tensors.
    measuring : Measuring
        The numbers as they are kept.
    """

    def __init__(
        self,
        of: WatchedModel,
        optimizer: Any,
        *,
        every: int = 1,
        loss: str | None = None,
        replay: Callable[..., Any] | None = None,
        to: Any = None,
        frames: Sequence[Frame] = (),
    ) -> None:
        self.of, self.every, self.called, self._is_named = of, every, loss or "loss", bool(loss)
        optimizers = optimizers_of(optimizer)
        self.optimizer_name = " and ".join(dict.fromkeys(type(one).__name__ for one in optimizers))
        self.library = of.library.name
        self._by_hand = not optimizers
        self.optimizer_steps = OptimizerSteps(self, of.library.unseen, optimizers)
        self.measuring = Measuring(of, every)
        self._judge = Judge(self.measuring, of, self.called, self.optimizer_name)
        self.measuring.seen, self.measuring.alarm = self._seen, self.alarm
        self.on_rows: list[Callable[[np.ndarray, np.ndarray], None]] = []  # given the steps, from 0, and the rows of each frame
        self.announcer = Announcer(self)
        self.tracking = Tracking(self, to)
        self._replay = Replay(of, replay)
        self._lent = True  # whether anything is hooked but the ends of steps
        self._units: list[Any] = []  # hooks on activations
        self._probes: list[Any] = []  # and on the smallest parameter, which tells what is in `.grad` when the next gradient comes
        self._probe = min(range(len(of.params)), key=lambda i: int(np.prod(tuple(of.params[i].shape))))
        self._extent: Any = None
        self._error: BaseException | None = None  # what stopped the block, while that ends
        self._computed: Any = None  # a weak reference to the loss that `loss` computed
        self.total: int | None = None  # how many steps there will be, if that is known
        self.planned: int | None = None  # the same, as whoever runs the loop says
        self.ended = False
        self.interrupted = ""  # by what, if the block did not come to its end
        self.trouble = ""  # what went wrong in watching itself; the training went on
        self.faults = Faults("watched the training")
        self.listeners: list[Callable[[Watch], None]] = []  # told of each frame
        self.quiet = False  # whether a notebook shows nothing of it while it runs
        self.is_concerned, self.listens = True, True  # by the sweep that runs; and whether it finds out itself where one begins
        self._pause, self._once = False, False
        self._caller = (frames[0].globals, frames[0].code.co_filename) if frames else None
        self.around = loops_of(frames)  # the loops around the block
        self._examination: Examination | None = None
        self.keeping = Keeping(self, self._replay)
        self._sweeps = BackwardCalls(weakly(self.begins), self.keeping, self.faults)
        self._clipping = ClippingCalls(of.library.unseen(weakly(self.measuring.before_clipping)), self.faults)

    # ------------------------------------------------------------------------------------------------------- the block
    def __enter__(self) -> Watch:
        if self._extent is not None:
            raise RuntimeError("this watch has begun before, and a watch is of one run. Make another: gl.watch(…).")
        self._extent = scope_guard(self._open, self._close)
        self._extent.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self.interrupted = "" if kind is None else kind.__name__
        self._error = error
        try:
            self._extent.__exit__(None, None, None)  # what stopped the block is raised by the `with` statement itself
        finally:
            self._error = None

    def _open(self) -> None:
        if not self._by_hand:
            self.optimizer_steps.open()
        else:
            with self.safely():
                self.measuring.begin()
        with self.safely():
            self._examination, self._caller = examination_of(self._caller), None
            if self._examination is not None:
                self._examination.join(self)
                self.measuring.look_in_full(FULL)
        with self.safely():
            self.lend()
        self._clipping.open()
        if self.listens and not self.measuring.gauge.waits:
            self._sweeps.open()
        show = VIEWS.get("a run")
        if show is not None and not self.quiet:
            with self.safely():
                show(self)

    @property
    def has_begun(self) -> bool:
        """Whether the block was entered."""
        return self._extent is not None

    def release(self) -> None:
        """Hold nothing of the program any more; the numbers stay."""
        self.of.release()
        self.measuring.release()

    def _hook(self, method: Any, *more: Any) -> Callable[..., None]:
        """A hook of the library's that calls a method of this watch."""
        return self.of.library.unseen(weakly(method, *more))

    def lend(self) -> None:
        """Hook what is looked at in the step that runs, and that alone: hooks cost time even if they do nothing."""
        measuring, step = self.measuring, self.measuring.row.step
        self._lent = looks = measuring.looks and self.of.held
        self.optimizer_steps.look(looks)
        if looks and measuring.units.due(step):
            if not self._units:
                for i, one in enumerate(self.of.activations):
                    self._units.append(one.module.register_forward_hook(self._hook(self._output, i)))
        else:
            remove_all(self._units)
        if looks and measuring.gradients.due(step):
            if not self._probes:
                probe = self.of.params[self._probe]
                self._probes.append(probe.register_hook(self._hook(self._comes, self._probe)))
                self._probes.append(probe.register_post_accumulate_grad_hook(self._hook(self._came)))
                if self._by_hand:
                    for i, p in enumerate(self.of.params):
                        self._probes.append(p.register_post_accumulate_grad_hook(self._hook(self._arrived, i)))
        else:
            remove_all(self._probes)

    def _close(self) -> None:
        remove_all(self._units)
        remove_all(self._probes)
        self._sweeps.close()
        self._clipping.close()
        self.optimizer_steps.remove()
        self.optimizer_steps.end()
        if self._examination is not None:
            with self.safely():
                self._judge.examined = self._examination.leave(self, self._error)
            self._examination = None
        if not self.ended:
            self.ended = True
            self._pause = False
            with self.safely():
                self.measuring.frame(whole=True)
            with self.safely():
                self._replay.let_go()
                self.keeping.let_go()
                self.announcer.look(now=True)
            with self.safely():
                self.tracking.close()
            self._tell()

    # --------------------------------------------------------------------------------------------------------- the hooks
    def before_step(self, *, has_gradients: bool) -> None:
        """Look at what is there before weights move; see `stepping.Stepped`."""
        try:
            self.measuring.before_step(has_gradients=has_gradients)
        except Exception as error:  # noqa: BLE001  (as in `safely`, which costs more, as all hooks do it)
            self.failed(error)

    def after_closure(self) -> None:
        """Look at the gradients that a closure has computed."""
        try:
            self.measuring.after_closure()
        except Exception as error:  # noqa: BLE001
            self.failed(error)

    def after_step(self, made: list[Any]) -> None:
        """End the step that these optimizers have made."""
        try:
            if self.optimizer_steps.is_single:
                self.measuring.after_step(rate_of(made[0]))
            else:
                held = {id(p) for one in made if one is not None for group in one.param_groups for p in group["params"]}
                self.measuring.after_step(float("nan"), [i for i, p in enumerate(self.of.params) if id(p) not in held])
        except Exception as error:  # noqa: BLE001
            self.failed(error)
        self._stepped()

    def _arrived(self, i: int, _: Any) -> None:
        try:
            if self.is_concerned:
                self.measuring.arrived(i)
        except Exception as error:  # noqa: BLE001
            self.failed(error)

    def _output(self, i: int, module: Any, inputs: Any, output: Any) -> None:
        if module.training:
            try:
                self.measuring.output(i, output)
            except Exception as error:  # noqa: BLE001
                self.failed(error)

    def _comes(self, i: int, _: Any) -> None:
        try:
            if self.is_concerned:
                self.measuring.stale(self.of.params[i].grad)
        except Exception as error:  # noqa: BLE001
            self.failed(error)

    def _came(self, _: Any) -> None:
        if self.is_concerned:
            self.measuring.accumulated()

    def begins(self, loss: Any) -> None:
        """`backward` is called on a tensor: if that is not finite, its graph tells where it ceased to be, now or never."""
        if self.listens and self.optimizer_steps.made:
            self.optimizer_steps.end()
        if self._replay.kept is not None or self.measuring.gauge.waits:
            return
        began = clock.now()
        try:
            if not isfinite(self.measuring.swept(loss)):
                self.of.library.unseen(self._look_at_odd)(loss)
        except Exception as error:  # noqa: BLE001
            self.failed(error)
        self.measuring.spent += clock.now() - began

    def _look_at_odd(self, loss: Any) -> None:
        if self.of.library.is_tensor(loss) and loss.numel() == 1 and self.measuring.gauge.is_odd(loss) and self.of.trains(loss):
            self._replay.keep_loss(self.measuring.row.step, loss)
            self._judge.kept = self._replay.kept

    @contextmanager
    def safely(self) -> Iterator[None]:
        """A training does not fail by being watched."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self.failed(error)

    def failed(self, error: Exception) -> None:
        if not isinstance(error, UnreadableError):
            self.faults.handle(error)
        self.trouble = self.trouble or f"Something could not be watched: {type(error).__name__}: {error}."

    # ------------------------------------------------------------------------------------------------------- the user's
    def log(self, loss: Any) -> None:
        """Tell the loss of a step, before or after `optimizer.step()`. Without an optimizer this ends the step.

        Parameters
        ----------
        loss : Tensor of one element, or number
            Its value is kept, and nothing of its graph. On a device it is read with the next frame.

        Raises
        ------
        TypeError
            If it is no number.
        ValueError
            If it is a tensor of several.
        """
        if self._extent is None or self.ended:
            raise RuntimeError("log(loss) belongs inside the block: with gl.watch(…) as w: … w.log(loss)")
        if self._computed is None or self._computed() is not loss:
            self.measuring.noted(loss)
        if not self._is_named:
            self._is_named = True
            with self.safely():
                self.called = self._judge.loss = logged_name(sys._getframe(1), "log") or self.called
        if self._by_hand or self.optimizer_steps.made:
            self.end_step()

    def end_step(self) -> None:
        """A step by hand is over; of one that an optimizer makes, its hook tells."""
        self.optimizer_steps.end()
        if self._by_hand and not self.ended:
            with self.safely():
                kept, step = self.kept, self.measuring.row.step + 1
                if kept is not None and kept.step == step and kept.what == "gradient" and kept.sweep is None:
                    self._replay.complete(self.measuring.odd_by_hand())  # it was kept when the first of them arrived
                self.measuring.moved_by_hand()
            self._stepped()

    def note(self, loss: Any) -> None:
        """The loss of the step that runs."""
        with self.safely():
            self.measuring.noted(loss)

    def loss(self, *batch: Any) -> Any:
        """Compute the loss of a batch by `replay`, and keep the batch and the random state until the next one.

        Parameters
        ----------
        *batch
            What `replay` takes.

        Returns
        -------
        Tensor
            What `replay` returns: call `backward()` on it. It is logged.
        """
        loss = self._replay.compute(batch)
        self.measuring.noted(loss)
        self._computed = weakref.ref(loss)
        return loss

    @property
    def steps(self) -> int:
        """How many steps have been made."""
        return self.measuring.steps

    @property
    def layers(self) -> tuple[str, ...]:
        """What is watched, by the names of the layers."""
        return self.of.layers

    @property
    def findings(self) -> Diagnosis:
        """What is found in the run so far: Problems and Notes, the worthiest first."""
        self.flush()
        return self._judge.diagnosis(self.trouble)

    @property
    def kept(self) -> KeptStep | None:
        """The step at which a gradient or the loss was not finite for the first time, with its batch; None if all are."""
        return self._replay.kept

    def replay(self) -> Any:
        """Compute the step again at which a gradient or the loss was not finite for the first time, as a report.

        The weights of that step, its batch and its random state are put in place for it, and what is there now comes back after
        it. No `.grad` is written.

        Returns
        -------
        Report

        Raises
        ------
        RuntimeError
            If every number was finite, or `replay=` was not given.
        """
        return self._replay.report()

    # ---------------------------------------------------------------------------------------------------------- as data
    @property
    def cost(self) -> dict[str, float]:
        """What watching took: "seconds" in all; "step" in seconds for each, and "share" of the step itself, after the first steps
        if these are "examined" in full; and every how many steps it looks at "gradients", "updates", "units" and "histograms"."""
        m = self.measuring
        step, share = m.cost
        return {
            "seconds": m.spent,
            "share": share,
            "step": step,
            "examined": self._judge.examined.steps or (self.steps if m.is_full else 0),
            "gradients": m.gradients.stride,
            "updates": m.updates.stride,
            "units": m.units.stride,
            "histograms": max(m.spread.stride, m.histograms.stride),
        }

    @overload
    def history(self, frame: None = None) -> dict[str, np.ndarray]: ...
    @overload
    def history(self, frame: str) -> Any: ...
    def history(self, frame: str | None = None) -> Any:
        """Return the numbers of the run as columns, one row for each step or, in a long run, for several steps in a row.

        There are at most 256 rows (fewer for a model of many layers): where there would be more, each two become one.

        Parameters
        ----------
        frame : {"pandas", "polars"}, optional
            Return a DataFrame of this library, which must be installed.

        Returns
        -------
        dict of str to ndarray of shape (rows,), or DataFrame
            By name:

            - "step", "last": the first and the last step that a row is of, counted from 1. int64.
            - "loss", "lr": the loss and the learning rate. float64, as all that follow except "not finite".
            - "gradient LAYER": the Euclidean norm of the gradient of each layer. "weight LAYER": that of its weights.
              "ratio LAYER": ‖update‖ / ‖weights‖.
            - "dead NAME", "saturated NAME": the share of dead and of saturated units of each activation, from 0 to 1. Those that
              were never measured are left out.
            - "unclipped": the Euclidean norm of all gradients together before `clip_grad_norm_` or `clip_grad_value_` changed
              them. Left out if they never did.
            - "not finite": how many losses and gradients were NaN or infinite. int64.

            Where a row is of several steps, these are means of the finite values, and "loss.min", "loss.max" and so on are the
            extremes of each. NaN where nothing was measured.

        Raises
        ------
        ValueError
            If `frame` is not one of these names.
        ImportError
            If the library is not installed.

        Examples
        --------
        >>> w.history()["loss"]  # doctest: +SKIP
        >>> w.history("pandas").plot(x="step", y="loss")  # doctest: +SKIP
        """
        return frame_maker(frame)(columns_of(self))

    # --------------------------------------------------------------------------------------------------------- as a view
    def widget(self, **options: Any) -> Any:
        """The live view, for a notebook. `display(w.widget())` before the loop, inside the block."""
        return open_view("watch", self, **options)

    def compare(self, other: Watch) -> Any:
        """Two runs over each other: this one first, the other dashed.

        Parameters
        ----------
        other : Watch

        Returns
        -------
        Comparison
            Reads as a picture in a notebook and as text elsewhere; its `drawing` and `text` are these.

        Raises
        ------
        TypeError
            If `other` is no watched run.
        """
        if not isinstance(other, Watch):
            raise TypeError(f"compare(other) takes another watched run, and got {type(other).__name__}: {other!r:.80}.")
        return RunComparison(self, other)

    def pause(self) -> None:
        """Hold the loop between two steps until `resume`; to be called from another thread. The live view's button does this."""
        self._pause = True

    def resume(self, *, once: bool = False) -> None:
        """Go on; `once`: for one step."""
        self._once = once
        self._pause = False

    @property
    def is_paused(self) -> bool:
        """Whether the loop is being held, or will be after this step."""
        return self._pause

    # ------------------------------------------------------------------------------------------------------------ pieces
    def alarm(self, what: str) -> None:
        """A gradient on the host is not finite, or a loss."""
        if self._replay.kept is None:
            with self.safely():
                self._replay.keep(self.measuring.row.step if what == "gradient" else self._step_of_loss(), what)
                self._judge.kept = self._replay.kept
                self.keeping.attach()

    def _seen(self, steps: np.ndarray, rows: np.ndarray, stale: dict[int, float]) -> None:
        """Look at the rows of a frame, and pass them on."""
        self._judge.see(steps, rows, stale)
        for listener in self.on_rows:
            with self.safely():
                listener(steps, rows)

    def _step_of_loss(self) -> int:
        last = self.measuring.last
        return last.step if last is not None and self.measuring.row.loss is None else self.measuring.row.step

    def _stepped(self) -> None:
        if not self.ended:
            try:
                if self.measuring.is_full or self._replay.kept is not None:
                    self._judge.ended_step(next(times))
                    self._examine()
                if self._lent or self.measuring.looks:
                    self.lend()
                if self.announcer.listeners:
                    self.announcer.look()
                if self.tracking.queue:
                    self.tracking.write_next()
            except Exception as error:  # noqa: BLE001
                self.failed(error)
        if self._pause or self._once:
            self._hold()
        elif self.listeners:
            self._tell()

    def _hold(self) -> None:
        """Hold the loop until it is resumed, or after one more step."""
        if self._once:
            self._once, self._pause = False, True
        with self.safely():
            self.measuring.frame()
        self._tell()
        began = clock.now()
        while self._pause:
            sleep(NAP)
        self.measuring.paused(clock.now() - began)

    def _examine(self) -> None:
        """Count the time of the doctor's recording, and end it after so many steps."""
        examination = self._examination
        if examination is not None and self.measuring.is_full:
            self.measuring.spent += examination.taken()
            self.total = examination.total_of(self) or self.total
            if (found := examination.stepped(self) or examination.seen(self)) is not None:
                self._judge.examined = found
                self.measuring.look_in_full(0)
                self.announcer.look(now=True)

    def locate(self) -> None:
        """Remember what the doctor records of this training, while its tensors are held."""
        if self._examination is not None:
            with self.safely():
                self._examination.training_of(self)

    def _tell(self) -> None:
        for listener in self.listeners:
            with self.safely():
                listener(self)

    def spent(self, seconds: float) -> None:
        """Time that a live view took of the loop's."""
        self.measuring.spent += seconds

    def changed(self, *, seen: bool = False) -> int:
        """The first column that changed since a view has last seen them; `seen`: it has now."""
        columns = self.measuring.columns
        first = columns.changed
        if seen:
            columns.changed = columns.used
        return min(first, columns.used)

    def last_moment(self) -> int:
        """The last step that has histograms, counted from 0; −1 before any."""
        moments = self.measuring.histograms.moments
        return moments[-1].step if moments else -1

    def flush(self) -> None:
        """Have everything that was measured in the columns."""
        with self.safely():
            self.measuring.frame(whole=self.ended)

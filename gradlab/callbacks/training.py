"""A watch of a training whose loop a framework runs; the callbacks of all frameworks share it."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

from gradlab.diagnose.sites import is_user_file
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.libraries.backward_calls import BackwardCalls, SweepInspector
from gradlab.explore.module_paths import is_model
from gradlab.explore.trace.notes import Frame, users_frames
from gradlab.explore.watch.hooks import weakly
from gradlab.explore.watch.layers import as_watched_model, refuse_lazy
from gradlab.explore.watch.watching import Watch

AUTO = "auto"  # `to=` of a callback that writes to the framework's own loggers


class StepLoss:
    """The loss of each step: the sum of what `backward` is called on in it.

    Frameworks divide the loss of a micro-batch by the number of micro-batches before its backward, so that the sum is the loss
    whose gradient the optimizer uses.

    Parameters
    ----------
    watch : Watch
        Held weakly.
    is_new : callable, optional
        Returns whether a backward that begins is the first of a step, where the framework knows.
    """

    def __init__(self, watch: Watch, is_new: Callable[[], bool] | None = None) -> None:
        self._watch, self._is_new = weakref.ref(watch), is_new
        self._sum: Any = None
        self._step = 0, 0  # steps that were made and skipped before the one of which the sum is
        self._is_known = True  # as long as each backward had a loss of one element
        self.calls = BackwardCalls(watch.target.library.unseen(weakly(self._add)), SweepInspector(), watch.faults)

    def restart(self) -> None:
        """Begin a new sum: the framework made a step, or skipped it."""
        self._sum = None

    def _add(self, loss: Any) -> None:
        watch = self._watch()
        if watch is None or not self._is_known:
            return
        self._is_known = loss.numel() == 1
        if not self._is_known:
            return
        is_new = self._is_new is not None and self._is_new()
        if is_new or self._step != (watch.steps, watch.skipped_steps):
            self._sum, self._step = None, (watch.steps, watch.skipped_steps)
        loss = watch.scaled.calls.loss_of(loss)[0].detach().reshape(())
        self._sum = loss if self._sum is None else self._sum + loss
        watch.note_loss(self._sum)


class WatchedTraining:
    """A watch that begins when this is made, and ends by `close`.

    Parameters
    ----------
    model : Module
    optimizers : list of Optimizer
        Each with PyTorch's `param_groups` and hooks of steps.
    announce : callable
        Called with the text of each new Problem.
    to : list of trackers
    every : int
    first_step : int
        Added to the numbers of steps in trackers.
    total : int, optional
        How many steps there will be, if that is known.
    is_new : callable, optional
        See `StepLoss`.

    Attributes
    ----------
    run : Watch
    loss : StepLoss or None
        None if several optimizers share the training, each with a loss of its own, or if a step computes its loss several times.
    """

    def __init__(
        self,
        model: Any,
        optimizers: list[Any],
        *,
        announce: Callable[[str], None],
        to: Any = None,
        every: int = 1,
        first_step: int = 0,
        total: int | None = None,
        is_new: Callable[[], bool] | None = None,
    ) -> None:
        refuse_lazy(model)
        frames = users_frames(sys._getframe(1), lambda filename: not is_user_file(filename))
        space = namespace_of(frames, model, optimizers)
        target = as_watched_model(model, space)
        if frames:
            frames = [frames[0]._replace(globals=space), *frames[1:]]
        self.run = Watch(target, optimizers, every=every, to=to, frames=frames)
        self.run.outer_loops = set()  # the user's loops are around a whole training
        self.run.tracking.first_step = first_step
        self.run.framework_total = self.run.total = total
        self.run.announcer.listeners.append(lambda finding: announce(text_of(finding)))
        one = len(optimizers) == 1 and type(optimizers[0]).__name__ != "LBFGS"
        self.loss = StepLoss(self.run, is_new) if one else None
        self.run.__enter__()
        if self.loss is not None:
            with self.run.safely():
                self.loss.calls.open()

    def close(self, error: BaseException | None = None) -> None:
        """End the watch; may be called again. The numbers and findings stay, and the model is not held any more."""
        run = self.run
        if run.ended:
            return
        try:
            run.__exit__(None if error is None else type(error), error, None)
        finally:
            if self.loss is not None:
                self.loss.calls.close()
        with run.safely():
            run.release()


def namespace_of(frames: list[Frame], model: Any, optimizers: list[Any]) -> dict[str, Any]:
    """Return the names of the user's code that runs the framework: its globals, the models and optimizers of its function, and
    `model` and `optimizer`, if they are not among them."""
    space: dict[str, Any] = {}
    if frames:
        own = {name: value for name, value in frames[0].names.items() if is_model(value) or hasattr(value, "param_groups")}
        space = {**frames[0].globals, **own}
    given = {"model": model, **({"optimizer": optimizers[0]} if len(optimizers) == 1 else {})}
    known = {id(value) for value in space.values()}
    return {**space, **{name: value for name, value in given.items() if id(value) not in known}}


def unwrap(optimizer: Any) -> Any:
    """Return the optimizer inside the wrappers of Accelerate."""
    while hasattr(optimizer, "optimizer"):
        optimizer = optimizer.optimizer
    return optimizer


def text_of(finding: Finding) -> str:
    """Return a Problem as the doctor writes it."""
    return f"Problem: {finding} [{finding.kind}]"

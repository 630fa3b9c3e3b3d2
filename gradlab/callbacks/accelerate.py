"""`gl.watch` around a training loop with Hugging Face Accelerate."""

from __future__ import annotations

from typing import Any

from gradlab.callbacks.training import AUTO, WatchedTraining, unwrap
from gradlab.explore.watch.watching import Watch as Run

try:
    from accelerate import Accelerator
    from accelerate.logging import get_logger
except ImportError as error:
    raise ImportError(
        "gradlab.callbacks.accelerate needs Accelerate, which is not installed here: pip install accelerate.", name="accelerate"
    ) from error

__all__ = ["Watch"]

logger = get_logger(__name__)


class Watch:
    """Context manager that watches a training loop with Accelerate: the loss, the gradients and updates of each layer, and the
    findings of the doctor.

    A step is a step of the optimizer, also inside `accelerator.accumulate`. Problems are logged as warnings. Only the main
    process is watched.

    Parameters
    ----------
    accelerator : Accelerator
    model : Module
        The model, prepared or not.
    optimizer : Optimizer, or list of Optimizer
        The optimizers, prepared or not.
    to : tracker, or list of trackers, or None, default: "auto"
        Where the numbers are written. "auto" writes to the trackers of `accelerator.init_trackers`. None writes nothing.
        `gl.watch` documents the other trackers and the names.
    every : int, default: 1
        Look at every so many steps at most.
    first_step : int, default: 0
        How many steps were made before, in a training that is resumed.
    total : int, optional
        How many steps there will be.

    Attributes
    ----------
    run : Watch or None
        The watch: `run.findings`, `run.history()`, `run.save("run.html")`. None before the block, and in other processes.

    Notes
    -----
    The loss is the sum of what `accelerator.backward` is called on in a step, each divided by `gradient_accumulation_steps`. It
    is left out if there are several optimizers.

    Examples
    --------
    >>> from gradlab.callbacks.accelerate import Watch  # doctest: +SKIP
    >>> with Watch(accelerator, model, optimizer) as watch:  # doctest: +SKIP
    ...     for x, y in loader:
    ...         with accelerator.accumulate(model):
    ...             loss = loss_fn(model(x), y)
    ...             accelerator.backward(loss)
    ...             optimizer.step()
    ...             optimizer.zero_grad()
    >>> watch.run.findings  # doctest: +SKIP
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: Any,
        optimizer: Any,
        *,
        to: Any = AUTO,
        every: int = 1,
        first_step: int = 0,
        total: int | None = None,
    ) -> None:
        if not isinstance(accelerator, Accelerator):
            raise TypeError(
                f"Watch(accelerator, model, optimizer) takes an Accelerator first, and got {type(accelerator).__name__}."
            )
        self.accelerator, self.model, self.optimizer = accelerator, model, optimizer
        self.to, self.every, self.first_step, self.total = to, every, first_step, total
        self.run: Run | None = None
        self._training: WatchedTraining | None = None
        self._is_new = True  # whether the next backward is the first of a step

    def __enter__(self) -> Watch:
        if self.run is not None:
            raise RuntimeError("This Watch has been used before. Make another for each training.")
        accelerator = self.accelerator
        if accelerator.is_main_process:
            several = isinstance(self.optimizer, (list, tuple))
            self._training = WatchedTraining(
                accelerator.unwrap_model(self.model),
                [unwrap(one) for one in (self.optimizer if several else [self.optimizer])],
                announce=logger.warning,
                to=[tracker_of(one) for one in accelerator.trackers] if self.to == AUTO else self.to,
                every=self.every,
                first_step=self.first_step,
                total=self.total,
                is_new=self._begins_step,
            )
            self.run = self._training.run
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        training, self._training = self._training, None
        if training is not None:
            training.close(error)

    def _begins_step(self) -> bool:
        is_new, self._is_new = self._is_new, bool(self.accelerator.sync_gradients)
        return is_new


def tracker_of(tracker: Any) -> Any:
    """Return the run or the writer of a tracker of Accelerate, if `gl.watch` knows it; else the tracker itself."""
    return tracker.tracker if tracker.name in ("tensorboard", "wandb") else tracker

"""`gl.watch` as a callback of Lightning."""

from __future__ import annotations

import logging
import sys
from typing import Any

from gradlab.callbacks.training import AUTO, WatchedTraining
from gradlab.explore.watch.watching import Watch as Run

try:
    if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:  # the older name of the package
        from pytorch_lightning import Callback, LightningModule, Trainer
    else:
        try:
            from lightning.pytorch import Callback, LightningModule, Trainer
        except ImportError:
            from pytorch_lightning import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError(
        "gradlab.callbacks.lightning needs Lightning, which is not installed here: pip install lightning.", name="lightning"
    ) from error

__all__ = ["Watch"]

logger = logging.getLogger(f"{Callback.__module__}.gradlab")  # below Lightning's own logger


class Watch(Callback):  # type: ignore[misc]
    """Watch a training of Lightning: the loss, the gradients and updates of each layer, and the findings of the doctor.

    A step is a step of an optimizer, as `trainer.global_step` counts them, whatever `accumulate_grad_batches` is. Problems are
    logged as warnings. Only the process of rank zero is watched.

    Parameters
    ----------
    to : tracker, or list of trackers, or None, default: "auto"
        Where the numbers are written. "auto" writes to the loggers of the trainer. None writes nothing. `gl.watch` documents the
        other trackers and the names.
    every : int, default: 1
        Look at every so many steps at most.

    Attributes
    ----------
    run : Watch or None
        The watch of the last training: `run.findings`, `run.history()`, `run.save("run.html")`. None before `fit`, and in
        processes of other ranks.

    Notes
    -----
    The loss is the sum of what `backward` is called on in a step. It is left out if there are several optimizers, or LBFGS.

    Examples
    --------
    >>> from gradlab.callbacks.lightning import Watch  # doctest: +SKIP
    >>> watch = Watch()  # doctest: +SKIP
    >>> trainer = Trainer(callbacks=[watch])  # doctest: +SKIP
    >>> trainer.fit(model, loader)  # doctest: +SKIP
    >>> watch.run.findings  # doctest: +SKIP
    """

    def __init__(self, *, to: Any = AUTO, every: int = 1) -> None:
        self.to, self.every = to, every
        self.run: Run | None = None
        self._training: WatchedTraining | None = None
        self._steps = 0

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Begin to watch."""
        self._close()
        self.run = None
        if not trainer.is_global_zero or not trainer.optimizers:
            return
        steps = trainer.estimated_stepping_batches
        is_known = isinstance(steps, int) and steps > 0 and len(trainer.optimizers) == 1
        self._steps = trainer.global_step
        self._training = WatchedTraining(
            pl_module,
            list(trainer.optimizers),
            announce=logger.warning,
            to=self._loggers(trainer) if self.to == AUTO else self.to,
            every=self.every,
            first_step=trainer.global_step - 1,  # Lightning's own metrics of the first step have step 0
            total=steps - trainer.global_step if is_known else None,
        )
        self.run = self._training.run

    @staticmethod
    def _loggers(trainer: Trainer) -> list[Any]:
        return [] if trainer.fast_dev_run else list(trainer.loggers)  # a fast run has stand-ins for them

    def on_train_batch_end(self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Begin the loss of the next step if one was made, or skipped by a GradScaler."""
        if trainer.global_step != self._steps and self._training is not None and self._training.loss is not None:
            self._training.loss.restart()
            self._steps = trainer.global_step

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """End the watch."""
        self._close()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """End the watch of a training that fails or is interrupted."""
        self._close(exception)

    def teardown(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        """End the watch if nothing else did."""
        self._close()

    def _close(self, error: BaseException | None = None) -> None:
        training, self._training = self._training, None
        if training is not None:
            training.close(error)

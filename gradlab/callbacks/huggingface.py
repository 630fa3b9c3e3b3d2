"""`gl.watch` as a callback of Hugging Face Transformers."""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any

from gradlab.callbacks.training import AUTO, WatchedTraining, unwrap
from gradlab.explore.watch.watching import Watch as Run

try:
    from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments
    from transformers.utils import logging
except ImportError as error:
    raise ImportError(
        "gradlab.callbacks.huggingface needs Transformers, which is not installed here: pip install 'transformers[torch]'.",
        name="transformers",
    ) from error

__all__ = ["Watch"]

logger = logging.get_logger(__name__)


class Watch(TrainerCallback):  # type: ignore[misc]
    """Watch a training of the `Trainer` of Transformers: the loss, the gradients and updates of each layer, and the findings of
    the doctor.

    A step is a step of the optimizer, as `state.global_step` counts them, whatever `gradient_accumulation_steps` is. Problems are
    logged as warnings. Only the main process is watched.

    Parameters
    ----------
    to : tracker, or list of trackers, or None, default: "auto"
        Where the numbers are written. "auto" writes to TensorBoard, Weights & Biases and MLflow, as far as `args.report_to` names
        them. None writes nothing. `gl.watch` documents the other trackers and the names.
    every : int, default: 1
        Look at every so many steps at most.

    Attributes
    ----------
    run : Watch or None
        The watch of the last training: `run.findings`, `run.history()`, `run.save("run.html")`. None before `train`, and in other
        processes.

    Notes
    -----
    The loss is the sum of what `backward` is called on in a step, which is the loss that the `Trainer` minimises.

    If `train` raises an error, the `Trainer` calls no callback. The watch then ends when the next training begins, or when the
    trainer is not used any more.

    Examples
    --------
    >>> from gradlab.callbacks.huggingface import Watch  # doctest: +SKIP
    >>> watch = Watch()  # doctest: +SKIP
    >>> trainer = Trainer(model, args, train_dataset=data, callbacks=[watch])  # doctest: +SKIP
    >>> trainer.train()  # doctest: +SKIP
    >>> watch.run.findings  # doctest: +SKIP
    """

    def __init__(self, *, to: Any = AUTO, every: int = 1) -> None:
        self.to, self.every = to, every
        self.run: Run | None = None
        self._training: WatchedTraining | None = None
        self._end: weakref.finalize[..., Any] | None = None
        self._writer: Any = None  # a SummaryWriter of this callback

    def on_train_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Begin to watch."""
        self._close()
        self.run = None
        if not state.is_world_process_zero:
            return
        optimizer = kwargs["optimizer"]
        self._training = WatchedTraining(
            kwargs["model"],
            [unwrap(optimizer)],
            announce=logger.warning,
            to=self._trackers(args) if self.to == AUTO else self.to,
            every=self.every,
            first_step=state.global_step,
            total=state.max_steps - state.global_step if state.max_steps > 0 else None,
        )
        self.run = self._training.run
        self._end = weakref.finalize(self, self._training.close)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Begin the loss of the next step."""
        if self._training is not None and self._training.loss is not None:
            self._training.loss.restart()

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """End the watch."""
        self._close()

    def _trackers(self, args: TrainingArguments) -> list[Any]:
        """Return the trackers to which the callbacks of `args.report_to` write."""
        names = args.report_to if isinstance(args.report_to, list) else [args.report_to]
        trackers = []
        wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
        if "wandb" in names and wandb is not None and wandb.run is not None:
            trackers.append(wandb.run)
        if "mlflow" in names and mlflow is not None and mlflow.active_run() is not None:
            trackers.append(mlflow)
        if "tensorboard" in names:
            from torch.utils.tensorboard import SummaryWriter

            folder = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(args, "logging_dir", None)
            self._writer = SummaryWriter(os.path.join(folder or os.path.join(args.output_dir, "runs"), "gradlab"))
            trackers.append(self._writer)
        return trackers

    def _close(self) -> None:
        training, self._training = self._training, None
        if self._end is not None:
            self._end.detach()
            self._end = None
        if training is not None:
            training.close()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

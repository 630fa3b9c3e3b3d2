"""`gl.watch` as a callback of Keras 3 on the PyTorch backend."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradlab.callbacks.training import WatchedTraining
from gradlab.explore.watch.watching import Watch as Run

try:
    import keras
    from keras.callbacks import Callback
    from keras.src.utils.io_utils import print_msg

    from gradlab.explore.libraries.keras_torch import KerasOptimizer
except ImportError as error:
    raise ImportError(
        "gradlab.callbacks.keras needs Keras 3, which is not installed here: pip install keras.", name="keras"
    ) from error

__all__ = ["Watch"]


class Watch(Callback):  # type: ignore[misc]
    """Watch a training of Keras on the PyTorch backend: the loss, the gradients and updates of each layer, and the findings of
    the doctor.

    Problems are printed as Keras prints its own messages.

    Parameters
    ----------
    to : tracker, or list of trackers, optional
        Where the numbers are written, too. `gl.watch` documents the trackers and the names.
    every : int, default: 1
        Look at every so many steps at most.

    Attributes
    ----------
    run : Watch or None
        The watch of the last training: `run.findings`, `run.history()`, `run.save("run.html")`. None before `fit`.

    Raises
    ------
    RuntimeError
        If Keras uses another backend than PyTorch.

    Notes
    -----
    If `fit` raises an error, Keras calls no callback. The watch then ends when the next training begins, or when the callback is
    not used any more.

    Examples
    --------
    >>> from gradlab.callbacks.keras import Watch  # doctest: +SKIP
    >>> watch = Watch()  # doctest: +SKIP
    >>> model.fit(x, y, epochs=3, callbacks=[watch])  # doctest: +SKIP
    >>> watch.run.findings  # doctest: +SKIP
    """

    def __init__(self, *, to: Any = None, every: int = 1) -> None:
        super().__init__()
        if keras.backend.backend() != "torch":
            raise RuntimeError(
                f"gradlab.callbacks.keras watches Keras on PyTorch, and the backend here is {keras.backend.backend()!r}. Set the "
                'environment variable KERAS_BACKEND to "torch" before Keras is imported.'
            )
        self.to, self.every = to, every
        self.run: Run | None = None
        self._training: WatchedTraining | None = None
        self._steps: KerasSteps | None = None
        self._end: weakref.finalize[..., Any] | None = None

    def on_train_begin(self, logs: Any = None) -> None:
        """Begin to watch."""
        self._close()
        self.run = None
        optimizer = self.model.optimizer
        scales = isinstance(optimizer, keras.optimizers.LossScaleOptimizer) or optimizer.loss_scale_factor
        if scales or optimizer.gradient_accumulation_steps:
            what = "a scaled loss" if scales else "gradient_accumulation_steps"
            print_msg(
                f"gradlab does not watch a training with {what}: Keras computes the gradients of its steps inside the optimizer."
            )
            return
        epochs, steps = self.params.get("epochs"), self.params.get("steps")
        self._steps = KerasSteps(optimizer, self.model.trainable_variables)
        try:
            self._training = WatchedTraining(
                self.model,
                [self._steps],
                announce=print_msg,
                to=self.to,
                every=self.every,
                first_step=int(optimizer.iterations),
                total=epochs * steps if epochs and steps else None,
            )
        except BaseException:
            self._steps.close()
            raise
        self.run = self._training.run
        self.run.optimizer_name = self._steps.class_name
        self._end = weakref.finalize(self, _end, self._training, self._steps)

    def on_train_end(self, logs: Any = None) -> None:
        """End the watch."""
        self._close()

    def _close(self) -> None:
        end, self._end, self._training, self._steps = self._end, None, None, None
        if end is not None:
            end()


def _end(training: WatchedTraining, steps: KerasSteps) -> None:
    steps.close()
    training.close()


class KerasSteps(KerasOptimizer):
    """An optimizer of Keras with the interface of PyTorch's: `param_groups`, and hooks before and after each step.

    Parameters
    ----------
    optimizer : keras.optimizers.Optimizer
    variables : list of keras.Variable
    """

    def __init__(self, optimizer: Any, variables: list[Any]) -> None:
        super().__init__(optimizer)
        self.set_params(variables)
        self._stepped = optimizer
        self._before: list[Callable[..., Any]] = []
        self._after: list[Callable[..., Any]] = []
        self._apply = optimizer.apply
        optimizer.apply = self._step

    def _step(self, grads: Any, trainable_variables: Any = None) -> None:
        for hook in list(self._before):
            hook(self, (), {})
        self._apply(grads, trainable_variables)
        for hook in list(self._after):
            hook(self, (), {})

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call a hook before each step."""
        return Handle(self._before, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call a hook after each step."""
        return Handle(self._after, hook)

    def close(self) -> None:
        """Give the optimizer its own method back."""
        if self._stepped.__dict__.get("apply") == self._step:
            del self._stepped.apply


class Handle:
    """A hook that can be removed."""

    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        """Remove the hook; may be called again."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

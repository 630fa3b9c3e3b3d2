"""`gl.watch` as a callback of Keras 3 on the PyTorch backend."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from gradlab.callbacks.training import WatchedTraining
from gradlab.explore.watch.watching import Watch as Run

try:
    import keras
    import torch
    from keras.callbacks import Callback
    from keras.src.utils.io_utils import print_msg
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
        layers = layers_of(self.model)
        self._steps = KerasSteps(optimizer, list(layers.parameters()))
        try:
            self._training = WatchedTraining(
                layers,
                [self._steps],
                stands_for=self.model,
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
        self.run.optimizer_name = type(optimizer).__name__
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


def layers_of(model: Any) -> Any:
    """Return the trainable variables of a model as a module of PyTorch with the model's layers, because the module that Keras
    makes has all variables in one dictionary."""
    root = torch.nn.Module()
    for variable in model.trainable_variables:
        *path, name = variable.path.split("/")
        module = root
        for part in path[1:] if path[:1] == [model.name] else path:
            if part not in module._modules:
                module.add_module(part, torch.nn.Module())
            module = module._modules[part]
        module.register_parameter(name, variable.value)
    return root


class KerasSteps:
    """An optimizer of Keras with the interface of PyTorch's: `param_groups`, and hooks before and after each step.

    Parameters
    ----------
    optimizer : keras.optimizers.Optimizer
    params : list of Tensor
    """

    def __init__(self, optimizer: Any, params: list[Any]) -> None:
        self._optimizer, self._params = optimizer, params
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

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """One group of all parameters."""
        rate = self._optimizer.learning_rate
        return [{"params": self._params, "lr": getattr(rate, "value", rate)}]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call a hook before each step."""
        return Handle(self._before, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call a hook after each step."""
        return Handle(self._after, hook)

    def close(self) -> None:
        """Give the optimizer its own method back."""
        if self._optimizer.__dict__.get("apply") == self._step:
            del self._optimizer.apply


class Handle:
    """A hook that can be removed."""

    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._hook = hooks, hook
        hooks.append(hook)

    def remove(self) -> None:
        """Remove the hook; may be called again."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

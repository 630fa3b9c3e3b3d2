"""Detection of what Keras runs on PyTorch in one thread: losses, penalties and optimizer steps. Imported once torch is imported.

Keras computes a loss in many operations, such as a clipped logarithm, and its optimizers are not PyTorch's. So the functions of
Keras that call them are replaced, once Keras itself has been imported.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary, ref

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.replacing import give_back, replace
from gradlab.explore.trace.notes import RecordedOperand, RecordedWhole

PENALTIES = ("L1", "L2", "L1L2", "OrthogonalRegularizer")  # classes of keras.regularizers
# At the end of the name of an operation: its predictions are logits; its classes are not on the last axis.
LOGITS, OTHER_AXIS = "WithLogits", "OverAxis"


class KerasOptimizer:
    """An optimizer of Keras with the attribute `param_groups` of PyTorch's. It does not keep the optimizer alive.

    Attributes
    ----------
    class_name : str
    """

    def __init__(self, optimizer: Any) -> None:
        self._optimizer, self.class_name = ref(optimizer), type(optimizer).__name__
        self._params: list[Any] = []

    def set_params(self, variables: Any) -> None:
        """Set the variables of Keras that the optimizer steps."""
        self._params = [one.value for one in variables]

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """One group of all parameters; none once the optimizer is gone."""
        optimizer = self._optimizer()
        if optimizer is None:
            return []
        rate = optimizer.learning_rate
        return [{"params": self._params, "lr": getattr(rate, "value", rate)}]


class KerasCalls:
    """Detection of losses and optimizer steps of Keras.

    Parameters
    ----------
    describe : callable
        Returns the `RecordedOperand` of the argument with a number; None while nothing is recorded.
    before_step, after_step : callable
        Called around each step with a `KerasOptimizer`.
    faults : Faults
        Collects errors of ours.

    Attributes
    ----------
    running : RecordedWhole or None
        The innermost loss or penalty that is being computed.
    """

    def __init__(
        self,
        describe: Callable[[int, Any], RecordedOperand | None],
        before_step: Callable[[Any], None],
        after_step: Callable[[Any], None],
        faults: Faults,
    ) -> None:
        self._describe, self._before, self._after, self._faults = describe, before_step, after_step, faults
        self._thread = threading.get_ident()
        self._replaced: list[tuple[Any, str, Any]] = []
        self._optimizers: WeakKeyDictionary[Any, KerasOptimizer] = WeakKeyDictionary()
        self.running: RecordedWhole | None = None

    @property
    def is_open(self) -> bool:
        """True while calls are detected."""
        return bool(self._replaced)

    def open(self) -> None:
        """Start detecting calls, if Keras has been imported and computes with PyTorch."""
        keras = sys.modules.get("keras")
        if self._replaced or not hasattr(keras, "Model") or keras.backend.backend() != "torch":  # type: ignore[union-attr]
            return
        found = [(keras.losses.Loss, "__call__", self._of_loss), (keras.Model, "compute_loss", self._of_total)]  # type: ignore[union-attr]
        found += [(getattr(keras.regularizers, name), "__call__", self._of_penalty) for name in PENALTIES]  # type: ignore[union-attr]
        found.append((keras.optimizers.Optimizer, "apply", self._of_step))  # type: ignore[union-attr]
        for one in found:
            self._replaced.append(one)
            replace(*one)

    def close(self) -> None:
        """Stop detecting calls."""
        while self._replaced:
            give_back(*self._replaced[-1])
            self._replaced.pop()
        self.running = None

    def _of_loss(self, original: Any) -> Any:
        return self._calling(original, self._loss)

    def _of_total(self, original: Any) -> Any:
        return self._calling(original, lambda *_, **__: RecordedWhole("total loss", "Keras sum"))

    def _of_penalty(self, original: Any) -> Any:
        return self._calling(original, self._penalty)

    def _calling(self, original: Any, describe: Callable[..., RecordedWhole | None]) -> Any:
        """Return a function that sets `running` while the original runs."""

        def call(*args: Any, **kwargs: Any) -> Any:
            whole = None
            if threading.get_ident() == self._thread:
                with self._faults:
                    whole = describe(*args, **kwargs)
            if whole is None:
                return original(*args, **kwargs)
            outer = self.running
            try:
                self.running = whole
                return original(*args, **kwargs)
            finally:
                self.running = outer

        return outside_compiler(call)

    def _loss(self, loss: Any, y_true: Any = None, y_pred: Any = None, *_: Any, **__: Any) -> RecordedWhole | None:
        """Return the record of a loss of Keras itself; None for one that the user has written."""
        held = vars(loss)
        function = held.get("fn")
        if not str(type(loss).__module__).startswith("keras.src.") or function is None:
            return None
        if not str(getattr(function, "__module__", "")).startswith("keras.src."):
            return None
        operand = self._describe(1, y_true)
        name = str(function.__name__)
        settings = held.get("_fn_kwargs", {})
        how = LOGITS if settings.get("from_logits") else "" if settings.get("axis", -1) == -1 else OTHER_AXIS
        operation = f"Keras {name.title().replace('_', '')}{how}"
        return RecordedWhole(name, operation, () if operand is None else (operand,))

    def _penalty(self, penalty: Any, *_: Any, **__: Any) -> RecordedWhole:
        rates = {key: float(value) for key, value in vars(penalty).items() if key in ("l1", "l2", "factor")}
        numbers = ", ".join(f"{value:g}" if len(rates) == 1 else f"{key}={value:g}" for key, value in rates.items())
        return RecordedWhole(f"{type(penalty).__name__}({numbers})", "Keras penalty")

    def _of_step(self, original: Any) -> Any:
        def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
            view = None
            if threading.get_ident() == self._thread:
                with self._faults:
                    view = self._optimizers.get(optimizer)
                    if view is None:
                        view = self._optimizers[optimizer] = KerasOptimizer(optimizer)
                    if trainable_variables is not None:
                        view.set_params(trainable_variables)
                    self._before(view)
            result = original(optimizer, grads, trainable_variables)
            if view is not None:
                with self._faults:
                    self._after(view)
            return result

        return outside_compiler(apply)

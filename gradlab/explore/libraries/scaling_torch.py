"""Detection of PyTorch's `GradScaler` in a thread: the losses that it multiplies, and the steps that it makes or skips. Imported
once the user has imported torch.

A GradScaler multiplies the loss by its scale, so that small gradients are not rounded to 0 in float16. `scaler.step(optimizer)`
divides the gradients by it again, and skips the step if one of them overflowed; `scaler.update()` then reduces the scale.
`GradScaler.scale` is replaced, and marks the results: a sweep from a marked tensor is shown as one from the loss itself.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.forms_torch import node_of
from gradlab.explore.libraries.loss_scaling import LossScaling, ReportScaling, is_skipped
from gradlab.explore.libraries.outside_compiler import outside_compiler
from gradlab.explore.libraries.replacing import give_back, replace
from gradlab.explore.libraries.unseen_torch import unseen

MARK = "gradlab_scaled_loss"  # key in the metadata of a node
MAX_VISITED = 16  # nodes behind a root that are searched for a mark
SCALER: Any = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler  # versions before 2.3 have the latter only


@dataclass
class Marks:
    """The state of all marks of this process. Until one is `used`, sweeps need no search."""

    used: bool = False


_marks = Marks()


@dataclass(slots=True)
class ScaledLoss:
    """A loss that a GradScaler has multiplied.

    Attributes
    ----------
    loss : weak reference to Tensor
        The loss before that.
    node : object
        Its node in the graph.
    value : Tensor
        Its value, without history.
    number : float or Tensor
        The scale; a tensor if it is on a device.
    """

    loss: Any
    node: Any
    value: Any
    number: Any

    @property
    def scale(self) -> float:
        """The scale as a float. Reading it may wait for a device."""
        return float(self.number)

    @property
    def tensor(self) -> Any:
        """The loss, or its value if the tensor has been deleted."""
        loss = self.loss()
        return self.value if loss is None else loss


class GradScalers(LossScaling):
    """Detection of the calls of GradScalers in one thread.

    Parameters
    ----------
    faults : Faults
        Collects errors of ours.
    report : ReportScaling
    """

    def __init__(self, faults: Faults, report: ReportScaling) -> None:
        self._faults, self._report, self._thread = faults, report, threading.get_ident()
        self._steps = False  # whether `scaler.step` is running
        self._made = False  # whether an optimizer has made a step since it began
        self._scale: Any = None  # of the last loss, until a step has used its gradients; may be on a device
        self._unscaled: weakref.WeakSet[Any] = weakref.WeakSet()  # the optimizers whose gradients have been divided

    def open(self) -> None:
        """Start detecting calls."""
        for name, make in self._makers:
            replace(SCALER, name, make)

    def close(self) -> None:
        """Stop detecting calls."""
        for name, make in self._makers:
            give_back(SCALER, name, make)

    @property
    def _makers(self) -> list[tuple[str, Any]]:
        return [("scale", self._scaling), ("unscale_", self._unscaling), ("step", self._stepping)]

    @property
    def is_active(self) -> bool:
        return _marks.used

    def loss_of(self, tensor: Any) -> tuple[Any, Any]:
        mark, is_loss = scaled_loss(tensor)
        if mark is None:
            return tensor, 1.0
        self._scale = mark.number
        return mark.tensor if is_loss else unseen(tensor.detach().div)(mark.number), mark.number

    def scale_of_gradients(self, parameters: Sequence[Any], *, in_step: bool = False) -> Any:
        if self._scale is None or (in_step and not self._steps):  # a step that is not the scaler's uses the gradients as they are
            return 1.0
        wanted = {id(p) for p in parameters}
        divided = any(id(p) in wanted for one in self._unscaled for group in one.param_groups for p in group["params"])
        return 1.0 if divided else self._scale

    def _is_ours(self, scaler: Any) -> bool:
        return threading.get_ident() == self._thread and scaler.is_enabled()

    def _scaling(self, original: Any) -> Any:
        def scale(scaler: Any, outputs: Any) -> Any:
            result = original(scaler, outputs)
            if self._is_ours(scaler):
                with self._faults:
                    self._mark(scaler, outputs, result)
            return result

        return outside_compiler(scale)

    def _unscaling(self, original: Any) -> Any:
        def unscale_(scaler: Any, optimizer: Any) -> Any:
            result = original(scaler, optimizer)
            if self._is_ours(scaler):
                with self._faults:
                    self._unscaled.add(optimizer)
                    if not self._steps:  # which does this first
                        self._report("unscale", optimizer, scaler.get_scale() if self._scale is None else self._scale)
            return result

        return outside_compiler(unscale_)

    def _stepping(self, original: Any) -> Any:
        def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._is_ours(scaler):
                return original(scaler, optimizer, *args, **kwargs)
            register = getattr(optimizer, "register_step_post_hook", None)
            self._steps, self._made = True, register is None  # without hooks, all steps count as made
            hook = None if register is None else register(self._note_step)
            try:
                result = original(scaler, optimizer, *args, **kwargs)
                with self._faults:
                    self._unscaled.discard(optimizer)
                    scale, self._scale = self._scale, None
                    kind = "step" if self._made else "skip"
                    self._report(kind, optimizer, scaler.get_scale() if scale is None else scale)
                return result
            finally:
                self._steps = False
                if hook is not None:
                    hook.remove()

        return outside_compiler(step)

    @unseen
    def _mark(self, scaler: Any, outputs: Any, results: Any) -> None:
        several = not isinstance(outputs, torch.Tensor)
        if several and not (isinstance(outputs, (list, tuple)) and isinstance(results, (list, tuple))):
            return  # an iterator, which is used up
        for loss, result in zip(outputs, results, strict=True) if several else [(outputs, results)]:
            node = node_of(loss) if isinstance(loss, torch.Tensor) else None
            if node is not None and result.grad_fn is not None:
                scale = scaler.get_scale() if loss.device.type == "cpu" else scaler._get_scale_async().clone()
                result.grad_fn.metadata[MARK] = ScaledLoss(weakref.ref(loss), node, loss.detach(), scale)
                self._scale, _marks.used = scale, True

    def _note_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Hook after the step of an optimizer. One that unscales its gradients itself is called for skipped steps too."""
        with self._faults:
            self._made = not is_skipped(optimizer)


@unseen
def scaled_loss(tensor: Any) -> tuple[ScaledLoss | None, bool]:
    """Return the scaled loss behind a tensor, and whether the tensor is that loss itself. Otherwise it was computed from it by a
    few operations, as in `scaler.scale(loss) / 4`. None for other tensors."""
    waiting: list[Any] = [tensor.grad_fn]
    for visited in range(MAX_VISITED if _marks.used else 0):
        node = waiting.pop(0) if waiting else None
        if node is None:
            continue
        mark: ScaledLoss | None = node.metadata.get(MARK)
        if mark is not None:
            return mark, not visited
        waiting += [source for source, _ in node.next_functions]
    return None, False


def unscaled_roots(outputs: Sequence[Any]) -> tuple[float, list[ScaledLoss]]:
    """Return the scale that a sweep from some tensors contains, and the losses if each tensor is a loss multiplied by it."""
    found = [scaled_loss(output) for output in outputs]
    marks = [mark for mark, _ in found if mark is not None]
    if not marks:
        return 1.0, []
    scale = marks[0].scale
    same = len(marks) == len(found) and all(is_loss for _, is_loss in found) and all(mark.scale == scale for mark in marks)
    return scale, marks if same else []

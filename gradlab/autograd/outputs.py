"""Processing of the outputs of a `Function`: history, views and in-place modification, saved tensors, and tangents."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.autograd.user_rules import FunctionNode, grad_mode, jvp_of, tensor_or_zeros
from gradlab.core.errors import leaf_used_in_place
from gradlab.core.inplace import FUNCTION_VIEW_REFUSAL, check_writable, commit, refusal_message
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.observers import OBSERVERS, notify_record
from gradlab.core.ports import UserSaved
from gradlab.core.saved import VersionedTensor, save
from gradlab.core.storage import View, mark_written, own_storage, view_of
from gradlab.core.tangents import level_state, set_tangent, tangent_of
from gradlab.core.tensor import Tensor, constant

VIEW_OF_FUNCTION = (
    "{}" + FUNCTION_VIEW_REFUSAL + "was created inside a custom Function (or because an input was "
    "returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated with the custom "
    "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function."
)


class Results:
    """Results of one call of a Function, from the values that its forward returned."""

    def __init__(
        self, function: Any, node: FunctionNode, ctx: Any, inputs: list[Tensor], outputs: list[Any], recorded: bool
    ) -> None:
        self.function, self.node, self.ctx, self.inputs, self.outputs = function, node, ctx, inputs, outputs
        self.recorded = recorded
        options = node.attributes
        self.dirty = options.pop("dirty_tensors", None) or ()
        self.non_differentiable = options.pop("non_differentiable", None) or ()
        self.to_save = options.pop("to_save", None) or ()
        self.for_jvp = options.pop("saved_for_forward", None) or ()
        self.check()

    def check(self) -> None:
        """Check the arguments of mark_dirty, mark_non_differentiable and save_for_backward."""
        for i, x in enumerate(self.dirty):
            if not isinstance(x, Tensor):
                raise RuntimeError(f"mark_dirty can only accept variables, but argument {i} is of type {type(x).__name__}")
        for x in self.non_differentiable:
            if not isinstance(x, Tensor):
                raise RuntimeError(f"mark_non_differentiable only accepts variable arguments, but got {type(x).__name__}")
        for i, x in enumerate(self.to_save if self.recorded else ()):
            if x is not None and not isinstance(x, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type {type(x).__name__}. "
                    "Store other values as attributes: ctx.n = n."
                )
        if not self.dirty:
            return
        if any(not is_any_of(x, self.outputs) for x in self.dirty):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                "that are modified inplace must all be outputs of the Function."
            )
        if any(not is_any_of(x, self.inputs) for x in self.dirty):
            warnings.warn(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                "should be passed to ctx.mark_dirty().",
                UserWarning,
                stacklevel=5,
            )

    def finish(self) -> list[Any]:
        """Return the outputs with their history and tangents, and store the saved tensors in the node."""
        tangents = self.tangents() if level_state.level is not None and mode.forward else None
        results = [self.process_output(i, y) if isinstance(y, Tensor) else y for i, y in enumerate(self.outputs)]
        if self.recorded:
            for x in self.to_save:
                if x is not None and is_any_of(x, results):
                    own_storage(x)  # the node saves an output as another tensor
            self.node.saved = UserSaved(save(self.to_save, results))
        number = {id(y): i for i, y in enumerate(results)}
        self.node.for_jvp = (
            tuple(t if t is None else VersionedTensor(t, number.get(id(t))) for t in self.for_jvp) if self.recorded else ()
        )
        if OBSERVERS:
            for y in results:
                if isinstance(y, Tensor):
                    notify_record(self.node.op, y, tuple(self.inputs), ())
        for y, t in zip(results, tangents or (), strict=False):
            if t is not None and isinstance(y, Tensor) and y.array.dtype.kind == "f":
                set_tangent(y, t)
        return results

    def process_output(self, i: int, y: Tensor) -> Tensor:
        """Return output number `i` with its history. An input that was returned unchanged becomes an alias."""
        returned = is_any_of(y, self.inputs)
        written = returned and is_any_of(y, self.dirty)
        if not (self.recorded and y.array.dtype.kind == "f" and not is_any_of(y, self.non_differentiable)):
            if written:
                mark_written(y)
            if returned and not (written and y.node is None):
                return self.alias(y)
            if not returned:
                y.node = None
            return y
        if written:
            return self.record_overwrite(i, y)
        view = view_of(y)
        if returned:
            alias = self.alias(y)
            view, y = View(y, (), "") if view is None else view, alias
        y.node = self.node.output_node(i)
        if view is not None:
            which = f"Output {i} of {self.function.__name__}"
            y.view_record = View(  # type: ignore[attr-defined]
                view.base, view.steps, refusal_message(which) if len(self.outputs) > 1 else VIEW_OF_FUNCTION.format(which)
            )
        y.node.storage = y.storage
        return y

    def alias(self, y: Tensor) -> Tensor:
        """Return another tensor that shares the memory of `y`."""
        result = constant(y.array)
        result.storage = own_storage(y)
        return result

    def record_overwrite(self, i: int, y: Tensor) -> Tensor:
        """Give an input that forward modified in place its new history, and return it."""
        if type(y.node) is AccumulateGrad:
            raise leaf_used_in_place()
        if y._is_view() and sum(isinstance(other, Tensor) for other in self.outputs) > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
                "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
                "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
                "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
                "operations)."
            )
        check_writable(y)
        value = constant(y.array)
        value.node = self.node.output_node(i)
        with grad_mode(mode.grad):
            commit(y, (), value)
        return y

    def tangents(self) -> list[Tensor | None] | None:
        """Compute the tangents of the outputs by the user's `jvp`, or return None if no argument has a tangent."""
        input_tangents = [tangent_of(x) for x in self.inputs]
        if all(t is None for t in input_tangents):
            return None
        node, versions = self.node, [None if t is None else t._version for t in input_tangents]
        node.for_jvp = tuple(t if t is None else VersionedTensor(t, None) for t in self.for_jvp)
        like = next(t for t in input_tangents if t is not None)
        with grad_mode(mode.grad):
            output_tangents = jvp_of(
                node,
                [
                    tensor_or_zeros(t, kind, like, self.ctx.materialize_grads) if kind[1].kind == "f" else None
                    for t, kind in zip(input_tangents, node.input_kinds, strict=True)
                ],
            )
        for i, y in enumerate(self.outputs):
            t = output_tangents[i]
            if not isinstance(y, Tensor) or t is None or (not is_any_of(y, self.inputs) and view_of(y) is None):
                continue
            source, version = next(
                ((g, v) for x, g, v in zip(self.inputs, input_tangents, versions, strict=True) if x is y), (None, None)
            )
            if is_any_of(y, self.dirty):
                if t is not source or t._version == version:
                    raise RuntimeError(
                        "An inplace custom Function is not modifying the forward mode gradients inplace. If the "
                        "forward is modifying an input inplace, then the jvp function must modify the "
                        "corresponding gradient inplace."
                    )
            elif t is source or not t._is_view():
                raise RuntimeError(
                    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
                )
            elif all(t.storage is not g.storage for g in input_tangents if g is not None):
                raise RuntimeError(
                    "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
                )
        return output_tangents


def is_any_of(x: Any, tensors: Any) -> bool:
    """Return True if `x` is one of the tensors, compared by identity."""
    for t in tensors:  # noqa: SIM110  (a generator takes three times as long)
        if t is x:
            return True
    return False

"""Node and rules of a `Function` for the engine.

`UserRules` takes the place of a primitive. It passes the cotangents to `backward` as Tensors and checks its results. Batched
cotangents are processed one slice at a time, which is correct for any `backward`.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from gradlab.autograd.functions import grad
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.engine import unbroadcast
from gradlab.core.errors import size_of
from gradlab.core.inplace import broadcasts_to
from gradlab.core.modes import mode
from gradlab.core.node import Error, InputMetadata, Node
from gradlab.core.ports import Bundle, MultiOutputNode
from gradlab.core.properties import ORDINARY
from gradlab.core.tangents import level_state
from gradlab.core.tensor import Tensor, constant


class grad_mode:  # noqa: N801  (as no_grad)
    """Context manager for user-defined rules: enables or disables recording, and suspends the computation of tangents."""

    __slots__ = ("before", "level", "on")

    def __init__(self, on: bool) -> None:
        self.on = on

    def __enter__(self) -> None:  # neither method calls a function, after which an interrupt could occur
        self.before, self.level = mode.grad, level_state.level
        mode.grad = self.on
        if self.level is not None:
            self.level.suspended += 1

    def __exit__(self, *raised: object) -> None:
        mode.grad = self.before
        if self.level is not None:
            self.level.suspended -= 1


class FunctionNode(MultiOutputNode):
    """Engine's node of a call of a Function.

    `edge_numbers` has for each argument the number of its edge, or None for an argument that is not a Tensor. `input_kinds` has
    the (shape, dtype) of each Tensor among the arguments.
    """

    __slots__ = ("attributes", "cleared", "ctx_ref", "edge_numbers", "for_jvp", "has_more_slices", "in_jvp", "input_kinds")
    op: ClassVar[Any]  # UserRules
    has_more_slices: bool  # the batched cotangent has unprocessed slices
    attributes: dict[str, Any]  # the `__dict__` of ctx
    cleared: bool  # saved tensors were cleared by clear_saved_tensors_on_access
    for_jvp: tuple[Any, ...]
    input_kinds: list[Any]
    in_jvp: bool
    edge_numbers: tuple[int | None, ...]
    ctx_ref: weakref.ref[Any] | None

    def ctx(self) -> Any:
        """Return the `ctx` of the call, which is the node as users see it."""
        ctx = self.ctx_ref() if self.ctx_ref is not None else None
        if ctx is None:
            ctx = object.__new__(self.op.function._backward_cls)
            ctx.__dict__, ctx._node = self.attributes, self
            self.ctx_ref = weakref.ref(ctx)
        return ctx

    @property
    def public(self) -> tuple[Any, int]:
        return self.ctx(), 0

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return tuple(InputMetadata(size_of(kind[0]), from_numpy_dtype(kind[1])) if kind else None for kind in self.kinds)


class UserRules:
    """Rules of one Function, with the interface of a primitive."""

    kind, reads, view, variadic, foreign = "function", "all", False, "inputs", True
    tex, formula, accumulate_into = None, None, None
    meta: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    frees = False
    args = ("inputs",)
    properties = ORDINARY

    def __init__(self, function: Any) -> None:
        self.function, self.name = function, function.__name__

    def vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """Compute the cotangents of the edges as arrays."""
        return self._apply_by_slice(self._cotangents, node, edges, g.parts if type(g) is Bundle else [g], lead, traced=False)

    scalar_vjp = vjp

    def traced_vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """Compute the cotangents of the edges as recorded Tensors."""
        return self._apply_by_slice(self._cotangents, node, edges, g.parts if type(g) is Bundle else [g], lead, traced=True)

    def jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """Compute the tangent of the output, or a Bundle of the tangents of several outputs."""
        output_tangents = self._apply_by_slice(self._tangents, node, node.kinds, tangents, lead, traced)
        return output_tangents if node.dtype is not Bundle.dtype else [Bundle(output_tangents, lead)]

    def traced_jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """Compute the tangents of the outputs as recorded Tensors."""
        return self.jvp(node, tangents, g, lead, traced=True)

    def _apply_by_slice(self, once: Any, node: Any, targets: Any, parts: Any, lead: tuple[int, ...], traced: bool) -> list[Any]:
        """Call `once` on the parts. If they have batch axes, call it on one slice at a time and stack the results."""
        like = next(p for p in parts if p is not None)
        if not lead:
            results = once(node, targets, parts, like, traced)
            return [c if c is None or traced else c.array for c in results]
        from gradlab.ops.joins import stack

        xp, count, k = namespace_of[type(like)], prod(lead), len(lead)
        if not count:
            kinds = [(t.shape, t.dtype) if isinstance(t, Node) else t for t in targets]
            empty = [None if kind is None else tensor_or_zeros(None, (lead + kind[0], kind[1]), like, True) for kind in kinds]
            return [c if c is None or traced else c.array for c in empty]
        flat = [p if p is None else p.reshape((count, *p.shape[k:])) for p in parts]
        slices = []
        try:
            for i in range(count):
                node.has_more_slices = i + 1 < count
                of_slice = [p if p is None else p[i] if traced else wrap(p[i]) for p in flat]
                slices.append(once(node, targets, of_slice, next(p for p in of_slice if p is not None), traced))
        finally:
            node.has_more_slices = False
        whole: list[Any] = []
        for row in zip(*slices, strict=True):
            present = next((c for c in row if c is not None), None)
            if present is None:
                whole.append(None)
                continue
            zeros = constant(namespace_of[type(present.array)].zeros_like(present.array))
            filled = [zeros if c is None else c for c in row]
            stacked = stack(filled) if traced else xp.stack([c.array for c in filled])
            whole.append(stacked.reshape(lead + present.array.shape))
        return whole

    def _cotangents(self, node: Any, edges: Any, parts: list[Any], like: Any, traced: bool) -> list[Any]:
        ctx, function = node.ctx(), self.function
        grads = [tensor_or_zeros(p, kind, like, ctx.materialize_grads) for p, kind in zip(parts, node.kinds, strict=True)]
        rule = function._backward_rule()
        gradients = rule(ctx, grads) if function.boxed_grads_call else rule(ctx, *grads)
        gradients = list(gradients) if isinstance(gradients, tuple) else [gradients]
        places = node.edge_numbers
        if len(gradients) > len(places) and all(c is None for c in gradients[len(places) :]):
            del gradients[len(places) :]
        if len(gradients) != len(places):
            raise RuntimeError(
                f"function {node.name()} returned an incorrect number of gradients (expected {len(places)}, got "
                f"{len(gradients)}). It must return one gradient, or None, for each argument of forward"
                f"{self._describe_arguments()}."
            )
        cotangents: list[Any] = [None] * len(edges)
        for i, (place, c) in enumerate(zip(places, gradients, strict=True)):
            if c is None:
                continue
            if place is None:
                raise RuntimeError(
                    f"function {node.name()} returned a gradient different than None at position {i + 1}, but the "
                    f"corresponding forward input was not a Variable{self._describe_arguments(i)}"
                )
            if not isinstance(c, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(c).__name__}) as gradient number {i} of {node.name()}"
                    f"{self._describe_arguments(i)}."
                )
            if (edge := edges[place]) is None:
                continue
            if not broadcasts_to(edge.shape, c.array.shape):
                raise RuntimeError(
                    f"Function {node.name()} returned an invalid gradient at index {place} - got "
                    f"{list(c.array.shape)} but expected shape compatible with {list(edge.shape)}{self._describe_arguments(i)}"
                )
            cotangents[place] = (
                c
                if traced and c.array.dtype == edge.dtype and c.array.shape == edge.shape
                else unbroadcast(c, edge, (), node)
                if traced
                else constant(wrap(unbroadcast(c.array, edge, (), node)))
            )
        return cotangents

    def _describe_arguments(self, i: int | None = None) -> str:
        """Return the names of forward's arguments, or the name of argument `i`, for an error message."""
        parameters = inspect.signature(self.function.forward).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_POSITIONAL][0 if self.function._has_setup_context() else 1 :]
        if i is None:
            return f" ({', '.join(names)})" if names else ""
        return f" (its argument {names[i]!r})" if i < len(names) else ""

    def _tangents(self, node: Any, kinds: Any, input_tangents: list[Any], like: Any, traced: bool) -> list[Any]:
        ctx, function = node.ctx(), self.function
        if not function._has_jvp():
            return jvp_by_transpose(node, kinds, input_tangents, like, traced)
        output_tangents = jvp_of(
            node,
            [
                tensor_or_zeros(t, kind, like, ctx.materialize_grads)
                for t, kind in zip(input_tangents, node.input_kinds, strict=True)
            ],
        )
        return [
            None if t is None or kind is None else t if t.array.dtype == kind[1] else cast_tangent(t, kind[1])
            for t, kind in zip(output_tangents, kinds, strict=True)
        ]

    def __repr__(self) -> str:
        return f"<rules of {self.name}>"


def cast_tangent(t: Tensor, dtype: Any) -> Tensor:
    """Convert a tangent to the dtype of its output."""
    return namespace_of[Tensor].astype(t, dtype)


def tensor_or_zeros(part: Any, kind: Any, like: Any, materialize: bool) -> Tensor | None:
    """Return a cotangent or tangent as a Tensor. If it is None, return zeros of the (shape, dtype) `kind` if `materialize`."""
    if part is not None:
        return part if isinstance(part, Tensor) else constant(wrap(part))
    if kind is None or not materialize:
        return None
    return constant(namespace_of[type(getattr(like, "array", like))].zeros(*kind))


def jvp_of(node: FunctionNode, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
    """Call the user's `jvp` with the tangents of the tensor arguments, and return a tangent or None for each output."""
    ctx = node.ctx()
    node.in_jvp = True
    try:
        returned = node.op.function.jvp(ctx, *(None if place is None else tangents[place] for place in node.edge_numbers))
    finally:
        node.in_jvp = False
    output_tangents = list(returned) if isinstance(returned, tuple) else [returned]
    if len(output_tangents) != len(node.kinds):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(node.kinds)} but got "
            f"{len(output_tangents)}): {node.op.name}.jvp must return one tangent, or None, for each output."
        )
    for i, (t, kind) in enumerate(zip(output_tangents, node.kinds, strict=True)):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
        if t is not None and kind is not None and t.array.shape != kind[0]:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(kind[0])} while the given forward gradient is of size "
                f"{list(t.array.shape)}."
            )
    return output_tangents


def jvp_by_transpose(node: FunctionNode, kinds: Any, input_tangents: list[Any], like: Any, traced: bool) -> list[Any]:
    """Compute the tangents of a Function without `jvp` as the transpose of its backward, which is linear in the cotangents."""
    xp = namespace_of[type(getattr(like, "array", like))]
    with grad_mode(on=True):
        # The values do not matter, but with zeros a gradient that is not recorded would go unnoticed.
        vs = [
            None
            if kind is None or kind[1].kind != "f"
            else constant(xp.cos(xp.arange(prod(kind[0])) % 1000).astype(kind[1]).reshape(kind[0])).requires_grad_()
            for kind in kinds
        ]
        differentiated = [v for v in vs if v is not None]
        grads = node.op._cotangents(
            node, [e if t is not None else None for e, t in zip(node.edges, input_tangents, strict=True)], vs, like, traced=True
        )
        pairs = [
            (c, tensor_or_zeros(t, None, like, materialize=False))
            for c, t in zip(grads, input_tangents, strict=True)
            if c is not None and c.node is not None
        ]
        unrecorded = [c for c, t in zip(grads, input_tangents, strict=True) if t is not None and c is not None and c.node is None]
        reason = (
            "is once_differentiable"
            if any(c.node.op is not None and c.node.public[0].op is Error.op for c, _ in pairs)
            else (
                "uses operations that are not recorded (NumPy, detach or no_grad)"
                if any(c.array.any() for c in unrecorded)
                else ""
            )
        )
        if reason:
            raise NotImplementedError(
                f"You must implement the jvp function for custom autograd.Function to use it with forward "
                f"mode AD. {node.op.name}.backward {reason}, so it cannot be used instead."
            )
        products = iter(
            grad(
                [c for c, _ in pairs],
                differentiated,
                tuple(t for _, t in pairs),
                create_graph=traced,
                retain_graph=True,
                allow_unused=True,
            )
            if pairs
            else [None] * len(differentiated)
        )
    return [None if v is None else next(products) for v in vs]

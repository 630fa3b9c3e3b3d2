"""What stands for a primitive where the rule is a user's: the node of a call of a `Function`, and its rules for the engine.

`UserRules` hands the cotangents to `backward` as Tensors, checks what comes back, and runs batched cotangents a slice at a time:
right for whatever `backward` does.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Sequence
from math import prod
from typing import Any, ClassVar

from gradlab.autograd.functions import grad
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.dtypes import known_dtype
from gradlab.core.engine import fit
from gradlab.core.errors import size_of
from gradlab.core.inplace import fits
from gradlab.core.modes import mode
from gradlab.core.node import Error, InputMetadata, Node
from gradlab.core.ports import Bundle, Several
from gradlab.core.tangents import opened
from gradlab.core.tensor import Tensor, constant


class grad_mode:  # noqa: N801  (as no_grad)
    """Recording or not, and no tangents: what a rule computes has none of its own."""

    __slots__ = ("before", "level", "on")

    def __init__(self, on: bool) -> None:
        self.on = on

    def __enter__(self) -> None:  # no call in either: an interrupt comes after one
        self.before, self.level = mode.grad, opened.level
        mode.grad = self.on
        if self.level is not None:
            self.level.resting += 1

    def __exit__(self, *raised: object) -> None:
        mode.grad = self.before
        if self.level is not None:
            self.level.resting -= 1


class FunctionNode(Several):
    """The engine's node of a call. `places` has for each argument the number of its edge (None: no tensor), `given` the (shape,
    dtype) of each tensor among the arguments."""

    __slots__ = ("again", "attributes", "cleared", "for_jvp", "given", "in_jvp", "places", "seen")
    op: ClassVar[Any]  # UserRules
    again: bool  # a batched cotangent has slices left
    attributes: dict[str, Any]  # what is on ctx
    cleared: bool  # clear_saved_tensors_on_access has been at work
    for_jvp: tuple[Any, ...]
    given: list[Any]
    in_jvp: bool
    places: tuple[int | None, ...]
    seen: weakref.ref[Any] | None

    def ctx(self) -> Any:
        """The node as users see it."""
        ctx = self.seen() if self.seen is not None else None
        if ctx is None:
            ctx = object.__new__(self.op.function._backward_cls)
            ctx.__dict__, ctx._node = self.attributes, self
            self.seen = weakref.ref(ctx)
        return ctx

    @property
    def public(self) -> tuple[Any, int]:
        return self.ctx(), 0

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        return tuple(InputMetadata(size_of(kind[0]), known_dtype(kind[1])) if kind else None for kind in self.kinds)


class UserRules:
    """What stands for a primitive: the rules of one Function, as the engine calls them."""

    kind, reads, view, variadic, foreign = "function", "all", False, "inputs", True
    tex, formula, accumulate_into = None, None, None
    meta: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    frees = False
    args = ("inputs",)

    def __init__(self, function: Any) -> None:
        self.function, self.name = function, function.__name__

    def vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """The cotangents of the edges, from arrays."""
        return self._swept(self._cotangents, node, edges, g.parts if type(g) is Bundle else [g], lead, traced=False)

    scalar_vjp = vjp

    def traced_vjp(self, node: Any, edges: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """The same from Tensors, recorded."""
        return self._swept(self._cotangents, node, edges, g.parts if type(g) is Bundle else [g], lead, traced=True)

    def jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...], traced: bool = False) -> Sequence[Any]:
        """The tangent of the output, or a Bundle of those of the outputs, from the tangents of the edges."""
        answers = self._swept(self._tangents, node, node.kinds, tangents, lead, traced)
        return answers if node.dtype is not Bundle.dtype else [Bundle(answers, lead)]

    def traced_jvp(self, node: Any, tangents: Any, g: Any, lead: tuple[int, ...]) -> Sequence[Any]:
        """The same from Tensors, recorded."""
        return self.jvp(node, tangents, g, lead, traced=True)

    def _swept(self, once: Any, node: Any, targets: Any, parts: Any, lead: tuple[int, ...], traced: bool) -> list[Any]:
        """`once` on parts without batch axes: as they are, or a slice at a time and the results stacked."""
        like = next(p for p in parts if p is not None)
        if not lead:
            results = once(node, targets, parts, like, traced)
            return [c if c is None or traced else c.array for c in results]
        from gradlab.ops.joins import stack

        xp, count, k = namespace_of[type(like)], prod(lead), len(lead)
        if not count:
            kinds = [(t.shape, t.dtype) if isinstance(t, Node) else t for t in targets]
            nothing = [None if kind is None else tensor_or_zeros(None, (lead + kind[0], kind[1]), like, True) for kind in kinds]
            return [c if c is None or traced else c.array for c in nothing]
        flat = [p if p is None else p.reshape((count, *p.shape[k:])) for p in parts]
        slices = []
        try:
            for i in range(count):
                node.again = i + 1 < count
                of_slice = [p if p is None else p[i] if traced else wrap(p[i]) for p in flat]
                slices.append(once(node, targets, of_slice, next(p for p in of_slice if p is not None), traced))
        finally:
            node.again = False
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
        rule = function._rule()
        answers = rule(ctx, grads) if function.boxed_grads_call else rule(ctx, *grads)
        answers = list(answers) if isinstance(answers, tuple) else [answers]
        places = node.places
        if len(answers) > len(places) and all(c is None for c in answers[len(places) :]):
            del answers[len(places) :]
        if len(answers) != len(places):
            raise RuntimeError(
                f"function {node.name()} returned an incorrect number of gradients (expected {len(places)}, got "
                f"{len(answers)}). One is due for each argument of forward{self._named()}, None where there is "
                "none."
            )
        cotangents: list[Any] = [None] * len(edges)
        for i, (place, c) in enumerate(zip(places, answers, strict=True)):
            if c is None:
                continue
            if place is None:
                raise RuntimeError(
                    f"function {node.name()} returned a gradient different than None at position {i + 1}, but the "
                    f"corresponding forward input was not a Variable{self._named(i)}"
                )
            if not isinstance(c, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(c).__name__}): {node.name()} returned it as gradient "
                    f"number {i}{self._named(i)}."
                )
            if (edge := edges[place]) is None:
                continue
            if not fits(edge.shape, c.array.shape):
                raise RuntimeError(
                    f"Function {node.name()} returned an invalid gradient at index {place} - got "
                    f"{list(c.array.shape)} but expected shape compatible with {list(edge.shape)}{self._named(i)}"
                )
            cotangents[place] = (
                c
                if traced and c.array.dtype == edge.dtype and c.array.shape == edge.shape
                else fit(c, edge, (), node)
                if traced
                else constant(wrap(fit(c.array, edge, (), node)))
            )
        return cotangents

    def _named(self, i: int | None = None) -> str:
        """The names of forward's arguments, or that of one, for an error."""
        named = inspect.signature(self.function.forward).parameters.values()
        names = [p.name for p in named if p.kind is not p.VAR_POSITIONAL][0 if self.function._splits() else 1 :]
        if i is None:
            return f" ({', '.join(names)})" if names else ""
        return f" (its argument {names[i]!r})" if i < len(names) else ""

    def _tangents(self, node: Any, kinds: Any, input_tangents: list[Any], like: Any, traced: bool) -> list[Any]:
        ctx, function = node.ctx(), self.function
        if not function._has_jvp():
            return by_transpose(node, kinds, input_tangents, like, traced)
        output_tangents = jvp_of(
            node,
            [tensor_or_zeros(t, kind, like, ctx.materialize_grads) for t, kind in zip(input_tangents, node.given, strict=True)],
        )
        return [
            None if t is None or kind is None else t if t.array.dtype == kind[1] else fit_dtype(t, kind[1])
            for t, kind in zip(output_tangents, kinds, strict=True)
        ]

    def __repr__(self) -> str:
        return f"<rules of {self.name}>"


def fit_dtype(t: Tensor, dtype: Any) -> Tensor:
    """A tangent in its output's dtype."""
    return namespace_of[Tensor].astype(t, dtype)


def tensor_or_zeros(part: Any, kind: Any, like: Any, materialize: bool) -> Tensor | None:
    """A cotangent or tangent as a Tensor; where there is none zeros of the kind, if asked for."""
    if part is not None:
        return part if isinstance(part, Tensor) else constant(wrap(part))
    if kind is None or not materialize:
        return None
    return constant(namespace_of[type(getattr(like, "array", like))].zeros(*kind))


def jvp_of(node: FunctionNode, tangents: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The user's `jvp` on the tangents of the tensors among the arguments: a tangent or None for each output."""
    ctx = node.ctx()
    node.in_jvp = True
    try:
        returned = node.op.function.jvp(ctx, *(None if place is None else tangents[place] for place in node.places))
    finally:
        node.in_jvp = False
    answers = list(returned) if isinstance(returned, tuple) else [returned]
    if len(answers) != len(node.kinds):
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {len(node.kinds)} but got "
            f"{len(answers)}): {node.op.name}.jvp must return one for each output, None where there is none."
        )
    for i, (t, kind) in enumerate(zip(answers, node.kinds, strict=True)):
        if t is not None and not isinstance(t, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(t).__name__}) for grad output {i}.")
        if t is not None and kind is not None and t.array.shape != kind[0]:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
                f"not supported. Tensor is of size {list(kind[0])} while the given forward gradient is of size "
                f"{list(t.array.shape)}."
            )
    return answers


def by_transpose(node: FunctionNode, kinds: Any, input_tangents: list[Any], like: Any, traced: bool) -> list[Any]:
    """The tangents of a Function without `jvp`: its backward is linear in the cotangents, and the transpose of that is asked."""
    xp = namespace_of[type(getattr(like, "array", like))]
    with grad_mode(on=True):
        # Which they are does not matter, but zeros would hide an answer that is not recorded.
        vs = [
            None
            if kind is None or kind[1].kind != "f"
            else constant(xp.cos(xp.arange(prod(kind[0])) % 1000).astype(kind[1]).reshape(kind[0])).requires_grad_()
            for kind in kinds
        ]
        asked = [v for v in vs if v is not None]
        grads = node.op._cotangents(
            node, [e if t is not None else None for e, t in zip(node.edges, input_tangents, strict=True)], vs, like, traced=True
        )
        pairs = [
            (c, tensor_or_zeros(t, None, like, materialize=False))
            for c, t in zip(grads, input_tangents, strict=True)
            if c is not None and c.node is not None
        ]
        unseen = [c for c, t in zip(grads, input_tangents, strict=True) if t is not None and c is not None and c.node is None]
        why = (
            "is once_differentiable"
            if any(c.node.op is not None and c.node.public[0].op is Error.op for c, _ in pairs)
            else (
                "computes what is not recorded (by NumPy, or under detach or no_grad)"
                if any(c.array.any() for c in unseen)
                else ""
            )
        )
        if why:
            raise NotImplementedError(
                f"You must implement the jvp function for custom autograd.Function to use it with forward "
                f"mode AD. {node.op.name}.backward {why}, so it cannot stand in."
            )
        products = iter(
            grad(
                [c for c, _ in pairs],
                asked,
                tuple(t for _, t in pairs),
                create_graph=traced,
                retain_graph=True,
                allow_unused=True,
            )
            if pairs
            else [None] * len(asked)
        )
    return [None if v is None else next(products) for v in vs]

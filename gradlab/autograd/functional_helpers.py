"""Shared parts of `autograd.functional` and `func`: aliases of the inputs, and Jacobians by batched sweeps.

A transform calls the function on *fresh* inputs: aliases of the arguments' memory that have nodes of their own. The transform
differentiates only with respect to these nodes. So nested transforms cannot confuse their derivatives, and no sweep reaches a
tensor of the user. If gradients are enabled outside the transform, the alias of a tensor that requires gradients is recorded as
a view, so that the transform's result can be differentiated with respect to the argument. Otherwise the alias is a leaf.

A transform's sweep is recorded (`traced`) only if code outside can ask for a derivative of its result. That is the case if
gradients are enabled outside and the graph reaches a leaf that does not belong to the transform, or if a forward-mode level is
open. When a transform has finished, its leaves are marked as settled: no derivative with respect to them is needed any more, so
an enclosing transform does not record its sweep because of them.

The rows of a Jacobian are computed in one reverse sweep, from a batch of cotangents that are 1 at one output element each. The
columns are computed in one forward sweep, from tangents that are 1 at one input element each. A batch is split into chunks, so
that an intermediate result has at most `MAX_BATCHED_ELEMENTS` elements. If a user's hook, which expects a gradient of the shape
of its tensor, is in the graph, the rows are computed one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from math import prod
from typing import Any

from gradlab.autograd.functions import grad, jvp_of_graph
from gradlab.backend.namespaces import namespace_of
from gradlab.core.inference import inference_mode, is_inference
from gradlab.core.modes import mode, no_grad
from gradlab.core.node import Node, walk_graph
from gradlab.core.tangents import level_state, set_tangent, tangent_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.joins import cat, stack
from gradlab.ops.permutation import movedim

MAX_BATCHED_ELEMENTS = 1 << 22  # in one intermediate result of a batched sweep: 32 MB in double precision
SETTLED = ("settled",)  # the `meta` of a leaf whose transform has finished


def in_normal_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator that replaces inference mode by `no_grad` for a call, so that transforms can record inside."""

    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not mode.inference:
            return function(*args, **kwargs)
        with inference_mode(False), no_grad():
            return function(*args, **kwargs)

    return wrapper


def fresh_alias(x: Tensor, connected: bool) -> Tensor:
    """Return an alias of `x` that has its own node and the tangent of `x`.

    It is recorded as a view of `x` if `connected` and `x` requires gradients. Otherwise it is a leaf.
    """
    if connected and x.node is not None:
        return x.view_as(x)
    if tangent_of(x) is None:
        return (constant(x.array) if is_inference(x) else x.detach()).requires_grad_()
    with no_grad():
        return x.view_as(x).requires_grad_()


def settle(inputs: Iterable[Tensor]) -> None:
    """Mark the leaves among the inputs of a finished transform, with respect to which nothing more is differentiated."""
    for x in inputs:
        if x.node is not None and x.is_leaf:
            x.node.meta = SETTLED


def nodes_below(tensors: Iterable[Tensor]) -> Iterator[Node]:
    """Yield the nodes of the graphs of these tensors, in no particular order."""
    return walk_graph(x.node for x in tensors)


def outside_records() -> bool:
    """Return True if gradients are enabled or a forward-mode level is open where a transform is called."""
    return mode.grad or level_state.level is not None


def differentiable_outside(tensors: Iterable[Tensor], own: Sequence[Tensor] = ()) -> bool:
    """Return True if code outside the transform with the inputs `own` can ask for a derivative of the tensors."""
    return level_state.level is not None or reaches_outside_leaves(tensors, own)


def reaches_outside_leaves(tensors: Iterable[Tensor], own: Sequence[Tensor] = ()) -> bool:
    """Return True if the graph of the tensors has a leaf that is not in `own` and not an input of a finished transform."""
    leaves = {x.node for x in own}
    return any(node.op is None and node.meta is not SETTLED and node not in leaves for node in nodes_below(tensors))


def to_outside(x: Tensor, own: Sequence[Tensor]) -> Tensor:
    """Return a result for the caller of a transform, with its tangent.

    It keeps its history only if gradients are enabled and the history leads to leaves outside the transform.
    """
    if x.node is None or (mode.grad and reaches_outside_leaves((x,), own)):
        return x
    result, tangent = x.detach(), tangent_of(x)
    if tangent is not None:
        set_tangent(result, to_outside(tangent, own))
    return result


def zeros_like(x: Tensor, lead: tuple[int, ...] = ()) -> Tensor:
    """Return zeros of the shape `lead + x.shape`, with the dtype and device of `x`."""
    return constant(namespace_of[type(x.array)].zeros(lead + x.array.shape, x.array.dtype))


def cotangents(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor] | None = None,
    *,
    traced: bool,
    retain: bool = True,
) -> list[Tensor | None]:
    """Return vᵀJ for each input, None for an input that no output depends on. Unlike in `grad`, outputs may have no history."""
    recorded = [i for i, y in enumerate(outputs) if y is not None and y.node is not None]
    if not recorded:
        return [None] * len(inputs)
    return list(
        grad(
            [outputs[i] for i in recorded],  # type: ignore[misc]
            inputs,
            None if weights is None else tuple(weights[i] for i in recorded),
            retain_graph=retain,
            create_graph=traced,
            allow_unused=True,
        )
    )


def tangents(
    outputs: Sequence[Tensor | None], inputs: Sequence[Tensor], along: Sequence[Tensor], *, traced: bool, batched: bool = False
) -> list[Tensor | None]:
    """Return Ju for each output, None for an output that depends on no input."""
    recorded = [y for y in outputs if y is not None and y.node is not None]
    results = iter(jvp_of_graph(recorded, inputs, along, is_batched=batched, create_graph=traced) if recorded else ())
    return [None if y is None or y.node is None else next(results) for y in outputs]


def unit_tensors(x: Tensor, start: int, stop: int) -> Tensor:
    """Return the unit tensors of the shape of `x` with numbers `start` to `stop`, stacked."""
    xp, n = namespace_of[type(x.array)], prod(x.array.shape)
    return constant(xp.eye(stop - start, n, start, dtype=x.array.dtype).reshape(stop - start, *x.array.shape))


def chunks(count: int, outputs: Iterable[Tensor | None], at_once: int | None) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) ranges of `count` rows or columns.

    A range contains `at_once` rows, or as many as `MAX_BATCHED_ELEMENTS` allows if `at_once` is None.
    """
    if at_once is None:
        largest = max((prod(node.shape) for node in nodes_below(y for y in outputs if y is not None)), default=1)
        at_once = max(1, MAX_BATCHED_ELEMENTS // max(largest, 1))
    for start in range(0, count, at_once):
        yield start, min(start + at_once, count)


def is_batchable(outputs: Iterable[Tensor | None]) -> bool:
    """Return True if no hook in the graph of the outputs receives gradients."""
    return not any(
        node.hooks is not None and (node.hooks.tensor or node.hooks.pre or node.hooks.post)
        for node in nodes_below(y for y in outputs if y is not None)
    )


def join_chunks(parts: list[Any], like: tuple[int, ...]) -> Tensor | None:
    """Concatenate chunks of rows, and reshape the first axis to the shape `like`."""
    if any(part is None for part in parts):
        return None
    whole = parts[0] if len(parts) == 1 else cat(parts)
    return whole.reshape(like + whole.array.shape[1:])


def jacobian_rows(
    output: Tensor | None, inputs: Sequence[Tensor], *, traced: bool, at_once: int | None = None
) -> list[Tensor | None]:
    """Compute ∂output/∂input for each input, of shape output.shape + input.shape, by reverse sweeps.

    The result is None for an input that the output does not depend on.
    """
    if output is None or output.node is None:
        return [None] * len(inputs)
    count, shape = prod(output.array.shape), output.array.shape
    if count == 0:
        return [zeros_like(x, shape) for x in inputs]
    if count == 1:
        gradients = cotangents([output], inputs, [unit_tensors(output, 0, 1).reshape(shape)], traced=traced)
        return [None if c is None else c.reshape(shape + c.array.shape) if shape else c for c in gradients]
    if at_once != 1 and is_batchable((output,)):
        parts = [
            grad(
                output,
                inputs,
                unit_tensors(output, a, b),
                retain_graph=True,
                create_graph=traced,
                allow_unused=True,
                is_grads_batched=True,
            )
            for a, b in chunks(count, (output,), at_once)
        ]
    else:
        one_by_one = [
            cotangents([output], inputs, [unit_tensors(output, i, i + 1).reshape(shape)], traced=traced) for i in range(count)
        ]
        parts = [tuple(None if any(c is None for c in row) else stack(row) for row in zip(*one_by_one, strict=True))]
    return [join_chunks([part[i] for part in parts], shape) for i in range(len(inputs))]


def jacobian_columns(outputs: Sequence[Tensor | None], inputs: Sequence[Tensor], *, traced: bool) -> list[list[Tensor | None]]:
    """Compute ∂output/∂input by forward sweeps: for each output a list over the inputs."""
    by_input = []
    for x in inputs:
        count = prod(x.array.shape)
        if count == 0:
            by_input.append([None if y is None else zeros_like(y, (0,)).reshape(y.array.shape + x.array.shape) for y in outputs])
            continue
        parts = [
            tangents(outputs, [x], [unit_tensors(x, a, b)], traced=traced, batched=True) for a, b in chunks(count, outputs, None)
        ]
        columns = [join_chunks([part[i] for part in parts], (count,)) for i in range(len(outputs))]
        by_input.append(
            [None if t is None else movedim(t, 0, -1).contiguous().reshape(t.array.shape[1:] + x.array.shape) for t in columns]
        )
    return [list(of_output) for of_output in zip(*by_input, strict=True)]

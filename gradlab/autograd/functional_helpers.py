"""What `autograd.functional` and `func` are made of: inputs of a call's own, and whole Jacobians by batched sweeps.

A transform gives the function *fresh* inputs: aliases of the arguments' memory with nodes of their own. A sweep that asks for
these nodes alone cannot confuse one transform's derivative with another's, however they are nested, and never reaches a tensor
of the user's. Where the outside records, an alias of a tensor that requires gradients is itself recorded there (a view), so
that what a transform returns can be differentiated by the argument; otherwise it is a leaf.

A transform's sweep is recorded (`traced`) only where somebody outside can ask for a derivative of its result: where the
outside records, and the graph reaches a leaf that is not the transform's own; or where a level of forward mode is open. When a
transform is done with, its leaves are marked as settled: nobody will ask for them again, so a transform further out need not
record for their sake.

The rows of a Jacobian are the cotangents 1 at each output element, given to one reverse sweep as a batch, and its columns the
tangents 1 at each input element, given to one forward sweep. A batch is cut into chunks, so that one intermediate result
stays under `AT_ONCE` elements. Where a user's hook stands in the way, which expects a gradient of its tensor's shape, the rows
are swept one at a time.
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
from gradlab.core.node import Node, behind
from gradlab.core.tangents import opened, set_tangent, tangent_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.joins import cat, stack
from gradlab.ops.shapes import movedim

AT_ONCE = 1 << 22  # elements of one intermediate result of a batched sweep: 32 MB in double precision
SETTLED = ("settled",)  # the `meta` of a leaf that no transform will ask for any more


def in_normal_mode(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, for which inference mode is `no_grad`: transforms record inside it all the same."""

    @wraps(function)
    def made(*args: Any, **kwargs: Any) -> Any:
        if not mode.inference:
            return function(*args, **kwargs)
        with inference_mode(False), no_grad():
            return function(*args, **kwargs)

    return made


def fresh(x: Tensor, connected: bool) -> Tensor:
    """An alias of `x` with a node of its own: recorded from `x` if `connected` and x has history, otherwise a leaf. It has the
    tangent that x has."""
    if connected and x.node is not None:
        return x.view_as(x)
    if tangent_of(x) is None:
        return (constant(x.array) if is_inference(x) else x.detach()).requires_grad_()
    with no_grad():
        return x.view_as(x).requires_grad_()


def settle(inputs: Iterable[Tensor]) -> None:
    """Say of a transform's own leaves that nobody will ask for them again."""
    for x in inputs:
        if x.node is not None and x.is_leaf:
            x.node.meta = SETTLED


def nodes_below(tensors: Iterable[Tensor]) -> Iterator[Node]:
    """The nodes that the tensors' values were recorded from, in no order."""
    return behind(x.node for x in tensors)


def recording() -> bool:
    """Whether the outside of a transform can want its sweeps recorded: gradients of them, or their tangents."""
    return mode.grad or opened.level is not None


def asked_outside(tensors: Iterable[Tensor], own: Sequence[Tensor] = ()) -> bool:
    """Whether somebody outside of the transform with these inputs can ask for a derivative of the tensors."""
    return opened.level is not None or reaches_outside(tensors, own)


def reaches_outside(tensors: Iterable[Tensor], own: Sequence[Tensor] = ()) -> bool:
    """Whether the tensors were recorded from leaves that are not these inputs, nor those of a transform that is over."""
    leaves = {x.node for x in own}
    return any(node.op is None and node.meta is not SETTLED and node not in leaves for node in nodes_below(tensors))


def outward(x: Tensor, own: Sequence[Tensor]) -> Tensor:
    """A result as the outside sees it: without history, unless the outside records and can ask; with its tangent."""
    if x.node is None or (mode.grad and reaches_outside((x,), own)):
        return x
    result, tangent = x.detach(), tangent_of(x)
    if tangent is not None:
        set_tangent(result, outward(tangent, own))
    return result


def zeros_like(x: Tensor, lead: tuple[int, ...] = ()) -> Tensor:
    """Zeros of a tensor's dtype and device, with batch axes in front."""
    return constant(namespace_of[type(x.array)].zeros(lead + x.array.shape, x.array.dtype))


def cotangents(
    outputs: Sequence[Tensor | None],
    inputs: Sequence[Tensor],
    weights: Sequence[Tensor] | None = None,
    *,
    traced: bool,
    retain: bool = True,
) -> list[Tensor | None]:
    """vᵀJ by each of the inputs, None where no output depends on it: `grad` for outputs that may have no history."""
    have = [i for i, y in enumerate(outputs) if y is not None and y.node is not None]
    if not have:
        return [None] * len(inputs)
    return list(
        grad(
            [outputs[i] for i in have],  # type: ignore[misc]
            inputs,
            None if weights is None else tuple(weights[i] for i in have),
            retain_graph=retain,
            create_graph=traced,
            allow_unused=True,
        )
    )


def tangents(
    outputs: Sequence[Tensor | None], inputs: Sequence[Tensor], along: Sequence[Tensor], *, traced: bool, batched: bool = False
) -> list[Tensor | None]:
    """Ju of each of the outputs, None where it depends on no input."""
    have = [y for y in outputs if y is not None and y.node is not None]
    pushed = iter(jvp_of_graph(have, inputs, along, is_batched=batched, create_graph=traced) if have else ())
    return [None if y is None or y.node is None else next(pushed) for y in outputs]


def units(x: Tensor, start: int, stop: int) -> Tensor:
    """The unit tensors of x's shape, number `start` to `stop`, stacked."""
    xp, n = namespace_of[type(x.array)], prod(x.array.shape)
    return constant(xp.eye(stop - start, n, start, dtype=x.array.dtype).reshape(stop - start, *x.array.shape))


def chunks(count: int, outputs: Iterable[Tensor | None], at_once: int | None) -> Iterator[tuple[int, int]]:
    """`count` rows or columns in (start, stop) pieces, of `at_once` or as many as memory allows."""
    if at_once is None:
        largest = max((prod(node.shape) for node in nodes_below(y for y in outputs if y is not None)), default=1)
        at_once = max(1, AT_ONCE // max(largest, 1))
    for start in range(0, count, at_once):
        yield start, min(start + at_once, count)


def batchable(outputs: Iterable[Tensor | None]) -> bool:
    """Whether no hook of the user's sees the cotangents."""
    return not any(
        node.hooks is not None and (node.hooks.tensor or node.hooks.pre or node.hooks.post)
        for node in nodes_below(y for y in outputs if y is not None)
    )


def joined(parts: list[Any], like: tuple[int, ...]) -> Tensor | None:
    """Chunks of rows as one tensor, whose first axis gets the shape `like`."""
    if any(part is None for part in parts):
        return None
    whole = parts[0] if len(parts) == 1 else cat(parts)
    return whole.reshape(like + whole.array.shape[1:])


def rows(output: Tensor | None, inputs: Sequence[Tensor], *, traced: bool, at_once: int | None = None) -> list[Tensor | None]:
    """∂output/∂input for each of the inputs, of shape output.shape + input.shape, by reverse sweeps; None for one that the
    output does not depend on."""
    if output is None or output.node is None:
        return [None] * len(inputs)
    count, shape = prod(output.array.shape), output.array.shape
    if count == 0:
        return [zeros_like(x, shape) for x in inputs]
    if count == 1:
        swept = cotangents([output], inputs, [units(output, 0, 1).reshape(shape)], traced=traced)
        return [None if c is None else c.reshape(shape + c.array.shape) if shape else c for c in swept]
    if at_once != 1 and batchable((output,)):
        parts = [
            grad(
                output,
                inputs,
                units(output, a, b),
                retain_graph=True,
                create_graph=traced,
                allow_unused=True,
                is_grads_batched=True,
            )
            for a, b in chunks(count, (output,), at_once)
        ]
    else:
        singly = [cotangents([output], inputs, [units(output, i, i + 1).reshape(shape)], traced=traced) for i in range(count)]
        parts = [tuple(None if any(c is None for c in row) else stack(row) for row in zip(*singly, strict=True))]
    return [joined([part[i] for part in parts], shape) for i in range(len(inputs))]


def columns(outputs: Sequence[Tensor | None], inputs: Sequence[Tensor], *, traced: bool) -> list[list[Tensor | None]]:
    """The same matrices by forward sweeps: for each output a list over the inputs."""
    by_input = []
    for x in inputs:
        count = prod(x.array.shape)
        if count == 0:
            by_input.append([None if y is None else zeros_like(y, (0,)).reshape(y.array.shape + x.array.shape) for y in outputs])
            continue
        parts = [tangents(outputs, [x], [units(x, a, b)], traced=traced, batched=True) for a, b in chunks(count, outputs, None)]
        columns = [joined([part[i] for part in parts], (count,)) for i in range(len(outputs))]
        by_input.append(
            [None if t is None else movedim(t, 0, -1).contiguous().reshape(t.array.shape[1:] + x.array.shape) for t in columns]
        )
    return [list(of_output) for of_output in zip(*by_input, strict=True)]

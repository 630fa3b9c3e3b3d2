"""`backward` and `grad`: the arguments checked, the weights made, the sweep started."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of, wrap
from gradlab.core.engine import accumulate, vjp_sweep
from gradlab.core.engine import jvp_sweep as forward_sweep
from gradlab.core.errors import no_graph, not_scalar, unused, weight_shape
from gradlab.core.node import AccumulateGrad, Node
from gradlab.core.tensor import Tensor, constant

Tensors = Tensor | Sequence[Tensor]


def _sequence(given: Any, what: str) -> list[Any]:
    if isinstance(given, Tensor):
        return [given]
    if isinstance(given, (tuple, list)):
        return list(given)
    raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, got {type(given).__name__}.")


def weights_of(index: int, output: Tensor, given: Any, batched: bool) -> Tensor:
    """The cotangent to start from: `given` in the output's dtype, or 1 for a single element."""
    if output.node is None:
        raise no_graph(index, output.dtype)
    xp = namespace_of[type(output.array)]
    if given is None:
        if output.array.size != 1:
            raise not_scalar(output.array.shape)
        return constant(xp.ones_like(output.array))
    if not isinstance(given, Tensor):
        if not (isinstance(given, (list, tuple, int, float)) or is_array(given)):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(given).__name__}")
        given = constant(xp.asarray(given, output.array.dtype))
    shape = given.array.shape
    if (shape[1:] if batched else shape) != output.array.shape or (batched and not shape):
        raise weight_shape(index, shape, output.array.shape, batched)
    if given.array.dtype != output.array.dtype:
        cast = namespace_of[Tensor].astype(given, output.array.dtype)
        given = cast if given.node is not None else constant(given.array.astype(output.array.dtype))
    return given


def _roots(outputs: list[Tensor], weights: Any, batched: bool, traced: bool) -> tuple[list[tuple[Node, Any]], tuple[int, ...]]:
    weights = [None] * len(outputs) if weights is None else _sequence(weights, "grad_outputs") if len(outputs) > 1 or isinstance(
        weights, (tuple,)) or (isinstance(weights, list) and weights and isinstance(weights[0], Tensor)) else [weights]
    if len(weights) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(weights)} gradients: give one for each output, or None.")
    made = [weights_of(i, y, v, batched) for i, (y, v) in enumerate(zip(outputs, weights, strict=True))]
    lead: tuple[int, ...] = ()
    if batched:
        lead = made[0].array.shape[:1]
        if any(v.array.shape[:1] != lead for v in made):
            raise RuntimeError("If `is_grads_batched=True`, all grad_outputs must have the same batch size, got "
                               f"{[v.array.shape[0] for v in made]}.")
    roots = [(y.node, v if traced else v.array) for y, v in zip(outputs, made, strict=True)]
    return roots, lead  # type: ignore[return-value]


def backward(tensors: Tensors, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:
    """Accumulate the weighted sum of the tensors' gradients into the `.grad` of the leaves (or of `inputs` alone).

    Parameters
    ----------
    tensors : Tensor or sequence of Tensors
        What is differentiated.
    grad_tensors : Tensor, sequence or None
        A weight for every element of each tensor (v in vᵀJ), of its shape. None for tensors of one element.
    retain_graph : bool, optional
        Keep what the graph has saved, so that it can be walked again. Defaults to `create_graph`.
    create_graph : bool
        Record the gradients' own computation, for derivatives of higher order.
    inputs : Tensor or sequence of Tensors, optional
        Only these receive gradients; non-leaves may be among them.
    """
    outputs = _sequence(tensors, "tensors")
    if grad_tensors is None and grad_variables is not None:
        grad_tensors = grad_variables
    wanted = None
    if inputs is not None:
        chosen = _sequence(inputs, "inputs")
        if not chosen:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for i, x in enumerate(chosen):
            if x.node is None:
                raise RuntimeError(f"One of the differentiated Tensors does not require grad (inputs[{i}], shape "
                                   f"{list(x.array.shape)}).")
        wanted = {x.node for x in chosen}
    roots, lead = _roots(outputs, grad_tensors, False, create_graph)
    found = vjp_sweep(roots, lead, wanted=wanted, traced=create_graph,
                      retain=create_graph if retain_graph is None else retain_graph, outputs=outputs)
    for x in chosen if wanted is not None else ():
        g = found.pop(x.node, None)
        if g is None:
            continue
        if isinstance(x.node, AccumulateGrad):
            accumulate(x.node, g, create_graph, borrowed=False)
        else:
            x.grad_slot = g if create_graph else constant(wrap(g)) if x.grad_slot is None else x.grad_slot + constant(wrap(g))


def grad(outputs: Tensors, inputs: Tensors, grad_outputs: Any = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False, *, hooks: bool = True) -> tuple[Tensor | None, ...]:
    """vᵀJ of the outputs by each of the inputs, returned; no `.grad` is touched.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensors
        What is differentiated, and by what (leaves or not).
    grad_outputs : Tensor, sequence or None
        The weights v, one of each output's shape; with `is_grads_batched`, with one more axis in front, and the results
        have that axis too: many rows of the Jacobian in one sweep.
    retain_graph, create_graph : bool
        As for `backward`.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, instead of raising.
    materialize_grads : bool
        Zeros instead of None.
    hooks : bool
        Whether the hooks that users have registered run.
    """
    ys, xs = _sequence(outputs, "outputs"), _sequence(inputs, "inputs")
    if not xs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if materialize_grads:
        if allow_unused is False:
            raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
                             "allow_unused=False.")
        allow_unused = True
    for i, x in enumerate(xs):
        if x.node is None and not allow_unused:
            raise RuntimeError(f"One of the differentiated Tensors does not require grad: inputs[{i}], of shape "
                               f"{list(x.array.shape)}. Set requires_grad=True on it before computing the output.")
    roots, lead = _roots(ys, grad_outputs, is_grads_batched, create_graph)
    found = vjp_sweep(roots, lead, wanted={x.node for x in xs if x.node is not None}, traced=create_graph,
                      retain=create_graph if retain_graph is None else retain_graph, hooks=hooks, accumulates=False)
    results: list[Tensor | None] = []
    for i, x in enumerate(xs):
        g = None if x.node is None else found.get(x.node)
        if g is None and not allow_unused:
            raise unused(i)
        if g is None and materialize_grads:
            g = namespace_of[type(x.array)].zeros(lead + x.array.shape, dtype=x.array.dtype)
        results.append(g if g is None or isinstance(g, Tensor) else constant(wrap(g)))
    return tuple(results)


def jvp_of_graph(outputs: Tensors, inputs: Tensors, tangents: Tensors, *, is_batched: bool = False,
                 create_graph: bool = False) -> tuple[Tensor | None, ...]:
    """Ju: the outputs' tangents for given tangents of the inputs, by one forward sweep over the recorded graph.

    Nothing is run again. `tangents` have the inputs' shapes (with `is_batched`, one more axis in front); an output that
    none of the inputs reaches gives None.
    """
    ys, xs, us = _sequence(outputs, "outputs"), _sequence(inputs, "inputs"), _sequence(tangents, "tangents")
    lead = us[0].array.shape[:1] if is_batched else ()
    given: dict[Node, Any] = {}
    for i, (x, u) in enumerate(zip(xs, us, strict=True)):
        if x.node is None:
            raise RuntimeError(f"inputs[{i}] does not require grad, so nothing was recorded from it.")
        if u.array.shape != lead + x.array.shape:
            raise RuntimeError(f"tangents[{i}] has shape {list(u.array.shape)}, but its input has {list(x.array.shape)}.")
        u = u if u.array.dtype == x.array.dtype else constant(u.array.astype(x.array.dtype))
        given[x.node] = u if create_graph else u.array
    for i, y in enumerate(ys):
        if y.node is None:
            raise no_graph(i, y.dtype)
    made = forward_sweep([y.node for y in ys], given, lead, traced=create_graph)
    return tuple(t if t is None or isinstance(t, Tensor) else constant(wrap(np.asarray(t) if np.isscalar(t) else t))
                 for t in made)

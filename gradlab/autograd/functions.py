"""`backward`, `grad` and `jvp_of_graph`: check the arguments, make the initial gradients and start the sweep.

An output or input is a Tensor or a GradientEdge. Both are converted to a `Root`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from gradlab.autograd.graph import GradientEdge, node_of
from gradlab.backend.namespaces import is_array, namespace_of, wrap
from gradlab.core.devices import different_devices
from gradlab.core.engine import accumulate, vjp_sweep
from gradlab.core.errors import input_without_history, no_graph, not_scalar, unused_input, weight_shape
from gradlab.core.forward import jvp_sweep as forward_sweep
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad, Node
from gradlab.core.numpy_warnings import silence
from gradlab.core.tangents import level_state
from gradlab.core.tensor import Tensor, constant

Tensors = Tensor | GradientEdge | Sequence[Tensor | GradientEdge]

CYCLE_WARNING = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
    "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
    "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the "
    "leak."
)


TENSOR_METHODS = "gradlab.methods.gradients"  # the module that defines Tensor.backward


Root = tuple[Node, tuple[int, ...], Any, Any]  # start of a sweep: node, shape, dtype, and an array of its kind


def _sequence(value: Any, what: str) -> list[Any]:
    if type(value) is Tensor or isinstance(value, (Tensor, GradientEdge)):
        return [value]
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{what} must be a Tensor or a sequence of Tensors, got {type(value).__name__}.")
    return list(value)


def _root(index: int, output: Any) -> Root:
    if isinstance(output, Tensor):
        if output.node is None:
            raise no_graph(index, output)
        return output.node, output.array.shape, output.array.dtype, output.array
    if not isinstance(output, GradientEdge):
        raise TypeError(f"all outputs have to be Tensors or GradientEdges, but got {type(output).__name__}")
    node = node_of(output)
    assert node is not None
    return node, node.shape, node.dtype, np.zeros(0)


def root_cotangent(index: int, root: Root, weight: Any, batched: bool) -> Tensor:
    """Return the initial gradient of an output: `weight` in the dtype of the output, or 1 for an output of one element."""
    __tracebackhide__ = True
    _, wanted, dtype, like = root
    if weight is None:
        if prod(wanted) != 1:
            raise not_scalar(wanted)
        if batched:
            raise RuntimeError("`is_grads_batched=True` requires `grad_outputs` for every output.")
        return constant(namespace_of[type(like)].ones(wanted, dtype))
    if not isinstance(weight, Tensor):
        if not (isinstance(weight, (list, tuple, int, float)) or is_array(weight)):
            raise TypeError(f"gradients can be either Tensors or None, but got {type(weight).__name__}")
        weight = constant(namespace_of[type(like)].asarray(weight, dtype))
    if type(weight.array) is not type(like):
        raise different_devices("backward", (like, weight.array))
    shape = weight.array.shape
    if (shape[1:] if batched else shape) != wanted or (batched and not shape):
        raise weight_shape(index, shape, wanted, batched)
    if weight.array.dtype != dtype:
        weight = namespace_of[Tensor].astype(weight, dtype) if weight.node is not None else constant(weight.array.astype(dtype))
    return weight


def _roots(outputs: list[Any], weights: Any, batched: bool, traced: bool) -> tuple[list[tuple[Node, Any]], tuple[int, ...]]:
    __tracebackhide__ = True
    if type(weights) is Tensor and len(outputs) == 1 and not batched:  # the usual case, for the rows of a Jacobian
        y, v = outputs[0], weights.array
        if (
            type(y) is Tensor
            and y.node is not None
            and v.shape == y.array.shape
            and v.dtype is y.array.dtype
            and type(v) is type(y.array)
        ):
            return [(y.node, weights if traced else v)], ()
    if weights is None:
        weights = [None] * len(outputs)
    elif isinstance(weights, Tensor) or (
        len(outputs) == 1
        and not isinstance(weights, tuple)
        and not (isinstance(weights, list) and weights and isinstance(weights[0], Tensor))
    ):
        weights = [weights]
    else:
        weights = list(weights)
    if len(weights) != len(outputs):
        raise RuntimeError(
            f"got {len(outputs)} tensors and {len(weights)} gradients: give one gradient, or None, for each tensor."
        )
    starts = [_root(i, y) for i, y in enumerate(outputs)]
    seeds = [root_cotangent(i, root, v, batched) for i, (root, v) in enumerate(zip(starts, weights, strict=True))]
    lead: tuple[int, ...] = ()
    if batched and seeds:
        lead = seeds[0].array.shape[:1]
        if any(v.array.shape[:1] != lead for v in seeds):
            raise ValueError(
                "If `is_grads_batched=True`, all grad_outputs must have the same batch size: Expected all tensors "
                f"to have the same size in the mapped dimension, got sizes {[v.array.shape[0] for v in seeds]}."
            )
    return [(root[0], v if traced else v.array) for root, v in zip(starts, seeds, strict=True)], lead


def _inputs(inputs: Any, function: str) -> list[Any]:
    """Return the inputs as a list: the values of a dictionary, or the elements of a sequence."""
    if type(inputs) is Tensor:
        return [inputs]
    if isinstance(inputs, Mapping):
        if type(inputs) is not dict:
            raise TypeError(
                f"`inputs` argument to `{function}()` must be a dict, not {type(inputs).__name__}. Other Mapping "
                "types are not supported."
            )
        chosen = list(inputs.values())
    else:
        chosen = (
            [inputs] if isinstance(inputs, (Tensor, GradientEdge)) else list(inputs) if hasattr(inputs, "__iter__") else [inputs]
        )
    if not chosen:
        raise RuntimeError(f"`inputs` argument to `{function}()` cannot be empty.")
    for x in chosen:
        if not isinstance(x, (Tensor, GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
    return chosen


def backward(
    tensors: Tensors,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves, and accumulate them in `.grad`.

    Parameters
    ----------
    tensors : Tensor, GradientEdge or sequence of these
        Tensors to differentiate.
    grad_tensors : Tensor or sequence of Tensor or None, optional
        The vector v of the product vᵀJ: for each tensor a gradient of its shape. None for a tensor of one element means 1.
    retain_graph : bool, optional
        Keep the saved tensors of the graph, so that it can be differentiated again. Defaults to the value of `create_graph`.
    create_graph : bool, default: False
        Record the computation of the gradients, for derivatives of higher order. `.grad` then holds a reference to the graph of
        its tensor, which is a reference cycle. A warning says so.
    grad_variables : sequence, optional
        Deprecated name of `grad_tensors`.
    inputs : Tensor, GradientEdge, sequence or dict of these, optional
        Accumulate gradients only into these, which need not be leaves. By default, all leaves receive gradients.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If a tensor has no history, if the shape of a gradient in `grad_tensors` does not match its tensor, or if the graph has
        been freed.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> gl.autograd.backward((x**2).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    __tracebackhide__ = True
    outputs = _sequence(tensors, "tensors")
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please "
                "only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    chosen = [] if inputs is None else _inputs(inputs, "backward")
    for i, x in enumerate(chosen):
        if node_of(x) is None:
            raise RuntimeError(
                f"can't retain_grad on Tensor that has requires_grad=False: inputs[{i}], of shape "
                f"{list(x.array.shape)}. One of the differentiated Tensors does not require grad."
            )
        if isinstance(x, Tensor):
            x.retain_grad()
    roots, lead = _roots(outputs, grad_tensors, False, create_graph)
    if create_graph:
        warnings.warn(CYCLE_WARNING, UserWarning, stacklevel=2 + (sys._getframe(1).f_globals.get("__name__") == TENSOR_METHODS))
    wanted = None if inputs is None else {node_of(x) for x in chosen}
    gradients = vjp_sweep(
        roots,
        lead,
        wanted=wanted,  # type: ignore[arg-type]
        traced=create_graph,
        retain=create_graph if retain_graph is None else retain_graph,
        outputs=outputs,
    )
    for x in chosen:
        node = node_of(x)
        assert node is not None
        g = gradients.pop(node, None)
        if g is not None and isinstance(node, AccumulateGrad):  # retain_grad() stores the gradients of the others
            with silence():
                accumulate(node, g, create_graph, borrowed=False)


def grad(
    outputs: Tensors,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
    *,
    hooks: bool = True,
) -> Any:
    """Return the gradients of `outputs` with respect to `inputs`, without changing any `.grad`.

    Parameters
    ----------
    outputs : Tensor, GradientEdge or sequence of these
        Tensors to differentiate.
    inputs : Tensor, GradientEdge, sequence or dict of these
        Tensors with respect to which the gradients are computed. They need not be leaves.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        The vector v of the product vᵀJ: for each output a gradient of its shape. None for an output of one element means 1.
    retain_graph, create_graph : bool, optional
        As in `backward`.
    only_inputs : bool, default: True
        Deprecated and ignored.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, instead of raising an error.
    is_grads_batched : bool, default: False
        Interpret the first dimension of each tensor in `grad_outputs` as a batch dimension. The results have it, too. This
        computes many rows of a Jacobian in one backward pass.
    materialize_grads : bool, default: False
        Return zeros instead of None for an input that the outputs do not depend on.
    hooks : bool, default: True
        Run the hooks that users have registered.

    Returns
    -------
    tuple of Tensor, or dict
        One gradient for each input, of its shape, with an additional first dimension if `is_grads_batched`. If `inputs` is a
        dict, a dict with the same keys.

    Raises
    ------
    RuntimeError
        If an output has no history, if the shape of a gradient in `grad_outputs` does not match its output, if an input was not
        used, or if the graph has been freed.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> gl.autograd.grad((x**2).sum(), x)
    (tensor([2., 4.]),)
    """
    __tracebackhide__ = True
    if materialize_grads:
        if allow_unused is False:
            raise ValueError(
                "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
            )
        allow_unused = True
    ys, xs = _sequence(outputs, "outputs"), _inputs(inputs, "grad")
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    nodes: list[Node | None] = []
    for x in xs:
        node = node_of(x)
        if node is None and not allow_unused:
            raise input_without_history(len(nodes), x)
        nodes.append(node)
    level = level_state.level if mode.forward else None
    tangents = level is not None and len(level.duals) > 0  # then the gradients have tangents, too
    roots, lead = _roots(ys, grad_outputs, is_grads_batched, create_graph or tangents)
    gradients = vjp_sweep(
        roots,
        lead,
        wanted=[node for node in nodes if node is not None],
        traced=create_graph or tangents,
        retain=create_graph if retain_graph is None else retain_graph,
        hooks=hooks,
        accumulates=False,
    )
    if level is not None and tangents and not create_graph:
        gradients = {node: level.without_history(g) for node, g in gradients.items()}
    results: list[Tensor | None] = []
    for x, node in zip(xs, nodes, strict=True):
        g = None if node is None else gradients.get(node)
        if g is None:
            if not allow_unused:
                raise unused_input(len(results), x if isinstance(x, Tensor) else None, [y for y in ys if isinstance(y, Tensor)])
            if materialize_grads:
                if not isinstance(x, Tensor):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                g = constant(namespace_of[type(x.array)].zeros(lead + x.array.shape, dtype=x.array.dtype))
                if create_graph and x.array.dtype.kind == "f":
                    g.requires_grad_()
        elif not isinstance(g, Tensor):
            g = constant(wrap(g))
        results.append(g)
    return dict(zip(inputs, results, strict=True)) if type(inputs) is dict else tuple(results)


def jvp_of_graph(
    outputs: Tensors, inputs: Tensors, tangents: Tensors, *, is_batched: bool = False, create_graph: bool = False
) -> tuple[Tensor | None, ...]:
    """Return the Jacobian-vector products Ju of `outputs`, computed from the recorded graph in forward mode.

    No operation is executed again.

    Parameters
    ----------
    outputs : Tensor or sequence of Tensor
        Tensors to differentiate.
    inputs : Tensor or sequence of Tensor
        Tensors that have the tangents.
    tangents : Tensor or sequence of Tensor
        The vector u: one tangent for each input, of its shape.
    is_batched : bool, default: False
        Interpret the first dimension of each tangent as a batch dimension. The results have it, too.
    create_graph : bool, default: False
        Record the computation of the products, so that they can be differentiated.

    Returns
    -------
    tuple of Tensor or None
        One tangent for each output, None for an output that depends on no input.

    Raises
    ------
    RuntimeError
        If an output has no history, if an input does not require gradients, if the shape of a tangent does not match its input,
        if the numbers of inputs and tangents differ, or if the graph has been freed.
    TypeError
        If `outputs`, `inputs` or `tangents` is not a Tensor or a sequence.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x**2
    >>> gl.autograd.jvp_of_graph(y, x, gl.tensor([1.0, 0.0]))
    (tensor([2., 0.]),)
    """
    ys, xs, us = _sequence(outputs, "outputs"), _sequence(inputs, "inputs"), _sequence(tangents, "tangents")
    if len(us) != len(xs):
        raise RuntimeError(f"got {len(xs)} inputs and {len(us)} tangents: give one tangent for each input.")
    lead = us[0].array.shape[:1] if is_batched else ()
    seeds: dict[Node, Any] = {}
    for i, (x, u) in enumerate(zip(xs, us, strict=True)):
        if x.node is None:
            raise RuntimeError(f"inputs[{i}] does not require grad, so the graph does not contain it.")
        if u.array.shape != lead + x.array.shape:
            raise RuntimeError(f"tangents[{i}] has shape {list(u.array.shape)}, but its input has shape {list(x.array.shape)}.")
        u = u if u.array.dtype == x.array.dtype else constant(u.array.astype(x.array.dtype))
        seeds[x.node] = u if create_graph else u.array
    for i, y in enumerate(ys):
        if y.node is None:
            raise no_graph(i, y)
    pushed = forward_sweep([y.node for y in ys], seeds, lead, traced=create_graph)
    return tuple(
        t if t is None or isinstance(t, Tensor) else constant(wrap(np.asarray(t) if np.isscalar(t) else t)) for t in pushed
    )

"""Jacobians, Hessians and their products with vectors, with the names of `torch.autograd.functional`.

The function is called once, on aliases of the inputs (see `functional_helpers`). So the `.grad` of the tensors that were passed
does not change, and the history of the results leads back to them only with `create_graph=True`. All derivatives are computed
from the graph that this one call recorded: a Jacobian by a batch of rows or columns, `jvp` in one forward-mode pass, and second
derivatives from the recorded gradient. `vectorize` therefore has no effect, except that it cannot be combined with `strict`.

Arguments that all functions here share:

    func          function of tensors that returns a Tensor or a tuple of Tensors
    inputs        its argument, a Tensor, or its arguments, a tuple of Tensors; results have the same structure
    create_graph  if True, the results can be differentiated
    strict        if True, raise an error if an output (or gradient) does not depend on an input; if False, return zeros for it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradlab.autograd.functional_helpers import (
    cotangents,
    fresh_alias,
    in_normal_mode,
    jacobian_columns,
    jacobian_rows,
    nodes_below,
    tangents,
    zeros_like,
)
from gradlab.core.errors import module_getattr
from gradlab.core.modes import enable_grad
from gradlab.core.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__getattr__ = module_getattr("gradlab.autograd.functional")

Tensors = Tensor | tuple[Tensor, ...]
OUTPUTS_DESCRIPTION = "outputs of the user-provided function"
STRATEGIES = "forward-mode", "reverse-mode"


# -------------------------------------------------------------------------------------------------------- inputs and outputs
def _tuple_of(value: Any, what: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """Return whether `value` is a tuple, and its elements as a tuple."""
    several = isinstance(value, tuple)
    for i, x in enumerate(value if several else (value,)):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the "
                f"{f'value at index {i}' if several else f'given {what}'} has type {type(x)}."
            )
    return several, value if several else (value,)


def _call(func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool) -> tuple[bool, tuple[Any, ...]]:
    several, outputs = _tuple_of(func(*inputs), OUTPUTS_DESCRIPTION, function)
    if strict:
        for i, y in enumerate(outputs):
            if y.node is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )
    return several, outputs


def _check_vector(v: Any, like: tuple[Any, ...], several: bool, function: str, create_graph: bool) -> list[Tensor]:
    """Check `v` against the tensors whose shapes it must have, and return its elements."""
    _, vs = _tuple_of(v, "v", function)
    if len(vs) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}."
            if several
            else "The given v should contain a single Tensor."
        )
    for i, (x, y) in enumerate(zip(vs, like, strict=True)):
        if x.shape != y.shape:
            raise RuntimeError(f"{f'Entry {i} in ' if several else ''}v has invalid size: should be {y.shape} but got {x.shape}.")
    return [x if create_graph else x.detach() for x in vs]


def _is_single_number(x: Sequence[Tensor]) -> bool:
    return len(x) == 1 and x[0].array.size == 1


def _value_and_gradient(
    func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool
) -> tuple[Tensor, list[Any]]:
    """Return the scalar output of `func`, and its gradient, recorded."""
    several, outputs = _call(func, inputs, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].array.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    gradient = cotangents(outputs, inputs, traced=True)
    for i, g in enumerate(gradient if strict else ()):
        if g is None and function != "hessian":
            raise RuntimeError(INDEPENDENT_MESSAGES["jacobian"].format(i=i))
        if g is None or g.node is None:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect "
                f"to input {i} is independent of the input. This is not allowed in strict mode. You should ensure "
                "that your function is twice differentiable and that the jacobian depends on the inputs (this "
                "would be violated by a linear function for example)."
            )
    return outputs[0], gradient


INDEPENDENT_MESSAGES = {  # errors of strict mode for a derivative that does not exist
    "jacobian": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "jvp": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}


def _fill_zeros(
    parts: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create_graph: bool, kind: str
) -> list[Tensor]:
    """Replace the missing entries of a product by zeros, or raise an error if `strict`."""
    for i, part in enumerate(parts if strict else ()):
        if part is None:
            raise RuntimeError(INDEPENDENT_MESSAGES[kind].format(i=i))
        if create_graph and part.node is None:
            order = "hessian" if kind in ("vhp", "hvp") else "jacobian"
            raise RuntimeError(
                f"The {order} of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
    return [zeros_like(x) if part is None else part for part, x in zip(parts, like, strict=True)]


def _unpack_results(parts: Sequence[Any], several: bool, create_graph: bool) -> Any:
    """Return results to the user: detached unless `create_graph`, and as a tuple if `several`."""
    results = tuple(x if create_graph or x.node is None else x.detach() for x in parts)
    return results if several else results[0]


def _fresh_inputs(function: str, inputs: Any, create_graph: bool) -> tuple[bool, tuple[Tensor, ...]]:
    several, tensors = _tuple_of(inputs, "inputs", function)
    return several, tuple(fresh_alias(x, create_graph) for x in tensors)


# ------------------------------------------------------------------------------------------------------------------ products
@in_normal_mode
def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Compute `func(inputs)`, and vᵀJ, the product of a vector and the Jacobian.

    `v` has the shapes of the outputs. It may be None if the output is a single number. The product has the shapes of the inputs.
    """
    with enable_grad():
        several, xs = _fresh_inputs("vjp", inputs, create_graph)
        several_out, ys = _call(func, xs, "vjp", strict)
        if v is None and not _is_single_number(ys):
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        weights = None if v is None else _check_vector(v, ys, several_out, "vjp", create_graph)
        cotangents_of_inputs = cotangents(ys, xs, weights, traced=create_graph, retain=create_graph)
        product = _fill_zeros(cotangents_of_inputs, xs, strict, create_graph, "jacobian")
    return _unpack_results(ys, several_out, create_graph), _unpack_results(product, several, create_graph)


@in_normal_mode
def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """Compute `func(inputs)`, and Jv, the product of the Jacobian and a vector, in one forward-mode pass.

    `v` has the shapes of the inputs. It may be None if the input is a single number. The product has the shapes of the outputs.
    """
    with enable_grad():
        several, xs = _fresh_inputs("jvp", inputs, create_graph)
        along = _direction(v, xs, several, "jvp", create_graph)
        several_out, ys = _call(func, xs, "jvp", strict)
        if strict:
            reached = set(nodes_below(ys))
            _fill_zeros([None if x.node not in reached else x for x in xs], xs, True, False, "jacobian")
        product = _fill_zeros(tangents(ys, xs, along, traced=create_graph), ys, strict, create_graph, "jvp")
    return _unpack_results(ys, several_out, create_graph), _unpack_results(product, several_out, create_graph)


def _direction(v: Any, inputs: tuple[Tensor, ...], several: bool, function: str, create_graph: bool) -> list[Tensor]:
    if v is not None:
        return _check_vector(v, inputs, several, function, create_graph)
    if not _is_single_number(inputs):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
        )
    return [inputs[0].detach() * 0 + 1]


@in_normal_mode
def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Compute `func(inputs)`, a single number, and vᵀH, the product of a vector and the Hessian, in reverse mode."""
    with enable_grad():
        several, xs = _fresh_inputs("vhp", inputs, create_graph)
        along = _direction(v, xs, several, "vhp", create_graph)
        y, gradient = _value_and_gradient(func, xs, "vhp", strict)
        second = cotangents(gradient, xs, along, traced=create_graph, retain=create_graph)
        product = _fill_zeros(second, xs, strict, create_graph, "vhp")
    return _unpack_results((y,), False, create_graph), _unpack_results(product, several, create_graph)


@in_normal_mode
def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """Compute `func(inputs)`, a single number, and Hv, the product of the Hessian and a vector, forward over reverse."""
    with enable_grad():
        several, xs = _fresh_inputs("hvp", inputs, create_graph)
        along = _direction(v, xs, several, "hvp", create_graph)
        y, gradient = _value_and_gradient(func, xs, "hvp", strict)
        product = _fill_zeros(tangents(gradient, xs, along, traced=create_graph), xs, strict, create_graph, "hvp")
    return _unpack_results((y,), False, create_graph), _unpack_results(product, several, create_graph)


# ------------------------------------------------------------------------------------------------------------ whole matrices
@in_normal_mode
def jacobian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Compute the Jacobian of a function.

    Parameters
    ----------
    strategy : {"reverse-mode", "forward-mode"}, default: "reverse-mode"
        Compute a batch of rows in reverse mode, or a batch of columns in forward mode. Forward mode is faster if there are more
        outputs than inputs.

    Returns
    -------
    Tensor or nested tuple of Tensor
        Derivative of each output with respect to each input, of shape output.shape + input.shape. The result is a tuple over the
        outputs if `func` returns a tuple. For each output, it is a tuple over the inputs if `inputs` is a tuple.
    """
    if strategy not in STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
            'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            f'"reverse-mode". Got {strategy!r}.'
        )
    forward = strategy == "forward-mode"
    _check_strategy(forward, create_graph, strict)
    with enable_grad():
        several, xs = _fresh_inputs("jacobian", inputs, create_graph)
        several_out, ys = _call(func, xs, "jacobian", strict)
        _check_vectorize(strict and vectorize)
        matrix = jacobian_columns(ys, xs, traced=False) if forward else [jacobian_rows(y, xs, traced=create_graph) for y in ys]
        return _assemble_matrix(matrix, ys, xs, strict, create_graph, several_out, several)


def _check_strategy(forward: bool, create_graph: bool, strict: bool) -> None:
    option = "create_graph" if create_graph else "strict"
    if forward and (create_graph or strict):
        raise (NotImplementedError if create_graph else RuntimeError)(
            f'gradlab.autograd.functional.jacobian: `{option}=True` and `strategy="forward-mode"` are not supported together '
            f'(yet). Please either set `{option}=False` or `strategy="reverse-mode"`.'
        )


def _check_vectorize(strict_and_vectorize: bool) -> None:
    if strict_and_vectorize:
        raise RuntimeError(
            "gradlab.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
            "together. Please either set `strict=False` or `vectorize=False`."
        )


def _assemble_matrix(
    matrix: Sequence[Sequence[Tensor | None]],
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    strict: bool,
    create_graph: bool,
    several_out: bool,
    several: bool,
) -> Any:
    """Check the blocks of a Jacobian or Hessian, replace missing ones by zeros, and nest them for the user."""
    blocks = []
    for i, (y, line) in enumerate(zip(outputs, matrix, strict=True)):
        for j, block in enumerate(line if strict else ()):
            if block is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in strict mode."
                )
            if create_graph and block.node is None:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {i}. This is not allowed "
                    "in strict mode when create_graph=True."
                )
        full = [zeros_like(x, y.array.shape) if block is None else block for block, x in zip(line, inputs, strict=True)]
        blocks.append(_unpack_results(full, several, create_graph))
    return tuple(blocks) if several_out else blocks[0]


@in_normal_mode
def hessian(
    func: Callable[..., Any],
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Compute the Hessian of a function that returns a single number.

    Parameters
    ----------
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}, default: "reverse-mode"
        Differentiate the gradient by a batch of rows in reverse mode, or by a batch of columns in forward mode. Both take the
        same time.

    Returns
    -------
    Tensor or tuple of tuples of Tensor
        Second derivatives. Block [i][j] has shape inputs[i].shape + inputs[j].shape.
    """
    if outer_jacobian_strategy not in STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"
    several, tensors = _tuple_of(inputs, "inputs", "hessian")
    _check_strategy(forward, create_graph, strict)
    with enable_grad():
        xs = tuple(fresh_alias(x, create_graph) for x in tensors)
        _, gradient = _value_and_gradient(func, xs, "hessian", strict)
        _check_vectorize(strict and vectorize)
        matrix = (
            jacobian_columns(gradient, xs, traced=False)
            if forward
            else [jacobian_rows(g, xs, traced=create_graph) for g in gradient]
        )
        return _assemble_matrix(matrix, xs, xs, strict, create_graph, several, several)

"""Products with Jacobians and Hessians, and the whole matrices, of a function of tensors: as `torch.autograd.functional`.

The function is called once, on aliases of the inputs (see `functional_helpers`), so the tensors that were passed keep their
`.grad`, and history leads back to them only with `create_graph=True`. Everything else is sweeps over what that one call recorded:
a Jacobian by a batch of rows or of columns, `jvp` by one forward sweep, second derivatives by a sweep over the recorded gradient.
`vectorize` therefore changes nothing but what `strict` refuses.

Arguments that all functions here share:

    func          a function of tensors that returns a tensor or a tuple of tensors
    inputs        its argument, a tensor, or a tuple of its arguments; results are nested alike
    create_graph  whether the results can be differentiated
    strict        whether an output (or gradient) that does not depend on an input is an error; otherwise its derivative is zeros
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradlab.autograd.functional_helpers import (
    columns,
    cotangents,
    fresh,
    in_normal_mode,
    nodes_below,
    rows,
    tangents,
    zeros_like,
)
from gradlab.core.errors import names_of
from gradlab.core.modes import enable_grad
from gradlab.core.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
__getattr__ = names_of("gradlab.autograd.functional")

Tensors = Tensor | tuple[Tensor, ...]
OUTPUTS = "outputs of the user-provided function"
FORWARD = "forward-mode", "reverse-mode"


# ------------------------------------------------------------------------------------------- what goes in and what comes out
def _tuple_of(value: Any, what: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """Whether a tuple was given, and the tuple."""
    several = isinstance(value, tuple)
    for i, x in enumerate(value if several else (value,)):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but the "
                f"{f'value at index {i}' if several else f'given {what}'} has type {type(x)}."
            )
    return several, value if several else (value,)


def _called(func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool) -> tuple[bool, tuple[Any, ...]]:
    several, outputs = _tuple_of(func(*inputs), OUTPUTS, function)
    if strict:
        for i, y in enumerate(outputs):
            if y.node is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The outputs must be "
                    "computed in a differentiable manner from the input when running in strict mode."
                )
    return several, outputs


def _vector(v: Any, like: tuple[Any, ...], several: bool, function: str, create_graph: bool) -> list[Tensor]:
    """The vector v, checked against the tensors it goes with."""
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


def _one(x: Sequence[Tensor]) -> bool:
    return len(x) == 1 and x[0].array.size == 1


def _scalar(func: Callable[..., Any], inputs: tuple[Tensor, ...], function: str, strict: bool) -> tuple[Tensor, list[Any]]:
    """The single number that `func` returns, and its recorded gradient."""
    several, outputs = _called(func, inputs, function, strict)
    if several:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if outputs[0].array.size != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    gradient = cotangents(outputs, inputs, traced=True)
    for i, g in enumerate(gradient if strict else ()):
        if g is None and function != "hessian":
            raise RuntimeError(INDEPENDENT["jacobian"].format(i=i))
        if g is None or g.node is None:
            raise RuntimeError(
                "While computing the hessian, found that the jacobian of the user-provided function with respect "
                f"to input {i} is independent of the input. This is not allowed in strict mode. You should ensure "
                "that your function is twice differentiable and that the jacobian depends on the inputs (this "
                "would be violated by a linear function for example)."
            )
    return outputs[0], gradient


INDEPENDENT = {  # why an entry of a result is missing, in strict mode
    "jacobian": "The output of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "jvp": "The gradient with respect to the input is independent of entry {i} in the grad_outputs when using the double "
    "backward trick to compute forward mode gradients. This is not allowed in strict mode.",
    "vhp": "The jacobian of the user-provided function is independent of input {i}. This is not allowed in strict mode.",
    "hvp": "The hessian of the user-provided function is independent of entry {i} in the grad_jacobian. This is not allowed in "
    "strict mode as it prevents from using the double backward trick to replace forward mode AD.",
}


def _filled(parts: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, create_graph: bool, kind: str) -> list[Tensor]:
    """A product's entries with zeros where there is no dependence, which `strict` refuses."""
    for i, part in enumerate(parts if strict else ()):
        if part is None:
            raise RuntimeError(INDEPENDENT[kind].format(i=i))
        if create_graph and part.node is None:
            order = "hessian" if kind in ("vhp", "hvp") else "jacobian"
            raise RuntimeError(
                f"The {order} of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
    return [zeros_like(x) if part is None else part for part, x in zip(parts, like, strict=True)]


def _unpacked(parts: Sequence[Any], several: bool, create_graph: bool) -> Any:
    """Results as they are handed out: detached unless they are to be differentiated."""
    results = tuple(x if create_graph or x.node is None else x.detach() for x in parts)
    return results if several else results[0]


def _outer(function: str, inputs: Any, create_graph: bool) -> tuple[bool, tuple[Tensor, ...]]:
    several, tensors = _tuple_of(inputs, "inputs", function)
    return several, tuple(fresh(x, create_graph) for x in tensors)


# ------------------------------------------------------------------------------------------------------------------ products
@in_normal_mode
def vjp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """`func(inputs)`, and vᵀJ: a vector times the Jacobian.

    `v` has the shapes of the outputs; None if the output is a single number. The product has the shapes of the inputs.
    """
    with enable_grad():
        several, xs = _outer("vjp", inputs, create_graph)
        several_out, ys = _called(func, xs, "vjp", strict)
        if v is None and not _one(ys):
            raise RuntimeError(
                "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
            )
        weights = None if v is None else _vector(v, ys, several_out, "vjp", create_graph)
        cotangents_of_inputs = cotangents(ys, xs, weights, traced=create_graph, retain=create_graph)
        product = _filled(cotangents_of_inputs, xs, strict, create_graph, "jacobian")
    return _unpacked(ys, several_out, create_graph), _unpacked(product, several, create_graph)


@in_normal_mode
def jvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensors, Tensors]:
    """`func(inputs)`, and Jv: the Jacobian times a vector, by one forward sweep.

    `v` has the shapes of the inputs; None if the input is a single number. The product has the shapes of the outputs.
    """
    with enable_grad():
        several, xs = _outer("jvp", inputs, create_graph)
        along = _along(v, xs, several, "jvp", create_graph)
        several_out, ys = _called(func, xs, "jvp", strict)
        if strict:
            reached = set(nodes_below(ys))
            _filled([None if x.node not in reached else x for x in xs], xs, True, False, "jacobian")
        product = _filled(tangents(ys, xs, along, traced=create_graph), ys, strict, create_graph, "jvp")
    return _unpacked(ys, several_out, create_graph), _unpacked(product, several_out, create_graph)


def _along(v: Any, inputs: tuple[Tensor, ...], several: bool, function: str, create_graph: bool) -> list[Tensor]:
    if v is not None:
        return _vector(v, inputs, several, function, create_graph)
    if not _one(inputs):
        raise RuntimeError(
            "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
        )
    return [inputs[0].detach() * 0 + 1]


@in_normal_mode
def vhp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """`func(inputs)`, a single number, and vᵀH: a vector times the Hessian, by a reverse sweep over the recorded gradient."""
    with enable_grad():
        several, xs = _outer("vhp", inputs, create_graph)
        along = _along(v, xs, several, "vhp", create_graph)
        y, gradient = _scalar(func, xs, "vhp", strict)
        second = cotangents(gradient, xs, along, traced=create_graph, retain=create_graph)
        product = _filled(second, xs, strict, create_graph, "vhp")
    return _unpacked((y,), False, create_graph), _unpacked(product, several, create_graph)


@in_normal_mode
def hvp(
    func: Callable[..., Any], inputs: Tensors, v: Tensors | None = None, create_graph: bool = False, strict: bool = False
) -> tuple[Tensor, Tensors]:
    """`func(inputs)`, a single number, and Hv: the Hessian times a vector, by a forward sweep over the recorded gradient."""
    with enable_grad():
        several, xs = _outer("hvp", inputs, create_graph)
        along = _along(v, xs, several, "hvp", create_graph)
        y, gradient = _scalar(func, xs, "hvp", strict)
        product = _filled(tangents(gradient, xs, along, traced=create_graph), xs, strict, create_graph, "hvp")
    return _unpacked((y,), False, create_graph), _unpacked(product, several, create_graph)


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
    """The Jacobian of a function: of each output by each input, of shape output.shape + input.shape.

    Parameters
    ----------
    strategy : "reverse-mode" or "forward-mode"
        A batch of rows in a reverse sweep, or of columns in a forward sweep: the second where there are more outputs than
        inputs.

    Returns
    -------
    Tensor, or tuple over the outputs of tuples over the inputs
        Each level is there if the function returned a tuple, or `inputs` is one.
    """
    if strategy not in FORWARD:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
            'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
            f'"reverse-mode". Got {strategy!r}.'
        )
    forward = strategy == "forward-mode"
    _refuse(forward, create_graph, strict)
    with enable_grad():
        several, xs = _outer("jacobian", inputs, create_graph)
        several_out, ys = _called(func, xs, "jacobian", strict)
        _refuse_vectorized(strict and vectorize)
        matrix = columns(ys, xs, traced=False) if forward else [rows(y, xs, traced=create_graph) for y in ys]
        return _matrix(matrix, ys, xs, strict, create_graph, several_out, several)


def _refuse(forward: bool, create_graph: bool, strict: bool) -> None:
    asked = "create_graph" if create_graph else "strict"
    if forward and (create_graph or strict):
        raise (NotImplementedError if create_graph else RuntimeError)(
            f'gradlab.autograd.functional.jacobian: `{asked}=True` and `strategy="forward-mode"` are not supported together '
            f'(yet). Please either set `{asked}=False` or `strategy="reverse-mode"`.'
        )


def _refuse_vectorized(asked: bool) -> None:
    if asked:
        raise RuntimeError(
            "gradlab.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported "
            "together. Please either set `strict=False` or `vectorize=False`."
        )


def _matrix(
    matrix: Sequence[Sequence[Tensor | None]],
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    strict: bool,
    create_graph: bool,
    several_out: bool,
    several: bool,
) -> Any:
    """The blocks of a Jacobian as they are handed out."""
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
        blocks.append(_unpacked(full, several, create_graph))
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
    """The Hessian of a function that returns a single number: the Jacobian of its gradient.

    Parameters
    ----------
    outer_jacobian_strategy : "reverse-mode" or "forward-mode"
        Whether the recorded gradient is differentiated by a batch of rows or of columns. They take the same time.

    Returns
    -------
    Tensor, or tuple of tuples of Tensors
        Block [i][j] is of shape inputs[i].shape + inputs[j].shape.
    """
    if outer_jacobian_strategy not in FORWARD:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    forward = outer_jacobian_strategy == "forward-mode"
    several, tensors = _tuple_of(inputs, "inputs", "hessian")
    _refuse(forward, create_graph, strict)
    with enable_grad():
        xs = tuple(fresh(x, create_graph) for x in tensors)
        _, gradient = _scalar(func, xs, "hessian", strict)
        _refuse_vectorized(strict and vectorize)
        matrix = columns(gradient, xs, traced=False) if forward else [rows(g, xs, traced=create_graph) for g in gradient]
        return _matrix(matrix, xs, xs, strict, create_graph, several, several)

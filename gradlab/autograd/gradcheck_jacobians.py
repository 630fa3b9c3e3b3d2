"""Numerical and analytical Jacobians for `gradcheck`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradlab.autograd.functions import grad
from gradlab.backend.namespaces import is_writable, namespace_of, to_host
from gradlab.core.tensor import Tensor, constant

Inputs = Tensor | Sequence[Any]


def tuple_of(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def outputs_of(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    """Call the function, and return its floating point outputs."""
    outputs = tuple_of(func(*inputs))
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TypeError(
                f"gradcheck expects func to return a Tensor or a tuple of Tensors, but it returned {type(y).__name__}."
            )
    return [y for y in outputs if y.array.dtype.kind == "f"]


def find_checked_inputs(inputs: tuple[Any, ...]) -> list[int]:
    """Return the positions of the inputs that require gradients, after checking that they can be perturbed."""
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.node is not None]
    for i in wanted:
        x = inputs[i].array
        if x.dtype != np.float64:
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=5,
            )
        if x.size and any(stride == 0 and n > 1 for stride, n in zip(x.strides, x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
        if not is_writable(x):
            raise RuntimeError(f"The memory of the {i}th input is read-only, but gradcheck modifies it. Pass a clone().")
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    return wanted


def central_differences(
    func: Callable[..., Any], inputs: tuple[Any, ...], like: list[Tensor], array: Any, by: Any, at: Any, eps: float
) -> list[Any]:
    """Return the central difference of each output when `array[at]` changes by plus and minus `by`.

    Raise an error if the shape or dtype of an output is not that of the corresponding tensor in `like`.
    """
    original = array[at].copy()
    try:
        array[at] = original - by
        below = [y.array.copy() for y in outputs_of(func, inputs)]
        array[at] = original + by
        above = [y.array.copy() for y in outputs_of(func, inputs)]
    finally:
        array[at] = original
    differences = []
    for a, b, y in zip(below, above, like, strict=True):
        index = f"on index {at} " if at is not Ellipsis else ""
        for what in ("shape", "dtype"):
            one = getattr(a, what)
            other = next((getattr(c, what) for c in (b, y.array) if getattr(c, what) != one), None)
            if other is not None:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {index}"
                    f"by {eps}, but got: {what}s {format_for_message(one)} and {format_for_message(other)}."
                )
        differences.append((b - a) / (2 * eps))
    return differences


def format_for_message(what: Any) -> Any:
    from gradlab.core.dtypes import from_numpy_dtype
    from gradlab.core.errors import Size

    return Size(what) if isinstance(what, tuple) else from_numpy_dtype(what)


def numerical_jacobian(func: Callable[..., Any], inputs: tuple[Any, ...], like: list[Tensor], at: int, eps: float) -> list[Any]:
    """Return a matrix of differences for each output, of shape (input elements, output elements)."""
    array = inputs[at].array
    by_element = [central_differences(func, inputs, like, array, eps, index, eps) for index in np.ndindex(array.shape)]
    return [np.stack([to_host(d).reshape(-1) for d in column]) for column in zip(*by_element, strict=True)]


def flatten_or_zeros(derivative: Tensor | None, like: Tensor) -> Any:
    """Return the elements of a derivative as a flat NumPy array: zeros, as many as in `like`, for None."""
    return np.zeros(like.array.size) if derivative is None else to_host(derivative.array).reshape(-1)


def unit_tensor(x: Tensor, index: tuple[int, ...]) -> Tensor:
    unit = namespace_of[type(x.array)].zeros(x.array.shape, x.array.dtype)
    unit[index] = 1
    return constant(unit)


def reverse_jacobian(output: Tensor, inputs: list[Tensor]) -> list[Any]:
    """Return a matrix of analytical derivatives for each input, computed one output element at a time."""
    rows = [
        grad(output, inputs, unit_tensor(output, index), retain_graph=True, allow_unused=True)
        for index in np.ndindex(output.array.shape)
    ]
    by_input = zip(*rows, strict=True) if rows else [()] * len(inputs)
    return [
        np.array([flatten_or_zeros(g, x) for g in column]).reshape(len(rows), x.array.size).T
        for column, x in zip(by_input, inputs, strict=True)
    ]


def forward_jacobian(func: Callable[..., Any], inputs: tuple[Any, ...], at: int, along: Tensor, numbers: list[int]) -> list[Any]:
    """Return the flat tangents of the outputs numbered `numbers` if the input number `at` has the tangent `along`."""
    from gradlab.autograd.forward_ad import dual_level, make_dual, unpack_dual

    with dual_level():
        detached = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        detached[at] = make_dual(detached[at], along)
        outputs = outputs_of(func, tuple(detached))
        return [flatten_or_zeros(unpack_dual(outputs[i]).tangent, outputs[i]).copy() for i in numbers]

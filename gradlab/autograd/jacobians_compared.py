"""The two Jacobians that a check compares: by differences of the function, and by its rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradlab.autograd.functions import grad
from gradlab.backend.namespaces import host, is_writable, namespace_of
from gradlab.core.tensor import Tensor, constant

Inputs = Tensor | Sequence[Any]


def tuple_of(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def outputs_of(func: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Tensor]:
    """The floating point tensors that the function returns."""
    outputs = tuple_of(func(*inputs))
    for y in outputs:
        if not isinstance(y, Tensor):
            raise TypeError(
                f"gradcheck expects func to return a Tensor or a tuple of Tensors, but it returned {type(y).__name__}."
            )
    return [y for y in outputs if y.array.dtype.kind == "f"]


def checked_inputs(inputs: tuple[Any, ...]) -> list[int]:
    """The positions of the inputs that require grad."""
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
            raise RuntimeError(f"The {i}th input's memory is read-only, and gradcheck moves its elements. Give it a clone().")
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    return wanted


def differences(
    func: Callable[..., Any], inputs: tuple[Any, ...], like: list[Tensor], array: Any, by: Any, at: Any, eps: float
) -> list[Any]:
    """The central difference of every output as `array[at]` moves by plus and minus `by`; outputs stay `like` they were."""
    kept = array[at].copy()
    try:
        array[at] = kept - by
        below = [y.array.copy() for y in outputs_of(func, inputs)]
        array[at] = kept + by
        above = [y.array.copy() for y in outputs_of(func, inputs)]
    finally:
        array[at] = kept
    differences = []
    for a, b, y in zip(below, above, like, strict=True):
        index = f"on index {at} " if at is not Ellipsis else ""
        for what in ("shape", "dtype"):
            one = getattr(a, what)
            other = next((getattr(c, what) for c in (b, y.array) if getattr(c, what) != one), None)
            if other is not None:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed {index}"
                    f"by {eps}, but got: {what}s {in_messages(one)} and {in_messages(other)}."
                )
        differences.append((b - a) / (2 * eps))
    return differences


def in_messages(what: Any) -> Any:
    from gradlab.core.dtypes import known_dtype
    from gradlab.core.errors import Size

    return Size(what) if isinstance(what, tuple) else known_dtype(what)


def numerical_jacobian(func: Callable[..., Any], inputs: tuple[Any, ...], like: list[Tensor], at: int, eps: float) -> list[Any]:
    """For each output the matrix (elements of the input, elements of the output) of differences."""
    array = inputs[at].array
    by_element = [differences(func, inputs, like, array, eps, index, eps) for index in np.ndindex(array.shape)]
    return [np.stack([host(d).reshape(-1) for d in column]) for column in zip(*by_element, strict=True)]


def flattened(derivative: Tensor | None, like: Tensor) -> Any:
    """A derivative's elements on the host; zeros for one that is not there."""
    return np.zeros(like.array.size) if derivative is None else host(derivative.array).reshape(-1)


def unit_tensor(x: Tensor, index: tuple[int, ...]) -> Tensor:
    unit = namespace_of[type(x.array)].zeros(x.array.shape, x.array.dtype)
    unit[index] = 1
    return constant(unit)


def reverse_jacobian(output: Tensor, inputs: list[Tensor]) -> list[Any]:
    """For each input the matrix of analytical derivatives, a row of the output after another."""
    rows = [
        grad(output, inputs, unit_tensor(output, index), retain_graph=True, allow_unused=True)
        for index in np.ndindex(output.array.shape)
    ]
    by_input = zip(*rows, strict=True) if rows else [()] * len(inputs)
    return [
        np.array([flattened(g, x) for g in column]).reshape(len(rows), x.array.size).T
        for column, x in zip(by_input, inputs, strict=True)
    ]


def forward_jacobian(func: Callable[..., Any], inputs: tuple[Any, ...], at: int, along: Tensor, kept: list[int]) -> list[Any]:
    """The tangents of the outputs numbered `kept`, flat, for one of the input that stands at `at`."""
    from gradlab.autograd.forward_ad import dual_level, make_dual, unpack_dual

    with dual_level():
        detached = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
        detached[at] = make_dual(detached[at], along)
        outputs = outputs_of(func, tuple(detached))
        return [flattened(unpack_dual(outputs[i]).tangent, outputs[i]).copy() for i in kept]

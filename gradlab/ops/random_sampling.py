"""Random tensors, drawn from the generators of `gradlab.ops.generators`.

The numbers fill a tensor in memory order, as in PyTorch. For a GPU, they are drawn on the CPU and copied.

Dropout masks come from `MersenneTwister.bernoulli(1 - p, shape)`, which draws the same numbers as PyTorch's
`empty_like(input).bernoulli_(1 - p)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import DTYPE_OF_NUMPY, default
from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, factory, factory_like, parse_size
from gradlab.ops.generators import Generator, find_engine

__all__ = [
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


def require_floating(wanted: np.dtype | None, kernel: str) -> np.dtype:
    """Return the dtype if it is floating point, and the default dtype for None. Raise an error for others."""
    if wanted is None:
        return default.float
    if wanted.kind != "f":
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{DTYPE_OF_NUMPY[wanted].word}'. Give a floating point dtype."
        )
    return wanted


UNIFORM_KERNEL, NORMAL_KERNEL = "check_uniform_bounds", "normal_kernel_cpu"


# -------------------------------------------------------------------------------------------------------------- tensors
@factory
def rand(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random numbers uniformly from [0, 1).

    Parameters
    ----------
    shape : int or sequence of int
        Shape: ``(2, 3)`` as one sequence, or as separate integers.
    size : sequence of int, optional
        The shape as a keyword argument.
    {generator}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape.

    Raises
    ------
    RuntimeError
        If a size is negative.
    NotImplementedError
        If `dtype` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.rand(2)
    tensor([0.4963, 0.7682])
    """
    return find_engine("rand", generator, xp).uniform(parse_size("rand", shape, size), require_floating(dtype, UNIFORM_KERNEL))


@factory
def randn(
    *shape: Any,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random numbers from the standard normal distribution.

    Parameters
    ----------
    shape : int or sequence of int
        Shape: ``(2, 3)`` as one sequence, or as separate integers.
    size : sequence of int, optional
        The shape as a keyword argument.
    {generator}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape.

    Raises
    ------
    RuntimeError
        If a size is negative.
    NotImplementedError
        If `dtype` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> _ = gl.manual_seed(0)
    >>> gl.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    return find_engine("randn", generator, xp).normal(parse_size("randn", shape, size), require_floating(dtype, NORMAL_KERNEL))


RANDINT_SIGNATURES = "(int high, tuple of ints size)", "(int low, int high, tuple of ints size)"


@factory
def randint(
    *bounds: Any,
    low: Any = None,
    high: Any = None,
    size: Any = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random integers from `low` (inclusive) to `high` (exclusive).

    Parameters
    ----------
    bounds : int and sequence of int
        ``high, size`` or ``low, high, size``.
    low : int, default: 0
        Smallest integer to draw.
    high : int
        One more than the largest integer to draw.
    size : sequence of int
        Shape of the result.
    {generator}
    {created_out}
    dtype : dtype, optional
        Dtype of the result. Default: int64.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Tensor of the given shape.

    Raises
    ------
    TypeError
        If `high` or `size` is not given.
    RuntimeError
        If `low` is not less than `high`, or if the dtype cannot represent the integers.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.randint(1, 7, (100,))
    >>> bool((x >= 1).all() & (x < 7).all())
    True
    """
    named = {k: v for k, v in (("low", low), ("high", high), ("size", size)) if v is not None}
    names = [k for k in (("high", "size") if len(bounds) + len(named) == 2 else ("low", "high", "size")) if k not in named]
    if len(names) != len(bounds):
        raise invalid_combination("randint", bounds, *RANDINT_SIGNATURES, **named)
    values = named | dict(zip(names, bounds, strict=True))
    if not isinstance(values["size"], (tuple, list)):
        raise (
            wrong_type("randint", "size", 2, "tuple of ints", values["size"])
            if len(values) == 2
            else invalid_combination("randint", bounds, *RANDINT_SIGNATURES, **named)
        )
    if not all(isinstance(v, (int, np.integer, Tensor)) for k, v in values.items() if k != "size"):
        raise invalid_combination("randint", bounds, *RANDINT_SIGNATURES, **named)
    return draw_integers(
        find_engine("randint", generator, xp),
        int(values.get("low", 0)),
        int(values["high"]),
        parse_size("randint", (values["size"],)),
        np.dtype(np.int64) if dtype is None else dtype,
    )


def draw_integers(engine: MersenneTwister, low: int, high: int, shape: tuple[int, ...], wanted: np.dtype) -> np.ndarray:
    """Draw integers from `low` (inclusive) to `high` (exclusive), after checking that the dtype can represent them."""
    if wanted.kind in "iub" and low < high:
        least, most = (0, 1) if wanted.kind == "b" else (np.iinfo(wanted).min, np.iinfo(wanted).max)
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if not least <= bound <= most:
                raise RuntimeError(
                    f"{name} is out of bounds for {DTYPE_OF_NUMPY[wanted].c_name}. It is {bound}; "
                    f"{DTYPE_OF_NUMPY[wanted].name} holds {least} to {most}."
                )
    return engine.randint(low, high, shape).astype(wanted, copy=False)


@factory
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Return a random permutation of the integers from 0 to n - 1.

    Parameters
    ----------
    n : int
        Number of integers.
    {generator}
    {created_out}
    dtype : dtype, optional
        Dtype of the result. Default: int64.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        Shape (n,).

    Raises
    ------
    TypeError
        If `n` is not an integer.
    RuntimeError
        If the dtype cannot represent n.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    if not isinstance(n, (int, np.integer)):
        raise wrong_type("randperm", "n", 1, "int", n)
    wanted = np.dtype(np.int64) if dtype is None else dtype
    if wanted.kind == "b":
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'. Use an integer dtype.")
    if n > (np.iinfo(wanted).max if wanted.kind in "iu" else 2 ** (np.finfo(wanted).nmant + 1)):
        raise RuntimeError(f"value cannot be converted to type {DTYPE_OF_NUMPY[wanted].name}_t without overflow. n is {n}.")
    return find_engine("randperm", generator, xp).randperm(int(n)).astype(wanted, copy=False)


def draw_into(array: Any, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Any:
    """Fill an array in memory order with the numbers that `draw` returns for a shape."""
    if array.flags.c_contiguous:
        array[...] = namespace_of[type(array)].asarray(draw(array.shape))
        return array
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    array.transpose(order)[...] = namespace_of[type(array)].asarray(draw(tuple(array.shape[axis] for axis in order)))
    return array


@factory_like
def rand_like(
    input: Any,
    *,
    generator: Generator | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random numbers uniformly from [0, 1), in the shape of a tensor.

    Parameters
    ----------
    {input}
    {generator}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If the dtype of the result is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.rand_like(gl.zeros(2, 3)).shape
    gradlab.Size([2, 3])
    """
    wanted, engine = require_floating(dtype, UNIFORM_KERNEL), find_engine("rand_like", generator, xp)
    return draw_into(xp.empty_like(input, wanted), lambda shape: engine.uniform(shape, wanted))


@factory_like
def randn_like(
    input: Any,
    *,
    generator: Generator | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random numbers from the standard normal distribution, in the shape of a tensor.

    Parameters
    ----------
    {input}
    {generator}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Same shape as `input`.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If the dtype of the result is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.randn_like(gl.zeros(2, 3)).shape
    gradlab.Size([2, 3])
    """
    wanted, engine = require_floating(dtype, NORMAL_KERNEL), find_engine("randn_like", generator, xp)
    array = xp.empty_like(input, wanted)
    return draw_into(array, lambda shape: engine.normal(shape, wanted, contiguous=array.flags.c_contiguous))


@factory_like
def randint_like(
    input: Any,
    *bounds: Any,
    low: Any = 0,
    high: Any = None,
    generator: Generator | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Draw random integers from `low` (inclusive) to `high` (exclusive), in the shape of a tensor.

    Parameters
    ----------
    {input}
    bounds : int
        ``high`` or ``low, high``.
    low : int, default: 0
        Smallest integer to draw.
    high : int
        One more than the largest integer to draw.
    {generator}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor, or if `high` is not given.
    RuntimeError
        If `low` is not less than `high`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.randint_like(gl.zeros(3), 1)
    tensor([0., 0., 0.])
    """
    low, high = (*bounds, high)[:2] if len(bounds) > 1 or (bounds and high is not None) else (low, bounds[0] if bounds else high)
    if not isinstance(low, (int, Tensor)) or not isinstance(high, (int, Tensor)):
        raise invalid_combination(
            "randint_like", (constant(input), *bounds), "(Tensor input, int high)", "(Tensor input, int low, int high)"
        )
    engine = find_engine("randint_like", generator, xp)
    return draw_into(xp.empty_like(input, dtype), lambda shape: draw_integers(engine, int(low), int(high), shape, dtype))

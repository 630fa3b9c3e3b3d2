"""Tensors of random numbers, drawn from the streams of `gradlab.ops.generators`.

A draw fills its tensor in the order of its memory, as torch's does. On a GPU the numbers are those of the CPU, moved.

(Dropout's mask is what `MersenneTwister.bernoulli(1 - p, shape)` draws, as torch's `empty_like(input).bernoulli_(1 - p)` does.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.mersenne import MersenneTwister
from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import OF_NUMPY, default
from gradlab.core.errors import expected, invalid_combination
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, factory, factory_like, sizes
from gradlab.ops.generators import Generator, engine_of

__all__ = [
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
]


def floating(wanted: np.dtype | None, kernel: str) -> np.dtype:
    """The dtype, if it is a floating point one; the default one for None."""
    if wanted is None:
        return default.float
    if wanted.kind != "f":
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{OF_NUMPY[wanted].word}'. Give a floating point dtype.")
    return wanted


UNIFORM, NORMAL = "check_uniform_bounds", "normal_kernel_cpu"


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
    """Numbers drawn uniformly from [0, 1).

    Parameters
    ----------
    shape : int or sequence of int
        The shape: ``(2, 3)`` as one sequence, or as integers one after the other.
    size : sequence of int, optional
        The shape, by its name.
    {generator}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The numbers, in this shape.

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
    return engine_of("rand", generator, xp).uniform(sizes("rand", shape, size), floating(dtype, UNIFORM))


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
    """Numbers drawn from the normal distribution of mean 0 and standard deviation 1.

    Parameters
    ----------
    shape : int or sequence of int
        The shape: ``(2, 3)`` as one sequence, or as integers one after the other.
    size : sequence of int, optional
        The shape, by its name.
    {generator}
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The numbers, in this shape.

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
    return engine_of("randn", generator, xp).normal(sizes("randn", shape, size), floating(dtype, NORMAL))


RANDINT = "(int high, tuple of ints size)", "(int low, int high, tuple of ints size)"


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
    """Integers drawn uniformly from `low` up to `high`, which is left out.

    Parameters
    ----------
    bounds : int and sequence of int
        ``high, size`` or ``low, high, size``.
    low : int, default 0
        The least integer.
    high : int
        One more than the greatest.
    size : sequence of int
        The shape.
    {generator}
    {created_out}
    dtype : dtype, optional
        The dtype of the result; int64 if it is left out.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The integers, in this shape.

    Raises
    ------
    TypeError
        If `high` or `size` is not given.
    RuntimeError
        If there is no integer from `low` up to `high`, or the dtype does not hold them.

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
        raise invalid_combination("randint", bounds, *RANDINT, **named)
    values = named | dict(zip(names, bounds, strict=True))
    if not isinstance(values["size"], (tuple, list)):
        raise (
            expected("randint", "size", 2, "tuple of ints", values["size"])
            if len(values) == 2
            else invalid_combination("randint", bounds, *RANDINT, **named)
        )
    if not all(isinstance(v, (int, np.integer, Tensor)) for k, v in values.items() if k != "size"):
        raise invalid_combination("randint", bounds, *RANDINT, **named)
    return integers(
        engine_of("randint", generator, xp),
        int(values.get("low", 0)),
        int(values["high"]),
        sizes("randint", (values["size"],)),
        np.dtype(np.int64) if dtype is None else dtype,
    )


def integers(engine: MersenneTwister, low: int, high: int, shape: tuple[int, ...], wanted: np.dtype) -> np.ndarray:
    """Integers from low up to but not including high, in a dtype that must have them."""
    if wanted.kind in "iub" and low < high:
        least, most = (0, 1) if wanted.kind == "b" else (np.iinfo(wanted).min, np.iinfo(wanted).max)
        for name, bound in (("from", low), ("to - 1", high - 1)):
            if not least <= bound <= most:
                raise RuntimeError(
                    f"{name} is out of bounds for {OF_NUMPY[wanted].c_name}. It is {bound}; "
                    f"{OF_NUMPY[wanted].name} holds {least} to {most}."
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
    """The integers from 0 to n - 1, in random order.

    Parameters
    ----------
    n : int
        How many.
    {generator}
    {created_out}
    dtype : dtype, optional
        The dtype of the result; int64 if it is left out.
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        The integers, of shape (n).

    Raises
    ------
    TypeError
        If `n` is no integer.
    RuntimeError
        If the dtype does not hold n.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.randperm(5).sort().values
    tensor([0, 1, 2, 3, 4])
    """
    if not isinstance(n, (int, np.integer)):
        raise expected("randperm", "n", 1, "int", n)
    wanted = np.dtype(np.int64) if dtype is None else dtype
    if wanted.kind == "b":
        raise NotImplementedError("\"randperm\" not implemented for 'Bool'. Use an integer dtype.")
    if n > (np.iinfo(wanted).max if wanted.kind in "iu" else 2 ** (np.finfo(wanted).nmant + 1)):
        raise RuntimeError(f"value cannot be converted to type {OF_NUMPY[wanted].name}_t without overflow. n is {n}.")
    return engine_of("randperm", generator, xp).randperm(int(n)).astype(wanted, copy=False)


def drawn_into(array: Any, draw: Callable[[tuple[int, ...]], np.ndarray]) -> Any:
    """Fill an array, in the order of its memory, with what `draw` makes of a shape."""
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
    """Numbers drawn uniformly from [0, 1), in the shape of a tensor.

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
        The numbers, in the shape of `input`.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If the dtype is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.rand_like(gl.zeros(2, 3)).shape
    gradlab.Size([2, 3])
    """
    wanted, engine = floating(dtype, UNIFORM), engine_of("rand_like", generator, xp)
    return drawn_into(xp.empty_like(input, wanted), lambda shape: engine.uniform(shape, wanted))


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
    """Numbers drawn from the standard normal distribution, in the shape of a tensor.

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
        The numbers, in the shape of `input`.

    Raises
    ------
    {no_tensor}
    NotImplementedError
        If the dtype is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.randn_like(gl.zeros(2, 3)).shape
    gradlab.Size([2, 3])
    """
    wanted, engine = floating(dtype, NORMAL), engine_of("randn_like", generator, xp)
    array = xp.empty_like(input, wanted)
    return drawn_into(array, lambda shape: engine.normal(shape, wanted, contiguous=array.flags.c_contiguous))


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
    """Integers drawn uniformly from `low` up to `high`, in the shape of a tensor.

    Parameters
    ----------
    {input}
    bounds : int
        ``high`` or ``low, high``.
    low : int, default 0
        The least integer.
    high : int
        One more than the greatest.
    {generator}
    {memory_format}
    {like_dtype}
    {ignored}
    {like_device}
    {requires_grad}

    Returns
    -------
    Tensor
        The integers, in the shape and dtype of `input`.

    Raises
    ------
    TypeError
        If `input` is no tensor, or `high` is not given.
    RuntimeError
        If there is no integer from `low` up to `high`.

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
    engine = engine_of("randint_like", generator, xp)
    return drawn_into(xp.empty_like(input, dtype), lambda shape: integers(engine, int(low), int(high), shape, dtype))


# ------------------------------------------------------------------------------------- in place, and of tensors of chances

"""What the functions that make tensors have in common: torch's keywords, and how a shape may be given.

A factory is written as a function from a description (sizes, a value, bounds) to an array, and turned into one of tensors by
`factory`, which adds `out`, `dtype`, `layout`, `device`, `pin_memory` and `requires_grad`, or by `factory_like`, for those that
take after a tensor.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, current, device, moved, namespace_of, namespace_on
from gradlab.core import operator as documentation
from gradlab.core.dtypes import OF_NUMPY, as_numpy_dtype
from gradlab.core.errors import advice, expected, invalid_combination
from gradlab.core.layout import arranged, only_strided
from gradlab.core.out_argument import into
from gradlab.core.tensor import Tensor, constant

Device = device | str | int | None
Factory = Callable[..., Tensor]


def place(asked: Device) -> device:
    """The device asked for, or the default one."""
    if asked is None:
        return current.device
    where = device(asked)
    return CPU if where.type == "cpu" else where


def placed(array: Any, where: Device, requires_grad: bool) -> Tensor:
    """An array that is ours as a tensor, a leaf, on a device (the default one, if None)."""
    tensor = constant(moved(array, place(where)))
    if requires_grad:
        if array.dtype.kind != "f":
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients. The data made a tensor "
                f"of dtype {tensor.dtype}: " + advice("write 1. and not 1, or give dtype=gradlab.float32.")
            )
        tensor.requires_grad_()
    return tensor


def described(function: Any, make: Callable[..., Any]) -> Any:
    """`function` with the name, the docstring and the signature of `make`, but for `xp`. (`make` spells out the keywords that
    it is not given, so that what is read from the source agrees with the signature.)"""
    functools.update_wrapper(function, make)
    function.__doc__ = documentation.described(make.__doc__)
    function.__annotations__ = {k: v for k, v in make.__annotations__.items() if k != "xp"} | {"return": "Tensor"}
    whole = inspect.signature(make)
    parameters = [one for one in whole.parameters.values() if one.name != "xp"]
    function.__signature__ = whole.replace(parameters=parameters, return_annotation="Tensor")
    return function


def factory(make: Callable[..., Any]) -> Factory:
    """A function that makes an array, as one that makes tensors. `make` is also given `xp`, the namespace of the device, and
    `dtype`, NumPy's or None."""

    def function(
        *args: Any,
        out: Tensor | None = None,
        dtype: Any = None,
        layout: Any = None,
        device: Device = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        **options: Any,
    ) -> Tensor:
        where = place(device)
        if layout is not None:
            only_strided(layout)
        wanted = None if dtype is None else as_numpy_dtype(dtype, make.__name__)
        array = make(*args, dtype=wanted, xp=np if where is CPU else namespace_on(where), **options)
        if out is not None:
            return _into(make.__name__, out, array, wanted)
        if requires_grad or where is not CPU:
            return placed(array, where, requires_grad)
        return constant(array)

    return described(function, make)


def _into(name: str, out: Any, array: Any, wanted: Any) -> Tensor:
    if not isinstance(out, Tensor):
        raise expected(name, "out", None, "Tensor", out)
    if wanted is not None and wanted != out.array.dtype:
        raise RuntimeError(
            f"dtype {OF_NUMPY[wanted].word} does not match dtype of out parameter ({out.dtype.word}). Leave "
            "dtype= away: the result is written in the dtype of out."
        )
    if out.array.shape != array.shape:  # nothing that torch warns of here
        out.array = out.array.reshape(-1)[:0]
    return into(name, out, constant(array.astype(out.array.dtype)))


def factory_like(make: Callable[..., Any]) -> Factory:
    """The same for one that takes after a tensor: `make` is given its array first, and its dtype if no other is asked for."""
    name = make.__name__

    def function(
        input: Tensor,
        *args: Any,
        dtype: Any = None,
        layout: Any = None,
        device: Device = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        memory_format: Any = None,
        **options: Any,
    ) -> Tensor:
        if not isinstance(input, Tensor):
            raise expected(name, "input", 1, "Tensor", input)
        if layout is not None:
            only_strided(layout)
        like = input.array
        wanted = like.dtype if dtype is None else as_numpy_dtype(dtype, name)
        array = arranged(make(like, *args, dtype=wanted, xp=namespace_of[type(like)], **options), memory_format)
        return placed(array, input.device if device is None else device, requires_grad)

    return described(function, make)


def sizes(name: str, shape: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """The shape given as separate integers, as one sequence, or as `size=`."""
    if size is not None:
        shape = (size,)
    elif not shape:
        raise (
            invalid_combination(name, (), "(tuple of ints size)")
            if name in ("rand", "randn")
            else TypeError(f'{name}() missing 1 required positional arguments: "size"')
        )
    alone = isinstance(shape[0], (tuple, list))
    if alone and len(shape) > 1:
        raise TypeError(
            f"{name}() takes 1 positional argument but {len(shape)} were given. Give one tuple of integers, or the "
            "integers one after the other."
        )
    lengths: list[int] = []
    for at, n in enumerate(shape[0] if alone else shape):
        if type(n) is not int:
            if isinstance(n, Tensor) and n.array.ndim == 0 and n.array.dtype.kind in "iu":
                n = n.array.item()
            if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
                got = type(n).__name__
                raise (
                    expected(name, "size", 1, "tuple of ints", n)
                    if at == 0 and not alone
                    else TypeError(
                        f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error \"type must be tuple of "  # noqa: E501
                        f'ints,but got {got}"'
                    )
                )
            n = int(n)
        lengths.append(n)
    if lengths and min(lengths) < 0:
        first = next(n for n in lengths if n < 0)
        raise RuntimeError(
            "zeros: Dimension size must be non-negative."
            if name == "zeros"
            else f"Trying to create tensor with negative dimension {first}: {lengths}"
        )
    return tuple(lengths)

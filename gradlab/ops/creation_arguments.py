"""Decorators and checks for functions that create tensors: PyTorch's keywords, and the forms in which a shape can be given.

Such a function is written to return an array, given sizes, a value or bounds. The decorator `factory` makes it return a tensor
and adds `out`, `dtype`, `layout`, `device`, `pin_memory` and `requires_grad`. `factory_like` does the same for functions such
as `zeros_like`, whose first argument is a tensor.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, current, device, move_to, namespace_of, namespace_on
from gradlab.core import operator as documentation
from gradlab.core.dtypes import DTYPE_OF_NUMPY, as_numpy_dtype
from gradlab.core.errors import FIX_INTEGER_DATA, cannot_require_grad, invalid_combination, wrong_type
from gradlab.core.layout import check_strided, to_memory_format
from gradlab.core.out_argument import copy_to_out
from gradlab.core.tensor import Tensor, constant

Device = device | str | int | None
Factory = Callable[..., Tensor]


def resolve_device(asked: Device) -> device:
    """Return the given device, or the default device if it is None."""
    if asked is None:
        return current.device
    where = device(asked)
    return CPU if where.type == "cpu" else where


def make_leaf(array: Any, where: Device, requires_grad: bool) -> Tensor:
    """Return an array as a leaf tensor on a device, by default the default device. The array is copied only to move it."""
    tensor = constant(move_to(array, resolve_device(where)))
    if requires_grad:
        if array.dtype.kind != "f":
            first = "Only Tensors of floating point and complex dtype can require gradients. The data has dtype"
            raise cannot_require_grad(first, tensor.dtype, FIX_INTEGER_DATA)
        tensor.requires_grad_()
    return tensor


def copy_signature(function: Any, make: Callable[..., Any]) -> Any:
    """Give `function` the name, docstring and signature of `make`, without the parameter `xp`.

    `make` also lists the keywords that it does not receive, so that its source agrees with the signature.
    """
    functools.update_wrapper(function, make)
    function.__doc__ = documentation.fill_placeholders(make.__doc__)
    function.__annotations__ = {k: v for k, v in make.__annotations__.items() if k != "xp"} | {"return": "Tensor"}
    whole = inspect.signature(make)
    parameters = [one for one in whole.parameters.values() if one.name != "xp"]
    function.__signature__ = whole.replace(parameters=parameters, return_annotation="Tensor")
    return function


def factory(make: Callable[..., Any]) -> Factory:
    """Turn a function that returns an array into one that returns a tensor.

    `make` is also passed `xp`, the namespace of the device, and `dtype`, a NumPy dtype or None.
    """

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
        where = resolve_device(device)
        if layout is not None:
            check_strided(layout)
        wanted = None if dtype is None else as_numpy_dtype(dtype, make.__name__)
        array = make(*args, dtype=wanted, xp=np if where is CPU else namespace_on(where), **options)
        if out is not None:
            return _write_out(make.__name__, out, array, wanted)
        if requires_grad or where is not CPU:
            return make_leaf(array, where, requires_grad)
        return constant(array)

    return copy_signature(function, make)


def _write_out(name: str, out: Any, array: Any, wanted: Any) -> Tensor:
    if not isinstance(out, Tensor):
        raise wrong_type(name, "out", None, "Tensor", out)
    if wanted is not None and wanted != out.array.dtype:
        raise RuntimeError(
            f"dtype {DTYPE_OF_NUMPY[wanted].word} does not match dtype of out parameter ({out.dtype.word}). Remove "
            "dtype=: the result is written in the dtype of out."
        )
    if out.array.shape != array.shape:  # torch does not warn here
        out.array = out.array.reshape(-1)[:0]
    return copy_to_out(name, out, constant(array.astype(out.array.dtype)))


def factory_like(make: Callable[..., Any]) -> Factory:
    """Turn a function that returns an array like another one into a function of tensors.

    `make` is passed the array of the tensor first, and its dtype if no other is given.
    """
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
            raise wrong_type(name, "input", 1, "Tensor", input)
        if layout is not None:
            check_strided(layout)
        like = input.array
        wanted = like.dtype if dtype is None else as_numpy_dtype(dtype, name)
        array = to_memory_format(make(like, *args, dtype=wanted, xp=namespace_of[type(like)], **options), memory_format)
        return make_leaf(array, input.device if device is None else device, requires_grad)

    return copy_signature(function, make)


def parse_size(name: str, shape: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return the shape, given as separate integers, as one sequence or as `size=`."""
    if size is not None:
        shape = (size,)
    elif not shape:
        raise (
            invalid_combination(name, (), "(tuple of ints size)")
            if name in ("rand", "randn")
            else TypeError(f'{name}() missing 1 required positional arguments: "size"')
        )
    is_sequence = isinstance(shape[0], (tuple, list))
    if is_sequence and len(shape) > 1:
        raise TypeError(
            f"{name}() takes 1 positional argument but {len(shape)} were given. Pass one tuple of integers, or separate integers."
        )
    lengths: list[int] = []
    for at, n in enumerate(shape[0] if is_sequence else shape):
        if type(n) is not int:
            if isinstance(n, Tensor) and n.array.ndim == 0 and n.array.dtype.kind in "iu":
                n = n.array.item()
            if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
                got = type(n).__name__
                raise (
                    wrong_type(name, "size", 1, "tuple of ints", n)
                    if at == 0 and not is_sequence
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

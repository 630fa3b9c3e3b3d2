"""`Tensor(…)` and the types of older texts: `FloatTensor([1, 2])`, `LongTensor(2, 3)`, `isinstance(x, FloatTensor)`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array
from gradlab.core.dtypes import (
    DTYPES,
    OF_NUMPY,
    bool_,
    default,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
)
from gradlab.core.errors import Size, advice
from gradlab.core.tensor import Tensor
from gradlab.ops.creation_arguments import Device, placed, sizes
from gradlab.ops.from_data import from_data

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "set_default_tensor_type",
]


def options_of(typed: dtype) -> str:
    """How torch's errors write what a tensor of a dtype is like."""
    return (
        f"TensorOptions(dtype={typed.c_name}, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false "
        "(default), memory_format=(nullopt))"
    )


def legacy_array(typed: np.dtype | None, data: tuple[Any, ...], size: Any = None) -> Any:
    """The array of `Tensor(*data)`: sizes of axes with unset values, or the elements of a sequence. A tensor's own is taken."""
    wanted = default.float if typed is None else typed
    if size is not None:
        data = tuple(size)
    elif len(data) == 1 and not isinstance(data[0], int):
        source = data[0]
        if isinstance(source, Size):
            return np.empty(source, wanted)
        if isinstance(source, Tensor):
            if typed is not None and source.array.dtype != typed:
                raise TypeError(
                    f"expected {options_of(OF_NUMPY[typed])} (got {options_of(source.dtype)}). "
                    + advice(f"Call .to({OF_NUMPY[typed]}).")
                )
            return source.array
        if isinstance(source, (float, np.generic)):
            raise TypeError(
                f"new(): data must be a sequence (got {type(source).__name__}). " + advice("gradlab.tensor takes a number.")
            )
        if is_array(source) or isinstance(source, (list, tuple, range)) or hasattr(source, "__array__"):
            return from_data(source, wanted)
        raise TypeError(f"new(): invalid data type '{type(source).__name__}'. Give a sequence of numbers, or the axes' sizes.")
    return np.empty(sizes("new", data or (0,)), wanted)


OLDER = """The older name of tensors of {name} on {device}; prefer `gradlab.tensor`.

Parameters
----------
*data : sequence of numbers, or ints
    The elements, or the shape of unset ones.
size : sequence of int, optional
    The shape.
device : device, optional
    Where it is.

Raises
------
TypeError
    If it is a single number with a fraction, or a tensor of another dtype.

Examples
--------
>>> import gradlab as gl
>>> isinstance(gl.tensor([1, 0], dtype=gl.{name}), gl.{legacy})
True
"""


class tensortype(type):  # noqa: N801  (torch's name)
    """The type of `FloatTensor` and its kind: calling one makes a tensor, `isinstance` asks for the dtype."""

    dtype: dtype
    is_cuda: bool

    def __call__(cls, *data: Any, size: Any = None, device: Device = None) -> Tensor:
        return placed(legacy_array(cls.dtype.numpy, data, size), "cuda" if cls.is_cuda else device, False)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cuda == cls.is_cuda


def legacy_type(typed: dtype, is_cuda: bool = False) -> tensortype:
    """The type that older texts use for a dtype."""
    return tensortype(
        typed.legacy,
        (),
        {
            "dtype": typed,
            "is_cuda": is_cuda,
            "__module__": "gradlab.cuda" if is_cuda else "gradlab",
            "__doc__": OLDER.format(name=typed.name, legacy=typed.legacy, device="a GPU" if is_cuda else "the CPU"),
        },
    )


FloatTensor = legacy_type(float32)
DoubleTensor = legacy_type(float64)
HalfTensor = legacy_type(float16)
LongTensor = legacy_type(int64)
IntTensor = legacy_type(int32)
ShortTensor = legacy_type(int16)
CharTensor = legacy_type(int8)
ByteTensor = legacy_type(uint8)
BoolTensor = legacy_type(bool_)


def as_legacy(value: Any) -> tuple[dtype, bool] | None:
    """The dtype that `FloatTensor` or its name stands for, and whether it lies on a GPU; None for anything else."""
    if isinstance(value, tensortype):
        return value.dtype, value.is_cuda
    if not isinstance(value, str):
        return None
    *module, name = value.split(".")
    known = {d.legacy: d for d in DTYPES} | {"Tensor": OF_NUMPY[default.float]}
    if module not in (["torch"], ["gradlab"], ["torch", "cuda"], ["gradlab", "cuda"]) or name not in known:
        raise ValueError(f"invalid type: '{value}'. Give a dtype, or a name such as 'gradlab.FloatTensor'.")
    return known[name], len(module) == 2


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by one of the older types or its name. Deprecated: use `set_default_dtype`.

    Parameters
    ----------
    t : type or str
        gl.FloatTensor, or "torch.FloatTensor".

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If it is no type, or not one of floating point.
    ValueError
        If it is a string that names none.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_default_dtype(gl.float32)  # in its place
    """
    warnings.warn(
        "gradlab.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use gradlab.set_default_dtype() and "
        "gradlab.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    known = as_legacy(t)
    if known is None:
        raise TypeError("invalid type object. " + advice("Give gradlab.FloatTensor, or its name."))
    set_default_dtype(known[0])


def construct(self: Tensor, *data: Any, size: Any = None, device: Device = None) -> None:
    """`Tensor([[1, 2]])`, of the default dtype; `Tensor(2, 3)`, of that shape with unset values."""
    tensor = placed(legacy_array(None, data, size), device, False)
    self.array, self.node, self.grad_slot, self.storage = tensor.array, None, None, tensor.storage


def new(self: Tensor, *data: Any, size: Any = None, device: Device = None) -> Tensor:
    """A tensor of this one's dtype and on its device. Prefer `new_tensor` and `new_empty`.

    Parameters
    ----------
    *data : sequence of numbers, or ints
        The elements, or the shape of unset ones.
    size : sequence of int, optional
        The shape.
    device : device, optional
        Where it is.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If it is a single number with a fraction, or a tensor of another dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    return placed(legacy_array(self.array.dtype, data, size), self.device if device is None else device, False)

"""Legacy constructors: `Tensor(…)`, `FloatTensor([1, 2])`, `LongTensor(2, 3)` and `isinstance(x, FloatTensor)`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array
from gradlab.core.dtypes import (
    DTYPE_OF_NUMPY,
    DTYPES,
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
from gradlab.ops.creation_arguments import Device, make_leaf, parse_size
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


def describe_options(typed: dtype) -> str:
    """Describe the tensors of a dtype the way PyTorch's errors do."""
    return (
        f"TensorOptions(dtype={typed.c_name}, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false "
        "(default), memory_format=(nullopt))"
    )


def legacy_array(typed: np.dtype | None, data: tuple[Any, ...], size: Any = None) -> Any:
    """Return the array of `Tensor(*data)`: uninitialized for sizes, filled for a sequence. A tensor's array is not copied."""
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
                    f"expected {describe_options(DTYPE_OF_NUMPY[typed])} (got {describe_options(source.dtype)}). "
                    + advice(f"Call .to({DTYPE_OF_NUMPY[typed]}).")
                )
            return source.array
        if isinstance(source, (float, np.generic)):
            raise TypeError(
                f"new(): data must be a sequence (got {type(source).__name__}). " + advice("gradlab.tensor takes a number.")
            )
        if is_array(source) or isinstance(source, (list, tuple, range)) or hasattr(source, "__array__"):
            return from_data(source, wanted)
        raise TypeError(f"new(): invalid data type '{type(source).__name__}'. Pass a sequence of numbers or the sizes.")
    return np.empty(parse_size("new", data or (0,)), wanted)


LEGACY_DOC = """Legacy type of {name} tensors on {device}. Prefer `gradlab.tensor`.

Parameters
----------
*data : sequence of numbers, or ints
    Elements, or the sizes of an uninitialized tensor.
size : sequence of int, optional
    Shape of an uninitialized tensor.
device : device, optional
    Device of the tensor.

Raises
------
TypeError
    If `data` is a single floating point number or a tensor of another dtype.

Examples
--------
>>> import gradlab as gl
>>> isinstance(gl.tensor([1, 0], dtype=gl.{name}), gl.{legacy})
True
"""


class tensortype(type):  # noqa: N801  (torch's name)
    """Metaclass of `FloatTensor` and similar types. A call makes a tensor, and `isinstance` checks dtype and device."""

    dtype: dtype
    is_cuda: bool

    def __call__(cls, *data: Any, size: Any = None, device: Device = None) -> Tensor:
        return make_leaf(legacy_array(cls.dtype.numpy, data, size), "cuda" if cls.is_cuda else device, False)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype and instance.is_cuda == cls.is_cuda


def legacy_type(typed: dtype, is_cuda: bool = False) -> tensortype:
    """Return the legacy type of a dtype."""
    return tensortype(
        typed.legacy,
        (),
        {
            "dtype": typed,
            "is_cuda": is_cuda,
            "__module__": "gradlab.cuda" if is_cuda else "gradlab",
            "__doc__": LEGACY_DOC.format(name=typed.name, legacy=typed.legacy, device="a GPU" if is_cuda else "the CPU"),
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


def parse_legacy_type(value: Any) -> tuple[dtype, bool] | None:
    """Return the dtype of a legacy type or its name, and whether it is on a GPU. Return None for anything else."""
    if isinstance(value, tensortype):
        return value.dtype, value.is_cuda
    if not isinstance(value, str):
        return None
    *module, name = value.split(".")
    known = {d.legacy: d for d in DTYPES} | {"Tensor": DTYPE_OF_NUMPY[default.float]}
    if module not in (["torch"], ["gradlab"], ["torch", "cuda"], ["gradlab", "cuda"]) or name not in known:
        raise ValueError(f"invalid type: '{value}'. Give a dtype, or a name such as 'gradlab.FloatTensor'.")
    return known[name], len(module) == 2


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a legacy type or its name. Deprecated: use `set_default_dtype`.

    Parameters
    ----------
    t : type or str
        `gl.FloatTensor` or "torch.FloatTensor", for example.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `t` is not a legacy type, or if its dtype is not floating point.
    ValueError
        If `t` is a string that does not name a legacy type.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_default_dtype(gl.float32)  # instead
    """
    warnings.warn(
        "gradlab.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use gradlab.set_default_dtype() and "
        "gradlab.set_default_device() as alternatives.",
        UserWarning,
        stacklevel=2,
    )
    known = parse_legacy_type(t)
    if known is None:
        raise TypeError("invalid type object. " + advice("Give gradlab.FloatTensor, or its name."))
    set_default_dtype(known[0])


def construct(self: Tensor, *data: Any, size: Any = None, device: Device = None) -> None:
    """Initialize `Tensor([[1, 2]])` with the default dtype, or `Tensor(2, 3)` as an uninitialized tensor of that shape."""
    tensor = make_leaf(legacy_array(None, data, size), device, False)
    self.array, self.node, self.grad_slot, self.storage = tensor.array, None, None, tensor.storage


def new(self: Tensor, *data: Any, size: Any = None, device: Device = None) -> Tensor:
    """Create a tensor with the dtype and device of this one. Prefer `new_tensor` and `new_empty`.

    Parameters
    ----------
    *data : sequence of numbers, or ints
        Elements, or the sizes of an uninitialized tensor.
    size : sequence of int, optional
        Shape of an uninitialized tensor.
    device : device, optional
        Device of the tensor. Default: that of this tensor.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `data` is a single floating point number or a tensor of another dtype.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(2).new([1, 2])
    tensor([1., 2.])
    """
    return make_leaf(legacy_array(self.array.dtype, data, size), self.device if device is None else device, False)

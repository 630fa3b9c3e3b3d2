"""Tensors created from data: numbers, nested sequences, arrays and buffers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array
from gradlab.core.dtypes import as_numpy_dtype, default, dtype, from_numpy_dtype, join_dtypes, number_dtype
from gradlab.core.errors import advice, type_name, wrong_type
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, factory, make_leaf

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]

Dtype = dtype | type | None
PYTHON_NUMBER_TYPES = {bool, int, float}


def from_data(data: Any, wanted: np.dtype | None) -> Any:
    """Return a new array of the data. As in PyTorch, Python floats get the default dtype and integers int64."""
    if isinstance(data, Tensor):
        return data.array.astype(data.array.dtype if wanted is None else wanted)
    if not is_array(data) and not isinstance(data, (list, tuple, range)) and hasattr(data, "__array__"):
        data = np.asarray(data)
    if is_array(data):
        return data.astype(from_numpy_dtype(data.dtype).numpy if wanted is None else wanted)
    kinds = leaf_types(data)
    for kind in kinds:
        check_leaf(kind, data)
    if not kinds <= PYTHON_NUMBER_TYPES:
        data = replace_tensors(data, all(kind is int or (isinstance(kind, np.dtype) and kind.kind in "iu") for kind in kinds))
    try:
        array = np.array(data)
    except ValueError as error:
        raise uneven_error(data, error) from None
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if array.dtype.kind not in "biuf" or array.dtype == np.uint64:  # an int of more than 64 bits gives an array of objects
        raise ValueError("Overflow when unpacking long long")
    if wanted is not None:
        return cast_if_fits(array, wanted)
    if not kinds:
        return array.astype(default.float)
    inferred = None
    for kind in kinds:
        dtype = number_dtype(kind()) if isinstance(kind, type) else kind
        inferred = dtype if inferred is None else join_dtypes(inferred, dtype)
    return array.astype(inferred)


def leaf_types(data: Any) -> set[Any]:
    """Return the types of the numbers in nested sequences. For NumPy numbers, arrays and tensors, return their NumPy dtypes."""
    if isinstance(data, (list, tuple, range)):
        types = set(map(type, data))
        if np.ndarray in types:
            warnings.warn(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                "list to a single numpy.ndarray with numpy.array() before converting to a tensor.",
                UserWarning,
                stacklevel=4,
            )
        return types if types <= PYTHON_NUMBER_TYPES else set().union(*map(leaf_types, data))
    if isinstance(data, Tensor):
        return {data.array.dtype}
    if isinstance(data, (np.generic, np.ndarray)):
        return {from_numpy_dtype(data.dtype).numpy}
    return {next((kind for kind in (bool, int, float) if isinstance(data, kind)), type(data))}


def check_leaf(kind: Any, data: Any) -> None:
    """Raise PyTorch's error if a type is not a number."""
    if kind in PYTHON_NUMBER_TYPES or isinstance(kind, np.dtype):
        return
    if kind is complex:
        raise TypeError(f"complex numbers are not supported, got {data!r:.200}.")
    if kind in (str, bytes):
        raise (
            ValueError(f"too many dimensions {kind.__name__!r}. The data contain text: convert it to numbers first.")
            if isinstance(data, (list, tuple))
            else TypeError(f"new(): invalid data type {kind.__name__!r}. The data must be numbers.")
        )
    name = "gradlab.dtype" if kind is dtype else kind.__name__
    hint = " Sets and dicts have no order: pass list(…)." if kind in (set, dict, frozenset) else ""
    raise RuntimeError(f"Could not infer dtype of {name}. The data must be a number, sequences of numbers or an array.{hint}")


def cast_if_fits(array: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """Convert to a dtype, or raise if an integer dtype cannot hold the numbers. As in PyTorch, -1 wraps to 255 in uint8."""
    if wanted.kind in "iu" and array.size:
        high = np.iinfo(wanted).max
        low = -high if wanted.kind == "u" else np.iinfo(wanted).min
        if not (array.min() >= low and array.max() <= high):
            raise RuntimeError(
                f"value cannot be converted to type {from_numpy_dtype(wanted).name} without overflow. "
                f"Expected values from {low} to {high}."
            )
        return array.astype(np.int64).astype(wanted)
    return array.astype(wanted)


def replace_tensors(data: Any, integers: bool) -> Any:
    """Replace the tensors in nested sequences, each with one element, by numbers."""
    if isinstance(data, Tensor):
        if data.array.size != 1:
            hint = advice(f"One has shape {list(data.array.shape)}: to combine tensors use gradlab.stack or gradlab.cat.")
            raise (
                TypeError(f"only integer tensors of a single element can be converted to an index. {hint}")
                if integers
                else ValueError(f"only one element tensors can be converted to Python scalars. {hint}")
            )
        return data.item()
    return [replace_tensors(x, integers) for x in data] if isinstance(data, (list, tuple, range)) else data


def uneven_error(data: Any, error: Exception) -> Exception:
    """Return PyTorch's error for nested lists that are not rectangular."""
    hint = "Lists at the same level must have the same length: pad the shorter ones."

    def find(data: Any, depth: int) -> Exception | None:
        if not isinstance(data, (list, tuple)) or not data:
            return None
        for other in data[1:]:
            if isinstance(data[0], (list, tuple)):
                if not isinstance(other, (list, tuple)):
                    return TypeError(f"not a sequence. {hint} Got a list next to a {type(other).__name__}.")
                if len(other) != len(data[0]):
                    return ValueError(f"expected sequence of length {len(data[0])} at dim {depth + 1} (got {len(other)}). {hint}")
            elif isinstance(other, (list, tuple)):
                kind = type(other).__name__
                return TypeError(
                    f"{kind!r} object cannot be interpreted as an integer. {hint}"
                    if isinstance(data[0], int)
                    else f"must be real number, not {kind}. {hint}"
                )
        return next((wrong for x in data if (wrong := find(x, depth + 1))), None)

    return find(data, 0) or ValueError(f"{error}. {hint}")


def tensor(
    data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Create a tensor by copying data.

    Parameters
    ----------
    data : number, sequence or array
        Data to copy. Python floats get the default dtype (float32), integers int64. Arrays keep their dtype.
    dtype : dtype, optional
        Dtype of the result.
    device : device, optional
        Device of the result.
    requires_grad : bool, default: False
        Whether the result requires a gradient. Its dtype must then be floating point.
    pin_memory : bool, default: False
        Accepted for compatibility with PyTorch; it has no effect.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If nested sequences have different lengths.
    TypeError, RuntimeError
        If an element is not a number, or the dtype cannot require a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> gl.tensor(2.5, requires_grad=True)
    tensor(2.5000, requires_grad=True)
    """
    result = make_leaf(from_data(data, None if dtype is None else as_numpy_dtype(dtype, "tensor")), device, requires_grad)
    if isinstance(data, Tensor):
        warn_of_copy("gradlab.tensor")
        if OBSERVERS:
            notify_detach(result, data, "tensor()")
    return result


def warn_of_copy(name: str) -> None:
    """Warn, as PyTorch does, that a copy of a tensor should be made by `detach().clone()`."""
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )


def as_tensor(data: Any, dtype: Dtype = None, device: Device = None) -> Tensor:
    """Convert data to a tensor, sharing memory if dtype and device allow it.

    Parameters
    ----------
    data : number, sequence, array or Tensor
        Data to convert. A Tensor keeps its history.
    dtype : dtype, optional
        Dtype of the result.
    device : device, optional
        Device of the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If nested sequences have different lengths.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.ones(2)
    >>> gl.as_tensor(x) is x
    True
    """
    wanted = None if dtype is None else as_numpy_dtype(dtype, "as_tensor")
    if isinstance(data, Tensor):
        return data if device is None and wanted is None else data.to(data.device if device is None else device, wanted and dtype)
    if is_array(data) and (wanted is None or data.dtype == wanted):
        from_numpy_dtype(data.dtype)
        return make_leaf(data, device, False)
    return make_leaf(from_data(data, wanted), device, False)


def asarray(
    obj: Any, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Convert an object to a tensor, sharing memory unless a copy is requested or necessary.

    Parameters
    ----------
    obj : number, sequence, array or Tensor
        Object to convert. A Tensor keeps its history unless `requires_grad` is given.
    dtype : dtype, optional
        Dtype of the result.
    device : device, optional
        Device of the result.
    copy : bool, optional
        True always copies. False raises an error if a copy is necessary.
    requires_grad : bool, optional
        Whether the result requires a gradient.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError, RuntimeError
        If `copy` is False and memory cannot be shared.

    Examples
    --------
    >>> import gradlab as gl
    >>> import numpy
    >>> gl.asarray(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=gradlab.float64)
    """
    if copy is False and not isinstance(obj, Tensor) and not is_array(obj):
        raise ValueError("can't alias arbitrary sequence into a tensor. Remove copy=False.")
    result = as_tensor(obj, dtype, device)
    shared = result.array is getattr(obj, "array", obj)
    if copy is False and not shared:
        raise ValueError(
            f"can't alias tensor of dtype {from_numpy_dtype(getattr(obj, 'array', obj).dtype)} with another dtype or on "
            "another device. Remove copy=False."
        )
    if copy and shared:
        result = result.clone()
    if requires_grad is not None and result.requires_grad != requires_grad:
        result = result.detach().requires_grad_(requires_grad)
    return result


def from_numpy(array: np.ndarray) -> Tensor:
    """Create a tensor that shares the memory of an array. A write to one changes both.

    Parameters
    ----------
    array : ndarray
        Array of a dtype that tensors support.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `array` is not an ndarray, or its dtype is not supported.

    Examples
    --------
    >>> import gradlab as gl
    >>> import numpy
    >>> a = numpy.zeros(2)
    >>> x = gl.from_numpy(a)
    >>> a[0] = 5
    >>> x
    tensor([5., 0.], dtype=gradlab.float64)
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(array)}). " + advice("gradlab.tensor takes numbers and lists."))
    from_numpy_dtype(array.dtype)
    if array.size and min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. Copy it: array.copy()."
        )
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, so writing to this tensor raises an error. Copy the array first "
            "(array.copy()) if you want to write to the tensor.",
            UserWarning,
            stacklevel=2,
        )
    return constant(array if type(array) is np.ndarray else array.view(np.ndarray))


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Create a one-dimensional tensor that shares the memory of an object with a buffer.

    Parameters
    ----------
    buffer : object
        Object that implements Python's buffer protocol: bytes, bytearray, array.array, ….
    dtype : dtype
        Dtype of the elements.
    count : int, default: -1
        Number of elements. -1 means all of them.
    offset : int, default: 0
        Number of bytes to skip at the start.
    requires_grad : bool, default: False
        Whether the result requires a gradient.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the buffer is too short, or not a whole number of elements.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.frombuffer(bytearray([1, 0, 2, 0]), dtype=gl.int16)
    tensor([1, 2], dtype=gradlab.int16)
    """
    return make_leaf(np.frombuffer(buffer, as_numpy_dtype(dtype, "frombuffer"), count, offset), None, requires_grad)


@factory
def scalar_tensor(
    s: Any,
    *,
    out: Tensor | None = None,
    dtype: Any = None,
    layout: Any = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    xp: Any,
) -> Any:
    """Create a 0-d tensor from a number.

    Parameters
    ----------
    s : number or Tensor
        Number. A tensor must have one element.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        0-d tensor.

    Raises
    ------
    TypeError
        If `s` is not a number.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.scalar_tensor(3)
    tensor(3.)
    """
    if not isinstance(s, (bool, int, float, Tensor)):
        raise wrong_type("scalar_tensor", "s", 1, "Number", s)
    return xp.asarray(s.item() if isinstance(s, Tensor) else s, default.float if dtype is None else dtype)

"""Tensors from data: numbers, nested sequences of them, arrays, buffers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array
from gradlab.core.dtypes import as_numpy_dtype, default, dtype, join, known_dtype, number_dtype
from gradlab.core.errors import advice, expected, type_name
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation_arguments import Device, factory, placed

__all__ = ["as_tensor", "asarray", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]

Dtype = dtype | type | None
PLAIN = {bool, int, float}


def from_data(data: Any, wanted: np.dtype | None) -> Any:
    """A fresh array of the data, with torch's default dtypes: Python floats are the default float, integers int64."""
    if isinstance(data, Tensor):
        return data.array.astype(data.array.dtype if wanted is None else wanted)
    if not is_array(data) and not isinstance(data, (list, tuple, range)) and hasattr(data, "__array__"):
        data = np.asarray(data)
    if is_array(data):
        return data.astype(known_dtype(data.dtype).numpy if wanted is None else wanted)
    kinds = leaf_types(data)
    for kind in kinds:
        check_leaf(kind, data)
    if not kinds <= PLAIN:
        data = without_tensors(data, all(kind is int or (isinstance(kind, np.dtype) and kind.kind in "iu") for kind in kinds))
    try:
        array = np.array(data)
    except ValueError as error:
        raise uneven(data, error) from None
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if array.dtype.kind not in "biuf" or array.dtype == np.uint64:  # an int beyond 64 bits makes an array of objects
        raise ValueError("Overflow when unpacking long long")
    if wanted is not None:
        return fitting(array, wanted)
    if not kinds:
        return array.astype(default.float)
    inferred = None
    for kind in kinds:
        dtype = number_dtype(kind()) if isinstance(kind, type) else kind
        inferred = dtype if inferred is None else join(inferred, dtype)
    return array.astype(inferred)


def leaf_types(data: Any) -> set[Any]:
    """The types of the numbers in nested sequences; of NumPy's numbers, arrays and tensors their NumPy dtypes."""
    if isinstance(data, (list, tuple, range)):
        types = set(map(type, data))
        if np.ndarray in types:
            warnings.warn(
                "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the "
                "list to a single numpy.ndarray with numpy.array() before converting to a tensor.",
                UserWarning,
                stacklevel=4,
            )
        return types if types <= PLAIN else set().union(*map(leaf_types, data))
    if isinstance(data, Tensor):
        return {data.array.dtype}
    if isinstance(data, (np.generic, np.ndarray)):
        return {known_dtype(data.dtype).numpy}
    return {next((kind for kind in (bool, int, float) if isinstance(data, kind)), type(data))}


def check_leaf(kind: Any, data: Any) -> None:
    """Raise torch's error for what is no number."""
    if kind in PLAIN or isinstance(kind, np.dtype):
        return
    if kind is complex:
        raise TypeError(f"complex numbers are not supported; the data were {data!r:.200}.")
    if kind in (str, bytes):
        raise (
            ValueError(f"too many dimensions {kind.__name__!r}. The data hold text: convert it to numbers first.")
            if isinstance(data, (list, tuple))
            else TypeError(f"new(): invalid data type {kind.__name__!r}. The data must be numbers.")
        )
    name = "gradlab.dtype" if kind is dtype else kind.__name__
    hint = " A set or a dict has no order: give list(…) of it." if kind in (set, dict, frozenset) else ""
    raise RuntimeError(f"Could not infer dtype of {name}. The data must be a number, sequences of numbers or an array.{hint}")


def fitting(array: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """The numbers in an integer dtype, if they fit; negative ones may wrap in uint8, as in torch."""
    if wanted.kind in "iu" and array.size:
        high = np.iinfo(wanted).max
        low = -high if wanted.kind == "u" else np.iinfo(wanted).min
        if not (array.min() >= low and array.max() <= high):
            raise RuntimeError(
                f"value cannot be converted to type {known_dtype(wanted).name} without overflow. It holds {low} to {high}."
            )
        return array.astype(np.int64).astype(wanted)
    return array.astype(wanted)


def without_tensors(data: Any, integers: bool) -> Any:
    """Nested sequences with the tensors in them, each of one element, as numbers."""
    if isinstance(data, Tensor):
        if data.array.size != 1:
            hint = advice(f"One has shape {list(data.array.shape)}: to put tensors together use gradlab.stack or gradlab.cat.")
            raise (
                TypeError(f"only integer tensors of a single element can be converted to an index. {hint}")
                if integers
                else ValueError(f"only one element tensors can be converted to Python scalars. {hint}")
            )
        return data.item()
    return [without_tensors(x, integers) for x in data] if isinstance(data, (list, tuple, range)) else data


def uneven(data: Any, error: Exception) -> Exception:
    """Torch's error for nested lists that are not rectangular."""
    hint = "The lists inside one another must all be of one length: pad the shorter ones."

    def found(data: Any, depth: int) -> Exception | None:
        if not isinstance(data, (list, tuple)) or not data:
            return None
        for other in data[1:]:
            if isinstance(data[0], (list, tuple)):
                if not isinstance(other, (list, tuple)):
                    return TypeError(f"not a sequence. {hint} A list and a {type(other).__name__} stand side by side.")
                if len(other) != len(data[0]):
                    return ValueError(f"expected sequence of length {len(data[0])} at dim {depth + 1} (got {len(other)}). {hint}")
            elif isinstance(other, (list, tuple)):
                kind = type(other).__name__
                return TypeError(
                    f"{kind!r} object cannot be interpreted as an integer. {hint}"
                    if isinstance(data[0], int)
                    else f"must be real number, not {kind}. {hint}"
                )
        return next((wrong for x in data if (wrong := found(x, depth + 1))), None)

    return found(data, 0) or ValueError(f"{error}. {hint}")


def tensor(
    data: Any, *, dtype: Dtype = None, device: Device = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with a copy of numbers, nested sequences of numbers, or an array.

    Parameters
    ----------
    data : number, sequence or array
        Python floats become the default dtype (float32), integers int64; arrays keep their dtype.
    dtype : dtype, optional
        The dtype of the result.
    device : device, optional
        Where it is.
    requires_grad : bool, default False
        Whether gradients are wanted. The dtype must be floating point.
    pin_memory : bool, default False
        Whether it is in page-locked memory, where there is a GPU.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the sequences are of unequal lengths.
    TypeError, RuntimeError
        If something is no number, or cannot require a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> gl.tensor(2.5, requires_grad=True)
    tensor(2.5000, requires_grad=True)
    """
    result = placed(from_data(data, None if dtype is None else as_numpy_dtype(dtype, "tensor")), device, requires_grad)
    if isinstance(data, Tensor):
        warn_of_copy("gradlab.tensor")
        if OBSERVERS:
            notify_detach(result, data, "tensor()")
    return result


def warn_of_copy(name: str) -> None:
    """What torch advises instead of `tensor(x)` of a tensor."""
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )


def as_tensor(data: Any, dtype: Dtype = None, device: Device = None) -> Tensor:
    """The data as a tensor, sharing memory wherever dtype and device allow it.

    Parameters
    ----------
    data : number, sequence, array or Tensor
        A tensor keeps its history.
    dtype : dtype, optional
        The dtype of the result.
    device : device, optional
        Where it is.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If the sequences are of unequal lengths.

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
        known_dtype(data.dtype)
        return placed(data, device, False)
    return placed(from_data(data, wanted), device, False)


def asarray(
    obj: Any, *, dtype: Dtype = None, device: Device = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """An object as a tensor, sharing memory unless that is forbidden or cannot be.

    Parameters
    ----------
    obj : number, sequence, array or Tensor
        A tensor keeps its history, unless `requires_grad` is given.
    dtype : dtype, optional
        The dtype of the result.
    device : device, optional
        Where it is.
    copy : bool, optional
        True copies, False refuses to.
    requires_grad : bool, optional
        Whether gradients are wanted of the result.

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
        raise ValueError("can't alias arbitrary sequence into a tensor. Leave copy=False away.")
    result = as_tensor(obj, dtype, device)
    shared = result.array is getattr(obj, "array", obj)
    if copy is False and not shared:
        raise ValueError(
            f"can't alias tensor of dtype {known_dtype(getattr(obj, 'array', obj).dtype)} with another dtype or on "
            "another device. Leave copy=False away."
        )
    if copy and shared:
        result = result.clone()
    if requires_grad is not None and result.requires_grad != requires_grad:
        result = result.detach().requires_grad_(requires_grad)
    return result


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares an array's memory: a write to one is seen in the other.

    Parameters
    ----------
    array : ndarray
        Of a dtype that tensors have.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If it is no array, or of another dtype.

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
    known_dtype(array.dtype)
    if array.size and min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. Copy it: array.copy()."
        )
    if not array.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and gradlab writes to no array that is not: writing to this tensor "
            "raises. Copy the array first (array.copy()) if the tensor is to be written to.",
            UserWarning,
            stacklevel=2,
        )
    return constant(array if type(array) is np.ndarray else array.view(np.ndarray))


def frombuffer(buffer: Any, *, dtype: dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A tensor with one axis that shares the memory of an object with Python's buffer protocol.

    Parameters
    ----------
    buffer : object
        Bytes, a bytearray, an array.array, ….
    dtype : dtype
        How the bytes are read.
    count : int, default -1
        How many elements; -1: all.
    offset : int, default 0
        How many bytes are passed over.
    requires_grad : bool, default False
        Whether gradients are wanted.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If it is not a whole number of elements, or too short.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.frombuffer(bytearray([1, 0, 2, 0]), dtype=gl.int16)
    tensor([1, 2], dtype=gradlab.int16)
    """
    return placed(np.frombuffer(buffer, as_numpy_dtype(dtype, "frombuffer"), count, offset), None, requires_grad)


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
    """A tensor without axes, of a number.

    Parameters
    ----------
    s : number or Tensor
        The number; a tensor must have one element.
    {created_out}
    {created_dtype}
    {ignored}
    {device}
    {requires_grad}

    Returns
    -------
    Tensor
        A 0-d tensor.

    Raises
    ------
    TypeError
        If `s` is no number.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.scalar_tensor(3)
    tensor(3.)
    """
    if not isinstance(s, (bool, int, float, Tensor)):
        raise expected("scalar_tensor", "s", 1, "Number", s)
    return xp.asarray(s.item() if isinstance(s, Tensor) else s, default.float if dtype is None else dtype)

"""Making tensors: from data, filled, counted, random."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import ceil, isfinite
from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, device, is_array, moved, namespace_on
from gradlab.core.dtypes import (
    as_numpy_dtype,
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
    join,
    known_dtype,
    number_dtype,
    uint8,
)
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant

Device = device | str | None


def placed(array: Any, where: Device, requires_grad: bool) -> Tensor:
    """An array that is ours as a tensor on a device, a leaf."""
    known_dtype(array.dtype)
    made = constant(array if where is None else moved(array, device(where)))
    if requires_grad:
        if array.dtype.kind != "f":
            raise RuntimeError(f"Only Tensors of floating point and complex dtype can require gradients. The data made a tensor "
                               f"of dtype {made.dtype}: write 1. and not 1, or give dtype=gradlab.float32.")
        made.requires_grad_()
    return made


def from_data(data: Any, wanted: np.dtype | None) -> Any:
    """A fresh array of the data, with torch's default dtypes: Python floats are the default float, integers int64."""
    if isinstance(data, Tensor):
        return data.array.astype(data.array.dtype if wanted is None else wanted)
    if is_array(data):
        return data.astype(known_dtype(data.dtype).numpy if wanted is None else wanted)
    kinds = leaf_types(data)
    for kind in kinds:
        check_leaf(kind, data)
    if not kinds <= PLAIN:
        data = without_tensors(data)
    try:
        array = np.array(data)
    except ValueError as error:
        raise ValueError(f"{ragged(data) or error}. The lists inside one another must all be of one length.") from None
    except OverflowError:
        raise ValueError("Overflow when unpacking long long") from None
    if array.dtype.kind not in "biuf" or array.dtype == np.uint64:      # an int beyond 64 bits makes an array of objects
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


PLAIN = {bool, int, float}


def leaf_types(data: Any) -> set[Any]:
    """The types of the numbers in nested sequences; of NumPy's numbers, arrays and tensors their NumPy dtypes."""
    if isinstance(data, (list, tuple, range)):
        types = set(map(type, data))
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
        raise (ValueError(f"too many dimensions {kind.__name__!r}") if isinstance(data, (list, tuple)) and isinstance(
            data[0], kind) else TypeError(f"new(): invalid data type {kind.__name__!r}. The data must be numbers."))
    raise RuntimeError(f"Could not infer dtype of {kind.__name__}. The data must be a number, sequences of numbers or an array.")


def fitting(array: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """The numbers in an integer dtype, if they fit; negative ones may wrap in uint8, as in torch."""
    if wanted.kind in "iu" and array.size:
        high = np.iinfo(wanted).max
        low = -high if wanted.kind == "u" else np.iinfo(wanted).min
        if not (array.min() >= low and array.max() <= high):
            raise RuntimeError(f"value cannot be converted to type {'u' if wanted.kind == 'u' else ''}int{8 * wanted.itemsize} "
                               "without overflow")
        return array.astype(np.int64).astype(wanted)
    return array.astype(wanted)


def without_tensors(data: Any) -> Any:
    """Nested sequences with the tensors in them, each of one element, as numbers."""
    if isinstance(data, Tensor):
        if data.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars. To put tensors together use "
                             "gradlab.stack or gradlab.cat.")
        return data.array.item()
    return [without_tensors(x) for x in data] if isinstance(data, (list, tuple, range)) else data


def ragged(data: Any, depth: int = 0) -> str | None:
    """Where nested lists stop being of one length, in torch's words."""
    if not isinstance(data, (list, tuple)) or not data:
        return None
    first = data[0]
    if isinstance(first, (list, tuple)):
        for other in data[1:]:
            if isinstance(other, (list, tuple)) and len(other) != len(first):
                return f"expected sequence of length {len(first)} at dim {depth + 1} (got {len(other)})"
    return next((found for x in data if (found := ragged(x, depth + 1))), None)


def tensor(data: Any, *, dtype: dtype | type | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of `data`: a number, nested sequences of numbers, or an array.

    Python floats become the default dtype (float32), integers int64; arrays keep their dtype.
    """
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than gradlab.tensor(sourceTensor).",
                      UserWarning, stacklevel=2)
    return placed(from_data(data, as_numpy_dtype(dtype)), device, requires_grad)


def as_tensor(data: Any, dtype: dtype | type | None = None, device: Device = None) -> Tensor:
    """`data` as a tensor, sharing memory with a tensor or array wherever dtype and device allow."""
    wanted = as_numpy_dtype(dtype)
    if isinstance(data, Tensor) and (wanted is None or data.array.dtype == wanted):
        return data if device is None else data.to(device)
    if is_array(data) and (wanted is None or data.dtype == wanted):
        return placed(data, device, False)
    return placed(from_data(data, wanted), device, False)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the array's memory: a write to one is seen in the other."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {'numpy.' if isinstance(array, np.generic) else ''}{type(array).__name__})")
    known_dtype(array.dtype)
    if not array.flags.writeable:
        warnings.warn("The given NumPy array is not writable: writing to the tensor will fail. Copy the array first if the "
                      "tensor is to be written to.", UserWarning, stacklevel=2)
    return constant(array)


def sizes(name: str, shape: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """The shape given as separate integers, as one sequence, or as `size=`."""
    if size is not None:
        shape = (size,)
    elif not shape:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    alone = len(shape) == 1 and isinstance(shape[0], (tuple, list))
    given = tuple(shape[0]) if alone else shape
    made = []
    for at, n in enumerate(given):
        if isinstance(n, Tensor) and n.array.size == 1 and n.array.dtype.kind in "iu":
            n = n.array.item()
        if not isinstance(n, (int, np.integer)) or isinstance(n, bool):
            got = type(n).__name__
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {got}" if at == 0 and not alone
                            else f"{name}(): argument 'size' failed to unpack the object at pos {at + 1} with error "
                                 f'"type must be tuple of ints,but got {got}"')
        made.append(int(n))
    if any(n < 0 for n in made):
        first = next(n for n in made if n < 0)
        raise RuntimeError("zeros: Dimension size must be non-negative." if name == "zeros" else
                           f"Trying to create tensor with negative dimension {first}: {made}")
    return tuple(made)


def filled(shape: tuple[int, ...], value: Any, dtype: Any, device_: Device, requires_grad: bool) -> Tensor:
    xp = namespace_on(CPU if device_ is None else device(device_))
    wanted = as_numpy_dtype(dtype)
    return placed(xp.full(shape, value, default.float if wanted is None else wanted), device_, requires_grad)


def zeros(*shape: Any, size: Any = None, dtype: dtype | None = None, device: Device = None,
          requires_grad: bool = False) -> Tensor:
    """A tensor of zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    return filled(sizes("zeros", shape, size), 0, dtype, device, requires_grad)


def ones(*shape: Any, size: Any = None, dtype: dtype | None = None, device: Device = None,
         requires_grad: bool = False) -> Tensor:
    """A tensor of ones."""
    return filled(sizes("ones", shape, size), 1, dtype, device, requires_grad)


def empty(*shape: Any, size: Any = None, dtype: dtype | None = None, device: Device = None,
          requires_grad: bool = False) -> Tensor:
    """A tensor with unset values."""
    xp = namespace_on(CPU if device is None else globals()["device"](device))
    wanted = as_numpy_dtype(dtype)
    return placed(xp.empty(sizes("empty", shape, size), default.float if wanted is None else wanted), device, requires_grad)


def full(size: Sequence[int], fill_value: Any, *, dtype: dtype | None = None, device: Device = None,
         requires_grad: bool = False) -> Tensor:
    """A tensor of one value, whose type gives the dtype."""
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    value = from_data(fill_value, as_numpy_dtype(dtype))
    return filled(sizes("full", (size,)), value, known_dtype(value.dtype), device, requires_grad)


def _like(value: int) -> Any:
    def like(input: Tensor, *, dtype: dtype | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
        if not isinstance(input, Tensor):
            raise TypeError(f"{'ones' if value else 'zeros'}_like(): argument 'input' (position 1) must be Tensor, not "
                            f"{type(input).__name__}")
        return filled(input.array.shape, value, input.dtype if dtype is None else dtype,
                      input.device if device is None else device, requires_grad)
    return like


zeros_like, ones_like = _like(0), _like(1)
zeros_like.__name__, ones_like.__name__ = "zeros_like", "ones_like"
zeros_like.__doc__ = "Zeros of the shape, dtype and device of `input`."
ones_like.__doc__ = "Ones of the shape, dtype and device of `input`."


def empty_like(input: Tensor, *, dtype: dtype | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """Unset values of the shape, dtype and device of `input`."""
    return empty(input.array.shape, dtype=input.dtype if dtype is None else dtype,
                 device=input.device if device is None else device, requires_grad=requires_grad)


def full_like(input: Tensor, fill_value: float, *, dtype: dtype | None = None, device: Device = None,
              requires_grad: bool = False) -> Tensor:
    """One value in the shape, dtype and device of `input`."""
    return filled(input.array.shape, fill_value, input.dtype if dtype is None else dtype,
                  input.device if device is None else device, requires_grad)


def arange(*bounds: float, start: float | None = None, end: float | None = None, step: float = 1,
           dtype: dtype | None = None, device: Device = None, requires_grad: bool = False) -> Tensor:
    """The numbers from start up to but not including end: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`;
    int64 if all are integers, else the default float."""
    if len(bounds) > 3 or (len(bounds) > 1 and end is not None) or (bounds and start is not None and end is not None):
        raise TypeError("arange() takes end, or start and end, or start, end and step.")
    if len(bounds) == 1 and end is None:
        bounds = (0 if start is None else start, *bounds)
    start, end, step = (*bounds, *(() if end is None else (end,)), step)[:3] if bounds else (start or 0, end, step)
    if end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    start, end, step = (x.item() if isinstance(x, (Tensor, np.generic)) else x for x in (start, end, step))
    wanted = as_numpy_dtype(dtype)
    if wanted is None:
        wanted = np.dtype(np.int64) if all(isinstance(x, int) for x in (start, end, step)) else default.float
    if wanted.kind == "b":
        raise NotImplementedError("\"arange_cpu\" not implemented for 'Bool'")
    if not (isfinite(start) and isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if wanted.kind in "iu":
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) / step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = ceil((end - start) / step)
    values = start + step * np.arange(count, dtype=np.int64 if wanted.kind in "iu" else np.float64)
    return placed(values.astype(wanted), device, requires_grad)


def linspace(start: float, end: float, steps: int, *, dtype: dtype | None = None, device: Device = None,
             requires_grad: bool = False) -> Tensor:
    """`steps` numbers from `start` to `end`, both included, evenly spaced. Counted from either end, with a step rounded to
    the dtype, as torch does: its last digits are the same."""
    wanted = as_numpy_dtype(dtype)
    wanted = default.float if wanted is None else wanted
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    typed = wanted.type if wanted.kind == "f" else np.float64
    first, last = (typed(x.item() if isinstance(x, Tensor) else x) for x in (start, end))
    width = float((last - first) / typed(max(steps - 1, 1)))
    at = np.arange(steps, dtype=np.float64)
    values = np.where(at < steps // 2 if steps > 1 else True, float(first) + width * at, float(last) - width * (steps - 1 - at))
    return placed(values.astype(wanted), device, requires_grad)


def eye(n: int, m: int | None = None, *, dtype: dtype | None = None, device: Device = None,
        requires_grad: bool = False) -> Tensor:
    """Ones on the diagonal of an (n, m) matrix, zeros elsewhere."""
    for name, count in (("n", n), ("m", n if m is None else m)):
        if not isinstance(count, (int, np.integer)):
            raise TypeError(f"eye(): argument '{name}' must be int, not {type(count).__name__}")
        if count < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {count}")
    wanted = as_numpy_dtype(dtype)
    return placed(np.eye(n, m, dtype=default.float if wanted is None else wanted), device, requires_grad)


def _legacy(typed: dtype) -> Any:
    name = typed.legacy

    def construct(*data: Any) -> Tensor:
        if len(data) == 1 and isinstance(data[0], Size):
            data = tuple(data[0])
        if all(isinstance(n, int) for n in data):
            return constant(np.empty(sizes(name, data or (0,)), typed.numpy))
        if len(data) != 1:
            raise TypeError(f"{name}(): give one sequence of numbers, or the sizes of its axes.")
        if isinstance(data[0], float):
            raise TypeError("new(): data must be a sequence (got float)")
        if isinstance(data[0], Tensor) and data[0].array.dtype != typed.numpy:
            raise TypeError(f"{name}(): expected a tensor of dtype {typed.name}, got {data[0].dtype.name}. Call .to(dtype).")
        return constant(from_data(data[0], typed.numpy))
    construct.__name__ = construct.__qualname__ = name
    construct.__doc__ = f"A {typed.name} tensor of a sequence of numbers, or of the given sizes with unset values."
    return construct


FloatTensor, DoubleTensor, HalfTensor = _legacy(float32), _legacy(float64), _legacy(float16)
LongTensor, IntTensor, ShortTensor = _legacy(int64), _legacy(int32), _legacy(int16)
CharTensor, ByteTensor, BoolTensor = _legacy(int8), _legacy(uint8), _legacy(bool_)

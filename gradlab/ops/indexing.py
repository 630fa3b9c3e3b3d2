"""Indexing: x[index] and x[index] = value.

As in PyTorch, an index is applied in two steps: ints, slices and None first make a view, then tensors and lists of integers or
bools pick from that view. (NumPy treats an int next to a list as a list, and puts the picked axes elsewhere.) Each step is one
`getitem`, recorded under the name of the last operation that PyTorch's indexing would record.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import device_of, is_array, is_writable, namespace_of
from gradlab.core.devices import different_devices
from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.errors import advice, view_of_leaf_in_place
from gradlab.core.inplace import check_writable, commit
from gradlab.core.modes import mode
from gradlab.core.node import AccumulateGrad
from gradlab.core.numpy_warnings import silence
from gradlab.core.observers import OBSERVERS, notify_index
from gradlab.core.storage import mark_written, view_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.copies import make_contiguous
from gradlab.rules.indexing import getitem
from gradlab.rules.shapes import expand, reshape, transfer
from gradlab.rules.writing import overwrite

SELECT, SLICE, UNSQUEEZE, ALIAS = (getitem.with_node(f"{name}Backward0") for name in ("Select", "Slice", "Unsqueeze", "Alias"))
INDEX_PUT, COPY, FILL = (overwrite.with_node(name) for name in ("IndexPutBackward0", "CopyBackwards", "FillBackward3"))
FULL = slice(None)
WHOLE_TENSOR = [(ALIAS, (Ellipsis,))]


def parse_part(i: Any) -> Any:
    """Convert a part of an index to an int, a slice, None, Ellipsis, a bool, or an array of integers or bools."""
    if i is None or i is Ellipsis or type(i) is int or isinstance(i, (bool, np.bool_)):
        return i
    if isinstance(i, slice):
        i = slice(*(int(x) if isinstance(x, Tensor) else x for x in (i.start, i.stop, i.step)))
        if i.step == 0:
            raise ValueError("slice step cannot be zero")
        if i.step is not None and i.step < 0:
            raise ValueError("step must be greater than zero. Use x.flip(dim) to reverse a dimension.")
        return i
    if isinstance(i, Tensor):
        i = i.array.copy()  # the user's tensor may be written to later
    elif isinstance(i, (list, range, tuple)):
        i = np.asarray(i)
        i = i.astype(np.int64) if i.size == 0 else i
    elif isinstance(i, (int, np.integer)):
        return int(i)
    if isinstance(i, str):
        raise TypeError("new(): invalid data type 'str'. An index consists of integers, slices and tensors.")
    if not is_array(i):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
            f"{type(i).__name__})"
        )
    if i.dtype.kind not in "biu":
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, not {from_numpy_dtype(i.dtype)}")
    if i.dtype == np.uint8:
        warnings.warn(
            "indexing with dtype gradlab.uint8 is now deprecated, please use a dtype gradlab.bool instead.",
            UserWarning,
            stacklevel=5,
        )
        i = i.astype(bool)
    return (bool if i.dtype.kind == "b" else int)(i) if i.ndim == 0 else i


def parse_index(index: Any) -> list[Any]:
    """Return the parts of an index. As in PyTorch, a list that contains more than numbers counts as a tuple."""
    if isinstance(index, list) and not all(isinstance(i, (int, float, np.generic)) for i in index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed "
            "in pytorch 2.9; use x[tuple(seq)] instead of x[seq].",
            UserWarning,
            stacklevel=4,
        )
        index = tuple(index)
    return [parse_part(i) for i in index] if isinstance(index, tuple) else [parse_part(index)]


def count_axes(part: Any) -> int:
    """Return the number of axes of the tensor that a part of an index uses."""
    if part is None or part is Ellipsis or isinstance(part, (bool, np.bool_)):
        return 0
    return part.ndim if is_array(part) and part.dtype == bool else 1


def index_to_steps(index: Any, shape: tuple[int, ...]) -> list[tuple[Any, tuple[Any, ...]]]:
    """Convert an index to (primitive, index) steps: at most one that makes a view, then at most one that picks."""
    ndim, parts = len(shape), parse_index(index)
    used = sum(map(count_axes, parts))
    if used > ndim:
        if ndim == 0 and isinstance(parts[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert a 0-dim tensor to a number"
            if ndim == 0
            else f"too many indices for tensor of dimension {ndim}"
        )
    basic: list[Any] = []
    advanced: list[Any] = []
    last, axis = None, 0
    for at, i in enumerate(parts):
        if i is Ellipsis:  # a second one expands to no axes
            full = ndim - axis - sum(map(count_axes, parts[at + 1 :]))
            basic += [FULL] * full
            advanced += [FULL] * full
            axis += full
        elif i is None:
            basic.append(None)
            advanced.append(FULL)
            last = UNSQUEEZE
        elif type(i) is int:
            if not -shape[axis] <= i < shape[axis]:
                raise IndexError(f"index {i} is out of bounds for dimension {axis} with size {shape[axis]}")
            basic.append(i)
            last = SELECT
            axis += 1
        elif isinstance(i, slice):
            basic.append(i)
            advanced.append(FULL)
            if i.indices(shape[axis]) != (0, shape[axis], 1):
                last = SLICE
            axis += 1
        elif is_array(i):
            n = count_axes(i)
            check_index_array(i, shape, axis)
            basic += [FULL] * n
            advanced.append(i)
            axis += n
        else:  # x[True]: a new axis, of length 1 or 0
            basic.append(None)
            advanced.append(np.asarray([bool(i)]))
            last = UNSQUEEZE
    steps = [(last or ALIAS, (*basic, Ellipsis))]
    if any(map(is_array, advanced)):
        picks = (getitem, tuple(advanced))
        return [*steps, picks] if last else [picks]
    return steps


def move_to_device_of(steps: list[tuple[Any, tuple[Any, ...]]], like: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """Move index arrays from the host to the device of `like`, as PyTorch does. Their range is checked on the host first."""
    if type(like) is np.ndarray or steps[-1][0] is not getitem:
        return steps
    shape = np.broadcast_to(0, like.shape)[steps[0][1]].shape if len(steps) > 1 else like.shape
    asarray, axis = namespace_of[type(like)].asarray, 0
    picks: list[Any] = []
    for i in steps[-1][1]:
        if type(i) is np.ndarray:
            if i.dtype != bool and i.size and (wrong := i[(i < -shape[axis]) | (i >= shape[axis])]).size:
                raise out_of_bounds_error(int(wrong.ravel()[0]), axis, shape)
            i = asarray(i)
        picks.append(i)
        axis += i.ndim if is_array(i) and i.dtype == bool else 1
    return [*steps[:-1], (getitem, tuple(picks))]


def check_index_array(i: Any, shape: tuple[int, ...], axis: int) -> None:
    """Raise PyTorch's error if a mask or an array of integers does not match the axes from `axis` on."""
    if i.dtype == bool:
        if i.shape != shape[axis : axis + i.ndim]:
            raise IndexError(
                f"The shape of the mask {list(i.shape)} at index {axis} does not match the shape of the indexed "
                f"tensor {list(shape)} at index {axis}"
            )
    elif type(i) is not np.ndarray:  # CuPy wraps silently, NumPy raises
        check_bounds("x[index]", i, -shape[axis], shape[axis] - 1, lambda wrong: out_of_bounds_error(wrong, axis, shape))


def out_of_bounds_error(i: int, axis: int, shape: tuple[int, ...]) -> IndexError:
    return IndexError(f"index {i} is out of bounds for dimension {axis} with size {shape[axis]}")


def index_error(error: IndexError, steps: list[tuple[Any, tuple[Any, ...]]], shape: tuple[int, ...]) -> IndexError:
    """Convert NumPy's error about index arrays to PyTorch's."""
    advanced = [i for i in steps[-1][1] if is_array(i)]
    inner = np.broadcast_to(0, shape)[steps[0][1]].shape if len(steps) > 1 else shape
    for axis, i in enumerate(steps[-1][1]):
        if is_array(i) and i.dtype != bool and not any(is_array(j) and j.dtype == bool for j in steps[-1][1][:axis]):
            wrong = i[(i < -inner[axis]) | (i >= inner[axis])]
            if wrong.size:
                return out_of_bounds_error(int(wrong.ravel()[0]), axis, inner)
    shapes = ", ".join(str(list(i.shape)) for i in advanced)
    return IndexError(
        f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        if "broadcast" in str(error)
        else str(error).removeprefix("getitem: ")
    )


def fast_step(index: Any, shape: tuple[int, ...]) -> Any:
    """Return (primitive, index) for one slice, or for a tuple of ints, slices, None and at most one `...`.

    Return None for any other index, and for an index that may be invalid.
    """
    kind = type(index)
    if kind is slice:
        step = index.step
        return (SLICE, (index, ...)) if step is None or (type(step) is int and step > 0) else None
    if kind is not tuple:
        return None
    last, axis, dots = ALIAS, 0, 0
    for i in index:
        kind = type(i)
        if kind is int:
            last = SELECT
        elif kind is slice:
            if i != FULL:
                if dots or axis >= len(shape) or not (i.step is None or (type(i.step) is int and i.step > 0)):
                    return None
                if i.indices(shape[axis]) != (0, shape[axis], 1):
                    last = SLICE
        elif i is None:
            last = UNSQUEEZE
            continue
        elif i is ...:
            dots += 1
            continue
        else:
            return None
        axis += 1
    if dots > 1 or axis > len(shape):
        return None
    return last, index if dots else (*index, ...)


def get(self: Tensor, index: Any) -> Tensor:
    """Return x[index]. Ints, slices, None and `...` make views; tensors and lists of integers or bools make copies."""
    try:
        if type(index) is int:
            return SELECT.record(self, index=(index, ...), skip=0)
        if type(index) is Tensor:
            at = index.array
            if type(at) is np.ndarray is type(self.array) and at.ndim and at.dtype.kind == "i":  # NumPy checks the range
                result = make_contiguous(getitem.record(self, index=(at.copy(),), skip=0))
                return notify_index(result, index) if OBSERVERS else result
        shape = self.array.shape
        if (plain := fast_step(index, shape)) is not None:
            return plain[0].record(self, index=plain[1], skip=0)
    except (IndexError, TypeError):
        shape = self.array.shape  # the general path below raises PyTorch's error
    steps = move_to_device_of(index_to_steps(index, shape), self.array)
    result = self
    try:
        for op, meta in steps:
            result = op.record(result, index=meta, skip=0)
    except IndexError as error:
        raise index_error(error, steps, shape) from None
    if OBSERVERS and steps[-1][0] is getitem:
        notify_index(result, *(i for i in (index if type(index) is tuple else (index,)) if type(i) is Tensor))
    return make_contiguous(result) if steps[-1][0] is getitem else result


def set(self: Tensor, index: Any, value: Any) -> None:
    """Write x[index] = value. The value is broadcast. Gradients flow to it and to the elements of x that are not overwritten."""
    if write_directly(self, index, value):
        mark_written(self)
        return
    steps = move_to_device_of(index_to_steps(index, self.array.shape), self.array)
    if mode.grad and type(self.node) is AccumulateGrad and steps[0][0] not in (getitem, ALIAS):
        raise view_of_leaf_in_place()
    picks = steps[-1][0] is getitem
    fills = self.array.ndim and (not isinstance(value, Tensor) or not value.array.ndim)
    alone = INDEX_PUT if picks else (FILL if fills else COPY) if steps[0][0] is ALIAS else overwrite
    write(self, steps, value, alone if len(steps) == 1 else overwrite)


def write_directly(x: Tensor, index: Any, value: Any) -> bool:
    """Write to the array directly if nothing is recorded and the index is valid. Return True if it was written."""
    if mode.grad and (x.node is not None or ((view := view_of(x)) is not None and view.base.node is not None)):
        return False
    if OBSERVERS or not is_writable(x.array):
        return False
    if type(value) is Tensor:
        if value.node is not None and mode.grad:
            return False
        value = value.array
        if type(value) is not type(x.array):
            return False
    elif type(value) not in (float, int, bool):
        return False
    try:
        plain = ((index, ...),) if type(index) is int else (fast_step(index, x.array.shape) or ((),))[1:]
        if not plain:
            return False
        try:
            x.array[plain[0]] = value
        except RuntimeWarning:  # raised if warnings are errors
            with silence():
                x.array[plain[0]] = value
    except (IndexError, TypeError, ValueError, OverflowError):
        return False
    return True


def write(self: Tensor, steps: list[tuple[Any, tuple[Any, ...]]], value: Any, op: Any) -> None:
    """Write `value` to the part that the steps select. Record it as `op`, which is `overwrite` with its node name."""
    check_writable(self, isinstance(value, Tensor) and value.node is not None)
    shape, picks = self.array.shape, steps[-1][0] is getitem
    target = self.array[steps[0][1]] if steps[0][0] is not getitem else self.array
    if not is_writable(target):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory "
            "location, or the memory is read-only. Please clone() the tensor before performing the operation."
        )
    if not isinstance(value, Tensor):
        if not isinstance(value, (bool, int, float, np.generic)):
            kind = f"numpy.{type(value).__name__}" if isinstance(value, np.ndarray) else type(value).__name__
            raise TypeError(
                f"can't assign a {kind} to a gradlab.{self.dtype.legacy}. " + advice("Make it a tensor: gradlab.tensor(…).")
            )
        value = constant(namespace_of[type(self.array)].asarray(value, self.array.dtype))
    at: Any = steps[-1][1] if picks else Ellipsis
    if type(value.array) is not type(self.array):  # from another device: as in torch, a pick accepts only a 0-d value
        if picks and value.array.ndim:
            raise different_devices("index_put", (self.array, value.array))
        value = transfer.record(value, where=device_of(self.array), back=device_of(value.array), waits=True)
    if self.array.dtype.kind != "f":  # integers have no gradient
        value = constant(value.array)
    wanted = value
    try:
        if picks and value.array.dtype != self.array.dtype:
            broadcast_value(value, target[at].shape, True)
            check_dtypes(self, value, at)
        if value.node is not None and mode.grad:
            wanted = broadcast_value(value, target[at].shape, picks)
        target[at] = wanted.array
    except IndexError as error:
        raise index_error(error, steps, shape) from None
    except ValueError:
        broadcast_value(value, target[at].shape, picks)  # raises PyTorch's error
        raise
    commit(self, tuple((getitem, {"index": i, "skip": 0}) for _, i in steps), wanted, op)


def check_dtypes(x: Tensor, value: Tensor, index: tuple[Any, ...]) -> None:
    """Raise if a picked part is assigned values of another dtype. As in PyTorch, one value may be assigned through one mask."""
    arrays = [i for i in index if is_array(i)]
    if value.array.dtype != x.array.dtype and (value.array.size != 1 or len(arrays) > 1 or arrays[0].dtype.kind != "b"):
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {x.dtype.word} for the destination "
            f"and {value.dtype.word} for the source. Call value.to(x.dtype)."
        )


def broadcast_value(value: Tensor, shape: tuple[int, ...], picks: bool) -> Tensor:
    """Broadcast the value to the shape of the part that it is written to."""
    have = value.array.shape
    if have == shape:
        return value
    extra = len(have) - len(shape)
    if extra > 0 and all(n == 1 for n in have[:extra]):
        value = reshape.record(value, shape=have[extra:])
    try:
        return expand.record(value, shape=shape, skip=0)
    except ValueError:
        if picks:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast to indexing result of "
                f"shape {list(shape)}"
            ) from None
        back = next(k for k in range(1, len(have) + 1) if k > len(shape) or have[-k] not in (1, shape[-k]))
        if back > len(shape):
            raise RuntimeError(
                f"expand(gradlab.{value.dtype.legacy}{{{list(have)}}}, size={list(shape)}): the number of sizes "
                f"provided ({len(shape)}) must be greater or equal to the number of dimensions in the tensor "
                f"({len(have)})"
            ) from None
        raise RuntimeError(
            f"The expanded size of the tensor ({shape[-back]}) must match the existing size ({have[-back]}) at "
            f"non-singleton dimension {len(shape) - back}.  Target sizes: {list(shape)}.  Tensor sizes: "
            f"{list(have)}"
        ) from None

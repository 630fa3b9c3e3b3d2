"""Dtype promotion by PyTorch's rules: convert the operands of an operation to Tensors of one dtype.

A recording function calls these functions only if the operands differ. A cast made here does not create a node. The new Tensor
keeps the node of its source; the transpose of the cast is done by the engine, which casts every cotangent to the dtype of its
edge.

The rules, by the name that a declaration gives as `promote`:

    same          one dtype for all operands; Python numbers are accepted
    arithmetic    the same, for one arithmetic operation
    single        the same, for several arithmetic operations
    difference    like `arithmetic`, but without bools
    float         integers become the default float, as in a division or an exponential
    number        one operand, not a bool
    sum           one operand; bools and small integers become int64
    tensors, single tensors, float tensors    like `same`, `single` and `float`, for functions that take no numbers in torch
    real tensors  like `tensors`, but only floating point

Under the rules in `WIDENING_RULES`, in which rounding at each step would be visible, float16 is computed in float32 (torch's
opmath). A Python number, or a 0-d tensor that is not the first operand, is then not rounded to float16 first. `same` and
`tensors` are for operations that only move or select elements. A single arithmetic operation on two tensors is rounded once by
NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of
from gradlab.core.dtypes import common_dtype, default, join_dtypes, number_dtype
from gradlab.core.errors import advice, no_bool, not_implemented
from gradlab.core.numpy_warnings import call_quietly
from gradlab.core.observers import OBSERVERS, notify_cast
from gradlab.core.tensor import Tensor, constant


def cast(x: Tensor, dtype: np.dtype) -> Tensor:
    """Return `x` in another dtype with the same node, or `x` itself if it already has that dtype."""
    if x.array.dtype == dtype:
        return x
    other = constant(call_quietly(x.array.astype, dtype))
    other.node = x.node
    if OBSERVERS:
        notify_cast(other, x)
    return other


def agree(op: Any, *operands: Any) -> Any:
    """Return the operands as Tensors of one dtype, or NotImplemented if the type of one is unknown."""
    if len(operands) == 2:  # the usual case: a float tensor and a number
        a, b = operands
        if type(a) is Tensor and type(b) in (float, int) and a.array.dtype.char in "fd":
            return a, constant(namespace_of[type(a.array)].array(b, a.array.dtype))
        if type(b) is Tensor and type(a) in (float, int) and b.array.dtype.char in "fd":
            return constant(namespace_of[type(b.array)].array(a, b.array.dtype)), b
    return _agree_operands(op, operands)


def agree_on_difference(op: Any, *operands: Any) -> Any:
    """Like `agree`, but refuse bools. Two tensors of bools never get here, since NumPy refuses them."""
    if any(isinstance(x, bool) or (isinstance(x, Tensor) and x.array.dtype.kind == "b") for x in operands):
        raise no_bool("sub", both=all(isinstance(x, Tensor) and x.array.dtype.kind == "b" for x in operands))
    return agree(op, *operands)


def agree_on_float(op: Any, *operands: Any) -> Any:
    """Like `agree`, but convert integers to the default float, as in a division or an exponential."""
    return _agree_operands(op, operands, floating=True)


def agree_on_sum(op: Any, x: Any) -> Any:
    """Convert bools and small integers to int64."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    return ((cast(x, np.dtype(np.int64)) if x.array.dtype.kind in "bui" else x),)


def agree_on_number(op: Any, x: Any) -> Any:
    """Refuse bools."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    if x.array.dtype.kind == "b":
        raise no_bool(op.name)
    return (x,)


def agree_tensors(op: Any, *operands: Any) -> Any:
    """Like `agree`, for a function that takes only tensors."""
    return _agree_operands(op, require_tensors(op, operands))


def agree_tensors_on_float(op: Any, *operands: Any) -> Any:
    """Like `agree_on_float`, for a function that takes only tensors."""
    return _agree_operands(op, require_tensors(op, operands), floating=True)


def agree_floating_tensors(op: Any, *operands: Any) -> Any:
    """Like `agree_tensors`, but refuse a common dtype that is not floating point."""
    agreed = _agree_operands(op, require_tensors(op, operands))
    if agreed[0].array.dtype.kind != "f":
        raise not_implemented(op.name, agreed[0].dtype)
    return agreed


def require_tensors(op: Any, operands: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Return the operands if all of them are Tensors; raise otherwise."""
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise expected_tensor(op, x, i)
    return operands


def _agree_operands(op: Any, operands: tuple[Any, ...], floating: bool = False) -> Any:
    ranks: list[np.dtype | None] = [None, None, None]  # numbers, 0-d tensors, tensors with axes
    like = None
    operands = tuple(x.item() if isinstance(x, np.generic) else x for x in operands)
    if any(map(is_array, operands[1:])) and all(getattr(x, "node", None) is None for x in operands):
        operands = (operands[0], *(constant(x) if is_array(x) else x for x in operands[1:]))  # tensor + array, as in torch
    for i, x in enumerate(operands):
        if isinstance(x, Tensor):
            like, rank, dtype = x.array, 2 if x.array.ndim else 1, x.array.dtype
        elif isinstance(x, (bool, int, float)):
            rank, dtype = 0, number_dtype(x)
        elif isinstance(x, complex):
            raise TypeError(f"{op.name}(): complex numbers are not supported.")
        elif op.kind == "elementwise" and len(operands) > 1 and (i or not is_array(x)):
            return NotImplemented  # NumPy then handles `tensor + array`, as with torch
        else:
            raise expected_tensor(op, x, i)
        known = ranks[rank]
        ranks[rank] = dtype if known is None else join_dtypes(known, dtype)
    if like is None:
        raise expected_tensor(op, operands[0])
    dtype = common_dtype(ranks)
    if floating and dtype.kind != "f":
        dtype = default.float
    xp = namespace_of[type(like)]
    if dtype.char == "e" and getattr(op, "promote", "same") in WIDENING_RULES:
        return [operand_of_half(x, i, xp) for i, x in enumerate(operands)]
    return [cast(x, dtype) if isinstance(x, Tensor) else constant(number_to_array(xp, x, dtype)) for x in operands]


def operand_of_half(x: Any, position: int, xp: Any) -> Tensor:
    """Convert an operand of an operation that is computed in float32 and returns float16."""
    if not isinstance(x, Tensor):
        return constant(number_to_array(xp, x, SINGLE))
    exact = position and not x.array.ndim and x.array.dtype.char != "e"
    return cast(x, SINGLE if exact else HALF)


def number_to_array(xp: Any, number: bool | int | float, dtype: np.dtype) -> Any:
    """Convert a Python number to a 0-d array. An integer that the dtype cannot hold wraps around, as in torch."""
    try:
        return xp.asarray(number, dtype)
    except OverflowError:
        if not -(2**63) <= number < 2**63:
            raise RuntimeError(f"Overflow when unpacking long long. {number} does not fit into a 64-bit integer.") from None
        return xp.asarray(number).astype(dtype)


def expected_tensor(op: Any, x: Any, position: int = 0) -> TypeError:
    hint = (
        advice(" Make it a tensor first: gradlab.tensor(…), or gradlab.from_numpy(…) to share its memory.")
        if isinstance(x, (list, tuple)) or is_array(x)
        else ""
    )
    what = "numpy.ndarray" if isinstance(x, np.ndarray) else type(x).__name__
    return TypeError(
        f"{op.name.strip('_')}(): argument '{op.public[position]}' (position {position + 1}) must be Tensor, not {what}.{hint}"
    )


PROMOTIONS = {
    "same": agree,
    "arithmetic": agree,
    "single": agree,
    "difference": agree_on_difference,
    "float": agree_on_float,
    "number": agree_on_number,
    "sum": agree_on_sum,
    "tensors": agree_tensors,
    "single tensors": agree_tensors,
    "float tensors": agree_tensors_on_float,
    "real tensors": agree_floating_tensors,
}
# Conditions under which a recording function must promote although all operands are Tensors of one dtype ({0} is the first).
GUARDS = {
    "same": None,
    "arithmetic": None,
    "single": "{0}.array.itemsize == 2",
    "difference": None,
    "float": "{0}.array.dtype.char not in 'fd'",
    "number": "{0}.array.dtype.kind == 'b'",
    "sum": "{0}.array.dtype.char not in 'fd'",
    "tensors": None,
    "single tensors": "{0}.array.itemsize == 2",
    "float tensors": "{0}.array.dtype.char not in 'fd'",
    "real tensors": "{0}.array.dtype.char not in 'fd'",
}
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
WIDENING_RULES = {"arithmetic", "single", "difference", "float", "sum", "single tensors", "float tensors", "real tensors"}

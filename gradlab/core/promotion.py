"""What an operation does when its operands are not Tensors of one dtype: it makes them so, by PyTorch's rules.

A recording function calls one of these only when something differs. A cast made here is no node: the new Tensor keeps
its source's node, and the engine, which casts every cotangent to its edge's dtype, is the transpose of the cast.

The rules, by the name that a declaration gives as `promote`:

    same          one dtype for all; Python numbers are welcome
    arithmetic    the same, for one step of arithmetic
    single        the same, for several steps
    difference    as `arithmetic`, but no bools
    float         integers become the default float, as in a division or an exponential
    number        one operand, no bool
    sum           one operand; bools and small integers become int64
    tensors, single tensors, float tensors    as `same`, `single` and `float`, for functions that torch gives no numbers
    real tensors  as `tensors`, and nothing but floating point

Numbers of float16 are computed with in float32 (torch's opmath), where rounding each step would tell: under the rules in
`WIDENING`. A Python number, or a 0-d tensor that is not the first operand, is then not rounded to float16 before. `same` and
`tensors` are for what moves and chooses numbers; two tensors in one step of arithmetic are rounded once by NumPy itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of
from gradlab.core.dtypes import common_dtype, default, join, number_dtype
from gradlab.core.errors import advice, no_bool, not_implemented
from gradlab.core.numpy_warnings import quietly
from gradlab.core.observers import OBSERVERS, notify_cast
from gradlab.core.tensor import Tensor, constant


def cast(x: Tensor, dtype: np.dtype) -> Tensor:
    """`x` in another dtype, with `x`'s node; itself if it has it already."""
    if x.array.dtype == dtype:
        return x
    other = constant(quietly(x.array.astype, dtype))
    other.node = x.node
    if OBSERVERS:
        notify_cast(other, x)
    return other


def agree(op: Any, *operands: Any) -> Any:
    """The operands as Tensors of one dtype; NotImplemented where one of them is nothing we know."""
    if len(operands) == 2:  # nearly always: a float tensor and a number
        a, b = operands
        if type(a) is Tensor and type(b) in (float, int) and a.array.dtype.char in "fd":
            return a, constant(namespace_of[type(a.array)].array(b, a.array.dtype))
        if type(b) is Tensor and type(a) in (float, int) and b.array.dtype.char in "fd":
            return constant(namespace_of[type(b.array)].array(a, b.array.dtype)), b
    return _agreed(op, operands)


def agree_on_difference(op: Any, *operands: Any) -> Any:
    """As `agree`; bools are refused. (Two tensors of bools never come here: NumPy refuses them.)"""
    if any(isinstance(x, bool) or (isinstance(x, Tensor) and x.array.dtype.kind == "b") for x in operands):
        raise no_bool("sub", both=all(isinstance(x, Tensor) and x.array.dtype.kind == "b" for x in operands))
    return agree(op, *operands)


def agree_on_float(op: Any, *operands: Any) -> Any:
    """As `agree`; integers become the default float, as in a division or an exponential."""
    return _agreed(op, operands, floating=True)


def agree_on_sum(op: Any, x: Any) -> Any:
    """Bools and small integers are summed as int64."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    return ((cast(x, np.dtype(np.int64)) if x.array.dtype.kind in "bui" else x),)


def agree_on_number(op: Any, x: Any) -> Any:
    """Bools are refused."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    if x.array.dtype.kind == "b":
        raise no_bool(op.name)
    return (x,)


def tensors(op: Any, *operands: Any) -> Any:
    """As `agree`, for a function that takes no numbers."""
    return _agreed(op, all_tensors(op, operands))


def tensors_on_float(op: Any, *operands: Any) -> Any:
    """As `agree_on_float`, for a function that takes no numbers."""
    return _agreed(op, all_tensors(op, operands), floating=True)


def tensors_of_reals(op: Any, *operands: Any) -> Any:
    """As `tensors`; what is not floating point then is refused."""
    agreed = _agreed(op, all_tensors(op, operands))
    if agreed[0].array.dtype.kind != "f":
        raise not_implemented(op.name, agreed[0].dtype)
    return agreed


def all_tensors(op: Any, operands: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """The operands, if they are Tensors."""
    for i, x in enumerate(operands):
        if not isinstance(x, Tensor):
            raise expected_tensor(op, x, i)
    return operands


def _agreed(op: Any, operands: tuple[Any, ...], floating: bool = False) -> Any:
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
            return NotImplemented  # NumPy takes `tensor + array` then, as with torch
        else:
            raise expected_tensor(op, x, i)
        known = ranks[rank]
        ranks[rank] = dtype if known is None else join(known, dtype)
    if like is None:
        raise expected_tensor(op, operands[0])
    dtype = common_dtype(ranks)
    if floating and dtype.kind != "f":
        dtype = default.float
    xp = namespace_of[type(like)]
    if dtype.char == "e" and getattr(op, "promote", "same") in WIDENING:
        return [beside_halves(x, i, xp) for i, x in enumerate(operands)]
    return [cast(x, dtype) if isinstance(x, Tensor) else constant(number_as(xp, x, dtype)) for x in operands]


def beside_halves(x: Any, position: int, xp: Any) -> Tensor:
    """An operand of what is computed in float32 for a result of float16."""
    if not isinstance(x, Tensor):
        return constant(number_as(xp, x, SINGLE))
    exact = position and not x.array.ndim and x.array.dtype.char != "e"
    return cast(x, SINGLE if exact else HALF)


def number_as(xp: Any, number: bool | int | float, dtype: np.dtype) -> Any:
    """A Python number as a 0-d array. An integer that the dtype cannot hold wraps around, as in torch."""
    try:
        return xp.asarray(number, dtype)
    except OverflowError:
        if not -(2**63) <= number < 2**63:
            raise RuntimeError(f"Overflow when unpacking long long. {number} does not fit into an integer of 64 bits.") from None
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
    "tensors": tensors,
    "single tensors": tensors,
    "float tensors": tensors_on_float,
    "real tensors": tensors_of_reals,
}
# When a recording function has to ask although all operands are Tensors of one dtype ({0} is the first).
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
WIDENING = {"arithmetic", "single", "difference", "float", "sum", "single tensors", "float tensors", "real tensors"}

"""What an operation does when its operands are not Tensors of one dtype: it makes them so, by PyTorch's rules.

A recording function calls one of these only when something differs. A cast made here is no node: the new Tensor keeps
its source's node, and the engine, which casts every cotangent to its edge's dtype, is the transpose of the cast.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of
from gradlab.core.dtypes import common_dtype, default, join, number_dtype
from gradlab.core.errors import no_bool
from gradlab.core.tensor import Tensor, constant


def cast(x: Tensor, dtype: np.dtype) -> Tensor:
    """`x` in another dtype, with `x`'s node; itself if it has it already."""
    if x.array.dtype == dtype:
        return x
    other = constant(x.array.astype(dtype))
    other.node = x.node
    return other


def agree(op: Any, *operands: Any) -> Any:
    """The operands as Tensors of one dtype; NotImplemented where one of them is nothing we know."""
    if len(operands) == 2:                                             # nearly always: a float tensor and a number
        a, b = operands
        if type(a) is Tensor and type(b) in (float, int) and a.array.dtype.kind == "f":
            return a, constant(namespace_of[type(a.array)].array(b, a.array.dtype))
        if type(b) is Tensor and type(a) in (float, int) and b.array.dtype.kind == "f":
            return constant(namespace_of[type(b.array)].array(a, b.array.dtype)), b
    return _agreed(op, operands)


def agree_on_float(op: Any, *operands: Any) -> Any:
    """As `agree`; integers become the default float, as in a division or an exponential."""
    return _agreed(op, operands, floating=True)


def agree_on_sum(op: Any, x: Any) -> Any:
    """Bools and small integers are summed as int64."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    return (cast(x, np.dtype(np.int64)) if x.array.dtype.kind in "bui" else x),


def agree_on_number(op: Any, x: Any) -> Any:
    """Bools are refused."""
    if not isinstance(x, Tensor):
        raise expected_tensor(op, x)
    if x.array.dtype.kind == "b":
        raise no_bool(op.name)
    return x,


def _agreed(op: Any, operands: tuple[Any, ...], floating: bool = False) -> Any:
    ranks: list[np.dtype | None] = [None, None, None]                         # numbers, 0-d tensors, tensors with axes
    like = None
    operands = tuple(x.item() if isinstance(x, np.generic) else x for x in operands)
    for x in operands:
        if isinstance(x, Tensor):
            like, rank, dtype = x.array, 2 if x.array.ndim else 1, x.array.dtype
        elif isinstance(x, (bool, int, float)):
            rank, dtype = 0, number_dtype(x)
        elif op.kind == "elementwise" and len(operands) > 1 and not is_array(x) and not isinstance(x, (str, list, tuple)):
            return NotImplemented
        else:
            raise expected_tensor(op, x)
        known = ranks[rank]
        ranks[rank] = dtype if known is None else join(known, dtype)
    if like is None:
        raise expected_tensor(op, operands[0])
    if op.name == "sub" and any(isinstance(x, bool) or getattr(x, "array", like).dtype.kind == "b" for x in operands):
        raise no_bool("sub")
    dtype = common_dtype(ranks)
    if floating and dtype.kind != "f":
        dtype = default.float
    asarray = namespace_of[type(like)].asarray
    return [cast(x, dtype) if isinstance(x, Tensor) else constant(asarray(x, dtype)) for x in operands]


def expected_tensor(op: Any, x: Any) -> TypeError:
    hint = " Make it a tensor first: gradlab.tensor(…), or gradlab.from_numpy(…) to share its memory." if isinstance(
        x, (list, tuple)) or is_array(x) else ""
    return TypeError(f"{op.name}(): argument must be Tensor, not {type(x).__name__}.{hint}")


PROMOTIONS = {"same": agree, "number": agree_on_number, "float": agree_on_float, "sum": agree_on_sum}


"""Helpers for reads and writes with tensors of indices: argument checks and in-place twins.

Every write here is out of place: one `overwrite` or `index_add`, recorded under PyTorch's node name. The methods that end in `_`
are the twins. Indices are checked first, since CuPy wraps indices that are out of range, and NumPy wraps negative ones.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from gradlab.backend.bounds import check_axis_indices
from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core.inplace import check_writable, composed_in_place
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.out_argument import takes_out
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import convert_number
from gradlab.ops.indexing import write
from gradlab.rules import indexing as rules
from gradlab.rules.shapes import reshape as reshape_rule

P = ParamSpec("P")
Write = tuple[Any, Any, Tensor]  # the primitive, the index, and the tensor to write
FULL = slice(None)

SLICE, PICK = rules.getitem.with_node("SliceBackward0"), rules.getitem.with_node("IndexBackward0", view=False)


# -------------------------------------------------------------------------------------------------------------------- arguments
def tensor_argument(name: str, x: Any, argument: str, position: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}")
    return x


def no_overload_error(name: str, arguments: tuple[Any, ...], *signatures: str) -> TypeError:
    """Return PyTorch's error for arguments that match none of a function's signatures."""
    lines = "".join(f"\n * ({signature})" for signature in signatures)
    types = ", ".join(type(x).__name__ for x in arguments)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({types}), but expected one of:{lines}")


def copy_index(index: Tensor) -> Any:
    """Return a copy of the index as int64, since the user may write to the tensor later."""
    return index.array.astype(np.int64)


def check_range(
    name: str, index: Any, n: int, axis: int, error: type[Exception] = RuntimeError, prefix: str = "", negative: bool = False
) -> None:
    check_axis_indices(
        name,
        index,
        n,
        lambda wrong: error(f"{prefix}index {wrong} is out of bounds for dimension {axis} with size {n}"),
        negative,
    )


def at_least_1d(x: Tensor) -> Tensor:
    return x if x.array.ndim else reshape_rule.record(x, shape=(1,))


def restore_rank(result: Tensor, like: Tensor) -> Tensor:
    """Remove the axis that `at_least_1d` added."""
    if like.array.ndim or not result.array.ndim:
        return result
    if result.node is None and not OBSERVERS:
        return constant(result.array.reshape(()))
    name = "ViewBackward0" if result.node is None else result.node.title
    return reshape_rule.with_node(name, view=False).record(result, shape=())


def index_steps(index: tuple[Any, ...]) -> tuple[tuple[Any, dict[str, Any]], ...]:
    return ((rules.getitem, {"index": index, "skip": 0}),)


def as_zero_dim(name: str, value: Any, array: Any) -> Tensor:
    """Convert a number or a 0-d tensor to the dtype of `array`."""
    if not isinstance(value, Tensor):
        return constant(namespace_of[type(array)].asarray(convert_number(value, array.dtype), dtype=array.dtype))
    if value.array.ndim:
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.array.ndim} dimension(s)."
        )
    return value if value.array.dtype == array.dtype else cast_value(value, array.dtype)


def cast_value(value: Tensor, dtype: np.dtype) -> Tensor:
    result = constant(value.array.astype(dtype))
    result.node = value.node if dtype.kind == "f" else None
    return result


def with_twin(prepare: Callable[P, Tensor | Write]) -> Callable[P, Tensor]:
    """Turn `prepare` into a function that writes out of place, and whose attribute `twin` writes in place.

    `prepare` returns the primitive (`overwrite` or `index_add`, with its node name), the index, and the tensor to write. If the
    operation takes more than one step, it returns the finished result instead.
    """

    @functools.partial(takes_out, disjoint_from=1)
    @functools.wraps(prepare)
    def function(*args: P.args, **options: P.kwargs) -> Tensor:
        prepared = prepare(*args, **options)
        if not isinstance(prepared, tuple):
            return prepared
        input: Any = args[0] if args else options["input"]
        op, index, patch = prepared
        where = {"steps": index_steps(index)} if op.name == "overwrite" else {"index": index}
        return restore_rank(op.record(at_least_1d(input), patch, **where), input)

    def twin(self: Tensor, *args: Any, **options: Any) -> Tensor:
        check_writable(self)
        prepared = prepare(self, *args, **options)  # type: ignore[call-arg, arg-type]
        if not isinstance(prepared, tuple) or not self.array.ndim:
            return composed_in_place(function, self, *args, **options)
        op, index, patch = prepared
        if op.name == "overwrite":
            write(self, [(rules.getitem, index)], patch, op)
        elif OBSERVERS or (mode.grad and (self.node is not None or patch.node is not None)) or not is_writable(self.array):
            return composed_in_place(function, self, *args, **options)
        else:
            rules.add_at(namespace_of[type(self.array)], self.array, index, patch.array)
            mark_written(self)
        return self

    twin.__name__ = twin.__qualname__ = f"{prepare.__name__}_"
    twin.__doc__ = f"In-place version of `{prepare.__name__}`."
    function.__signature__ = inspect.signature(prepare).replace(return_annotation="Tensor")  # type: ignore[attr-defined]
    function.twin = twin  # type: ignore[attr-defined]
    return function

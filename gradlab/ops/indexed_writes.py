"""What reads and writes by tensors of indices has in common: checked places, and in-place twins.

Every write here is out of place, one `overwrite` or `index_add` under torch's name for the node; the methods with `_` are their
twins. Places are checked before, since CuPy wraps what is out of range and NumPy what is negative.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec

import numpy as np

from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import is_writable, namespace_of
from gradlab.core.inplace import check_writable, composed_in_place
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.out_argument import takes_out
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import number
from gradlab.ops.indexing import write
from gradlab.rules import indexing as rules
from gradlab.rules.shapes import reshape as reshape_rule

P = ParamSpec("P")
Write = tuple[Any, Any, Tensor]  # the primitive, the index, and what goes there
FULL = slice(None)

SLICE, PICK = rules.getitem.named("SliceBackward0"), rules.getitem.named("IndexBackward0", view=False)


# -------------------------------------------------------------------------------------------------------------------- arguments
def tensor_argument(name: str, x: Any, argument: str, position: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}")
    return x


def no_overload(name: str, arguments: tuple[Any, ...], *signatures: str) -> TypeError:
    """Torch's error for arguments that fit none of a function's signatures."""
    lines = "".join(f"\n * ({signature})" for signature in signatures)
    types = ", ".join(type(x).__name__ for x in arguments)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({types}), but expected one of:{lines}")


def places(index: Tensor) -> Any:
    """The index as int64, ours: the user's tensor may be written to later."""
    return index.array.astype(np.int64)


def check_range(
    name: str, index: Any, n: int, axis: int, error: type[Exception] = RuntimeError, prefix: str = "", negative: bool = False
) -> None:
    on_axis(
        name,
        index,
        n,
        lambda wrong: error(f"{prefix}index {wrong} is out of bounds for dimension {axis} with size {n}"),
        negative,
    )


def with_an_axis(x: Tensor) -> Tensor:
    return x if x.array.ndim else reshape_rule.record(x, shape=(1,))


def in_rank_of(result: Tensor, like: Tensor) -> Tensor:
    """Without the axis that `with_an_axis` gave."""
    if like.array.ndim or not result.array.ndim:
        return result
    if result.node is None and not OBSERVERS:
        return constant(result.array.reshape(()))
    return reshape_rule.named("ViewBackward0" if result.node is None else result.node.title, view=False).record(result, shape=())


def region(index: tuple[Any, ...]) -> tuple[tuple[Any, dict[str, Any]], ...]:
    return ((rules.getitem, {"index": index, "skip": 0}),)


def zero_dim(name: str, value: Any, array: Any) -> Tensor:
    """A number or a 0-d tensor in the dtype of `array`."""
    if not isinstance(value, Tensor):
        return constant(namespace_of[type(array)].asarray(number(value, array.dtype), dtype=array.dtype))
    if value.array.ndim:
        raise RuntimeError(
            f"{name} only supports a 0-dimensional value tensor, but got tensor with {value.array.ndim} dimension(s)."
        )
    return value if value.array.dtype == array.dtype else in_dtype(value, array.dtype)


def in_dtype(value: Tensor, dtype: np.dtype) -> Tensor:
    result = constant(value.array.astype(dtype))
    result.node = value.node if dtype.kind == "f" else None
    return result


def with_twin(prepare: Callable[P, Tensor | Write]) -> Callable[P, Tensor]:
    """A function that writes, and as its attribute `twin` the same in place, from what says how: (a
    primitive, `overwrite` or `index_add` under some name; the index; the tensor that goes there), or the finished result where
    that is not one step."""

    @functools.partial(takes_out, apart=1)
    @functools.wraps(prepare)
    def function(*args: P.args, **options: P.kwargs) -> Tensor:
        prepared = prepare(*args, **options)
        if not isinstance(prepared, tuple):
            return prepared
        input: Any = args[0] if args else options["input"]
        op, index, patch = prepared
        where = {"steps": region(index)} if op.name == "overwrite" else {"index": index}
        return in_rank_of(op.record(with_an_axis(input), patch, **where), input)

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
            wrote(self)
        return self

    twin.__name__ = twin.__qualname__ = f"{prepare.__name__}_"
    twin.__doc__ = f"`{prepare.__name__}`, written into this tensor's memory."
    function.__signature__ = inspect.signature(prepare).replace(return_annotation="Tensor")  # type: ignore[attr-defined]
    function.twin = twin  # type: ignore[attr-defined]
    return function

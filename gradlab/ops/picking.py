"""Picking elements by tensors of integers or bools, and writing, adding or combining at the places they name.

Every write here is out of place, one `overwrite` or `index_add` under torch's name for the node; the methods with `_` are their
twins. Places are checked before, since CuPy wraps what is out of range and NumPy what is negative.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gradlab.backend.accumulate import add_at
from gradlab.backend.bounds import on_axis
from gradlab.backend.namespaces import host, is_writable, namespace_of, wrap
from gradlab.core.destination import takes_out, takes_out_apart
from gradlab.core.inplace import check_writable, composed_in_place
from gradlab.core.modes import mode
from gradlab.core.promotion import cast
from gradlab.core.storage import wrote
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED, chosen
from gradlab.indexing import INDEX_PUT, axes_used, beside, check_dtypes, misfit, spread_over, steps_for, write
from gradlab.ops.arguments import number, one_dim
from gradlab.ops.joins import cat
from gradlab.ops.shapes import expand, joint_shape, reshape, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import indexing as rules
from gradlab.rules import reductions
from gradlab.rules.shapes import reshape as reshape_rule
from gradlab.rules.writing import overwrite, pick

__all__ = [
    "argwhere",
    "gather",
    "index_put",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "nonzero",
    "put",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "take",
    "take_along_dim",
    "unravel_index",
]

FULL = slice(None)
SLICE, PICK = rules.getitem.named("SliceBackward0"), rules.getitem.named("IndexBackward0", view=False)


# ---------------------------------------------------------------------------------------------------------------- arguments
def tensor_argument(name: str, x: Any, argument: str, position: int) -> Tensor:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(x).__name__}")
    return x


def no_overload(name: str, given: tuple[Any, ...], *signatures: str) -> TypeError:
    """Torch's error for arguments that fit none of a function's signatures."""
    lines = "".join(f"\n * ({signature})" for signature in signatures)
    types = ", ".join(type(x).__name__ for x in given)
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


def as_given(made: Tensor, like: Tensor) -> Tensor:
    """Without the axis that `with_an_axis` gave."""
    if like.array.ndim or not made.array.ndim:
        return made
    if made.node is None and not WATCHED:
        return constant(made.array.reshape(()))
    return reshape_rule.named("ViewBackward0" if made.node is None else made.node.title, view=False).record(made, shape=())


def region(index: tuple[Any, ...]) -> tuple[tuple[Any, dict[str, Any]], ...]:
    return ((rules.getitem, {"index": index, "skip": 0}),)


def with_twin(prepare: Callable[..., Any]) -> Any:
    """A function that writes, and as its attribute `twin` the same in place, from what says how: (a
    primitive, `overwrite` or `index_add` under some name; the index; the tensor that goes there), or the finished result where
    that is not one step."""

    @functools.partial(takes_out, apart=1)
    @functools.wraps(prepare)
    def function(*args: Any, **options: Any) -> Tensor:
        made = prepare(*args, **options)
        if isinstance(made, Tensor):
            return made
        input = args[0] if args else options["input"]
        op, index, patch = made
        where = {"steps": region(index)} if op.name == "overwrite" else {"index": index}
        return as_given(op.record(with_an_axis(input), patch, **where), input)

    def twin(self: Tensor, *args: Any, **options: Any) -> Tensor:
        check_writable(self)
        made = prepare(self, *args, **options)
        if isinstance(made, Tensor) or not self.array.ndim:
            return composed_in_place(function, self, *args, **options)
        op, index, patch = made
        if op.name == "overwrite":
            write(self, [(rules.getitem, index)], patch, op)
        elif WATCHED or (mode.grad and (self.node is not None or patch.node is not None)) or not is_writable(self.array):
            return composed_in_place(function, self, *args, **options)
        else:
            rules.add_at(namespace_of[type(self.array)], self.array, index, patch.array)
            wrote(self)
        return self

    twin.__name__ = twin.__qualname__ = f"{prepare.__name__}_"
    twin.__doc__ = f"`{prepare.__name__}`, written into this tensor's memory."
    function.twin = twin  # type: ignore[attr-defined]
    return function


# ------------------------------------------------------------------------------------------------------------ along an axis
@takes_out_apart
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Of `input`, along an axis, the elements at `index`: out[i][j] = input[index[i][j]][j] for dim=0."""
    array = tensor_argument("gather", index, "index", 2).array
    x = with_an_axis(input)
    shape = x.array.shape
    axis = one_dim(dim, len(shape))
    if array.size and (array.dtype.kind != "i" or array.itemsize < 4):
        raise RuntimeError("gather(): Expected dtype int32/int64 for index")
    if not array.size:
        none = NOTHING.record(reshape(input, (input.array.size,)), index=(slice(0, 0),), skip=0)
        return NOTHING_SHAPED.record(none, shape=array.shape)
    at = places(index) if array.ndim else places(index).reshape(1)
    if at.ndim != len(shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for d, (n, m) in enumerate(zip(at.shape, shape, strict=True)):
        if n > m and d - len(shape) != axis:
            raise RuntimeError(
                f"Size does not match at dimension {d} expected index {list(at.shape)} to be no larger than self "
                f"{list(shape)} apart from dimension {axis + len(shape)}"
            )
    check_range("gather", at, shape[axis], axis + len(shape))
    made = rules.gather.record(x, axis=axis, indices=at, keepdims=True)
    if WATCHED:
        chosen(made, index)
    return as_given(made, index)


NOTHING, NOTHING_SHAPED = (op.named("GatherBackward0", view=False) for op in (rules.getitem, reshape_rule))


@takes_out_apart
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """The elements at `indices` along an axis, the other axes broadcast; without `dim` of the flattened tensor. Along an axis an
    index counts modulo its length, as in torch: -1 is the last."""
    if indices.array.dtype != np.int64:
        raise RuntimeError(f"gradlab.take_along_dim(): dtype of indices should be Long but got {indices.dtype.word}")
    if dim is None:
        return gather(reshape(input, (-1,) if input.array.size else (0,)), 0, reshape(indices, (indices.array.size,)))
    have, at = input.array.shape, indices.array.shape
    if len(have) != len(at):
        raise RuntimeError(
            "gradlab.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(have)} dimensions for input, and {len(at)} dimensions for indices"
        )
    axis = one_dim(dim, len(have))
    if not have:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    cut = len(have) + axis
    shape = joint_shape((*have[:cut], 1, *have[cut + 1 :]), (*at[:cut], 1, *at[cut + 1 :]))
    at_axis = indices if not have[cut] else constant(indices.array % have[cut])
    return gather(
        expand(input, shape[:cut] + have[cut : cut + 1] + shape[cut + 1 :]),
        dim,
        expand(at_axis, shape[:cut] + at[cut : cut + 1] + shape[cut + 1 :]),
    )


def grid(index: Any, axis: int) -> tuple[Any, ...]:
    """The places that `index` names along an axis as one index array for each axis, which broadcast."""
    xp, n = namespace_of[type(index)], index.ndim
    return tuple(index if d - n == axis else xp.arange(index.shape[d]).reshape((-1,) + (1,) * (n - d - 1)) for d in range(n))


def scatter_places(input: Tensor, dim: int, index: Any, src: Tensor | None) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The checked places of `scatter` and its like, in `input` with an axis at least, as an index, and their shape."""
    shape = input.array.shape or (1,)
    axis = one_dim(dim, len(shape))
    array = index.array
    if array.size and (array.dtype.kind != "i" or array.itemsize < 4):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src is not None and src.array.dtype != input.array.dtype:
        raise RuntimeError(f"scatter(): Expected self.dtype to be equal to src.dtype. They are {input.dtype} and {src.dtype}.")
    at = places(index)
    at = at if at.ndim else at.reshape(1)
    if not at.size:
        return grid(at.reshape((0,) * len(shape)), axis), (0,) * len(shape)
    if at.ndim != len(shape):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    beyond = f" apart from dimension {axis + len(shape)}"
    if src is not None:
        if at.ndim != max(src.array.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        beyond += f" and to be no larger size than src {list(src.array.shape)}"
        fits = all(n <= m for n, m in zip(at.shape, src.array.shape or (1,), strict=True))
    if any(n > m and d - len(shape) != axis for d, (n, m) in enumerate(zip(at.shape, shape, strict=True))) or (
        src is not None and not fits
    ):
        raise RuntimeError(f"Expected index {list(at.shape)} to be no larger than self {list(shape)}{beyond}")
    check_range("scatter", at, shape[axis], axis + len(shape))
    return grid(at, axis), at.shape


def corner(src: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The part of `src` that an index of this shape uses, which may be smaller."""
    src = with_an_axis(src)
    if src.array.shape == shape:
        return src
    return SLICE.record(src, index=(*(slice(0, n) for n in shape), Ellipsis), skip=0)


SCATTER, SCATTER_VALUE = overwrite.named("ScatterBackward0"), overwrite.named("ScatterBackward1")
SCATTER_ADD = rules.index_add.named("ScatterAddBackward0")


@with_twin
def scatter(input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Any:
    """A copy with the elements of `src`, or a number, written at `index` along an axis: out[index[i][j]][j] = src[i][j] for
    dim=0. Where a place comes up twice, the last holds. `reduce` ("add", "multiply") combines instead."""
    src = value if src is None else src
    if not isinstance(src, (Tensor, bool, int, float, np.generic)):
        raise no_overload(
            "scatter",
            (dim, index, src),
            "int dim, Tensor index, Tensor src",
            "int dim, Tensor index, Tensor src, *, str reduce",
            "int dim, Tensor index, Number value",
            "int dim, Tensor index, Number value, *, str reduce",
        )
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    tensor = src if isinstance(src, Tensor) else None
    at, shape = scatter_places(input, dim, tensor_argument("scatter", index, "index", 2), tensor)
    if tensor is not None:
        patch = corner(tensor, shape)
    else:
        xp = namespace_of[type(input.array)]
        patch = constant(xp.broadcast_to(xp.asarray(number(src, input.array.dtype), dtype=input.array.dtype), shape))
    if reduce is not None and tensor is not None:
        warnings.warn(
            "The reduce argument of gradlab.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use gradlab.scatter_reduce instead for more reduction options.",
            UserWarning,
            stacklevel=3,
        )
    if reduce == "multiply":
        return as_given(combined(with_an_axis(input), patch, at, "prod", True, BY_SCATTER[2]), input)
    return SCATTER_ADD if reduce == "add" else SCATTER if tensor is not None else SCATTER_VALUE, at, patch


@with_twin
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Any:
    """A copy with the elements of `src` added at `index` along an axis, each as often as its place comes up."""
    tensor_argument("scatter_add", src, "src", 3)
    at, shape = scatter_places(input, dim, tensor_argument("scatter_add", index, "index", 2), src)
    return SCATTER_ADD, at, corner(src, shape)


REDUCING = rules.index_add, el.div, overwrite, el.clone
BY_SCATTER = tuple([op.named("ScatterReduceBackward0") for op in REDUCING])


@functools.partial(takes_out, apart=1)
def scatter_reduce(input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """A copy in which each place that `index` names holds the "sum", "prod", "mean", "amax" or "amin" of the elements of `src`
    that go there, and of its own unless `include_self` is False. Gradients of extremes are shared evenly among ties."""
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"Expected 'reduce' to be one of 'sum', 'prod', 'mean', 'amax', 'amin' but got {reduce}.")
    at, shape = scatter_places(input, dim, index, src)
    return reduced(input, corner(src, shape), at, reduce, include_self, BY_SCATTER)


def reduced(input: Tensor, patch: Tensor, at: tuple[Any, ...], reduce: str, include_self: bool, ops: tuple[Any, ...]) -> Tensor:
    """`input` with the elements of `patch` worked into the places `at`; by these namesakes of the primitives."""
    summed, averaged, combining, put_back = ops
    x = with_an_axis(input)
    if not patch.array.size:
        return as_given(put_back.record(x), input)
    if reduce in ("prod", "amax", "amin"):
        return as_given(combined(x, patch, at, reduce, include_self, combining), input)
    xp = namespace_of[type(x.array)]
    if not include_self:
        x = overwrite.record(x, constant(xp.zeros(patch.array.shape, dtype=x.array.dtype)), steps=region(at))
    total = summed.record(x, patch, index=at)
    if reduce == "sum":
        return as_given(total, input)
    count = xp.full(x.array.shape, 1 if include_self else 0)
    add_at(xp, count, at, 1)
    count = xp.maximum(count, 1).astype(x.array.dtype)
    if x.array.dtype.kind != "f":
        return as_given(constant(total.array // count), input)
    return as_given(averaged.record(total, constant(count)), input)


def combined(x: Tensor, patch: Tensor, index: tuple[Any, ...], reduce: str, include_self: bool, combining: Any) -> Tensor:
    """The elements that go to one place, side by side in a row of a matrix, multiplied or compared."""
    xp, shape = namespace_of[type(x.array)], x.array.shape
    flat = xp.ravel_multi_index(tuple(xp.broadcast_to(i, patch.array.shape) for i in index), shape).reshape(-1)
    order = xp.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = xp.flatnonzero(xp.concatenate((xp.ones(1, dtype=bool), ordered[1:] != ordered[:-1])))
    row = xp.cumsum(xp.concatenate((xp.zeros(1, dtype=np.int64), (ordered[1:] != ordered[:-1]).astype(np.int64))))
    column = xp.arange(flat.size) - starts[row]
    dtype, width = x.array.dtype, int(column.max()) + 1
    least, most = (
        (-np.inf, np.inf)
        if dtype.kind == "f"
        else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if dtype.kind in "iu"
        else (False, True)
    )
    neutral = {"prod": 1, "amax": least, "amin": most}[reduce]
    places = xp.unravel_index(ordered[starts], shape)
    table = overwrite.record(
        constant(xp.full((starts.size, width), neutral, dtype=dtype)),
        PICK.record(reshape(patch, (flat.size,)), index=(order,), skip=0),
        steps=region((row, column)),
    )
    if include_self:
        own = rules.getitem.record(x, index=tuple(places), skip=0)
        table = cat([unsqueeze(own, 1), table], 1)
    if reduce == "prod":
        made = cast(reductions.product.record(table, axis=(-1,), keepdims=False), dtype)
    else:
        made = (reductions.amax if reduce == "amax" else reductions.amin).record(table, axis=(-1,), keepdims=False)
    return combining.record(x, made, steps=region(tuple(places)))


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
    made = constant(value.array.astype(dtype))
    made.node = value.node if dtype.kind == "f" else None
    return made


# ------------------------------------------------------------------------------------------------------- elements by number
TAKE = rules.getitem.named("TakeBackward0", view=False)
PUT, PUT_ADD = overwrite.named("PutBackward0"), rules.index_add.named("PutBackward0")


def numbered_places(name: str, array: Any, index: Tensor) -> Any:
    """Checked element numbers, negative ones counted from the end."""
    if index.array.dtype != np.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.word}")
    if not array.size and index.array.size:
        raise IndexError(f"{name}(): tried to {name.rstrip('_')} {'from' if name == 'take' else 'into'} an empty tensor")
    on_axis(
        name,
        index.array,
        array.size,
        lambda wrong: IndexError(f"out of range: tried to access index {wrong} on a tensor of {array.size} elements."),
        negative=True,
    )
    return index.array % array.size if array.size else places(index)


@takes_out_apart
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements with these numbers in the flattened tensor, in the shape of `index`."""
    tensor_argument("take", index, "index", 1)
    at = numbered_places("take", input.array, index)
    flat = reshape(input, (input.array.size,))
    if not at.ndim:
        return reshape_rule.named("TakeBackward0", view=False).record(TAKE.record(flat, index=(at.reshape(1),), skip=0), shape=())
    return TAKE.record(flat, index=(at,), skip=0)


@with_twin
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Any:
    """A copy with the elements of `source` written to (or added at) the elements with these numbers in the flattened tensor."""
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{input.dtype.word} and source.dtype = {source.dtype.word}"
        )
    if source.array.size != index.array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.array.size}, index.numel() = {index.array.size}"
        )
    x = with_an_axis(input)
    xp = namespace_of[type(x.array)]
    at = xp.unravel_index(numbered_places("put_", input.array, index).reshape(-1), x.array.shape)
    patch = reshape(source, (source.array.size,))
    return PUT_ADD if accumulate else PUT, tuple(at), patch


@with_twin
def index_put(input: Tensor, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Any:
    """A copy of which `x[indices] = values`, or `+=` with every repetition of a place counting."""
    if not isinstance(indices, (tuple, list)):
        raise TypeError(f"index_put(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}")
    for i, x in enumerate(indices):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    tensor_argument("index_put", values, "values", 2)
    whole = tuple(x if x.array.ndim else reshape(x, (1,)) for x in indices)
    if (used := sum(map(axes_used, (x.array for x in whole)))) > input.array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.array.ndim} (got {used})")
    steps = beside(steps_for(whole, input.array.shape), input.array)
    index = steps[-1][1]
    try:
        shape = pick(
            np.broadcast_to(0, input.array.shape),
            region(
                tuple(  # of numbers the shape alone counts
                    i if type(i) in (slice, np.ndarray) else host(i) if i.dtype == bool else np.zeros(i.shape, int) for i in index
                )
            ),
        ).shape
    except IndexError as error:
        raise misfit(error, steps, input.array.shape) from None
    patch = spread_over(values, shape, True)
    check_dtypes(input, values, index)
    return INDEX_ADD_PUT if accumulate else INDEX_PUT, index, patch


INDEX_ADD_PUT = rules.index_add.named("IndexPutBackward0")


# -------------------------------------------------------------------------------------------------------------------- masks
MASKED_SELECT = rules.getitem.named("MaskedSelectBackward0", view=False)
MASKED_SCATTER, MASKED_FILL_TENSOR = overwrite.named("MaskedScatterBackward0"), el.where.named("MaskedFillBackward1")


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """A copy with a number, or a 0-d tensor, where the mask holds; the two broadcast."""
    if not isinstance(mask, Tensor) or not isinstance(value, (Tensor, bool, int, float, np.generic)):
        raise no_overload("masked_fill", (mask, value), "Tensor mask, Tensor value", "Tensor mask, Number value")
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype.c_name}")
    if isinstance(value, Tensor):
        value = zero_dim("masked_fill_", value, input.array)
        if value.node is not None or WATCHED:
            joint_shape(mask.array.shape, input.array.shape)
            return MASKED_FILL_TENSOR.record(constant(mask.array.copy()), value, input)
        value = value.array.item()
    kept = mask.array.copy() if input.node is not None else mask.array
    if input.array.dtype.kind != "f":
        value = number(value, input.array.dtype)
    try:
        return rules.masked_fill.record(input, mask=kept, value=value)
    except ValueError:
        joint_shape(mask.array.shape, input.array.shape)
        raise


@takes_out_apart
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, in a row; the two broadcast."""
    if mask.array.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    shape = joint_shape(mask.array.shape, input.array.shape) or (1,)
    x = input if input.array.shape == shape else expand(input, shape)
    return MASKED_SELECT.record(x, index=(expand(mask, shape).array.copy(),), skip=0)


@with_twin
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Any:
    """A copy with the elements of `source`, in order, where the mask holds."""
    if source.array.dtype != input.array.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.word} and {source.dtype.word}"
        )
    if mask.array.dtype.kind != "b":
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.word}")
    shape = joint_shape(mask.array.shape, input.array.shape)
    x = with_an_axis(input if input.array.shape == shape else expand(input, shape))
    at = expand(mask, x.array.shape).array.copy()
    count = int(at.sum())
    if count > source.array.size:
        raise RuntimeError(f"Number of elements of source < number of ones in mask. They are {source.array.size} and {count}.")
    flat = reshape(source, (source.array.size,))
    patch = SLICE.record(flat, index=(slice(0, count),), skip=0)
    if x.array.shape == (input.array.shape or (1,)):
        return MASKED_SCATTER, (at,), patch
    return MASKED_SCATTER.record(x, patch, steps=region((at,)))


@takes_out_apart
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of the elements that are not 0, one in a row; as a tuple, one tensor for each axis, which is an index."""
    array = input.array
    found = (array if array.ndim else array.reshape(1)).nonzero()
    if as_tuple:
        return tuple(constant(i) for i in found)
    xp = namespace_of[type(array)]
    if not array.ndim:
        return constant(xp.zeros((found[0].size, 0), dtype=np.int64))
    return constant(xp.stack(found).T)


def argwhere(input: Tensor) -> Tensor:
    """The indices of the elements that are not 0, one in a row."""
    return nonzero(input)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """The indices, one tensor for each axis, of elements numbered in a tensor of that shape."""
    tensor_argument("unravel_index", indices, "indices", 1)
    if indices.array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if indices.array.size and 0 in sizes:
        raise RuntimeError(f"ZeroDivisionError: there is no element in a tensor of shape {sizes}.")
    found, rest = [], indices.array.astype(np.int64)
    for n in reversed(sizes):
        found.append(constant(wrap(rest % n)))
        rest = rest // n
    return tuple(reversed(found))

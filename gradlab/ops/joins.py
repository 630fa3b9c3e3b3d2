"""Join tensors along a dimension, stack them, or combine their elements."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import accumulate
from itertools import combinations as choices
from itertools import combinations_with_replacement as choices_with_replacement
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.dtypes import default
from gradlab.core.modes import mode
from gradlab.core.operator import Operator, build_docstring, composite, fill_placeholders
from gradlab.core.out_argument import copy_to_out, takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import negative_dim, not_a_tensor
from gradlab.ops.at_least import atleast_1d, atleast_2d, atleast_3d
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import make_contiguous
from gradlab.ops.shapes import collect_tensors, flatten
from gradlab.rules import shapes as rules
from gradlab.rules.indexing import getitem

__all__ = [
    "block_diag",
    "cartesian_prod",
    "cat",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "meshgrid",
    "row_stack",
    "stack",
    "vstack",
]


SEQUENCE_TYPES = frozenset((list, tuple))


def require_sequence(name: str, tensors: Any) -> list[Tensor]:
    """Return the tensors of a list or tuple, or raise PyTorch's TypeError."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return list(tensors)


CAT_DOC = """Concatenate tensors along an existing dimension.

    Parameters
    ----------
    {tensors}
    dim : int, default: 0
        Dimension along which to concatenate. The sizes of all other dimensions must match. Tensors of shape [0] are skipped.
    axis : int, optional
        Alias of `dim`, as in NumPy.
    {out}

    Returns
    -------
    Tensor
        A copy, of the common dtype. The gradient of each tensor is its part of the result's gradient.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    RuntimeError
        If the shapes do not match, or if a tensor is 0-d.
    TypeError
        If `tensors` is not a list or tuple of Tensors.
    ValueError
        If `tensors` is empty.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.{name}([gl.tensor([1, 2]), gl.tensor([3])])
    tensor([1, 2, 3])
"""


def _cat(name: str) -> Any:
    def cat(tensors: Sequence[Tensor], dim: int = 0, *, axis: int | None = None, out: Tensor | None = None) -> Tensor:
        at = dim if axis is None else axis
        try:
            if type(tensors) not in SEQUENCE_TYPES:
                raise TypeError
            if at >= 0:
                at -= tensors[0].array.ndim
                if at >= 0:
                    raise IndexError
            starts, stop = [0], 0
            if mode.grad:
                for x in tensors:
                    stop += x.array.shape[at]
                    starts.append(stop)
            result = rules.cat.record(*tensors, axis=at, starts=starts)
        except (AttributeError, IndexError, TypeError, ValueError):
            result = cat_with_checks(name, tensors, dim if axis is None else axis)
        if not result.array.flags.c_contiguous:
            make_contiguous(result)
        return result if out is None else copy_to_out(name, out, result, tensors, True)

    cat.__name__ = cat.__qualname__ = name
    cat.__doc__ = fill_placeholders(CAT_DOC.format(name=name, tensors="{tensors}", out="{out}"))
    Operator(name, cat, method=False)
    return cat


def cat_with_checks(name: str, tensors: Any, dim: int) -> Tensor:
    """Concatenate tensors after PyTorch's checks, skipping those of shape [0]. `cat` calls this if its fast path fails."""
    tensors = require_sequence(name, tensors)
    if not tensors:
        raise ValueError("gradlab.cat(): expected a non-empty list of Tensors")
    nonempty = [x for x in tensors if x.array.shape != (0,)] or tensors[:1]
    for i, x in enumerate(tensors):
        if not x.array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated. Use stack, or x.reshape(1).")
    first = nonempty[0].array.shape
    axis = negative_dim(dim, len(first))
    for i, x in enumerate(tensors):
        shape = x.array.shape
        if shape == (0,):
            continue
        if len(shape) != len(first):
            raise RuntimeError(f"Tensors must have same number of dimensions: got {len(first)} and {len(shape)}")
        for at, (n, m) in enumerate(zip(first, shape, strict=True)):
            if n != m and at - len(first) != axis:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis + len(first)}. Expected size {n} but "
                    f"got size {m} for tensor number {i} in the list."
                )
    starts = (0, *accumulate([x.array.shape[axis] for x in nonempty]))
    return make_contiguous(rules.cat.record(*nonempty, axis=axis, starts=starts))


cat = _cat("cat")
concat = _cat("concat")
concatenate = _cat("concatenate")


@composite(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Stack tensors of the same shape along a new dimension.

    Parameters
    ----------
    {tensors}
    dim : int, default: 0
        Position of the new dimension in the result.
    {out}

    Returns
    -------
    Tensor
        A copy, of the common dtype. The gradient of each tensor is its slice of the result's gradient.

    Raises
    ------
    IndexError
        If `dim` is out of range for the result.
    RuntimeError
        If the shapes differ, or if `tensors` is empty.
    TypeError
        If `tensors` is not a list or tuple of Tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.stack([gl.tensor([1, 2]), gl.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if type(tensors) not in SEQUENCE_TYPES or not tensors or type(tensors[0]) is not Tensor:
        tensors = require_sequence("stack", tensors)
        if not tensors:
            raise RuntimeError("stack expects a non-empty TensorList")
    n = tensors[0].array.ndim + 1
    if not -n <= dim < n:
        negative_dim(dim, n)
    try:
        result = make_contiguous(rules.stack.record(*tensors, axis=dim - n if dim >= 0 else dim))
    except (ValueError, IndexError):
        first = tensors[0].array.shape
        at, x = next((i, x) for i, x in enumerate(tensors) if x.array.shape != first)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
            f"{list(x.array.shape)} at entry {at}"
        ) from None
    return result if out is None else copy_to_out("stack", out, result, tensors, True)


def _stacking_function(name: str, prepare: Any, axis: Any, doc: str, result: str) -> Any:
    @takes_out
    def function(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        several = require_sequence(name, tensors)
        if not several:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        ready = [prepare(x) for x in several]
        return cat(ready, axis(ready[0].array.ndim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = build_docstring(
        doc,
        "tensors out",
        "A copy, of the common dtype.",
        [
            "RuntimeError\n    If the shapes do not match, or if `tensors` is empty.",
            "TypeError\n    If `tensors` is not a list or tuple of Tensors.",
        ],
        f"{name}([gl.tensor([1, 2]), gl.tensor([3, 4])]) -> tensor({result})",
    )
    Operator(name, function, method=False)
    return function


def _as_column(x: Tensor) -> Tensor:
    """Return a 0-d or 1-d tensor as a column, and any other tensor unchanged."""
    return rules.reshape.record(x, shape=(x.array.size, 1)) if x.array.ndim <= 1 else x


hstack = _stacking_function(
    "hstack",
    atleast_1d,
    lambda ndim: 0 if ndim == 1 else 1,
    "Stack tensors horizontally: along the second dimension, or along the first if they are 1-d.",
    "[1, 2, 3, 4]",
)
vstack = _stacking_function(
    "vstack",
    atleast_2d,
    lambda ndim: 0,
    "Stack tensors vertically, along the first dimension. 1-d tensors become rows.",
    "[[1, 2],\n        [3, 4]]",
)
row_stack = _stacking_function(
    "row_stack",
    atleast_2d,
    lambda ndim: 0,
    "Stack tensors vertically. Alias of `vstack`.",
    "[[1, 2],\n        [3, 4]]",
)
dstack = _stacking_function(
    "dstack",
    atleast_3d,
    lambda ndim: 2,
    "Stack tensors along the third dimension. A vector of n elements gets the shape [1, n, 1].",
    "[[[1, 3],\n         [2, 4]]]",
)
column_stack = _stacking_function(
    "column_stack",
    _as_column,
    lambda ndim: 1,
    "Stack tensors horizontally, along the second dimension. 1-d tensors become columns.",
    "[[1, 3],\n        [2, 4]]",
)


@composite(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Build a block-diagonal matrix.

    Parameters
    ----------
    *tensors : Tensors
        Blocks of at most two dimensions. 0-d and 1-d tensors count as matrices with one row.

    Returns
    -------
    Tensor
        A matrix that is zero outside the blocks. Its sizes are the sums of the blocks' sizes, or [1, 0] without blocks.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If a tensor has more than two dimensions.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.block_diag(gl.tensor([[1, 2]]), gl.tensor(3))
    tensor([[1, 2, 0],
            [0, 0, 3]])
    """
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
        if x.array.ndim > 2:
            raise RuntimeError(
                f"gradlab.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.array.ndim} dimensions"
            )
    if not tensors:
        return constant(np.zeros((1, 0), default.float))
    return rules.block_diag.record(*map(atleast_2d, tensors))


def check_vectors(tensors: Sequence[Any]) -> None:
    for x in tensors:
        if x.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.array.shape)}")


@composite(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return all combinations of `r` elements of a 1-d tensor.

    Parameters
    ----------
    input : Tensor
        A 1-d tensor.
    r : int, default: 2
        Number of elements in a combination.
    with_replacement : bool, default: False
        Whether an element may be chosen more than once.

    Returns
    -------
    Tensor
        One combination per row, in the order of the elements' indices.

    Raises
    ------
    RuntimeError
        If `input` is not 1-d, or if `r` is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.combinations(gl.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("combinations", input)
    check_vectors([input])
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    xp = namespace_of[type(input.array)]
    if r == 0:
        return constant(xp.empty((0,), dtype=input.array.dtype))
    rows = list((choices_with_replacement if with_replacement else choices)(range(input.array.size), r))
    at = xp.asarray(np.array(rows, np.int64).reshape(-1, r))
    return stack([COMBINATIONS_SELECT.record(input, index=(at[:, k],), skip=0) for k in range(r)], 1)


COMBINATIONS_SELECT = getitem.with_node("MaskedSelectBackward0", view=False)


@composite(method=False)
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """Return the Cartesian product of 1-d tensors.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        1-d tensors of the same dtype.

    Returns
    -------
    Tensor
        One combination per row, with the last element changing fastest. A single tensor is returned unchanged.

    Raises
    ------
    RuntimeError
        If a tensor is not 1-d, or if the dtypes differ.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cartesian_prod(gl.tensor([1, 2]), gl.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    several = collect_tensors("cartesian_prod", tensors)
    check_vectors(several)
    if len(several) == 1:
        return several[0]
    return stack([flatten(x) for x in meshgrid(several, indexing="ij")], 1)


@composite(method=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: each 1-d tensor expanded along the dimensions of all the others.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        0-d or 1-d tensors of the same dtype.
    indexing : {"ij", "xy"}, optional
        With "ij", the i-th tensor varies along dimension i. With "xy", the first tensor varies along the second dimension and
        the second along the first, as in plots. If omitted, "ij" is used with a warning.

    Returns
    -------
    tuple of Tensor
        Views, one for each tensor, all of the same shape.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If no tensor is given, if one has more than one dimension, if the dtypes differ, or if `indexing` is unknown.

    Examples
    --------
    >>> import gradlab as gl
    >>> rows, columns = gl.meshgrid(gl.tensor([1, 2]), gl.tensor([3, 4, 5]), indexing="ij")
    >>> rows
    tensor([[1, 1, 1],
            [2, 2, 2]])
    >>> columns
    tensor([[3, 4, 5],
            [3, 4, 5]])
    """
    several = collect_tensors("meshgrid", tensors)
    if indexing is None:
        warnings.warn(
            "gradlab.meshgrid: in an upcoming release, it will be required to pass the indexing argument. "
            "Without it, indexing='ij' is used.",
            UserWarning,
            stacklevel=2,
        )
        indexing = "ij"
    if not several:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in several:
        if x.array.ndim > 1:
            raise RuntimeError(f"gradlab.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x.detach()!r}")
        if x.array.dtype != several[0].array.dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'gradlab.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swapped = indexing == "xy" and len(several) >= 2
    order = (several[1], several[0], *several[2:]) if swapped else several
    shape, n = tuple(x.array.size for x in order), len(order)
    grids = [
        expand(rules.reshape.record(x, shape=(1,) * i + (x.array.size,) + (1,) * (n - i - 1)), shape) for i, x in enumerate(order)
    ]
    if swapped:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)

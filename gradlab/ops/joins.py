"""Tensors put together: one after the other, beside each other, on a diagonal, or in all combinations."""

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
from gradlab.core.operator import Operator, composed, described, documented
from gradlab.core.out_argument import into, takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor, one_dim
from gradlab.ops.at_least import atleast_1d, atleast_2d, atleast_3d
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import in_order
from gradlab.ops.shapes import flatten, several_tensors
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


SEQUENCES = frozenset((list, tuple))


def sequence(name: str, tensors: Any) -> list[Tensor]:
    """The tensors of a list or tuple, or torch's TypeError."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
    return list(tensors)


CAT = """Tensors one after the other along a dimension that they have.

    Parameters
    ----------
    {tensors}
    dim : int, default 0
        The dimension. In the others they have the same lengths; a tensor of shape [0] joins any others.
    axis : int, optional
        `dim` by NumPy's name.
    {out}

    Returns
    -------
    Tensor
        A copy, of the common dtype. Each tensor's gradient is its part.

    Raises
    ------
    IndexError
        If there is no such dimension.
    RuntimeError
        If the shapes do not fit, or one is 0-d.
    TypeError
        If `tensors` is no list or tuple of tensors.
    ValueError
        If it is empty.

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
            if type(tensors) not in SEQUENCES:
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
            result = joined(name, tensors, dim if axis is None else axis)
        if not result.array.flags.c_contiguous:
            in_order(result)
        return result if out is None else into(name, out, result, tensors, True)

    cat.__name__ = cat.__qualname__ = name
    cat.__doc__ = described(CAT.format(name=name, tensors="{tensors}", out="{out}"))
    Operator(name, cat, method=False)
    return cat


def joined(name: str, tensors: Any, dim: int) -> Tensor:
    """The same where tensors of shape [0] are among them, which torch lets join any others; or torch's error."""
    tensors = sequence(name, tensors)
    if not tensors:
        raise ValueError("gradlab.cat(): expected a non-empty list of Tensors")
    kept = [x for x in tensors if x.array.shape != (0,)] or tensors[:1]
    for i, x in enumerate(tensors):
        if not x.array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated. Use stack, or x.reshape(1).")
    first = kept[0].array.shape
    axis = one_dim(dim, len(first))
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
    starts = (0, *accumulate([x.array.shape[axis] for x in kept]))
    return in_order(rules.cat.record(*kept, axis=axis, starts=starts))


cat = _cat("cat")
concat = _cat("concat")
concatenate = _cat("concatenate")


@composed(method=False)
def stack(tensors: Sequence[Tensor], dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors of one shape beside each other along a new dimension.

    Parameters
    ----------
    {tensors}
    dim : int, default 0
        Where the new dimension stands in the result.
    {out}

    Returns
    -------
    Tensor
        A copy, of the common dtype. Each tensor's gradient is its slice.

    Raises
    ------
    IndexError
        If the dimension is beyond those of the result.
    RuntimeError
        If the shapes differ, or there is no tensor.
    TypeError
        If `tensors` is no list or tuple of tensors.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.stack([gl.tensor([1, 2]), gl.tensor([3, 4])], dim=1)
    tensor([[1, 3],
            [2, 4]])
    """
    if type(tensors) not in SEQUENCES or not tensors or type(tensors[0]) is not Tensor:
        tensors = sequence("stack", tensors)
        if not tensors:
            raise RuntimeError("stack expects a non-empty TensorList")
    n = tensors[0].array.ndim + 1
    if not -n <= dim < n:
        one_dim(dim, n)
    try:
        result = in_order(rules.stack.record(*tensors, axis=dim - n if dim >= 0 else dim))
    except (ValueError, IndexError):
        first = tensors[0].array.shape
        at, x = next((i, x) for i, x in enumerate(tensors) if x.array.shape != first)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {list(first)} at entry 0 and "
            f"{list(x.array.shape)} at entry {at}"
        ) from None
    return result if out is None else into("stack", out, result, tensors, True)


def _stacked(name: str, prepared: Any, axis: Any, doc: str, result: str) -> Any:
    @takes_out
    def function(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
        several = sequence(name, tensors)
        if not several:
            raise RuntimeError(f"{name} expects a non-empty TensorList")
        ready = [prepared(x) for x in several]
        return cat(ready, axis(ready[0].array.ndim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = documented(
        doc,
        "tensors out",
        "A copy, of the common dtype.",
        [
            "RuntimeError\n    If the shapes do not fit, or there is no tensor.",
            "TypeError\n    If `tensors` is no list or tuple of tensors.",
        ],
        f"{name}([gl.tensor([1, 2]), gl.tensor([3, 4])]) -> tensor({result})",
    )
    Operator(name, function, method=False)
    return function


def _column(x: Tensor) -> Tensor:
    """A 0-d or 1-d tensor as a column."""
    return rules.reshape.record(x, shape=(x.array.size, 1)) if x.array.ndim <= 1 else x


hstack = _stacked(
    "hstack",
    atleast_1d,
    lambda ndim: 0 if ndim == 1 else 1,
    "Tensors side by side: along the second dimension, or the only one.",
    "[1, 2, 3, 4]",
)
vstack = _stacked(
    "vstack",
    atleast_2d,
    lambda ndim: 0,
    "Tensors one below the other, along the first dimension; 1-d tensors are rows.",
    "[[1, 2],\n        [3, 4]]",
)
row_stack = _stacked(
    "row_stack",
    atleast_2d,
    lambda ndim: 0,
    "Tensors one below the other: `vstack` by another name.",
    "[[1, 2],\n        [3, 4]]",
)
dstack = _stacked(
    "dstack",
    atleast_3d,
    lambda ndim: 2,
    "Tensors one behind the other, along the third dimension; a vector of n elements has the shape [1, n, 1].",
    "[[[1, 3],\n         [2, 4]]]",
)
column_stack = _stacked(
    "column_stack",
    _column,
    lambda ndim: 1,
    "Tensors side by side, along the second dimension; 1-d tensors are columns.",
    "[[1, 3],\n        [2, 4]]",
)


@composed(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices one after the other on the diagonal, and zeros elsewhere.

    Parameters
    ----------
    *tensors : Tensors
        Of at most two dimensions; of fewer they are matrices of one row.

    Returns
    -------
    Tensor
        A matrix with the sum of their rows and the sum of their columns; of none, of shape [1, 0].

    Raises
    ------
    TypeError
        If one is no tensor.
    RuntimeError
        If one has more than two dimensions.

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


def vectors(tensors: Sequence[Any]) -> None:
    for x in tensors:
        if x.array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.array.shape)}")


@composed(method=False)
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of `r` elements of a 1-d tensor.

    Parameters
    ----------
    input : Tensor
        A 1-d tensor.
    r : int, default 2
        How many are chosen.
    with_replacement : bool, default False
        Whether an element may be chosen repeatedly.

    Returns
    -------
    Tensor
        The choices as rows, in the order of their indices.

    Raises
    ------
    RuntimeError
        If `input` is not 1-d, or `r` is negative.

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
    vectors([input])
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    xp = namespace_of[type(input.array)]
    if r == 0:
        return constant(xp.empty((0,), dtype=input.array.dtype))
    rows = list((choices_with_replacement if with_replacement else choices)(range(input.array.size), r))
    at = xp.asarray(np.array(rows, np.int64).reshape(-1, r))
    return stack([CHOSEN.record(input, index=(at[:, k],), skip=0) for k in range(r)], 1)


CHOSEN = getitem.named("MaskedSelectBackward0", view=False)


@composed(method=False)
def cartesian_prod(*tensors: Tensor | Sequence[Tensor]) -> Tensor:
    """All combinations of one element of each tensor.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        1-d tensors of one dtype.

    Returns
    -------
    Tensor
        The combinations as rows, of which the last element changes first. Of one tensor, itself.

    Raises
    ------
    RuntimeError
        If one is not 1-d, or the dtypes differ.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cartesian_prod(gl.tensor([1, 2]), gl.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    several = several_tensors("cartesian_prod", tensors)
    vectors(several)
    if len(several) == 1:
        return several[0]
    return stack([flatten(x) for x in meshgrid(several, indexing="ij")], 1)


@composed(method=False)
def meshgrid(*tensors: Tensor | Sequence[Tensor], indexing: str | None = None) -> tuple[Tensor, ...]:
    """The coordinates of a grid: each 1-d tensor repeated along the dimensions of all the others.

    Parameters
    ----------
    *tensors : Tensors, or a sequence of them
        0-d or 1-d tensors of one dtype.
    indexing : {"ij", "xy"}, optional
        "ij": the i-th tensor varies along dimension i. "xy": the first varies along the second dimension and the second along
        the first, as in plots. Without it "ij" is taken, with a warning.

    Returns
    -------
    tuple of Tensor
        Views, one for each tensor, all of one shape.

    Raises
    ------
    TypeError
        If one is no tensor.
    RuntimeError
        If there is none, one has more dimensions, the dtypes differ, or `indexing` is unknown.

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
    several = several_tensors("meshgrid", tensors)
    if indexing is None:
        warnings.warn(
            "gradlab.meshgrid: in an upcoming release, it will be required to pass the indexing argument. "
            "indexing='ij' is what is done without.",
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

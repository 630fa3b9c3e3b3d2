"""Embeddings, bags of embeddings, and one-hot encoding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.backend.accumulate import counts
from gradlab.backend.bounds import check_axis_indices
from gradlab.backend.namespaces import namespace_of
from gradlab.core.observers import OBSERVERS, notify_before_write, notify_index
from gradlab.core.storage import mark_written
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.ops.arguments import check_storage_size, check_tensors, not_a_tensor
from gradlab.ops.shapes import reshape, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import embedding as rules
from gradlab.rules import indexing

__all__ = [
    "embedding",
    "embedding_bag",
    "one_hot",
]

# ---------------------------------------------------------------------------------------------------------- embeddings
INDEX_TYPES = np.int64, np.int32


def check_indices(name: str, input: Tensor) -> Any:
    """Return the array of indices. Raise unless it is int64 or int32."""
    if not isinstance(input, Tensor):
        raise not_a_tensor(name, input, "indices", 2)
    if input.array.dtype not in INDEX_TYPES:
        got = "CPUBoolType" if input.array.dtype.kind == "b" else f"gradlab.{input.dtype.legacy}"
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
            f"got {got} instead (while checking arguments for {name}). Indices come first, the table second. "
            "Convert floats with .long()."
        )
    return input.array


@with_descriptions
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Look up rows of a table by index.

    Parameters
    ----------
    input : Tensor
        Indices of the rows, int64 or int32, of any shape.
    weight : Tensor
        The table, (count, width).
    padding_idx : int, optional
        A row that receives no gradient.
    {max_norm}
    {norm_type}
    {scale_grad_by_freq}
    {sparse}

    Returns
    -------
    Tensor
        Shape of `input` followed by `width`, dtype of `weight`.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If `input` is neither int64 nor int32, or `weight` does not have two dimensions.
    IndexError
        If an index is out of range.
    AssertionError
        If `padding_idx` is out of range.
    NotImplementedError
        If `sparse`.

    Notes
    -----
    y[…] = weight[input[…]]. The gradient of a row is the sum of the cotangents of all elements that read it.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> table = gl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> F.embedding(gl.tensor([1, 1]), table).sum().backward()
    >>> table.grad
    tensor([[0., 0.],
            [2., 2.]])
    """
    if not isinstance(weight, Tensor):
        raise not_a_tensor("embedding", weight, "weight", 1)
    indices, table = check_indices("embedding", input), weight.array
    if padding_idx is not None and not -table.shape[0] <= padding_idx < table.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    if table.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    refuse_sparse(sparse)
    check_axis_indices(
        "embedding",
        indices,
        table.shape[0],
        lambda wrong: IndexError(
            f"index out of range in self. The table has {table.shape[0]} rows: indices are 0 to {table.shape[0] - 1}, and one is "
            f"{wrong}."
        ),
    )
    if max_norm is not None:
        renormalise(weight, indices, max_norm, norm_type)
    factor = None
    if weight.node is not None and (padding_idx is not None or scale_grad_by_freq):
        factor = row_factors(table, indices, padding_idx, scale_grad_by_freq)
    rows = rules.embedding.record(weight, indices=indices, factor=factor)
    return notify_index(rows, input) if OBSERVERS else rows


def refuse_sparse(sparse: bool) -> None:
    if sparse:
        raise NotImplementedError("sparse=True: gradlab has no sparse gradients. Omit it to get a dense gradient.")


def row_factors(table: Any, indices: Any, padding_idx: int | None, by_frequency: bool) -> Any:
    """Return the factor of the gradient of each row, (count, 1)."""
    xp = namespace_of[type(table)]
    factor = xp.ones((table.shape[0], 1), dtype=table.dtype)
    if by_frequency:
        factor /= xp.maximum(counts(xp, indices, table.shape[0]), 1).astype(table.dtype).reshape(-1, 1)
    if padding_idx is not None:
        factor[padding_idx] = 0
    return factor


def renormalise(weight: Tensor, indices: Any, max_norm: float, norm_type: float) -> None:
    """Scale the rows that are read down to norm `max_norm`, in place, without recording it."""
    table, xp = weight.array, namespace_of[type(weight.array)]
    rows = xp.unique(indices)
    norms = xp.linalg.norm(table[rows], norm_type, 1)
    large = norms > max_norm
    if OBSERVERS:
        notify_before_write(weight)
    table[rows[large]] *= (max_norm / (norms[large] + 1e-7)).astype(table.dtype)[:, None]
    mark_written(weight)


BAG = rules.embedding_dense.with_node("EmbeddingBagBackward0")
BAG_MAX = indexing.gather.with_node("EmbeddingBagBackward0")
BAG_WHERE = el.where.with_node("EmbeddingBagBackward0")


@with_descriptions
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    r"""Compute the sums, means or maxima of bags of rows of a table.

    Parameters
    ----------
    input : Tensor
        Indices of the rows, int64 or int32: (N, L), where each row is a bag, or (L), split into bags at `offsets`.
    weight : Tensor
        The table, (count, width).
    offsets : Tensor, optional
        Starts of the bags of a one-dimensional `input`, ascending from 0.
    {max_norm}
    {norm_type}
    {scale_grad_by_freq}
    mode : {"mean", "sum", "max"}, default: "mean"
        How the rows of a bag are reduced.
    {sparse}
    per_sample_weights : Tensor, optional
        Weight of each index, of the shape of `input`. Only for mode "sum".
    include_last_offset : bool, default: False
        Treat the last of `offsets` as the end of the last bag instead of the start of another.
    padding_idx : int, optional
        A row that is excluded from all bags.

    Returns
    -------
    Tensor
        One row for each bag, (number of bags, width). The row of an empty bag is 0.

    Raises
    ------
    ValueError
        If the shapes of `input`, `weight`, `offsets` or `per_sample_weights` do not fit, `mode` is not one of the three, or
        "max" is combined with `scale_grad_by_freq`.
    RuntimeError
        If `input` is neither int64 nor int32, an index or `padding_idx` is out of range, or `offsets` do not ascend from 0.
    NotImplementedError
        If `sparse` is True, or `per_sample_weights` is given with a mode other than "sum".

    Notes
    -----
    .. math:: y_b = \frac{1}{n_b} \sum_{i \in b} w_i

    or without the division for "sum". The maximum is taken in each column; the first of equal elements receives the gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> table = gl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> F.embedding_bag(gl.tensor([[0, 1], [2, 2]]), table)
    tensor([[2., 3.],
            [5., 6.]])
    >>> F.embedding_bag(gl.tensor([0, 1, 2]), table, gl.tensor([0, 1]), mode="sum")
    tensor([[ 1.,  2.],
            [ 8., 10.]])
    """
    check_tensors("embedding_bag", input=input, weight=weight)
    if input.array.dtype.kind == "f" and weight.array.dtype.kind in "iu":
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            UserWarning,
            stacklevel=2,
        )
        input, weight = weight, input
    shape = input.array.shape
    if per_sample_weights is not None and per_sample_weights.array.shape != shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.array.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.array.ndim}")
    check_bags(input, offsets, mode, scale_grad_by_freq, sparse)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for "
            f"mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    table, xp = weight.array, namespace_of[type(weight.array)]
    indices = check_indices("embedding_bag", input).reshape(-1)
    check_axis_indices(
        "embedding_bag",
        indices,
        table.shape[0],
        lambda wrong: RuntimeError(
            f"Index {int((indices == wrong).argmax())} of input takes value {wrong} which is not in the valid range [0, "
            f"{table.shape[0]})"
        ),
    )
    if padding_idx is not None and not -table.shape[0] <= padding_idx < table.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-table.shape[0]} through "
            f"{table.shape[0] - 1}, but got {padding_idx}"
        )
    if max_norm is not None:
        renormalise(weight, indices, max_norm, norm_type)
    bag, count = assign_bags(xp, input.array, offsets, include_last_offset)
    indices, within = indices[: bag.size], bag.size  # indices after the last offset belong to no bag
    kept = None if padding_idx is None else indices != padding_idx % table.shape[0]
    if kept is not None:
        indices, bag = indices[kept], bag[kept]
    if mode == "max":
        return max_of_bags(xp, weight, indices, bag, count)
    factor = row_factors(table, indices, None, True) if scale_grad_by_freq else None
    rows = rules.embedding.record(weight, indices=indices, factor=factor)
    if per_sample_weights is not None:
        if per_sample_weights.array.dtype != table.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                f"'per_sample_weights'; but type gradlab.{weight.dtype.legacy} does not equal gradlab."
                f"{per_sample_weights.dtype.legacy} (while checking arguments for embedding_bag)"
            )
        scale = reshape(per_sample_weights, -1)
        scale = scale if scale.array.size == within else scale[:within]
        rows = rows * unsqueeze(scale if kept is None else scale[constant(kept)], 1)
    elif mode == "mean":
        sizes = counts(xp, bag, count)[bag] if bag.size else bag
        rows = rows * constant((1 / sizes.astype(table.dtype)).astype(table.dtype).reshape(-1, 1))
    return BAG.record(rows, indices=bag, count=count)


def check_bags(input: Tensor, offsets: Tensor | None, mode: str, scale_grad_by_freq: bool, sparse: bool) -> None:
    """Raise PyTorch's errors for arguments that do not describe bags."""
    if input.array.ndim not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.array.ndim}")
    if input.array.ndim == 2 and offsets is not None:
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
            f"sequences. However, found offsets of type {type(offsets)}"
        )
    if input.array.ndim == 1 and (offsets is None or offsets.array.ndim != 1):
        raise ValueError(f"offsets has to be a 1D Tensor{' but got None' if offsets is None else ''}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    refuse_sparse(sparse)


def assign_bags(xp: Any, input: Any, offsets: Tensor | None, include_last_offset: bool) -> tuple[Any, int]:
    """Return the bag of each index, and the number of bags."""
    if offsets is None:
        return xp.repeat(xp.arange(input.shape[0]), input.shape[1]), input.shape[0]
    starts = offsets.array.tolist()
    if include_last_offset and not starts:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    if starts and starts[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
            f"However, got {starts[0]}"
        )
    if starts and starts[-1] > input.shape[0]:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {input.shape[0]} but got offsets[-1] of {starts[-1]}"
        )
    if starts != sorted(starts):
        raise RuntimeError(f"offsets must be in ascending order, got {starts}.")
    if include_last_offset:
        starts, end = starts[:-1], starts[-1]
    else:
        end = input.shape[0]
    return xp.repeat(xp.arange(len(starts)), xp.asarray(np.diff([*starts, end]).astype(np.intp))), len(starts)


def max_of_bags(xp: Any, weight: Tensor, indices: Any, bag: Any, count: int) -> Tensor:
    """Return the maximum of each bag and column, the first of equal elements; 0 for an empty bag."""
    table = weight.array
    at, empty = xp.zeros((count, table.shape[1]), dtype=np.int64), xp.ones((count, 1), dtype=bool)
    for number in np.unique(bag.tolist()).tolist():
        mine = indices[bag == int(number)]
        at[int(number)], empty[int(number)] = mine[table[mine].argmax(axis=0)], False
    out = BAG_MAX.record(weight, axis=-2, indices=at, keepdims=True)
    return BAG_WHERE.record(constant(empty), constant(xp.zeros((), dtype=table.dtype)), out) if bool(empty.any()) else out


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Encode classes as rows of zeros with a 1 at the class.

    Parameters
    ----------
    input : Tensor
        The classes, int64, of any shape, at least 0.
    num_classes : int, default: -1
        Number of classes; -1 for one more than the largest.

    Returns
    -------
    Tensor
        int64, shape of `input` followed by `num_classes`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor or `num_classes` is not an integer.
    RuntimeError
        If `input` is not int64, a class is negative or at least `num_classes`, or the number cannot be inferred (no elements).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.one_hot(gl.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("one_hot", input)
    if not isinstance(num_classes, (int, np.integer)):
        raise TypeError(f"one_hot(): argument 'num_classes' (position 2) must be int, not {type(num_classes).__name__}")
    classes = input.array
    if classes.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor. Call .long() first.")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor. Give num_classes.")
    if classes.size and int(classes.min()) < 0:
        raise RuntimeError(f"Class values must be non-negative. The smallest is {int(classes.min())}.")
    n = int(classes.max()) + 1 if num_classes == -1 else num_classes
    if classes.size and int(classes.max()) >= n:
        raise RuntimeError(f"Class values must be smaller than num_classes. The largest is {int(classes.max())} of {n}.")
    check_storage_size(*classes.shape, n)
    one_hots = constant((classes[..., None] == namespace_of[type(classes)].arange(n)).astype(np.int64))
    return notify_index(one_hots, input) if OBSERVERS else one_hots

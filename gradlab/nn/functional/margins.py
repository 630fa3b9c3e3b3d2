"""Losses with a margin, with the names of `torch.nn.functional`: 0 once one number exceeds another by the margin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.distances import clamp_min, pairwise_distance
from gradlab.nn.functional.losses import REDUCTIONS, reduce_loss, refuse_gradients, resolve_reduction
from gradlab.ops import minimum, relu, where
from gradlab.ops.arguments import check_tensors
from gradlab.ops.shapes import unsqueeze
from gradlab.rules import reductions

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def reduction_ops(node: str) -> dict[str, Any]:
    """Return the operation for each reduction over the samples (for "none", over their terms), with the name of torch's node."""
    steps = {"mean": reductions.mean_all, "sum": reductions.sum_all, "none": reductions.sum_}
    return {reduction: step.with_node(node) for reduction, step in steps.items()}


MULTI_MARGIN = reduction_ops("MultiMarginLossBackward0")
MULTILABEL_MARGIN = reduction_ops("MultilabelMarginLossBackward0")


def reduce_samples(ops: dict[str, Any], terms: Tensor, reduction: str) -> Tensor:
    """Sum the terms (N, C) of each sample, then reduce the sums."""
    if reduction == "none":
        return ops["none"].record(terms, axis=(-1,), keepdims=False)
    return ops[reduction].record(terms.sum(-1), axis=(-1,), keepdims=False)


@with_descriptions
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the hinge loss for multi-class classification.

    Parameters
    ----------
    input : Tensor
        The scores, (N, C) or (C).
    target : Tensor
        The target classes, int64, (N) or ().
    p : int, default: 1
        Exponent of the terms, 1 or 2.
    margin : float, default: 1.0
        Margin by which the target class must exceed the others.
    {class_weight}
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each sample.

    Raises
    ------
    ValueError
        If `p` is neither 1 nor 2, `weight` is not one-dimensional, or `reduction` is not one of the three.
    RuntimeError
        If the shapes do not fit, `target` is not int64 or out of range, or `weight` requires a gradient.

    Notes
    -----
    .. math:: \ell = \frac{1}{C} \sum_{i \ne y} w_y \max(0, \text{margin} - x_y + x_i)^p

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.multi_margin_loss(gl.tensor([[0.5, 1.0, 3.0]]), gl.tensor([1]))
    tensor(1.1667)
    """
    check_tensors("multi_margin_loss", input=input, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported. Got {p}.")
    shape = input.array.shape
    if weight is not None and weight.array.ndim != 1:
        raise ValueError(f"weight must be one-dimensional. Its shape is {list(weight.array.shape)}.")
    if len(shape) > 2 or 0 in shape[1:] or shape == (0,):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    rows = input.reshape(-1, shape[-1] if shape else 1)
    samples, classes = rows.array.shape
    if target.array.ndim > 1 or target.array.size != samples:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{samples}], but got {list(target.array.shape)}. Input has shape "
            f"{list(shape)}."
        )
    if weight is not None:
        refuse_gradients("multi_margin_loss", weight=weight)
        if weight.array.shape != (classes,):
            raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.array.shape)}")
    y = int64_array(target).reshape(-1)
    check_bounds(
        "multi_margin_loss",
        y,
        0,
        classes - 1,
        lambda wrong: RuntimeError(f"target out of range. There are {classes} classes: targets are 0 to {classes - 1}."),
    )
    xp = namespace_of[type(y)]
    own = constant(y[:, None] == xp.arange(classes))
    above = relu(rows - rows[constant(xp.arange(samples)), constant(y)].reshape(-1, 1) + margin)
    terms = where(own, 0.0, above if p == 1 else above**2) / classes
    if weight is not None:
        terms = terms * constant(weight.array[y][:, None])
    if target.array.ndim:
        return reduce_samples(MULTI_MARGIN, terms, reduction)
    return MULTI_MARGIN["sum"].record(terms, axis=(-2, -1), keepdims=False)


@with_descriptions
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    r"""Compute the hinge loss of each target class against each other class (multi-label classification).

    Parameters
    ----------
    input : Tensor
        The scores, (N, C) or (C).
    target : Tensor
        The target classes, int64, of the shape of `input`. A row ends at its first -1.
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each sample.

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not fit, or `target` is not int64 or holds a number that is neither a class nor -1.

    Notes
    -----
    .. math:: \ell = \frac{1}{C} \sum_{j \in y} \sum_{i \notin y} \max(0, 1 - x_j + x_i)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.multilabel_margin_loss(gl.tensor([0.5, 1.0, 3.0]), gl.tensor([2, 1, -1]))
    tensor(0.1667)
    """
    check_tensors("multilabel_margin_loss", input=input, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    shape = input.array.shape
    if len(shape) > 2 or 0 in shape[1:] or shape == (0,):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    if target.array.shape != shape:
        raise RuntimeError(f"inconsistent target size: {list(target.array.shape)} for input of size: {list(shape)}")
    rows = input.reshape(-1, shape[-1] if shape else 1)
    samples, classes = rows.array.shape
    y = int64_array(target).reshape(samples, classes)
    check_bounds(
        "multilabel_margin_loss",
        y,
        -1,
        classes - 1,
        lambda wrong: RuntimeError(
            f"argument #2 'target' is out of range. There are {classes} classes: targets are 0 to {classes - 1}, or -1."
        ),
    )
    xp = namespace_of[type(y)]
    listed = xp.cumsum(y < 0, axis=1) == 0
    is_target = ((y[:, :, None] == xp.arange(classes)) & listed[:, :, None]).any(axis=1)
    at = constant(xp.where(listed, y, 0))
    above = relu(1 - unsqueeze(rows[constant(xp.arange(samples)[:, None]), at], 2) + unsqueeze(rows, 1))
    counted = constant(listed[:, :, None] & ~is_target[:, None, :])
    terms = (where(counted, above, 0.0) / classes).reshape(samples, -1)
    if shape[:-1]:
        return reduce_samples(MULTILABEL_MARGIN, terms, reduction)
    return MULTILABEL_MARGIN["sum"].record(terms, axis=(-2, -1), keepdims=False)


def int64_array(target: Tensor) -> Any:
    """Return the array of an int64 target."""
    if target.array.dtype != np.int64:
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype.word}. The target holds class indices: call target.long()."
        )
    return target.array


@with_descriptions
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the hinge loss of distances: small for similar pairs, at least a margin for dissimilar ones.

    Parameters
    ----------
    input : Tensor
        The distances, of any shape.
    target : Tensor
        1 (similar) or -1 (dissimilar), of a shape that broadcasts with that of `input`.
    margin : float, default: 1.0
        Distance that dissimilar pairs should have.
    {averaging}
    {reduction}

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: \ell = x \text{ if } y = 1, \; \max(0, \text{margin} - x) \text{ if } y = -1

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.hinge_embedding_loss(gl.tensor([0.25, 0.25]), gl.tensor([1, -1]), reduction="none")
    tensor([0.2500, 0.7500])
    """
    check_tensors("hinge_embedding_loss", input=input, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    return reduce_loss(where(target != 1, clamp_min(margin - input, 0.0), 0.0) + where(target != -1, input, 0.0), reduction)


@with_descriptions
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the hinge loss of pairs of scores, one of which should exceed the other by a margin.

    Parameters
    ----------
    input1 : Tensor
        The first scores.
    input2 : Tensor
        The second, of a shape that broadcasts with that of `input1`.
    target : Tensor
        1 if the first should be larger, -1 if the second should.
    margin : float, default: 0
        The margin.
    {averaging}
    {reduction}

    Returns
    -------
    {loss1}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the numbers of dimensions differ, or the shapes do not broadcast.

    Notes
    -----
    .. math:: \ell = \max(0, -y (x_1 - x_2) + \text{margin})

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.margin_ranking_loss(gl.tensor([2.0, 2.0]), gl.tensor([1.0, 3.0]), gl.tensor([1.0, 1.0]), reduction="none")
    tensor([0., 1.])
    """
    check_tensors("margin_ranking_loss", input1=input1, input2=input2, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    if not input1.array.ndim == input2.array.ndim == target.array.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{Size(input1.array.shape)}, input2: {Size(input2.array.shape)}, target: {Size(target.array.shape)} "
        )
    return reduce_loss(clamp_min(-target * (input1 - input2) + margin, 0.0), reduction)


@with_descriptions
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the cosine loss of pairs of vectors, which should be parallel or have a small cosine.

    Parameters
    ----------
    input1 : Tensor
        The first vectors, (N, d) or (d).
    input2 : Tensor
        The second.
    target : Tensor
        1 if the vectors should be parallel, -1 if not, (N) or ().
    margin : float, default: 0
        Cosine allowed for vectors that should not be parallel.
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` the terms, of the shape of `target`.

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If `target` has more than one dimension, or the inputs do not have one more than `target`.

    Notes
    -----
    .. math:: \ell = 1 - \cos(x_1, x_2) \text{ if } y = 1, \; \max(0, \cos(x_1, x_2) - \text{margin}) \text{ if } y = -1

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.cosine_embedding_loss(gl.tensor([1.0, 0.0]), gl.tensor([1.0, 1.0]), gl.tensor(1))
    tensor(0.2929)
    """
    check_tensors("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    rank, sizes = target.array.ndim, f"{list(input1.array.shape)} and {list(input2.array.shape)}"
    if rank > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported. Got shape {list(target.array.shape)}.")
    if not input1.array.ndim == input2.array.ndim == rank + 1:
        raise RuntimeError(f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes {sizes}.")
    cosine = (input1 * input2).sum(-1) / (((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)).sqrt()
    loss = where(target == 1, 1 - cosine, 0.0) + where(target == -1, clamp_min(cosine - margin, 0.0), 0.0)
    return reduce_loss(loss, reduction)


@with_descriptions
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the triplet loss: anchors should be closer to positives than to negatives by a margin.

    Parameters
    ----------
    anchor : Tensor
        The anchors, (N, d) or (d).
    positive : Tensor
        Vectors that should be close to the anchors.
    negative : Tensor
        Vectors that should be far from the anchors.
    margin : float, default: 1.0
        The margin, greater than 0.
    p : float, default: 2
        Order of the norm.
    eps : float, default: 1e-6
        Added to each difference, as in `pairwise_distance`.
    {swap}
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each anchor.

    Raises
    ------
    ValueError
        If `margin` is not greater than 0, or `reduction` is not one of the three.
    RuntimeError
        If the numbers of dimensions differ, or the shapes do not broadcast.

    Notes
    -----
    .. math:: \ell = \max(0, \text{margin} + \|a - p\|_p - \|a - n\|_p)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.triplet_margin_loss(gl.tensor([0.0]), gl.tensor([1.0]), gl.tensor([1.5]))
    tensor(0.5000)
    """
    check_tensors("triplet_margin_loss", anchor=anchor, positive=positive, negative=negative)
    reduction = resolve_reduction(reduction, size_average, reduce)
    return check_triplets(anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction)


@with_descriptions
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the triplet loss with a custom distance.

    Parameters
    ----------
    anchor : Tensor
        The anchors.
    positive : Tensor
        Vectors that should be close to the anchors.
    negative : Tensor
        Vectors that should be far from the anchors.
    distance_function : callable, optional
        Function that computes the distance of two tensors. If omitted, `pairwise_distance`.
    margin : float, default: 1.0
        The margin, greater than 0.
    {swap}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` the terms, of the shape that `distance_function` returns.

    Raises
    ------
    ValueError
        If `margin` is not greater than 0, or `reduction` is not one of the three.
    RuntimeError
        If the numbers of dimensions differ.

    Notes
    -----
    .. math:: \ell = \max(0, \text{margin} + d(a, p) - d(a, n))

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> a, p, n = gl.tensor([[0.0]]), gl.tensor([[1.0]]), gl.tensor([[1.5]])
    >>> F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda x, y: (x - y).abs().sum(-1))
    tensor(0.5000)
    """
    check_tensors("triplet_margin_with_distance_loss", anchor=anchor, positive=positive, negative=negative)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction. Use 'mean', 'sum' or 'none'.")
    return check_triplets(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def check_triplets(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Callable[[Tensor, Tensor], Tensor],
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    ranks = [x.array.ndim for x in (anchor, positive, negative)]
    if len(set(ranks)) > 1:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
            "got: anchor {}D, positive {}D, and negative {}D inputs".format(*ranks)
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_loss(clamp_min(margin + near - far, 0.0), reduction)

"""Losses with a margin, as `torch.nn.functional` spells them: 0 as soon as one number exceeds another by enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import described
from gradlab.nn.functional.distances import at_least, pairwise_distance
from gradlab.nn.functional.losses import REDUCTIONS, fixed, reduced, settled
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


def last_step(node: str) -> dict[str, Any]:
    """The reductions of the losses of the samples (of the terms of each, for "none"), under the name of torch's one node."""
    steps = {"mean": reductions.mean_all, "sum": reductions.sum_all, "none": reductions.sum_}
    return {reduction: step.with_node(node) for reduction, step in steps.items()}


MULTI_MARGIN = last_step("MultiMarginLossBackward0")
MULTILABEL_MARGIN = last_step("MultilabelMarginLossBackward0")


def over_samples(ops: dict[str, Any], terms: Tensor, reduction: str) -> Tensor:
    """The terms (N, C) of each sample summed, then reduced."""
    if reduction == "none":
        return ops["none"].record(terms, axis=(-1,), keepdims=False)
    return ops[reduction].record(terms.sum(-1), axis=(-1,), keepdims=False)


@described
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
    r"""The hinge loss of the scores of several classes.

    Parameters
    ----------
    input : Tensor
        The scores, (N, C) or (C).
    target : Tensor
        The right classes, int64, (N) or ().
    p : int, default 1
        The power of a term, 1 or 2.
    margin : float, default 1.0
        By how much the right class has to exceed the others.
    {class_weight}
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` one for each sample.

    Raises
    ------
    ValueError
        If `p` is neither 1 nor 2, `weight` has not one dimension, or `reduction` is none of the three.
    RuntimeError
        If the shapes do not fit, `target` holds no int64 or what is no class, or `weight` requires a gradient.

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
    reduction = settled(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError(f"only p == 1 and p == 2 supported. p is {p}.")
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
        fixed("multi_margin_loss", weight=weight)
        if weight.array.shape != (classes,):
            raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.array.shape)}")
    y = of_long(target).reshape(-1)
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
        return over_samples(MULTI_MARGIN, terms, reduction)
    return MULTI_MARGIN["sum"].record(terms, axis=(-2, -1), keepdims=False)


@described
def multilabel_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    r"""The hinge loss of each right class against each wrong one.

    Parameters
    ----------
    input : Tensor
        The scores, (N, C) or (C).
    target : Tensor
        The right classes, int64, of the shape of `input`; a row ends at its first -1.
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` one for each sample.

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not fit, or `target` holds no int64 or what is neither a class nor -1.

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
    reduction = settled(reduction, size_average, reduce)
    shape = input.array.shape
    if len(shape) > 2 or 0 in shape[1:] or shape == (0,):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(shape)}")
    if target.array.shape != shape:
        raise RuntimeError(f"inconsistent target size: {list(target.array.shape)} for input of size: {list(shape)}")
    rows = input.reshape(-1, shape[-1] if shape else 1)
    samples, classes = rows.array.shape
    y = of_long(target).reshape(samples, classes)
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
        return over_samples(MULTILABEL_MARGIN, terms, reduction)
    return MULTILABEL_MARGIN["sum"].record(terms, axis=(-2, -1), keepdims=False)


def of_long(target: Tensor) -> Any:
    """An int64 target's array."""
    if target.array.dtype != np.int64:
        raise RuntimeError(
            f"expected scalar type Long but found {target.dtype.word}. The target holds class indices: call target.long()."
        )
    return target.array


@described
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Distances where pairs belong together, and what is lacking to a margin where they do not.

    Parameters
    ----------
    input : Tensor
        The distances, of any shape.
    target : Tensor
        1 (together) or -1 for each, of a shape that broadcasts with that of `input`.
    margin : float, default 1.0
        The distance that pairs which do not belong together should have.
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
    reduction = settled(reduction, size_average, reduce)
    return reduced(where(target != 1, at_least(margin - input, 0.0), 0.0) + where(target != -1, input, 0.0), reduction)


@described
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""What is lacking for one score to exceed another by a margin.

    Parameters
    ----------
    input1 : Tensor
        The first scores.
    input2 : Tensor
        The second, of a shape that broadcasts with that of `input1`.
    target : Tensor
        1 where the first should be larger, -1 where the second should.
    margin : float, default 0
        By how much.
    {averaging}
    {reduction}

    Returns
    -------
    {loss1}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the three have not as many dimensions, or do not broadcast.

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
    reduction = settled(reduction, size_average, reduce)
    if not input1.array.ndim == input2.array.ndim == target.array.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{Size(input1.array.shape)}, input2: {Size(input2.array.shape)}, target: {Size(target.array.shape)} "
        )
    return reduced(at_least(-target * (input1 - input2) + margin, 0.0), reduction)


@described
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""How far vectors are from pointing the same way, or from not doing so.

    Parameters
    ----------
    input1 : Tensor
        The first vectors, (N, d) or (d).
    input2 : Tensor
        The second.
    target : Tensor
        1 where they should point the same way, -1 where they should not, (N) or ().
    margin : float, default 0
        The cosine that vectors which should not may have.
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` of the shape of `target`.

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If `target` has more than one dimension, or the inputs have not one more than it.

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
    reduction = settled(reduction, size_average, reduce)
    rank, sizes = target.array.ndim, f"{list(input1.array.shape)} and {list(input2.array.shape)}"
    if rank > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported. Its shape is {list(target.array.shape)}."
        )
    if not input1.array.ndim == input2.array.ndim == rank + 1:
        raise RuntimeError(f"{rank}D target tensor expects {rank + 1}D input tensors, but found inputs with sizes {sizes}.")
    cosine = (input1 * input2).sum(-1) / (((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)).sqrt()
    loss = where(target == 1, 1 - cosine, 0.0) + where(target == -1, at_least(cosine - margin, 0.0), 0.0)
    return reduced(loss, reduction)


@described
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
    r"""How far anchors are from being nearer to positives than to negatives by a margin.

    Parameters
    ----------
    anchor : Tensor
        The anchors, (N, d) or (d).
    positive : Tensor
        What they should be near.
    negative : Tensor
        What they should be far from.
    margin : float, default 1.0
        By how much, greater than 0.
    p : float, default 2
        The order of the norm.
    eps : float, default 1e-6
        What is added to each difference; see `pairwise_distance`.
    {swap}
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` one for each anchor.

    Raises
    ------
    ValueError
        If `margin` is not greater than 0, or `reduction` is none of the three.
    RuntimeError
        If the three have not as many dimensions, or do not broadcast.

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
    reduction = settled(reduction, size_average, reduce)
    return triplets(anchor, positive, negative, lambda a, b: pairwise_distance(a, b, p, eps), margin, swap, reduction)


@described
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
    r"""`triplet_margin_loss` with a distance of one's own.

    Parameters
    ----------
    anchor : Tensor
        The anchors.
    positive : Tensor
        What they should be near.
    negative : Tensor
        What they should be far from.
    distance_function : callable, optional
        The distance of two tensors; `pairwise_distance` if left out.
    margin : float, default 1.0
        By how much, greater than 0.
    {swap}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` of the shape that the distance gives.

    Raises
    ------
    ValueError
        If `margin` is not greater than 0, or `reduction` is none of the three.
    RuntimeError
        If the three have not as many dimensions.

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
        raise ValueError(f"{reduction} is not a valid value for reduction. It is 'mean', 'sum' or 'none'.")
    return triplets(anchor, positive, negative, distance_function or pairwise_distance, margin, swap, reduction)


def triplets(
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
    return reduced(at_least(margin + near - far, 0.0), reduction)

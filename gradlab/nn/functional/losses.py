"""Losses of differences, and what losses share, as `torch.nn.functional` spells them.

`reduction` is "mean", "sum" or "none"; the older `size_average` and `reduce` are translated, with torch's warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.core.errors import Size, broadcast_mismatch
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import described
from gradlab.ops import abs
from gradlab.ops.arguments import check_tensors
from gradlab.ops.broadcasting import expand
from gradlab.rules import elementwise as el
from gradlab.rules import losses as rules

__all__ = [
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "smooth_l1_loss",
]

DIV_BY_COUNT = el.div.with_node("DivBackward1")
REDUCTIONS = frozenset(("mean", "sum", "none"))


# -------------------------------------------------------------------------------------------------------------- arguments
def settled(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction asked for, one of the three, or torch's error."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            UserWarning,
            stacklevel=3,
        )
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", UserWarning, stacklevel=3
        )
        return "mean"
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction. It is 'mean', 'sum' or 'none'.")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """The mean or the sum of the terms, or the terms themselves."""
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def divisor(reduction: str, count: Any) -> Any:
    """What a fused loss divides the sum of its terms by."""
    return count if reduction == "mean" else 1 if reduction == "sum" else None


def fixed(function: str, **tensors: Tensor | None) -> None:
    """Refuse arguments that require gradients where there are none to be had."""
    for name, x in tensors.items():
        if x is not None and x.node is not None:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This input "
                f"cannot have requires_grad True. Give {name}.detach()."
            )


def alike(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common shape; with torch's warning if it is not their own, which is seldom meant."""
    a, b = input.array.shape, target.array.shape
    warnings.warn(
        f"Using a target size ({Size(b)}) that is different to the input size ({Size(a)}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    return broadcast(input, target)


def broadcast(*tensors: Tensor) -> Any:
    """The tensors expanded to their common shape."""
    for i, x in enumerate(tensors):
        for y in tensors[:i]:
            if error := broadcast_mismatch(y.array.shape, x.array.shape):
                raise error
    shape = np.broadcast_shapes(*(x.array.shape for x in tensors))
    return tuple(x if x.array.shape == shape else expand(x, shape) for x in tensors)


def weighted(terms: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """The terms times weights of the input's size; the mean is over the weights or, for one loss, over the terms."""
    if weight.array.shape != input.array.shape:
        raise ValueError(
            f"Weights and input must have the same size. They are {list(weight.array.shape)} and {list(input.array.shape)}."
        )
    if reduction not in REDUCTIONS:
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = terms * weight
    return loss.sum() / weight.sum() if reduction == "mean" and by_weight else reduced(loss, reduction)


# ------------------------------------------------------------------------------------------------------------- differences
@described
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""The squared differences.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    weight : Tensor, optional
        A factor for each term, of the shape of `input`. The mean is over the weights.

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not broadcast.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = (x - y)^2

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([1.0, 4.0], requires_grad=True)
    >>> F.mse_loss(x, gl.tensor([1.0, 2.0])).backward()
    >>> x.grad
    tensor([0., 2.])
    """
    check_tensors("mse_loss", input=input, target=target)
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    if weight is not None:
        return weighted((input - target) ** 2, weight, input, reduction, True)
    if reduction not in REDUCTIONS:
        reduction = settled(reduction)
    return rules.mse_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


@described
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""The magnitudes of the differences.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    weight : Tensor, optional
        A factor for each term, of the shape of `input`. The mean is over the weights.

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not broadcast, or the mean of integers is asked for.

    Notes
    -----
    .. math:: \ell = |x - y|

    Its derivative where they are equal is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.l1_loss(gl.tensor([1.0, 4.0]), gl.tensor([1.0, 2.0]))
    tensor(1.)
    """
    check_tensors("l1_loss", input=input, target=target)
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    if weight is not None:
        return weighted(abs(input - target), weight, input, reduction, True)
    return reduced(abs(input - target), settled(reduction))


@described
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    r"""The differences, squared where they are small, their magnitudes where they are large.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    beta : float, default 1.0
        Where one form passes into the other. 0 makes it `l1_loss`.

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If `beta` is negative, or the shapes do not broadcast.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = d^2 / 2 \beta \text{ if } |d| < \beta, \; |d| - \beta / 2 \text{ otherwise}, \quad d = x - y

    Girshick (2015). `huber_loss` is beta times as large.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.smooth_l1_loss(gl.tensor([0.5, 4.0]), gl.tensor([0.0, 0.0]), reduction="none")
    tensor([0.1250, 3.5000])
    """
    check_tensors("smooth_l1_loss", input=input, target=target)
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    reduction = settled(reduction, size_average, reduce)
    if beta == 0:
        return reduced(abs(input - target), reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. It is {beta}.")
    return rules.smooth_l1_loss.record(input, target, weight=None, parameter=beta, total=divisor(reduction, input.array.size))


@described
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    r"""The differences, squared where they are small, their magnitudes where they are large.

    Parameters
    ----------
    {prediction}
    {target}
    {reduction}
    delta : float, default 1.0
        Where one form passes into the other, greater than 0.
    weight : Tensor, optional
        A factor for each term, of the shape of `input`. The mean is over the terms.

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If `delta` is not greater than 0, or the shapes do not broadcast.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = d^2 / 2 \text{ if } |d| \le \delta, \; \delta (|d| - \delta / 2) \text{ otherwise}, \quad d = x - y

    Huber (1964).

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.huber_loss(gl.tensor([0.5, 4.0]), gl.tensor([0.0, 0.0]), "none", 2.0)
    tensor([0.1250, 6.0000])
    """
    check_tensors("huber_loss", input=input, target=target)
    shape = input.array.shape
    if shape != target.array.shape:
        input, target = alike(input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. It is {delta}.")
    asked = "none" if weight is not None else settled(reduction)
    loss = rules.huber_loss.record(input, target, weight=None, parameter=delta, total=divisor(asked, input.array.size))
    return loss if weight is None else weighted(loss, weight, input, reduction, False)

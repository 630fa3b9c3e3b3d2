"""Losses for regression, with the names of `torch.nn.functional`, and helpers for all losses.

`reduction` is "mean", "sum" or "none". The deprecated `size_average` and `reduce` are translated, with PyTorch's warning.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gradlab.core.errors import Size, broadcast_mismatch
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import with_descriptions
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
def resolve_reduction(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """Return the reduction, one of the three. Raise PyTorch's error for others."""
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
        raise ValueError(f"{reduction} is not a valid value for reduction. Use 'mean', 'sum' or 'none'.")
    return reduction


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of the terms, or the terms."""
    return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss


def divisor(reduction: str, count: Any) -> Any:
    """Return the divisor of the sum of the terms in a fused loss."""
    return count if reduction == "mean" else 1 if reduction == "sum" else None


def refuse_gradients(function: str, **tensors: Tensor | None) -> None:
    """Raise if an argument requires a gradient that the function does not have."""
    for name, x in tensors.items():
        if x is not None and x.node is not None:
            raise RuntimeError(
                f"The function '{function}' is not differentiable with respect to argument '{name}'. This input "
                f"cannot have requires_grad True. Pass {name}.detach()."
            )


def broadcast_with_warning(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Broadcast both, with PyTorch's warning if their shapes differ, which is rarely intended."""
    a, b = input.array.shape, target.array.shape
    warnings.warn(
        f"Using a target size ({Size(b)}) that is different to the input size ({Size(a)}). This will likely lead to "
        "incorrect results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    return broadcast(input, target)


def broadcast(*tensors: Tensor) -> Any:
    """Expand tensors to their broadcast shape."""
    for i, x in enumerate(tensors):
        for y in tensors[:i]:
            if error := broadcast_mismatch(y.array.shape, x.array.shape):
                raise error
    shape = np.broadcast_shapes(*(x.array.shape for x in tensors))
    return tuple(x if x.array.shape == shape else expand(x, shape) for x in tensors)


def apply_weight(terms: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool) -> Tensor:
    """Multiply the terms by weights of the input's shape. The mean is over the weights, or over the terms for `huber_loss`."""
    if weight.array.shape != input.array.shape:
        raise ValueError(
            f"Weights and input must have the same size. Got {list(weight.array.shape)} and {list(input.array.shape)}."
        )
    if reduction not in REDUCTIONS:
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = terms * weight
    return loss.sum() / weight.sum() if reduction == "mean" and by_weight else reduce_loss(loss, reduction)


# ------------------------------------------------------------------------------------------------------------- differences
@with_descriptions
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""Compute the squared errors.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    weight : Tensor, optional
        A weight for each term, of the shape of `input`. The mean is over the weights.

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
        input, target = broadcast_with_warning(input, target)
    if size_average is not None or reduce is not None:
        reduction = resolve_reduction(reduction, size_average, reduce)
    if weight is not None:
        return apply_weight((input - target) ** 2, weight, input, reduction, True)
    if reduction not in REDUCTIONS:
        reduction = resolve_reduction(reduction)
    return rules.mse_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


@with_descriptions
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    r"""Compute the absolute errors.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    weight : Tensor, optional
        A weight for each term, of the shape of `input`. The mean is over the weights.

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If the shapes do not broadcast, or `reduction` is "mean" and both hold integers.

    Notes
    -----
    .. math:: \ell = |x - y|

    The derivative at x = y is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.l1_loss(gl.tensor([1.0, 4.0]), gl.tensor([1.0, 2.0]))
    tensor(1.)
    """
    check_tensors("l1_loss", input=input, target=target)
    if input.array.shape != target.array.shape:
        input, target = broadcast_with_warning(input, target)
    if size_average is not None or reduce is not None:
        reduction = resolve_reduction(reduction, size_average, reduce)
    if weight is not None:
        return apply_weight(abs(input - target), weight, input, reduction, True)
    return reduce_loss(abs(input - target), resolve_reduction(reduction))


@with_descriptions
def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    r"""Compute errors that are squared if small and absolute if large.

    Parameters
    ----------
    {prediction}
    {target}
    {averaging}
    {reduction}
    beta : float, default: 1.0
        Error at which the loss changes from squared to absolute. 0 gives `l1_loss`.

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
        input, target = broadcast_with_warning(input, target)
    reduction = resolve_reduction(reduction, size_average, reduce)
    if beta == 0:
        return reduce_loss(abs(input - target), reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}.")
    return rules.smooth_l1_loss.record(input, target, weight=None, parameter=beta, total=divisor(reduction, input.array.size))


@with_descriptions
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    r"""Compute errors that are squared if small and absolute if large.

    Parameters
    ----------
    {prediction}
    {target}
    {reduction}
    delta : float, default: 1.0
        Error at which the loss changes from squared to absolute, greater than 0.
    weight : Tensor, optional
        A weight for each term, of the shape of `input`. The mean is over the terms.

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
        input, target = broadcast_with_warning(input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got {delta}.")
    asked = "none" if weight is not None else resolve_reduction(reduction)
    loss = rules.huber_loss.record(input, target, weight=None, parameter=delta, total=divisor(asked, input.array.size))
    return loss if weight is None else apply_weight(loss, weight, input, reduction, False)

"""Divergences and negative log likelihoods."""

from __future__ import annotations

import warnings
from math import log as log_of
from math import pi
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.losses import REDUCTIONS, reduce_loss, resolve_reduction
from gradlab.ops import clone, exp, log, where, xlogy
from gradlab.ops.arguments import check_tensors
from gradlab.ops.shapes import unsqueeze

__all__ = [
    "ctc_loss",
    "gaussian_nll_loss",
    "kl_div",
    "poisson_nll_loss",
]


# ----------------------------------------------------------------------------------------------------------- distributions
@with_descriptions
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    r"""Compute the Kullback-Leibler divergence of targets from predicted log-probabilities.

    Parameters
    ----------
    input : Tensor
        The predicted log-probabilities, floating point.
    target : Tensor
        The probabilities, of a shape that broadcasts with that of `input`.
    {averaging}
    reduction : {"mean", "batchmean", "sum", "none"}, default: "mean"
        "batchmean" divides the sum by the batch size, and is the divergence. "mean" divides by the number of terms, with a
        warning.
    log_target : bool, default: False
        Whether `target` holds log-probabilities, too.

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If `reduction` is not one of the four.
    RuntimeError
        If a tensor holds integers or bools, or the shapes do not broadcast.

    Notes
    -----
    .. math:: \ell = q (\log q - x)

    The term is 0 if q is 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> log_p = gl.tensor([[0.5, 0.5]]).log()
    >>> F.kl_div(log_p, gl.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    check_tensors("kl_div", input=input, target=target)
    if size_average is not None or reduce is not None:
        reduction = resolve_reduction(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            UserWarning,
            stacklevel=2,
        )
    per_batch = reduction == "batchmean"
    reduction = "sum" if per_batch else resolve_reduction(reduction)
    if input.array.dtype.kind != "f" or target.array.dtype.kind != "f":
        raise RuntimeError("kl_div: Integral inputs not supported. Call .float() first.")
    loss = reduce_loss(exp(target) * (target - input) if log_target else xlogy(target, target) - target * input, reduction)
    return loss / input.array.shape[0] if per_batch and input.array.ndim else loss


@with_descriptions
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the negative log likelihood of counts under Poisson distributions.

    Parameters
    ----------
    input : Tensor
        The logarithms of the expected counts, or the counts.
    target : Tensor
        The observed counts, of a shape that broadcasts with that of `input`.
    log_input : bool, default: True
        Whether `input` holds logarithms.
    full : bool, default: False
        Add Stirling's formula for log y! where y > 1.
    eps : float, default: 1e-8
        Added to `input` before its logarithm is taken, if `log_input` is False.
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
    .. math:: \ell = e^x - y x

    or, without `log_input`, x - y log(x + ε). `full` adds

    .. math:: y \log y - y + \tfrac{1}{2} \log(2 \pi y)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([0.0], requires_grad=True)
    >>> F.poisson_nll_loss(x, gl.tensor([3.0])).backward()
    >>> x.grad
    tensor([-2.])
    """
    reduction = resolve_reduction(reduction, size_average, reduce)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        loss = loss + where(target <= 1, 0.0, target * log(target) - target + 0.5 * log(2 * pi * target))
    return reduce_loss(loss, reduction)


@with_descriptions
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    r"""Compute the negative log likelihood of targets under normal distributions.

    Parameters
    ----------
    input : Tensor
        The expected values, floating point.
    target : Tensor
        The targets, of a shape that broadcasts with that of `input`.
    var : Tensor or float
        The variances: a float, or a tensor of the shape of `input`, of that without the last dimension, or with one dimension of
        length 1.
    full : bool, default: False
        Add the constant log(2π) / 2.
    eps : float, default: 1e-6
        Lower bound of the variances.
    {reduction}

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If a variance is negative, the shape of `var` does not fit, or `reduction` is not one of the three.
    TypeError
        If `var` is neither a tensor nor a float.

    Notes
    -----
    .. math:: \ell = \tfrac{1}{2} \left(\log v + (x - y)^2 / v\right)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.gaussian_nll_loss(gl.tensor([1.0]), gl.tensor([3.0]), gl.tensor([4.0]))
    tensor(1.1931)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = constant(namespace_of[type(input.array)].full_like(input.array, var))
    if not isinstance(var, Tensor):
        raise TypeError(f"gaussian_nll_loss(): argument 'var' must be Tensor or float, not {type(var).__name__}.")
    if bool((var.array < 0).any()):
        raise ValueError("var has negative entry/entries")
    shape, own = input.array.shape, var.array.shape
    if own != shape:
        if own == shape[:-1]:
            var = unsqueeze(var, -1)
        elif len(own) != len(shape) or sum([n for m, n in zip(shape, own, strict=True) if m != n]) != 1:
            raise ValueError(f"var is of incorrect size. It has shape {list(own)}, the input has {list(shape)}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid. Use 'mean', 'sum' or 'none'.")
    var = clone(var)  # as in torch, the gradient ignores the lower bound
    var.array = namespace_of[type(var.array)].maximum(var.array, eps)
    loss = 0.5 * (log(var) + (input - target) ** 2 / var)
    return reduce_loss(loss + 0.5 * log_of(2 * pi) if full else loss, reduction)


@with_descriptions
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Raise an error: the connectionist temporal classification loss is not supported.

    Parameters
    ----------
    log_probs : Tensor
        The log-probabilities of the classes at each time.
    targets : Tensor
        The sequences of classes.
    input_lengths : Tensor or tuple of ints
        The lengths of the inputs.
    target_lengths : Tensor or tuple of ints
        The lengths of the targets.
    blank : int, default: 0
        The blank class.
    {reduction}
    zero_infinity : bool, default: False
        Replace infinite losses by zeros.

    Returns
    -------
    Tensor
        Never returned.

    Raises
    ------
    NotImplementedError
        Always.

    Examples
    --------
    >>> import gradlab.nn.functional as F
    >>> F.ctc_loss(None, None, None, None)
    Traceback (most recent call last):
        ...
    NotImplementedError: ctc_loss is not supported: gradlab has no connectionist temporal classification.
    """
    raise NotImplementedError("ctc_loss is not supported: gradlab has no connectionist temporal classification.")

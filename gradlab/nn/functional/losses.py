"""Losses of predictions against targets, two classes and distributions, as `torch.nn.functional` spells them.

`reduction` is "mean", "sum" or "none"; the older `size_average` and `reduce` are translated, with torch's warning.
"""

from __future__ import annotations

import warnings
from functools import partial
from math import log as log_of
from math import pi
from typing import Any

import numpy as np

from gradlab.backend.bounds import within
from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import Size, broadcast_mismatch, not_implemented
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.activations import logsigmoid
from gradlab.ops import abs, clone, exp, log, where, xlogy
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import cast
from gradlab.ops.shapes import unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import losses as rules

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "ctc_loss",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "multilabel_soft_margin_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]

DIV_BY_COUNT = el.div.named("DivBackward1")
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


def fixed(function: str, **given: Tensor | None) -> None:
    """Refuse arguments that require gradients where there are none to be had."""
    for name, x in given.items():
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
def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)². With `weight`, of the input's size, the mean is weighted."""
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    if weight is not None:
        return weighted((input - target) ** 2, weight, input, reduction, True)
    if reduction not in REDUCTIONS:
        reduction = settled(reduction)
    return rules.mse_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|; its derivative at 0 is 0. With `weight`, of the input's size, the mean is weighted."""
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    if weight is not None:
        return weighted(abs(input - target), weight, input, reduction, True)
    return reduced(abs(input - target), settled(reduction))


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d² / 2β where |d| < β, |d| - β/2 elsewhere, of the differences d (Girshick 2015)."""
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    reduction = settled(reduction, size_average, reduce)
    if beta == 0:
        return reduced(abs(input - target), reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. It is {beta}.")
    return rules.smooth_l1_loss.record(input, target, weight=None, parameter=beta, total=divisor(reduction, input.array.size))


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """d² / 2 where |d| ≤ δ, δ (|d| - δ/2) elsewhere, of the differences d. The mean is over the terms, with `weight` too."""
    shape = input.array.shape
    if shape != target.array.shape:
        input, target = alike(input, target)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. It is {delta}.")
    asked = "none" if weight is not None else settled(reduction)
    loss = rules.huber_loss.record(input, target, weight=None, parameter=delta, total=divisor(asked, input.array.size))
    return loss if weight is None else weighted(loss, weight, input, reduction, False)


# ------------------------------------------------------------------------------------------------------------- two classes
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) of probabilities p and targets y from 0 to 1; the logarithms are at least -100."""
    reduction = settled(reduction, size_average, reduce)
    if target.array.shape != input.array.shape:
        raise ValueError(
            f"Using a target size ({Size(target.array.shape)}) that is different to the input size "
            f"({Size(input.array.shape)}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = matching_weight("binary_cross_entropy", input, weight, "weight")
    if target.array.dtype != input.array.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.word} but expected {input.dtype.word}. Call target.to(input.dtype).")
    for name, x in (("input", input.array), ("target", target.array)):
        if x.dtype.kind == "f" and (type(x) is not np.ndarray or (x.size and leaves_unit_interval(x))):
            hint = " Apply a sigmoid first, or take binary_cross_entropy_with_logits." if name == "input" else ""
            within("binary_cross_entropy", x, 0, 1, partial(outside_unit_interval, name, hint))
    return rules.binary_cross_entropy.record(
        input, target, weight=None if weight is None else weight.array, parameter=None, total=divisor(reduction, input.array.size)
    )


def outside_unit_interval(name: str, hint: str, wrong: Any) -> RuntimeError:
    return RuntimeError(f"all elements of {name} should be between 0 and 1.{hint}")


ONE = {2: (np.uint16, 0x3C00), 4: (np.uint32, 0x3F800000), 8: (np.uint64, 0x3FF0000000000000)}  # the bits of 1.0


def leaves_unit_interval(x: Any) -> bool:
    """Whether some element is not from 0 to 1. The bits of those that are, as an integer, are at most those of 1.0: one pass over
    them is enough, and only where it finds more (a number below 0, perhaps -0.0; a NaN) the elements are compared."""
    bits, one = ONE[x.itemsize]
    return bool(x.view(bits).max() > one) and not (x.min() >= 0 and x.max() <= 1)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy(σ(input), target), computed without overflow; `pos_weight` weighs the terms of y = 1."""
    reduction = settled(reduction, size_average, reduce)
    if target.array.shape != input.array.shape:
        raise ValueError(f"Target size ({Size(target.array.shape)}) must be the same as input size ({Size(input.array.shape)})")
    name = "binary_cross_entropy_with_logits"
    if target.array.dtype.kind != "f":
        if input.array.dtype.kind != "f":
            raise not_implemented("logsigmoid", input.dtype)
        raise RuntimeError(
            f"result type {input.dtype.word} can't be cast to the desired output type {target.dtype.word}. Call target.float()."
        )
    if pos_weight is not None:
        pos_weight = matching_weight(name, input, pos_weight, "pos_weight", first=True)
    if weight is not None:
        weight = matching_weight(name, input, weight, "weight")
    return rules.binary_cross_entropy_with_logits.record(
        input,
        target,
        weight=None if weight is None else weight.array,
        parameter=None if pos_weight is None else pos_weight.array,
        total=divisor(reduction, input.array.size),
    )


def matching_weight(function: str, input: Tensor, weight: Tensor, name: str, first: bool = False) -> Tensor:
    """A weight that broadcasts to the input's shape and has its dtype."""
    fixed(function, **{name: weight})
    a, b = input.array.shape, weight.array.shape
    if error := broadcast_mismatch(*(b, a) if first else (a, b)):
        if function == "binary_cross_entropy":
            at = next(-i for i in range(1, len(b) + 1) if b[-i] not in (1, a[-i]))
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {b[at]} at {at}! Mismatching argument at index 1 "
                f"had {Size(b)}; but expected shape should be broadcastable to {list(a)}"
            )
        raise error
    if (shape := np.broadcast_shapes(a, b)) != a:
        raise RuntimeError(
            f"output with shape {list(a)} doesn't match the broadcast shape {list(shape)}. The weight has more "
            "elements than the input."
        )
    return cast(weight, input.dtype)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + e^(-yx)), y being 1 or -1."""
    reduction = settled(reduction, size_average, reduce)
    fixed("soft_margin_loss", target=target)
    if input.array.dtype.kind != "f":
        raise not_implemented("exp_vml", input.dtype)
    input, target = broadcast(input, cast(target, input.dtype))
    return rules.soft_margin_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over the classes (the last axis) of -(y log σ(x) + (1 - y) log σ(-x))."""
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.array.ndim - 1) / input.array.shape[-1]
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid. The reduction is 'mean', 'sum' or 'none'.")
    return reduced(loss, reduction)


# ----------------------------------------------------------------------------------------------------------- distributions
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """q (log q - x) of log-probabilities x and probabilities q (or, with `log_target`, log q).

    The divergence is the sum of these, divided by the batch's size: reduction="batchmean"."""
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            UserWarning,
            stacklevel=2,
        )
    per_batch = reduction == "batchmean"
    reduction = "sum" if per_batch else settled(reduction)
    if input.array.dtype.kind != "f" or target.array.dtype.kind != "f":
        raise RuntimeError("kl_div: Integral inputs not supported. Call .float() first.")
    loss = reduced(exp(target) * (target - input) if log_target else xlogy(target, target) - target * input, reduction)
    return loss / input.array.shape[0] if per_batch and input.array.ndim else loss


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
    """eˣ - y x, or x - y log(x + eps) without `log_input`; `full` adds Stirling's formula for log y! where y > 1."""
    reduction = settled(reduction, size_average, reduce)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        loss = loss + where(target <= 1, 0.0, target * log(target) - target + 0.5 * log(2 * pi * target))
    return reduced(loss, reduction)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log v + (x - y)² / v) / 2 with variances v, which count as at least eps; `full` adds log(2π) / 2.

    var: a number, or of the input's shape, or without its last axis, or with one axis of length 1."""
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
            raise ValueError(f"var is of incorrect size. It has shape {list(own)}, the input {list(shape)}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid. The reduction is 'mean', 'sum' or 'none'.")
    var = clone(var)  # its gradient passes where it is raised, as in torch
    var.array = namespace_of[type(var.array)].maximum(var.array, eps)
    loss = 0.5 * (log(var) + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * log_of(2 * pi) if full else loss, reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Not supported."""
    raise NotImplementedError("ctc_loss is not supported: gradlab has no connectionist temporal classification.")

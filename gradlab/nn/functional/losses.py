"""Losses of predictions against targets, classes and distributions, as `torch.nn.functional` spells them.

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
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.devices import different_devices
from gradlab.core.errors import Size, broadcast_mismatch, not_implemented
from gradlab.core.tensor import Tensor, constant
from gradlab.functions import abs, clone, exp, log, log_softmax, where, xlogy
from gradlab.functions.shapes import cast, expand, unsqueeze
from gradlab.nn.functional.activations import logsigmoid
from gradlab.rules import elementwise as el
from gradlab.rules import losses as rules
from gradlab.rules import shapes

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "ctc_loss", "gaussian_nll_loss",
           "huber_loss", "kl_div", "l1_loss", "mse_loss", "multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss",
           "smooth_l1_loss", "soft_margin_loss"]

DIV_BY_COUNT = el.div.named("DivBackward1")
REDUCTIONS = frozenset(("mean", "sum", "none"))


# -------------------------------------------------------------------------------------------------------------- arguments
def settled(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction asked for, one of the three, or torch's error."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
                      UserWarning, stacklevel=3)
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", UserWarning,
                      stacklevel=3)
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
            raise RuntimeError(f"The function '{function}' is not differentiable with respect to argument '{name}'. This input "
                               f"cannot have requires_grad True. Give {name}.detach().")


def alike(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both in their common shape; with torch's warning if it is not their own, which is seldom meant."""
    a, b = input.array.shape, target.array.shape
    warnings.warn(f"Using a target size ({Size(b)}) that is different to the input size ({Size(a)}). This will likely lead to "
                  "incorrect results due to broadcasting. Please ensure they have the same size.", UserWarning, stacklevel=3)
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
        raise ValueError(f"Weights and input must have the same size. They are {list(weight.array.shape)} and "
                         f"{list(input.array.shape)}.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")
    loss = terms * weight
    return loss.sum() / weight.sum() if reduction == "mean" and by_weight else reduced(loss, reduction)


# ------------------------------------------------------------------------------------------------------------- differences
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
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


def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """|input - target|; its derivative at 0 is 0. With `weight`, of the input's size, the mean is weighted."""
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    if weight is not None:
        return weighted(abs(input - target), weight, input, reduction, True)
    return reduced(abs(input - target), settled(reduction))


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """d² / 2β where |d| < β, |d| - β/2 elsewhere, of the differences d (Girshick 2015)."""
    if input.array.shape != target.array.shape:
        input, target = alike(input, target)
    reduction = settled(reduction, size_average, reduce)
    if beta == 0:
        return reduced(abs(input - target), reduction)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. It is {beta}.")
    return rules.smooth_l1_loss.record(input, target, weight=None, parameter=beta, total=divisor(reduction, input.array.size))


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
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
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """-(y log p + (1 - y) log(1 - p)) of probabilities p and targets y from 0 to 1; the logarithms are at least -100."""
    reduction = settled(reduction, size_average, reduce)
    if target.array.shape != input.array.shape:
        raise ValueError(f"Using a target size ({Size(target.array.shape)}) that is different to the input size "
                         f"({Size(input.array.shape)}) is deprecated. Please ensure they have the same size.")
    if weight is not None:
        weight = matching_weight("binary_cross_entropy", input, weight, "weight")
    if target.array.dtype != input.array.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.word} but expected {input.dtype.word}. Call target.to(input.dtype).")
    for name, x in (("input", input.array), ("target", target.array)):
        if x.dtype.kind == "f" and (type(x) is not np.ndarray or (x.size and leaves_unit_interval(x))):
            hint = " Apply a sigmoid first, or take binary_cross_entropy_with_logits." if name == "input" else ""
            within("binary_cross_entropy", x, 0, 1, partial(outside_unit_interval, name, hint))
    return rules.binary_cross_entropy.record(input, target, weight=None if weight is None else weight.array, parameter=None,
                                             total=divisor(reduction, input.array.size))


def outside_unit_interval(name: str, hint: str, wrong: Any) -> RuntimeError:
    return RuntimeError(f"all elements of {name} should be between 0 and 1.{hint}")


ONE = {2: (np.uint16, 0x3C00), 4: (np.uint32, 0x3F800000), 8: (np.uint64, 0x3FF0000000000000)}             # the bits of 1.0


def leaves_unit_interval(x: Any) -> bool:
    """Whether some element is not from 0 to 1. The bits of those that are, as an integer, are at most those of 1.0: one pass over
    them is enough, and only where it finds more (a number below 0, perhaps -0.0; a NaN) the elements are compared."""
    bits, one = ONE[x.itemsize]
    return bool(x.view(bits).max() > one) and not (x.min() >= 0 and x.max() <= 1)


def binary_cross_entropy_with_logits(
        input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None, reduce: bool | None = None,
        reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy(σ(input), target), computed without overflow; `pos_weight` weighs the terms of y = 1."""
    reduction = settled(reduction, size_average, reduce)
    if target.array.shape != input.array.shape:
        raise ValueError(f"Target size ({Size(target.array.shape)}) must be the same as input size ({Size(input.array.shape)})")
    name = "binary_cross_entropy_with_logits"
    if target.array.dtype.kind != "f":
        if input.array.dtype.kind != "f":
            raise not_implemented("logsigmoid", input.dtype)
        raise RuntimeError(f"result type {input.dtype.word} can't be cast to the desired output type {target.dtype.word}. Call "
                           "target.float().")
    if pos_weight is not None:
        pos_weight = matching_weight(name, input, pos_weight, "pos_weight", first=True)
    if weight is not None:
        weight = matching_weight(name, input, weight, "weight")
    return rules.binary_cross_entropy_with_logits.record(
        input, target, weight=None if weight is None else weight.array,
        parameter=None if pos_weight is None else pos_weight.array, total=divisor(reduction, input.array.size))


def matching_weight(function: str, input: Tensor, weight: Tensor, name: str, first: bool = False) -> Tensor:
    """A weight that broadcasts to the input's shape and has its dtype."""
    fixed(function, **{name: weight})
    a, b = input.array.shape, weight.array.shape
    if error := broadcast_mismatch(*(b, a) if first else (a, b)):
        if function == "binary_cross_entropy":
            at = next(-i for i in range(1, len(b) + 1) if b[-i] not in (1, a[-i]))
            raise RuntimeError(f"Attempting to broadcast a dimension of length {b[at]} at {at}! Mismatching argument at index 1 "
                               f"had {Size(b)}; but expected shape should be broadcastable to {list(a)}")
        raise error
    if (shape := np.broadcast_shapes(a, b)) != a:
        raise RuntimeError(f"output with shape {list(a)} doesn't match the broadcast shape {list(shape)}. The weight has more "
                           "elements than the input.")
    return cast(weight, input.dtype)


def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """log(1 + e^(-yx)), y being 1 or -1."""
    reduction = settled(reduction, size_average, reduce)
    fixed("soft_margin_loss", target=target)
    if input.array.dtype.kind != "f":
        raise not_implemented("exp_vml", input.dtype)
    input, target = broadcast(input, cast(target, input.dtype))
    return rules.soft_margin_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                                reduce: bool | None = None, reduction: str = "mean") -> Tensor:
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


# ------------------------------------------------------------------------------------------------------------ many classes
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """-weight[y] · input[…, y]: the negative log likelihood of log-probabilities.

    input (N, C) or (C), or (N, C, d₁, …) with target (N, d₁, …); target int64. The mean is weighted by `weight`;
    targets equal to `ignore_index` do not count.
    """
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = settled(reduction, size_average, reduce)
    return picked(input, target, weight, ignore_index, reduction, "nll_loss_nd")


# The mean loss over the one tensor axis of class indices, the common case, takes the shortest way through this function: it is
# what every step of a classifier in training runs.
def picked(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, function: str) -> Tensor:
    if type(target) is not Tensor:
        raise TypeError(f"{function}(): argument 'target' (position 2) must be Tensor, not {type(target).__name__}")
    scores, y = input.array, target.array
    shape = scores.shape
    if type(y) is not type(scores):
        raise different_devices(function, (scores, y))
    if y.shape != shape[:1] or len(shape) != 2:
        y = fitting_target(shape, y)
    if y.dtype.char != "l" and y.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.word}. The target holds class "
                           "indices: call target.long().")
    if scores.dtype.kind != "f":
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{input.dtype.word}'. Call .float() first.")
    classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None:
        check_weight(weight, input, classes)
    counted = None                                                    # which targets count; None is all of them, the usual case
    # Seen as unsigned a negative target is huge: one pass over the targets finds both ends.
    if type(y) is not np.ndarray:                                     # a device says later what it was given (see backend.bounds)
        counted = y != ignore_index
        within(function, namespace_of[type(y)].where(counted, y, 0), 0, classes - 1, lambda wrong: out_of_classes(wrong, classes))
    elif y.size and ((y.view(np.uint64) if y.itemsize == 8 else y).max() >= classes or 0 <= ignore_index < classes):
        counted = y != ignore_index
        if bool((wrong := ((y < 0) | (y >= classes)) & counted).any()):
            raise out_of_classes(int(y[wrong][0]), classes)
        counted = None if bool(counted.all()) else counted
    xp = namespace_of[type(scores)]
    if counted is not None:
        y = xp.where(counted, y, 0)
    if len(shape) == 2:
        at = xp.arange(0, scores.size, max(classes, 1))
        at += y
    else:                                                             # (N, C, d): (n C + y) D + d, D being what lies behind C
        behind = 1
        for n in shape[2:]:
            behind *= n
        at = y * behind + (xp.arange(0, scores.size, classes * behind).reshape((-1,) + (1,) * (len(shape) - 2)) + xp.arange(
            behind).reshape(shape[2:]) if len(shape) > 1 else 0)
    weights = None if weight is None else weight.array[y]
    if counted is not None:
        if reduction == "none" or xp is not np:                       # (how many count, a device does not say without a wait)
            weights = xp.where(counted, 1 if weights is None else weights, 0).astype(scores.dtype)
        else:
            at, weights = at[counted], None if weights is None else weights[counted]
    total = divisor(reduction, at.size if weights is None or reduction != "mean" else weights.sum())
    if len(shape) <= 2:
        return rules.nll_loss.record(input, shape=shape, at=at, weights=weights, total=total)
    loss = rules.nll_loss_2d.record(input, shape=shape, at=at, weights=weights, total=total)
    return loss if total is not None or len(shape) == 4 else shapes.reshape.record(loss, shape=loss.array.shape)


def out_of_classes(target: int, classes: int) -> IndexError:
    return IndexError(f"Target {target} is out of bounds. There are {classes} classes: targets are 0 to {classes - 1}.")


def fitting_target(shape: tuple[int, ...], y: Any) -> Any:
    """The target of scores of a shape, or torch's error if it does not fit."""
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) <= 2 and y.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported. It has shape {list(y.shape)}; class "
                           "indices have one axis less than the scores.")
    if len(shape) == 1:
        if y.size != 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {y.size}")
        return y.reshape(())
    expected = shape[:1] + shape[2:]
    if y.shape[:1] != shape[:1]:
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({y.shape[0] if y.ndim else 0}).")
    if y.shape != expected:
        if len(shape) == 4 and y.ndim == 3:
            raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(y.shape)}")
        if len(shape) == 4:
            raise RuntimeError("only batches of spatial targets supported (3D tensors) but got targets of dimension: "
                               f"{y.ndim}")
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(y.shape)}")
    return y


def check_weight(weight: Tensor, input: Tensor, classes: int, function: str = "") -> None:
    """Raise unless there is a weight, of the scores' dtype, for each class."""
    if weight.array.shape != (classes,):
        raise RuntimeError(f"{function}weight tensor should be defined either for all {classes} classes or no classes but got "
                           f"weight tensor of shape: {list(weight.array.shape)}")
    if not function:
        fixed("nll_loss_forward", weight=weight)
        if weight.array.dtype != input.array.dtype:
            raise RuntimeError(f"expected scalar type {input.dtype.word} but found {weight.dtype.word}. Call "
                               "weight.to(input.dtype).")


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
                  ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                  label_smoothing: float = 0.0) -> Tensor:
    """The negative log likelihood of softmax(input): input (N, C) unnormalised scores, (C), or (N, C, d₁, …); target (N)
    class indices (int64), () or (N, d₁, …), or class probabilities of the input's shape."""
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = settled(reduction, size_average, reduce)
    if type(target) is Tensor and target.array.shape == input.array.shape:
        return of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    axis = 0 if input.array.ndim == 1 else 1
    log_probabilities = log_softmax(input, axis)
    if not label_smoothing:
        return picked(log_probabilities, target, weight, ignore_index, reduction, "cross_entropy_loss")
    check_smoothing(label_smoothing)
    plain = picked(log_probabilities, target, weight, ignore_index, reduction, "cross_entropy_loss")
    terms = log_probabilities if weight is None else log_probabilities * along(weight, input)
    smooth, y = -terms.sum(axis), target.array
    if input.array.ndim == 1:
        y = y.reshape(())
    counted = y != ignore_index
    if type(y) is not np.ndarray or not counted.all():
        smooth = where(constant(wrap(counted)), smooth, 0.0)
    if reduction == "mean":
        xp = namespace_of[type(y)]
        total = counted.sum() if weight is None else xp.where(counted, weight.array[xp.where(counted, y, 0)], 0).sum()
        smooth = smooth.sum() / constant(wrap(total))
    elif reduction == "sum":
        smooth = smooth.sum()
    return plain * (1 - label_smoothing) + smooth * (label_smoothing / input.array.shape[axis])


def check_smoothing(label_smoothing: float) -> None:
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")


def of_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
                     label_smoothing: float) -> Tensor:
    """Cross entropy with class probabilities as targets."""
    if target.array.dtype.kind != "f":
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype.word}. A target "
                           "of the input's shape holds probabilities; class indices have one axis less.")
    check_smoothing(label_smoothing)
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = 0 if input.array.ndim == 1 else 1
    if weight is not None:
        check_weight(weight, input, input.array.shape[axis], "cross_entropy: ")
    classes = input.array.shape[axis]
    log_probabilities = log_softmax(input, axis)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = log_probabilities * target if weight is None else log_probabilities * target * along(weight, input)
    if reduction == "none":
        return -terms.sum(axis)
    loss = -terms.sum()
    return DIV_BY_COUNT.record(loss, input.array.size // max(classes, 1)) if reduction == "mean" else loss


def along(weight: Tensor, input: Tensor) -> Tensor:
    """Weights of the classes, shaped to multiply scores."""
    return weight.reshape(-1, *[1] * (input.array.ndim - 2)) if input.array.ndim > 2 else weight


# ----------------------------------------------------------------------------------------------------------- distributions
def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
           log_target: bool = False) -> Tensor:
    """q (log q - x) of log-probabilities x and probabilities q (or, with `log_target`, log q).

    The divergence is the sum of these, divided by the batch's size: reduction="batchmean"."""
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    elif reduction == "mean":
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
                      "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
                      "same as 'batchmean' in the next major release.", UserWarning, stacklevel=2)
    per_batch = reduction == "batchmean"
    reduction = "sum" if per_batch else settled(reduction)
    if input.array.dtype.kind != "f" or target.array.dtype.kind != "f":
        raise RuntimeError("kl_div: Integral inputs not supported. Call .float() first.")
    loss = reduced(exp(target) * (target - input) if log_target else xlogy(target, target) - target * input, reduction)
    return loss / input.array.shape[0] if per_batch and input.array.ndim else loss


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
                     eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """eˣ - y x, or x - y log(x + eps) without `log_input`; `full` adds Stirling's formula for log y! where y > 1."""
    reduction = settled(reduction, size_average, reduce)
    loss = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        loss = loss + where(target <= 1, 0.0, target * log(target) - target + 0.5 * log(2 * pi * target))
    return reduced(loss, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6,
                      reduction: str = "mean") -> Tensor:
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
    var = clone(var)                                                         # its gradient passes where it is raised, as in torch
    var.array = namespace_of[type(var.array)].maximum(var.array, eps)
    loss = 0.5 * (log(var) + (input - target) ** 2 / var)
    return reduced(loss + 0.5 * log_of(2 * pi) if full else loss, reduction)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """Not supported."""
    raise NotImplementedError("ctc_loss is not supported: gradlab has no connectionist temporal classification.")

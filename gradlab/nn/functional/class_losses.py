"""Losses for multi-class classification, with class indices or class probabilities as targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.devices import different_devices
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.losses import DIV_BY_COUNT, REDUCTIONS, divisor, refuse_gradients, resolve_reduction
from gradlab.ops import log_softmax, where
from gradlab.ops.arguments import check_tensors
from gradlab.rules import losses as rules
from gradlab.rules import shapes

__all__ = ["cross_entropy", "nll_loss"]


@with_descriptions
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the negative log likelihood of the target classes.

    Parameters
    ----------
    input : Tensor
        The log-probabilities: (N, C), (C), or (N, C, d₁, …).
    target : Tensor
        The target classes, int64 or uint8: (N), (), or (N, d₁, …).
    {class_weight}
    {ignore_index}
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each target.

    Raises
    ------
    TypeError
        If `target` is not a Tensor.
    ValueError
        If the shapes do not fit, or `reduction` is not one of the three.
    RuntimeError
        If `target` is neither int64 nor uint8, its shape does not fit, or `weight` does not have one element for each class.
    IndexError
        If a target is not a class index.
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    .. math:: \ell_n = -w_{y_n} x_{n, y_n}

    The mean is the sum divided by Σ w over the targets that are not ignored.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> log_p = gl.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
    >>> F.nll_loss(log_p, gl.tensor([1, 0]), reduction="none")
    tensor([0.2877, 0.6931])
    """
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = resolve_reduction(reduction, size_average, reduce)
    return nll_of_indices(input, target, weight, ignore_index, reduction, "nll_loss_nd")


# The common case, the mean over one axis of class indices without weights, takes the shortest path through this function.
def nll_of_indices(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, function: str
) -> Tensor:
    if type(target) is not Tensor:
        raise TypeError(f"{function}(): argument 'target' (position 2) must be Tensor, not {type(target).__name__}")
    scores, y = input.array, target.array
    shape = scores.shape
    if type(y) is not type(scores):
        raise different_devices(function, (scores, y))
    if y.shape != shape[:1] or len(shape) != 2:
        y = fit_target(shape, y)
    if y.dtype.char != "l" and y.dtype not in (np.int64, np.uint8):
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.word}. The target holds class "
            "indices: call target.long()."
        )
    if scores.dtype.kind != "f":
        raise NotImplementedError(f"\"nll_loss_out_frame\" not implemented for '{input.dtype.word}'. Call .float() first.")
    classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None:
        check_weight(weight, input, classes)
    counted = None  # which targets are not ignored; None for all, the usual case
    # A negative target is huge if read as unsigned, so one maximum checks both bounds.
    if type(y) is not np.ndarray:  # devices check later (see backend.bounds)
        counted = y != ignore_index
        check_bounds(
            function,
            namespace_of[type(y)].where(counted, y, 0),
            0,
            classes - 1,
            lambda wrong: target_out_of_bounds(wrong, classes),
        )
    elif y.size and ((y.view(np.uint64) if y.itemsize == 8 else y).max() >= classes or 0 <= ignore_index < classes):
        counted = y != ignore_index
        if bool((wrong := ((y < 0) | (y >= classes)) & counted).any()):
            raise target_out_of_bounds(int(y[wrong][0]), classes)
        counted = None if bool(counted.all()) else counted
    xp = namespace_of[type(scores)]
    if counted is not None:
        y = xp.where(counted, y, 0)
    if len(shape) == 2:
        at = xp.arange(0, scores.size, max(classes, 1))
        at += y
    else:  # (N, C, d): (n C + y) D + d, D being the product of the axes after C
        behind = 1
        for n in shape[2:]:
            behind *= n
        at = y * behind + (
            xp.arange(0, scores.size, classes * behind).reshape((-1,) + (1,) * (len(shape) - 2))
            + xp.arange(behind).reshape(shape[2:])
            if len(shape) > 1
            else 0
        )
    weights = None if weight is None else weight.array[y]
    if counted is not None:
        if reduction == "none" or xp is not np:  # (counting on a device would wait for it)
            weights = xp.where(counted, 1 if weights is None else weights, 0).astype(scores.dtype)
        else:
            at, weights = at[counted], None if weights is None else weights[counted]
    total = divisor(reduction, at.size if weights is None or reduction != "mean" else weights.sum())
    if len(shape) <= 2:
        return rules.nll_loss.record(input, shape=shape, at=at, weights=weights, total=total)
    loss = rules.nll_loss_2d.record(input, shape=shape, at=at, weights=weights, total=total)
    return loss if total is not None or len(shape) == 4 else shapes.reshape.record(loss, shape=loss.array.shape)


def target_out_of_bounds(target: int, classes: int) -> IndexError:
    return IndexError(f"Target {target} is out of bounds. There are {classes} classes: targets are 0 to {classes - 1}.")


def fit_target(shape: tuple[int, ...], y: Any) -> Any:
    """Return the target for scores of a shape. Raise PyTorch's error if it does not fit."""
    if not shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if len(shape) <= 2 and y.ndim > 1:
        raise RuntimeError(
            f"0D or 1D target tensor expected, multi-target not supported. Its shape is {list(y.shape)}. Class "
            "indices have one axis less than the scores."
        )
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
            raise RuntimeError(f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {y.ndim}")
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(y.shape)}")
    return y


def check_weight(weight: Tensor, input: Tensor, classes: int, function: str = "") -> None:
    """Raise unless `weight` has one element for each class and the dtype of the scores."""
    if weight.array.shape != (classes,):
        raise RuntimeError(
            f"{function}weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.array.shape)}"
        )
    if not function:
        refuse_gradients("nll_loss_forward", weight=weight)
        if weight.array.dtype != input.array.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.word} but found {weight.dtype.word}. Call weight.to(input.dtype)."
            )


@with_descriptions
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Compute the cross entropy of the softmax of scores, for target classes or class probabilities.

    Parameters
    ----------
    input : Tensor
        The scores, unnormalised: (N, C), (C), or (N, C, d₁, …).
    target : Tensor
        The target classes, int64 or uint8: (N), (), or (N, d₁, …); or a probability for each class, of the shape of `input`.
    {class_weight}
    {ignore_index}
    {averaging}
    {reduction}
    label_smoothing : float, default: 0.0
        The part of each target, from 0 to 1, that is distributed equally over all classes.

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each target.

    Raises
    ------
    TypeError
        If `target` is not a Tensor.
    ValueError
        If the shapes do not fit, or `reduction` is not one of the three.
    RuntimeError
        If `target` holds neither class indices nor floating-point probabilities, its shape does not fit, `weight` does not have
        one element for each class, `label_smoothing` is not between 0 and 1, or `ignore_index` is given with probabilities.
    IndexError
        If a target is not a class index.
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    .. math:: \ell_n = -w_{y_n} \log \operatorname{softmax}(x_n)_{y_n}

    Without weights, the derivative with respect to the scores is softmax(x), minus 1 at the target class. Do not apply a softmax
    first: this function does.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[0.0, 0.0]], requires_grad=True)
    >>> F.cross_entropy(x, gl.tensor([1])).backward()
    >>> x.grad
    tensor([[ 0.5000, -0.5000]])
    """
    check_tensors("cross_entropy_loss", input=input, target=target)
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = resolve_reduction(reduction, size_average, reduce)
    if type(target) is Tensor and target.array.shape == input.array.shape:
        return cross_entropy_of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    axis = 0 if input.array.ndim == 1 else 1
    log_probabilities = log_softmax(input, axis)
    if not label_smoothing:
        return nll_of_indices(log_probabilities, target, weight, ignore_index, reduction, "cross_entropy_loss")
    check_smoothing(label_smoothing)
    plain = nll_of_indices(log_probabilities, target, weight, ignore_index, reduction, "cross_entropy_loss")
    terms = log_probabilities if weight is None else log_probabilities * reshape_weight(weight, input)
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


def cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    """Compute the cross entropy with class probabilities as targets."""
    if target.array.dtype.kind != "f":
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.word}. A target "
            "of the input's shape holds probabilities. Class indices have one axis less."
        )
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
    terms = log_probabilities * target if weight is None else log_probabilities * target * reshape_weight(weight, input)
    if reduction == "none":
        return -terms.sum(axis)
    loss = -terms.sum()
    return DIV_BY_COUNT.record(loss, input.array.size // max(classes, 1)) if reduction == "mean" else loss


def reshape_weight(weight: Tensor, input: Tensor) -> Tensor:
    """Reshape the weights of the classes to multiply scores."""
    return weight.reshape(-1, *[1] * (input.array.ndim - 2)) if input.array.ndim > 2 else weight

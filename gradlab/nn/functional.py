"""Activations, layers and losses as functions of tensors, as `torch.nn.functional` spells them."""
from __future__ import annotations

import warnings
from math import prod

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.tensor import Tensor, constant
from gradlab.functions import log_softmax, matmul, relu, reshape, sigmoid, softmax, t, tanh, where
from gradlab.rules.matrix import addmm
from gradlab.rules.softmax import nll_loss as picked_loss
from gradlab.rules.softmax import nll_loss_2d

__all__ = ["cross_entropy", "linear", "log_softmax", "mse_loss", "nll_loss", "one_hot", "relu", "sigmoid", "softmax", "tanh"]


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """input @ weight.T + bias: input (…, in), weight (out, in), bias (out)."""
    if bias is None or weight.array.ndim != 2 or bias.array.shape != weight.array.shape[:1]:
        product = matmul(input, t(weight))
        return product if bias is None else product + bias
    if not input.array.dtype == weight.array.dtype == bias.array.dtype:
        raise RuntimeError(f"mat1, mat2 and bias must have the same dtype, but got {input.dtype.word}, {weight.dtype.word} and "
                           f"{bias.dtype.word}. Convert one of them: x.float(), x.to(weight.dtype).")
    if input.array.ndim == 2:
        return addmm.record(bias, input, t(weight))
    shape = input.array.shape
    rows = addmm.record(bias, reshape(input, prod(shape[:-1]), shape[-1]), t(weight))
    return reshape(rows, *shape[:-1], bias.array.shape[0])


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The squared differences: their mean, their sum, or (reduction="none") themselves."""
    check_reduction(reduction)
    if input.array.shape != target.array.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely lead to "
            "incorrect results due to broadcasting. Please ensure they have the same size.", UserWarning, stacklevel=2)
    squares = (input - target) ** 2
    return squares.mean() if reduction == "mean" else squares.sum() if reduction == "sum" else squares


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """int64 tensor of shape (…, num_classes): 1 at each class, 0 elsewhere."""
    classes = tensor.array
    if classes.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor. Call .long() first.")
    if not classes.size and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor. Give num_classes.")
    if classes.size and int(classes.min()) < 0:
        raise RuntimeError(f"Class values must be non-negative. The smallest is {int(classes.min())}.")
    n = int(classes.max()) + 1 if num_classes == -1 else num_classes
    if classes.size and int(classes.max()) >= n:
        raise RuntimeError(f"Class values must be smaller than num_classes. The largest is {int(classes.max())} of {n}.")
    return constant((classes[..., None] == namespace_of[type(classes)].arange(n)).astype(np.int64))


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """-weight[y] · input[…, y]: the negative log likelihood of log-probabilities.

    input (N, C) or (C), or (N, C, d₁, …) with target (N, d₁, …); target int64. The mean is weighted by `weight`;
    targets equal to `ignore_index` do not count.
    """
    check_reduction(reduction)
    scores, y, axis = input.array, target.array, class_axis(input)
    expected = scores.shape[:axis] + scores.shape[axis + 1:]
    if y.shape != expected:
        if scores.ndim == 1:
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {y.size}")
        if y.shape[:1] != expected[:1]:
            raise ValueError(f"Expected input batch_size ({expected[0]}) to match target batch_size "
                             f"({y.shape[0] if y.ndim else 0}).")
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(y.shape)}")
    if y.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.word}. The target holds class "
                           "indices: call target.long().")
    classes, xp = scores.shape[axis], namespace_of[type(scores)]
    check_weight(weight, input)
    counted = None                                                    # which targets count; None is all of them, the usual case
    if y.size and (int(y.min()) < 0 or int(y.max()) >= classes or 0 <= ignore_index < classes):
        counted = y != ignore_index
        if bool((wrong := ((y < 0) | (y >= classes)) & counted).any()):
            raise IndexError(f"Target {int(y[wrong][0])} is out of bounds. There are {classes} classes: targets are 0 to "
                             f"{classes - 1}.")
        counted = None if bool(counted.all()) else counted
    index = [xp.arange(y.size)] if y.ndim == 1 else list(xp.meshgrid(*map(xp.arange, y.shape), indexing="ij")) if y.ndim else []
    if counted is None:
        index.insert(axis, y)
    elif reduction == "none":
        index.insert(axis, xp.where(counted, y, 0))
    else:
        index = [i[counted] for i in index]
        index.insert(axis, y[counted])
    at = index[axis]
    weights = xp.ones(at.shape, dtype=scores.dtype) if weight is None else weight.array[at]
    if reduction == "none" and counted is not None:
        weights = xp.where(counted, weights, 0).astype(scores.dtype)
    total = None if reduction == "none" else 1.0 if reduction == "sum" else float(at.size) if weight is None else weights.sum()
    op = picked_loss if scores.ndim <= 2 else nll_loss_2d
    return op.record(input, index=tuple(index), weights=weights, total=total)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """The negative log likelihood of softmax(input): input (N, C) unnormalised scores, (C), or (N, C, d₁, …); target (N)
    class indices (int64), () or (N, d₁, …), or class probabilities of the input's shape."""
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = class_axis(input)
    if target.array.shape == input.array.shape:
        return _of_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    log_probabilities = log_softmax(input, axis)
    plain = nll_loss(log_probabilities, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return plain
    weighted = log_probabilities if weight is None else log_probabilities * along(weight, input)
    counted = target.array != ignore_index
    smooth = where(constant(counted), -weighted.sum(axis), 0.0)
    if reduction == "mean":
        total = counted.sum() if weight is None else weight.array[target.array[counted]].sum()
        smooth = smooth.sum() / constant(wrap(total))
    elif reduction == "sum":
        smooth = smooth.sum()
    return (1 - label_smoothing) * plain + label_smoothing / input.array.shape[axis] * smooth


def _of_probabilities(input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str,
                      label_smoothing: float) -> Tensor:
    if target.array.dtype.kind != "f":
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {target.dtype.word}. (A "
                           "target of the input's shape holds probabilities; class indices have one axis less.)")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = class_axis(input)
    check_weight(weight, input)
    classes = input.array.shape[axis]
    log_probabilities = log_softmax(input, axis)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    terms = log_probabilities * target if weight is None else log_probabilities * target * along(weight, input)
    if reduction == "none":
        return -terms.sum(axis)
    loss = -terms.sum()
    return loss / (input.array.size / classes) if reduction == "mean" else loss


def check_reduction(reduction: str) -> None:
    """Raise unless it is one of the three."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction: it is 'mean', 'sum' or 'none'.")


def class_axis(input: Tensor) -> int:
    """Which axis of the scores counts the classes: the second, if there is one."""
    return 0 if input.array.ndim == 1 else 1


def check_weight(weight: Tensor | None, input: Tensor) -> None:
    """Raise unless there is a weight, of the scores' dtype, for each class (or none at all)."""
    classes = input.array.shape[class_axis(input)]
    if weight is not None and weight.array.shape != (classes,):
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight "
                           f"tensor of shape: {list(weight.array.shape)}")
    if weight is not None and weight.array.dtype != input.array.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.word} but found {weight.dtype.word}. Call weight.to(input.dtype).")


def along(weight: Tensor, input: Tensor) -> Tensor:
    """Weights of the classes, shaped to multiply scores."""
    return weight.reshape(-1, *[1] * (input.array.ndim - class_axis(input) - 1))

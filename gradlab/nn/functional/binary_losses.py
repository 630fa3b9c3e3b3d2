"""Losses of scores or probabilities of two classes, or of several each of which may apply."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.core.errors import Size, broadcast_mismatch, not_implemented
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import described
from gradlab.nn.functional.losses import REDUCTIONS, broadcast, divisor, fixed, reduced, settled
from gradlab.nn.functional.smooth_activations import logsigmoid
from gradlab.ops.arguments import check_tensors
from gradlab.ops.copies import cast
from gradlab.rules import losses as rules

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "multilabel_soft_margin_loss",
    "soft_margin_loss",
]


# ------------------------------------------------------------------------------------------------------------- two classes
@described
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""The cross entropy of probabilities of a class against targets from 0 to 1.

    Parameters
    ----------
    input : Tensor
        The probabilities, of any shape, from 0 to 1.
    target : Tensor
        The targets, of the shape and dtype of `input`, from 0 to 1.
    weight : Tensor, optional
        A factor for each term, of a shape that broadcasts to that of `input`. The mean is over the terms.
    {averaging}
    {reduction}

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is none of the three.
    RuntimeError
        If the dtypes differ, an element is not from 0 to 1, or `weight` does not broadcast or requires a gradient.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = -(y \log p + (1 - y) \log(1 - p))

    The logarithms count as at least -100. With scores in place of probabilities, `binary_cross_entropy_with_logits` is exact.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.binary_cross_entropy(gl.tensor([0.5, 1.0]), gl.tensor([1.0, 1.0]), reduction="none")
    tensor([0.6931, -0.0000])
    """
    check_tensors("binary_cross_entropy", input=input, target=target)
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
            check_bounds("binary_cross_entropy", x, 0, 1, partial(outside_unit_interval, name, hint))
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


@described
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    r"""`binary_cross_entropy` of the sigmoid of scores, computed without overflow.

    Parameters
    ----------
    input : Tensor
        The scores, of any shape.
    target : Tensor
        The targets, of the shape of `input`, floating point, from 0 to 1.
    weight : Tensor, optional
        A factor for each term, of a shape that broadcasts to that of `input`. The mean is over the terms.
    {averaging}
    {reduction}
    pos_weight : Tensor, optional
        A factor of the terms of y = 1, of a shape that broadcasts to that of `input`.

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is none of the three.
    RuntimeError
        If `target` is not floating point, or a weight does not broadcast or requires a gradient.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = -(w y \log \sigma(x) + (1 - y) \log \sigma(-x))

    w being `pos_weight`. The derivative by x, without it, is σ(x) - y.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([0.0, 100.0], requires_grad=True)
    >>> F.binary_cross_entropy_with_logits(x, gl.tensor([1.0, 0.0]), reduction="sum").backward()
    >>> x.grad
    tensor([-0.5000,  1.0000])
    """
    check_tensors("binary_cross_entropy_with_logits", input=input, target=target)
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


@described
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    r"""The logistic loss of scores against 1 and -1.

    Parameters
    ----------
    input : Tensor
        The scores, of any shape, floating point.
    target : Tensor
        1 or -1 for each, of a shape that broadcasts with that of `input`.
    {averaging}
    {reduction}

    Returns
    -------
    {loss}

    Raises
    ------
    {not_a_reduction}
    RuntimeError
        If `target` requires a gradient, or the shapes do not broadcast.
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    .. math:: \ell = \log(1 + e^{-y x})

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.soft_margin_loss(gl.tensor([0.0, 5.0]), gl.tensor([1.0, -1.0]), reduction="none")
    tensor([0.6931, 5.0067])
    """
    check_tensors("soft_margin_loss", input=input, target=target)
    reduction = settled(reduction, size_average, reduce)
    fixed("soft_margin_loss", target=target)
    if input.array.dtype.kind != "f":
        raise not_implemented("exp_vml", input.dtype)
    input, target = broadcast(input, cast(target, input.dtype))
    return rules.soft_margin_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


@described
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""The mean, over classes each of which may apply, of the cross entropies of their scores.

    Parameters
    ----------
    input : Tensor
        The scores, (…, C), floating point.
    target : Tensor
        0 or 1 for each, of the shape of `input`.
    weight : Tensor, optional
        A factor for each class, (C).
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A number; with `reduction="none"` one for each sample, the shape of `input` without its last dimension.

    Raises
    ------
    {not_a_reduction}
    NotImplementedError
        If `input` holds integers or bools.

    Notes
    -----
    .. math:: \ell = -\frac{1}{C} \sum_c w_c \left(y_c \log \sigma(x_c) + (1 - y_c) \log \sigma(-x_c)\right)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.multilabel_soft_margin_loss(gl.tensor([[0.0, 5.0]]), gl.tensor([[1.0, 1.0]]))
    tensor(0.3499)
    """
    if size_average is not None or reduce is not None:
        reduction = settled(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.array.ndim - 1) / input.array.shape[-1]
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid. The reduction is 'mean', 'sum' or 'none'.")
    return reduced(loss, reduction)

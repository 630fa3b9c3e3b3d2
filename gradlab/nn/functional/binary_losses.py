"""Losses for binary and multi-label classification."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from gradlab.backend.bounds import check_bounds
from gradlab.core.errors import Size, broadcast_mismatch, not_implemented
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.losses import REDUCTIONS, broadcast, divisor, reduce_loss, refuse_gradients, resolve_reduction
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
@with_descriptions
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Compute the binary cross entropy of probabilities.

    Parameters
    ----------
    input : Tensor
        The probabilities, of any shape, from 0 to 1.
    target : Tensor
        The targets, of the shape and dtype of `input`, from 0 to 1.
    weight : Tensor, optional
        A weight for each term, of a shape that broadcasts to that of `input`. The mean is over the terms.
    {averaging}
    {reduction}

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is not one of the three.
    RuntimeError
        If the dtypes differ, an element is not between 0 and 1, or `weight` does not broadcast or requires a gradient.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = -(y \log p + (1 - y) \log(1 - p))

    Logarithms are clamped to at least -100. `binary_cross_entropy_with_logits` takes scores and needs no clamping.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.binary_cross_entropy(gl.tensor([0.5, 1.0]), gl.tensor([1.0, 1.0]), reduction="none")
    tensor([0.6931, -0.0000])
    """
    check_tensors("binary_cross_entropy", input=input, target=target)
    reduction = resolve_reduction(reduction, size_average, reduce)
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
            hint = " Apply a sigmoid first, or use binary_cross_entropy_with_logits." if name == "input" else ""
            check_bounds("binary_cross_entropy", x, 0, 1, partial(outside_unit_interval, name, hint))
    return rules.binary_cross_entropy.record(
        input, target, weight=None if weight is None else weight.array, parameter=None, total=divisor(reduction, input.array.size)
    )


def outside_unit_interval(name: str, hint: str, wrong: Any) -> RuntimeError:
    return RuntimeError(f"all elements of {name} should be between 0 and 1.{hint}")


ONE = {2: (np.uint16, 0x3C00), 4: (np.uint32, 0x3F800000), 8: (np.uint64, 0x3FF0000000000000)}  # the bits of 1.0


def leaves_unit_interval(x: Any) -> bool:
    """Return True if some element is not between 0 and 1.

    Read as integers, the bits of numbers from 0 to 1 are at most those of 1.0, so one maximum is enough. Only if it is larger (a
    negative number, possibly -0.0, or NaN), the elements are compared.
    """
    bits, one = ONE[x.itemsize]
    return bool(x.view(bits).max() > one) and not (x.min() >= 0 and x.max() <= 1)


@with_descriptions
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    r"""Compute the binary cross entropy of scores (logits) without overflow.

    Parameters
    ----------
    input : Tensor
        The scores, of any shape.
    target : Tensor
        The targets, of the shape of `input`, floating point, from 0 to 1.
    weight : Tensor, optional
        A weight for each term, of a shape that broadcasts to that of `input`. The mean is over the terms.
    {averaging}
    {reduction}
    pos_weight : Tensor, optional
        A factor of the terms with y = 1, of a shape that broadcasts to that of `input`.

    Returns
    -------
    {loss}

    Raises
    ------
    ValueError
        If the shapes differ, or `reduction` is not one of the three.
    RuntimeError
        If `target` is not floating point, or a weight does not broadcast or requires a gradient.
    NotImplementedError
        If both hold integers or bools.

    Notes
    -----
    .. math:: \ell = -(w y \log \sigma(x) + (1 - y) \log \sigma(-x))

    where w is `pos_weight`. Without it, the derivative with respect to x is σ(x) - y.

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
    reduction = resolve_reduction(reduction, size_average, reduce)
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
    """Cast a weight to the dtype of the input. Raise if it does not broadcast to the input's shape."""
    refuse_gradients(function, **{name: weight})
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


@with_descriptions
def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    r"""Compute the logistic loss of scores for targets 1 and -1.

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
    reduction = resolve_reduction(reduction, size_average, reduce)
    refuse_gradients("soft_margin_loss", target=target)
    if input.array.dtype.kind != "f":
        raise not_implemented("exp_vml", input.dtype)
    input, target = broadcast(input, cast(target, input.dtype))
    return rules.soft_margin_loss.record(input, target, weight=None, parameter=None, total=divisor(reduction, input.array.size))


@with_descriptions
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""Average the binary cross entropies of the scores over the classes (multi-label classification).

    Parameters
    ----------
    input : Tensor
        The scores, (…, C), floating point.
    target : Tensor
        0 or 1 for each, of the shape of `input`.
    weight : Tensor, optional
        A weight for each class, (C).
    {averaging}
    {reduction}

    Returns
    -------
    Tensor
        A scalar, or with `reduction="none"` one number for each sample, the shape of `input` without its last dimension.

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
        reduction = resolve_reduction(reduction, size_average, reduce)
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    loss = loss.sum(dim=input.array.ndim - 1) / input.array.shape[-1]
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid. Use 'mean', 'sum' or 'none'.")
    return reduce_loss(loss, reduction)

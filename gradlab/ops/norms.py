"""Vector norms over axes, and operations based on them: `dist` and `renorm`."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.operator import composite
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors, negative_dim, negative_dims, takes_axis
from gradlab.ops.copies import cast, compute_in_float32
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules

__all__ = ["dist", "renorm"]


def vector_norm(
    input: Tensor,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    op: Any = rules.vector_norm,
) -> Tensor:
    """Compute the p-norm (Σ |x|ᵖ)^(1/p) over the axes `dim`, all by default.

    `ord` is any real number p. For 0, the result is the number of nonzero elements; for inf and -inf, the largest and the
    smallest magnitude.
    """
    if input.array.dtype.kind != "f":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.word}. Call .float() first."
        )
    if dtype is not None:
        input = cast(input, dtype)
    shape = input.array.shape
    axis = negative_dims(dim, len(shape))
    if (ord < 0 or ord == inf) and not rules.count_reduced(shape, axis):
        which = next((a + len(shape) for a in axis if not shape[a]), 0)
        where = "an empty tensor because" if dim is None else f"the dimension {which}because this dimension is empty and"
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {where} the operation does not have an identity")
    return op.record(input, axis=axis, keepdims=keepdim, order=int(ord) if ord == ord // 1 and -inf < ord < inf else ord)


@composite()
@takes_axis
def dist(input: Tensor, other: Tensor, p: float = 2, *, out: Tensor | None = None) -> Tensor:
    """Compute the p-norm of input - other.

    Parameters
    ----------
    {input}
    {other}
    p : number, default: 2
        Order of the norm: any real number, inf for the largest magnitude, or -inf for the smallest.
    {out}

    Returns
    -------
    Tensor
        0-d, common dtype of the operands.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the operands are not floating point, or if their shapes do not broadcast.

    Notes
    -----
    If the distance is 0, the gradient is taken as 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.dist(gl.tensor([0., 0.]), gl.tensor([3., 4.]))
    tensor(5.)
    """
    check_tensors("dist", input=input, other=other)
    return vector_norm(el.sub.record(input, other), p, op=rules.distance)


@composite(inplace="method")
@takes_axis
def renorm(input: Tensor, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
    """Scale slices along a dimension down to the norm `maxnorm` if their norm is larger.

    Parameters
    ----------
    input : Tensor
        Floating point tensor with at least two dimensions.
    p : number
        Order of the norm, positive.
    dim : int
        Dimension along which the slices are taken. `axis` is an alias.
    maxnorm : number
        Largest norm of a slice.
    {out}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    {no_tensor}
    {no_axis}
    RuntimeError
        If `input` has fewer than two dimensions or is not floating point, or if `p` is not positive.

    Notes
    -----
    A slice with a norm n > maxnorm is multiplied by maxnorm / (n + 1e-7).

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.renorm(gl.tensor([[3., 4.], [0.3, 0.4]]), p=2, dim=0, maxnorm=1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    ndim = input.array.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if input.array.dtype.char == "e":
        return compute_in_float32(renorm, input, p, dim, maxnorm)
    axis = negative_dim(dim, ndim)
    norms = vector_norm(input, p, [a for a in range(-ndim, 0) if a != axis], True)
    scale = el.where.record(constant(norms.array > maxnorm), maxnorm / (norms + 1e-7), constant(np.ones((), input.array.dtype)))
    return RENORM.record(input, scale)


RENORM = el.mul.with_node("RenormBackward0")

"""Distances and similarities of vectors, with the names of `torch.nn.functional`."""

from __future__ import annotations

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import broadcast_mismatch
from gradlab.core.out_argument import copy_to_out
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.toplevel import norm
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.ops import clone, div
from gradlab.ops.arguments import FunctionInfo, check_tensors, negative_dim, not_a_tensor
from gradlab.ops.broadcasting import expand
from gradlab.ops.shapes import unsqueeze
from gradlab.rules import distances as rules
from gradlab.rules import elementwise as el
from gradlab.rules import reductions, shapes

__all__ = ["cosine_similarity", "normalize", "pairwise_distance", "pdist"]

NORM = reductions.vector_norm.with_node("NormBackward1")
PDIST = reductions.vector_norm.with_node("PdistBackward0")
EUCLIDEAN = rules.cdist.with_node("EuclideanDistBackward0")
CLAMP_MIN = el.where.with_node("ClampMinBackward0")
CDIST = reductions.vector_norm.with_node("CdistBackward0")


@with_descriptions
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    r"""Divide vectors by their norms.

    Parameters
    ----------
    input : Tensor
        The vectors, floating point.
    p : float, default: 2.0
        Order of the norm.
    dim : int or tuple of ints, default: 1
        Dimension of the vectors.
    eps : float, default: 1e-12
        Lower bound of the norm. A vector of zeros remains zero.
    {out}

    Returns
    -------
    {same}

    Raises
    ------
    RuntimeError
        If `input` holds integers or bools.
    IndexError
        If `input` has no dimension `dim`.

    Notes
    -----
    .. math:: y = x / \max(\|x\|_p, \epsilon)

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.normalize(gl.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6000, 0.8000],
            [0.0000, 0.0000]])
    """
    lengths = norm(input, p, dim, keepdim=True)
    unit = div(input, expand(clamp_min(lengths, eps), input.array.shape))
    return unit if out is None else copy_to_out("div", out, unit)


def clamp_min(x: Tensor, low: float) -> Tensor:
    """Return max(x, low). Where they are equal, x receives the gradient."""
    return CLAMP_MIN.record(constant(wrap(~(x.array < low))), x, low)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""Compute the cosine of the angle between vectors.

    Parameters
    ----------
    x1 : Tensor
        The first vectors, floating point.
    x2 : Tensor
        The second, of a shape that broadcasts with that of `x1`.
    dim : int, default: 1
        Dimension of the vectors in the broadcast shape.
    eps : float, default: 1e-8
        Lower bound of each norm.

    Returns
    -------
    Tensor
        The broadcast shape without `dim`.

    Raises
    ------
    TypeError
        If an argument is not a Tensor.
    RuntimeError
        If the tensors hold integers or bools, or the shapes do not broadcast.
    IndexError
        If the broadcast shape has no dimension `dim`.

    Notes
    -----
    .. math:: y = \frac{x_1 \cdot x_2}{\max(|x_1|, \epsilon) \max(|x_2|, \epsilon)}

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.cosine_similarity(gl.tensor([[1.0, 0.0]]), gl.tensor([[1.0, 1.0], [0.0, 2.0]]))
    tensor([0.7071, 0.0000])
    """
    for position, (name, x) in enumerate((("x1", x1), ("x2", x2)), start=1):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"cosine_similarity(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}."
            )
    a, b = agree(FunctionInfo("cosine_similarity"), x1, x2)
    if a.array.dtype.kind != "f":
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {a.dtype.word}. Call .float() on both."
        )
    if error := broadcast_mismatch(a.array.shape, b.array.shape):
        raise error
    shape = np.broadcast_shapes(a.array.shape, b.array.shape)
    a, b = (x if x.array.shape == shape else expand(x, shape) for x in (a, b))
    axis = negative_dim(dim, len(shape))
    return (unit_vectors(a, axis, eps) * unit_vectors(b, axis, eps)).sum(axis)


def unit_vectors(x: Tensor, axis: int, eps: float) -> Tensor:
    """Divide x by its norm, at least eps. As in torch, the gradient ignores this bound."""
    length = clone(reductions.vector_norm.record(x, axis=(axis,) if x.array.ndim else (), keepdims=True, order=2.0))
    length.array = namespace_of[type(x.array)].maximum(length.array, eps)
    return div(x, length)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    r"""Compute the distances of corresponding vectors along the last dimension.

    Parameters
    ----------
    x1 : Tensor
        The first vectors, (…, d).
    x2 : Tensor
        The second, of a shape that broadcasts with that of `x1`.
    p : float, default: 2.0
        Order of the norm.
    eps : float, default: 1e-6
        Added to each difference, so that the norm is differentiable for equal vectors.
    keepdim : bool, default: False
        Keep the last dimension, with length 1.

    Returns
    -------
    Tensor
        The broadcast shape without its last dimension.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Notes
    -----
    .. math:: y = \|x_1 - x_2 + \epsilon\|_p

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.pairwise_distance(gl.tensor([[0.0, 0.0]]), gl.tensor([[3.0, 4.0]]))
    tensor([5.0000])
    """
    check_tensors("pairwise_distance", x1=x1, x2=x2)
    difference = x1 - x2 + eps
    return NORM.record(difference, axis=(-1,) if difference.array.ndim else (), keepdims=keepdim, order=float(p))


def pdist(input: Tensor, p: float = 2) -> Tensor:
    r"""Compute the distances of all pairs of rows of a matrix.

    Parameters
    ----------
    input : Tensor
        The matrix (n, d), floating point.
    p : float, default: 2
        Order of the norm, at least 0.

    Returns
    -------
    Tensor
        Shape (n (n - 1) / 2), in the order (0, 1), (0, 2) … (1, 2) …

    Raises
    ------
    RuntimeError
        If `input` does not have two dimensions, holds integers or bools, or `p` is negative.

    Notes
    -----
    .. math:: y_{ij} = \|x_i - x_j\|_p, \quad i < j

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.pdist(gl.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("pdist", input)
    if input.array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.array.ndim}D")
    check_order("pdist", input, p)
    xp = namespace_of[type(input.array)]
    i, j = xp.triu_indices(input.array.shape[0], 1)
    return PDIST.record(input[i] - input[j], axis=(-1,), keepdims=False, order=float(p))


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    r"""Compute the distances between the rows of one matrix and the rows of another.

    Parameters
    ----------
    x1 : Tensor
        The first rows, (…, n, d), floating point.
    x2 : Tensor
        The second, (…, m, d).
    p : float, default: 2.0
        Order of the norm, at least 0.
    compute_mode : str, optional
        How Euclidean distances are computed: "use_mm_for_euclid_dist" uses a matrix product, which is faster and less accurate,
        "donot_use_mm_for_euclid_dist" uses differences, and "use_mm_for_euclid_dist_if_necessary", the default, uses a product if
        one of the matrices has more than 25 rows.

    Returns
    -------
    Tensor
        Shape (…, n, m).

    Raises
    ------
    ValueError
        If `compute_mode` is none of these.
    RuntimeError
        If a tensor holds integers or bools or has fewer than two dimensions, the numbers of columns or the dtypes differ, the
        leading dimensions do not broadcast, or `p` is negative.

    Notes
    -----
    .. math:: y_{ij} = \|a_i - b_j\|_p

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.cdist(gl.tensor([[0.0, 0.0]]), gl.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    check_tensors("cdist", x1=x1, x2=x2)
    modes = (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode. Use one of {modes[1:]}.")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.array.dtype.kind != "f":
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.word}. Call .float() first.")
    for name, x in (("X1", x1), ("X2", x2)):
        if x.array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.array.ndim}D")
    (n, width), (m, other) = x1.array.shape[-2:], x2.array.shape[-2:]
    if width != other:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {width} X2: {other}")
    check_order("cdist", x1, p)
    if x1.array.dtype != x2.array.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.word} but found {x2.dtype.word}. Convert one of them.")
    lead = x1.array.shape[:-2], x2.array.shape[:-2]
    if error := broadcast_mismatch(*lead):
        raise error
    if p == 2:
        by_product = compute_mode == modes[2] or (compute_mode != modes[3] and (n > 25 or m > 25))
        shape = np.broadcast_shapes(*lead)
        a, b = (x if x.array.shape[:-2] == shape else expand(x, (*shape, *x.array.shape[-2:])) for x in (x1, x2))
        if not by_product:
            return rules.cdist.record(a, b, by_product=False)
        distances = EUCLIDEAN.record(a, b, by_product=True)
        return shapes.reshape.record(distances, shape=distances.array.shape)  # torch's graph ends with a view
    return CDIST.record(unsqueeze(x1, -2) - unsqueeze(x2, -3), axis=(-1,), keepdims=False, order=float(p))


def check_order(name: str, x: Tensor, p: float) -> None:
    if x.array.dtype.kind != "f":
        raise RuntimeError(f"{name} only supports floating-point dtypes. Got {x.dtype}. Call .float() first.")
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values. Got {p}.")

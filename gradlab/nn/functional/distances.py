"""Distances and similarities of vectors, as `torch.nn.functional` spells them."""

from __future__ import annotations

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import broadcast_mismatch
from gradlab.core.out_argument import copy_to_out
from gradlab.core.promotion import agree
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.toplevel import norm
from gradlab.nn.functional.descriptions import described
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


@described
def normalize(
    input: Tensor, p: float = 2.0, dim: int | tuple[int, ...] = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    r"""Vectors over their norms.

    Parameters
    ----------
    input : Tensor
        The vectors, floating point.
    p : float, default 2.0
        The order of the norm.
    dim : int or tuple of ints, default 1
        The dimension that the vectors lie along.
    eps : float, default 1e-12
        What a norm counts as at least, so that a vector of zeros stays one.
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
    unit = div(input, expand(at_least(lengths, eps), input.array.shape))
    return unit if out is None else copy_to_out("div", out, unit)


def at_least(x: Tensor, low: float) -> Tensor:
    """max(x, low); where they are equal, the gradient is x's."""
    return CLAMP_MIN.record(constant(wrap(~(x.array < low))), x, low)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    r"""The cosine of the angle between vectors.

    Parameters
    ----------
    x1 : Tensor
        The first vectors, floating point.
    x2 : Tensor
        The second, of a shape that broadcasts with that of `x1`.
    dim : int, default 1
        The dimension that the vectors lie along, counted in the common shape.
    eps : float, default 1e-8
        What a norm counts as at least.

    Returns
    -------
    Tensor
        The common shape without `dim`.

    Raises
    ------
    TypeError
        If one of them is no tensor.
    RuntimeError
        If they hold integers or bools, or the shapes do not broadcast.
    IndexError
        If there is no dimension `dim`.

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
    return (directed(a, axis, eps) * directed(b, axis, eps)).sum(axis)


def directed(x: Tensor, axis: int, eps: float) -> Tensor:
    """x over its norm, which counts as at least eps; its gradient is that of the norm itself, as torch has it."""
    length = clone(reductions.vector_norm.record(x, axis=(axis,) if x.array.ndim else (), keepdims=True, order=2.0))
    length.array = namespace_of[type(x.array)].maximum(length.array, eps)
    return div(x, length)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    r"""The distances of corresponding vectors along the last dimension.

    Parameters
    ----------
    x1 : Tensor
        The first vectors, (…, d).
    x2 : Tensor
        The second, of a shape that broadcasts with that of `x1`.
    p : float, default 2.0
        The order of the norm.
    eps : float, default 1e-6
        What is added to each difference, so that the norm has a derivative where the vectors are equal.
    keepdim : bool, default False
        Whether the last dimension stays, with length 1.

    Returns
    -------
    Tensor
        The common shape without its last dimension.

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
    r"""The distances of all pairs of rows of a matrix.

    Parameters
    ----------
    input : Tensor
        The matrix (n, d), floating point.
    p : float, default 2
        The order of the norm, at least 0.

    Returns
    -------
    Tensor
        Of shape (n (n - 1) / 2), in the order (0, 1), (0, 2) … (1, 2) …

    Raises
    ------
    RuntimeError
        If `input` has not two dimensions, holds integers or bools, or `p` is negative.

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
    r"""The distances of each row of one matrix from each row of another.

    Parameters
    ----------
    x1 : Tensor
        The first rows, (…, n, d), floating point.
    x2 : Tensor
        The second, (…, m, d).
    p : float, default 2.0
        The order of the norm, at least 0.
    compute_mode : str, optional
        How Euclidean distances are computed: "use_mm_for_euclid_dist" by a product of matrices, which is faster and less exact,
        "donot_use_mm_for_euclid_dist" by differences, "use_mm_for_euclid_dist_if_necessary", the default, by a product where one
        has more than 25 rows.

    Returns
    -------
    Tensor
        Of shape (…, n, m).

    Raises
    ------
    ValueError
        If `compute_mode` is none of these.
    RuntimeError
        If one holds integers or bools or has less than two dimensions, the numbers of columns or the dtypes differ, the leading
        dimensions do not broadcast, or `p` is negative.

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
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode. It is one of {modes[1:]}.")
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
        return shapes.reshape.record(distances, shape=distances.array.shape)  # torch's node is a view's
    return CDIST.record(unsqueeze(x1, -2) - unsqueeze(x2, -3), axis=(-1,), keepdims=False, order=float(p))


def check_order(name: str, x: Tensor, p: float) -> None:
    if x.array.dtype.kind != "f":
        raise RuntimeError(f"{name} only supports floating-point dtypes. This tensor has dtype {x.dtype}; call .float() first.")
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values. It is {p}.")

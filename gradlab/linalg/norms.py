"""Norms of vectors and matrices, condition numbers and ranks of matrices."""

from __future__ import annotations

from math import inf
from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.sizes import as_long
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812
from gradlab.core.out_argument import takes_out
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.factors import svdvals
from gradlab.linalg.matrices import LinAlgError, dtype_error, number_or_array, require_matrices
from gradlab.linalg.solving import inv, inv_ex
from gradlab.ops import extremes, norms, reductions
from gradlab.ops.arguments import check_tensors, negative_dim
from gradlab.ops.copies import cast
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules import elementwise as el
from gradlab.rules import indexing, shapes
from gradlab.rules.linalg import check_result, complete_symmetric


@takes_out
def vector_norm(input: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    r"""Compute the p-norm of vectors.

    Parameters
    ----------
    input : Tensor
        Floating point.
    ord : float, default: 2
        The order p. 0 gives the number of nonzero elements, ±inf the largest or smallest absolute value.
    dim : int or tuple of ints, optional
        The axes to reduce. Defaults to all axes.
    keepdim : bool, default: False
        Keep the reduced axes with length 1.
    dtype : dtype, optional
        Dtype of the computation.

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes.

    Raises
    ------
    RuntimeError
        If `input` is not floating point.

    Notes
    -----
    .. math:: \left( \sum |x|^p \right)^{1/p}

    The derivative of the norm at the zero vector is taken as 0.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.vector_norm(gl.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check_tensors("linalg_vector_norm", input=input)
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type(ord).__name__}")
    return norms.vector_norm(input, ord, dim, keepdim, dtype=dtype)


def matrix_axes(A: Tensor, dim: Any) -> tuple[int, int]:
    """Return the two axes of the matrices as negative numbers."""
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    first, second = (negative_dim(d, A.array.ndim) for d in dims)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got ({dims[0]}, {dims[1]})")
    return first, second


def extreme_reduction(ord: Any) -> Any:
    """Return the reduction for an order: the maximum (0 for no elements) if it is positive, the minimum if it is negative."""

    def largest(x: Tensor, axis: int, keepdim: bool = False) -> Tensor:
        return (extremes.amax if x.array.shape[axis] else reductions.sum)(x, axis, keepdim)

    return largest if ord > 0 else extremes.amin


@takes_out
def matrix_norm(
    input: Tensor, ord: float | str = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Dtype | None = None
) -> Tensor:
    """Compute a norm of matrices.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    ord : {"fro", "nuc", 2, -2, 1, -1, inf, -inf}
        "fro" is the 2-norm of all elements, "nuc" the sum of the singular values, 2 and -2 the largest and smallest singular
        value, 1 and -1 the largest and smallest column sum of absolute values, inf and -inf the same for rows.
    dim : pair of ints
        The axes of the matrices. Defaults to the last two.
    keepdim : bool, default: False
        Keep the reduced axes with length 1.
    dtype : dtype, optional
        Dtype of the computation.

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes.

    Raises
    ------
    RuntimeError
        If the norm is unknown or `input` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.matrix_norm(gl.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    check_tensors("linalg_matrix_norm", input=input)
    if input.array.ndim < 2:
        raise RuntimeError("linalg.matrix_norm: The input tensor A must have at least 2 dimensions.")
    if input.array.dtype.kind != "f" and dtype is None:
        raise dtype_error("linalg.matrix_norm", input)
    first, second = matrix_axes(input, dim)
    input = input if dtype is None else cast(input, dtype)
    if ord == "fro":
        return norms.vector_norm(input, 2, (first, second), keepdim)
    if ord in ("nuc", 2, -2):
        ndim = input.array.ndim
        rest = tuple(d for d in range(-ndim, 0) if d not in (first, second))
        values = svdvals(shapes.permute.record(input, axes=(*rest, first, second)))
        result = reductions.sum(values, -1) if ord == "nuc" else extreme_reduction(ord)(values, -1)
        if not keepdim:
            return result
        order = [*rest, first, second]
        result = unsqueeze(unsqueeze(result, -1), -1)
        return shapes.permute.record(result, axes=tuple(order.index(d) - ndim for d in range(-ndim, 0)))
    if ord not in (1, -1, inf, -inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported. There are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf.")
    along, across = (first, second) if ord in (1, -1) else (second, first)
    sums = norms.vector_norm(input, 1, along, keepdim)
    if not keepdim and across < along:
        across += 1  # the axis after it was removed
    return extreme_reduction(ord)(sums, across, keepdim)


@takes_out
def norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """Compute a norm of vectors or matrices.

    Parameters
    ----------
    input : Tensor
        Floating point.
    ord : float or str, optional
        The order, as in `matrix_norm` or `vector_norm`.
    dim : int or pair of ints, optional
        The axes to reduce. If `ord` is given and there are two of them, the matrix norm is computed.
    keepdim : bool, default: False
        Keep the reduced axes with length 1.
    dtype : dtype, optional
        Dtype of the computation.

    Returns
    -------
    Tensor
        The shape of `input` without the reduced axes. Without `ord` and `dim`, the norm of all elements as one vector.

    Raises
    ------
    RuntimeError
        If the norm is unknown or `input` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.norm(gl.tensor([3.0, 4.0]))
    tensor(5.)
    """
    check_tensors("linalg_norm", input=input)
    dims = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None:
        return norms.vector_norm(input, 2, dims, keepdim, dtype=dtype)
    ndim = input.array.ndim
    if dims is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if isinstance(ord, str) or (ndim == 2 if dims is None else len(dims) == 2):
        return matrix_norm(input, ord, (-2, -1) if dims is None else dims, keepdim, dtype=dtype)
    return norms.vector_norm(input, ord, dims, keepdim, dtype=dtype)


NAN_TO_NUM = el.where.with_node("NanToNumBackward0")


@takes_out
def cond(input: Tensor, p: Any = None) -> Tensor:
    r"""Compute the condition number of matrices: the factor by which a relative error can grow.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    p : float or str, optional
        The order of the norm, as in `matrix_norm`. Defaults to 2. Orders other than 2 and -2 require square matrices.

    Returns
    -------
    Tensor
        Shape (…).

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Notes
    -----
    .. math:: \kappa(A) = \|A\| \, \|A^{-1}\|

    For order 2, this is the ratio of the largest to the smallest singular value.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.cond(gl.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(4.)
    """
    check_tensors("linalg_cond", input=input)
    if input.array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not input.array.size:
        return input.new_zeros(input.array.shape[:-2])
    if p in (None, 2, -2):
        values = svdvals(input)
        first, last = (indexing.getitem.record(values, index=(Ellipsis, at), skip=0) for at in (slice(0, 1), slice(-1, None)))
        return squeeze(el.div.record(last, first) if p == -2 else el.div.record(first, last), -1)
    input = require_matrices(f"linalg.cond(ord={p})", input)
    if p == "nuc":
        try:
            return el.mul.record(matrix_norm(input, p), matrix_norm(inv(input), p))
        except LinAlgError:
            return constant(namespace_of[type(input.array)].full(input.array.shape[:-2], inf, input.array.dtype))
    product = el.mul.record(matrix_norm(input, p), matrix_norm(inv_ex(input)[0], p))
    return NAN_TO_NUM.record(constant(product.array != product.array), inf, product)


@takes_out
def matrix_rank(input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Compute the rank of matrices: the number of singular values greater than a tolerance.

    Parameters
    ----------
    input : Tensor
        Matrices, (…, m, n), floating point.
    tol, atol, rtol : float or Tensor, optional
        Singular values up to max(atol, rtol · the largest one) are treated as 0. `rtol` defaults to max(m, n) · eps.
    hermitian : bool, default: False
        Treat the matrices as symmetric and read only their lower triangle.

    Returns
    -------
    Tensor
        Shape (…), int64.

    Raises
    ------
    RuntimeError
        If the tensor has fewer than two axes or is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.linalg.matrix_rank(gl.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    from gradlab.linalg.solving import tolerance

    check_tensors("linalg_matrix_rank", input=input)
    if input.array.ndim < 2:
        raise RuntimeError("gradlab.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if input.array.dtype.kind != "f":
        raise RuntimeError("This function doesn't handle types other than float and double. Call .float() first.")
    xp = namespace_of[type(input.array)]
    whole = require_matrices("linalg.eigh", input).array if hermitian else input.array
    whole = complete_symmetric(whole, hermitian)
    values = check_result(xp, "svd", xp.linalg.svd(whole, compute_uv=False), whole)
    if tol is not None:
        tol = number_or_array(tol)
        return constant(as_long(xp.asarray((values > (tol if isinstance(tol, (int, float)) else tol[..., None])).sum(-1))))
    absolute, relative = tolerance(input, atol, rtol)
    least = xp.maximum(absolute, values[..., :1] * relative) if values.shape[-1] else 0
    return constant(as_long(xp.asarray((values > least).sum(-1))))

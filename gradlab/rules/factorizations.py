"""Factorizations of the matrices in the last two axes, and determinants.

A node has one output, so the factors of a matrix are packed one after the other into the last axis of one array. `unpack`
separates them again.

Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
M. Seeger et al., "Auto-differentiating linear algebra" (2017); J. Townsend, "Differentiating the singular value decomposition"
(2016); S. Walter and L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2010).
"""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from math import inf, prod
from operator import and_
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.primitive import Primitive, primitive
from gradlab.core.properties import Properties
from gradlab.core.tensor import Tensor, constant
from gradlab.rules.arguments import Array, Namespace, Shape
from gradlab.rules.linalg import (
    check_result,
    diagonal_matrix,
    diagonal_of,
    inv,
    raise_on_failure,
    symmetrize,
    triangle,
    triangular,
)
from gradlab.rules.matrix import batch_groups, matrix_groups
from gradlab.rules.shapes import cat


# ----------------------------------------------------------------------------------------------------- several outputs
def pack(*factors: tuple[Array, Shape]) -> Array:
    """Flatten pairs (matrices or vectors, batch shape) and join them along the last axis."""
    flat = [x.reshape((*batch, prod(x.shape[len(batch) :]))) for x, batch in factors]
    starts = tuple(np.cumsum([0, *(x.shape[-1] for x in flat)]).tolist())
    return cat(*flat, axis=-1, starts=starts)


def unpack(x: Array, *shapes: Shape) -> list[Array]:
    """Return the factors in a packed array, given their shapes without the batch."""
    ends = np.cumsum([0, *map(prod, shapes)]).tolist()
    return [x[..., a:b].reshape(tuple(x.shape[:-1]) + shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]


def pack_factors(x: Array, *factors: Array) -> Array:
    """Pack the factors of x, or of a batch of its tangents."""
    batch = tuple(x.shape[:-2])
    return pack(*((factor, batch) for factor in factors))


def packed_groups(arg: str, x_shape: Any, out_shape: Any, meta: Any) -> Any:
    return batch_groups(x_shape, 2, out_shape, 1)


def array_of(x: Array) -> Array:
    """Return the array of a Tensor, or an array as it is."""
    return getattr(x, "array", x)


def are_zero(*cotangents: Array) -> Array:
    """Return a mask of the matrices whose cotangents of the vectors are all 0."""
    return reduce(and_, [(array_of(g) == 0).all(axis=(-2, -1), keepdims=True) for g in cotangents])


def divide_by_gaps(x: Array, gap: Array, spared: Array = False) -> Array:
    """Return x / gap off the diagonal, where x is 0 on the diagonal.

    A gap of 0 gives inf or nan, because the vectors are then not determined. Matrices in the mask `spared`, whose vectors were
    not used, are excepted.
    """
    array = array_of(gap)
    whole = namespace_of[type(array)].eye(array.shape[-1], dtype=bool) | ((array == 0) & spared)
    return x / namespace_of[type(gap)].where(whole, 1, gap)


def divide_by_values(x: Array, s: Array, spared: Array = False) -> Array:
    """Return x / s, column by column. s = 0 is treated as in `divide_by_gaps`."""
    array = array_of(s)[..., None, :]
    return x / namespace_of[type(s)].where((array == 0) & spared, 1, s[..., None, :])


# ------------------------------------------------------------------------------------------------------------ Cholesky
def halve_diagonal(x: Array) -> Array:
    """Return the lower triangle with its diagonal halved."""
    return triangle(x) - diagonal_matrix(diagonal_of(x)) / 2


def cholesky_vjp(g: Array, out: Array, upper: bool) -> Array:
    """Compute x̄ = L⁻ᵀ sym(Φ(Lᵀ L̄)) L⁻¹, where Φ is `halve_diagonal`."""
    low, g = (out.mT, g.mT) if upper else (out, g)
    inner = symmetrize(halve_diagonal(low.mT @ triangle(g)))
    left = triangular(low.mT, inner, upper=True, unit=False)
    return triangular(low.mT, left.mT, upper=True, unit=False).mT


def cholesky_jvp(t: Array, out: Array, upper: bool) -> Array:
    low = out.mT if upper else out
    left = triangular(low, symmetrize(t), upper=False, unit=False)
    tangent = low @ halve_diagonal(triangular(low, left.mT, upper=False, unit=False).mT)
    return tangent.mT if upper else tangent


def cholesky_factor(xp: Namespace, x: Array, *, upper: bool) -> Array:
    with raise_on_failure(xp):
        low = check_result(xp, "cholesky", xp.linalg.cholesky(x.mT if upper else x), x)
    return low.mT if upper else low


cholesky = primitive(
    "cholesky",
    cholesky_factor,
    reads=matrix_groups,
    node="LinalgCholeskyExBackward0",
    tex=r"\mathrm{{chol}}({x})",
    vjp={"x": cholesky_vjp},
    jvp={"x": cholesky_jvp},
    formula=r"\bar{x} = y^{-\top}\,\mathrm{sym}\,\Phi(y^\top \bar{y})\,y^{-1}",
    properties=Properties(poles=True),
)


# ------------------------------------------------------------------------------------------------------------------ QR
def qr_shapes(shape: Shape, complete: bool) -> tuple[Shape, Shape]:
    m, n = shape[-2:]
    k = m if complete else min(m, n)
    return (m, k), (k, n)


def qr_factors(xp: Namespace, x: Array, complete: bool) -> Any:
    return xp.linalg.qr(x, mode="complete" if complete else "reduced")


def check_qr_is_differentiable(shape: Shape, complete: bool) -> None:
    if complete and shape[-2] > shape[-1]:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols. Use mode='reduced'."
        )


def qr_vjp(g: Array, x: Array, out: Array, x_shape: Shape, complete: bool) -> Array:
    """For a wide matrix [A B] = Q [R S], return Q S̄ for B, and the cotangent of A with Q̄ + B S̄ᵀ in place of Q̄."""
    check_qr_is_differentiable(x_shape, complete)
    m, n = x_shape[-2:]
    (q, r), (gq, gr) = (unpack(packed_, *qr_shapes(x_shape, complete)) for packed_ in (out, g))
    if m >= n:
        return tall_qr_vjp(gq, gr, q, r)
    rest = gr[..., m:]
    first = tall_qr_vjp(gq + x[..., m:] @ rest.mT, gr[..., :m], q, r[..., :m])
    return cat(first, q @ rest, axis=-1, starts=(0, m, n))


def tall_qr_vjp(gq: Array, gr: Array, q: Array, r: Array) -> Array:
    """Compute [Q̄ + Q copyltu(R R̄ᵀ - Q̄ᵀQ)] R⁻ᵀ (Walter and Lehmann)."""
    inner = triangle(triangle(gr, upper=True) @ r.mT - q.mT @ gq, upper=True)
    inner = inner + triangle(inner.mT, -1)
    return triangular(r, (gq + q @ inner).mT, upper=True, unit=False).mT


def qr_jvp(t: Array, x: Array, out: Array, lead: Shape, x_shape: Shape, complete: bool) -> Array:
    check_qr_is_differentiable(x_shape, complete)
    m, n = x_shape[-2:]
    k = min(m, n)
    q, r = unpack(out, *qr_shapes(x_shape, complete))
    side = triangular(r[..., :k].mT, t[..., :k].mT, upper=False, unit=False).mT  # Ṫ R⁻¹
    inner = q.mT @ side
    skew = triangle(inner, -1) - triangle(inner, -1).mT
    tq = q @ skew + side - q @ inner
    tr = (inner - skew) @ r[..., :k]
    if n > m:
        tr = cat(tr, q.mT @ (t[..., m:] - tq @ r[..., m:]), axis=-1, starts=(0, m, n))
    return pack_factors(t, tq, tr)


qr = primitive(
    "qr",
    lambda xp, x, *, complete: pack_factors(x, *qr_factors(xp, x, complete)),
    reads=packed_groups,
    node="LinalgQrBackward0",
    tex=r"\mathrm{{qr}}({x})",
    vjp={"x": qr_vjp},
    jvp={"x": qr_jvp},
    formula=r"\bar{x} = \bigl(\bar{Q} + Q\,\mathrm{copyltu}(R \bar{R}^\top - \bar{Q}^\top Q)\bigr) R^{-\top}",
    properties=Properties(poles=True, several=True),
)


# ----------------------------------------------------------------------------------------------------------------- SVD
def svd_shapes(shape: Shape, full: bool) -> tuple[Shape, Shape, Shape]:
    m, n = shape[-2:]
    k = min(m, n)
    return (m, m if full else k), (k,), (n if full else k, n)


def singular_values_and_vectors(xp: Namespace, x: Array, full: bool) -> Any:
    with raise_on_failure(xp):
        return check_result(xp, "svd", xp.linalg.svd(x, full_matrices=full), x)


def svd_factors(x: Array, shape: Shape, full: bool) -> tuple[Array, Array, Array]:
    """Return U, S and V from a packed array, with the k vectors that belong to singular values."""
    u, s, vh = unpack(x, *svd_shapes(shape, full))
    k = s.shape[-1]
    return u[..., :k], s, vh[..., :k, :].mT


def differences_and_sums(s: Array) -> tuple[Array, Array]:
    """Return the matrices of s_j - s_i and s_j + s_i at [i, j]."""
    return s[..., None, :] - s[..., :, None], s[..., None, :] + s[..., :, None]


def svd_vjp(g: Array, out: Array, x_shape: Shape, full: bool) -> Array:
    """Apply Townsend's formula. Vectors without a singular value are arbitrary and pass no gradient."""
    (u, s, v), (gu, gs, gv) = svd_factors(out, x_shape, full), svd_factors(g, x_shape, full)
    difference, total = differences_and_sums(s)
    turn_u, turn_v, spared = u.mT @ gu, v.mT @ gv, are_zero(gu, gv)
    turned = (turn_u - turn_u.mT) * s[..., None, :] + s[..., :, None] * (turn_v - turn_v.mT)
    result = u @ (divide_by_gaps(turned, difference * total, spared) + diagonal_matrix(gs)) @ v.mT
    if x_shape[-2] > s.shape[-1]:
        result = result + divide_by_values(gu - u @ turn_u, s, are_zero(gu)) @ v.mT
    if x_shape[-1] > s.shape[-1]:
        result = result + u @ divide_by_values(gv - v @ turn_v, s, are_zero(gv)).mT
    return result


def svd_jvp(xp: Namespace, t: Array, out: Array, x_shape: Shape, full: bool) -> Array:
    u, s, v = svd_factors(out, x_shape, full)
    inner = u.mT @ t @ v
    difference, total = differences_and_sums(s)
    gap = difference * total
    tu = u @ divide_by_gaps(zero_diagonal(inner * s[..., None, :] + s[..., :, None] * inner.mT), gap)
    tv = v @ divide_by_gaps(zero_diagonal(s[..., :, None] * inner + inner.mT * s[..., None, :]), gap)
    (m, all_u), (k,), (all_v, n) = svd_shapes(x_shape, full)
    if m > k:
        tu = tu + divide_by_values(t @ v - u @ inner, s)
    if n > k:
        tv = tv + divide_by_values(t.mT @ u - v @ inner.mT, s)
    batch = tuple(t.shape[:-2])
    every_u, _, every_v = unpack(out, *svd_shapes(x_shape, full))
    if all_u > k:
        tu = cat(tu, zero_tangents(xp, every_u[..., k:], batch), axis=-1, starts=(0, k, all_u))
    if all_v > k:
        tv = cat(tv, zero_tangents(xp, every_v[..., k:, :].mT, batch), axis=-1, starts=(0, k, all_v))
    return pack((tu, batch), (diagonal_of(inner), batch), (tv.mT, batch))


def zero_tangents(xp: Namespace, x: Array, batch: Shape) -> Array:
    """Return zeros with the batch shape in front of the last two axes of x."""
    return xp.zeros_like(xp.broadcast_to(x, batch + tuple(x.shape[-2:])))


def zero_diagonal(x: Array) -> Array:
    """Return x with zeros on its diagonal."""
    return x - diagonal_matrix(diagonal_of(x))


svd: Primitive = primitive(
    "svd",
    lambda xp, x, *, full: pack_factors(x, *singular_values_and_vectors(xp, x, full)),
    reads=packed_groups,
    node="LinalgSvdBackward0",
    tex=r"\mathrm{{svd}}({x})",
    formula=r"\bar{x} = U \Bigl(\frac{(U^\top\bar{U} - \bar{U}^\top U) S + S (V^\top\bar{V} - \bar{V}^\top V)}{s_j^2 - s_i^2} "
    r"+ \bar{S}\Bigr) V^\top + (1 - U U^\top)\,\bar{U} S^{-1} V^\top + U S^{-1} \bar{V}^\top (1 - V V^\top)",
    vjp={"x": svd_vjp},
    jvp={"x": svd_jvp},
    properties=Properties(poles=True, several=True),
)


# --------------------------------------------------------------------------------------------- symmetric eigenvalues
def eigenvalues_and_vectors(xp: Namespace, x: Array, lower: bool) -> Any:
    with raise_on_failure(xp):
        return check_result(xp, "eigh", xp.linalg.eigh(x, UPLO="L" if lower else "U"), x)


def eigh_shapes(shape: Shape) -> tuple[Shape, Shape]:
    return (shape[-1],), (shape[-1], shape[-1])


def eigh_vjp(g: Array, out: Array, x_shape: Shape) -> Array:
    """Compute V (diag w̄ + VᵀV̄ / (w_j - w_i)) Vᵀ, which is symmetric like x (Giles)."""
    (w, v), (gw, gv) = unpack(out, *eigh_shapes(x_shape)), unpack(g, *eigh_shapes(x_shape))
    turn = v.mT @ gv
    return v @ (divide_by_gaps((turn - turn.mT) / 2, differences_and_sums(w)[0], are_zero(gv)) + diagonal_matrix(gw)) @ v.mT


def eigh_jvp(t: Array, out: Array, x_shape: Shape) -> Array:
    w, v = unpack(out, *eigh_shapes(x_shape))
    inner = v.mT @ symmetrize(t) @ v
    batch = tuple(t.shape[:-2])
    return pack((diagonal_of(inner), batch), (v @ divide_by_gaps(zero_diagonal(inner), differences_and_sums(w)[0]), batch))


eigh = primitive(
    "eigh",
    lambda xp, x, *, lower: pack_factors(x, *eigenvalues_and_vectors(xp, x, lower)),
    reads=packed_groups,
    node="LinalgEighBackward0",
    tex=r"\mathrm{{eigh}}({x})",
    formula=r"\bar{x} = V \Bigl(\bar{\Lambda} + \frac{V^\top \bar{V}}{\lambda_j - \lambda_i}\Bigr) V^\top",
    vjp={"x": eigh_vjp},
    jvp={"x": eigh_jvp},
    properties=Properties(poles=True, several=True),
)


# ------------------------------------------------------------------------------------------------------------------ LU
def lu_parts(out: Array, m: int, n: int) -> tuple[Array, Array]:
    """Return L and U of the k leading rows and columns, where k = min(m, n)."""
    k = min(m, n)
    square = out[..., :k, :k]
    return diagonal_matrix(diagonal_of(square) * 0 + 1) + triangle(square, -1), triangle(square, upper=True)


def match_type(array: Array, x: Array) -> Array:
    """Convert an array of the metadata to a Tensor if x is a Tensor."""
    return constant(array) if type(x) is Tensor else array


def lu_vjp(g: Array, out: Array, x_shape: Shape, order: Array) -> Array:
    """Compute Pᵀ L⁻ᵀ (tril(Lᵀ L̄) + triu(Ū Uᵀ)) U⁻ᵀ for P x = L U, with L and U in one array.

    The part outside the leading square block is handled first: L₂ = x₂ U⁻¹ below it, U₂ = L⁻¹ x₂ to its right.
    """
    m, n = x_shape[-2:]
    k = min(m, n)
    low, up = lu_parts(out, m, n)
    square = g[..., :k, :k]
    gl, gu = triangle(square, -1), triangle(square, upper=True)
    if m > k:
        rest = triangular(up, g[..., k:, :].mT, upper=True, unit=False).mT
        gu = gu - triangle(out[..., k:, :].mT @ rest, upper=True)
    if n > k:
        rest = triangular(low.mT, g[..., k:], upper=True, unit=True)
        gl = gl - triangle(rest @ out[..., k:].mT, -1)
    inner = triangle(low.mT @ gl, -1) + triangle(gu @ up.mT, upper=True)
    left = triangular(low.mT, inner, upper=True, unit=True)
    result = triangular(up, left.mT, upper=True, unit=False).mT
    if m > k:
        result = cat(result, rest, axis=-2, starts=(0, k, m))
    if n > k:
        result = cat(result, rest, axis=-1, starts=(0, k, n))
    return match_type(order, g).mT @ result


def lu_jvp(t: Array, out: Array, x_shape: Shape, order: Array) -> Array:
    m, n = x_shape[-2:]
    k = min(m, n)
    low, up = lu_parts(out, m, n)
    t = match_type(order, t) @ t
    square = triangular(low, t[..., :k, :k], upper=False, unit=True)
    inner = triangular(up.mT, square.mT, upper=False, unit=False).mT
    tl, tu = low @ triangle(inner, -1), triangle(inner, upper=True) @ up
    result = tl + tu
    if m > k:
        rest = t[..., k:, :] - out[..., k:, :] @ tu
        result = cat(result, triangular(up.mT, rest.mT, upper=False, unit=False).mT, axis=-2, starts=(0, k, m))
    if n > k:
        rest = triangular(low, t[..., k:] - tl @ out[..., k:], upper=False, unit=True)
        result = cat(result, rest, axis=-1, starts=(0, k, n))
    return result


lu = primitive(
    "lu",
    lambda x, *, factors, order: factors,
    reads=matrix_groups,
    node="LinalgLuFactorExBackward0",
    tex=r"\mathrm{{lu}}({x})",
    vjp={"x": lu_vjp},
    jvp={"x": lu_jvp},
    formula=r"\bar{x} = P^\top L^{-\top} \bigl(\mathrm{tril}(L^\top \bar{L}) + "
    r"\mathrm{triu}(\bar{U} U^\top)\bigr) U^{-\top}",
    properties=Properties(poles=True),
)


# -------------------------------------------------------------------------------------------------------- determinants
def cofactors(x: Array, out: Array) -> Array:
    """Compute d det(x) / dx = det(x) x⁻ᵀ, the matrix of cofactors.

    If a determinant is 0, there is no inverse. With x = U S Vᵀ the cofactors are then det(U) U cof(S) det(V) Vᵀ (N. Higham,
    "What is the adjugate of a matrix?", 2020).
    """
    if not bool((out == 0).any()):
        return out[..., None, None] * inv(x).mT
    u, s, v = svd_factors(svd(x, full=False), tuple(x.shape), False)
    others: Array = 1
    xp = namespace_of[type(x)]
    rest = xp.where(namespace_of[type(array_of(x))].eye(x.shape[-1], dtype=bool), 1, s[..., None, :])
    for j in range(x.shape[-1]):
        others = others * rest[..., j]
    return (det(u) * det(v))[..., None, None] * (u * others[..., None, :]) @ v.mT


def det_groups(arg: str, x_shape: Any, out_shape: Any, meta: Any) -> Any:
    return batch_groups(x_shape, 2, out_shape, 0)


det: Primitive = primitive(
    "det",
    lambda xp, x: xp.linalg.det(x),
    reads=det_groups,
    node="LinalgDetBackward0",
    tex=r"\det {x}",
    formula=r"\bar{x} = \bar{y}\,y\,x^{-\top}",
    vjp={"x": lambda g, x, out: g[..., None, None] * cofactors(x, out)},
    jvp={"x": lambda xp, t, x, out: xp.sum(t * cofactors(x, out), axis=(-2, -1))},
    properties=Properties(poles=True),
)


def inverse_transpose(x: Array, out: Array) -> Array:
    """Return x⁻ᵀ, which contains inf and nan for a singular x."""
    if not bool((out[..., 1] == -inf).any()):
        return inv(x).mT
    u, s, v = svd_factors(svd(x, full=False), tuple(x.shape), False)
    return (u / s[..., None, :]) @ v.mT


def sign_and_logarithm(xp: Namespace, x: Array) -> Array:
    return xp.stack(xp.linalg.slogdet(x), axis=-1)


slogdet = primitive(
    "slogdet",
    sign_and_logarithm,
    reads=lambda arg, x_shape, out_shape, meta: batch_groups(x_shape, 2, out_shape, 1),
    node="LinalgSlogdetBackward0",
    tex=r"\log \lvert \det {x} \rvert",
    formula=r"\bar{x} = \bar{y}\,x^{-\top}",
    vjp={"x": lambda g, x, out: g[..., 1, None, None] * inverse_transpose(x, out)},
    jvp={"x": lambda xp, t, x, out: slogdet_tangent(xp, xp.sum(t * inverse_transpose(x, out), axis=(-2, -1)))},
    properties=Properties(poles=True, several=True),
)


def slogdet_tangent(xp: Namespace, t: Array) -> Array:
    """Pack the tangents of the sign, which is 0, and of the logarithm."""
    return cat(xp.zeros_like(t)[..., None], t[..., None], axis=-1, starts=(0, 1, 2))

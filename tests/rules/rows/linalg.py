"""Samples of linear algebra. Multiples of 1 are added to the diagonal, so that the matrices are well conditioned."""

from __future__ import annotations

import numpy as np
from rules.sample import case, like

import gradlab as gl
from gradlab.rules import factorizations, linalg


def add_to_diagonal(x, by=3.0):
    """Add increasing numbers to the diagonal, so that x is regular with distinct singular values."""
    n, m = x.shape[-2:]
    return x + like(x, np.eye(n, m, dtype=x.array.dtype) * np.arange(1, m + 1, dtype=x.array.dtype) * by)


def positive(x):
    return add_to_diagonal(x @ x.mT / 4)


def leading(packed):
    """Return the parts of the full factors of a (3, 2) matrix that belong to the two singular values."""
    return gl.cat([packed[0:2], packed[3:5], packed[9:11]])


def halves(op, **meta):
    return lambda x: op.record(add_to_diagonal(x), **meta) * 1.0


def lu(n, m):
    """Compute an LU factorization with known pivots."""

    def run(x):
        array = x.array if isinstance(x.array, np.ndarray) else x.array.get()
        order = np.eye(n, dtype=array.dtype)[[1, 0, *range(2, n)]]
        a = order @ array
        for k in range(min(n, m)):
            a[..., k + 1 :, k] /= a[..., k : k + 1, k]
            a[..., k + 1 :, k + 1 :] -= a[..., k + 1 :, k, None] * a[..., k, None, k + 1 :]
        return factorizations.lu.record(x, factors=like(x, a).array, order=like(x, order).array)

    return run


def lu_sample(n, m):
    shift = np.zeros((n, m))
    shift[[1, 0, *range(2, min(n, m))], range(min(n, m))] = np.arange(3, 3 + min(n, m))
    return lambda x: lu(n, m)(x + like(x, shift.astype(x.array.dtype)))


CASES = [
    case("inv", halves(linalg.inv), (3, 3)),
    case("inv", halves(linalg.inv), (2, 2, 2)),
    case("pinv", halves(linalg.pinv, cutoff=(0.0, 1e-12), hermitian=False), (3, 2), coincidence=True),
    case("pinv", halves(linalg.pinv, cutoff=(0.0, 1e-12), hermitian=False), (2, 2, 3), coincidence=True),
    case("solve", lambda a, b: linalg.solve.record(add_to_diagonal(a), b), (3, 3), (3, 2)),
    case("solve", lambda a, b: linalg.solve.record(add_to_diagonal(a), b), (2, 2), (3, 2, 1)),
    case("solve", lambda a, b: linalg.solve.record(add_to_diagonal(a), b), (3, 2, 2), (2, 2)),
    case(
        "solve_triangular",
        lambda a, b: linalg.triangular.record(add_to_diagonal(a), b, upper=True, unit=False),
        (3, 3),
        (3, 2),
        coincidence=True,
    ),
    case(
        "solve_triangular",
        lambda a, b: linalg.triangular.record(a, b, upper=False, unit=True),
        (3, 2, 2),
        (2, 2),
        coincidence=True,
    ),
    case("pinv", lambda x: linalg.pinv.record(positive(x), cutoff=(0.0, 1e-12), hermitian=True), (2, 3, 3), coincidence=True),
    case("cholesky", lambda x: factorizations.cholesky.record(positive(x), upper=False), (3, 3), coincidence=True),
    case("cholesky", lambda x: factorizations.cholesky.record(positive(x), upper=True), (2, 2, 2), coincidence=True),
    case("qr", halves(factorizations.qr, complete=False), (3, 2), coincidence=True),
    case("qr", halves(factorizations.qr, complete=False), (2, 2, 3), coincidence=True),
    case("qr", halves(factorizations.qr, complete=True), (3, 3), coincidence=True),
    case("svd", halves(factorizations.svd, full=False), (3, 3), coincidence=True),
    case("svd", halves(factorizations.svd, full=False), (3, 2), coincidence=True),
    case("svd", halves(factorizations.svd, full=False), (2, 2, 3), coincidence=True),
    case("svd", lambda x: leading(factorizations.svd.record(add_to_diagonal(x), full=True)), (3, 2), coincidence=True),
    case("eigh", lambda x: factorizations.eigh.record(positive(x), lower=True), (3, 3), coincidence=True),
    case("eigh", lambda x: factorizations.eigh.record(positive(x), lower=False), (2, 2, 2), coincidence=True),
    case("lu", lu_sample(3, 3), (3, 3), coincidence=True),
    case("lu", lu_sample(3, 2), (2, 3, 2), coincidence=True),
    case("lu", lu_sample(2, 3), (2, 3), coincidence=True),
    case("det", lambda x: factorizations.det.record(add_to_diagonal(x)), (3, 3)),
    case("det", lambda x: factorizations.det.record(add_to_diagonal(x)), (2, 2, 2)),
    case("slogdet", lambda x: factorizations.slogdet.record(add_to_diagonal(x)), (3, 3), coincidence=True),
    case("slogdet", lambda x: factorizations.slogdet.record(add_to_diagonal(x)), (2, 2, 2), coincidence=True),
]

"""What the functions of matrices share: checks of their arguments, torch's errors, and factors taken out of one array."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import host
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors
from gradlab.rules import indexing, shapes
from gradlab.rules.linalg import LinAlgError, heard

# Torch refuses float16 in the words of the kernel that it would run; elsewhere as a "low precision" dtype.
KERNELS = {
    "linalg.qr": "geqrf_cpu",
    "linalg.svd": "linalg_svd_cpu",
    "linalg.solve": "lu_cpu",
    "linalg.cholesky": "cholesky_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "linalg.lu": "lu_cpu",
    "linalg.lu_factor": "lu_cpu",
}
REFUSED_AS_KERNELS = {"linalg.eigh", "linalg.lu", "linalg.lu_factor"}  # integers as well


def matrices(name: str, A: Any, square: bool = True, argument: str = "A") -> Tensor:
    """`A`, if it is a tensor of floating point matrices, square ones if asked; else torch's error."""
    if type(A) is not Tensor:
        check_tensors(name.replace(".", "_"), **{argument: A})
    shape = A.array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions. This one has shape {list(shape)}."
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{name}: {argument} must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    if A.array.dtype.kind != "f" or A.array.dtype.itemsize == 2:
        raise refused(name, A)
    return A


def refused(name: str, A: Tensor) -> Exception:
    word, half = A.dtype.word, A.array.dtype.kind == "f"
    if (half and name in KERNELS) or name in REFUSED_AS_KERNELS:
        return NotImplementedError(f"\"{KERNELS[name]}\" not implemented for '{word}'. Call .float() first.")
    if half:
        return RuntimeError(f"{name}: Low precision dtypes not supported. Got {word}. Call .float() first.")
    return RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {word}. Call .float() first.")


def same_dtype(name: str, A: Tensor, B: Tensor) -> None:
    if A.array.dtype != B.array.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype.word} and B of type "
            f"{B.dtype.word} instead. Convert one of them: x.float(), x.to(y.dtype)."
        )


# -------------------------------------------------------------------------------------------------------------- errors
def factored(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """LAPACK's getrf of one matrix: L and U in one, the row exchanges, and the number of the first zero pivot (0: none)."""
    from scipy.linalg import get_lapack_funcs  # loaded when first needed: 50 ms

    if not matrix.size:
        return matrix.copy(), np.arange(min(matrix.shape)), 0
    (getrf,) = get_lapack_funcs(("getrf",), (matrix,))
    return getrf(matrix)


def first_failure(A: Any, failure: Any) -> tuple[str, int]:
    """Which matrix of a batch fails ("" if there is one only), and where."""
    flat = host(A).reshape(-1, *A.shape[-2:])
    for i, matrix in enumerate(flat):
        if at := failure(matrix):
            return ("" if A.ndim == 2 else f"(Batch element {i}): "), at
    return "", A.shape[-1]


def zero_pivot(matrix: np.ndarray) -> int:
    return int(factored(matrix)[2])


def bad_minor(matrix: np.ndarray) -> int:
    """The order of the first leading minor that is not positive, or 0."""
    for k in range(1, len(matrix) + 1):
        try:
            minor = matrix[:k, :k]
            heard(np, "cholesky", np.linalg.cholesky(minor), minor)
        except np.linalg.LinAlgError:
            return k
    return 0


def singular(name: str, A: Any, what: str = "the inversion could not be completed because the input matrix is singular") -> Any:
    batch, at = first_failure(A, zero_pivot)
    return LinAlgError(
        f"{name}: {batch}The diagonal element {at} is zero, {what}. pinv() gives a pseudo-inverse; lstsq() the "
        "best solution there is."
    )


def not_positive(name: str, A: Any) -> Any:
    batch, at = first_failure(A, bad_minor)
    return LinAlgError(
        f"{name}: {batch}The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {at} is not positive-definite)."
    )


def not_converged(name: str, A: Any) -> Any:
    batch, at = first_failure(A, lambda matrix: 0 if np.isfinite(matrix).all() else len(matrix) - 1 or 1)
    if name == "linalg.svd":
        return LinAlgError(
            f"{name}: {batch}The algorithm failed to converge because the input matrix contained non-finite values."
        )
    return LinAlgError(
        f"{name}: {batch}The algorithm failed to converge because the input matrix is ill-conditioned or has too "
        f"many repeated eigenvalues (error code: {at}). It may hold nan or inf."
    )


# ------------------------------------------------------------------------------------------------------------- factors
@cache
def handing_out(node: str) -> tuple[Any, Any]:
    """Picks and reshapes under the name of the node whose results they hand out."""
    return indexing.getitem.named(node, view=False).record, shapes.reshape.named(node, view=False).record


def handed_out(packed: Tensor, node: str, *factors: tuple[int, ...]) -> list[Tensor]:
    """The factors, of these shapes without the batch, that lie one after the other in the last axis."""
    pick, reshape = handing_out(node)
    batch, start, parts = packed.array.shape[:-1], 0, []
    for shape in factors:
        stop = start + prod(shape)
        part = pick(packed, index=(Ellipsis, slice(start, stop)), skip=0)
        parts.append(part if len(shape) == 1 else reshape(part, shape=batch + shape))
        start = stop
    return parts


def wants_gradient(A: Tensor) -> bool:
    return (A.node is not None and mode.grad) or bool(OBSERVERS)


def integers(array: Any, like: Tensor) -> Tensor:
    """Counts and flags, as a tensor that lies where `like` does."""
    from gradlab.backend.namespaces import namespace_of

    return constant(namespace_of[type(like.array)].asarray(array))


def number(value: Any) -> Any:
    """A tolerance: a number, or the array of a tensor."""
    return value.array if isinstance(value, Tensor) else value

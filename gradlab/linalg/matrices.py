"""Helpers of the functions of matrices: argument checks, PyTorch's errors, and unpacking of factors stored in one array."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import Any

import numpy as np

from gradlab.backend.namespaces import to_host
from gradlab.core.modes import mode
from gradlab.core.observers import OBSERVERS
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import check_tensors
from gradlab.rules import indexing, shapes
from gradlab.rules.linalg import LinAlgError, check_result

# For these functions torch's float16 error names the kernel. All others report a "low precision" dtype.
FLOAT16_KERNEL_NAMES = {
    "linalg.qr": "geqrf_cpu",
    "linalg.svd": "linalg_svd_cpu",
    "linalg.solve": "lu_cpu",
    "linalg.cholesky": "cholesky_cpu",
    "linalg.eigh": "linalg_eigh_cpu",
    "linalg.lu": "lu_cpu",
    "linalg.lu_factor": "lu_cpu",
}
KERNEL_ERROR_FOR_INTEGERS = {"linalg.eigh", "linalg.lu", "linalg.lu_factor"}  # these name it for integers, too


def require_matrices(name: str, A: Any, square: bool = True, argument: str = "A") -> Tensor:
    """Return `A` if it is a tensor of floating point matrices, square ones if `square` is True. Raise torch's error otherwise."""
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
        raise dtype_error(name, A)
    return A


def dtype_error(name: str, A: Tensor) -> Exception:
    word, half = A.dtype.word, A.array.dtype.kind == "f"
    if (half and name in FLOAT16_KERNEL_NAMES) or name in KERNEL_ERROR_FOR_INTEGERS:
        return NotImplementedError(f"\"{FLOAT16_KERNEL_NAMES[name]}\" not implemented for '{word}'. Call .float() first.")
    if half:
        return RuntimeError(f"{name}: Low precision dtypes not supported. Got {word}. Call .float() first.")
    return RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {word}. Call .float() first.")


def check_same_dtype(name: str, A: Tensor, B: Tensor) -> None:
    if A.array.dtype != B.array.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {A.dtype.word} and B of type "
            f"{B.dtype.word} instead. Convert one of them: x.float(), x.to(y.dtype)."
        )


# -------------------------------------------------------------------------------------------------------------- errors
def lapack_getrf(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Factor one matrix with LAPACK's getrf.

    Return L and U in one array, the row exchanges, and the number of the first zero pivot, or 0 if there is none.
    """
    from scipy.linalg import get_lapack_funcs  # loaded when first needed: 50 ms

    if not matrix.size:
        return matrix.copy(), np.arange(min(matrix.shape)), 0
    (getrf,) = get_lapack_funcs(("getrf",), (matrix,))
    return getrf(matrix)


def first_failure(A: Any, failure: Any) -> tuple[str, int]:
    """Return a prefix that names the first matrix of the batch that fails ("" for a single matrix), and where it fails."""
    flat = to_host(A).reshape(-1, *A.shape[-2:])
    for i, matrix in enumerate(flat):
        if at := failure(matrix):
            return ("" if A.ndim == 2 else f"(Batch element {i}): "), at
    return "", A.shape[-1]


def first_zero_pivot(matrix: np.ndarray) -> int:
    return int(lapack_getrf(matrix)[2])


def first_bad_minor(matrix: np.ndarray) -> int:
    """Return the order of the first leading minor that is not positive, or 0."""
    for k in range(1, len(matrix) + 1):
        try:
            minor = matrix[:k, :k]
            check_result(np, "cholesky", np.linalg.cholesky(minor), minor)
        except np.linalg.LinAlgError:
            return k
    return 0


def singular_error(
    name: str, A: Any, what: str = "the inversion could not be completed because the input matrix is singular"
) -> Any:
    batch, at = first_failure(A, first_zero_pivot)
    return LinAlgError(
        f"{name}: {batch}The diagonal element {at} is zero, {what}. pinv() computes a pseudo-inverse, lstsq() a "
        "least-squares solution."
    )


def not_positive_error(name: str, A: Any) -> Any:
    batch, at = first_failure(A, first_bad_minor)
    return LinAlgError(
        f"{name}: {batch}The factorization could not be completed because the input is not positive-definite (the "
        f"leading minor of order {at} is not positive-definite)."
    )


def not_converged_error(name: str, A: Any) -> Any:
    batch, at = first_failure(A, lambda matrix: 0 if np.isfinite(matrix).all() else len(matrix) - 1 or 1)
    if name == "linalg.svd":
        return LinAlgError(
            f"{name}: {batch}The algorithm failed to converge because the input matrix contained non-finite values."
        )
    return LinAlgError(
        f"{name}: {batch}The algorithm failed to converge because the input matrix is ill-conditioned or has too "
        f"many repeated eigenvalues (error code: {at}). It may contain nan or inf."
    )


# ------------------------------------------------------------------------------------------------------------- factors
@cache
def pick_and_reshape(node: str) -> tuple[Any, Any]:
    """Return the operations that index and reshape the results of a node, recorded under the node's name."""
    return indexing.getitem.with_node(node, view=False).record, shapes.reshape.with_node(node, view=False).record


def unpack_factors(packed: Tensor, node: str, *factors: tuple[int, ...]) -> list[Tensor]:
    """Return the factors stored one after another in the last axis. Their shapes are given without the batch axes."""
    pick, reshape = pick_and_reshape(node)
    batch, start, parts = packed.array.shape[:-1], 0, []
    for shape in factors:
        stop = start + prod(shape)
        part = pick(packed, index=(Ellipsis, slice(start, stop)), skip=0)
        parts.append(part if len(shape) == 1 else reshape(part, shape=batch + shape))
        start = stop
    return parts


def wants_gradient(A: Tensor) -> bool:
    return (A.node is not None and mode.grad) or bool(OBSERVERS)


def integer_tensor(array: Any, like: Tensor) -> Tensor:
    """Return an array of counts or flags as a tensor on the device of `like`."""
    from gradlab.backend.namespaces import namespace_of

    return constant(namespace_of[type(like.array)].asarray(array))


def number_or_array(value: Any) -> Any:
    """Return a tolerance as a number, or as the array of a tensor."""
    return value.array if isinstance(value, Tensor) else value

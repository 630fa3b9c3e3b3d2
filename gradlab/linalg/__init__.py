"""Linear algebra on matrices in the last two axes. All leading axes are batch axes.

Every function that PyTorch can differentiate is differentiable here, to any order. Complex results (`eig`, `eigvals`) are not
supported.
"""

from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.linalg.determinants import det, slogdet
from gradlab.linalg.factors import cholesky, cholesky_ex, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from gradlab.linalg.lu import lu, lu_factor, lu_factor_ex, lu_solve
from gradlab.linalg.matrices import LinAlgError
from gradlab.linalg.norms import cond, matrix_norm, matrix_rank, norm, vector_norm
from gradlab.linalg.powers import cross, diagonal, matmul, matrix_exp, matrix_power, multi_dot, vander, vecdot
from gradlab.linalg.solving import (
    inv,
    inv_ex,
    lstsq,
    pinv,
    solve,
    solve_ex,
    solve_triangular,
    tensorinv,
    tensorsolve,
)

__all__ = [
    "LinAlgError",
    "cholesky",
    "cholesky_ex",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_factor_ex",
    "lu_solve",
    "matmul",
    "matrix_exp",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "multi_dot",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_ex",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensorinv",
    "tensorsolve",
    "vander",
    "vecdot",
    "vector_norm",
]

__getattr__ = _module_getattr("gradlab.linalg")

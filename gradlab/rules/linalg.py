"""Inverses and linear systems of the matrices in the last two axes.

Where a formula has an inverse, a system is solved instead. Rules call the primitives themselves, which run on arrays and are
recorded on Tensors. Sources: M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and nonlinear least
squares problems whose variables separate" (1973).
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.triangular import solve_triangular
from gradlab.core.primitive import Primitive, primitive
from gradlab.core.properties import Properties
from gradlab.core.sparsity import number_elements
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.indexing import namespace_under
from gradlab.rules.matrix import batch_groups, insert_axes, matrix_groups
from gradlab.rules.shapes import diagonal


class LinAlgError(RuntimeError):
    """Raised for a matrix without a result: singular, or not positive-definite."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"  # PyTorch's name
LinAlgError.__module__ = "gradlab.linalg"


def raise_on_failure(xp: Any) -> AbstractContextManager[Any]:
    """Return a context in which CuPy's solvers raise errors as NumPy's do."""
    if xp.__name__ != "cupy":
        return nullcontext()
    import cupyx

    context: AbstractContextManager[Any] = cupyx.errstate(linalg="raise")
    return context


def check_result(xp: Any, name: str, result: Any, given: Any) -> Any:
    """Return the result of a solver; raise a LinAlgError if the solver failed.

    NumPy detects failures by the processor's flag for invalid operations, and raises. WebAssembly has no such flag, and the
    result of a failed solver is NaN. The result is therefore inspected there, and only there.
    """
    if sys.platform == "emscripten" and xp is np and has_failed(xp, name, result, given):
        raise np.linalg.LinAlgError(f"{name} failed")
    return result


def has_failed(xp: Any, name: str, result: Any, given: Any) -> bool:
    """Return True if NumPy would raise on other platforms, judging by the result and the input."""
    if name in ("inv", "solve"):  # same factorisation, shows zero pivots; NaN alone may come from NaN
        return bool((not result.size or xp.isnan(result).any()) and (xp.linalg.slogdet(given)[0] == 0).any())
    values = result[name == "svd"] if isinstance(result, tuple) else result
    missing = bool(xp.isnan(values).any())
    return missing and (name == "svd" or bool(xp.isfinite(xp.tril(given)).all()))  # the other solvers return NaN for NaN


# ------------------------------------------------------------------------------------------------ parts of a matrix
def triangle(x: Array, k: int = 0, upper: bool = False) -> Array:
    """Return x on and below (or above) its k-th diagonal, and 0 elsewhere."""
    n, m = x.shape[-2:]
    mask = namespace_under(x).tri(n, m, k - 1 if upper else k, dtype=bool)
    return namespace_of[type(x)].where(~mask if upper else mask, x, 0)


def diagonal_matrix(x: Array) -> Array:
    """Return a matrix with x on the diagonal, and 0 elsewhere."""
    mask = namespace_under(x).eye(x.shape[-1], dtype=bool)
    return namespace_of[type(x)].where(mask, x[..., None, :], 0)


def diagonal_of(x: Array) -> Array:
    return diagonal(x, offset=0, axes=(-2, -1))


def symmetrize(x: Array) -> Array:
    return (x + x.mT) / 2


# ------------------------------------------------------------------------------------------------------------ inverses
def inverse_forward(xp: Namespace, x: Array) -> Array:
    with raise_on_failure(xp):
        return check_result(xp, "inv", xp.linalg.inv(x), x)


inv: Primitive = primitive(
    "inv",
    inverse_forward,
    reads=matrix_groups,
    node="LinalgInvExBackward0",
    tex="{x}^{{-1}}",
    formula=r"\bar{x} = -y^\top\,\bar{y}\,y^\top",
    vjp={"x": lambda g, out: -(out.mT @ g @ out.mT)},
    jvp={"x": lambda t, out: -(out @ t @ out)},
    properties=Properties(poles=True),
)


def complete_symmetric(x: Array, hermitian: bool) -> Array:
    """Return the symmetric matrix with the lower triangle of x if `hermitian`, otherwise x."""
    return triangle(x) + triangle(x, -1).mT if hermitian else x


def pseudoinverse(xp: Namespace, x: Array, *, cutoff: tuple[float, float], hermitian: bool) -> Array:
    """Compute the pseudo-inverse. Singular values up to cutoff = (absolute, relative to the largest) are treated as 0."""
    x = complete_symmetric(x, hermitian)
    u, s, vh = check_result(xp, "svd", xp.linalg.svd(x, full_matrices=False), x)
    least = xp.maximum(cutoff[0], s[..., :1] * cutoff[1]) if s.shape[-1] else 0
    kept = s > least
    return vh.mT @ (xp.where(kept, 1 / xp.where(kept, s, 1), 0)[..., None] * u.mT)


def pinv_vjp(g: Array, x: Array, out: Array, hermitian: bool) -> Array:
    """Compute -PᵀGPᵀ and the two projection terms, where P is the pseudo-inverse of A, without a projector of the longer side.

    With `hermitian`, only the lower triangle is read, but the formula is the same: as in PyTorch, the gradient is the slope
    along symmetric steps.
    """
    x = complete_symmetric(x, hermitian)
    p, h = out.mT, g.mT
    across, along = h @ out, out @ h  # m × m and n × n, one of which is small
    first = (across - x @ (out @ across)) @ p
    second = p @ (along - (along @ out) @ x)
    return first + second - p @ g @ p


def pinv_jvp(t: Array, x: Array, out: Array) -> Array:
    return -(out @ t @ out) + out @ (out.mT @ (t.mT - (t.mT @ x) @ out)) + (t.mT - out @ (x @ t.mT)) @ out.mT @ out


pinv = primitive(
    "pinv",
    pseudoinverse,
    reads=matrix_groups,
    node="LinalgPinvBackward0",
    tex="{x}^{{+}}",
    formula=r"\bar{x} = -y^\top \bar{y}\, y^\top + (1 - x y)\,\bar{y}^\top y\, y^\top "
    r"+ y^\top y\, \bar{y}^\top (1 - y x)",
    vjp={"x": pinv_vjp},
    jvp={"x": lambda t, x, out, hermitian: pinv_jvp(t, complete_symmetric(x, hermitian), out)},
    properties=Properties(poles=True),
)


# ------------------------------------------------------------------------------------------------------------- systems
def solve_groups(arg: str, x_shape: Any, out_shape: Any, meta: Any) -> Any:
    """Sparsity: a column of the solution depends on its own right-hand side and on the whole matrix."""
    batch, out_batch = x_shape[:-2], out_shape[:-2]
    if arg == "a":
        return batch_groups(x_shape, 2, out_shape, 2)
    groups = number_elements((*batch, 1, x_shape[-1]))
    return np.broadcast_to(groups, x_shape), np.broadcast_to(groups, (*out_batch, *out_shape[-2:]))


def solve_forward(xp: Namespace, a: Array, b: Array) -> Array:
    if xp is not np:  # CuPy's `solve` does not broadcast
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        a, b = xp.broadcast_to(a, batch + a.shape[-2:]), xp.broadcast_to(b, batch + b.shape[-2:])
    with raise_on_failure(xp):
        return check_result(xp, "solve", xp.linalg.solve(a, b), a)


solve: Primitive = primitive(
    "solve",
    solve_forward,
    reads=solve_groups,
    node="LinalgSolveExBackward0",
    tex="{a}^{{-1}}\\,{b}",
    formula=r"\bar{b} = a^{-\top}\,\bar{y},\quad \bar{a} = -\bar{b}\,y^\top",
    vjp={"a": lambda g, a, out: -(solve(a.mT, g) @ out.mT), "b": lambda g, a: solve(a.mT, g)},
    jvp={
        "a": lambda t, a, out, lead, a_shape, out_shape: -solve(a, insert_axes(t, lead, a_shape, out_shape) @ out),
        "b": lambda t, a, lead, b_shape, out_shape: solve(a, insert_axes(t, lead, b_shape, out_shape)),
    },
    properties=Properties(poles=True),
)


def triangular_slope(g: Array, a: Array, out: Array, upper: bool, unit: bool) -> Array:
    whole = -(triangular(a.mT, g, upper=not upper, unit=unit) @ out.mT)
    return triangle(whole, (1 if upper else -1) if unit else 0, upper)


def triangular_tangent(t: Array, a: Array, out: Array, upper: bool, unit: bool) -> Array:
    t = triangle(t, (1 if upper else -1) if unit else 0, upper)
    return -triangular(a, t @ out, upper=upper, unit=unit)


triangular: Primitive = primitive(
    "solve_triangular",
    lambda a, b, *, upper, unit: solve_triangular(a, b, upper, unit),
    reads=solve_groups,
    node="LinalgSolveTriangularBackward0",
    tex=r"{a}^{{-1}}\,{b}",
    formula=r"\bar{b} = a^{-\top}\,\bar{y},\quad \bar{a} = -\mathrm{tri}(\bar{b}\,y^\top)",
    vjp={"a": triangular_slope, "b": lambda g, a, upper, unit: triangular(a.mT, g, upper=not upper, unit=unit)},
    jvp={
        "a": lambda t, a, out, upper, unit, lead, a_shape, out_shape: triangular_tangent(
            insert_axes(t, lead, a_shape, out_shape), a, out, upper, unit
        ),
        "b": lambda t, a, upper, unit, lead, b_shape, out_shape: triangular(
            a, insert_axes(t, lead, b_shape, out_shape), upper=upper, unit=unit
        ),
    },
    properties=Properties(poles=True),
)

"""Special functions with the names of `torch.special`.

Functions that PyTorch differentiates are primitives (`gradlab.rules.special`). As in PyTorch, the Bessel functions J, Y and K,
the Airy function and the orthogonal polynomials have no derivative: their results are constants.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.backend.special import special_of
from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.core.operator import PARAMETERS, build_docstring, fill_placeholders
from gradlab.core.out_argument import takes_out
from gradlab.core.promotion import agree_on_float
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import declared_special, log_softmax, softmax
from gradlab.ops.arguments import FunctionInfo
from gradlab.ops.arithmetic import make_binary_function
from gradlab.ops.declared import erfc
from gradlab.ops.declared_special import *  # noqa: F403  (the names are listed in its stub)
from gradlab.rules import elementwise as el
from gradlab.rules import special as sp

__all__ = [
    "airy_ai",
    "bessel_j0",
    "bessel_j1",
    "bessel_y0",
    "bessel_y1",
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "log_softmax",
    "modified_bessel_i0",
    "modified_bessel_i1",
    "modified_bessel_k0",
    "modified_bessel_k1",
    "ndtr",
    "scaled_modified_bessel_k0",
    "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
    "softmax",
    "spherical_bessel_j0",
    "xlog1py",
    "zeta",
]
__all__ += declared_special.__all__

xlog1py = make_binary_function(
    "special_xlog1py",
    "input · log1p(other), and 0 where `input` is 0.",
    "[0., 2.]; [0., 3.] -> [0.0000, 2.7726]",
    el.xlog1py,
    el.xlog1py.with_node("SpecialXlog1PyBackward2"),
    el.xlog1py.with_node("SpecialXlog1PyBackward1"),
    method=False,
    top=False,
)
zeta = make_binary_function(
    "special_zeta",
    "Hurwitz zeta function with exponent `input` and shift `other`.",
    "[2., 4.]; [1., 1.] -> [1.6449, 1.0823]",
    sp.zeta,
    sp.zeta.with_node("SpecialZetaBackward2"),
    sp.zeta.with_node("SpecialZetaBackward1"),
    method=False,
    top=False,
)
_HALF = el.mul.with_node("MulBackward1")


@takes_out
def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Cumulative distribution function of the standard normal distribution.

    Parameters
    ----------
    {input}
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Notes
    -----
    .. math:: y = \\tfrac12 \\operatorname{erfc}(-x / \\sqrt 2)

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.special.ndtr(gl.tensor([-1., 0., 1.]))
    tensor([0.1587, 0.5000, 0.8413])
    """
    return _HALF.record(erfc(input * -sqrt(0.5)), 0.5)


ndtr.__doc__ = fill_placeholders(ndtr.__doc__)
PARAMETERS["degree"] = "n : Tensor or number\n    Degree, truncated to an integer. Its shape must broadcast with that of `input`."
NO_DERIVATIVE = "\n\nIt is not differentiable: the result is a constant, through which no gradient passes."


def _constants(table: dict[str, tuple[Callable[[Any, Any], Any], str]]) -> list[Callable[..., Tensor]]:
    """Create functions of one tensor without derivative from {name: (f(library, array), "summary -> example result")}."""

    def make(name: str, function: Callable[[Any, Any], Any], doc: str) -> Callable[..., Tensor]:
        called = FunctionInfo(f"special_{name}")

        @takes_out
        def special(input: Tensor, *, out: Tensor | None = None) -> Tensor:
            x = agree_on_float(called, input)[0].array
            return constant(wrap(function(special_of(x), x).astype(x.dtype, copy=False)))

        special.__name__ = special.__qualname__ = name
        summary, _, result = doc.partition(" -> ")
        special.__doc__ = build_docstring(
            f"{summary}{NO_DERIVATIVE}",
            "input out",
            "Same shape as `input`, floating point.",
            ["TypeError\n    If `input` is not a Tensor."],
            f"special.{name}(gl.tensor([1., 2.])) -> tensor({result})",
        )
        return special

    return [make(name, *entry) for name, entry in table.items()]


(
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    airy_ai,
    spherical_bessel_j0,
) = _constants(
    {
        "bessel_j0": (lambda library, x: library.j0(x), "Bessel function of the first kind of order 0. -> [0.7652, 0.2239]"),
        "bessel_j1": (lambda library, x: library.j1(x), "Bessel function of the first kind of order 1. -> [0.4401, 0.5767]"),
        "bessel_y0": (lambda library, x: library.y0(x), "Bessel function of the second kind of order 0. -> [0.0883, 0.5104]"),
        "bessel_y1": (lambda library, x: library.y1(x), "Bessel function of the second kind of order 1. -> [-0.7812, -0.1070]"),
        "modified_bessel_i0": (
            lambda library, x: library.i0(x),
            "Modified Bessel function of the first kind of order 0. -> [1.2661, 2.2796]",
        ),
        "modified_bessel_i1": (
            lambda library, x: library.i1(x),
            "Modified Bessel function of the first kind of order 1. -> [0.5652, 1.5906]",
        ),
        "modified_bessel_k0": (
            lambda library, x: library.k0(x),
            "Modified Bessel function of the second kind of order 0. -> [0.4210, 0.1139]",
        ),
        "modified_bessel_k1": (
            lambda library, x: library.k1(x),
            "Modified Bessel function of the second kind of order 1. -> [0.6019, 0.1399]",
        ),
        "scaled_modified_bessel_k0": (
            lambda library, x: library.k0e(x),
            "Scaled modified Bessel function eˣ K₀(x). -> [1.1445, 0.8416]",
        ),
        "scaled_modified_bessel_k1": (
            lambda library, x: library.k1e(x),
            "Scaled modified Bessel function eˣ K₁(x). -> [1.6362, 1.0335]",
        ),
        "airy_ai": (lambda library, x: library.airy(x)[0], "Airy function Ai. -> [0.1353, 0.0349]"),
        "spherical_bessel_j0": (
            lambda library, x: library.spherical_jn(0, x),
            "Spherical Bessel function of order 0: sin(x) / x. -> [0.8415, 0.4546]",
        ),
    }
)


def _third(library: Any, n: Any, x: Any) -> Any:
    """Return the Chebyshev polynomial V from those of the second kind (DLMF 18.9.11)."""
    return library.eval_chebyu(n, x) - library.eval_chebyu(n - 1, x) * (n > 0)


def _fourth(library: Any, n: Any, x: Any) -> Any:
    """Return the Chebyshev polynomial W from those of the second kind (DLMF 18.9.12)."""
    return library.eval_chebyu(n, x) + library.eval_chebyu(n - 1, x) * (n > 0)


def _polynomials(table: dict[str, tuple[Callable[[Any, Any, Any], Any], str]]) -> list[Callable[..., Tensor]]:
    """Create orthogonal polynomials from {name: (f(library, degrees, arguments), "summary -> example result")}."""

    def make(name: str, evaluate: Callable[[Any, Any, Any], Any], doc: str) -> Callable[..., Tensor]:
        called = FunctionInfo(f"special_{name}")
        called.public = ["input", "n"]

        @takes_out
        def polynomial(input: Any, n: Any, *, out: Tensor | None = None) -> Tensor:
            x, degree = (t.array for t in agree_on_float(called, input, n))
            xp = namespace_of[type(x)]
            degree = xp.asarray(degree, dtype=np.intp)  # truncates
            value = evaluate(special_of(x), degree, x.astype(np.float64))
            return constant(wrap(xp.where(degree < 0, 0, value).astype(x.dtype)))

        polynomial.__name__ = polynomial.__qualname__ = name
        summary, _, result = doc.partition(" -> ")
        polynomial.__doc__ = build_docstring(
            f"{summary}{NO_DERIVATIVE}",
            "either degree out",
            "Broadcast shape of `input` and `n`, floating point. 0 where `n` is negative.",
            ["TypeError\n    If neither `input` nor `n` is a Tensor."],
            f"special.{name}(gl.tensor([0.25, 0.5]), 2) -> tensor({result})",
        )
        return polynomial

    return [make(name, *entry) for name, entry in table.items()]


(
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
) = _polynomials(
    {
        "chebyshev_polynomial_t": (
            lambda s, n, x: s.eval_chebyt(n, x),
            "Chebyshev polynomial of the first kind: T(n, cos θ) = cos nθ. -> [-0.8750, -0.5000]",
        ),
        "chebyshev_polynomial_u": (
            lambda s, n, x: s.eval_chebyu(n, x),
            "Chebyshev polynomial of the second kind: U(n, cos θ) = sin (n + 1)θ / sin θ. -> [-0.7500,  0.0000]",
        ),
        "chebyshev_polynomial_v": (
            _third,
            "Chebyshev polynomial of the third kind: V(n, cos θ) = cos (n + ½)θ / cos ½θ. -> [-1.2500, -1.0000]",
        ),
        "chebyshev_polynomial_w": (
            _fourth,
            "Chebyshev polynomial of the fourth kind: W(n, cos θ) = sin (n + ½)θ / sin ½θ. -> [-0.2500,  1.0000]",
        ),
        "shifted_chebyshev_polynomial_t": (
            lambda s, n, x: s.eval_chebyt(n, 2 * x - 1),
            "Shifted Chebyshev polynomial of the first kind: T(n, 2x - 1). -> [-0.5000, -1.0000]",
        ),
        "shifted_chebyshev_polynomial_u": (
            lambda s, n, x: s.eval_chebyu(n, 2 * x - 1),
            "Shifted Chebyshev polynomial of the second kind: U(n, 2x - 1). -> [ 0., -1.]",
        ),
        "shifted_chebyshev_polynomial_v": (
            lambda s, n, x: _third(s, n, 2 * x - 1),
            "Shifted Chebyshev polynomial of the third kind: V(n, 2x - 1). -> [ 1., -1.]",
        ),
        "shifted_chebyshev_polynomial_w": (
            lambda s, n, x: _fourth(s, n, 2 * x - 1),
            "Shifted Chebyshev polynomial of the fourth kind: W(n, 2x - 1). -> [-1., -1.]",
        ),
        "hermite_polynomial_h": (
            lambda s, n, x: s.eval_hermite(n, x),
            "Physicists' Hermite polynomial: H(n + 1) = 2x H(n) - 2n H(n - 1). -> [-1.7500, -1.0000]",
        ),
        "hermite_polynomial_he": (
            lambda s, n, x: s.eval_hermitenorm(n, x),
            "Probabilists' Hermite polynomial: He(n + 1) = x He(n) - n He(n - 1). -> [-0.9375, -0.7500]",
        ),
        "laguerre_polynomial_l": (
            lambda s, n, x: s.eval_laguerre(n, x),
            "Laguerre polynomial: (n + 1) L(n + 1) = (2n + 1 - x) L(n) - n L(n - 1). -> [0.5312, 0.1250]",
        ),
        "legendre_polynomial_p": (
            lambda s, n, x: s.eval_legendre(n, x),
            "Legendre polynomial: (n + 1) P(n + 1) = (2n + 1) x P(n) - n P(n - 1). -> [-0.4062, -0.1250]",
        ),
    }
)

__getattr__ = _module_getattr("gradlab.special")

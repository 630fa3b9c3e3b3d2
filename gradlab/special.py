"""Special functions, as `torch.special` spells them.

Those that torch differentiates are primitives (`gradlab.rules.special`). The Bessel functions J, Y and K, Airy's function and the
orthogonal polynomials have no derivative there, and none here: their results are constants.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.backend.special import special_of
from gradlab.core.destination import takes_out
from gradlab.core.errors import names_of as _names_of
from gradlab.core.promotion import agree_on_float
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import declared_special, log_softmax, softmax
from gradlab.ops.arguments import Called
from gradlab.ops.arithmetic import with_number
from gradlab.ops.declared import erfc
from gradlab.ops.declared_special import *  # noqa: F403  (its stub says what)
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

xlog1py = with_number(
    "special_xlog1py",
    "input · log1p(other), and 0 where `input` is 0.",
    "[0., 2.]; [0., 3.] -> [0.0000, 2.7726]",
    el.xlog1py,
    el.xlog1py.named("SpecialXlog1PyBackward2"),
    el.xlog1py.named("SpecialXlog1PyBackward1"),
    method=False,
    top=False,
)
zeta = with_number(
    "special_zeta",
    "Hurwitz's zeta function of exponent `input` and shift `other`.",
    "[2., 4.]; [1., 1.] -> [1.6449, 1.0823]",
    sp.zeta,
    sp.zeta.named("SpecialZetaBackward2"),
    sp.zeta.named("SpecialZetaBackward1"),
    method=False,
    top=False,
)
_HALF = el.mul.named("MulBackward1")


@takes_out
def ndtr(input: Tensor) -> Tensor:
    """The distribution function of the standard normal distribution."""
    return _HALF.record(erfc(input * -sqrt(0.5)), 0.5)


def _constants(table: dict[str, tuple[Callable[[Any, Any], Any], str]]) -> list[Callable[..., Tensor]]:
    """Functions of one tensor without derivative: {name: (f(library, array), what it is)}."""

    def made(name: str, function: Callable[[Any, Any], Any], doc: str) -> Callable[..., Tensor]:
        called = Called(f"special_{name}")

        @takes_out
        def special(input: Tensor) -> Tensor:
            x = agree_on_float(called, input)[0].array
            return constant(wrap(function(special_of(x), x).astype(x.dtype, copy=False)))

        special.__name__ = special.__qualname__ = name
        special.__doc__ = f"{doc}. It has no derivative."
        return special

    return [made(name, *entry) for name, entry in table.items()]


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
        "bessel_j0": (lambda library, x: library.j0(x), "The Bessel function J₀"),
        "bessel_j1": (lambda library, x: library.j1(x), "The Bessel function J₁"),
        "bessel_y0": (lambda library, x: library.y0(x), "The Bessel function Y₀"),
        "bessel_y1": (lambda library, x: library.y1(x), "The Bessel function Y₁"),
        "modified_bessel_i0": (lambda library, x: library.i0(x), "The modified Bessel function I₀"),
        "modified_bessel_i1": (lambda library, x: library.i1(x), "The modified Bessel function I₁"),
        "modified_bessel_k0": (lambda library, x: library.k0(x), "The modified Bessel function K₀"),
        "modified_bessel_k1": (lambda library, x: library.k1(x), "The modified Bessel function K₁"),
        "scaled_modified_bessel_k0": (lambda library, x: library.k0e(x), "eˣ K₀(x)"),
        "scaled_modified_bessel_k1": (lambda library, x: library.k1e(x), "eˣ K₁(x)"),
        "airy_ai": (lambda library, x: library.airy(x)[0], "Airy's function Ai"),
        "spherical_bessel_j0": (lambda library, x: library.spherical_jn(0, x), "The spherical Bessel function j₀: sin(x) / x"),
    }
)


def _third(library: Any, n: Any, x: Any) -> Any:
    """Chebyshev's polynomials V by those of the second kind (DLMF 18.9.11)."""
    return library.eval_chebyu(n, x) - library.eval_chebyu(n - 1, x) * (n > 0)


def _fourth(library: Any, n: Any, x: Any) -> Any:
    """Chebyshev's polynomials W by those of the second kind (DLMF 18.9.12)."""
    return library.eval_chebyu(n, x) + library.eval_chebyu(n - 1, x) * (n > 0)


def _polynomials(table: dict[str, tuple[Callable[[Any, Any, Any], Any], str]]) -> list[Callable[..., Tensor]]:
    """Orthogonal polynomials: {name: (f(library, degrees, arguments), whose they are)}."""

    def made(name: str, evaluate: Callable[[Any, Any, Any], Any], doc: str) -> Callable[..., Tensor]:
        called = Called(f"special_{name}")
        called.public = ["input", "n"]

        @takes_out
        def polynomial(input: Any, n: Any) -> Tensor:
            x, degree = (t.array for t in agree_on_float(called, input, n))
            xp = namespace_of[type(x)]
            degree = xp.asarray(degree, dtype=np.int64)  # its whole part
            value = evaluate(special_of(x), degree, x.astype(np.float64))
            return constant(wrap(xp.where(degree < 0, 0, value).astype(x.dtype)))

        polynomial.__name__ = polynomial.__qualname__ = name
        polynomial.__doc__ = f"{doc} of degree `n` (a number or a tensor) at `input`. It has no derivative."
        return polynomial

    return [made(name, *entry) for name, entry in table.items()]


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
        "chebyshev_polynomial_t": (lambda s, n, x: s.eval_chebyt(n, x), "Chebyshev's polynomial of the first kind"),
        "chebyshev_polynomial_u": (lambda s, n, x: s.eval_chebyu(n, x), "Chebyshev's polynomial of the second kind"),
        "chebyshev_polynomial_v": (_third, "Chebyshev's polynomial of the third kind"),
        "chebyshev_polynomial_w": (_fourth, "Chebyshev's polynomial of the fourth kind"),
        "shifted_chebyshev_polynomial_t": (lambda s, n, x: s.eval_chebyt(n, 2 * x - 1), "Chebyshev's first kind on [0, 1]"),
        "shifted_chebyshev_polynomial_u": (lambda s, n, x: s.eval_chebyu(n, 2 * x - 1), "Chebyshev's second kind on [0, 1]"),
        "shifted_chebyshev_polynomial_v": (lambda s, n, x: _third(s, n, 2 * x - 1), "Chebyshev's third kind on [0, 1]"),
        "shifted_chebyshev_polynomial_w": (lambda s, n, x: _fourth(s, n, 2 * x - 1), "Chebyshev's fourth kind on [0, 1]"),
        "hermite_polynomial_h": (lambda s, n, x: s.eval_hermite(n, x), "Hermite's polynomial (the physicists')"),
        "hermite_polynomial_he": (lambda s, n, x: s.eval_hermitenorm(n, x), "Hermite's polynomial (the statisticians')"),
        "laguerre_polynomial_l": (lambda s, n, x: s.eval_laguerre(n, x), "Laguerre's polynomial"),
        "legendre_polynomial_p": (lambda s, n, x: s.eval_legendre(n, x), "Legendre's polynomial"),
    }
)

__getattr__ = _names_of("gradlab.special")

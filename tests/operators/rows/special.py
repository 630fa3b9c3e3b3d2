"""Special functions: the error function, gamma functions, Bessel functions."""

from __future__ import annotations

import numpy as np
from operators.spelling import B, I, N, U, V, rows_for

inf, nan = np.inf, np.nan


def names(text):
    return text.split()


EDGES = {"x": V([-2.5, -1, -0.5, 0, 0.25, 0.5, 1, 1.5, 2, 3, 10, nan, inf])}
SMOOTH = names("erf erfc erfcx i0 i0e i1 i1e ndtr log_ndtr sinc expit exp2 expm1")
POSITIVE = names("erfinv gammaln entr ndtri logit log1p")
BESSEL = names(
    "bessel_j0 bessel_j1 bessel_y0 bessel_y1 modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 "
    "modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 airy_ai spherical_bessel_j0"
)
POLYNOMIALS = names(
    "chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w "
    "shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v "
    "shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he laguerre_polynomial_l "
    "legendre_polynomial_p"
)
METHODS = names("erf erfc erfinv lgamma digamma i0")

ROWS = [
    *rows_for([{"x": N(3, 4)}, {"x": N()}, {"x": N(0, 3)}], [f"torch.special.{name}(x)" for name in SMOOTH]),
    *rows_for([{"x": U(3, 4)}, {"x": U()}, {"x": U(0, 3)}], [f"torch.special.{name}(x)" for name in POSITIVE]),
    *rows_for(EDGES, [f"torch.special.{name}(x)" for name in (*SMOOTH, *POSITIVE)]),
    *rows_for(
        [{"x": N(3, 4)}, {"x": U()}, {"x": U(0, 3)}, {"x": V([-2.5, -0.5, 0, 0.25, 1, 10, 1e5, nan])}],
        "torch.special.digamma(x)\ntorch.special.psi(x)",
    ),  # (torch's polygamma is NaN at inf, where its limit is 0)
    *rows_for(
        {"x": U(3, 4, low=0.5, high=6)},
        [
            *(f"torch.{name}(x)" for name in METHODS if name != "erfinv"),
            *(f"torch.special.{name}(x)" for name in BESSEL[4:]),
            *(f"torch.round(torch.special.{name}(x), decimals=5)" for name in BESSEL[:4]),  # torch's are right to 1e-7
            *(f"torch.special.{name}(x / 3, {n})" for name in POLYNOMIALS for n in (0, 1, 2, 5)),
        ],
    ),
    *rows_for(
        {"x": U(3), "i": I(3, low=0, high=5)},
        [
            *(f"torch.special.{name}(x, i)" for name in POLYNOMIALS),
            *(f"torch.special.{name}(0.5, i)" for name in POLYNOMIALS[:2]),
        ],
    ),
    *rows_for(
        {"x": U(2, 3)},
        [
            *(f"x.{name}()" for name in METHODS),
            *(f"x.clone().{name}_()" for name in METHODS),
            *(f"torch.{name}(x.detach(), out=torch.empty(0, dtype=x.dtype))" for name in METHODS),
            *(
                f"torch.special.{name}(x.detach(), out=torch.empty(0, dtype=x.dtype))"
                for name in (*SMOOTH, *POSITIVE, *BESSEL[:3])
            ),
        ],
    ),
    *rows_for({"x": U(2, 3)}, "torch.erf_(x.clone())\ntorch.erfc_(x.clone())\ntorch.i0_(x.clone())"),
    *rows_for(
        {"i": I(3, low=1, high=5), "b": B(3)},
        [*(f"torch.special.{name}({x})" for name in (*SMOOTH, *POSITIVE, *BESSEL[:2]) for x in "ib"), "i.clone().erf_()"],
    ),
    *rows_for(
        {"x": U(3)},
        [
            *(f"torch.special.{name}(x.detach().half())" for name in names("erf gammaln expit i0 ndtr digamma")),
            *(f"torch.{name}(0.5)" for name in METHODS),
            "torch.special.bessel_j0(0.5)",
        ],
    ),
    *rows_for(
        [
            {"x": U(3, 4, low=0.5, high=4), "y": U(4, low=0.5, high=4)},
            {"x": U(low=0.5, high=2), "y": U(2, low=0.5, high=2)},
            {"x": U(0, 3), "y": U(3)},
        ],
        """
        torch.special.xlogy(x, y)
        torch.special.xlog1py(x, y)
        torch.special.xlog1py(x, 2)
        torch.special.xlog1py(2, x)
        torch.special.zeta(x.detach() + 1, y)
        torch.special.zeta(3, y)
        torch.special.zeta(x.detach(), 2)
        torch.igamma(x.detach(), y)
        torch.igammac(x.detach(), y)
        torch.special.gammainc(x.detach(), y)
        torch.special.gammaincc(x.detach(), y)
        x.detach().igamma(y)
        x.detach().igammac(y)
        x.detach().expand(y.shape).clone().igamma_(y.detach()) if x.dim() == 0 else 0
        torch.polygamma(0, x)
        torch.polygamma(1, x)
        torch.polygamma(2, x)
        torch.polygamma(3, input=x)
        torch.special.polygamma(4, x)
        x.polygamma(1)
        torch.mvlgamma(x + 3, 2)
        torch.mvlgamma(x + 3, p=4)
        torch.special.multigammaln(x + 3, 1)
        x.mvlgamma(1)
        ~ x.clone().polygamma_(1)
        (x + 3).mvlgamma_(2)
        torch.special.logit(x / 5, eps=0.3)
        torch.special.round(x, decimals=1)
        torch.special.softmax(x, 0)
        torch.special.log_softmax(x, dim=0)
    """,
    ),
    *rows_for(
        {"x": V([0, 0, 1, -1, nan, 1, 0, 2]), "y": V([0, -1, -1, 0, 1, nan, -2, 2])},
        """
        torch.special.xlogy(x, y)
        torch.special.xlog1py(x, y)
        torch.special.zeta(x.detach(), y.detach())
        torch.igamma(x.detach(), y.detach())
        torch.igammac(x.detach(), y.detach())
        torch.polygamma(1, x)
        torch.polygamma(2, x.detach())
    """,
    ),
    *rows_for(
        {"x": U(3), "i": I(3, low=1, high=4)},
        """
        torch.igamma(x, x)
        torch.special.zeta(x + 1, x)
        torch.special.zeta(x + 1, 2)
        torch.igamma(x, 2)
        torch.igamma(i, i)
        torch.igamma(x.detach(), i)
        torch.polygamma(-1, x)
        torch.polygamma(1.5, x)
        torch.polygamma(x, 1)
        torch.polygamma(2, i)
        torch.mvlgamma(x, 0)
        torch.mvlgamma(i + 2, 2)
        torch.mvlgamma(x, 3)
        torch.xlogy(2, 3)
        torch.special.xlog1py(x, 'a')
        torch.special.zeta(i, i)
        torch.special.zeta(2, 'a')
        torch.erf('a')
        torch.lgamma(None)
        torch.erfc([1.0])
        torch.sigmoid(2.0)
    """,
    ),
]

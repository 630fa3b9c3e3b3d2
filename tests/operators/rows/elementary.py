"""The functions of one number: exponentials, trigonometry, rounding."""

from __future__ import annotations

import numpy as np
from operators.spelling import B, I, N, U, V, rows_for

inf, nan = np.inf, np.nan


def names(text):
    return text.split()


EDGES = {"x": V([-2, -1, -0.5, -0.0, 0, 0.25, 0.5, 1, 1.5, 2, 2.5, 3, 100, -100, nan, inf, -inf])}
FINITE = {"x": V([-2, -0.5, 0, 0.25, 0.3, 0.5, 0.9, 1, 1.5, 2.5, 100, -100])}  # (logit's slope at NaN hangs on the build)
SMALL = {"x": V([1e-8, -1e-8, 1e-3, 0.999, 1e-30])}
ANYWHERE = names(
    "sin cos tan atan sinh cosh tanh asinh exp exp2 expm1 sigmoid sinc deg2rad rad2deg floor ceil round trunc fix "
    "frac sign sgn arctan arcsinh nan_to_num angle"
)
UNIT = names("log log2 log10 log1p sqrt rsqrt asin acos atanh logit arcsin arccos arctanh")
BOTH = [*ANYWHERE, *UNIT, "acosh", "arccosh"]
AREA = "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh"  # torch has no derivative of their twins; we do
TWINS = [name for name in BOTH if name not in ("angle", *AREA)]
TOP_TWINS = [name for name in TWINS if name not in ("sign", "sgn")]

ROWS = [
    *rows_for([{"x": N(3, 4)}, {"x": N()}, {"x": N(0, 3)}], [f"torch.{name}(x)" for name in ANYWHERE]),
    *rows_for([{"x": U(3, 4)}, {"x": U()}, {"x": U(0, 3)}], [f"torch.{name}(x)" for name in UNIT]),
    *rows_for(
        [{"x": U(3, 4, low=1.1, high=3)}, {"x": U(low=1.1, high=3)}],
        """
        torch.acosh(x)
        torch.arccosh(x)
        x.acosh()
        x.detach().clone().acosh_()
        x.detach().clone().arccosh_()
    """,
    ),
    *rows_for(EDGES, [f"torch.{name}(x)" for name in BOTH if name not in ("nan_to_num", "logit")]),
    *rows_for(EDGES, "torch.nan_to_num(x).clamp(-9, 9)"),
    *rows_for(FINITE, "torch.logit(x)"),
    *rows_for(
        SMALL,
        [
            f"torch.{name}(x)"
            for name in ("exp", "expm1", "log1p", "sinh", "tanh", "asinh", "atanh", "logit", "sigmoid", "rsqrt", "log", "acos")
        ],
    ),
    *rows_for({"x": U(2, 3)}, [f"x.{name}()" for name in BOTH if "acosh" not in name and "arccosh" not in name]),
    *rows_for({"x": U(2, 3)}, [f"x.clone().{name}_()" for name in TWINS]),
    *rows_for({"x": U(2, 3)}, [f"torch.{name}_(x.clone())" for name in TOP_TWINS]),
    *rows_for({"x": U(2, 3)}, [f"x.detach().clone().{name}_()" for name in AREA]),
    *rows_for({"x": U(2, 3)}, [f"torch.{name}_(x.detach() + 0)" for name in AREA]),
    *rows_for({"x": U(2, 3)}, [f"torch.{name}(x.detach(), out=torch.empty(0, dtype=x.dtype))" for name in BOTH]),
    *rows_for({"x": U(2, 3)}, [f"torch.{name}(input=x)" for name in ("exp", "sin", "sigmoid", "floor", "logit", "sign")]),
    *rows_for({"i": I(2, 3), "b": B(3)}, [f"torch.{name}({x})" for name in BOTH for x in ("i", "b")]),
    *rows_for({"i": I(2, 3)}, [f"i.clone().{name}_()" for name in ("exp", "sqrt", "floor", "sign", "sin", "round", "frac")]),
    *rows_for(
        {"x": N(3, 4)},
        [f"torch.{name}(x.detach().half())" for name in names("exp log1p sin sigmoid tanh floor rsqrt sinc atan sign")],
    ),
    *rows_for(
        [{"x": N(3, 4)}, FINITE],
        """
        torch.logit(x, eps=0.1)
        torch.logit(x, 0.4)
        x.logit(0.3)
        x.clone().logit_(eps=0.1)
    """,
    ),
    *rows_for(
        [{"x": N(3, 4)}, EDGES],
        """
        torch.round(x, decimals=2)
        torch.round(x, decimals=0)
        torch.round(x * 1000, decimals=-2)
        x.round(decimals=1)
        x.clone().round_(decimals=1)
        torch.nan_to_num(x, nan=5.0).clamp(-9, 9)
        torch.nan_to_num(x, 1.0, 2.0, -3.0)
        x.nan_to_num(posinf=7).clamp(-9, 9)
        x.clone().nan_to_num_(neginf=-7.0).clamp(-9, 9)
        torch.frexp(x).mantissa
        torch.frexp(x).exponent
        torch.frexp(x.detach())
        torch.real(x)
        torch.conj(x)
        x.conj_physical()
        torch.resolve_conj(x)
        torch.resolve_neg(x)
        x.real
        x.clone().conj_physical_().detach()
        torch.signbit(x)
        torch.signbit(torch.round(x))
        torch.signbit(torch.trunc(x))
        torch.signbit(torch.frac(x))
        (x.sin() ** 2 + 2 * x.cos() ** 2).sqrt()
    """,
    ),
    *rows_for(
        {"x": N(2, 3), "i": I(3), "b": B(3)},
        """
        torch.imag(x)
        x.imag
        torch.view_as_real(x)
        torch.frexp(i)
        torch.round(i, decimals=-1)
        torch.round(i, decimals=0)
        torch.logit(i, eps=0.1)
        torch.nan_to_num(i, nan=2)
        torch.nan_to_num(b)
        torch.exp(2.0)
        torch.sin([1.0, 2.0])
        torch.floor(2.5)
        torch.sigmoid('a')
        torch.sqrt(None)
        torch.log(2)
        torch.tanh((1.0,))
        torch.logit(0.5)
        torch.round(2.5)
        torch.nan_to_num(2.0)
        torch.frexp(2.0)
        torch.angle(2.0)
        x.exp_()
        x.sqrt_()
        torch.exp(x, out=torch.empty_like(x))
        torch.exp(x.detach(), out=torch.empty(2, 3, dtype=torch.int64))
        torch.exp(x.detach(), out=torch.empty(2, dtype=x.dtype))
        torch.exp(x.detach(), out=[1])
    """,
    ),
]

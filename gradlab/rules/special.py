"""Special functions. The forwards call SciPy's functions, or CuPy's copies of them (see `special_of`).

The derivatives are special functions again. A rule therefore calls primitives, which run on arrays and are recorded on Tensors,
and `formula` is displayed instead. The identities are from the NIST Digital Library of Mathematical Functions (DLMF).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, pi, sqrt
from math import log as log_of
from typing import NoReturn

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.special import special_of
from gradlab.core.operator import operator
from gradlab.core.primitive import Primitive, elementwise
from gradlab.core.properties import Properties
from gradlab.rules.arguments import Array, Namespace
from gradlab.rules.elementwise import sign_of

ROOT_PI, ROOT_TWO_PI, LOG_PI = sqrt(pi), sqrt(2 * pi), log_of(pi)


def library_function(name: str) -> Callable[..., Array]:
    """Return the special function `name` of one argument, whose result has the dtype of the argument."""

    def forward(x: Array) -> Array:
        result = getattr(special_of(x), name)(x)
        return result if result.dtype == x.dtype else result.astype(x.dtype)

    return forward


def library_function_of_two(name: str) -> Callable[..., Array]:
    """Return the special function `name` of two arguments, whose result has the dtype of the first."""

    def forward(a: Array, b: Array) -> Array:
        result = getattr(special_of(a), name)(a, b)
        return result if result.dtype == a.dtype else result.astype(a.dtype)

    return forward


# --------------------------------------------------------------------------------------------- error function and normal
erf = operator(
    elementwise(
        "erf",
        library_function("erf"),
        x=lambda xp, x: 2 / ROOT_PI * xp.exp(-x * x),
        promote="float",
        tex=r"\mathrm{{erf}}\,{x}",
        properties=Properties(low=-1, high=1, keeps_sign=True, steepest=2 / ROOT_PI, saturates="both", sigmoidal=True),
    ),
    "The error function of each element.",
    "[-1., 0., 1.] -> [-0.8427,  0.0000,  0.8427]",
    inplace="function",
    special="erf",
)
erfc = operator(
    elementwise(
        "erfc",
        library_function("erfc"),
        x=lambda xp, x: -2 / ROOT_PI * xp.exp(-x * x),
        promote="float",
        tex=r"\mathrm{{erfc}}\,{x}",
        properties=Properties(low=0, high=2, steepest=2 / ROOT_PI, saturates="both"),
    ),
    "1 minus the error function of each element, exact where the error function is near 1.",
    "[-1., 0., 1.] -> [1.8427, 1.0000, 0.1573]",
    inplace="function",
    special="erfc",
)
erfcx = operator(
    elementwise(
        "erfcx",
        library_function("erfcx"),
        x=lambda x, out: 2 * x * out - 2 / ROOT_PI,
        promote="float",
        tex=r"\mathrm{{erfcx}}\,{x}",
        node="SpecialErfcxBackward0",
        properties=Properties(poles=True, low=0, saturates="above"),
    ),
    "The scaled complementary error function of each element: exp(x²) erfc(x).",
    "[-1., 0., 1.] -> [5.0090, 1.0000, 0.4276]",
    method=False,
    top=False,
    special="erfcx",
)
erfinv = operator(
    elementwise(
        "erfinv",
        library_function("erfinv"),
        x=lambda xp, out: ROOT_PI / 2 * xp.exp(out * out),
        promote="float",
        tex=r"\mathrm{{erf}}^{{-1}}\,{x}",
        properties=Properties(poles=True, keeps_sign=True),
    ),
    "The inverse of the error function of each element; NaN outside [-1, 1].",
    "[-0.5, 0., 0.5] -> [-0.4769,  0.0000,  0.4769]",
    inplace="method",
    special="erfinv",
)
ndtri = operator(
    elementwise(
        "ndtri",
        library_function("ndtri"),
        x=lambda xp, out: ROOT_TWO_PI * xp.exp(0.5 * (out * out)),
        promote="float",
        tex=r"\Phi^{{-1}}({x})",
        node="SpecialNdtriBackward0",
        properties=Properties(poles=True),
    ),
    "The quantile function of the standard normal distribution.",
    "[0.25, 0.5, 0.75] -> [-0.6745,  0.0000,  0.6745]",
    method=False,
    top=False,
    special="ndtri",
)
log_ndtr = operator(
    elementwise(
        "log_ndtr",
        library_function("log_ndtr"),
        x=lambda g, x: g * (2 / ROOT_TWO_PI) / erfcx(x * -sqrt(0.5)),
        promote="float",
        tex=r"\log \Phi({x})",
        node="SpecialLogNdtrBackward0",
        formula=r"\bar{x} = \bar{y}\,\frac{\varphi(x)}{\Phi(x)}",
        properties=Properties(high=0, saturates="above"),
    ),
    "The logarithm of the standard normal distribution function, exact far below 0.",
    "[-10., 0., 1.] -> [-53.2313,  -0.6931,  -0.1728]",
    method=False,
    top=False,
    special="log_ndtr",
)


# ------------------------------------------------------------------------------------------------------- gamma and zeta
def log_abs_gamma(x: Array) -> Array:
    """Compute log |Γ(x)|. At -∞ it is ∞, as at each pole; SciPy returns -∞ there."""
    result = library_function("gammaln")(x)
    return namespace_of[type(x)].where(x == -inf, inf, result)


lgamma = operator(
    elementwise(
        "lgamma",
        log_abs_gamma,
        x=lambda g, x: g * digamma(x),
        promote="float",
        tex=r"\log\left|\Gamma({x})\right|",
        formula=r"\bar{x} = \bar{y}\,\psi(x)",
        properties=Properties(poles=True),
    ),
    "The logarithm of the absolute value of the gamma function.",
    "[0.5, 2., 4.] -> [0.5724, 0.0000, 1.7918]",
    inplace="method",
    special="gammaln",
)
digamma: Primitive = operator(
    elementwise(
        "digamma",
        library_function("digamma"),
        x=lambda x: polygamma(x, n=1),
        promote="float",
        tex=r"\psi({x})",
        formula=r"\bar{x} = \bar{y}\,\psi'(x)",
        properties=Properties(poles=True),
    ),
    "The logarithmic derivative of the gamma function.",
    "[0.5, 1., 2.] -> [-1.9635, -0.5772,  0.4228]",
    inplace="method",
    special="digamma psi",
)


def derivative_of_digamma(xp: Namespace, x: Array, *, n: int) -> Array:
    """Compute ψ⁽ⁿ⁾(x) = (-1)ⁿ⁺¹ n! ζ(n + 1, x) (DLMF 5.15.1), and ψ for n = 0. For n = 1, reflect x < 1/2 (DLMF 5.15.6)."""
    library = special_of(x)
    if n == 0:
        result = library.digamma(x)
    elif n == 1:
        result = library.zeta(2, xp.where(x < 0.5, 1 - x, x))
        sine = xp.sin(pi * x)
        result = xp.where(x < 0.5, pi * pi / (sine * sine) - result, result)
    else:
        result = library.zeta(n + 1, x) * (-1.0) ** (n + 1) * (factorial(n) if n < 171 else inf)
    return result if result.dtype == x.dtype else result.astype(x.dtype)


polygamma: Primitive = elementwise(
    "polygamma",
    derivative_of_digamma,
    x=lambda x, n: polygamma(x, n=n + 1),
    promote="float",
    tex=r"\psi^{{({n})}}({x})",
    formula=r"\bar{x} = \bar{y}\,\psi^{(n+1)}(x)",
    properties=Properties(poles=True),
)


def log_multivariate_gamma(x: Array, *, p: int) -> Array:
    return sum(lgamma(x - 0.5 * j) for j in range(p)) + 0.25 * p * (p - 1) * LOG_PI


mvlgamma = elementwise(
    "mvlgamma",
    log_multivariate_gamma,
    x=lambda x, p: sum(digamma(x - 0.5 * j) for j in range(p)),
    promote="float",
    tex=r"\log \Gamma_{{{p}}}({x})",
    formula=r"\bar{x} = \bar{y}\,\textstyle\sum_{j=0}^{p-1} \psi(x - j/2)",
    properties=Properties(poles=True),
)


def missing_rule(what: str) -> Callable[..., NoReturn]:
    """Return a rule that raises the error of PyTorch, which does not have it either."""

    def refuse(g: Array) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return refuse


def gamma_density(xp: Namespace, a: Array, b: Array) -> Array:
    """Compute d P(a, x) / dx = x^(a-1) e^-x / Γ(a)."""
    return xp.exp((a - 1) * xp.log(b) - b - lgamma(a))


igamma = operator(
    elementwise(
        "igamma",
        library_function_of_two("gammainc"),
        a=missing_rule("igamma: input"),
        b=gamma_density,
        promote="real tensors",
        tex=r"P({a}, {b})",
        formula=r"\bar{b} = \bar{y}\,\frac{b^{a-1} e^{-b}}{\Gamma(a)}",
        properties=Properties(poles=True, low=0, high=1),
    ),
    "The regularised lower incomplete gamma function P(`input`, `other`).",
    "[1., 2.]; [1., 3.] -> [0.6321, 0.8009]",
    inplace="method",
    special="gammainc",
)
igammac = operator(
    elementwise(
        "igammac",
        library_function_of_two("gammaincc"),
        a=missing_rule("igammac: input"),
        promote="real tensors",
        b=lambda xp, a, b: -gamma_density(xp, a, b),
        tex=r"Q({a}, {b})",
        formula=r"\bar{b} = -\bar{y}\,\frac{b^{a-1} e^{-b}}{\Gamma(a)}",
        properties=Properties(poles=True, low=0, high=1),
    ),
    "The regularised upper incomplete gamma function Q(`input`, `other`).",
    "[1., 2.]; [1., 3.] -> [0.3679, 0.1991]",
    inplace="method",
    special="gammaincc",
)
zeta: Primitive = elementwise(
    "zeta",
    library_function_of_two("zeta"),
    a=missing_rule("zeta"),
    b=lambda a, b: -a * zeta(a + 1, b),
    promote="float",
    tex=r"\zeta({a}, {b})",
    node="SpecialZetaBackward0",
    formula=r"\bar{b} = -\bar{y}\,a\,\zeta(a + 1, b)",
    properties=Properties(poles=True),
)

# --------------------------------------------------------------------------------------------- modified Bessel functions
EPSILON = {2: 9.765625e-4, 4: 1.1920929e-7, 8: 2.220446049250313e-16}


def slope_away_from_zero(xp: Namespace, x: Array, slope: Callable[[Array], Array], at_zero: float) -> Array:
    """Return `slope(x)`, which divides by x, and `at_zero` where |x| is at most EPSILON."""
    apart = xp.absolute(x) > EPSILON[x.dtype.itemsize]
    return xp.where(apart, slope(xp.where(apart, x, 1)), at_zero)


i0 = operator(
    elementwise(
        "i0",
        library_function("i0"),
        x=lambda g, x: g * i1(x),
        promote="float",
        tex="I_0({x})",
        formula=r"\bar{x} = \bar{y}\,I_1(x)",
        properties=Properties(poles=True, still=True, low=1),
    ),
    "The modified Bessel function of the first kind of order 0.",
    "[0., 1., 2.] -> [1.0000, 1.2661, 2.2796]",
    inplace="function",
    special="i0",
)
i1: Primitive = operator(
    elementwise(
        "i1",
        library_function("i1"),
        x=lambda xp, x, out: slope_away_from_zero(xp, x, lambda safe: i0(safe) - out / safe, 0.5),
        promote="float",
        tex="I_1({x})",
        node="SpecialI1Backward0",
        formula=r"\bar{x} = \bar{y}\,\left(I_0(x) - y / x\right)",
        properties=Properties(poles=True, keeps_sign=True),
    ),
    "The modified Bessel function of the first kind of order 1.",
    "[0., 1., 2.] -> [0.0000, 0.5652, 1.5906]",
    method=False,
    top=False,
    special="i1",
)
i0e = operator(
    elementwise(
        "i0e",
        library_function("i0e"),
        x=lambda xp, x, out: i1e(x) - sign_of(xp, x) * out,
        promote="float",
        tex=r"e^{{-|{x}|}} I_0({x})",
        node="SpecialI0EBackward0",
        formula=r"\bar{x} = \bar{y}\,e^{-|x|} (I_1(x) - \mathrm{sgn}(x)\,I_0(x))",
        properties=Properties(still=True, low=0, high=1, saturates="both"),
    ),
    "The modified Bessel function of the first kind of order 0, scaled by exp(-abs(x)).",
    "[0., 1., 2.] -> [1.0000, 0.4658, 0.3085]",
    method=False,
    top=False,
    special="i0e",
)
i1e: Primitive = operator(
    elementwise(
        "i1e",
        library_function("i1e"),
        promote="float",
        tex=r"e^{{-|{x}|}} I_1({x})",
        node="SpecialI1EBackward0",
        x=lambda xp, x, out: slope_away_from_zero(xp, x, lambda safe: i0e(safe) - out * (sign_of(xp, safe) + 1 / safe), 0.5),
        formula=r"\bar{x} = \bar{y}\,\left(e^{-|x|} I_0(x) - y\,(\mathrm{sgn}(x) + 1 / x)\right)",
        properties=Properties(keeps_sign=True, saturates="both"),
    ),
    "The modified Bessel function of the first kind of order 1, scaled by exp(-abs(x)).",
    "[0., 1., 2.] -> [0.0000, 0.2079, 0.2153]",
    method=False,
    top=False,
    special="i1e",
)


def entropy(xp: Namespace, x: Array) -> Array:
    """Compute -x log x, with its limit 0 at 0, and -inf for negative x."""
    positive = x > 0
    return xp.where(positive, -x * xp.log(xp.where(positive, x, 1)), xp.where(x < 0, -inf, x * 0))


entr = operator(
    elementwise(
        "entr",
        entropy,
        x=lambda xp, g, x: g * (-xp.log(x) - 1),
        promote="float",
        tex=r"-{x} \log {x}",
        node="SpecialEntrBackward0",
        properties=Properties(poles=True),
    ),
    "The entropy term -x log x of each element x: 0 at 0, -inf for negative elements.",
    "[0., 0.5, 1.] -> [0.0000, 0.3466, -0.0000]",
    method=False,
    top=False,
    special="entr",
)

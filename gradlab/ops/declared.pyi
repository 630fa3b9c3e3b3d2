# Written by `python tests/stubs.py` from the declarations of operators.
from gradlab.core.tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "deg2rad",
    "digamma",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "fmax",
    "fmin",
    "frac",
    "hypot",
    "i0",
    "igamma",
    "igammac",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "maximum",
    "minimum",
    "neg",
    "negative",
    "nextafter",
    "rad2deg",
    "reciprocal",
    "relu",
    "rsqrt",
    "sgn",
    "sigmoid",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]

def neg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The negative of each element."""
negative = neg

def abs(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The absolute value of each element. Its derivative at 0 is 0."""
absolute = abs

def reciprocal(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 divided by each element."""

def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`input` times 2 to the power of `other`."""

def hypot(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hypotenuse of a right triangle with the legs `input` and `other`."""

def atan2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle, in radians, from the positive x-axis to the point (`other`, `input`)."""
arctan2 = atan2

def logaddexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of the exponentials of `input` and `other`, without overflow."""

def logaddexp2(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2 of 2 ** `input` + 2 ** `other`, without overflow."""

def relu(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The rectified linear unit: positive elements are kept, others become 0. The derivative at 0 is 0."""

def maximum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element-wise maximum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient."""

def minimum(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element-wise minimum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient."""

def fmax(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element-wise maximum of `input` and `other`; if one of them is NaN, the other one."""

def fmin(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The element-wise minimum of `input` and `other`; if one of them is NaN, the other one."""

def nextafter(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The next representable number after each element of `input` in the direction of `other`."""

def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential of each element."""

def exp2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """2 to the power of each element."""

def expm1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The exponential of each element minus 1, exact near 0."""

def log(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of each element."""

def log2(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 2 of each element."""

def log10(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm to base 10 of each element."""

def log1p(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The natural logarithm of 1 plus each element, exact near 0."""

def sqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The square root of each element."""

def rsqrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The reciprocal of the square root of each element."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logistic function of each element."""

def sin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sine of each element, an angle in radians."""

def cos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The cosine of each element, an angle in radians."""

def tan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The tangent of each element, an angle in radians."""

def asin(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arcsine of each element, in radians; NaN outside [-1, 1]."""
arcsin = asin

def acos(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arccosine of each element, in radians; NaN outside [-1, 1]."""
arccos = acos

def atan(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The arctangent of each element, in radians."""
arctan = atan

def sinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic sine of each element."""

def cosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic cosine of each element."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent of each element."""

def asinh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic sine of each element."""
arcsinh = asinh

def acosh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic cosine of each element; NaN below 1."""
arccosh = acosh

def atanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""
arctanh = atanh

def deg2rad(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Convert angles from degrees to radians."""

def rad2deg(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Convert angles from radians to degrees."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The normalised cardinal sine of each element: 1 at 0."""

def floor(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The largest integer less than or equal to each element. Its derivative is 0."""

def ceil(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The smallest integer greater than or equal to each element. Its derivative is 0."""

def trunc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Each element rounded towards 0. Its derivative is 0."""
fix = trunc

def frac(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The fractional part of each element, with its sign."""

def sign(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of each element: -1, 0 or 1. Its derivative is 0."""

def sgn(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The sign of each element: -1, 0 or 1. Its derivative is 0."""

def angle(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The angle of each element in the complex plane: π for negative elements, otherwise 0."""

def erf(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The error function of each element."""

def erfc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """1 minus the error function of each element, exact where the error function is near 1."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The scaled complementary error function of each element: exp(x²) erfc(x)."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of the error function of each element; NaN outside [-1, 1]."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The quantile function of the standard normal distribution."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the standard normal distribution function, exact far below 0."""

def lgamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithm of the absolute value of the gamma function."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The logarithmic derivative of the gamma function."""

def igamma(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(`input`, `other`)."""

def igammac(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function Q(`input`, `other`)."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 0, scaled by exp(-abs(x))."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function of the first kind of order 1, scaled by exp(-abs(x))."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The entropy term -x log x of each element x: 0 at 0, -inf for negative elements."""

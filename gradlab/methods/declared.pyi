# Written by `python tests/stubs.py` from the declarations of operators.
from gradlab.core.tensor import Tensor
from typing import Any

__all__ = [
    "abs_",
    "acos_",
    "acosh_",
    "arccos_",
    "arccosh_",
    "arcsin_",
    "arcsinh_",
    "arctan_",
    "arctanh_",
    "asin_",
    "asinh_",
    "atan_",
    "atanh_",
    "ceil_",
    "clamp_",
    "clamp_max_",
    "clamp_min_",
    "clip_",
    "cos_",
    "cosh_",
    "deg2rad_",
    "erf_",
    "erfc_",
    "exp2_",
    "exp_",
    "expm1_",
    "fix_",
    "floor_",
    "frac_",
    "gcd_",
    "i0_",
    "lcm_",
    "ldexp_",
    "log10_",
    "log1p_",
    "log2_",
    "log_",
    "logit_",
    "nan_to_num_",
    "neg_",
    "negative_",
    "rad2deg_",
    "reciprocal_",
    "relu_",
    "round_",
    "rsqrt_",
    "sigmoid_",
    "sin_",
    "sinc_",
    "sinh_",
    "sqrt_",
    "square_",
    "tan_",
    "tanh_",
    "trunc_",
    "xlogy_",
]

def neg_(input: Tensor) -> Tensor:
    """`neg`, written into the memory of `input`."""
negative_ = neg_

def abs_(input: Tensor) -> Tensor:
    """`abs`, written into the memory of `input`."""

def reciprocal_(input: Tensor) -> Tensor:
    """`reciprocal`, written into the memory of `input`."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """`ldexp`, written into the memory of `input`."""

def relu_(input: Tensor) -> Tensor:
    """`relu`, written into the memory of `input`."""

def xlogy_(input: Tensor, other: Any) -> Tensor:
    """`xlogy`, written into the memory of `input`."""

def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, written into the memory of `input`."""
clip_ = clamp_

def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """`clamp_min`, written into the memory of `input`."""

def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """`clamp_max`, written into the memory of `input`."""

def exp_(input: Tensor) -> Tensor:
    """`exp`, written into the memory of `input`."""

def exp2_(input: Tensor) -> Tensor:
    """`exp2`, written into the memory of `input`."""

def expm1_(input: Tensor) -> Tensor:
    """`expm1`, written into the memory of `input`."""

def log_(input: Tensor) -> Tensor:
    """`log`, written into the memory of `input`."""

def log2_(input: Tensor) -> Tensor:
    """`log2`, written into the memory of `input`."""

def log10_(input: Tensor) -> Tensor:
    """`log10`, written into the memory of `input`."""

def log1p_(input: Tensor) -> Tensor:
    """`log1p`, written into the memory of `input`."""

def sqrt_(input: Tensor) -> Tensor:
    """`sqrt`, written into the memory of `input`."""

def rsqrt_(input: Tensor) -> Tensor:
    """`rsqrt`, written into the memory of `input`."""

def sigmoid_(input: Tensor) -> Tensor:
    """`sigmoid`, written into the memory of `input`."""

def sin_(input: Tensor) -> Tensor:
    """`sin`, written into the memory of `input`."""

def cos_(input: Tensor) -> Tensor:
    """`cos`, written into the memory of `input`."""

def tan_(input: Tensor) -> Tensor:
    """`tan`, written into the memory of `input`."""

def asin_(input: Tensor) -> Tensor:
    """`asin`, written into the memory of `input`."""
arcsin_ = asin_

def acos_(input: Tensor) -> Tensor:
    """`acos`, written into the memory of `input`."""
arccos_ = acos_

def atan_(input: Tensor) -> Tensor:
    """`atan`, written into the memory of `input`."""
arctan_ = atan_

def sinh_(input: Tensor) -> Tensor:
    """`sinh`, written into the memory of `input`."""

def cosh_(input: Tensor) -> Tensor:
    """`cosh`, written into the memory of `input`."""

def tanh_(input: Tensor) -> Tensor:
    """`tanh`, written into the memory of `input`."""

def asinh_(input: Tensor) -> Tensor:
    """`asinh`, written into the memory of `input`."""
arcsinh_ = asinh_

def acosh_(input: Tensor) -> Tensor:
    """`acosh`, written into the memory of `input`."""
arccosh_ = acosh_

def atanh_(input: Tensor) -> Tensor:
    """`atanh`, written into the memory of `input`."""
arctanh_ = atanh_

def deg2rad_(input: Tensor) -> Tensor:
    """`deg2rad`, written into the memory of `input`."""

def rad2deg_(input: Tensor) -> Tensor:
    """`rad2deg`, written into the memory of `input`."""

def sinc_(input: Tensor) -> Tensor:
    """`sinc`, written into the memory of `input`."""

def floor_(input: Tensor) -> Tensor:
    """`floor`, written into the memory of `input`."""

def ceil_(input: Tensor) -> Tensor:
    """`ceil`, written into the memory of `input`."""

def trunc_(input: Tensor) -> Tensor:
    """`trunc`, written into the memory of `input`."""
fix_ = trunc_

def frac_(input: Tensor) -> Tensor:
    """`frac`, written into the memory of `input`."""

def erf_(input: Tensor) -> Tensor:
    """`erf`, written into the memory of `input`."""

def erfc_(input: Tensor) -> Tensor:
    """`erfc`, written into the memory of `input`."""

def i0_(input: Tensor) -> Tensor:
    """`i0`, written into the memory of `input`."""

def logit_(input: Tensor, eps: float | None = None) -> Tensor:
    """`logit`, written into the memory of `input`."""

def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """`round`, written into the memory of `input`."""

def nan_to_num_(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """`nan_to_num`, written into the memory of `input`."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """`gcd`, written into the memory of `input`."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """`lcm`, written into the memory of `input`."""

def square_(input: Tensor) -> Tensor:
    """`square`, written into the memory of `input`."""

class Declared:
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """Each element with the other sign."""
    negative = neg

    def neg_(self) -> Tensor:
        """`neg`, written into this tensor's memory."""
    negative_ = neg_

    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value of each element. Its derivative at 0 is 0."""
    absolute = abs

    def abs_(self) -> Tensor:
        """`abs`, written into this tensor's memory."""
    absolute_ = abs_

    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """1 divided by each element."""

    def reciprocal_(self) -> Tensor:
        """`reciprocal`, written into this tensor's memory."""

    def ldexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """`input` times 2 to the power of `other`."""

    def ldexp_(self, other: Tensor) -> Tensor:
        """`ldexp`, written into this tensor's memory."""

    def hypot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The hypotenuse of a right triangle with the legs `input` and `other`."""

    def hypot_(self, other: Tensor) -> Tensor:
        """`hypot`, written into this tensor's memory."""

    def atan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle, in radians, from the positive x-axis to the point (`other`, `input`)."""
    arctan2 = atan2

    def atan2_(self, other: Tensor) -> Tensor:
        """`atan2`, written into this tensor's memory."""
    arctan2_ = atan2_

    def logaddexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the sum of the exponentials of `input` and `other`, without overflow."""

    def logaddexp2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2 of the sum of the powers of 2 by `input` and `other`, without overflow."""

    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """Each element where it is positive, else 0. The derivative at 0 is 0."""

    def relu_(self) -> Tensor:
        """`relu`, written into this tensor's memory."""

    def maximum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of the elements of `input` and `other`, and NaN if one of them is. Equal ones share the gradient."""

    def minimum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of the elements of `input` and `other`, and NaN if one of them is. Equal ones share the gradient."""

    def fmax(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The larger of the elements of `input` and `other`, and the other one where one is NaN."""

    def fmin(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The smaller of the elements of `input` and `other`, and the other one where one is NaN."""

    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The number next to each element of `input` in the direction of `other`, as its dtype has them."""

    def nextafter_(self, other: Tensor) -> Tensor:
        """`nextafter`, written into this tensor's memory."""

    def add(self, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """input + alpha · other, element by element."""

    def sub(self, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """input - alpha · other, element by element."""
    subtract = sub

    def mul(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input · other, element by element."""
    multiply = mul

    def div(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """input / other, element by element, of integers as floats; or a quotient that is rounded."""
    divide = div

    def floor_divide(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """⌊input / other⌋, element by element, of integers an integer."""

    def floor_divide_(self, other: Any) -> Tensor:
        """`floor_divide`, written into this tensor's memory."""

    def remainder(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input - other · ⌊input / other⌋: it has the sign of `other`, as Python's %."""

    def remainder_(self, other: Any) -> Tensor:
        """`remainder`, written into this tensor's memory."""

    def fmod(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input - other · trunc(input / other): it has the sign of `input`, as C's fmod."""

    def fmod_(self, other: Any) -> Tensor:
        """`fmod`, written into this tensor's memory."""

    def copysign(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """The magnitude of `input` with the sign of `other`."""

    def copysign_(self, other: Any) -> Tensor:
        """`copysign`, written into this tensor's memory."""

    def xlogy(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input · log(other), and 0 where `input` is 0."""

    def xlogy_(self, other: Any) -> Tensor:
        """`xlogy`, written into this tensor's memory."""

    def true_divide(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input / other, element by element, of integers as floats."""

    def true_divide_(self, other: Any) -> Tensor:
        """`true_divide`, written into this tensor's memory."""

    def clamp(self, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
        """input with what is below `min` raised to it and what is above `max` lowered to it."""
    clip = clamp

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """`clamp`, written into this tensor's memory."""
    clip_ = clamp_

    def clamp_min(self, min: Any, *, out: Tensor | None = None) -> Tensor:
        """input with what is below `min` raised to it."""

    def clamp_min_(self, min: Any) -> Tensor:
        """`clamp_min`, written into this tensor's memory."""

    def clamp_max(self, max: Any, *, out: Tensor | None = None) -> Tensor:
        """input with what is above `max` lowered to it."""

    def clamp_max_(self, max: Any) -> Tensor:
        """`clamp_max`, written into this tensor's memory."""

    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """0 where the element is negative, 1 where it is positive, `values` where it is 0. It has no derivative."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """`heaviside`, written into this tensor's memory."""

    def positive(self) -> Tensor:
        """The tensor itself."""

    def eq(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input = other, element by element."""

    def eq_(self, other: Any) -> Tensor:
        """`eq`, written into this tensor's memory."""

    def ne(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≠ other, element by element."""

    def ne_(self, other: Any) -> Tensor:
        """`ne`, written into this tensor's memory."""

    def lt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input < other, element by element."""

    def lt_(self, other: Any) -> Tensor:
        """`lt`, written into this tensor's memory."""

    def le(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≤ other, element by element."""

    def le_(self, other: Any) -> Tensor:
        """`le`, written into this tensor's memory."""

    def gt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input > other, element by element."""

    def gt_(self, other: Any) -> Tensor:
        """`gt`, written into this tensor's memory."""

    def ge(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≥ other, element by element."""

    def ge_(self, other: Any) -> Tensor:
        """`ge`, written into this tensor's memory."""

    def not_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≠ other, element by element."""

    def not_equal_(self, other: Any) -> Tensor:
        """`not_equal`, written into this tensor's memory."""

    def less(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input < other, element by element."""

    def less_(self, other: Any) -> Tensor:
        """`less`, written into this tensor's memory."""

    def less_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≤ other, element by element."""

    def less_equal_(self, other: Any) -> Tensor:
        """`less_equal`, written into this tensor's memory."""

    def greater(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input > other, element by element."""

    def greater_(self, other: Any) -> Tensor:
        """`greater`, written into this tensor's memory."""

    def greater_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Whether input ≥ other, element by element."""

    def greater_equal_(self, other: Any) -> Tensor:
        """`greater_equal`, written into this tensor's memory."""

    def logical_and(self, other: Tensor) -> Tensor:
        """Whether both elements hold. Numbers other than 0 count as True."""

    def logical_and_(self, other: Tensor) -> Tensor:
        """`logical_and`, written into this tensor's memory."""

    def logical_or(self, other: Tensor) -> Tensor:
        """Whether at least one of the elements holds. Numbers other than 0 count as True."""

    def logical_or_(self, other: Tensor) -> Tensor:
        """`logical_or`, written into this tensor's memory."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """Whether exactly one of the elements holds. Numbers other than 0 count as True."""

    def logical_xor_(self, other: Tensor) -> Tensor:
        """`logical_xor`, written into this tensor's memory."""

    def bitwise_and(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input & other on bools or on the bits of integers."""

    def bitwise_and_(self, other: Any) -> Tensor:
        """`bitwise_and`, written into this tensor's memory."""

    def bitwise_or(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input | other on bools or on the bits of integers."""

    def bitwise_or_(self, other: Any) -> Tensor:
        """`bitwise_or`, written into this tensor's memory."""

    def bitwise_xor(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input ^ other on bools or on the bits of integers."""

    def bitwise_xor_(self, other: Any) -> Tensor:
        """`bitwise_xor`, written into this tensor's memory."""

    def bitwise_left_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """The bits of integers moved to the left: input · 2^other."""

    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """`bitwise_left_shift`, written into this tensor's memory."""

    def bitwise_right_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """The bits of integers moved to the right: ⌊input / 2^other⌋."""

    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """`bitwise_right_shift`, written into this tensor's memory."""

    def isnan(self) -> Tensor:
        """True where the element is NaN."""

    def isfinite(self) -> Tensor:
        """True where the element is neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """True where the element is infinite."""

    def isreal(self) -> Tensor:
        """True everywhere: there are no complex tensors."""

    def isposinf(self) -> Tensor:
        """True where the element is +∞."""

    def isneginf(self) -> Tensor:
        """True where the element is -∞."""

    def signbit(self) -> Tensor:
        """True where the element's sign is minus; -0. has one."""

    def logical_not(self) -> Tensor:
        """True where the element is zero or False."""

    def logical_not_(self) -> Tensor:
        """`logical_not`, written into this tensor's memory."""

    def bitwise_not(self) -> Tensor:
        """~input: every bit of the integers, every bool, turned round."""

    def bitwise_not_(self) -> Tensor:
        """`bitwise_not`, written into this tensor's memory."""

    def isclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """Where |input - other| ≤ atol + rtol · |other|; infinities are close to themselves."""

    def allclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Whether |input - other| ≤ atol + rtol · |other| everywhere."""

    def equal(self, other: Tensor) -> bool:
        """Whether both have the same shape and elements."""

    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Matrix product, written `@` too."""

    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Product of two matrices."""

    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Products of two batches of as many matrices."""

    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Product of a matrix and a vector."""

    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Inner product of two vectors."""

    def vdot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Inner product of two vectors; without complex numbers it is `dot`."""

    def outer(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Outer product: each element of a vector times each of another."""
    ger = outer

    def inner(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Products of elements, summed over the last axes of both."""

    def kron(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Kronecker product: each element of `input` times all of `other`, as blocks."""

    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """The exponential of each element."""

    def exp_(self) -> Tensor:
        """`exp`, written into this tensor's memory."""

    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """2 to the power of each element."""

    def exp2_(self) -> Tensor:
        """`exp2`, written into this tensor's memory."""

    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """The exponential of each element less 1, exact near 0."""

    def expm1_(self) -> Tensor:
        """`expm1`, written into this tensor's memory."""

    def log(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm of each element."""

    def log_(self) -> Tensor:
        """`log`, written into this tensor's memory."""

    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2 of each element."""

    def log2_(self) -> Tensor:
        """`log2`, written into this tensor's memory."""

    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 10 of each element."""

    def log10_(self) -> Tensor:
        """`log10`, written into this tensor's memory."""

    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm of 1 plus each element, exact near 0."""

    def log1p_(self) -> Tensor:
        """`log1p`, written into this tensor's memory."""

    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The square root of each element."""

    def sqrt_(self) -> Tensor:
        """`sqrt`, written into this tensor's memory."""

    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The reciprocal of the square root of each element."""

    def rsqrt_(self) -> Tensor:
        """`rsqrt`, written into this tensor's memory."""

    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """The logistic function of each element."""

    def sigmoid_(self) -> Tensor:
        """`sigmoid`, written into this tensor's memory."""

    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """The sine of each element, an angle in radians."""

    def sin_(self) -> Tensor:
        """`sin`, written into this tensor's memory."""

    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """The cosine of each element, an angle in radians."""

    def cos_(self) -> Tensor:
        """`cos`, written into this tensor's memory."""

    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """The tangent of each element, an angle in radians."""

    def tan_(self) -> Tensor:
        """`tan`, written into this tensor's memory."""

    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """The arcsine of each element, in radians; NaN outside of [-1, 1]."""
    arcsin = asin

    def asin_(self) -> Tensor:
        """`asin`, written into this tensor's memory."""
    arcsin_ = asin_

    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """The arccosine of each element, in radians; NaN outside of [-1, 1]."""
    arccos = acos

    def acos_(self) -> Tensor:
        """`acos`, written into this tensor's memory."""
    arccos_ = acos_

    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """The arctangent of each element, in radians."""
    arctan = atan

    def atan_(self) -> Tensor:
        """`atan`, written into this tensor's memory."""
    arctan_ = atan_

    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic sine of each element."""

    def sinh_(self) -> Tensor:
        """`sinh`, written into this tensor's memory."""

    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic cosine of each element."""

    def cosh_(self) -> Tensor:
        """`cosh`, written into this tensor's memory."""

    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic tangent of each element."""

    def tanh_(self) -> Tensor:
        """`tanh`, written into this tensor's memory."""

    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic sine of each element."""
    arcsinh = asinh

    def asinh_(self) -> Tensor:
        """`asinh`, written into this tensor's memory."""
    arcsinh_ = asinh_

    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic cosine of each element; NaN below 1."""
    arccosh = acosh

    def acosh_(self) -> Tensor:
        """`acosh`, written into this tensor's memory."""
    arccosh_ = acosh_

    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic tangent of each element; NaN outside of [-1, 1]."""
    arctanh = atanh

    def atanh_(self) -> Tensor:
        """`atanh`, written into this tensor's memory."""
    arctanh_ = atanh_

    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Each element, an angle in degrees, in radians."""

    def deg2rad_(self) -> Tensor:
        """`deg2rad`, written into this tensor's memory."""

    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Each element, an angle in radians, in degrees."""

    def rad2deg_(self) -> Tensor:
        """`rad2deg`, written into this tensor's memory."""

    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """The normalised cardinal sine of each element: 1 at 0."""

    def sinc_(self) -> Tensor:
        """`sinc`, written into this tensor's memory."""

    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """The largest integer that is not above each element. Its derivative is 0."""

    def floor_(self) -> Tensor:
        """`floor`, written into this tensor's memory."""

    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """The smallest integer that is not below each element. Its derivative is 0."""

    def ceil_(self) -> Tensor:
        """`ceil`, written into this tensor's memory."""

    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Each element rounded towards 0. Its derivative is 0."""
    fix = trunc

    def trunc_(self) -> Tensor:
        """`trunc`, written into this tensor's memory."""
    fix_ = trunc_

    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """The part of each element behind the point, with its sign."""

    def frac_(self) -> Tensor:
        """`frac`, written into this tensor's memory."""

    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """The sign of each element: -1, 0 or 1. Its derivative is 0."""

    def sign_(self) -> Tensor:
        """`sign`, written into this tensor's memory."""

    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """The sign of each element: -1, 0 or 1. Its derivative is 0."""

    def sgn_(self) -> Tensor:
        """`sgn`, written into this tensor's memory."""

    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """The angle of each element in the complex plane: π where it is negative, else 0."""

    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """The error function of each element."""

    def erf_(self) -> Tensor:
        """`erf`, written into this tensor's memory."""

    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """1 less the error function of each element, exact where that is near 1."""

    def erfc_(self) -> Tensor:
        """`erfc`, written into this tensor's memory."""

    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of the error function of each element; NaN outside of [-1, 1]."""

    def erfinv_(self) -> Tensor:
        """`erfinv`, written into this tensor's memory."""

    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def lgamma_(self) -> Tensor:
        """`lgamma`, written into this tensor's memory."""

    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithmic derivative of the gamma function."""

    def digamma_(self) -> Tensor:
        """`digamma`, written into this tensor's memory."""

    def igamma(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised lower incomplete gamma function of exponent `input` up to `other`."""

    def igamma_(self, other: Tensor) -> Tensor:
        """`igamma`, written into this tensor's memory."""

    def igammac(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised upper incomplete gamma function of exponent `input` from `other` on."""

    def igammac_(self, other: Tensor) -> Tensor:
        """`igammac`, written into this tensor's memory."""

    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0_(self) -> Tensor:
        """`i0`, written into this tensor's memory."""

    def logit(self, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
        """log(input / (1 - input)), the inverse of the sigmoid."""

    def logit_(self, eps: float | None = None) -> Tensor:
        """`logit`, written into this tensor's memory."""

    def round(self, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
        """The nearest integer, of two the even one; or, of floating point, the nearest number with so many decimals."""

    def round_(self, *, decimals: int | None = None) -> Tensor:
        """`round`, written into this tensor's memory."""

    def nan_to_num(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Tensor | None = None) -> Tensor:
        """input with numbers in place of NaN and of the infinities."""

    def nan_to_num_(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
        """`nan_to_num`, written into this tensor's memory."""

    def frexp(self) -> Any:
        """(mantissa, exponent) with input = mantissa · 2^exponent and a mantissa in [0.5, 1)."""

    def mvlgamma(self, p: int, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the multivariate gamma function."""

    def mvlgamma_(self, p: int) -> Tensor:
        """`mvlgamma`, written into this tensor's memory."""

    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor of each pair of integers."""

    def gcd_(self, other: Tensor) -> Tensor:
        """`gcd`, written into this tensor's memory."""

    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple of each pair of integers."""

    def lcm_(self, other: Tensor) -> Tensor:
        """`lcm`, written into this tensor's memory."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
        """input + value · tensor1 · tensor2, element by element."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
        """input + value · tensor1 / tensor2, element by element."""

    def lerp(self, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
        """input + weight · (end - input): the way from `input` to `end`."""

    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """`lerp`, written into this tensor's memory."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """beta · input + alpha · mat1 mat2."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmm`, written into this tensor's memory."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """beta · input + alpha · batch1 batch2, matrix by matrix."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`baddbmm`, written into this tensor's memory."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """beta · input + alpha · mat vec."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addmv`, written into this tensor's memory."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """beta · input + alpha · the outer product of two vectors."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addr`, written into this tensor's memory."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """beta · input + alpha · the sum of the products of two batches of matrices."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """`addbmm`, written into this tensor's memory."""

    def pow(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """input to the power of exponent, either of them a tensor or a number."""

    def square(self, *, out: Tensor | None = None) -> Tensor:
        """The square of each element."""

    def square_(self) -> Tensor:
        """`square`, written into this tensor's memory."""

    def float_power(self, exponent: Any) -> Tensor:
        """input to the power of exponent, in float64."""

# Written by `python tests/stubs.py` from the declarations of operators.
from collections.abc import Callable
from collections.abc import Sequence
from gradlab.core.dtypes import dtype as Dtype
from gradlab.core.layout import memory_format
from gradlab.core.tensor import Tensor
from gradlab.ops.generators import Generator
from gradlab.ops.results import Result
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

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`add`, written into this tensor's memory."""

    def sub(self, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """input - alpha · other, element by element."""
    subtract = sub

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """`sub`, written into this tensor's memory."""
    subtract_ = sub_

    def mul(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """input · other, element by element."""
    multiply = mul

    def mul_(self, other: Any) -> Tensor:
        """`mul`, written into this tensor's memory."""
    multiply_ = mul_

    def div(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """input / other, element by element, of integers as floats; or a quotient that is rounded."""
    divide = div

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """`div`, written into this tensor's memory."""
    divide_ = div_

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

    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """A copy that gradients pass through."""

    def contiguous(self, memory_format: memory_format = ...) -> Tensor:
        """The elements in memory in the order of their indices."""

    def reshape(self, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
        """The elements in another shape: a view where the memory allows, else a copy."""

    def view(self, *sizes: Any, size: Sequence[int] | None = None, dtype: Dtype | None = None) -> Tensor:
        """The same memory in another shape, or with its bits read as another dtype."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements in the shape of another tensor."""

    def view_as(self, other: Tensor) -> Tensor:
        """The same memory in the shape of another tensor."""

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """The dimensions from `start_dim` to `end_dim` made one."""

    def ravel(self) -> Tensor:
        """All elements along one dimension."""

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """One dimension taken apart into several."""

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """Without the dimensions of length 1."""

    def squeeze_(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """`squeeze`, of this very tensor."""

    def unsqueeze(self, dim: int) -> Tensor:
        """With one more dimension, of length 1."""

    def unsqueeze_(self, dim: int) -> Tensor:
        """`unsqueeze`, of this very tensor."""

    def numel(self) -> int:
        """The number of elements."""
    nelement = numel

    def sum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The sum of the elements, over all dimensions or those of `dim`."""

    def mean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The mean of the elements, over all dimensions or those of `dim`."""

    def nansum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The sum of the elements that are not NaN, over all dimensions or those of `dim`."""

    def nanmean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The mean of the elements that are not NaN, over all dimensions or those of `dim`."""

    def prod(self, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The product of all elements, or of those along one axis."""

    def all(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Whether every element is nonzero, over all dimensions or those of `dim`."""

    def any(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Whether some element is nonzero, over all dimensions or those of `dim`."""

    def count_nonzero(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """How many elements are not zero, over all dimensions or those of `dim`."""

    def expand(self, *sizes: int | Sequence[int], size: Sequence[int] | None = None, implicit: bool = False) -> Tensor:
        """Dimensions of length 1 repeated, without copying."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Dimensions of length 1 repeated to the shape of another tensor, without copying."""

    def broadcast_to(self, size: Sequence[int]) -> Tensor:
        """Dimensions of length 1 repeated to the given sizes, without copying: `expand` under NumPy's name."""

    def sum_to_size(self, *size: int | Sequence[int]) -> Tensor:
        """The sum over the dimensions that broadcasting would make or lengthen: the adjoint of `expand`."""

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

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Two dimensions exchanged."""

    def transpose_(self, dim0: int, dim1: int) -> Tensor:
        """`transpose`, of this very tensor."""

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Two dimensions exchanged: `transpose` under NumPy's name."""

    def swapaxes_(self, axis0: int, axis1: int) -> Tensor:
        """`swapaxes`, of this very tensor."""

    def swapdims(self, dim0: int, dim1: int) -> Tensor:
        """Two dimensions exchanged: `transpose` under another name."""

    def swapdims_(self, dim0: int, dim1: int) -> Tensor:
        """`swapdims`, of this very tensor."""

    def permute(self, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """The dimensions in another order."""

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """Some dimensions put elsewhere; the others keep their order."""
    moveaxis = movedim

    def t(self) -> Tensor:
        """The transpose of a matrix."""

    def t_(self) -> Tensor:
        """`t`, of this very tensor."""

    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged: the conjugate transpose, since the numbers are real."""

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

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """The vector product along an axis of length 3."""

    def inner(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Products of elements, summed over the last axes of both."""

    def kron(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Kronecker product: each element of `input` times all of `other`, as blocks."""

    def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
        """The distinct elements, or slices along an axis, in ascending order."""

    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
        """The elements in order, or slices along an axis, without those that equal the one before."""

    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """How often each of 0, 1, 2 and so on occurs, or the sum of the weights of each."""

    def histc(self, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
        """How many elements lie in each of equal intervals."""

    def histogram(self, bins: int | Tensor = 100, *, range: tuple[float, float] | None = None, weight: Tensor | None = None, density: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """How many elements, or the sum of what weights, lie in each of the intervals between edges."""

    def cumsum(self, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The sums of all elements up to each, along one axis."""

    def cumsum_(self, dim: int, *, dtype: Dtype | None = None) -> Tensor:
        """`cumsum`, written into this tensor's memory."""

    def cumprod(self, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """The products of all elements up to each, along one axis."""

    def cumprod_(self, dim: int, *, dtype: Dtype | None = None) -> Tensor:
        """`cumprod`, written into this tensor's memory."""

    def logcumsumexp(self, dim: int, *, out: Tensor | None = None) -> Tensor:
        """The logarithms of the running sums of the powers of e, along one axis."""

    def cummax(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The largest element so far, along one axis, and where it stands."""

    def cummin(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The smallest element so far, along one axis, and where it stands."""

    def diff(self, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
        """The differences of neighbours along an axis, taken `n` times."""

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

    def split(self, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Parts along a dimension, of one length or of the lengths listed."""

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Parts of the lengths listed along a dimension."""

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """A number of parts of one length along a dimension."""

    def unsafe_split(self, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts of `split` as tensors that autograd does not take for views."""

    def unsafe_split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """The parts of `split_with_sizes` as tensors that autograd does not take for views."""

    def unsafe_chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts of `chunk` as tensors that autograd does not take for views."""

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along a dimension, which is dropped."""

    def narrow(self, dim: int, start: int | Tensor, length: int) -> Tensor:
        """A stretch of a dimension."""

    def select(self, dim: int, index: int) -> Tensor:
        """The slice of a dimension at one index."""

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """A diagonal of the plane of two dimensions, as the last dimension."""

    def diag(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """The diagonal of a matrix, or the matrix with a vector on its diagonal."""

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Matrices of zeros with the last dimension on a diagonal."""

    def diagflat(self, offset: int = 0) -> Tensor:
        """The matrix with all the elements on its diagonal."""

    def tril(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """The elements on and below a diagonal of the last two dimensions; the others are 0."""

    def tril_(self, diagonal: int = 0) -> Tensor:
        """`tril`, written into this tensor's memory."""

    def triu(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """The elements on and above a diagonal of the last two dimensions; the others are 0."""

    def triu_(self, diagonal: int = 0) -> Tensor:
        """`triu`, written into this tensor's memory."""

    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""

    def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """A copy with other elements on a diagonal."""

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """A copy with another slice at one index of a dimension."""

    def slice_scatter(self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
        """A copy with other elements in a slice of a dimension."""

    def fill_diagonal_(self, fill_value: float | Tensor, wrap: bool = False) -> Tensor:
        """One number on the diagonal, in place."""

    def bernoulli(self, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """1 with a probability, else 0, for each element."""

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Indices that are drawn with probabilities proportional to weights."""

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

    def tensor_split(self, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
        """A number of parts of nearly one length along a dimension, or the parts between the indices listed."""

    def hsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Parts along the second dimension, or the only one: the columns of a matrix."""

    def vsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Parts along the first dimension: the rows of a matrix."""

    def dsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Parts along the third dimension."""

    def amax(self, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """The largest element, over all dimensions or those of `dim`. A gradient is shared evenly among equals."""

    def amin(self, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """The smallest element, over all dimensions or those of `dim`. A gradient is shared evenly among equals."""

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The smallest and the largest element, of all or along one axis. Each gradient is shared evenly among equals."""

    def max(self, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """The largest element, of all or along one axis; with a second tensor, the largest of each pair."""

    def min(self, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """The smallest element, of all or along one axis; with a second tensor, the smallest of each pair."""

    def argmax(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Where the largest element stands, in the flattened tensor or along one axis: the first of equals."""

    def argmin(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Where the smallest element stands, in the flattened tensor or along one axis: the first of equals."""

    def mvlgamma(self, p: int, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the multivariate gamma function."""

    def mvlgamma_(self, p: int) -> Tensor:
        """`mvlgamma`, written into this tensor's memory."""

    def gather(self, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
        """The elements at an index along a dimension."""

    def take_along_dim(self, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
        """The elements at indices along a dimension; the other dimensions broadcast."""

    def scatter(self, dim: int, index: Tensor, src: Tensor | float | None = None, *, value: float | None = None, reduce: str | None = None, out: Tensor | None = None) -> Tensor:
        """A copy with elements written at an index along a dimension."""

    def scatter_(self, dim: int, index: Tensor, src: Tensor | float | None = None, *, value: float | None = None, reduce: str | None = None) -> Tensor:
        """`scatter`, written into this tensor's memory."""

    def scatter_add(self, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with elements added at an index along a dimension, each as often as its place comes up."""

    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """`scatter_add`, written into this tensor's memory."""

    def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
        """A copy in which each place that an index names holds a reduction of the elements that go there."""

    def scatter_reduce_(self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
        """`scatter_reduce`, written into this tensor's memory."""

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

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """`addcmul`, written into this tensor's memory."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
        """input + value · tensor1 / tensor2, element by element."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """`addcdiv`, written into this tensor's memory."""

    def lerp(self, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
        """input + weight · (end - input): the way from `input` to `end`."""

    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """`lerp`, written into this tensor's memory."""

    def take(self, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Elements by their numbers in the flattened tensor."""

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor:
        """A copy with elements written by their numbers in the flattened tensor."""

    def put_(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """`put`, written into this tensor's memory."""

    def masked_fill(self, mask: Tensor, value: float | Tensor) -> Tensor:
        """A copy with one number where a mask holds."""

    def masked_fill_(self, mask: Tensor, value: float | Tensor) -> Tensor:
        """`masked_fill`, written into this tensor's memory."""

    def masked_select(self, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The elements where a mask holds."""

    def masked_scatter(self, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with the elements of another tensor, in order, where a mask holds."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """`masked_scatter`, written into this tensor's memory."""

    def nonzero(self, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
        """The indices of the elements that are not 0."""

    def argwhere(self) -> Tensor:
        """The indices of the elements that are not 0, one in each row: `nonzero` under NumPy's name."""

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

    def dist(self, other: Tensor, p: float = 2, *, out: Tensor | None = None) -> Tensor:
        """The p-norm of input - other."""

    def renorm(self, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
        """Each slice along an axis scaled down to the norm `maxnorm`, if its norm is larger."""

    def renorm_(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """`renorm`, written into this tensor's memory."""

    def pow(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """input to the power of exponent, either of them a tensor or a number."""

    def pow_(self, exponent: Any) -> Tensor:
        """`pow`, written into this tensor's memory."""

    def square(self, *, out: Tensor | None = None) -> Tensor:
        """The square of each element."""

    def square_(self) -> Tensor:
        """`square`, written into this tensor's memory."""

    def float_power(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """input to the power of exponent, in float64."""

    def float_power_(self, exponent: Any) -> Tensor:
        """`float_power`, written into this tensor's memory."""

    def sort(self, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The elements in order along an axis, and where they stood."""

    def argsort(self, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Tensor | None = None) -> Tensor:
        """Where the elements stand that would be in order along an axis."""

    def msort(self, *, out: Tensor | None = None) -> Tensor:
        """The elements in ascending order along the first axis: the values of `sort(input, 0)`."""

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The `k` largest or smallest elements along an axis, in order, and where they stand."""

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The `k`-th smallest element along an axis, and where it stands."""

    def median(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """The median of the elements, of all or along one axis: of an even number the lower one."""

    def nanmedian(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """The median of the elements that are not NaN, of all or along one axis: of an even number the lower one."""

    def mode(self, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """The most frequent element along an axis, and where it stands last."""

    def quantile(self, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """What a share `q` of the elements does not exceed, of all or along one axis."""

    def nanquantile(self, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """What a share `q` of the elements that are not NaN does not exceed, of all or along one axis."""

    def repeat(self, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
        """A copy that is several times as long along each dimension."""

    def tile(self, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """A copy that is several times as long along each dimension, or along the last ones."""

    def repeat_interleave(self, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
        """Each element, or each slice of a dimension, several times in a row."""

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
        """The elements moved along dimensions; those that leave come back at the other end."""

    def flip(self, *axes: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """A copy with the elements in reverse order."""

    def fliplr(self) -> Tensor:
        """A copy with the columns in reverse order."""

    def flipud(self) -> Tensor:
        """A copy with the rows in reverse order."""

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """A copy turned by right angles in the plane of two dimensions."""

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """All windows along a dimension."""

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """A view whose shape and strides are given."""

    def index_select(self, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The slices of a dimension at several indices."""

    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
        """A copy with slices added to those of a dimension, each as often as its index comes up."""

    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """`index_add`, written into this tensor's memory."""

    def index_reduce(self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
        """A copy in which each slice that an index names holds a reduction of the slices that go there."""

    def index_reduce_(self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
        """`index_reduce`, written into this tensor's memory."""

    def index_copy(self, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with other slices at several indices of a dimension."""

    def index_copy_(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """`index_copy`, written into this tensor's memory."""

    def index_fill(self, dim: int, index: Tensor, value: float | Tensor, *, out: Tensor | None = None) -> Tensor:
        """A copy with one number in several slices of a dimension."""

    def index_fill_(self, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
        """`index_fill`, written into this tensor's memory."""

    def index_put(self, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor:
        """A copy of which `x[indices] = values`."""

    def index_put_(self, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
        """`index_put`, written into this tensor's memory."""

    def softmax(self, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """Positive numbers that sum to 1 along an axis, in the proportions of the powers of e."""

    def log_softmax(self, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of `softmax` along an axis."""

    def logsumexp(self, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the sum of the powers of e, over the axes `dim`."""

    def std(self, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, out: Tensor | None = None) -> Tensor:
        """The standard deviation, over all dimensions or those of `dim`."""

    def var(self, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, out: Tensor | None = None) -> Tensor:
        """The variance, over all dimensions or those of `dim`."""

    def cov(self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """The covariances of variables, each a row, over observations, each a column."""

    def corrcoef(self) -> Tensor:
        """The correlations of variables, each a row, over observations, each a column."""

    def is_floating_point(self) -> bool:
        """Whether the elements are floating point numbers: only those have gradients."""

    def is_signed(self) -> bool:
        """Whether the dtype has negative numbers."""

    def is_complex(self) -> bool:
        """Whether the elements are complex numbers: never, since gradlab has no complex numbers."""

    def is_conj(self) -> bool:
        """Whether the conjugate is still to be taken: never, since gradlab has no complex numbers."""

    def is_neg(self) -> bool:
        """Whether the sign is still to be changed: never, since gradlab has no complex numbers."""

    def is_nonzero(self) -> bool:
        """Whether the only element is not 0."""

    def is_same_size(self, other: Tensor) -> bool:
        """Whether two tensors have one shape."""

    def prelu(self, weight: Tensor) -> Tensor:
        """The elements where they are positive, a learned multiple of them elsewhere."""

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """The elements of a magnitude greater than a limit, 0 in place of the others."""

    def inverse(self) -> Tensor:
        """The inverse of square matrices."""

    def det(self) -> Tensor:
        """The determinant of square matrices."""

    def matrix_exp(self) -> Tensor:
        """The exponential of square matrices: 1 + A + A² / 2 + …."""

    def matrix_power(self, n: int) -> Tensor:
        """The product of n times the same square matrix; of its inverse, for negative n."""

    def pinverse(self, rcond: float = 1e-15) -> Tensor:
        """The Moore-Penrose inverse."""

    def slogdet(self) -> Result:
        """The sign of the determinant, and the logarithm of its magnitude."""

    def logdet(self) -> Tensor:
        """The logarithm of the determinant: -inf where it is 0, NaN where it is negative."""

    def norm(self, p: float | str | None = 'fro', dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """The norm of all elements as one vector, or over the axes of `dim`."""

    def cholesky(self, upper: bool = False) -> Tensor:
        """The triangular factor of symmetric positive-definite matrices: `gradlab.linalg.cholesky`."""

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """X with A X = input, from the Cholesky factor of A."""

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """The inverse of A, from its Cholesky factor."""

    def qr(self, some: bool = True) -> Result:
        """The factors of a matrix: orthonormal columns and an upper triangle."""

    def svd(self, some: bool = True, compute_uv: bool = True) -> Result:
        """The singular value decomposition: U diag(S) Vᵀ = input."""

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """The factors of a matrix in one tensor, with the row exchanges: `gradlab.linalg.lu_factor`."""

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """X with A X = b, from the factors that `lu` gave."""

    def zero_(self) -> Tensor:
        """Every element 0, in place."""

    def fill_(self, value: float | Tensor) -> Tensor:
        """Every element one number, in place."""

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Tensor:
        """The elements of another tensor, in place."""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Every element replaced by what a Python function makes of it, in place. Slow."""

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Every element replaced by what a Python function makes of it and of another tensor's, in place. Slow."""

    def resize_(self, *sizes: int | Sequence[int], memory_format: memory_format | None = None) -> Tensor:
        """Another shape in place, also of another number of elements."""

    def set_(self, source: Tensor | None = None) -> Tensor:
        """The memory of another tensor in place of this one's own."""

    def resize_as_(self, the_template: Tensor) -> Tensor:
        """The shape of another tensor, in place: see `resize_`."""

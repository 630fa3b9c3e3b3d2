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
    """In-place version of `neg`."""
negative_ = neg_

def abs_(input: Tensor) -> Tensor:
    """In-place version of `abs`."""

def reciprocal_(input: Tensor) -> Tensor:
    """In-place version of `reciprocal`."""

def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `ldexp`."""

def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`."""

def xlogy_(input: Tensor, other: Any) -> Tensor:
    """In-place version of `xlogy`."""

def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place version of `clamp`."""
clip_ = clamp_

def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place version of `clamp_min`."""

def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place version of `clamp_max`."""

def exp_(input: Tensor) -> Tensor:
    """In-place version of `exp`."""

def exp2_(input: Tensor) -> Tensor:
    """In-place version of `exp2`."""

def expm1_(input: Tensor) -> Tensor:
    """In-place version of `expm1`."""

def log_(input: Tensor) -> Tensor:
    """In-place version of `log`."""

def log2_(input: Tensor) -> Tensor:
    """In-place version of `log2`."""

def log10_(input: Tensor) -> Tensor:
    """In-place version of `log10`."""

def log1p_(input: Tensor) -> Tensor:
    """In-place version of `log1p`."""

def sqrt_(input: Tensor) -> Tensor:
    """In-place version of `sqrt`."""

def rsqrt_(input: Tensor) -> Tensor:
    """In-place version of `rsqrt`."""

def sigmoid_(input: Tensor) -> Tensor:
    """In-place version of `sigmoid`."""

def sin_(input: Tensor) -> Tensor:
    """In-place version of `sin`."""

def cos_(input: Tensor) -> Tensor:
    """In-place version of `cos`."""

def tan_(input: Tensor) -> Tensor:
    """In-place version of `tan`."""

def asin_(input: Tensor) -> Tensor:
    """In-place version of `asin`."""
arcsin_ = asin_

def acos_(input: Tensor) -> Tensor:
    """In-place version of `acos`."""
arccos_ = acos_

def atan_(input: Tensor) -> Tensor:
    """In-place version of `atan`."""
arctan_ = atan_

def sinh_(input: Tensor) -> Tensor:
    """In-place version of `sinh`."""

def cosh_(input: Tensor) -> Tensor:
    """In-place version of `cosh`."""

def tanh_(input: Tensor) -> Tensor:
    """In-place version of `tanh`."""

def asinh_(input: Tensor) -> Tensor:
    """In-place version of `asinh`."""
arcsinh_ = asinh_

def acosh_(input: Tensor) -> Tensor:
    """In-place version of `acosh`."""
arccosh_ = acosh_

def atanh_(input: Tensor) -> Tensor:
    """In-place version of `atanh`."""
arctanh_ = atanh_

def deg2rad_(input: Tensor) -> Tensor:
    """In-place version of `deg2rad`."""

def rad2deg_(input: Tensor) -> Tensor:
    """In-place version of `rad2deg`."""

def sinc_(input: Tensor) -> Tensor:
    """In-place version of `sinc`."""

def floor_(input: Tensor) -> Tensor:
    """In-place version of `floor`."""

def ceil_(input: Tensor) -> Tensor:
    """In-place version of `ceil`."""

def trunc_(input: Tensor) -> Tensor:
    """In-place version of `trunc`."""
fix_ = trunc_

def frac_(input: Tensor) -> Tensor:
    """In-place version of `frac`."""

def erf_(input: Tensor) -> Tensor:
    """In-place version of `erf`."""

def erfc_(input: Tensor) -> Tensor:
    """In-place version of `erfc`."""

def i0_(input: Tensor) -> Tensor:
    """In-place version of `i0`."""

def logit_(input: Tensor, eps: float | None = None) -> Tensor:
    """In-place version of `logit`."""

def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """In-place version of `round`."""

def nan_to_num_(input: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """In-place version of `nan_to_num`."""

def gcd_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `gcd`."""

def lcm_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of `lcm`."""

def square_(input: Tensor) -> Tensor:
    """In-place version of `square`."""

class Declared:
    def neg(self, *, out: Tensor | None = None) -> Tensor:
        """The negative of each element."""
    negative = neg

    def neg_(self) -> Tensor:
        """In-place version of `neg`."""
    negative_ = neg_

    def abs(self, *, out: Tensor | None = None) -> Tensor:
        """The absolute value of each element. Its derivative at 0 is 0."""
    absolute = abs

    def abs_(self) -> Tensor:
        """In-place version of `abs`."""
    absolute_ = abs_

    def reciprocal(self, *, out: Tensor | None = None) -> Tensor:
        """1 divided by each element."""

    def reciprocal_(self) -> Tensor:
        """In-place version of `reciprocal`."""

    def ldexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """`input` times 2 to the power of `other`."""

    def ldexp_(self, other: Tensor) -> Tensor:
        """In-place version of `ldexp`."""

    def hypot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The hypotenuse of a right triangle with the legs `input` and `other`."""

    def hypot_(self, other: Tensor) -> Tensor:
        """In-place version of `hypot`."""

    def atan2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The angle, in radians, from the positive x-axis to the point (`other`, `input`)."""
    arctan2 = atan2

    def atan2_(self, other: Tensor) -> Tensor:
        """In-place version of `atan2`."""
    arctan2_ = atan2_

    def logaddexp(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the sum of the exponentials of `input` and `other`, without overflow."""

    def logaddexp2(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2 of 2 ** `input` + 2 ** `other`, without overflow."""

    def relu(self, *, out: Tensor | None = None) -> Tensor:
        """The rectified linear unit: positive elements are kept, others become 0. The derivative at 0 is 0."""

    def relu_(self) -> Tensor:
        """In-place version of `relu`."""

    def maximum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The element-wise maximum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient."""

    def minimum(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The element-wise minimum of `input` and `other`; NaN if either is NaN. Equal elements share the gradient."""

    def fmax(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The element-wise maximum of `input` and `other`; if one of them is NaN, the other one."""

    def fmin(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The element-wise minimum of `input` and `other`; if one of them is NaN, the other one."""

    def nextafter(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The next representable number after each element of `input` in the direction of `other`."""

    def nextafter_(self, other: Tensor) -> Tensor:
        """In-place version of `nextafter`."""

    def add(self, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Add `other`, scaled by `alpha`, to `input`: input + alpha · other."""

    def add_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """In-place version of `add`."""

    def sub(self, other: Any, *, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Subtract `other`, scaled by `alpha`, from `input`: input - alpha · other."""
    subtract = sub

    def sub_(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """In-place version of `sub`."""
    subtract_ = sub_

    def mul(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Multiply `input` by `other`, element by element."""
    multiply = mul

    def mul_(self, other: Any) -> Tensor:
        """In-place version of `mul`."""
    multiply_ = mul_

    def div(self, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Tensor:
        """Divide `input` by `other`, element by element."""
    divide = div

    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """In-place version of `div`."""
    divide_ = div_

    def floor_divide(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Divide `input` by `other` and round down, element by element; integers stay integers."""

    def floor_divide_(self, other: Any) -> Tensor:
        """In-place version of `floor_divide`."""

    def remainder(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of `other`, like Python's `%`: input - other · ⌊input / other⌋."""

    def remainder_(self, other: Any) -> Tensor:
        """In-place version of `remainder`."""

    def fmod(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Remainder with the sign of `input`, like C's `fmod`: input - other · trunc(input / other)."""

    def fmod_(self, other: Any) -> Tensor:
        """In-place version of `fmod`."""

    def copysign(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Magnitude of `input` with the sign of `other`, element by element."""

    def copysign_(self, other: Any) -> Tensor:
        """In-place version of `copysign`."""

    def xlogy(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Elementwise product input · log(other), which is 0 if `input` is 0."""

    def xlogy_(self, other: Any) -> Tensor:
        """In-place version of `xlogy`."""

    def true_divide(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Divide `input` by `other`, element by element; integers are divided as floats."""

    def true_divide_(self, other: Any) -> Tensor:
        """In-place version of `true_divide`."""

    def clone(self, *, memory_format: memory_format | None = None) -> Tensor:
        """Return a copy that gradients pass through."""

    def contiguous(self, memory_format: memory_format = ...) -> Tensor:
        """Return a tensor with the same elements, contiguous in memory."""

    def reshape(self, *sizes: int | Sequence[int], shape: Sequence[int] | None = None) -> Tensor:
        """Return the elements in another shape, as a view if possible and otherwise as a copy."""

    def view(self, *sizes: Any, size: Sequence[int] | None = None, dtype: Dtype | None = None) -> Tensor:
        """Return a view in another shape, or of the same bits as another dtype."""

    def reshape_as(self, other: Tensor) -> Tensor:
        """Return the elements in the shape of another tensor."""

    def view_as(self, other: Tensor) -> Tensor:
        """Return a view in the shape of another tensor."""

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Flatten the dimensions from `start_dim` to `end_dim` into one."""

    def ravel(self) -> Tensor:
        """Flatten all dimensions into one."""

    def unflatten(self, dim: int, sizes: Sequence[int]) -> Tensor:
        """Split one dimension into several."""

    def squeeze(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """Remove dimensions of size 1."""

    def squeeze_(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """In-place version of `squeeze`."""

    def unsqueeze(self, dim: int) -> Tensor:
        """Insert a dimension of size 1."""

    def unsqueeze_(self, dim: int) -> Tensor:
        """In-place version of `unsqueeze`."""

    def numel(self) -> int:
        """Return the number of elements."""
    nelement = numel

    def sum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the sum of the elements, over all dimensions or those in `dim`."""

    def mean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the mean of the elements, over all dimensions or those in `dim`."""

    def nansum(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the sum of the elements that are not NaN, over all dimensions or those in `dim`."""

    def nanmean(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the mean of the elements that are not NaN, over all dimensions or those in `dim`."""

    def prod(self, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the product of all elements, or of the elements along one dimension."""

    def all(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Test whether all elements are nonzero, over all dimensions or those in `dim`."""

    def any(self, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Test whether any element is nonzero, over all dimensions or those in `dim`."""

    def count_nonzero(self, dim: int | Sequence[int] | None = None) -> Tensor:
        """Count the nonzero elements, over all dimensions or those in `dim`."""

    def expand(self, *sizes: int | Sequence[int], size: Sequence[int] | None = None, implicit: bool = False) -> Tensor:
        """Expand dimensions of size 1 to larger sizes without copying."""

    def expand_as(self, other: Tensor) -> Tensor:
        """Expand dimensions of size 1 to the shape of another tensor without copying."""

    def broadcast_to(self, size: Sequence[int]) -> Tensor:
        """Broadcast `input` to a shape without copying; `expand` under NumPy's name."""

    def sum_to_size(self, *size: int | Sequence[int]) -> Tensor:
        """Sum over the dimensions that `expand` would add or enlarge; the adjoint of `expand`."""

    def clamp(self, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
        """Clamp all elements to the range [`min`, `max`]."""
    clip = clamp

    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """In-place version of `clamp`."""
    clip_ = clamp_

    def clamp_min(self, min: Any, *, out: Tensor | None = None) -> Tensor:
        """Clamp all elements from below: elements less than `min` become `min`."""

    def clamp_min_(self, min: Any) -> Tensor:
        """In-place version of `clamp_min`."""

    def clamp_max(self, max: Any, *, out: Tensor | None = None) -> Tensor:
        """Clamp all elements from above: elements greater than `max` become `max`."""

    def clamp_max_(self, max: Any) -> Tensor:
        """In-place version of `clamp_max`."""

    def heaviside(self, values: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the Heaviside step function: 0 for negative elements, 1 for positive ones, `values` at 0."""

    def heaviside_(self, values: Tensor) -> Tensor:
        """In-place version of `heaviside`."""

    def positive(self) -> Tensor:
        """Return `input` unchanged: the unary operator `+`."""

    def eq(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input = other, element by element."""

    def eq_(self, other: Any) -> Tensor:
        """In-place version of `eq`."""

    def ne(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≠ other, element by element."""

    def ne_(self, other: Any) -> Tensor:
        """In-place version of `ne`."""

    def lt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input < other, element by element."""

    def lt_(self, other: Any) -> Tensor:
        """In-place version of `lt`."""

    def le(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≤ other, element by element."""

    def le_(self, other: Any) -> Tensor:
        """In-place version of `le`."""

    def gt(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input > other, element by element."""

    def gt_(self, other: Any) -> Tensor:
        """In-place version of `gt`."""

    def ge(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≥ other, element by element."""

    def ge_(self, other: Any) -> Tensor:
        """In-place version of `ge`."""

    def not_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≠ other, element by element."""

    def not_equal_(self, other: Any) -> Tensor:
        """In-place version of `not_equal`."""

    def less(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input < other, element by element."""

    def less_(self, other: Any) -> Tensor:
        """In-place version of `less`."""

    def less_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≤ other, element by element."""

    def less_equal_(self, other: Any) -> Tensor:
        """In-place version of `less_equal`."""

    def greater(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input > other, element by element."""

    def greater_(self, other: Any) -> Tensor:
        """In-place version of `greater`."""

    def greater_equal(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute input ≥ other, element by element."""

    def greater_equal_(self, other: Any) -> Tensor:
        """In-place version of `greater_equal`."""

    def logical_and(self, other: Tensor) -> Tensor:
        """Compute the logical AND, element by element. Nonzero numbers count as True."""

    def logical_and_(self, other: Tensor) -> Tensor:
        """In-place version of `logical_and`."""

    def logical_or(self, other: Tensor) -> Tensor:
        """Compute the logical OR, element by element. Nonzero numbers count as True."""

    def logical_or_(self, other: Tensor) -> Tensor:
        """In-place version of `logical_or`."""

    def logical_xor(self, other: Tensor) -> Tensor:
        """Compute the logical XOR, element by element. Nonzero numbers count as True."""

    def logical_xor_(self, other: Tensor) -> Tensor:
        """In-place version of `logical_xor`."""

    def bitwise_and(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute the bitwise AND of integers or bools: input & other."""

    def bitwise_and_(self, other: Any) -> Tensor:
        """In-place version of `bitwise_and`."""

    def bitwise_or(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute the bitwise OR of integers or bools: input | other."""

    def bitwise_or_(self, other: Any) -> Tensor:
        """In-place version of `bitwise_or`."""

    def bitwise_xor(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Compute the bitwise XOR of integers or bools: input ^ other."""

    def bitwise_xor_(self, other: Any) -> Tensor:
        """In-place version of `bitwise_xor`."""

    def bitwise_left_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Shift the bits of integers to the left: input · 2^other."""

    def bitwise_left_shift_(self, other: Any) -> Tensor:
        """In-place version of `bitwise_left_shift`."""

    def bitwise_right_shift(self, other: Any, *, out: Tensor | None = None) -> Tensor:
        """Shift the bits of integers to the right: ⌊input / 2^other⌋."""

    def bitwise_right_shift_(self, other: Any) -> Tensor:
        """In-place version of `bitwise_right_shift`."""

    def isnan(self) -> Tensor:
        """Test each element for NaN."""

    def isfinite(self) -> Tensor:
        """Test whether each element is finite, that is, neither infinite nor NaN."""

    def isinf(self) -> Tensor:
        """Test whether each element is infinite."""

    def isreal(self) -> Tensor:
        """Test whether each element is real: always True, since there are no complex tensors."""

    def isposinf(self) -> Tensor:
        """Test whether each element is +∞."""

    def isneginf(self) -> Tensor:
        """Test whether each element is -∞."""

    def signbit(self) -> Tensor:
        """Test whether the sign bit of each element is set; it is set for -0."""

    def logical_not(self) -> Tensor:
        """Compute the logical NOT: True for elements that are zero or False."""

    def logical_not_(self) -> Tensor:
        """In-place version of `logical_not`."""

    def bitwise_not(self) -> Tensor:
        """Compute the bitwise NOT of integers or bools: ~input."""

    def bitwise_not_(self) -> Tensor:
        """In-place version of `bitwise_not`."""

    def isclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """Test |input - other| ≤ atol + rtol · |other|, element by element; equal infinities are close."""

    def allclose(self, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Return True if |input - other| ≤ atol + rtol · |other| for all elements."""

    def equal(self, other: Tensor) -> bool:
        """Return True if two tensors have the same shape and elements."""

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """Swap two dimensions."""

    def transpose_(self, dim0: int, dim1: int) -> Tensor:
        """In-place version of `transpose`."""

    def swapaxes(self, axis0: int, axis1: int) -> Tensor:
        """Swap two dimensions. Alias of `transpose`, as in NumPy."""

    def swapaxes_(self, axis0: int, axis1: int) -> Tensor:
        """In-place version of `swapaxes`."""

    def swapdims(self, dim0: int, dim1: int) -> Tensor:
        """Swap two dimensions. Alias of `transpose`."""

    def swapdims_(self, dim0: int, dim1: int) -> Tensor:
        """In-place version of `swapdims`."""

    def permute(self, *order: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """Reorder the dimensions."""

    def movedim(self, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
        """Move dimensions to new positions. The others keep their order."""
    moveaxis = movedim

    def t(self) -> Tensor:
        """Transpose a matrix."""

    def t_(self) -> Tensor:
        """In-place version of `t`."""

    def adjoint(self) -> Tensor:
        """Swap the last two dimensions. For real numbers, this is the conjugate transpose."""

    def matmul(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the matrix product `input @ other`."""

    def mm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Multiply two matrices."""

    def bmm(self, mat2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Multiply the matrices of two batches."""

    def mv(self, vec: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Multiply a matrix by a vector."""

    def dot(self, tensor: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the inner product of two vectors."""

    def vdot(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the inner product of two vectors. For real numbers, this equals `dot`."""

    def outer(self, vec2: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the outer product of two vectors."""
    ger = outer

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """Compute the cross product along a dimension of size 3."""

    def inner(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Sum products of elements over the last axes of two tensors."""

    def kron(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Compute the Kronecker product: blocks of each element of `input` times `other`."""

    def unique(self, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
        """Return the unique elements, or the unique slices along a dimension, in ascending order."""

    def unique_consecutive(self, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
        """Remove elements, or slices along a dimension, that equal the previous one."""

    def bincount(self, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
        """Count the occurrences of each non-negative integer, or sum their weights."""

    def histc(self, bins: int = 100, min: float = 0, max: float = 0, *, out: Tensor | None = None) -> Tensor:
        """Count the elements in each of `bins` equal intervals."""

    def histogram(self, bins: int | Tensor = 100, *, range: tuple[float, float] | None = None, weight: Tensor | None = None, density: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Count elements, or sum their weights, in the intervals between bin edges."""

    def cumsum(self, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the cumulative sum of elements along a dimension."""

    def cumsum_(self, dim: int, *, dtype: Dtype | None = None) -> Tensor:
        """In-place version of `cumsum`."""

    def cumprod(self, dim: int, *, dtype: Dtype | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the cumulative product of elements along a dimension."""

    def cumprod_(self, dim: int, *, dtype: Dtype | None = None) -> Tensor:
        """In-place version of `cumprod`."""

    def logcumsumexp(self, dim: int, *, out: Tensor | None = None) -> Tensor:
        """Compute the logarithm of the cumulative sum of exponentials along a dimension."""

    def cummax(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the cumulative maximum along a dimension, with its indices."""

    def cummin(self, dim: int, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the cumulative minimum along a dimension, with its indices."""

    def diff(self, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None, *, out: Tensor | None = None) -> Tensor:
        """Compute the n-th forward difference along a dimension."""

    def exp(self, *, out: Tensor | None = None) -> Tensor:
        """The exponential of each element."""

    def exp_(self) -> Tensor:
        """In-place version of `exp`."""

    def exp2(self, *, out: Tensor | None = None) -> Tensor:
        """2 to the power of each element."""

    def exp2_(self) -> Tensor:
        """In-place version of `exp2`."""

    def expm1(self, *, out: Tensor | None = None) -> Tensor:
        """The exponential of each element minus 1, exact near 0."""

    def expm1_(self) -> Tensor:
        """In-place version of `expm1`."""

    def log(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm of each element."""

    def log_(self) -> Tensor:
        """In-place version of `log`."""

    def log2(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 2 of each element."""

    def log2_(self) -> Tensor:
        """In-place version of `log2`."""

    def log10(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm to base 10 of each element."""

    def log10_(self) -> Tensor:
        """In-place version of `log10`."""

    def log1p(self, *, out: Tensor | None = None) -> Tensor:
        """The natural logarithm of 1 plus each element, exact near 0."""

    def log1p_(self) -> Tensor:
        """In-place version of `log1p`."""

    def sqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The square root of each element."""

    def sqrt_(self) -> Tensor:
        """In-place version of `sqrt`."""

    def rsqrt(self, *, out: Tensor | None = None) -> Tensor:
        """The reciprocal of the square root of each element."""

    def rsqrt_(self) -> Tensor:
        """In-place version of `rsqrt`."""

    def sigmoid(self, *, out: Tensor | None = None) -> Tensor:
        """The logistic function of each element."""

    def sigmoid_(self) -> Tensor:
        """In-place version of `sigmoid`."""

    def sin(self, *, out: Tensor | None = None) -> Tensor:
        """The sine of each element, an angle in radians."""

    def sin_(self) -> Tensor:
        """In-place version of `sin`."""

    def cos(self, *, out: Tensor | None = None) -> Tensor:
        """The cosine of each element, an angle in radians."""

    def cos_(self) -> Tensor:
        """In-place version of `cos`."""

    def tan(self, *, out: Tensor | None = None) -> Tensor:
        """The tangent of each element, an angle in radians."""

    def tan_(self) -> Tensor:
        """In-place version of `tan`."""

    def asin(self, *, out: Tensor | None = None) -> Tensor:
        """The arcsine of each element, in radians; NaN outside [-1, 1]."""
    arcsin = asin

    def asin_(self) -> Tensor:
        """In-place version of `asin`."""
    arcsin_ = asin_

    def acos(self, *, out: Tensor | None = None) -> Tensor:
        """The arccosine of each element, in radians; NaN outside [-1, 1]."""
    arccos = acos

    def acos_(self) -> Tensor:
        """In-place version of `acos`."""
    arccos_ = acos_

    def atan(self, *, out: Tensor | None = None) -> Tensor:
        """The arctangent of each element, in radians."""
    arctan = atan

    def atan_(self) -> Tensor:
        """In-place version of `atan`."""
    arctan_ = atan_

    def sinh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic sine of each element."""

    def sinh_(self) -> Tensor:
        """In-place version of `sinh`."""

    def cosh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic cosine of each element."""

    def cosh_(self) -> Tensor:
        """In-place version of `cosh`."""

    def tanh(self, *, out: Tensor | None = None) -> Tensor:
        """The hyperbolic tangent of each element."""

    def tanh_(self) -> Tensor:
        """In-place version of `tanh`."""

    def asinh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic sine of each element."""
    arcsinh = asinh

    def asinh_(self) -> Tensor:
        """In-place version of `asinh`."""
    arcsinh_ = asinh_

    def acosh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic cosine of each element; NaN below 1."""
    arccosh = acosh

    def acosh_(self) -> Tensor:
        """In-place version of `acosh`."""
    arccosh_ = acosh_

    def atanh(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""
    arctanh = atanh

    def atanh_(self) -> Tensor:
        """In-place version of `atanh`."""
    arctanh_ = atanh_

    def deg2rad(self, *, out: Tensor | None = None) -> Tensor:
        """Convert angles from degrees to radians."""

    def deg2rad_(self) -> Tensor:
        """In-place version of `deg2rad`."""

    def rad2deg(self, *, out: Tensor | None = None) -> Tensor:
        """Convert angles from radians to degrees."""

    def rad2deg_(self) -> Tensor:
        """In-place version of `rad2deg`."""

    def sinc(self, *, out: Tensor | None = None) -> Tensor:
        """The normalised cardinal sine of each element: 1 at 0."""

    def sinc_(self) -> Tensor:
        """In-place version of `sinc`."""

    def floor(self, *, out: Tensor | None = None) -> Tensor:
        """The largest integer less than or equal to each element. Its derivative is 0."""

    def floor_(self) -> Tensor:
        """In-place version of `floor`."""

    def ceil(self, *, out: Tensor | None = None) -> Tensor:
        """The smallest integer greater than or equal to each element. Its derivative is 0."""

    def ceil_(self) -> Tensor:
        """In-place version of `ceil`."""

    def trunc(self, *, out: Tensor | None = None) -> Tensor:
        """Each element rounded towards 0. Its derivative is 0."""
    fix = trunc

    def trunc_(self) -> Tensor:
        """In-place version of `trunc`."""
    fix_ = trunc_

    def frac(self, *, out: Tensor | None = None) -> Tensor:
        """The fractional part of each element, with its sign."""

    def frac_(self) -> Tensor:
        """In-place version of `frac`."""

    def sign(self, *, out: Tensor | None = None) -> Tensor:
        """The sign of each element: -1, 0 or 1. Its derivative is 0."""

    def sign_(self) -> Tensor:
        """In-place version of `sign`."""

    def sgn(self, *, out: Tensor | None = None) -> Tensor:
        """The sign of each element: -1, 0 or 1. Its derivative is 0."""

    def sgn_(self) -> Tensor:
        """In-place version of `sgn`."""

    def angle(self, *, out: Tensor | None = None) -> Tensor:
        """The angle of each element in the complex plane: π for negative elements, otherwise 0."""

    def erf(self, *, out: Tensor | None = None) -> Tensor:
        """The error function of each element."""

    def erf_(self) -> Tensor:
        """In-place version of `erf`."""

    def erfc(self, *, out: Tensor | None = None) -> Tensor:
        """1 minus the error function of each element, exact where the error function is near 1."""

    def erfc_(self) -> Tensor:
        """In-place version of `erfc`."""

    def erfinv(self, *, out: Tensor | None = None) -> Tensor:
        """The inverse of the error function of each element; NaN outside [-1, 1]."""

    def erfinv_(self) -> Tensor:
        """In-place version of `erfinv`."""

    def lgamma(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""

    def lgamma_(self) -> Tensor:
        """In-place version of `lgamma`."""

    def digamma(self, *, out: Tensor | None = None) -> Tensor:
        """The logarithmic derivative of the gamma function."""

    def digamma_(self) -> Tensor:
        """In-place version of `digamma`."""

    def igamma(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised lower incomplete gamma function P(`input`, `other`)."""

    def igamma_(self, other: Tensor) -> Tensor:
        """In-place version of `igamma`."""

    def igammac(self, other: Tensor, *, out: Tensor | None = None) -> Tensor:
        """The regularised upper incomplete gamma function Q(`input`, `other`)."""

    def igammac_(self, other: Tensor) -> Tensor:
        """In-place version of `igammac`."""

    def i0(self, *, out: Tensor | None = None) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""

    def i0_(self) -> Tensor:
        """In-place version of `i0`."""

    def split(self, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor along a dimension, into parts of one size or of the listed sizes."""

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor along a dimension into parts of the listed sizes."""

    def chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor along a dimension into a number of parts of equal size."""

    def unsafe_split(self, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor like `split`, into parts that autograd does not treat as views."""

    def unsafe_split_with_sizes(self, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor like `split_with_sizes`, into parts that autograd does not treat as views."""

    def unsafe_chunk(self, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor like `chunk`, into parts that autograd does not treat as views."""

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """Return all slices along a dimension, which is removed."""

    def narrow(self, dim: int, start: int | Tensor, length: int) -> Tensor:
        """Return a range of a dimension."""

    def select(self, dim: int, index: int) -> Tensor:
        """Return the slice at one index of a dimension."""

    def diagonal(self, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a view of the diagonal with respect to two dimensions, as the last dimension."""

    def diag(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the diagonal of a matrix, or a matrix with a vector on its diagonal."""

    def diag_embed(self, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
        """Return matrices of zeros with the last dimension of `input` on a diagonal."""

    def diagflat(self, offset: int = 0) -> Tensor:
        """Return a matrix of zeros with all elements of `input` on a diagonal."""

    def tril(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the elements on and below a diagonal of matrices, with zeros elsewhere."""

    def tril_(self, diagonal: int = 0) -> Tensor:
        """In-place version of `tril`."""

    def triu(self, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
        """Return the elements on and above a diagonal of matrices, with zeros elsewhere."""

    def triu_(self, diagonal: int = 0) -> Tensor:
        """In-place version of `triu`."""

    def trace(self) -> Tensor:
        """Return the sum of the diagonal of a matrix."""

    def diagonal_scatter(self, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a copy of `input` with the elements of `src` on a diagonal."""

    def select_scatter(self, src: Tensor, dim: int, index: int) -> Tensor:
        """Return a copy of `input` with `src` at one index of a dimension."""

    def slice_scatter(self, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
        """Return a copy of `input` with `src` in a slice of a dimension."""

    def fill_diagonal_(self, fill_value: float | Tensor, wrap: bool = False) -> Tensor:
        """Fill the diagonal with a number, in place."""

    def bernoulli(self, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Draw binary random numbers (0 or 1) from a Bernoulli distribution."""

    def multinomial(self, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None) -> Tensor:
        """Draw indices with probabilities proportional to weights."""

    def logit(self, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
        """Compute log(input / (1 - input)), the inverse of the sigmoid."""

    def logit_(self, eps: float | None = None) -> Tensor:
        """In-place version of `logit`."""

    def round(self, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
        """Round to the nearest integer, half to even, or to a number of decimals."""

    def round_(self, *, decimals: int | None = None) -> Tensor:
        """In-place version of `round`."""

    def nan_to_num(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Tensor | None = None) -> Tensor:
        """Replace NaN and infinities by numbers."""

    def nan_to_num_(self, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
        """In-place version of `nan_to_num`."""

    def frexp(self) -> Any:
        """Decompose elements into mantissa and exponent: input = mantissa · 2^exponent, |mantissa| in [0.5, 1)."""

    def tensor_split(self, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
        """Split a tensor along a dimension into nearly equal parts, or at the given indices."""

    def hsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split a tensor along its second dimension, or a vector along its only dimension."""

    def vsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split a tensor along its first dimension."""

    def dsplit(self, indices_or_sections: int | Sequence[int] | Tensor) -> tuple[Tensor, ...]:
        """Split a tensor along its third dimension."""

    def amax(self, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the maximum over all dimensions, or over the dimensions in `dim`."""

    def amin(self, dim: int | Sequence[int] = (), keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the minimum over all dimensions, or over the dimensions in `dim`."""

    def aminmax(self, *, dim: int | None = None, keepdim: bool = False, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the minimum and the maximum of all elements, or along a dimension."""

    def max(self, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """Return the maximum of all elements, along a dimension, or of each pair of two tensors."""

    def min(self, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """Return the minimum of all elements, along a dimension, or of each pair of two tensors."""

    def argmax(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the index of the maximum in the flattened tensor or along a dimension."""

    def argmin(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return the index of the minimum in the flattened tensor or along a dimension."""

    def mvlgamma(self, p: int, *, out: Tensor | None = None) -> Tensor:
        """Compute the logarithm of the multivariate gamma function."""

    def mvlgamma_(self, p: int) -> Tensor:
        """In-place version of `mvlgamma`."""

    def gather(self, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Tensor | None = None) -> Tensor:
        """Gather elements along a dimension at the given indices."""

    def take_along_dim(self, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
        """Return the elements at indices along a dimension; the other dimensions broadcast."""

    def scatter(self, dim: int, index: Tensor, src: Tensor | float | None = None, *, value: float | None = None, reduce: str | None = None, out: Tensor | None = None) -> Tensor:
        """Return a copy of `input` with elements written at indices along a dimension."""

    def scatter_(self, dim: int, index: Tensor, src: Tensor | float | None = None, *, value: float | None = None, reduce: str | None = None) -> Tensor:
        """In-place version of `scatter`."""

    def scatter_add(self, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return a copy of `input` with elements added at indices along a dimension. Repeated indices accumulate."""

    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """In-place version of `scatter_add`."""

    def scatter_reduce(self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
        """Return a copy of `input` in which the elements scattered to each index are reduced."""

    def scatter_reduce_(self, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
        """In-place version of `scatter_reduce`."""

    def gcd(self, other: Tensor) -> Tensor:
        """Compute the greatest common divisor of each pair of integers."""

    def gcd_(self, other: Tensor) -> Tensor:
        """In-place version of `gcd`."""

    def lcm(self, other: Tensor) -> Tensor:
        """Compute the least common multiple of each pair of integers."""

    def lcm_(self, other: Tensor) -> Tensor:
        """In-place version of `lcm`."""

    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute input + value · tensor1 · tensor2, element by element."""

    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """In-place version of `addcmul`."""

    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute input + value · tensor1 / tensor2, element by element."""

    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
        """In-place version of `addcdiv`."""

    def lerp(self, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
        """Interpolate linearly between `input` and `end`: input + weight · (end - input)."""

    def lerp_(self, end: Tensor, weight: Any) -> Tensor:
        """In-place version of `lerp`."""

    def take(self, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the elements at the given indices of the flattened tensor."""

    def put(self, index: Tensor, source: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return a copy with elements replaced at the given indices of the flattened tensor."""

    def put_(self, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
        """In-place version of `put`."""

    def masked_fill(self, mask: Tensor, value: float | Tensor) -> Tensor:
        """Return a copy with elements replaced by one value where a mask is True."""

    def masked_fill_(self, mask: Tensor, value: float | Tensor) -> Tensor:
        """In-place version of `masked_fill`."""

    def masked_select(self, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return the elements at which a mask is True."""

    def masked_scatter(self, mask: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return a copy with elements of another tensor written, in order, where a mask is True."""

    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place version of `masked_scatter`."""

    def nonzero(self, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
        """Return the indices of the nonzero elements."""

    def argwhere(self) -> Tensor:
        """Return the indices of the nonzero elements, one per row. Alias of `nonzero`, as in NumPy."""

    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute beta · input + alpha · (mat1 @ mat2)."""

    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addmm`."""

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute beta · input + alpha · (batch1 @ batch2) for batches of matrices."""

    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `baddbmm`."""

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute beta · input + alpha · (mat @ vec)."""

    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addmv`."""

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute beta · input + alpha · outer(vec1, vec2)."""

    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addr`."""

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1, out: Tensor | None = None) -> Tensor:
        """Compute beta · input + alpha · (batch1 @ batch2), summed over the batch."""

    def addbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """In-place version of `addbmm`."""

    def dist(self, other: Tensor, p: float = 2, *, out: Tensor | None = None) -> Tensor:
        """Compute the p-norm of input - other."""

    def renorm(self, p: float, dim: int, maxnorm: float, *, out: Tensor | None = None) -> Tensor:
        """Scale slices along a dimension down to the norm `maxnorm` if their norm is larger."""

    def renorm_(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """In-place version of `renorm`."""

    def pow(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """Raise `input` to the power of `exponent`. Either can be a tensor or a number."""

    def pow_(self, exponent: Any) -> Tensor:
        """In-place version of `pow`."""

    def square(self, *, out: Tensor | None = None) -> Tensor:
        """Square each element."""

    def square_(self) -> Tensor:
        """In-place version of `square`."""

    def float_power(self, exponent: Any, *, out: Tensor | None = None) -> Tensor:
        """Raise `input` to the power of `exponent`, in float64."""

    def float_power_(self, exponent: Any) -> Tensor:
        """In-place version of `float_power`."""

    def sort(self, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Sort the elements along a dimension, and return their original indices too."""

    def argsort(self, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Tensor | None = None) -> Tensor:
        """Return the indices that sort the elements along a dimension."""

    def msort(self, *, out: Tensor | None = None) -> Tensor:
        """Sort the elements along the first dimension in ascending order. Same as `sort(input, 0).values`."""

    def topk(self, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the `k` largest or smallest elements along a dimension, in order, and their indices."""

    def kthvalue(self, k: int, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the `k`-th smallest element along a dimension, and its index."""

    def median(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """Compute the median of all elements or along one dimension. For an even number of elements, it is the lower one."""

    def nanmedian(self, dim: int | None = None, keepdim: bool = False, *, out: Tensor | tuple[Tensor, Tensor] | None = None) -> Any:
        """Compute the median of the elements that are not NaN. For an even number of elements, it is the lower one."""

    def mode(self, dim: int = -1, keepdim: bool = False, *, out: tuple[Tensor, Tensor] | None = None) -> Result:
        """Return the most frequent element along a dimension, and its last index."""

    def quantile(self, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """Compute quantiles of all elements, or of the elements along one dimension."""

    def nanquantile(self, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = 'linear', out: Tensor | None = None) -> Tensor:
        """Compute quantiles of the elements that are not NaN, of all or along one dimension."""

    def repeat(self, *times: int | Sequence[int], repeats: Sequence[int] | None = None) -> Tensor:
        """Repeat the tensor along each dimension."""

    def tile(self, *times: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """Repeat the tensor along each dimension, or along the last ones."""

    def repeat_interleave(self, repeats: int | Tensor | None = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
        """Repeat each element, or each slice of a dimension, several times in a row."""

    def roll(self, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
        """Shift the elements along dimensions. Elements shifted past the end reappear at the start."""

    def flip(self, *axes: int | Sequence[int], dims: Sequence[int] | None = None) -> Tensor:
        """Reverse the order of the elements along dimensions."""

    def fliplr(self) -> Tensor:
        """Reverse the order of the columns."""

    def flipud(self) -> Tensor:
        """Reverse the order of the rows."""

    def rot90(self, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
        """Rotate a tensor by multiples of 90 degrees in the plane of two dimensions."""

    def unfold(self, dimension: int, size: int, step: int) -> Tensor:
        """Return all windows along a dimension."""

    def as_strided(self, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
        """Create a view with the given shape and strides."""

    def index_select(self, dim: int, index: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Select slices of a dimension by their indices."""

    def index_add(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1, out: Tensor | None = None) -> Tensor:
        """Return a copy with slices added to those at the given indices of a dimension."""

    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """In-place version of `index_add`."""

    def index_reduce(self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True, out: Tensor | None = None) -> Tensor:
        """Return a copy in which slices are reduced into those at the given indices of a dimension."""

    def index_reduce_(self, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
        """In-place version of `index_reduce`."""

    def index_copy(self, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return a copy with slices replaced at the given indices of a dimension."""

    def index_copy_(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """In-place version of `index_copy`."""

    def index_fill(self, dim: int, index: Tensor, value: float | Tensor, *, out: Tensor | None = None) -> Tensor:
        """Return a copy with slices of a dimension filled with one value."""

    def index_fill_(self, dim: int, index: Tensor, value: float | Tensor) -> Tensor:
        """In-place version of `index_fill`."""

    def index_put(self, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Return a copy with values written as in `x[indices] = values`."""

    def index_put_(self, indices: Sequence[Tensor], values: Tensor, accumulate: bool = False) -> Tensor:
        """In-place version of `index_put`."""

    def softmax(self, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """Compute the softmax along a dimension: positive numbers that sum to 1."""

    def log_softmax(self, dim: int, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """Compute the logarithm of the softmax along a dimension."""

    def logsumexp(self, dim: int | Sequence[int], keepdim: bool = False, *, out: Tensor | None = None) -> Tensor:
        """Compute the logarithm of the sum of exponentials over the dimensions in `dim`."""

    def std(self, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the standard deviation, over all dimensions or those in `dim`."""

    def var(self, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, out: Tensor | None = None) -> Tensor:
        """Compute the variance, over all dimensions or those in `dim`."""

    def cov(self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Estimate the covariance matrix of variables (rows) from observations (columns)."""

    def corrcoef(self) -> Tensor:
        """Estimate the correlation matrix of variables (rows) from observations (columns)."""

    def is_floating_point(self) -> bool:
        """Return whether the dtype is floating point. Only such tensors can have gradients."""

    def is_signed(self) -> bool:
        """Return whether the dtype can represent negative numbers."""

    def is_complex(self) -> bool:
        """Return whether the elements are complex numbers. Always False, because gradlab has no complex numbers."""

    def is_conj(self) -> bool:
        """Return whether the conjugate bit is set. Always False, because gradlab has no complex numbers."""

    def is_neg(self) -> bool:
        """Return whether the negative bit is set. Always False, because gradlab has no complex numbers."""

    def is_nonzero(self) -> bool:
        """Return whether the only element is nonzero."""

    def is_same_size(self, other: Tensor) -> bool:
        """Return whether two tensors have the same shape."""

    def prelu(self, weight: Tensor) -> Tensor:
        """Multiply negative elements by a learned slope."""

    def hardshrink(self, lambd: float = 0.5) -> Tensor:
        """Replace elements with absolute value at most `lambd` by 0."""

    def inverse(self) -> Tensor:
        """Compute the inverse of square matrices."""

    def det(self) -> Tensor:
        """Compute the determinant of square matrices."""

    def matrix_exp(self) -> Tensor:
        """Compute the exponential of square matrices: 1 + A + A² / 2 + …."""

    def matrix_power(self, n: int) -> Tensor:
        """Compute the n-th power of square matrices. A negative `n` raises the inverse to the power -n."""

    def pinverse(self, rcond: float = 1e-15) -> Tensor:
        """Compute the pseudo-inverse (Moore-Penrose inverse) of matrices."""

    def slogdet(self) -> Result:
        """Compute the sign of the determinant and the logarithm of its absolute value."""

    def logdet(self) -> Tensor:
        """Compute the logarithm of the determinant: -inf if it is 0, NaN if it is negative."""

    def norm(self, p: float | str | None = 'fro', dim: int | Sequence[int] | None = None, keepdim: bool = False, dtype: Dtype | None = None, *, out: Tensor | None = None) -> Tensor:
        """Compute the norm of all elements, or over the axes `dim`."""

    def cholesky(self, upper: bool = False) -> Tensor:
        """Compute the Cholesky factor of symmetric positive-definite matrices. Deprecated: use `gradlab.linalg.cholesky`."""

    def cholesky_solve(self, L: Tensor, upper: bool = False) -> Tensor:
        """Solve A X = input for X, given the Cholesky factor of A."""

    def cholesky_inverse(self, upper: bool = False) -> Tensor:
        """Compute the inverse of A, given its Cholesky factor."""

    def qr(self, some: bool = True) -> Result:
        """Compute the QR decomposition. Deprecated: use `gradlab.linalg.qr`."""

    def svd(self, some: bool = True, compute_uv: bool = True) -> Result:
        """Compute the singular value decomposition U diag(S) Vᵀ = input."""

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """Compute a compact LU decomposition. Deprecated: use `gradlab.linalg.lu_factor`."""

    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """Solve A X = b for X, given the decomposition that `lu` returned. Deprecated: use `gradlab.linalg.lu_solve`."""

    def zero_(self) -> Tensor:
        """Fill the tensor with zeros, in place."""

    def fill_(self, value: float | Tensor) -> Tensor:
        """Fill the tensor with one value, in place."""

    def copy_(self, other: Tensor, non_blocking: bool = False) -> Tensor:
        """Copy the elements of another tensor into this tensor."""

    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element x by ``callable(x)``, in place. Slow, since it calls a Python function for each element."""

    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element x by ``callable(x, y)``, where y is the element of `tensor`, in place. Slow."""

    def resize_(self, *sizes: int | Sequence[int], memory_format: memory_format | None = None) -> Tensor:
        """Resize the tensor to the given shape, in place. The number of elements may change."""

    def set_(self, source: Tensor | None = None) -> Tensor:
        """Make this tensor use the memory of another tensor."""

    def resize_as_(self, the_template: Tensor) -> Tensor:
        """Resize the tensor to the shape of another tensor, in place. See `resize_`."""

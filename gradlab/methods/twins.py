"""The in-place methods that torch has as functions too: `gradlab.exp_(x)` is `x.exp_()`."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.methods import tensor  # noqa: F401  (it gives Tensor its methods)

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
    "conj_physical_",
    "cos_",
    "cosh_",
    "deg2rad_",
    "detach_",
    "erf_",
    "erfc_",
    "exp2_",
    "exp_",
    "expm1_",
    "fill_",
    "fix_",
    "floor_",
    "frac_",
    "gcd_",
    "i0_",
    "lcm_",
    "ldexp_",
    "log1p_",
    "log2_",
    "log10_",
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
    "zero_",
]

exp_, exp2_, expm1_, log_, log2_, log10_, log1p_ = (
    Tensor.exp_,
    Tensor.exp2_,
    Tensor.expm1_,
    Tensor.log_,
    Tensor.log2_,
    Tensor.log10_,
    Tensor.log1p_,
)
sin_, cos_, tan_, asin_, acos_, atan_ = Tensor.sin_, Tensor.cos_, Tensor.tan_, Tensor.asin_, Tensor.acos_, Tensor.atan_
sinh_, cosh_, tanh_, asinh_, acosh_, atanh_ = (
    Tensor.sinh_,
    Tensor.cosh_,
    Tensor.tanh_,
    Tensor.asinh_,
    Tensor.acosh_,
    Tensor.atanh_,
)
arcsin_, arccos_, arctan_, arcsinh_, arccosh_, arctanh_ = asin_, acos_, atan_, asinh_, acosh_, atanh_
sqrt_, rsqrt_, square_, reciprocal_, sigmoid_, logit_, sinc_ = (
    Tensor.sqrt_,
    Tensor.rsqrt_,
    Tensor.square_,
    Tensor.reciprocal_,
    Tensor.sigmoid_,
    Tensor.logit_,
    Tensor.sinc_,
)
floor_, ceil_, round_, trunc_, frac_ = Tensor.floor_, Tensor.ceil_, Tensor.round_, Tensor.trunc_, Tensor.frac_
fix_, deg2rad_, rad2deg_ = trunc_, Tensor.deg2rad_, Tensor.rad2deg_
erf_, erfc_, i0_, xlogy_, ldexp_, gcd_, lcm_ = (
    Tensor.erf_,
    Tensor.erfc_,
    Tensor.i0_,
    Tensor.xlogy_,
    Tensor.ldexp_,
    Tensor.gcd_,
    Tensor.lcm_,
)
abs_, neg_, relu_, clamp_, clamp_min_, clamp_max_ = (
    Tensor.abs_,
    Tensor.neg_,
    Tensor.relu_,
    Tensor.clamp_,
    Tensor.clamp_min_,
    Tensor.clamp_max_,
)
negative_, clip_ = neg_, clamp_
nan_to_num_, conj_physical_, detach_, fill_, zero_ = (
    Tensor.nan_to_num_,
    Tensor.conj_physical_,
    Tensor.detach_,
    Tensor.fill_,
    Tensor.zero_,
)

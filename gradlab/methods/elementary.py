"""The functions of one number: exponentials, trigonometry, rounding, special functions."""

from __future__ import annotations

from typing import Any

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.methods.writing import twin
from gradlab.ops import elementary as functions
from gradlab.ops import gamma
from gradlab.rules import elementary as em
from gradlab.rules import special as sp


class Elementary:
    """Each with its in-place twin."""

    exp, exp2, expm1, log, log2, log10, log1p = (
        functions.exp,
        functions.exp2,
        functions.expm1,
        functions.log,
        functions.log2,
        functions.log10,
        functions.log1p,
    )
    sqrt, rsqrt, sigmoid, logit, sinc = functions.sqrt, functions.rsqrt, functions.sigmoid, functions.logit, functions.sinc
    sin, cos, tan, asin, acos, atan = (
        functions.sin,
        functions.cos,
        functions.tan,
        functions.asin,
        functions.acos,
        functions.atan,
    )
    sinh, cosh, tanh, asinh, acosh, atanh = (
        functions.sinh,
        functions.cosh,
        functions.tanh,
        functions.asinh,
        functions.acosh,
        functions.atanh,
    )
    arcsin, arccos, arctan, arcsinh, arccosh, arctanh = asin, acos, atan, asinh, acosh, atanh
    deg2rad, rad2deg, nan_to_num, frexp = functions.deg2rad, functions.rad2deg, functions.nan_to_num, functions.frexp
    floor, ceil, round, trunc, fix, frac = (
        functions.floor,
        functions.ceil,
        functions.round,
        functions.trunc,
        functions.trunc,
        functions.frac,
    )
    sign, sgn, angle = functions.sign, functions.sgn, functions.angle
    erf, erfc, erfinv, i0 = gamma.erf, gamma.erfc, gamma.erfinv, gamma.i0
    lgamma, digamma, mvlgamma, igamma, igammac = gamma.lgamma, gamma.digamma, gamma.mvlgamma, gamma.igamma, gamma.igammac
    conj, conj_physical, resolve_conj, resolve_neg = (
        functions.conj,
        functions.conj_physical,
        functions.resolve_conj,
        functions.resolve_neg,
    )
    real, imag = property(functions.real), property(functions.imag)

    exp_, exp2_, expm1_, log_, log2_, log10_, log1p_ = map(twin, (em.exp, em.exp2, em.expm1, em.log, em.log2, em.log10, em.log1p))
    sqrt_, rsqrt_, sigmoid_, sinc_ = map(twin, (em.sqrt, em.rsqrt, em.sigmoid, em.sinc))
    sin_, cos_, tan_, asin_, acos_, atan_ = map(twin, (em.sin, em.cos, em.tan, em.asin, em.acos, em.atan))
    sinh_, cosh_, tanh_, asinh_, acosh_, atanh_ = map(twin, (em.sinh, em.cosh, em.tanh, em.asinh, em.acosh, em.atanh))
    arcsin_, arccos_, arctan_, arcsinh_, arccosh_, arctanh_ = asin_, acos_, atan_, asinh_, acosh_, atanh_
    deg2rad_, rad2deg_, floor_, ceil_, trunc_, frac_, sign_, sgn_ = map(
        twin, (em.deg2rad, em.rad2deg, em.floor, em.ceil, em.trunc, em.frac, em.sign, em.sgn)
    )
    fix_ = trunc_
    erf_, erfc_, erfinv_, i0_, lgamma_, digamma_ = map(twin, (sp.erf, sp.erfc, sp.erfinv, sp.i0, sp.lgamma, sp.digamma))
    igamma_, igammac_ = map(twin, (sp.igamma, sp.igammac))
    round_, logit_, nan_to_num_, mvlgamma_ = map(twin, (functions.round, functions.logit, functions.nan_to_num, gamma.mvlgamma))

    def polygamma(self, n: int) -> Tensor:
        """The n-th derivative of the digamma function."""
        return gamma.polygamma(n, self)

    def polygamma_(self, n: int) -> Tensor:
        """`polygamma`, written into this tensor's memory."""
        return inplace.composed_in_place(lambda x, n: gamma.polygamma(n, x), self, n)

    def conj_physical_(self) -> Any:
        """The tensor itself: its numbers are real."""
        return self

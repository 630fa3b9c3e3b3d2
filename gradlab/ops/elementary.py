"""The functions of one number: exponentials, trigonometry, rounding. Most are recording functions as they stand."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import not_implemented
from gradlab.core.promotion import expected_tensor
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.results import result_type
from gradlab.rules import elementary as em
from gradlab.rules import elementwise as el

__all__ = [
    "acos",
    "acosh",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "conj",
    "conj_physical",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "fix",
    "floor",
    "frac",
    "frexp",
    "imag",
    "log",
    "log1p",
    "log2",
    "log10",
    "logit",
    "nan_to_num",
    "rad2deg",
    "real",
    "resolve_conj",
    "resolve_neg",
    "round",
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
    "view_as_complex",
    "view_as_real",
]

exp, exp2, expm1, log, log2, log10, log1p = (op.record for op in (em.exp, em.exp2, em.expm1, em.log, em.log2, em.log10, em.log1p))
sqrt, rsqrt, sigmoid, sinc, deg2rad, rad2deg = (
    op.record for op in (em.sqrt, em.rsqrt, em.sigmoid, em.sinc, em.deg2rad, em.rad2deg)
)
sin, cos, tan, asin, acos, atan = (op.record for op in (em.sin, em.cos, em.tan, em.asin, em.acos, em.atan))
sinh, cosh, tanh, asinh, acosh, atanh = (op.record for op in (em.sinh, em.cosh, em.tanh, em.asinh, em.acosh, em.atanh))
floor, ceil, trunc, frac, sign, sgn, angle = (
    op.record for op in (em.floor, em.ceil, em.trunc, em.frac, em.sign, em.sgn, em.angle)
)
arcsin, arccos, arctan, arcsinh, arccosh, arctanh, fix = asin, acos, atan, asinh, acosh, atanh, trunc


def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """log(input / (1 - input)), the inverse of the sigmoid; with `eps`, of input clamped to [eps, 1 - eps]."""
    return em.logit.record(input, eps=None if eps is None or eps < 0 else eps, out=out)


def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
    """The nearest integer, of two the even one; or, of floating point, the nearest number with so many decimals."""
    if decimals is None:
        return em.round_.record(input, out=out)
    if isinstance(input, Tensor) and input.array.dtype.kind != "f":
        raise not_implemented("round" if decimals == 0 else "round_decimals", input.dtype)
    return em.round_decimals.record(input, decimals=decimals, out=out)


def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """input with numbers in place of NaN (0) and of the infinities (the dtype's largest and lowest numbers)."""
    if not isinstance(input, Tensor):
        raise expected_tensor(em.nan_to_num, input)
    if input.array.dtype.kind != "f":
        return el.clone.record(input, out=out)
    limits = np.finfo(input.array.dtype)
    return em.nan_to_num.record(
        input,
        nan=0.0 if nan is None else nan,
        posinf=float(limits.max) if posinf is None else posinf,
        neginf=float(limits.min) if neginf is None else neginf,
        out=out,
    )


FREXP = result_type("frexp", "mantissa", "exponent")


def frexp(input: Tensor) -> Any:
    """(mantissa, exponent) with input = mantissa · 2^exponent and a mantissa in [0.5, 1); exponent int32."""
    if not isinstance(input, Tensor):
        raise expected_tensor(el.frexp, input)
    if input.array.dtype.kind != "f":
        raise RuntimeError("gradlab.frexp() only supports floating-point dtypes. Call .float() first.")
    xp = namespace_of[type(input.array)]
    _, exponent = xp.frexp(input.array)
    return FREXP((el.frexp.record(input, exponent=exponent), constant(wrap(exponent))))


# ------------------------------------------------------------------------------------- what is about complex numbers
def real(input: Tensor) -> Tensor:
    """The tensor itself: its numbers are real."""
    return input


def imag(input: Tensor) -> Tensor:
    """An error: there are no complex tensors."""
    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes. gradlab has no complex tensors.")


def view_as_real(input: Tensor) -> Tensor:
    """An error: there are no complex tensors."""
    raise RuntimeError("view_as_real is only supported for complex tensors. gradlab has none.")


def view_as_complex(input: Tensor) -> Tensor:
    """An error: there are no complex tensors."""
    raise RuntimeError("view_as_complex(): complex tensors are not supported.")


conj = conj_physical = resolve_conj = resolve_neg = real

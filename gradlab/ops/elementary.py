"""Elementwise functions with further parameters, and functions for complex numbers.

Functions that are simply the recording function of a primitive are declared in `gradlab.rules.elementary`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.errors import not_implemented
from gradlab.core.operator import composite
from gradlab.core.promotion import expected_tensor
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.results import result_type
from gradlab.rules import elementary as em
from gradlab.rules import elementwise as el

__all__ = [
    "conj",
    "conj_physical",
    "frexp",
    "imag",
    "logit",
    "nan_to_num",
    "real",
    "resolve_conj",
    "resolve_neg",
    "round",
    "view_as_complex",
    "view_as_real",
]


@composite(inplace="function", special="logit")
def logit(input: Tensor, eps: float | None = None, *, out: Tensor | None = None) -> Tensor:
    """Compute log(input / (1 - input)), the inverse of the sigmoid.

    Parameters
    ----------
    {input}
    eps : float, optional
        If given, `input` is clamped to [eps, 1 - eps] first, and the derivative outside this range is 0.
    {out}

    Returns
    -------
    Tensor
        Same shape as `input`, floating point.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.logit(gl.tensor([0.25, 0.5, 1.0]), eps=0.01)
    tensor([-1.0986,  0.0000,  4.5951])
    """
    return em.logit.record(input, eps=None if eps is None or eps < 0 else eps, out=out)


@composite(inplace="function", special="round")
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Tensor:
    """Round to the nearest integer, half to even, or to a number of decimals.

    The derivative is 0.

    Parameters
    ----------
    {input}
    decimals : int, optional
        Number of decimals, for floating-point tensors. A negative number rounds to tens, hundreds and so on.
    {out}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    NotImplementedError
        If `input` is boolean, or `decimals` is given for integers.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.round(gl.tensor([0.5, 1.5, 2.7]))
    tensor([0., 2., 3.])
    >>> gl.round(gl.tensor([0.123, 4.567]), decimals=1)
    tensor([0.1000, 4.6000])
    """
    if decimals is None:
        return em.round_.record(input, out=out)
    if isinstance(input, Tensor) and input.array.dtype.kind != "f":
        raise not_implemented("round" if decimals == 0 else "round_decimals", input.dtype)
    return em.round_decimals.record(input, decimals=decimals, out=out)


@composite(inplace="function")
def nan_to_num(
    input: Tensor,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers.

    The derivative is 1 for finite elements and 0 for replaced ones.

    Parameters
    ----------
    {input}
    nan : float, optional
        Replacement for NaN. Default: 0.
    posinf, neginf : float, optional
        Replacements for +∞ and -∞. Default: the largest and the lowest finite number of the dtype.
    {out}

    Returns
    -------
    Tensor
        Same shape and dtype as `input`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nan_to_num(gl.tensor([1.0, float("nan"), float("inf")]), posinf=9.0)
    tensor([1., 0., 9.])
    """
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


@composite()
def frexp(input: Tensor) -> Any:
    """Decompose elements into mantissa and exponent: input = mantissa · 2^exponent, |mantissa| in [0.5, 1).

    Parameters
    ----------
    {input}

    Returns
    -------
    mantissa : Tensor
        Same shape and dtype as `input`.
    exponent : Tensor
        Same shape as `input`, int32. It never requires a gradient.

    Raises
    ------
    TypeError
        If `input` is not a Tensor.
    RuntimeError
        If `input` is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.frexp(gl.tensor([3.0, 8.0])).mantissa
    tensor([0.7500, 0.5000])
    """
    if not isinstance(input, Tensor):
        raise expected_tensor(el.frexp, input)
    if input.array.dtype.kind != "f":
        raise RuntimeError("gradlab.frexp() only supports floating-point dtypes. Call .float() first.")
    xp = namespace_of[type(input.array)]
    _, exponent = xp.frexp(input.array)
    return FREXP((el.frexp.record(input, exponent=exponent), constant(wrap(exponent))))


# ------------------------------------------------------------------------------------------------------ complex numbers
@composite(method=False)
def real(input: Tensor) -> Tensor:
    """Return `input` unchanged, since all tensors are real.

    Parameters
    ----------
    {input}

    Returns
    -------
    Tensor
        `input`.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.real(gl.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return input


@composite(method=False)
def imag(input: Tensor) -> NoReturn:
    """Raise an error, since there are no complex tensors.

    Parameters
    ----------
    {input}

    Returns
    -------
    NoReturn
        The function always raises.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.imag(gl.tensor([1.0]))
    Traceback (most recent call last):
    RuntimeError: imag is not implemented for tensors with non-complex dtypes. gradlab has no complex tensors.
    """
    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes. gradlab has no complex tensors.")


@composite(method=False)
def view_as_real(input: Tensor) -> NoReturn:
    """Raise an error, since there are no complex tensors.

    Parameters
    ----------
    {input}

    Returns
    -------
    NoReturn
        The function always raises.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.view_as_real(gl.tensor([1.0]))
    Traceback (most recent call last):
    RuntimeError: view_as_real is only supported for complex tensors. gradlab has none.
    """
    raise RuntimeError("view_as_real is only supported for complex tensors. gradlab has none.")


@composite(method=False)
def view_as_complex(input: Tensor) -> NoReturn:
    """Raise an error, since there are no complex tensors.

    Parameters
    ----------
    {input}

    Returns
    -------
    NoReturn
        The function always raises.

    Raises
    ------
    RuntimeError
        Always.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.view_as_complex(gl.tensor([1.0]))
    Traceback (most recent call last):
    RuntimeError: view_as_complex(): complex tensors are not supported.
    """
    raise RuntimeError("view_as_complex(): complex tensors are not supported.")


conj = conj_physical = resolve_conj = resolve_neg = real

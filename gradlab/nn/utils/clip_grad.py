"""Gradients made smaller, in place, between `backward` and the optimizer's step."""

from __future__ import annotations

import math
import types
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradlab.core.modes import no_grad
from gradlab.core.tensor import Tensor, constant
from gradlab.linalg.norms import vector_norm
from gradlab.ops.from_data import tensor
from gradlab.ops.joins import stack

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def gradients(parameters: Any) -> list[Tensor]:
    return [p.grad for p in ([parameters] if isinstance(parameters, Tensor) else parameters) if p.grad is not None]


@no_grad()
def get_total_norm(tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None) -> Tensor:
    """The norm of all elements of several tensors, as of one vector.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        The tensors.
    norm_type : float, default: 2
        Which norm; it may be inf.
    error_if_nonfinite : bool, default: False
        Whether a norm that is NaN or infinite is an error.
    foreach : bool, optional
        Accepted, without effect.

    Returns
    -------
    Tensor
        Without axes.

    Raises
    ------
    RuntimeError
        If the norm is not finite, and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.utils.get_total_norm([gl.tensor([3.0]), gl.tensor([4.0])])
    tensor(5.)
    """
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not listed:
        return tensor(0.0)
    if norm_type == 2 and all(type(x.array) is np.ndarray and x.array.dtype.char in "fd" for x in listed):
        return checked(euclidean([x.array for x in listed]), norm_type, error_if_nonfinite)
    first = listed[0].device
    total = vector_norm(stack([vector_norm(x, norm_type).to(first) for x in listed]), norm_type)
    return checked(total, norm_type, error_if_nonfinite)


def euclidean(arrays: list[np.ndarray]) -> Tensor:
    """The 2-norm of all the arrays' elements: one dot product each."""
    flat = [array.ravel("K") for array in arrays]
    total = math.sqrt(sum(float(np.dot(x, x)) for x in flat))
    return constant(np.asarray(total, np.result_type(*arrays)))


def checked(total: Tensor, norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """The norm, unless it is to be refused."""
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale gradients by a bound over their norm, if that makes them smaller.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those whose `.grad` is meant; those without one are passed over.
    max_norm : float
        The bound.
    total_norm : Tensor
        The norm, as of `get_total_norm`.
    foreach : bool, optional
        Accepted, without effect.

    Returns
    -------
    None

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.nn.Parameter(gl.zeros(2))
    >>> w.grad = gl.tensor([3.0, 4.0])
    >>> gl.nn.utils.clip_grads_with_norm_(w, 1.0, gl.tensor(5.0))
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    scale = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
    if not scale.is_cuda and scale.item() == 1:  # on a GPU the question would cost more than the product
        return
    for gradient in gradients(parameters):
        gradient.mul_(scale.to(gradient.device))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale gradients so that the norm of all of them together is at most a bound.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those whose `.grad` is meant; those without one are passed over.
    max_norm : float
        The bound.
    norm_type : float, default: 2
        Which norm; it may be inf.
    error_if_nonfinite : bool, default: False
        Whether a norm that is NaN or infinite is an error.
    foreach : bool, optional
        Accepted, without effect.

    Returns
    -------
    Tensor
        The norm before that.

    Raises
    ------
    RuntimeError
        If the norm is not finite, and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.nn.Parameter(gl.zeros(2))
    >>> w.grad = gl.tensor([3.0, 4.0])
    >>> gl.nn.utils.clip_grad_norm_(w, 1.0)
    tensor(5.)
    >>> w.grad
    tensor([0.6000, 0.8000])
    """
    if isinstance(parameters, Tensor):
        listed = [parameters]
    else:
        listed = list(parameters)
        if not listed and isinstance(parameters, types.GeneratorType):
            warnings.warn("`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2)
    total = get_total_norm(gradients(listed), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(listed, max_norm, total)
    return total


def clip_grad_norm(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated: use `clip_grad_norm_`.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those whose `.grad` is meant; those without one are passed over.
    max_norm : float
        The bound.
    norm_type : float, default: 2
        Which norm; it may be inf.
    error_if_nonfinite : bool, default: False
        Whether a norm that is NaN or infinite is an error.
    foreach : bool, optional
        Accepted, without effect.

    Returns
    -------
    Tensor
        The norm before that.

    Raises
    ------
    RuntimeError
        If the norm is not finite, and `error_if_nonfinite` is set.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.nn.Parameter(gl.zeros(2))
    >>> w.grad = gl.tensor([3.0, 4.0])
    >>> gl.nn.utils.clip_grad_norm_(w, 1.0)  # in its place
    tensor(5.)
    """
    warnings.warn(
        "`gradlab.nn.utils.clip_grad_norm` is now deprecated in favor of `gradlab.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite)


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Clamp every element of the gradients to ±a bound.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Those whose `.grad` is meant; those without one are passed over.
    clip_value : float
        The bound.
    foreach : bool, optional
        Accepted, without effect.

    Returns
    -------
    None

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.nn.Parameter(gl.zeros(2))
    >>> w.grad = gl.tensor([3.0, 4.0])
    >>> gl.nn.utils.clip_grad_value_(w, 3.5)
    >>> w.grad
    tensor([3.0000, 3.5000])
    """
    for gradient in gradients(parameters):
        gradient.clamp_(-float(clip_value), float(clip_value))

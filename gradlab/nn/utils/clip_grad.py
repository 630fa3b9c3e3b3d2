"""Gradient clipping in place, between `backward` and the optimizer's step."""

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
    """Compute the norm of all elements of several tensors, as one vector.

    Parameters
    ----------
    tensors : Tensor or iterable of Tensor
        The tensors.
    norm_type : float, default: 2
        Order of the norm, possibly inf.
    error_if_nonfinite : bool, default: False
        Raise an error if the norm is NaN or infinite.
    foreach : bool, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        A scalar.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite` is True.

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
        return check_finite(euclidean_norm([x.array for x in listed]), norm_type, error_if_nonfinite)
    first = listed[0].device
    total = vector_norm(stack([vector_norm(x, norm_type).to(first) for x in listed]), norm_type)
    return check_finite(total, norm_type, error_if_nonfinite)


def euclidean_norm(arrays: list[np.ndarray]) -> Tensor:
    """Compute the 2-norm of all elements of the arrays, with one dot product for each array."""
    flat = [array.ravel("K") for array in arrays]
    total = math.sqrt(sum(float(np.dot(x, x)) for x in flat))
    return constant(np.asarray(total, np.result_type(*arrays)))


def check_finite(total: Tensor, norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """Return the norm. Raise if it is not finite and `error_if_nonfinite`."""
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return total


@no_grad()
def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Tensor, foreach: bool | None = None) -> None:
    """Scale gradients by `max_norm / total_norm` if the norm exceeds the bound.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters. Those without a gradient are skipped.
    max_norm : float
        Upper bound.
    total_norm : Tensor
        The norm, from `get_total_norm`.
    foreach : bool, optional
        Accepted for compatibility; has no effect.

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
    if not scale.is_cuda and scale.item() == 1:  # on a GPU, reading the scale would cost more than multiplying
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
    """Scale gradients so that their total norm is at most a bound.

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters. Those without a gradient are skipped.
    max_norm : float
        Upper bound.
    norm_type : float, default: 2
        Order of the norm, possibly inf.
    error_if_nonfinite : bool, default: False
        Raise an error if the norm is NaN or infinite.
    foreach : bool, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        The norm before clipping.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite` is True.

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
        Parameters. Those without a gradient are skipped.
    max_norm : float
        Upper bound.
    norm_type : float, default: 2
        Order of the norm, possibly inf.
    error_if_nonfinite : bool, default: False
        Raise an error if the norm is NaN or infinite.
    foreach : bool, optional
        Accepted for compatibility; has no effect.

    Returns
    -------
    Tensor
        The norm before clipping.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite` is True.

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
    """Clamp every element of the gradients to [-clip_value, clip_value].

    Parameters
    ----------
    parameters : Tensor or iterable of Tensor
        Parameters. Those without a gradient are skipped.
    clip_value : float
        Upper bound.
    foreach : bool, optional
        Accepted for compatibility; has no effect.

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

"""Conversion of parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules.state import type_name
from gradlab.ops.joins import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Concatenate all parameters to one vector. Differentiable.

    Parameters
    ----------
    parameters : iterable of Tensor
        The parameters.

    Returns
    -------
    Tensor
        One-dimensional.

    Raises
    ------
    TypeError
        If a parameter is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.nn.utils.parameters_to_vector([gl.ones(2), gl.zeros(1, 2)])
    tensor([1., 1., 0., 0.])
    """
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Replace the data of the parameters by the parts of a vector, whose memory they share.

    Parameters
    ----------
    vec : Tensor
        One element for each element of the parameters.
    parameters : iterable of Tensor
        The parameters.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `vec` is not a Tensor.

    Examples
    --------
    >>> import gradlab as gl
    >>> layer = gl.nn.Linear(2, 1)
    >>> gl.nn.utils.vector_to_parameters(gl.arange(3.0), layer.parameters())
    >>> layer.bias
    Parameter containing:
    tensor([2.], requires_grad=True)
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradlab.Tensor, but got: {type_name(vec)}")
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = constant(vec.array[at : at + count].reshape(parameter.shape))
        at += count

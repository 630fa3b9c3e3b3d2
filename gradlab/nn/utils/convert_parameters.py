"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.core.tensor import Tensor, constant
from gradlab.nn.modules.state import type_named
from gradlab.ops.joins import cat

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of all parameters, one after the other; differentiable."""
    return cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Let the parameters be the parts of the vector, whose memory they share."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected gradlab.Tensor, but got: {type_named(vec)}")
    at = 0
    for parameter in parameters:
        count = parameter.numel()
        parameter.data = constant(vec.array[at : at + count].reshape(parameter.shape))
        at += count

"""Layers that merge and split dimensions."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn.modules.bases import ReprModule

__all__ = ["Flatten", "Unflatten"]


class Flatten(ReprModule):
    """Merge the dimensions start_dim ... end_dim into one. By default, only the batch dimension is kept.

    Parameters
    ----------
    start_dim, end_dim : int, optional
        The first and the last dimension to merge (default: 1 and -1).

    Notes
    -----
    By default: input (N, *), output (N, product of the other dimensions).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Flatten()(gradlab.zeros(32, 1, 28, 28)).shape == (32, 784)
    True
    """

    repr_format = "start_dim={start_dim}, end_dim={end_dim}"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(ReprModule):
    """Split the dimension `dim` into several.

    Parameters
    ----------
    dim : int
        The dimension to split.
    unflattened_size : tuple of ints
        Sizes of the new dimensions. Their product must be the old size; one may be -1, to be inferred from the others.

    Raises
    ------
    TypeError
        If `unflattened_size` is not a tuple or list of ints.

    Notes
    -----
    Input: (*, n, *). Output: (*, *unflattened_size, *).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Unflatten(1, (2, 3))(gradlab.zeros(5, 6)).shape == (5, 2, 3)
    True
    """

    repr_format = "dim={dim}, unflattened_size={unflattened_size}"

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}")
        for position, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} at pos {position}"
                )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

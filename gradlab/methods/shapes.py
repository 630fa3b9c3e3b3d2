"""The same elements in another shape or order."""
from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.functions import shapes as functions


class Shapes:
    """Views and copies."""

    reshape, view, flatten, transpose, permute, t = (functions.reshape, functions.view, functions.flatten,
                                                     functions.transpose, functions.permute, functions.t)
    expand, expand_as, broadcast_to, squeeze, unsqueeze = (functions.expand, functions.expand_as, functions.broadcast_to,
                                                           functions.squeeze, functions.unsqueeze)
    diagonal, diag, clone = functions.diagonal, functions.diag, functions.clone

    def ravel(self: Any) -> Tensor:
        """All elements along one axis."""
        return functions.flatten(self)

    def reshape_as(self: Any, other: Tensor) -> Tensor:
        """In the shape of `other`."""
        return functions.reshape(self, *other.array.shape)

    view_as = reshape_as

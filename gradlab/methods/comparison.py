"""Comparisons and logic."""
from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.functions import comparison as functions


class Comparison:
    """Results are tensors of bools, but for `where`."""

    eq, ne, lt, le, gt, ge = functions.eq, functions.ne, functions.lt, functions.le, functions.gt, functions.ge
    logical_not, isnan, isfinite, allclose, equal = (functions.logical_not, functions.isnan, functions.isfinite,
                                                     functions.allclose, functions.equal)

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, `other` elsewhere."""
        return functions.where(condition, self, other)

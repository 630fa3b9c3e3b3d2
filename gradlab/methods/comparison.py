"""What the comparisons have as a method in a form of its own. (The others follow from their declarations.)"""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.ops import comparison as functions


class Comparison:
    """The tensor first, then the condition."""

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, `other` elsewhere."""
        return functions.where(condition, self, other)

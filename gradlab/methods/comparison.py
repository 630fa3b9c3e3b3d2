"""Comparison methods whose signature differs from the function's. The others are generated from the operators' declarations."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.ops import comparison as functions


class Comparison:
    """Methods that take the tensor before the condition."""

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """Select this tensor's elements where `condition` is True and those of `other` elsewhere.

        Equivalent to ``gradlab.where(condition, self, other)``.

        Parameters
        ----------
        condition : Tensor
            Bool tensor, broadcastable with this tensor.
        other : Tensor or number
            Values where `condition` is False, broadcastable with this tensor and `condition`.

        Returns
        -------
        Tensor
            Has the broadcast shape of all three and the promoted dtype of this tensor and `other`.

        Raises
        ------
        RuntimeError
            If `condition` is not a bool tensor or the shapes do not broadcast.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([-1., 2.])
        >>> x.where(x > 0, 0.)
        tensor([0., 2.])
        """
        return functions.where(condition, self, other)

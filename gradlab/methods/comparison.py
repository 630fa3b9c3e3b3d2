"""What the comparisons have as a method in a form of its own. (The others follow from their declarations.)"""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.ops import comparison as functions


class Comparison:
    """The tensor first, then the condition."""

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """This tensor where the condition holds, `other` elsewhere: `gradlab.where` with the tensor first.

        Parameters
        ----------
        condition : Tensor
            Bools, of a shape that broadcasts with that of this tensor.
        other : Tensor or number
            What stands where the condition does not hold; a tensor of a shape that broadcasts with the others.

        Returns
        -------
        Tensor
            The shape that the three broadcast to, of the common dtype of this tensor and `other`.

        Raises
        ------
        RuntimeError
            If `condition` holds no bools, or the shapes do not broadcast.

        Examples
        --------
        >>> import gradlab as gl
        >>> x = gl.tensor([-1., 2.])
        >>> x.where(x > 0, 0.)
        tensor([0., 2.])
        """
        return functions.where(condition, self, other)

"""What happens to a Jacobian by hand when a line is forgotten: really run, on tensors of its own.

The stand-in for the user's graph is the linear map z = J @ x, which has the Jacobian J everywhere and saves J for its
backward. So each mishap is the library's own doing: `.grad` that was not emptied accumulates, and a graph that was not
retained refuses a second backward with the library's own sentence. No tensor of the user's is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.libraries import Library

ROWS, ENTRIES = 64, 1_000_000  # of the Jacobian that take part at most


def rows_taking_part(shape: tuple[int, int]) -> int:
    """How many of a Jacobian's first rows take part."""
    rows, columns = shape
    return min(rows, ROWS, max(1, ENTRIES // max(columns, 1)))


class Trial:
    """A Jacobian by hand with a line left out.

    Parameters
    ----------
    matrix : ndarray
        Those of its rows that take part, the first ones.
    labels : sequence of str
        What all of its rows are called.
    library : Library
    like
        What the tensors are made like.
    zero : bool
        Forget `x.grad = None` between the rows.
    retain : bool
        Forget `retain_graph=True`.

    Attributes
    ----------
    count : int
        The number of rows that take part.
    terms : list of int
        The rows that were swept, in order.
    """

    def __init__(
        self, matrix: np.ndarray, labels: Sequence[str], library: Library, like: Any, *, zero: bool, retain: bool
    ) -> None:
        self.zero, self.retain = zero, retain
        self._library, self._labels, self._like = library, labels, like
        self.count, self._of = len(matrix), len(labels)
        self._x = library.tensor(np.zeros(matrix.shape[1], matrix.dtype), like).requires_grad_()
        self._z = library.tensor(matrix, like) @ self._x
        self.terms: list[int] = []

    def row(self, i: int) -> np.ndarray:
        """What the loop takes for row `i`. Raises what the library raises."""
        if not 0 <= i < self.count:
            raise IndexError(f"only the first {self.count} of {self._of} rows take part in this; row {i} does not")
        v = np.zeros(self.count)
        v[i] = 1.0
        if not self.zero:
            self._x.grad = None
            self.terms = []
        weights = self._library.tensor(v, self._like)
        self._z.backward(weights) if self.retain else self._z.backward(weights, retain_graph=True)
        self.terms.append(i)
        return np.array(self._library.array(self._x.grad))

    def code(self, i: int) -> str:
        """The same by hand, with the forgotten line as a comment."""
        gl, part = self._library.alias, "J" if self.count == self._of else f"J[:{self.count}]"
        x = f"{gl}.zeros({self._x.shape[0]}, dtype={gl}.{self._library.dtype_name(self._x)}, requires_grad=True)"
        return "\n".join(
            [
                "# on tensors of its own: z = J @ x has the Jacobian J",
                f"x = {x}",
                f"z = {gl}.tensor({part}{'[:]' if part == 'J' else ''}) @ x",
                "for i in range(len(z)):",
                "    # x.grad = None  is forgotten" if self.zero else "    x.grad = None",
                f"    v = {gl}.zeros_like(z)",
                "    v[i] = 1.",
                "    z.backward(v)  # retain_graph=True is forgotten" if self.retain else "    z.backward(v, retain_graph=True)",
                "    row = x.grad.clone()" + (f"  # at i = {i}: {self.meaning()}" if self.terms else ""),
            ]
        )

    def meaning(self) -> str:
        """Of which rows `.grad` is the sum: "row z[0] + row z[1]"."""
        shown = [f"row {self._labels[i]}" for i in self.terms]
        return " + ".join(shown if len(shown) <= 4 else [*shown[:2], "…", shown[-1]])

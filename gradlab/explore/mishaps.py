"""What happens to a Jacobian by hand when a line is forgotten: really run, on tensors of its own.

The stand-in for the user's graph is the linear map z = J @ x, which has the Jacobian J everywhere and saves J for its
backward. So each mishap is the library's own doing: `.grad` that was not emptied accumulates, and a graph that was not
retained refuses a second backward with the library's own sentence. No tensor of the user's is touched.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, ENTRIES = 64, 1_000_000  # of the Jacobian that take part at most


class Trial:
    """A Jacobian by hand with a line left out.

    Parameters
    ----------
    jacobian : Jacobian
        Whose first rows take part.
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

    def __init__(self, jacobian: Any, *, zero: bool, retain: bool) -> None:
        self.zero, self.retain = zero, retain
        self._library, self._labels = jacobian._library, jacobian.row_labels()
        rows, columns = jacobian.shape
        self.count = min(rows, ROWS, max(1, ENTRIES // max(columns, 1)))
        graph = jacobian._graph  # its sweeps leave the Jacobian as it is
        matrix = np.array(jacobian[:self.count]) if graph is None else graph.vjp(np.eye(self.count, rows, dtype=jacobian.dtype))
        like = jacobian._like[1][0]
        self._x = self._library.tensor(np.zeros(columns, matrix.dtype), like).requires_grad_()
        self._z = self._library.tensor(matrix, like) @ self._x
        self._like = like
        self._of = rows
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
        return "\n".join([
            "# on tensors of its own: z = J @ x has the Jacobian J",
            f"x = {x}",
            f"z = {gl}.tensor({part}{'[:]' if part == 'J' else ''}) @ x",
            "for i in range(len(z)):",
            "    # x.grad = None  is forgotten" if self.zero else "    x.grad = None",
            f"    v = {gl}.zeros_like(z)",
            "    v[i] = 1.",
            "    z.backward(v)  # retain_graph=True is forgotten" if self.retain else "    z.backward(v, retain_graph=True)",
            "    row = x.grad.clone()" + (f"  # at i = {i}: {self.meaning()}" if self.terms else ""),
        ])

    def meaning(self) -> str:
        """Of which rows `.grad` is the sum: "row z[0] + row z[1]"."""
        shown = [f"row {self._labels[i]}" for i in self.terms]
        return " + ".join(shown if len(shown) <= 4 else [*shown[:2], "…", shown[-1]])

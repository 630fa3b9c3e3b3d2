"""A Jacobian by hand with a line forgotten.

The rows are those of the user's own graph, and the consequences come from the library itself: a `.grad` that was not zeroed
accumulates, on a tensor made for it, and a graph that was not retained refuses a second backward with the library's own error
about its saved tensors. The user's objects do not change: no `.grad` is written and no graph freed.
"""

from __future__ import annotations

import numpy as np

from gradlab.explore.jacobian.graph import DifferentiatedGraph
from gradlab.explore.jacobian.matrix import Jacobian

TERMS = 4  # terms of a sum of rows that are written out


class WhatIf:
    """A Jacobian by hand with a line left out.

    Parameters
    ----------
    jacobian : Jacobian
    graph : Graph or None
        Its graph; None if it was released because all rows are known.
    zero : bool
        Forget `x.grad = None` between the rows.
    retain : bool
        Forget `retain_graph=True`.

    Attributes
    ----------
    terms : list of int
        Rows that were swept into `.grad`, in order.

    Raises
    ------
    ValueError
        If the loop has no such line, or the graph was released.
    """

    def __init__(self, jacobian: Jacobian, graph: DifferentiatedGraph | None, *, zero: bool, retain: bool) -> None:
        if why := next((why for on, why in zip((zero, retain), reasons(jacobian, graph), strict=True) if on and why), ""):
            raise ValueError(why)
        self.zero, self.retain = zero, retain
        self._jacobian, self._graph = jacobian, graph
        library, columns = jacobian.library, jacobian.shape[1]
        self._x = library.tensor(np.zeros(columns, jacobian.dtype), jacobian.likes[0]).requires_grad_()
        self._swept = False
        self.terms: list[int] = []

    def row(self, i: int) -> np.ndarray:
        """Return what the loop gets for row `i`, or raise the library's error."""
        if self.retain and self._swept and self._graph is not None and (refused := self._graph.refusal()) is not None:
            raise refused
        jacobian, library = self._jacobian, self._jacobian.library
        v = np.zeros(len(jacobian), jacobian.dtype)
        v[i] = 1.0
        row = jacobian.row(i) if self._graph is None else self._graph.vjp(v)  # known entries do not change
        self._swept = True
        if not self.zero:
            self._x.grad = None
            self.terms = []
        self._x.backward(library.tensor(np.array(row), self._x))
        self.terms.append(i)
        return np.array(library.array(self._x.grad))

    def code(self, i: int) -> str:
        """Return the loop up to row `i`, in the user's names, with the forgotten line as a comment."""
        jacobian = self._jacobian
        rows = self.terms if i in self.terms[-1:] else [*self.terms, i]
        said = self.meaning() if i in self.terms[-1:] else ""
        return jacobian.code.loop(rows, jacobian.runner.unused or (), zero=self.zero, retain=self.retain, said=said)

    def meaning(self) -> str:
        """Return which rows `.grad` sums: "row z[0] + row z[1]"; empty before the first."""
        labels = self._jacobian.row_labels()
        shown = [f"row {labels[i]}" for i in self.terms]
        return " + ".join(shown if len(shown) <= TERMS else [*shown[:2], "…", shown[-1]])


def reasons(jacobian: Jacobian, graph: DifferentiatedGraph | None) -> tuple[str, str]:
    """Return why zeroing, and why retaining, cannot be forgotten here; empty if it can."""
    zero = "" if jacobian.code.leaves else "the inputs are not leaves: autograd.grad() returns each row, and nothing adds up"
    retain = "" if graph is not None else "the graph was released once all rows were known, so nothing is left to retain"
    return zero, retain

"""How a Jacobian is shown: as a sentence, as a heat map, on matplotlib axes, live."""
from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.explore.jacobian.memory import SMALL
from gradlab.explore.views import opened

if TYPE_CHECKING:
    from gradlab.explore.cells import Cells
    from gradlab.explore.drawing import Drawing

CHEAP_SECONDS = 1.0                                             # a display computes what is missing if it takes no longer
DRAWABLE_CELLS = 1_000_000                                      # beyond, a display pools the matrix first

PLOTTED = 512                                                   # cells a side of a pooled matrix on matplotlib axes


class Showing:
    """The part of `Jacobian` that draws."""

    word = "Jacobian"
    _hand: Any
    _unused: Any
    shape: tuple[int, int]

    def heading(self) -> str:
        """What by what, in words: "z (7) by x (5)"."""
        outputs, inputs = (", ".join(f"{name} ({times(shape)})" for name, shape in side)
                           for side in (self._hand.outputs, self._hand.inputs))
        return f"{outputs} by {inputs}"

    def __repr__(self) -> str:
        return f"<{self.word} of {self.heading()}, {self.shape[0]}×{self.shape[1]}: {self._state()}>"

    def _state(self: Any) -> str:
        rows = self.shape[0]
        if self.complete:
            return f"all {rows} rows known" if rows != 1 else "its row is known"
        if self._done and self.plan.kind != "rows":
            return f"{len(self._done)} of {len(self.plan.blocks())} blocks of {self.plan.kind} known"
        return f"{self.rows_known} of {rows} rows known" if rows != 1 else "its row is not computed yet"

    def drawing(self: Any, *, compute: bool = True) -> Drawing:
        """The heat map of what is known, the rest outlined; if `compute`, completed first where that takes under a second."""
        from gradlab.explore.heat import heatmap, note

        if compute:
            self._compute_if_cheap()
        heading = f"{self.word} of {self.heading()}"
        remarks = []
        if not self.complete:
            start = "J.sparse()" if self.plan.colours is not None else "np.asarray(J)"
            remarks.append(f"{self._state()}. {start} computes the rest ({self.plan}), J[i] one row, J.widget() step by step")
        if unused := [name for name, missing in zip(self.input_names, self._unused or (), strict=False) if missing]:
            remarks.append(f"{self.output_name} does not depend on {', '.join(unused)}: zero")
        labels = self.row_labels(), self.column_labels_lazily()
        by_rows = self.complete or (self._data is None and not self._filled[1].any())
        if math.prod(self.shape) <= DRAWABLE_CELLS and by_rows:
            values, filled = self._values_to_draw()
            return heatmap(values, title=heading, rows=labels[0], columns=labels[1], filled=filled,
                           blocks=self.blocks if len(self.blocks) > 1 else None, remark="; ".join(remarks))
        part = self.reduced()
        if not part.known.any():
            return note(heading, "; ".join(remarks))
        if not part.exact:
            (m, n), (h, w) = self.shape, part.low.shape
            remarks.insert(0, f"{m} × {n} pooled to {h} × {w} cells by largest |value|")
        rows, columns = self._pooled_labels(part)
        edges = np.searchsorted(part.columns, np.cumsum([0, *(size for _, size in self.blocks)]))
        return heatmap(part.values, title=heading, rows=rows, columns=columns, filled=part.known, truth=part.truth(),
                       blocks=[(name, int(width)) for (name, _), width in zip(self.blocks, np.diff(edges), strict=True)]
                       if len(self.blocks) > 1 else None, remark="; ".join(remarks))

    def _pooled_labels(self: Any, part: Cells) -> Iterator[list[str]]:
        """What the rows and the columns of cells begin with: "y[0]…", or "y[0]" where that is all."""
        for labels, starts, end in ((self.row_labels(), part.rows, part.window[1]),
                                    (self.column_labels_lazily(), part.columns, part.window[3])):
            yield [labels[int(i)] + ("…" if size > 1 else "") for i, size in zip(starts, np.diff([*starts, end]), strict=True)]

    def _values_to_draw(self: Any) -> tuple[np.ndarray, np.ndarray | None]:
        if self.complete:
            return np.asarray(self), None
        filled = self.known
        values = np.zeros(self.shape)
        for i in np.flatnonzero(filled):
            values[i] = self.row(int(i))
        return values, filled

    def _compute_if_cheap(self: Any) -> None:
        """Compute the rest if it takes under a second, judging by what a row and then the first block take."""
        if self.complete:
            return
        start = time.perf_counter()
        if self.plan.bytes > SMALL and not self.rows_known:     # a batch is up to some ten times quicker than its rows
            self.row(0)
            if (time.perf_counter() - start) * self.plan.chunk > 10 * CHEAP_SECONDS:
                return
        todo = [block for block in self.plan.blocks() if block.number not in self._done]
        for done, block in enumerate(todo):
            if done and (time.perf_counter() - start) / done * len(todo) > CHEAP_SECONDS:
                return
            self._run([block], progress=False)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        return self.drawing()._repr_mimebundle_(include=include, exclude=exclude)

    def plot(self: Any, ax: Any = None) -> Any:
        """Draw the whole Jacobian, computing what is missing, with matplotlib; returns the axes. Large ones are pooled."""
        import matplotlib.pyplot as plt

        from gradlab.explore.heat import plot

        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        rows, columns = self.row_labels(), self.column_labels_lazily()
        if math.prod(self.shape) <= DRAWABLE_CELLS:
            plot(np.asarray(self), ax, rows=rows, columns=columns)
        else:
            self._compute()
            part = self.reduced(cells=(PLOTTED, PLOTTED))
            rows, columns = self._pooled_labels(part)
            plot(part.values, ax, rows=rows, columns=columns)
        ax.set_title(f"{self.word} of {self.heading()}".replace("$", r"\$"))
        return ax

    def widget(self) -> Any:
        """A live view for a notebook: step through the rows, or mix them with sliders."""
        return opened("jacobian", self)


def times(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "scalar"

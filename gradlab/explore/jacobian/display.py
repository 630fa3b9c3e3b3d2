"""How a Jacobian is shown: as a sentence, as a heat map, on matplotlib axes."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradlab.explore.cells import Cells
from gradlab.explore.drawing import Drawing
from gradlab.explore.heat import heatmap, note
from gradlab.explore.heat import plot as plot_heat
from gradlab.explore.jacobian.code import HandCode
from gradlab.explore.jacobian.memory import SMALL
from gradlab.explore.jacobian.runner import Runner

CHEAP_SECONDS = 1.0  # a display computes what is missing if it takes no longer
DRAWABLE_CELLS = 1_000_000  # beyond, a display pools the matrix first
PLOTTED = 512  # cells a side of a pooled matrix on matplotlib axes


class Display:
    """Shows what a runner's store has.

    Parameters
    ----------
    runner : Runner
    code : HandCode
        What rows and columns are called.
    word, heading : str
        What kind of matrix it is, and of what by what.
    """

    def __init__(self, runner: Runner, code: HandCode, word: str, heading: str) -> None:
        self._runner, self._store, self._code = runner, runner.store, code
        self._word, self._heading = word, heading
        self._blocks = blocks_of(code.inputs)

    def sentence(self) -> str:
        """What it is, and how much of it is known."""
        rows, columns = self._store.shape
        return f"<{self._word} of {self._heading}, {rows}×{columns}: {self._state()}>"

    def _state(self) -> str:
        store, rows = self._store, self._store.shape[0]
        if store.complete:
            return f"all {rows} rows known" if rows != 1 else "its row is known"
        plan = self._runner.plan
        if store.done and plan.kind != "rows":
            return f"{len(store.done)} of {len(plan.blocks())} blocks of {plan.kind} known"
        return f"{int(store.known_rows.sum())} of {rows} rows known" if rows != 1 else "its row is not computed yet"

    def drawing(self, *, compute: bool = True) -> Drawing:
        """The heat map of what is known, the rest outlined; if `compute`, completed first where that takes under a second."""
        if compute:
            self._compute_if_cheap()
        store, code, blocks = self._store, self._code, self._blocks
        heading = f"{self._word} of {self._heading}"
        remarks = []
        if not store.complete:
            plan = self._runner.plan
            start = "J.sparse()" if plan.colours is not None else "np.asarray(J)"
            remarks.append(f"{self._state()}. {start} computes the rest ({plan}), J[i] one row, J.widget() step by step")
        if unused := code.independent(self._runner.unused):
            remarks.append(f"{', '.join(name for name, _ in code.outputs)} does not depend on {', '.join(unused)}: zero")
        if math.prod(store.shape) <= DRAWABLE_CELLS and store.by_rows:
            values, filled = self._values_to_draw()
            return heatmap(
                values,
                title=heading,
                rows=code.row_labels(),
                columns=code.column_labels(),
                filled=filled,
                blocks=blocks if len(blocks) > 1 else None,
                remark="; ".join(remarks),
            )
        part = self.reduced()
        if not part.known.any():
            return note(heading, "; ".join(remarks))
        if not part.exact:
            (m, n), (h, w) = store.shape, part.low.shape
            remarks.insert(0, f"{m} × {n} pooled to {h} × {w} cells by largest |value|")
        rows, columns = self._pooled_labels(part)
        edges = np.searchsorted(part.columns, np.cumsum([0, *(size for _, size in blocks)]))
        return heatmap(
            part.values,
            title=heading,
            rows=rows,
            columns=columns,
            filled=part.known,
            truth=part.truth(),
            blocks=[(name, int(width)) for (name, _), width in zip(blocks, np.diff(edges), strict=True)]
            if len(blocks) > 1
            else None,
            remark="; ".join(remarks),
        )

    def reduced(self, rows: slice = slice(None), columns: slice = slice(None), cells: tuple[int, int] = (64, 64)) -> Cells:
        """What is known of a part of the matrix, in `cells` along its sides at most."""
        (first, end, step), (left, right, across) = (
            some.indices(size) for some, size in zip((rows, columns), self._store.shape, strict=True)
        )
        if (step, across) != (1, 1):
            raise ValueError(
                f"reduced() takes ranges of neighbouring rows and columns; got a step of {step if step != 1 else across}"
            )
        made = Cells((first, max(first, end), left, max(left, right)), self._blocks, cells)
        made.put_known(self._store)
        return made

    def plot(self, ax: Any = None) -> Any:
        """Draw the whole, computing what is missing, with matplotlib; returns the axes. Large ones are pooled."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        if math.prod(self._store.shape) <= DRAWABLE_CELLS:
            plot_heat(self._runner.dense(), ax, rows=self._code.row_labels(), columns=self._code.column_labels())
        else:
            self._runner.compute()
            part = self.reduced(cells=(PLOTTED, PLOTTED))
            rows, columns = self._pooled_labels(part)
            plot_heat(part.values, ax, rows=rows, columns=columns)
        ax.set_title(f"{self._word} of {self._heading}".replace("$", r"\$"))
        return ax

    def _pooled_labels(self, part: Cells) -> Iterator[list[str]]:
        """What the rows and the columns of cells begin with: "y[0]…", or "y[0]" where that is all."""
        for labels, starts, end in (
            (self._code.row_labels(), part.rows, part.window[1]),
            (self._code.column_labels(), part.columns, part.window[3]),
        ):
            yield [labels[int(i)] + ("…" if size > 1 else "") for i, size in zip(starts, np.diff([*starts, end]), strict=True)]

    def _values_to_draw(self) -> tuple[np.ndarray, np.ndarray | None]:
        store = self._store
        if store.complete:
            return self._runner.dense(), None
        filled = store.known_rows
        values = np.zeros(store.shape)
        for i in np.flatnonzero(filled):
            values[i] = self._runner.row(int(i))
        return values, filled

    def _compute_if_cheap(self) -> None:
        """Compute the rest if it takes under a second, judging by what a row and then the first block take."""
        runner = self._runner
        if self._store.complete:
            return
        start = time.perf_counter()
        if runner.plan.bytes > SMALL and not self._store.known_rows.any():
            runner.row(0)  # a batch is up to some ten times quicker than its rows
            if (time.perf_counter() - start) * runner.plan.chunk > 10 * CHEAP_SECONDS:
                return
        todo = runner.missing()
        for done, block in enumerate(todo):
            if done and (time.perf_counter() - start) / done * len(todo) > CHEAP_SECONDS:
                return
            runner.run([block], progress=False)


def heading_of(code: HandCode) -> str:
    """What by what, in words: "z (7) by x (5)"."""
    outputs, inputs = (", ".join(f"{name} ({times(shape)})" for name, shape in side) for side in (code.outputs, code.inputs))
    return f"{outputs} by {inputs}"


def blocks_of(side: Sequence[tuple[str, tuple[int, ...]]]) -> list[tuple[str, int]]:
    """Each array's name and number of elements."""
    return [(name, math.prod(shape)) for name, shape in side]


def times(shape: tuple[int, ...]) -> str:
    """A shape in words: "2×3"."""
    return "×".join(map(str, shape)) or "scalar"

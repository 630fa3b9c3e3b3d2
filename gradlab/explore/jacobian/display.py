"""Display of a Jacobian: as a sentence, as a heat map, on matplotlib axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradlab import clock
from gradlab.explore.drawing import Drawing
from gradlab.explore.heat import heatmap, note
from gradlab.explore.heat import plot as plot_heat
from gradlab.explore.heat_cells import HeatCells
from gradlab.explore.jacobian.code import HandCode
from gradlab.explore.jacobian.memory import SMALL
from gradlab.explore.jacobian.runner import Runner
from gradlab.explore.pooled_matrix import PooledMatrix, Sample, sampled_rows_and_columns

CHEAP_SECONDS = 1.0  # a display computes missing entries if this takes less time
DRAWABLE_CELLS = 1_000_000  # larger matrices are pooled for matplotlib
SMALL_MAP = 20  # cells per side up to which an empty map is drawn instead of a sentence alone
NONE: Mapping[int, np.ndarray] = {}
PLOTTED = 512  # cells per side of a pooled matrix on matplotlib axes


class Display:
    """Display of the known part of a runner's store.

    Parameters
    ----------
    runner : Runner
    code : HandCode
        Names of rows and columns.
    word, heading : str
        Kind of matrix, and its outputs and inputs as text.
    """

    def __init__(self, runner: Runner, code: HandCode, word: str, heading: str) -> None:
        self._runner, self._store, self._code = runner, runner.store, code
        self._word, self._heading = word, heading
        self._blocks = blocks_of(code.inputs)

    def sentence(self) -> str:
        """Describe the matrix, and how much of it is known."""
        rows, columns = self._store.shape
        return f"<{self._word} of {self._heading}, {rows}×{columns}: {self._state()}>"

    def _state(self) -> str:
        store, rows = self._store, self._store.shape[0]
        if store.complete:
            return f"all {rows} rows known" if rows != 1 else "its row is known"
        plan = self._runner.plan
        if store.done and plan.kind != "rows":
            return f"{len(store.done)} of {len(plan.blocks())} blocks of {plan.kind} known"
        known = int(store.known_rows.sum())
        return f"{known} of {rows} rows known" if known else "not computed yet"

    def drawing(self, *, compute: bool = True, columns: Mapping[int, np.ndarray] = NONE) -> Drawing:
        """Draw the heat map of the known entries, the rest outlined. With `compute`, complete the matrix first if that takes
        under a second. `columns`: known columns that are not stored, by number."""
        if compute:
            self._compute_if_cheap()
        store, code, blocks = self._store, self._code, self._blocks
        heading = f"{self._word} of {self._heading}"
        drawn, remarks = self._pool(columns=columns), []
        if drawn.empty:
            swept = f"{len(columns)} of {store.shape[1]} columns" if columns and not store.known_rows.any() else ""
            plan, state = self._runner.plan, f"{swept} known. " if swept else f"{self._state()}. "
            start = "J.sparse()" if plan.colours is not None else "np.asarray(J)"
            called = "the rest" if drawn.shown.any() else "it"
            remarks.append(f"{state}{start} computes {called} ({plan}), J[i] one row, J.widget() step by step")
        if unused := code.independent(self._runner.unused):
            remarks.append(f"{', '.join(name for name, _ in code.outputs)} does not depend on {', '.join(unused)}: zero")
        if max(drawn.cells.shape) > SMALL_MAP and not drawn.shown.any():
            return note(heading, "; ".join(remarks))
        return heatmap(
            drawn,
            title=heading,
            rows=code.row_labels(),
            columns=code.column_labels(),
            blocks=blocks if len(blocks) > 1 else None,
            remark="; ".join(remarks),
        )

    def _pool(self, cells: tuple[int, int] = (64, 64), columns: Mapping[int, np.ndarray] = NONE) -> PooledMatrix:
        """Pool the known entries into `cells` for drawing, with the exact extremes, and the corners for the text."""
        shape, part = self._store.shape, self.pool(cells=cells, beside=columns)
        empty = math.prod(shape) - int(part.count.sum())
        return PooledMatrix(
            shape, part.rows, part.columns, part.values, part.known_mask, empty, part.truth(), self._sample(columns)
        )

    def _sample(self, beside: Mapping[int, np.ndarray]) -> Sample:
        """Return the corners of the matrix as far as they are known."""
        tall, broad = sampled_rows_and_columns(self._store.shape)
        corners = [[self.pool(rows, columns, beside=beside) for columns in _runs(broad)] for rows in _runs(tall)]
        if not corners or not corners[0]:
            return Sample(tall, broad, np.zeros((len(corners), 0)), None)
        numbers, present = (
            np.block([[getattr(one, what) for one in line] for line in corners]) for what in ("values", "known_mask")
        )
        return Sample(tall, broad, numbers, present)

    def pool(
        self,
        rows: slice = slice(None),
        columns: slice = slice(None),
        cells: tuple[int, int] = (64, 64),
        beside: Mapping[int, np.ndarray] = NONE,
    ) -> HeatCells:
        """Return the known entries of a part of the matrix in at most `cells` per side, including columns known `beside` the
        store."""
        (first, end, step), (left, right, across) = (
            some.indices(size) for some, size in zip((rows, columns), self._store.shape, strict=True)
        )
        if (step, across) != (1, 1):
            raise ValueError(
                f"pool() takes ranges of neighbouring rows and columns; got a step of {step if step != 1 else across}"
            )
        cells_shown = HeatCells((first, max(first, end), left, max(left, right)), self._blocks, cells)
        with self._store.lock:
            cells_shown.put_known(self._store)
            stored, swept = self._store.known_rows, self._store.known_columns
        for j, column in beside.items():
            if not swept[j]:
                cells_shown.put_column(j, column, ~stored)
        return cells_shown

    def plot(self, ax: Any = None) -> Any:
        """Draw the complete matrix with matplotlib, computing missing entries, and return the axes. Large matrices are pooled."""
        import matplotlib.pyplot as plt

        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        rows, columns = self._code.row_labels(), self._code.column_labels()
        if math.prod(self._store.shape) <= DRAWABLE_CELLS:
            plot_heat(self._runner.dense(), ax, rows=rows, columns=columns)
        else:
            self._runner.compute()
            plot_heat(self._pool((PLOTTED, PLOTTED)), ax, rows=rows, columns=columns)
        ax.set_title(f"{self._word} of {self._heading}".replace("$", r"\$"))
        return ax

    def _compute_if_cheap(self) -> None:
        """Compute the rest if it takes under a second, judging by the time of one row and then of the first block."""
        runner = self._runner
        if self._store.complete:
            return
        start = clock.now()
        if runner.plan.bytes > SMALL and not self._store.known_rows.any():
            runner.row(0)  # a batch is up to ten times faster than its rows
            if (clock.now() - start) * runner.plan.chunk > 10 * CHEAP_SECONDS:
                return
        todo = runner.missing()
        for done, block in enumerate(todo):
            if done and (clock.now() - start) / done * len(todo) > CHEAP_SECONDS:
                return
            runner.run([block], progress=False)


def _runs(which: Sequence[int | None]) -> list[slice]:
    """Return the runs of neighbours among numbers with None between."""
    present = [k for k in which if k is not None]
    if None not in which:
        return [slice(0, len(present))] if present else []
    gap = which.index(None)
    return [slice(0, gap), slice(present[gap], present[-1] + 1)]


def heading_of(code: HandCode) -> str:
    """Return for example "z (7) with respect to x (5)"."""
    outputs, inputs = (", ".join(f"{name} ({times(shape)})" for name, shape in side) for side in (code.outputs, code.inputs))
    return f"{outputs} with respect to {inputs}"


def blocks_of(side: Sequence[tuple[str, tuple[int, ...]]]) -> list[tuple[str, int]]:
    """Return each array's name and number of elements."""
    return [(name, math.prod(shape)) for name, shape in side]


def times(shape: tuple[int, ...]) -> str:
    """Return a shape as text: "2×3"."""
    return "×".join(map(str, shape)) or "scalar"

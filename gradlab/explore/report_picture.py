"""Picture of a report: the graph, and heat maps of the matrix-shaped gradients beside or below it.

A narrow graph has its maps beside it, a wide one gets the full width. If a cell's output would be too large, maps are left out,
the last one first, and the report says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gradlab.explore.drawing import Drawing, above, beside, clean
from gradlab.explore.heat import heatmap
from gradlab.explore.heat_svg import SEPARATE
from gradlab.explore.pooled_matrix import PooledMatrix

WIDTH = 940  # of a notebook's output, in pixels
CELLS = 64  # per side
SIDES = 400, 300, 220, 220, 180  # longer side of a map in pixels, for one, two, ... maps
SVG_BYTES = 105_000  # maximum size of the picture; 140 kB in base64


@dataclass(frozen=True)
class Map:
    """A gradient pooled to at most `CELLS` per side, kept as numbers for later plots."""

    name: str
    shape: tuple[int, int]
    cells: tuple[int, int]
    data: bytes  # float32
    rows: tuple[int, ...]  # the first row of each cell
    columns: tuple[int, ...]

    def values(self) -> np.ndarray:
        """Cells as a matrix."""
        return np.frombuffer(self.data, np.float32).reshape(self.cells)


def map_of(name: str, matrix: PooledMatrix) -> Map:
    """Convert a matrix to the form that a report keeps."""
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(matrix.cells, np.float32).tobytes()
    cells = int(matrix.cells.shape[0]), int(matrix.cells.shape[1])
    return Map(name, matrix.shape, cells, data, tuple(map(int, matrix.rows)), tuple(map(int, matrix.columns)))


def picture(graph: Drawing | None, maps: Sequence[Drawing]) -> tuple[Drawing | None, int]:
    """Return the picture, and the number of maps in it."""
    shown = len(maps)
    while True:
        drawing = _arrange(graph, maps[:shown])
        if drawing is None or not shown or len(drawing.svg()) <= SVG_BYTES:
            return drawing, shown
        shown -= 1


def _arrange(graph: Drawing | None, maps: Sequence[Drawing]) -> Drawing | None:
    """Put graph and maps beside or below each other, whichever is less tall."""
    if graph is None:
        return _in_rows(maps, WIDTH) if maps else None
    if not maps:
        return graph
    below = above(graph, _in_rows(maps, max(WIDTH, graph.width)), gap=32)
    room = WIDTH - graph.width - 40
    if room < max(drawing.width for drawing in maps):
        return below
    return min(beside(graph, _in_rows(maps, room), gap=40), below, key=lambda drawing: drawing.height)


def _in_rows(drawings: Sequence[Drawing], width: float) -> Drawing:
    rows: list[list[Drawing]] = []
    left = 0.0
    for drawing in drawings:
        if rows and drawing.width + 32 <= left:
            rows[-1].append(drawing)
            left -= drawing.width + 32
        else:
            rows.append([drawing])
            left = width - drawing.width
    return above(*(beside(*row, gap=32) for row in rows), gap=28)


def heat_maps(gradients: Sequence[tuple[str, PooledMatrix]]) -> list[Drawing]:
    """Return heat maps of gradients under their names. A small total number of cells is drawn separately, a large one as
    bitmaps."""
    side, separate = SIDES[min(len(gradients), len(SIDES)) - 1], SEPARATE // len(gradients)
    return [heatmap(matrix, title=clean(name), limit=CELLS, separate=separate, side=side) for name, matrix in gradients]

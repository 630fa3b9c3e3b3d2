"""The heat map of a live view of a Jacobian. If no cells have changed, only the strip with vᵀJ or Ju is drawn again."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradlab.explore.drawing import EDGE, GRADIENT, VALUE, Drawing, tidy
from gradlab.explore.heat_cells import HeatCells
from gradlab.explore.heat_colours import ink_on
from gradlab.explore.heat_layout import LETTERS, Axis, Layout, lay_out
from gradlab.explore.heat_svg import NUMBERED, SEPARATE, draw_cells, draw_labels, draw_scale, number, outline, text
from gradlab.explore.jacobian.matrix import Jacobian

ROOM = 440.0  # initial width in pixels, until a view reports its own
LEAST = 150.0  # minimum width, in pixels
SIDE = 380.0  # maximum side of a large map, in pixels
SCALE = 38  # pixels for the scale and the gap above it
NUMBER = 40.0  # width of a number in a cell: six characters
COLOURS = (  # distinguishable classes, also for the colour-blind (Tol's muted scheme)
    *("#44aa99", "#332288", "#ddcc77", "#aa4499", "#88ccee", "#117733", "#cc6677", "#999933", "#882255", "#bbbbbb"),
)
NUMBERED_CLASS = 14  # minimum pixels of a cell for the number of its class

Parts = dict[str, Any]
Extremes = tuple[float, float] | None


class LiveMap:
    """The heat map as it was last drawn.

    Attributes
    ----------
    room : float
        Available width in pixels.
    """

    def __init__(self, jacobian: Jacobian) -> None:
        self._names = jacobian.row_labels(), jacobian.column_labels_lazily()
        self._parts = jacobian.output_shapes, jacobian.input_shapes
        self._blocks = jacobian.blocks
        self.room = ROOM
        self._layout: Layout | None = None
        self._laid_out_for: tuple[Any, ...] = ()
        self._sent: tuple[Layout | None, float] = None, 0.0  # layout and bound of the map that the view has
        self.title = f"Jacobian of {', '.join(jacobian.output_names)} with respect to {', '.join(jacobian.input_names)}"

    def parts(
        self, view: HeatCells, strip: HeatCells | None, product: str, at: int, columns: bool, extent: Extremes, new: bool
    ) -> Parts:
        """Return the parts to redraw: "map" with its cells ("layout", "moved") if any has changed, and "over".

        Parameters
        ----------
        view : HeatCells
        strip : HeatCells or None
            The product, in the columns or rows of the cells.
        product : str
            Name of the strip.
        at : int
            The outlined row or column; −1 for none.
        columns : bool
            Whether columns are stepped through. The strip is then at the right.
        extent : (float, float) or None
            Extremes of the complete matrix.
        new : bool
            Whether cells have changed, or the view has none yet.
        """
        if not view.low.size:
            return {}
        finite = [abs(end) for cells in (extent, strip and strip.extremes()) for end in cells or ()]
        bound, layout, (before, bound_before) = max(finite, default=0.0), self._laid_out(view, columns), self._sent
        parts: Parts = {"over": self._over(layout, view, strip, product, at, columns, bound)}
        if new or layout is not before or bound != bound_before:
            drawn = self._cells(view.values, view.known_mask, layout, bound, view.exact)
            scale, _, _ = draw_scale(layout.left, layout.end[1] + 12, bound, [], layout.right - layout.left)
            rows, across = (f"{first} to {end - 1}" for first, end in (view.window[:2], view.window[2:]))
            said = f"Rows {rows}, columns {across}; colours from {number(-bound)} to {number(bound)}"
            parts["map"] = self._figure(layout, drawn + scale, said)
            parts |= {"layout": _places(layout), "moved": layout is not before}
            self._sent = layout, bound
        return parts

    def classes(self, view: HeatCells, classes: np.ndarray, columns: bool) -> str:
        """Draw the map with each cell's class instead of its number; −1: none, −2: several."""
        layout = self._laid_out(view, columns)
        wide, high = layout.wide - layout.gap, layout.high - layout.gap
        cells, written = [], []
        for i, j in np.argwhere(classes != -1 if not layout.gap else np.ones(classes.shape, bool)).tolist():
            k = int(classes[i, j])
            x, y = float(layout.x[j]), float(layout.y[i])
            fill, faint = (EDGE, ' fill-opacity=".1"' if k == -1 else "") if k < 0 else (class_colour(k)[0], "")
            box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(max(wide, 1))}" height="{tidy(max(high, 1))}"'
            cells.append(f'<rect {box} fill="{fill}"{faint}/>')
            if k >= 0 and min(layout.wide, layout.high) >= NUMBERED_CLASS:
                written.append(text(x + wide / 2, y + high / 2 + 4, str(k), LETTERS, class_colour(k)[1], "middle", 600))
        return self._figure(layout, "".join(cells) + f'<g class="gl-group">{"".join(written)}</g>', "The colours of sweeps")

    def _laid_out(self, view: HeatCells, columns: bool) -> Layout:
        key = (view.window, view.low.shape, columns, self.room)
        if self._layout is None or key != self._laid_out_for:
            rows, across = (
                Axis(labels, starts, end, [(math.prod(shape), shape[-1] if shape else 1) for shape in shapes])
                for labels, starts, end, shapes in zip(
                    self._names, (view.rows, view.columns), view.window[1::2], self._parts, strict=True
                )
            )
            few = view.exact and max(view.low.shape) <= NUMBERED
            self._layout = lay_out(
                rows,
                across,
                self._input_starts(view),
                side=SIDE,
                separate=view.low.size <= SEPARATE,
                written=NUMBER if few else 0.0,
                room=self.room,
                across=columns,
            )
            self._laid_out_for = key
        return self._layout

    def _input_starts(self, view: HeatCells) -> list[tuple[str, int]]:
        """Return the inputs in the window and the first cell of each, if there are several inputs."""
        if len(self._blocks) < 2:
            return []
        stops = np.cumsum([size for _, size in self._blocks])
        which = np.searchsorted(stops, view.columns, side="right")
        first = [k for k in range(len(which)) if not k or which[k] != which[k - 1]]
        return [(self._blocks[int(which[k])][0], k) for k in first]

    def _cells(self, cells: np.ndarray, known: np.ndarray, layout: Layout, bound: float, exact: bool) -> str:
        place = layout.x, layout.y, layout.wide, layout.high, layout.gap
        numbered = exact and max(cells.shape) <= NUMBERED
        return draw_cells(cells, known, place, bound, separate=cells.size <= SEPARATE, numbered=numbered)

    def _over(
        self, layout: Layout, view: HeatCells, strip: HeatCells | None, product: str, at: int, columns: bool, bound: float
    ) -> str:
        """Draw the strip, its name, and the outline of the row or column."""
        x, y, wide, high = layout.strip
        shape = len(y), len(x)
        values, known = (np.zeros(shape), np.zeros(shape, bool)) if strip is None else (strip.values, strip.known_mask)
        numbered = view.exact and max(view.low.shape) <= NUMBERED
        drawn = [draw_cells(values, known, (x, y, wide, high, layout.gap), bound, separate=bool(layout.gap), numbered=numbered)]
        ink = VALUE if columns else GRADIENT
        if columns:
            top = layout.columns[0][1] if layout.columns else float(layout.y[0]) - 8
            drawn.append(text(float(x[0]) + wide / 2, top, product, 11.5, ink, "middle", 600))
        else:
            drawn.append(text(layout.left - 7, float(y[0]) + high / 2 + 3.7, product, 11.5, ink, "end", 600))
        first, end = view.window[2:] if columns else view.window[:2]
        if first <= at < end:
            k = int(np.searchsorted(view.columns if columns else view.rows, at, side="right")) - 1
            drawn.append(outline(layout, k, columns))
        return f'<g xmlns="http://www.w3.org/2000/svg" class="gl-over">{"".join(drawn)}</g>'

    def _figure(self, layout: Layout, body: str, said: str) -> str:
        right, bottom = layout.end
        body = f'{draw_labels(layout)}{body}<g class="gl-over"/>'
        return Drawing(body, right + 4, bottom + SCALE, "", f"{self.title}\n{said}").inline()


def class_colour(k: int) -> tuple[str, str]:
    """Return the colour of a class, and of a number on it."""
    colour = COLOURS[k % len(COLOURS)]
    return colour, "#" + bytes(ink_on(tuple(bytes.fromhex(colour[1:])))).hex()


def _places(layout: Layout) -> Mapping[str, Any]:
    """Return the positions of the cells in pixels, for pointing at them."""
    x, y, wide, high = layout.strip
    return {
        "x": np.round(layout.x, 2).tolist(),
        "y": np.round(layout.y, 2).tolist(),
        "wide": layout.wide,
        "high": layout.high,
        "gap": layout.gap,
        "strip": [float(x[0]), wide] if layout.across else [float(y[0]), high],
    }

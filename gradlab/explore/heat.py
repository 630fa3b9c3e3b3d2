"""A matrix of signed numbers as a heat map: purple below zero, white at zero, orange above.

The scale is linear and symmetric about zero, so a colour's hue shows the sign and its strength the magnitude. The exact extremes
are written beside it. Nothing depends on colour alone: negative cells are hatched, NaN has a cross, an infinity a plus or a
minus, and a cell without a value (`filled`) is an empty outline. Up to 8 × 8 cells contain their number, in the ink that has a
contrast of at least 4.5:1 on the cell's colour.

A small number of cells are drawn separately. Many cells become one small embedded bitmap with a few pixels per cell: a tenth of
the bytes, and no seams. More than `limit` cells per side are pooled first. A block shows its largest |value| with its sign, or
NaN if it has one, so nothing that matters is averaged away. The caption says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.drawing import DIM, GRADIENT, Drawing, text_width
from gradlab.explore.heat_colours import NAN, SIGNED, Anchors
from gradlab.explore.heat_layout import PITCH, Axis, lay_out, round_up, shorten_label
from gradlab.explore.heat_svg import (
    DIGITS,
    NUMBERED,
    SEPARATE,
    WITH_NUMBER,
    brief,
    draw_cells,
    draw_labels,
    draw_scale,
    number,
    outline,
)
from gradlab.explore.heat_svg import text as draw_text
from gradlab.explore.pooled_matrix import PooledMatrix, Sample, extremes, matrix_of, pool_matrix

SIDE = 400  # longer side of a large map, px
BOLD = 1.2  # width of bold text relative to regular text
ROOM = 48  # letters that fit below matplotlib's axes; longer labels are rotated


def heatmap(
    values: Any,
    *,
    title: str = "",
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    limit: int = 64,
    filled: Any = None,
    highlight: int | None = None,
    blocks: Sequence[tuple[str, int]] | None = None,
    remark: str = "",
    separate: int = SEPARATE,
    side: float = SIDE,
    pitch: float = PITCH,
    anchors: Anchors = SIGNED,
    tips: bool = False,
    what: str = "",
) -> Drawing:
    """Draw a vector or matrix of real numbers as a signed heat map.

    Parameters
    ----------
    values : array_like, shape (n,) or (m, n), or Reduced
        May contain NaN and infinities. A vector is drawn as one row, a number as one cell.
    title : str
        The sentence above the map.
    rows, columns : sequence of str, optional
        Labels; element numbers by default. If they would collide, only every second, fifth, tenth ... is shown.
    limit : int
        Maximum number of cells per side; larger matrices are pooled to the largest |value| of each block.
    filled : array_like of bool, optional
        Cells (shape (m, n)) or rows (shape (m,)) that have a value; the others are outlined. All by default.
    highlight : int, optional
        A row to outline.
    blocks : sequence of (str, int), optional
        Names and widths of the blocks of columns, which are separated by gaps.
    remark : str
        A last line below the map.
    separate : int
        Maximum number of cells that are drawn separately; more are drawn as one bitmap, with a tenth of the bytes.
    side : float
        Longer side of a large map, in pixels.
    pitch : float
        Maximum size of a cell, including the gap to the next, in pixels.
    anchors : tuple of three colours
        Colours of the least number of the scale, of 0 and of the greatest.
    tips : bool
        Whether each separately drawn cell has a tooltip with its position and number, for a live view.
    what : str
        What the numbers are, for the legend: "gradient". Empty if the title says it.

    Returns
    -------
    Drawing

    Raises
    ------
    ValueError
        If `values` has more than two axes, or if labels, `filled` or `blocks` do not fit.
    TypeError
        If `values` are not real numbers.
    """
    drawn = values if isinstance(values, PooledMatrix) else pool_matrix(values, limit, filled=filled, blocks=blocks)
    m, n = drawn.shape
    for which, labels, size in (("rows", rows, m), ("columns", columns, n)):
        if labels is not None and len(labels) != size:
            raise ValueError(f"heatmap got {len(labels)} labels for {size} {which}")
    if not m * n:
        return note(title or "An empty matrix", f"shape {m} × {n}: there is nothing to show. {remark}".rstrip())
    low, high, _ = drawn.truth
    facts = _facts(drawn) or ([] if remark or drawn.shown.any() else ["not computed yet"])
    text = "\n".join(filter(None, [title, _table(drawn.sample, rows, columns), ", ".join(_range(drawn)), *facts, remark]))
    cells, named = drawn.cells, blocks if blocks and len(blocks) <= limit else []
    firsts = np.searchsorted(drawn.columns, np.cumsum([0, *(size for _, size in named)])[:-1]).tolist()
    down = Axis(rows, drawn.rows, m, [(m, m)])
    across = Axis(columns, drawn.columns, n, [(size, size) for _, size in blocks or [("", n)]])
    apart, few = cells.size <= separate, max(cells.shape) <= NUMBERED
    numbered = down.exact and across.exact and few and apart
    texts = [brief(value) for value in cells[drawn.shown & np.isfinite(cells)].tolist()] if numbered else []
    layout = lay_out(
        down,
        across,
        [(name, first) for (name, _), first in zip(named, firsts, strict=True)],
        side=side,
        pitch=pitch,
        top=24.0 if title else 2.0,
        separate=apart,
        written=max(text_width(one, DIGITS) for one in [WITH_NUMBER, *texts]) if few else 0.0,
    )
    place = layout.x, layout.y, layout.wide, layout.high, layout.gap
    bound, said = max(-low, high), _tips(cells, down, across) if tips else None
    body = [draw_text(1.5, 14, title, 13, GRADIENT, weight=600), draw_labels(layout)]
    body.append(draw_cells(cells, drawn.shown, place, bound, separate=apart, numbered=numbered, anchors=anchors, tips=said))
    if highlight is not None:
        body.append(outline(layout, int(np.searchsorted(drawn.rows, highlight, side="right")) - 1))
    left, y = layout.left, layout.bottom + 12
    scale, scale_width, scale_height = draw_scale(left, y, bound, _range(drawn, sign=True), layout.right - left, anchors, what)
    width, y = max(layout.end[0], left + scale_width, text_width(title, 13) * BOLD), y + scale_height
    lines = [line for fact in [*facts, remark] if fact for line in _wrap(fact, max(56, int((width - left) / 6)))]
    body += [scale, *(draw_text(left, y + 12 + 15 * k, line, 11, DIM) for k, line in enumerate(lines))]
    width = max([width, *(left + text_width(line, 11) for line in lines)])
    return Drawing("".join(body), width + 4, y + 15 * len(lines) + (4 if lines else 0), text, text)


def note(title: str, text: str) -> Drawing:
    """Return a drawing of a sentence, if there is nothing to draw."""
    lines = _wrap(text, 80)
    body = draw_text(1.5, 14, title, 13, GRADIENT, weight=600) + "".join(
        draw_text(0, 34 + 17 * k, line, 12, DIM) for k, line in enumerate(lines)
    )
    width = max([text_width(title, 13) * BOLD, *(text_width(line, 12) for line in lines)])
    return Drawing(body, width + 4, 24 + 17 * len(lines), f"{title}\n{text}", f"{title}. {text}")


def plot(values: Any, ax: Any, *, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None) -> Any:
    """Draw the heat map on matplotlib axes, with every cell and a colour bar; return the image. A `PooledMatrix` stays pooled."""
    from matplotlib.colors import LinearSegmentedColormap

    drawn = values if isinstance(values, PooledMatrix) else None
    numbers = matrix_of(values) if drawn is None else drawn.cells
    low, high, _ = extremes(numbers) if drawn is None else drawn.truth
    bound = max(-low, high) or 1.0
    anchors = ["#" + bytes(anchor).hex() for anchor in SIGNED]
    scale = LinearSegmentedColormap.from_list("purple_white_orange", anchors).with_extremes(bad="#" + bytes(NAN).hex())
    image = ax.imshow(numbers, cmap=scale, vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
    sizes = numbers.shape if drawn is None else drawn.shape
    starts = [np.arange(size) for size in sizes] if drawn is None else [drawn.rows, drawn.columns]
    for side, labels, first, size in zip((ax.yaxis, ax.xaxis), (rows, columns), starts, sizes, strict=True):
        axis = Axis(labels, first, size, [(size, size)])
        step = round_up(max(1, size / 16))
        ticks = list(range(0, size, step))
        texts = [axis.label(i, 24) for i in ticks]
        upright = side is ax.xaxis and sum(map(len, texts)) > ROOM
        places = [axis.place(i) - (0 if axis.exact else 0.5) for i in ticks]
        side.set_ticks(places, [text.replace("$", r"\$") for text in texts], rotation=90 if upright else 0)
    ax.figure.colorbar(image, ax=ax)
    return image


def _range(drawn: PooledMatrix, sign: bool = False) -> list[str]:
    """Return texts with the least and the greatest value, or that there are none; empty if nothing is known."""
    low, high, counts = drawn.truth
    known = drawn.shape[0] * drawn.shape[1] - drawn.empty
    if sum(counts.values()) >= known:
        return ["no finite value"] if known else []
    return [f"least {number(low, sign)}", f"greatest {number(high, sign)}"]


def _facts(drawn: PooledMatrix) -> list[str]:
    """Return facts that the picture does not show, as one sentence per line."""
    (m, n), cells, counts, facts = drawn.shape, drawn.cells.shape, drawn.truth[2], []
    if counts:
        signs = {"NaN": "×", "+inf": "+", "−inf": "−"}
        facts.append(", ".join(f"{count} {kind} (marked {signs[kind]})" for kind, count in counts.items()))
    if cells != (m, n):
        facts.append(f"{m} × {n} pooled to {cells[0]} × {cells[1]} cells by largest |value|")
    if 0 < drawn.empty < m * n:
        facts.append(f"{drawn.empty} of {m * n} cells not computed yet (outlined)")
    return facts


def _tips(cells: np.ndarray, rows: Axis, columns: Axis) -> list[list[str]]:
    """Return the tooltip of each cell: its position and number."""
    across = [columns.extent(k) for k in range(cells.shape[1])]
    return [
        [f"[{rows.extent(i)}, {place}] {number(value, digits=6)}" for place, value in zip(across, line, strict=True)]
        for i, line in enumerate(cells.tolist())
    ]


def _table(sample: Sample, rows: Sequence[str] | None, columns: Sequence[str] | None) -> str:
    """Return the numbers in columns, without the middle of a large matrix."""
    tall, broad = sample.rows, sample.columns
    head = ["", *("…" if j is None else shorten_label(columns[j] if columns is not None else str(j)) for j in broad)]
    lines = [head]
    for i in tall:
        cells = ["…" if i is None or j is None else "·" if (value := sample.at(i, j)) is None else number(value) for j in broad]
        lines.append(["…" if i is None else shorten_label(rows[i] if rows is not None else str(i)), *cells])
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    padded = [[entry.rjust(width) for entry, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _wrap(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width) or [""]

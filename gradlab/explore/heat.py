"""A matrix of signed numbers as a heat map: purple below zero, white at zero, orange above.

The scale is linear and symmetric about zero, so that a colour's side is its sign and its strength its size, and the
true extremes stand beside it. What is not a number to compare is told by form and not by colour alone: NaN has a cross,
an infinity a plus or a minus, a cell without a value (`filled`) is an empty outline. Up to 8 × 8 cells have their number in
them, in whichever ink has a contrast of 4.5:1 or better on the cell's own colour.

Few cells are drawn one by one. Many become one small embedded bitmap with a few pixels a cell: a tenth of the bytes,
and no seams between cells. More than `limit` cells a side are pooled first: a block shows its largest |value| with its
sign, NaN if it has one, so nothing that matters can vanish by averaging; the caption says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from itertools import chain, pairwise
from typing import Any

import numpy as np

from gradlab.explore.drawing import DIM, EDGE, GRADIENT, Drawing, escape, text_width, tidy
from gradlab.explore.heat_colours import MARK, NAN, SIGNED, Anchors, bar, fills, ink_on, png_uri, ramp
from gradlab.explore.pooled_matrix import PooledMatrix, Sample, extremes, matrix_of, reduced
from gradlab.explore.theme import hex_of

SEPARATE = 400  # up to this many cells are drawn one by one
SIDE = 400  # a large map's longer side, px
PITCH = 30  # a cell and its gap at most, px
PIXELS = 8  # bitmap pixels a cell
LETTERS = 10.5  # size of the labels, px
NUMBERED = 8  # up to so many cells a side have their number in them
DIGITS = 10  # size of these numbers, px
BOLD = 1.2  # how much wider a bold text is
ROUND: list[int] = [s * 10**power for power in range(12) for s in (1, 2, 5)]  # steps between labels
ROOM = 48  # letters that fit below matplotlib's axes; longer labels are turned
CROSS = (
    np.array(
        [
            list(row)
            for row in (  # pixels of a bitmap's cell
                "........",
                ".x....x.",
                "..x..x..",
                "...xx...",
                "...xx...",
                "..x..x..",
                ".x....x.",
                "........",
            )
        ]
    )
    == "x"
)
MINUS = np.zeros((8, 8), bool)
MINUS[3:5, 1:7] = True


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
    anchors: Anchors = SIGNED,
    tips: bool = False,
) -> Drawing:
    """Draw a vector or matrix of real numbers as a signed heat map.

    Parameters
    ----------
    values : array_like, shape (n,) or (m, n), or Reduced
        May hold NaN and infinities. A vector is drawn as one row, a number as one cell.
    title : str
        The sentence above the map.
    rows, columns : sequence of str, optional
        Labels; element numbers by default. Where they would collide only every second, fifth, tenth ... is shown.
    limit : int
        Cells drawn along a side at most; beyond, blocks of cells are pooled to their largest |value|.
    filled : array_like of bool, optional
        Which cells (shape (m, n)) or rows (shape (m,)) have a value; the others are outlined. Default: all.
    highlight : int, optional
        A row to outline.
    blocks : sequence of (str, int), optional
        Names and widths of the blocks of columns, set apart from each other.
    remark : str
        A last line below the map.
    separate : int
        Up to this many cells are drawn one by one, more as one bitmap: a tenth of the bytes.
    side : float
        How long a large map's longer side is, in pixels.
    anchors : tuple of three colours
        Of the least, of 0 and of the greatest number of the scale.
    tips : bool
        Whether each cell that is drawn by itself has its place and its number as a tooltip: for a live view.

    Returns
    -------
    Drawing

    Raises
    ------
    ValueError
        If `values` has more than two axes, or labels, `filled` or `blocks` do not fit it.
    TypeError
        If `values` are not real numbers.
    """
    drawn = values if isinstance(values, PooledMatrix) else reduced(values, limit, filled=filled, blocks=blocks)
    m, n = drawn.shape
    for what, labels, size in (("rows", rows, m), ("columns", columns, n)):
        if labels is not None and len(labels) != size:
            raise ValueError(f"heatmap got {len(labels)} labels for {size} {what}")
    if not m * n:
        return note(title or "An empty matrix", f"shape {m} × {n}: there is nothing to show. {remark}".rstrip())
    low, high, _ = drawn.truth
    facts = _facts(drawn) or ([] if remark or drawn.shown.any() else ["not computed yet"])
    text = "\n".join(filter(None, [title, _table(drawn.sample, rows, columns), ", ".join(_range(drawn)), *facts, remark]))
    starts = np.cumsum([0, *(size for _, size in (blocks or [])[:-1])])
    return _draw(
        drawn.cells,
        drawn.shown,
        title=title,
        bound=max(-low, high),
        range_=_range(drawn, sign=True),
        facts=facts,
        remark=remark,
        text=text,
        rows=_Axis(rows, drawn.rows, m, [0]),
        columns=_Axis(columns, drawn.columns, n, [int(start) for start in starts]),
        highlight=None if highlight is None else int(np.searchsorted(drawn.rows, highlight, side="right")) - 1,
        blocks=[(name, int(np.searchsorted(drawn.columns, start))) for (name, _), start in zip(blocks, starts, strict=True)]
        if blocks and len(blocks) <= limit
        else [],
        separate=drawn.cells.size <= separate,
        side=side,
        anchors=anchors,
        tips=tips,
    )


def number(value: float, sign: bool = False, digits: int = 3) -> str:
    """A number of three significant digits, or more, with a real minus: "−0.0131"."""
    return format(value + 0.0, f"{'+' if sign and value else ''}.{digits}g").replace("-", "−")


def brief(value: float) -> str:
    """A finite number for a cell: as many of three significant digits as six characters hold, "−0.017", "1.23e5", "12345".

    Halves are rounded away from zero, so that the live view, which writes such numbers too, shows the same digits.
    """
    size, room = abs(value), 6 - (value < 0)
    if 999.5 <= size < 99_999.5:
        text = str(Decimal(size).quantize(Decimal(1), ROUND_HALF_UP))
    else:
        texts = [_significant(size, digits) for digits in (3, 2, 1)]
        text = next((one for one in texts if len(one) <= room), texts[-1])
    return f"−{text}" if value < 0 else text


def _significant(size: float, digits: int) -> str:
    """So many digits of a number that is not negative, without zeros at the end: "0.5", "1.2e−5"."""
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(size)).normalize()
    power = rounded.adjusted()
    if -3 <= power < digits or not rounded:
        return format(rounded, "f")
    return f"{rounded.scaleb(-power):f}e{power}".replace("-", "−")


def note(title: str, text: str) -> Drawing:
    """A picture of a sentence, where there is nothing to draw."""
    lines = _wrap(text, 80)
    body = _text(1.5, 14, title, 13, GRADIENT, weight=600) + "".join(
        _text(0, 34 + 17 * k, line, 12, DIM) for k, line in enumerate(lines)
    )
    width = max([text_width(title, 13) * BOLD, *(text_width(line, 12) for line in lines)])
    return Drawing(body, width + 4, 24 + 17 * len(lines), f"{title}\n{text}", f"{title}. {text}")


def plot(values: Any, ax: Any, *, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None) -> Any:
    """The same heat map on matplotlib axes, every cell, with a colour bar; returns the image. What is `PooledMatrix` stays so."""
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
        axis = _Axis(labels, first, size, [0])
        step = _round_up(max(1, size / 16))
        ticks = list(range(0, size, step))
        texts = [axis.label(i, 24) for i in ticks]
        upright = side is ax.xaxis and sum(map(len, texts)) > ROOM
        places = [axis.place(i) - (0 if axis.exact else 0.5) for i in ticks]
        side.set_ticks(places, [text.replace("$", r"\$") for text in texts], rotation=90 if upright else 0)
    ax.figure.colorbar(image, ax=ax)
    return image


class _Axis:
    """The cells along one side, and the elements that are labelled there: round ones, counted from where each block begins."""

    def __init__(self, labels: Sequence[str] | None, starts: np.ndarray, size: int, blocks: list[int]) -> None:
        self.labels, self.starts, self.size, self.blocks = labels, starts, size, blocks
        self.exact = len(starts) == size  # each cell is one element

    def label(self, element: int, length: int = 16) -> str:
        return _short(str(element) if self.labels is None else str(self.labels[element]), length)

    def place(self, element: int) -> float:
        """Where an element begins, in cells."""
        k = int(np.searchsorted(self.starts, element, side="right")) - 1
        end = self.size if k + 1 == len(self.starts) else int(self.starts[k + 1])
        return k + (element - int(self.starts[k])) / (end - int(self.starts[k]))

    def extent(self, k: int) -> str:
        """Which elements cell `k` is: "3", or "4 … 7"."""
        first, end = int(self.starts[k]), self.size if k + 1 == len(self.starts) else int(self.starts[k + 1])
        return self.label(first) + (f" … {self.label(end - 1)}" if end - first > 1 else "")

    def ticks(self, step: int) -> Iterator[int]:
        """Every `step`-th element of each block."""
        for start, stop in pairwise([*self.blocks, self.size]):
            yield from range(start, stop, step)

    def widest(self, step: int) -> float:
        """The widest label, of those at cells where there are many elements."""
        some = self.ticks(step) if self.size <= 1000 else (int(k) for k in self.starts)
        return max(text_width(self.label(k), LETTERS) for k in some)

    def step(self, need: float, pitch: float) -> int:
        """Label every 1st, 2nd, 5th, … element, so that labels of `need` px do not touch where cells are `pitch` px apart."""
        apart = pitch * len(self.starts) / self.size  # of elements, px
        return next((step for step in ROUND if step >= self.size or need <= step * apart), self.size)


def _range(drawn: PooledMatrix, sign: bool = False) -> list[str]:
    """The least and the greatest value in words, or that there is none; empty where nothing is known."""
    low, high, counts = drawn.truth
    known = drawn.shape[0] * drawn.shape[1] - drawn.empty
    if sum(counts.values()) >= known:
        return ["no finite value"] if known else []
    return [f"least {number(low, sign)}", f"greatest {number(high, sign)}"]


def _facts(drawn: PooledMatrix) -> list[str]:
    """What the picture cannot say by itself, one sentence a line."""
    (m, n), cells, counts, facts = drawn.shape, drawn.cells.shape, drawn.truth[2], []
    if counts:
        signs = {"NaN": "×", "+inf": "+", "−inf": "−"}
        facts.append(", ".join(f"{count} {kind} (marked {signs[kind]})" for kind, count in counts.items()))
    if cells != (m, n):
        facts.append(f"{m} × {n} pooled to {cells[0]} × {cells[1]} cells by largest |value|")
    if 0 < drawn.empty < m * n:
        facts.append(f"{drawn.empty} of {m * n} cells not computed yet (outlined)")
    return facts


def _draw(
    cells: np.ndarray,
    shown: np.ndarray,
    *,
    title: str,
    bound: float,
    range_: list[str],
    facts: list[str],
    remark: str,
    text: str,
    rows: _Axis,
    columns: _Axis,
    highlight: int | None,
    blocks: list[tuple[str, int]],
    separate: bool,
    side: float,
    anchors: Anchors,
    tips: bool,
) -> Drawing:
    m, n = cells.shape
    numbers = _numbers(cells, shown) if rows.exact and columns.exact and max(m, n) <= NUMBERED and separate else {}
    high, wide = (min(PITCH, max(side / many, side / 64)) for many in (m, n))
    high, wide = min(high, 3 * wide), min(wide, 3 * high)
    if numbers or max(m, n) <= NUMBERED:  # an empty one is as wide as it will be
        wide = max(wide, 10 + max([text_width("−0.123", DIGITS), *(text_width(one, DIGITS) for one in numbers.values())]))
    gap = (2.0 if min(high, wide) >= 12 else 1.0) if separate else 0.0
    space = 10.0 if blocks else 0.0
    longest = columns.widest(1)
    column_step = columns.step(longest + 6, wide)
    upright = columns.exact and column_step > 2 and wide >= LETTERS + 3  # turned rather than left out
    if upright:
        column_step = 1
    row_step = rows.step(LETTERS + 3, high)
    left = rows.widest(row_step) + 10
    top = (24.0 if title else 2.0) + (16.0 if blocks else 0.0) + (longest + 10 if upright else 18)
    starts = [column for _, column in blocks] or [0]
    over = top - (longest + 14 if upright else 22)
    before = np.searchsorted(starts, np.arange(n), side="right") - 1  # blocks to the left of each column
    x = left + np.arange(n) * wide + before * space
    y = top + np.arange(m) * high
    right, bottom = x[-1] + wide, y[-1] + high
    body = [_text(1.5, 14, title, 13, GRADIENT, weight=600)] if title else []
    for (name, column), stop in zip(blocks, [*starts[1:], n], strict=bool(blocks)):
        if stop > column:
            body.append(
                _text(
                    (x[column] + x[stop - 1] + wide - gap) / 2,
                    over,
                    _short(name),
                    11.5,
                    DIM,
                    anchor="middle",
                    weight=600,
                )
            )
    middles: list[tuple[float, str]] = []  # of the labels above the columns
    for element in columns.ticks(column_step):
        k, part = divmod(columns.place(element), 1)
        middle = x[int(k)] + ((wide - gap) / 2 if columns.exact else part * wide)
        name = columns.label(element)
        room = text_width(name, LETTERS)
        if upright:
            body.append(_text(middle + 2, top - 8, name, LETTERS, DIM, turn=-90))
        elif not middles or middle - room / 2 >= middles[-1][0] + text_width(middles[-1][1], LETTERS) / 2 + 4:
            body.append(_text(middle, top - 8, name, LETTERS, DIM, anchor="middle"))
            middles.append((middle, name))
    for element in rows.ticks(row_step):
        middle = top + rows.place(element) * high + ((high - gap) / 2 if rows.exact else 0)
        body.append(_text(left - 8, middle + 3.7, rows.label(element), LETTERS, DIM, anchor="end"))
    if separate:
        said = _tips(cells, rows, columns) if tips else None
        body.append(_separate_cells(cells, shown, numbers, x.tolist(), y.tolist(), wide - gap, high - gap, bound, anchors, said))
    else:
        for k, column in enumerate(starts):
            stop = [*starts[1:], n][k]
            if stop > column:
                body.append(
                    _bitmap(
                        cells[:, column:stop],
                        shown[:, column:stop],
                        x[column],
                        y[0],
                        (stop - column) * wide,
                        m * high,
                        bound,
                        anchors,
                    )
                )
    if highlight is not None:
        body.append(
            f'<rect x="{tidy(x[0] - 3)}" y="{tidy(y[highlight] - 3)}" width="{tidy(right - gap - x[0] + 6)}" '
            f'height="{tidy(high - gap + 6)}" rx="5" fill="none" stroke="{GRADIENT}" stroke-width="2.2"/>'
        )
    y0 = bottom + 12
    scale, scale_width, scale_height = _scale(left, y0, bound, range_, right - left, anchors)
    body.append(scale)
    y0 += scale_height - 30
    width = max(
        right,
        left + scale_width,
        text_width(title, 13) * BOLD,
        *(middle + text_width(name, LETTERS) / 2 for middle, name in middles[-1:]),
    )
    lines = [line for fact in [*facts, remark] if fact for line in _wrap(fact, max(56, int((width - left) / 6)))]
    body += [_text(left, y0 + 42 + 15 * k, line, 11, DIM) for k, line in enumerate(lines)]
    width = max([width, *(left + text_width(line, 11) for line in lines)])
    return Drawing("".join(body), width + 4, y0 + (30 + 15 * len(lines) + (4 if lines else 0)), text, text)


def _numbers(cells: np.ndarray, shown: np.ndarray) -> dict[tuple[int, ...], str]:
    """What is written into cells, by (row, column)."""
    return {(i, j): brief(float(cells[i, j])) for i, j in np.argwhere(shown & np.isfinite(cells)).tolist()}


def _tips(cells: np.ndarray, rows: _Axis, columns: _Axis) -> list[list[str]]:
    """The tooltip of each cell: where it is, and its number."""
    across = [columns.extent(k) for k in range(cells.shape[1])]
    return [
        [f"[{rows.extent(i)}, {place}] {number(value, digits=6)}" for place, value in zip(across, line, strict=True)]
        for i, line in enumerate(cells.tolist())
    ]


def _separate_cells(
    cells: np.ndarray,
    shown: np.ndarray,
    numbers: dict[tuple[int, ...], str],
    x: list[float],
    y: list[float],
    wide: float,
    high: float,
    bound: float,
    anchors: Anchors,
    tips: list[list[str]] | None,
) -> str:
    radius = ' rx="3"' if min(wide, high) >= 12 else ""
    colours = fills(cells, bound, anchors)
    solid, empty, signs, written = [], [], [], []
    for i, j in np.ndindex(cells.shape):
        box = f'x="{tidy(x[j])}" y="{tidy(y[i])}" width="{tidy(wide)}" height="{tidy(high)}"{radius}'
        if not shown[i, j]:
            empty.append(f"<rect {box}/>")
            continue
        tip = f"><title>{escape(tips[i][j])}</title></rect>" if tips else "/>"
        solid.append(f'<rect {box} fill="#{bytes(colours[i, j]).hex()}"{tip}')
        if not np.isfinite(cells[i, j]):
            middle = x[j] + wide / 2, y[i] + high / 2
            signs.append(_sign_of_nonfinite(float(cells[i, j]), *middle, min(wide, high) * 0.26))
        elif numbers:
            ink = "#" + bytes(ink_on(tuple(colours[i, j].tolist()))).hex()
            written.append(_text(x[j] + wide / 2, y[i] + high / 2 + 3.6, numbers[i, j], DIGITS, ink, anchor="middle"))
    return (
        f'<g stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6">{"".join(solid)}</g>'
        f'<g fill="none" stroke="{EDGE}" stroke-dasharray="2 2" stroke-width=".8">{"".join(empty)}</g>{"".join(signs + written)}'
    )


def _sign_of_nonfinite(value: float, x: float, y: float, r: float) -> str:
    middle, left, right, up, down = tidy(x), tidy(x - r), tidy(x + r), tidy(y - r), tidy(y + r)
    path = (
        f"M{left} {up}L{right} {down}M{left} {down}L{right} {up}"
        if np.isnan(value)
        else f"M{left} {tidy(y)}H{right}" + (f"M{middle} {up}V{down}" if value > 0 else "")
    )
    ink = "#ffffff" if np.isneginf(value) else "#" + bytes(MARK).hex()
    return f'<path d="{path}" stroke="{ink}" stroke-width="2" fill="none"/>'


def _bitmap(
    cells: np.ndarray, shown: np.ndarray, x: float, y: float, width: float, height: float, bound: float, anchors: Anchors
) -> str:
    """The cells as an embedded palette PNG, `PIXELS` pixels a cell."""
    index = np.where(
        np.isfinite(cells),
        np.rint(np.clip(np.nan_to_num(cells, nan=0, posinf=0, neginf=0) / (bound or 1.0), -1, 1) * 120) + 120,
        0,
    ).astype(np.uint8)
    nan, mark, white, edge, clear = range(241, 246)
    index[np.isnan(cells)], index[np.isposinf(cells)], index[np.isneginf(cells)] = nan, 240, 0
    index[~shown] = clear
    pixels = index.repeat(PIXELS, 0).repeat(PIXELS, 1)
    tile = (cells.shape[0], cells.shape[1])
    for where, form, ink in (
        (np.isnan(cells), CROSS, mark),
        (np.isposinf(cells), MINUS | MINUS.T, mark),
        (np.isneginf(cells), MINUS, white),
        (~shown, _border(), edge),
    ):
        where = where & (shown if ink != edge else True)
        if where.any():
            pixels[np.kron(where, np.ones((PIXELS, PIXELS), bool)) & np.tile(form, tile)] = ink
    box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(width)}" height="{tidy(height)}"'
    return (
        f'<image {box} preserveAspectRatio="none" href="{png_uri(pixels, *_palette(anchors))}"/>'
        f'<rect {box} fill="none" stroke="{EDGE}" stroke-width=".8"/>'
    )


def _border() -> np.ndarray:
    form = np.zeros((PIXELS, PIXELS), bool)
    form[0, ::2] = form[::2, 0] = True
    return form


@cache
def _palette(anchors: Anchors) -> tuple[bytes, bytes]:
    """The colours of a map's bitmap (red, green and blue of each), and how opaque they are: the last is not there."""
    marks = [NAN, MARK, (255, 255, 255), _rgb(hex_of(EDGE)), (0, 0, 0)]
    colours = ramp(np.linspace(-1, 1, 241), anchors).tobytes() + bytes(chain.from_iterable(marks))
    return colours, bytes([255] * (241 + len(marks) - 1) + [0])


def _scale(x: float, y: float, bound: float, range_: list[str], room: float, anchors: Anchors) -> tuple[str, float, float]:
    """The colour bar with its ends, and the true extremes beside it, or below it where there is no room; its width and height."""
    said = "".join(range_)
    if bound == 0:
        said = "all 0" if len(range_) == 2 else said
        return _text(x, y + 9, said, LETTERS, DIM), text_width(said, LETTERS), 30 if said else 0
    (_, _, low), (_, _, high) = (one.partition(" ") for one in range_)
    said = f"all {high}" if low == high else " · ".join(range_)
    long = text_width(said, LETTERS)
    length = max(132.0, 2 * (text_width(number(bound, sign=True), LETTERS) + 10))
    box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(length)}" height="9"'
    drawn = (
        f'<image {box} preserveAspectRatio="none" href="{bar(anchors)}"/>'
        f'<rect {box} fill="none" stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6"/>'
        + _text(x, y + 21, number(-bound), LETTERS, DIM)
        + _text(x + length / 2, y + 21, "0", LETTERS, DIM, anchor="middle")
        + _text(x + length, y + 21, number(bound, sign=True), LETTERS, DIM, anchor="end")
    )
    if length + 16 + long <= room:
        return drawn + _text(x + length + 16, y + 9, said, LETTERS, DIM), length + 16 + long, 30
    return drawn + _text(x, y + 38, said, LETTERS, DIM), max(length, long), 47


def _text(x: float, y: float, text: str, size: float, fill: str, anchor: str = "start", weight: int = 400, turn: int = 0) -> str:
    if not text:
        return ""
    extra = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (f' font-weight="{weight}"' if weight != 400 else "")
    if turn:
        extra += f' transform="rotate({turn} {tidy(x)} {tidy(y)})"'
    return f'<text x="{tidy(x)}" y="{tidy(y)}" font-size="{size}" fill="{fill}"{extra}>{escape(text)}</text>'


def _table(sample: Sample, rows: Sequence[str] | None, columns: Sequence[str] | None) -> str:
    """The numbers in columns, the middle of a large matrix left out."""
    tall, broad = sample.rows, sample.columns
    head = ["", *("…" if j is None else _short(columns[j] if columns is not None else str(j)) for j in broad)]
    lines = [head]
    for i in tall:
        cells = ["…" if i is None or j is None else "·" if (value := sample.at(i, j)) is None else number(value) for j in broad]
        lines.append(["…" if i is None else _short(rows[i] if rows is not None else str(i)), *cells])
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    padded = [[entry.rjust(width) for entry, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join("  ".join(line).rstrip() for line in padded)


def _round_up(value: float) -> int:
    return next(step for step in ROUND if step >= value)


def _short(label: str, length: int = 16) -> str:
    label = "".join(c if c.isprintable() else "�" for c in label)
    return label if len(label) <= length else f"{label[: length - 7]}…{label[-6:]}"


def _wrap(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, width) or [""]


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))

"""A matrix of signed numbers as a heat map: purple below zero, white at zero, orange above.

The scale is linear and symmetric about zero, so that a colour's side is its sign and its strength its size, and the
true extremes stand beside it. What is not a number to compare is told by form and not by colour alone: NaN has a cross,
an infinity a plus or a minus, a cell without a value (`filled`) is an empty outline.

Few cells are drawn one by one. Many become one small embedded bitmap with a few pixels a cell: a tenth of the bytes,
and no seams between cells. More than `limit` cells a side are pooled first: a block shows its largest |value| with its
sign, NaN if it has one, so nothing that matters can vanish by averaging; the caption says so.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.explore.drawing import DIM, EDGE, GRADIENT, Drawing, escape, text_width, tidy
from gradlab.explore.reduced import Reduced, Sample, extremes, matrix_of, reduced

NEGATIVE, ZERO, POSITIVE = (94, 60, 153), (246, 244, 243), (213, 94, 0)
NAN = (150, 156, 164)
MARK = (40, 44, 52)
SEPARATE = 400  # up to this many cells are drawn one by one
SIDE = 400  # a large map's longer side, px
PITCH = 30  # a cell and its gap at most, px
PIXELS = 8  # bitmap pixels a cell
LETTERS = 10.5  # size of the labels, px
BOLD = 1.15  # how much wider a bold text is
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
    truth: tuple[float, float, dict[str, int]] | None = None,
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
    truth : tuple, optional
        What `extremes` says of the matrix that `values` are the pooled cells of. Default: of `values`.

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
    drawn = values if isinstance(values, Reduced) else reduced(values, limit, filled=filled, blocks=blocks)
    m, n = drawn.shape
    for what, labels, size in (("rows", rows, m), ("columns", columns, n)):
        if labels is not None and len(labels) != size:
            raise ValueError(f"heatmap got {len(labels)} labels for {size} {what}")
    if not m * n:
        return note(title or "An empty matrix", f"shape {m} × {n}: there is nothing to show. {remark}".rstrip())
    low, high, counts = drawn.truth if truth is None else truth
    facts = _facts(drawn.shape, drawn.cells.shape, low, high, counts, drawn.empty)
    text = "\n".join(filter(None, [title, _table(drawn.sample, rows, columns), *facts, remark]))
    return _draw(
        drawn.cells,
        drawn.shown,
        title=title,
        bound=max(-low, high),
        facts=facts[1:],
        remark=remark,
        text=text,
        row_names=_Names(rows, drawn.rows, m),
        column_names=_Names(columns, drawn.columns, n),
        highlight=None if highlight is None else int(np.searchsorted(drawn.rows, highlight, side="right")) - 1,
        blocks=[
            (name, int(np.searchsorted(drawn.columns, start)))
            for (name, _), start in zip(blocks, np.cumsum([0, *[size for _, size in blocks[:-1]]]), strict=True)
        ]
        if blocks and len(blocks) <= limit
        else [],
        extent=(low, high),
        separate=drawn.cells.size <= separate,
    )


def colour(value: float, bound: float) -> str:
    """The fill of a finite value on the scale −bound ... bound: "#rrggbb"."""
    return "#" + bytes(_ramp(np.array([value / bound if bound else 0.0]))[0]).hex()


def number(value: float, sign: bool = False) -> str:
    """Three significant digits with a real minus: "−0.0131"."""
    return format(value + 0.0, "+.3g" if sign and value else ".3g").replace("-", "−")


def note(title: str, text: str) -> Drawing:
    """A picture of a sentence, where there is nothing to draw."""
    lines = _wrap(text, 80)
    body = _text(0, 14, title, 13, GRADIENT, weight=600) + "".join(
        _text(0, 34 + 17 * k, line, 12, DIM) for k, line in enumerate(lines)
    )
    width = max([text_width(title, 13) * BOLD, *(text_width(line, 12) for line in lines)])
    return Drawing(body, width + 4, 24 + 17 * len(lines), f"{title}\n{text}", f"{title}. {text}")


def plot(values: Any, ax: Any, *, rows: Sequence[str] | None = None, columns: Sequence[str] | None = None) -> Any:
    """The same heat map on matplotlib axes, every cell, with a colour bar; returns the image."""
    from matplotlib.colors import LinearSegmentedColormap

    numbers = matrix_of(values)
    low, high, _ = extremes(numbers)
    bound = max(-low, high) or 1.0
    anchors = ["#" + bytes(anchor).hex() for anchor in (NEGATIVE, ZERO, POSITIVE)]
    scale = LinearSegmentedColormap.from_list("purple_white_orange", anchors).with_extremes(bad="#" + bytes(NAN).hex())
    image = ax.imshow(numbers, cmap=scale, vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
    for axis, labels, size in ((ax.yaxis, rows, numbers.shape[0]), (ax.xaxis, columns, numbers.shape[1])):
        step = _round_up(max(1, size / 16))
        ticks = list(range(0, size, step))
        texts = [_short(labels[i] if labels is not None else str(i), 24) for i in ticks]
        upright = axis is ax.xaxis and sum(map(len, texts)) > ROOM
        axis.set_ticks(ticks, [text.replace("$", r"\$") for text in texts], rotation=90 if upright else 0)
    ax.figure.colorbar(image, ax=ax)
    return image


class _Names:
    """The labels of pooled cells."""

    def __init__(self, labels: Sequence[str] | None, starts: np.ndarray, size: int) -> None:
        self.labels, self.starts, self.size = labels, starts, size

    def __getitem__(self, k: int) -> str:
        first = int(self.starts[k])
        return _short(str(first) if self.labels is None else str(self.labels[first]))

    def widest(self, step: int) -> float:
        return max(text_width(self[k], LETTERS) for k in range(0, len(self.starts), step))


def _facts(
    shape: tuple[int, int],
    drawn: tuple[int, int],
    low: float,
    high: float,
    counts: dict[str, int],
    empty: int,
) -> list[str]:
    """What the picture cannot say by itself, one sentence a line; the first is about the extremes."""
    facts = [f"least {number(low)}, greatest {number(high)}"]
    if counts:
        signs = {"NaN": "×", "+inf": "+", "−inf": "−"}
        facts.append(", ".join(f"{count} {kind} (marked {signs[kind]})" for kind, count in counts.items()))
    if drawn != shape:
        facts.append(f"{shape[0]} × {shape[1]} pooled to {drawn[0]} × {drawn[1]} cells by largest |value|")
    if empty:
        facts.append(f"{empty} of {shape[0] * shape[1]} cells not computed yet (outlined)")
    return facts


def _draw(
    cells: np.ndarray,
    shown: np.ndarray,
    *,
    title: str,
    bound: float,
    facts: list[str],
    remark: str,
    text: str,
    row_names: _Names,
    column_names: _Names,
    highlight: int | None,
    blocks: list[tuple[str, int]],
    extent: tuple[float, float],
    separate: bool,
) -> Drawing:
    m, n = cells.shape
    high, wide = min(PITCH, max(SIDE / m, 6.25)), min(PITCH, max(SIDE / n, 6.25))
    high, wide = min(high, 3 * wide), min(wide, 3 * high)
    gap = (2.0 if min(high, wide) >= 12 else 1.0) if separate else 0.0
    space = 10.0 if blocks else 0.0
    column_step = _step(lambda k: column_names.widest(k) + 6, wide, n)
    upright = column_step > 2 and wide >= LETTERS + 3  # long labels of wide columns are turned rather than left out
    if upright:
        column_step = 1
    row_step = _step(lambda k: LETTERS + 3, high, m)
    left = row_names.widest(row_step) + 10
    top = (24.0 if title else 2.0) + (16.0 if blocks else 0.0) + (column_names.widest(1) + 10 if upright else 18)
    starts = [column for _, column in blocks] or [0]
    over = top - (column_names.widest(1) + 14 if upright else 22)
    before = np.searchsorted(starts, np.arange(n), side="right") - 1  # blocks to the left of each column
    x = left + np.arange(n) * wide + before * space
    y = top + np.arange(m) * high
    right, bottom = x[-1] + wide, y[-1] + high
    body = [_text(0, 14, title, 13, GRADIENT, weight=600)] if title else []
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
    body += [
        _text(x[k] + wide / 2 + 2, top - 8, column_names[k], LETTERS, DIM, turn=-90)
        if upright
        else _text(x[k] + (wide - gap) / 2, top - 8, column_names[k], LETTERS, DIM, anchor="middle")
        for k in range(0, n, column_step)
    ]
    body += [
        _text(left - 8, y[k] + (high - gap) / 2 + 3.7, row_names[k], LETTERS, DIM, anchor="end") for k in range(0, m, row_step)
    ]
    if separate:
        body.append(_separate_cells(cells, shown, x.tolist(), y.tolist(), wide - gap, high - gap, bound))
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
                    )
                )
    if highlight is not None:
        body.append(
            f'<rect x="{tidy(x[0] - 3)}" y="{tidy(y[highlight] - 3)}" width="{tidy(right - gap - x[0] + 6)}" '
            f'height="{tidy(high - gap + 6)}" rx="5" fill="none" stroke="{GRADIENT}" stroke-width="2.2"/>'
        )
    y0 = bottom + 12
    scale, scale_width = _scale(left, y0, bound, extent)
    body.append(scale)
    last = (n - 1) // column_step * column_step
    width = max(
        right,
        left + scale_width,
        text_width(title, 13) * BOLD,
        0 if upright else x[last] + (wide - gap + text_width(column_names[last], LETTERS)) / 2,
    )
    lines = [line for fact in [*facts, remark] if fact for line in _wrap(fact, max(56, int((width - left) / 6)))]
    body += [_text(left, y0 + 42 + 15 * k, line, 11, DIM) for k, line in enumerate(lines)]
    width = max([width, *(left + text_width(line, 11) for line in lines)])
    return Drawing("".join(body), width + 4, y0 + (30 + 15 * len(lines) + (4 if lines else 0)), text, text)


def _separate_cells(
    cells: np.ndarray, shown: np.ndarray, x: list[float], y: list[float], wide: float, high: float, bound: float
) -> str:
    radius = ' rx="3"' if min(wide, high) >= 12 else ""
    fills = _fills(cells, bound)
    solid, empty, signs = [], [], []
    for i, j in np.ndindex(cells.shape):
        box = f'x="{tidy(x[j])}" y="{tidy(y[i])}" width="{tidy(wide)}" height="{tidy(high)}"{radius}'
        if not shown[i, j]:
            empty.append(f"<rect {box}/>")
            continue
        solid.append(f'<rect {box} fill="#{bytes(fills[i, j]).hex()}"/>')
        if not np.isfinite(cells[i, j]):
            middle = x[j] + wide / 2, y[i] + high / 2
            signs.append(_sign_of_nonfinite(float(cells[i, j]), *middle, min(wide, high) * 0.26))
    return (
        f'<g stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6">{"".join(solid)}</g>'
        f'<g fill="none" stroke="{EDGE}" stroke-dasharray="2 2" stroke-width=".8">{"".join(empty)}</g>{"".join(signs)}'
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


def _bitmap(cells: np.ndarray, shown: np.ndarray, x: float, y: float, width: float, height: float, bound: float) -> str:
    """The cells as an embedded palette PNG, `PIXELS` pixels a cell."""
    index = np.where(
        np.isfinite(cells),
        np.rint(np.clip(np.nan_to_num(cells, nan=0, posinf=0, neginf=0) / (bound or 1.0), -1, 1) * 120) + 120,
        0,
    ).astype(np.uint8)
    palette = [tuple(c) for c in _ramp(np.linspace(-1, 1, 241))] + [NAN, MARK, (255, 255, 255), _rgb(EDGE), (0, 0, 0)]
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
    data = base64.b64encode(_png(pixels, palette, clear=clear)).decode()
    box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(width)}" height="{tidy(height)}"'
    return (
        f'<image {box} preserveAspectRatio="none" href="data:image/png;base64,{data}"/>'
        f'<rect {box} fill="none" stroke="{EDGE}" stroke-width=".8"/>'
    )


def _border() -> np.ndarray:
    form = np.zeros((PIXELS, PIXELS), bool)
    form[0, ::2] = form[::2, 0] = True
    return form


def _png(pixels: np.ndarray, palette: list[tuple[int, ...]], clear: int) -> bytes:
    """An 8-bit palette PNG (ISO/IEC 15948) of `pixels`, whose colour number `clear` is transparent."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    lines = np.zeros((height, width + 1), np.uint8)  # each line begins with filter type 0
    lines[:, 1:] = pixels
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + chunk(b"PLTE", bytes(int(c) for rgb in palette for c in rgb))
        + chunk(b"tRNS", bytes(0 if k == clear else 255 for k in range(len(palette))))
        + chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + chunk(b"IEND", b"")
    )


def _ramp(t: np.ndarray) -> np.ndarray:
    """The colours at −1 <= t <= 1 as uint8, shape t.shape + (3,)."""
    t = t[..., None]
    end = np.where(t < 0, NEGATIVE, POSITIVE)
    return np.asarray(np.rint(np.asarray(ZERO) + np.abs(t) * (end - np.asarray(ZERO))), np.uint8)


def _fills(cells: np.ndarray, bound: float) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        t = np.clip(cells / (bound or 1.0), -1, 1)
    if bound == 0:
        t = np.sign(cells)  # zeros, infinities and NaN
    fills = _ramp(np.nan_to_num(t, nan=0))
    fills[np.isnan(cells)] = NAN
    return fills


def _scale(x: float, y: float, bound: float, extent: tuple[float, float]) -> tuple[str, float]:
    """The colour bar with its ends, and the true extremes beside it; and its width."""
    low, high = extent
    beside = f"least {number(low, sign=True)} · greatest {number(high, sign=True)}" if low != high else f"all {number(low)}"
    if bound == 0:
        return _text(x, y + 9, "all 0", LETTERS, DIM), 40
    steps, length = 33, max(132.0, 2 * (text_width(number(bound, sign=True), LETTERS) + 10))
    bar = "".join(  # each over the edge of the next, so that no seam shows
        f'<rect x="{tidy(x + k * length / steps)}" y="{tidy(y)}" width="{tidy(length - k * length / steps)}" height="9" '
        f'fill="{colour(-1 + 2 * k / (steps - 1), 1)}"/>'
        for k in range(steps)
    )
    bar += (
        f'<rect x="{tidy(x)}" y="{tidy(y)}" width="{tidy(length)}" height="9" '
        f'fill="none" stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6"/>'
    )
    ticks = (
        _text(x, y + 21, number(-bound), LETTERS, DIM)
        + _text(x + length / 2, y + 21, "0", LETTERS, DIM, anchor="middle")
        + _text(x + length, y + 21, number(bound, sign=True), LETTERS, DIM, anchor="end")
    )
    return bar + ticks + _text(x + length + 16, y + 9, beside, LETTERS, DIM), length + 16 + text_width(beside, LETTERS)


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


def _step(need: Any, pitch: float, size: int) -> int:
    """Label every 1st, 2nd, 5th ... of `size` cells, `pitch` apart, so that labels `need(step)` long do not touch."""
    for step in ROUND:
        if step >= size or need(step) <= step * pitch:
            return step
    return size


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

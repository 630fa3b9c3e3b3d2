"""Parts of a heat map as SVG: cells, labels, the scale, outlines.

A small number of cells are drawn separately. Many cells become one small embedded bitmap: a tenth of the bytes, and no seams.
Values that are not finite numbers are shown by form rather than colour alone: NaN has a cross, an infinity a plus or a minus, and
a cell without a value is an empty outline. Negative cells are hatched by horizontal lines, unless they contain their number.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache
from itertools import chain, pairwise

import numpy as np

from gradlab.explore.drawing import DIM, EDGE, GRADIENT, escape, text_width, tidy
from gradlab.explore.heat_colours import MARK, NAN, SIGNED, ZERO, Anchors, bar, fills, ink_on, png_uri, ramp
from gradlab.explore.heat_layout import LETTERS, Layout, shorten_label
from gradlab.explore.theme import hex_of

SEPARATE = 400  # maximum number of cells that are drawn separately
NUMBERED = 8  # maximum number of cells per side with numbers
DIGITS = 10  # font size of these numbers, px
WITH_NUMBER = "−0.123"  # as wide as most numbers
MARKED = 64 * 64  # maximum number of cells of a bitmap with large marks
FRAMED = 7  # minimum size in px of an empty cell with a frame
CROSS = np.pad(np.eye(6, dtype=bool) | np.eye(6, dtype=bool)[::-1], 1)  # pixels of a bitmap's cell
MINUS = np.zeros((8, 8), bool)
MINUS[3:5, 1:7] = True
SMALL = np.ix_([1, 3, 6], [1, 3, 6])  # the same with three pixels per side
LEVELS = 120  # colours of a bitmap on either side of zero
FAINT = 2  # up to this level, a negative colour looks like zero or a positive one, and is not hatched
STRONG = 42  # from this level on, hatching has the colour of zero, and below it the strongest colour
LIGHT, DARK = 0.5, 0.3  # opacity of these lines
PERIOD = 5.0  # px between them
SHARP = ' style="image-rendering:pixelated"'


def number(value: float, sign: bool = False, digits: int = 3) -> str:
    """Return a number with three (or `digits`) significant digits and a true minus sign: "−0.0131"."""
    return format(value + 0.0, f"{'+' if sign and value else ''}.{digits}g").replace("-", "−")


def brief(value: float) -> str:
    """Return a finite number for a cell: up to three significant digits in six characters, "−0.017", "1.23e5", "12345".

    Ties round away from zero.
    """
    size, room = abs(value), 6 - (value < 0)
    if 999.5 <= size < 99_999.5:
        text = str(Decimal(size).quantize(Decimal(1), ROUND_HALF_UP))
    else:
        texts = [_significant(size, digits) for digits in (3, 2, 1)]
        text = next((one for one in texts if len(one) <= room), texts[-1])
    return f"−{text}" if value < 0 else text


def _significant(size: float, digits: int) -> str:
    """Return a non-negative number with this many digits and no trailing zeros: "0.5", "1.2e−5"."""
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(size)).normalize()
    power = rounded.adjusted()
    if -3 <= power < digits or not rounded:
        return format(rounded, "f")
    return f"{rounded.scaleb(-power):f}e{power}".replace("-", "−")


def draw_cells(
    cells: np.ndarray,
    shown: np.ndarray,
    place: tuple[np.ndarray, np.ndarray, float, float, float],
    bound: float,
    *,
    separate: bool = True,
    numbered: bool = False,
    anchors: Anchors = SIGNED,
    tips: list[list[str]] | None = None,
) -> str:
    """Draw numbers as coloured cells.

    Parameters
    ----------
    cells : ndarray
    shown : ndarray of bool
        Mask of the cells with a value.
    place : tuple
        Starts of the columns and the rows, px; width and height of a cell including the gap after it; the gap.
    bound : float
        The colour scale is −bound ... bound.
    separate : bool
        Whether cells are drawn separately.
    numbered : bool
        Whether cells contain their numbers, if they fit.
    anchors : tuple of three colours
    tips : list of list of str, optional
        A tooltip for each cell.
    """
    x, y, wide, high, gap = place
    if not separate:
        starts = [0, *(np.flatnonzero(np.diff(x) > wide + 0.5) + 1).tolist(), len(x)]
        return "".join(
            _bitmap(cells[:, a:b], shown[:, a:b], x[a], y[0], (b - a) * wide, len(y) * high, bound, anchors)
            for a, b in pairwise(starts)
        )
    wide, high = wide - gap, high - gap
    radius = ' rx="3"' if min(wide, high) >= 12 else ""
    colours, levels = fills(cells, bound, anchors), _levels(cells, bound)
    size = f'width="{tidy(wide)}" height="{tidy(high)}"{radius}'
    lefts, middles = ([tidy(float(at) + aside) for at in x] for aside in (0.0, wide / 2))
    tops, baselines = ([tidy(float(at) + down) for at in y] for down in (0.0, high / 2 + 3.6))
    solid, empty, signs, written = [], [], [], []
    weak: list[str] = []
    strong: list[str] = []
    for i, j in np.ndindex(cells.shape):
        box = f'x="{lefts[j]}" y="{tops[i]}" {size}'
        if not shown[i, j]:
            empty.append(f"<rect {box}/>")
            continue
        tip = f"><title>{escape(tips[i][j])}</title></rect>" if tips else "/>"
        solid.append(f'<rect {box} fill="#{bytes(colours[i, j]).hex()}"{tip}')
        value = float(cells[i, j])
        if not np.isfinite(value):
            signs.append(_sign_of_nonfinite(value, float(x[j]) + wide / 2, float(y[i]) + high / 2, min(wide, high) * 0.26))
        elif numbered and text_width(digits_ := brief(value), DIGITS) <= wide:
            ink = "#" + bytes(ink_on(tuple(colours[i, j].tolist()))).hex()
            written.append(f'<text x="{middles[j]}" y="{baselines[i]}" fill="{ink}">{digits_}</text>')
        elif levels[i, j] < -FAINT:
            (strong if levels[i, j] <= -STRONG else weak).append(f"M{middles[j]} {tops[i]}v{tidy(high)}")
    hatch = _lines("".join(weak), wide, anchors[0], DARK) + _lines("".join(strong), wide, ZERO, LIGHT)
    digits = f'<g class="gl-digits" font-size="{DIGITS}" text-anchor="middle">{"".join(written)}</g>' if written else ""
    return (
        f'<g stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6">{"".join(solid)}</g>{hatch}'
        f'<g fill="none" stroke="{EDGE}" stroke-dasharray="2 2" stroke-width=".8">{"".join(empty)}</g>{"".join(signs)}{digits}'
    )


def draw_labels(layout: Layout) -> str:
    """Draw the names of the blocks, and the labels of rows and columns."""
    names = [
        text(x, y, shorten_label(name, min(16, max(3, int(room / 6)))), 11.5, DIM, anchor="middle", weight=600)
        for x, y, room, name in layout.names
    ]
    if layout.upright:
        above = [text(x + 2, y, name, LETTERS, DIM, turn=-90) for x, y, name in layout.columns]
    else:
        above = [text(x, y, name, LETTERS, DIM, anchor="middle") for x, y, name in layout.columns]
    return "".join([*names, *above, *(text(x, y, name, LETTERS, DIM, anchor="end") for x, y, name in layout.rows)])


def outline(layout: Layout, k: int, across: bool = False) -> str:
    """Draw the outline of a row of cells, or of a column."""
    x, y, right, bottom = layout.left, float(layout.y[0]), layout.right - layout.gap, layout.bottom - layout.gap
    if across:
        x = float(layout.x[k])
        right = x + max(3.0, layout.wide) - layout.gap
    else:
        y = float(layout.y[k])
        bottom = y + max(3.0, layout.high) - layout.gap
    return (
        f'<rect class="gl-now" x="{tidy(x - 3)}" y="{tidy(y - 3)}" width="{tidy(right - x + 6)}" height="{tidy(bottom - y + 6)}" '
        f'rx="{5 if layout.gap == 2 else 2}" fill="none" stroke="{GRADIENT}" stroke-width="2.2"/>'
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
    """Draw the cells as an embedded palette PNG, with one pixel per cell, or as many as marks need."""
    levels = _levels(cells, bound)
    index = levels + LEVELS
    nan, mark, white, edge, clear = range(2 * LEVELS + 1, 2 * LEVELS + 6)
    index[np.isnan(cells)], index[np.isposinf(cells)], index[np.isneginf(cells)] = nan, 2 * LEVELS, 0
    index[~shown] = clear
    framed = ~shown if height / len(cells) >= FRAMED <= width / cells.shape[1] else np.zeros(shown.shape, bool)
    small = cells.size > MARKED
    across, level = (CROSS[SMALL], MINUS[SMALL]) if small else (CROSS, MINUS)
    marks = (
        (np.isnan(cells) & shown, across, mark),
        (np.isposinf(cells) & shown, level | level.T, mark),
        (np.isneginf(cells) & shown, level, white),
        (framed, _border(len(level)), edge),
    )
    pixels = index.astype(np.uint8)
    marked = any(where.any() for where, _, _ in marks)
    if marked:
        side = len(level)
        pixels = pixels.repeat(side, 0).repeat(side, 1)
        for where, form, ink in marks:
            if where.any():
                pixels[np.kron(where, np.ones((side, side), bool)) & np.tile(form, cells.shape)] = ink
    box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(width)}" height="{tidy(height)}"'
    sharp = "" if marked else SHARP
    drawn = f'<image {box} preserveAspectRatio="none"{sharp} href="{png_uri(pixels, *_palette(anchors))}"/>'
    lines = (levels < -FAINT).astype(np.uint8) + (levels <= -STRONG)
    lines *= shown
    if lines.any():
        drawn += f'<image {box} preserveAspectRatio="none"{SHARP} href="{_hatch(lines, height / len(cells), anchors)}"/>'
    return drawn + f'<rect {box} fill="none" stroke="{EDGE}" stroke-width=".8"/>'


def _levels(cells: np.ndarray, bound: float) -> np.ndarray:
    """Return the colour levels of finite numbers, from −LEVELS to LEVELS; 0 for others."""
    scaled = np.where(np.isfinite(cells), cells, 0) / (bound / LEVELS or 1.0)
    return np.rint(scaled, out=scaled).clip(-LEVELS, LEVELS).astype(np.int16)


def _hatch(lines: np.ndarray, high: float, anchors: Anchors) -> str:
    """Return the lines in the negative cells of a bitmap as an image URI: 1 for weak lines, 2 for strong ones, 0 for none."""
    count = max(1, round(high / PERIOD))
    period = max(2, int(high / count))
    pixels = np.zeros((len(lines), count, period, lines.shape[1]), np.uint8)
    pixels[:, :, period // 2] = lines[:, None]
    palette = bytes([0, 0, 0, *anchors[0], *ZERO])
    return png_uri(pixels.reshape(-1, lines.shape[1]), palette, bytes([0, round(255 * DARK), round(255 * LIGHT)]))


def _lines(path: str, wide: float, ink: tuple[int, ...], opacity: float, period: float = PERIOD) -> str:
    """Draw horizontal lines across cells, as dashes of vertical lines through their middles."""
    if not path:
        return ""
    dashes = f'stroke-dasharray="0 {period / 2:g} 1 {period / 2 - 1:g}"'
    look = f'stroke="#{bytes(ink).hex()}" stroke-opacity="{opacity:g}" stroke-width="{tidy(wide)}" {dashes}'
    return f'<path d="{path}" {look} pointer-events="none"/>'


def _border(side: int) -> np.ndarray:
    form = np.zeros((side, side), bool)
    form[0, ::2] = form[::2, 0] = True
    return form


@cache
def _palette(anchors: Anchors) -> tuple[bytes, bytes]:
    """Return the colours of a map's bitmap (red, green and blue of each), and their opacities; the last one is transparent."""
    marks = [NAN, MARK, (255, 255, 255), _rgb(hex_of(EDGE)), (0, 0, 0)]
    colours = ramp(np.linspace(-1, 1, 2 * LEVELS + 1), anchors).tobytes() + bytes(chain.from_iterable(marks))
    return colours, bytes([255] * (2 * LEVELS + len(marks)) + [0])


def draw_scale(
    x: float, y: float, bound: float, range_: list[str], room: float, anchors: Anchors = SIGNED, what: str = ""
) -> tuple[str, float, float]:
    """Draw the colour bar with its ends, hatched like the cells, and the exact extremes beside it or, if `room` is too narrow,
    below it. The ends are also labelled "negative" and "positive" if there is room. `what`: what the numbers are.

    Returns
    -------
    drawn : str
    width, height : float
    """
    said = "".join(range_)
    if bound == 0:
        said = "all 0" if len(range_) == 2 else said
        return text(x, y + 9, said, LETTERS, DIM), text_width(said, LETTERS), 30 if said else 0
    ends = {one.partition(" ")[2] for one in range_}
    said = f"all {ends.pop()}" if len(ends) == 1 else " · ".join(range_)
    said = f"{what}: {said}" if what else said
    long = text_width(said, LETTERS)
    left, right = f"{number(-bound)} negative", f"positive {number(bound, sign=True)}"
    length = 2 * (text_width(left, LETTERS) + 10)
    if length > room:
        left, right = number(-bound), number(bound, sign=True)
        length = max(132.0, 2 * (text_width(right, LETTERS) + 10))
    box = f'x="{tidy(x)}" y="{tidy(y)}" width="{tidy(length)}" height="9"'
    drawn = (
        f'<image {box} preserveAspectRatio="none" href="{bar(anchors)}"/>'
        + _lines(f"M{tidy(x + length / 4)} {tidy(y)}v9", length / 2, ZERO, LIGHT, 3.0)
        + f'<rect {box} fill="none" stroke="{EDGE}" stroke-opacity=".45" stroke-width=".6"/>'
        + text(x, y + 21, left, LETTERS, DIM)
        + text(x + length / 2, y + 21, "0", LETTERS, DIM, anchor="middle")
        + text(x + length, y + 21, right, LETTERS, DIM, anchor="end")
    )
    if length + 16 + long <= room:
        return drawn + text(x + length + 16, y + 9, said, LETTERS, DIM), length + 16 + long, 30
    return drawn + text(x, y + 38, said, LETTERS, DIM), max(length, long), 47


def text(x: float, y: float, words: str, size: float, fill: str, anchor: str = "start", weight: int = 400, turn: int = 0) -> str:
    """Return an SVG text; "" for no words."""
    if not words:
        return ""
    extra = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (f' font-weight="{weight}"' if weight != 400 else "")
    if turn:
        extra += f' transform="rotate({turn} {tidy(x)} {tidy(y)})"'
    return f'<text x="{tidy(x)}" y="{tidy(y)}" font-size="{size}" fill="{fill}"{extra}>{escape(words)}</text>'


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(bytes.fromhex(colour.removeprefix("#")))

"""Rows drawn with the graph as rails at their left, like a history of commits: see `rows`.

A rail runs from a row to the rows that use its result. Where it forks, each branch is as thick as its share in the gradient that
comes back, and the row gives the shares in words. Every row is an opaque band, so one picture fits both themes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gradlab.explore.drawing import (
    DIM,
    EDGE,
    GRADIENT,
    GRADIENT_INK,
    GRADIENT_PANEL,
    INK,
    LINE,
    MONO,
    PANEL,
    PAPER,
    QUIET,
    VALUE,
    VALUE_INK,
    VALUE_PANEL,
    Drawing,
    escape,
    text_width,
    tidy,
)
from gradlab.explore.graph.painting import share_text
from gradlab.explore.graph.ports import LETTERS, Scale, elements, scale_of, short_number
from gradlab.explore.graph.rows import GraphRow, Parameter, lanes, total
from gradlab.explore.labels import shorten

WIDTH = 940.0  # of a notebook's output
LABEL, CODE, SMALL = 12.0, 11.0, 9.5  # font sizes
LOW, HIGH, GAP = 24.0, 32.0, 4.0  # a row with one line and with two, and the space between rows
LANE, LANES = 13.0, 7  # the pitch of rails, and the maximum number of lanes
BAR, SPACE = 62.0, 14.0  # the track of a bar; between columns
BARS = 62  # maximum number of small bars in a track
SHOWN = 3  # rows that a gradient came from, and parameters, in words
SHORTEST, LONGEST = 150.0, 430.0  # of the label column
WHOLE = 260.0  # labels up to this width are not shortened to make room for other columns
LEAST = 96.0  # minimum width of the chips, in pixels
BESIDE = 7.0  # between a label and the text beside it
INDENT, TWIST = 14.0, 14.0  # of a row inside another one, and the space for the sign that opens a row
MODULES = ("module", "stack", "function")
BOLD = 1.09


@dataclass(frozen=True)
class _Layout:
    """Measures that all rows of a picture share.

    Attributes
    ----------
    start, width : float
        Where the bands begin, and the total width.
    x : dict of str to float
        Where each column begins.
    label : float
        Width of the label column.
    twist : float
        Space in it for the signs that open rows.
    flat : bool
        Whether the small text is beside the label rather than below it.
    scale : Scale or None
        Scale of the bars.
    """

    start: float
    width: float
    x: dict[str, float]
    label: float
    twist: float
    flat: bool
    scale: Scale | None

    def height(self, row: GraphRow) -> float:
        return HIGH if row.small and row.kind != "output" and not self.flat else LOW


class _Columns:
    """Texts, chips and widths of the columns after the label."""

    def __init__(self, rows: Sequence[GraphRow]) -> None:
        self._rows = rows
        self.came = [came_text(rows, here) for here in range(len(rows))]
        self.numbers = [gradient_text(row) for row in rows]
        self.beside = [_row_chips(row) for row in rows]
        self.made = [row.made for row in rows]
        self.short = False  # whether the chips are shortened
        self.widths: dict[str, float] = {}
        self._measure()

    def _measure(self) -> None:
        self.widths = {
            "made": _widest(self.made, LETTERS),
            "gradient": BAR + 8 + _widest(self.numbers, LABEL, BOLD) if any(self.numbers) else 0.0,
            "came": _widest(self.came, SMALL),
            "beside": max((_chips_width(chips) for chips in self.beside), default=0.0),
        }

    @property
    def total_width(self) -> float:
        return sum(wide + SPACE for wide in self.widths.values() if wide)

    def narrow(self, room: float) -> bool:
        """Leave out what matters least, step by step, until the columns fit into `room`. Return whether anything was left out."""
        rows = range(len(self._rows))
        for step in range(5):
            if self.total_width <= room:
                return step > 0
            if step == 0:
                self.came = [came_text(self._rows, here, 1) for here in rows]
            elif step == 1:
                self.beside, self.short = [_chips_within(chips, LEAST) for chips in self.beside], True
            elif step == 2:
                self.beside = [[] for _ in rows]
            elif step == 3:
                self.came = ["" for _ in rows]
            else:
                self.made = ["" for _ in rows]
            self._measure()
        return True


def paint_rows(
    rows: Sequence[GraphRow], *, note: str, alt: str, text: str = "", width: float | None = None
) -> tuple[Drawing, bool]:
    """Draw rows, each as a group with its number in `data-row`; a leaf has the number of its node in `data-leaf`.

    Parameters
    ----------
    rows : sequence of GraphRow
    note : str
        Line above the rows.
    alt, text : str
        See `Drawing`.
    width : float, optional
        Available pixels. Then rows have one line, and columns that do not fit are left out. By default a row may have two lines,
        and columns have their usual width.

    Returns
    -------
    drawing : Drawing
    cut : bool
        Whether a wider drawing would show more.
    """
    lane, many = lanes(rows)
    lane = [min(number, LANES - 1) for number in lane]
    scale = scale_of(norm for row in rows for norm in (row.norms or (row.gradient.norm if row.gradient is not None else 0.0,)))
    columns, flat = _Columns(rows), width is not None
    start = 8 + LANE * min(many, LANES)
    line = max((text_width(row.line, SMALL) for row in rows), default=0) + 8
    twist = TWIST if any(row.opened is not None for row in rows) else 0.0
    free = (WIDTH if width is None else width) - start - line - 24
    closed = [row for row in rows if not row.opened]
    wanted = twist + max((INDENT * row.depth + _label_width(row, flat) for row in closed), default=0.0)
    labels = twist + max((INDENT * row.depth + _label_width(row, flat, alone=True) for row in closed), default=0.0)
    cut = flat and columns.narrow(free - min(labels, WHOLE))
    least, most = (min(labels, SHORTEST), math.inf) if flat else (SHORTEST, LONGEST)
    label = min(wanted, max(least, free - columns.total_width), most)
    x = {"line": start, "label": start + line + 4}
    at = x["label"] + label + SPACE
    for key, wide in columns.widths.items():
        x[key] = at
        at += wide + SPACE if wide else 0.0
    layout = _Layout(start, max(at + 2, width or 0.0), x, label, twist, flat, scale)
    top = 6.0 + (18 if note else 0)
    body = [f'<g font-size="{SMALL}">']
    if note:
        body.append(f'<text x="4" y="13" font-size="11" fill="{DIM}">{escape(note)}</text>')
    if any(columns.widths[key] for key in ("gradient", "came", "beside")):
        body += _heads(layout, columns, modules=any(row.kind in MODULES for row in rows), y=top + 10)
        top += 17
    tops, y = [], top
    for row in rows:
        tops.append(y)
        y += layout.height(row) + GAP
    middles = [t + layout.height(row) / 2 for t, row in zip(tops, rows, strict=True)]
    for here, (row, t) in enumerate(zip(rows, tops, strict=True)):
        body.append(f'<g data-row="{here}">{_band(row, t, layout, columns, here)}</g>')
    body += _rails(rows, lane, middles)
    body.append("</g>")
    return Drawing("\n".join(body), layout.width, y, text, alt), cut or label < wanted


def came_text(rows: Sequence[GraphRow], here: int, shown: int = SHOWN) -> str:
    """Return "98 % line 5 · 2 % line 4" if several rows passed a gradient back to row `here`; "" if only the next row did."""
    came = rows[here].came_from
    if len(came) < 2 and all(target > here for target, _ in came):
        return ""
    parts = []
    for target, share in sorted(came, key=lambda pair: -abs(pair[1] or 0.0))[:shown]:
        where = shorten(rows[target].where, 18) + (" of the next round" if target <= here else "")
        parts.append(f"{share_text(share)} {where}" if share is not None and len(came) > 1 else where)
    more = f" and {len(came) - shown} more" if len(came) > shown else ""
    return " · ".join(parts) + more


def gradient_text(row: GraphRow) -> str:
    """Return the norm of the gradient that reached a row, or a scalar gradient itself; of several norms the range."""
    if row.norms:
        low, high = min(row.norms), max(row.norms)
        return short_number(low) if low == high else f"{short_number(low)} … {short_number(high)}"
    if row.gradient is None:
        return "no gradient" if row.kind == "cut" or row.none else ""
    numbers = elements(row.gradient)
    return numbers[0] if len(numbers) == 1 else short_number(row.gradient.norm)


# ---------------------------------------------------------------------------------------------------------------- bands
def _label_width(row: GraphRow, flat: bool, *, alone: bool = False) -> float:
    """Return the width of a label, with the small text beside it unless `alone`."""
    code = row.kind in ("line", "cut")
    label = text_width(row.label, CODE, mono=True) if code else text_width(row.label, LABEL) * BOLD
    small = 0.0 if alone else text_width(row.small, SMALL)
    return (label + BESIDE + small if flat and small else max(label, small)) + 4


def _widest(texts: Sequence[str], size: float, factor: float = 1.0) -> float:
    return max((text_width(text, size) * factor for text in texts), default=0.0)


def _band(row: GraphRow, top: float, layout: _Layout, columns: _Columns, here: int) -> str:
    high, x = layout.height(row), layout.x
    middle = top + high / 2
    leaf, output, cut = (row.kind == kind for kind in ("leaf", "output", "cut"))
    fill, stroke, ink, quiet = (
        (VALUE_PANEL, VALUE, INK, QUIET) if leaf else (INK, EDGE, PAPER, PAPER) if output else (PANEL, LINE, INK, QUIET)
    )
    radius = high / 2 if leaf or output else 5
    dashes = ' stroke-dasharray="3 3"' if cut or row.opened else ""
    box = (
        f'x="{tidy(layout.start)}" y="{tidy(top)}" width="{tidy(layout.width - layout.start - 2)}" height="{tidy(high)}" '
        f'rx="{tidy(radius)}"'
    )
    svg = [f'<rect {box} fill="{"none" if row.opened else fill}" stroke="{stroke}"{dashes}/>']
    base = middle + 4 if high == LOW else middle - 2
    if row.line:
        at = f'x="{tidy(x["label"] - 6)}" y="{tidy(base)}" text-anchor="end"'
        svg.append(f'<text {at} fill="{quiet}">{escape(row.line)}</text>')
    left = x["label"] + 2 + INDENT * row.depth
    if row.opened is not None:
        sign = "▾" if row.opened else "▸"
        svg.append(f'<text class="gl-twist" x="{tidy(left)}" y="{tidy(base)}" font-size="{LABEL}" fill="{quiet}">{sign}</text>')
    left += layout.twist
    end = layout.width - 12 if row.opened else x["label"] + 2 + layout.label
    code = row.kind in ("line", "cut")
    label = _shorten_to(row.label, end - left, CODE if code else LABEL, mono=code)
    whole = f"<title>{escape(row.label)}</title>" if label != row.label else ""
    look = f'font-family="{MONO}" font-size="{CODE}"' if code else f'font-size="{LABEL}" font-weight="600"'
    svg.append(f'<text x="{tidy(left)}" y="{tidy(base)}" {look} fill="{quiet if cut else ink}">{whole}{escape(label)}</text>')
    if row.small and not output:
        if layout.flat:
            left += BESIDE + (text_width(label, CODE, mono=True) if code else text_width(label, LABEL) * BOLD)
        small = _ending(row.small, end - left) if layout.flat else _shorten_to(row.small, end - left, SMALL, bold=False)
        below = base if layout.flat else middle + 10
        svg.append(f'<text x="{tidy(left)}" y="{tidy(below)}" fill="{quiet}">{escape(small)}</text>')
    if made := columns.made[here]:
        color = quiet if output else VALUE_INK
        svg.append(f'<text x="{tidy(x["made"])}" y="{tidy(middle + 3.5)}" fill="{color}">{escape(made)}</text>')
    if number := columns.numbers[here]:
        ink = PAPER if output else INK if cut or row.none else GRADIENT_INK
        svg.append(_gradient(row, x["gradient"], middle, number, layout.scale, ink))
    if came := columns.came[here]:
        svg.append(f'<text x="{tidy(x["came"])}" y="{tidy(middle + 3.5)}" fill="{quiet}">{escape(came)}</text>')
    at_x = x["beside"]
    for chip in columns.beside[here]:
        svg.append(_chip(at_x, middle, chip))
        at_x += _chip_width(chip) + 5
    return "".join(svg)


def _gradient(row: GraphRow, x: float, middle: float, text: str, scale: Scale | None, ink: str) -> str:
    """Return a bar on the picture's scale, or one for each norm of the row, and the number."""
    parts = []
    if row.norms and scale is not None:
        norms = row.norms if len(row.norms) <= BARS else [row.norms[i * len(row.norms) // BARS] for i in range(BARS)]
        step = BAR / len(norms)
        for i, norm in enumerate(norms):
            tall = max(scale.part(norm) * 17, 0.8 if norm > 0 else 0)
            wide = min(step * 0.78, 10)
            box = f'x="{tidy(x + i * min(step, 13))}" y="{tidy(middle + 8.5 - tall)}" width="{wide:.2f}" height="{tidy(tall)}"'
            parts.append(f'<rect {box} fill="{GRADIENT}"/>')
    elif row.gradient is not None and scale is not None:
        long = scale.part(row.gradient.norm) * BAR
        parts.append(
            f'<rect x="{tidy(x)}" y="{tidy(middle - 3)}" width="{BAR}" height="6" rx="2" fill="{GRADIENT_PANEL}" '
            f'stroke="{LINE}"/>'
        )
        if long:
            parts.append(f'<rect x="{tidy(x)}" y="{tidy(middle - 3)}" width="{tidy(long)}" height="6" rx="2" fill="{GRADIENT}"/>')
    weight = "" if row.kind == "cut" else ' font-weight="600"'
    at = f'x="{tidy(x + BAR + 8)}" y="{tidy(middle + 4)}" font-size="{LABEL - 1}"'
    parts.append(f'<text {at} fill="{ink}"{weight}>{escape(text)}</text>')
    return "".join(parts)


def _ending(text: str, room: float) -> str:
    """Return the last parts of a text, separated by " · ", that fit."""
    parts = text.split(" · ")
    while parts and text_width(" · ".join(parts), SMALL) > room:
        parts.pop(0)
    return " · ".join(parts)


def _shorten_to(text: str, room: float, size: float, *, mono: bool = False, bold: bool = True) -> str:
    """Shorten `text` in the middle if it is too wide."""
    factor = BOLD if bold and not mono else 1.0
    if text_width(text, size, mono) * factor <= room:
        return text
    characters = len(text)
    while characters > 4 and text_width(shorten(text, characters), size, mono) * factor > room:
        characters -= 1
    return shorten(text, characters)


# ---------------------------------------------------------------------------------------------------------------- chips
class Chip(NamedTuple):
    """A parameter, a summary of several, or an operand of the row."""

    kind: str  # "leaf", "sum", "none", "data" or "more"
    name: str
    number: str = ""
    leaf: int = -1


def _row_chips(row: GraphRow) -> list[Chip]:
    """Return the chips of a row: its parameters and its data."""
    chips: list[Chip] = []
    parameters = row.parameters
    if row.kind not in MODULES and len(parameters) > SHOWN and not any(p.none for p in parameters):
        norm = total([p.gradient for p in parameters])
        chips.append(Chip("leaf", f"{len(parameters)} parameters", "" if norm is None else short_number(norm)))
    elif row.kind in MODULES or len(parameters) > SHOWN:
        known = [p for p in parameters if not p.none]
        norm = total([p.gradient for p in known])
        if norm is not None:
            weight = total([p.value for p in known])
            ratio = f" ÷ {short_number(weight)} = {short_number(norm / weight, 2)}" if weight else ""
            chips.append(Chip("sum", f"{short_number(norm)}{ratio}"))
        elif parameters and not known:
            chips.append(Chip("none", "no gradient"))
        elif parameters:
            chips.append(Chip("leaf", f"{len(parameters)} parameters"))
        without = [p for p in parameters if p.none]
        if known and without:
            chips.append(Chip("none", f"{len(without)} without gradient"))
    else:
        chips += [_parameter_chip(p) for p in parameters]
    return chips + [Chip("data", text) for text in row.data]


def _parameter_chip(parameter: Parameter) -> Chip:
    number = "no gradient" if parameter.none else "" if parameter.gradient is None else short_number(parameter.gradient)
    return Chip("leaf", shorten(parameter.name, 22), number, parameter.node)


def _chip_width(chip: Chip) -> float:
    wide = text_width(chip.name, LETTERS) * (BOLD if chip.kind == "leaf" else 1) + text_width(chip.number, LETTERS)
    return wide + (5 if chip.name and chip.number else 0) + (0 if chip.kind in ("sum", "none", "more") else 13)


def _chips_width(chips: Sequence[Chip]) -> float:
    return sum(_chip_width(chip) + 5 for chip in chips)


def _chips_within(chips: Sequence[Chip], room: float) -> list[Chip]:
    """Return the first chips that fit, with sums reduced to the norm, and the number of the rest."""
    chips = [chip._replace(name=chip.name.partition(" ÷ ")[0]) if chip.kind == "sum" else chip for chip in chips]
    some, kept = chips, len(chips)
    while kept and _chips_width(some) > room:
        kept -= 1
        some = [*chips[:kept], Chip("more", f"{len(chips) - kept} more")]
    return some


def _chip(x: float, middle: float, chip: Chip) -> str:
    kind, name, number, leaf = chip
    y = f'y="{tidy(middle + 3.4)}" font-size="{LETTERS}"'
    if kind in ("sum", "none", "more"):
        ink = GRADIENT_INK if kind == "sum" else INK
        return f'<text x="{tidy(x)}" {y} fill="{ink}">{escape(name)}</text>'
    fill, stroke, ink = (VALUE_PANEL, VALUE, INK) if kind == "leaf" else (PANEL, LINE, QUIET)
    weight = ' font-weight="600"' if kind == "leaf" else ""
    said_name = f"<tspan{weight}>{escape(name)}</tspan>" if name else ""
    color = INK if number == "no gradient" else GRADIENT_INK
    said_number = f'<tspan fill="{color}">\N{EN SPACE}{escape(number)}</tspan>' if number else ""
    data = f' data-leaf="{leaf}"' if leaf >= 0 else ""
    return (
        f'<g{data}><rect x="{tidy(x)}" y="{tidy(middle - 7.5)}" width="{tidy(_chip_width(chip))}" height="15" rx="7.5" '
        f'fill="{fill}" stroke="{stroke}"/>'
        f'<text x="{tidy(x + 6.5)}" {y} fill="{ink}">{said_name}{said_number}</text></g>'
    )


# ---------------------------------------------------------------------------------------------------------------- rails
def _heads(layout: _Layout, columns: _Columns, *, modules: bool, y: float) -> list[str]:
    """Return the headings of the columns."""
    x, widths, texts = layout.x, columns.widths, []
    if widths["gradient"] and layout.scale is not None:
        texts.append((x["gradient"], f"‖gradient‖, log {layout.scale}"))
    if widths["came"] > 40:
        texts.append((x["came"], "came from"))
    if widths["beside"] > 60:
        of_modules = "‖∇W‖" if columns.short else "‖∇W‖ ÷ ‖W‖"
        texts.append((x["beside"], of_modules if modules else "parameters, data"))
    heads, free = [], 0.0
    for at, text in texts:
        at = max(at, free)
        heads.append(f'<text x="{tidy(at)}" y="{tidy(y)}" fill="{DIM}">{escape(text)}</text>')
        free = at + text_width(text, SMALL) + 10
    return heads


def _rails(rows: Sequence[GraphRow], lane: Sequence[int], middles: Sequence[float]) -> list[str]:
    """Return the lines between the rows, and a dot at each row."""
    x = [9 + LANE * number for number in lane]
    parts = ['<g fill="none" stroke-linecap="round">']
    for at, row in enumerate(rows):
        ends = [(target, share) for target, share in row.came_from if target > at]
        for target, share in ends:
            alone = len(row.came_from) == 1
            flows = row.gradient is not None or bool(row.norms)
            thick = 1.3 if not flows else 3.2 if alone or share is None else 1.0 + 2.6 * min(abs(share), 1.0)
            path = f"M{tidy(x[at])} {tidy(middles[at])}"
            if x[at] == x[target]:
                path += f"V{tidy(middles[target])}"
            elif target == at + 1 or x[target] < x[at]:  # down its own lane, and over at the end
                near = max(middles[at], middles[target - 1])
                path += f"V{tidy(near)}" if near > middles[at] else ""
                half = tidy((near + middles[target]) / 2)
                path += f"C{tidy(x[at])} {half} {tidy(x[target])} {half} {tidy(x[target])} {tidy(middles[target])}"
            else:  # a fork: down its lane to the row before, then aside
                near = middles[target - 1]
                half = tidy((near + middles[target]) / 2)
                path += f"V{tidy(near)}C{tidy(x[at])} {half} {tidy(x[target])} {half} {tidy(x[target])} {tidy(middles[target])}"
            parts.append(f'<path d="{path}" stroke="{GRADIENT if flows else EDGE}" stroke-width="{thick:.1f}"/>')
    parts.append("</g>")
    for at, row in enumerate(rows):
        stroke = EDGE if row.gradient is None and not row.norms else GRADIENT
        fill = INK if row.kind == "output" else PANEL
        if row.kind != "cut" and not row.opened:
            parts.append(
                f'<circle cx="{tidy(x[at])}" cy="{tidy(middles[at])}" r="4" fill="{fill}" stroke="{stroke}" stroke-width="1.4"/>'
            )
    return parts

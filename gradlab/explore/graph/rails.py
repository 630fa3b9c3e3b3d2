"""Rows drawn with the graph as rails at their left, as a history of commits is: see `rows`.

A rail runs from a row to the rows that use what it makes; where it forks, each branch is as thick as its share in the gradient
that comes back, and the row says the shares in words. Every row is an opaque band, so that one picture serves both themes.
"""

from __future__ import annotations

from collections.abc import Sequence

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
from gradlab.explore.graph.ports import LETTERS, Scale, elements, said, scale_of
from gradlab.explore.graph.rows import GraphRow, Parameter, lanes, total
from gradlab.explore.labels import shortened

WIDTH = 940.0  # of a notebook's output
LABEL, CODE, SMALL = 12.0, 11.0, 9.5  # font sizes
LOW, HIGH, GAP = 24.0, 32.0, 4.0  # a row with one line and with two, and the space between rows
LANE, LANES = 13.0, 7  # the pitch of rails, and how many are told apart
BAR, SPACE = 62.0, 14.0  # the track of a bar; between columns
BARS = 62  # small bars in a track at most
SHOWN = 3  # rows that a gradient came from, and parameters
SHORTEST, LONGEST = 150.0, 430.0  # of the column of labels
BOLD = 1.09


def paint_rows(rows: Sequence[GraphRow], *, note: str, alt: str, text: str = "") -> Drawing:
    """The picture of some rows; `note` is a line above it."""
    lane, many = lanes(rows)
    lane = [min(number, LANES - 1) for number in lane]
    scale = scale_of(norm for row in rows for norm in (row.norms or (row.gradient.norm if row.gradient is not None else 0.0,)))
    start = 8 + LANE * min(many, LANES)
    came, values = [came_text(rows, row) for row in rows], [row.made for row in rows]
    texts = [gradient_text(row) for row in rows]
    beside = [_beside(row) for row in rows]
    widths = {
        "line": max((text_width(row.line, SMALL) for row in rows), default=0) + 8,
        "made": _widest(values, LETTERS),
        "gradient": BAR + 8 + _widest(texts, LABEL, BOLD) if any(texts) else 0.0,
        "came": _widest(came, SMALL),
        "beside": max((_chips_width(parts) for parts in beside), default=0.0),
    }
    taken = start + widths["line"] + 8 + sum(widths[key] + SPACE for key in ("made", "gradient", "came", "beside") if widths[key])
    wanted = max((_label_width(row) for row in rows), default=0.0)
    label = min(wanted, LONGEST, max(SHORTEST, WIDTH - taken - 16))
    x = {"line": start, "label": start + widths["line"] + 4}
    at = x["label"] + label + SPACE
    for key in ("made", "gradient", "came", "beside"):
        x[key] = at
        at += widths[key] + SPACE if widths[key] else 0.0
    width = at + 2
    top = 6.0 + (18 if note else 0)
    body = [f'<g font-size="{SMALL}">']
    if note:
        body.append(f'<text x="4" y="13" font-size="11" fill="{DIM}">{escape(note)}</text>')
    if any(widths[key] for key in ("gradient", "came", "beside")):
        body += _heads(x, widths, scale, modules=any(row.kind == "module" for row in rows), y=top + 10)
        top += 17
    tops, y = [], top
    for row in rows:
        tops.append(y)
        y += _height(row) + GAP
    middles = [t + _height(row) / 2 for t, row in zip(tops, rows, strict=True)]
    body += [
        _band(row, t, start, width, x, label, text, words, parts, scale)
        for row, t, text, words, parts in zip(rows, tops, texts, came, beside, strict=True)
    ]
    body += _rails(rows, lane, middles)
    body.append("</g>")
    return Drawing("\n".join(body), width, y, text, alt)


def came_text(rows: Sequence[GraphRow], row: GraphRow) -> str:
    """ "98 % line 5 · 2 % line 4" of a gradient that several rows handed back; "" of one from the next row."""
    here = rows.index(row)
    came = row.came_from
    if len(came) < 2 and all(target > here for target, _ in came):
        return ""
    parts = []
    for target, share in sorted(came, key=lambda pair: -abs(pair[1] or 0.0))[:SHOWN]:
        where = shortened(rows[target].where, 18) + (" of the next round" if target <= here else "")
        parts.append(f"{share_text(share)} {where}" if share is not None and len(came) > 1 else where)
    more = f" and {len(came) - SHOWN} more" if len(came) > SHOWN else ""
    return " · ".join(parts) + more


def gradient_text(row: GraphRow) -> str:
    """The norm of what arrived, of a scalar the number; of several the least and the greatest."""
    if row.norms:
        low, high = min(row.norms), max(row.norms)
        return said(low) if low == high else f"{said(low)} … {said(high)}"
    if row.gradient is None:
        return "no gradient" if row.kind == "cut" else ""
    numbers = elements(row.gradient)
    return numbers[0] if len(numbers) == 1 else said(row.gradient.norm)


# ---------------------------------------------------------------------------------------------------------------- bands
def _height(row: GraphRow) -> float:
    return HIGH if row.small and row.kind != "output" else LOW


def _label_width(row: GraphRow) -> float:
    if row.kind in ("line", "cut"):
        return max(text_width(row.label, CODE, mono=True), text_width(row.small, SMALL)) + 4
    return max(text_width(row.label, LABEL) * BOLD, text_width(row.small, SMALL)) + 4


def _widest(texts: Sequence[str], size: float, factor: float = 1.0) -> float:
    return max((text_width(text, size) * factor for text in texts), default=0.0)


def _band(
    row: GraphRow,
    top: float,
    start: float,
    width: float,
    x: dict[str, float],
    label: float,
    text: str,
    came: str,
    parts: Sequence[tuple[str, str, str]],
    scale: Scale | None,
) -> str:
    high = _height(row)
    middle = top + high / 2
    leaf, output, cut = (row.kind == kind for kind in ("leaf", "output", "cut"))
    fill, stroke, ink, quiet = (
        (VALUE_PANEL, VALUE, INK, QUIET) if leaf else (INK, EDGE, PAPER, PAPER) if output else (PANEL, LINE, INK, QUIET)
    )
    radius = high / 2 if leaf or output else 5
    dashes = ' stroke-dasharray="3 3"' if cut else ""
    box = f'x="{tidy(start)}" y="{tidy(top)}" width="{tidy(width - start - 2)}" height="{tidy(high)}" rx="{tidy(radius)}"'
    svg = [f'<rect {box} fill="{fill}" stroke="{stroke}"{dashes}/>']
    base = middle + 4 if high == LOW else middle - 2
    if row.line:
        at = f'x="{tidy(x["label"] - 6)}" y="{tidy(base)}" text-anchor="end"'
        svg.append(f'<text {at} fill="{quiet}">{escape(row.line)}</text>')
    code = row.kind in ("line", "cut")
    fitted = _fitted(row.label, label, CODE if code else LABEL, mono=code)
    look = f'font-family="{MONO}" font-size="{CODE}"' if code else f'font-size="{LABEL}" font-weight="600"'
    left = x["label"] + 2
    svg.append(f'<text x="{tidy(left)}" y="{tidy(base)}" {look} fill="{quiet if cut else ink}">{escape(fitted)}</text>')
    if high == HIGH:
        small = _fitted(row.small, label, SMALL, bold=False)
        svg.append(f'<text x="{tidy(left)}" y="{tidy(middle + 10)}" fill="{quiet}">{escape(small)}</text>')
    if row.made:
        color = quiet if output else VALUE_INK
        svg.append(f'<text x="{tidy(x["made"])}" y="{tidy(middle + 3.5)}" fill="{color}">{escape(row.made)}</text>')
    if text:
        svg.append(_gradient(row, x["gradient"], middle, text, scale, PAPER if output else INK if cut else GRADIENT_INK))
    if came:
        svg.append(f'<text x="{tidy(x["came"])}" y="{tidy(middle + 3.5)}" fill="{quiet}">{escape(came)}</text>')
    at_x = x["beside"]
    for kind, name, number in parts:
        svg.append(_chip(at_x, middle, kind, name, number))
        at_x += _chip_width((kind, name, number)) + 5
    return "".join(svg)


def _gradient(row: GraphRow, x: float, middle: float, text: str, scale: Scale | None, ink: str) -> str:
    """A bar on the picture's scale, or one for each time that the row stands for, and the number."""
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


def _fitted(text: str, room: float, size: float, *, mono: bool = False, bold: bool = True) -> str:
    """`text` with its middle left out where it is wider than there is room."""
    factor = BOLD if bold and not mono else 1.0
    if text_width(text, size, mono) * factor <= room:
        return text
    characters = len(text)
    while characters > 4 and text_width(shortened(text, characters), size, mono) * factor > room:
        characters -= 1
    return shortened(text, characters)


# ---------------------------------------------------------------------------------------------------------------- chips
def _beside(row: GraphRow) -> list[tuple[str, str, str]]:
    """The chips of a row: (kind, name, number) of its parameters and its data."""
    texts: list[tuple[str, str, str]] = []
    parameters = row.parameters
    if row.kind != "module" and len(parameters) > SHOWN and not any(p.none for p in parameters):
        norm = total([p.gradient for p in parameters])
        texts.append(("leaf", f"{len(parameters)} parameters", "" if norm is None else said(norm)))
    elif row.kind == "module" or len(parameters) > SHOWN:
        known = [p for p in parameters if not p.none]
        norm = total([p.gradient for p in known])
        if norm is not None:
            weight = total([p.value for p in known])
            ratio = f" ÷ {said(weight)} = {said(norm / weight, 2)}" if weight else ""
            texts.append(("sum", "", f"{said(norm)}{ratio}"))
        elif parameters and not known:
            texts.append(("none", "no gradient", ""))
        elif parameters:
            texts.append(("leaf", f"{len(parameters)} parameters", ""))
        without = [p for p in parameters if p.none]
        if known and without:
            texts.append(("none", f"{len(without)} without gradient", ""))
    else:
        texts += [_named(p) for p in parameters]
    return texts + [("data", text, "") for text in row.data]


def _named(parameter: Parameter) -> tuple[str, str, str]:
    number = "no gradient" if parameter.none else "" if parameter.gradient is None else said(parameter.gradient)
    return "leaf", shortened(parameter.name, 22), number


def _chip_width(part: tuple[str, str, str]) -> float:
    kind, name, number = part
    wide = text_width(name, LETTERS) * (BOLD if kind == "leaf" else 1) + text_width(number, LETTERS)
    return wide + (5 if name and number else 0) + (0 if kind in ("sum", "none") else 13)


def _chips_width(parts: Sequence[tuple[str, str, str]]) -> float:
    return sum(_chip_width(part) + 5 for part in parts)


def _chip(x: float, middle: float, kind: str, name: str, number: str) -> str:
    y = f'y="{tidy(middle + 3.4)}" font-size="{LETTERS}"'
    if kind in ("sum", "none"):
        ink = INK if kind == "none" else GRADIENT_INK
        return f'<text x="{tidy(x)}" {y} fill="{ink}">{escape(name or number)}</text>'
    wide = _chip_width((kind, name, number))
    fill, stroke, ink = (VALUE_PANEL, VALUE, INK) if kind == "leaf" else (PANEL, LINE, QUIET)
    weight = ' font-weight="600"' if kind == "leaf" else ""
    said_name = f"<tspan{weight}>{escape(name)}</tspan>" if name else ""
    color = INK if number == "no gradient" else GRADIENT_INK
    said_number = f'<tspan fill="{color}">\N{EN SPACE}{escape(number)}</tspan>' if number else ""
    return (
        f'<rect x="{tidy(x)}" y="{tidy(middle - 7.5)}" width="{tidy(wide)}" height="15" rx="7.5" fill="{fill}" '
        f'stroke="{stroke}"/>'
        f'<text x="{tidy(x + 6.5)}" {y} fill="{ink}">{said_name}{said_number}</text>'
    )


# ---------------------------------------------------------------------------------------------------------------- rails
def _heads(x: dict[str, float], widths: dict[str, float], scale: Scale | None, *, modules: bool, y: float) -> list[str]:
    """What the columns are."""
    texts = []
    if widths["gradient"] and scale is not None:
        texts.append((x["gradient"], f"‖gradient‖, log {scale}"))
    if widths["came"] > 40:
        texts.append((x["came"], "came from"))
    if widths["beside"] > 60:
        texts.append((x["beside"], "‖∇W‖ ÷ ‖W‖" if modules else "parameters, data"))
    heads, free = [], 0.0
    for at, text in texts:
        at = max(at, free)
        heads.append(f'<text x="{tidy(at)}" y="{tidy(y)}" fill="{DIM}">{escape(text)}</text>')
        free = at + text_width(text, SMALL) + 10
    return heads


def _rails(rows: Sequence[GraphRow], lane: Sequence[int], middles: Sequence[float]) -> list[str]:
    """The lines between the rows, and a dot at each."""
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
        if row.kind != "cut":
            parts.append(
                f'<circle cx="{tidy(x[at])}" cy="{tidy(middles[at])}" r="4" fill="{fill}" stroke="{stroke}" stroke-width="1.4"/>'
            )
    return parts

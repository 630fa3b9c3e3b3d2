"""The picture of a run that stays in a saved notebook: a sentence, what is found, loss, stripes and ratio over steps, a table.

The drawing is one SVG for both themes. It draws no more than it can label: lines for up to six layers, numbered on the line;
stripes for up to `ROWS`, neighbours together beyond that.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from gradlab.explore.axes import ticks
from gradlab.explore.drawing import DIM, EDGE, GRADIENT, INK, MAX_BYTES, PAPER, VALUE, Drawing, escape, text_width, tidy
from gradlab.explore.markup import NO_MATH, Span, escape_html, grouped, number, say, to_html
from gradlab.explore.report import findings_view as findings
from gradlab.explore.report.parts import code_html
from gradlab.explore.report.table import CARD, RULE, TABULAR, head_html
from gradlab.explore.watch.snapshot import snapshot

WIDE, LEFT, RIGHT = 760.0, 92.0, 78.0
LOSS, STRIPE, RATIO = 104.0, 18.0, 130.0
ROWS, LINES = 28, 6  # layers with a stripe, and with a line, of their own
COLUMNS = 100  # in the picture
LEVELS = 14  # of a stripe's colour


class Columns:
    """The columns of a snapshot, joined until there are at most `COLUMNS`."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.count = data["count"]
        self.each = max(1, math.ceil(self.count / COLUMNS))
        self.width = data["width"] * self.each
        self.steps = max(data["steps"], 1)
        self.shown = math.ceil(self.count / self.each)

    def of(self, series: dict[str, Any] | Sequence[float | None], what: str = "mean") -> list[float | None]:
        """The means (or extremes) of joined columns; None where nothing was measured."""
        values = series[what] if isinstance(series, dict) else series
        pooled: list[float | None] = []
        for at in range(0, self.count, self.each):
            some = [x for x in values[at : at + self.each] if x is not None]
            pooled.append(None if not some else min(some) if what == "low" else max(some) if what == "high" else fmean(some))
        return pooled

    def bad(self, series: dict[str, Any]) -> int | None:
        """The first column with what was not finite."""
        counts = series.get("bad", ())
        return next((i // self.each for i, n in enumerate(counts) if n), None)

    def x(self, column: float) -> float:
        """Where a column begins, in pixels."""
        return LEFT + (WIDE - LEFT - RIGHT) * float(min(column * self.width / self.steps, 1.0))


def drawing(data: dict[str, Any]) -> Drawing:
    """The picture of a snapshot."""
    columns, parts, y = Columns(data), [], 6.0
    if any(x is not None for x in data["loss"]["mean"]):
        parts.append(_loss(data, columns, y))
        y += LOSS + 26
    rows = _rows(data, "gradient")
    parts.append(_stripes("‖gradient‖ by layer" if data["optimizer"] else "‖gradient‖", rows, columns, y))
    y += 30 + STRIPE * len(rows)
    ratios = _rows(data, "ratio")
    if any(x is not None for _, series in ratios for x in series["mean"]):
        if len(ratios) <= LINES:
            parts.append(_lines(data, ratios, columns, y))
            y += RATIO + 28
        else:
            parts.append(_stripes("‖update‖ ÷ ‖weights‖ by layer (usual: 1e−4 … 1e−2, a rule of thumb)", ratios, columns, y))
            y += 30 + STRIPE * len(ratios)
    bad = [at for series in (data["loss"], *(s for _, s in rows)) if (at := columns.bad(series)) is not None]
    if bad:
        x = columns.x(min(bad))
        parts.append(f'<line x1="{tidy(x)}" y1="4" x2="{tidy(x)}" y2="{tidy(y - 12)}" stroke="{DIM}" stroke-dasharray="3 3"/>')
        parts.append(written(x + 4 if x < WIDE / 2 else x - 4, 14, "not finite", end="start" if x < WIDE / 2 else "end"))
    parts.append(_steps(columns, y))
    return Drawing("\n".join(parts), WIDE, y + 20, "", _alt(data))


def _rows(data: dict[str, Any], what: str) -> list[tuple[str, dict[str, Any]]]:
    """(name, series) of each stripe: of a layer, or of neighbours, of which the largest is shown."""
    names, layers = data["names"], data["layers"]
    each = math.ceil(len(layers) / ROWS)
    if each <= 1:
        return [(name, layer[what]) for name, layer in zip(names, layers, strict=True)]
    rows = []
    for at in range(0, len(layers), each):
        some = [layer[what] for layer in layers[at : at + each]]
        rows.append(
            (
                f"{names[at]} …",
                {key: [_most(xs) for xs in zip(*(s[key] for s in some), strict=True)] for key in ("mean", "low", "high")},
            )
        )
    return rows


def _most(values: Sequence[float | None]) -> float | None:
    known = [x for x in values if x is not None]
    return max(known) if known else None


# ---------------------------------------------------------------------------------------------------------------- parts
def _loss(data: dict[str, Any], columns: Columns, top: float) -> str:
    mean, low, high = (columns.of(data["loss"], what) for what in ("mean", "low", "high"))
    least, most = min(x for x in low if x is not None), max(x for x in high if x is not None)
    log = least > 0 and most > 200 * least
    if not log:
        least = min(least, 0.0) if most > 0 and least < 0.4 * most else least
    if most <= least:
        least, most = least - 0.5 * (abs(least) or 1), most + 0.5 * (abs(most) or 1)

    def down(value: float) -> float:
        part = math.log(value / least) / math.log(most / least) if log else (value - least) / (most - least)
        return top + 12 + (LOSS - 12) * (1 - part)

    parts = [written(0, top + 10, data["called"], fill=VALUE, weight=600), *grid(least, most, 4, log, down)]
    middle = [columns.x(i + 0.5) for i in range(columns.shown)]
    some = [i for i in range(columns.shown) if mean[i] is not None]
    if any(high[i] != low[i] for i in some):
        edge = [f"{tidy(middle[i])} {tidy(down(high[i] or 0.0))}" for i in some]
        edge += [f"{tidy(middle[i])} {tidy(down(low[i] or 0.0))}" for i in reversed(some)]
        parts.append(f'<path d="M{"L".join(edge)}Z" fill="{VALUE}" fill-opacity=".18"/>')
    parts.append(line([(middle[i], down(mean[i] or 0.0)) for i in some], VALUE, 1.8))
    end = some[-1]
    parts.append(f'<circle cx="{tidy(middle[end])}" cy="{tidy(down(mean[end] or 0.0))}" r="3" fill="{VALUE}"/>')
    parts.append(
        written(WIDE - RIGHT + 8, down(mean[end] or 0.0) + 4, number(mean[end] or 0.0, 3), fill=VALUE, weight=600, size=12)
    )
    return "".join(parts)


def _stripes(title: str, rows: Sequence[tuple[str, dict[str, Any]]], columns: Columns, top: float) -> str:
    known = [columns.of(series) for _, series in rows]
    values = [x for series in known for x in series if x is not None and x > 0]
    if not values:
        return written(0, top + 10, f"{title}: nothing was measured")
    low, high = 10 ** math.floor(math.log10(max(min(values), max(values) * 1e-9))), 10 ** math.ceil(math.log10(max(values)))
    high = high if high > low else 10 * low
    colour = GRADIENT if title.startswith("‖grad") else DIM  # orange is what flows back, and a ratio does not
    parts = [written(0, top + 10, title, fill=colour, weight=600), _scale(low, high, top, colour)]
    y = top + 18
    for (name, whole), series in zip(rows, known, strict=True):
        parts.append(written(LEFT - 6, y + 12, _clipped(name, LEFT - 8), end="end"))
        parts.append(
            f'<rect x="{LEFT}" y="{tidy(y)}" width="{WIDE - LEFT - RIGHT}" height="{STRIPE - 2}" fill="{EDGE}" '
            'fill-opacity=".07"/>'
        )
        levels: dict[int, list[str]] = {}
        measured = [i for i, x in enumerate(series) if x is not None]
        for k, i in enumerate(measured):
            value = series[i] or 0.0
            after = measured[k + 1] if k + 1 < len(measured) else i + 1
            if value > 0:
                part = min(1.0, max(0.0, math.log(value / low) / math.log(high / low)))
                x, right = round(columns.x(i)), round(columns.x(after))  # no seams
                levels.setdefault(round(LEVELS * part), []).append(
                    f"M{tidy(x)} {tidy(y)}h{tidy(right - x)}v{STRIPE - 2:g}h{tidy(x - right)}z"
                )
        parts += [
            f'<path d="{"".join(d)}" fill="{colour}" fill-opacity="{max(level, 0.6) / LEVELS:.2f}" shape-rendering="crispEdges"/>'
            for level, d in sorted(levels.items())
        ]
        if measured:
            last = last_of(whole) or 0.0
            parts.append(written(WIDE - RIGHT + 8, y + 12, number(last, 2), fill=colour))
        y += STRIPE
    return "".join(parts)


def _scale(low: float, high: float, top: float, colour: str) -> str:
    """The colours and what they stand for."""
    wide, right = 150.0, WIDE - RIGHT
    parts = []
    for level in range(LEVELS):
        x = right - wide + wide * level / LEVELS
        parts.append(
            f'<rect x="{tidy(x)}" y="{tidy(top + 11)}" width="{tidy(wide / LEVELS)}" height="4" '
            f'fill="{colour}" fill-opacity="{(level + 0.6) / LEVELS:.2f}"/>'
        )
    parts.append(written(right - wide - 4, top + 15, number(low, 1), end="end", size=9.5))
    parts.append(written(right + 4, top + 15, number(high, 1), size=9.5))
    return "".join(parts)


def _lines(data: dict[str, Any], rows: Sequence[tuple[str, dict[str, Any]]], columns: Columns, top: float) -> str:
    series = [columns.of(one) for _, one in rows]
    values = [x for one in series for x in one if x is not None and x > 0]
    usual = data["usual"]
    low = 10 ** math.floor(math.log10(max(min([*values, usual[0]]), max([*values, usual[1]]) * 1e-9)))
    high = 10 ** math.ceil(math.log10(max([*values, usual[1]])))

    def down(value: float) -> float:
        part = math.log(max(value, low) / low) / math.log(high / low)
        return top + 18 + (RATIO - 18) * (1 - part)

    parts = [written(0, top + 10, "‖update‖ ÷ ‖weights‖", weight=600)]
    a, b = down(usual[1]), down(usual[0])
    parts.append(
        f'<rect x="{LEFT}" y="{tidy(a)}" width="{WIDE - LEFT - RIGHT}" height="{tidy(b - a)}" fill="{EDGE}" fill-opacity=".14"/>'
    )
    parts.append(written(WIDE - RIGHT - 5, b - 5, "usual (rule of thumb)", size=9.5, end="end"))
    parts += grid(low, high, 5, True, down)
    ends: list[tuple[float, str]] = []
    for k, one in enumerate(series):
        some = [(columns.x(i + 0.5), down(x)) for i, x in enumerate(one) if x is not None and x > 0]
        if not some:
            continue
        parts.append(line(some, DIM, 1.0 + 0.35 * (len(series) - k) / len(series)))
        at = some[min(len(some) - 1, round(len(some) * (0.12 + 0.07 * k)))]
        parts.append(f'<circle cx="{tidy(at[0])}" cy="{tidy(at[1])}" r="7" fill="{PAPER}" stroke="{DIM}"/>')
        parts.append(
            f'<text x="{tidy(at[0])}" y="{tidy(at[1] + 3.4)}" text-anchor="middle" font-size="9.5" fill="{INK}">{k}</text>'
        )
        last = next(x for x in reversed(one) if x is not None and x > 0)
        ends.append((some[-1][1] + 3.5, f"{k}  {number(last, 2)}"))
    ends.sort()
    for i in range(1, len(ends)):
        ends[i] = max(ends[i][0], ends[i - 1][0] + 11.5), ends[i][1]
    parts += [written(WIDE - RIGHT + 8, y, text) for y, text in ends]
    return "".join(parts)


def grid(low: float, high: float, many: int, log: bool, down: Any) -> list[str]:
    parts = []
    for at, text in ticks(low, high, many, log):
        y = down(at)
        parts.append(
            f'<line x1="{LEFT}" y1="{tidy(y)}" x2="{WIDE - RIGHT}" y2="{tidy(y)}" '
            f'stroke="{EDGE}" stroke-opacity=".35" stroke-width=".7"/>'
        )
        parts.append(written(LEFT - 6, y + 3.5, text, end="end"))
    return parts


def _steps(columns: Columns, y: float) -> str:
    parts = [written(0, y + 4, "step")]
    for at, _ in ticks(0, columns.steps, 6):
        if at == round(at):
            x = LEFT + (WIDE - LEFT - RIGHT) * at / columns.steps
            parts.append(written(x, y + 4, grouped(int(at)), end="middle"))
    return "".join(parts)


def line(points: Sequence[tuple[float, float]], colour: str, wide: float) -> str:
    if not points:
        return ""
    d = "L".join(f"{tidy(x)} {tidy(y)}" for x, y in points)
    return f'<path d="M{d}" fill="none" stroke="{colour}" stroke-width="{wide:g}" stroke-linejoin="round"/>'


def written(x: float, y: float, text: str, *, fill: str = DIM, weight: int = 400, size: float = 10.5, end: str = "start") -> str:
    bold = f' font-weight="{weight}"' if weight != 400 else ""
    anchor = f' text-anchor="{end}"' if end != "start" else ""
    return f'<text x="{tidy(x)}" y="{tidy(y)}" font-size="{size:g}" fill="{fill}"{bold}{anchor}>{escape(text)}</text>'


def _clipped(text: str, room: float) -> str:
    """The end of a name, which tells it from others."""
    while text_width(text, 10.5) > room and len(text) > 2:
        text = "…" + text[2:]
    return text


# ------------------------------------------------------------------------------------------------------------ the bundle
def last_of(series: dict[str, Any] | Sequence[float | None]) -> float | None:
    """The last number that was measured."""
    values = series["mean"] if isinstance(series, dict) else series
    return next((x for x in reversed(values) if x is not None), None)


def table(data: dict[str, Any]) -> list[list[str]]:
    """The rows of the table of layers: name, ‖gradient‖, ratio with an arrow where it lies outside of what is usual, weights."""
    rows = []
    low, high = data["usual"]
    numbered = 1 < len(data["names"]) <= LINES
    for k, (name, layer) in enumerate(zip(data["names"], data["layers"], strict=True)):
        gradient, ratio, weight = (last_of(layer[what]) for what in ("gradient", "ratio", "weight"))
        arrow = "" if ratio is None else " ↑" if ratio > high else " ↓" if ratio < low else ""
        rows.append(
            [
                f"{k} {name}" if numbered else name,
                "none" if gradient is None else number(gradient, 3),
                "" if ratio is None else number(ratio, 2) + arrow,
                "" if weight is None else number(weight, 3),
            ]
        )
    return rows


HEADS = ("layer", "‖gradient‖", "÷ ‖weights‖ a step", "‖weights‖")
TABLED = 40  # layers in the table of a notebook


def card(data: dict[str, Any], picture: str) -> str:
    """The words, the picture and the table as HTML."""
    sentence = say(*(Span(text, kind) for text, kind in data["head"]))
    problems, notes = _found(data)
    kinds = ("code", "gradient", "plain", "plain")
    cells = [
        "<tr>" + "".join(_cell("td", k, Span(text, kinds[k])) for k, text in enumerate(row)) + "</tr>"
        for row in table(data)[:TABLED]
    ]
    more = len(data["names"]) - TABLED
    heads = "".join(_cell("th", k, Span(name, "dim")) for k, name in enumerate(HEADS))
    units = [
        f"{name} ({kind}): "
        + ", ".join(
            f"{share:.0%} {what}"
            for what, share in (("dead", last_of(one["dead"])), ("saturated", last_of(one["saturated"])))
            if share
        )
        for (name, kind), one in zip(data["units"], data["activations"], strict=True)
        if last_of(one["dead"]) or last_of(one["saturated"])
    ]
    shares = f'<div style="opacity:.72;padding:2px 0">{escape_html(" · ".join(units[:12]))}</div>' if units else ""
    return (
        f'<div {NO_MATH} style="{CARD}">{head_html([sentence])}{findings.html(problems, notes)}'
        f'<div style="padding:8px 14px;border-top:{RULE}">{picture}</div>'
        f'<div style="padding:6px 14px;border-top:{RULE};overflow-x:auto">'
        f'<table style="border-collapse:collapse;font-size:13px;color:inherit;{TABULAR}"><tr>{heads}</tr>{"".join(cells)}</table>'
        + (f'<div style="opacity:.72">and {more} more: <code>w.data()</code></div>' if more > 0 else "")
        + f'{shares}<div style="opacity:.72;font-size:12px">{escape_html(data["cost"])}</div></div></div>'
        + code_html(data["code"])
    )


def _cell(tag: str, k: int, text: Span) -> str:
    where = "right" if k else "left"
    return f'<{tag} style="padding:1px 14px 1px 0;font-weight:400;text-align:{where}">{to_html(say(text))}</{tag}>'


class Said:
    """A sentence of the doctor's as a report shows it."""

    line = None

    def __init__(self, message: str, fix: str) -> None:
        self.message, self.fix = message, fix


def _found(data: dict[str, Any]) -> tuple[list[Said], list[Said]]:
    said = [(word, Said(message, fix)) for word, message, fix in data["findings"]]
    return [one for word, one in said if word == "Problem"], [one for word, one in said if word != "Problem"]


def words(data: dict[str, Any]) -> str:
    """The same for a terminal."""
    lines = ["".join(text for text, _ in data["head"])]
    said = findings.text(*_found(data))
    rows = [list(HEADS), *table(data)]
    wide = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
    body = ["  ".join(cell.ljust(wide[k]) if k == 0 else cell.rjust(wide[k]) for k, cell in enumerate(row)) for row in rows]
    return "\n".join([*lines, *([said] if said else []), "", *body, data["cost"]])


def _alt(data: dict[str, Any]) -> str:
    return "".join(text for text, _ in data["head"]) + "\n" + "\n".join(" ".join(row) for row in table(data)[:TABLED])


def bundle(watch: Any) -> dict[str, str]:
    """What a notebook is given."""
    data = snapshot(watch)
    picture = drawing(data)
    mimes = {"text/html": card(data, picture.html()), "text/plain": words(data)}
    bitmap = picture.bitmap(MAX_BYTES)
    if bitmap is not None:
        mimes["image/png"] = base64.b64encode(bitmap).decode()
    return mimes


def text(watch: Any) -> str:
    """For a terminal."""
    return words(snapshot(watch))

"""The picture of a run: plots of the loss, ‖gradient‖ and ‖update‖ ÷ ‖weights‖ one below another, on a common axis of steps.

Every layer in the picture has a label. Up to `LINES` layers are drawn as lines with numbers on them, up to `ROWS` as stripes; in
larger models neighbours share a stripe. A live view redraws it with each frame, inside the training loop, so drawing is
vectorized.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from gradlab.explore.axes import SIZE, Axes, Tick, ticks
from gradlab.explore.drawing import DIM, EDGE, GRADIENT, INK, PAPER, VALUE, Drawing, escape, text_width, tidy
from gradlab.explore.markup import count, group_digits, number
from gradlab.explore.watch.snapshot import USUAL, head

WIDE, RIGHT = 760.0, 78.0
NAMES = 60.0, 150.0  # minimum and maximum px for the names of layers
TITLE, NUMBERS = 20.0, 27.0  # px above a plot, and below it
LOSS, STRIPE, RATIO = 96.0, 18.0, 112.0
ROWS, LINES = 28, 6  # maximum number of stripes, and of lines
COLUMNS = 128  # maximum number of cells in a stripe
LEVELS = 14  # levels of a stripe's colour


def drawing(watch: Any) -> Drawing:
    """Return the picture of a run."""
    return _Painter(watch).drawing()


def has_numbers(layers: Sized) -> bool:
    """Return whether layers have numbers, which identify their lines."""
    return 1 < len(layers) <= LINES


def live(watch: Any) -> str:
    """Return the picture as an `<svg>` for a view, with attributes for its axis of steps."""
    painter = _Painter(watch)
    return painter.drawing().inline(**painter.axes().attributes())


class _Painter:
    """Painter of the plots of a run, from top to bottom."""

    def __init__(self, watch: Any) -> None:
        watch.flush()
        self._watch, self._layout = watch, watch.measuring.layout
        self._columns = watch.measuring.columns.summary()
        self._steps = max(watch.steps, 1)
        self._middles = self._columns.middles(self._steps)
        self._per_cell = math.ceil(len(self._columns.mean) / COLUMNS) or 1  # columns per cell
        each = math.ceil(len(watch.layers) / ROWS)
        self._starts = np.arange(0, len(watch.layers), each)  # the first layer of each stripe
        self._left, self._names = _labels(tuple(watch.layers[k] + " …" * (each > 1) for k in self._starts))
        self._parts: list[str] = []
        self._plots: list[Axes] = []
        self._bottom = 4.0
        self._paint()

    def axes(self) -> Axes:
        """Return the common axis of steps of all plots."""
        top = self._plots[0].frame[1]
        return replace(self._plots[0], frame=(self._left, top, WIDE - RIGHT - self._left, self._bottom - NUMBERS - top))

    def _plot(self, title: str, colour: str, height: float, y: tuple[float, float] = (0.0, 1.0), log: bool = False) -> Axes:
        """Add an empty plot below the others."""
        self._parts.append(text_svg(1, self._bottom + 11, title, fill=colour, weight=600))
        top, self._bottom = self._bottom + TITLE, self._bottom + TITLE + height + NUMBERS
        self._plots.append(Axes((self._left, top, WIDE - RIGHT - self._left, height), (0.0, self._steps), y, log))
        return self._plots[-1]

    def drawing(self) -> Drawing:
        body = f'<g font-size="{SIZE}" fill="{DIM}">{"".join(self._parts)}</g>'
        title = "".join(text for text, _ in head(self._watch))
        return Drawing(body, WIDE, self._bottom, "", f"{title}\n{' '.join(self._sentences())}")

    def _paint(self) -> None:
        self._loss()
        gradient, ratio = (self._columns.mean[:, part] for part in (self._layout.gradient, self._layout.ratio))
        many = len(self._watch.layers) > 1
        self._stripes("‖gradient‖ by layer" if many else "‖gradient‖", gradient, self._layout.gradient, GRADIENT)
        if (ratio > 0).any():
            if len(self._watch.layers) <= LINES:
                self._ratios(ratio)
            else:
                title = "‖update‖ ÷ ‖weights‖ by layer (usual: 1e−4 … 1e−2, a rule of thumb)"
                self._stripes(title, ratio, self._layout.ratio, DIM)
        self._parts.append(text_svg(1, self._bottom - NUMBERS + 14, "step"))
        bad = self._first_bad()
        if bad is not None:
            x, end = self._plots[0].across(bad), "start" if bad < self._steps / 2 else "end"
            rules = "".join(f"M{tidy(x)} {tidy(axes.frame[1])}v{tidy(axes.frame[3])}" for axes in self._plots)
            self._parts.append(f'<path d="{rules}" stroke="{INK}" stroke-dasharray="4 3"/>')
            self._parts.append(
                _with_halo(text_svg(x + (4 if end == "start" else -4), self._plots[0].frame[1] + 10, "not finite", end=end))
            )

    def _first_bad(self) -> int | None:
        """Return the first step of the first column with a non-finite loss or gradient."""
        bad = self._columns.bad
        found = np.flatnonzero(bad[:, self._layout.loss] + bad[:, self._layout.gradient].sum(1))
        return int(found[0]) * self._columns.width if len(found) else None

    def _loss(self) -> None:
        mean, low, high = (getattr(self._columns, what)[:, self._layout.loss] for what in ("mean", "low", "high"))
        some = np.flatnonzero(~np.isnan(mean))
        if not len(some):
            return
        mean, low, high = mean[some], low[some], high[some]
        title = self._watch.loss_name
        axes = self._plot(
            title[:39] + "…" if len(title) > 40 else title, VALUE, LOSS, *value_range(float(low.min()), float(high.max()))
        )
        self._parts.append(axes.grid_svg(step_ticks(axes), ticks(*axes.y, 4, axes.log), WIDE))
        x, y = axes.across(self._middles[some]), axes.down(mean)
        if (high > low).any():
            edge = path(np.concatenate([x, x[::-1]]), np.concatenate([axes.down(high), axes.down(low)[::-1]]))
            self._parts.append(f'<path d="{edge}z" fill="{VALUE}" fill-opacity=".18"/>')
        self._parts.append(line(x, y, VALUE, 1.8))
        self._parts.append(f'<circle cx="{tidy(x[-1])}" cy="{tidy(y[-1])}" r="3" fill="{VALUE}"/>')
        bad = np.flatnonzero(self._columns.bad[:, self._layout.loss])
        if len(bad) and bad[-1] > some[-1]:
            self._parts.append(text_svg(WIDE - RIGHT + 8, axes.frame[1] + LOSS, "not finite", fill=VALUE, weight=600))
        else:
            self._parts.append(text_svg(WIDE - RIGHT + 8, y[-1] + 4, number(mean[-1], 3), fill=VALUE, weight=600, size=12))

    def _stripes(self, title: str, means: np.ndarray, part: slice, colour: str) -> None:
        """Paint a stripe for each layer, with colours on a logarithmic scale. A value extends to the next one."""
        axes = self._plot(title, colour, STRIPE * len(self._names) - 2)
        top, right = axes.frame[1], WIDE - RIGHT
        values = np.fmax.reduceat(_means(means, self._columns.count[:, part], self._per_cell), self._starts, 1)
        positive = values[values > 0]
        y = top + STRIPE * np.arange(len(self._names))
        ends = self._ends(values, part)
        ground = "".join(f"M{tidy(self._left)} {tidy(at + 8)}H{right:g}" for at in y)
        self._parts.append(f'<path d="{ground}" stroke="{EDGE}" stroke-width="16" stroke-opacity=".09"/>')
        if len(positive):
            low, high = _decades(positive.min(), positive.max())
            self._parts.append(_scale(low, high, top - TITLE, colour))
            self._parts.append(self._cells(values, y + 8, ends, low, high, colour))
        names = (
            f'<text x="{tidy(self._left - 6)}" y="{tidy(at + 12)}">{escape(name)}</text>'
            for name, at in zip(self._names, y, strict=True)
        )
        self._parts.append(f'<g text-anchor="end">{"".join(names)}</g>')
        last = np.fmax.reduceat(last_of(means), self._starts)
        numbers = (
            f'<text x="{right + 8:g}" y="{tidy(at + 12)}">{"not finite" if end < right else short(x)}</text>'
            for x, at, end in zip(last, y, ends, strict=True)
            if x == x
        )
        self._parts.append(f'<g fill="{colour}">{"".join(numbers)}</g>')
        below = replace(axes, frame=(self._left, top + axes.frame[3], axes.frame[2], 0.0))
        self._parts.append(below.grid_svg(step_ticks(axes), [], WIDE))

    def _ends(self, values: np.ndarray, part: slice) -> np.ndarray:
        """Return where each stripe ends, in px: before the non-finite numbers, if they continue to the end."""
        bad = np.add.reduceat(self._columns.bad[:, part], self._starts, 1)
        ends = np.full(values.shape[1], int(WIDE - RIGHT))
        for k, measured in enumerate((~np.isnan(values)).T):
            last = (int(np.flatnonzero(measured)[-1]) + 1) * self._per_cell if measured.any() else 0
            after = last + np.flatnonzero(bad[last:, k])
            if len(after):
                ends[k] = round(float(self._plots[-1].across(min(int(after[0]) * self._columns.width, self._steps))))
        return ends

    def _cells(self, values: np.ndarray, y: np.ndarray, ends: np.ndarray, low: float, high: float, colour: str) -> str:
        """Return the cells of all stripes, as one path for each level of the colour."""
        row, column = np.nonzero(~np.isnan(values.T))  # one row after another
        measured = values[column, row]
        with np.errstate(divide="ignore"):
            shares = np.log10(measured / low) / math.log10(high / low)
        levels = np.where(measured > 0, np.rint(LEVELS * np.clip(shares, 0, 1)), -1).astype(int)  # −1: zero
        begins = (np.diff(row, prepend=-1) != 0) | (np.diff(levels, prepend=-2) != 0)  # neighbours of one level are one piece
        row, column, levels = row[begins], column[begins], levels[begins]
        each = self._per_cell * self._columns.width
        left = np.rint(self._plots[-1].across(np.minimum(column * each, self._steps))).astype(int)  # whole px: no seams
        right = np.where(np.diff(row, append=-1) == 0, np.roll(left, -1), ends[row])
        middles = [tidy(at) for at in y]
        paths: list[list[str]] = [[] for _ in range(LEVELS + 2)]
        for level, k, x, wide in zip(*(array.tolist() for array in (levels, row, left, right - left)), strict=True):
            paths[level].append(f"M{x} {middles[k]}h{wide}")
        pieces = (
            f'<path d="{"".join(cells)}" stroke-opacity="{max(level, 0.6) / LEVELS:.2f}"/>'
            for level, cells in enumerate(paths[:-1])
            if cells
        )
        return f'<g stroke="{colour}" stroke-width="16" shape-rendering="crispEdges">{"".join(pieces)}</g>'

    def _ratios(self, ratio: np.ndarray) -> None:
        """Paint a line for each layer, with its number on it and the last value at its end."""
        positive = ratio[ratio > 0]
        ends = _decades(min(positive.min(), USUAL[0]), max(positive.max(), USUAL[1]))
        axes = self._plot("‖update‖ ÷ ‖weights‖", INK, RATIO, ends, log=True)
        left, top, width, height = axes.frame
        high, low = axes.down(USUAL[1]), axes.down(USUAL[0])
        self._parts.append(
            f'<rect x="{tidy(left)}" y="{tidy(high)}" width="{tidy(width)}" height="{tidy(low - high)}" fill="{EDGE}" '
            'fill-opacity=".14"/>'
        )
        self._parts.append(axes.grid_svg(step_ticks(axes), ticks(*axes.y, 5, log=True), WIDE))
        last: list[tuple[float, str]] = []
        numbers = []
        for k in range(ratio.shape[1]):
            some = np.flatnonzero(ratio[:, k] > 0)
            if not len(some):
                continue
            x, y = axes.across(self._middles[some]), axes.down(np.maximum(ratio[some, k], axes.y[0]))
            self._parts.append(line(x, y, INK, 1))
            at = min(len(some) - 1, round(len(some) * (0.12 + 0.07 * k)))
            numbers.append(f'<circle cx="{tidy(x[at])}" cy="{tidy(y[at])}" r="7.5" fill="{PAPER}" stroke="{DIM}"/>')
            numbers.append(text_svg(x[at], y[at] + 3.6, str(k), fill=INK, end="middle"))
            is_bad = self._columns.bad[some[-1] + 1 :, self._layout.gradient.start + k].any()
            last.append((y[-1] + 3.5, f"{k}  {'not finite' if is_bad else short(ratio[some[-1], k])}"))
        self._parts += numbers
        self._parts.append(_with_halo(text_svg(left + width - 5, low - 5, "usual (rule of thumb)", end="end")))
        last.sort()
        places = spread([y for y, _ in last], 11.5, top + height)
        self._parts += [text_svg(WIDE - RIGHT + 8, y, text) for y, (_, text) in zip(places, last, strict=True)]

    def _sentences(self) -> list[str]:
        """Describe the picture in sentences."""
        steps, layers = count(self._steps, "step"), self._watch.layers
        sentences = []
        loss = self._columns.mean[:, self._layout.loss]
        loss = loss[~np.isnan(loss)]
        if len(loss):
            sentences.append(f"Over {steps}, {self._watch.loss_name} goes from {number(loss[0], 3)} to {number(loss[-1], 3)}.")
        for what, part in (("‖gradient‖", self._layout.gradient), ("‖update‖ ÷ ‖weights‖", self._layout.ratio)):
            last = last_of(self._columns.mean[:, part])
            if np.isnan(last).all():
                continue
            least, most = int(np.nanargmin(last)), int(np.nanargmax(last))
            if len(layers) == 1:
                sentences.append(f"At the end, {what} of {layers[0]} is {short(last[0])}.")
            else:
                sentences.append(
                    f"At the end, {what} of {count(len(layers), 'layer')} ranges from {short(last[least])} in {layers[least]} to "
                    f"{short(last[most])} in {layers[most]}."
                )
        bad, width = self._first_bad(), self._columns.width
        if bad is not None:
            where = (
                f"step {group_digits(bad + 1)}" if width == 1 else f"steps {group_digits(bad + 1)} to {group_digits(bad + width)}"
            )
            sentences.append(f"The first loss or gradient that was not finite is at {where}.")
        return sentences


# ---------------------------------------------------------------------------------------------------------------- parts
def value_range(least: float, most: float) -> tuple[tuple[float, float], bool]:
    """Return the ends of an axis for values from `least` to `most`, and whether it is logarithmic."""
    if least > 0 and most > 200 * least:
        return (least, most), True
    if most <= least:
        room = 0.5 * (abs(least) or 1)
        return (least - room, most + room), False
    return (min(least, 0.0) if most > 0 and least < 0.4 * most else least, most), False


def step_ticks(axes: Axes) -> list[Tick]:
    """Return whole steps on the axis."""
    return [Tick(at, group_digits(int(at))) for at, _ in ticks(*axes.x, 8) if at == round(at)]


def path(x: np.ndarray, y: np.ndarray) -> str:
    """Return points as the data of an SVG path."""
    return "M" + "L".join([f"{a:g} {b:g}" for a, b in (np.round(np.stack([x, y], 1), 1) + 0.0).tolist()])


def line(x: np.ndarray, y: np.ndarray, colour: str, wide: float, more: str = "") -> str:
    """Return a line through points as SVG."""
    return f'<path d="{path(x, y)}" fill="none" stroke="{colour}" stroke-width="{wide:g}" stroke-linejoin="round"{more}/>'


def text_svg(x: float, y: float, text: str, *, fill: str = "", weight: int = 0, size: float = 0, end: str = "start") -> str:
    """Return a text as SVG. Omitted attributes are inherited from its group."""
    given = {"font-size": size and f"{size:g}", "fill": fill, "font-weight": weight, "text-anchor": end * (end != "start")}
    looks = "".join(f' {name}="{value}"' for name, value in given.items() if value)
    return f'<text x="{tidy(x)}" y="{tidy(y)}"{looks}>{escape(text)}</text>'


def _with_halo(text: str) -> str:
    """Return a text with a halo, readable on top of lines."""
    return f'<g stroke="{PAPER}" stroke-width="3" paint-order="stroke">{text}</g>'


def short(x: float) -> str:
    """Return a number with two digits: "0.031", "120", "3.1e−6"."""
    return number(float(f"{x:.2g}"), 4)


def last_of(means: np.ndarray) -> np.ndarray:
    """Return the last number measured in each series; NaN if there is none."""
    series = np.arange(means.shape[1])
    padded = np.vstack([np.full(len(series), np.nan), means])
    last: np.ndarray = padded[len(means) - (~np.isnan(padded))[::-1].argmax(0), series]
    return last


def spread(places: list[float], apart: float, bottom: float) -> list[float]:
    """Return increasing positions, moved so that they are at least `apart` from each other and at most `bottom`."""
    for k in range(1, len(places)):
        places[k] = max(places[k], places[k - 1] + apart)
    for k in range(len(places)):
        places[-1 - k] = min(places[-1 - k], bottom - apart * k)
    return places


def _means(means: np.ndarray, counts: np.ndarray, each: int) -> np.ndarray:
    """Return the means of groups of `each` columns from the means of columns; NaN if nothing was measured."""
    starts = np.arange(0, len(means), each)
    many = np.add.reduceat(counts, starts, 0)
    total = np.add.reduceat(np.where(counts > 0, means * counts, 0.0), starts, 0)
    result: np.ndarray = np.divide(total, many, out=np.full(total.shape, np.nan), where=many > 0)
    return result


def _decades(low: float, high: float) -> tuple[float, float]:
    """Return powers of ten below and above positive numbers, at most nine decades apart."""
    last = min(math.ceil(math.log10(high)), 308)
    return 10.0 ** min(max(math.floor(math.log10(max(low, high * 1e-9))), -307), last - 1), 10.0**last


def _scale(low: float, high: float, top: float, colour: str) -> str:
    """Return the colour scale."""
    wide, right = 154, WIDE - RIGHT
    cells = "".join(
        f'<path d="M{right - wide + 11 * k:g} {tidy(top + 8)}h11" stroke-opacity="{(k + 0.6) / LEVELS:.2f}"/>'
        for k in range(LEVELS)
    )
    return (
        f'<g stroke="{colour}" stroke-width="5" shape-rendering="crispEdges">{cells}</g>'
        + text_svg(right - wide - 4, top + 11, number(low, 4), end="end")
        + text_svg(right + 4, top + 11, number(high, 4))
    )


@lru_cache(maxsize=64)
def _labels(names: tuple[str, ...]) -> tuple[float, list[str]]:
    """Return the width for names, and the names. Long names are cut at the start, as their ends differ."""
    room = min(max([NAMES[0], *(text_width(name, SIZE) + 10 for name in names)]), NAMES[1])
    return room, [_shorten(name, room - 9) for name in names]


def _shorten(name: str, room: float) -> str:
    if text_width(name, SIZE) <= room:
        return name
    while text_width(f"…{name}", SIZE) > room:
        name = name[1:]
    return f"…{name}"

"""The axes of a plot: where numbers are in a picture, round numbers on an axis, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from gradlab.explore.drawing import DIM, EDGE, escape, text_width, tidy

SIZE = 10.5  # px of type


class Tick(NamedTuple):
    """A number on an axis and its text."""

    at: float
    text: str


@dataclass(frozen=True)
class Axes:
    """The axes of a plot.

    Attributes
    ----------
    frame : tuple of float
        Left, top, width and height in px.
    x, y : tuple of float
        The numbers at the ends: left and right, bottom and top.
    log : bool
        True if y is logarithmic.
    """

    frame: tuple[float, float, float, float]
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)
    log: bool = False

    def across(self, x: Any) -> Any:
        """Return the distance from the left in px of a number, or of an array of numbers."""
        return self.frame[0] + self.frame[2] * (x - self.x[0]) / (self.x[1] - self.x[0])

    def down(self, y: Any) -> Any:
        """Return the distance from the top in px of a number, or of an array of numbers."""
        low, high = self.y
        if self.log:
            y, low, high = np.log10(y), math.log10(low), math.log10(high)
        return self.frame[1] + self.frame[3] * (1 - (y - low) / (high - low))

    def attributes(self) -> dict[str, str]:
        """Return the axes as data attributes for a live view (static/kit/axes.js), for `Drawing.inline`."""
        return {f"data_{name}": " ".join(f"{n:.7g}" for n in getattr(self, name)) for name in ("frame", "x", "y")}

    def grid_svg(self, across: list[Tick], down: list[Tick], width: float) -> str:
        """Return a grid with its numbers as SVG, for a picture of this width. Numbers below the grid are left out where they
        collide."""
        left, top, wide, height = self.frame
        lines, texts = [], []
        for at, text in apart(across, self.across, SIZE):
            x, room = self.across(at), text_width(text, SIZE) / 2 + 1
            lines.append(f"M{tidy(x)} {tidy(top)}v{tidy(height)}")
            x = min(max(x, room), max(room, width - room))
            texts.append(f'<text x="{tidy(x)}" y="{tidy(top + height + 14)}" text-anchor="middle">{escape(text)}</text>')
        for at, text in down:
            y = self.down(at)
            lines.append(f"M{tidy(left)} {tidy(y)}h{tidy(wide)}")
            texts.append(f'<text x="{tidy(left - 6)}" y="{tidy(y + 3.6)}" text-anchor="end">{escape(text)}</text>')
        grid = f'<path d="{"".join(lines)}" stroke="{EDGE}" stroke-width="0.8" opacity="0.35"/>'
        return f'{grid}<g font-size="{SIZE}" fill="{DIM}">{"".join(texts)}</g>'


def ticks(low: float, high: float, many: int, log: bool = False) -> list[Tick]:
    """Return round numbers from `low` to `high`: steps of 1, 2 or 5 times a power of ten, about `many` and never more than twice
    as many; none if the range is empty or not finite. On a logarithmic axis: powers of ten and, if these are few, 2 and 5 times
    them."""
    if not high > low or many < 1 or not math.isfinite(high - low):
        return []
    if log:
        return _logarithmic(low, high, many)
    step = round_step((high - low) / many)
    if step == 0:
        return []
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if not last - first < 2 * many + 2:
        return []
    positions = [float(f"{k * step:.12g}") + 0.0 for k in range(first, last + 1)]
    large = max(map(abs, positions), default=0.0)
    return [Tick(at, _text(at, step, large)) for at in positions]


def apart(found: list[Tick], place: Callable[[float], float], size: float) -> list[Tick]:
    """Return every tick, or every second, third …, so that their texts do not touch when centred at `place(tick.at)`."""
    for every in range(1, len(found)):
        some = found[::every]
        rooms = (
            (place(b.at) - place(a.at), (text_width(a.text, size) + text_width(b.text, size)) / 2) for a, b in pairwise(some)
        )
        if all(room > needed + 6 for room, needed in rooms):
            return some
    return found[:1]


def round_step(size: float) -> float:
    """Return the least of 1, 2, 5 times a power of ten that is at least the positive number `size`; 0.0 if that underflows."""
    try:
        power = 10.0 ** math.floor(math.log10(size))
    except (ValueError, OverflowError):
        return 0.0
    factor = next((one for one in (1, 2, 5, 10) if one * power >= size * (1 - 1e-9)), 10)
    return float(f"{factor * power:.3g}")


def _logarithmic(low: float, high: float, many: int) -> list[Tick]:
    if low <= 0:
        return []
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    decades = last - first + 1
    if decades < 2:
        numbers = [float(f"{factor * 10.0**power:.3g}") for power in range(first - 1, last + 1) for factor in (1, 2, 5)]
        among = [Tick(at, _power(at)) for at in numbers if low * (1 - 1e-9) <= at <= high * (1 + 1e-9)]
        return among if len(among) > 1 else ticks(low, high, many)
    every = math.ceil(decades / max(2, many))
    return [Tick(float(f"1e{power}"), _power(float(f"1e{power}"))) for power in range(first, last + 1) if power % every == 0]


def _power(at: float) -> str:
    if 0.0099 <= at < 9999:
        return f"{at:g}"
    mantissa, _, exponent = f"{at:.2e}".partition("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}".replace("-", "−")


def _text(at: float, step: float, large: float) -> str:
    if at == 0:
        return "0"
    if large >= 1e5 or large < 1e-3:
        digits = max(0, min(8, math.floor(math.log10(abs(at)) + 1e-9) - math.floor(math.log10(step) + 1e-9)))
        mantissa, _, exponent = f"{at:.{digits}e}".partition("e")
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    return f"{at:.{max(0, min(12, -math.floor(math.log10(step) + 1e-9)))}f}".replace("-", "−")

"""Bars on a common logarithmic scale, for a column of norms."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.drawing import GRADIENT
from gradlab.explore.markup import number
from gradlab.explore.theme import hex_of

INK = hex_of(GRADIENT)
DECADES = 6  # at most; smaller norms have no bar
BLOCKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Scale:
    """A logarithmic scale from 10**low to 10**high."""

    low: int
    high: int

    @classmethod
    def of(cls, norms: Iterable[float]) -> Scale | None:
        """Return the scale of whole decades that contains the norms; None if none is positive and finite."""
        known = [norm for norm in norms if 0 < norm < math.inf]
        if not known:
            return None
        high = math.ceil(math.log10(max(known)) - 1e-9)
        low = math.floor(math.log10(min(known)) - 0.3)  # so that the smallest norm has a bar
        return cls(max(min(low, high - 1), high - DECADES), high)

    def share(self, norm: float) -> float:
        """Return the length of a bar, from 0 to 1."""
        if not 0 < norm < math.inf:
            return 0.0
        return min(1.0, max(0.0, (math.log10(norm) - self.low) / (self.high - self.low)))

    def html(self, norm: float, width: int) -> str:
        """Return a bar of at most `width` pixels for a line of text. It is a border, because backgrounds may not be printed."""
        wide = self.share(norm) * width
        return f'<i style="display:inline-block;width:{max(wide, 1):.0f}px;border-top:9px solid {INK}"></i>' if wide else ""

    def columns(self, norms: Iterable[float], width: int) -> str:
        """Return a small vertical bar for each norm."""
        norms = list(norms)
        wide = max(1, min(6, width // max(len(norms), 1) - 1))
        bars = "".join(
            f'<i style="display:inline-block;width:{wide}px;border-top:{round(1 + 13 * self.share(norm))}px solid {INK};'
            'margin-right:1px"></i>'
            for norm in norms[: width // (wide + 1)]
        )
        return f'<span style="text-align:left;line-height:1;white-space:nowrap">{bars}</span>'

    def text(self, norm: float, width: int = 10) -> str:
        """Return a bar of block characters."""
        return "█" * round(self.share(norm) * width) if self.share(norm) else ""

    def blocks(self, norms: Iterable[float]) -> str:
        """Return a block character for each norm."""
        return "".join(BLOCKS[round(self.share(norm) * 7)] for norm in norms)

    @property
    def ends(self) -> tuple[str, str]:
        """The smallest and the largest number of the scale, short: "0.01", "1e−4"."""
        low, high = (min(number(10.0**k), f"1e{k}".replace("-", "−"), key=len) for k in (self.low, self.high))
        return low, high

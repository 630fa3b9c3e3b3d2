"""Histograms: the number of values in each of several equal parts of a range."""

from __future__ import annotations

from collections.abc import Sequence

from gradlab.explore.drawing import Drawing, tidy
from gradlab.explore.markup import count

WIDE, TALL = 160.0, 38.0  # px


def histogram(bins: Sequence[int], ends: tuple[str, str], colour: str, name: str) -> Drawing:
    """Draw the number of values in each part of a range.

    Parameters
    ----------
    bins : sequence of int
    ends : (str, str)
        The least and the greatest number.
    colour : str
        Colour of the bars.
    name : str
        What the numbers are.
    """
    each, most = WIDE / len(bins), max(*bins, 1)
    bars = "".join(
        f'<rect x="{tidy(each * k)}" y="{tidy(TALL - tall)}" width="{tidy(each - 1)}" height="{tidy(tall)}">'
        f"<title>{many}</title></rect>"
        for k, many in enumerate(bins)
        if (tall := max(1.0, TALL * many / most) if many else 0.0)
    )
    said = f"{count(sum(bins), 'number')} from {ends[0]} to {ends[1]}, in {len(bins)} equal parts"
    return Drawing(
        f'<g fill="{colour}">{bars}</g>', WIDE, TALL, f"{name}, {said}: {', '.join(map(str, bins))}", f"{name}\n{said}"
    )

"""Layout of a heat map: its cells, the gaps between blocks of columns, the labels, and a strip beside or below.

Cells are as large as the room allows, up to 30 px, and roughly square. Where labels would collide, only those of round elements
are shown (at the element's position in a cell of many), or labels are rotated if the columns are wide enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gradlab.explore.drawing import text_width

PITCH = 30  # maximum size of a cell including its gap, px
LETTERS = 10.5  # size of the labels, px
APART = 10.0  # between two blocks, px
BLOCKS = 20  # from this number on, blocks are not separated
BESIDE = 12  # px from the cells to the strip
ROUND: list[int] = [s * 10**power for power in range(12) for s in (1, 2, 5)]  # steps between labels


class Axis:
    """Cells along one side, and the names of their elements.

    Parameters
    ----------
    labels : sequence of str, or None
        One for each element; element numbers by default.
    starts : ndarray of int
        The first element of each cell.
    end : int
        End of the last cell.
    blocks : list of (int, int)
        The arrays that the elements belong to: the number of elements of each, and the length of its last axis. Round elements
        are counted separately in each array, along its last axis.
    """

    def __init__(self, labels: Sequence[str] | None, starts: np.ndarray, end: int, blocks: list[tuple[int, int]]) -> None:
        self.labels, self.starts, self.end, self.blocks = labels, starts, end, blocks
        self.first = int(starts[0]) if len(starts) else end
        self.size = end - self.first
        self.exact = len(starts) == self.size  # each cell is one element

    def label(self, element: int, length: int = 16) -> str:
        """Return the label of an element."""
        return shorten_label(str(element) if self.labels is None else str(self.labels[element]), length)

    def extent(self, k: int) -> str:
        """Return the elements of cell `k` as text: "3", or "4 … 7"."""
        first, end = int(self.starts[k]), self.end if k + 1 == len(self.starts) else int(self.starts[k + 1])
        return self.label(first) + (f" … {self.label(end - 1)}" if end - first > 1 else "")

    def place(self, element: int) -> float:
        """Return the start of an element, in cells."""
        k = int(np.searchsorted(self.starts, element, side="right")) - 1
        end = self.end if k + 1 == len(self.starts) else int(self.starts[k + 1])
        return k + (element - int(self.starts[k])) / (end - int(self.starts[k]))

    def round_elements(self, least: float) -> Iterator[int]:
        """Yield round elements at least `least` cells apart: every 1st, 2nd, 5th, 10th … along the last axis of each block; if
        that axis is shorter than `least`, every 1st, 2nd, 5th … start of it."""
        stops = np.cumsum([0, *(size for size, _ in self.blocks)]).tolist()
        for (size, last), (start, stop) in zip(self.blocks, pairwise(stops), strict=True):
            last = max(1, last)
            within = least <= last or last >= size
            line, step = (last, round_up(least)) if within else (last * round_up(least / last), size)
            for at in range(start + max(0, self.first - start) // line * line, min(stop, self.end), line):
                skipped = max(0, self.first - at) // step * step if within else 0
                for i in range(at + skipped, min(stop, self.end, at + line), step):
                    if i >= self.first and (i == at or at + line - i >= least or at + line >= stop):
                        yield i

    def widest(self, least: float) -> float:
        """Return the width of the widest label, px; if there are many elements, of those at cells."""
        some = self.round_elements(least) if self.size <= 1000 else (int(k) for k in self.starts)
        return max((text_width(self.label(k), LETTERS) for k in some), default=0.0)


@dataclass(frozen=True)
class Layout:
    """Positions of the parts of a heat map, px.

    Attributes
    ----------
    x, y : ndarray
        Start of each column and each row of cells.
    wide, high : float
        Size of a cell including the gap after it.
    gap : float
    names : list of (float, float, float, str)
        Of the blocks of columns: middle, baseline, room, name.
    rows : list of (float, float, str)
        Labels beside the rows: right end, baseline, text.
    columns : list of (float, float, str)
        Labels above the columns: middle, baseline, text.
    upright : bool
        Whether the labels above the columns are rotated.
    thick : float
        Width, or height, of a strip.
    across : bool or None
        Whether there is a strip at the right (True), below (False), or none.
    """

    x: np.ndarray
    y: np.ndarray
    wide: float
    high: float
    gap: float
    names: list[tuple[float, float, float, str]]
    rows: list[tuple[float, float, str]]
    columns: list[tuple[float, float, str]]
    upright: bool
    thick: float
    across: bool | None

    @property
    def left(self) -> float:
        """Left end of the cells."""
        return float(self.x[0])

    @property
    def right(self) -> float:
        """Right end of the cells, including the last gap."""
        return float(self.x[-1]) + self.wide

    @property
    def bottom(self) -> float:
        """Lower end of the cells, including the last gap."""
        return float(self.y[-1]) + self.high

    @property
    def strip(self) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Starts of the columns and the rows of the strip, and the width and height of its cells including gaps."""
        if self.across:
            return np.array([self.right + BESIDE]), self.y, self.thick, self.high
        return self.x, np.array([self.bottom + BESIDE]), self.wide, self.thick

    @property
    def end(self) -> tuple[float, float]:
        """Extent of cells, strip and labels: px from the left, and from the top."""
        right, bottom = self.right, self.bottom
        if self.across is not None:
            right, bottom = (right + BESIDE + self.thick, bottom) if self.across else (right, bottom + BESIDE + self.thick)
        if self.columns and not self.upright:
            middle, _, name = self.columns[-1]
            right = max(right, middle + text_width(name, LETTERS) / 2)
        return right, bottom


def lay_out(
    rows: Axis,
    columns: Axis,
    blocks: list[tuple[str, int]],
    *,
    side: float,
    top: float = 2.0,
    pitch: float = PITCH,
    separate: bool = True,
    written: float = 0.0,
    room: float | None = None,
    across: bool | None = None,
) -> Layout:
    """Lay out a heat map.

    Parameters
    ----------
    rows, columns : Axis
    blocks : list of (str, int)
        Names of the blocks of columns, and the first cell of each; empty if they are not named.
    side : float
        Longer side of a large map.
    pitch : float
        Maximum size of a cell, including the gap to the next.
    top : float
        Upper end of the drawing.
    separate : bool
        Whether cells are drawn separately, with gaps.
    written : float
        Width of the numbers in cells; 0 if there are none.
    room : float, optional
        Available width.
    across : bool, optional
        Whether there is a strip at the right (True) or below (False); none by default.
    """
    m, n = len(rows.starts), len(columns.starts)
    starts = [column for _, column in blocks] or [0]
    space = APART if 1 < len(blocks) < BLOCKS else 0.0
    high = min(pitch, side / m)
    row_least = (LETTERS + 3) / (high * m / rows.size)
    left = rows.widest(row_least) + 10
    spare = side
    if room is not None:
        spare = min(side, max(90.0, room - left - space * (len(starts) - 1) - ((BESIDE + pitch + 4) if across else 4)))
    wide = min(pitch, spare / n)
    high, wide = min(high, max(14.0, 3 * wide)), min(wide, max(14.0, 3 * high))
    row_least = (LETTERS + 3) / (high * m / rows.size)
    thick = max(LETTERS, wide if across else high)
    if written:
        wide = max(wide, 10 + written) if room is None else min(10 + written, spare / n)
        thick = 10 + written if across else thick
    gap = (2.0 if min(high, wide) >= 12 else 1.0) if separate else 0.0
    longest = columns.widest(1)
    least = (longest + 6) / (wide * n / columns.size)
    upright = columns.exact and least > 2 and wide >= LETTERS + 3  # rotate rather than leave out
    names = top + 12
    top += (16.0 if blocks else 0.0) + (longest + 10 if upright else 18)
    before = np.searchsorted(starts, np.arange(n), side="right") - 1  # blocks to the left of each column
    x = left + np.arange(n) * wide + before * space
    y = top + np.arange(m) * high
    named = [
        ((x[column] + x[stop - 1] + wide - gap) / 2, names, x[stop - 1] + wide - x[column], name)
        for (name, column), stop in zip(blocks, [*starts[1:], n], strict=bool(blocks))
        if stop > column
    ]
    return Layout(
        x,
        y,
        wide,
        high,
        gap,
        named,
        [
            (left - 8, top + rows.place(i) * high + ((high - gap) / 2 if rows.exact else 0) + 3.7, rows.label(i))
            for i in rows.round_elements(row_least)
        ],
        list(_above(columns, x, wide, gap, top - 8, 1.0 if upright else least, upright)),
        upright,
        thick,
        across,
    )


def _above(
    columns: Axis, x: np.ndarray, wide: float, gap: float, y: float, least: float, upright: bool
) -> Iterator[tuple[float, float, str]]:
    """Yield the labels above the columns; unless they are rotated, leave out those that would touch the previous one."""
    free = -np.inf
    for element in columns.round_elements(least):
        k, part = divmod(columns.place(element), 1)
        middle = float(x[int(k)]) + ((wide - gap) / 2 if columns.exact else part * wide)
        name = columns.label(element)
        room = text_width(name, LETTERS) / 2
        if upright or middle - room >= free + 4:
            yield middle, y, name
            free = middle + room


def round_up(value: float) -> int:
    """Return the least of 1, 2, 5, 10, 20, … that is at least `value`."""
    return next(step for step in ROUND if step >= value)


def shorten_label(label: str, length: int = 16) -> str:
    """Shorten a label to `length` characters. The end is kept, since it has the indices."""
    label = "".join(c if c.isprintable() else "�" for c in label)
    if len(label) <= length:
        return label
    return f"{label[: length - 7]}…{label[-6:]}" if length >= 10 else f"{label[: length - 1]}…"

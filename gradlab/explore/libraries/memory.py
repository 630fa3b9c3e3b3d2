"""Memory regions of tensors, and whether two tensors share any elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Region(NamedTuple):
    """The bytes of a tensor in its memory: the first one, and the size and step of each axis longer than 1."""

    start: int
    axes: tuple[tuple[int, int], ...]
    width: int  # of an element; 0 for a tensor without elements

    @property
    def end(self) -> int:
        return self.start + sum((size - 1) * step for size, step in self.axes) + self.width


def region(start: int, shape: Sequence[int], steps: Sequence[int], width: int) -> Region:
    """Return a region from the position of the first element, and the shape and steps in bytes."""
    if 0 in shape:
        return Region(start, (), 0)
    axes = [(size, step) for size, step in zip(shape, steps, strict=True) if size > 1 and step]
    start += sum((size - 1) * step for size, step in axes if step < 0)
    return Region(start, tuple((size, abs(step)) for size, step in axes), width)


def may_overlap(a: Region | None, b: Region | None) -> bool:
    """Return whether two regions of one memory may have a byte in common. None is an unknown region."""
    if a is None or b is None:
        return True
    if not a.width or not b.width or a.end <= b.start or b.end <= a.start:
        return False
    return not any(_apart(a, b, step) for step in {step for _, step in (*a.axes, *b.axes)})


def _apart(a: Region, b: Region, row: int) -> bool:
    """Return whether two regions use different columns when the memory is seen as rows of `row` bytes."""
    (low, high), (start, end) = _columns(a, row), _columns(b, row)
    return high <= row and end <= row and (high <= start or end <= low)


def _columns(one: Region, row: int) -> tuple[int, int]:
    low = one.start % row
    return low, low + sum((size - 1) * step for size, step in one.axes if step % row) + one.width


def covers(a: Region | None, b: Region | None) -> bool:
    """Return whether a region certainly contains all bytes of another."""
    if a is None or b is None:
        return False
    if a == b:
        return True
    size = a.width
    for length, _ in a.axes:
        size *= length
    return size == a.end - a.start and a.start <= b.start and b.end <= a.end

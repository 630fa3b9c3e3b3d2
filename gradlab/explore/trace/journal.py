"""What the sweeps of a cell brought to each leaf, and what the program then made of the leaf: plain numbers, one entry a sweep.

A leaf is looked at when a sweep has reached it, and again when the next one does or the cell ends; what it moved by in between
is the step. Up to `SAMPLE` elements are copied for that, of more of them evenly spaced ones, and only until the next look.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLE = 4096  # elements of a leaf that are compared with what they were
LEAVES = 400  # of one sweep
SWEEPS = 200


@dataclass(slots=True)
class Entry:
    """A leaf at one sweep, and until the next.

    Attributes
    ----------
    name : str
        Its name at that moment, or "".
    key : int
        What tells it from other leaves of the cell.
    parameter : bool
        Whether it is a `Parameter`.
    size : int
        How many elements it has.
    weight, arrived : float
        ‖w‖ and ‖g‖ of the elements that were looked at, g being what this sweep brought.
    before, after : float or None
        ‖.grad‖ of all elements before and after the sweep; None of none.
    turn : float or None
        The cosine between g and what the sweep before brought to it; None where that was not seen.
    moved : float or None
        ‖Δw‖ until the next look; None where the leaf is gone, or sweeps went by unseen in between and it did move.
    along : float or None
        ⟨Δw, g⟩.
    stuck : float or None
        The share of the elements with g ≠ 0 that are what they were.
    written : bool
        Whether its memory was written to, whatever it holds now.
    """

    name: str
    key: int
    parameter: bool
    size: int
    weight: float
    arrived: float
    before: float | None = None
    after: float | None = None
    turn: float | None = None
    moved: float | None = None
    along: float | None = None
    stuck: float | None = None
    written: bool = False


@dataclass(slots=True)
class Swept:
    """One sweep that wrote `.grad`.

    Attributes
    ----------
    number : int
        From 1, of all of the cell.
    event : int
        Its place among the events of the trace.
    root : str
        What backward was called on, "loss"; "" for no name.
    loss : float or None
        Its value, if it is one number.
    operation : str
        What made it: "MseLossBackward0".
    entries : list of Entry
    """

    number: int
    event: int
    root: str
    loss: float | None
    operation: str
    entries: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class _Known:
    entry: Entry
    tensor: Any  # a weak reference
    weights: np.ndarray
    gradient: np.ndarray
    version: int
    skipped: int


class Journal:
    """Keeps the last `SWEEPS` sweeps, and of each leaf a sample of what it and its gradient were at the last of them."""

    def __init__(self) -> None:
        self.sweeps: deque[Swept] = deque(maxlen=SWEEPS)
        self.skipped = 0  # sweeps that nobody looked at
        self._known: dict[int, _Known] = {}

    def clear(self) -> None:
        self.sweeps.clear()
        self._known.clear()

    def rename(self, keys: Mapping[int, int]) -> None:
        """Keys of leaves are replaced with others."""
        for swept in self.sweeps:
            for entry in swept.entries:
                entry.key = keys.get(entry.key, entry.key)
        self._known = {known.entry.key: known for known in self._known.values()}

    def entered(
        self, swept: Swept, entry: Entry, tensor: Any, weakly: Any, weights: np.ndarray, gradient: np.ndarray, version: int
    ) -> None:
        """A sweep has reached a leaf."""
        if len(swept.entries) >= LEAVES:
            return
        old = self._known.get(entry.key)
        if old is not None and old.tensor() is tensor:
            self._looked_at(old, weights, version)
            if old.skipped == self.skipped and old.gradient.shape == gradient.shape:
                entry.turn = cosine(gradient, old.gradient)
        self._known[entry.key] = _Known(entry, weakly, weights, gradient, version, self.skipped)
        swept.entries.append(entry)

    def ended(
        self, sample: Callable[[Any], np.ndarray | None], version: Callable[[Any], int], ours: Callable[[Any], bool]
    ) -> None:
        """The cell is over: look once more at every leaf of a library."""
        for known in list(self._known.values()):
            tensor = known.tensor()
            if tensor is not None and ours(tensor):
                weights = sample(tensor)
                if weights is not None:
                    self._looked_at(known, weights, version(tensor))
                del self._known[known.entry.key]

    def _looked_at(self, known: _Known, weights: np.ndarray, version: int) -> None:
        entry = known.entry
        entry.written = version != known.version
        if weights.shape != known.weights.shape:
            return
        if known.skipped != self.skipped:
            entry.moved = 0.0 if np.array_equal(weights, known.weights) else None
            return
        with np.errstate(all="ignore"):
            step = weights - known.weights
            entry.moved = float(np.linalg.norm(step))
            entry.along = float(step @ known.gradient) if step.shape == known.gradient.shape else None
            pushed = known.gradient != 0 if step.shape == known.gradient.shape else np.zeros(0, bool)
            if pushed.any():
                entry.stuck = float((step[pushed] == 0).mean())


def cosine(a: np.ndarray, b: np.ndarray) -> float | None:
    """⟨a, b⟩ / (‖a‖ ‖b‖); None where that is none."""
    with np.errstate(all="ignore"):
        below = float(np.linalg.norm(a) * np.linalg.norm(b))
        above = float(a @ b)
    return above / below if below > 0 and math.isfinite(above) and math.isfinite(below) else None


def spaced(flat: Any) -> Any:
    """Up to `SAMPLE` elements of a flat array or tensor, evenly spaced."""
    return flat[:: _stride(flat.shape[0])]


def looked_at(size: int) -> int:
    """How many elements of a leaf are looked at."""
    return -(-size // _stride(size))


def _stride(size: int) -> int:
    return max(1, -(-size // SAMPLE))

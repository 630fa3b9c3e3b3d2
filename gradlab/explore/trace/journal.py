"""A journal of sweeps: for each leaf, the norm of its gradient and how the program then changed the leaf.

A leaf is sampled when a sweep reaches it, and again at the next sweep or at the end of the cell. The difference is the step. A
sample is a copy of at most `SAMPLE` evenly spaced elements, and it is kept only until the next one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLE = 4096  # elements of a leaf that are compared between sweeps
LEAVES = 400  # of one sweep
SWEEPS = 200


@dataclass(slots=True)
class Entry:
    """A leaf at one sweep, and its change until the next.

    Attributes
    ----------
    name : str
        Its name at the time of the sweep, or "".
    key : int
        Its key (`Identities`).
    parameter : bool
        True for a `Parameter`.
    size : int
        The number of elements.
    weight, arrived : float
        ‖w‖ and ‖g‖ of the sampled elements, where g is the gradient that this sweep computed.
    before, after : float or None
        ‖.grad‖ of all elements before and after the sweep; None if there was no `.grad`.
    turn : float or None
        The cosine between g and the gradient of the previous sweep; None if that was not recorded.
    moved : float or None
        ‖Δw‖ until the next sample; None if the leaf was deleted, or if it changed and sweeps in between were not recorded.
    along : float or None
        ⟨Δw, g⟩.
    stuck : float or None
        The share of the elements with g ≠ 0 that did not change.
    written : bool
        True if its memory was written to, even if the values are the same.
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
class SweepEntry:
    """One sweep that wrote `.grad`.

    Attributes
    ----------
    number : int
        The number of the sweep in the cell, from 1.
    event : int
        Its position in the events of the trace.
    root : str
        The name of the tensor on which backward was called, "loss"; "" if it has none.
    loss : float or None
        The value of that tensor if it has one element.
    operation : str
        The operation that computed it: "MseLossBackward0".
    entries : list of Entry
    scale : float
        The factor by which a GradScaler had multiplied the loss. The gradients in `entries` are divided by it.
    """

    number: int
    event: int
    root: str
    loss: float | None
    operation: str
    entries: list[Entry] = field(default_factory=list)
    scale: float = 1.0


@dataclass(slots=True)
class _Known:
    entry: Entry
    tensor: Any  # a weak reference
    weights: np.ndarray
    gradient: np.ndarray
    version: int
    skipped: int


class Journal:
    """The last `SWEEPS` sweeps, and a sample of each leaf and its gradient at the last of them."""

    def __init__(self) -> None:
        self.sweeps: deque[SweepEntry] = deque(maxlen=SWEEPS)
        self.skipped = 0  # sweeps that were not recorded
        self._known: dict[int, _Known] = {}

    def clear(self) -> None:
        self.sweeps.clear()
        self._known.clear()

    def rename(self, keys: Mapping[int, int]) -> None:
        """Replace keys of leaves."""
        for swept in self.sweeps:
            for entry in swept.entries:
                entry.key = keys.get(entry.key, entry.key)
        self._known = {known.entry.key: known for known in self._known.values()}

    def add(
        self, swept: SweepEntry, entry: Entry, tensor: Any, weakly: Any, weights: np.ndarray, gradient: np.ndarray, version: int
    ) -> None:
        """Add a leaf that a sweep reached."""
        if len(swept.entries) >= LEAVES:
            return
        old = self._known.get(entry.key)
        if old is not None and old.tensor() is tensor:
            self._compare(old, weights, version)
            if old.skipped == self.skipped and old.gradient.shape == gradient.shape:
                entry.turn = cosine(gradient, old.gradient)
        self._known[entry.key] = _Known(entry, weakly, weights, gradient, version, self.skipped)
        swept.entries.append(entry)

    def finish(
        self, sample: Callable[[Any], np.ndarray | None], version: Callable[[Any], int], ours: Callable[[Any], bool]
    ) -> None:
        """Sample each leaf of a library once more at the end of the cell."""
        for known in list(self._known.values()):
            tensor = known.tensor()
            if tensor is not None and ours(tensor):
                weights = sample(tensor)
                if weights is not None:
                    self._compare(known, weights, version(tensor))
                del self._known[known.entry.key]

    def _compare(self, known: _Known, weights: np.ndarray, version: int) -> None:
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
    """Return ⟨a, b⟩ / (‖a‖ ‖b‖), or None if it is undefined."""
    with np.errstate(all="ignore"):
        below = float(np.linalg.norm(a) * np.linalg.norm(b))
        above = float(a @ b)
    return above / below if below > 0 and math.isfinite(above) and math.isfinite(below) else None


def spaced_sample(flat: Any) -> Any:
    """Return at most `SAMPLE` evenly spaced elements of a flat array or tensor."""
    return flat[:: _stride(flat.shape[0])]


def sample_size(size: int) -> int:
    """Return the number of sampled elements of a leaf."""
    return -(-size // _stride(size))


def _stride(size: int) -> int:
    return max(1, -(-size // SAMPLE))

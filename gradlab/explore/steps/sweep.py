"""Record one reverse sweep: the cotangents that nodes pass to their inputs, and the sums so far.

Sums are computed as in the engine, in the order and the dtype of the cotangents. When a node runs, or a leaf gets its gradient,
the actual upstream gradient replaces the last sum. Cotangents are copied to the host while there is room; of later ones only
statistics are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.core.numpy_warnings import silence
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.libraries import Library

ROOM = 256 * 2**20  # bytes of cotangents that are stored
DENSE = 16  # elements up to which a local derivative is a matrix
DIAGONAL = 4096  # elements up to which it is a diagonal
RUNS = 20_000  # maximal number of rules that are run again for local derivatives
CLOSE = 1e-4  # a relative difference that is larger than rounding errors
CLOSE_HALF = 0.05

Key = tuple[Any, int]  # a node and the index of its output


class Handed:
    """The cotangent that a node passes to one input."""

    __slots__ = ("downstream", "key", "local", "place", "total")

    def __init__(self, key: Key, downstream: Any, total: Any, place: int) -> None:
        self.key, self.downstream, self.total, self.place = key, downstream, total, place
        self.local: Any = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the cotangent if its numbers are stored."""
        return self.downstream.shape if isinstance(self.downstream, np.ndarray) else None


class Visit:
    """The run of a node in the sweep."""

    __slots__ = ("handed", "hooked", "likes", "node", "targets", "upstream")

    def __init__(self, node: Any, upstream: list[Any], likes: list[Any], targets: list[Key | None], hooked: bool) -> None:
        self.node, self.upstream, self.likes, self.targets, self.hooked = node, upstream, likes, targets, hooked
        self.handed: dict[int, Handed] = {}  # by argument


class SweepRecord:
    """The record of a sweep.

    Attributes
    ----------
    visits : list of Visit
        In the order of the sweep, without leaves.
    held : int
        Bytes that are stored.
    """

    def __init__(self, library: Library, room: int = ROOM) -> None:
        self.library, self.room = library, room
        self.visits: list[Visit] = []
        self.held = 0
        self._totals: dict[Key, Any] = {}
        self._last: dict[Key, Handed] = {}
        self._count: dict[Key, int] = {}

    def start(self, key: Key, cotangent: Any) -> Any:
        """Record the cotangent with which the sweep starts, and return it as stored."""
        self._totals[key] = held = self._hold(cotangent)
        return held

    def see(self, node: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """Record that a node computed cotangents from its upstream gradient `g`. For a leaf, `g` is its gradient."""
        library = self.library
        if library.variable(node) is not None or library.name_of(node) == "AccumulateGrad":
            if g is not None:
                self.on_arrival((node, 0), library.parts(g)[0])
            return
        parts = library.parts(g)
        upstream, hooked = [], False
        for number, part in enumerate(parts):
            held, changed = self.on_arrival((node, number), part) if part is not None else (None, False)
            upstream.append(held)
            hooked |= changed
        likes = [None if part is None else library.like(part) for part in parts]
        targets = library.targets(node)
        visit = Visit(node, upstream, likes, targets, hooked)
        for at, (target, cotangent) in enumerate(zip(targets, cotangents, strict=False)):
            if target is not None and cotangent is not None:
                arriving = library.fit(cotangent, node, target[0])
                if arriving is not None:
                    visit.handed[at] = self._hand(target, arriving)
        self.visits.append(visit)

    def on_arrival(self, key: Key, cotangent: Any) -> tuple[Any, bool]:
        """Return the complete upstream gradient, and True if it differs from the sum of the cotangents that were passed."""
        total, changed = self._totals.get(key), False
        if isinstance(total, np.ndarray):
            numbers = self.library.numbers(cotangent)
            if numbers.dtype == total.dtype and np.array_equal(numbers, total, equal_nan=numbers.dtype.kind in "fc"):
                return total, False
            tolerance = CLOSE_HALF if numbers.dtype.itemsize < 4 or self._is_half(cotangent) else CLOSE
            changed = numbers.shape != total.shape or not np.allclose(numbers, total, tolerance, 1e-7, equal_nan=True)
            self.held += numbers.nbytes
            total = _frozen(numbers)
        else:
            total = self._hold(cotangent)
        self._totals[key] = total
        if (last := self._last.get(key)) is not None and (not changed or self.library.variable(key[0]) is not None):
            last.total = total
        return total, changed

    def _is_half(self, cotangent: Any) -> bool:
        return "16" in str(self.library.like(cotangent)[0])

    def _hand(self, key: Key, cotangent: Any) -> Handed:
        before, held = self._totals.get(key), self._hold(cotangent)
        total = held
        if key in self._totals:
            total = None
            if isinstance(before, np.ndarray) and isinstance(held, np.ndarray) and self.held + held.nbytes <= self.room:
                with silence():
                    total = _frozen(np.asarray(before + held, held.dtype))
                self.held += total.nbytes
        self._totals[key] = total
        place = self._count.get(key, 0)
        self._count[key] = place + 1
        self._last[key] = handed = Handed(key, held, total, place)
        return handed

    def _hold(self, cotangent: Any) -> Any:
        """Return a copy of a cotangent if there is room, else its statistics."""
        library = self.library
        size = library.bytes_of(cotangent)
        if self.held + size <= self.room:
            self.held += size
            return _frozen(library.numbers(cotangent))
        return library.summary(cotangent)

    # ------------------------------------------------------------------------------------------------ local derivatives
    def locals(self) -> None:
        """Compute the local derivatives that are small by running each rule again. Call it after the sweep."""
        left = RUNS
        for visit in self.visits:
            if left <= 0:
                return
            left -= self._local(visit)

    def _local(self, visit: Visit) -> int:
        """Compute the local derivatives of one node and return how many times its rule was run."""
        library, node = self.library, visit.node
        outputs = visit.upstream
        if not visit.handed or not all(part is None or isinstance(part, np.ndarray) for part in outputs):
            return 0
        rows = int(sum(part.size for part in outputs if part is not None))
        sizes = [handed.downstream.size for handed in visit.handed.values() if isinstance(handed.downstream, np.ndarray)]
        small = 0 < rows <= DENSE and any(0 < size <= DENSE for size in sizes) and max(sizes, default=0) <= DIAGONAL
        alone = not small and len(outputs) == 1 and 0 < rows <= DIAGONAL and library.name_of(node) in _elementwise()
        if not (small or alone) or any(part is None for part in outputs) or not library.rule_is_known(node):
            return 0
        try:
            if alone:
                self._diagonal(visit)
                return 1
            self._dense(visit, rows)
        except Exception:  # noqa: BLE001  (a rule that cannot be run again: saved tensors may be available only once)
            for handed in visit.handed.values():
                handed.local = None
        return rows

    def _diagonal(self, visit: Visit) -> None:
        output = visit.upstream[0]
        cotangents = self._run(visit, [np.ones_like(output)])
        for at, handed in visit.handed.items():
            c = cotangents[at]
            if isinstance(handed.downstream, np.ndarray) and handed.downstream.shape == output.shape and c is not None:
                handed.local = _frozen(c.reshape(-1))
                self.held += c.nbytes

    def _dense(self, visit: Visit, rows: int) -> None:
        by_place: dict[int, list[np.ndarray]] = {}
        for k, output in enumerate(visit.upstream):
            for i in range(output.size):
                units = [np.zeros(part.shape, part.dtype) for part in visit.upstream]
                units[k].flat[i] = 1
                for at, c in enumerate(self._run(visit, units)):
                    if c is not None and at in visit.handed and (shape := visit.handed[at].shape) is not None:
                        c = sum_to_shape(c, shape)
                        if c.size <= DENSE:
                            by_place.setdefault(at, []).append(c.reshape(-1))
        for at, row in by_place.items():
            if len(row) == rows:
                matrix = np.array(row)
                scalar = matrix.size == 1 and not visit.upstream[0].ndim and not visit.handed[at].downstream.ndim
                visit.handed[at].local = matrix.item() if scalar else _frozen(matrix)
                self.held += matrix.nbytes

    def _run(self, visit: Visit, outputs: list[np.ndarray]) -> list[np.ndarray | None]:
        return self.library.alone(visit.node, outputs, visit.likes)


def sum_to_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum the result of a rule for a broadcast input to the shape of the input."""
    extra = array.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 != array.shape[extra + i]))
    return array.sum(axis=axes).reshape(shape) if axes else array


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


_NAMES: set[str] = set()


def _elementwise() -> set[str]:
    """Return the names of nodes of elementwise operations, which are the same in PyTorch."""
    if not _NAMES:
        _NAMES.update(op.node_name for op in PRIMITIVES.values() if op.kind == "elementwise")
    return _NAMES

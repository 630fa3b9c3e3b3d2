"""One reverse sweep, watched: what was handed from node to node, and what had arrived by then.

Sums are added up anew, in the order in which cotangents arrive and in their dtype, as the engine does; when a node's turn comes,
or a leaf has its gradient, what has arrived there in truth takes the place of the last sum. Cotangents are copied to the host as
long as there is room for them; of further ones there is how they are distributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gradlab.core.numpy_warnings import silence
from gradlab.core.registry import PRIMITIVES
from gradlab.explore.libraries import Library

ROOM = 256 * 2**20  # bytes of cotangents that are kept
DENSE = 16  # elements up to which a local derivative is a matrix
DIAGONAL = 4096  # and up to which it is a diagonal
RUNS = 20_000  # how often rules are run again for local derivatives, in all
CLOSE = 1e-4  # a relative difference that rounding does not make
CLOSE_HALF = 0.05

Key = tuple[Any, int]  # a node, and which of its outputs


class Handed:
    """What a node handed to one target."""

    __slots__ = ("downstream", "key", "local", "place", "total")

    def __init__(self, key: Key, downstream: Any, total: Any, place: int) -> None:
        self.key, self.downstream, self.total, self.place = key, downstream, total, place
        self.local: Any = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Of what was handed on, where its numbers are kept."""
        return self.downstream.shape if isinstance(self.downstream, np.ndarray) else None


class Visit:
    """A node's turn."""

    __slots__ = ("handed", "hooked", "likes", "node", "targets", "upstream")

    def __init__(self, node: Any, upstream: list[Any], likes: list[Any], targets: list[Key | None], hooked: bool) -> None:
        self.node, self.upstream, self.likes, self.targets, self.hooked = node, upstream, likes, targets, hooked
        self.handed: dict[int, Handed] = {}  # by argument


class SweepRecord:
    """What is seen of a sweep.

    Attributes
    ----------
    visits : list of Visit
        In the order of the sweep, without leaves.
    held : int
        Bytes that are kept.
    """

    def __init__(self, library: Library, room: int = ROOM) -> None:
        self.library, self.room = library, room
        self.visits: list[Visit] = []
        self.held = 0
        self._totals: dict[Key, Any] = {}
        self._last: dict[Key, Handed] = {}
        self._count: dict[Key, int] = {}

    def start(self, key: Key, cotangent: Any) -> Any:
        """What the sweep starts with."""
        self._totals[key] = held = self._hold(cotangent)
        return held

    def see(self, node: Any, g: Any, sources: Sequence[Any], cotangents: Sequence[Any]) -> None:
        """A node turned the cotangent `g` into others; of a leaf: `g` arrived there."""
        library = self.library
        if library.variable(node) is not None or library.name_of(node) == "AccumulateGrad":
            if g is not None:
                self.arrived((node, 0), library.parts(g)[0])
            return
        parts = library.parts(g)
        upstream, hooked = [], False
        for number, part in enumerate(parts):
            held, changed = self.arrived((node, number), part) if part is not None else (None, False)
            upstream.append(held)
            hooked |= changed
        likes = [None if part is None else library.like(part) for part in parts]
        targets = library.targets(node)
        visit = Visit(node, upstream, likes, targets, hooked)
        for at, (target, cotangent) in enumerate(zip(targets, cotangents, strict=False)):
            if target is not None and cotangent is not None:
                arriving = library.fitted(cotangent, node, target[0])
                if arriving is not None:
                    visit.handed[at] = self._hand(target, arriving)
        self.visits.append(visit)

    def arrived(self, key: Key, cotangent: Any) -> tuple[Any, bool]:
        """What has arrived somewhere in all, and whether it is something else than the sum of what was handed there."""
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
        """A cotangent's numbers where there is room, else how they are distributed."""
        library = self.library
        size = library.bytes_of(cotangent)
        if self.held + size <= self.room:
            self.held += size
            return _frozen(library.numbers(cotangent))
        return library.summary(cotangent)

    # ------------------------------------------------------------------------------------------------ local derivatives
    def locals(self) -> None:
        """Find the local derivatives that are small, by running rules again, each by itself. Call it when the sweep is over."""
        left = RUNS
        for visit in self.visits:
            if left <= 0:
                return
            left -= self._local(visit)

    def _local(self, visit: Visit) -> int:
        """The same of one node; how many times its rule was run."""
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
        except Exception:  # noqa: BLE001  (a rule that cannot be run by itself: what is saved may come only once)
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
                        c = summed_to(c, shape)
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


def summed_to(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """What a rule made for a broadcast input, summed back to the shape of that."""
    extra = array.ndim - len(shape)
    axes = (*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1 != array.shape[extra + i]))
    return array.sum(axis=axes).reshape(shape) if axes else array


def _frozen(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array


_NAMES: set[str] = set()


def _elementwise() -> set[str]:
    """The names of the nodes whose operations work on each element by itself; PyTorch's are called alike."""
    if not _NAMES:
        _NAMES.update(op.node_name for op in PRIMITIVES.values() if op.kind == "elementwise")
    return _NAMES

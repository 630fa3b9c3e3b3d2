"""What is remembered of an array: its numbers where they are few, else how they are distributed.

An array is looked at once, where it lies. What lies on a device is reduced there, and what came of it is read in one transfer
with everything else of the sweep (`settled`); until then it is `Pending`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.namespaces import read_floats as read_together
from gradlab.core.numpy_warnings import silence
from gradlab.explore.statistics import Statistics, finite_statistics, joined, statistics, statistics_of, summaries

FEW = 16  # elements up to which the numbers themselves are kept

SAFE = 1e-200, 1e200  # sums of products between these have lost nothing

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """What is remembered of an array, or of a tensor's.

    Attributes
    ----------
    shape : tuple of int
    dtype : str
        "float32".
    numbers : tuple or None
        The elements in row-major order, as Python's bool, int, float or complex, where there are at most `FEW`; else None.
    summary : Statistics or None
        Of more elements; without a histogram (`bins` is empty) where none was asked for.
    """

    shape: Shape
    dtype: str
    numbers: tuple[Any, ...] | None = None
    summary: Statistics | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def statistics(self) -> Statistics:
        """The statistics, those of few numbers with a histogram."""
        if self.summary is not None:
            return self.summary
        return statistics(np.array(self.numbers).reshape(self.shape))

    @property
    def norm(self) -> float:
        """The Euclidean norm; NaN if an element is, else ∞ if one is."""
        if self.numbers is not None:
            return _norm(self.numbers)
        statistics = self.statistics
        return math.nan if statistics.nans else math.inf if statistics.infs else statistics.norm

    @property
    def largest(self) -> float:
        """The largest modulus; NaN if an element is NaN, 0 of no elements."""
        if self.numbers is not None:
            moduli = [abs(x) for x in self.numbers]
            return math.nan if any(x != x for x in moduli) else float(max(moduli, default=0.0))
        statistics = self.statistics
        return (
            math.nan
            if statistics.nans
            else math.inf
            if statistics.infs
            else max(abs(statistics.minimum), abs(statistics.maximum))
        )

    @property
    def nans(self) -> int:
        """How many elements are NaN."""
        return sum(x != x for x in self.numbers) if self.numbers is not None else self.statistics.nans

    @property
    def infs(self) -> int:
        """How many are infinite."""
        return sum(abs(x) == math.inf for x in self.numbers) if self.numbers is not None else self.statistics.infs

    @property
    def odd(self) -> bool:
        """Whether there is a NaN or an infinity among them."""
        return bool(self.nans or self.infs)

    @property
    def zeros(self) -> int:
        """How many are exactly zero."""
        return sum(x == 0 for x in self.numbers) if self.numbers is not None else self.statistics.zeros

    @property
    def all_zero(self) -> bool:
        """Whether there are elements and every one is exactly zero."""
        return 0 < self.size == self.zeros

    @property
    def nested(self) -> Any:
        """The numbers as nested lists, of a scalar the number; None where they were not kept."""
        return None if self.numbers is None else _nested(self.numbers, self.shape)


def _norm(numbers: Iterable[Any]) -> float:
    moduli = [abs(x) for x in numbers]
    norm = math.hypot(*moduli)  # of NaN and infinity together it makes infinity
    return math.nan if norm == math.inf and any(x != x for x in moduli) else norm


def _nested(numbers: Sequence[Any], shape: Shape) -> Any:
    if not shape:
        return numbers[0]
    step = len(numbers) // shape[0] if shape[0] else 0
    return [_nested(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


class Pending:
    """What lies on a device: a few arrays there, and what makes a `Value`, or a share, of their numbers once they are here."""

    __slots__ = ("arrays", "finish")

    def __init__(self, arrays: Sequence[Any], finish: Callable[[list[np.ndarray]], Any]) -> None:
        self.arrays, self.finish = arrays, finish


def settled(values: Sequence[Any], read: Callable[[list[Any]], list[np.ndarray]]) -> list[Any]:
    """The values, those that were pending read by one call of `read_floats`."""
    waiting = [value for value in values if isinstance(value, Pending)]
    if not waiting:
        return list(values)
    numbers = iter(read([array for value in waiting for array in value.arrays]))
    return [value.finish([next(numbers) for _ in value.arrays]) if isinstance(value, Pending) else value for value in values]


_names: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """ "float32" of NumPy's dtype, which takes 10 µs to say so itself."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype)
    return name


def brief(array: np.ndarray, dtype: str = "", *, histogram: bool = False) -> Value:
    """What is remembered of an array on the host, which is looked at piece by piece; of dtype `dtype`, if that is not its own."""
    dtype = dtype or dtype_name(array.dtype)
    if array.size <= FEW:
        return Value(array.shape, dtype, tuple(array.reshape(-1).tolist()))
    finite = finite_statistics(array, histogram=histogram)
    return Value(array.shape, dtype, summary=statistics(array) if finite is None else finite)


def pending(array: Any) -> Pending:
    """The same of an array on a device: reduced there, to be read later."""
    shape, dtype = tuple(array.shape), dtype_name(array.dtype)
    if array.size <= FEW:
        kind = array.dtype.kind

        def few(read: list[np.ndarray]) -> Value:
            return Value(
                shape, dtype, tuple(read[0].reshape(-1).astype("?" if kind == "b" else "i8" if kind in "iu" else "f8").tolist())
            )

        return Pending([array.copy()], few)
    pieces = summaries(array)

    def many(read: list[np.ndarray]) -> Value:
        return Value(shape, dtype, summary=joined(shape, [float(x) for x in read], bins=()))

    return Pending([value for piece in pieces for value in piece], many)


def of_arrays(arrays: Sequence[Any], *, histograms: bool = False) -> list[Value]:
    """What is remembered of arrays, wherever they lie; with histograms of those of more than a few elements, if asked for."""
    values: list[Any] = [None] * len(arrays)
    full = []
    for i, array in enumerate(arrays):
        if isinstance(array, np.ndarray):
            values[i] = brief(array, histogram=histograms)
        elif array.size <= FEW or not histograms:
            values[i] = pending(array)
        else:
            full.append(i)
    for i, summary in zip(full, statistics_of([arrays[i] for i in full]), strict=True):
        values[i] = Value(tuple(arrays[i].shape), dtype_name(arrays[i].dtype), summary=summary)
    return settled(values, read_together)


def share(part: Any, whole: Any) -> Any:
    """⟨part, whole⟩ / ‖whole‖² of arrays; `Pending` if they lie on a device; None where `whole` is 0 or not finite."""
    if part is None or part.shape != whole.shape or whole.dtype.kind != "f" or not whole.size:
        return None
    with silence():
        return _share(part, whole)


def _share(part: Any, whole: Any) -> Any:
    xp = np if isinstance(whole, np.ndarray) else namespace_of[type(whole)]
    g, p = (array.reshape(-1).astype(np.float64, copy=False) for array in (whole, part))
    if xp is np and SAFE[0] < (squares := float(np.dot(g, g))) < SAFE[1] and SAFE[0] < abs(both := float(np.dot(p, g))) < SAFE[1]:
        return both / squares
    scale = xp.abs(g).max()
    g, p = g / xp.where(scale > 0, scale, 1.0), p / xp.where(scale > 0, scale, 1.0)
    numbers = [xp.dot(p, g), xp.dot(g, g)]
    return ratio([np.asarray(x) for x in numbers]) if xp is np else Pending(numbers, ratio)


def ratio(numbers: Sequence[np.ndarray]) -> float | None:
    """The first number over the second; None where that is none."""
    above, below = (float(x) for x in numbers)
    return above / below if below > 0 and math.isfinite(above) and math.isfinite(below) else None

"""The recorded data of an array: its numbers if there are few, else statistics.

An array is reduced on its device. The results are read in one transfer with all others of the sweep (`read_pending`); until then
they are `Pending`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.namespaces import read_floats as read_together
from gradlab.core.numpy_warnings import silence
from gradlab.explore.statistics import Statistics, finite_statistics, join_summaries, statistics, statistics_of, summaries

FEW = 16  # elements up to which the numbers themselves are stored

SAFE = 1e-200, 1e200  # sums of products in this range have no overflow or underflow

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Value:
    """The recorded data of an array or a tensor.

    Attributes
    ----------
    shape : tuple of int
    dtype : str
        "float32".
    numbers : tuple or None
        The elements in row-major order, as Python's bool, int, float or complex, if there are at most `FEW`; else None.
    summary : Statistics or None
        The statistics of a larger array, without a histogram (`bins` is empty) unless requested.
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
        """The statistics. For few numbers they include a histogram."""
        if self.summary is not None:
            return self.summary
        return statistics(np.array(self.numbers).reshape(self.shape))

    @property
    def norm(self) -> float:
        """The Euclidean norm; NaN if an element is NaN, else ∞ if one is infinite."""
        if self.numbers is not None:
            return _norm(self.numbers)
        statistics = self.statistics
        return math.nan if statistics.nans else math.inf if statistics.infs else statistics.norm

    @property
    def largest(self) -> float:
        """The largest absolute value; NaN if an element is NaN, 0 without elements."""
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
        """The number of NaN elements."""
        return sum(x != x for x in self.numbers) if self.numbers is not None else self.statistics.nans

    @property
    def infs(self) -> int:
        """The number of infinite elements."""
        return sum(abs(x) == math.inf for x in self.numbers) if self.numbers is not None else self.statistics.infs

    @property
    def odd(self) -> bool:
        """True if an element is NaN or infinite."""
        return bool(self.nans or self.infs)

    @property
    def zeros(self) -> int:
        """The number of elements that are exactly 0."""
        return sum(x == 0 for x in self.numbers) if self.numbers is not None else self.statistics.zeros

    @property
    def all_zero(self) -> bool:
        """True if there are elements and all are exactly 0."""
        return 0 < self.size == self.zeros

    def divided_by(self, factor: float) -> Value:
        """Return the recorded data of the array divided by a positive number."""
        if factor == 1.0:
            return self
        if self.numbers is not None:
            return replace(self, numbers=tuple(x / factor for x in self.numbers))
        s = self.statistics
        parts = {name: getattr(s, name) / factor for name in ("norm", "minimum", "maximum", "mean")}
        return replace(self, summary=replace(s, **parts))

    @property
    def nested_numbers(self) -> Any:
        """The numbers as nested lists, or a number for a scalar; None if they were not stored."""
        return None if self.numbers is None else _nest(self.numbers, self.shape)


def _norm(numbers: Iterable[Any]) -> float:
    moduli = [abs(x) for x in numbers]
    norm = math.hypot(*moduli)  # hypot of NaN and infinity is infinity
    return math.nan if norm == math.inf and any(x != x for x in moduli) else norm


def _nest(numbers: Sequence[Any], shape: Shape) -> Any:
    if not shape:
        return numbers[0]
    step = len(numbers) // shape[0] if shape[0] else 0
    return [_nest(numbers[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])]


class Pending:
    """Arrays on a device, and a function that converts their numbers to a `Value` or a share once they are read."""

    __slots__ = ("arrays", "finish")

    def __init__(self, arrays: Sequence[Any], finish: Callable[[list[np.ndarray]], Any]) -> None:
        self.arrays, self.finish = arrays, finish


def read_pending(values: Sequence[Any], read: Callable[[list[Any]], list[np.ndarray]]) -> list[Any]:
    """Return the values. All pending ones are read by one call of `read`."""
    waiting = [value for value in values if isinstance(value, Pending)]
    if not waiting:
        return list(values)
    numbers = iter(read([array for value in waiting for array in value.arrays]))
    return [value.finish([next(numbers) for _ in value.arrays]) if isinstance(value, Pending) else value for value in values]


_names: dict[Any, str] = {}


def dtype_name(dtype: Any) -> str:
    """Return the name of a dtype, "float32". It is cached because `str` takes 10 µs."""
    name = _names.get(dtype)
    if name is None:
        name = _names[dtype] = str(dtype)
    return name


def summarize(array: np.ndarray, dtype: str = "", *, histogram: bool = False) -> Value:
    """Return the recorded data of an array on the host, which is read in pieces. `dtype` replaces the name of its dtype."""
    dtype = dtype or dtype_name(array.dtype)
    if array.size <= FEW:
        return Value(array.shape, dtype, tuple(array.reshape(-1).tolist()))
    finite = finite_statistics(array, histogram=histogram)
    return Value(array.shape, dtype, summary=statistics(array) if finite is None else finite)


def summarize_on_device(array: Any) -> Pending:
    """Reduce an array on its device. The result is read later."""
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
        return Value(shape, dtype, summary=join_summaries(shape, [float(x) for x in read], bins=()))

    return Pending([value for piece in pieces for value in piece], many)


def summarize_arrays(arrays: Sequence[Any], *, histograms: bool = False) -> list[Value]:
    """Return the recorded data of arrays on any device, with histograms of arrays of more than `FEW` elements if requested."""
    values: list[Any] = [None] * len(arrays)
    full = []
    for i, array in enumerate(arrays):
        if isinstance(array, np.ndarray):
            values[i] = summarize(array, histogram=histograms)
        elif array.size <= FEW or not histograms:
            values[i] = summarize_on_device(array)
        else:
            full.append(i)
    for i, summary in zip(full, statistics_of([arrays[i] for i in full]), strict=True):
        values[i] = Value(tuple(arrays[i].shape), dtype_name(arrays[i].dtype), summary=summary)
    return read_pending(values, read_together)


def share(part: Any, whole: Any) -> Any:
    """Return ⟨part, whole⟩ / ‖whole‖² of arrays, `Pending` on a device; None if `whole` is 0 or not finite."""
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
    """Return the first number divided by the second; None if that is undefined."""
    above, below = (float(x) for x in numbers)
    return above / below if below > 0 and math.isfinite(above) and math.isfinite(below) else None

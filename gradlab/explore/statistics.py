"""Statistics of an array for reports: its size, norm, extremes and a small histogram, without keeping the array.

They are computed in the array's own namespace, so on its device, from which only the results are read, and in pieces: a large
gradient is never copied to float64 as a whole. The norm is that of the finite elements in float64, scaled so that squares of
1e200 and 1e-200 are not lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, read_floats
from gradlab.core.numpy_warnings import silence

BINS = 16
PIECE = 1 << 18  # elements per piece: 2 MB in float64
SMALL = 256  # elements up to which Python's own functions are faster
CACHED = 1 << 15  # elements that stay in a core's cache between passes: 256 kB in float64
PIECE_THERE = 1 << 23  # on a device: 64 MB


@dataclass(frozen=True, slots=True)
class Statistics:
    """Numbers about an array.

    Attributes
    ----------
    shape : tuple of int
    norm : float
        Euclidean norm of the finite elements; NaN or inf if no element is finite.
    minimum, maximum, mean : float
        Of the finite elements; NaN if there are none.
    nans, infs, zeros : int
        Numbers of elements that are NaN, infinite, zero.
    bins : tuple of int
        Numbers of finite elements in each of `BINS` equal parts of [minimum, maximum].
    """

    shape: tuple[int, ...]
    norm: float
    minimum: float
    maximum: float
    mean: float
    nans: int
    infs: int
    zeros: int
    bins: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def finite(self) -> int:
        """Number of finite elements."""
        return self.size - self.nans - self.infs

    @property
    def all_zero(self) -> bool:
        """True if there are elements and every one is exactly zero."""
        return self.size > 0 and self.zeros == self.size


def statistics(array: Any) -> Statistics:
    """Return the statistics of an array of any shape and real dtype (also bool and integers), on NumPy or CuPy.

    Complex elements are described by their absolute values.
    """
    return statistics_of([array])[0]


def finite_statistics(array: np.ndarray, *, histogram: bool = False) -> Statistics | None:
    """Return the statistics of a float array on the host; None if an element is not finite, or if squares may be lost. This takes
    a fraction of the time of `statistics`, which checks each element."""
    if array.dtype.kind != "f" or not array.size:
        return None
    flat = array.reshape(-1)
    flat = flat if flat.dtype.itemsize >= 4 else flat.astype(np.float32)
    with silence():  # no tensors of our own can exist here, so no filter: see core.numpy_warnings
        squares = float(np.dot(flat, flat))
    if not 1e-30 < squares < 1e30:
        return None
    if flat.size <= SMALL and not histogram:
        numbers = flat.tolist()
        mean = sum(numbers) / len(numbers)
        return Statistics(tuple(array.shape), sqrt(squares), min(numbers), max(numbers), mean, 0, 0, numbers.count(0.0), ())
    low, high, total, zeros = float("inf"), float("-inf"), 0.0, 0
    for start in range(0, flat.size, CACHED):
        piece = flat[start : start + CACHED]
        low, high = min(low, float(piece.min())), max(high, float(piece.max()))
        total += float(piece.astype(np.float64).sum())
        zeros += int(np.count_nonzero(piece == 0))
    bins: tuple[int, ...] = ()
    if histogram:
        counts = np.zeros(BINS, np.int64)
        for start in range(0, flat.size, CACHED):
            piece = flat[start : start + CACHED].astype(np.float64)
            counts += np.bincount(_places(np, piece, low, high), minlength=BINS)
        bins = tuple(map(int, counts))
    return Statistics(tuple(array.shape), sqrt(squares), low, high, total / flat.size, 0, 0, zeros, bins)


def statistics_of(arrays: Sequence[Any]) -> list[Statistics]:
    """Return the statistics of several arrays. From devices only the results are read, and the host waits twice in total."""
    spaces = [_namespace(array) for array in arrays]
    summarised = [summaries(array) for array in arrays]
    numbers = iter(read_floats([value for summary in summarised for piece in summary for value in piece]))
    results = [
        join_summaries(tuple(array.shape), [float(next(numbers)) for piece in summary for _ in piece])
        for array, summary in zip(arrays, summarised, strict=True)
    ]
    histograms = [
        [_histogram(xp, piece, s.minimum, s.maximum) for piece in _pieces(xp, array)] if s.finite else []
        for xp, array, s in zip(spaces, arrays, results, strict=True)
    ]
    counts = iter(read_floats([count for counted in histograms for count in counted]))
    return [
        replace(s, bins=tuple(map(int, np.sum([next(counts) for _ in counted], axis=0)))) if counted else s
        for s, counted in zip(results, histograms, strict=True)
    ]


def summaries(array: Any) -> list[list[Any]]:
    """Return eight numbers for each piece of an array, computed on its device; `join` makes statistics of them."""
    xp = _namespace(array)
    return [_summary(xp, piece) for piece in _pieces(xp, array)]


def _summary(xp: Any, piece: Any) -> list[Any]:
    """Summarize a piece: numbers of finite, NaN and zero elements; the least, the greatest and the largest finite element; and
    for finite elements relative to the largest one, the sum and the sum of squares."""
    finite = xp.isfinite(piece)
    if xp is np and finite.all():
        kept = low = high = piece
    else:
        kept, low, high = (xp.where(finite, piece, other) for other in (0.0, np.inf, -np.inf))
    scale = xp.abs(kept).max()
    part = kept / xp.where(scale > 0, scale, 1.0)
    counts = [finite.sum(), xp.isnan(piece).sum(), (piece == 0).sum()]
    return [*counts, low.min(), high.max(), scale, part.sum(), (part * part).sum()]


def join_summaries(shape: tuple[int, ...], numbers: Sequence[float], bins: tuple[int, ...] = (0,) * BINS) -> Statistics:
    """Combine the summaries of all pieces to statistics without a histogram."""
    pieces = np.array(numbers, np.float64).reshape(-1, 8)
    size = int(np.prod(shape, dtype=np.int64))
    finite, nans, zeros = (int(pieces[:, k].sum()) for k in range(3))
    if not finite:
        nothing = float("nan")
        norm = nothing if nans else float("inf") if size else 0.0
        return Statistics(shape, norm, nothing, nothing, nothing, nans, size - nans, 0, bins)
    scale = float(pieces[:, 5].max())
    share = pieces[:, 5] / (scale or 1.0)
    total, squares = float((pieces[:, 6] * share).sum()), float((pieces[:, 7] * share * share).sum())
    low, high = float(pieces[:, 3].min()), float(pieces[:, 4].max())
    return Statistics(shape, scale * sqrt(squares), low, high, scale * (total / finite), nans, size - nans - finite, zeros, bins)


def _namespace(array: Any) -> Any:
    return np if isinstance(array, np.ndarray) else namespace_of[type(array)]


def _pieces(xp: Any, array: Any) -> Iterator[Any]:
    """Yield the elements as flat float64 arrays of at most `PIECE`; an array that is not contiguous is read row by row."""
    if array.dtype.kind == "c":
        array = xp.abs(array)
    at_once = PIECE if xp is np else PIECE_THERE
    if array.size <= at_once:
        if array.size:
            yield array.reshape(-1).astype(np.float64)
        return
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        for start in range(0, flat.size, at_once):
            yield flat[start : start + at_once].astype(np.float64)
        return
    if array.shape[0] == 1:
        yield from _pieces(xp, array[0])
        return
    step = max(1, at_once * array.shape[0] // array.size)
    for start in range(0, array.shape[0], step):
        yield from _pieces(xp, array[start : start + step])


def _histogram(xp: Any, piece: Any, low: float, high: float) -> Any:
    """Count the finite elements in each of `BINS` equal parts of [low, high]; if low equals high, all are in the middle."""
    finite = xp.isfinite(piece)
    index = _places(xp, xp.where(finite, piece, low), low, high)
    if xp is np:
        return np.bincount(index[finite], minlength=BINS)
    return xp.stack([((index == k) & finite).sum() for k in range(BINS)])  # `bincount` and a mask would make the host wait


def _places(xp: Any, piece: Any, low: float, high: float) -> Any:
    """Return for each element which of `BINS` equal parts of [low, high] contains it."""
    width = high / BINS - low / BINS  # high - low may overflow
    if low == high:
        return xp.full(piece.shape, BINS // 2)
    if width == 0:  # low and high differ by a denormal
        return (piece > low) * (BINS - 1)
    return xp.clip((piece / width - low / width).astype(np.int64), 0, BINS - 1)

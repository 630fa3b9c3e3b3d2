"""What a report remembers of an array: its size, norm, extremes and a small histogram, and nothing of the array itself.

Computed by the array's own namespace, so on its own device, of which only the results are read, and piece by piece: a float64
copy of a large gradient is never made. A norm is taken of the finite elements in float64, scaled so that neither the squares of
1e200 nor those of 1e-200 are lost.
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
PIECE = 1 << 18  # elements at a time: 2 MB in float64
SMALL = 256  # elements up to which Python's own functions are quicker
CACHED = 1 << 15  # elements that stay in a core's cache from one pass to the next: 256 kB in float64
PIECE_THERE = 1 << 23  # on a device: 64 MB


@dataclass(frozen=True, slots=True)
class Statistics:
    """Plain numbers about an array.

    Attributes
    ----------
    shape : tuple of int
    norm : float
        The Euclidean norm of the finite elements; NaN or inf where no element is finite.
    minimum, maximum, mean : float
        Of the finite elements; NaN if there are none.
    nans, infs, zeros : int
        How many elements are NaN, infinite, zero.
    bins : tuple of int
        How many finite elements fall into each of `BINS` equal parts of [minimum, maximum].
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
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def finite(self) -> int:
        """The number of finite elements."""
        return self.size - self.nans - self.infs

    @property
    def all_zero(self) -> bool:
        """Whether there are elements and every one is exactly zero."""
        return self.size > 0 and self.zeros == self.size


def statistics(array: Any) -> Statistics:
    """The statistics of an array of any shape and real dtype (bool and integers too), on NumPy or CuPy.

    Complex elements are described by their moduli.
    """
    return statistics_of([array])[0]


def finite_statistics(array: np.ndarray, *, histogram: bool = False) -> Statistics | None:
    """The statistics of an array of floats on the host; None where one is not finite, or the squares of all may be lost. The
    least part of the time that `statistics` takes, which asks of each element whether it is finite."""
    if array.dtype.kind != "f" or not array.size:
        return None
    flat = array.reshape(-1)
    flat = flat if flat.dtype.itemsize >= 4 else flat.astype(np.float32)
    with silence():  # no tensor of our own may exist, and so no filter: see core.numpy_warnings
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
    """The same of several arrays. Of those on a device only the results are read, and the host waits twice in all."""
    spaces = [_namespace(array) for array in arrays]
    summarised = [summaries(array) for array in arrays]
    numbers = iter(read_floats([value for summary in summarised for piece in summary for value in piece]))
    results = [
        joined(tuple(array.shape), [float(next(numbers)) for piece in summary for _ in piece])
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
    """Eight numbers of each piece of an array, where it lies; `joined` makes statistics of them."""
    xp = _namespace(array)
    return [_summary(xp, piece) for piece in _pieces(xp, array)]


def _summary(xp: Any, piece: Any) -> list[Any]:
    """Of a piece: how many elements are finite and NaN, how many 0; the least, the greatest and the largest finite one; and of
    the finite ones over the largest, the sum and the sum of the squares."""
    finite = xp.isfinite(piece)
    if xp is np and finite.all():
        kept = low = high = piece
    else:
        kept, low, high = (xp.where(finite, piece, other) for other in (0.0, np.inf, -np.inf))
    scale = xp.abs(kept).max()
    part = kept / xp.where(scale > 0, scale, 1.0)
    counts = [finite.sum(), xp.isnan(piece).sum(), (piece == 0).sum()]
    return [*counts, low.min(), high.max(), scale, part.sum(), (part * part).sum()]


def joined(shape: tuple[int, ...], numbers: Sequence[float], bins: tuple[int, ...] = (0,) * BINS) -> Statistics:
    """The statistics without the histogram, from the summaries of all pieces."""
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
    """The elements as flat float64 arrays of at most `PIECE` each; an array that is not contiguous is read row by row."""
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
    """How many finite elements fall into each of `BINS` equal parts of [low, high]; where low is high, all in the middle."""
    finite = xp.isfinite(piece)
    index = _places(xp, xp.where(finite, piece, low), low, high)
    if xp is np:
        return np.bincount(index[finite], minlength=BINS)
    return xp.stack([((index == k) & finite).sum() for k in range(BINS)])  # `bincount` and a mask make the host wait


def _places(xp: Any, piece: Any, low: float, high: float) -> Any:
    """In which of `BINS` equal parts of [low, high] each element lies."""
    width = high / BINS - low / BINS  # high - low may overflow
    if low == high:
        return xp.full(piece.shape, BINS // 2)
    if width == 0:  # low and high differ by a denormal
        return (piece > low) * (BINS - 1)
    return xp.clip((piece / width - low / width).astype(np.int64), 0, BINS - 1)

"""What a report remembers of an array: its size, norm, extremes and a small histogram, and nothing of the array itself.

Computed by the array's own namespace, so on its own device, and piece by piece: a float64 copy of a large gradient is never
made. A norm is taken of the finite elements in float64, scaled so that neither the squares of 1e200 nor those of 1e-200 are
lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

BINS = 16
PIECE = 1 << 18  # elements at a time: 2 MB in float64


@dataclass(frozen=True)
class Statistics:
    """Plain numbers about an array.

    Attributes
    ----------
    shape : tuple of int
    norm : float
        The Euclidean norm of the finite elements.
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
    xp = _namespace(array)
    size = nans = infs = zeros = 0
    low, high = float("inf"), float("-inf")
    scale, total, squares = 0.0, 0.0, 0.0  # of the elements over `scale`, the largest so far
    for piece in _pieces(xp, array):
        size += piece.size
        finite = piece[xp.isfinite(piece)]
        if finite.size != piece.size:
            bad = xp.isnan(piece).sum().item()
            nans += bad
            infs += piece.size - finite.size - bad
        if not finite.size:
            continue
        zeros += (finite == 0).sum().item()
        low, high = min(low, finite.min().item()), max(high, finite.max().item())
        largest = xp.abs(finite).max().item()
        if largest > scale:
            total, squares = total * (scale / largest), squares * (scale / largest) ** 2
            scale = largest
        if scale:
            part = finite / scale
            total += part.sum().item()
            squares += (part * part).sum().item()
    counted = size - nans - infs
    if not counted:
        nothing = float("nan")
        return Statistics(tuple(array.shape), 0.0, nothing, nothing, nothing, nans, infs, 0, (0,) * BINS)
    return Statistics(
        tuple(array.shape),
        scale * sqrt(squares),
        low,
        high,
        scale * (total / counted),
        nans,
        infs,
        zeros,
        _histogram(xp, array, low, high),
    )


def _namespace(array: Any) -> Any:
    if isinstance(array, np.ndarray):
        return np
    from gradlab.backend.namespaces import namespace_of

    return namespace_of[type(array)]


def _pieces(xp: Any, array: Any) -> Iterator[Any]:
    """The elements as flat float64 arrays of at most `PIECE` each; an array that is not contiguous is read row by row."""
    if array.dtype.kind == "c":
        array = xp.abs(array)
    if array.size <= PIECE:
        if array.size:
            yield array.reshape(-1).astype(np.float64)
        return
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
        for start in range(0, flat.size, PIECE):
            yield flat[start : start + PIECE].astype(np.float64)
        return
    if array.shape[0] == 1:
        yield from _pieces(xp, array[0])
        return
    step = max(1, PIECE * array.shape[0] // array.size)
    for start in range(0, array.shape[0], step):
        yield from _pieces(xp, array[start : start + step])


def _histogram(xp: Any, array: Any, low: float, high: float) -> tuple[int, ...]:
    if low == high:  # one value: all in the middle
        finite = sum(xp.isfinite(piece).sum().item() for piece in _pieces(xp, array))
        return tuple(finite if i == BINS // 2 else 0 for i in range(BINS))
    width = high / BINS - low / BINS  # high - low may overflow
    counts = np.zeros(BINS, np.int64)
    for piece in _pieces(xp, array):
        finite = piece[xp.isfinite(piece)]
        if width == 0:  # low and high differ by a denormal
            index = (finite > low).astype(np.int64) * (BINS - 1)
        else:
            index = xp.clip((finite / width - low / width).astype(np.int64), 0, BINS - 1)
        found = xp.bincount(index, minlength=BINS)
        counts += found if isinstance(found, np.ndarray) else found.get()
    return tuple(int(c) for c in counts)

"""Matrices pooled for drawing: cells, at most so many per side, exact extremes, and corners for the text.

A matrix on a device is pooled there, and the result is read in one transfer. Only a matrix with fewer elements than the picture
has cells is copied as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.backend.namespaces import is_array, namespace_of, read_floats, to_host

Truth = tuple[float, float, dict[str, int]]


@dataclass(frozen=True)
class Sample:
    """Rows and columns of a matrix for a text, with None for omitted ones, and their numbers."""

    rows: list[int | None]
    columns: list[int | None]
    numbers: np.ndarray
    present: np.ndarray | None

    def at(self, i: int, j: int) -> float | None:
        """Return the number in row i and column j; None if it has not been computed."""
        at = [k for k in self.rows if k is not None].index(i), [k for k in self.columns if k is not None].index(j)
        return float(self.numbers[at]) if self.present is None or self.present[at] else None


@dataclass(frozen=True)
class PooledMatrix:
    """A matrix as it is drawn.

    Attributes
    ----------
    shape : (int, int)
        Shape of the matrix.
    rows, columns : ndarray of int
        The first row and column of each row and column of cells.
    cells : ndarray
        Each block's value of largest magnitude, with its sign; NaN if it has one.
    shown : ndarray of bool
        Mask of the cells with a value.
    empty : int
        Number of elements of the matrix without a value.
    truth : (float, float, dict of str to int)
        The least and the greatest finite element (0, 0 if there is none), and how many are "NaN", "+inf" and "−inf".
    sample : Sample
    """

    shape: tuple[int, int]
    rows: np.ndarray
    columns: np.ndarray
    cells: np.ndarray
    shown: np.ndarray
    empty: int
    truth: Truth
    sample: Sample


def pool_matrix(values: Any, limit: int, *, filled: Any = None, blocks: Sequence[tuple[str, int]] | None = None) -> PooledMatrix:
    """Reduce a vector or matrix to at most `limit` cells a side. See `heatmap` for `filled`, `blocks` and the errors."""
    numbers = matrix_of(values)
    m, n = numbers.shape
    if blocks is not None and sum(size for _, size in blocks) != n:
        raise ValueError(f"heatmap got blocks of {[size for _, size in blocks]} columns for a matrix of {n}")
    present = _presence(filled, (m, n))
    rows, columns = bins([("", m)], limit), bins(blocks or [("", n)], limit)
    tall, broad = sampled_rows_and_columns((m, n))
    corners = np.ix_([i for i in tall if i is not None], [j for j in broad if j is not None])
    if present is None and numbers.size > limit * limit and type(numbers) is not np.ndarray:
        cells, truth, sampled = _reduced_there(numbers, rows, columns, corners)
        return PooledMatrix(
            (m, n), rows, columns, cells, np.ones(cells.shape, bool), 0, truth, Sample(tall, broad, sampled, None)
        )
    numbers = to_host(numbers)
    cells, shown = pool(numbers, rows, columns, present) if m * n else (numbers, np.ones(numbers.shape, bool))
    everywhere = None if present is None else np.broadcast_to(present, (m, n))
    sample = Sample(tall, broad, numbers[corners], None if everywhere is None else everywhere[corners])
    empty = 0 if everywhere is None else int((~everywhere).sum())
    return PooledMatrix((m, n), rows, columns, cells, shown, empty, extremes(numbers, present), sample)


def sampled_rows_and_columns(shape: tuple[int, int]) -> tuple[list[int | None], list[int | None]]:
    """Return the rows and columns of a matrix to show in a text, with None for omitted ones."""
    return _ends(shape[0], 12, 8, 3), _ends(shape[1], 8, 5, 2)


def _ends(size: int, whole: int, first: int, last: int) -> list[int | None]:
    """Return the first few and the last few of `size` numbers, or all up to `whole`."""
    return list(range(size)) if size <= whole else [*range(first), None, *range(size - last, size)]


def _reduced_there(
    numbers: Any, rows: np.ndarray, columns: np.ndarray, corners: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, Truth, np.ndarray]:
    """Return cells, extremes and the elements at `corners` of a matrix on a device, where `reduceat` is not available."""
    xp = namespace_of[type(numbers)]
    high = low = numbers
    for axis, starts in ((0, rows), (1, columns)):
        if len(starts) < numbers.shape[axis]:
            parts = _slices(axis, starts, numbers.shape[axis])
            high = xp.stack([high[part].max(axis) for part in parts], axis)
            low = xp.stack([low[part].min(axis) for part in parts], axis)
    finite = xp.isfinite(numbers)
    least, greatest = xp.where(finite, numbers, np.inf).min(), xp.where(finite, numbers, -np.inf).max()
    odd = [xp.isnan(numbers).sum(), (numbers == np.inf).sum(), (numbers == -np.inf).sum()]
    sampled = numbers[tuple(xp.asarray(index) for index in corners)]
    cells, sampled, least, greatest, *odd = read_floats([xp.where(high >= -low, high, low), sampled, least, greatest, *odd])
    counts = {kind: int(count) for kind, count in zip(("NaN", "+inf", "−inf"), odd, strict=True) if count}
    truth = (float(least), float(greatest), counts) if least <= greatest else (0.0, 0.0, counts)
    return cells.astype(numbers.dtype), truth, sampled.astype(numbers.dtype)


def _slices(axis: int, starts: np.ndarray, size: int) -> list[tuple[slice, ...]]:
    ends = [*starts[1:], size]
    return [(slice(None),) * axis + (slice(int(a), int(b)),) for a, b in zip(starts, ends, strict=True)]


def matrix_of(values: Any) -> Any:
    """Return `values` as a 2-D floating-point array on their device; a vector becomes one row."""
    numbers = values if is_array(values) else np.asarray(values)
    if numbers.dtype.kind not in "fiub":
        raise TypeError(f"a heat map shows real numbers; got dtype {numbers.dtype}")
    if numbers.ndim > 2:
        raise ValueError(f"a heat map shows one or two axes; got shape {numbers.shape}. Index or reshape it to a matrix first")
    if numbers.dtype.kind != "f" or numbers.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32 if numbers.dtype.itemsize < 4 else np.float64)
    return numbers.reshape((1,) * (2 - numbers.ndim) + numbers.shape)


def extremes(numbers: np.ndarray, present: np.ndarray | None = None) -> tuple[float, float, dict[str, int]]:
    """Return the least and the greatest finite value (0, 0 if there is none), and the numbers of NaN, +inf and −inf."""
    if present is not None:
        numbers = numbers[np.broadcast_to(present, numbers.shape)]
    finite = np.isfinite(numbers)
    good = numbers if finite.all() else numbers[finite]
    low, high = (float(good.min()), float(good.max())) if good.size else (0.0, 0.0)
    bad = (
        {}
        if finite.all()
        else {
            "NaN": int(np.isnan(numbers).sum()),
            "+inf": int(np.isposinf(numbers).sum()),
            "−inf": int(np.isneginf(numbers).sum()),
        }
    )
    return low, high, {kind: count for kind, count in bad.items() if count}


def bins(blocks: Sequence[tuple[str, int]], limit: int) -> np.ndarray:
    """Return the starts of at most `limit` bins, evenly over each block; no bin crosses a boundary between blocks."""
    sizes = [size for _, size in blocks if size]
    total = sum(sizes)
    if total <= limit or not sizes:
        return np.arange(total)
    if len(sizes) > limit:
        return np.linspace(0, total, limit, endpoint=False).astype(int)
    share = [max(1, int(size * limit / total)) for size in sizes]
    while sum(share) > limit:
        share[int(np.argmax(share))] -= 1
    first = np.cumsum([0, *sizes[:-1]])
    return np.concatenate(
        [
            start + np.linspace(0, size, count, endpoint=False).astype(int)
            for start, size, count in zip(first, sizes, share, strict=True)
        ]
    )


def pool(
    numbers: np.ndarray, row_starts: np.ndarray, column_starts: np.ndarray, present: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return each block's value of largest magnitude, with its sign (NaN if it has one), and whether it has any value."""
    if present is not None:
        numbers = np.where(present, numbers, 0)
        present = np.broadcast_to(present, numbers.shape)
    high = low = numbers
    for axis, starts in ((0, row_starts), (1, column_starts)):
        if len(starts) < numbers.shape[axis]:
            high, low = np.maximum.reduceat(high, starts, axis), np.minimum.reduceat(low, starts, axis)
            present = None if present is None else np.logical_or.reduceat(present, starts, axis)
    cells = np.where(high >= -low, high, low)  # comparisons with NaN are false, and NaN is in both
    return cells, np.ones(cells.shape, bool) if present is None else np.array(present)


def _presence(filled: Any, shape: tuple[int, int]) -> np.ndarray | None:
    if filled is None:
        return None
    present = np.asarray(filled, bool)
    if present.shape == (shape[0],):
        present = present[:, None]
    elif present.shape != shape:
        raise ValueError(
            f"filled has shape {present.shape}; a matrix of shape {shape} takes that shape, or one value a row: ({shape[0]},)"
        )
    return None if present.all() else present

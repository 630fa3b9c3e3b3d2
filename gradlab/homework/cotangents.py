"""Recognize common mistakes from the numbers of a wrong cotangent: a transpose, a missing sum over broadcast axes, a factor."""

from __future__ import annotations

import numpy as np

from gradlab.homework.verdicts import as_array

ROUNDING = 1e-5


def diagnose_cotangent(got: object, expected: np.ndarray, value: np.ndarray | None = None) -> str:
    """Return a sentence about the mistake, or ""."""
    array = as_array(got)
    if array is None or not array.size or not np.isfinite(array).all():
        return ""
    if array.shape != expected.shape:
        return _of_shape(array, expected)
    if _same(array, np.zeros_like(expected)):
        return "all entries are zero."
    if array.ndim == 2 and array.shape[0] == array.shape[1] and _same(array, expected.T):
        return "it is transposed."
    return _of_factor(array, expected)


def _of_shape(array: np.ndarray, expected: np.ndarray) -> str:
    if array.ndim == 2 and array.shape == expected.T.shape and _same(array, expected.T):
        return "it is transposed."
    times = array.size // max(expected.size, 1)
    if times > 1 and _is_broadcastable(expected.shape, array.shape):
        summed = _sum_to_shape(array, expected.shape)
        if _same(summed, expected):
            return f"the same number was used {times} times: how do its {times} shares combine?"
    if (
        expected.ndim < array.ndim == expected.ndim + 1
        and array.size == expected.size
        and _same(array.reshape(expected.shape), expected)
    ):
        return "the numbers are right, but with an extra axis of length 1."
    return ""


def _is_broadcastable(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(small, large) == large
    except ValueError:
        return False


def _sum_to_shape(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    more = array.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(array.shape) if i < more or (shape[i - more] == 1 and n != 1))
    return np.asarray(array.sum(axis=axes, keepdims=True).reshape(shape))


def _of_factor(array: np.ndarray, expected: np.ndarray) -> str:
    factor = float((array * expected).sum() / max((expected * expected).sum(), 1e-300))
    if _same(array, expected) or not _same(array, factor * expected):
        return ""
    if abs(factor + 1) < ROUNDING:
        return "every sign is wrong."
    if factor > 1:
        return f"every entry is {factor:.4g} times too large."
    n = 1 / factor if factor else 0
    return f"every entry is {n:.4g} times too small." if n > 1 else f"every entry is {factor:.4g} times the right one."


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= ROUNDING * max(1e-3, float(np.abs(b).max(initial=0)))))

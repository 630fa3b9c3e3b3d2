"""What the numbers of a cotangent say about a mistake: transposed, not summed back to the operand's shape, a factor."""

from __future__ import annotations

import numpy as np

from gradlab.homework.verdicts import as_array

ROUNDING = 1e-5


def of_cotangent(got: object, expected: np.ndarray, value: np.ndarray | None = None) -> str:
    """What is wrong with a cotangent, in a sentence, or nothing."""
    array = as_array(got)
    if array is None or not array.size or not np.isfinite(array).all():
        return ""
    if array.shape != expected.shape:
        return _of_shape(array, expected)
    if _same(array, np.zeros_like(expected)):
        return "everything is zero."
    if array.ndim == 2 and array.shape[0] == array.shape[1] and _same(array, expected.T):
        return "it is transposed."
    return _of_factor(array, expected)


def _of_shape(array: np.ndarray, expected: np.ndarray) -> str:
    if array.ndim == 2 and array.shape == expected.T.shape and _same(array, expected.T):
        return "it is transposed."
    times = array.size // max(expected.size, 1)
    if times > 1 and _can_become(expected.shape, array.shape):
        summed = _summed(array, expected.shape)
        if _same(summed, expected):
            return f"the same number was used {times} times: what do its {times} shares make together?"
    if (
        expected.ndim < array.ndim == expected.ndim + 1
        and array.size == expected.size
        and _same(array.reshape(expected.shape), expected)
    ):
        return "the numbers are right, with an axis of length 1 too many."
    return ""


def _can_become(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(small, large) == large
    except ValueError:
        return False


def _summed(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    more = array.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(array.shape) if i < more or (shape[i - more] == 1 and n != 1))
    return np.asarray(array.sum(axis=axes, keepdims=True).reshape(shape))


def _of_factor(array: np.ndarray, expected: np.ndarray) -> str:
    factor = float((array * expected).sum() / max((expected * expected).sum(), 1e-300))
    if _same(array, expected) or not _same(array, factor * expected):
        return ""
    if abs(factor + 1) < ROUNDING:
        return "every sign is the other way round."
    if factor > 1:
        return f"everything is {factor:.4g} times too large."
    n = 1 / factor if factor else 0
    return f"everything is {n:.4g} times too small." if n > 1 else f"everything is {factor:.4g} times what it should be."


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.all(np.abs(a - b) <= ROUNDING * max(1e-3, float(np.abs(b).max(initial=0)))))

"""Compare the masking of bits, and `clip`, with `where`, `minimum` and `maximum`, for large and small arrays of any layout."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from gradlab.rules.masking import MIN_SIZE_TO_MASK_BITS, clip, keep_where, select, zero_where

SIDE = int(MIN_SIZE_TO_MASK_BITS**0.5) + 1
SPECIAL = [-0.0, 0.0, nan, inf, -inf, 1e-45, -1.5]


def numbers(shape, dtype):
    """Return random numbers of both signs, with zeros, infinities and NaN among them."""
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    flat = x.reshape(-1)
    flat[: min(flat.size, len(SPECIAL))] = SPECIAL[: flat.size]
    return x


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.array_equal(a.view(f"i{a.itemsize}"), b.view(f"i{b.itemsize}"))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("layout", ["small", "large", "transposed", "every other", "broadcast mask"])
def test_masks_choose_as_where_does(layout, dtype):
    x = numbers((3, 4) if layout == "small" else (SIDE, SIDE), dtype)
    if layout == "transposed":
        x = x.T
    if layout == "every other":
        x = numbers((SIDE, 2 * SIDE), dtype)[:, ::2]
    mask = (x[:1] > 0) if layout == "broadcast mask" else x > 0
    if layout == "transposed":
        mask = np.ascontiguousarray(mask)
    before = x.copy()
    zero = np.zeros((), dtype)
    assert same_bits(keep_where(np, mask, x), np.where(mask, x, zero))
    assert same_bits(zero_where(np, mask, x), np.where(mask, zero, x))
    assert same_bits(select(np, mask, x, -x), np.where(mask, x, -x))
    assert same_bits(x, before)


@pytest.mark.parametrize("bounds", [(0, None), (None, 0), (-0.5, 0.5), (0.5, -0.5), (0, inf), (nan, 1)])
@pytest.mark.parametrize("shape", [(), (7,), (SIDE, SIDE)])
def test_clip_is_maximum_and_minimum(shape, bounds):
    low, high = bounds
    x = numbers(shape, np.float32)
    expected = x if low is None else np.maximum(x, np.float32(low))
    expected = expected if high is None else np.minimum(expected, np.float32(high))
    np.testing.assert_array_equal(clip(np, x, low, high), expected)


def test_clip_at_0_keeps_the_sign_of_0_as_pytorch_does():
    assert np.signbit(clip(np, np.float32([-0.0, 0.0, -3.0]), 0, None)).tolist() == [True, False, False]


def test_integers_stay_integers():
    found = clip(np, np.arange(-3, 4), -1, 2)
    assert found.dtype.kind == "i"
    assert found.tolist() == [-1, -1, -1, 0, 1, 2, 2]

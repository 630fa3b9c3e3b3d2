"""Compare sums of large arrays, which are products with ones, with exact sums, for shapes with and without even pieces."""

from __future__ import annotations

import sys
from math import fsum

import numpy as np
import pytest

import gradlab as gl
from gradlab.backend.sums import MAX_PIECE, piece_length
from gradlab.rules import reductions
from gradlab.rules.reductions import total

LARGE = 1 << 14
SHAPES = {
    "one row": ((1 << 16,), (-1,)),
    "one row without even pieces": ((65_537,), (-1,)),  # a prime number
    "short rows": ((9_000, 3), (-1,)),
    "rows of one piece": ((40, 1000), (-1,)),
    "rows of two pieces": ((20, 2000), (-1,)),
    "rows without even pieces": ((5, 4099), (-1,)),  # a prime number
    "rows of one element": ((20_000, 1), (-1,)),
    "two axes": ((30, 40, 50), (-2, -1)),
    "all axes": ((30, 40, 50), (-3, -2, -1)),
    "channels of images": ((16, 4, 20, 21), (-4, -2, -1)),
    "the first and the last axis": ((50, 30, 40), (-3, -1)),
    "columns": ((200, 300), (-2,)),
    "columns of two pieces": ((2000, 20), (-2,)),
    "columns without even pieces": ((4099, 5), (-2,)),
    "columns of several matrices": ((6, 70, 80), (-2,)),
    "columns of several matrices without even pieces": ((3, 4099, 2), (-2,)),
    "columns of one element": ((1, 20_000), (-2,)),
    "one column": ((20_000, 1), (-2,)),
    "two axes before the last": ((30, 40, 50), (-3, -2)),
    "two separate axes before the last": ((10, 20, 30, 40), (-4, -2)),
    "two pairs of axes": ((5, 6, 7, 8, 20), (-5, -4, -2, -1)),
    "no axis": ((200, 300), ()),
}


def rounding(dtype, added):
    """Return the relative rounding error of a sum of positive numbers.

    Without BLAS, NumPy adds rows one by one, and the error is at most that number of roundings (Higham 2002, section 4.2).
    """
    return np.finfo(dtype).eps * (added if sys.platform == "emscripten" else 8)


def exact(x, axis):
    """Return the sum of an array, computed in float64 with `fsum`."""
    if not axis:
        return x.astype(float)
    axes = [a + x.ndim for a in axis]
    rows = np.moveaxis(x, axes, range(-len(axes), 0)).reshape(*[n for i, n in enumerate(x.shape) if i not in axes], -1)
    return np.apply_along_axis(fsum, -1, rows.astype(float))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SHAPES)
def test_the_sum_is_right(name, dtype):
    shape, axis = SHAPES[name]
    x = np.random.default_rng(0).random(shape).astype(dtype)
    assert x.size >= LARGE
    expected, found = exact(x, axis), total(np, x, axis)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=rounding(dtype, x.size // expected.size))
    kept = total(np, x, axis, keepdims=True)
    assert kept.shape == np.add.reduce(x, axis, keepdims=True).shape
    np.testing.assert_array_equal(kept.reshape(expected.shape), found)


def test_views_and_other_dtypes_are_summed_by_numpy():
    x = np.arange(60_000).reshape(200, 300)
    np.testing.assert_array_equal(total(np, x, (-1,)), x.sum(-1))
    half = x.astype(np.float32).T
    np.testing.assert_array_equal(total(np, half, (-1,)), np.add.reduce(half, -1))


def test_infinities_and_nan_stay_in_their_rows():
    x = np.ones((64, 512), np.float32)
    x[1, 5], x[2, 7], x[3, :2] = np.inf, np.nan, (np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        found = total(np, x, (-1,))
    np.testing.assert_array_equal(found[:5], [512, np.inf, np.nan, np.nan, 512])


@pytest.mark.parametrize(("size", "is_product"), [(LARGE, True), (LARGE - 1, False)])
def test_large_sums_are_products_where_numpy_has_blas(size, is_product, monkeypatch):
    products = []
    sum_large = reductions.sum_large
    monkeypatch.setattr(reductions, "sum_large", lambda x, *args: products.append(x.size) or sum_large(x, *args))
    assert total(np, np.ones(size, np.float32), (-1,)) == size
    assert products == ([size] if is_product and sys.platform != "emscripten" else [])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(30,), (1, 30), (40, 1), (1, 1), (20, 1, 30), (1, 40, 30), (20, 40, 1)])
def test_the_gradient_of_an_operand_that_was_broadcast_is_the_sum(shape, dtype):
    draw = np.random.default_rng(0)
    bias, v = gl.zeros(shape).array.astype(dtype), draw.random((20, 40, 30)).astype(dtype)
    leaf = gl.tensor(bias).requires_grad_()
    (gl.zeros(20, 40, 30).to(leaf.dtype) + leaf).backward(gl.tensor(v))
    whole = (1,) * (3 - len(shape)) + shape
    expected = exact(v, [i - 3 for i in range(3) if whole[i] == 1]).reshape(shape)
    assert leaf.grad.array.dtype == dtype
    np.testing.assert_allclose(leaf.grad.array, expected, rtol=rounding(dtype, v.size // expected.size))


@pytest.mark.parametrize(
    ("n", "length"), [(1, 1), (10, 10), (1024, 1024), (1025, 205), (2000, 1000), (65_537, 1), (1 << 20, 1024)]
)
def test_pieces_divide_the_row(n, length):
    assert piece_length(n) == length <= MAX_PIECE

"""Compare cumulative operations, which loop over steps if there are many lanes, with loops over single elements."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.rules import arguments, cumulative, reductions

SHAPES = [((6, 300), 0), ((300, 6), 1), ((5, 7, 60), 1), ((2, 300, 4), 2), ((1, 300), 0), ((4, 5, 300), 0), ((40, 5, 8), 1)]


def cells(shape, axis, seed=0):
    """Return random numbers, every eleventh of which is 0."""
    x = np.random.default_rng(seed).normal(size=shape) + 0.5
    x.flat[::11] = 0
    return x


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_values(shape, axis, dtype):
    assert np.prod(shape) >= arguments.MIN_STEPWISE_SIZE * shape[axis], "the shape is too small for the stepwise loop"
    x = cells(shape, axis).astype(dtype)
    rows, total, product = np.moveaxis(x.astype(np.float64), axis, 0), 0.0, 1.0
    sums, products = [], []
    for row in rows:
        total, product = total + row, product * row
        sums.append(total)
        products.append(product)
    near = {"rtol": 1e-6 if dtype == np.float32 else 1e-14, "atol": 1e-6 if dtype == np.float32 else 1e-14}
    np.testing.assert_allclose(gl.tensor(x).cumsum(axis).numpy(), np.moveaxis(np.array(sums), 0, axis), **near)
    np.testing.assert_allclose(gl.tensor(x).cumprod(axis).numpy(), np.moveaxis(np.array(products), 0, axis), **near)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "prod", "logcumsumexp"])
def test_gradients_equal_those_of_single_lanes(name, shape, axis):
    x = gl.tensor(cells(shape, axis), requires_grad=True)
    out = getattr(x, name)(axis)
    seed = gl.tensor(np.random.default_rng(1).normal(size=out.shape))
    out.backward(seed)
    lanes = np.moveaxis(x.detach().numpy(), axis, -1).reshape(-1, shape[axis])
    seeds = seed.numpy().reshape(-1, 1) if name == "prod" else np.moveaxis(seed.numpy(), axis, -1).reshape(-1, shape[axis])
    found = np.moveaxis(x.grad.numpy(), axis, -1).reshape(-1, shape[axis])
    for k in range(0, len(lanes), 37):
        lane = gl.tensor(lanes[k], requires_grad=True)
        getattr(lane, name)(0).backward(gl.tensor(seeds[k] if name != "prod" else seeds[k, 0]))
        np.testing.assert_allclose(found[k], lane.grad.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_a_batch_of_cotangents(shape, axis, forward):
    """The cotangents have a batch axis that the factors do not have."""
    g, at = np.random.default_rng(2).normal(size=(3, *shape)), (axis - len(shape),)
    a = cumulative.slice_along(cells(shape, axis), at, 1, None)
    whole = cumulative.solve_recurrence(np, g, a, at, forward)
    for one, expected in zip(whole, g, strict=True):
        r, rows, factors = [], np.moveaxis(expected, axis, 0), np.moveaxis(a, axis, 0)
        order = range(len(rows)) if forward else range(len(rows) - 1, -1, -1)
        for i in order:
            before = factors[i - 1] if forward and i else factors[i] if not forward and i < len(rows) - 1 else 0
            r.append(rows[i] + (before * r[-1] if r else 0))
        found = np.moveaxis(one, axis, 0)[list(order)]
        np.testing.assert_allclose(found, np.array(r), rtol=1e-11, atol=1e-12)


def test_products_of_the_others():
    x = cells((4, 300), 0)
    expected = [np.prod(np.delete(x, i, 0), 0) for i in range(4)]
    np.testing.assert_allclose(reductions.products_of_others(np, x, (-2,)), expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        reductions.products_of_others(np, np.ascontiguousarray(x.T), (-1,)).T, expected, rtol=1e-13, atol=1e-15
    )

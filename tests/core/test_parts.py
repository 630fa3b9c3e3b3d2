"""Cotangents of parts are added to the whole in place: each slice costs what it has, not what it was taken from."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.autograd import grad
from gradlab.core.engine import LARGE
from gradlab.core.observers import Observer, observing

SHAPE = (80, 100)
INDICES = [
    (3,),
    (slice(10, 40),),
    (Ellipsis, slice(None, None, 3)),
    (slice(5, 60, 7), 4),
    (None, 5),
    (Ellipsis, -1),
    (slice(2, 9), None, slice(50, 60)),
    (np.array([1, 1, 2]),),
    (np.arange(80) % 3 == 0,),
    (slice(0, 0),),
    (7, 8),
    (np.array([[5, -1], [5, 5]]), np.array([0, 99])),
    (slice(3, 70), np.array([4, 4, 90])),
    (np.arange(80).repeat(3) % 7,),
]


class Onlooker(Observer):
    """While somebody looks on, every cotangent is made: the plain way."""

    def visit(self, node, g, cotangents):
        assert all(c is not None for c, edge in zip(cotangents, node.edges, strict=True) if edge is not None)


def leaf(rng, shape=SHAPE):
    return gl.tensor(rng.normal(size=shape), requires_grad=True)


def picked(x, index):
    return x[tuple(gl.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("inner", [False, True])
def test_gradients_of_slices_are_what_numpy_adds_up(seed, inner):
    rng = np.random.default_rng(seed)
    x = leaf(rng)
    assert x.array.size >= LARGE
    y = x.sin() if inner else x
    chosen = [INDICES[k] for k in rng.integers(0, len(INDICES), 6)]
    weights = [rng.normal(size=picked(y, index).array.shape) for index in chosen]
    total = (y * y).sum()
    for index, w in zip(chosen, weights, strict=True):
        total = total + (picked(y, index) * gl.from_numpy(w)).sum()
    expected = 2 * y.array
    for index, w in zip(chosen, weights, strict=True):
        np.add.at(expected, index, w)
    expected = expected * np.cos(x.array) if inner else expected
    (found,) = grad(total, [x], retain_graph=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    with observing(Onlooker()):
        (plain,) = grad(total, [x], retain_graph=True)
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-14, atol=1e-14)
    (again,) = grad(total, [x])
    np.testing.assert_array_equal(again.array, found.numpy())


def test_batched_cotangents():
    rng = np.random.default_rng(0)
    x = leaf(rng)
    z = picked(x, (slice(None), slice(0, 2))) * 3 + picked(x, (slice(None), slice(1, 3)))
    g = rng.normal(size=(4, 80, 2))
    (found,) = grad(z, [x], gl.from_numpy(g), is_grads_batched=True)
    expected = np.zeros((4, *SHAPE))
    expected[:, :, 0:2] += 3 * g
    expected[:, :, 1:3] += g
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)


def test_memory_of_others_is_left_alone():
    """The root's weight, what a hook has kept, and a cotangent that two edges share."""
    rng = np.random.default_rng(1)
    x, w, seen = leaf(rng), rng.normal(size=SHAPE), []
    before = w.copy()
    y = x * 1
    part = picked(y, (slice(0, 10),))
    grad([y, part], [x], [gl.from_numpy(w), gl.from_numpy(np.ones((10, 100)))], retain_graph=True)
    np.testing.assert_array_equal(w, before)
    y.register_hook(lambda g: seen.append((g, g.array.copy())))
    u, v = x.sin(), x.sin()
    total = ((u + v) * gl.from_numpy(w)).sum() + picked(u, (3,)).sum() + (picked(y, (slice(0, 10),)) * 2).sum() + y.sum()
    gu, gv, gx = grad(total, [u, v, x])
    expected = w.copy()
    expected[3] += 1
    np.testing.assert_array_equal(gu.array, expected)
    np.testing.assert_array_equal(gv.array, w)
    for held, copied in seen:
        np.testing.assert_array_equal(held.array, copied)
    more = np.ones(SHAPE)
    more[:10] += 2
    np.testing.assert_allclose(gx.array, (expected + w) * np.cos(x.array) + more, rtol=1e-12)


def test_a_derivative_of_the_derivative():
    rng = np.random.default_rng(2)
    x = leaf(rng)
    total = (picked(x, (slice(0, 40),)) ** 3).sum() + (picked(x, (slice(20, 60),)) ** 3).sum() + (x * x).sum()
    (first,) = grad(total, [x], create_graph=True)
    (second,) = grad(first.sum(), [x])
    counted = np.zeros((80, 1))
    counted[0:40] += 1
    counted[20:60] += 1
    np.testing.assert_allclose(second.array, 6 * x.array * counted + 2, rtol=1e-12)


@pytest.mark.parametrize(
    "index", [lambda i: (i,), lambda i: (np.array([i, i]), np.array([3, 4])), lambda i: (np.arange(80) == i,)]
)
def test_of_many_parts_only_the_first_makes_zeros(index, monkeypatch):
    made, zeros = [], np.zeros
    y = leaf(np.random.default_rng(3)).sin()
    total = sum(picked(y, index(i)).sum() for i in range(80))

    def counted(shape, *args, **kwargs):
        made.append(shape)
        return zeros(shape, *args, **kwargs)

    monkeypatch.setattr(np, "zeros", counted)
    gl.autograd.grad(total, [y])
    assert made.count(SHAPE) == 1

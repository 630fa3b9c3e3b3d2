"""Cotangents of slices are added in place, in time proportional to the slice instead of the whole tensor."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl
from gradlab.autograd import grad
from gradlab.core.engine import MIN_SIZE_IN_PLACE
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


class VisitEveryNode(Observer):
    """Observer under which the sweep computes every cotangent, without adding slices in place."""

    def on_node(self, node, g, cotangents):
        assert all(c is not None for c, edge in zip(cotangents, node.edges, strict=True) if edge is not None)


def leaf(rng, shape=SHAPE):
    return gl.tensor(rng.normal(size=shape), requires_grad=True)


def pick(x, index):
    return x[tuple(gl.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("inner", [False, True])
def test_gradients_of_slices_match_numpy(seed, inner):
    rng = np.random.default_rng(seed)
    x = leaf(rng)
    assert x.array.size >= MIN_SIZE_IN_PLACE
    y = x.sin() if inner else x
    chosen = [INDICES[k] for k in rng.integers(0, len(INDICES), 6)]
    weights = [rng.normal(size=pick(y, index).array.shape) for index in chosen]
    total = (y * y).sum()
    for index, w in zip(chosen, weights, strict=True):
        total = total + (pick(y, index) * gl.from_numpy(w)).sum()
    expected = 2 * y.array
    for index, w in zip(chosen, weights, strict=True):
        np.add.at(expected, index, w)
    expected = expected * np.cos(x.array) if inner else expected
    (found,) = grad(total, [x], retain_graph=True)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)
    with observing(VisitEveryNode()):
        (plain,) = grad(total, [x], retain_graph=True)
    np.testing.assert_allclose(found.numpy(), plain.numpy(), rtol=1e-14, atol=1e-14)
    (again,) = grad(total, [x])
    np.testing.assert_array_equal(again.array, found.numpy())


def test_batched_cotangents():
    rng = np.random.default_rng(0)
    x = leaf(rng)
    z = pick(x, (slice(None), slice(0, 2))) * 3 + pick(x, (slice(None), slice(1, 3)))
    g = rng.normal(size=(4, 80, 2))
    (found,) = grad(z, [x], gl.from_numpy(g), is_grads_batched=True)
    expected = np.zeros((4, *SHAPE))
    expected[:, :, 0:2] += 3 * g
    expected[:, :, 1:3] += g
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-14)


def test_borrowed_memory_is_not_changed():
    """The weights of the root, a gradient kept by a hook, and a cotangent shared by two edges."""
    rng = np.random.default_rng(1)
    x, w, seen = leaf(rng), rng.normal(size=SHAPE), []
    before = w.copy()
    y = x * 1
    part = pick(y, (slice(0, 10),))
    grad([y, part], [x], [gl.from_numpy(w), gl.from_numpy(np.ones((10, 100)))], retain_graph=True)
    np.testing.assert_array_equal(w, before)
    y.register_hook(lambda g: seen.append((g, g.array.copy())))
    u, v = x.sin(), x.sin()
    total = ((u + v) * gl.from_numpy(w)).sum() + pick(u, (3,)).sum() + (pick(y, (slice(0, 10),)) * 2).sum() + y.sum()
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


def test_second_derivative():
    rng = np.random.default_rng(2)
    x = leaf(rng)
    total = (pick(x, (slice(0, 40),)) ** 3).sum() + (pick(x, (slice(20, 60),)) ** 3).sum() + (x * x).sum()
    (first,) = grad(total, [x], create_graph=True)
    (second,) = grad(first.sum(), [x])
    count = np.zeros((80, 1))
    count[0:40] += 1
    count[20:60] += 1
    np.testing.assert_allclose(second.array, 6 * x.array * count + 2, rtol=1e-12)


@pytest.mark.parametrize(
    "index", [lambda i: (i,), lambda i: (np.array([i, i]), np.array([3, 4])), lambda i: (np.arange(80) == i,)]
)
def test_only_the_first_of_many_slices_allocates_zeros(index, monkeypatch):
    made, zeros = [], np.zeros
    y = leaf(np.random.default_rng(3)).sin()
    total = sum(pick(y, index(i)).sum() for i in range(80))

    def count(shape, *args, **kwargs):
        made.append(shape)
        return zeros(shape, *args, **kwargs)

    monkeypatch.setattr(np, "zeros", count)
    gl.autograd.grad(total, [y])
    assert made.count(SHAPE) == 1

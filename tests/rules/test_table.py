"""The table of primitives against checks that hold for every one of them.

Independent of the rules are: finite differences of the forward, ⟨g, Ju⟩ = ⟨vᵀJ, u⟩, rows one by one, second differences.
"""
from __future__ import annotations

import numpy as np
import pytest
from rules.table import CASES

import gradlab as gl
from gradlab.autograd import grad, jvp_of_graph
from gradlab.core.primitive import PRIMITIVES
from gradlab.core.sparsity import pattern
from gradlab.core.tensor import constant

STEP = 1e-6


def leaf(array, requires_grad=True):
    return constant(np.asarray(array)).requires_grad_(requires_grad)


@pytest.fixture(params=CASES, ids=str)
def sample(request):
    case = request.param
    rng = np.random.default_rng(7)
    return case, rng, [leaf(rng.uniform(0.5, 1.5, shape)) for shape in case.shapes]


def tolerance(case):
    return 2e-1 if case.primitive == "astype" else 1e-6                       # the sample goes through float32


def test_every_primitive_has_a_row():
    assert set(PRIMITIVES) == {case.primitive for case in CASES}


def test_the_sample_reaches_its_primitive(sample):
    case, _, xs = sample
    stack, seen = [case.function(*xs).node], set()
    while stack:
        node = stack.pop()
        if node is not None and node.op is not None:
            seen.add(node.op.name)
            stack.extend(node.edges)
    assert case.primitive in seen


def test_tangents_are_finite_differences(sample):
    case, rng, xs = sample
    us = [rng.standard_normal(x.shape) for x in xs]
    t = jvp_of_graph(case.function(*xs), xs, [constant(u) for u in us])[0]
    up, down = (case.function(*(leaf(x.array + s * STEP * u) for x, u in zip(xs, us, strict=True))).array for s in (1, -1))
    np.testing.assert_allclose(t.array, (up - down) / (2 * STEP), atol=tolerance(case), rtol=1e-5)


@pytest.mark.parametrize("batch", [2, 3, "square"])
def test_batched_traced_and_transposed_agree(sample, batch):
    """A batch unequal and equal to the other sizes: an identity cotangent on a square shape would hide a transposed rule."""
    case, rng, xs = sample
    y = case.function(*xs)
    lead = y.array.size if batch == "square" else batch
    g = rng.standard_normal((lead, *y.shape))
    rows = grad(y, xs, constant(g), retain_graph=True, is_grads_batched=True)
    traced = grad(y, xs, constant(g), create_graph=True, is_grads_batched=True)
    single = [grad(y, xs, constant(one), retain_graph=True) for one in g]
    us = [rng.standard_normal((lead, *x.shape)) for x in xs]
    tangents = [constant(u) for u in us]
    t = jvp_of_graph(y, xs, tangents, is_batched=True)[0]
    for i in range(len(xs)):
        assert rows[i].array.shape == (lead, *xs[i].shape)
        np.testing.assert_allclose(rows[i].array, np.stack([s[i].array for s in single]), atol=1e-6)
        np.testing.assert_allclose(traced[i].array, rows[i].array, atol=1e-6)
    traced_tangent = jvp_of_graph(y, xs, tangents, is_batched=True, create_graph=True)[0]
    np.testing.assert_allclose(traced_tangent.array, t.array, atol=1e-6)
    forwards = [(g[k] * t.array[k]).sum() for k in range(lead)]
    backwards = [sum((r.array[k] * u[k]).sum() for r, u in zip(rows, us, strict=True)) for k in range(lead)]
    np.testing.assert_allclose(forwards, backwards, atol=1e-5 if case.primitive == "astype" else 1e-9)


def test_second_order(sample):
    """The gradient of ⟨gradient of f², w⟩ along a direction, against differences of first-order gradients."""
    case, rng, xs = sample
    ws = [rng.standard_normal(x.shape) for x in xs]
    us = [rng.standard_normal(x.shape) for x in xs]
    c = constant(rng.standard_normal(case.function(*xs).shape))

    def slope(points, create_graph):
        y = case.function(*points)
        found = grad(y * y, points, c, create_graph=create_graph)
        return sum(((g * constant(w)).sum() for g, w in zip(found, ws, strict=True)), start=gl.tensor(0.0, dtype=gl.float64))

    seconds = grad(slope(xs, True), xs, materialize_grads=True)
    found = sum((s.array * u).sum() for s, u in zip(seconds, us, strict=True))
    up, down = (slope([leaf(x.array + s * STEP * u) for x, u in zip(xs, us, strict=True)], False).array for s in (1, -1))
    np.testing.assert_allclose(found, (up - down) / (2 * STEP), rtol=1e-4 if case.primitive != "astype" else 1.0,
                               atol=1e-3 if case.primitive != "astype" else 10.0)


def test_float32_stays_float32(sample):
    case, rng, xs = sample
    if case.primitive == "astype":
        pytest.skip("its sample is a cast")
    xs = [leaf(x.array.astype(np.float32)) for x in xs]
    y = case.function(*xs)
    assert y.dtype is gl.float32
    rows = grad(y, xs, constant(rng.standard_normal(y.shape).astype(np.float32)), retain_graph=True)
    assert [r.dtype for r in rows] == [gl.float32] * len(xs)
    t = jvp_of_graph(y, xs, [constant(np.ones(x.shape, np.float32)) for x in xs])[0]
    assert t.dtype is gl.float32


def test_reads_are_the_nonzeros(sample):
    """`reads` gives exactly the entries of the Jacobian that finite differences find (covers them, where a value chose)."""
    case, _, xs = sample
    y = case.function(*xs)
    for i, x in enumerate(xs):
        found = np.zeros((y.array.size, x.array.size))
        found[pattern(y.node, x.node)] = 1
        differences = np.zeros_like(found)
        for k in range(x.array.size):
            moved = []
            for sign in (1, -1):
                array = x.array.copy()
                array.flat[k] += sign * 1e-3
                moved.append(case.function(*xs[:i], leaf(array), *xs[i + 1:]).array.ravel())
            differences[:, k] = np.abs(moved[0] - moved[1]) > 1e-9
        assert not (differences * (1 - found)).any(), "an entry that is not in the pattern moved the output"
        if not case.coincidence:
            np.testing.assert_array_equal(found, differences)

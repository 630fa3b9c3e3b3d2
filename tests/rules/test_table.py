"""Check every primitive in the table.

The references are independent of the rules: finite differences of the forward, ⟨g, Ju⟩ = ⟨vᵀJ, u⟩, single rows, and second
differences.
"""

from __future__ import annotations

import numpy as np
import pytest
from grouped import check_each, for_each_sample
from rules.table import CASES, GROUPS

import gradlab as gl
from gradlab.autograd import grad, jvp_of_graph
from gradlab.core.registry import PRIMITIVES
from gradlab.core.sparsity import pattern
from gradlab.core.tensor import constant

STEP = 1e-6


def host(tensor):
    """Return a tensor's values as a NumPy array, from any device."""
    array = tensor.array
    return array if isinstance(array, np.ndarray) else array.get()


class Sample:
    """A case with its inputs on a backend."""

    def __init__(self, case, backend):
        self.case, self.backend, self.rng = case, backend, np.random.default_rng(7)
        self.xs = [self.leaf(self.rng.uniform(0.5, 1.5, shape)) for shape in case.shapes]

    def constant(self, array):
        return constant(self.backend(np.asarray(array)))

    def leaf(self, array):
        return self.constant(array).requires_grad_()

    def __call__(self, *xs):
        return self.case.function(*(xs or self.xs))

    def __str__(self):
        return str(self.case)


@pytest.fixture(params=GROUPS)
def samples(request, backend):
    return [Sample(case, backend) for case in GROUPS[request.param]]


def tolerance(case):
    return 2e-1 if case.primitive == "astype" else 1e-6  # the sample goes through float32


def test_every_primitive_has_a_row():
    assert set(PRIMITIVES) == {case.primitive for case in CASES}


@for_each_sample
def test_the_sample_reaches_its_primitive(sample):
    stack, seen = [sample().node], set()
    while stack:
        node = stack.pop()
        if node is not None and node.op is not None:
            seen.add(node.op.name)
            stack.extend(node.edges)
    assert sample.case.primitive in seen


@for_each_sample
def test_tangents_are_finite_differences(sample):
    us = [sample.rng.standard_normal(x.shape) for x in sample.xs]
    t = jvp_of_graph(sample(), sample.xs, [sample.constant(u) for u in us])[0]
    up, down = (host(sample(*(sample.leaf(host(x) + s * STEP * u) for x, u in zip(sample.xs, us, strict=True)))) for s in (1, -1))
    np.testing.assert_allclose(host(t), (up - down) / (2 * STEP), atol=tolerance(sample.case), rtol=1e-5)


@for_each_sample
def test_batched_traced_and_transposed_agree(sample):
    """Use batches of other sizes and of the same size: an identity cotangent on a square shape would hide a transposed rule."""
    y = sample()
    check_each([2, 3, y.array.size], lambda lead: compare_batches(sample, y, lead))


def compare_batches(sample, y, lead):
    xs, rng = sample.xs, sample.rng
    g = rng.standard_normal((lead, *y.shape))
    rows = grad(y, xs, sample.constant(g), retain_graph=True, is_grads_batched=True)
    traced = grad(y, xs, sample.constant(g), create_graph=True, is_grads_batched=True)
    single = [grad(y, xs, sample.constant(one), retain_graph=True) for one in g]
    us = [rng.standard_normal((lead, *x.shape)) for x in xs]
    tangents = [sample.constant(u) for u in us]
    t = jvp_of_graph(y, xs, tangents, is_batched=True)[0]
    for i in range(len(xs)):
        assert rows[i].array.shape == (lead, *xs[i].shape)
        np.testing.assert_allclose(host(rows[i]), np.stack([host(s[i]) for s in single]), atol=1e-6)
        np.testing.assert_allclose(host(traced[i]), host(rows[i]), atol=1e-6)
    traced_tangent = jvp_of_graph(y, xs, tangents, is_batched=True, create_graph=True)[0]
    np.testing.assert_allclose(host(traced_tangent), host(t), atol=1e-6)
    forwards = [(g[k] * host(t)[k]).sum() for k in range(lead)]
    backwards = [sum((host(r)[k] * u[k]).sum() for r, u in zip(rows, us, strict=True)) for k in range(lead)]
    np.testing.assert_allclose(forwards, backwards, atol=1e-5 if sample.case.primitive == "astype" else 1e-9)


@for_each_sample
def test_second_order(sample):
    """Compare the gradient of ⟨gradient of f², w⟩ along a direction with differences of first-order gradients."""
    if sample.case.primitive == "astype":  # a difference of 1e-6 is lost in float32
        return
    xs, rng = sample.xs, sample.rng
    ws = [rng.standard_normal(x.shape) for x in xs]
    us = [rng.standard_normal(x.shape) for x in xs]
    c = sample.constant(rng.standard_normal(sample().shape))

    def slope(points, create_graph):
        y = sample(*points)
        found = grad(y * y, points, c, create_graph=create_graph)
        total = [(g * sample.constant(w)).sum() for g, w in zip(found, ws, strict=True)]
        return sum(total[1:], start=total[0])

    seconds = grad(slope(xs, True), xs, materialize_grads=True)
    found = sum((host(s) * u).sum() for s, u in zip(seconds, us, strict=True))
    up, down = (host(slope([sample.leaf(host(x) + s * STEP * u) for x, u in zip(xs, us, strict=True)], False)) for s in (1, -1))
    np.testing.assert_allclose(found, (up - down) / (2 * STEP), rtol=1e-4, atol=1e-3)


@for_each_sample
def test_float32_stays_float32(sample):
    if sample.case.primitive == "astype":  # its sample is a cast
        return
    xs = [sample.leaf(host(x).astype(np.float32)) for x in sample.xs]
    y = sample(*xs)
    assert y.dtype is gl.float32
    rows = grad(y, xs, sample.constant(sample.rng.standard_normal(y.shape).astype(np.float32)), retain_graph=True)
    assert [r.dtype for r in rows] == [gl.float32] * len(xs)
    t = jvp_of_graph(y, xs, [sample.constant(np.ones(x.shape, np.float32)) for x in xs])[0]
    assert t.dtype is gl.float32


@for_each_sample
def test_reads_are_the_nonzeros(sample):
    """`reads` must return the nonzeros of the Jacobian by finite differences (for `coincidence`, cover them)."""
    y, xs, case = sample(), sample.xs, sample.case
    for i, x in enumerate(xs):
        found = np.zeros((y.array.size, x.array.size))
        found[pattern(y.node, x.node)] = 1
        differences = np.zeros_like(found)
        for k in range(x.array.size):
            moved = []
            for sign in (1, -1):
                array = host(x).copy()
                array.flat[k] += sign * 1e-3
                moved.append(host(sample(*xs[:i], sample.leaf(array), *xs[i + 1 :])).ravel())
            differences[:, k] = np.abs(moved[0] - moved[1]) > 1e-9
        assert not (differences * (1 - found)).any(), "an entry outside the pattern changed the output"
        if not case.coincidence:
            np.testing.assert_array_equal(found, differences)

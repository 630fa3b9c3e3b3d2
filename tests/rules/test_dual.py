"""Compare dual tensors, for every primitive, with the forward sweep over the recorded graph and with finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from grouped import check_each, for_each_sample
from rules.table import GROUPS

import gradlab as gl
from gradlab.autograd import grad, jvp_of_graph
from gradlab.autograd.forward_ad import dual_level, make_dual, unpack_dual
from gradlab.core.tensor import constant

STEP = 1e-6


class Sample:
    """A case on a backend, with values and directions for its inputs."""

    def __init__(self, case, backend):
        self.case, self.backend, self.rng = case, backend, np.random.default_rng(7)
        self.arrays = [self.rng.uniform(0.5, 1.5, shape) for shape in case.shapes]
        self.us = [self.rng.standard_normal(shape) for shape in case.shapes]

    def __str__(self):
        return str(self.case)

    def tensors(self, arrays):
        return [constant(self.backend(np.asarray(a))) for a in arrays]

    def values(self, arrays):
        return host(self.case.function(*self.tensors(arrays)))

    def tangent(self, xs, us):
        return unpack_dual(self.case.function(*map(make_dual, xs, us))).tangent

    def difference(self, us):
        """Return the central difference of the values along a direction."""
        up, down = (self.values([x + s * STEP * u for x, u in zip(self.arrays, us, strict=True)]) for s in (1, -1))
        return (up - down) / (2 * STEP)

    def close(self, found, expected):
        np.testing.assert_allclose(found, expected, atol=2e-1 if self.case.primitive == "astype" else 1e-6, rtol=1e-5)


def host(tensor):
    """Return a tensor's values as a NumPy array, from any device."""
    return tensor.array if isinstance(tensor.array, np.ndarray) else tensor.array.get()


@pytest.fixture(params=GROUPS)
def samples(request):
    return [Sample(case, np.asarray) for case in GROUPS[request.param]]


@pytest.mark.parametrize("primitive", GROUPS)
def test_unrecorded_tangents_are_finite_differences(primitive, backend):
    check_each(GROUPS[primitive], lambda case: compare_unrecorded(Sample(case, backend)))


def compare_unrecorded(sample):
    with gl.no_grad(), dual_level():
        t = sample.tangent(sample.tensors(sample.arrays), sample.tensors(sample.us))
    assert t.node is None
    sample.close(host(t), sample.difference(sample.us))
    assert (host(t).dtype, host(t).shape) == ((y := sample.values(sample.arrays)).dtype, y.shape)


@for_each_sample
def test_a_single_tangent(sample):
    """The rule of one argument may need values that the rules of the others do not."""
    for i in range(len(sample.arrays)):
        us = [u * (i == k) for k, u in enumerate(sample.us)]
        with dual_level():
            xs = sample.tensors(sample.arrays)
            xs[i] = make_dual(xs[i], *sample.tensors([us[i]]))
            t = unpack_dual(sample.case.function(*xs)).tangent
        expected = sample.difference(us)
        sample.close(0 * expected if t is None else host(t), expected)


@for_each_sample
def test_the_gradient_of_a_tangent_is_that_of_the_sweep(sample):
    xs, ts = ([x.requires_grad_() for x in sample.tensors(given)] for given in (sample.arrays, sample.us))
    y = sample.case.function(*xs)
    swept = jvp_of_graph(y, xs, ts, create_graph=True)[0]
    with dual_level():
        stepped = sample.tangent(xs, ts)
        np.testing.assert_allclose(host(stepped), host(swept), atol=1e-12)
        w = sample.tensors([sample.rng.standard_normal(y.shape).astype(y.array.dtype)])[0]
        zeros = sample.tensors([np.zeros(x.shape) for x in (*xs, *ts)])  # for a constant tangent
        found, expected = (grad(t, [*xs, *ts], w, materialize_grads=True) if t.requires_grad else zeros for t in (stepped, swept))
    for f, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(host(f), host(e), atol=1e-9, rtol=1e-9)


@for_each_sample
def test_tangents_share_memory_only_if_the_results_do(sample):
    """A write into the tangent of a result must not change the tangent of an argument, unless the result is a view."""
    if sample.case.primitive == "transfer":  # its sample does not change the device
        return
    with gl.no_grad(), dual_level():
        duals = list(map(make_dual, sample.tensors(sample.arrays), sample.tensors(sample.us)))
        y = sample.case.function(*duals)
        for x in duals:
            t, own = unpack_dual(y).tangent, unpack_dual(x).tangent
            assert np.shares_memory(t.array, own.array) == np.shares_memory(y.array, x.array)


@for_each_sample
def test_float32_stays_float32(sample):
    if sample.case.primitive == "astype":  # its sample is a cast
        return
    with dual_level():
        t = sample.tangent(*(sample.tensors([a.astype(np.float32) for a in given]) for given in (sample.arrays, sample.us)))
    assert t.dtype is gl.float32

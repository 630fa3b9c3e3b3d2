"""Nodes as users see them, nested backward passes, and threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from threads import run_in_threads

import gradlab as gl


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return None if x is None else x.detach().numpy().tolist()


# ------------------------------------------------------------------------------------------------------------------- nodes
def test_nodes(t):
    x = leaf(t, 1.0, 2.0)
    y = x * t.ones(2, dtype=t.float64)
    node = y.exp().grad_fn
    assert node.name() == type(node).__name__ == "ExpBackward0" and repr(node).startswith("<ExpBackward0 object at 0x")
    ((below, number),) = node.next_functions
    assert below is y.grad_fn and number == 0 and y.output_nr == 0
    (last, _), (nothing, zero) = below.next_functions
    assert last.variable is x and last.next_functions == () and last.name().endswith("AccumulateGrad")
    assert (nothing, zero) == (None, 0)
    assert last is x.view_as(x).grad_fn.next_functions[0][0]
    assert all(isinstance(n, t.autograd.graph.Node) for n in (node, below, last)) and not isinstance(x, t.autograd.graph.Node)
    node.metadata["mine"] = 1
    assert node.metadata == {"mine": 1} and below.metadata == {}
    assert node._sequence_nr() > below._sequence_nr() and last._sequence_nr() == 2**64 - 1
    assert tuple(node._input_metadata[0].shape) == (2,) and node._input_metadata[0].dtype == t.float64


def test_nodes_can_be_called(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    g = t.ones(2, dtype=t.float64)
    y = x.exp()
    one = y.grad_fn(g)
    assert one.requires_grad and values(one) == values(y)
    product = x * w
    with t.no_grad():
        two = product.grad_fn(g * 2)
    assert [values(c) for c in two] == [[6, 8], [2, 4]] and not two[0].requires_grad
    assert values(y.grad_fn(g)) == values(y)  # nothing is freed
    assert (x * 1).grad_fn.next_functions[0][0](g) == () and values(x.grad) == [1, 1]
    assert (x * w).grad_fn(None) == (None, None)
    for given, text in (
        ((), "expected 1 arguments, got 0 instead"),
        ((g, g), "expected 1 arguments, got 2 instead"),
        ((3.0,), "argument 0 is not a Variable"),
    ):
        with pytest.raises(TypeError, match=text):
            y.grad_fn(*given)


def test_increment_version(t):
    x = leaf(t, 1.0)
    h = x * 1
    y = h.exp()
    t.autograd.graph.increment_version(y)
    t.autograd.graph.increment_version([h, y])
    assert (h._version, y._version) == (1, 2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    for wrong, text in (
        (3, r"increment_version expect a Iterable\[Tensor\] as input"),
        ([3], "increment_version expects each element of the iterable to be a tensor"),
    ):
        with pytest.raises(RuntimeError, match=text):
            t.autograd.graph.increment_version(wrong)


def test_invalid_gradient_edges():
    y = leaf(gl, 1.0) * 2
    with pytest.raises(IndexError, match="MulBackward0 has 1 output, so output_nr=1 is out of range"):
        gl.autograd.grad(y, gl.autograd.graph.GradientEdge(y.grad_fn, 1))
    with pytest.raises(TypeError, match="expected a node, as returned by `grad_fn`, got int"):
        gl.autograd.grad(y, gl.autograd.graph.GradientEdge(3, 0))


# --------------------------------------------------------------------------------------------------- nested backward passes
def run_nested_backward(t, levels, seen=None):
    """Run a Function whose backward calls backward on itself, `levels` deep, and return the gradient."""

    class Nested(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            ctx.levels = levels
            return x * 1

        @staticmethod
        def backward(ctx, g):
            if ctx.levels:
                with t.enable_grad():
                    inner = leaf(t, 1.0)
                    Nested.apply(inner, ctx.levels - 1).sum().backward()
                g = g + inner.grad
            return g, None

    x = leaf(t, 1.0)
    Nested.apply(x, levels).sum().backward()
    return values(x.grad)


@pytest.mark.parametrize("levels", [0, 1, 5, 1000])
def test_a_backward_in_a_backward(t, levels):
    assert run_nested_backward(t, levels) == [levels + 1]


def test_a_backward_in_a_hook(t):
    log = []
    x, w = leaf(t, 2.0), leaf(t, 3.0)
    y = x * 2

    def hook(g):
        with t.enable_grad():
            (w * w).sum().backward()
            log.append(values(w.grad))
            log.append(values(t.autograd.grad((w**3).sum(), w)[0]))

    y.register_hook(hook)
    (y * x).sum().backward()
    assert log == [[6], [27]] and values(x.grad) == [8] and not hasattr(x, "nothing")
    assert t.is_grad_enabled()


def test_errors_of_inner_sweeps_are_raised(t):
    x = leaf(t, 1.0)
    y = x * 2

    def inner(g):
        with t.enable_grad():
            z = leaf(t, 1.0)
            z.register_hook(lambda g: {}["missing"])
            (z * 1).sum().backward()

    y.register_hook(inner)
    with pytest.raises(KeyError, match="missing"):
        y.backward()
    assert t.is_grad_enabled() and x.grad is None


def test_inner_sweeps_of_other_threads_see_the_modes():
    """Deeply nested sweeps continue in a new thread, which must have the modes and observers of this thread."""
    from gradlab.core.observers import Observer, observing

    seen = []

    class Seeing(Observer):
        def on_sweep_begin(self, sweep):
            seen.append(threading.current_thread())

        def on_sweep_end(self, sweep, error):
            seen.append(error)

    with observing(Seeing()):
        assert run_nested_backward(gl, 100) == [101]
    assert len(seen) == 202 and seen[101:] == [None] * 101 and len(set(seen[:101])) > 1


# ----------------------------------------------------------------------------------------------------------------- threads
@pytest.mark.parametrize("size", [2, 2_000, 200_000])
def test_threads_accumulate_into_one_leaf(size):
    """Without a lock, about one run in three loses a gradient."""
    v = gl.ones(size, dtype=gl.float64)
    for _ in range(8):
        x = gl.zeros(size, dtype=gl.float64, requires_grad=True)
        together = threading.Barrier(4)

        def work(i, x=x, together=together):
            together.wait()
            for _ in range(50):
                x.backward(v)

        run_in_threads(work)
        assert set(x.grad.array) == {200.0}


def test_threads_with_separate_graphs_share_leaves():
    x = gl.ones(2, dtype=gl.float64, requires_grad=True)

    def work(i):
        for _ in range(50):
            (x * (i + 1.0) + x).sum().backward()

    run_in_threads(work)
    assert set(x.grad.array) == {50.0 * (2 + 3 + 4 + 5)}


def test_threads_run_backward_on_one_graph():
    x = gl.ones(100, dtype=gl.float64, requires_grad=True)
    y = ((x * x).exp() * x).sum()
    (want,) = gl.autograd.grad(y, x, retain_graph=True)

    def work(i):
        for _ in range(25):
            np.testing.assert_array_equal(gl.autograd.grad(y, x, retain_graph=True)[0].array, want.array)
            y.backward(retain_graph=True)

    run_in_threads(work)
    np.testing.assert_allclose(x.grad.array, 100 * want.array, rtol=1e-12)

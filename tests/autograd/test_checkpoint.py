"""Activation checkpointing: the same gradients with less memory, and an error if the two runs of the function differ."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from importlib import import_module

import numpy as np
import pytest

import gradlab as gl
from gradlab.utils.checkpoint import CheckpointError
from gradlab.utils.checkpoint import checkpoint as ours


@pytest.fixture
def utils(t):
    return import_module(f"{t.__name__}.utils.checkpoint")


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return x.detach().numpy().tolist()


AT, W = np.array([0.3, 0.5]), np.array([2.0, 1.0])
SLOPE = (1 - np.tanh(np.sin(AT) * W) ** 2) * np.cos(AT) * W  # the derivative of tanh(w sin x) with respect to x
BY_W = (1 - np.tanh(np.sin(AT) * W) ** 2) * np.sin(AT)


def setting(t):
    """Return x, w, and the function tanh(w sin x)."""
    x, w = leaf(t, *AT), leaf(t, *W)
    return x, w, lambda x: (x.sin() * w).tanh()


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients(t, utils, reentrant):
    x, w, f = setting(t)
    y = utils.checkpoint(f, x, use_reentrant=reentrant)
    assert y.grad_fn.name() == ("CheckpointFunctionBackward" if reentrant else "TanhBackward0")
    y.sum().backward()
    np.testing.assert_allclose(values(x.grad), SLOPE, rtol=1e-14)
    np.testing.assert_allclose(values(w.grad), BY_W, rtol=1e-14)


@pytest.mark.parametrize("reentrant", [False, True])
def test_several_arguments_and_results(t, utils, reentrant):
    x, w, _ = setting(t)
    p, q, n = utils.checkpoint(lambda x, k, w: (x * k, x.sin() * w, 3), x, 2, w, use_reentrant=reentrant)
    (p.sum() + q.sum()).backward()
    assert n == 3
    np.testing.assert_allclose(values(x.grad), 2 + np.cos(AT) * W, rtol=1e-14)
    np.testing.assert_allclose(values(w.grad), np.sin(AT), rtol=1e-14)


def test_grad_inputs_keywords_and_second_derivatives(t, utils):
    x, w, f = setting(t)
    y = utils.checkpoint(lambda x, *, w: (x.sin() * w).tanh(), x, w=w, use_reentrant=False)
    g, h = t.autograd.grad(y.sum(), [x, w], retain_graph=True)
    np.testing.assert_allclose(values(g), SLOPE, rtol=1e-14)
    np.testing.assert_allclose(values(h), BY_W, rtol=1e-14)
    y.sum().backward(inputs=[w])
    assert x.grad is None and values(w.grad) == values(h)
    (first,) = t.autograd.grad(utils.checkpoint(f, x, use_reentrant=False).sum(), x, create_graph=True)
    (second,) = t.autograd.grad(first.sum(), x)
    (plain,) = t.autograd.grad(t.autograd.grad(f(x).sum(), x, create_graph=True)[0].sum(), x)
    np.testing.assert_allclose(values(second), values(plain), rtol=1e-14)


def test_use_reentrant_should_be_given(t, utils):
    x, _, f = setting(t)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9"):
        y = utils.checkpoint(f, x)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter should be passed explicitly"):
        utils.checkpoint_sequential([f, f], 2, x)


def test_unsupported_options_of_reentrant_checkpoints(t, utils):
    x, _, f = setting(t)
    y = utils.checkpoint(f, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"is incompatible with .grad\(\) or passing an `inputs` parameter to .backward\(\)"):
        t.autograd.grad(y.sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="is incompatible with"):
        y.sum().backward(inputs=[x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        assert not utils.checkpoint(f, x.detach(), use_reentrant=True).requires_grad
    y = utils.checkpoint(lambda x: x.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match=r"none of output has requires_grad=True, this checkpoint\(\) is not necessary"):
        y.sum().backward()


def test_invalid_arguments(t, utils):
    x, _, f = setting(t)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        utils.checkpoint(f, x, use_reentrant=True, foo=1)
    with pytest.raises(ValueError, match="`context_fn` or `debug` is only supported when use_reentrant=False"):
        utils.checkpoint(f, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got foo"):
        utils.checkpoint(f, x, use_reentrant=False, determinism_check="foo")
    with pytest.raises(ValueError, match="Unexpected keyword arguments: foo"):
        utils.checkpoint_sequential([f], 1, x, use_reentrant=False, foo=1)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("preserve", [False, True])
def test_random_numbers(t, utils, reentrant, preserve):
    """The second run draws the same numbers as the first, and does not change the state of the generator."""
    x = leaf(t, *[1.0] * 64)
    t.manual_seed(3)
    y = utils.checkpoint(lambda x: (x * t.rand(64, dtype=t.float64)) * x, x, use_reentrant=reentrant, preserve_rng_state=preserve)
    state = t.get_rng_state()
    y.sum().backward()
    t.manual_seed(3)
    drawn = t.rand(64, dtype=t.float64)
    assert np.allclose(values(x.grad), values(2 * drawn)) == preserve
    t.manual_seed(3)
    t.rand(64, dtype=t.float64)
    assert bool((t.get_rng_state() == state).all())


def runs(t, early=None):
    """Return a function, and a list with the number of completed steps of each run."""
    came = []

    def f(x):
        came.append(0)
        y = x.sin()
        came[-1] += 1
        z = y.exp()
        came[-1] += 1
        return z * 2

    return f, came


def test_the_second_run_stops_when_all_tensors_are_computed(t, utils):
    x = leaf(t, 1.0)
    f, came = runs(t)
    utils.checkpoint(f, x, use_reentrant=False).backward()
    assert came == [2, 1]
    f, came = runs(t)
    utils.checkpoint(f, x, use_reentrant=False, early_stop=False).backward()
    assert came == [2, 2]
    f, came = runs(t)
    with utils.set_checkpoint_early_stop(False):
        y = utils.checkpoint(f, x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert came == [2, 2, 2]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_without_gradients_there_is_one_run(t, utils):
    f, came = runs(t)
    with t.no_grad():
        assert not utils.checkpoint(f, leaf(t, 1.0), use_reentrant=False).requires_grad
    assert came == [2]


# -------------------------------------------------------------------------------------------- functions that differ between runs
def changing(first, second):
    """Return a function that calls `first` in the first run and `second` in the second."""
    calls = []

    def f(x):
        calls.append(0)
        return (first if len(calls) == 1 else second)(x)

    return f


@pytest.mark.parametrize(
    ("second", "options", "message"),
    [
        (
            lambda x: x * 1,
            {},
            (
                r"A different number of tensors was saved during the original forward and recomputation.\n"
                r"Number of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 0."
            ),
        ),
        (lambda x: x.sin().exp().sin(), {"early_stop": False}, "trying to save more tensors during recomputation than during"),
        (
            lambda x: x.sum().sin().exp(),
            {},
            (
                r"have different metadata than during the forward pass.\ntensor at position 0:\n"
                r"saved metadata: \{'shape': \w+.Size\(\[2\]\), 'dtype': \w+.float64, 'device':"
            ),
        ),
        (
            lambda x: x.float().sin().exp(),
            {},
            r"recomputed metadata: \{'shape': \w+.Size\(\[2\]\), 'dtype': \w+.float32, 'device'",
        ),
    ],
)
def test_errors_describe_the_difference(t, utils, second, options, message):
    y = utils.checkpoint(changing(lambda x: x.sin().exp(), second), leaf(t, *AT), use_reentrant=False, **options)
    with pytest.raises(utils.CheckpointError, match=message):
        y.sum().backward()


def test_the_check_can_be_disabled(t, utils):
    y = utils.checkpoint(
        changing(lambda x: x.exp(), lambda x: x.sum().exp()), leaf(t, *AT), use_reentrant=False, determinism_check="none"
    )
    y.sum().backward()


def test_debug_lists_the_operations_of_both_runs():
    f = changing(lambda x: x.sin().exp(), lambda x: x.cos().sum().exp())
    y = ours(f, leaf(gl, *AT), use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError) as raised:
        y.sum().backward()
    first, second = str(raised.value).split("Operations executed during recomputation:")
    assert [line.split("(")[0].strip() for line in first.split("original forward:\n")[1].splitlines()] == ["sin", "exp"]
    assert "cos([2]) -> [2]    test_checkpoint.py line" in second and "sum([2]) -> []" in second
    with gl.utils.checkpoint.set_checkpoint_debug_enabled(True):
        y = ours(changing(lambda x: x.exp(), lambda x: x * 1), leaf(gl, *AT), use_reentrant=False)
    with pytest.raises(CheckpointError, match="Operations executed during recomputation:\n  mul"):
        y.sum().backward()


def test_an_argument_modified_in_place(t, utils):
    x, w, f = setting(t)
    z = x * 1
    y = utils.checkpoint(f, z, use_reentrant=False)
    with t.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* which is output 0 of Mul, is at version 1"):
        y.sum().backward()


def test_a_saved_tensor_modified_by_the_function():
    """This is an error with and without a checkpoint. (Torch computes a wrong gradient.)"""

    def f(x):
        y = x * 1
        z = y * y
        with gl.no_grad():
            y.add_(1)
        return z.exp()

    with pytest.raises(CheckpointError, match="modified by an inplace operation: tensor number"):
        ours(f, leaf(gl, *AT), use_reentrant=False).sum().backward()


def test_errors_of_the_function(t, utils):
    class Suppressing:
        def __enter__(self):
            pass

        def __exit__(self, *raised):
            return True

    def f(x):
        raise ValueError("oops")

    with pytest.raises(ValueError, match="oops"):
        utils.checkpoint(f, leaf(t, 1.0), use_reentrant=False)
    with pytest.raises(RuntimeError, match="the forward context provided by context_fn suppressed an exception"):
        utils.checkpoint(f, leaf(t, 1.0), use_reentrant=False, context_fn=lambda: (Suppressing(), Suppressing()))
    y = utils.checkpoint(changing(lambda x: x.exp(), f), leaf(t, 1.0), use_reentrant=False)
    with pytest.raises(ValueError, match="oops"):
        y.backward()


def test_contexts_of_both_runs(t, utils):
    from contextlib import contextmanager

    entered = []

    @contextmanager
    def context(name):
        entered.append(name)
        yield

    y = utils.checkpoint(
        lambda x: x.exp(), leaf(t, 1.0), use_reentrant=False, context_fn=lambda: (context("one"), context("two"))
    )
    assert entered == ["one"]
    y.backward()
    assert entered == ["one", "two"]


def test_backward_inside_the_function(t, utils):
    def f(x):
        y = x.sin()
        (g,) = t.autograd.grad(y.exp().sum(), x, create_graph=True)
        return g * y.cos()

    for early_stop in (True, False):
        x = leaf(t, *AT)
        (g,) = t.autograd.grad(utils.checkpoint(f, x, use_reentrant=False, early_stop=early_stop).sum(), x)
        (h,) = t.autograd.grad(f(x).sum(), x)
        assert values(g) == values(h)


# ------------------------------------------------------------------------------------------------------------------- structure
def test_nested(t, utils):
    x, w, f = setting(t)

    def inner(x):
        return utils.checkpoint(f, utils.checkpoint(f, x, use_reentrant=False) * 2, use_reentrant=False)

    y = utils.checkpoint(inner, x, use_reentrant=False)
    g, h = t.autograd.grad(y.sum(), [x, w], retain_graph=True)
    again = t.autograd.grad(y.sum(), [x, w])
    plain = t.autograd.grad(f(f(x) * 2).sum(), [x, w])
    assert [values(g), values(h)] == [values(z) for z in again] == [values(z) for z in plain]


def test_inside_hooks_of_the_users(t, utils):
    """The arguments that a checkpoint saves pass through the enclosing hooks."""
    x, w, f = setting(t)
    packed = []
    with t.autograd.graph.saved_tensors_hooks(lambda z: packed.append(values(z)) or z, lambda z: z):
        y = utils.checkpoint(f, x * 2, use_reentrant=False)
    assert packed == [[0.6, 1.0]]
    (g,) = t.autograd.grad(y.sum(), x)
    (h,) = t.autograd.grad(f(x * 2).sum(), x)
    assert values(g) == values(h)


@pytest.mark.parametrize("segments", [1, 2, 3, 5])
@pytest.mark.parametrize("reentrant", [False, True])
def test_sequential(t, utils, segments, reentrant):
    t.manual_seed(0)
    model = t.nn.Sequential(*[layer for _ in range(3) for layer in (t.nn.Linear(3, 3), t.nn.Tanh())][:5]).double()
    x = t.ones(2, 3, dtype=t.float64, requires_grad=True)
    utils.checkpoint_sequential(model, segments, x, use_reentrant=reentrant).sum().backward()
    grads = [values(z.grad) for z in (x, *model.parameters())]
    for z in (x, *model.parameters()):
        z.grad = None
    model(x).sum().backward()
    for got, plain in zip(grads, [values(z.grad) for z in (x, *model.parameters())], strict=True):
        np.testing.assert_allclose(got, plain, rtol=1e-14)


def deep(checkpointed):
    """Return the memory that 24 layers hold before backward and at the peak, in activations of 2 MB, and the gradients."""
    weights = [gl.full((16, 16), 0.05, dtype=gl.float64, requires_grad=True) for _ in range(24)]
    x = gl.ones(16384, 16, dtype=gl.float64, requires_grad=True)

    def part(x, at):
        for w in weights[at : at + 6]:
            x = (x @ w).tanh()
        return x

    tracemalloc.start()
    try:
        h = x
        for at in range(0, 24, 6):
            h = ours(part, h, at, use_reentrant=False) if checkpointed else part(h, at)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        h.sum().backward()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return held / 2**21, peak / 2**21, values(x.grad)


def test_memory():
    """Before backward, only the inputs of the 4 parts are held, not the results of all 24 layers. The peak adds one part."""
    held, peak, grads = deep(checkpointed=False)
    held_here, peak_here, grads_here = deep(checkpointed=True)
    assert grads_here == grads
    assert held > 23 and held_here < 5
    assert peak > 24 and peak_here < 14


def test_a_checkpoint_makes_no_cycle():
    x = leaf(gl, *AT)
    gc.disable()
    try:
        y = ours(lambda x: x.sin().exp(), x, use_reentrant=False)
        node = weakref.ref(y.grad_fn)
        y.sum().backward(retain_graph=True)
        del y
        assert node() is None
    finally:
        gc.enable()

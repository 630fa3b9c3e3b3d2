"""Sweeps, the lifetime of the graph, hooks and observers."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
from threads import no_threads

import gradlab as gl
from gradlab.core.errors import RuleError
from gradlab.core.observers import Observer, observing
from gradlab.core.primitive import elementwise


def test_gradients_accumulate_and_share_no_memory():
    x, y = (gl.ones(10_000, requires_grad=True) for _ in range(2))
    v = gl.ones(10_000)
    z = (x + y + x) * 1.0
    for _ in range(2):
        z.backward(v, retain_graph=True)
    arrays = x.grad.array, y.grad.array, v.array
    assert [a[0] for a in arrays] == [4, 2, 1]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


def test_gradients_of_single_numbers_have_their_own_dtype_shape_and_memory():
    a, b = gl.tensor(0.5, requires_grad=True), gl.tensor(2.0, dtype=gl.float64, requires_grad=True)
    x = gl.tensor([1.0, 3.0], requires_grad=True)
    z = a * a * b + (a * x).sum() * a + a
    v = gl.tensor(10.0, dtype=gl.float64)
    z.backward(v, retain_graph=True)  # 10 (a²b + a²(x₀ + x₁) + a)
    assert a.grad.item() == 10 * (2 * 0.5 * 2 + 2 * 0.5 * 4 + 1)
    assert b.grad.item() == 10 * 0.25
    assert x.grad.tolist() == [2.5, 2.5]
    assert [t.grad.dtype for t in (a, b, x)] == [gl.float32, gl.float64, gl.float32]
    assert [type(t.grad.array) for t in (a, b)] == [np.ndarray, np.ndarray]
    assert not np.shares_memory(b.grad.array, v.array)
    (several,) = gl.autograd.grad(z, a, gl.tensor([1.0, 2.0], dtype=gl.float64), is_grads_batched=True)
    assert several.tolist() == [7, 14]


def test_a_gradient_that_is_the_weight_is_copied_for_single_numbers_too():
    a, b, v = gl.tensor(1.0, requires_grad=True), gl.tensor(2.0, requires_grad=True), gl.tensor(3.0)
    (a + b).backward(v)
    a.grad.mul_(2)
    assert [a.grad.item(), b.grad.item(), v.item()] == [6, 3, 3]


def test_a_search_is_not_reused_for_other_roots_among_the_same_nodes():
    kept = []
    for _ in range(20):  # the order of a set of nodes depends on their addresses
        x, w = gl.ones(2, requires_grad=True), gl.ones(2, requires_grad=True)
        a, v = w * 2, gl.ones(2)
        b = a + x * x
        gl.autograd.grad([a, b], [x], [v, v], retain_graph=True)
        gradients = gl.autograd.grad(b, [x, a], v, retain_graph=True)
        assert [g.tolist() for g in gradients] == [[2, 2], [1, 1]]
        kept.append((x, w, a, b))


def test_fan_out_adds_up_also_in_place():
    x = gl.linspace(0, 1, 5_000, dtype=gl.float64).requires_grad_()
    y = x * 2
    (y * 3 + y * 4 + y * 5 + y * y).sum().backward()
    np.testing.assert_allclose(x.grad.array, 2 * (12 + 2 * 2 * x.array.copy()))


@pytest.mark.slow
def test_a_chain_of_100_000_needs_no_recursion():
    x = gl.ones(2, requires_grad=True)
    z = x
    for _ in range(100_000):
        z = z * 1.0 + x
    z.sum().backward()
    assert x.grad.tolist() == [100_001, 100_001]
    del z  # freeing it needs none either


def test_a_graph_is_freed_without_the_garbage_collector():
    gc.collect()
    gc.disable()
    try:
        x = gl.randn(3, 3, requires_grad=True)
        y = ((x @ x).tanh().exp() + x).softmax(1) * 2
        y.diagonal().add_(1)
        alive = [weakref.ref(y.grad_fn), weakref.ref(y)]
        y.sum().backward()
        del y
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()


def test_the_error_names_the_freed_operation():
    x = gl.tensor(2.0, requires_grad=True)
    y = x.exp()
    y.backward()
    with pytest.raises(
        RuntimeError, match=r"^Trying to backward through the graph a second.*saved by ExpBackward0 have been freed"
    ):
        y.backward()


def test_a_graph_of_sums_may_run_twice():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4, 4]


def test_only_values_needed_by_a_rule_are_saved():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2  # needs 2, not x
    with gl.no_grad():
        x.mul_(10)
    y.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_the_error_names_an_overwritten_saved_tensor():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    y = h.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"inplace operation: \[gradlab.FloatTensor \[2\]\], which is output 0 of"):
        y.sum().backward()
    h = x * 1
    y = h * h
    h[0] = 3.0
    with pytest.raises(RuntimeError, match="MulBackward0 saved it"):
        y.sum().backward()


def test_a_write_to_an_unsaved_tensor_is_allowed():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    h = x.exp()
    y = h + 1
    y.mul_(2)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.array, 2 * np.exp([1.0, 2.0]), rtol=1e-6)


def test_higher_order():
    x = gl.tensor(2.0, requires_grad=True)
    g = x**4
    for want in (32.0, 48.0, 48.0, 24.0, 0.0):
        (g,) = gl.autograd.grad(g, x, create_graph=True, materialize_grads=True)
        assert g.item() == pytest.approx(want)
        if not g.requires_grad:
            break


def test_hooks_run_in_order_and_can_replace():
    seen = []
    x = gl.tensor(3.0, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: seen.append("first") or g * 10)
    handle = y.register_hook(lambda g: seen.append("removed"))
    y.grad_fn.register_prehook(lambda g: seen.append("before the node"))
    y.grad_fn.register_hook(lambda into, out: seen.append("after the node"))
    x.register_hook(lambda g: seen.append("at the leaf"))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(f"written {t.grad.item()}"))
    handle.remove()
    (y * 1).backward()
    assert seen == ["first", "before the node", "after the node", "at the leaf", "written 20.0"]
    assert y.grad.item() == 10


def test_a_gradient_kept_by_a_hook_does_not_change():
    kept = []
    x = gl.ones(5_000, requires_grad=True)
    y = x * 1
    y.register_hook(kept.append)
    (y * 2).sum().backward()
    x.grad.zero_()
    assert kept[0].array[0] == 2


def test_an_observer_sees_each_node_until_it_is_removed():
    class Watch(Observer):
        def __init__(self):
            self.seen = []

        def on_sweep_begin(self, sweep):
            self.seen.append(("begin", sweep.accumulates))

        def on_node(self, node, g, cotangents):
            self.seen.append((node.name(), float(g)))

        def on_sweep_end(self, sweep, error):
            self.seen.append(("end", error))

    x = gl.tensor(3.0, requires_grad=True)
    with observing(Watch()) as watch:
        (x * x + x).backward()
    operations = [("AddBackward0", 1.0), ("MulBackward0", 1.0)]
    assert watch.seen == [("begin", True), *operations, ("torch::autograd::AccumulateGrad", 7.0), ("end", None)]
    y = x.exp()
    y.backward()
    with pytest.raises(RuntimeError), observing(Watch()) as watch:
        y.backward()
    assert isinstance(watch.seen[-1][1], RuntimeError)


@no_threads
def test_modes_are_per_thread_and_restored_after_an_error():
    result = {}
    with gl.no_grad():
        thread = threading.Thread(target=lambda: result.update(grad=gl.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not gl.is_grad_enabled()
    assert result == {"grad": True}
    with pytest.raises(KeyboardInterrupt), gl.no_grad():
        raise KeyboardInterrupt
    assert gl.is_grad_enabled()
    x = gl.tensor(1.0, requires_grad=True)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).backward()
    assert gl.is_grad_enabled()


def test_no_grad_as_a_decorator_on_functions_and_generators():
    @gl.no_grad()
    def plain():
        return gl.is_grad_enabled()

    @gl.no_grad
    def bare():
        return gl.is_grad_enabled()

    @gl.no_grad()
    def generator():
        got = yield gl.is_grad_enabled()
        yield got, gl.is_grad_enabled()

    assert not plain()
    assert not bare()
    steps = generator()
    assert next(steps) is False
    assert gl.is_grad_enabled()
    assert steps.send("sent") == ("sent", False)
    assert gl.is_grad_enabled()


def test_writes_through_a_view_match_the_out_of_place_program():
    """The in-place idiom of Barlow Twins, compared with the same loss out of place."""
    rng = np.random.default_rng(0)
    x = gl.tensor(rng.standard_normal((4, 4)), requires_grad=True)
    c = x @ x
    kept = c.diagonal()
    gl.diagonal(c).add_(-1).pow_(2)
    assert kept.grad_fn is not None
    (c.sum() + kept.sum()).backward()
    w = gl.tensor(x.array, requires_grad=True)
    c = w @ w
    on = (c.diagonal() - 1) ** 2
    (c.sum() - c.diagonal().sum() + 2 * on.sum()).backward()
    np.testing.assert_allclose(x.grad.array, w.grad.array, rtol=1e-12)


def test_writing_into_a_constant_makes_it_part_of_the_graph():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    z = gl.zeros(2, 2)
    row = z[0]
    row.copy_(x * 3)
    assert z.requires_grad and z.grad_fn.name() == "torch::autograd::CopySlices"
    (z * gl.tensor([[1.0, 10.0], [5.0, 5.0]])).sum().backward()
    assert x.grad.tolist() == [3, 30]


def test_views_of_a_long_lived_tensor_are_forgotten():
    w = gl.randn(3, 3, requires_grad=True)
    for _ in range(1000):
        w.T  # noqa: B018
    assert len(w.storage.views) < 40


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: elementwise("sine", np.sin, x=lambda g, y: g * y), "has unknown parameters: 'y'"),
        (lambda: elementwise("sine", lambda x: x, z=lambda g: g), "there is a rule for"),
        (lambda: elementwise("sine", lambda g: g, g=lambda g: g), "cannot be used as argument names"),
        (lambda: elementwise("sine", np.sin, x=lambda g: g, promote="up"), "promote must be one of .*, got 'up'"),
    ],
)
def test_errors_of_invalid_declarations(declare, words):
    with pytest.raises(RuleError, match=words):
        declare()


@pytest.mark.parametrize("dtype", [gl.float16, gl.float32])
def test_tracebacks_show_generated_code(dtype):
    """The variant for float16 has the same label but different lines."""
    import traceback

    for kind in (gl.float32, gl.float16):
        gl.ones(3, dtype=kind) + gl.ones(3, dtype=kind)
    with pytest.raises(RuntimeError) as caught:
        gl.ones(3, dtype=dtype) + gl.ones(4, dtype=dtype)
    shown = "".join(traceback.format_exception(caught.value))
    assert "raise forward_failed(op, error" in shown, shown
    assert "operands could not be broadcast" not in shown  # only PyTorch's message


@no_threads
def test_threads_may_run_backward_at_once():
    w = gl.randn(50, 50, dtype=gl.float64)
    found = {}

    def work(i):
        x = gl.full((50,), float(i), dtype=gl.float64).requires_grad_()
        for _ in range(50):
            x.grad = None
            ((w @ x) * x).sum().backward()
        found[i] = x.grad.array

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, g in found.items():
        np.testing.assert_allclose(g, (w.array + w.array.T) @ np.full(50, float(i)), rtol=1e-9)


@pytest.mark.parametrize("function", [gl.exp, gl.tanh, gl.sigmoid, lambda x: x * x, lambda x: x**2, gl.special.erf])
def test_a_sweep_over_large_arrays_does_not_change_saved_tensors(function):
    """A large cotangent is computed in the memory of the partial derivative, which must not be memory that the graph holds."""
    from gradlab.core.engine import MIN_SIZE_IN_PLACE

    x = gl.linspace(-1, 1, 2 * MIN_SIZE_IN_PLACE, dtype=gl.float64).requires_grad_()
    y = function(x)
    value = y.detach().clone()
    (first,) = gl.autograd.grad(y, x, gl.full_like(y, 3.0), retain_graph=True)
    (again,) = gl.autograd.grad(y, x, gl.full_like(y, 3.0))
    small = x.detach()[::64].clone().requires_grad_()
    (expected,) = gl.autograd.grad(function(small), small, gl.full_like(small, 3.0))
    assert gl.equal(first, again)
    assert gl.equal(y.detach(), value)
    assert gl.allclose(first[::64], expected, rtol=1e-13)

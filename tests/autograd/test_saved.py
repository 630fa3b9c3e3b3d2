"""Saved tensors: their attributes on nodes, and hooks."""

from __future__ import annotations

import gc
import weakref
from threading import Thread

import numpy as np
import pytest
from saved_cases import MUST, ROUNDED, tensors
from threads import run_in_threads

import gradlab as gl


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return x.detach().numpy().tolist()


# --------------------------------------------------------------------------------------------------------------- attributes
@pytest.mark.parametrize("text", MUST)
def test_nodes_have_the_saved_attributes_of_torch(t, text):
    node = eval(text, tensors(t)).grad_fn
    assert {f"_saved_{name}" for name in MUST[text].split()} <= set(dir(node))


@pytest.mark.oracle
@pytest.mark.parametrize("text", MUST)
def test_attributes_saved_by_both_are_equal(text):
    torch = pytest.importorskip("torch")
    ours, theirs = eval(text, tensors(gl)).grad_fn, eval(text, tensors(torch)).grad_fn
    common = [name for name in dir(ours) if name.startswith("_saved_") and name in dir(theirs)]
    assert len(common) >= len(MUST[text].split())
    for name in common:
        same(getattr(ours, name), getattr(theirs, name), 1e-12 if text in ROUNDED else 1e-15)


def same(ours, theirs, tolerance):
    if isinstance(theirs, tuple):
        assert isinstance(ours, tuple) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b, tolerance)
    elif hasattr(theirs, "detach"):
        assert isinstance(ours, gl.Tensor) and tuple(ours.shape) == tuple(theirs.shape)
        assert ours.requires_grad == theirs.requires_grad
        assert (ours.grad_fn and ours.grad_fn.name()) == (theirs.grad_fn and theirs.grad_fn.name())
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=tolerance, atol=tolerance)
    else:
        assert ours == theirs


def test_values_have_the_history_they_had(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    z = x + 1
    y = z * w
    assert y.grad_fn._saved_other is w and y.grad_fn._saved_self.grad_fn is z.grad_fn
    e = x.exp()
    result = e.grad_fn._saved_result
    assert result is not e and result.grad_fn is e.grad_fn and values(result) == values(e)
    (g,) = t.autograd.grad(result.sum(), x)
    assert values(g) == values(e)
    assert (x * 2).grad_fn._saved_self is None  # only tensors that the gradient needs are saved


def test_an_unknown_name(t):
    with pytest.raises(AttributeError, match="'MulBackward0' object has no attribute '_saved_foo'"):
        _ = (leaf(t, 1.0) * 2).grad_fn._saved_foo


def test_freed(t):
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    raw = y.grad_fn._raw_saved_result
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"Trying to backward through the graph a second time \(or directly access saved"):
        _ = y.grad_fn._saved_result
    assert raw.data is None
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor after it has been freed"):
        raw.register_hooks(lambda x: x, lambda x: x)
    s = x.sum(0)
    s.backward()
    assert s.grad_fn._saved_dim == (0,)  # metadata is kept


def test_freed_by_a_sweep_whose_line_is_known():
    with gl.autograd.set_detect_anomaly(True):
        y = leaf(gl, 1.0, 2.0).exp()
        y.sum().backward()
    assert y.grad_fn._raw_saved_result.data is None
    with pytest.raises(RuntimeError, match=r"(?s)second time .or directly access saved tensors.*test_saved.py line"):
        _ = y.grad_fn._saved_result


def test_retained(t):
    y = leaf(t, 1.0, 2.0).exp()
    y.sum().backward(retain_graph=True)
    assert values(y.grad_fn._saved_result) == values(y)


def test_access_checks_for_writes(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    z = x + 0
    y = z * w
    with t.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.* which is output 0 of Add, is at version 1"):
        _ = y.grad_fn._saved_self
    assert values(y.grad_fn._raw_saved_self.data) == [2.0, 3.0]  # `data` does not check the version
    assert y.grad_fn._saved_other is w


def test_detached_in_place(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    y = x.exp()
    product, total = y * w, y + w
    y.detach_()
    with pytest.raises(RuntimeError, match=r"Trying to use a saved tensor that has been detached in-place, i.e. with .detach_"):
        product.sum().backward()
    total.sum().backward()  # a node that did not save it is not affected
    np.testing.assert_allclose(values(x.grad), np.exp([1.0, 2.0]), rtol=1e-15)
    z = y * w
    z.sum().backward()
    np.testing.assert_allclose(values(w.grad), 1 + np.exp([1.0, 2.0]), rtol=1e-15)


# --------------------------------------------------------------------------------------------------- hooks on one saved tensor
def test_raw_hooks(t):
    x = leaf(t, 1.0, 2.0)
    y = x * x
    raw, seen = y.grad_fn._raw_saved_self, []
    assert type(raw).__name__ == "SavedTensor" and raw.unpack_hook is None and raw.data is x
    raw.register_hooks(lambda z: seen.append(z.requires_grad) or 2 * z, lambda z: z / 2)
    assert seen == [False] and values(raw.data) == [2.0, 4.0] and callable(raw.unpack_hook)
    assert values(y.grad_fn._saved_self) == [1.0, 2.0] and y.grad_fn._saved_self.requires_grad
    with pytest.raises(RuntimeError, match=r"whose hooks have already been set. Hint: only one pair of hooks is allowed"):
        raw.register_hooks(lambda z: z, lambda z: z)
    y.sum().backward()
    assert values(x.grad) == [2.0, 4.0]


def test_gradients_are_computed_from_the_values_of_raw_hooks(t):
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda z: 2 * z, lambda z: z)
    y.sum().backward()
    np.testing.assert_allclose(values(x.grad), 2 * np.exp([1.0, 2.0]), rtol=1e-15)


def test_raw_hooks_errors(t):
    x = leaf(t, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="register_hooks on a saved tensor with value None is forbidden"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda z: z, lambda z: z)
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        (x * x).grad_fn._raw_saved_self.register_hooks(lambda z: z.mul_(2), lambda z: z)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        (x * x).grad_fn._raw_saved_self.register_hooks(1, 2)
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        t.autograd.SavedTensor()


# -------------------------------------------------------------------------------------------------- hooks on all saved tensors
def test_hooks_see_each_save_and_each_use(t):
    x, packed, unpacked = leaf(t, 1.0, 2.0), [], []
    with t.autograd.graph.saved_tensors_hooks(
        lambda z: packed.append(z) or len(packed) - 1, lambda k: unpacked.append(k) or packed[k]
    ):
        y = (x * x * 3 + x.exp() * 2).sum()  # the numbers 3 and 2 are not packed
    assert [p.grad_fn is None for p in packed].count(True) >= 2
    assert [values(p) for p in packed] == [[1.0, 2.0], [1.0, 2.0], values(x.exp())] and packed[0] is x and packed[1] is x
    y.backward(retain_graph=True)
    assert sorted(unpacked) == [0, 1, 2]
    y.backward()
    assert sorted(unpacked) == [0, 0, 1, 1, 2, 2]
    np.testing.assert_allclose(values(x.grad), 2 * (6 * np.array([1, 2]) + 2 * np.exp([1, 2])), rtol=1e-15)


def test_pack_receives_history_and_records_nothing(t):
    x, seen = leaf(t, 1.0), []
    with t.autograd.graph.saved_tensors_hooks(lambda z: seen.append((z.grad_fn.name(), (z * 2).requires_grad)) or z, lambda z: z):
        x.exp()
        (x + 1).sin()
    assert seen == [("ExpBackward0", False), ("AddBackward0", False)]


def test_the_innermost_hooks_are_used(t):
    x, hooks = leaf(t, 3.0), t.autograd.graph.saved_tensors_hooks
    with hooks(lambda z: 10 * z, lambda z: z):
        with hooks(lambda z: 100 * z, lambda z: z):
            inner = x.sin() * 0 + x.square()
        outer = x.square()
    (g,) = t.autograd.grad(inner, x)
    assert values(g) == [600.0]
    (g,) = t.autograd.grad(outer, x)
    assert values(g) == [60.0]


def test_invalid_hooks(t):
    x, w, hooks = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0), t.autograd.graph.saved_tensors_hooks
    with hooks(lambda z: z, lambda z: 5):
        y = x * w
    with pytest.raises(TypeError, match="Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with hooks(lambda z: z.mul_(2), lambda z: z), pytest.raises(RuntimeError, match="pack hook is modifying its input in place"):
        _ = (x + 0) * w.detach()
    with hooks(lambda z: 1 / 0, lambda z: z), pytest.raises(ZeroDivisionError):
        x.sin()
    with pytest.raises(TypeError, match="incompatible function arguments"), hooks(1, 2):
        pass


def test_versions_of_packed_tensors_are_not_checked(t):
    x = leaf(t, 1.0, 2.0)
    z = x + 0
    with t.autograd.graph.saved_tensors_hooks(lambda z: z.clone(), lambda z: z):
        y = z * z
        e = z.exp()
    with t.no_grad():
        z.zero_()
        e.zero_()
    (y + e).sum().backward()
    np.testing.assert_allclose(values(x.grad), 2 * np.array([1, 2]) + np.exp([1, 2]), rtol=1e-15)


def test_unpacked_tensors_have_their_history(t):
    """Second derivatives are correct although the hooks detach and copy."""
    x = leaf(t, 0.3, 0.5)
    with t.autograd.graph.saved_tensors_hooks(lambda z: z.detach().numpy().copy(), t.tensor):
        y = (x.sin() * x.exp()).tanh()
        (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
        (h,) = t.autograd.grad(g.sum(), x)

    def f(x):
        return np.tanh(np.sin(x) * np.exp(x))

    at, step = np.array([0.3, 0.5]), 1e-4
    np.testing.assert_allclose(values(g), (f(at + step) - f(at - step)) / (2 * step), rtol=1e-7)
    np.testing.assert_allclose(values(h), (f(at + step) - 2 * f(at) + f(at - step)) / step**2, rtol=1e-6)


def test_hooks_in_a_recorded_backward(t):
    x, packed = leaf(t, 2.0), []
    y = x**3
    with t.autograd.graph.saved_tensors_hooks(lambda z: packed.append(values(z)) or z, lambda z: z):
        (g,) = t.autograd.grad(y, x, create_graph=True)
    assert packed
    (h,) = t.autograd.grad(g, x)
    assert values(h) == [12.0]


def test_hooks_and_batched_cotangents(t):
    x, used = leaf(t, 1.0, 2.0), []
    with t.autograd.graph.saved_tensors_hooks(lambda z: z, lambda z: used.append(0) or z):
        y = x.exp()
    (g,) = t.autograd.grad(y, x, t.eye(2, dtype=t.float64), is_grads_batched=True)
    np.testing.assert_allclose(values(g), np.diag(np.exp([1, 2])), rtol=1e-15)
    assert used == [0]


def test_hooks_and_in_place_operations(t):
    x, packed = leaf(t, 1.0, 2.0), []
    with t.autograd.graph.saved_tensors_hooks(lambda z: packed.append(0) or z.clone(), lambda z: z):
        y = x * 1
        y.exp_()
        y.mul_(y.detach())
    y.sum().backward()
    e = np.exp([1.0, 2.0])
    np.testing.assert_allclose(values(x.grad), e * e, rtol=1e-15)
    assert len(packed) == 2


def test_hooks_can_be_disabled(t):
    graph = t.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(lambda z: z, lambda z: z):
            pass
        with graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="nor here"), graph.save_on_cpu():
            pass
        with pytest.raises(RuntimeError, match="not here"), graph.save_on_cpu():
            pass
    with (
        graph.saved_tensors_hooks(lambda z: z, lambda z: z),
        pytest.raises(RuntimeError, match="not here"),
        graph.disable_saved_tensors_hooks("not here"),
    ):
        leaf(t, 1.0).sin()
    with graph.save_on_cpu(pin_memory=True):
        y = leaf(t, 1.0).exp()
    y.backward(t.ones_like(y))


def test_hooks_object_can_be_entered_again(t):
    x, packed = leaf(t, 1.0), []
    hooks = t.autograd.graph.saved_tensors_hooks(lambda z: packed.append(0) or z, lambda z: z)
    for _ in range(2):
        with hooks, hooks:
            x.exp()
        x.exp()
    assert len(packed) == 2


def test_hooks_and_a_custom_function(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x**3
            ctx.save_for_backward(x, None, y)
            return y

        @staticmethod
        def backward(ctx, g):
            x, nothing, y = ctx.saved_tensors
            assert nothing is None
            return 3 * y / x * g

    x, packed, used = leaf(t, 2.0), [], []
    with t.autograd.graph.saved_tensors_hooks(
        lambda z: packed.append(z.requires_grad) or z.detach(), lambda z: used.append(0) or z
    ):
        y = Cube.apply(x)
    assert packed == [True, True]
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (h,) = t.autograd.grad(g, x)
    assert values(g) == [12.0] and values(h) == [12.0] and used == [0] * 4


def test_raw_saved_tensors_of_a_custom_function(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(t, 1.0, 2.0)
    y = Square.apply(x)
    (raw,) = y.grad_fn._raw_saved_tensors
    raw.register_hooks(lambda z: 10 * z, lambda z: z)
    assert values(raw.data) == [10.0, 20.0]
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        y.grad_fn._raw_saved_tensors[0].register_hooks(lambda z: z, lambda z: z)
    y.sum().backward()
    assert values(x.grad) == [20.0, 40.0]
    if t is gl:  # torch crashes
        assert raw.data is None


@pytest.mark.parametrize("keep", ["itself", "in a tuple"])
def test_hooks_that_keep_the_output_make_no_cycle(keep):
    """Torch makes a cycle here: the output that the hook stores refers to the node that stores it."""
    x, seen = leaf(gl, 1.0), []
    gc.disable()
    try:
        pack, unpack = (lambda z: z, lambda z: z) if keep == "itself" else (lambda z: (z.device, z), lambda kept: kept[1])
        with gl.autograd.graph.saved_tensors_hooks(pack, lambda kept: seen.append(unpack(kept).grad_fn.name()) or unpack(kept)):
            y = x.exp()
        node = weakref.ref(y.grad_fn)
        assert y.grad_fn._saved_result.grad_fn is y.grad_fn
        y.backward(retain_graph=True)
        del y
        assert node() is None and seen == ["ExpBackward0", "ExpBackward0"]
    finally:
        gc.enable()
    assert values(x.grad) == [np.exp(1.0)]


def test_forward_mode_unpacks_saved_tensors():
    x, used = leaf(gl, 0.5, 1.5), []
    with gl.autograd.graph.saved_tensors_hooks(lambda z: z.clone(), lambda z: used.append(0) or z):
        y = x.exp() * x
    for _ in range(2):
        (tangent,) = gl.autograd.jvp_of_graph(y, x, gl.tensor([1.0, 2.0], dtype=gl.float64))
        at = np.array([0.5, 1.5])
        np.testing.assert_allclose(values(tangent), np.exp(at) * (1 + at) * [1, 2], rtol=1e-15)
    assert len(used) == 6


def test_threads_can_run_backward_on_one_graph_at_once():
    x = leaf(gl, 0.3, 0.5)
    with gl.autograd.graph.saved_tensors_hooks(lambda z: z.clone(), lambda z: z):
        y = x
        for _ in range(20):
            y = (y.sin() * x).exp() * 0.1
        y = y.sum()
    expected = values(gl.autograd.grad(y, x, retain_graph=True)[0])

    def sweep(i):
        for _ in range(20):
            assert values(gl.autograd.grad(y, x, retain_graph=True)[0]) == expected

    run_in_threads(sweep, 3)


def test_nothing_is_packed_in_another_thread():
    packed = []
    with gl.autograd.graph.saved_tensors_hooks(lambda z: packed.append(0) or z, lambda z: z):
        thread = Thread(target=lambda: leaf(gl, 1.0).exp())
        thread.start()
        thread.join()
    assert packed == []


# ----------------------------------------------------------------------------------------------------- writes to saved tensors
MUTATIONS = {
    "the argument": ("y = a * a; a.add_(5)", [2.0, 4.0]),
    "the result": ("y = a.exp(); y.mul_(2)", 2 * np.exp([1.0, 2.0])),
    "twice": ("y = a * a; a.add_(5); y = y + a * 0; a.zero_()", [2.0, 4.0]),
    "saved again in between": ("y = a * a; a.mul_(2); y = y + a * a", [10.0, 20.0]),
    "through a view": ("y = a * a; a[0] = 7.", [2.0, 4.0]),
    "a view of it is saved": ("y = a[:] * a[:]; a.add_(1)", [2.0, 4.0]),
    "an item": ("y = a.sin() * 1; a[1:] *= 3", np.cos([1.0, 2.0])),
    "fill": ("y = a * a; a.fill_(3.)", [2.0, 4.0]),
    "zero": ("y = a * a; a.zero_()", [2.0, 4.0]),
    "copy": ("y = a * a; a.copy_(t.ones(2))", [2.0, 4.0]),
    "detached": ("y = a * a; a.detach().zero_()", [2.0, 4.0]),
    "unrecorded": ("y = a * a\nwith t.no_grad(): a += 1", [2.0, 4.0]),
    "sigmoid_": ("y = a.sigmoid(); y.sigmoid_(); y.add_(1)", None),
    "nothing": ("y = a * a", [2.0, 4.0]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation(t, name):
    text, expected = MUTATIONS[name]
    if name == "an item" and t is not gl:
        pytest.skip("torch overwrites what it had saved, and gives another gradient")
    x = leaf(t, 1.0, 2.0)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
        scope = {"a": x * 1, "t": t}
        exec(text, scope)
        scope["y"].sum().backward()
        del scope
    if expected is None:

        def s(z):
            return 1 / (1 + np.exp(-z))

        at = np.array([1.0, 2.0])
        expected = s(s(at)) * (1 - s(s(at))) * s(at) * (1 - s(at))
    np.testing.assert_allclose(values(x.grad), expected, rtol=1e-14)
    assert len(context.original) == len(context.cloned) == 0


def test_only_modified_tensors_are_copied(t):
    x = leaf(t, 1.0, 2.0)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as context:
        a, b = x * 1, x * 1
        y = a * b
        assert (len(context.original), len(context.cloned)) == (2, 0)
        z = y + a.sin()
        assert (len(context.original), len(context.cloned)) == (2, 0)  # the same version of the same tensor
        a.add_(1)
        a.add_(1)
        assert (len(context.original), len(context.cloned)) == (1, 1)
        del y, z
        assert (len(context.original), len(context.cloned)) == (0, 0)  # the graph held them


def test_mutation_and_an_optimizer(t):
    """A loss computed before a step is differentiated after it."""
    w = leaf(t, 1.0, 2.0)
    step = t.optim.SGD([w], lr=0.5)
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        loss = (w * w * w).sum()
        w.grad = t.ones_like(w)
        step.step()
        step.zero_grad()
        loss.backward()
    assert values(w) == [0.5, 1.5] and values(w.grad) == [3.0, 12.0]


def test_mutation_contexts(t):
    graph, x = t.autograd.graph, leaf(t, 1.0, 2.0)
    with (
        pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"),
        graph.allow_mutation_on_saved_tensors(),
        graph.allow_mutation_on_saved_tensors(),
    ):
        pass
    with graph.allow_mutation_on_saved_tensors():
        y = x * x
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        y.sum().backward()
    with graph.allow_mutation_on_saved_tensors():
        pass
    z = x * 1
    y = z * z
    with t.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()  # outside the context, nothing has changed


WRITES = {
    "out=": lambda t, w: t.add(t.ones(2, 2), 1, out=w),
    "out= of a view": lambda t, w: t.sin(t.zeros(2), out=w[0]),
    "embedding": lambda t, w: t.nn.functional.embedding(t.tensor([0]), w, max_norm=1.0),
    "copy_": lambda t, w: w.copy_(w * 2),
}


@pytest.mark.parametrize("name", WRITES)
def test_mutation_by_other_than_in_place_operators(t, name):
    """Saved values are preserved if the tensor is modified by `out=` or by embedding."""
    x, w = t.ones(2, 2, requires_grad=True), t.tensor([[3.0, 4.0], [0.0, 1.0]])
    with t.autograd.graph.allow_mutation_on_saved_tensors():
        y = (x * w).sum()
        WRITES[name](t, w)
        y.backward()
    assert values(x.grad) == [[3, 4], [0, 1]] and values(w) != [[3, 4], [0, 1]]


def test_writes_without_notification_are_refused():
    x = leaf(gl, 1.0, 2.0)
    with gl.autograd.graph.allow_mutation_on_saved_tensors():
        a = x.detach() * 1
        y = x * a
        gl.autograd.graph.increment_version(a)
        with pytest.raises(RuntimeError, match="by an operation that does not notify allow_mutation_on_saved_tensors"):
            y.sum().backward()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_interrupted_backward_keeps_the_packed_tensors(t, error):
    log, x = [], leaf(t, 1.0, 2.0)

    def stop(into, out):
        raise error

    def unpack(packed):
        log.append("unpack")
        return packed

    with t.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        y = x * x
    handle = y.grad_fn.register_hook(stop)
    with pytest.raises(error):
        y.sum().backward(retain_graph=True)
    handle.remove()
    before = len(log)
    y.sum().backward()
    assert before == 2 and len(log) == 4 and values(x.grad) == [2, 4]
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()

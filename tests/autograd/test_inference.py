"""Inference mode and inference tensors, on gradlab and on torch."""

from __future__ import annotations

import pytest
from leftovers import active_observers

import gradlab

SAVED = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode"
WRITTEN = "Inplace update to inference tensor outside InferenceMode is not allowed"
VIEW = "A view was created in inference mode and is being modified inplace in normal mode"


def inference_tensor(t, *shape):
    with t.inference_mode():
        return t.ones(*shape)


def leaf(t):
    return t.tensor([1.0, 2.0, 3.0], requires_grad=True)


MADE = {
    "ones": lambda t, x: t.ones(2),
    "tensor": lambda t, x: t.tensor([1.0, 2.0]),
    "rand": lambda t, x: t.rand(2),
    "arange": lambda t, x: t.arange(3),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "empty": lambda t, x: t.empty(2),
    "from_numpy": lambda t, x: t.from_numpy(x.detach().numpy()),
    "add": lambda t, x: x + 1,
    "clone": lambda t, x: x.clone(),
    "cat": lambda t, x: t.cat([x, x]),
    "compare": lambda t, x: x > 1,
    "argmax": lambda t, x: x.argmax(),
    "picks": lambda t, x: x[[0, 1]],
    "max": lambda t, x: x.max(0).values,
    "full": lambda t, x: t.full((2,), 3.0),
    "view of a new one": lambda t, x: t.ones(4)[1:],
    "long": lambda t, x: x.long(),
    "svd": lambda t, x: t.linalg.svd(t.diag(x))[1],
    "normal": lambda t, x: t.normal(x, 1.0),
    "eye": lambda t, x: t.eye(2),
}
NOT_MADE = {
    "view": lambda t, x: x.view(-1),
    "slice": lambda t, x: x[1:],
    "detach": lambda t, x: x.detach(),
    "data": lambda t, x: x.data,
    "expand": lambda t, x: x.expand(2, 3),
    "unbind": lambda t, x: x.unbind()[0],
    "in place": lambda t, x: x.detach().add_(0),
}


@pytest.mark.parametrize("how", MADE)
def test_results_are_inference_tensors(t, how):
    for x in (leaf(t), leaf(t).detach()):
        with t.inference_mode():
            made = MADE[how](t, x)
        assert made.is_inference() and t.is_inference(made) and made.grad_fn is None
        assert not (made.requires_grad or MADE[how](t, x).is_inference())
    assert not t.is_inference(x)


@pytest.mark.parametrize("how", NOT_MADE)
def test_views_of_normal_tensors_stay_normal(t, how):
    x = leaf(t)
    with t.inference_mode():
        assert not NOT_MADE[how](t, x).is_inference()
        i = t.ones(3)
        assert NOT_MADE[how](t, i).is_inference()
    if how != "in place":
        assert NOT_MADE[how](t, i).is_inference()


def test_nothing_is_recorded(t):
    x = leaf(t)
    with t.inference_mode():
        assert not (x * 2).requires_grad and not t.is_grad_enabled()
        with t.enable_grad():
            assert (x * 2).grad_fn is None
        with t.inference_mode(False):
            y = x * 2
            assert y.requires_grad and not y.is_inference()
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


# ------------------------------------------------------------------------------------------- inside
def test_writes_inside(t):
    normal, x = t.ones(3), leaf(t)
    with t.inference_mode():
        i = t.ones(3)
        i.add_(1)
        i[0] = 5
        normal.mul_(2)
        x.add_(1)
        x[0:1].zero_()
        assert i.tolist() == [5, 2, 2]
        with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
            _ = i._version
    assert normal._version == 1 and x._version == 2 and x.tolist() == [0, 3, 4] and x.is_leaf


def test_a_write_inside_is_detected_by_a_graph(t):
    x = leaf(t)
    y = x * x
    with t.inference_mode():
        x.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        y.sum().backward()


def test_requires_grad_inside(t):
    with t.inference_mode():
        a, b = t.ones(2).requires_grad_(), t.ones(2, requires_grad=True)
        assert a.requires_grad and b.requires_grad and a.is_leaf and not (a * 2).requires_grad


# ------------------------------------------------------------------------------------------ outside
WRITES = {
    "add_": lambda t, i: i.add_(1),
    "mul_": lambda t, i: i.mul_(i),
    "zero_": lambda t, i: i.zero_(),
    "fill_": lambda t, i: i.fill_(2),
    "copy_": lambda t, i: i.copy_(t.ones(3)),
    "setitem": lambda t, i: i.__setitem__(0, 1.0),
    "a view": lambda t, i: i[1:].mul_(2),
    "out": lambda t, i: t.add(t.ones(3), 1, out=i),
    "normal_": lambda t, i: i.normal_(),
    "setitem picks": lambda t, i: i.__setitem__([0, 1], 2.0),
    "clamp_": lambda t, i: i.clamp_(0, 1),
    "scatter_": lambda t, i: i.scatter_(0, t.tensor([0]), 1.0),
    "+=": lambda t, i: i.__iadd__(1),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("how", WRITES)
def test_writes_outside_are_refused(t, how, grad):
    i = inference_tensor(t, 3)
    with t.set_grad_enabled(grad), pytest.raises(RuntimeError, match=WRITTEN):
        WRITES[how](t, i)


SAVES = {
    "mul": lambda t, x, i: x * i,
    "mul from the left": lambda t, x, i: i * x,
    "div": lambda t, x, i: x / i,
    "matmul": lambda t, x, i: x @ i,
    "in place": lambda t, x, i: (x * 1).mul_(i),
    "pow": lambda t, x, i: i**x,
    "linear": lambda t, x, i: t.nn.functional.linear(i, x[None]),
    "where": lambda t, x, i: t.where(i > 0, x, i) * i,
}


@pytest.mark.parametrize("how", SAVES)
def test_inference_tensors_cannot_be_saved_for_backward(t, how):
    i = inference_tensor(t, 3)
    with pytest.raises(RuntimeError, match=SAVED):
        SAVES[how](t, leaf(t), i)
    with t.no_grad():
        SAVES[how](t, leaf(t), i)
    SAVES[how](t, leaf(t), i.clone())


def test_operations_that_save_no_inference_tensor_are_allowed(t):
    i, x = inference_tensor(t, 3), leaf(t)
    y = (x + i) * 2 - t.stack([i, i])[0]
    assert not (i * 2).is_inference() and not i.exp().requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_requires_grad_outside_is_refused(t):
    i = inference_tensor(t, 3)
    for ask in (i.requires_grad_, lambda: setattr(i, "requires_grad", True), lambda: t.nn.Parameter(i)):
        with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not"):
            ask()
    assert not i.requires_grad_(False).requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = i._version
    x = i.clone().requires_grad_()
    (x * x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_views_made_inside(t):
    """Views of tensors without gradients can be modified as usual. With gradients it would be ambiguous."""
    plain, made = t.ones(3), leaf(t) * 1
    with t.inference_mode():
        a, b = plain[:2], made[:2]
    a.add_(1)
    assert plain.tolist() == [2, 2, 1]
    with pytest.raises(RuntimeError, match=VIEW):
        b.add_(1)
    with pytest.raises(RuntimeError, match=VIEW):
        a.mul_(made[:2])
    with t.no_grad():
        a.add_(1)
    with t.inference_mode():
        b.add_(1)


def test_a_gradient_may_be_an_inference_tensor(t):
    x, i = leaf(t), inference_tensor(t, 3)
    x.grad = i
    assert x.grad is i


def test_a_model_is_run_inside(t):
    t.manual_seed(0)
    net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.BatchNorm1d(4), t.nn.ReLU(), t.nn.Linear(4, 2))
    x = t.rand(5, 3)
    with t.inference_mode():
        inside = net.eval()(x)
    outside = net(x)
    assert inside.is_inference() and not outside.is_inference() and inside.tolist() == outside.tolist()
    net.train()(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


# -------------------------------------------------------------------------------------------------- implementation
def test_the_observer_is_removed_with_the_last_inference_tensor():
    from gradlab.core.observers import OBSERVERS

    i = inference_tensor(gradlab, 3)
    part = i[1:].detach()
    del i
    assert OBSERVERS
    del part
    assert not active_observers()


def test_inference_tensors_are_detected_in_other_threads():
    import threading

    i, found = inference_tensor(gradlab, 3), []

    def other():
        try:
            leaf(gradlab) * i
        except RuntimeError as error:
            found.append(str(error)[: len(SAVED)])

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert found == [SAVED]


def test_promoted_inference_tensors_and_those_of_a_function_cannot_be_saved(t):
    a, x = inference_tensor(t, 3), leaf(t)
    for call in (lambda: a * x.double(), lambda: x.double() / a):
        with pytest.raises(RuntimeError, match=f"^{SAVED}"):
            call()
    assert (a + x.double()).requires_grad

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match=f"^{SAVED}"):
        Product.apply(x, a)
    with t.inference_mode():
        assert Product.apply(x, a).is_inference()

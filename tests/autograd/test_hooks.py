"""Hooks: order, arguments and allowed results."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest

import gradlab as gl


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return None if x is None else x.detach().numpy().tolist()


def accumulator(x):
    return x.view_as(x).grad_fn.next_functions[0][0]


def test_the_order_at_a_node_and_at_a_leaf(t):
    log = []
    x = leaf(t, 3.0)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_hook(lambda into, out: log.append(("post", values(into[0]), values(out[0]))))
    y.grad_fn.register_prehook(lambda out: log.append(("pre", values(out[0]))))
    y.register_hook(lambda g: log.append(("first", values(g))) or g * 10)
    y.register_hook(lambda g: log.append(("second", values(g), values(y.grad) if y.retains_grad else "")))
    node = accumulator(x)
    node.register_hook(lambda into, out: log.append(("leaf post", into, values(out[0]), values(x.grad))))
    node.register_prehook(lambda out: log.append(("leaf pre", values(out[0]))))
    x.register_post_accumulate_grad_hook(lambda p: log.append(("written", values(p.grad))))
    x.register_hook(lambda g: log.append(("leaf", values(g))))
    (y * 1).backward()
    assert log == [
        ("first", [1]),
        ("second", [10], None),
        ("pre", [10]),
        ("post", [20], [10]),
        ("leaf", [20]),
        ("leaf pre", [20]),
        ("written", [20]),
        ("leaf post", (), [20], [20]),
    ]
    assert values(y.grad) == [10]


def test_grad_runs_only_the_tensor_hooks_of_its_inputs(t):
    log = []
    x = leaf(t, 3.0)
    y = x * 2
    node = accumulator(x)
    node.register_prehook(lambda out: log.append("never"))
    for z in (x, y):
        z.register_hook(lambda g: log.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("never"))
    y.grad_fn.register_prehook(lambda out: log.append("pre"))
    y.grad_fn.register_hook(lambda into, out: log.append("post"))
    t.autograd.grad(y, y, retain_graph=True)
    assert log == ["tensor"]
    log.clear()
    t.autograd.grad(y, x)
    assert log == ["tensor", "pre", "post", "tensor"] and x.grad is None


def test_backward_with_inputs_runs_all_hooks_of_these_leaves(t):
    log = []
    x = leaf(t, 3.0)
    node = accumulator(x)
    node.register_prehook(lambda out: log.append("pre"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("written"))
    (x * 2).backward(inputs=[x])
    assert log == ["pre", "written"]


def test_hooks_replace_gradients(t):
    x = leaf(t, 3.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda out: (out[0] * 10,))
    y.grad_fn.register_hook(lambda into, out: (into[0] + 1, *into[1:]))
    node = accumulator(x)
    node.register_prehook(lambda out: (out[0] * 100,))
    y.backward()
    assert values(x.grad) == [2100]
    assert values(t.autograd.grad(x * 1, x)[0]) == [1]


def test_hooks_can_be_added_and_removed_while_they_run(t):
    log = []
    x = leaf(t, 1.0)
    x.register_hook(lambda g: log.append("first") or third.remove())
    third = x.register_hook(lambda g: log.append("third"))
    handle = x.register_hook(lambda g: (log.append("adds"), x.register_hook(lambda g: log.append("added")), None)[2])
    (x * 1).backward()
    assert log == ["first", "third", "adds"]
    log.clear()
    handle.remove()
    handle.remove()
    (x * 1).backward()
    assert log == ["first", "added"]
    with x.register_hook(lambda g: log.append("inside")):
        pass
    assert "inside" not in log and len(x._backward_hooks) == 2 and leaf(t, 1.0)._backward_hooks is None


def test_writes_move_retain_grad_but_not_hooks(t):
    log = []
    y = leaf(t, 1.0) * 1
    y.register_hook(lambda g: log.append(("before", values(g))))
    y.retain_grad()
    y.mul_(2)
    y.register_hook(lambda g: log.append(("after", values(g))))
    assert y.retains_grad and len(y._backward_hooks) == 1
    (y * 3).backward()
    assert log == [("after", [3]), ("before", [6])] and values(y.grad) == [3]


def test_retain_grad(t):
    x = leaf(t, 1.0)
    x.retain_grad()
    assert not x.retains_grad
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    (y * 3).backward(retain_graph=True)
    (y * 3).backward()
    assert values(y.grad) == [6] and values(x.grad) == [12]
    with pytest.raises(RuntimeError, match=r"^can't retain_grad on Tensor that has requires_grad=False"):
        t.ones(1).retain_grad()


def test_hooks_of_a_node_with_several_outputs(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2, b * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2, h * 3

    log = []
    a, b = leaf(t, 1.0), leaf(t, 1.0)
    p, q = Two.apply(a, b)
    p.grad_fn.register_prehook(lambda out: log.append([None if g is None else values(g) for g in out]))
    q.grad_fn.register_hook(lambda *both: log.append([[None if g is None else values(g) for g in part] for part in both]))
    q.register_hook(lambda g: g * 10)
    q.retain_grad()
    (q * 1).backward(retain_graph=True)
    assert log == [[None, [10]], [[[0], [30]], [None, [10]]]] and values(q.grad) == [10]
    for hook, error, text in (
        (lambda out: (out[0],), RuntimeError, r"incorrect number of values \(got 1, but expected 2\)"),
        (lambda out: (out[1], None), RuntimeError, "can't replace a None gradient with a non-None value"),
    ):
        with p.grad_fn.register_prehook(hook), pytest.raises(error, match=text):
            (q * 1).backward(retain_graph=True)


def five_zeros(g):
    return [0] * 5


ANSWERS = {
    "a word": (lambda t, y: y.register_hook(lambda g: "word"), TypeError, "^expected Variable, but hook returned 'str'"),
    "a tuple": (lambda t, y: y.register_hook(lambda g: (g,)), TypeError, "^expected Variable, but hook returned 'tuple'"),
    "another size": (
        lambda t, y: y.register_hook(lambda g: t.ones(5, dtype=t.float64)),
        RuntimeError,
        "^hook '<lambda>' has changed the size of value",
    ),
    "another dtype": (
        lambda t, y: y.register_hook(lambda g: g.float()),
        RuntimeError,
        r"^hook '<lambda>' has changed the type of value \(was \w+.DoubleTensor got \w+.FloatTensor\)",
    ),
    "a list, named": (lambda t, y: y.register_hook(five_zeros), TypeError, "^expected Variable, but hook returned 'list'"),
    "no tuple before": (
        lambda t, y: y.grad_fn.register_prehook(lambda out: out[0]),
        TypeError,
        "^expected tuple, but hook returned 'Tensor'",
    ),
    "no tuple after": (
        lambda t, y: y.grad_fn.register_hook(lambda into, out: 3),
        TypeError,
        "^expected tuple, but hook returned 'int'",
    ),
    "too many after": (
        lambda t, y: y.grad_fn.register_hook(lambda into, out: into * 2),
        RuntimeError,
        r"^hook '<lambda>' has returned an incorrect number of values \(got 2, but expected 1\)",
    ),
    "a number after": (
        lambda t, y: y.grad_fn.register_hook(lambda into, out: (3,)),
        TypeError,
        "^expected Variable, but hook returned 'int'",
    ),
    "another size after": (
        lambda t, y: y.grad_fn.register_hook(lambda into, out: (t.ones(5, dtype=t.float64),)),
        RuntimeError,
        "has changed the size of value",
    ),
    "a tensor once written": (
        lambda t, y: y.grad_fn.next_functions[0][0].variable.register_post_accumulate_grad_hook(lambda p: p * 2),
        RuntimeError,
        r"hooks should return None\.",
    ),
    "a number once written": (
        lambda t, y: y.grad_fn.next_functions[0][0].variable.register_post_accumulate_grad_hook(lambda p: 2),
        TypeError,
        "expected Variable, but hook returned 'int'",
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_invalid_results_of_hooks(t, name):
    attach, error, text = ANSWERS[name]
    x = leaf(t, 1.0, 2.0)
    y = x.exp()
    attach(t, y)
    with pytest.raises(error, match=text):
        y.backward(t.ones(2, dtype=t.float64))


def test_tensors_that_cannot_have_hooks(t):
    for call, text in (
        (lambda: t.ones(1).register_hook(print), "cannot register a hook on a tensor that doesn't"),
        (lambda: t.ones(1).register_post_accumulate_grad_hook(print), "cannot register a hook on a tensor that"),
        (
            lambda: (leaf(t, 1.0) * 1).register_post_accumulate_grad_hook(print),
            "post accumulate grad hooks cannot be registered on non-leaf tensors",
        ),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_hooks_on_several_gradients(t):
    hook = t.autograd.graph.register_multi_grad_hook
    a, b = leaf(t, 2.0), leaf(t, 3.0)
    c, d = a * b, a * b
    log = []
    handle = hook((a, b, c, d), lambda grads: log.append([g is not None for g in grads]))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    assert log == [[True, True, True, False], [True, False, True, False], [True] * 4]
    handle.remove()
    hook((a, c, t.ones(1)), lambda g: log.append(values(g)), mode="any")
    log.clear()
    (c * 5).sum().backward(retain_graph=True)
    (c * 6).sum().backward(retain_graph=True)
    assert log == [[5], [6]]
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got foo"):
        hook((a,), print, mode="foo")
    with pytest.raises(AssertionError, match="Expected gradient function to be set"):
        hook((t.ones(1),), print)


def test_hooks_on_several_gradients_after_an_error():
    a, b = leaf(gl, 2.0), leaf(gl, 3.0)
    log = []
    gl.autograd.graph.register_multi_grad_hook((a, b), lambda grads: log.append([g is not None for g in grads]))
    stop = [True]

    def hook(g):
        if stop:
            raise KeyboardInterrupt

    b.register_hook(hook)
    with pytest.raises(KeyboardInterrupt):
        (a * b).sum().backward()
    stop.clear()
    (a * b).sum().backward()
    assert gl.autograd.grad((a * 2).sum(), a)[0].item() == 2  # torch does not accept leaves in `grad`
    assert log == [[True, True], [True, False]]


def test_gradients_kept_by_a_hook_are_not_modified():
    kept = []
    x = gl.ones(5000, requires_grad=True)
    y = x + 1.0
    y.grad_fn.register_prehook(lambda out: kept.append(out[0]))
    y.grad_fn.register_hook(lambda into, out: kept.append(into[0]))
    ((y * 1.0).sum() + (x * 3.0).sum()).backward()
    ((y * 1.0).sum() + (x * 3.0).sum()).backward()
    assert [g.array[0] for g in kept] == [1] * 4 and x.grad.array[0] == 8


def test_a_view_retains_its_gradient_after_writes(t):
    x = leaf(t, 1.0, 2.0)
    base = x * 1
    part = base[0]
    part.retain_grad()
    base.mul_(2)
    assert part.retains_grad
    (base.sum() + part * 3).backward()
    assert values(part.grad) == 3 and values(x.grad) == [8, 2]
    base = x * 1
    part = base[0]
    part.retain_grad()
    part.mul_(2)  # nothing is computed from its new value
    base.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert part.retains_grad and part.grad is None


def test_a_hook_on_several_gradients_makes_no_cycle():
    gc.disable()
    try:
        x, y = gl.ones(2, requires_grad=True), gl.ones(2, requires_grad=True)
        z = x * y
        gl.autograd.graph.register_multi_grad_hook([x, y, z], lambda grads: None)
        z.sum().backward()
        seen = [weakref.ref(tensor.node) for tensor in (x, y, z)]
        del x, y, z
        assert [ref() for ref in seen] == [None] * 3
    finally:
        gc.enable()


def test_hooks_of_a_leaf_survive_freezing(t):
    log, x = [], leaf(t, 1.0, 2.0)
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: log.append(values(p.grad)))
    y = x * 3
    for _ in range(2):
        x.requires_grad_(False)
        assert not (x * 1).requires_grad
        x.requires_grad_()
    (x * 1).sum().backward()
    y.sum().backward()
    assert log == [[2, 2], [8, 8]]

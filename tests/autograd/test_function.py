"""Custom Functions: `ctx`, and the values that forward and backward may return, on gradlab and on torch."""

from __future__ import annotations

import gc
import warnings
import weakref

import numpy as np
import pytest

import gradlab as gl


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return x.detach().numpy().tolist()


def make(t, forward=None, backward=None, name="Fn", **more):
    """Return a Function with these static methods. By default it doubles its argument."""
    methods = {"forward": forward or (lambda ctx, x, *others: x * 2), "backward": backward or (lambda ctx, g: g * 2)}
    return type(name, (t.autograd.Function,), {k: staticmethod(v) if callable(v) else v for k, v in (methods | more).items()})


def forward_saving(save):
    def forward(ctx, x):
        ctx.save_for_backward(*save(x))
        return x * 2

    return forward


def cube(t):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2

    return make(t, forward, backward, "Cube")


# ------------------------------------------------------------------------------------------------------------ derivatives
def test_a_differentiable_backward_has_derivatives_of_every_order(t):
    x = leaf(t, 2.0, -1.0)
    g = cube(t).apply(x).sum()
    for want in ([12, 3], [12, -6], [6, 6]):
        (g,) = t.autograd.grad(g.sum(), x, create_graph=True)
        assert values(g) == want


def test_several_outputs_and_non_tensor_arguments(t):
    seen = []

    def forward(ctx, a, factor, b):
        ctx.factor = factor
        return a * factor, "said", b * a

    def backward(ctx, g, nothing, h):
        seen.append((values(g), nothing, values(h)))
        return g * ctx.factor + h, None, h * 10

    f = make(t, forward, backward)
    a, b = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    p, said, q = f.apply(a, 5, b)
    assert said == "said" and (p.output_nr, q.output_nr) == (0, 2) and p.grad_fn is q.grad_fn
    (p * 1).sum().backward(retain_graph=True)
    q.backward(t.ones(2, dtype=t.float64), retain_graph=True)
    (p + q).sum().backward()
    assert seen == [([1, 1], None, [0, 0]), ([0, 0], None, [1, 1]), ([1, 1], None, [1, 1])]
    assert values(a.grad) == [5 + 1 + 6] * 2 and values(b.grad) == [0 + 10 + 10] * 2
    assert p.grad_fn.next_functions[1][0].variable is b and len(p.grad_fn.next_functions) == 2


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients_are_zeros_or_none(t, materialize):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        return x * 1, x.long(), x * 2

    def backward(ctx, *grads):
        seen.extend(None if g is None else (values(g), g.dtype) for g in grads)

    x = leaf(t, 1.5)
    make(t, forward, backward).apply(x)[2].sum().backward()
    assert seen == [([0], t.float64) if materialize else None, ([0], t.int64) if materialize else None, ([1], t.float64)]
    assert x.grad is None


def test_non_differentiable_outputs(t):
    def forward(ctx, x):
        order = x * 1
        ctx.mark_non_differentiable(order)
        return x * 2, order

    y, order = make(t, forward, lambda ctx, g, h: g * 2 + h).apply(leaf(t, 1.0))
    assert y.requires_grad and not order.requires_grad and order.grad_fn is None
    y.backward()
    y = make(t, lambda ctx, x: (ctx.mark_non_differentiable(x), x)[1]).apply(leaf(t, 1.0))
    assert not y.requires_grad


def test_a_gradient_of_none_is_no_gradient(t):
    x = leaf(t, 1.0)
    make(t, backward=lambda ctx, g: None).apply(x).sum().backward()
    assert x.grad is None


def test_gradients_are_summed_and_cast_to_their_argument(t):
    x = leaf(t, 1.0, 2.0)
    make(t, backward=lambda ctx, g: t.ones(4, 2, dtype=t.float32)).apply(x).sum().backward()
    assert values(x.grad) == [4, 4] and x.grad.dtype == t.float64


def test_the_same_tensor_twice_and_lists_of_tensors(t):
    x = leaf(t, 3.0)
    make(t, lambda ctx, a, b: a * b, lambda ctx, g: (g, g * 10)).apply(x, x).sum().backward()
    assert values(x.grad) == [11]
    y = make(t, lambda ctx, a, others: a * others[0], lambda ctx, g: (g, None)).apply(x, [x])
    assert len(y.grad_fn.next_functions) == 1


def test_gradients_kept_by_a_rule_are_not_modified(t):
    kept = t.ones(5000, dtype=t.float64)
    x = t.ones(5000, dtype=t.float64, requires_grad=True)
    f = make(t, backward=lambda ctx, g: kept)
    for _ in range(3):
        (f.apply(x) + f.apply(x)).sum().backward()
    assert kept.sum().item() == 5000 and x.grad[0].item() == 6


def test_batched_cotangents(t):
    x = leaf(t, 1.0, 2.0)
    (rows,) = t.autograd.grad(cube(t).apply(x), x, t.eye(2, dtype=t.float64), is_grads_batched=True)
    assert values(rows) == [[3, 0], [0, 12]]


def test_batched_cotangents_of_arbitrary_rules():
    """Rules that read values, use NumPy or call backward, all of which torch refuses."""

    def backward(ctx, g, h):
        assert g.shape == (2,)
        inner = leaf(gl, 1.0)
        with gl.enable_grad():
            (inner * 3).sum().backward()
        return gl.tensor(g.numpy() * 2) + h * inner.grad if float(g.sum()) else None

    f = make(gl, lambda ctx, x: (x * 2, x * 3), backward)
    x = leaf(gl, 1.0, 2.0)
    g = gl.tensor([[1.0, 0], [0, 0], [2, 1]], dtype=gl.float64)
    (rows,) = gl.autograd.grad(f.apply(x), x, [g, g], is_grads_batched=True)
    assert values(rows) == [[5, 0], [0, 0], [10, 5]]
    (twice,) = gl.autograd.grad(cube(gl).apply(x), x, gl.eye(2, dtype=gl.float64), is_grads_batched=True, create_graph=True)
    assert values(gl.autograd.grad(twice.sum(), x)[0]) == [6, 12]
    (none,) = gl.autograd.grad(cube(gl).apply(x), x, gl.zeros(0, 2, dtype=gl.float64), is_grads_batched=True)
    assert none.shape == (0, 2)


def test_jacobians():
    x = leaf(gl, 1.0, 2.0, 3.0)
    J = gl.jacobian(cube(gl).apply(x * 1), x)
    np.testing.assert_allclose(J.dense(), np.diag([3, 12, 27]))


# ------------------------------------------------------------------------------------------------------- ctx and the node
def test_the_node_is_ctx(t):
    def forward(ctx, x):
        ctx.shape, ctx.saved, ctx.op, ctx.hooks, ctx.order, ctx.edges, ctx.storage = 1, 2, 3, 4, 5, 6, 7  # attributes of the user
        out = x.exp()
        ctx.save_for_backward(x, None, out)
        return out

    f = make(t, forward, lambda ctx, g: g * ctx.saved_tensors[2] * ctx.shape, "Exp")
    x = leaf(t, 1.0)
    y = f.apply(x)
    node = y.grad_fn
    assert type(node).__name__ == node.name() == "ExpBackward" and "<ExpBackward" in repr(y)
    assert isinstance(node, t.autograd.graph.Node) and isinstance(node, t.autograd.function.FunctionCtx)
    assert (node.shape, node.saved, node.op, node.hooks, node.order, node.edges, node.storage) == (1, 2, 3, 4, 5, 6, 7)
    assert node.needs_input_grad == (True,) and node.metadata == {} and node is y.grad_fn
    before, nothing, after = node.saved_tensors
    assert nothing is None and values(before) == [1] and after.grad_fn is node
    assert len(node._raw_saved_tensors) == 3 and tuple(node._input_metadata[0].shape) == (1,)
    y.backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time \(or directly access saved"):
        getattr(node, "saved_tensors")  # noqa: B009
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        y.backward()


def test_a_call_without_saved_tensors_can_run_twice(t):
    x = leaf(t, 1.0)
    y = make(t).apply(x)
    y.backward()
    y.backward()
    assert values(x.grad) == [4]


def test_needs_input_grad(t):
    seen = []

    def forward(ctx, *args):
        seen.append((ctx.needs_input_grad, t.is_grad_enabled(), args[0] is x))
        return args[0] * 1

    x = leaf(t, 1.0)
    f = make(t, forward, lambda ctx, g: (g, None, None))
    f.apply(x, t.ones(1), 3)
    with t.no_grad():
        y = f.apply(x, t.ones(1), 3)
    assert seen == [((True, False, False), False, True)] * 2 and y.grad_fn is None
    assert f.apply(t.ones(1), x, 3).requires_grad and not f.apply(t.ones(1), t.ones(1), 3).requires_grad


def test_setup_context(t):
    class Power(t.autograd.Function):
        @staticmethod
        def forward(x, exponent=2):
            return x**exponent

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.exponent = inputs
            ctx.save_for_backward(x)
            assert not output.requires_grad and not t.is_grad_enabled()

        @staticmethod
        def vjp(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.exponent * x ** (ctx.exponent - 1), None

    x = leaf(t, 3.0)
    assert [values(t.autograd.grad(y, x)[0]) for y in (Power.apply(x), Power.apply(x, 3), Power.apply(x, exponent=3))] == [
        [6],
        [27],
        [27],
    ]


def test_saved_tensors_are_checked(t):
    x = leaf(t, 1.0) * 1
    f = make(t, lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1], lambda ctx, g: g * ctx.saved_tensors[0], "Times")
    y = f.apply(x)
    x.add_(1)
    with pytest.raises(RuntimeError, match=r"by an inplace operation: \[.*DoubleTensor \[1\]\], which is output 0 of Add"):
        y.backward()
    f = make(t, lambda ctx, x: (y := x.exp(), ctx.save_for_backward(y))[0], lambda ctx, g: g * ctx.saved_tensors[0])
    out = f.apply(leaf(t, 1.0))
    out.add_(1)
    with pytest.raises(RuntimeError, match="which is output 0 of Fn, is at version 1"):
        out.backward()


def test_saved_tensors_can_be_cleared_on_access(t):
    for again in (False, True):
        f = make(
            t,
            lambda ctx, x: (ctx.save_for_backward(x), x * 1)[1],
            lambda ctx, g, again=again: (ctx.saved_tensors, ctx.saved_tensors if again else (g,))[1][0],
            clear_saved_tensors_on_access=True,
        )
        y = f.apply(leaf(t, 1.0))
        if not again:
            y.backward(retain_graph=True)
        with pytest.raises(RuntimeError, match="can only be accessed once"):
            y.backward()


def test_saved_tensors_hooks_see_them(t):
    log = []
    with t.autograd.graph.saved_tensors_hooks(lambda x: log.append("pack") or x, lambda x: log.append("unpack") or x):
        y = cube(t).apply(leaf(t, 2.0))
    y.backward()
    assert log == ["pack", "unpack"]


def test_no_cycle_and_the_node_keeps_the_graph_alive():
    gc.collect()
    gc.disable()
    try:
        x = leaf(gl, 1.0)
        y = make(gl, lambda ctx, x: (y := x.exp(), ctx.save_for_backward(x, y), y * 2)[::2], lambda ctx, g, h: g + h).apply(x)[0]
        node, gone = y.grad_fn, weakref.ref(y)
        del y
        assert gone() is None and node.next_functions[0][0].variable is x
        gone = weakref.ref(node._node)
        del node
        assert gone() is None
    finally:
        gc.enable()


def test_boxed_gradients(t):
    f = make(t, lambda ctx, x: (x * 2, x * 3), lambda ctx, grads: grads.pop() * 3 + grads.pop() * 2, boxed_grads_call=True)
    x = leaf(t, 1.0)
    sum(f.apply(x)).backward()
    assert values(x.grad) == [5]


# ---------------------------------------------------------------------------------------------------- once_differentiable
def test_once_differentiable(t):
    once = t.autograd.function.once_differentiable
    f = make(t, lambda ctx, x: (ctx.save_for_backward(x), x**2)[1], once(lambda ctx, g: g * 2 * ctx.saved_tensors[0]), "Square")
    x = leaf(t, 3.0)
    (g,) = t.autograd.grad(f.apply(x) ** 2, x, create_graph=True)
    assert values(g) == [108] and g.grad_fn.name().endswith("Error") and "grad_fn=<Error>" in repr(g)
    with pytest.raises(RuntimeError, match=r"^trying to differentiate twice a function that was marked with @once"):
        g.backward()
    (g,) = t.autograd.grad(f.apply(x), x, create_graph=True)
    assert not g.requires_grad  # as in torch, because the cotangent does not require grad


# ---------------------------------------------------------------------------------------------- inputs, views and writes
def test_an_input_returned_unchanged(t):
    f = make(t, lambda ctx, x: x)
    for x in (leaf(t, 1.0), leaf(t, 1.0) * 1):
        y = f.apply(x)
        assert y is not x and y.grad_fn.name() == "FnBackward" and y._base is x
        with pytest.raises(
            RuntimeError,
            match=r"Output 0 of Fn(Backward)? is a view and is being modified inplace\. This view "
            "was created inside a custom Function",
        ):
            y.mul_(2)
        y.sum().backward()
    with t.no_grad():
        assert f.apply(leaf(t, 1.0)).requires_grad is False


def test_views_made_inside(t):
    x = leaf(t, 1.0, 2.0) * 1
    y = make(t, lambda ctx, x: x[:1], lambda ctx, g: t.cat([g, g])).apply(x)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y.mul_(2)
    y, _ = make(t, lambda ctx, x: (x[:1], x * 2), lambda ctx, g, h: h).apply(x)
    with pytest.raises(RuntimeError, match="This view is the output of a function that returns multiple views"):
        y.mul_(2)


def test_mark_dirty(t):
    f = make(t, lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1], name="Double_")
    x = leaf(t, 1.0, 3.0)
    h = x * 1
    y = f.apply(h)
    assert y is h and h.grad_fn.name() == "Double_Backward" and h._version > 0
    h.sum().backward()
    assert values(x.grad) == [2, 2]
    whole = x * 1
    part = whole[:1]
    assert f.apply(part) is part and values(whole) == [2, 3]
    x.grad = None
    whole.sum().backward()
    assert values(x.grad) == [2, 1]
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad has been used in an in-place operation"):
        f.apply(x)
    kept = x * 1
    squared = kept * kept
    f.apply(kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squared.sum().backward()


def test_mark_dirty_of_saved_inputs_and_inputs_without_gradients(t):
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        a.mul_(b)
        ctx.save_for_backward(a)
        return a

    f = make(t, forward, lambda ctx, g: (g, g * ctx.saved_tensors[0]))
    x = leaf(t, 3.0)
    a = t.tensor([2.0], dtype=t.float64)
    assert f.apply(a, x) is a and a.requires_grad and values(a) == [6]
    a.backward()
    assert values(x.grad) == [6]
    base = t.ones(2, dtype=t.float64)
    f.apply(base[:1], x)
    assert base.requires_grad and base.grad_fn.name().endswith("CopySlices")


# ------------------------------------------------------------------------------------------------------------------ errors
def refused_calls(t):
    """Return (call, type of the error, its message) by name."""
    x = leaf(t, 1.0, 2.0, 3.0)
    mul = lambda ctx, x, *rest: x * 2  # noqa: E731

    def run(forward=mul, backward=None, *args, **more):
        return lambda: make(t, forward, backward, **more).apply(x, *args).sum().backward()

    Fn, base = t.autograd.Function, type("Old", (t.autograd.Function,), {"forward": lambda self, x: x})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = base()
    view = (x * 1)[:2]
    return {
        "no forward": (lambda: type("Fn", (Fn,), {}).apply(x), NotImplementedError, "You must implement the forward function"),
        "no backward": (
            lambda: type("Fn", (Fn,), {"forward": staticmethod(mul)}).apply(x).sum().backward(),
            NotImplementedError,
            "You must implement either the backward or vjp method",
        ),
        "both": (run(vjp=lambda ctx, g: g), RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not"),
        "legacy": (lambda: old(x), RuntimeError, "Legacy autograd function with non-static forward method is deprecated"),
        "too many": (
            run(mul, lambda ctx, g: (g, g)),
            RuntimeError,
            r"function FnBackward returned an incorrect number of gradients \(expected 1, got 2\)",
        ),
        "too few": (
            run(mul, lambda ctx, g: g, x),
            RuntimeError,
            r"function FnBackward returned an incorrect number of gradients \(expected 2, got 1\)",
        ),
        "shape": (
            run(mul, lambda ctx, g: t.ones(10)),
            RuntimeError,
            r"Function FnBackward returned an invalid gradient at index 0 - got \[10\] but expected shape compatible with",
        ),
        "smaller": (run(mul, lambda ctx, g: t.ones(1)), RuntimeError, r"got \[1\] but expected shape compatible with \[3\]"),
        "number": (run(mul, lambda ctx, g: 3.0), RuntimeError, r"expected Variable or None \(got float\)"),
        "list": (run(mul, lambda ctx, g: [g]), RuntimeError, r"expected Variable or None \(got list\)"),
        "no tensor": (
            run(mul, lambda ctx, g: (g, g), 5),
            RuntimeError,
            "function FnBackward returned a gradient different than None at position 2, but the corresponding",
        ),
        "save a number": (
            run(forward_saving(lambda x: (x, 3))),
            TypeError,
            "save_for_backward can only save variables, but argument 1 is of type int",
        ),
        "dirty number": (run(lambda ctx, x: (ctx.mark_dirty(3), x)[1]), RuntimeError, "mark_dirty can only accept variables"),
        "dirty lost": (
            run(lambda ctx, x: (ctx.mark_dirty(x), x * 2)[1]),
            RuntimeError,
            "Some elements marked as dirty during the forward method were not returned as output.",
        ),
        "fixed number": (
            run(lambda ctx, x: (ctx.mark_non_differentiable(3), x * 2)[1]),
            RuntimeError,
            "mark_non_differentiable only accepts variable arguments",
        ),
        "dirty view": (
            lambda: make(t, lambda ctx, a, b: (ctx.mark_dirty(a), a.mul_(2), b * 1)[1:]).apply(view, x),
            RuntimeError,
            "your Function modifies inplace an input that is a view of another Tensor",
        ),
        "the rule's own": (run(mul, lambda ctx, g: {}["missing"]), KeyError, "missing"),
    }


@pytest.mark.parametrize("name", refused_calls(gl))
def test_refusals(t, name):
    do, error, text = refused_calls(t)[name]
    with pytest.raises(error, match=text):
        do()


def test_errors_name_the_argument():
    x = leaf(gl, 1.0, 2.0, 3.0)
    y = make(gl, lambda ctx, image, weight: image * weight, lambda ctx, g: (g, g[:2])).apply(x, x)
    with pytest.raises(RuntimeError, match=r"invalid gradient at index 1 - got \[2\].*\(its argument 'weight'\)"):
        y.sum().backward()


def test_warnings(t):
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        make(t)()
    with pytest.warns(UserWarning, match=r"ctx.mark_dirty\(\) received a tensor that was not an input"):
        make(t, lambda ctx, x: (y := x * 2, ctx.mark_dirty(y))[0]).apply(leaf(t, 1.0))
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        make(t, lambda ctx, x: ctx.save_for_forward(3)).apply(leaf(t, 1.0))


# ------------------------------------------------------------------------------------------------------------ forward mode
def dual(t, f, primal, tangent):
    from importlib import import_module

    forward_ad = import_module(f"{t.__name__}.autograd.forward_ad")
    with forward_ad.dual_level():
        return [
            forward_ad.unpack_dual(y).tangent if isinstance(y, t.Tensor) else y for y in f(forward_ad.make_dual(primal, tangent))
        ]


def test_jvp(t):
    def forward(ctx, x, k):
        ctx.k = k
        ctx.save_for_forward(x)
        return x**k, "said", x * 3

    def jvp(ctx, tangent, nothing):
        (x,) = ctx.saved_tensors
        assert nothing is None
        return ctx.k * x ** (ctx.k - 1) * tangent, None, tangent * 3

    f = make(t, forward, jvp=jvp)
    first, said, last = dual(t, lambda x: f.apply(x, 2), t.tensor([3.0]), t.tensor([1.0]))
    assert (values(first), said, values(last)) == ([6], "said", [3])


@pytest.mark.parametrize(
    ("forward", "jvp", "error", "text"),
    [
        (lambda ctx, x: x * 2, None, NotImplementedError, "You must implement the jvp function for custom autograd.Function"),
        (
            lambda ctx, x: (x * 2, x * 3),
            lambda ctx, u: u,
            RuntimeError,
            r"Function's jvp returned an invalid number of forward gradients \(expected 2 but got 1\)",
        ),
        (lambda ctx, x: x * 2, lambda ctx, u: 3, RuntimeError, r"expected Variable or None \(got int\) for grad output 0"),
        (lambda ctx, x: x.sum(), lambda ctx, u: u, RuntimeError, "Trying to set a forward gradient that has a different size"),
        (lambda ctx, x: x, lambda ctx, u: u * 1, RuntimeError, "but the jvp is not returning a view"),
        (
            lambda ctx, x: (ctx.mark_dirty(x), x.add_(1))[1],
            lambda ctx, u: u * 1,
            RuntimeError,
            "then the jvp function must modify the corresponding gradient inplace",
        ),
    ],
)
def test_invalid_tangents(t, forward, jvp, error, text):
    f = make(t, forward, **({} if jvp is None else {"jvp": jvp}))
    with pytest.raises(error, match=text):
        dual(t, lambda x: (f.apply(x),), t.tensor([3.0, 4.0]), t.tensor([1.0, 1.0]))


def test_forward_sweeps_over_a_recorded_call():
    x, u = leaf(gl, 2.0, 3.0), gl.tensor([1.0, 10.0], dtype=gl.float64)
    f = make(
        gl, lambda ctx, x: (ctx.save_for_backward(x), (x**2, x.sum()))[1], lambda ctx, g, h: 2 * ctx.saved_tensors[0] * g + h
    )
    square, total = f.apply(x * 1)
    assert [values(s) for s in gl.autograd.jvp_of_graph([square, total], [x], [u])] == [[4, 60], 11]  # only from the backward
    given = make(gl, lambda ctx, x: (ctx.save_for_forward(x), x**2)[1], jvp=lambda ctx, u: 2 * ctx.saved_tensors[0] * u)
    assert values(gl.autograd.jvp_of_graph(given.apply(x), x, u)[0]) == [4, 60]
    (rows,) = gl.autograd.jvp_of_graph(given.apply(x), x, gl.eye(2, dtype=gl.float64), is_batched=True)
    assert values(rows) == [[4, 0], [0, 6]]
    once = make(gl, backward=gl.autograd.function.once_differentiable(lambda ctx, g: g * 2))
    with pytest.raises(NotImplementedError, match=r"You must implement the jvp function.*once_differentiable"):
        gl.autograd.jvp_of_graph(once.apply(x), x, u)


def test_explorers_draw_the_call_once():
    f = make(gl, lambda ctx, a, b: (a * b, a + b), lambda ctx, g, h: (g, h), "Two")
    x, w = leaf(gl, 1.0, 2.0), leaf(gl, 3.0, 4.0)
    p, q = f.apply(x, w)
    text = str(gl.graph((p * q).sum())._repr_mimebundle_()["text/plain"])
    assert text.count("TwoBackward") == 1 and "p, q = Two" in text
    with pytest.raises(ValueError, match="the rule of Two is its own backward"):
        gl.formula(p.grad_fn)


def test_the_tangent_of_a_view_is_a_view_of_the_tangent(t):
    forward_ad = t.autograd.forward_ad
    for jvp, right in ((lambda ctx, v: v.view(2), True), (lambda ctx, v: v.clone().view(2), False)):
        function = make(t, lambda ctx, x: x.view(2), jvp=staticmethod(jvp))
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(t.ones(2, 1), t.ones(2, 1))
            if right:
                assert values(forward_ad.unpack_dual(function.apply(dual)).tangent) == [1, 1]
            else:
                with pytest.raises(RuntimeError, match=r"^A custom Function is returning a view but the jvp is not"):
                    function.apply(dual)


def test_keyword_arguments_have_gradients(t):
    def forward(ctx, x, y, k=1, m=None):
        return x * y * k

    product = make(t, forward, lambda ctx, g: (g, g * 2, None), name="Product")
    x, y = leaf(t, 1.0), leaf(t, 2.0)
    for out in (product.apply(x, y), product.apply(x, y=y), product.apply(y=y, x=x), product.apply(x, k=3, y=y)):
        assert [g.item() for g in t.autograd.grad(out.sum(), [x, y])] == [1, 2]
    for call in (lambda: product.apply(x, x=y), lambda: product.apply(x, z=3), lambda: product.apply(x, k=3)):
        with pytest.raises(TypeError, match=r"forward\(\) "):
            call()


def test_a_keyword_only_tensor_is_refused(t):
    def forward(ctx, x, *, k):
        return x * k

    with pytest.raises(TypeError, match=r"forward\(\) got "):
        make(t, forward).apply(leaf(t, 1.0), k=leaf(t, 2.0))

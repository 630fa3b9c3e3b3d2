"""`backward` and `grad`: arguments, accumulation and errors."""

from __future__ import annotations

import gc
import types
import warnings
import weakref

import numpy as np
import pytest

import gradlab as gl


def leaf(t, *values):
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def values(x):
    return None if x is None else x.detach().numpy().tolist()


def ones(t, *shape):
    return t.ones(*shape, dtype=t.float64)


# ------------------------------------------------------------------------------------------------------ inputs and outputs
def test_several_roots_duplicates_and_roots_that_depend_on_each_other(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 3
    z = (y * y).sum()
    t.autograd.backward([y, z, z], [ones(t, 2), None, t.tensor(2.0, dtype=t.float64)])
    assert values(x.grad) == [3 + 3 * 18, 3 + 3 * 36]
    assert values(t.autograd.grad([x, x * 2], x, [ones(t, 2), ones(t, 2)])[0]) == [3, 3]


def test_inputs_in_any_order_and_twice(t):
    x, w = leaf(t, 1.0), leaf(t, 5.0)
    y = x * w
    gw, gy, gx, again = t.autograd.grad((y * 2).sum(), [w, y, x, x])
    assert [values(g) for g in (gw, gy, gx, again)] == [[2], [2], [10], [10]]
    assert x.grad is None and y.is_leaf is False


def test_inputs_as_a_dictionary(t):
    x, w = leaf(t, 1.0), leaf(t, 5.0)
    found = t.autograd.grad((x * 2).sum(), {"x": x, "w": w}, allow_unused=True)
    assert list(found) == ["x", "w"] and values(found["x"]) == [2] and found["w"] is None
    (x * w).sum().backward(inputs={"w": w})
    assert values(w.grad) == [1] and x.grad is None
    with pytest.raises(TypeError, match=r"`inputs` argument to `grad\(\)` must be a dict, not mappingproxy"):
        t.autograd.grad((x * 2).sum(), types.MappingProxyType({"x": x}))


def test_backward_to_chosen_inputs(t):
    x, w = leaf(t, 1.0), leaf(t, 5.0)
    y = x * w
    (y * 3).sum().backward(inputs=[x, y], retain_graph=True)
    assert (values(x.grad), values(y.grad), w.grad) == ([15], [3], None)
    (y * 3).sum().backward(inputs=y)
    assert (values(x.grad), values(y.grad), w.grad) == ([15], [6], None)
    (x * 1).sum().backward(inputs=[w])
    assert w.grad is None


def test_gradient_edges(t):
    edge = t.autograd.graph.get_gradient_edge
    x, w = leaf(t, 1.0, 2.0), leaf(t, 5.0)
    y = x * x
    assert edge(y).node is y.grad_fn and edge(y).output_nr == 0 and edge(x).node.variable is x
    z = y.exp().sum()
    via_edge, via_tensor = t.autograd.grad(z, [edge(y), y], retain_graph=True)
    assert values(via_edge) == values(via_tensor)
    assert values(t.autograd.grad(edge(y), edge(x), ones(t, 2), retain_graph=True)[0]) == [2, 4]
    assert values(t.autograd.grad(t.autograd.graph.GradientEdge(y.grad_fn, 0), x, ones(t, 2), retain_graph=True)[0]) == [2, 4]
    t.autograd.backward(edge((x * 3).sum()))
    z.backward(inputs=[edge(x)])
    np.testing.assert_allclose(values(x.grad), 3 + np.exp([1, 4]) * [2, 4])
    for call, text in (
        (lambda: t.autograd.grad(edge(x * 2), x), "grad can be implicitly created only for scalar outputs"),
        (lambda: t.autograd.grad(edge(x * 2), x, ones(t, 3)), r"Mismatch in shape: grad_output\[0\] has a shape"),
        (
            lambda: t.autograd.grad((x * 2).sum(), edge(w), materialize_grads=True),
            "materialize_grads cannot be used when the given input is a GradientEdge",
        ),
        (lambda: t.autograd.grad((x * 2).sum(), edge(w)), "The differentiated Tensor at index 0 appears to not"),
        (lambda: edge(ones(t, 2)), "It is not possible to get the gradient edge for a Tensor that"),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()


def test_gradient_edges_of_one_output_of_several(t):
    class Two(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h * 3

    edge = t.autograd.graph.get_gradient_edge
    x = leaf(t, 1.0)
    a, b = Two.apply(x)
    at = edge(b)
    assert at.output_nr == 1 and at.node is a.grad_fn
    z = (b * b).sum() + a.sum()
    assert values(t.autograd.grad(z, [at, edge(a)], retain_graph=True)[0]) == [6]
    del b
    assert values(t.autograd.grad(at, x, ones(t, 1), retain_graph=True)[0]) == [3]
    z.backward()
    assert values(x.grad) == [2 + 3 * 6]


def test_materialized_zeros(t):
    x, w = leaf(t, 1.0), leaf(t, 5.0, 6.0)
    zeros = t.autograd.grad((x * 2).sum(), [w], materialize_grads=True)[0]
    assert values(zeros) == [0, 0] and not zeros.requires_grad
    assert t.autograd.grad((x * 2).sum(), [w], materialize_grads=True, create_graph=True)[0].requires_grad
    if t is gl:  # torch omits the batch axis
        (rows,) = t.autograd.grad(x * 2, [w], ones(t, 3, 1), materialize_grads=True, is_grads_batched=True)
        assert rows.shape == (3, 2)


def test_batched_cotangents_of_several_outputs(t):
    x = leaf(t, 1.0, 2.0)
    eye = t.eye(2, dtype=t.float64)
    (rows,) = t.autograd.grad([x * x, x * 3], x, [eye, 2 * eye], is_grads_batched=True)
    assert values(rows) == [[8, 0], [0, 10]]
    with pytest.raises(ValueError, match="Expected all tensors to have the same size in the mapped dimension"):
        t.autograd.grad([x * x, x * 3], x, [eye, ones(t, 3, 2)], is_grads_batched=True)
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first"):
        t.autograd.grad(x * x, x, ones(t, 2, 3), is_grads_batched=True)


def test_leaves_and_constants_as_outputs(t):
    x = t.tensor(2.0, requires_grad=True)
    assert values(t.autograd.grad(x, x)[0]) == 1
    x.backward()
    x.backward()
    assert values(x.grad) == 2
    assert t.autograd.backward([]) is None


def test_weights_are_cast(t):
    for v in (t.ones(2, dtype=t.float32), t.ones(2, dtype=t.int64)):
        x = leaf(t, 1.0, 2.0)
        (x * x).backward(v)
        assert values(x.grad) == [2, 4] and x.grad.dtype == t.float64


# ------------------------------------------------------------------------------------------------------------ accumulation
def test_accumulation_is_in_place_unless_recorded(t):
    x = leaf(t, 1.0)
    g = ones(t, 1)
    (x * x).backward(g)
    first = x.grad
    (x * x).backward(g)
    assert x.grad is first and values(first) == [4] and first._version > 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).backward(g, create_graph=True)
    assert x.grad is not first and values(first) == [4] and values(x.grad) == [6] and x.grad.requires_grad
    (x * 1).backward(g)
    assert values(x.grad) == [7]
    x.grad = None
    (x * 1).backward(g)
    assert x.grad is not g and values(g) == [1]


def test_gradients_have_the_memory_layout_of_their_tensors(t):
    x = ones(t, 2, 3).t().requires_grad_()
    (x * ones(t, 3, 2)).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 3)
    y = ones(t, 3, 2).requires_grad_()
    (y.t() * ones(t, 2, 3)).sum().backward()
    assert y.grad.stride() == (2, 1)


def test_gradients_of_two_inputs_do_not_share_memory():
    """In-place accumulation must not change gradients returned by `grad`: y's cotangent is passed on to x unchanged."""
    x = gl.ones(5000, requires_grad=True)
    a = x * 3.0
    y = x + 1.0
    gy, gx = gl.autograd.grad((y * 1.0).sum() + a.sum(), [y, x])
    assert (gy.array[0], gx.array[0]) == (1, 4)


def test_a_graph_of_sums_can_run_twice_but_a_freed_one_cannot(t):
    x = leaf(t, 1.0)
    y = (x + x).sum()
    y.backward()
    y.backward()
    assert values(x.grad) == [4]
    y = x.exp()
    y.backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        y.backward()


def test_recorded_gradients_warn_about_the_reference_cycle(t):
    x = leaf(t, 2.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        t.autograd.grad((x**3).sum(), x, create_graph=True)
        assert not caught
    if t is gl:  # torch warns only once in a process
        with pytest.warns(UserWarning, match=r"^Using backward\(\) with create_graph=True will create a reference") as caught:
            (x**3).sum().backward(create_graph=True)
        assert caught[0].filename == __file__
        assert values(t.autograd.grad(x.grad.sum(), x)[0]) == [12]


def test_no_other_reference_cycles():
    gc.collect()
    gc.disable()
    try:
        x = leaf(gl, 2.0)
        (g,) = gl.autograd.grad((x**3).sum(), x, create_graph=True)
        h = x * 1
        h.retain_grad()
        h.register_hook(lambda g: None)
        y = h.exp()
        y.sum().backward(retain_graph=True)
        gone = [weakref.ref(z) for z in (x, g, h, y, h.grad_fn, g.grad_fn)]
        del x, g, h, y
        assert [ref() for ref in gone] == [None] * 6
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------------------------ errors
REFUSED = {
    "no scalar": (lambda t, x: (x * 2).backward(), RuntimeError, "^grad can be implicitly created only for scalar outputs"),
    "no history": (
        lambda t, x: t.autograd.backward([x.sum(), ones(t, 1)]),
        RuntimeError,
        "^element 1 of tensors does not require grad and does not have a grad_fn",
    ),
    "integers": (lambda t, x: (x > 0).sum().backward(), RuntimeError, "^element 0 of tensors does not require grad"),
    "too few weights": (
        lambda t, x: t.autograd.backward([x * 1, x * 1], [ones(t, 2)]),
        RuntimeError,
        "^got 2 tensors and 1 gradients",
    ),
    "shape of weights": (
        lambda t, x: (x * 1).backward(ones(t, 3)),
        RuntimeError,
        (
            r"^Mismatch in shape: grad_output\[0\] has a shape of \w+.Size\(\[3\]\) and output\[0\] has a shape "
            r"of \w+.Size\(\[2\]\)\."
        ),
    ),
    "a word": (lambda t, x: (x * 1).backward("one"), TypeError, "^gradients can be either Tensors or None, but got str"),
    "no inputs": (lambda t, x: t.autograd.grad(x.sum(), []), RuntimeError, r"^`inputs` argument to `grad\(\)` cannot be empty\."),
    "no inputs of backward": (
        lambda t, x: x.sum().backward(inputs=[]),
        RuntimeError,
        r"^`inputs` argument to `backward\(\)` cannot be empty\.",
    ),
    "an input that is none": (
        lambda t, x: t.autograd.grad(x.sum(), [3]),
        RuntimeError,
        "^all inputs have to be Tensors or GradientEdges, but got int",
    ),
    "a constant input": (
        lambda t, x: t.autograd.grad(x.sum(), ones(t, 1)),
        RuntimeError,
        "^One of the differentiated Tensors does not require grad",
    ),
    "a constant input of backward": (
        lambda t, x: x.sum().backward(inputs=ones(t, 1)),
        RuntimeError,
        "^can't retain_grad on Tensor that has requires_grad=False",
    ),
    "unused": (
        lambda t, x: t.autograd.grad(x.sum(), leaf(t, 1.0)),
        RuntimeError,
        "^The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True",
    ),
    "unused but zeros": (
        lambda t, x: t.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True),
        ValueError,
        "^Expected allow_unused to be True or not passed when",
    ),
    "both weights": (
        lambda t, x: t.autograd.backward(x * 1, ones(t, 2), grad_variables=ones(t, 2)),
        RuntimeError,
        r"^`grad_tensors` and `grad_variables` \(deprecated\) arguments both passed",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_refusals(t, name):
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        call(t, leaf(t, 1.0, 2.0))


def test_deprecated_arguments(t):
    x = leaf(t, 1.0, 2.0)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        t.autograd.backward(x * 2, grad_variables=ones(t, 2))
    assert values(x.grad) == [2, 2]
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        t.autograd.grad(x.sum(), x, only_inputs=False)


def test_a_failed_sweep_leaves_the_mode_as_it_was(t):
    x = leaf(t, 1.0)

    def hook(g):
        raise ValueError("no")

    x.register_hook(hook)
    with pytest.raises(ValueError, match="no"):
        (x * 2).backward()
    assert t.is_grad_enabled() and x.grad is None


def test_a_tensor_among_the_inputs_retains_its_gradient_once(t):
    x = leaf(t, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    (y * 3).sum().backward(inputs=[y, y])
    assert values(y.grad) == [3, 3] and x.grad is None
    z, other = x * 2, x * 5
    (z * 3).sum().backward(inputs=[z, other])
    assert z.retains_grad and values(z.grad) == [3, 3]
    assert other.retains_grad and other.grad is None


def test_tensors_frozen_later_get_no_gradient(t):
    x, w = leaf(t, 1.0, 2.0), leaf(t, 3.0, 4.0)
    y = (x * w).sum()
    x.requires_grad_(False)
    y.backward()
    assert x.grad is None and values(w.grad) == [1, 2]
    x.requires_grad_()
    (x * 5).sum().backward()
    assert values(x.grad) == [5, 5]


def test_requires_grad_of_results_cannot_be_set(t):
    y = leaf(t, 1.0) * 2
    assert y.requires_grad_() is y
    for flag in (True, False):
        with pytest.raises(RuntimeError, match=r"^you can only change requires_grad flags of leaf variables"):
            y.requires_grad = flag


@pytest.mark.parametrize("count", [0, 2, 3])
def test_the_numbers_of_inputs_and_tangents_must_match(count):
    x = leaf(gl, 2.0, 3.0)
    with pytest.raises(RuntimeError, match=f"^got 1 inputs and {count} tangents: give one tangent for each input"):
        gl.autograd.jvp_of_graph(x**2, x, [gl.ones(2)] * count, is_batched=True)

"""`func`: comparison with torch, and derivatives of all orders compared with formulas and finite differences."""

from __future__ import annotations

import gc
import random
import weakref

import numpy as np
import pytest
from func_cases import expressions, names

import gradlab as gl
from gradlab.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)

X = gl.tensor([0.5, -1.25, 2.0], dtype=gl.float64)
S = gl.tensor(0.7, dtype=gl.float64)


# --------------------------------------------------------------------------------------------------- comparison with torch
def describe(result):
    if isinstance(result, dict):
        return {key: describe(value) for key, value in result.items()}
    if isinstance(result, (tuple, list)):
        return type(result).__name__, *map(describe, result)
    if not hasattr(result, "detach"):
        return repr(result)
    numbers = np.round(result.detach().numpy(), 9).tolist()
    return tuple(result.shape), str(result.dtype).split(".")[1], result.requires_grad, numbers


def outcome(expression, lib):
    try:
        return describe(eval(expression, names(lib)))
    except Exception as error:  # noqa: BLE001  (whatever it is, the other library must raise it too)
        return "error", type(error).__name__, str(error)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("expression", expressions())
def test_as_torch(expression):
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(expression, gl), outcome(expression, torch)
    if isinstance(theirs, tuple) and theirs[0] == "error":
        assert ours[:2] == theirs[:2]
        assert ours[2].replace("gradlab", "torch").startswith(theirs[2].rstrip("."))
    else:
        assert ours == theirs


@pytest.mark.oracle
def test_torchs_names():
    torch = pytest.importorskip("torch")
    assert set(torch.func.__all__) - set(gl.func.__all__) == {"rearrange"}
    assert gl.vmap is gl.func.vmap


# ----------------------------------------------------------------------------------------------------------------- formulas
def difference(f, x, direction, step=1e-5):
    """Return the central difference of f at x along a direction."""
    return (f(x + step * direction).array - f(x - step * direction).array) / (2 * step)


def network(x):
    W = gl.tensor([[0.3, -0.5, 0.2], [0.1, 0.4, -0.6]], dtype=gl.float64)
    return (W @ (x.tanh() * x)).exp().sum()


@pytest.mark.parametrize(
    "transform",
    [
        grad,
        lambda f: lambda x: vjp(f, x)[1](gl.tensor(1.0, dtype=gl.float64))[0],
        jacrev,
        jacfwd,
        lambda f: lambda x: gl.stack([jvp(f, (x,), (e,))[1] for e in gl.eye(3, dtype=gl.float64)]),
        lambda f: lambda x: gl.stack([linearize(f, x)[1](e) for e in gl.eye(3, dtype=gl.float64)]),
    ],
)
def test_first_derivatives_match_finite_differences(transform):
    want = [difference(network, X, e) for e in gl.eye(3, dtype=gl.float64)]
    np.testing.assert_allclose(transform(network)(X).array, want, rtol=1e-8)


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_second_derivatives_match_differences_of_first(outer, inner):
    want = [difference(grad(network), X, e) for e in gl.eye(3, dtype=gl.float64)]
    np.testing.assert_allclose(outer(inner(network))(X).array, want, rtol=1e-7, atol=1e-9)


def test_any_order():
    f = lambda s: s**6  # noqa: E731
    for order, factor in enumerate((6, 30, 120, 360, 720, 720), 1):
        f = (grad, jacfwd, jacrev)[order % 3](f)
        assert f(S).item() == pytest.approx(factor * 0.7 ** (6 - order))


def test_perturbations_are_not_confused():
    """d/dx [x · d/dy (x + y)] is 1 for all combinations of modes, because the inner derivative is 1, not 2."""

    def derivative(f):
        return lambda s: jvp(f, (s,), (gl.ones_like(s),))[1]

    for outer in (grad, derivative):
        for inner in (grad, derivative):
            assert outer(lambda x, inner=inner: x * inner(lambda y: x + y)(x))(S).item() == 1.0
            assert outer(lambda x, inner=inner: x * inner(lambda y: x * y)(x))(S).item() == pytest.approx(1.4)


def test_an_inner_gradient_step_is_differentiated():
    """Gradient with respect to the starting point of a regression step: (I - 2a H/n) times the outer gradient."""
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((5, 3)), rng.standard_normal(5)
    At, bt, step = gl.from_numpy(A), gl.from_numpy(b), 0.1

    def loss(w):
        return ((At @ w - bt) ** 2).mean() + 0.5 * (w**2).sum()

    found = grad(lambda w: loss(w - step * grad(loss)(w)))(X)
    H = 2 * A.T @ A / 5 + np.eye(3)
    gradient = lambda w: 2 * A.T @ (A @ w - b) / 5 + w  # noqa: E731
    np.testing.assert_allclose(found.array, (np.eye(3) - step * H) @ gradient(X.array - step * gradient(X.array)))


def test_per_sample_gradients():
    w = gl.tensor([1.0, -2.0, 0.5], dtype=gl.float64)
    samples, targets = gl.linspace(-1, 1, 12, dtype=gl.float64).reshape(4, 3), gl.tensor([1.0, 0.0, -1.0, 2.0], dtype=gl.float64)
    found = vmap(grad(lambda w, a, t: (w @ a - t) ** 2), in_dims=(None, 0, 0))(w, samples, targets)
    a = samples.array
    np.testing.assert_allclose(found.array, 2 * (a @ w.array - targets.array)[:, None] * a)


def test_a_network_as_a_function_of_its_parameters():
    gl.manual_seed(0)
    net = gl.nn.Sequential(gl.nn.Linear(3, 4), gl.nn.Tanh(), gl.nn.Linear(4, 1)).double()
    parameters = {name: p.detach() for name, p in net.named_parameters()}
    gradient, value = grad_and_value(lambda p: functional_call(net, p, X).sum())(parameters)
    net(X).sum().backward()
    assert value.item() == net(X).sum().item()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(gradient[name].array, p.grad.array)
        assert p is net.get_parameter(name) and p.requires_grad


def test_an_ensemble_of_stacked_models():
    gl.manual_seed(0)
    models = [gl.nn.Linear(3, 2).double() for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    assert buffers == {} and parameters["weight"].shape == (4, 2, 3) and parameters["weight"].is_leaf
    found = vmap(lambda p: functional_call(models[0], p, X))(parameters)
    np.testing.assert_array_equal(found.detach().array, gl.stack([m(X) for m in models]).detach().array)


def test_functional_call_writes_buffers_to_the_dictionary_only():
    norm = gl.nn.BatchNorm1d(3).double()
    given = {name: x.clone() for name, x in norm.named_buffers()}
    functional_call(norm, given, gl.stack([X, X + 1]))
    assert not norm.running_mean.array.any() and norm.num_batches_tracked.item() == 0
    np.testing.assert_allclose(given["running_mean"].array, 0.1 * (X.array + 0.5))


def test_the_module_is_restored_after_an_error():
    layer = gl.nn.Linear(3, 1)
    before = dict(layer.named_parameters())
    with pytest.raises(RuntimeError, match=r"cannot be multiplied|size"):
        functional_call(layer, {"weight": gl.zeros(1, 3), "other": gl.zeros(1)}, gl.zeros(7))
    assert dict(layer.named_parameters()) == before and not hasattr(layer, "other")


# -------------------------------------------------------------------------------------------------- history and side effects
def test_results_have_history_only_if_needed():
    r, w = X.clone().requires_grad_(), X.clone().requires_grad_()
    assert not grad(lambda x: (x**3).sum())(X).requires_grad
    g = grad(lambda x: (x**2 * w).sum())(r)
    g.sum().backward()
    np.testing.assert_allclose(r.grad.array, 2 * X.array)
    np.testing.assert_allclose(w.grad.array, 2 * X.array)
    with gl.no_grad():
        assert not grad(lambda x: (x**2 * w).sum())(r).requires_grad


def test_an_outer_transform_does_not_record_for_a_finished_one():
    seen = []

    def outer(x):
        _, pull = vjp(lambda y: y * y, X)
        seen.append(pull(X)[0].requires_grad)
        return (x * pull(X)[0]).sum()

    np.testing.assert_allclose(grad(outer)(X).array, 2 * X.array**2)
    assert seen == [False]


def test_arguments_are_not_changed():
    x = X.clone().requires_grad_()
    grad(lambda x: (x**2).sum())(x)
    jvp(lambda x: x**2, (x,), (x,))
    vmap(lambda x: x**2)(x)
    assert x.grad is None and x.is_leaf and x._version == 0


def test_a_jacobian_of_many_rows_is_one_sweep_and_chunks_agree():
    x = gl.linspace(-1, 1, 6, dtype=gl.float64)
    f = lambda x: {"outer": x.outer(x), "sum": [x.sum() * x]}  # noqa: E731
    whole = jacrev(f)(x)
    for size in (1, 4, 100):
        parts = jacrev(f, chunk_size=size)(x)
        np.testing.assert_array_equal(whole["outer"].array, parts["outer"].array)
        np.testing.assert_array_equal(whole["sum"][0].array, parts["sum"][0].array)
    eye = np.eye(6)
    np.testing.assert_allclose(whole["outer"].array, np.einsum("ik,j->ijk", eye, x.array) + np.einsum("jk,i->ijk", eye, x.array))


def test_vjp_can_be_called_again_and_with_a_vector_that_requires_grad():
    y, pull = vjp(lambda x: x**2, X)
    v = gl.ones(3, dtype=gl.float64, requires_grad=True)
    for _ in range(2):
        np.testing.assert_allclose(pull(gl.ones(3, dtype=gl.float64))[0].array, 2 * X.array)
    pull(v)[0].sum().backward()
    np.testing.assert_allclose(v.grad.array, 2 * X.array)
    assert not y.requires_grad


def test_hessian_of_a_dictionary():
    H = hessian(lambda p: (p["a"] ** 2 * p["b"]).sum())({"a": X, "b": X * 2})
    np.testing.assert_allclose(H["a"]["a"].array, np.diag(4 * X.array))
    np.testing.assert_allclose(H["a"]["b"].array, np.diag(2 * X.array))
    assert not H["b"]["b"].array.any()


@pytest.mark.parametrize("recording", [gl.enable_grad, gl.no_grad])
@pytest.mark.parametrize("f", [lambda x: x.tanh().sum(), lambda x: (x.softmax(0) * x).sum(), lambda x: (x**3).sum()])
def test_a_transform_of_a_dual_tensor_has_its_tangent(recording, f):
    """Forward over reverse: the tangent of a gradient is the Hessian times the tangent."""
    from gradlab.autograd import forward_ad

    u = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64)
    want = [difference(grad(f), X, e) for e in gl.eye(3, dtype=gl.float64)] @ u.array
    with forward_ad.dual_level(), recording():
        x = forward_ad.make_dual(X, u)
        for g in (grad(f)(x), vjp(f, x)[1](gl.tensor(1.0, dtype=gl.float64))[0], jacrev(f)(x), jacfwd(f)(x)):
            np.testing.assert_allclose(forward_ad.unpack_dual(g).tangent.array, want, rtol=1e-7)
            assert not g.requires_grad


def test_a_custom_function_inside():
    class Cubed(gl.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x**2 * g

    np.testing.assert_allclose(jacrev(Cubed.apply)(X).array, np.diag(3 * X.array**2))
    np.testing.assert_allclose(hessian(lambda x: Cubed.apply(x).sum())(X).array, np.diag(6 * X.array))
    np.testing.assert_allclose(vmap(grad(Cubed.apply))(X).array, 3 * X.array**2)


@pytest.mark.parametrize("of_inference", [False, True])
def test_inference_mode_does_not_stop_a_transform(of_inference):
    with gl.inference_mode():
        x = X * 1 if of_inference else X
        f = lambda x: (x**3).sum()  # noqa: E731
        found = [grad(f)(x), jacrev(f)(x), jacfwd(f)(x), vjp(f, x)[1](gl.tensor(1.0, dtype=gl.float64))[0]]
        tangent = jvp(f, (x,), (X,))[1], linearize(f, x)[1](X)
        second = hessian(f)(x)
    for g in found:
        np.testing.assert_allclose(g.array, 3 * X.array**2)
        assert not g.requires_grad
    np.testing.assert_allclose([t.item() for t in tangent], (3 * X.array**3).sum())
    np.testing.assert_allclose(second.array, np.diag(6 * X.array))


def test_memory_of_a_transform_is_released():
    gc.collect()
    gc.disable()
    try:
        kept = []

        def f(x):
            y = (x * x).tanh()
            kept.append(weakref.ref(y.grad_fn))
            return y.sum()

        grad(f)(X), jacrev(f)(X), hessian(f)(X), jvp(f, (X,), (X,)), vjp(f, X)
        assert [ref() for ref in kept] == [None] * 5
    finally:
        gc.enable()


# ------------------------------------------------------------------------------------------------------------ random nesting
def nest_transforms(lib, seed):
    """Return a function nested in one to three random transforms, its argument, and a weight that it closes over."""
    rng, F = random.Random(seed), lib.func

    def tensor(data, requires_grad):
        return lib.tensor(data, dtype=lib.float64, requires_grad=requires_grad)

    w, x = tensor([0.3, -0.7, 1.1], rng.random() < 0.5), tensor([0.5, -1.2, 0.8], rng.random() < 0.4)
    f = rng.choice(
        [
            lambda x: (x * w).sin() * x,
            lambda x: x.tanh() * w.exp(),
            lambda x: (x * x * x).sum() * x,
            lambda x: x.softmax(0) * w,
            lambda x: lib.cat([x[1:] * x[:-1], x[:1].exp()]),
        ]
    )
    transforms = [
        lambda g: lambda x: F.jacrev(g)(x).sum(0),
        lambda g: lambda x: F.jacfwd(g)(x).sum(-1),
        lambda g: lambda x: F.grad(lambda y: (g(y) * x).sum())(x),
        lambda g: lambda x: F.jvp(g, (x,), (x * 2,))[1],
        lambda g: lambda x: F.vjp(g, x)[1](g(x))[0],
        lambda g: lambda x: lib.vmap(lambda a: (g(x) * a).sum())(x),
        lambda g: lambda x: F.jvp(lambda y: g(y) * x + y * w, (x,), (x.detach(),))[1],
        lambda g: lambda x: F.grad_and_value(lambda y: (g(y) ** 2).sum())(x * w)[0] * x,
        lambda g: lambda x: F.hessian(lambda y: (g(y) * x).sum())(x).sum(0),
    ]
    for _ in range(rng.randint(1, 3)):
        f = rng.choice(transforms)(f)
    return f, x, w


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(100))
def test_random_nesting_as_torch(seed):
    torch = pytest.importorskip("torch")
    found = []
    for lib in (gl, torch):
        f, x, w = nest_transforms(lib, seed)
        y = f(x)
        leaves = [p for p in (x, w) if p.requires_grad and y.requires_grad]
        gradients = lib.autograd.grad(y.sum(), leaves, allow_unused=True, materialize_grads=True) if leaves else ()
        found.append((y.requires_grad, [t.detach().numpy() for t in (y, *gradients)]))
    assert found[0][0] == found[1][0]
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


# --------------------------------------------------------------------------------------------------------------------- vmap
def test_vmap_of_functions_that_branch_on_values():
    found = vmap(lambda s: s * 2 if s.item() > 0 else s * 0)(X)
    np.testing.assert_array_equal(found.array, [1.0, 0.0, 4.0])


@pytest.mark.parametrize(("randomness", "alike"), [("same", True), ("different", False)])
def test_randomness_of_vmap(randomness, alike):
    gl.manual_seed(0)
    drawn = vmap(lambda x: gl.rand(2) + 0 * x, randomness=randomness)(gl.zeros(3))
    assert (drawn.array[0] == drawn.array[1]).all() == alike
    assert not alike or (gl.rand(2).array != drawn.array[0]).all()


def test_vmap_of_an_empty_batch():
    assert vmap(lambda x: (x.sum(), x * 2), out_dims=(0, 1))(gl.zeros(0, 3))[1].shape == (3, 0)


def test_vmap_of_a_result_that_differs_between_slices():
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        vmap(lambda x: x, out_dims=None)(X)


def test_named_tuples_are_returned_as_named_tuples(t):
    x, u = t.tensor([1.0, 3.0, 2.0]), t.tensor([5.0, 6.0, 7.0])
    _, tangents = t.func.jvp(t.aminmax, (x,), (u,))
    assert type(tangents).__name__ == "aminmax" and tangents.min.item() == 5 and tangents.max.item() == 6
    least, back = t.func.vjp(t.aminmax, x)
    assert least.min.item() == 1
    found = t.func.vmap(lambda row: t.max(row, 0))(t.stack([x, u]))
    assert type(found).__name__ == "max" and found.values.tolist() == [3, 7] and found.indices.tolist() == [1, 2]

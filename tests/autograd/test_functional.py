"""`autograd.functional`: comparison with torch and with formulas, and no side effects on the user's tensors."""

from __future__ import annotations

import numpy as np
import pytest
from functional_cases import calls

import gradlab as gl
from gradlab.autograd import functional, functional_helpers
from gradlab.core.tensor import constant

X = gl.tensor([0.5, -1.25, 2.0], dtype=gl.float64)
CALLS = dict(calls())
FORWARD = "strategy=forward-mode"


# --------------------------------------------------------------------------------------------------- comparison with torch
def describe(result):
    """Return the nesting, shapes, dtypes, requires_grad and values of a result."""
    if isinstance(result, (tuple, list)):
        return type(result).__name__, *map(describe, result)
    numbers = np.round(result.detach().numpy(), 9).tolist()
    return tuple(result.shape), str(result.dtype).split(".")[1], result.requires_grad, numbers


def outcome(call, lib):
    try:
        return describe(call(lib))
    except Exception as error:  # noqa: BLE001  (whatever it is, the other library must raise it too)
        return type(error).__name__, str(error)


def torch_differs(name):
    """Return why a result differs from torch intentionally, or an empty string."""
    if FORWARD in name or "outer_jacobian_strategy=forward-mode" in name:
        return "torch returns lists, does not detach the results, and its messages are shorter by two words"
    if "empty" in name and name.startswith("jacobian"):
        return "torch fails on an output without elements"
    if name.startswith("jvp, relu") and "create_graph" in name:
        return "in gradlab, the tangent of a piecewise linear function has no history"
    return ""


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [n for n in CALLS if not torch_differs(n)])
def test_as_torch(name):
    torch = pytest.importorskip("torch")
    ours, theirs = outcome(CALLS[name], gl), outcome(CALLS[name], torch)
    if isinstance(theirs[-1], str):
        assert ours[0] == theirs[0]
        assert ours[1].replace("gradlab", "torch").startswith(theirs[1].rstrip("."))
    else:
        assert ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize(
    "name",
    [
        n
        for n in CALLS
        if FORWARD in n and "strategy=forward-mode vec" not in n and "returns" not in n and "no_grad" not in n and "list" not in n
    ],
)
def test_forward_mode_matches_torch(name):
    torch = pytest.importorskip("torch")

    def numbers(result):
        return (
            [numbers(r) for r in result]
            if isinstance(result, (tuple, list))
            else np.round(result.detach().numpy(), 9).tolist()
            if hasattr(result, "detach")
            else result
        )

    ours, theirs = outcome(CALLS[name], gl), outcome(CALLS[name], torch)
    if isinstance(theirs[-1], str):
        assert isinstance(ours[-1], str)
    else:
        assert numbers(CALLS[name](gl)) == numbers(CALLS[name](torch))


# ----------------------------------------------------------------------------------------------------------------- formulas
def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def rosenbrock_hessian(x):
    """Return the analytical Hessian: 1200 x² - 400 y + 2 and 200 on the diagonal, -400 x off the diagonal."""
    n = len(x)
    H = np.zeros((n, n))
    for i in range(n - 1):
        H[i, i] += 1200 * x[i] ** 2 - 400 * x[i + 1] + 2
        H[i + 1, i + 1] += 200
        H[i, i + 1] = H[i + 1, i] = -400 * x[i]
    return H


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_hessian_of_rosenbrock(strategy):
    H = functional.hessian(rosenbrock, X, outer_jacobian_strategy=strategy)
    np.testing.assert_allclose(H.array, rosenbrock_hessian(X.array))
    assert not H.requires_grad


@pytest.mark.parametrize("product", [functional.hvp, functional.vhp])
def test_hessian_times_a_vector(product):
    v = gl.tensor([1.0, -2.0, 0.5], dtype=gl.float64)
    value, Hv = product(rosenbrock, X, v)
    np.testing.assert_allclose(Hv.array, rosenbrock_hessian(X.array) @ v.array)
    np.testing.assert_allclose(value.item(), 100 * (-1.25 - 0.25) ** 2 + 0.25 + 100 * (2 - 1.25**2) ** 2 + 2.25**2)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_blocks_of_several_inputs_and_outputs(strategy):
    A = gl.tensor([[1.0, 0.5, 2.0], [-0.75, 2.0, 1.0]], dtype=gl.float64)
    J = functional.jacobian(lambda A, x: (A @ x, x * 3), (A, X), strategy=strategy)
    np.testing.assert_array_equal(J[0][0].array, np.einsum("ij,k->ijk", np.eye(2), X.array))
    np.testing.assert_array_equal(J[0][1].array, A.array)
    assert J[1][0].shape == (3, 2, 3)
    assert not J[1][0].array.any()
    np.testing.assert_array_equal(J[1][1].array, 3 * np.eye(3))


def test_an_output_without_elements_has_a_jacobian_without_rows():
    assert functional.jacobian(lambda x: x[:0], X).shape == (0, 3)
    assert functional.jacobian(lambda x: x * 2, gl.zeros(0)).shape == (0, 0)


@pytest.mark.parametrize("strategy", ["reverse-mode", "forward-mode"])
def test_chunks_are_concatenated_in_order(monkeypatch, strategy):
    x = gl.linspace(-1, 1, 7, dtype=gl.float64)
    whole = functional.jacobian(lambda x: (x.sin() * x.sum()).outer(x), x, strategy=strategy)
    monkeypatch.setattr(functional_helpers, "MAX_BATCHED_ELEMENTS", 2 * 49)
    parts = functional.jacobian(lambda x: (x.sin() * x.sum()).outer(x), x, strategy=strategy)
    np.testing.assert_array_equal(whole.array, parts.array)
    s, c = np.sin(x.array), np.cos(x.array)
    total = x.array.sum()
    first = (np.diag(c * total) + s[:, None])[:, None, :] * x.array[None, :, None]
    np.testing.assert_allclose(whole.array, first + (s * total)[:, None, None] * np.eye(7), atol=1e-14)


def test_a_hook_sees_gradients_of_its_tensors_shape():
    seen = []

    def f(x):
        y = x * x
        y.register_hook(lambda g: seen.append(g.shape) or (g * 10 if g.shape == (3,) else None))
        return y * 2

    J = functional.jacobian(f, X)
    assert seen == [(3,)] * 3
    np.testing.assert_allclose(J.array, 10 * np.diag(4 * X.array))


def test_third_order_through_create_graph():
    x = X.clone().requires_grad_()
    H = functional.hessian(lambda x: (x**4).sum(), x, create_graph=True)
    H.sum().backward()
    np.testing.assert_allclose(x.grad.array, 24 * X.array)


def test_create_graph_reaches_what_the_function_closes_over():
    w = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64, requires_grad=True)
    _, product = functional.vjp(lambda x: (w**2 * x**2).sum(), X, create_graph=True)
    (product * 1.0).sum().backward()
    np.testing.assert_allclose(w.grad.array, 4 * np.array([1.0, 2.0, 3.0]) * X.array)


@pytest.mark.parametrize("name", functional.__all__)
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_users_tensors_are_not_changed(name, create_graph):
    x, w = X.clone().requires_grad_(), X.clone().requires_grad_()
    before = x.grad_fn, x.array.copy(), x._version
    arguments = [x.detach() * 0 + 1] if name in ("vhp", "hvp", "jvp") else []
    getattr(functional, name)(lambda x: (x**3 * w).sum(), x, *arguments, create_graph=create_graph)
    assert x.grad is None and w.grad is None and x.is_leaf and (x.grad_fn, x._version) == (before[0], before[2])
    np.testing.assert_array_equal(x.array, before[1])


@pytest.mark.parametrize("name", functional.__all__)
@pytest.mark.parametrize("mode", [gl.no_grad, gl.inference_mode])
def test_works_under_no_grad(name, mode):
    with mode():
        result = getattr(functional, name)(lambda x: (x**3).sum(), gl.tensor(2.0))
    value = result[1] if isinstance(result, tuple) else result
    assert value.item() == 12.0  # both 3x² and 6x are, at 2
    assert not value.requires_grad


def test_on_every_backend(backend):
    x = constant(backend(X.array.copy()))
    cubes = lambda x: (x**3).sum()  # noqa: E731
    for strategy in ("reverse-mode", "forward-mode"):
        J = functional.jacobian(lambda x, y: (x.tanh() * x, x * 2), (x, x), strategy=strategy)
        H = functional.hessian(cubes, x, outer_jacobian_strategy=strategy)
        assert {type(t.array) for t in (*J[0], *J[1], H)} == {type(x.array)}
    np.testing.assert_allclose(H.tolist(), np.diag(6 * X.array))
    for product in (functional.vhp, functional.hvp):
        np.testing.assert_allclose(product(cubes, x, x)[1].tolist(), 6 * X.array**2)


def test_names():
    assert gl.autograd.functional is functional
    with pytest.raises(AttributeError, match="jacfwd"):
        functional.jacfwd  # noqa: B018

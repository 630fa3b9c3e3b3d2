"""All methods give the same Jacobian, for random functions, against finite differences, torch and formulas."""

from __future__ import annotations

import numpy as np
import pytest
from differences import numerical_jacobian

import gradlab as gl
from gradlab.explore.jacobian import compute_block, hessian, jacobian, scatter
from gradlab.explore.jacobian.verification import AGAIN

WAYS = (
    {"method": "rows"},
    {"method": "batched"},
    {"method": "batched", "chunk_size": 3},
    {"method": "columns"},
    {"method": "columns", "chunk_size": 2},
    {"method": "sparse"},
    {"method": "sparse", "chunk_size": 1},
    {"method": "auto"},
)


def vector(*values):
    return gl.tensor(list(values), dtype=gl.float64)


def random_function(seed, n):
    """Return a random function of a vector of `n` elements for a library with torch's names: a chain of views, reductions,
    products and indexing that also uses earlier results."""
    draw = np.random.default_rng(seed)
    weights = draw.normal(size=(6, 40, 40)) / 3
    choices, picks = draw.integers(0, 14, size=9), draw.integers(0, 10**6, size=(9, 40))

    def f(lib, x):
        def constant(k, *shape):
            return lib.tensor(weights[k % 6, : shape[0], : shape[-1]].reshape(-1)[: np.prod(shape)].reshape(shape))

        kept, h = [x], lib.sin(x)
        for k, choice in enumerate(choices):
            m = h.shape[0]
            if choice == 0:
                h = lib.tanh(h) * constant(k, m, m)[:, 0]
            elif choice == 1:
                h = constant(k, min(m + 1, 20), m) @ h
            elif choice == 2:
                h = h[1:] * h[:-1] if m > 2 else h * h
            elif choice == 3:
                h = lib.cat([h, h.flip(0)[: m // 2 + 1]])[:24]
            elif choice == 4:
                h = lib.stack([h, h * h]).T.reshape(-1)[: m + 2]
            elif choice == 5:
                h = h[lib.tensor([int(i) % m for i in picks[k][: m + 1]])]
            elif choice == 6:
                h = lib.softmax(h, 0)
            elif choice == 7:
                h = h - h.mean()
            elif choice == 8:
                h = lib.cumsum(h, 0)[::2]
            elif choice == 9:
                h = (h.unsqueeze(1) * h[:3].unsqueeze(0)).sum(1)
            elif choice == 10:
                old = kept[int(picks[k][0]) % len(kept)]
                size = min(m, old.shape[0])
                h = lib.cat([h[:size] * 0.5 + old[-size:], h[size:]])
            elif choice == 11:
                h = lib.where(h > 0, h, 0.1 * h)
            elif choice == 12:
                h = lib.exp(0.1 * h).expand(2, m)[1]
            else:
                h = h.clone()
                h[: m // 2] = h[m - m // 2 :] * 2.0
            kept.append(h)
        return h

    return f


@pytest.mark.parametrize("seed", range(24))
def test_all_methods_give_one_matrix(seed):
    n = 4 + seed % 7
    f = random_function(seed, n)
    start = np.random.default_rng(seed + 100).normal(size=n)

    def ours(x):
        return f(gl, x)

    def numbers(a):
        return ours(gl.tensor(a)).numpy()

    x = gl.tensor(start)
    whole = np.asarray(jacobian(ours, x, method="rows"))
    np.testing.assert_allclose(whole, numerical_jacobian(numbers, start), atol=2e-7, rtol=1e-6)
    for way in (*WAYS[1:], {"sparsity": np.abs(whole) > 0}, {"sparsity": np.ones(whole.shape, bool), "chunk_size": 4}):
        J = jacobian(ours, x, **way)
        np.testing.assert_allclose(J.dense(), whole, atol=1e-13, rtol=1e-11, err_msg=f"{way}: {J.plan}")
        check = (1, 1 + 3 * AGAIN) if J.plan.given else (0,)  # a row or column with cancellation is checked again
        assert J.sweeps - J.plan.sweeps in check, "the sweeps are those of the plan and of the check of a given pattern"
        np.testing.assert_allclose(J.sparse().toarray(), whole, atol=1e-13, rtol=1e-11)
    v, u = np.random.default_rng(seed).normal(size=len(whole)), np.random.default_rng(seed).normal(size=(n, 3))
    J = jacobian(ours, x)
    np.testing.assert_allclose(v @ J, v @ whole, atol=1e-12)
    np.testing.assert_allclose(J @ u, whole @ u, atol=1e-12)
    assert J.rows_known == 0, "products compute no row"


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(24))
def test_random_functions_against_torch(seed):
    torch = pytest.importorskip("torch")
    n = 4 + seed % 7
    f = random_function(seed, n)
    start = np.random.default_rng(seed + 100).normal(size=n)
    x = torch.tensor(start)
    wanted = torch.autograd.functional.jacobian(lambda a: f(torch, a), x).numpy()
    np.testing.assert_allclose(jacobian(lambda a: f(gl, a), gl.tensor(start)), wanted, atol=1e-12, rtol=1e-10)
    for way in (
        {"method": "rows"},
        {"method": "batched", "chunk_size": 3},
        {"method": "columns", "chunk_size": 2},
        {},
        {"method": "sparse", "sparsity": wanted != 0},
    ):
        J = jacobian(lambda a: f(torch, a), x, **way)
        np.testing.assert_allclose(J, wanted, atol=1e-12, rtol=1e-10, err_msg=str(way))


@pytest.mark.torch
def test_torch_graphs_have_no_pattern_but_accept_one():
    torch = pytest.importorskip("torch")
    x = torch.linspace(0, 1, 40, dtype=torch.float64)

    def f(a):
        return a[1:] ** 2 - a[:-1]

    with pytest.raises(ValueError, match=r"a torch graph does not say which elements.*sparsity=.*\"batched\" or \"columns\""):
        jacobian(f, x, method="sparse")
    i = np.arange(39)
    J = jacobian(f, x, sparsity=(np.r_[i, i], np.r_[i, i + 1]))
    assert J.plan.sweeps == 2 and J.plan.method == "sparse"
    np.testing.assert_allclose(J, torch.autograd.functional.jacobian(f, x).numpy())
    H = hessian(lambda a: (a[1:] * a[:-1] ** 2).sum(), x, sparsity=(np.r_[i, i], np.r_[i, i + 1]))
    assert H.plan.sweeps <= 3
    np.testing.assert_allclose(H, torch.autograd.functional.hessian(lambda a: (a[1:] * a[:-1] ** 2).sum(), x).numpy())
    assert np.asarray(hessian(lambda a: (3 * a).sum(), x)).any() == 0
    np.testing.assert_array_equal(hessian(lambda a: (3 * a).sum(), x) @ np.ones(40), np.zeros(40))


def test_a_loop_over_blocks_is_the_whole_computation():
    start = np.random.default_rng(0).normal(size=7)
    f = random_function(3, 7)
    for way in WAYS:
        J = jacobian(lambda x: f(gl, x), gl.tensor(start), **way)
        made = np.zeros(J.shape)
        for block in J.plan.blocks():
            rows, columns, numbers = scatter(J.plan, block, compute_block(J.runner.graph, J.plan, block))
            made[rows, columns] = numbers
        assert J.rows_known == 0 and J.sweeps == 0, "no block is kept"
        np.testing.assert_array_equal(made, J)


# ------------------------------------------------------------------------------------------------------------ formulas
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_rotation(way):
    c, s = np.cos(0.3), np.sin(0.3)
    J = jacobian(lambda x: gl.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]]), vector(2.0, -1.0), **way)
    np.testing.assert_allclose(J, [[c, -s], [s, c]], rtol=1e-15)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_softmax(way):
    x = vector(0.3, -1.2, 0.5, 2.0)
    p = np.exp(x.numpy()) / np.exp(x.numpy()).sum()
    J = jacobian(lambda a: gl.softmax(a, 0), x, **way)
    np.testing.assert_allclose(J, np.diag(p) - np.outer(p, p), atol=1e-15)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_convolution_is_a_toeplitz_matrix(way):
    from scipy.linalg import toeplitz

    kernel, n = np.array([1.0, -2.0, 0.5]), 9

    def f(x):
        return gl.nn.functional.conv1d(x.reshape(1, 1, n), gl.tensor(kernel).reshape(1, 1, 3)).reshape(-1)

    J = jacobian(f, gl.tensor(np.random.default_rng(0).normal(size=n)), **way)
    wanted = toeplitz(np.r_[kernel[0], np.zeros(n - 3)], np.r_[kernel, np.zeros(n - 3)])
    np.testing.assert_allclose(J, wanted, atol=1e-15)
    if way["method"] == "sparse":
        assert J.plan.sweeps == 3


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_implicit_heat_step(way):
    """The residual of (I - dt L) u_new = u has a tridiagonal Jacobian, and ∂u_new/∂u is its inverse."""
    n, dt = 8, 0.1
    L = np.diag(np.full(n, -2.0)) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    A = np.eye(n) - dt * L
    old = gl.tensor(np.random.default_rng(0).normal(size=n))

    def residual(u):
        edge = gl.zeros(1, dtype=gl.float64)
        return u - dt * (gl.cat([u[1:], edge]) - 2 * u + gl.cat([edge, u[:-1]])) - old

    J = jacobian(residual, old, **way)
    np.testing.assert_allclose(J, A, atol=1e-15)
    if way["method"] == "sparse":
        assert J.plan.sweeps == 3
    step = jacobian(lambda u: gl.linalg.solve(gl.tensor(A), u), old, **way)
    np.testing.assert_allclose(step, np.linalg.inv(A), atol=1e-14)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_hessians(way):
    A = np.random.default_rng(1).normal(size=(5, 5))
    x = vector(1.0, -0.5, 0.2, 0.7, 2.0)
    H = hessian(lambda a: 0.5 * a @ gl.tensor(A) @ a + (a**3).sum(), x, **way)
    np.testing.assert_allclose(H, (A + A.T) / 2 + np.diag(6 * x.numpy()), atol=1e-13)
    assert "Hessian of y with respect to x (5)" in repr(H) and H.labels[1] == "∂y/∂x[1]" and tuple(H.tensor().shape) == (5, 5)
    a, b = vector(1.0, 2.0), vector(3.0, 4.0, 5.0)
    H = hessian(lambda a, b: (a**2).sum() * b.sum(), (a, b), **way)
    corner = 2 * a.numpy()[:, None] * np.ones(3)
    np.testing.assert_allclose(H, np.block([[2 * 12 * np.eye(2), corner], [corner.T, np.zeros((3, 3))]]), atol=1e-13)
    parts = H.tensor()
    assert [[tuple(part.shape) for part in row] for row in parts] == [[(2, 2), (2, 3)], [(3, 2), (3, 3)]]
    namespace = {"gl": gl, "a": a, "b": b, "func": lambda a, b: (a**2).sum() * b.sum()}
    exec(H.by_hand(1), namespace)
    np.testing.assert_allclose(namespace["row"].numpy(), H[1])


def test_an_input_that_depends_on_another():
    """∂y/∂x includes the path through h, although ∂y/∂h is computed, too, both forward and backward."""
    x = vector(0.5, 2.0).requires_grad_()
    h = x * x
    y = h * x
    for method in ("rows", "batched", "columns", "sparse"):
        J = jacobian(y, (x, h, x), method=method)
        np.testing.assert_allclose(
            J,
            np.hstack([np.diag(3 * x.detach().numpy() ** 2), np.diag(x.detach().numpy()), np.diag(3 * x.detach().numpy() ** 2)]),
        )
        np.testing.assert_allclose(jacobian(y, (x, h), method=method) @ np.array([1.0, 0.0, 0.0, 1.0]), [0.75, 2.0])
        np.testing.assert_allclose(jacobian(h, (h, x), method=method), [[1, 0, 1, 0], [0, 1, 0, 4]])


def test_several_outputs_are_row_blocks():
    x, w = vector(1.0, 2.0), vector(3.0)

    def f(x, w):
        return x * w, gl.ones(2), (x**2).sum()

    wanted = [[3, 0, 1], [0, 3, 2], [0, 0, 0], [0, 0, 0], [2, 4, 0]]
    for way in WAYS:
        J = jacobian(f, (x, w), **way)
        np.testing.assert_array_equal(J, wanted)
    assert J.row_blocks == [("y0", 2), ("y1", 2), ("y2", 1)] and J.blocks == [("x", 2), ("w", 1)]
    assert J.labels == ["y0[0]", "y0[1]", "y1[0]", "y1[1]", "y2"]
    parts = J.tensor()
    assert [[tuple(part.shape) for part in row] for row in parts] == [[(2, 2), (2, 1)], [(2, 2), (2, 1)], [(2,), (1,)]]
    z, total = x.requires_grad_() * 2, (x**2).sum()
    J = jacobian((z, total), x)
    np.testing.assert_array_equal(J, [[2, 0], [0, 2], [2, 4]])
    assert J.labels == ["z[0]", "z[1]", "total"]
    np.testing.assert_array_equal(jacobian((z, total), x).vjp((np.ones(2), np.array(1.0))), [4, 6])
    for weights in (1, 2, [1.0, 0.0, 0.5]):
        namespace = {"gl": gl, "x": x, "z": z, "total": total}
        exec(J.by_hand(weights), namespace)
        np.testing.assert_allclose(namespace["row"].numpy(), J[weights] if isinstance(weights, int) else J.vjp(weights))


def test_hooks_of_the_user_do_not_run_and_the_graph_is_kept():
    x = vector(1.0, 2.0).requires_grad_()
    ran = []
    y = x * x
    x.register_hook(ran.append)
    y.register_hook(ran.append)
    for method in ("rows", "batched", "columns", "sparse"):
        np.asarray(jacobian(y, x, method=method))
        np.asarray(hessian((y * x).sum(), x, method=method))
    assert not ran and x.grad is None
    y.sum().backward()
    assert len(ran) == 2


def test_a_column_is_one_forward_sweep_and_a_row_one_backward():
    x = vector(1.0, 2.0, 3.0)
    whole = np.diag([2.0, 4.0, 6.0])
    for method in ("rows", "columns", "sparse"):
        J = jacobian(lambda u: u * u, x, method=method)
        np.testing.assert_array_equal(J[:, 1], whole[:, 1])
        np.testing.assert_array_equal(J[:, -1], whole[:, 2])
        assert J.sweeps == 2 and J.rows_known == 0
        np.testing.assert_array_equal(J.T[1], whole[1])
        np.testing.assert_array_equal(J.T @ np.ones(3), whole.sum(0))
        np.testing.assert_array_equal(np.ones(3) @ J.T, whole.sum(1))
        np.testing.assert_array_equal(np.ones((2, 3)) @ J.T, np.ones((2, 3)) @ whole.T)
        np.testing.assert_array_equal(J.T @ np.ones((3, 2)), whole.T @ np.ones((3, 2)))
        assert J.rows_known == 0
        with pytest.raises(IndexError, match="column 3 of a Jacobian with 3 columns"):
            J[:, 3]
        np.testing.assert_array_equal(J.T, whole.T)
        np.testing.assert_array_equal(J.T.sparse().toarray(), whole.T)
        np.testing.assert_array_equal(J[:, 1], whole[:, 1])
        assert J.T.T is J and J.T.shape == (3, 3)


def test_low_precision_and_mixed_dtypes():
    x, w = gl.tensor([1.0, 2.0], dtype=gl.float16), gl.tensor([3.0, 4.0], dtype=gl.float64)
    for method in ("rows", "batched", "columns", "sparse"):
        J = jacobian(lambda a: a * a, x, method=method)
        np.testing.assert_array_equal(J, np.diag([2, 4]))
        assert J.dtype == np.float16 and J.sparse().toarray().tolist() == [[2, 0], [0, 4]]
        J = jacobian(lambda a, b: a * b, (x, w), method=method)
        np.testing.assert_array_equal(J, [[3, 0, 1, 0], [0, 4, 0, 2]])
        assert J.dtype == np.float64 and [part.dtype for part in J.tensor()] == [gl.float16, gl.float64]


def test_products_with_different_types():
    from scipy.sparse import eye_array

    x = vector(1.0, 2.0, 3.0)
    J = jacobian(lambda u: u**2 + u.sum(), x)
    ones, whole = np.ones(3), np.diag([2.0, 4.0, 6.0]) + 1
    for made, wanted in (
        (J @ gl.ones(3), whole @ ones),
        (gl.ones(3) @ J, ones @ whole),
        (J @ [1, 1, 1], whole @ ones),
        ([1, 1, 1] @ J, ones @ whole),
        (np.matmul(ones, J), ones @ whole),
        (J @ np.eye(3), whole),
        (np.ones((2, 3)) @ J, np.ones((2, 3)) @ whole),
    ):
        np.testing.assert_allclose(made, wanted)
    assert J.rows_known == 0
    np.testing.assert_allclose(eye_array(3) @ J, whole)
    np.testing.assert_allclose(np.abs(J) * ones, whole)


def test_a_linear_operator_for_scipys_solvers():
    from scipy.sparse.linalg import LinearOperator, gmres

    x = gl.linspace(1, 2, 30, dtype=gl.float64)
    J = jacobian(lambda u: u**3 + gl.cat([u[1:], u[:1]]), x)
    operator = LinearOperator(J.shape, matvec=J.jvp, rmatvec=J.vjp, dtype=J.dtype)
    b = np.ones(30)
    solution, failed = gmres(operator, b, rtol=1e-12)
    assert not failed and J.rows_known == 0
    np.testing.assert_allclose(J.sparse() @ solution, b, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_hessians_of_random_functions(seed):
    n = 4 + seed % 7
    f = random_function(seed, n)
    start = np.random.default_rng(seed + 100).normal(size=n)

    def energy(x):
        return (f(gl, x) ** 2).sum()

    def gradient(a):
        x = gl.tensor(a).requires_grad_()
        return gl.autograd.grad(energy(x), x)[0].numpy()

    x = gl.tensor(start)
    whole = np.asarray(hessian(energy, x, method="rows"))
    np.testing.assert_allclose(whole, numerical_jacobian(gradient, start), atol=1e-6 * max(1, np.abs(whole).max()), rtol=1e-5)
    for way in WAYS[1:]:
        np.testing.assert_allclose(hessian(energy, x, **way), whole, atol=1e-11 * max(1, np.abs(whole).max()), err_msg=str(way))


@pytest.mark.torch
@pytest.mark.parametrize("seed", range(6))
def test_hessians_against_torch(seed):
    torch = pytest.importorskip("torch")
    n = 4 + seed
    f = random_function(seed, n)
    start = np.random.default_rng(seed + 100).normal(size=n)
    x = torch.tensor(start)
    wanted = torch.autograd.functional.hessian(lambda a: (f(torch, a) ** 2).sum(), x).numpy()
    bound = 1e-11 * max(1, np.abs(wanted).max())
    np.testing.assert_allclose(hessian(lambda a: (f(gl, a) ** 2).sum(), gl.tensor(start)), wanted, atol=bound)
    for method in ("rows", "batched", "columns"):
        np.testing.assert_allclose(hessian(lambda a: (f(torch, a) ** 2).sum(), x, method=method), wanted, atol=bound)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_edges(way):
    x = vector(1.0, 2.0)
    np.testing.assert_array_equal(jacobian(lambda u: u, x, **way), np.eye(2))
    np.testing.assert_array_equal(jacobian(lambda u: u[::1].reshape(2, 1).expand(2, 2), x, **way), np.repeat(np.eye(2), 2, 0))
    number = gl.tensor(3.0, dtype=gl.float64)
    np.testing.assert_array_equal(jacobian(lambda u: u * u, number, **way), [[6]])
    assert float(jacobian(lambda u: u * u, number, **way).tensor()) == 6
    np.testing.assert_array_equal(hessian(lambda u: u**3, number, **way), [[18]])
    for empty, shape in (
        (jacobian(lambda u: u[:0], x, **way), (0, 2)),
        (jacobian(lambda u: u * 2, x[:0], **way), (0, 0)),
        (jacobian(lambda u: u.sum().reshape(1), x[:0], **way), (1, 0)),
    ):
        assert np.asarray(empty).shape == shape and empty.sparse().shape == shape and empty.plan.blocks() is not None
        assert empty.drawing().text and (empty @ np.ones(shape[1])).shape == (shape[0],)
    with gl.no_grad():
        np.testing.assert_array_equal(jacobian(lambda u: u * 2, x, **way), 2 * np.eye(2))
        np.testing.assert_array_equal(hessian(lambda u: (u * u).sum(), x, **way), 2 * np.eye(2))

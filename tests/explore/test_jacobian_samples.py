"""A Jacobian for each sample of a batch: against the Jacobians of single samples, a formula, and torch."""

from __future__ import annotations

import concurrent.futures

import numpy as np
import pytest

import gradlab as gl

DRAW = np.random.default_rng(0)
W, V = gl.tensor(DRAW.normal(size=(6, 4))), gl.tensor(DRAW.normal(size=(3, 4)))
X = gl.tensor(DRAW.normal(size=(10, 6)))


def net(x):
    return gl.tanh(x @ W)


def one_by_one(f=net, x=X):
    """Return the Jacobian of each sample, computed from a batch of one."""
    return np.stack([np.asarray(gl.jacobian(f, x[s : s + 1])) for s in range(len(x))])


@pytest.mark.parametrize("chunk", [None, 1, 3, 10])
def test_one_jacobian_for_each_sample(chunk):
    J = gl.jacobian(net, X, batch=0, chunk_size=chunk)
    assert J.shape == (40, 6) and J.samples == 10
    a = np.asarray(X) @ np.asarray(W)
    formula = (1 - np.tanh(a) ** 2)[:, :, None] * np.asarray(W).T  # ∂tanh(a)/∂x
    np.testing.assert_allclose(np.asarray(J).reshape(10, 4, 6), formula, atol=1e-14)
    np.testing.assert_allclose(np.asarray(J).reshape(10, 4, 6), one_by_one(), atol=1e-14)
    assert J.tensor().shape == (10, 4, 6) and "10 samples" in str(J.plan)
    np.testing.assert_allclose(J.sample(-1), formula[9], atol=1e-14)


@pytest.mark.parametrize("inputs", [2, 40])
def test_the_cheaper_of_backward_and_forward_is_used(inputs):
    A = gl.tensor(DRAW.normal(size=(inputs, 20)))
    x = gl.tensor(DRAW.normal(size=(5, inputs)))

    def f(x):
        return gl.sin(x @ A)

    J = gl.jacobian(f, x, batch=0, chunk_size=2)
    np.testing.assert_allclose(np.asarray(J).reshape(5, 20, inputs), one_by_one(f, x), atol=1e-13)


def test_rows_products_and_samples_before_the_whole_matrix():
    whole = one_by_one().reshape(40, 6)
    J = gl.jacobian(net, X, batch=0, chunk_size=3)
    v, u = DRAW.normal(size=(40, 2)), DRAW.normal(size=(6, 3))
    np.testing.assert_allclose(J[17], whole[17], atol=1e-14)
    np.testing.assert_allclose(v.T @ J, v.T @ whole, atol=1e-12)
    np.testing.assert_allclose(v[:, 0] @ J, v[:, 0] @ whole, atol=1e-12)
    np.testing.assert_allclose(J @ u, whole @ u, atol=1e-12)
    np.testing.assert_allclose(J[:, 2], whole[:, 2], atol=1e-14)
    np.testing.assert_allclose(J.sample(3), whole[12:16], atol=1e-14)
    assert not J.complete
    np.testing.assert_allclose(list(J.rows()), whole, atol=1e-14)
    np.testing.assert_allclose(J, whole, atol=1e-14)
    np.testing.assert_allclose(J.sparse().toarray(), whole, atol=1e-14)


def test_gradients_of_a_loss_for_each_sample():
    J = gl.jacobian(lambda x: (net(x) ** 2).sum(-1), X, batch=0)
    assert J.shape == (10, 6)
    y = np.tanh(np.asarray(X) @ np.asarray(W))
    np.testing.assert_allclose(J, (2 * y * (1 - y**2)) @ np.asarray(W).T, atol=1e-13)


def test_another_axis_and_several_inputs():
    x, s = gl.tensor(DRAW.normal(size=(6, 10))), gl.tensor(DRAW.normal(size=(4, 10)))

    def f(x, s):
        return gl.tanh(W.T @ x) * s

    J = gl.jacobian(f, (x, s), batch=1, chunk_size=4)
    assert J.shape == (40, 10)
    for k in range(10):
        alone = gl.jacobian(f, (x[:, k : k + 1], s[:, k : k + 1]))
        np.testing.assert_allclose(J.sample(k), alone, atol=1e-14)
    by_x, by_s = J.tensor()
    assert by_x.shape == (10, 4, 6) and by_s.shape == (10, 4, 4)


def test_a_function_of_one_sample_by_vmap():
    def one(x):
        return gl.tanh(x @ W)

    J = gl.jacobian(gl.func.vmap(one), X, batch=0)
    np.testing.assert_allclose(np.asarray(J).reshape(10, 4, 6), one_by_one(), atol=1e-14)


def test_chunks_of_samples_bound_the_memory():
    seen = []

    def f(x):
        seen.append(len(x))
        return net(x)

    np.asarray(gl.jacobian(f, X, batch=0, chunk_size=2))
    assert max(seen) == 2


def test_threads_and_a_file_that_is_resumed(tmp_path):
    expected = one_by_one().reshape(40, 6)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        np.testing.assert_allclose(gl.jacobian(net, X, batch=0, executor=pool), expected, atol=1e-14)

    def make_jacobian(mode, **options):
        out = np.memmap(tmp_path / "J", np.float64, mode, shape=(40, 6))
        return gl.jacobian(net, X, batch=0, chunk_size=2, out=out, resume=True, **options)

    def stop(done, total):
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="4 of 10 samples of the Jacobian are known and kept"):
        make_jacobian("w+", progress=stop).compute()
    J = make_jacobian("r+")
    assert J.rows_known == 16
    np.testing.assert_allclose(J, expected, atol=1e-14)
    with pytest.raises(ValueError, match="the method differs: batched instead of samples"):
        gl.jacobian(net, X, out=np.memmap(tmp_path / "J", np.float64, "r+", shape=(40, 60)), resume=True)


def test_samples_that_depend_on_one_another_are_an_error():
    with pytest.raises(RuntimeError, match=r"the samples depend on each other: .* batch normalization in training mode"):
        gl.jacobian(lambda x: x - x.mean(0), X, batch=0)
    norm = gl.nn.BatchNorm1d(6, dtype=gl.float64)
    with pytest.raises(RuntimeError, match="the samples depend on each other"):
        gl.jacobian(norm, X, batch=0)
    norm.eval()  # the advice of the error
    np.testing.assert_allclose(
        gl.jacobian(norm, X, batch=0).sample(0), np.diag(1 / np.sqrt(np.asarray(norm.running_var) + norm.eps)), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda: gl.jacobian(lambda x: net(x).sum(), X, batch=0), ValueError, "must return one row for each"),
        (lambda: gl.jacobian(lambda x: (net(x), x), X, batch=0), TypeError, "a function that returns one tensor; it returned 2"),
        (lambda: gl.jacobian(net, X, batch=2), ValueError, r"the input X has shape \(10, 6\), and so no axis 2"),
        (lambda: gl.jacobian(net, X, batch="0"), TypeError, "batch='0': it takes the axis of the samples"),
        (lambda: gl.jacobian(net, X, batch=True), TypeError, "batch=True: it takes the axis"),
        (lambda: gl.jacobian(net, X, batch=0, method="columns"), ValueError, "do not pass method or sparsity with it"),
        (lambda: gl.jacobian(lambda a, b: a, (X, X[:3]), batch=0), ValueError, "equally many samples"),
        (lambda: gl.jacobian(net(x := X.clone().requires_grad_()), x, batch=0), TypeError, "batch= takes a function"),
        (lambda: gl.jacobian(net, X, batch=0).by_hand(0), ValueError, r"jacobian\(f, x\[:1\]\)\.by_hand\(0\)"),
        (lambda: gl.jacobian(net, X, batch=0).widget(), ValueError, r"jacobian\(f, x\[:1\]\)\.widget\(\)"),
        (lambda: gl.jacobian(net, X, batch=0).sample(10), IndexError, "sample 10 of 10"),
        (lambda: gl.jacobian(net, X, plan=gl.jacobian(net, X[:, :], batch=0).plan), ValueError, "the plan is for a Jacobian of"),
    ],
)
def test_invalid_arguments(ask, error, message):
    with pytest.raises(error, match=message):
        ask()


def test_it_is_drawn_and_named():
    J = gl.jacobian(net, X, batch=0)
    assert "Jacobian of each sample" in repr(J) and J.labels[5] == "y[1,1]" and J.column_labels[2] == "X[2]"
    assert "Jacobian of each sample of y (10×4) with respect to X (6)" in J.drawing().svg()


@pytest.mark.torch
@pytest.mark.parametrize("chunk", [None, 3])
def test_as_torchs_vmap_of_jacrev(chunk):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    x = torch.randn(10, 6)
    J = gl.jacobian(model, x, batch=0, chunk_size=chunk)
    expected = torch.func.vmap(torch.func.jacrev(model))(x)
    assert J.tensor().shape == expected.shape
    np.testing.assert_allclose(J.tensor().detach(), expected.detach(), atol=1e-6)
    ours = gl.jacobian(gl.func.vmap(lambda x: gl.tanh(x @ W)), X, batch=0).tensor()
    w = torch.tensor(np.asarray(W))
    np.testing.assert_allclose(ours, torch.func.vmap(torch.func.jacrev(lambda x: torch.tanh(x @ w)))(torch.tensor(np.asarray(X))))

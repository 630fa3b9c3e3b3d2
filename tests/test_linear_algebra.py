"""Test linear algebra beyond the recorded rows: cases in which torch returns no gradient, and warnings given once."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest

import gradlab as gl
from gradlab.ops import products
from gradlab.rules.linalg import has_failed

SINGULAR = {
    "rank 2": [[1.0, 2, 3], [2, 4, 6], [1, 1, 1]],
    "rank 1": [[1.0, 2, 3], [2, 4, 6], [-1, -2, -3]],
    "diagonal": [[1.0, 0, 0], [0, 2, 0], [0, 0, 0]],
}


def cofactors(matrix):
    """Return the cofactors of a matrix."""
    n = len(matrix)
    return np.array(
        [[(-1) ** (i + j) * np.linalg.det(np.delete(np.delete(matrix, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    )


@pytest.mark.parametrize("rows", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_a_zero_determinant_is_the_cofactors(rows, create_graph):
    x = gl.tensor(rows, dtype=gl.float64, requires_grad=True)
    (g,) = gl.autograd.grad(x.det(), x, create_graph=create_graph)
    np.testing.assert_allclose(g.detach().numpy(), cofactors(np.array(rows)), atol=1e-12)


def test_second_derivatives_of_a_zero_determinant():
    rows, w = np.array(SINGULAR["rank 2"]), np.random.default_rng(0).standard_normal((3, 3))
    x = gl.tensor(rows, requires_grad=True)
    (g,) = gl.autograd.grad(x.det(), x, create_graph=True)
    (second,) = gl.autograd.grad((g * gl.from_numpy(w)).sum(), x)
    for i, j in itertools.product(range(3), repeat=2):
        step = np.zeros((3, 3))
        step[i, j] = 1e-5
        np.testing.assert_allclose(
            second[i, j].item(), ((cofactors(rows + step) - cofactors(rows - step)) * w).sum() / 2e-5, atol=1e-6
        )


def test_eigenvectors_of_equal_eigenvalues_have_no_gradient():
    """The gradient is not finite. Zeros would be silently wrong."""
    x = gl.eye(2, dtype=gl.float64).requires_grad_()
    values, vectors = gl.linalg.eigh(x)
    (g,) = gl.autograd.grad(values.sum(), x, retain_graph=True)
    np.testing.assert_array_equal(g.numpy(), np.eye(2))
    (g,) = gl.autograd.grad((vectors * gl.tensor([[1.0, 2], [3, 4]])).sum(), x)
    assert not g.isfinite().any()


@pytest.mark.parametrize("sizes", [(2, 9, 3, 8, 1, 5), (7, 1, 7, 1, 7), (3, 3, 3)])
def test_chains_are_multiplied_in_the_cheapest_order(sizes):
    def cost(i, j, split=None):
        if i == j:
            return 0
        here = [split[i][j]] if split else range(i, j)
        return min(cost(i, k, split) + cost(k + 1, j, split) + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in here)

    last = len(sizes) - 2
    assert cost(0, last, products.chain_order(list(sizes))) == cost(0, last)


@pytest.mark.parametrize(
    "equation",
    [
        "ab,bc,cd,de->ae",
        "abc,bd,ce,dea->",
        "aab,bcc->ac",
        "ab,cd->abcd",
        "ab,b,ac->ac",
        "a...,b...->ab...",
        "abcd->dbac",
        "ijk,jil->kl",
    ],
)
def test_einsum_agrees_with_numpy(equation):
    rng, size = np.random.default_rng(0), dict(zip("abcdeijkl", itertools.cycle((2, 3, 4)), strict=False))
    operands = [
        rng.standard_normal(tuple(3 if c == "." else size[c] for c in operand.replace("...", ".")))
        for operand in equation.partition("->")[0].split(",")
    ]
    found = gl.einsum(equation, *map(gl.from_numpy, operands))
    np.testing.assert_allclose(found.numpy(), np.einsum(equation, *operands), atol=1e-12)


@pytest.mark.parametrize("call", [lambda x: gl.cross(x, x), gl.chain_matmul, gl.cholesky, gl.qr, gl.lu])
def test_deprecated_functions_warn_once(call):
    products.WARNINGS_GIVEN.clear()
    with pytest.warns(UserWarning, match=r"(?i)deprecated") as warned:
        [call(gl.eye(3)) for _ in range(2)]
    assert len(warned) == 1 and warned[0].filename == __file__


def test_results_have_names():
    assert repr(gl.linalg.eigh(gl.eye(1))) == (
        "gradlab.return_types.linalg_eigh(\neigenvalues=tensor([1.]),\neigenvectors=tensor([[1.]]))"
    )


@pytest.mark.parametrize("function", [gl.linalg.eig, gl.linalg.eigvals])
def test_complex_results_are_not_supported(function):
    with pytest.raises(NotImplementedError, match="complex tensors are not supported"):
        function(gl.eye(2))


def test_the_error_has_a_public_name():
    with pytest.raises(gl.linalg.LinAlgError, match="diagonal element 2 is zero"):
        gl.ones(2, 2).inverse()


SOLVERS = {
    "inv": np.linalg.inv,
    "solve": lambda x: np.linalg.solve(x, np.ones((*x.shape[:-1], 1))),
    "cholesky": np.linalg.cholesky,
    "svd": lambda x: np.linalg.svd(x)[1],
    "eigh": np.linalg.eigvalsh,
}
SQUARES = {
    "regular": [[2.0, 1.0], [1.0, 3.0]],
    "singular": [[1.0, 1.0], [1.0, 1.0]],
    "zero": [[0.0, 0.0], [0.0, 0.0]],
    "indefinite": [[1.0, 2.0], [2.0, 1.0]],
    "nan": [[np.nan, 1.0], [1.0, 2.0]],
    "all nan": [[np.nan, np.nan], [np.nan, np.nan]],
    "a batch with a singular one": [[[2.0, 1.0], [1.0, 3.0]], [[1.0, 1.0], [1.0, 1.0]]],
    "empty": np.zeros((0, 0)),
}


@pytest.mark.skipif(sys.platform == "emscripten", reason="NumPy does not report failures there")
@pytest.mark.parametrize("matrix", SQUARES)
@pytest.mark.parametrize("name", SOLVERS)
def test_failures_are_found_if_numpy_does_not_report_them(name, matrix):
    """On WebAssembly, NumPy returns NaN for each matrix that failed. Here, NumPy's errors determine which ones failed."""
    given = np.array(SQUARES[matrix])
    try:
        result, raised = SOLVERS[name](given), False
    except np.linalg.LinAlgError:
        raised, results = True, []
        for one in given.reshape(-1, *given.shape[-2:]):
            try:
                results.append(SOLVERS[name](one))
            except np.linalg.LinAlgError:
                results.append(np.full({"solve": (2, 1), "svd": 2, "eigh": 2}.get(name, (2, 2)), np.nan))
        result = np.stack(results).reshape(*given.shape[:-2], *results[0].shape)
    with np.errstate(invalid="ignore"):
        assert has_failed(np, name, result, given) == raised


def test_an_operation_with_several_results_is_one_node():
    a = gl.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    values, vectors = gl.linalg.eigh(a)
    drawn = gl.graph(values.sum() + vectors[0, 0])
    assert [n.operation for n in drawn.nodes].count("LinalgEighBackward0") == 1
    assert "values, vectors = linalg_eigh" in drawn.text()
    assert "eigh" in repr(gl.formula(values.grad_fn))

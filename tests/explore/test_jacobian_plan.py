"""Plans of Jacobians: the chosen method, memory, valid plans and patterns, and errors."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse  # noqa: F401  (loaded before memory is counted)

import gradlab as gl
from gradlab.explore.heat_cells import NAN
from gradlab.explore.jacobian import colouring, compute_block, hessian, jacobian, memory
from gradlab.explore.jacobian.graph import GradlabGraph


def tridiagonal(x):
    """Return r_i = x_{i-1} - 2 x_i + x_{i+1} + x_i³ with zeros beyond the ends."""
    edge = gl.zeros(1, dtype=x.dtype)
    return gl.cat([edge, x[:-1]]) - 2 * x + gl.cat([x[1:], edge]) + x**3


def grid(u, side):
    """Return the same on a square grid that is flattened by rows."""
    u = gl.nn.functional.pad(u.reshape(side, side), (1, 1, 1, 1))
    inside = u[1:-1, 1:-1]
    return (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * inside + inside**3).reshape(-1)


@pytest.mark.parametrize("n", [1000, 100_000])
def test_a_tridiagonal_residual_takes_three_sweeps(n):
    x = gl.linspace(-1, 1, n, dtype=gl.float64)
    J = jacobian(tridiagonal, x)
    tracemalloc.start()
    try:
        S = J.sparse()
        assert tracemalloc.get_traced_memory()[1] < S.dtype.itemsize * n * n / 10, "the dense matrix was not formed"
    finally:
        tracemalloc.stop()
    assert J.plan.method == "sparse" and J.sweeps == 3 and S.shape == (n, n) and S.nnz == 3 * n - 2
    np.testing.assert_allclose(S.diagonal(), -2 + 3 * x.numpy() ** 2)
    np.testing.assert_array_equal(S.diagonal(1), np.ones(n - 1))
    np.testing.assert_array_equal(S.diagonal(-1), np.ones(n - 1))
    np.testing.assert_allclose(J @ np.ones(n), S @ np.ones(n))
    np.testing.assert_allclose(np.ones(n) @ J, S.T @ np.ones(n))
    np.testing.assert_allclose(J[n - 1, n - 2 :], [1, 1])
    again = jacobian(tridiagonal, x, plan=J.plan, chunk_size=2)
    assert [block.kind for block in again.plan.blocks()] == ["colours", "colours"]
    np.testing.assert_array_equal(
        again.sparse().toarray() if n < 10_000 else again.sparse().data, S.toarray() if n < 10_000 else S.data
    )


def test_a_hessian_of_a_chain_and_of_an_arrowhead():
    def chain(x):
        return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()

    H = hessian(chain, gl.linspace(-1, 1, 50_000, dtype=gl.float64))
    assert H.plan.sweeps == 3 and H.sparse().nnz == 3 * 50_000 - 2
    n = 1000
    H = hessian(lambda x: (x[0] * x).sum() + (x**3).sum(), gl.ones(n, dtype=gl.float64))
    S = H.sparse()
    assert H.plan.sweeps == 2, "the first column alone and all others together; symmetry gives the first row"
    wanted = np.diag(np.full(n, 6.0))
    wanted[0] += 1
    wanted[:, 0] += 1
    np.testing.assert_allclose(S.toarray(), wanted)


def test_the_text_of_a_plan_has_reasons():
    x = gl.ones(3, dtype=gl.float64)
    wide, tall = jacobian(lambda u: u[:2] * 2, x).plan, jacobian(lambda u: gl.cat([u, u, u]), x).plan
    assert (wide.method, wide.sweeps, wide.by) == ("batched", 2, "rows")
    assert "2 rows, all at once, in 1 backward sweep" in str(wide)
    assert (tall.method, tall.sweeps) == ("columns", 3) and "columns are fewer" in str(tall) and "9×3" in str(tall)
    one = jacobian(lambda u: u * 2, x, method="rows").plan
    assert one.chunk == 1 and [(b.number, b.kind, b.start, b.stop) for b in one.blocks()] == [
        (0, "rows", 0, 1),
        (1, "rows", 1, 2),
        (2, "rows", 2, 3),
    ]
    assert "3 rows, one at a time, in 3 backward sweeps" in str(one)
    assert "batched': 1 row, in 1 backward sweep of" in str(jacobian(lambda u: u.sum(), gl.ones(4)).plan)
    some = jacobian(lambda u: gl.cat([u, u]), x, method="columns", chunk_size=2).plan
    assert "3 columns, 2 at a time, in 2 forward sweeps" in str(some)
    W = gl.randn(600, 600)
    full = jacobian(lambda u: W @ u, gl.ones(600)).plan
    assert full.method == "batched" and "the pattern is too full for colours to pay" in str(full)
    few = jacobian(tridiagonal, gl.ones(2000)).plan
    assert "rows in 3 colours for the 5,998 entries that can be nonzero" in str(few)
    assert "3 instead of 2,000 sweeps" in str(few) and "<Plan: 2,000×2,000" in repr(few)
    block = pickle.loads(pickle.dumps(few.blocks()[0]))
    assert block == few.blocks()[0]
    again = jacobian(tridiagonal, gl.ones(2000), plan=pickle.loads(pickle.dumps(few)))
    assert again.sparse().nnz == 5998 and again.sweeps == 3, "a plan can be pickled"


def test_a_plan_is_reused_without_a_new_search(monkeypatch):
    x = gl.linspace(0, 1, 2000)
    J = jacobian(tridiagonal, x)
    whole, plan = J.sparse(), J.plan
    monkeypatch.setattr(GradlabGraph, "pattern", lambda *_: pytest.fail("the pattern was searched for"))
    monkeypatch.setattr(colouring, "distance_2", lambda *_: pytest.fail("it was coloured again"))
    again = jacobian(tridiagonal, x, plan=plan)
    assert again.plan is plan
    np.testing.assert_array_equal(again.sparse().toarray(), whole.toarray())
    again.sparse().data[:] = 0
    np.testing.assert_array_equal(again.sparse().toarray(), whole.toarray())
    other = jacobian(lambda u: tridiagonal(u) * 2, x, plan=plan)
    np.testing.assert_allclose(other.sparse().toarray(), 2 * whole.toarray(), rtol=1e-6)
    assert other.sweeps == 5, "another graph is checked by two more sweeps (single precision)"
    with pytest.warns(UserWarning, match="leaves out entries that are not zero: 19.. of 2000 columns are wrong"):
        jacobian(lambda u: tridiagonal(u) * u.flip(0), x + 1, plan=plan).sparse()
    with pytest.raises(ValueError, match=r"the plan is for a Jacobian of shape \(2000, 2000\), this one has \(4, 4\)"):
        jacobian(tridiagonal, x[:4], plan=plan)
    with pytest.raises(ValueError, match="do not pass method or sparsity with it"):
        jacobian(tridiagonal, x, plan=plan, method="rows")
    with pytest.raises(TypeError, match=r"takes the \.plan of another Jacobian; got Jacobian"):
        jacobian(tridiagonal, x, plan=J)


def test_a_plan_for_other_indices_or_another_graph_is_checked():
    n = 100
    x = gl.linspace(0.1, 1, n, dtype=gl.float64)
    order = np.random.default_rng(0).permuted(np.tile(np.arange(n), (2, 1)), axis=1)

    def write_at(index):
        def f(u):
            t = u * 1
            t[gl.tensor(index[:40])] = u[:40]
            return t

        return f

    pairs = [
        (lambda u: u[gl.tensor(order[0])] * u, lambda u: u[gl.tensor(order[1])] * u),
        (lambda u: u.roll(1) * u, lambda u: u.roll(2) * u),
        (write_at(order[0]), write_at(order[1])),
        (lambda u: (u.flip(0) * 2) - u, lambda u: (u.flip(0) - u) * 2),
    ]
    for f, other in pairs:
        J = jacobian(f, x, method="sparse")
        J.sparse()
        again = jacobian(f, x, plan=J.plan)
        np.testing.assert_array_equal(again.sparse().toarray(), J.sparse().toarray())
        assert again.sweeps == J.sweeps and again.plan is J.plan, "the same graph is not checked again"
        right = np.asarray(jacobian(other, x))
        if ((right != 0) > (np.asarray(J) != 0)).any():
            with pytest.warns(UserWarning, match="leaves out entries that are not zero"):
                jacobian(other, x, plan=J.plan).sparse()
    a, b = x, x * 2
    J = jacobian(lambda a, b: (a.flip(0), b), (a, b), method="sparse")
    with pytest.warns(UserWarning, match="leaves out entries that are not zero"):
        jacobian(lambda a, b: (b.flip(0), a), (a, b), plan=J.plan).sparse()


def test_a_pattern_can_have_three_forms():
    from scipy.sparse import coo_array, csr_matrix, eye_array

    x = gl.linspace(0, 1, 6, dtype=gl.float64)
    whole = np.asarray(jacobian(tridiagonal, x))
    i = np.arange(6)
    rows, columns = np.r_[i, i[1:], i[:-1], 0], np.r_[i, i[:-1], i[1:], 0]
    mask = np.zeros((6, 6), bool)
    mask[rows, columns] = True
    for given in (mask, (rows, columns), csr_matrix(mask), coo_array(mask), (list(map(int, rows)), list(map(int, columns)))):
        J = jacobian(tridiagonal, x, sparsity=given)
        np.testing.assert_allclose(J.sparse().toarray(), whole)
        assert J.plan.method == "sparse" and J.plan.sweeps == 3 and J.sparse().nnz == 16
    with pytest.warns(UserWarning, match=r"leaves out entries that are not zero: 5 of 6 columns are wrong, the first of them 1"):
        jacobian(tridiagonal, x, sparsity=eye_array(6) + eye_array(6, k=-1)).sparse()


def test_errors_of_plans():
    x = gl.ones(4, dtype=gl.float64)

    def f(u):
        return u[:3] * 2

    for given, text in (
        ({"method": "colums"}, r"method='colums' must be one of 'auto', 'rows', 'batched', 'columns', 'sparse'"),
        ({"chunk_size": 0}, r'chunk_size is a whole number from 1, "auto" or None; got 0'),
        ({"chunk_size": 2.5}, r"got 2.5"),
        ({"chunk_size": True}, r"got True"),
        ({"sparsity": np.ones((4, 3), bool)}, r"sparsity= has shape \(4, 3\), the Jacobian has \(3, 4\)"),
        ({"sparsity": (np.array([0, 3]), np.array([0, 0]))}, r"names row 3 of a Jacobian of shape \(3, 4\)"),
        ({"sparsity": (np.array([0, 1]), np.array([-1, 0]))}, r"names column -1"),
        ({"sparsity": (np.array([0, 1]), np.array([0]))}, r"two equally long arrays of whole numbers; got 2 of int64 and 1"),
        ({"sparsity": (np.array([0.5]), np.array([0.0]))}, r"whole numbers; got 1 of float64"),
        ({"sparsity": np.ones((3, 4), bool), "method": "rows"}, r'for the methods "sparse" and "auto"; got method=\'rows\''),
    ):
        with pytest.raises(ValueError, match=text):
            jacobian(f, x, **given)
    with pytest.raises(TypeError, match=r"a scipy sparse array, a boolean array or \(rows, columns\); got str"):
        jacobian(f, x, sparsity="tridiagonal")
    with pytest.raises(RuntimeError, match=r"grad can be implicitly created only for scalar outputs.*y has shape \(3,\)"):
        hessian(f, x)
    for call in (lambda J: J @ np.ones(3), lambda J: np.ones(4) @ J, lambda J: J @ np.ones((4, 2, 2))):
        with pytest.raises(ValueError, match=r"the Jacobian has shape \(3, 4\), the other has"):
            call(jacobian(f, x))
    with pytest.raises(TypeError, match="real numbers"):
        jacobian(f, x) @ np.array(["a"] * 4)
    with pytest.raises(ValueError, match=r"jvp\(u\) takes one weight per element of x: shape \(4,\)"):
        jacobian(f, x).jvp([1.0])
    with pytest.raises(ValueError, match="a step of 2"):
        jacobian(f, x).pool(slice(0, 3, 2))


def test_integers_are_errors_and_unused_inputs_are_zero_and_reported():
    x, w = gl.ones(2, dtype=gl.float64), gl.ones(3, dtype=gl.float64)
    with pytest.raises(RuntimeError, match=r"floating point dtype.*inputs\[1\] is shape \(2,\), dtype int64.*\.float"):
        jacobian(lambda a, b: a * b, (x, gl.tensor([1, 2])))
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype"):
        hessian(lambda a: (a * a).sum(), gl.tensor([1, 2]))
    for method in ("rows", "batched", "columns", "sparse"):
        J = jacobian(lambda a, b: a * 2, (x, w), method=method)
        np.testing.assert_array_equal(J, [[2, 0, 0, 0, 0], [0, 2, 0, 0, 0]])
        assert "y does not depend on w: zero" in J.drawing().text
        a, b = x.detach().requires_grad_(), w.detach().requires_grad_()
        J = jacobian(a * 2, b, method=method)
        np.testing.assert_array_equal(J, np.zeros((2, 3)))
        assert "does not depend on b: zero" in J.drawing().text
        assert J.sparse().shape == (2, 3)
    assert J.plan.sweeps == 0 and J.plan.blocks() == []


def test_nan_is_counted_and_reported():
    x = gl.tensor([1.0, 2.0, float("nan")], dtype=gl.float64)
    J = jacobian(lambda u: gl.cat([u * u, u[2:] * 1]), x, method="columns")
    assert np.isnan(np.asarray(J)).sum() == 3 and "3 NaN" in J.drawing().text, "0 · NaN is NaN, so the whole row is NaN"
    x = gl.ones(3000, dtype=gl.float64)
    x[2999] = float("nan")
    J = jacobian(lambda u: u**2, x)
    assert "1 NaN" in J.drawing().text and J.sweeps == 1 and J.pool().odd[NAN] == 1


def test_a_dense_matrix_that_does_not_fit_is_an_error_with_advice():
    n = 10**6
    J = jacobian(lambda u: u * 2, gl.ones(n))
    with pytest.raises(MemoryError, match=r"1,000,000×1,000,000 of float32, takes 4 TB; .* free\. J\.sparse\(\).*J @ u.*out="):
        np.asarray(J)
    S = J.sparse()
    assert S.nnz == n and J.sweeps == 1
    np.testing.assert_array_equal(J @ np.ones(n, np.float32), np.full(n, 2))
    for call in (J.dense, J.tensor, lambda: np.abs(J)):
        with pytest.raises(MemoryError):
            call()
    J = jacobian(lambda u: u * 2, gl.ones(n), method="batched")
    with pytest.raises(MemoryError, match=r"J\.rows"):
        np.asarray(J)
    assert J[n - 1, n - 1] == 2 and (J @ np.ones(n, np.float32)).sum() == 2 * n
    assert "2 of" in repr(J) or "1 of" in repr(J)


def test_rows_can_be_iterated_without_keeping_them():
    x = gl.linspace(0, 1, 50, dtype=gl.float64)
    for way in ({"method": "batched", "chunk_size": 8}, {"method": "rows"}, {"method": "columns"}, {"method": "sparse"}):
        J = jacobian(lambda u: tridiagonal(u) * u.flip(0), x, **way)
        np.testing.assert_allclose(np.stack(list(J.rows())), jacobian(lambda u: tridiagonal(u) * u.flip(0), x).dense())
        assert J.complete is (way["method"] == "sparse") and J.sweeps == (J.plan.sweeps if J.complete else 50)


@pytest.mark.parametrize("method", ["batched", "columns"])
@pytest.mark.parametrize("chunk", [8, 64])
def test_the_memory_of_a_chunk_matches_the_plan(method, chunk):
    def f(u):
        for _ in range(4):
            u = gl.tanh(u) * 1.5 + u[gl.arange(4000)]
        return u

    J = jacobian(f, gl.linspace(0, 1, 4000), method=method, chunk_size=chunk)
    block = J.plan.blocks()[0]
    compute_block(J.runner.graph, J.plan, block)
    tracemalloc.start()
    try:
        compute_block(J.runner.graph, J.plan, block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0.3 * J.plan.bytes < peak < 1.5 * J.plan.bytes, (peak, J.plan)


def test_the_chunk_takes_a_share_of_free_memory(monkeypatch):
    from gradlab.explore.jacobian import plan

    monkeypatch.setattr(plan, "free_memory", lambda: 100e6)
    made = jacobian(tridiagonal, gl.ones(5000), method="batched").plan
    assert 10e6 < made.bytes <= 25e6 and 1 < made.chunk < 5000
    assert jacobian(tridiagonal, gl.ones(5000), method="batched", chunk_size="auto").plan.chunk == made.chunk
    assert jacobian(tridiagonal, gl.ones(5000), method="batched", chunk_size=10**6).plan.chunk == 5000
    assert memory.free_memory() > 1e6


# ------------------------------------------------------------------------------------------------------------ colours
def patterns():
    draw = np.random.default_rng(0)
    yield "random", draw.random((40, 60)) < 0.08
    yield "band", np.abs(np.subtract.outer(np.arange(50), np.arange(50))) <= 2
    yield "periodic band", np.isin(np.subtract.outer(np.arange(50), np.arange(50)) % 50, [0, 1, 49])
    arrow = np.eye(30, dtype=bool)
    arrow[0] = arrow[:, 0] = True
    yield "arrow", arrow
    yield "full", np.ones((5, 7), bool)
    yield "one row", np.ones((1, 9), bool)
    yield "empty columns", np.pad(np.eye(5, dtype=bool), ((0, 0), (0, 4)))


@pytest.mark.parametrize(("name", "mask"), list(patterns()), ids=lambda value: value if isinstance(value, str) else "")
@pytest.mark.parametrize("ordering", [None, *colouring.ORDERINGS])
def test_no_row_has_a_colour_twice(name, mask, ordering):
    rows, columns = np.nonzero(mask)
    for items, groups, shape in ((columns, rows, mask.shape[::-1]), (rows, columns, mask.shape)):
        colours = colouring.distance_2(items, groups, shape, ordering)
        assert colours.shape == (shape[0],) and colours.min() >= 0
        pairs = set(zip(groups.tolist(), colours[items].tolist(), strict=True))
        assert len(pairs) == len(items), "the entries of a row have different colours"
        assert colours[items].max() + 1 >= np.bincount(groups).max()
    if name == "band":
        assert colours.max() == 4, "five colours are enough for five diagonals"


def test_orderings_by_name():
    with pytest.raises(ValueError, match="ordering='random' must be one of 'natural', 'largest_first', 'smallest_last'"):
        colouring.distance_2(np.array([0]), np.array([0]), (1, 1), "random")


@pytest.mark.parametrize("seed", range(12))
def test_a_symmetric_colouring_isolates_each_entry_or_its_mirror_image(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 40))
    mask = draw.random((n, n)) < draw.uniform(0.02, 0.3)
    mask |= mask.T | np.eye(n, dtype=bool) if seed % 2 else mask.T
    rows, columns = np.nonzero(mask)
    if not rows.size:
        return
    values = draw.normal(size=(n, n))
    values = np.where(mask, values + values.T, 0)
    for colours in (colouring.star(rows, columns, n), colouring.symmetric(rows, columns, n)):
        own = colouring.one_of_two(rows, columns, colours)
        assert own is not None
        compressed = values @ np.equal.outer(colours, np.arange(colours.max() + 1))
        read = np.where(own, compressed[rows, colours[columns]], compressed[columns, colours[rows]])
        np.testing.assert_allclose(read, values[rows, columns])
    assert colouring.star(rows, columns, n).max() <= colouring.greedy(columns, rows, (n, n), "largest_first").max() + 1


def test_a_grid_and_coupled_fields_against_dense():
    side = 24
    u = gl.linspace(-1, 1, side * side, dtype=gl.float64)
    J = jacobian(lambda v: grid(v, side), u, method="sparse")
    assert J.plan.sweeps <= 7
    np.testing.assert_allclose(J, jacobian(lambda v: grid(v, side), u, method="batched"), atol=1e-13)

    def couple(a, b):
        return tridiagonal(a) + a * b, tridiagonal(b) - a[::2].sum() * b

    a, b = u[:40], u[40:80]
    J = jacobian(couple, (a, b), method="sparse")
    np.testing.assert_allclose(J, jacobian(couple, (a, b), method="rows"), atol=1e-12)
    assert J.plan.sweeps < 40 and J.plan.by in ("rows", "columns")

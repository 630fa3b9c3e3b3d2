"""Pooling of a large Jacobian, compared cell by cell with the matrix while it is computed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.heat_cells import NAN, POSITIVE
from gradlab.explore.jacobian import jacobian

CELLS = [(5, 4), (64, 64), (37, 23), (1, 1)]
PARTS = [(slice(None), slice(None)), (slice(2, 20), slice(3, 9)), (slice(36, 37), slice(-4, None)), (slice(5, 5), slice(None))]


def compare(J, matrix, known, cells):
    """Compare each cell of each part with the known entries of the matrix."""
    for rows, columns in PARTS:
        part = J.pool(rows, columns, cells)
        first, end, left, right = part.window
        assert (first, end) == rows.indices(len(matrix))[:2] and (left, right) == columns.indices(matrix.shape[1])[:2]
        assert part.low.shape == (min(cells[0], end - first), min(cells[1], right - left))
        seen, odd = [], 0
        for i, (top, bottom) in enumerate(pairwise([*part.rows, end])):
            for j, (start, stop) in enumerate(pairwise([*part.columns, right])):
                place = slice(top, bottom), slice(start, stop)
                values = matrix[place][known[place]]
                finite = values[np.isfinite(values)]
                seen += finite.tolist()
                odd += np.isnan(values).sum()
                assert part.known_mask[i, j] == known[place].any() and part.whole[i, j] == known[place].all()
                assert (part.flags[i, j] & NAN > 0) == np.isnan(values).any()
                assert (part.flags[i, j] & POSITIVE > 0) == np.isposinf(values).any()
                extremes = (finite.min(), finite.max()) if finite.size else (np.inf, -np.inf)
                assert (part.low[i, j], part.high[i, j]) == extremes
                if not values.size:
                    assert part.values[i, j] == 0
                elif np.isnan(values).any():
                    assert np.isnan(part.values[i, j])
                else:
                    assert part.values[i, j] in values and abs(part.values[i, j]) == np.abs(values).max()
        assert part.extremes() == ((min(seen), max(seen)) if seen else None) and part.odd[NAN] == odd


@pytest.fixture(scope="module")
def matrix():
    draw = np.random.default_rng(0)
    made = draw.normal(size=(37, 23))
    for odd in (np.nan, np.inf, -np.inf):
        made[draw.random(made.shape) < 0.05] = odd
    made[5] = np.nan
    return made


@pytest.mark.parametrize("cells", CELLS)
def test_dense_parts(matrix, cells):
    x, known = gl.ones(23, dtype=gl.float64), np.zeros(matrix.shape, bool)

    def f(u):
        return gl.ones((37, 23), dtype=gl.float64) @ u

    J = jacobian(f, x, method="batched", chunk_size=5)
    J.runner.backward = lambda v: matrix[np.flatnonzero(v)[0]].copy()
    J.runner.values = lambda block: matrix[block.start : block.stop]
    compare(J, matrix, known, cells)
    J[3]
    known[3] = True
    compare(J, matrix, known, cells)
    J.runner.run(J.plan.blocks()[2:4])
    known[10:20] = True
    compare(J, matrix, known, cells)
    J.runner.run([*J.plan.blocks()[:2], *J.plan.blocks()[4:]])
    assert J.complete
    known[:] = True
    compare(J, matrix, known, cells)
    J, known[:] = jacobian(f, x, method="columns", chunk_size=5), False
    J.runner.values = lambda block: matrix[:, block.start : block.stop]
    J.runner.run(J.plan.blocks()[1:3])
    known[:, 5:15] = True
    compare(J, matrix, known, cells)


@pytest.mark.parametrize("cells", CELLS)
def test_sparse_parts_have_zeros_outside_the_pattern(cells):
    def f(u):
        return gl.cat([u[1:] * u[:-1], u[:1]]) * gl.linspace(-1, 1, 50, dtype=gl.float64)

    x = gl.linspace(-1, 1, 50, dtype=gl.float64)
    whole = np.asarray(jacobian(f, x))
    J, known = jacobian(f, x, method="sparse", chunk_size=1), np.zeros(whole.shape, bool)
    compare(J, whole, known, cells)
    J.runner.run(J.plan.blocks()[:1])
    rows, columns = J.plan.pattern
    known[:] = True
    side = columns if J.plan.by == "columns" else rows
    later = J.plan.colours[side] > 0
    known[rows[later], columns[later]] = False
    compare(J, whole, known, cells)
    J.sparse()
    known[:] = True
    compare(J, whole, known, cells)


@pytest.mark.slow
def test_large_matrices_are_pooled():
    n = 10_000
    J = jacobian(lambda u: u * 1.0, gl.ones(n), method="batched")
    matrix = np.random.default_rng(0).normal(size=(1, n)).astype(np.float32) * np.linspace(-1, 1, n, dtype=np.float32)[:, None]
    J.runner.values = lambda block: matrix[block.start : block.stop]
    J.runner.compute()
    part = J.pool()
    assert part.extremes() == (matrix.min(), matrix.max())
    n = 100_000
    J = jacobian(lambda u: gl.cat([u[1:] - u[:-1] ** 2, u[:1]]), gl.linspace(0, 1, n))
    J.sparse()
    part = J.pool()
    assert part.extremes()[1] == 1 and part.whole.all()


def test_single_rows_are_drawn_beside_blocks():
    x = gl.linspace(0.5, 1, 30, dtype=gl.float64)

    def f(u):
        return gl.cat([u[1:] * u[:-1], u[:1] ** 2])

    whole = np.asarray(jacobian(f, x))
    for method in ("columns", "sparse"):
        J, known = jacobian(f, x, method=method, chunk_size=1), np.zeros(whole.shape, bool)
        J[4]
        J.runner.run(J.plan.blocks()[:1])
        if method == "sparse":
            rows, columns = J.plan.pattern
            known[:] = True
            later = J.plan.colours[columns if J.plan.by == "columns" else rows] > 0
            known[rows[later], columns[later]] = False
        else:
            known[:, 0] = True
        known[4] = True
        compare(J, whole, known, (5, 4))


def test_the_numbers_of_a_picture_are_those_of_the_matrix_and_not_of_its_cells():
    n = 40_000
    x = gl.ones(n, dtype=gl.float64)
    x[7] = x[8] = float("nan")
    x[9] = float("inf")

    def f(u):
        return gl.cat([u[:-1] ** 2 - 0.5 * u[1:], u[-1:]])

    J = jacobian(f, x)
    text, numbers = J.drawing().text, J.sparse().data
    assert "least −0.5, greatest 2" in text and np.isposinf(numbers).sum() == 1 and J.pool().low.shape == (64, 64)
    assert f"{np.isnan(numbers).sum()} NaN (marked ×), 1 +inf (marked +)" in text and np.isnan(J.pool().values).sum() == 1
    assert f"{n} × {n} pooled to 64 × 64 cells" in text and "y[0]" in text and "x[39999]" in text
    J = jacobian(lambda a, b: gl.cat([a * 2, b * 3]), (gl.ones(n), gl.ones(10)))
    assert J.drawing().svg().count("<image") == 3, "there are gaps between the blocks of columns, and the scale"

"""Patterns of other graphs: all wrong rows or columns are reported for each matrix; rounding is not."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.jacobian import jacobian

TYPES = [gl.float16, gl.float32, gl.float64]


def compute_with_warnings(J):
    """Return (matrix, texts of warnings, their files) with the default filters of a script."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", category=RuntimeWarning)
        matrix = np.asarray(J)
    return matrix, [str(one.message) for one in caught], [one.filename for one in caught]


def sorted_and_rooted(t):
    return gl.cat([t[:4].sort().values, t[4:].sqrt()])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("last", [1.0, 1e-4, 0.0], ids=["like", "large", "infinite"])
def test_permuted_rows_are_reported_whatever_the_other_entries(dtype, last):
    """The derivative d sqrt(t) / dt = 1 / (2 sqrt(t)) is 0.5, 50 or inf; the entries of the sort are 1."""
    plan = jacobian(sorted_and_rooted, gl.tensor([3.0, 1, 4, 2, 1, 1, 1, 1], dtype=dtype), method="sparse").plan
    for order in ([1.0, 2, 3, 4], [2.0, 1, 4, 3], [4.0, 3, 2, 1], [3.0, 1, 4, 2]):
        x = gl.tensor([*order, 1, last, 1, 1], dtype=dtype)
        matrix, said, files = compute_with_warnings(jacobian(sorted_and_rooted, x, plan=plan))
        right = np.zeros((4, 4))
        right[np.arange(4), np.argsort(order)] = 1
        wrong = (matrix[:4, :4] != right).any(0)
        if wrong.any():
            assert files == [__file__], "at the user's line, for each matrix"
            assert f"{wrong.sum()} of 8 columns are wrong, the first of them {np.argmax(wrong)}." in said[0]
        else:
            assert said == [] and order == [3.0, 1, 4, 2]
        assert matrix[5, 5] == pytest.approx(np.inf if not last else 0.5 * last**-0.5, rel=1e-2)


def test_each_wrong_matrix_of_a_loop_is_reported_at_the_line_of_the_user():
    plan = jacobian(sorted_and_rooted, gl.tensor([3.0, 1, 4, 2, 1, 1, 1, 1]), method="sparse").plan
    with warnings.catch_warnings(record=True) as caught:
        warnings.resetwarnings()
        for _ in range(3):
            J = jacobian(sorted_and_rooted, gl.arange(1.0, 9.0), plan=plan)
            np.asarray(J)
    lines = Path(__file__).read_text().splitlines()
    assert [lines[one.lineno - 1].strip() for one in caught] == ["np.asarray(J)"] * 3


def test_a_small_wrong_entry_beside_a_large_one():
    """Single precision, with 1e6 and 1 in different columns, then in different rows."""
    n = 8
    scale = gl.ones(n)
    scale[0] = 1e6
    x = gl.linspace(1, 2, n)
    for method in ("rows", "columns"):
        for change in (1.0, 1e-3):
            plan = jacobian(lambda u: u * scale, x, method="sparse").plan
            assert plan.by == "rows"
            if method == "columns":
                plan = type(plan)(**{**plan.__dict__, "by": "columns"})
            J = jacobian(lambda u, c=change: (u * scale).index_add(0, gl.tensor([5]), u[2:3] * c), x, plan=plan)
            _, said, _ = compute_with_warnings(J)
            of = "columns are wrong, the first of them 2" if method == "rows" else "rows are wrong, the first of them 5"
            assert len(said) == 1 and f"of 8 {of}" in said[0], (method, change)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_rounding_is_not_a_wrong_entry(dtype):
    """A x − A x + x has the Jacobian 1 plus rounding errors of the cancelled A, which a given pattern may omit."""
    rng, n = np.random.default_rng(0), 60
    for size in (1, 100, 1e4):
        if size == 1e4 and dtype is gl.float16:
            continue
        A = gl.tensor(rng.normal(size=(n, n)) * size, dtype=dtype)
        order = gl.tensor(rng.permutation(n))
        x = gl.tensor(rng.uniform(1, 2, n), dtype=dtype)

        def f(u, A=A, order=order):
            return A @ u - A[:, order] @ u[order] + u

        for method in ({"sparsity": np.eye(n)}, {"sparsity": np.eye(n), "method": "sparse", "chunk_size": 1}):
            _, said, _ = compute_with_warnings(jacobian(f, x, **method))
            assert said == [], (size, method)
        if dtype is gl.float64:
            _, said, _ = compute_with_warnings(jacobian(lambda u, f=f: f(u) + u.roll(1) * 1e-3, x, sparsity=np.eye(n)))
            assert "60 of 60" in said[0], "a small entry beside the rounding errors is reported"


def test_nonfinite_columns_are_reported_as_unchecked():
    x = gl.tensor([1.0, 0.0, 1.0, 1.0])
    _, said, _ = compute_with_warnings(jacobian(lambda u: u.sqrt(), x, sparsity=np.eye(4)))
    assert (
        len(said) == 1
        and "could be checked for all columns except 1 of 4, which hold inf or NaN; the first of them is 1" in said[0]
    )


def test_an_infinite_entry_outside_the_pattern():
    x = gl.tensor([1.0, 0.0, 1.0, 1.0], dtype=gl.float64)
    _, said, _ = compute_with_warnings(jacobian(lambda u: u.flip(0).sqrt(), x, sparsity=np.eye(4)))
    assert "3 of 4 columns are wrong" in said[0], "the column that is infinite in both is not checked"


def test_an_empty_pattern_is_checked_too():
    x = gl.arange(4.0)
    assert "4 of 4" in compute_with_warnings(jacobian(lambda u: u * 2, x, sparsity=np.zeros((4, 4), bool)))[1][0]
    assert compute_with_warnings(jacobian(lambda u: u * 0, x, sparsity=np.zeros((4, 4), bool)))[1] == []


def test_a_warning_raised_as_an_error_is_raised_each_time():
    J = jacobian(lambda u: u.flip(0), gl.arange(4.0), sparsity=np.eye(4))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="leaves out entries"):
                np.asarray(J)


@pytest.mark.torch
def test_torch_in_bfloat16():
    torch = pytest.importorskip("torch")
    x = torch.linspace(1, 2, 8, dtype=torch.bfloat16)
    right, wrong = (np.eye(8), np.eye(8)[::-1])
    assert compute_with_warnings(jacobian(lambda u: u * u, x, sparsity=right))[1] == []
    assert "leaves out" in compute_with_warnings(jacobian(lambda u: u * u, x, sparsity=wrong))[1][0]
    assert compute_with_warnings(jacobian(lambda u: (u * 3 + u.sin()).exp() * 0.3, x, sparsity=right))[1] == []

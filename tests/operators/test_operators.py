"""Every operator does what PyTorch was recorded to do: values, dtypes, shapes, derivatives, node names, errors, warnings."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from grouped import check_each, grouped
from operators.agreement import AS_DOUBLE, assert_agrees, condense, expected
from operators.tables import FILES, operator_of, rows_of
from recorded import recorded_by, rows

import gradlab

ROWS = {name: rows_of(name) for name in FILES}
GROUPS = {(file, operator): group for file in FILES for operator, group in grouped(ROWS[file], operator_of).items()}


@functools.cache
def recorded(file: str) -> dict[str, Any]:
    return rows(f"operators/{file}")


@pytest.mark.parametrize(("file", "operator"), GROUPS)
def test_operator(file: str, operator: str) -> None:
    check_each(GROUPS[file, operator], lambda row: assert_agrees(row.run(gradlab), expected(recorded(file), str(row))))


@pytest.mark.oracle
@pytest.mark.parametrize("file", FILES)
def test_recorded_is_what_torch_does(file: str) -> None:
    torch = pytest.importorskip("torch")
    by_title = {str(row): row for row in ROWS[file]}
    titles = recorded_by(f"operators/{file}", torch)
    check_each(titles, lambda title: assert_agrees(by_title[title].run(torch), expected(recorded(file), title)))


def test_a_row_in_single_precision_is_recorded_where_it_does_not_follow() -> None:
    def sketched(dtype: str, number: float, **more: Any) -> Any:
        return {"result": {"dtype": dtype, "shape": [], "sums": [number]}, **more}

    rows = {
        "a float64": sketched("float64", 1.0, **{"second derivatives": [1.0]}),
        "a float32": sketched("float32", 1.000005),
        "b float64": sketched("float64", 1.0),
        "b float32": sketched("float32", 1.001),
        "c float64": sketched("float64", 1.0),
        "c float32": sketched("float64", 1.0),
        "d float64": sketched("float64", 1.0),
        "d float32": sketched("float32", 1.0, warned=["odd"]),
    }
    before = dict(rows)
    condense(rows)
    assert [title for title in rows if rows[title] == AS_DOUBLE] == ["a float32"]
    assert expected(rows, "a float32") == sketched("float32", 1.0) and expected(rows, "b float32") == before["b float32"]

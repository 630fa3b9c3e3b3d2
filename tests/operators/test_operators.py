"""Compare every operator with PyTorch's recorded results: values, dtypes, shapes, derivatives, node names, errors, warnings."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from grouped import check_each, group_by
from operators.agreement import AS_DOUBLE, assert_agrees, condense, expected_data
from operators.tables import FILES, operator_of, rows_of
from recorded import rows, titles_recorded_by

import gradlab

ROWS = {name: rows_of(name) for name in FILES}
GROUPS = {(file, operator): group for file in FILES for operator, group in group_by(ROWS[file], operator_of).items()}


@functools.cache
def recorded_rows(file: str) -> dict[str, Any]:
    return rows(f"operators/{file}")


@pytest.mark.parametrize(("file", "operator"), GROUPS)
def test_operator(file: str, operator: str) -> None:
    check_each(GROUPS[file, operator], lambda row: assert_agrees(row.run(gradlab), expected_data(recorded_rows(file), str(row))))


@pytest.mark.oracle
@pytest.mark.parametrize("file", FILES)
def test_recorded_is_what_torch_does(file: str) -> None:
    torch = pytest.importorskip("torch")
    by_title = {str(row): row for row in ROWS[file]}
    titles = titles_recorded_by(f"operators/{file}", torch)
    check_each(titles, lambda title: assert_agrees(by_title[title].run(torch), expected_data(recorded_rows(file), title)))


def test_float32_rows_are_recorded_if_they_differ_from_float64() -> None:
    def make_row(dtype: str, number: float, **more: Any) -> Any:
        return {"result": {"dtype": dtype, "shape": [], "sums": [number]}, **more}

    rows = {
        "a float64": make_row("float64", 1.0, **{"second derivatives": [1.0]}),
        "a float32": make_row("float32", 1.000005),
        "b float64": make_row("float64", 1.0),
        "b float32": make_row("float32", 1.001),
        "c float64": make_row("float64", 1.0),
        "c float32": make_row("float64", 1.0),
        "d float64": make_row("float64", 1.0),
        "d float32": make_row("float32", 1.0, warned=["odd"]),
    }
    before = dict(rows)
    condense(rows)
    assert [title for title in rows if rows[title] == AS_DOUBLE] == ["a float32"]
    assert (
        expected_data(rows, "a float32") == make_row("float32", 1.0) and expected_data(rows, "b float32") == before["b float32"]
    )

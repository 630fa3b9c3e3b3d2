"""Every operator does what PyTorch 2.13 was recorded to do: values, dtypes, shapes, derivatives, node names, errors, warnings."""
from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from operators.record import FILES, HERE

import gradlab

ROWS = {name: importlib.import_module(f"operators.rows.{name}").ROWS for name in FILES}
RECORDED = {name: json.loads((HERE / "expected" / f"{name}.json").read_text()) for name in FILES}
TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2}


def words(text: str) -> str:
    """The sentence that a search finds, in gradlab's name. What follows it is ours; where it is in torch's sources, torch's."""
    sentence = text.partition("\n")[0].partition(" (Triggered internally")[0].partition(". ")[0]
    return sentence.removesuffix(".").replace("torch.", "gradlab.")


def named(value: Any) -> Any:
    return value.replace("torch.", "gradlab.") if isinstance(value, str) else value


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    if isinstance(expected, dict) and "sums" in expected:
        assert {k: v for k, v in found.items() if k != "sums"} == {k: v for k, v in expected.items() if k != "sums"}, where
        magnitude = expected["sums"][0]
        bound = TOLERANCE[expected["dtype"]] * (magnitude + 1e-3 * max(1, len(expected["shape"])))
        assert all(abs(a - b) <= bound for a, b in zip(found["sums"], expected["sums"], strict=True)), (
            f"{where}: {found['sums']} is not {expected['sums']}")
    elif isinstance(expected, dict):
        assert list(found) == list(expected), f"{where}: {found} is not {expected}"
        for key, value in expected.items():
            assert_same(found[key], value, f"{where} {key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-5, nan_ok=True), where
    else:
        assert named(found) == named(expected), where


def assert_agrees(found: Any, expected: Any) -> None:
    """Same data; of errors and warnings, the same type and first sentence."""
    found, expected = dict(found), dict(expected)
    for texts in ("raised", "warned"):
        ours, theirs = found.pop(texts, []), expected.pop(texts, [])
        assert len(ours) == len(theirs), f"{texts}: {ours} is not {theirs}"
        for one, other in zip(ours, theirs, strict=True):
            assert one.replace("torch.", "gradlab.").startswith(words(other)), f"{texts}: {one!r} does not start as {other!r}"
    assert_same(found, expected)


@pytest.mark.parametrize(("file", "row"), [(f, row) for f, rows in ROWS.items() for row in rows], ids=str)
def test_operator(file: str, row: Any) -> None:
    assert_agrees(row.run(gradlab), RECORDED[file][str(row)])


@pytest.mark.parametrize("file", FILES)
def test_every_row_is_recorded(file: str) -> None:
    assert [str(row) for row in ROWS[file]] == list(RECORDED[file]), f"run python tests/operators/record.py {file}"


@pytest.mark.oracle
@pytest.mark.parametrize("file", FILES)
def test_recorded_is_what_torch_does(file: str) -> None:
    torch = pytest.importorskip("torch")
    for row in ROWS[file]:
        assert_agrees(row.run(torch), RECORDED[file][str(row)])

"""Compare sketches of results, and derive the expected float32 results from the recorded float64 results."""

from __future__ import annotations

from typing import Any

import pytest

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2}
AS_DOUBLE = "as in float64"


def first_sentence(text: str) -> str:
    """Return the first sentence of torch's message, with gradlab's name and without torch's source location."""
    sentence = text.partition("\n")[0].partition(" (Triggered internally")[0].partition(". ")[0]
    return sentence.removesuffix(".").replace("torch.", "gradlab.")


def in_gradlab_names(value: Any) -> Any:
    return value.replace("torch.", "gradlab.") if isinstance(value, str) else value


def assert_same(found: Any, expected: Any, where: str = "", share: float = 1.0) -> None:
    """Assert that two sketches are equal, with numbers within a share of the tolerance of their dtype."""
    if isinstance(expected, dict) and "sums" in expected:
        assert {k: v for k, v in found.items() if k != "sums"} == {k: v for k, v in expected.items() if k != "sums"}, where
        magnitude = expected["sums"][0]
        bound = share * TOLERANCE[expected["dtype"]] * (magnitude + 1e-3 * max(1, len(expected["shape"])))
        assert all(abs(a - b) <= bound for a, b in zip(found["sums"], expected["sums"], strict=True)), (
            f"{where}: {found['sums']} is not {expected['sums']}"
        )
    elif isinstance(expected, dict):
        assert list(found) == list(expected), f"{where}: {found} is not {expected}"
        for key, value in expected.items():
            assert_same(found[key], value, f"{where} {key}", share)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]", share)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=share * 2e-5, nan_ok=True), where
    else:
        assert in_gradlab_names(found) == in_gradlab_names(expected), where


def assert_agrees(found: Any, expected: Any, share: float = 1.0) -> None:
    """Assert that two results agree. Errors and warnings must have the same type and first sentence."""
    found, expected = dict(found), dict(expected)
    for texts in ("raised", "warned"):
        ours, theirs = found.pop(texts, []), expected.pop(texts, [])
        assert len(ours) == len(theirs), f"{texts}: {ours} is not {theirs}"
        for one, other in zip(ours, theirs, strict=True):
            assert one.replace("torch.", "gradlab.").startswith(first_sentence(other)), (
                f"{texts}: {one!r} does not start as {other!r}"
            )
    assert_same(found, expected)


def as_float32(data: Any) -> Any:
    """Convert a float64 result to the expected float32 result: the same numbers, without second derivatives."""
    if isinstance(data, dict):
        made = {key: as_float32(value) for key, value in data.items() if key != "second derivatives"}
        return made | {"dtype": "float32"} if made.get("dtype") == "float64" else made
    return [as_float32(part) for part in data] if isinstance(data, list) else data


def float64_title(title: str) -> str:
    """Return the title of the same row in float64."""
    return f"{title.removesuffix('float32')}float64"


def condense(rows: dict[str, Any]) -> None:
    """Replace each float32 row that agrees with its float64 row, within half the tolerance, by AS_DOUBLE."""
    for title, data in rows.items():
        if title.endswith(" float32") and data != AS_DOUBLE and float64_title(title) in rows:
            try:
                assert_agrees(data, as_float32(rows[float64_title(title)]), share=0.5)
            except AssertionError:
                continue
            rows[title] = AS_DOUBLE


def expected_data(rows: dict[str, Any], title: str) -> Any:
    """Return the expected result of a row."""
    return as_float32(rows[float64_title(title)]) if rows[title] == AS_DOUBLE else rows[title]

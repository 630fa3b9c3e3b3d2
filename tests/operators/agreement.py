"""When two sketches of an operator's results agree, and which rows in single precision need no record of their own."""

from __future__ import annotations

from typing import Any

import pytest

TOLERANCE = {"float64": 1e-9, "float32": 2e-5, "float16": 2e-2}
AS_DOUBLE = "as in float64"


def words(text: str) -> str:
    """The sentence that a search finds, in gradlab's name. What follows it is ours; where it is in torch's sources, torch's."""
    sentence = text.partition("\n")[0].partition(" (Triggered internally")[0].partition(". ")[0]
    return sentence.removesuffix(".").replace("torch.", "gradlab.")


def named(value: Any) -> Any:
    return value.replace("torch.", "gradlab.") if isinstance(value, str) else value


def assert_same(found: Any, expected: Any, where: str = "", share: float = 1.0) -> None:
    """Equal, numbers to within a share of the tolerance of their precision."""
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
        assert named(found) == named(expected), where


def assert_agrees(found: Any, expected: Any, share: float = 1.0) -> None:
    """Same data; of errors and warnings, the same type and first sentence."""
    found, expected = dict(found), dict(expected)
    for texts in ("raised", "warned"):
        ours, theirs = found.pop(texts, []), expected.pop(texts, [])
        assert len(ours) == len(theirs), f"{texts}: {ours} is not {theirs}"
        for one, other in zip(ours, theirs, strict=True):
            assert one.replace("torch.", "gradlab.").startswith(words(other)), f"{texts}: {one!r} does not start as {other!r}"
    assert_same(found, expected)


def narrowed(data: Any) -> Any:
    """What a row in float64 says of the same row in float32: the same numbers, of its dtype, and no second derivatives."""
    if isinstance(data, dict):
        made = {key: narrowed(value) for key, value in data.items() if key != "second derivatives"}
        return made | {"dtype": "float32"} if made.get("dtype") == "float64" else made
    return [narrowed(part) for part in data] if isinstance(data, list) else data


def partner(title: str) -> str:
    """The title of the same row in float64."""
    return f"{title.removesuffix('float32')}float64"


def condense(rows: dict[str, Any]) -> None:
    """Put AS_DOUBLE for each row in float32 that follows, to half the tolerance, from the one in float64."""
    for title, data in rows.items():
        if title.endswith(" float32") and data != AS_DOUBLE and partner(title) in rows:
            try:
                assert_agrees(data, narrowed(rows[partner(title)]), share=0.5)
            except AssertionError:
                continue
            rows[title] = AS_DOUBLE


def expected(rows: dict[str, Any], title: str) -> Any:
    """What a row is to do."""
    return narrowed(rows[partner(title)]) if rows[title] == AS_DOUBLE else rows[title]

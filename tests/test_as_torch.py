"""Compare gradlab with recorded results of PyTorch: worked examples, node names, error texts, result dtypes.

The cases are in `spellings.py`, their results in `expected/`.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from recorded import rows, titles_recorded_by
from spellings import TOPICS

import gradlab

RECORDED = {topic: rows(topic) for topic in TOPICS}


def first_sentence(text: str) -> str:
    """Return the first sentence of torch's message, with gradlab's name. Gradlab's messages may continue after it."""
    return text.partition(". ")[0].removesuffix(".").replace("torch.", "gradlab.")


def assert_agrees(found: Any, expected: Any) -> None:
    """Assert equal structure and texts, floats up to float32's rounding, and the first sentence of errors."""
    if isinstance(expected, dict) and "raised" in expected:
        *kind, message = found["raised"]
        *expected_kind, text = expected["raised"]
        assert kind == expected_kind and message.startswith(first_sentence(text))
        return
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_agrees(one, other)
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=2e-6, abs_tol=2e-7)
    else:
        assert found == (expected.replace("torch.", "gradlab.") if isinstance(expected, str) else expected)


@pytest.mark.parametrize("name", RECORDED["seeds"])
def test_seeds(name: str) -> None:
    assert_agrees(TOPICS["seeds"][name](gradlab), RECORDED["seeds"][name])


@pytest.mark.parametrize("name", RECORDED["sessions"])
def test_sessions(name: str) -> None:
    assert_agrees(TOPICS["sessions"][name](gradlab), RECORDED["sessions"][name])


@pytest.mark.parametrize("spelling", RECORDED["node_names"])
def test_node_names(spelling: str) -> None:
    assert TOPICS["node_names"][spelling](gradlab) == RECORDED["node_names"][spelling]


@pytest.mark.parametrize("name", RECORDED["errors"])
def test_errors(name: str) -> None:
    """The type and the first sentence must agree. A hint may follow."""
    kind, message = TOPICS["errors"][name](gradlab)
    expected_kind, expected = RECORDED["errors"][name]
    assert kind == expected_kind
    assert message.startswith(first_sentence(expected))


@pytest.mark.parametrize("name", RECORDED["promotion"])
def test_promotion(name: str) -> None:
    assert TOPICS["promotion"][name](gradlab) == RECORDED["promotion"][name]


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_recorded_is_what_torch_does(topic: str) -> None:
    torch = pytest.importorskip("torch")
    for name in titles_recorded_by(topic, torch):
        assert json.loads(json.dumps(TOPICS[topic][name](torch))) == RECORDED[topic][name], name

"""Compare layers with recordings of PyTorch: repr, initial values, outputs, gradients, errors and warnings.

The lines are in `layers_cases.py`, PyTorch's results in `expected/`.
"""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import pytest
from layers_cases import TOPICS
from recorded import rows, titles_recorded_by

import gradlab
from gradlab.nn.modules.sequences import SEQUENCES

RECORDED = {topic: rows(f"nn/{topic}") for topic in TOPICS}
WHOLE = {f"{one.__name__}Backward" for one in SEQUENCES.values()}  # a layer of all steps is one node


def agree(found: Any, expected: Any, at: str = "") -> None:
    """Check that structure and texts agree, and floats to the last digits of float32."""
    if isinstance(expected, dict):
        assert list(found) == list(expected), at
        for key, value in expected.items():
            agree(found[key], value, f"{at}.{key}")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), (at, found, expected)
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            agree(one, other, f"{at}[{i}]")
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=2e-5, abs_tol=4e-6) or (found != found and expected != expected), (
            at,
            found,
            expected,
        )
    elif at == ".grad_fn" and found in WHOLE:
        assert expected == "StackBackward0", at  # of the steps, which are recorded if there are observers
    else:
        assert found == (expected.replace("torch.", "gradlab.") if isinstance(expected, str) else expected), at


def first_sentence(text: str) -> str:
    """Return the first sentence, which is PyTorch's, with the name of gradlab."""
    return text.partition(". ")[0].removesuffix(".").replace("torch.", "gradlab.").rstrip()


def same_error(found: list[str], expected: list[str]) -> None:
    """Check the type and the first sentence of the error, or the warnings."""
    if expected and expected[0].endswith("Error"):
        assert found[0] == expected[0]
        assert found[1].startswith(first_sentence(expected[1])), (found[1], expected[1])
    else:
        assert [first_sentence(text) for text in found] == [first_sentence(text) for text in expected]


@pytest.mark.parametrize("line", RECORDED["layers"])
def test_layers(line: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agree(TOPICS["layers"][line](gradlab), RECORDED["layers"][line])


@pytest.mark.parametrize("line", RECORDED["layer_errors"])
def test_errors(line: str) -> None:
    same_error(TOPICS["layer_errors"][line](gradlab), RECORDED["layer_errors"][line])


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_the_recording_is_torchs(topic: str) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in titles_recorded_by(f"nn/{topic}", torch):
            agree(
                json.loads(json.dumps(TOPICS[topic][line](torch)).replace("torch.", "gradlab.")),
                json.loads(json.dumps(RECORDED[topic][line]).replace("torch.", "gradlab.")),
                line,
            )

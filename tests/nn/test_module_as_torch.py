"""Compare modules, containers, initialisation and nn.utils with recordings of PyTorch."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from module_cases import CASES
from recorded import rows, titles_recorded_by

import gradlab

RECORDED = rows("nn/modules")


def assert_agrees(found: Any, expected: Any, package: str = "gradlab") -> None:
    """Check that structure and texts agree, and floats to the last digits of float32.

    Texts name gradlab instead of torch. Only the first sentence of an error is compared.
    """
    if isinstance(expected, dict) and "raised" in expected:
        assert isinstance(found, dict) and "raised" in found, f"{expected['raised']} expected, got {found}"
        kind, text = expected["raised"]
        text = text.replace("torch", package)
        text = text if "state_dict for" in text else text.partition(". ")[0]
        assert found["raised"][0] == kind and found["raised"][1].startswith(text.removesuffix(".")), (found["raised"], text)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_agrees(found[key], expected[key], package)
    elif isinstance(expected, list):
        assert len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            assert_agrees(one, other, package)
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=2e-6, abs_tol=2e-6) or (math.isnan(found) and math.isnan(expected))
    elif isinstance(expected, str):
        assert found == expected.replace("torch.", f"{package}.")
    else:
        assert found == expected


@pytest.mark.parametrize("name", CASES)
def test_does_what_torch_does(name: str) -> None:
    assert_agrees(json.loads(json.dumps(CASES[name](gradlab))), RECORDED[name])


@pytest.mark.oracle
def test_recorded_is_what_torch_does() -> None:
    torch = pytest.importorskip("torch")
    for name in titles_recorded_by("nn/modules", torch):
        assert_agrees(json.loads(json.dumps(CASES[name](torch))), RECORDED[name], package="torch")  # processors round differently

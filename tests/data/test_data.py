"""Datasets, samplers and loaders do what PyTorch 2.13 was recorded to do: the same items in the same order under a seed.

The cases are in `data_cases.py`, what torch made of them in `expected/`, written by `record_data.py`.
"""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import data_cases
import pytest

import gradlab

TOPICS = data_cases.TOPICS
CASES = [(topic, name) for topic, cases in TOPICS.items() for name in cases]
RECORDED = {topic: json.loads((Path(__file__).parent / "expected" / f"{topic}.json").read_text()) for topic in TOPICS}


def in_gradlab(data: Any) -> Any:
    return json.loads(json.dumps(data).replace("torch.", "gradlab."))


@pytest.mark.parametrize(("topic", "name"), CASES)
def test_as_recorded(topic: str, name: str) -> None:
    found, expected = in_gradlab(TOPICS[topic][name](gradlab)), in_gradlab(RECORDED[topic][name])
    if isinstance(expected, dict) and "raised" in expected:
        (kind, text), (wanted_kind, wanted) = found["raised"], expected["raised"]
        assert kind == wanted_kind and text.startswith(wanted.partition(". ")[0].removesuffix("."))
    else:
        assert found == expected


def test_every_case_is_recorded() -> None:
    for topic, cases in TOPICS.items():
        assert list(cases) == list(RECORDED[topic]), "run python tests/data/record_data.py"


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_recorded_is_what_torch_does(topic: str) -> None:
    torch = pytest.importorskip("torch")
    for name, case in TOPICS[topic].items():
        assert json.loads(json.dumps(case(torch))) == RECORDED[topic][name], name


def test_torch_utils_data_is_found() -> None:
    program = ("import gradlab; gradlab.as_torch()\n"
               "import torch, torch.optim as optim\n"
               "from torch.utils.data import DataLoader, TensorDataset\n"
               "from torch.optim.lr_scheduler import StepLR\n"
               "from torch.optim import Adam\n"
               "assert torch.utils.data.DataLoader is gradlab.utils.data.DataLoader is DataLoader\n"
               "assert optim.Adam is gradlab.optim.Adam is Adam")
    subprocess.run([sys.executable, "-c", program], check=True)

"""Compare datasets, samplers and loaders with recordings of PyTorch: the same items in the same order for a seed.

The cases are in `data_cases.py`, PyTorch's results in `expected/`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import data_cases
import pytest
from recorded import rows, titles_recorded_by

import gradlab

TOPICS = data_cases.TOPICS
CASES = [(topic, name) for topic, cases in TOPICS.items() for name in cases]
RECORDED = {topic: rows(f"data/{topic}") for topic in TOPICS}


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


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_recorded_is_what_torch_does(topic: str) -> None:
    torch = pytest.importorskip("torch")
    for name in titles_recorded_by(f"data/{topic}", torch):
        assert json.loads(json.dumps(TOPICS[topic][name](torch))) == RECORDED[topic][name], name


@pytest.mark.e2e
def test_torch_utils_data_is_found() -> None:
    program = (
        "import gradlab; gradlab.as_torch()\n"
        "import torch, torch.optim as optim\n"
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "from torch.optim.lr_scheduler import StepLR\n"
        "from torch.optim import Adam\n"
        "assert torch.utils.data.DataLoader is gradlab.utils.data.DataLoader is DataLoader\n"
        "assert optim.Adam is gradlab.optim.Adam is Adam"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

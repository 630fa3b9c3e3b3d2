"""README's first cell, on a PyTorch model, gets the report that README shows."""

import re
from pathlib import Path

import pytest

from gradlab.explore.doctor.session import NOTEBOOK

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Using a target size")]

README = Path(__file__).parents[2] / "README.md"
SETUP = """import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.MSELoss()
x = torch.linspace(-2, 2, 32)[:, None]
"""


@pytest.mark.parametrize("healthy", [False, True])
def test_the_first_cell(shell, healthy):
    if not README.is_file():
        pytest.skip("README is not installed with the tests")
    text = README.read_text("utf-8")
    cell = next(code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if code.startswith("%%grad\nfor"))
    said = " ".join(line[2:] for line in text.splitlines() if line.startswith("> ")).replace("**", "")
    targets = "torch.sin(2 * x)" + ("" if healthy else "[:, 0]")
    shell.ok(f"{SETUP}batches = [(x, {targets})] * 20")
    shell.ok(cell)
    if healthy:
        assert NOTEBOOK.last.findings == ()
    else:
        assert str(NOTEBOOK.last).startswith(said), str(NOTEBOOK.last)

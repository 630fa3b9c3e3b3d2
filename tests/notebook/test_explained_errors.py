"""The doctor's findings on an error are shown below it as soon as the cell has failed."""

from __future__ import annotations

import pytest

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
MAGICS = ["%%grad", "%%doctor", "%%watch"]
START = """
import {library} as torch
from {library} import nn
F = nn.functional
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
x, w = torch.ones(16, 3), torch.ones(3, requires_grad=True)
"""
FAULTS = {  # a cell that raises, and words in its output
    "loss = model(x).mean()\nloss.backward()": ("model[0]", "line 2", "4 features"),
    "norm = nn.BatchNorm1d(3)\nloss = norm(x[:1]).sum()\nloss.backward()": ("norm", "BatchNorm1d", "line 3", "[1, 3]"),
    "y = torch.sigmoid(w)\nloss = (y * y).sum()\ny.add_(1)\nloss.backward()": ("y.add_(1)", "line 4"),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("magic", MAGICS)
@pytest.mark.parametrize("cell", FAULTS)
def test_the_explanation_follows_the_error(shell, library, magic, cell):
    shell.ok(START.format(library=library))
    ran = shell.run(f"{magic}\n{cell}")
    assert ran.error is not None
    said = ran.text + ran.stdout
    assert all(word in said for word in FAULTS[cell]), said
    if magic != "%%doctor":  # %%doctor shows its own diagnosis
        page = ran.outputs[-1]["text/html"]
        assert "Problem" in page and all(word in page for word in FAULTS[cell])


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_explanation_matches_percent_doctor(shell, library):
    shell.ok(START.format(library=library))
    below = shell.run("%%grad\n" + next(iter(FAULTS))).text
    asked = str(shell.ok("%doctor").result)
    assert "No parameter has a `.grad`" not in asked
    message, kind = below.splitlines()[0].split("  ")[1:]
    assert message in asked.replace("`", "") and asked.splitlines()[0].endswith(kind)


@pytest.mark.parametrize("magic", ["%%grad", "%%watch"])
@pytest.mark.parametrize(
    "cell", ["1 / 0", "undefined", "raise KeyboardInterrupt", "model(torch.ones(2, 4)).mean().backward()\n1 / 0"]
)
def test_unknown_errors_have_no_explanation(shell, magic, cell):
    shell.ok(START.format(library="gradlab"))
    ran = shell.run(f"{magic}\n{cell}")
    assert ran.error is not None
    assert not any("Problem" in bundle.get("text/plain", "") for bundle in ran.outputs), ran.text
    assert "Nothing was found" not in ran.text


@pytest.mark.parametrize(
    "cell", ["1 / 0", "loss = {}['a']\nloss.backward()", "model(x[:, :1].expand(16, 4)).mean().backward()\n1 / 0"]
)
def test_a_doctor_cell_names_an_error_that_it_cannot_explain(shell, cell):
    shell.ok(START.format(library="gradlab"))
    ran = shell.run(f"%%doctor\n{cell}")
    assert "The run ended at" in ran.text and "has no rule for this error" in ran.text
    assert "backward()" not in ran.text.replace("loss.backward()", "")
    assert "has no rule for this error" in str(shell.ok("%doctor").result)


def test_errors_about_options_have_no_explanation(shell):
    shell.ok(START.format(library="gradlab"))
    ran = shell.run("%%grad --nonsense\n" + next(iter(FAULTS)))
    assert ran.error is not None and not ran.outputs


def test_a_quiet_cell_shows_no_explanation(shell):
    shell.ok(START.format(library="gradlab"))
    assert not shell.run("%%grad -q\n" + next(iter(FAULTS))).outputs


def test_text_of_the_user_is_escaped(shell):
    shell.ok(START.format(library="gradlab"))
    ran = shell.run("%%grad\nheads = {'<img src=x>': model[0]}\nloss = heads['<img src=x>'](x).sum()\nloss.backward()")
    page = ran.outputs[-1]["text/html"]
    assert "<img src=x" not in page and "&lt;img src=x&gt;" in page, page
    assert "heads['<img src=x>'](x)" in ran.text

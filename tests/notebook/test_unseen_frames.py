"""Warnings and tracebacks of a recorded program have the same lines as without recording, and no frame of gradlab."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import traceback
import warnings
from pathlib import Path

import pytest
from grouped import exhaustive_after_first

import gradlab as gl
from gradlab.diagnose.sites import is_gradlab_file

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

HOME = str(Path(gl.__file__).parent)
MAGICS = ["%%grad", "%%doctor", "%%watch"]
START = """
import warnings, sys
import torch
from torch import nn
import torch.nn.functional as F
w = torch.ones(4, requires_grad=True)
p, t = torch.ones(64, 1, requires_grad=True), torch.ones(64)
"""
# A line that warns, directly or through a function and a module of the program; "here" marks the line of the warning.
LINES = {
    "broadcast": "F.mse_loss(p, t)",
    "in a module": "nn.MSELoss()(p, t)",
    "no dim": "F.softmax(p)",
    "no dim, in a module": "nn.Softmax()(p)",
    "grad of a non-leaf": "(w * 2).grad",
    "a tensor of a tensor": "torch.tensor(w)",
    "T of three dimensions": "torch.ones(2, 3, 4).T",
    "range": "torch.range(0, 3)",
    "complex to real": "(w * 1j).to(torch.float32)",
    "out is resized": "torch.add(t, t, out=torch.ones(2))",
    "number of a tensor": "[float(x) for x in w][0]",
    "scheduler": "torch.optim.lr_scheduler.StepLR(torch.optim.SGD([w], 0.1), 1).step()",
}
RECORDED = """
def inner():
    return {line}
seen = []
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    {line}
    inner()
for one in caught:
    name = "here" if one.filename == inner.__code__.co_filename else one.filename
    seen.append((one.category.__name__, str(one.message)[:60], name, one.lineno))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("default")
    for _ in range(3):
        {line}
once = [one.lineno for one in caught if one.filename == inner.__code__.co_filename]
(w * 2).sum().backward()
"""


def record_run(shell, magic, line):
    """Return the warnings of a cell, caught by the cell itself."""
    torch.set_warn_always(True)  # otherwise warnings of C++ are given once in a process
    try:
        shell.ok(START)
        shell.ok(magic + RECORDED.format(line=line))
    finally:
        torch.set_warn_always(False)
    return shell.ns["seen"], shell.ns["once"]


@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
@pytest.mark.parametrize("magic", MAGICS)
def test_warnings_match_the_plain_cell(shell, magic, line):
    plain, once = record_run(shell, "# a plain cell", line)
    assert plain, "the line warns"
    seen, once_seen = record_run(shell, magic, line)
    assert not [name for _, _, name, _ in seen if is_gradlab_file(name)], seen
    assert [one for one in seen if "here" in one] == [one for one in plain if "here" in one]
    assert [one[:2] for one in seen] == [one[:2] for one in plain]
    assert once_seen == once


def test_a_warning_that_is_an_error_ends_in_the_users_line(shell):
    shell.ok(START)
    ran = shell.run('%%grad\nwarnings.simplefilter("error")\nloss = F.mse_loss(p, t)\nloss.backward()')
    shell.ok("warnings.resetwarnings()")
    assert isinstance(ran.error, UserWarning)
    assert "recording_torch" not in ran.stdout + ran.stderr and "loss = F.mse_loss(p, t)" in ran.stdout + ran.stderr


FAILING = {
    "operation": "torch.ones(3, requires_grad=True) * torch.ones(4)",
    "function of a module": "F.linear(torch.ones(2, 3), torch.ones(4, 5, requires_grad=True))",
    "module": "nn.Sequential(nn.Linear(4, 2))(torch.ones(2, 3))",
    "backward": "torch.ones(3).sum().backward()",
    "autograd.grad": "torch.autograd.grad(w.sum(), t)",
    "conversion": "w.numpy()",
}


@pytest.mark.parametrize("line", FAILING.values(), ids=FAILING)
@pytest.mark.parametrize("magic", MAGICS)
def test_errors_show_no_frame_of_gradlab(shell, magic, line):
    shell.ok(START + "import traceback")
    caught = f"try:\n    {line}\nexcept Exception:\n    text = traceback.format_exc()"
    ran = shell.run(f"{magic}\nbefore = w.sum()\nbefore.backward(retain_graph=True)\n{caught}\n{line}")
    assert ran.error is not None
    for text in (shell.ns["text"], "".join(traceback.format_exception(ran.error)).partition("run_code")[2], ran.stdout):
        assert HOME not in text, text
        assert "__gradlab" not in text, text


@pytest.mark.parametrize("magic", MAGICS)
def test_an_error_on_the_second_line_shows_the_first_as_typed(shell, magic):
    shell.ok(START)
    ran = shell.run(f"{magic}\ntorch.ones(3, requires_grad=True) * torch.ones(4)")
    assert "__gradlab" not in ran.stdout and magic in ran.stdout, ran.stdout


def test_under_tracing():
    with gl.tracing(), pytest.raises(RuntimeError) as caught:
        torch.ones(3, requires_grad=True) * torch.ones(4)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)] == ["test_under_tracing"]
    with gl.tracing(), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        torch.nn.functional.mse_loss(torch.ones(3, 1, requires_grad=True), torch.ones(3))
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize("fails", exhaustive_after_first("p.grad.sum() @ p", "loss.backward()", "F.linear(p, torch.ones(3, 3))"))
def test_a_script(tmp_path, fails):
    """Under `gradlab doctor`, a script writes the same warnings and tracebacks to standard error as under Python."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import torch
            import torch.nn.functional as F
            p = torch.ones(64, 1, requires_grad=True)
            loss = F.mse_loss(p, torch.ones(64, 2))
            loss.backward()
            {fails}
            """
        ).replace("{fails}", fails)
    )
    alone = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False).stderr
    watched = subprocess.run(
        [sys.executable, "-m", "gradlab", "doctor", str(script)], capture_output=True, text=True, check=False
    )
    assert "UserWarning" in alone and "Traceback" in alone
    assert alone in watched.stderr, watched.stderr


def test_frames_are_released():
    """Source locations of a program do not keep its names alive."""
    from gradlab.explore.trace.recorder import Recorder

    space = {"torch": torch}
    with Recorder(lambda: space) as recorder:
        exec("(torch.ones(3, requires_grad=True) * 2).sum().backward()", space)
        recording = recorder._recordings["torch"]
        assert recording._places._calls
    assert not recording._places._calls

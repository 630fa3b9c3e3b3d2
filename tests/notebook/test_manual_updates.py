"""An update by hand is reported once, by its statement, with the leaves that it changed."""

from __future__ import annotations

import pytest

LIBRARIES = ["gradlab", pytest.param("torch", marks=pytest.mark.torch)]
START = """
import {library} as torch
w, b, c = (torch.ones(n, requires_grad=True) for n in (3, 2, 4))
params = [w, b, c]
"""
CELL = """%%grad -o report
loss = (w**2).sum() + (b**3).sum() + (c**2).sum()
loss.backward()
{update}
"""
UPDATES = {
    "data +=": "for p in params:\n    p.data += -0.1 * p.grad",
    "data is set": "for p in params:\n    p.data = p.data - 0.1 * p.grad",
    "no_grad": "with torch.no_grad():\n    for p in params:\n        p -= 0.1 * p.grad",
    "sub_": "for p in params:\n    p.data.sub_(0.1 * p.grad)",
    "add_": "for p in params:\n    p.data.add_(p.grad, alpha=-0.1)",
    "copy_": "with torch.no_grad():\n    for p in params:\n        p.copy_(p - 0.1 * p.grad)",
    "items": "for p in params:\n    p.data[:] = p.data - 0.1 * p.grad",
    "detach": "for p in params:\n    p.detach().sub_(0.1 * p.grad)",
}


def writes(report):
    return [event for event in report.trace.events if event.kind == "write"]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_each_leaf_is_reported_once(shell, library, update):
    shell.ok(START.format(library=library))
    text = shell.ok(CELL.format(update=update)).text
    statement = update.splitlines()[-1].strip()
    assert [event.names for event in writes(shell.ns["report"])] == [("w",), ("b",), ("c",)]
    assert text.count(" has changed ") == 1, text
    assert f"{statement} (line {3 + len(update.splitlines())}) has changed c, b and w." in text, text


@pytest.mark.torch
def test_several_at_once(shell):
    pytest.importorskip("torch")
    shell.ok(START.format(library="torch"))
    update = "with torch.no_grad():\n    torch._foreach_add_(params, [p.grad for p in params], alpha=-0.1)"
    shell.ok(CELL.format(update=update))
    assert [event.names for event in writes(shell.ns["report"])] == [("w", "b", "c")]


@pytest.mark.parametrize("library", LIBRARIES)
def test_two_statements_are_two(shell, library):
    """Also if a loop runs one of them twice."""
    shell.ok(START.format(library=library))
    update = "for _ in range(2):\n    w.data -= 0.1 * w.grad\nw.data *= 0.9"
    text = shell.ok(CELL.format(update=update)).text
    assert len(writes(shell.ns["report"])) == 3
    assert "w.data -= 0.1 * w.grad (line 5) has changed w, and w.data *= 0.9 (line 6) has changed w." in text, text

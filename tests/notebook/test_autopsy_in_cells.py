"""Inside `%%grad`, errors about gradients, reports and graphs name the lines of the cell."""

from __future__ import annotations

import re

import pytest
from leftovers import active_observers

from gradlab.core.observers import observers

LEAF = "x = gl.tensor([1., 2., 3.], requires_grad=True)"


@pytest.fixture
def cell(shell):
    shell.ok(LEAF)
    yield shell
    assert observers.active == () and not active_observers()


def test_a_write_to_a_saved_tensor(cell):
    ran = cell.run("%%grad\ny = x.exp()\ny += 1\ny.sum().backward()")
    assert isinstance(ran.error, RuntimeError)
    for said in (
        "saved    cell line 2: `y = x.exp()` (its result, at version 0)",
        "modified cell line 3: `y += 1`",
        "fix      write `y = y + 1` instead of `y += 1` on line 3",
    ):
        assert said in str(ran.error) and said in ran.stdout + ran.stderr


def test_a_backward_called_by_the_magic_gives_the_same_error(cell):
    ran = cell.run("%%grad\ny = x.exp()\ny += 1\ny.sum()")
    assert "modified cell line 3: `y += 1`" in str(ran.error)
    assert "modified cell line 3: `y += 1`" in ran.stdout + ran.stderr


def test_a_second_backward_in_a_later_cell(cell):
    cell.ok("%%grad\nloss = x.exp().sum()\nloss.backward()")
    number = cell.ip.execution_count - 1
    ran = cell.run("loss.backward()")
    assert f"freed    cell In[{number}] line 2, `x.exp()` in `loss = x.exp().sum()` (ExpBackward0)" in str(ran.error)
    assert f"by       cell In[{number}] line 3: `loss.backward()`" in str(ran.error)


def test_a_loss_without_history(cell):
    ran = cell.run("%%grad\nwith gl.no_grad():\n    h = x * 2\nh.sum().backward()")
    assert "lost     cell line 3: `h = x * 2`" in str(ran.error)


@pytest.mark.parametrize("line", ["x.detach().sum()", "(x.data * 2).sum()"])
def test_the_line_magic(cell, line):
    ran = cell.ok(f"%grad {line}")
    assert "its history was lost at %grad" in ran.text and line in ran.text


def test_functions_of_earlier_cells_are_named_by_their_cell(cell):
    number = cell.ip.execution_count
    cell.ok("def broken(t):\n    h = t.sigmoid()\n    h[0] = 0\n    return h.sum()")
    ran = cell.run("%%grad\nbroken(x)")
    assert f"modified cell In[{number}] line 3: `h[0] = 0`" in str(ran.error)
    assert f"before In[{number}] line 3" in str(ran.error)


def test_recording_ends_with_the_cell(cell):
    for body in ("y = x.exp()", "1 / 0", "raise KeyboardInterrupt", "import sys; sys.exit()"):
        cell.run(f"%%grad\n{body}")
        assert observers.active == () and not active_observers()
    cell.ok("z = x.exp()")
    assert not hasattr(cell.ns["z"].node, "site")
    assert hasattr(cell.ns["y"].node, "site")


def test_outside_grad_the_error_says_how_to_see_the_lines(cell):
    ran = cell.run("y = x.exp()\ny += 1\ny.sum().backward()")
    assert str(ran.error).endswith("To see the lines, run it inside `with gl.record_sites():` or in a %%grad cell.")


def test_markup_in_the_source_is_escaped(cell):
    ran = cell.ok("%%grad\nx.detach().sum() if '<script>' else 0")
    assert all("<script>" not in bundle.get("text/html", "") for bundle in ran.outputs)


def test_rows_and_graph_name_the_lines(cell):
    ran = cell.ok("%%grad h -o r\nh = x * 2\nloss = h.exp().sum()")
    assert "computed at cell line 2" in ran.outputs[0]["text/plain"]
    graph = ran.text
    assert re.search(r"ExpBackward0  3  .*cell line 3", graph) and re.search(r"h = ×  MulBackward0  3  .*cell line 2", graph)


def test_a_graph_without_history(cell):
    ran = cell.run("%%grad\nh = (x * 2).detach()\ngl.graph(h)")
    said = "no graph behind h (float32, 3). Its history was lost at cell line 2: `h = (x * 2).detach()`; detach()"
    assert said in str(ran.error)

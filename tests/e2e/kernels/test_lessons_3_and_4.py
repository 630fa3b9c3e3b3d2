"""Statements of lessons 3 and 4 that their cells do not show, and the cell that is filled in by hand."""

from __future__ import annotations

import numpy as np
import pytest
from e2e.kernels.running import nbclient, nbformat, read

import gradlab as gl
from gradlab.homework.replies import lesson_3

BY_CODE = """std_bar = 1
v_bar = std_bar / (2 * std)
s_bar = v_bar / 4
q_bar = s_bar * gl.ones(5)
d_bar = q_bar * 2 * d
m_bar = -d_bar.sum()
x_bar = d_bar + m_bar / 5"""
BY_NUMBERS = """v_bar = 0.25
s_bar = 0.0625
q_bar = [0.0625] * 5
d_bar = -0.25, -0.25, 0, 0.25, 0.25
m_bar = 0
x_bar = [-0.25, -0.25, 0, 0.25, 0.25]"""
WRONG = """v_bar = 4
s_bar = 0.25
q_bar = 0.0625
d_bar = [-0.125, -0.125, 0, 0.125, 0.125]
m_bar = 1.0
x_bar = 'the same'"""


@pytest.fixture(scope="module")
def by_hand():
    """Function `by_hand(filled, x=None)` that returns the verdict on the lines filled in."""
    cells = {one.id: one.source for one in read("lessons/03_chain_rule.ipynb").cells}
    notebook = nbformat.v4.new_notebook()
    client = nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False)
    with client.setup_kernel():

        def run(filled, x=None):
            six = cells["six"] if x is None else cells["six"].replace("1.0, 1.0, 3.0, 5.0, 5.0", x)
            assert x is None or six != cells["six"]
            notebook.cells = [nbformat.v4.new_code_cell(one) for one in (cells["load"], six, filled, cells["verdict"])]
            for at, one in enumerate(notebook.cells):
                client.execute_cell(one, at)
            return notebook.cells[-1].outputs[-1].data["text/plain"]

        yield run


def test_right_lines_are_right(by_hand):
    for said in (BY_CODE, BY_NUMBERS):
        assert by_hand(said).startswith("6 of 6 are right"), said
    assert by_hand(BY_CODE, "1.0, 1.0, 3.0, 5.0, 9.0").startswith("6 of 6 are right")


def test_wrong_lines_are_reported_one_by_one(by_hand):
    said = by_hand(WRONG).splitlines()
    assert said[0] == "0 of 6 are right:"
    for line, words in zip(
        said[1:],
        ("v  off by 3.8", "the 4 is missing", "shape (), expected (5,)", "the 2 of the square's", "have signs", "got a str"),
        strict=True,
    ):
        assert words in line


def test_doubling_a_column_does_not_change_its_z_scores():
    batch = gl.tensor([[1.0, 3.0], [2.0, 1.0], [3.0, 6.0], [6.0, 2.0]], dtype=gl.float64, requires_grad=True)
    z = (batch - batch.mean(0)) / batch.std(0)
    assert gl.allclose((2 * batch - 2 * batch.mean(0)) / (2 * batch).std(0), z)
    (z**3).sum().backward()
    assert batch.grad.abs().max() > 0.1
    assert (batch.grad * z).sum(0).abs().max() < 1e-12


def test_memory_and_versions_shared_after_cuts():
    s = gl.tensor([3.0]) ** 2
    detached, data = s.detach(), s.data
    version = s._version
    detached += 1
    assert s._version == version + 1 and s.item() == 10
    data += 1
    assert s._version == version + 1 and s.item() == 11
    assert isinstance(s.item(), float)


def test_saved_tensors_of_a_product_with_a_constant_factor():
    x = gl.tensor([1.0, 2.0], requires_grad=True)
    both, one = (x.sin() * x).grad_fn, (x.sin() * 3).grad_fn
    assert both._saved_self is not None and both._saved_other is not None
    assert one._saved_self is None and one._saved_other == 3


def test_a_formula_is_rendered_without_guesses(monkeypatch):
    monkeypatch.setenv("GRADLAB_READING", "1")
    cells = {one.id: one.source for one in read("lessons/03_chain_rule.ipynb").cells}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cells[name]) for name in ("load", "guess1", "reveal1")])
    nbclient.NotebookClient(notebook, timeout=120, store_widget_state=False).execute()
    (shown,) = notebook.cells[-1].outputs
    html = shown.data["text/html"]
    assert html.startswith("<details>") and "<pre>" not in html
    assert "$" in html and r"\bar{x}" in html


def test_a_reply_to_a_number_is_right():
    t = np.arange(5.0)
    for key, slope in ((tuple(t**3), "cubes"), (tuple(6 * t), "second derivative"), (((t**3).sum(),), "value of the sum")):
        assert slope in lesson_3.cubes[key]
    assert "the sum of the gradient" in lesson_3.cubes[((3 * t**2).sum(),)]
    p = 2.0
    for key, words in ((p * p + 3 * p, "the value"), (2 * p, "`p * p` alone"), (p + 3, "uses it twice"), (3, "the last use")):
        assert words in lesson_3.three_uses[key]

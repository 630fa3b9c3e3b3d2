"""Stepping through backward in JupyterLab: the live view, the kernel's numbers, and the static view after closing."""

from __future__ import annotations

import ast

import pytest
from lab import expect

SETUP = """%load_ext gradlab
import gradlab as gl
a = gl.tensor(-3.0, requires_grad=True)
b = gl.tensor(2.0, requires_grad=True)"""
CELL = """%%grad
c = a * b
d = c + b ** 3
e = d.relu()
out = 2 * e"""
SHOW = "view = gl.step_through(out).widget()\nview"


@pytest.mark.exhaustive
def test_the_live_view_and_its_static_twin(open_notebook):
    page = open_notebook([SETUP, CELL, SHOW, "gl.step_through(out)"])
    for k in range(4):
        page.run_cell(k)
    view = page.output(2).locator(".gl-stepper")
    expect(view).to_be_visible()
    twin = page.output(2).locator("[data-gradlab-twin]")
    expect(twin).to_have_count(1)
    expect(twin).to_be_hidden()
    view.get_by_role("button", name="next (→)").click()
    expect(view).to_have_attribute("data-step", "1")
    for k in range(2, 6):
        page.page.keyboard.press("ArrowRight")
        expect(view).to_have_attribute("data-step", str(k))
    expect(view.locator(".gl-sentence")).to_contain_text("line 2")
    expect(view.locator(".gl-sum b")).to_have_text("24 − 6 = 18")
    expect(view.locator(".gl-source mark")).to_have_text("a * b")
    start = view.get_by_label("starting gradient")
    start.fill("0.25")
    start.press("Enter")
    expect(view.locator(".gl-now").nth(1)).to_have_text("4.5")
    assert ast.literal_eval(page.evaluate("[view._walk.steps[-1].shares[1]['total'], b.grad.item()]")) == [4.5, 18.0]
    still = page.output(3)
    expect(still.locator("table")).to_have_count(1)
    expect(still.locator("img")).to_be_visible()
    assert "24 − 6 = 18" in still.inner_text()
    page.evaluate("view.close()")
    expect(twin).to_be_visible()
    expect(twin).to_contain_text("6 − 1.5 = 4.5")  # with the edited start
    assert page.requests_outside == []

"""The live explorer in JupyterLab: `%%grad -i` and `%graph -i` open it, clicks and keys reach the kernel, a picture is saved."""

from __future__ import annotations

import ast
import re
import shutil

import pytest
from lab import expect

SETUP = "%load_ext gradlab\nimport gradlab as gl\ngl.manual_seed(1)\na = gl.randn(3, 2, requires_grad=True)"
CELL = "%%grad -i -o report\nz = (a - a.mean(0)) / a.std(0)\nloss = (z ** 3).sum()"
NORM = "print(gl.autograd.grad(loss, z, retain_graph=True)[0].norm().item())"
HELD = "[w for found in get_ipython().magics_manager.registry['GradMagics']._widgets.values() for w in found]"


def kernel(page, expression):
    return ast.literal_eval(page.evaluate(expression))


def idle(view):
    expect(view).not_to_have_attribute("aria-busy", "true")


@pytest.mark.exhaustive
def test_a_cell_shows_its_report_and_the_explorer_in_the_place_of_the_picture(open_notebook):
    page = open_notebook([SETUP, CELL, NORM, "%graph loss -i"])
    page.run_cell(0)
    page.run_cell(1)
    view = page.output(1).locator(".gl-explorer")
    expect(view).to_be_visible()
    expect(page.output(1)).to_contain_text("backward() was called for you")  # the report is above it
    expect(page.output(1).locator(".gradlab-picture:visible")).to_have_count(0)  # the view replaces the picture
    expect(page.output(1).locator("[data-gradlab-twin] .gradlab-picture")).to_have_count(1)
    expect(view.locator(".gl-head")).to_contain_text("with respect to a · ")
    expect(view.locator(".gl-head")).to_contain_text("holds the graph")
    view.get_by_role("button", name=re.compile("^÷, DivBackward0, z ")).click()
    panel = view.get_by_role("region", name="the selected node")
    expect(panel.locator("h4")).to_have_text("z = ÷")
    expect(panel).to_contain_text("gradient ‖·‖ = ")
    assert view.locator(".gl-pane mark").all_text_contents() == ["(a - a.mean(0)) / a.std(0)"]
    idle(view)
    said = float(re.search(r"gradient ‖·‖ = (\S+)", panel.inner_text())[1])
    page.run_cell(2)
    assert said == pytest.approx(float(page.text(2)), rel=5e-3)

    # Keys that are commands in JupyterLab's command mode only reach the view.
    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    view.get_by_role("group", name=re.compile("^the operations")).focus()
    for key in ("b", "a", "d", "d", "x", "ArrowDown"):
        page.page.keyboard.press(key)
    expect(panel.locator("h4")).to_have_text("**")
    page.page.keyboard.press("/")
    page.page.keyboard.type("std")
    page.page.keyboard.press("Enter")
    expect(panel.locator("h4")).to_have_text("std(0)")
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells

    page.run_cell(3)
    second = page.output(3).locator(".gl-explorer")
    expect(second).to_be_visible()
    expect(page.output(3).locator("[data-gradlab-twin]")).to_be_hidden()
    assert kernel(page, f"len({HELD})") == 2
    page.run_cell(3)
    assert kernel(page, f"len({HELD})") == 2, "a cell that runs again closes its previous view"
    page.evaluate(f"[w.close() for w in {HELD}]")
    expect(page.output(3).locator(".gl-explorer")).to_have_count(0)
    expect(page.output(3).locator("[data-gradlab-twin]")).to_be_visible()
    assert page.requests_outside == []


def test_a_reopened_notebook_has_the_picture_and_says_how_to_make_it_live(open_notebook, jupyter):
    page = open_notebook([SETUP, "%graph (a ** 2).sum() -i"])
    page.run_cell(0)
    page.run_cell(1)
    expect(page.output(1).locator(".gl-explorer")).to_be_visible()
    page.save()
    copy = jupyter.root / "reopened.ipynb"
    shutil.copy(page.path, copy)
    again = open_notebook(copy)
    output = again.output(1)
    expect(output.locator("img.gradlab-picture")).to_be_visible()
    missing = output.locator(".jp-OutputArea-output.jupyter-widgets")
    expect(missing).to_have_css("font-size", "0px")
    said = missing.evaluate("element => getComputedStyle(element, '::after').content")
    assert said == '"Run the cell to make it live."'

"""The Jacobian widget in JupyterLab: clicks, keys, sliders reach the kernel; the static picture keeps its place."""

from __future__ import annotations

import ast

import numpy as np
from lab import expect

SETUP = """import gradlab as gl
x = gl.tensor([1., 2., 3.]).requires_grad_()
z = gl.stack([x[0] * x[1], x[1] ** 2, x[2] * x[0], x.sum()])
J = gl.jacobian(z, x)
widgets = []"""
SHOW = "widgets.append(J.widget())\nwidgets[-1]"
MATRIX = np.array([[2, 1, 0], [0, 4, 0], [3, 0, 1], [1, 1, 1]], float)


def kernel(page, expression):
    return ast.literal_eval(page.evaluate(expression))


def test_steps_sliders_keys_and_the_static_twin(open_notebook, tmp_path):
    page = open_notebook([SETUP, SHOW, "J"])
    page.run_cell(0)
    page.run_cell(1)
    view = page.output(1).locator(".gl-jacobian")
    expect(view).to_be_visible()
    twin = page.output(1).locator("[data-gradlab-twin]")
    expect(twin).to_have_count(1)
    expect(twin).to_be_hidden()
    assert kernel(page, "J.rows_known") == 0

    step = view.get_by_role("button", name="step")
    step.click()
    expect(view.locator("rect[data-filled]:not([data-i='-1'])")).to_have_count(3)
    assert kernel(page, "J.rows_known") == 1 and kernel(page, "widgets[-1].row") == 0
    assert kernel(page, "J[0].tolist()") == MATRIX[0].tolist()

    # Keys: what JupyterLab would take for its own commands in command mode must do the widget's work and nothing else.
    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    for key in ("Enter", " ", "b", "a", "d", "d", "ArrowDown", "x"):
        page.page.keyboard.press(key)
    expect(view.locator("rect[data-filled]:not([data-i='-1'])")).to_have_count(9)
    assert kernel(page, "J.rows_known") == 3
    slider = view.get_by_label("weight of z[3]")
    slider.focus()
    for _ in range(4):
        page.page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("-0.2")
    expect(view.locator(".gl-head")).to_contain_text("a mix of rows · one weighted backward")
    expect(view).to_contain_text("= 1 · row z[2] −0.2 · row z[3]")
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells
    result = kernel(page, "__import__('numpy').frombuffer(widgets[-1].result).tolist()")
    np.testing.assert_allclose(result, MATRIX[2] - 0.2 * MATRIX[3], rtol=1e-6)
    expect(view.get_by_role("list")).to_contain_text("+2.80")
    assert kernel(page, "x.grad is None"), "the widget writes no .grad"
    page.screenshot(tmp_path / "widget.png", cell=1)

    view.get_by_role("button", name="play").click()
    expect(view.locator("rect[data-filled]:not([data-i='-1'])")).to_have_count(12)
    expect(view.locator(".gl-head")).to_contain_text("all rows known")
    assert kernel(page, "J.rows_known") == 4
    np.testing.assert_array_equal(kernel(page, "J[:].tolist()"), MATRIX)

    # What is saved is the picture as it is now; closing the widget gives it back to the page.
    bundles = [output["data"] for output in page.save()["cells"][1]["outputs"]]
    assert {"text/html", "text/plain"} <= set(bundles[0]) and "image/svg+xml" not in bundles[0]
    assert "z[3]" in "".join(bundles[0]["text/plain"]) and "not computed yet" not in "".join(bundles[0]["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" in bundles[1] and "Jacobian of z (4) by x (3)" in "".join(
        bundles[1]["text/plain"]
    )
    expect(twin).to_be_hidden()
    page.evaluate("widgets[-1].close()")
    expect(view).to_have_count(0)
    expect(twin).to_be_visible()
    page.run_cell(2)
    expect(page.output(2).locator("img")).to_be_visible()
    assert page.requests_outside == []


def test_a_cell_that_runs_again_lets_the_old_graph_go(open_notebook):
    page = open_notebook([SETUP, SHOW], theme="dark")
    page.run_cell(0)
    page.run_cell(1)
    expect(page.output(1).locator(".gl-jacobian")).to_be_visible()
    background = page.output(1).locator(".gl-jacobian").evaluate("node => getComputedStyle(node).backgroundColor")
    assert max(ast.literal_eval(background.removeprefix("rgb"))) < 60, "the widget follows the dark theme"
    page.run_cell(1)
    page.page.wait_for_function("document.querySelectorAll('.gl-jacobian').length === 1")
    page.page.wait_for_timeout(3000)
    assert kernel(page, "[w.ended for w in widgets]") == [True, False]
    assert kernel(page, "[w._jacobian is None for w in widgets]") == [True, False]
    page.output(1).get_by_role("button", name="step").click()
    expect(page.output(1).locator("rect[data-filled]:not([data-i='-1'])")).to_have_count(3)

"""The Jacobian widget in JupyterLab: clicks, keys and sliders reach the kernel; the static picture is saved."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from lab import Cells, expect
from waiting import Gate, wait_until

SETUP = """import gradlab as gl, time
x = gl.tensor([1., 2., 3.]).requires_grad_()
z = gl.stack([x[0] * x[1], x[1] ** 2, x[2] * x[0], x.sum()])
J = gl.jacobian(z, x)
widgets = []"""
SHOW = "widgets.append(J.widget())\nwidgets[-1]"
MATRIX = np.array([[2, 1, 0], [0, 4, 0], [3, 0, 1], [1, 1, 1]], float)


def kernel(page, expression):
    return ast.literal_eval(page.evaluate(expression))


def open_view(page, i=1):
    for k in range(i + 1):
        page.run_cell(k)
    view = page.output(i).locator(".gl-jacobian")
    expect(view).to_be_visible()
    idle(view)
    return view


def idle(view):
    expect(view).not_to_have_attribute("aria-busy", "true")


def numbers(view):
    return [float(text.split()[1].replace("−", "-")) for text in view.locator(".gl-numbers span:not(.gl-room)").all_inner_texts()]


def test_steps_clicks_sliders_keys_columns_and_the_static_twin(open_notebook, tmp_path):
    page = open_notebook([SETUP, SHOW, "J"])
    view = open_view(page)
    head, lab = view.locator(".gl-head"), "widgets[-1]._lab"
    twin = page.output(1).locator("[data-gradlab-twin]")
    expect(twin).to_have_count(1)
    expect(twin).to_be_hidden()
    assert kernel(page, "J.rows_known") == 0

    view.get_by_role("button", name="step").click()
    expect(head).to_contain_text("row z[0] ")
    assert kernel(page, "J.rows_known") == 1 and kernel(page, f"{lab}.at") == 0
    assert numbers(view) == MATRIX[0].tolist() == kernel(page, f"{lab}.result.tolist()")

    # Keys that are commands in JupyterLab's command mode must only reach the widget.
    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    for key in ("Enter", "b", "a", "d", "d", "x"):
        page.page.keyboard.press(key)
    expect(head).to_contain_text("row z[1] ")
    view.locator(".gl-map").focus()
    page.page.keyboard.press("ArrowDown")
    expect(head).to_contain_text("row z[2] ")
    assert numbers(view) == MATRIX[2].tolist() and kernel(page, "J.rows_known") == 3
    slider = view.get_by_label("weight of z[3]", exact=True)
    slider.focus()
    for _ in range(4):
        page.page.keyboard.press("ArrowLeft")
    expect(slider).to_have_value("-0.2")
    expect(head).to_contain_text("a mix of rows · one weighted backward")
    expect(view).to_contain_text("vᵀJ = 1 · row z[2] − 0.2 · row z[3]")
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells
    idle(view)
    result = kernel(page, f"{lab}.result.tolist()")
    np.testing.assert_allclose(result, MATRIX[2] - 0.2 * MATRIX[3], rtol=1e-6)
    np.testing.assert_allclose(numbers(view), result, rtol=5e-3)

    # Drag the mouse along a slider.
    dragged = view.get_by_label("weight of z[0]", exact=True)
    dragged.scroll_into_view_if_needed()
    box = dragged.bounding_box()
    page.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.page.mouse.down()
    page.page.mouse.move(box["x"] + box["width"] - 2, box["y"] + box["height"] / 2, steps=8)
    page.page.mouse.up()
    expect(view).to_contain_text("vᵀJ = 1 · row z[0] + 1 · row z[2] − 0.2 · row z[3]")
    idle(view)
    weights = kernel(page, f"{lab}.weights.tolist()")
    assert weights == [1.0, 0, 1.0, -0.2]
    np.testing.assert_allclose(numbers(view), np.array(weights) @ MATRIX, rtol=5e-3)

    cells = Cells(view.locator(".gl-map"), [f"z[{i}]" for i in range(4)], [f"x[{j}]" for j in range(3)])
    page.page.mouse.click(*cells.beside(1, 1))
    expect(view).to_contain_text("= row z[1]")
    assert view.locator("[data-node].gl-lit > text:first-of-type").all_text_contents() == ["x", "[1]", "** 2", "stack(0)", "z"]
    page.page.mouse.move(*cells.beside(1, 1))
    expect(view.locator(".gl-read")).to_have_text("∂z[1]/∂x[1] = 4")
    assert kernel(page, "J[1].tolist()") == MATRIX[1].tolist()

    view.get_by_role("radio", name="columns").check()
    view.get_by_role("button", name="step").click()
    expect(head).to_contain_text("column x[0] · one forward sweep")
    assert numbers(view) == MATRIX[:, 0].tolist() == kernel(page, f"{lab}.result.tolist()")
    view.get_by_role("radio", name="rows").check()
    view.get_by_label("retain the graph").check()
    idle(view)
    for _ in range(2):
        view.get_by_role("button", name="step").click()
        idle(view)
    expect(view).to_contain_text("RuntimeError: Trying to backward through the graph a second time")
    expect(view).to_contain_text("have been freed")
    assert "MvBackward0" not in view.inner_text(), "the text is about this graph"
    view.get_by_label("retain the graph").uncheck()
    idle(view)
    assert kernel(page, "x.grad is None"), "the widget writes no .grad"
    page.screenshot(tmp_path / "widget.png", cell=1)

    view.get_by_role("button", name="play").click()
    expect(head).to_contain_text("all rows known")
    assert kernel(page, "J.rows_known") == 4
    np.testing.assert_array_equal(kernel(page, "J[:].tolist()"), MATRIX)
    # The saved notebook has the current picture, and closing the widget shows it again.
    idle(view)
    bundles = [output["data"] for output in page.save()["cells"][1]["outputs"]]
    assert {"text/html", "text/plain"} <= set(bundles[0]) and "image/svg+xml" not in bundles[0]
    assert "z[3]" in "".join(bundles[0]["text/plain"]) and "not computed yet" not in "".join(bundles[0]["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" in bundles[1]
    assert "".join(bundles[1]["text/plain"]) == "live view of the Jacobian of z (4) with respect to x (3)"
    expect(twin).to_be_hidden()
    page.evaluate("widgets[-1].close()")
    expect(view).to_have_count(0)
    expect(twin).to_be_visible()
    page.run_cell(2)
    expect(page.output(2).locator("img")).to_be_visible()
    assert page.requests_outside == []


@pytest.mark.exhaustive
def test_a_cell_that_runs_again_releases_the_old_graph(open_notebook):
    page = open_notebook([SETUP, SHOW], theme="dark")
    view = open_view(page)
    background = view.evaluate("node => getComputedStyle(node).backgroundColor")
    assert max(ast.literal_eval(background.removeprefix("rgb"))) < 60, "the widget follows the dark theme"
    page.run_cell(1)
    page.page.wait_for_function("document.querySelectorAll('.gl-jacobian').length === 1")
    wait_until(lambda: kernel(page, "widgets[0].ended"), "the end of the first")
    assert kernel(page, "[w.ended for w in widgets]") == [True, False]
    assert kernel(page, "[w._jacobian is None for w in widgets]") == [True, False]
    page.output(1).get_by_role("button", name="step").click()
    expect(page.output(1).locator(".gl-head")).to_contain_text("row z[0] ")


# JupyterLab may handle a widget's messages in another thread, so another running cell alone does not delay them.
SLOW = """answer = widgets[-1]._lab.answer
def late(*given):
    widgets[-1]._lab.answer = answer
    {wait}
    return answer(*given)
widgets[-1]._lab.answer = late"""
PANEL = "() => { const panel = [...jupyterapp.shell.widgets('main')].find(w => w.sessionContext && w.content.widgets);"


@pytest.mark.exhaustive
def test_a_busy_kernel_and_a_dead_one_are_reported(open_notebook, tmp_path):
    gate = Gate(tmp_path / "gate")
    page = open_notebook([SETUP, SHOW + ".timeout = 2\nwidgets[-1]", SLOW.format(wait=gate.code)])
    view = open_view(page)
    page.run_cell(2)
    view.get_by_role("button", name="step").click()
    expect(view).to_contain_text("waiting for the kernel …")
    alert = view.get_by_role("alert").first
    expect(alert).to_contain_text("The kernel does not answer. It is busy with another cell, or it has ended.")
    twin = page.output(1).locator("[data-gradlab-twin]")
    expect(twin).to_be_visible()
    gate.open()
    expect(alert).to_be_hidden()
    expect(view.locator(".gl-head")).to_contain_text("row z[0] ")
    expect(twin).to_be_hidden()
    page.page.evaluate(PANEL + " return panel.sessionContext.session.kernel.restart(); }")
    view.get_by_role("button", name="step").click()
    expect(alert).to_contain_text("The kernel does not answer")
    expect(twin).to_be_visible()


LARGE = """import gradlab as gl, numpy as np
x = gl.zeros(10_000, requires_grad=True)
y = gl.sin(x)
J = gl.jacobian(y, x, method="batched")
matrix = np.zeros((10_000, 10_000), np.float32)
matrix[1234, 8765], matrix[9999, 0] = -7.25, 3.5
J.runner.values = lambda block: matrix[block.start:block.stop]              # computed, as if by a long run
J.runner.compute()
widgets = []"""


@pytest.mark.exhaustive
def test_a_large_matrix_opens_with_its_true_extremes(open_notebook):
    page = open_notebook([LARGE, SHOW])
    page.run_cell(0)
    page.run_cell(1)
    view = page.output(1).locator(".gl-jacobian")
    expect(view.locator(".gl-scale")).to_contain_text("least −7.25 · greatest +3.50")
    go = view.get_by_label("go to row")
    go.fill("1234")
    go.press("Enter")
    expect(view).to_contain_text("= row y[1234]")
    expect(view.locator(".gl-head")).to_contain_text("row y[1234] · from known entries")


@pytest.mark.exhaustive
def test_the_saved_picture_and_text_match(open_notebook):
    """After each way of filling, and in the notebook when it is opened again."""
    wide = "wide = gl.ones(100, requires_grad=True)\ny = wide[:3] * gl.tensor([1.0, 2.0, 3.0])\n"
    page = open_notebook([SETUP, SHOW, f"{wide}gl.jacobian(y, wide, method='rows').widget()"])
    open_view(page)
    view = open_view(page, 2)

    def saved(cell, says):
        def texts():
            found = ["".join(output["data"]["text/plain"]) for output in page.save()["cells"][cell]["outputs"]]
            return found if says in found[0] else None

        return wait_until(texts, f"a picture that says {says!r}")

    small, live = saved(1, "least 0, greatest 4")
    assert "computed" not in small and "known" not in small, "a small matrix is complete before the first step"
    assert live == "live view of the Jacobian of z (4) with respect to x (3)"
    twin, _ = saved(2, "not computed yet")
    assert " 0 of" not in twin and "least" not in twin
    view.get_by_role("button", name="step").click()
    saved(2, "1 of 3 rows known")
    view.get_by_role("button", name="fill").click()
    expect(view.locator(".gl-head")).to_contain_text("all rows known")
    twin, _ = saved(2, "least 0, greatest 3")
    assert "computed" not in twin
    page.page.evaluate(PANEL + " return panel.sessionContext.shutdown(); }")
    page.page.reload()
    page.page.wait_for_function("window.jupyterapp && document.querySelector('.jp-NotebookPanel .jp-CodeCell')")
    for cell, says in ((1, "least 0, greatest 4"), (2, "least 0, greatest 3")):
        picture = page.output(cell).locator("[data-gradlab-twin] img")
        expect(picture).to_be_visible()
        assert says in picture.get_attribute("alt")
        assert "rows known" not in page.text(cell)


TRIDIAGONAL = """import gradlab as gl
x = gl.linspace(0, 1, 10_000, dtype=gl.float64).requires_grad_()
nothing = gl.zeros(1, dtype=gl.float64)
y = x * x - 0.5 * gl.cat([x[1:], nothing]) + 0.25 * gl.cat([nothing, x[:-1]])
J = gl.jacobian(y, x, method="sparse")
widgets = []"""


@pytest.mark.exhaustive
def test_a_row_of_a_tridiagonal_matrix_is_found_zoomed_and_read(open_notebook):
    page = open_notebook([TRIDIAGONAL, SHOW])
    view = open_view(page)
    go = view.get_by_label("go to row")
    go.fill("1234")
    go.press("Enter")
    expect(view.locator(".gl-meaning")).to_have_text("vᵀJ = row y[1234]; 3 of 10,000 are not zero")
    expect(go).to_have_value("y[1234]")
    idle(view)
    np.testing.assert_allclose(numbers(view), [0.25, 2 * 1234 / 9999, -0.5], rtol=5e-3)
    view.locator(".gl-map").focus()
    for _ in range(7):
        page.page.keyboard.press("+")
        idle(view)
    expect(view.locator(".gl-tools")).to_contain_text("rows y[1231] … y[1237], columns x[1231] … x[1237]")
    assert {"0.25", "0.247", "−0.5"} <= set(view.locator(".gl-map .gl-digits text").all_text_contents())
    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    go.fill("10000")
    go.press("Enter")
    expect(view).to_contain_text("There is no row 10000: rows go from 0 (y[0]) to 9999 (y[9999]).")
    expect(view.locator(".gl-head")).to_contain_text("row y[1234]")
    go.fill("dd")  # letters in a field are not commands of the notebook
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells

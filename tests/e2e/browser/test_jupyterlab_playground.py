"""The playground in JupyterLab is live, its static view is in the saved notebook, and other cells can run meanwhile."""

from __future__ import annotations

import ast

import pytest
from lab import expect
from waiting import wait_until

SETUP = "import gradlab as gl\ndef f(x):\n    return x**3 / 3 - x"
SHOW = 'P = gl.playground(f, x=(-2.4, 2.4), at={"x": 1.6}, lr=0.5)\nP'


@pytest.mark.exhaustive
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_is_live_and_its_static_view_is_saved(open_notebook, tmp_path, theme):
    page = open_notebook([SETUP, SHOW, "gl.playground(f, x=(-2.4, 2.4)).plot();"], theme=theme)
    for k in (0, 1):
        page.run_cell(k)
    view = page.output(1).locator(".gl-playground")
    expect(view.locator(".gl-head")).to_contain_text("x**3 / 3 - x at x = 1.6: −0.2347, slope 1.56")
    twin = page.output(1).locator("[data-gradlab-twin]")
    expect(twin).to_have_count(1)
    expect(twin).to_be_hidden()

    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    view.locator(".gl-take").focus()
    for key in ("ArrowLeft", "b", "a", "Shift+ArrowLeft"):
        page.page.keyboard.press(key)
    expect(view.locator(".gl-head")).to_contain_text("at x = 1.49:")
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells, "keys of the notebook still work"
    assert ast.literal_eval(page.evaluate("P.point.tolist()")) == [1.49]
    view.get_by_role("button", name="step").click()
    expect(view.locator(".gl-summary")).to_contain_text("1 step of SGD with lr = 0.5")
    page.screenshot(tmp_path / "playground.png", cell=1)

    def saved():
        return [output["data"] for output in page.save()["cells"][1]["outputs"]]

    static, live = wait_until(
        lambda: (both := saved()) and "1 step of SGD" in "".join(both[0]["text/html"]) and both, "a new picture"
    )
    assert "at x = 1.49" in "".join(static["text/plain"])
    assert "application/vnd.jupyter.widget-view+json" in live
    ground = view.evaluate("node => getComputedStyle(node).backgroundColor")
    assert (max(ast.literal_eval(ground.removeprefix("rgb"))) < 60) == (theme == "dark")
    page.run_cell(1)
    expect(page.output(1).locator(".gl-playground .gl-head")).to_contain_text("at x = 1.6")
    page.run_cell(2)
    expect(page.output(2).locator("img")).to_be_visible()
    assert page.requests_outside == [] and page.errors == []

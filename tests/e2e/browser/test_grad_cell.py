"""The report of `%%grad` in JupyterLab, in both themes and in a notebook that is not trusted."""

import json

import pytest
from grouped import exhaustive_after_first
from lab import expect
from waiting import TIMEOUT_SECONDS

SETUP = """%load_ext gradlab
import gradlab as gl
gl.manual_seed(0)
a = gl.randn(6, 4, requires_grad=True)
b = gl.randn(6, 4, requires_grad=True)"""
LOSS = """%%grad
z1 = (a - a.mean(0)) / a.std(0)
z2 = (b - b.mean(0)) / b.std(0)
loss = -gl.diagonal((z1.T @ z2) / 6).sum()"""
WRONG = "%%grad --acumulate\nprint('ran')"
EVIL = (
    "%%grad d['<script>window.evil = 1</script>$x$'] --no-graph\nd = {'<script>window.evil = 1</script>$x$': a}\n(a ** 2).sum();"
)
LOADED = "images => images.length && images.every(i => i.complete && i.naturalWidth > 0)"


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_a_report_is_visible(open_notebook, tmp_path, theme):
    page = open_notebook([SETUP, LOSS, WRONG, EVIL], theme=theme)
    for i in range(4):
        page.run_cell(i)
    output = page.output(1)
    assert "loss = " in page.text(1) and "with respect to a and b." in page.text(1)
    assert "a.grad and b.grad were set (--accumulate would add)." in page.text(1)
    expect(output.locator("tbody th")).to_have_text(["a", "b"])
    expect(output.locator("samp", has_text="z1 = (a - a.mean(0))").locator("+ span")).to_have_text("0.79")
    expect(output.locator("img")).to_have_count(7)  # four histograms, two maps, the graph
    assert output.locator("img").evaluate_all(LOADED)
    code = output.locator("pre", has_text="loss.backward()")
    expect(code).to_be_hidden()
    output.locator("summary", has_text="Equivalent code").click()
    expect(code).to_be_visible()
    assert page.evaluate("a.grad is not None and loss.grad_fn is not None") == "True"
    whole, table, picture = (found.bounding_box() for found in (output, *map(output.locator("table, img").nth, (0, -1))))
    assert picture["width"] > 300 and picture["x"] + picture["width"] <= whole["x"] + whole["width"], "the report is not cut off"
    beside, below = picture["x"] >= table["x"] + table["width"], picture["y"] >= table["y"] + table["height"]
    room = whole["width"] > table["width"] + picture["width"]
    assert beside or (below and not room), "the picture is beside the table if there is room"

    assert "UsageError: %%grad has no option --acumulate. Did you mean --accumulate?" in page.text(2) and "ran" not in page.text(
        2
    )

    assert "<script>window.evil = 1</script>$x$" in page.text(3)
    assert page.page.evaluate("window.evil === undefined")
    expect(page.output(3).locator("mjx-container, .MathJax")).to_have_count(0)
    page.screenshot(tmp_path / f"report-{theme}.png", cell=1)


@pytest.mark.exhaustive
def test_a_report_is_visible_in_a_notebook_that_is_not_trusted(open_notebook, browser, jupyter, tmp_path):
    page = open_notebook([SETUP, LOSS])
    page.run_cell(0)
    page.run_cell(1)
    notebook = page.save()
    assert {kind for output in notebook["cells"][1]["outputs"] for kind in output["data"]} == {
        "text/html",
        "text/latex",
        "text/plain",
        "image/png",
    }
    notebook["metadata"]["downloaded"] = True  # invalidates the signature
    (jupyter.root / "untrusted.ipynb").write_text(json.dumps(notebook))
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    context.set_default_timeout(TIMEOUT_SECONDS * 1000)
    copy = context.new_page()
    copy.goto(f"{jupyter.url}/lab/tree/untrusted.ipynb?token={jupyter.token}&reset")
    cell = copy.locator(".jp-NotebookPanel .jp-CodeCell").nth(1).locator(".jp-OutputArea")
    expect(cell.locator("tbody th")).to_have_text(["a", "b"])
    expect(cell.locator("img")).to_have_count(7)
    copy.wait_for_function("[...document.querySelectorAll('.jp-OutputArea img')].every(i => i.complete && i.naturalWidth > 0)")
    expect(cell).to_contain_text("with respect to a and b.")
    cell.locator("summary", has_text="Equivalent code").click()
    expect(cell.locator("pre", has_text="loss.backward()")).to_be_visible()
    copy.screenshot(path=tmp_path / "untrusted.png")
    context.close()

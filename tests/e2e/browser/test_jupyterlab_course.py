"""The course as a new student starts it: copied by `gradlab course`, opened in JupyterLab, with a mistake typed in."""

from __future__ import annotations

import json

import pytest
from grouped import exhaustive_after_first
from homework.submissions import FORGETS_TO_ZERO, RIGHT
from lab import expect

from gradlab import cli


@pytest.fixture
def course(jupyter, request):
    folder = jupyter.root / request.node.name
    list(cli.copy_course(folder))
    return folder


def places(path):
    return {cell["id"]: at for at, cell in enumerate(json.loads(path.read_text())["cells"])}


def retype(page, at, text):
    """Replace a cell's text by pasting, since JupyterLab's editor indents and closes brackets while one types."""
    page.cell(at).scroll_into_view_if_needed()
    page.cell(at).locator(".cm-content").click()
    page.page.keyboard.press("Control+a")
    page.page.keyboard.insert_text(text.strip("\n"))


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_a_mistake_is_checked_corrected_and_checked_again(open_notebook, course, theme, tmp_path):
    path = course / "homework" / "hw3_jacobian" / "hw3_jacobian.ipynb"
    at = places(path)
    page = open_notebook(path, theme=theme)
    for name in ("load", "example", "answer1", "try1", "check1"):
        page.run_cell(at[name])
    expect(page.output(at["check1"])).to_contain_text("not written yet")

    retype(page, at["answer1"], FORGETS_TO_ZERO)
    for name in ("answer1", "try1", "check1"):
        page.run_cell(at[name])
    shown = page.output(at["check1"]).locator(".gradlab-check")
    expect(shown).to_contain_text("0 of 30 points")
    expect(shown).to_contain_text("your row i is the sum of the rows 0 to i")
    expect(shown.get_by_label("not passed").first).to_be_visible()
    page.screenshot(tmp_path / "check.png", cell=at["check1"])

    retype(page, at["answer1"], RIGHT["answer1"])
    for name in ("answer1", "check1"):
        page.run_cell(at[name])
    expect(page.output(at["check1"]).locator(".gradlab-check")).to_contain_text("30 of 30 points")
    assert page.requests_outside == []


@pytest.mark.exhaustive
def test_the_lesson_asks_first_and_then_shows(open_notebook, course):
    path = course / "lessons" / "05_jacobian.ipynb"
    at = places(path)
    page = open_notebook(path)
    for name in ("load", "z", "refused", "guess1", "reveal1"):
        page.run_cell(at[name])
    expect(page.output(at["reveal1"])).to_contain_text("Say first what you expect")
    page.output(at["guess1"]).get_by_role("textbox").fill("2, 3")
    page.page.keyboard.press("Enter")
    expect(page.output(at["guess1"])).to_contain_text("Noted: [2, 3]. Now run the next cell.")
    page.run_cell(at["reveal1"])
    expect(page.output(at["reveal1"])).to_contain_text("that is row 0")
    expect(page.output(at["reveal1"])).to_contain_text("it is [1., 2.]")
    why = page.cell(at["why1"]).locator("details")
    why.scroll_into_view_if_needed()
    why.locator("summary").click()
    expect(why).to_contain_text("one-hot")
    for name in ("rows", "widget"):
        page.run_cell(at[name])
    expect(page.output(at["widget"]).locator(".gl-jacobian")).to_be_visible()
    assert page.requests_outside == []

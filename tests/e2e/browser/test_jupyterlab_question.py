"""A question of a lesson in JupyterLab is answered by clicks and keys, kept when its cell runs again, and changed by typing."""

from __future__ import annotations

import pytest
from grouped import exhaustive_after_first
from lab import expect

CELLS = [
    "from gradlab.homework import ask, guess, reveal",
    'ask("path", choices=("Mul", "Add", "Pow"))',
    'reveal(guess.path, "Pow", replies={"Mul": "that computes output 0"})',
    'ask("who", choices=("True", "False"), rows=("x", "x * 2", "x < 0"))',
    'reveal(guess.who, [True, True, False], rows=("x", "x * 2", "x < 0"), replies={"x * 2": "it is made of x"})',
    'ask("two_rows", numbers=2)',
    'reveal(guess.two_rows, [3, 5], then="below")',
    "guess.two_rows = 7, 8",
]


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_it_is_answered_by_clicks_and_by_keys(open_notebook, tmp_path, theme):
    page = open_notebook(CELLS, theme=theme)
    for k in range(7):
        page.run_cell(k)
    keys = page.page.keyboard
    path, table, field = (page.output(k).locator(".gl-question") for k in (1, 3, 5))
    for k in (2, 4, 6):
        expect(page.output(k)).to_contain_text("Say first what you expect")
    assert "below" not in page.text(6)
    for k in (1, 3, 5):
        expect(page.output(k).locator("[data-gradlab-twin]")).to_be_hidden()

    path.get_by_role("button", name="Mul").click()
    expect(path.get_by_role("button", name="Mul")).to_have_attribute("aria-pressed", "true")
    expect(path.get_by_role("status")).to_have_text("Noted: Mul. Now run the next cell.")
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "Space"):
        keys.press(key)
    expect(path.get_by_role("status")).to_have_text("Noted: Pow. Now run the next cell.")
    expect(path.get_by_role("button", name="Pow")).to_be_focused()
    assert page.evaluate("guess.path") == "'Pow'"
    assert path.locator("[aria-pressed=true]").count() == 1
    page.run_cell(2)
    expect(page.output(2)).to_contain_text("As you said: Pow")
    expect(path.get_by_role("status")).to_have_text("Answered: Pow. That is right.")
    page.run_cell(1)
    expect(path.get_by_role("status")).to_have_text("Answered: Pow. That is right.")
    expect(path.get_by_role("button", name="Pow")).to_have_attribute("aria-pressed", "true")

    table.get_by_role("button", name="x: True", exact=True).focus()
    keys.press("Enter")
    expect(table.get_by_role("status")).to_have_text("2 of 3 rows are not answered yet.")
    keys.press("ArrowDown")
    keys.press("ArrowRight")
    keys.press("Enter")
    expect(table.get_by_role("status")).to_have_text("1 of 3 rows are not answered yet.")  # the kernel has the answer
    page.run_cell(4)
    expect(page.output(4)).to_contain_text("Enter your guess for x < 0")
    table.get_by_role("button", name="x < 0: False").click()
    expect(table.get_by_role("status")).to_contain_text("Noted: all 3 rows.")
    page.run_cell(4)
    expect(page.output(4)).to_contain_text("2 of 3 rows are as you said")
    expect(page.output(4)).to_contain_text("x * 2: you said False: it is made of x; it is True")

    entry = field.get_by_role("textbox")
    entry.click()
    cells = page.page.locator(".jp-NotebookPanel .jp-Cell").count()
    keys.type("3")
    expect(field.get_by_role("status")).to_contain_text("You wrote one number. The answer is two numbers")
    keys.type(", 5")
    expect(field.get_by_role("status")).to_contain_text("Press Enter")
    page.screenshot(tmp_path / f"typing-{theme}.png", cell=5)
    keys.press("Enter")
    expect(field.get_by_role("status")).to_have_text("Noted: [3, 5]. Now run the next cell.")
    keys.press("ArrowLeft")
    assert page.page.locator(".jp-NotebookPanel .jp-Cell").count() == cells
    page.run_cell(6)
    expect(page.output(6)).to_contain_text("As you said: [3, 5]")
    expect(page.output(6)).to_contain_text("below")
    page.screenshot(tmp_path / f"{theme}.png")

    page.run_cell(7)
    expect(field.get_by_role("status")).to_have_text("Noted: [7, 8]. Now run the next cell.")
    expect(entry).to_have_value("7, 8")
    for k in (1, 3, 5):
        page.run_cell(k)
    expect(page.output(1).locator(".gl-question").get_by_role("button", name="Pow")).to_have_attribute("aria-pressed", "true")
    expect(page.output(5).locator(".gl-question").get_by_role("textbox")).to_have_value("7, 8")
    expect(page.output(3).locator("[aria-pressed=true]")).to_have_count(3)
    saved = page.save()["cells"][5]["outputs"]
    assert "Noted: [7, 8]" in "".join(saved[0]["data"]["text/html"]) and "<details" in "".join(saved[0]["data"]["text/html"])
    assert page.requests_outside == [] and page.errors == []


LONG = "x * w + a_rather_long_name_of_a_tensor[..., None].sum(dim=-1, keepdim=True) - another_long_name"
SENTENCES = " ".join(f"Sentence {i} of a long message." for i in range(40))
CHECKED = """
homework = Homework("A first gradient")

@homework.exercise(1, "The gradient", points=10)
def check_gradient(student):
    student.function("gradient")(3.0)

def gradient(x):
    raise ValueError("x" * 300 + MESSAGE)

homework.check(1, globals())
"""
ROWS = (LONG, "w @ x")
WIDE = [
    f"from gradlab.homework import Homework, ask, compare, guess, reveal\nMESSAGE = {SENTENCES!r}",
    f'ask("rows", choices=("it requires a gradient", "it requires none", "an error"), rows={ROWS})',
    f'guess.rows = ["an error"] * 2\nreveal(guess.rows, ["no"] * 2, rows={ROWS}, replies={{"w @ x": MESSAGE}})',
    'compare({"d" * 60: 2.0}, {"d" * 60: 1.0}, replies={"d" * 60: {2.0: MESSAGE}})',
    CHECKED.strip(),
]
# The texts of an output that extend beyond it or are cut off.
CUT = """output => {
  const right = output.getBoundingClientRect().right + 1;
  const parts = [...output.querySelectorAll('*')].filter(e => e.getClientRects().length);
  return parts.filter(e => e.getBoundingClientRect().right > right
    || (getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth + 1)).map(e => e.outerHTML.slice(0, 200));
}"""


@pytest.mark.parametrize("width", exhaustive_after_first(800, 1280))
def test_long_texts_are_complete_and_inside_their_output(open_notebook, tmp_path, width):
    page = open_notebook(WIDE, width=width)
    for k in range(len(WIDE)):
        page.run_cell(k)
    expect(page.output(1).locator(".gl-question")).to_be_visible()
    expect(page.output(1).get_by_role("button", name=f"{LONG}: an error")).to_be_visible()
    for k in range(1, len(WIDE)):
        assert page.output(k).evaluate(CUT) == []
        page.screenshot(tmp_path / f"{k}.png", cell=k)
    for k in (2, 3, 4):
        assert SENTENCES in " ".join(page.text(k).split())

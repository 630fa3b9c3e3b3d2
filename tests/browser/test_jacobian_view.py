"""The Jacobian widget's ESM alone in Chromium: a fake model for a kernel, the Python widget behind it where needed."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from lab import expect

import gradlab as gl
from gradlab.explore.jacobian import jacobian


def example(rows=4):
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    w = gl.tensor(np.arange(1.0, 1 + 3 * rows).reshape(rows, 3), dtype=gl.float64)
    z = w @ (x * x)  # ∂z[i]/∂x[j] = 2 w[i,j] x[j]
    return jacobian(z, x), 2 * np.arange(1.0, 1 + 3 * rows).reshape(rows, 3) * np.array([1.0, 2.0, 3.0])


def filled(page):
    return page.locator("rect[data-filled]:not([data-i='-1'])")


def test_step_fills_one_row_at_a_time(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    expect(page.locator(".gl-head")).to_have_text("z (4) by x (3) — no row yet · one weighted backward a row")
    expect(filled(page)).to_have_count(0)
    step = page.get_by_role("button", name="step")
    step.click()
    expect(filled(page)).to_have_count(3)
    assert J.rows_known == 1
    step.click()
    expect(page.locator(".gl-head")).to_contain_text("row 2 of 4 · one weighted backward")
    assert page.locator(".gl-vector i").all_inner_texts() == ["0", "1", "0", "0"]
    assert [text.split() for text in page.locator(".gl-numbers span").all_inner_texts()] == [
        ["x[0]", "+8.00"],
        ["x[1]", "+20.0"],
        ["x[2]", "+36.0"],
    ]
    expect(page.locator(".gl-side")).to_contain_text("= row z[1]")
    expect(page.locator("pre")).to_have_text(J.by_hand(1))
    expect(page.get_by_label("weight of z[1]")).to_have_value("1")
    page.locator("rect[data-i='1'][data-j='2']").hover()
    expect(page.locator(".gl-read")).to_have_text("∂z[1]/∂x[2] = 36")
    outline = page.locator(".gl-now")
    row = page.locator("rect[data-i='1'][data-j='0']")
    assert float(outline.get_attribute("y")) == pytest.approx(float(row.get_attribute("y")) - 3)
    step.click()
    step.click()
    expect(filled(page)).to_have_count(12)
    expect(step).to_have_attribute("aria-disabled", "true")
    step.click(force=True)  # is still there to be reached, and does nothing
    page.get_by_role("button", name="reset").click()
    expect(filled(page)).to_have_count(0)
    expect(outline).to_have_attribute("visibility", "hidden")
    assert J.rows_known == 4, "reset empties the view, not the Jacobian"
    step.click()
    expect(page.locator(".gl-head")).to_contain_text("row 1 of 4 · from rows already known")
    assert page.faults == []


def test_colours_are_those_of_the_static_map(open_widget):
    from gradlab.explore.heat import colour

    J, matrix = example(2)
    page = open_widget(J.widget(), reduced_motion="reduce")
    for _ in range(2):
        page.get_by_role("button", name="step").click()
    expect(filled(page)).to_have_count(6)
    bound = np.abs(matrix).max()
    for i in range(2):
        for j in range(3):
            fill = page.locator(f"rect[data-i='{i}'][data-j='{j}']").get_attribute("fill")
            want = bytes.fromhex(colour(matrix[i, j], bound)[1:])
            assert np.abs(np.array(json.loads(f"[{fill[4:-1]}]")) - np.array(list(want))).max() <= 1


def test_sliders_mix_rows(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    page.get_by_label("weight of z[0]").fill("0.5")
    page.get_by_label("weight of z[3]").fill("-0.25")
    expect(page.locator(".gl-side")).to_contain_text("= 0.5 · row z[0] −0.25 · row z[3]")
    expect(page.locator(".gl-head")).to_contain_text("a mix of rows · one weighted backward")
    shown = [float(text.split()[1].replace("−", "-")) for text in page.locator(".gl-numbers span").all_inner_texts()]
    np.testing.assert_allclose(shown, 0.5 * matrix[0] - 0.25 * matrix[3], rtol=5e-3)
    expect(page.locator("pre")).to_have_text(J.by_hand([0.5, 0, 0, -0.25]))
    assert page.locator(".gl-vector i").all_inner_texts() == ["0.5", "0", "0", "−0.25"]
    assert J.rows_known == 0, "a mix is one sweep and no row"


def test_keys_on_buttons_and_sliders(open_widget):
    J, _ = example()
    page = open_widget(J.widget())
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(filled(page)).to_have_count(3)
    page.keyboard.press("Space")
    expect(filled(page)).to_have_count(6)
    slider = page.get_by_label("weight of z[3]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("0.05")
    page.keyboard.press("End")
    expect(slider).to_have_value("1")
    expect(page.locator(".gl-side")).to_contain_text("= 1 · row z[1] + 1 · row z[3]")
    for node in page.locator(":is(button, input, pre)").all():
        assert node.get_attribute("data-lm-suppress-shortcuts") == "true"
    assert page.evaluate("[...document.querySelectorAll('input')].every(n => n.getAttribute('aria-label'))")


def test_play_runs_to_the_end_and_pauses(open_widget):
    J, _ = example(rows=8)
    page = open_widget(J.widget())
    page.get_by_role("button", name="play").click()
    expect(filled(page).first).to_be_visible()
    page.get_by_role("button", name="pause").click()
    expect(page.locator(".gl-jacobian")).not_to_have_attribute("aria-busy", "true")
    stopped = filled(page).count()
    page.wait_for_timeout(1200)
    assert 0 < filled(page).count() == stopped < 24
    page.get_by_role("button", name="play").click()
    expect(filled(page)).to_have_count(24, timeout=20_000)
    expect(page.get_by_role("button", name="play")).to_have_attribute("aria-disabled", "true")


def test_one_frame_in_flight_and_the_newest_wish_after_it(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), live=False)
    slider = page.get_by_label("weight of z[2]")
    for value in ("0.1", "0.2", "0.3", "0.4"):
        slider.fill(value)
    sent = page.evaluate("model.sent")
    assert len(sent) == 1 and sent[0][0]["ask"] == "mix"
    assert np.frombuffer(base64.b64decode(sent[0][1][0]), "<i4").tolist() == [2]
    assert np.frombuffer(base64.b64decode(sent[0][1][1]), "<f8").tolist() == [0.1]
    expect(page.get_by_role("status").first).to_have_text("waiting for the kernel …")
    page.evaluate("id => model.receive({answered: id}, {})", sent[0][0]["id"])
    sent = page.evaluate("model.sent")
    assert len(sent) == 2 and np.frombuffer(base64.b64decode(sent[1][1][1]), "<f8").tolist() == [0.4]
    page.evaluate("model.receive({answered: 'another view:1'}, {})")
    assert page.evaluate("model.sent.length") == 2


def test_many_rows_and_columns_are_bounded(open_widget):
    x = gl.ones(200, dtype=gl.float64, requires_grad=True)
    scale = gl.tensor(np.linspace(-1, 1, 200), dtype=gl.float64)
    J = jacobian(x * scale, x)
    page = open_widget(J.widget())
    assert page.locator("rect.gl-cell").count() == 64 * 65
    assert page.locator("input[type=range]").count() == 12
    page.get_by_role("button", name="later weights").click()
    page.get_by_label("weight of y[13]").fill("1")
    expect(page.locator(".gl-side")).to_contain_text("= 1 · row y[13], the first 12 of 200")
    for _ in range(4):
        page.get_by_role("button", name="step").click()
    expect(page.locator("rect[data-i='0'][data-filled]")).to_have_count(64)
    expect(page.locator("rect[data-i='1'][data-filled]")).to_have_count(64)
    page.locator("rect[data-i='0'][data-j='0']").hover()
    expect(page.locator(".gl-read")).to_have_text("largest in the block from ∂y[0]/∂x[0]: −1")
    expect(page.get_by_label("weight of y[3]")).to_have_value("1")


def test_errors_are_shown_as_text_and_names_are_inert(open_widget):
    evil = "<img src=x onerror='document.title=1'>"
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    J = jacobian(x * 2, x, names={evil: x})
    widget = J.widget()
    page = open_widget(widget)
    page.get_by_role("button", name="step").click()
    expect(filled(page)).to_have_count(2)
    J._sweep = lambda weights: (_ for _ in ()).throw(RuntimeError(evil))
    page.get_by_role("button", name="step").click()
    expect(page.get_by_role("alert")).to_have_text(f"RuntimeError: {evil}")
    assert page.locator("img").count() == 0 and page.title() == ""
    del J._sweep
    page.get_by_role("button", name="step").click()
    expect(page.get_by_role("alert")).to_be_hidden()
    expect(filled(page)).to_have_count(4)


def test_the_last_view_that_goes_says_so(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), live=False)
    page.evaluate("window.clean()")
    assert page.evaluate("model.listening()") == 0 and page.evaluate("el.children.length") == 0
    page.wait_for_function("model.sent.length === 1")
    assert page.evaluate("model.sent[0][0].ask") == "gone"


def test_nonfinite_values_are_marked_by_form(open_widget):
    x = gl.tensor([0.0, 1.0], dtype=gl.float64).requires_grad_()
    J = jacobian(gl.log(x) * gl.tensor([1.0, -1.0], dtype=gl.float64), x)
    page = open_widget(J.widget())
    page.get_by_role("button", name="step").click()
    expect(filled(page)).to_have_count(2)
    assert page.locator(".gl-sign").all_text_contents() == ["+", "+"]  # in the row, and in vᵀJ below


def test_the_file_needs_nothing_from_outside():
    from gradlab.notebook.jacobian_widget import STATIC

    text = (STATIC / "jacobian.js").read_text()
    assert len(text.encode()) < 60_000
    assert (
        "import " not in text
        and "innerHTML" not in text
        and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    )

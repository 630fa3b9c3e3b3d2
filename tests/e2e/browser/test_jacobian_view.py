"""The ESM of the Jacobian widget in Chromium, with a fake model instead of a kernel, and the Python widget if needed."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
from grouped import exhaustive_after_first
from lab import Cells, expect, stop_clock, wait_until_drawn

import gradlab as gl
from gradlab.explore.jacobian import jacobian


def example(rows=4):
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    w = gl.tensor(np.arange(1.0, 1 + 3 * rows).reshape(rows, 3), dtype=gl.float64)
    z = w @ (x * x)  # ∂z[i]/∂x[j] = 2 w[i,j] x[j]
    return jacobian(z, x), 2 * np.arange(1.0, 1 + 3 * rows).reshape(rows, 3) * np.array([1.0, 2.0, 3.0])


def head(page):
    return page.locator(".gl-head")


def heat(page):
    return page.locator(".gl-map")


def press(page, name):
    page.get_by_role("button", name=name).click()
    idle(page)


def idle(page):
    expect(page.locator(".gl-jacobian")).not_to_have_attribute("aria-busy", "true")


def numbers(page):
    """Return the numbers in the list of the result."""
    return [float(text.split()[1].replace("−", "-")) for text in page.locator(".gl-numbers span:not(.gl-room)").all_inner_texts()]


def cells_of(page, rows, columns, output="z"):
    """Return the cells of a map, found by its labels."""
    page.evaluate("window.scrollTo(0, 0)")
    return Cells(heat(page), [f"{output}[{i}]" for i in range(rows)], [f"x[{j}]" for j in range(columns)])


def test_step_fills_one_row_at_a_time(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    expect(head(page)).to_have_text("z (4) with respect to x (3) no row yet · one weighted backward per row")
    cells = cells_of(page, 4, 3)
    assert cells.colour(0, 0) == [255, 255, 255] and cells.hover(0, 0) == "∂z[0]/∂x[0]: not computed yet"
    press(page, "step")
    assert J.rows_known == 1
    press(page, "step")
    expect(head(page)).to_contain_text("row z[1] · one weighted backward · 2 of 4 rows known")
    assert page.locator(".gl-vector i").all_inner_texts() == ["0", "1", "0", "0"]
    assert [text.split() for text in page.locator(".gl-numbers span").all_inner_texts()] == [
        ["x[0]", "+8.00"],
        ["x[1]", "+20.0"],
        ["x[2]", "+36.0"],
    ]
    expect(page.locator(".gl-side")).to_contain_text("vᵀJ = row z[1]")
    expect(page.locator(".gl-weighting")).to_have_text("z.backward(v) weights row z[1] by 1, the others by 0")
    expect(page.locator("pre")).to_have_text(J.by_hand(1))
    expect(page.get_by_label("weight of z[1]", exact=True)).to_have_value("1")
    assert cells.hover(1, 2) == "∂z[1]/∂x[2] = 36" and cells.hover(2, 2) == "∂z[2]/∂x[2]: not computed yet"
    outline = page.locator(".gl-now")
    box = outline.bounding_box()
    assert [box["y"] < y < box["y"] + box["height"] for y in cells.ys] == [False, True, False, False]
    press(page, "step")
    press(page, "step")
    expect(head(page)).to_contain_text("all rows known")
    assert [[cells.hover(i, j) for j in range(3)] for i in range(4)] == [
        [f"∂z[{i}]/∂x[{j}] = {matrix[i, j]:g}" for j in range(3)] for i in range(4)
    ]
    step = page.get_by_role("button", name="step")
    expect(step).to_have_attribute("aria-disabled", "true")
    step.click(force=True)  # it can be focused and does nothing
    press(page, "reset")
    assert cells.hover(1, 2) == "∂z[1]/∂x[2]: not computed yet"
    expect(outline).to_have_count(0)
    assert J.rows_known == 4, "reset empties the view, not the Jacobian"
    press(page, "step")
    expect(head(page)).to_contain_text("row z[0] · from known entries · 1 of 4 rows known")
    assert page.faults == []


def test_colours_match_the_static_map(open_widget):
    from gradlab.explore.heat_colours import colour

    J, matrix = example(2)
    page = open_widget(J.widget())
    press(page, "fill")
    expect(head(page)).to_contain_text("all rows known")
    cells, bound = cells_of(page, 2, 3), np.abs(matrix).max()
    for i in range(2):
        for j in range(3):
            want = bytes.fromhex(colour(matrix[i, j], bound)[1:])
            assert np.abs(np.array(cells.colour(i, j)) - np.array(list(want))).max() <= 1


def middles(rects):
    """Return the centres of the cells, which are drawn one by one."""
    boxes = [rects.nth(k).bounding_box() for k in range(rects.count())]
    return [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]


def elements_at(page, places):
    """Return the elements that the view names at some points."""
    found = []
    for place in places:
        page.mouse.move(*place)
        found.append(page.locator(".gl-read").inner_text().replace(":", " =").split(" =")[0])
    return found


@pytest.mark.parametrize("by", ["rows", "columns"])
@pytest.mark.parametrize("narrow", [False, True])
def test_each_cell_is_found_where_it_is_drawn(open_widget, by, narrow):
    """Also if the view is narrower than the map, as without a kernel."""
    J, _ = example()
    page = open_widget(J.widget())
    page.get_by_role("radio", name=by).check()
    press(page, "fill")
    if narrow:
        page.locator(".gl-left").evaluate("node => { node.style.width = '150px'; node.style.minWidth = 0; }")
        assert heat(page).locator("svg").bounding_box()["width"] == 150
    heat(page).scroll_into_view_if_needed()
    cells = heat(page).locator("svg > g:not(.gl-over) > rect")
    assert elements_at(page, middles(cells)) == [f"∂z[{i}]/∂x[{j}]" for i in range(4) for j in range(3)]
    strip = [f"vᵀJ at x[{j}]" for j in range(3)] if by == "rows" else [f"Ju at z[{i}]" for i in range(4)]
    assert elements_at(page, middles(heat(page).locator(".gl-over > g > rect"))) == strip


def test_each_cell_of_a_bitmap_is_found_where_it_is_drawn(open_widget):
    x = gl.tensor(np.ones(40), requires_grad=True)
    page = open_widget(jacobian(gl.tensor(np.ones((70, 40))) @ x, x, names={"x": x}).widget())
    press(page, "step")
    heat(page).scroll_into_view_if_needed()
    box, some = heat(page).locator("image").first.bounding_box(), [(i, j) for i in range(70) for j in (0, 1, 38, 39)]
    places = [(box["x"] + (j + 0.5) / 40 * box["width"], box["y"] + (i + 0.5) / 70 * box["height"]) for i, j in some]
    assert elements_at(page, places) == [f"∂y[{i}]/∂x[{j}]" for i, j in some]


def test_a_click_chooses_a_row_and_highlights_its_path(open_widget):
    x = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_()
    b = gl.tensor([3.0], dtype=gl.float64).requires_grad_()
    z = gl.cat([gl.sin(x), gl.exp(b)])
    J = jacobian(z, (x, b))
    page = open_widget(J.widget())
    lit = page.locator(".gl-figure [data-node].gl-lit > text:first-of-type")
    expect(page.locator(".gl-figure [data-node]")).to_have_count(6)
    expect(lit).to_have_count(0)
    page.mouse.click(*cells_of(page, 3, 2).beside(2, 0))
    idle(page)
    expect(page.locator(".gl-side")).to_contain_text("= row z[2]")
    assert sorted(lit.all_text_contents()) == sorted(["b", "exp", "cat(0)", "z"])
    assert numbers(page) == pytest.approx([0, 0, np.exp(3)], rel=5e-3) and J.rows_known == 1
    assert page.locator(".gl-graph .gl-figure").get_attribute("aria-label").startswith("graph: the cotangent passes z, cat(0)")
    page.get_by_label("weight of z[0]", exact=True).fill("0.5")
    idle(page)
    assert set(lit.all_text_contents()) == {"x", "sin", "b", "exp", "cat(0)", "z"}


def test_sliders_and_typed_numbers_mix_rows(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    page.get_by_label("weight of z[0]", exact=True).fill("0.5")
    page.get_by_label("weight of z[3]", exact=True).fill("-0.25")
    expect(page.locator(".gl-side")).to_contain_text("= 0.5 · row z[0] − 0.25 · row z[3]")
    expect(head(page)).to_contain_text("a mix of rows · one weighted backward")
    expect(page.locator(".gl-weighting")).to_have_text(
        "z.backward(v) weights row z[0] by 0.5 and row z[3] by −0.25, the others by 0"
    )
    np.testing.assert_allclose(numbers(page), 0.5 * matrix[0] - 0.25 * matrix[3], rtol=5e-3)
    expect(page.locator("pre")).to_have_text(J.by_hand([0.5, 0, 0, -0.25]))
    assert page.locator(".gl-vector i").all_inner_texts() == ["0.5", "0", "0", "−0.25"]
    assert J.rows_known == 0, "a linear combination is one sweep and no row"
    page.get_by_label("weight of z[1] as a number").fill("12.5")
    expect(page.locator(".gl-side")).to_contain_text("= 0.5 · row z[0] + 12.5 · row z[1] − 0.25 · row z[3]")
    idle(page)
    np.testing.assert_allclose(numbers(page), 0.5 * matrix[0] + 12.5 * matrix[1] - 0.25 * matrix[3], rtol=5e-3)
    page.get_by_label("weight of z[1] as a number").fill("")
    page.get_by_label("weight of z[1] as a number").fill("0")
    expect(page.locator(".gl-side")).to_contain_text("= 0.5 · row z[0] − 0.25 · row z[3]")


def test_columns_by_forward_sweeps(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    expect(page.locator(".gl-axis")).to_contain_text("rows 4 backward sweeps")
    expect(page.locator(".gl-axis")).to_contain_text("columns 3 forward sweeps")
    page.get_by_role("radio", name="columns").check()
    idle(page)
    press(page, "step")
    expect(head(page)).to_contain_text("column x[0] · one forward sweep · 1 of 3 columns known")
    assert numbers(page) == matrix[:, 0].tolist() and page.locator(".gl-vector i").all_inner_texts() == ["1", "0", "0"]
    cells = cells_of(page, 4, 3)
    page.mouse.click(*cells.beside(3, 2))
    idle(page)
    expect(page.locator(".gl-side")).to_contain_text("= column x[2]")
    assert numbers(page) == matrix[:, 2].tolist()
    assert cells.hover(3, 2) == f"∂z[3]/∂x[2] = {matrix[3, 2]:g}" and "not computed" in cells.hover(3, 1)
    expect(page.locator("pre")).to_contain_text("jvp_of_graph([z], [x], [u])")
    page.get_by_label("weight of x[0]", exact=True).fill("-1")
    idle(page)
    np.testing.assert_allclose(numbers(page), matrix[:, 2] - matrix[:, 0], rtol=5e-3)
    expect(page.locator(".gl-forget")).to_be_hidden()
    assert J.rows_known == 0 and J.sweeps == 3


def test_forgotten_lines_are_run_and_shown(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    press(page, "step")
    page.get_by_label("zero the gradient").check()
    idle(page)
    press(page, "step")
    press(page, "step")
    expect(page.locator(".gl-side")).to_contain_text("= row z[0] + row z[1], and not row z[1]")
    np.testing.assert_allclose(numbers(page), matrix[:2].sum(0), rtol=5e-3)
    expect(page.locator("pre")).to_contain_text("# x.grad = None  is forgotten")
    page.get_by_label("zero the gradient").uncheck()
    idle(page)
    page.get_by_label("retain the graph").check()
    idle(page)
    press(page, "step")
    expect(page.get_by_text("The result is an error")).to_be_hidden()
    press(page, "step")
    happened = page.get_by_text("The result is an error")
    expect(happened).to_contain_text("RuntimeError: Trying to backward through the graph a second time")
    expect(happened).to_contain_text("The values saved by MvBackward0 have been freed")  # the graph is w @ (x * x)
    page.get_by_label("retain the graph").uncheck()
    idle(page)
    expect(page.get_by_text("The result is an error")).to_be_hidden()
    expect(head(page)).to_contain_text("1 of 4 rows known")
    assert cells_of(page, 4, 3).hover(0, 1) == f"∂z[0]/∂x[1] = {matrix[0, 1]:g}" and J.rows_known == 1


def test_keys_on_buttons_map_and_sliders(open_widget):
    J, matrix = example()
    page = open_widget(J.widget())
    heat(page).focus()
    for key, row in (("ArrowDown", 0), ("ArrowDown", 1), ("ArrowUp", 0), ("End", 3), ("Home", 0)):
        page.keyboard.press(key)
        expect(head(page)).to_contain_text(f"row z[{row}] ")
        idle(page)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".gl-read")).to_have_text(f"∂z[0]/∂x[1] = {matrix[0, 1]:g}")
    expect(page.locator(".gl-spoken")).to_have_text(f"∂z[0]/∂x[1] = {matrix[0, 1]:g}")
    expect(page.locator(".gl-cursor")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(head(page)).to_contain_text("row z[2] ")
    page.get_by_role("button", name="step").focus()
    assert J.rows_known == 4
    slider = page.get_by_label("weight of z[3]", exact=True)
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(slider).to_have_value("0.05")
    page.keyboard.press("End")
    expect(slider).to_have_value("1")
    expect(page.locator(".gl-side")).to_contain_text("= 1 · row z[2] + 1 · row z[3]")
    reachable = page.locator(".gl-jacobian :is(button, input, select, pre, [tabindex])").all()
    for node in reachable:
        assert node.get_attribute("data-lm-suppress-shortcuts") == "true"
    assert len(reachable) > 20
    unnamed = """() => [...document.querySelectorAll('.gl-jacobian :is(button, input, select, [tabindex])')].filter(n =>
        !(n.getAttribute('aria-label') || n.textContent.trim() || n.labels?.length)).map(n => n.outerHTML)"""
    assert page.evaluate(unnamed) == []


def test_the_accessibility_tree_names_everything(open_widget):
    J, _ = example()
    page = open_widget(J.widget())
    press(page, "step")
    picture = heat(page).get_by_role("img", name="Jacobian of z with respect to x")
    expect(picture.locator("desc")).to_have_text(re.compile("^Rows 0 to 3, columns 0 to 2; colours from −"))
    expect(heat(page)).to_have_attribute("aria-label", "heat map, 4 by 3, 1 rows filled, row z[0] outlined. Arrow keys move.")
    expect(page.get_by_role("application")).to_have_count(1)
    expect(page.get_by_role("group", name="Jacobian of z with respect to x")).to_have_count(1)
    expect(page.locator(".gl-spoken")).to_have_text("row z[0], 1 of 4 known: x[0] +2.00, x[1] +8.00, x[2] +18.0")
    expect(page.get_by_role("img", name="v weights row z[0] by 1, the others by 0")).to_have_count(1)


def test_play_runs_to_the_end_and_pauses(open_widget):
    J, _ = example(rows=8)
    page = open_widget(J.widget())
    stop_clock(page)
    page.get_by_role("button", name="play").click()
    for known in (1, 2):
        expect(head(page)).to_contain_text(f"{known} of 8 rows known")
        idle(page)
        page.clock.run_for(333)
    expect(head(page)).to_contain_text("3 of 8 rows known")
    page.get_by_role("button", name="pause").click()
    idle(page)
    page.clock.run_for(60_000)
    assert J.rows_known == 3
    page.get_by_label("playback speed").select_option("10/s")
    page.get_by_role("button", name="play").click()
    for known in range(4, 8):
        expect(head(page)).to_contain_text(f"{known} of 8 rows known")
        idle(page)
        page.clock.run_for(100)
    expect(head(page)).to_contain_text("all rows known")
    assert J.rows_known == 8
    expect(page.get_by_role("button", name="play")).to_have_attribute("aria-disabled", "true")


def answer(page, name, **more):
    page.evaluate("said => model.notify(said)", {"answer": name, "ask": "mix", **more})


def test_one_request_at_a_time_and_then_the_newest_of_each_kind(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), live=False)
    assert page.evaluate("model.sent.map(([said]) => said.ask)") == ["hello"]
    answer(page, page.evaluate("model.sent[0][0].id"), error="no")
    page.evaluate("model.sent.length = 0")
    slider = page.get_by_role("button", name="step")
    slider.click()
    page.get_by_role("radio", name="columns").check()
    page.get_by_role("radio", name="rows").check()
    page.get_by_role("button", name="fill").click()
    sent = page.evaluate("model.sent")
    assert [said["ask"] for said, _ in sent] == ["step"]
    expect(page.get_by_role("status").first).to_have_text("waiting for the kernel …")
    answer(page, "another view:1", error="")
    assert page.evaluate("model.sent.length") == 1
    answer(page, sent[0][0]["id"], error="")
    sent = page.evaluate("model.sent")
    assert [said["ask"] for said, _ in sent] == ["step", "axis"] and sent[1][0]["by"] == "rows", (
        "one request, and not for the columns"
    )
    answer(page, sent[1][0]["id"], error="")
    assert page.evaluate("model.sent.map(([said]) => said.ask)") == ["step", "axis", "fill"]


def test_only_nonzero_weights_are_sent(open_widget):
    J, _ = example()
    page = open_widget(J.widget())
    page.get_by_label("weight of z[2]", exact=True).fill("0.4")
    idle(page)
    said, raw = page.evaluate("model.sent.at(-1)")
    assert said["ask"] == "mix" and np.frombuffer(base64.b64decode(raw[0]), "<i4").tolist() == [2]
    assert np.frombuffer(base64.b64decode(raw[1]), "<f8").tolist() == [0.4]


def test_a_kernel_that_does_not_answer_is_reported_and_may_recover(open_widget):
    J, _ = example()
    page = open_widget(widget_with_timeout(J, 0.5), live=False)
    expect(page.get_by_role("alert").first).to_contain_text("The kernel does not answer")
    view = page.locator(".gl-jacobian")
    expect(view).to_have_attribute("data-silent", "")
    page.get_by_role("button", name="step").click()  # sent at once, since the first request may never be answered
    assert page.evaluate("model.sent.map(([said]) => said.ask)") == ["hello", "step"]
    widget = widget_with_timeout(J, 1)
    widget.send = lambda content, buffers=(): said.append((content, [base64.b64encode(part).decode() for part in buffers]))
    said = []
    widget._handle_custom_msg(page.evaluate("model.sent[0][0]"), [])
    widget._handle_custom_msg(page.evaluate("model.sent[1][0]"), [])
    for content, raw in said:
        page.evaluate("([content, raw]) => model.notify(content, raw)", [content, raw])
    expect(page.get_by_role("alert").first).to_be_hidden()
    expect(view).not_to_have_attribute("data-silent", "")
    expect(head(page)).to_contain_text("row z[0] ")
    widget.close()


def widget_with_timeout(J, seconds):
    widget = J.widget()
    widget.timeout = seconds
    return widget


def test_a_model_without_a_kernel_is_reported(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), live=False)
    page.evaluate("() => { model.send = () => { throw new Error('comm is gone'); }; }")
    answer(page, page.evaluate("model.sent[0][0].id"), error="")
    page.get_by_role("button", name="step").click()
    alert = page.get_by_role("alert").first
    expect(alert).to_have_text("The kernel does not answer (comm is gone). After a restart, run the cell again.")


def test_many_rows_and_columns_are_pooled_zoomed_and_bounded(open_widget):
    x = gl.ones(400, dtype=gl.float64, requires_grad=True)
    scale = np.linspace(-1, 1, 400)
    J = jacobian(x * gl.tensor(scale, dtype=gl.float64), x)
    page = open_widget(J.widget())
    assert page.locator("input[type=range]").count() == 8
    page.get_by_role("button", name="later weights").click()
    page.get_by_label("weight of y[13]", exact=True).fill("1")
    expect(page.locator(".gl-side")).to_contain_text("= 1 · row y[13]; 1 of 400 is not zero")
    press(page, "fill")
    expect(head(page)).to_contain_text("all rows known")
    expect(page.locator(".gl-scale")).to_contain_text("least −1.00 · greatest +1.00")
    expect(page.locator(".gl-tools")).to_contain_text("400 × 400, each cell the largest of 3 × 3")
    go = page.get_by_label("go to row")
    go.fill("200")
    go.press("Enter")
    expect(page.locator(".gl-side")).to_contain_text("= row y[200]")
    idle(page)
    heat(page).focus()
    for _ in range(3):
        page.keyboard.press("+")
        idle(page)
    expect(page.locator(".gl-tools")).to_contain_text("rows y[197] … y[203], columns x[197] … x[203]")
    expect(page.locator(".gl-scale")).to_contain_text("in view")
    shown = dict(zip(page.locator(".gl-numbers span:not(.gl-room) small").all_inner_texts(), numbers(page), strict=True))
    assert shown == pytest.approx({"x[200]": scale[200]}, rel=5e-3)
    expect(heat(page).locator(".gl-digits text")).to_have_count(49 + 7)
    page.keyboard.press("0")
    expect(page.locator(".gl-tools")).to_contain_text("400 × 400")
    box = heat(page).bounding_box()
    page.mouse.move(box["x"] + box["width"] / 3, box["y"] + box["height"] / 3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    expect(page.locator(".gl-drag")).to_have_count(1)
    page.mouse.up()
    expect(page.locator(".gl-tools")).to_contain_text("rows ")
    expect(page.locator(".gl-drag")).to_have_count(0)
    press(page, "the whole matrix")
    expect(page.locator(".gl-tools")).to_contain_text("400 × 400")
    assert page.faults == []


def test_the_colours_of_a_sparse_matrix(open_widget):
    x = gl.linspace(0, 1, 12, dtype=gl.float64).requires_grad_()
    z = x * x
    z = gl.cat([z[:1], z[1:] - x[:-1]])
    J = jacobian(z, x, method="sparse")
    page = open_widget(J.widget())
    expect(page.locator(".gl-axis")).to_contain_text("by colours: 2 sweeps")
    press(page, "colours")
    expect(page.locator(".gl-grouplist")).to_contain_text("23 entries can be nonzero")
    swatches = page.get_by_title("compute this colour")
    expect(swatches).to_have_count(2)
    expect(heat(page).locator(".gl-group text")).to_have_count(23)
    colours = np.asarray(J.plan.colours)
    swatches.nth(1).click()
    idle(page)
    dense = np.diag(2 * np.linspace(0, 1, 12)) - np.eye(12, k=-1)
    members = np.flatnonzero(colours == 1)
    compressed = dense[:, members].sum(1) if J.plan.by == "columns" else dense[members].sum(0)
    np.testing.assert_allclose(numbers(page), compressed, rtol=5e-3, atol=1e-12)
    press(page, "colours")
    expect(page.locator(".gl-grouplist")).to_be_hidden()
    before = J.sweeps
    press(page, "fill")
    expect(head(page)).to_contain_text("all rows known · 2 sweeps by the plan")
    assert J.sweeps == before + 2 and J.complete


def test_errors_are_shown_as_text_and_names_are_escaped(open_widget):
    evil = "<img src=x onerror='document.title=1'>"
    x = gl.tensor([1.0, 2.0]).requires_grad_()
    J = jacobian(x * 2, x, names={evil: x})
    page = open_widget(J.widget())
    press(page, "step")
    expect(head(page)).to_contain_text("row y[0] ")
    kept = J.row
    J.row = lambda i: (_ for _ in ()).throw(RuntimeError(evil))
    press(page, "step")
    expect(page.get_by_role("alert").first).to_have_text(f"RuntimeError: {evil}")
    assert page.locator("img").count() == 0 and page.title() == ""
    J.row = kept
    press(page, "step")
    expect(page.get_by_role("alert").first).to_be_hidden()
    expect(head(page)).to_contain_text("row y[1] ")


def test_removing_the_last_view_notifies_the_kernel(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), live=False)
    page.evaluate("window.clean()")
    assert page.evaluate("model.listening()") == 0 and page.evaluate("el.children.length") == 0
    page.wait_for_function("model.sent.length === 2")
    assert page.evaluate("model.sent[1][0].ask") == "gone"


def test_nonfinite_values_are_marked_and_reported(open_widget):
    x = gl.tensor([0.0, 1.0], dtype=gl.float64).requires_grad_()
    J = jacobian(gl.log(x) * gl.tensor([1.0, -1.0], dtype=gl.float64), x)
    page = open_widget(J.widget())
    press(page, "step")
    cells = cells_of(page, 2, 2, "y")
    assert cells.hover(0, 0) == "∂y[0]/∂x[0] = +inf" and cells.colour(0, 0, middle=True) == [40, 44, 52], (
        "a dark plus sign in the middle"
    )
    assert cells.hover(0, 1) in ("∂y[0]/∂x[1] = 0", "∂y[0]/∂x[1] = NaN")


def test_an_empty_matrix_and_a_scalar(open_widget):
    x = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_()
    page = open_widget(jacobian(x[:0], x).widget())
    idle(page)
    expect(head(page)).to_contain_text("no sweep is needed")
    expect(page.get_by_role("button", name="step")).to_have_attribute("aria-disabled", "true")
    assert page.locator("input[type=range]").count() == 0 and page.faults == []
    loss = (x * x).sum()
    page = open_widget(jacobian(loss, x).widget())
    press(page, "step")
    expect(head(page)).to_have_text("loss (scalar) with respect to x (2) row loss · one weighted backward · all rows known")
    assert numbers(page) == [2, 4] and page.faults == []


def test_a_narrow_output_and_a_dark_theme(open_widget):
    J, _ = example()
    page = open_widget(J.widget(), color_scheme="dark")
    page.set_viewport_size({"width": 380, "height": 900})
    press(page, "step")
    assert page.evaluate("document.documentElement.scrollWidth") <= 380, "nothing overflows to the right"
    side, left = page.locator(".gl-side").bounding_box(), page.locator(".gl-left").bounding_box()
    assert side["y"] > left["y"] + left["height"] - 1 and side["x"] == pytest.approx(left["x"], abs=1)
    background = page.locator(".gl-jacobian").evaluate("node => getComputedStyle(node).backgroundColor")
    assert max(json.loads(f"[{background[4:-1]}]")) < 60


def test_hidden_elements_are_not_shown(open_widget):
    """Elements with flex or grid layout are not shown if they are `hidden`."""
    x = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_()
    page = open_widget(jacobian((x * x).sum(), x).widget())
    idle(page)
    expect(page.get_by_label("go to row")).to_be_hidden()  # there is only one row
    page.get_by_role("radio", name="columns").check()
    expect(page.get_by_label("go to column")).to_be_visible()
    hidden = page.locator(".gl-jacobian [hidden]")
    assert hidden.count() >= 5
    assert set(hidden.evaluate_all("all => all.map(node => getComputedStyle(node).display)")) == {"none"}


BOXES = """() => {
  const changing = '.gl-map *, .gl-scale *, .gl-numbers *, .gl-vector *, .gl-figure *, .gl-spoken';
  const all = [...document.querySelectorAll('.gl-jacobian, .gl-jacobian :is(div, button, input, select, pre, fieldset, label)')];
  return all.filter(n => !n.matches(changing) && n.offsetParent !== null).map(n => {
    const {x, y, width, height} = n.getBoundingClientRect();
    return [n.tagName, n.className.replace('gl-empty', '').trim(), x, y, width, height]; }); }"""


def moved_elements(page, before):
    """Return the elements that have moved as (element, before, now)."""
    return [(*now[:2], was[2:], now[2:]) for was, now in zip(before, page.evaluate(BOXES), strict=True) if was[2:] != now[2:]]


def wide_example():
    x = gl.linspace(0.5, 2, 30, dtype=gl.float64).requires_grad_()
    return jacobian(gl.stack([x.sum(), (x * x).sum(), gl.exp(x)[3]]), x)


def long_example():
    x = gl.ones(400, dtype=gl.float64, requires_grad=True)
    return jacobian(x * gl.linspace(-1, 1, 400, dtype=gl.float64), x)


@pytest.mark.parametrize("width", exhaustive_after_first(940, 1240, 640))
@pytest.mark.parametrize("made", [lambda: example()[0], wide_example, long_example], ids=["small", "wide", "long"])
def test_nothing_moves_at_the_first_step(open_widget, width, made):
    page = open_widget(made().widget())
    page.set_viewport_size({"width": width, "height": 900})
    idle(page)
    wait_until_drawn(page)
    before = page.evaluate(BOXES)
    assert len(before) > 30
    for _ in range(2):
        press(page, "step")
        assert moved_elements(page, before) == []


def test_the_box_goes_to_a_row_and_explains_invalid_input(open_widget):
    J = long_example()
    page = open_widget(J.widget())
    box, hint = page.get_by_label("go to row"), page.locator(".gl-hint")
    expect(hint).to_have_text("y[0] to y[399]")
    for text, row in (("200", 200), ("y[7]", 7), (" y[ 12 ] ", 12)):
        box.fill(text)
        box.press("Enter")
        expect(head(page)).to_contain_text(f"row y[{row}] ")
        expect(box).to_have_value(f"y[{row}]")
        idle(page)
    for text in ("400", "-1", "y[400]", "x[3]", "2.5", "seven"):
        box.fill(text)
        box.press("Enter")
        expect(hint).to_have_text(f"There is no row {text}: rows go from 0 (y[0]) to 399 (y[399]).")
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(box).to_have_value(text)
    expect(head(page)).to_contain_text("row y[12] ")
    assert J.rows_known == 3
    box.fill("1")
    expect(hint).to_have_text("y[0] to y[399]")
    box.fill("400")
    press(page, "step")
    expect(box).to_have_value("y[0]")
    expect(box).to_have_attribute("aria-invalid", "false")


def test_a_row_of_a_large_sparse_matrix_and_its_three_numbers(open_widget):
    x = gl.linspace(0, 1, 10_000, dtype=gl.float64).requires_grad_()
    nothing = gl.zeros(1, dtype=gl.float64)
    y = x * x - 0.5 * gl.cat([x[1:], nothing]) + 0.25 * gl.cat([nothing, x[:-1]])
    page = open_widget(jacobian(y, x, method="sparse").widget())
    box = page.get_by_label("go to row")
    box.fill("1234")
    box.press("Enter")
    expect(page.locator(".gl-meaning")).to_have_text("vᵀJ = row y[1234]; 3 of 10,000 are not zero")
    idle(page)
    three = [0.25, 2 * 1234 / 9999, -0.5]
    np.testing.assert_allclose(numbers(page), three, rtol=5e-3)
    for _ in range(7):
        press(page, "zoom in")
    expect(page.locator(".gl-tools")).to_contain_text("rows y[1231] … y[1237], columns x[1231] … x[1237]")
    texts = (
        heat(page)
        .locator("text")
        .evaluate_all("all => all.map(n => [n.textContent, n.getBoundingClientRect().x, n.getBoundingClientRect().y])")
    )
    at = {name: (left, top) for name, left, top in texts if "[" in name}
    mine = sorted((left, name) for name, left, top in texts if abs(top - at["y[1234]"][1]) < 8 and "[" not in name)
    shown = [float(name.replace("−", "-")) for _, name in mine]
    assert shown == pytest.approx([0, 0, *three, 0, 0], abs=5e-3), "the nonzeros are in the middle"
    assert set(at) == {f"{name}[{k}]" for name in "xy" for k in range(1231, 1238)}
    press(page, "the whole matrix")
    rows = [int(name[2:-1]) for name in heat(page).locator("text").all_text_contents() if name.startswith("y[")]
    assert rows == list(range(0, 10_000, rows[1])) and rows[1] in (200, 500, 1000), "round numbers"
    assert page.faults == []


def test_a_view_without_columns(open_widget):
    J, matrix = example()
    page = open_widget(J.widget(columns=False))
    press(page, "step")
    assert numbers(page) == matrix[0].tolist()
    expect(page.get_by_role("radio", name="columns")).to_be_hidden()
    assert "forward" not in page.locator(".gl-jacobian").inner_text()


def test_the_destination_of_v_is_shown(open_widget):
    x, b = gl.tensor([1.0, 2.0], dtype=gl.float64).requires_grad_(), gl.tensor([3.0], dtype=gl.float64).requires_grad_()
    page = open_widget(jacobian(gl.cat([gl.sin(x), gl.exp(b)]), (x, b), names={"x0": x, "b": b}).widget())
    said = page.locator(".gl-graph .gl-caption")
    expect(said).to_have_text("the graph")
    press(page, "step")
    expect(said).to_have_text("where v arrives: from y[0] back to x0")


def test_sliders_at_zero_are_empty(open_widget):
    J, _ = example()
    page = open_widget(J.widget())
    press(page, "step")
    fill = "n => [n.classList.contains('gl-empty'), n.style.getPropertyValue('--gl-from'), n.style.getPropertyValue('--gl-to')]"
    sliders = page.locator("input[type=range]")
    assert [sliders.nth(k).evaluate(fill) for k in range(2)] == [[False, "50%", "100%"], [True, "50%", "50%"]]
    page.get_by_label("weight of z[1] as a number").fill("-0.5")
    idle(page)
    assert sliders.nth(1).evaluate(fill) == [False, "25%", "50%"]


READABLE = """() => {
  const parse = text => (text.match(/[\\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const colour = text => {
    const [r, g, b, a = 1] = parse(text.replace('color(srgb', ''));
    return text.startsWith('color(srgb') ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a]; };
  const over = ([r, g, b, a], [R, G, B]) => [a * r + (1 - a) * R, a * g + (1 - a) * G, a * b + (1 - a) * B, 1];
  const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const light = rgb => { const [x, y, z] = rgb.slice(0, 3).map(c => linear(c / 255)); return .2126 * x + .7152 * y + .0722 * z; };
  const ground = n => { let stack = []; for (; n; n = n.parentElement) stack.push(colour(getComputedStyle(n).backgroundColor));
    return stack.reverse().reduce((below, c) => over(c, below), [255, 255, 255, 1]); };
  const wrong = [];
  for (const n of document.querySelectorAll('.gl-jacobian *')) {
    const own = [...n.childNodes].some(c => c.nodeType === 3 && c.textContent.trim());
    const style = getComputedStyle(n), svg = n.namespaceURI.endsWith('svg');
    if (!own || style.visibility === 'hidden' || !n.getClientRects().length || n.closest('.gl-spoken, title, option')) continue;
    const size = parseFloat(style.fontSize) * (n.getScreenCTM ? n.getScreenCTM().a : 1);
    if (size < 8.99) wrong.push(['small', n.textContent, size]);
    if (svg && (n.matches('.gl-digits, .gl-group') || n.closest('.gl-figure'))) continue;  // see other tests
    const back = ground(svg ? n.closest('div') : n), ink = over(colour(svg ? style.fill : style.color), back);
    const [low, high] = [light(ink), light(back)].sort((a, b) => a - b), ratio = (high + .05) / (low + .05);
    if (ratio < 4.495) wrong.push(['pale', n.textContent, ratio, style.color]);
  }
  return wrong; }"""


@pytest.mark.parametrize("theme", exhaustive_after_first("light", "dark"))
def test_all_texts_are_readable(open_widget, theme):
    J, _ = example()
    page = open_widget(J.widget(), color_scheme=theme)
    assert page.evaluate(READABLE) == []
    press(page, "step")
    assert page.evaluate(READABLE) == []
    page.get_by_label("retain the graph").check()
    press(page, "step")
    press(page, "step")
    assert page.evaluate(READABLE) == []
    page.get_by_role("radio", name="rows").check()
    page.get_by_label("retain the graph").uncheck()
    idle(page)
    page.get_by_role("radio", name="columns").check()
    press(page, "step")
    assert page.evaluate(READABLE) == []


OVERLAPS = """() => {
  const all = document.querySelectorAll('.gl-jacobian :is(.gl-left, .gl-graph), .gl-jacobian .gl-side > :not(.gl-spoken)');
  const parts = [...all].filter(n => n.getClientRects().length).map(n => [n.className || n.tagName, n.getBoundingClientRect()]);
  const shared = (a, b, from, to) => Math.min(a[to], b[to]) - Math.max(a[from], b[from]) > 1;
  return parts.flatMap(([one, a], i) => parts.slice(i + 1)
    .filter(([, b]) => shared(a, b, 'left', 'right') && shared(a, b, 'top', 'bottom')).map(([other]) => [one, other])); }"""


@pytest.mark.parametrize("width", exhaustive_after_first(940, 1500, 1240, 640))
def test_parts_do_not_overlap(open_widget, width):
    x = gl.tensor([1.0, 2.0, 3.0], dtype=gl.float64).requires_grad_()
    wide = gl.stack([x[0] * x[1], x[1] ** 2, x[2] * x[0], x.sum()])  # a wide graph is below all other parts
    for J in (jacobian(wide, x), example()[0], long_example()):
        page = open_widget(J.widget())
        page.set_viewport_size({"width": width, "height": 900})
        press(page, "step")
        assert page.evaluate(OVERLAPS) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing overflows to the right"

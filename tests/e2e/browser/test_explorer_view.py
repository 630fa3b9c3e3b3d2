"""The ESM of the live explorer in Chromium, with a fake model instead of a kernel, and the Python widget if needed."""

from __future__ import annotations

import json
import re

import each_view
import numpy as np
import pytest
from grouped import exhaustive_after_first
from lab import expect, stop_clock

import gradlab as gl
from gradlab.explore.explorer import Explorer
from gradlab.explore.names import names_in

pytest.importorskip("anywidget")


def widget(names, out="loss"):
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.of([names[out]], names, names_in(names)))


def zscores():
    return widget(each_view.zscores())


def encoder():
    return widget(each_view.encoder())


def scalars():
    """Compute loss = d·e + e with d = a·b, e = a − d. At a = 2, b = −1, ∂loss/∂a = 5 and ∂loss/∂b = 5; see the test of paths."""
    with gl.tracing():
        a, b = (gl.tensor(x, dtype=gl.float64, requires_grad=True) for x in (2.0, -1.0))
        d = a * b
        e = a - d
        loss = d * e + e
    return widget({"a": a, "b": b, "d": d, "e": e, "loss": loss})


def idle(page):
    expect(page.locator(".gl-explorer")).not_to_have_attribute("aria-busy", "true")


def panel(page):
    return page.get_by_role("region", name="the selected node")


def title(page):
    return panel(page).locator("h4")


def stage(page):
    return page.get_by_role("group", name=re.compile("^the operations"))


def box(page, label):
    """Return the node with a label in the picture."""
    return page.get_by_role("button", name=re.compile(f"^{re.escape(label)}(, |$)")).first


def view_box(page):
    return [float(x) for x in page.locator(".gl-stage > svg").get_attribute("viewBox").split()]


def test_it_opens_with_a_sentence_and_the_picture_without_the_kernel(open_widget):
    page = open_widget(zscores(), live=False)
    head = page.locator(".gl-head").first
    expect(head).to_have_text(
        re.compile(r"^loss = 0\.5671 with respect to a and b · 14 operations · holds the graph, \d+ bytes, until close\(\) $")
    )
    assert page.locator(".gl-stage [data-node] > text:first-of-type").all_text_contents().count("÷") == 3
    page.get_by_role("radio", name="Code").click()
    rows = page.get_by_role("treeitem")
    assert [row.split(",")[0] for row in rows.evaluate_all("all => all.map(row => row.getAttribute('aria-label'))")][-1] == "loss"
    rows.nth(0).click()
    expect(rows.nth(0)).to_have_attribute("aria-selected", "true")
    assert page.faults == []


def test_rows_open_by_their_sign_and_are_marked_and_coloured(open_widget):
    page = open_widget(zscores())
    page.set_viewport_size({"width": 1300, "height": 900})
    page.get_by_role("radio", name="Code").click()
    idle(page)
    rows = page.get_by_role("treeitem")
    before = rows.count()
    rows.nth(0).locator(".gl-twist").click()
    expect(page.get_by_role("treeitem", expanded=True)).to_have_count(1)
    assert rows.count() == before + 5, "the operations of the line, and a, which two of them use"
    page.get_by_role("textbox").fill("std")
    expect(page.locator("[data-row] > .gl-marked")).to_have_count(2)
    page.get_by_label("colour by").select_option(label="‖grad‖")
    fill = "all => all.map(row => row.firstElementChild.style.fill)"
    fills = rows.evaluate_all(fill)
    assert sum(bool(one) for one in fills) == len(fills) - 2, "the open row and the output do not change"
    page.get_by_label("colour by").select_option(label="nothing")
    assert not any(rows.evaluate_all(fill))
    page.get_by_role("treeitem", expanded=True).locator(".gl-twist").click()
    expect(rows).to_have_count(before)
    page.locator("[data-leaf]").first.click()
    expect(title(page)).to_have_text("a")
    assert page.faults == []


def test_rows_take_the_available_width(open_widget):
    page = open_widget(encoder())
    tree, drawing = page.get_by_role("tree"), page.locator(".gl-tree > svg")
    for width in (1300, 700, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(
            "() => { const tree = document.querySelector('.gl-tree'), drawing = tree.firstElementChild;"
            " return Math.abs(drawing.clientWidth - tree.clientWidth) <= 1 }"
        )
        idle(page)
    assert drawing.locator(":scope > title").text_content() and tree.get_attribute("aria-label")
    assert page.faults == []


def test_a_module_shows_its_inputs_outputs_and_parameters(open_widget):
    made = encoder()
    page = open_widget(made)
    whole = made.about["whole"]
    expect(title(page)).to_have_text("loss")  # before the first click
    cells = "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    rows = panel(page).locator(".gl-parameters tr")
    assert rows.evaluate_all(cells)[1:] == [row[1:] for row in whole["parameters"]]
    page.get_by_role("treeitem", name=re.compile("^linear1")).first.click()
    expect(title(page)).to_have_text("linear1")
    idle(page)
    shown = rows.evaluate_all(cells)
    assert [row[0] for row in shown[1:]] == ["weight", "bias", "all"]
    path = panel(page).locator(".gl-facts [title=module]").inner_text()
    weight = next(node for node in made._explorer.trace.nodes if node.label == f"{path}.weight")
    assert shown[1][1:4] == ["×".join(map(str, weight.shape)), f"{weight.gradient.norm:.3g}", f"{weight.value.norm:.3g}"]
    assert panel(page).locator(".gl-tensor-head b").all_text_contents() == ["output", "gradient"]
    panel(page).get_by_role("button", name="weight", exact=True).click()
    expect(title(page)).to_have_text(f"{path}.weight")
    page.get_by_role("treeitem", expanded=True, name=re.compile(r"^\[0\]")).click()  # the middle of an unfilled row
    expect(title(page)).to_have_text("[0]")
    assert page.faults == []


def test_a_click_shows_the_node_and_marks_the_source(open_widget):
    made = zscores()
    page = open_widget(made)
    page.get_by_role("button", name=re.compile("^÷, DivBackward0, z1 ")).click()
    expect(title(page)).to_have_text("z1 = ÷")
    idle(page)
    want = made._explorer.answer("node", {"node": next(i for i, n in enumerate(made._explorer.trace.nodes) if n.name == "z1")})[
        "panel"
    ]
    shown = panel(page).get_by_role("img", name="gradient, 6×4").locator("rect > title").all_text_contents()
    assert len(shown) == 24 and shown == re.findall(r"<rect[^>]*><title>(.*?)</title>", want["gradient"]["map"])
    assert page.locator(".gl-pane mark").all_text_contents() == ["z1 = (a - a.mean(0)) / a.std(0)"[5:]]
    expect(page.locator(".gl-chosen > text").nth(1)).to_have_text("DivBackward0")
    panel(page).get_by_text("The rule that ran").click()
    assert panel(page).locator("math").count() == 3 and panel(page).locator("math mfrac").count() >= 2
    panel(page).get_by_text("Gradients of its inputs").click()
    panel(page).get_by_role("button", name="std(0)").click()
    expect(title(page)).to_have_text("std(0)")
    expect(page.locator(".gl-chosen > text:first-of-type")).to_have_text("std(0)")
    assert page.faults == []


def test_a_line_marks_its_nodes(open_widget):
    page = open_widget(zscores())
    page.get_by_role("button", name=re.compile(r"^line \d+: c = ")).click()
    assert page.locator(".gl-figure .gl-marked > text:first-of-type").all_text_contents() == [".T", "@", "÷"]
    expect(title(page)).to_have_text("c = ÷")


def test_search_by_name_line_size_and_inside_folds(open_widget):
    made = encoder()
    page = open_widget(made)
    search = page.get_by_role("textbox")
    page.get_by_role("tree").press("/")
    expect(search).to_be_focused()
    found = page.locator(".gl-found")
    norms = [norm for norm in made.about["nodes"]["norm"] if norm is not None]
    bound = float(f"{np.median(norms):.2e}")
    count = sum(norm < bound for norm in norms)
    assert 0 < count < len(norms)
    for text in (f"‖g‖<{bound}", f"g < {bound}"):
        search.fill(text)
        expect(found).to_have_text(f"{count} found (Enter)")
    search.fill("nan")
    expect(found).to_have_text("nothing found")
    search.fill("layers[1] linear1 @")
    search.press("Enter")
    expect(found).to_have_text(re.compile("^1 of "))
    chosen = page.get_by_role("treeitem", selected=True)
    expect(chosen).to_have_attribute("aria-label", re.compile("^@ [+], AddmmBackward0"))
    expect(panel(page)).to_contain_text("model.layers[1].linear1")
    page.get_by_role("radio", name="Operations").click()
    expect(page.locator(".gl-chosen")).to_have_count(1)
    search.press("Enter")
    expect(page.locator(".gl-chosen:not(.gl-folded)")).to_have_count(1)
    search.press("Escape")
    expect(found).to_have_text("")
    assert page.faults == []


def test_folds_of_the_picture_open_and_close(open_widget):
    page = open_widget(encoder())
    page.get_by_role("radio", name="Operations").click()
    first = page.locator("[data-node]").count()
    page.locator(".gl-fold").first.click()
    idle(page)
    expect(page.locator("[data-node]")).not_to_have_count(first)
    opened = page.locator("[data-node]").count()
    assert opened > first
    stage(page).focus()
    page.keyboard.press("ArrowLeft")
    idle(page)
    expect(page.locator("[data-node]")).to_have_count(first)
    page.keyboard.press("ArrowRight")
    idle(page)
    expect(page.locator("[data-node]")).to_have_count(opened)
    page.get_by_role("button", name="unfold").click()
    page.get_by_role("button", name="unfold").click()
    idle(page)
    page.wait_for_function(f"document.querySelectorAll('[data-node]').length > {opened}")
    page.get_by_role("button", name="fold", exact=True).click()
    page.get_by_role("button", name="fold", exact=True).click()
    idle(page)
    expect(page.locator("[data-node]")).to_have_count(first)
    assert page.faults == []


def test_the_keyboard_moves_along_the_edges(open_widget):
    page = open_widget(zscores())
    stage(page).focus()
    page.keyboard.press("ArrowUp")
    expect(title(page)).to_have_text("loss")
    for want in ("neg", "sum", "diagonal"):
        page.keyboard.press("ArrowUp")
        expect(title(page)).to_have_text(want)
    expect(page.locator("[data-node][aria-current] > text:first-of-type")).to_have_text("diagonal")
    page.keyboard.press("ArrowDown")
    expect(title(page)).to_have_text("sum")
    page.keyboard.press("Enter")
    expect(panel(page)).to_be_focused()
    page.keyboard.press("Escape")
    expect(stage(page)).to_be_focused()
    page.get_by_role("radio", name="Code").click()
    rows = page.get_by_role("tree")
    rows.focus()
    page.keyboard.press("Home")
    expect(page.get_by_role("treeitem", selected=True)).to_have_attribute("aria-label", re.compile(r"^z1 = \(a - a.mean"))
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("treeitem", selected=True)).to_have_attribute("aria-expanded", "true")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("treeitem", selected=True)).to_have_attribute("aria-level", "2")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("treeitem", expanded=True)).to_have_count(0)
    assert page.faults == []


def test_pan_zoom_and_fit(open_widget):
    page = open_widget(zscores())
    whole = view_box(page)
    stage(page).focus()
    page.keyboard.press("+")
    near = view_box(page)
    assert near[2] == pytest.approx(whole[2] / 1.25)
    middle = [whole[0] + whole[2] / 2, near[0] + near[2] / 2]
    assert middle[0] == pytest.approx(middle[1]), "zoomed around the middle"
    area = page.locator(".gl-stage").bounding_box()
    x, y = area["x"] + 15, area["y"] + area["height"] - 15
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 40, steps=5)
    page.mouse.up()
    moved, scale = view_box(page), near[2] / area["width"]
    assert moved[0] - near[0] == pytest.approx(-60 * scale, abs=1) and moved[1] - near[1] == pytest.approx(40 * scale, abs=1)
    page.keyboard.press("f")
    assert view_box(page) == whole
    page.mouse.wheel(0, -300)
    assert view_box(page) == whole, "the wheel without Ctrl scrolls the page"
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function(
        f"Number(document.querySelector('.gl-stage > svg').getAttribute('viewBox').split(' ')[2]) < {whole[2]}"
    )
    page.get_by_role("button", name="show all").click()
    assert view_box(page) == whole


def test_colours_by_gradient_nan_and_bytes(open_widget):
    x = gl.tensor([0.0, 2.0], requires_grad=True)
    with gl.tracing():
        y = x.log()
        loss = (y * x).sum()
    page = open_widget(widget({"x": x, "y": y, "loss": loss}))
    page.get_by_label("colour by").select_option(label="NaN")
    assert page.locator(".gl-faulty > text:first-of-type").count() >= 2
    page.get_by_label("colour by").select_option(label="bytes")
    assert page.locator(".gl-faulty").count() == 0 and page.locator(".gl-tinted").count() >= 3
    page.get_by_label("colour by").select_option(label="nothing")
    assert page.locator(".gl-tinted, .gl-faulty").count() == 0


def test_paths_to_a_leaf_are_signed_and_meet(open_widget):
    # d = ab = −2, e = a − d = 4; ∂/∂d = e = 4, ∂/∂e = d + 1 = −1, so the gradient of d is 4 + 1 = 5; ∂loss/∂b = 5a = 10, of which
    # 4·2 = 8 pass through the product and 1·2 = 2 through the difference.
    page = open_widget(scalars())
    page.get_by_label("paths to").select_option(label="b")
    idle(page)
    expect(page.locator(".gl-summary")).to_contain_text("The gradient of b is 10")
    assert {"+8", "+2", "+10"} <= set(page.locator(".gl-labels text").all_text_contents())
    page.get_by_label("paths to").select_option(label="a")  # −1·5 through the product, −1 through the difference
    expect(page.locator(".gl-summary")).to_contain_text("The gradient of a is −6")
    assert {"−5", "−1"} <= set(page.locator(".gl-labels text").all_text_contents())
    assert page.locator(".gl-minus").count() >= 2
    page.get_by_label("paths to").select_option(label="no leaf")
    assert page.locator(".gl-minus, .gl-plus").count() == 0
    assert page.faults == []


def test_step_through_backward_in_the_same_view(open_widget):
    page = open_widget(scalars())
    page.get_by_role("button", name="step", exact=True).click()
    expect(page.locator(".gl-stepper")).to_be_visible()
    expect(page.locator(".gl-body")).to_be_hidden()
    page.get_by_role("button", name="to the end (End)").click()
    ports = page.locator(".gl-stepper .gl-leaf .gl-port").all_text_contents()
    assert sorted(ports) == sorted(["2−6", "−110"])
    page.get_by_role("button", name="step", exact=True).click()
    expect(page.locator(".gl-body")).to_be_visible()
    expect(page.locator(".gl-stepper")).to_be_hidden()
    assert page.faults == []


def test_closing_keeps_plain_data(open_widget):
    made = zscores()
    page = open_widget(made)
    made._release()
    page.evaluate("model.receive({ended: true}, {})")
    expect(page.get_by_role("alert")).to_contain_text("closed and its graph was freed")
    box(page, "neg").click()
    expect(title(page)).to_have_text("neg")
    page.get_by_role("radio", name="Code").click()
    rows = page.get_by_role("treeitem")
    assert rows.count() == 5
    rows.first.locator(".gl-twist").click()
    expect(page.get_by_role("treeitem", expanded=True)).to_have_count(1)
    page.get_by_role("radio", name="Operations").click()
    page.get_by_role("button", name="step", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("run the cell again for steps")
    assert page.faults == []


def test_a_dead_kernel_is_reported_when_the_user_asks(open_widget):
    made = encoder()
    made.timeout = 3.0
    page = open_widget(made, live=False)
    stop_clock(page)
    page.set_viewport_size({"width": 1400, "height": 900})  # the rows would be drawn wider
    page.wait_for_function("model.sent.length === 1")
    page.clock.run_for(60_000)
    alert = page.get_by_role("alert")
    expect(alert).to_be_hidden()
    expect(page.locator(".gl-waiting")).to_have_text("")
    page.get_by_role("treeitem").nth(1).click()
    page.clock.run_for(60_000)
    expect(alert).to_contain_text("The kernel does not answer")
    assert page.faults == []


def test_text_of_users_is_escaped(open_widget):
    gl.manual_seed(0)
    w = gl.randn(2, requires_grad=True)
    name = '<img src=x onerror="window.hurt=1">'
    loss = (w * w).sum()
    page = open_widget(widget({"loss": loss, name: w}))
    from gradlab.notebook.graph_widget import GraphWidget

    page = open_widget(GraphWidget(Explorer.of([loss], {}, {"loss": loss, name: w})))
    page.locator(".gl-leaf > text:first-of-type").click()
    expect(title(page)).to_have_text(name)
    assert page.locator(".gl-explorer img").count() == 0 and page.evaluate("window.hurt") is None


@pytest.mark.parametrize("width", exhaustive_after_first(700, 1000, 1300))
def test_nothing_is_cut_off(open_widget, width):
    page = open_widget(encoder())
    page.set_viewport_size({"width": width, "height": 900})
    for level in ("Modules", "Code", "Operations"):
        page.get_by_role("radio", name=level).click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        over = page.evaluate(
            """() => { const root = document.querySelector('.gl-explorer').getBoundingClientRect();
                 return [...document.querySelectorAll('.gl-tree, .gl-bar-tools > *, .gl-panel, .gl-pane')]
                   .filter(n => n.offsetParent && n.getBoundingClientRect().right > root.right + 1).length; }"""
        )
        assert over == 0, level


@pytest.mark.parametrize("width", [1050, 1900])
def test_the_controls_are_on_one_line(open_widget, width):
    page = open_widget(zscores())
    page.set_viewport_size({"width": width, "height": 900})
    for level in ("Code", "Operations"):
        page.get_by_role("radio", name=level).click()
        middles = page.locator(".gl-bar-tools > *").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width).map(box => box.top + box.height / 2)"
        )
        assert max(middles) - min(middles) < 4, level
    hint, room = page.get_by_role("textbox").evaluate(
        """field => { const style = getComputedStyle(field), pen = document.createElement('canvas').getContext('2d');
                      pen.font = style.font;
                      return [pen.measureText(field.placeholder).width,
                              field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)]; }"""
    )
    assert hint <= room


def test_terms_are_explained_on_focus(open_widget):
    page = open_widget(encoder())
    for name, text in (("leaf", "no recorded operation made"), ("norm", "Euclidean norm"), ("ratio", "divided by")):
        term = page.locator(f"[data-gradlab-term={name}]:visible")
        expect(term).to_have_count(1)
        expect(term).to_have_attribute("title", re.compile(text))
        term.focus()
        shown, title = term.evaluate("one => [getComputedStyle(one, '::after').content, one.title]")
        assert json.loads(shown) == title
    assert page.faults == []


def test_everything_has_a_name_for_screen_readers(open_widget):
    page = open_widget(zscores())
    box(page, "sum").click()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('.gl-explorer :is(button, input, select, [role], [tabindex])')].filter(n =>
             !n.getAttribute('aria-label') && !n.textContent.trim() && !n.title &&
             !['status', 'alert'].includes(n.getAttribute('role'))).map(n => n.outerHTML.slice(0, 90))"""
    )
    assert nameless == []
    assert page.locator("[data-node][role=button][aria-label]").count() == page.locator("[data-node]").count()


def test_the_data_is_json(open_widget):
    json.dumps(zscores().about, allow_nan=False)

"""The stepper in a browser: the saved page and the widget, by buttons and keys, with the kernel's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from lab import stop_clock

import gradlab as gl
from gradlab.notebook.stepper_widget import StepperWidget


def small():
    with gl.tracing():
        a, b = gl.tensor(-3.0, requires_grad=True), gl.tensor(2.0, requires_grad=True)
        c = a * b
        out = 2 * (c + b**3).relu()
    return a, b, out


@pytest.fixture
def open_page(browser, tmp_path):
    """Function `open_page(walk)` that opens the saved page. It must have no requests and no errors in the console."""
    pages = []

    def open_(walk, **options):
        path = walk.save(tmp_path / f"{len(pages)}.html", **options)
        context = browser.new_context(viewport={"width": 1000, "height": 800})
        page = context.new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector(".gl-stepper")
        pages.append((context, page, said, asked))
        return page

    yield open_
    for context, _, said, asked in pages:
        assert said == [] and len(asked) == 1, (said, asked)
        context.close()


def step_of(page):
    return int(page.locator(".gl-stepper").get_attribute("data-step"))


def totals(page):
    """Return the totals of the table by name."""
    rows = page.locator(".gl-shares tbody tr")
    return {rows.nth(i).locator("th").inner_text(): rows.nth(i).locator(".gl-now").inner_text() for i in range(rows.count())}


def test_a_page_steps_to_the_end_and_back(open_page):
    a, b, out = small()
    page = open_page(gl.step_through(out))
    assert step_of(page) == 0 and "starts with gradient=1" in page.locator(".gl-sentence").inner_text()
    for k in range(1, 6):
        page.get_by_role("button", name="next (→)").click()
        assert step_of(page) == k
    assert totals(page) == {"a": "4", "b": "18"}
    assert "24 − 6 = 18" in page.locator(".gl-sum").inner_text() and "final" in page.locator(".gl-sum").inner_text()
    assert page.locator(".gl-active > text:first-of-type").text_content() == "×"
    assert page.locator(".gl-source mark").inner_text() == "a * b"
    assert page.locator("math").count() == 3
    labels = page.locator(".gl-labels text").all_text_contents()
    assert sorted(labels) == ["2·2 = 4", "−3·2 = −6"]
    assert page.locator(".gl-head-arrow").count() == len(gl.step_through(out).trace.edges)
    for k in range(4, -1, -1):
        page.get_by_role("button", name="back (←)").click()
        assert step_of(page) == k
    assert page.locator(".gl-active > text").text_content() == "out", "the start of the sweep"


def test_keys(open_page):
    _, _, out = small()
    page = open_page(gl.step_through(out))
    page.keyboard.press("Tab")  # the first button
    for key, there in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1), ("End", 5), ("Home", 0)):
        page.keyboard.press(key)
        assert step_of(page) == there, key
    said = page.locator(".gl-spoken[aria-live=polite]")
    page.keyboard.press("ArrowRight")
    assert "Step 1 of 5: × MulBackward0" in said.inner_text()
    node = page.locator("[role=button][aria-label^='run to step 4']")
    node.focus()
    assert node.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert step_of(page) == 4
    figure = page.locator("svg.gl-figure[role=group]")
    assert figure.locator("> title").text_content() == "graph of 8 nodes"
    page.keyboard.press("Home")
    stop_clock(page)
    page.keyboard.press(" ")  # plays
    assert step_of(page) == 1
    page.clock.run_for(1200)  # a step lasts 1.1 s
    assert step_of(page) == 2
    page.keyboard.press(" ")
    page.clock.run_for(60_000)
    assert step_of(page) == 2


def test_a_scalar_start_is_multiplied_in_a_page(open_page):
    a, b, out = small()
    page = open_page(gl.step_through(out))
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    start = page.get_by_label("starting gradient")
    start.fill("-0.5")
    start.press("Enter")
    assert totals(page) == {"a": "−2", "b": "−9"}
    expected = gl.step_through(out, -0.5).steps[-1].shares
    assert [share["total"] for share in expected] == [-2, -9]
    assert "linear in its start" in page.locator(".gl-scaled").inner_text()
    page.locator(".gl-byhand summary").click()
    code = page.locator(".gl-byhand pre").inner_text()
    space = {"a": a, "b": b, "out": out}
    exec(code, space)  # the code runs as shown
    assert [g.item() for g in space["gradients"]] == [-2, -9]
    start.fill("many")
    start.press("Enter")
    assert "one number" in page.get_by_role("alert").inner_text()


def test_a_large_graph_is_shown_around_its_active_operation(open_page):
    x = gl.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(200):
        y = y * 1.01 + x
    page = open_page(gl.step_through(y))
    page.keyboard.press("Tab")
    for key, there in (("ArrowRight", 1), ("ArrowRight", 2), ("End", 400), ("ArrowLeft", 399)):
        page.keyboard.press(key)
        assert step_of(page) == there
        assert page.locator(".gl-around button").count() <= 14
        assert page.locator(".gl-active").count() == 1
    assert "neighbours" in page.locator(".gl-around").inner_text()
    page.locator(".gl-around > div").nth(2).get_by_role("button").first.focus()  # the source of the active operation's gradient
    page.keyboard.press("Enter")
    there = step_of(page)
    assert there < 399
    page.keyboard.press("ArrowRight")  # the focus is kept when the buttons are replaced
    assert step_of(page) == there + 1


def test_a_page_opens_at_the_loss_with_it_in_view(open_page):
    gl.manual_seed(0)
    model = gl.nn.Sequential(*(layer for _ in range(5) for layer in (gl.nn.Linear(4, 4), gl.nn.Tanh())))
    with gl.tracing():
        loss = (model(gl.randn(8, 4)) ** 2).mean()
    page = open_page(gl.step_through(loss))
    scroll, output = page.locator(".gl-stepper-graph"), page.locator(".gl-output.gl-active")
    assert scroll.evaluate("it => it.scrollHeight > it.clientHeight")
    inside = """it => {
      const scroll = it.closest(".gl-stepper-graph"), box = it.getBoundingClientRect(), view = scroll.getBoundingClientRect();
      return box.top >= view.top && box.bottom <= view.bottom && box.left >= view.left && box.right <= view.right; }"""
    page.wait_for_function(f"({inside})(document.querySelector('.gl-output.gl-active'))")
    assert output.locator("text").first.text_content() == "loss"
    page.locator(".gl-stepper-body").evaluate("it => { it.style.display = 'none' }")
    page.get_by_role("button", name="to the end (End)").click()
    page.get_by_role("button", name="back to the start (Home)").click()
    scroll.evaluate("it => { it.scrollTop = 0 }")
    page.locator(".gl-stepper-body").evaluate("it => { it.style.display = '' }")
    page.wait_for_function(f"({inside})(document.querySelector('.gl-output.gl-active'))")


def matrices(repeats):
    gl.manual_seed(0)
    with gl.tracing():
        A, B = gl.randn(3, 3, requires_grad=True), gl.randn(3, 3, requires_grad=True)
        C = A
        for _ in range(repeats):
            C = (C @ B).tanh()
        loss = (C * A).sum()
    return A, B, gl.step_through(loss)


def numbers(texts):
    return [float(text.replace("−", "-")) for text in texts]


def test_small_matrices_show_all_numbers_and_both_factors(open_page):
    A, B, walk = matrices(1)
    page = open_page(walk)
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    (gradient,) = (share["total"] for share in walk.steps[-1].shares if share["name"] == "B")
    leaf = page.locator(".gl-leaf", has_text="B")
    assert numbers(leaf.locator(".gl-orange text").all_text_contents()) == pytest.approx(gradient.reshape(-1).tolist(), rel=6e-3)
    assert numbers(leaf.locator(".gl-port g:not(.gl-orange) text").all_text_contents()) == pytest.approx(
        B.detach().numpy().reshape(-1).tolist(), rel=6e-3
    )
    assert set(page.locator(".gl-labels text").all_text_contents()) == {"grad @ B.T", "A.T @ grad"}
    row = page.locator(".gl-shares > table > tbody > tr", has_text="A.T")
    grids = row.locator(".gl-matrix")
    one, two, product = (numbers(grids.nth(i).locator("td").all_text_contents()) for i in range(3))
    assert one == pytest.approx(A.detach().numpy().T.reshape(-1).tolist(), rel=6e-3)
    assert np.reshape(one, (3, 3)) @ np.reshape(two, (3, 3)) == pytest.approx(np.reshape(product, (3, 3)), abs=0.05)
    terms = page.locator(".gl-terms .gl-matrix")
    parts = [numbers(terms.nth(i).locator("td").all_text_contents()) for i in range(3)]
    assert np.add(parts[0], parts[1]) == pytest.approx(parts[2], abs=0.05), "A has the sum of both"


def test_a_large_graph_opens_at_the_loss_and_has_the_numbers_of_matrices(open_page):
    page = open_page(matrices(40)[-1])
    active = page.locator(".gl-around .gl-active")
    assert active.locator("b").inner_text() == "loss" and active.locator(".gl-back").inner_text() == "1"
    page.keyboard.press("Tab")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert page.locator(".gl-around .gl-active .gl-matrix").count() == 2, "a value and a gradient"
    assert page.locator(".gl-around small", has_text="grad @ B.T").count() == 1


def test_without_values_there_are_no_numbers(open_page):
    _, _, out = small()
    page = open_page(gl.step_through(out), values=False)
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert step_of(page) == 5 and not page.get_by_label("starting gradient").is_visible()
    text = page.locator("main").inner_text()
    assert "18" not in text and "a * b" not in text


def test_the_widget_asks_the_kernel_for_another_start(open_widget):
    a, b, out = small()
    widget = StepperWidget(gl.step_through(out))
    page = open_widget(widget)
    page.wait_for_selector(".gl-stepper")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert totals(page) == {"a": "4", "b": "18"}
    start = page.get_by_label("starting gradient")
    start.fill("10")
    start.press("Enter")
    page.wait_for_function("document.querySelector('.gl-now').innerText === '40'")
    assert totals(page) == {"a": "40", "b": "180"} and (a.grad, b.grad) == (None, None)
    widget.close()


def test_a_vector_start_is_edited_in_the_widget(open_widget):
    x = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    widget = StepperWidget(gl.step_through(y, [1.0, 1.0, 1.0]))
    page = open_widget(widget)
    page.wait_for_selector(".gl-stepper")
    start = page.get_by_label("starting gradient")
    assert start.input_value() == "1, 1, 1"
    start.fill("0, 0, 5")
    start.press("Enter")
    page.get_by_role("button", name="to the end (End)").click()
    page.wait_for_function("document.querySelectorAll('.gl-now')[1]?.innerText === '[0, 0, 30]'")
    start.fill("1, 2")
    start.press("Enter")
    assert "3 numbers" in page.get_by_role("alert").inner_text()


def test_the_widget_releases_the_graph(open_widget):
    _, _, out = small()
    walk = gl.step_through(out)
    widget = StepperWidget(walk)
    page = open_widget(widget)
    page.wait_for_selector(".gl-stepper")
    widget._answer(None, {"ask": "gone", "id": "x"}, [])
    assert walk.is_closed and widget.ended
    widget._answer(None, {"ask": "start", "numbers": [2.0], "id": "y"}, [])  # it answers and does not raise
    page.get_by_role("button", name="next (→)").click()
    assert step_of(page) == 1

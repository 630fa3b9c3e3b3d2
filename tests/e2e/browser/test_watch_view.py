"""The view of a training in Chromium without Jupyter: the saved page, and the widget with frames from the loop."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from grouped import exhaustive_after_first
from lab import expect, wait_until_drawn

import gradlab as gl
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.watch.columns import Columns
from gradlab.explore.watch.examination import ExaminationResult
from gradlab.explore.watch.page import view_data
from gradlab.notebook.watch_widget import WatchWidget


def example(steps=60, bad=None, replay=False):
    gl.manual_seed(0)
    net = gl.nn.Sequential(gl.nn.Linear(4, 8), gl.nn.ReLU(), gl.nn.Linear(8, 1))
    opt = gl.optim.SGD(net.parameters(), lr=0.05)
    rng = np.random.default_rng(0)
    x, y = (gl.tensor(rng.normal(size=shape).astype(np.float32)) for shape in ((32, 4), (32, 1)))

    def loss_of(x, y):
        return ((net(x) - y) ** 2).mean()

    w = gl.watch(net, opt, replay=loss_of if replay else None)
    return w, net, opt, x, y, loss_of


def make_steps(w, opt, x, y, loss_of, steps):
    for _ in range(steps):
        opt.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        opt.step()
        w.log(loss)


@pytest.fixture
def run():
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 60)
    return w


def place(page, step):
    """Return the position of a step in the first plot on the page."""
    return page.locator(".gl-stage svg").evaluate(
        """(drawing, step) => { const [left, top, width] = drawing.dataset.frame.split(' ').map(Number),
             [low, high] = drawing.dataset.x.split(' ').map(Number),
             at = new DOMPoint(left + width * (step - low) / (high - low), top + 20).matrixTransform(drawing.getScreenCTM());
             return [at.x, at.y]; }""",
        step,
    )


def open_page(browser, path, **options):
    page = browser.new_context(viewport={"width": 1200, "height": 800}, **options).new_page()
    page.faults = []
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("console", lambda message: page.faults.append(message.text) if message.type == "error" else None)
    page.on("request", lambda asked: page.faults.append(asked.url) if not asked.url.startswith(("file:", "data:")) else None)
    page.goto(path.as_uri())
    return page


def test_a_saved_page_slides_back_and_asks_no_host(run, browser, tmp_path):
    page = open_page(browser, run.save(tmp_path / "run.html"))
    expect(page.locator(".gl-head")).to_contain_text("Step 60")
    assert page.locator(".gl-stage svg path").count() > 10
    slider = page.get_by_label("step", exact=True)
    slider.focus()
    page.keyboard.press("Home")
    expect(page.locator(".gl-side .gl-caption")).to_contain_text("step 1")
    found = run.history()
    cells = page.locator(".gl-layers tbody tr").first.locator("td")
    assert float(cells.nth(0).inner_text().replace("−", "-")) == pytest.approx(found["gradient net[0]"][0], rel=0.06)
    assert cells.nth(0).get_attribute("title").replace("−", "-") == f"{found['gradient net[0]'][0]:.5g}"
    assert page.locator("svg.gl-histogram").count() == 4
    page.get_by_role("button", name="Newest").click()
    expect(page.locator(".gl-side .gl-caption")).to_contain_text("Latest: step 60")
    assert page.faults == []
    page.context.close()


def test_a_click_on_a_step_shows_its_numbers(run, browser, tmp_path):
    page = open_page(browser, run.save(tmp_path / "run.html"))
    page.mouse.click(*place(page, 29.5))
    page.mouse.move(5, 5)
    expect(page.locator(".gl-side .gl-caption b")).to_have_text("step 30")
    page.context.close()


@pytest.mark.parametrize("width", [760, 1300])
def test_a_line_marks_the_step_under_the_pointer_in_all_plots(run, browser, tmp_path, width):
    page = open_page(browser, run.save(tmp_path / "run.html"))
    page.set_viewport_size({"width": width, "height": 800})
    wait_until_drawn(page)
    hair = page.locator(".gl-stage .gl-hair")
    expect(hair).to_have_attribute("visibility", "hidden")
    page.mouse.move(*place(page, 19.5))
    expect(page.locator(".gl-side .gl-caption b")).to_have_text("step 20")
    expect(hair).to_have_attribute("visibility", "visible")

    def boxes(what):
        found = "nodes => nodes.map(node => (box => [box.x + box.width / 2, box.top, box.bottom])(node.getBoundingClientRect()))"
        return page.locator(f".gl-stage svg {what}").evaluate_all(found)

    (line,) = boxes(".gl-hair")
    ends, later = boxes("text[text-anchor=middle]:text-is('20')"), boxes("text[text-anchor=middle]:text-is('40')")
    assert len(ends) == len(later) == 3, "the steps are below each plot"
    step = (later[0][0] - ends[0][0]) / 20
    assert line[0] == pytest.approx(ends[0][0] - step / 2, abs=0.6), "the line is in the middle of step 20, which ends at 20"
    assert line[1] < ends[0][1] - 50 and line[2] > ends[2][1] - 20, "the line spans all plots"
    page.mouse.move(5, 5)
    expect(hair).to_have_attribute("visibility", "hidden")
    expect(page.locator(".gl-side .gl-caption")).to_contain_text("Latest: step 60")
    page.context.close()


def test_names_and_findings_are_escaped(browser, tmp_path):
    bad = "</script><img src=x onerror=alert(1)>`"
    w0 = gl.ones(2).requires_grad_()
    with gl.watch({bad: w0}, loss=bad) as w:
        for _ in range(3):
            loss = (w0 * float("nan")).sum()
            loss.backward()
            w.log(loss)
    path = w.save(tmp_path / "run.html")
    page = open_page(browser, path)
    expect(page.locator(".gl-layers code").first).to_have_text(bad)
    assert page.locator("img").count() == 0 and page.faults == []
    assert "<img" not in w._repr_mimebundle_()["text/html"].replace("<img alt=", "")
    page.context.close()


def test_ten_thousand_steps_open(browser, tmp_path):
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 5)
    columns = Columns(w.measuring.layout.size)
    columns.add(np.arange(10_000), np.abs(np.random.default_rng(0).normal(size=(10_000, w.measuring.layout.size))) + 1e-3)
    w.measuring.columns, w.measuring.steps = columns, 10_000
    path = w.save(tmp_path / "run.html")
    page = open_page(browser, path)
    assert "10 000" in page.locator(".gl-head").inner_text().replace("\u202f", " ")
    page.locator(".gl-stage svg path").first.wait_for()
    assert page.locator("*").count() < 10_000, "the page has no element per step"
    page.context.close()


def test_a_chosen_step_stays_when_columns_become_wider(open_widget):
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 5)
    widget = WatchWidget(w)
    page = open_widget(widget, live=False)

    def show(steps):
        columns = Columns(w.measuring.layout.size)
        columns.add(np.arange(steps), np.full((steps, w.measuring.layout.size), 0.5))
        w.measuring.columns, w.measuring.steps = columns, steps
        page.evaluate("run => model.receive({ run }, {})", json.loads(json.dumps(view_data(w))))

    show(200)
    page.mouse.click(*place(page, 100.5))
    page.mouse.move(5, 5)
    caption = page.locator(".gl-side .gl-caption b")
    expect(caption).to_have_text("step 101")
    show(300)
    expect(caption).to_have_text("steps 101 to 102, means")
    expect(page.get_by_label("step", exact=True)).to_have_value("50")
    line = page.locator(".gl-stage .gl-hair").evaluate("line => line.getBoundingClientRect().x")
    assert line == pytest.approx(place(page, 101)[0], abs=0.6), "the position in the new picture"
    assert page.faults == []


@pytest.mark.parametrize("width", exhaustive_after_first(800, 700, 1000, 1300))
def test_nothing_is_cut_off(run, browser, tmp_path, width):
    page = open_page(browser, run.save(tmp_path / "run.html"))
    page.set_viewport_size({"width": width, "height": 800})
    wait_until_drawn(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.evaluate("(s => s.scrollWidth <= s.clientWidth + 1)(document.querySelector('.gl-side .gl-scroll'))")
    shown = page.locator(".gl-stage svg").bounding_box()
    for text in page.locator(".gl-stage svg text").all():
        box = text.bounding_box()
        assert box["x"] >= shown["x"] - 0.5 and box["x"] + box["width"] <= shown["x"] + shown["width"] + 0.5, text.inner_html()
        assert box["y"] >= shown["y"] - 0.5 and box["y"] + box["height"] <= shown["y"] + shown["height"] + 0.5, text.inner_html()
    if width >= 800:
        assert 10.5 * shown["width"] / 760 >= 9.5, "its text is readable"
    page.context.close()


# ------------------------------------------------------------------------------------------------------------ the widget
def test_frames_from_the_loop_add_up_to_the_run(open_widget, clock):
    w, _, opt, x, y, loss_of = example()
    with w:
        widget = WatchWidget(w)
        page = open_widget(widget, live=False)
        sent = []
        widget.send = lambda content, buffers=None: sent.append(content)
        for _ in range(20):
            make_steps(w, opt, x, y, loss_of, 2)
            clock.move(1)
            widget.step()
            whole = json.loads(json.dumps(widget.run))
            for content in sent:
                page.evaluate("frame => model.notify(frame)", json.loads(json.dumps(content)))
            if not sent:
                page.evaluate("run => model.receive({ run }, {})", whole)
            sent.clear()
        steps = int(re.sub(r"\D", "", page.locator(".gl-head b").first.inner_text()))
        assert steps == 40
        shown = page.locator(".gl-layers tbody tr").first.locator("td").first.get_attribute("title")
        assert shown.replace("−", "-") == f"{w.history()['gradient net[0]'][-1]:.5g}"
    assert page.faults == []


def test_pause_sets_a_flag_and_reports_if_it_has_no_effect(open_widget):
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 3)
        page = open_widget(WatchWidget(w))
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        assert w.is_paused
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Pause")).to_be_visible()
        assert not w.is_paused
        silent = open_widget(WatchWidget(w), live=False)  # a kernel that gets no messages while it runs
        silent.get_by_role("button", name="Pause").click()
        expect(silent.locator(".gl-waiting")).to_contain_text("after the loop")


def test_a_bad_step_is_replayed(open_widget):
    w, _, opt, x, y, loss_of = example(replay=True)
    bad = x * 1
    bad[0, 0] = float("nan")
    with w:
        for step in range(6):
            opt.zero_grad()
            w.loss(bad if step == 4 else x, y).backward()
            opt.step()
        assert w.bad_step.step == 5
    page = open_widget(WatchWidget(w))
    expect(page.locator(".gl-findings")).to_contain_text("At step 5")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator(".gl-aside > pre").first).to_contain_text("NaN")
    assert page.faults == []


def finding(k):
    return Finding("vanishing", f"`layers[{k}]` <b>is</b> one of several.", 7 + k, fix=f"Change `layers[{k}]`.", worth=9.0 - k)


def test_findings_have_line_kind_and_fix_and_more_than_three_are_folded(open_widget):
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 3)
        w._judge.examination = ExaminationResult(Diagnosis(tuple(finding(k) for k in range(5))))
        page = open_widget(WatchWidget(w), live=False)
        rows = page.locator(".gl-findings > div")
        expect(rows).to_have_count(3)
        expect(rows.nth(1)).to_contain_text("■ Problem  layers[1] <b>is</b> one of several.  line 8  [vanishing]")
        expect(rows.nth(1).locator(".gl-fix")).to_have_text("Change layers[1].")
        expect(rows.nth(1).locator(".gl-kind")).to_have_attribute("title", KINDS["vanishing"].meaning)
        more = page.locator(".gl-findings details")
        expect(more.locator("summary")).to_have_text("2 more")
        more.locator("summary").click()
        expect(more.locator("> div")).to_have_count(2)
        make_steps(w, opt, x, y, loss_of, 3)
        page.evaluate("run => model.receive({ run }, {})", json.loads(json.dumps(view_data(w))))
        expect(page.locator(".gl-head b").first).to_have_text("Step 6")
        expect(more).to_have_attribute("open", "")  # still open
    assert page.faults == []


def test_a_nonfinite_loss_at_the_end_is_reported_everywhere(browser, tmp_path):
    w, _, opt, x, y, loss_of = example()
    with w:
        make_steps(w, opt, x, y, loss_of, 10)
        make_steps(w, opt, x * float("nan"), y, loss_of, 10)
    page = open_page(browser, w.save(tmp_path / "run.html"))
    expect(page.locator(".gl-head")).to_contain_text("loss not finite from step 11 on")
    expect(page.locator(".gl-layers tbody tr").first.locator("td").first).to_have_text("not finite")
    expect(page.locator(".gl-stage svg text", has_text="not finite")).not_to_have_count(0)
    assert "0.0" not in page.locator(".gl-caption").inner_text().split("lr")[0]
    page.context.close()
    assert "not finite from step 11 on" in repr(w) and repr(w).count("not finite  ") >= 2

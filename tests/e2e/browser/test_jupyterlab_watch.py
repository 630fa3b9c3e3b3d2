"""The view of a training in JupyterLab: updates while the kernel is busy, an interrupt, a reload, a replayed step."""

from __future__ import annotations

import re

import pytest
from lab import expect

SETUP = """%load_ext gradlab
import gradlab as gl, itertools
gl.manual_seed(0)
net = gl.nn.Sequential(gl.nn.Linear(4, 8), gl.nn.ReLU(), gl.nn.Linear(8, 1))
opt = gl.optim.SGD(net.parameters(), lr=0.05)
x, y = gl.randn(32, 4), gl.randn(32, 1)
def loss_of(x, y):
    return ((net(x) - y) ** 2).mean()
def train(steps, bad=None):
    with gl.watch(net, opt, replay=loss_of) as w:
        globals()["w"] = w
        for step in steps:
            opt.zero_grad()
            w.loss(x * float("nan") if step == bad else x, y).backward()
            if step != bad:
                opt.step()"""


def steps(view):
    return int(re.sub(r"\D", "", view.locator(".gl-head b").first.inner_text()))


def test_it_is_updated_while_the_kernel_is_busy_and_survives_an_interrupt_and_a_reload(open_notebook):
    page = open_notebook([SETUP, "train(itertools.count(1))", "w.steps"])
    page.run_cell(0)
    page.page.evaluate(
        "() => { const nb = jupyterapp.shell.currentWidget; nb.content.activeCellIndex = 1; nb.content.deselectAll();"
        " jupyterapp.commands.execute('notebook:run-cell'); }"
    )
    view = page.output(1).locator(".gl-watch")
    expect(view).to_be_visible(timeout=60_000)
    expect(view).to_have_attribute("data-running", "")
    first = steps(view)
    page.page.wait_for_function(
        "first => Number(document.querySelector('.gl-watch .gl-head b').textContent.replace(/\\D/g, '')) > first + 20",
        arg=first,
    )
    slider = view.get_by_label("step", exact=True)  # the history is in the browser, since the kernel is busy
    slider.focus()
    page.page.keyboard.press("Home")
    expect(view.locator(".gl-caption b")).to_have_text(re.compile(r"^steps? 1\b"))
    page.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")
    expect(view).not_to_have_attribute("data-running", "")
    expect(view.locator(".gl-head")).to_contain_text("stopped by KeyboardInterrupt")
    made = steps(view)
    page.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
    page.page.reload()
    view = page.output(1).locator(".gl-watch")
    expect(view).to_be_visible(timeout=60_000)
    assert steps(view) == made


@pytest.mark.exhaustive
def test_a_bad_step_is_replayed_by_a_click(open_notebook):
    page = open_notebook([SETUP, "train(range(1, 41), bad=20)"])
    page.run_cell(0)
    page.run_cell(1)
    view = page.output(1).locator(".gl-watch")
    expect(view.locator(".gl-findings")).to_contain_text("At step")
    view.get_by_role("button", name="Replay").click()
    expect(view.locator(".gl-aside > pre").first).to_contain_text("NaN")


SEVERAL = """%%watch -o w
import itertools
for width in (3, 4):
    net = gl.nn.Sequential(gl.nn.Linear(4, width), gl.nn.ReLU(), gl.nn.Linear(width, 1))
    opt = gl.optim.SGD(net.parameters(), lr=0.05)
    for step in itertools.count() if width == 4 else range(30):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()"""


@pytest.mark.exhaustive
def test_each_training_of_a_cell_has_a_tab(open_notebook):
    page = open_notebook([SETUP, SEVERAL, "print(*w)"])
    page.run_cell(0)
    page.page.evaluate(
        "() => { const nb = jupyterapp.shell.currentWidget; nb.content.activeCellIndex = 1; nb.content.deselectAll();"
        " jupyterapp.commands.execute('notebook:run-cell'); }"
    )
    view = page.output(1).locator(".gl-watch")
    first, second = (view.get_by_role("tab", name=f"width={width}") for width in (3, 4))
    expect(second).to_have_attribute("aria-selected", "true", timeout=60_000)
    expect(second).to_have_attribute("data-running", "")
    expect(first).not_to_have_attribute("data-running", "")
    first.click()
    expect(view.locator(".gl-run:visible .gl-head b").first).to_have_text("Step 30")
    second.click()
    made = steps(view.locator(".gl-run:visible"))
    page.page.wait_for_function(
        "made => Number(document.querySelector('.gl-run:not([hidden]) .gl-head b').textContent.replace(/\\D/g, '')) > made",
        arg=made,
    )
    page.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")
    expect(view).not_to_have_attribute("data-running", "")
    expect(view.locator(".gl-run:visible .gl-head")).to_contain_text("stopped by KeyboardInterrupt")
    expect(page.cell(1).locator(".jp-InputPrompt").first).to_have_text("[2]:")
    page.run_cell(2)
    assert page.text(2).split() == ["width=3", "width=4"]
    assert page.errors == []

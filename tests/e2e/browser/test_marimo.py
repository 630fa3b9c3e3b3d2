"""Marimo without Jupyter: pictures and live views in a served app, and pictures in an exported page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from lab import environment, expect
from waiting import TIMEOUT_SECONDS, wait_until

pytest.importorskip("marimo", reason="needs the extra e2e")

SETUP = """import gradlab as gl
w = gl.tensor([1.0, 2.0], requires_grad=True)
with gl.tracing():
    loss = (w * w).sum()
model = gl.nn.Linear(3, 1)
optimizer = gl.optim.SGD(model.parameters(), lr=0.1)
with gl.watch(model, optimizer) as run:
    for _ in range(5):
        optimizer.zero_grad()
        error = model(gl.ones(4, 3)).square().mean()
        error.backward()
        optimizer.step()
        run.log(error)"""
PICTURES = {
    "gl.explain(loss)": "loss = 5, with respect to w",
    "gl.graph(loss)": "<img",
    "gl.graph(model, gl.ones(4, 3))": "<img",
    "gl.step_through(loss)": "<img",
    "gl.jacobian(w * w, w)": "<img",
    "gl.playground(lambda t: t * t, t=(-2, 2))": "<img",
    "run": "Step 5",
    "gl.doctor(loss)": "Nothing was found.",
}
VIEWS = [
    "gl.graph(loss).widget()",
    "gl.step_through(loss).widget()",
    "gl.jacobian(w * w, w).widget()",
    "gl.playground(lambda t: t * t, t=(-2, 2)).widget()",
    "run.widget()",
]


def notebook(shown):
    """Return the text of a marimo notebook with a cell for each expression."""
    names = "gl, loss, model, run, w"
    setup = SETUP.replace("\n", "\n    ")
    cells = [f"@app.cell\ndef _():\n    {setup}\n    return {names}\n"]
    cells += [f"@app.cell\ndef _({names}):\n    {one}\n    return\n" for one in shown]
    return "import marimo\n\napp = marimo.App()\n\n" + "\n".join(cells) + '\nif __name__ == "__main__":\n    app.run()\n'


@pytest.fixture
def marimo(tmp_path):
    """Function `marimo(command, shown)` that starts a command of marimo on a notebook that shows expressions."""
    started = []
    places = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")}

    def start(command, shown, *options):
        path = tmp_path / "app.py"
        path.write_text(notebook(shown), encoding="utf-8")
        with (tmp_path / "marimo.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "marimo", *command, os.fspath(path), *options],
                env={**environment(tmp_path), **places},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        started.append(process)
        return process, tmp_path / "marimo.log"

    yield start
    for process in started:
        process.terminate()
        process.wait(TIMEOUT_SECONDS)


def url_of(process, log):
    """Return the address of a server, which it prints once it listens."""

    def find_address():
        assert process.poll() is None, log.read_text()
        return re.search(r"http://(?:localhost|127\.0\.0\.1):\d+", log.read_text())

    return wait_until(find_address, "marimo's address")[0]


def test_live_views_work_in_an_app(browser, marimo):
    url = url_of(*marimo(["run"], VIEWS, "--headless", "--no-token", "--host", "127.0.0.1"))
    page, asked = browser.new_page(viewport={"width": 1200, "height": 900}), []
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(url)
        explorer, stepper, jacobian = (page.locator(f".gl-{name}") for name in ("explorer", "stepper", "jacobian"))
        playground, watch = page.locator(".gl-playground"), page.locator(".gl-watch")
        expect(explorer).to_contain_text("loss = 5")
        expect(watch).to_contain_text("Step 5")
        start = stepper.get_by_label("starting gradient")
        start.fill("0.5")
        start.press("Enter")
        expect(stepper.locator(".gl-head")).to_contain_text("gradient=0.5")  # Python has run the sweep again
        expect(jacobian.locator(".gl-head")).to_contain_text("no row yet")
        jacobian.get_by_role("button", name="step").first.click()
        expect(jacobian.locator(".gl-head")).not_to_contain_text("no row yet")
        slider = playground.get_by_role("slider").first
        slider.focus()
        slider.press("Home")
        expect(playground.locator(".gl-head")).to_contain_text("slope −4")
        assert [address for address in asked if not address.startswith((url, "data:", "blob:"))] == []
    finally:
        page.close()


def test_an_exported_page_has_every_picture(marimo, tmp_path):
    process, log = marimo(["export", "html"], PICTURES, "--output", os.fspath(tmp_path / "page.html"))
    assert process.wait(TIMEOUT_SECONDS) == 0, log.read_text()
    (session,) = (tmp_path / "__marimo__" / "session").glob("*.json")
    _, *cells = json.loads(session.read_text())["cells"]
    for (shown, expected), cell in zip(PICTURES.items(), cells, strict=True):
        (output,) = cell["outputs"]
        assert output["type"] == "data", (shown, output)
        text = re.sub(r"</?(?:b|code)\b[^>]*>", "", json.dumps(output["data"], ensure_ascii=False))
        assert expected in text, shown
        assert "<script" not in text, shown

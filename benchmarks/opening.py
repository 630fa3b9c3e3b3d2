"""Measure the times in which live views open, fold and step, and the sizes of views and reports.

  python -m benchmarks.opening [--rounds N] [--nodes N …] [--sizes]

Each view is opened in a headless Chromium with the JavaScript of its widget, and the widget in Python answers its messages.
"created" is the time until Python has the widget. The other times end with the frame that shows the change: opening starts with
`render`, folding and stepping start with the key and include the kernel's answer. Medians in milliseconds are printed, without
the first round.
"""

from __future__ import annotations

import argparse
import base64
import shutil
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import gradlab as gl
from gradlab.explore.explorer import Explorer
from gradlab.explore.names import names_in
from gradlab.notebook.graph_widget import GraphWidget
from gradlab.notebook.jacobian_widget import JacobianWidget
from gradlab.notebook.playground_widget import PlaygroundWidget
from gradlab.notebook.question_widget import QuestionWidget
from gradlab.notebook.stepper_widget import StepperWidget
from gradlab.notebook.watch_widget import WatchWidget

NODES = (30, 1_000, 10_000)
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-gpu-vsync", "--disable-frame-rate-limit"]
PAGE = """
async ([esm, css, traits]) => {
  const style = document.createElement('style'); style.textContent = css; document.head.append(style);
  const view = (await import(URL.createObjectURL(new Blob([esm], {type: 'text/javascript'})))).default;
  const listeners = {}, el = document.createElement('div'); document.body.append(el);
  const bytes = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
  const model = {
    get: key => traits[key], set: (key, value) => { traits[key] = value; }, save_changes() {}, off() {},
    on: (event, listener) => { (listeners[event] ??= []).push(listener); },
    send: (content, _, buffers = []) => answer(content, buffers.map(b => btoa(String.fromCharCode(...new Uint8Array(b)))))
      .then(messages => messages.forEach(([text, parts]) =>
        listeners['msg:custom'].forEach(listener => listener(text, parts.map(bytes))))),
  };
  const frame = () => new Promise(requestAnimationFrame);
  window.timeAction = async act => {
    let changed = false;
    const watch = new MutationObserver(() => { changed = true; }), began = performance.now();
    watch.observe(el, { subtree: true, childList: true, attributes: true, characterData: true });
    await act();
    await frame();
    while (!changed || el.querySelector('[aria-busy="true"]')) await frame();
    await new Promise(done => setTimeout(done));  // the frame is painted
    watch.disconnect();
    return performance.now() - began;
  };
  window.press = (where, key) =>
    document.querySelector(where).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
  return timeAction(() => view.render({ model, el }));
}
"""
CLOSED_ROW = """async () => {
  await timeAction(() => press('[role=tree]', 'Home'));
  for (let k = 0; k < 40 && !document.querySelector('[aria-selected=true][aria-expanded=false]'); k++)
    await timeAction(() => press('[role=tree]', 'ArrowDown')); }"""
DONE = {
    "one row folds": (CLOSED_ROW, "press('[role=tree]', 'ArrowRight')"),
    "unfold": ("() => {}", "[...document.querySelectorAll('button')].find(b => b.textContent === 'unfold').click()"),
    "fold": ("() => {}", "[...document.querySelectorAll('button')].find(b => b.textContent === 'fold').click()"),
    "one step": ("() => {}", "press('.gl-stepper', 'ArrowRight')"),
    "one row": ("() => {}", "[...document.querySelectorAll('button')].find(b => b.textContent.includes('step')).click()"),
}


class Block(gl.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = gl.nn.Linear(8, 8), gl.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return x + self.second(self.first(x).tanh())


def trace_model(nodes: int) -> dict[str, Any]:
    """Return a model whose graph has about this number of nodes, its input, its output and a loss."""
    gl.manual_seed(0)
    model, x = gl.nn.Sequential(*(Block() for _ in range(nodes // 10))), gl.randn(2, 8, requires_grad=True)
    with gl.tracing():
        out = model(x)
        loss = (out**2).mean()
    return {"model": model, "x": x, "out": out, "loss": loss}


def explorer(names: dict[str, Any], level: str) -> GraphWidget:
    names = {"model": names["model"], "loss": names["loss"]}
    widget = GraphWidget(Explorer.of([names["loss"]], names, names_in(names)))
    widget.about = {**widget.about, "level": level}
    return widget


VIEWS = {
    "explorer, code": (lambda names: explorer(names, "code"), ["one row folds"]),
    "explorer, operations": (lambda names: explorer(names, "operations"), ["unfold", "fold"]),
    "stepper": (lambda names: StepperWidget(gl.step_through(names["loss"])), ["one step"]),
    "Jacobian": (lambda names: gl.jacobian(names["out"][0], names["x"]).widget(), ["one row"]),
}


def time_view(browser: Any, make: Any, names: dict[str, Any], actions: list[str]) -> list[float]:
    """Return the milliseconds until the widget is created, is open, and has done each action."""
    began = perf_counter()
    widget = make(names)
    times = [1e3 * (perf_counter() - began)]
    messages: list[Any] = []
    widget.send = lambda content, buffers=(): messages.append([content, [_text(part) for part in buffers or ()]])

    def answer(content: Any, raw: list[str]) -> list[Any]:
        messages.clear()
        widget._heard(None, content, [memoryview(_bytes(part)) for part in raw])
        return list(messages)

    page = browser.new_page(viewport={"width": 1100, "height": 800})
    page.expose_function("answer", answer)
    traits = {
        name: getattr(widget, name) for name in widget.keys if not name.startswith("_") and name not in ("layout", "tooltip")
    }
    times.append(page.evaluate(PAGE, [str(widget._esm), str(widget._css), traits]))
    for action in actions:
        before, act = DONE[action]
        page.evaluate(before)
        times.append(page.evaluate(f"timeAction(() => {{ {act}; }})"))
    page.close()
    return times


def _text(part: Any) -> str:
    return base64.b64encode(bytes(part)).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


def sizes() -> None:
    """Print the number of bytes of the scripts and styles of each view, and of pages and reports of some models."""
    for kind in (GraphWidget, StepperWidget, JacobianWidget, PlaygroundWidget, WatchWidget, QuestionWidget):
        script, style = (len(str(text).encode()) for text in (kind._esm, kind._css))
        print(f"{kind.__name__:34}{script + style:>10,} bytes, {script:,} of them JavaScript", flush=True)
    for name, text in pages():
        print(f"{name:34}{len(text.encode()):>10,} bytes", flush=True)


def pages() -> Any:
    """Yield the name and the text of reports and pages."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    cnn = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10)
    )
    block = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    mlp = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    for name, model, x in (
        ("MLP", mlp, torch.randn(4, 8)),
        ("CNN", cnn, torch.randn(2, 3, 10, 10)),
        ("transformer block", block, torch.randn(2, 5, 16)),
    ):
        with gl.tracing():
            loss = (model(x) ** 2).mean()
        names = {"model": model, "x": x, "loss": loss}
        yield f"report: {name}", gl.explain(loss, names=names)._repr_mimebundle_()["text/html"]
        yield f"graph: {name}", gl.graph(loss, names=names)._repr_mimebundle_()["text/html"]
    names = trace_model(30)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "page.html"
        for name, shown in (
            ("page: report", gl.explain(names["loss"], names=names)),
            ("page: stepper", gl.step_through(names["loss"])),
            ("page: playground", gl.playground(lambda x: x**3 / 3 - x, x=(-2.4, 2.4), at={"x": 1.6})),
            ("page: watch", watch_training(names["model"])),
        ):
            shown.save(saved)
            yield name, saved.read_text(encoding="utf-8")


def watch_training(model: Any) -> Any:
    optimizer, x = gl.optim.SGD(model.parameters(), lr=0.01), gl.randn(16, 8)
    with gl.watch(model, optimizer) as watch:
        for _ in range(60):
            optimizer.zero_grad()
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            watch.log(loss)
    return watch


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opening", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    parser.add_argument("--sizes", action="store_true", help="print only the bytes")
    options = parser.parse_args()
    sizes()
    if options.sizes:
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for nodes in options.nodes:
            names = trace_model(nodes)
            for name, (make, actions) in VIEWS.items():
                rounds = [time_view(browser, make, names, actions) for _ in range(options.rounds + 1)][1:]
                medians = zip(("created", "opens", *actions), (median(times) for times in zip(*rounds, strict=True)), strict=True)
                print(f"{nodes:>7,} nodes  {name:22}", " · ".join(f"{what} {ms:.0f}" for what, ms in medians), flush=True)


if __name__ == "__main__":
    main()

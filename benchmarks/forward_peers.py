"""Compare gradlab's picture of a forward run with torchview, torchvista, torchlens and torchinfo.

    python -m benchmarks.forward_peers [--rounds N] [--models NAME …] [--libraries NAME …] [--save DIR]

For each of the models of `forward_models.py`, the libraries take turns, with a pause between, and each turn is a process of its
own. It times a plain forward under `torch.no_grad()` before it imports the library, then tracing (the library's call that records
a run, without rendering), then rendering. Printed is a table in Markdown: the medians over the rounds, also relative to the plain
forward of the same process, and the size of the picture. All libraries run with their defaults.

The peers are optional: `pip install torchview torchvista torchlens torchinfo`. torchview and torchlens render with Graphviz's
`dot`, which must be on the PATH. torchvista's page is drawn by the browser, so its rendering includes the time from opening the
page until the graph is there, in Chromium (`pip install playwright`). The nodes of torchinfo are rows of text.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.metadata
import importlib.util
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

LIBRARIES = ("gradlab", "torchview", "torchvista", "torchlens", "torchinfo")
MODELS = ("mlp", "resnet18", "lstm_classifier", "gpt", "unet", "branch")
PARTS = ("forward", "trace", "render")
USE_DOT = ("torchview", "torchlens")
THREADS = 2
PAUSE = 0.25
PIXELS_PER_POINT = 4 / 3
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")


class Measurement:
    """One library on one model. `forward`, `trace` and `render` are timed."""

    def __init__(self, model: Any, args: tuple[Any, ...], folder: Path) -> None:
        self.model, self.args, self.folder = model, args, folder

    def forward(self) -> None:
        """Run the model alone."""
        self.model(*self.args)

    def trace(self) -> None:
        """Record one run, without rendering it."""
        raise NotImplementedError

    def render(self) -> None:
        """Render the run recorded last."""
        raise NotImplementedError

    def picture(self) -> dict[str, Any]:
        """Return the number of nodes, the width and height in pixels, and the bytes of the picture."""
        raise NotImplementedError

    def seconds_in_browser(self) -> float:
        """Return the part of rendering that the browser does."""
        return 0.0


class Gradlab(Measurement):
    def trace(self) -> None:
        import gradlab as gl

        self.run = gl.graph(self.model, *self.args)

    def render(self) -> None:
        drawn = copy.copy(self.run)
        for cached in ("_operations", "_drawing"):
            drawn.__dict__.pop(cached, None)
        self.svg = str(drawn.svg())

    def picture(self) -> dict[str, Any]:
        (self.folder / "picture.svg").write_text(self.svg, encoding="utf-8")
        (self.folder / "table.txt").write_text(str(self.run.table()), encoding="utf-8")
        return {**picture_of_svg(self.svg), "nodes": len(self.run.visible_graph[0])}


class Torchview(Measurement):
    def trace(self) -> None:
        from torchview import draw_graph

        self.graph = draw_graph(self.model, input_data=list(self.args), device="cpu").visual_graph

    def render(self) -> None:
        self.svg = self.graph.pipe(format="svg", encoding="utf-8", quiet=True)

    def picture(self) -> dict[str, Any]:
        (self.folder / "picture.svg").write_text(self.svg, encoding="utf-8")
        (self.folder / "picture.dot").write_text(self.graph.source, encoding="utf-8")
        return picture_of_svg(self.svg)


class Torchlens(Measurement):
    def trace(self) -> None:
        import torchlens

        self.run = torchlens.trace(self.model, list(self.args))

    def render(self) -> None:
        self.dot = self.run.draw(vis_fileformat="svg", vis_save_only=True, vis_outpath=str(self.folder / "picture"))

    def picture(self) -> dict[str, Any]:
        (self.folder / "picture.dot").write_text(str(self.dot), encoding="utf-8")
        (self.folder / "table.txt").write_text(str(self.run.summary()), encoding="utf-8")
        return picture_of_svg((self.folder / "picture.svg").read_text(encoding="utf-8"))


class Torchinfo(Measurement):
    def trace(self) -> None:
        import torchinfo

        self.statistics = torchinfo.summary(self.model, input_data=list(self.args), device="cpu", verbose=0)

    def render(self) -> None:
        self.text = str(self.statistics)

    def picture(self) -> dict[str, Any]:
        (self.folder / "table.txt").write_text(self.text, encoding="utf-8")
        rows = sum(bool(re.match(r"[├│└]", line)) for line in self.text.splitlines())
        return {"nodes": rows + 1, "width": None, "height": None, "bytes": len(self.text.encode())}


class Torchvista(Measurement):
    """Its one call traces and writes the page; `plot_graph` is the part that writes."""

    def trace(self) -> None:
        from torchvista import tracer

        write = tracer.plot_graph
        tracer.plot_graph = lambda *args, **kwargs: setattr(self, "write", lambda: write(*args, **kwargs))
        try:
            tracer.trace_model(self.model, self.args, export_path=str(self.folder / "picture.html"))
        finally:
            tracer.plot_graph = write

    def render(self) -> None:
        self.write()

    def picture(self) -> dict[str, Any]:
        page = self.folder / "picture.html"
        seen = open_page(page, self.folder / "picture.png") or {"nodes": None, "width": None, "height": None}
        return {**seen, "bytes": page.stat().st_size}

    def seconds_in_browser(self) -> float:
        times = [open_page(self.folder / "picture.html") for _ in range(3)]
        return median(each["seconds"] for each in times if each) if all(times) else float("nan")


MEASURED = {
    "gradlab": Gradlab,
    "torchview": Torchview,
    "torchlens": Torchlens,
    "torchinfo": Torchinfo,
    "torchvista": Torchvista,
}


def picture_of_svg(svg: str) -> dict[str, Any]:
    """The size of an SVG in pixels and bytes, and the nodes that Graphviz drew."""
    tag = re.search(r"<svg\b[^>]*>", svg)
    assert tag is not None
    sizes = []
    for name in ("width", "height"):
        found = re.search(rf'\b{name}="([\d.]+)(pt|px|)"', tag[0])
        sizes.append(float(found[1]) * (PIXELS_PER_POINT if found[2] == "pt" else 1) if found else None)
    return {"nodes": svg.count('class="node"'), "width": sizes[0], "height": sizes[1], "bytes": len(svg.encode())}


# torchvista puts an identifier of the page behind each class. The first group is the graph at scale 1.
READ_PAGE = """() => {
  const svg = document.querySelector('svg'), box = svg.querySelector('g').getBBox();
  return {nodes: svg.querySelectorAll('g[class^=node_]').length, width: box.width, height: box.height}; }"""


def open_page(page: Path, screenshot: Path | None = None) -> dict[str, Any] | None:
    """Open torchvista's page without a network. Return its nodes, size and seconds to draw, or None without a browser."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        return None
    with sync_playwright() as playwright:
        path = next(filter(None, map(shutil.which, CHROMIUM)), None)
        try:
            browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        except Error:
            return None
        context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
        view = context.new_page()
        start = time.perf_counter()
        view.goto(page.resolve().as_uri())
        view.wait_for_selector("g[class^=node_]", state="attached")
        seconds = time.perf_counter() - start
        answer = view.evaluate(READ_PAGE)
        if screenshot:
            view.screenshot(path=screenshot, full_page=True)
        browser.close()
    return {**answer, "seconds": seconds}


def take_turn(library: str, name: str, folder: str) -> None:
    """Print the seconds of each part, the picture's size and the error, if any, as a line of JSON."""
    import torch
    from forward_models import build
    from worker import time_call

    torch.set_num_threads(THREADS)
    warnings.simplefilter("ignore")
    measured = MEASURED[library](*build(name), Path(folder))
    answer: dict[str, Any] = {}
    part = ""
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            for part in PARTS:
                if part == "render" and library in USE_DOT and shutil.which("dot") is None:
                    raise FileNotFoundError("Graphviz's dot is not on the PATH")
                answer[part] = time_call(getattr(measured, part))
            answer["render"] += measured.seconds_in_browser()
            part = "picture"
            answer["picture"] = measured.picture()
    except Exception as error:  # noqa: BLE001  (a peer may raise anything)
        answer["error"] = f"{part}: {type(error).__name__}: {error}".splitlines()[0]
    print(json.dumps(answer))


def version(library: str) -> str | None:
    """Return the installed version of a library, or None."""
    if importlib.util.find_spec(library) is None:
        return None
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return ""


def cells(turns: list[dict[str, Any]]) -> list[str]:
    """Return the cells of a row, after the names of the model and the library."""
    row = []
    for part in PARTS:
        complete = all(part in turn for turn in turns)
        row.append(f"{1e3 * median(turn[part] for turn in turns):.1f}" if complete else "–")
        if part != "forward":
            row.append(f"{median(turn[part] / turn['forward'] for turn in turns):.1f}" if complete else "–")
    picture = turns[-1].get("picture", {})
    width, height = picture.get("width"), picture.get("height")
    nodes, size = (f"{picture[key]:,}" if picture.get(key) is not None else "–" for key in ("nodes", "bytes"))
    return [*row, nodes, f"{width:,.0f} × {height:,.0f}" if width and height else "–", size]


def line(values: list[str]) -> str:
    return f"| {' | '.join(values)} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward_peers", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--models", nargs="*", default=MODELS, choices=MODELS, metavar="NAME")
    parser.add_argument("--libraries", nargs="*", default=LIBRARIES, choices=LIBRARIES, metavar="NAME")
    parser.add_argument("--save", type=Path, help="keep the pictures, DOT and tables in this folder")
    options = parser.parse_args()
    versions = {library: version(library) for library in options.libraries}
    for library in [name for name, installed in versions.items() if installed is None]:
        print(f"{library} is not installed: skipped", file=sys.stderr)
        del versions[library]
    heading = ["model", "library", "forward, ms", "trace, ms", "÷ forward", "render, ms", "÷ forward", "nodes", "pixels", "bytes"]
    print(line(heading))
    print(line(["---", "---", *["--:"] * 8]))
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.models:
            turns: dict[str, list[dict[str, Any]]] = {library: [] for library in versions}
            for library in [*versions] * options.rounds:
                folder = (options.save or Path(temporary)).resolve() / library / name
                folder.mkdir(parents=True, exist_ok=True)
                command = [sys.executable, __file__, library, name, str(folder)]
                ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                turns[library].append(json.loads(ran.stdout))
                time.sleep(PAUSE)
            for library, taken in turns.items():
                print(line([name, library, *cells(taken)]), flush=True)
                if "error" in taken[-1]:
                    print(f"{library}, {name}, {taken[-1]['error']}", file=sys.stderr)
    print(f"\n{options.rounds} rounds, {THREADS} threads. " + ", ".join(f"{name} {number}" for name, number in versions.items()))
    if dot := shutil.which("dot"):
        printed = subprocess.run([dot, "-V"], capture_output=True, text=True, check=False)
        print((printed.stderr or printed.stdout).strip())


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in MEASURED:
        take_turn(*sys.argv[1:])
    else:
        main()

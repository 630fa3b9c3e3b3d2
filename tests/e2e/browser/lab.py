"""A real JupyterLab in a headless Chromium, for tests.

    def test_something(open_notebook):                       # the fixture of conftest.py
        page = open_notebook(["import gradlab as gl", "x = gl.tensor(1.)\\nx"], theme="light")
        page.run_cell(0)                                     # runs a cell and waits for the kernel
        page.run_cell(1)
        assert "tensor(1.)" in page.text(1)                  # the text of the cell's outputs
        page.output(1).locator("img")                        # a Playwright locator inside the cell's outputs
        page.evaluate("1 + 1")                               # "2": an expression's repr from the notebook's kernel
        page.screenshot("x.png", cell=1)                     # to look at
        page.page                                            # Playwright's own page

Server, kernel and front end keep all their files in a folder of pytest. Requests to other hosts are blocked and added to
`page.requests_outside`. JupyterLab only handles keys once its session is ready, and its indicator says "idle" before there
is a kernel, so cells run through JupyterLab's commands and are awaited by their execution promise.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

from waiting import TIMEOUT_SECONDS, jupyter_url

try:
    from playwright.sync_api import expect
except ImportError:  # the fixture `browser` skips or fails with the reason
    expect = None
else:
    expect.set_options(timeout=TIMEOUT_SECONDS * 1000)

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PANEL = """const panel = [...jupyterapp.shell.widgets('main')].find(w => w.sessionContext && w.content.widgets);"""
RUN = f"""async i => {{ {PANEL}
  await panel.sessionContext.ready; await panel.sessionContext.session.kernel.info;
  panel.content.activeCellIndex = i; panel.content.deselectAll();
  await jupyterapp.commands.execute('notebook:run-cell'); }}"""
STATE = f"""() => {{ {PANEL} return panel.sessionContext.session?.kernel?.status; }}"""
EVALUATE = f"""async code => {{ {PANEL}
  const kernel = panel.sessionContext.session.kernel;
  const future = kernel.requestExecute(
    {{code: '', silent: true, store_history: false, user_expressions: {{answer: code}}}});
  const reply = await future.done;
  const answer = reply.content.user_expressions.answer;
  return answer.status === 'ok' ? answer.data['text/plain'] : 'error: ' + answer.ename + ': ' + answer.evalue; }}"""


def find_chromium() -> str | None:
    """Return the path of a system Chromium that starts, or None. (Ubuntu's `chromium-browser` may only refer to a snap.)"""
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"):
        path = shutil.which(name)
        if path and subprocess.run([path, "--version"], capture_output=True, check=False).returncode == 0:
            return path
    return None


def launch(playwright: Any) -> Any:
    """Start a headless Chromium of the system, or else that of Playwright, whose error is raised if there is none."""
    return playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)


def environment(folder: Path) -> dict[str, str]:
    """Return os.environ with every Jupyter and IPython folder under `folder`, and this checkout's gradlab for the kernel."""
    import gradlab

    places = {
        name: str(folder / name.lower())
        for name in (
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "IPYTHONDIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "MPLCONFIGDIR",
        )
    }
    return {
        **os.environ,
        **places,
        "JUPYTER_PLATFORM_DIRS": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str(Path(gradlab.__file__).parents[1]), os.environ.get("PYTHONPATH")])),
    }


def wait_until_drawn(page: Any) -> None:
    """Wait until a page has been painted: pictures are decoded, and observers of sizes have run."""
    page.evaluate(
        """async () => { await Promise.all([...document.images].map(image => image.decode().catch(() => null)));
             for (let k = 0; k < 3; k++) await new Promise(requestAnimationFrame); }"""
    )


def stop_clock(page: Any) -> None:
    """Stop the timers of a page, which `page.clock.run_for` then advances. After `install` alone they run in real time."""
    page.clock.install(time=0)
    page.clock.pause_at(3600)


class Cells:
    """Positions on the page of the cells of a heat map with labels, which mark its rows and columns."""

    LABELS = """map => Object.fromEntries([...map.querySelectorAll('text')].map(text => {
      const b = text.getBoundingClientRect(); return [text.textContent, [b.x + b.width / 2, b.y + b.height / 2]]; }))"""

    def __init__(self, heat: Any, rows: list[str], columns: list[str]) -> None:
        heat.scroll_into_view_if_needed()
        self.page, self.heat = heat.page, heat
        at = heat.evaluate(self.LABELS)
        self.ys, self.xs = [at[name][1] for name in rows], [at[name][0] for name in columns]
        self.width = self.xs[1] - self.xs[0]

    def middle(self, i: int, j: int) -> tuple[float, float]:
        """Return the centre of a cell, where its number is."""
        return self.xs[j], self.ys[i]

    def beside(self, i: int, j: int) -> tuple[float, float]:
        """Return a point in a cell beside its number."""
        return self.xs[j] - 0.4 * self.width, self.ys[i]

    def hover(self, i: int, j: int) -> str:
        """Return the text of the view about a cell."""
        self.page.mouse.move(*self.beside(i, j))
        return self.page.locator(".gl-read").inner_text()

    def colour(self, i: int, j: int, middle: bool = False) -> list[int]:
        """Return the colour of a cell."""
        x, y = self.middle(i, j) if middle else self.beside(i, j)
        from PIL import Image

        shown = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        return list(shown.getpixel((x, y)))


class Server:
    """A JupyterLab server on a free port. Attributes: `url`, `token`, `root` (the folder of its notebooks)."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir()
        self.token = secrets.token_hex(16)
        settings = folder / "jupyterlab_settings_dir" / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
        settings.parent.mkdir(parents=True)  # no pop-up about news
        settings.write_text('{"fetchNews": "false", "checkForUpdates": false}')
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                "--allow-root",
                "--ip=127.0.0.1",
                "--port=0",
                f"--IdentityProvider.token={self.token}",
                f"--ServerApp.root_dir={self.root}",
                "--LabApp.news_url=None",
                "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
                "--LabApp.expose_app_in_browser=True",
            ],
            env=environment(folder),
            cwd=self.root,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        try:
            self.url = jupyter_url(self._process, folder / "jupyter_runtime_dir")
        except AssertionError as error:
            self.stop()
            log = (folder / "server.log").read_text(errors="replace")
            raise RuntimeError(f"JupyterLab did not start: {error}\n{log[-3000:]}") from None

    def stop(self) -> None:
        self._process.terminate()  # the server stops its kernels
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class NotebookPage:
    """A notebook that is open in JupyterLab."""

    def __init__(
        self,
        server: Server,
        browser: Any,
        cells: list[str] | Path,
        *,
        theme: str = "light",
        width: int = 1280,
        height: int = 1000,
        name: str = "",
    ) -> None:
        name = name or f"t{uuid.uuid4().hex[:8]}.ipynb"
        if isinstance(cells, Path):  # a notebook below server.root
            name = cells.relative_to(server.root).as_posix()
        else:
            self._write(server.root / name, cells)
        self.path = server.root / name
        self.requests_outside: list[str] = []
        self.errors: list[str] = []
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        self.context.set_default_timeout(TIMEOUT_SECONDS * 1000)
        self.context.route("**/*", self._route(server.url))
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(f"{server.url}/lab/tree/{name}?token={server.token}&reset")
        self.page.wait_for_function("window.jupyterapp && document.querySelector('.jp-NotebookPanel .jp-CodeCell')")
        wanted = "JupyterLab Dark" if theme == "dark" else "JupyterLab Light"
        self.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', {theme})", wanted)
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=str(theme != "dark").lower())
        self.page.evaluate("() => jupyterapp.shell.collapseLeft()")

    @staticmethod
    def _write(path: Path, cells: list[str]) -> None:
        path.write_text(
            json.dumps(
                {
                    "nbformat": 4,
                    "nbformat_minor": 5,
                    "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
                    "cells": [
                        {
                            "cell_type": "code",
                            "id": f"c{k}",
                            "metadata": {},
                            "execution_count": None,
                            "outputs": [],
                            "source": source,
                        }
                        for k, source in enumerate(cells)
                    ],
                }
            )
        )

    def _route(self, url: str) -> Any:
        def route(route: Any) -> None:
            target = route.request.url
            if target.startswith((url, "data:", "blob:")):
                route.continue_()
            else:
                self.requests_outside.append(target)
                route.abort()

        return route

    def run_cell(self, i: int) -> None:
        """Run cell `i` as a user does, and wait until the kernel has finished it."""
        self.page.evaluate(RUN, i)

    def cell(self, i: int) -> Any:
        """Return the locator of cell `i`."""
        return self.page.locator(".jp-NotebookPanel .jp-Cell").nth(i)

    def output(self, i: int) -> Any:
        """Return the locator of the outputs of cell `i`."""
        return self.cell(i).locator(".jp-Cell-outputWrapper")

    def text(self, i: int) -> str:
        """Return the visible text of the outputs of cell `i`."""
        return self.output(i).inner_text()

    def evaluate(self, expression: str) -> str:
        """Return the repr of a Python expression in the notebook's kernel, or "error: ..." if it raises."""
        return self.page.evaluate(EVALUATE, expression)

    def save(self) -> dict[str, Any]:
        """Save the notebook and return the content of the file."""
        self.page.evaluate(f"async () => {{ {PANEL} await panel.context.save(); }}")
        return json.loads(self.path.read_text())

    def screenshot(self, path: str | Path, cell: int | None = None) -> None:
        """Save a picture of the page or of one cell."""
        (self.page if cell is None else self.cell(cell)).screenshot(path=str(path))

    def close(self) -> None:
        """Shut down the notebook's kernel and close the page."""
        self.page.evaluate(f"async () => {{ {PANEL} await panel?.sessionContext.shutdown(); }}")
        self.context.close()

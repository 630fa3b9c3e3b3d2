"""Fixtures for tests in a browser: `browser` (Chromium), `open_notebook` (JupyterLab), `open_widget` (a single ESM file).

Without Chromium or Playwright, the tests are skipped, or fail if the environment variable CI is set.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for `import lab`, since test folders are not packages

import lab
from waiting import TIMEOUT_SECONDS


def missing(reason):
    if os.environ.get("CI"):
        pytest.fail(f"browser tests must run in CI: {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="module")
def browser():
    """Start a headless Chromium. Its event loop runs in this thread and ends with the module; other tests have their own."""
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        missing(f"Playwright is not installed ({error})")
    with ExitStack() as stack:
        try:
            playwright = stack.enter_context(sync_playwright())
        except Exception as error:  # noqa: BLE001  (what Playwright raises if its driver does not start: a Node of its own)
            missing(f"Playwright does not start ({error}). On Debian and Ubuntu its driver needs the package libatomic1.")
        try:
            chromium = lab.launch(playwright)
        except Error as error:
            missing(
                "no Chromium: neither on the PATH (chromium, chromium-browser, google-chrome) nor Playwright's own "
                f"(playwright install chromium): {str(error).splitlines()[0]}"
            )
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory):
    """Start a JupyterLab server."""
    try:
        import ipykernel  # noqa: F401
        import jupyterlab  # noqa: F401
    except ImportError as error:
        missing(f"JupyterLab is not installed ({error})")
    server = lab.Server(tmp_path_factory.mktemp("jupyter"))
    yield server
    server.stop()


@pytest.fixture
def open_notebook(browser, jupyter):
    """Function `open_notebook(cells, theme="light")` that returns a lab.NotebookPage, which is closed after the test."""
    pages = []

    def open_(cells, **options):
        pages.append(lab.NotebookPage(jupyter, browser, cells, **options))
        return pages[-1]

    yield open_
    for page in pages:
        page.close()


FAKE_MODEL = """
async ([esm, css, traits, bytes]) => {
  const style = document.createElement('style'); style.textContent = css; document.head.append(style);
  const decode = text => new DataView(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
  const state = {...traits}, listeners = {};
  for (const [key, value] of Object.entries(bytes)) state[key] = decode(value);
  const model = {
    sent: [],
    get: key => state[key],
    set: (key, value) => { state[key] = value; },
    on: (event, listener) => { (listeners[event] ??= []).push(listener); },
    off: (event, listener) => { listeners[event] = (listeners[event] ?? []).filter(other => other !== listener); },
    save_changes: () => {},
    send: (content, callbacks, buffers = []) => {
      const raw = buffers.map(b => btoa(String.fromCharCode(...new Uint8Array(b))));
      model.sent.push([content, raw]);
      if (window.request) window.request(content, raw).then(([traits, bytes, messages]) => {
        model.receive(traits, bytes);
        for (const [said, parts] of messages) model.notify(said, parts);
      });
    },
    notify: (said, parts = []) => {
      for (const listener of [...listeners['msg:custom'] ?? []]) listener(said, parts.map(decode));
    },
    receive: (traits, bytes) => {
      const changed = {...traits};
      for (const [key, value] of Object.entries(bytes)) changed[key] = decode(value);
      Object.assign(state, changed);
      for (const key of Object.keys(changed)) for (const listener of listeners['change:' + key] ?? []) listener();
    },
    listening: () => Object.values(listeners).reduce((sum, list) => sum + list.length, 0),
  };
  const module = await import(URL.createObjectURL(new Blob([esm], {type: 'text/javascript'})));
  const el = document.createElement('div'); document.body.append(el);
  window.model = model; window.el = el;
  window.clean = await module.default.render({model, el});
}
"""


@pytest.fixture
def open_widget(browser):
    """Function `open_widget(widget, live=True)` that returns a Playwright page with the widget's ESM, without Jupyter.

    The page's model is filled from the widget's traits. If `live`, messages are sent to the Python widget, whose traits and
    messages are sent back, as through a kernel. Otherwise messages are collected in `model.sent`.
    """
    import base64

    contexts = []

    def split(state):
        binary = {
            key: base64.b64encode(bytes(value)).decode() for key, value in state.items() if isinstance(value, (bytes, memoryview))
        }
        return {key: value for key, value in state.items() if key not in binary and key not in ("layout", "_esm", "_css")}, binary

    def open_(widget, live=True, **options):
        context = browser.new_context(viewport={"width": 940, "height": 640}, **options)
        context.set_default_timeout(TIMEOUT_SECONDS * 1000)
        contexts.append(context)
        page = context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto("about:blank")
        names = [name for name in widget.keys if not name.startswith("_") and name not in ("layout", "tabbable", "tooltip")]

        said = []
        widget.send = lambda content, buffers=(): said.append([content, [base64.b64encode(part).decode() for part in buffers]])

        def request(content, raw):
            said.clear()
            widget._handle_custom_msg(content, [memoryview(base64.b64decode(part)) for part in raw])
            return [*split({name: getattr(widget, name) for name in names if name != "about"}), list(said)]

        if live:
            page.expose_function("request", request)
        state = split({name: getattr(widget, name) for name in names})
        page.evaluate(FAKE_MODEL, [str(widget._esm), str(widget._css), *state])
        return page

    yield open_
    for context in contexts:
        context.close()

"""The data of a run's view, and a saved page with this view, which needs no kernel."""

from __future__ import annotations

from typing import Any

from gradlab.explore.markup import escape_html
from gradlab.explore.saved_page import saved_page
from gradlab.explore.watch.picture import has_numbers, live
from gradlab.explore.watch.snapshot import columns, describe, moments

START = (
    'const run = JSON.parse(document.getElementById("run").textContent);\n'
    "const model = { get: (key) => ({ run, live: false, token: '', timeout: 10 })[key], on() {}, off() {}, send() {} };\n"
    'view.render({ model, el: document.getElementById("view") });\n'
)
CONTENTS = "This page contains losses, norms, shares, histograms and names of layers, but no tensors."


def view_data(watch: Any, first: int = 0, *, histograms: bool = True) -> dict[str, Any]:
    """Return the data of a view: the picture, the texts, the columns from `first` on, and histograms."""
    data = {**describe(watch), **columns(watch, first, shown=True), "numbered": has_numbers(watch.layers)}
    return {**data, "picture": live(watch), **({"moments": moments(watch)} if histograms else {})}


def page(title: str, data: dict[str, Any], script: str, styles: str, fallback: str) -> str:
    """Return a page with a view.

    Parameters
    ----------
    script : str
        The view as an ES module with a default export.
    fallback : str
        HTML shown if scripts are disabled.
    """
    body = f'<div id="view"></div><noscript>{fallback}</noscript><p>{escape_html(CONTENTS)}</p>'
    code = script.replace("export default ", "const view = ") + START
    return saved_page(title, body, "body{max-width:1300px}" + styles, data={"run": data}, code=code)

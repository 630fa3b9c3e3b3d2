"""What the view of a run shows, and a page of its own for it, which is hovered and slid through without a kernel."""

from __future__ import annotations

from typing import Any

from gradlab.explore.markup import escape_html
from gradlab.explore.saved_page import saved_page
from gradlab.explore.watch.picture import live, numbered
from gradlab.explore.watch.snapshot import columns, described, moments

START = (
    'const run = JSON.parse(document.getElementById("run").textContent);\n'
    "const model = { get: (key) => ({ run, live: false, token: '', timeout: 10 })[key], on() {}, off() {}, send() {} };\n"
    'view.render({ model, el: document.getElementById("view") });\n'
)
SHOWN = "It contains losses, norms, shares and histograms, names of layers, and no tensor."


def view_data(watch: Any, first: int = 0, *, histograms: bool = True) -> dict[str, Any]:
    """Return what a view shows: the picture, what is said, numbers of the columns from `first` on, and histograms."""
    data = {**described(watch), **columns(watch, first, shown=True), "numbered": numbered(watch.layers)}
    return {**data, "picture": live(watch), **({"moments": moments(watch)} if histograms else {})}


def page(title: str, data: dict[str, Any], script: str, styles: str, fallback: str) -> str:
    """The page of what a view shows.

    Parameters
    ----------
    script : str
        The view as an ES module with a default export.
    fallback : str
        HTML for a reader without scripts.
    """
    body = f'<div id="view"></div><noscript>{fallback}</noscript><p>{escape_html(SHOWN)}</p>'
    code = script.replace("export default ", "const view = ") + START
    return saved_page(title, body, "body{max-width:1300px}" + styles, data={"run": data}, code=code)

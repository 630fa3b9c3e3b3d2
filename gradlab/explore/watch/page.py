"""A run as a page of its own, which is hovered and slid through without a kernel, and asks no host for anything.

The data lies in a `<script type="application/json">` with `<` escaped; the script that draws it is the live view's own, allowed
by its hash alone.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from gradlab.explore.report.page import GROUND
from gradlab.explore.words import escape_html

START = (
    'const run = JSON.parse(document.getElementById("run").textContent);\n'
    "const model = { get: (key) => ({ run, live: false, token: '', timeout: 10 })[key], on() {}, off() {}, send() {} };\n"
    'view.render({ model, el: document.getElementById("view") });\n'
)
SHOWN = "It contains losses, norms, shares and histograms, names of layers, and no tensor."


def page(title: str, data: dict[str, Any], script: str, styles: str, fallback: str) -> str:
    """The page of a snapshot.

    Parameters
    ----------
    script : str
        The view as an ES module with a default export.
    fallback : str
        HTML for a reader without scripts.
    """
    body = _inline(script.replace("export default ", "const view = ") + START)
    css = GROUND + "body{max-width:1300px}" + styles
    policy = (
        f"default-src 'none'; img-src data:; script-src 'sha256-{_hash(body)}'; style-src 'sha256-{_hash(css)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape_html(title)}</title><style>{css}</style></head><body>"
        f'<div id="view"></div><noscript>{fallback}</noscript>'
        f"<p>{escape_html(SHOWN)}</p>"
        f'<script type="application/json" id="run">{escaped(data)}</script>'
        f'<script type="module">{body}</script></body></html>\n'
    )


def escaped(data: dict[str, Any]) -> str:
    """JSON that ends no element."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _inline(script: str) -> str:
    """A script that ends no element either."""
    return script.replace("</", "<\\/").replace("<!--", "<\\!--")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

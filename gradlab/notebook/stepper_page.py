"""The page that steps through a sweep by itself: data, script and style lie in it, and no host is asked for anything.

Its Content-Security-Policy allows the one script and the one style by their hashes, and nothing else. The data are JSON in a
script element of a type that no browser runs; every `<` in them is escaped, so that nothing in them ends it.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from gradlab.explore.report.page import GROUND
from gradlab.explore.words import Sentence, escape_html, to_text
from gradlab.notebook.bundle import script, styles

OWN = (
    "main{max-width:1180px}h1{font-size:17px;font-weight:600;margin:4px 2px 12px}"
    ".contains{opacity:.72;font-size:12px;padding:8px 2px}"
)


def stepper_page(data: dict[str, Any], *, title: Sentence, contains: Sentence, text: str) -> str:
    """The page.

    Parameters
    ----------
    data : dict
        As `explore.steps.view` makes it.
    title, contains : Sentence
        What it is, and which values and which source are in it.
    text : str
        The same for a reader without scripts.
    """
    code = script("stepper/page.js") + "$stepper$page.render();\n"
    css = GROUND + OWN + styles("kit/kit.css", "stepper/stepper.css")
    policy = f"default-src 'none'; script-src '{_hash(code)}'; style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    said = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape_html(to_text(title))}</title><style>{css}</style></head><body><main>"
        f'<h1>{_inline(title)}</h1><div id="stepper" class="gl-view"></div>'
        f"<noscript><pre>{escape_html(text)}</pre></noscript>"
        f'<div class="contains">{_inline(contains)}</div></main>'
        f'<script type="application/json" id="steps">{said}</script><script type="module">{code}</script></body></html>\n'
    )


def _inline(sentence: Sentence) -> str:
    """A sentence without inline styles, which the page does not allow."""
    return "".join(f"<code>{escape_html(text)}</code>" if "code" in kind else escape_html(text) for text, kind in sentence)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

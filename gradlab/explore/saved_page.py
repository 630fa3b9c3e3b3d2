"""A saved page that follows the reader's light or dark theme, and loads nothing.

Its Content-Security-Policy allows the one style and the one script by their hashes, embedded pictures, and nothing more. Data are
JSON in a script element with a type that browsers do not run, escaped so that the data cannot end the element.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gradlab.explore.drawing import INK, PAPER
from gradlab.explore.markup import escape_html
from gradlab.explore.theme import colours, hex_of

DARK = colours("dark")
GROUND = (
    "@media screen{:root{color-scheme:light dark}}body{margin:24px auto;max-width:1180px;padding:0 16px;"
    f"font:14px/1.5 system-ui,sans-serif;background:{hex_of(PAPER)};color:{hex_of(INK)}}}"
    f"@media screen and (prefers-color-scheme:dark){{body{{background:{DARK['--gl-paper']};color:{DARK['--gl-ink']}}}}}"
)
ESCAPES = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def saved_page(
    title: str, body: str, css: str, *, data: Mapping[str, Any] | None = None, code: str = "", pictures: bool = True
) -> str:
    """Return an HTML document.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML without inline styles, which the page does not allow.
    css : str
        Added to the styles of all pages.
    data : mapping of str to plain data, optional
        Data for `code`, by the ids of the elements that hold them.
    code : str, optional
        The module to run.
    pictures : bool, default True
        Whether the page may have (embedded) pictures.

    Raises
    ------
    ValueError
        If a number in the data is not finite, since JSON has no such numbers.
    """
    css, code = GROUND + css, code.replace("</", "<\\/").replace("<!--", "<\\!--")  # so that the script does not end its element
    allowed = f"script-src '{_hash(code)}'; " if code else ""
    images = "img-src data:; " if pictures else ""
    policy = f"default-src 'none'; {images}{allowed}style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"
    run = f'<script type="module">{code}</script>' if code else ""
    held = "".join(f'<script type="application/json" id="{key}">{_json(value)}</script>' for key, value in (data or {}).items())
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape_html(title)}</title><style>{css}</style></head><body>{body}{held}{run}</body></html>\n"
    )


def _json(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign, escaped in ESCAPES.items():
        text = text.replace(sign, escaped)
    return text


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

"""A report as a page of its own: it follows the reader's light or dark theme, is printed light, says what it contains, and asks
no host for anything.

Styles stand inline in a report, for notebooks; a page has them as classes in one `<style>`, whose hash its
Content-Security-Policy allows. Nothing else is allowed but pictures that lie in the page.
"""

from __future__ import annotations

import base64
import hashlib
import re

from gradlab.explore.drawing import NOTEBOOKS, PRINTED
from gradlab.explore.words import NO_MATH, Sentence, escape_html, to_html, to_text

GROUND = (
    "@media screen{:root{color-scheme:light dark}}body{margin:24px auto;max-width:1180px;padding:0 16px;"
    "font:14px/1.5 system-ui,sans-serif;background:#fff;color:#1c2430}"
    "@media screen and (prefers-color-scheme:dark){body{background:#111418;color:#e3e7ec}}"
)


def page(title: Sentence, body: str, contains: Sentence) -> str:
    """The page of a fragment of HTML; `contains` says which values and which source are in it."""
    note = f'<div {NO_MATH} style="opacity:.72;font-size:12px;padding:8px 2px">{to_html(contains)}</div>'
    body, classes = _with_classes(
        f"{body}{note}".replace(f"<style>{NOTEBOOKS}{PRINTED}</style>", "")
    )  # a page follows its reader
    css = GROUND + classes + PRINTED
    allowed = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape_html(to_text(title))}</title><style>{css}</style>"
        f"</head><body>{body}</body></html>\n"
    )


def _with_classes(body: str) -> tuple[str, str]:
    """The fragment with a class for each inline style, and their rules. (In text a quote is `&quot;`, so that what looks like
    an attribute is one.)"""
    names: dict[str, str] = {}

    def named(found: re.Match[str]) -> str:
        classes = filter(None, (found[2], names.setdefault(found[3], f"s{len(names)}") if found[3] else ""))
        return f' class="{" ".join(classes)}"'

    body = re.sub(r'( class="([^"]*)")? style="([^"]*)"', named, body)
    return body, "".join(f".{name}{{{style}}}" for style, name in names.items())

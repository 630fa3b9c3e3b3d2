"""Inline styles that recur in a fragment of HTML, as classes."""

from __future__ import annotations

import re
import zlib
from collections import Counter

STYLED = re.compile(r"""src='[^']*'|( class="([^"]*)")? style="([^"]*)["]""")
LAYOUT = re.compile(r"\b(?:grid|float|flex|border-left|padding-left|text-align:left$)")
RECURRING = 4


def with_classes(html: str) -> tuple[str, str]:
    """Replace all inline styles with classes, for a page of its own.

    Returns
    -------
    html, rules : str
    """
    names: dict[str, str] = {}
    html = _replaced(html, {style: names.setdefault(style, f"s{len(names)}") for style in _styles(html)})
    return html, "".join(f".{name}{{{style}}}" for style, name in names.items())


def with_few_styles(html: str) -> str:
    """Replace inline styles that recur with classes, and append their rules, for a notebook: fewer bytes.

    Where the notebook is not trusted the rules are lost; so what lays out the page stays inline. They are as strong as inline
    styles.
    """
    many = Counter(_styles(html))
    names = {
        style: f"gl{zlib.crc32(style.encode()):x}"
        for style, times in many.items()
        if times >= RECURRING and not LAYOUT.search(style)
    }
    rules = "".join(f".{name}{{{style.replace(';', '!important;')}!important}}" for style, name in names.items())
    return f"{_replaced(html, names)}<style>{rules}</style>" if rules else html


def _styles(html: str) -> list[str]:
    return [match[3] for match in STYLED.finditer(html) if match[3]]


def _replaced(html: str, names: dict[str, str]) -> str:
    """The fragment with the classes of some styles. (In text a quote is `&quot;`, so that what looks like an attribute is one;
    but pictures, in `src='…'`, keep theirs.)"""

    def named(match: re.Match[str]) -> str:
        if match[3] is None or (match[3] and match[3] not in names):
            return match[0]
        classes = filter(None, (match[2], names.get(match[3], "")))
        return f' class="{" ".join(classes)}"'

    return STYLED.sub(named, html)

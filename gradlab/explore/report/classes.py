"""Replace recurring inline styles in a fragment of HTML with classes."""

from __future__ import annotations

import re
import zlib
from collections import Counter

STYLED = re.compile(r"""src='[^']*'|( class="([^"]*)")? style="([^"]*)["]""")
LAYOUT = re.compile(r"\b(?:grid|float|flex|border-left|padding-left|text-align:left$)")
RECURRING = 4


def with_classes(html: str) -> tuple[str, str]:
    """Replace all inline styles with classes, for a separate page.

    Returns
    -------
    html, rules : str
    """
    names: dict[str, str] = {}
    html = _replace_styles(html, {style: names.setdefault(style, f"s{len(names)}") for style in _styles(html)})
    return html, "".join(f".{name}{{{style}}}" for style, name in names.items())


def with_few_styles(html: str) -> str:
    """Replace recurring inline styles with classes and append their rules. The result is smaller; used in notebooks.

    An untrusted notebook drops the rules, so styles that lay out the page stay inline. The rules have the same priority as inline
    styles.
    """
    many = Counter(_styles(html))
    names = {
        style: f"gl{zlib.crc32(style.encode()):x}"
        for style, times in many.items()
        if times >= RECURRING and not LAYOUT.search(style)
    }
    rules = "".join(f".{name}{{{style.replace(';', '!important;')}!important}}" for style, name in names.items())
    return f"{_replace_styles(html, names)}<style>{rules}</style>" if rules else html


def _styles(html: str) -> list[str]:
    return [match[3] for match in STYLED.finditer(html) if match[3]]


def _replace_styles(html: str, names: dict[str, str]) -> str:
    """Replace some styles with their classes. (A quote in text is `&quot;`, so a match is always an attribute. Pictures, in
    `src='…'`, keep their styles.)"""

    def with_class(match: re.Match[str]) -> str:
        if match[3] is None or (match[3] and match[3] not in names):
            return match[0]
        classes = filter(None, (match[2], names.get(match[3], "")))
        return f' class="{" ".join(classes)}"'

    return STYLED.sub(with_class, html)

"""A report as a page of its own, printed light, which says what it contains.

Styles stand inline in a report, for notebooks; a page has them as classes in its one `<style>`.
"""

from __future__ import annotations

import re

from gradlab.explore.drawing import IN_NOTEBOOKS, RULES
from gradlab.explore.markup import NO_MATH, Sentence, to_html, to_text
from gradlab.explore.saved_page import saved_page


def page(title: Sentence, body: str, contains: Sentence) -> str:
    """The page of a fragment of HTML; `contains` says which values and which source are in it."""
    note = f'<div {NO_MATH} style="opacity:.72;font-size:12px;padding:8px 2px">{to_html(contains)}</div>'
    body, classes = _with_classes(f"{body}{note}".replace(IN_NOTEBOOKS, ""))  # a page follows its reader
    return saved_page(to_text(title), body, classes + RULES)


def _with_classes(body: str) -> tuple[str, str]:
    """The fragment with a class for each inline style, and their rules. (In text a quote is `&quot;`, so that what looks like
    an attribute is one; but pictures, in `src='…'`, keep theirs.)"""
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        if match[3] is None:
            return match[0]
        classes = filter(None, (match[2], names.setdefault(match[3], f"s{len(names)}") if match[3] else ""))
        return f' class="{" ".join(classes)}"'

    body = re.sub(r'''src='[^']*'|( class="([^"]*)")? style="([^"]*)"''', named, body)
    return body, "".join(f".{name}{{{style}}}" for style, name in names.items())

"""A report as a separate HTML page, with a light print style and a note on its contents.

In notebooks, a report has inline styles; a page has them as classes in its only `<style>` element.
"""

from __future__ import annotations

from gradlab.explore.drawing import IN_NOTEBOOKS, RULES
from gradlab.explore.markup import NO_MATH, Sentence, to_html, to_text
from gradlab.explore.report.classes import with_classes
from gradlab.explore.saved_page import saved_page


def page(title: Sentence, body: str, contains: Sentence) -> str:
    """Return the page of a fragment of HTML. `contains` names the values and the source in it."""
    note = f'<div {NO_MATH} style="opacity:.72;font-size:12px;padding:8px 2px">{to_html(contains)}</div>'
    body, classes = with_classes(f"{body}{note}".replace(IN_NOTEBOOKS, ""))  # a page follows the theme of its reader
    return saved_page(to_text(title), body, classes + RULES)

"""The standalone page that steps through a sweep, with its data, script and style."""

from __future__ import annotations

from typing import Any

from gradlab.explore.markup import Sentence, escape_html, to_text
from gradlab.explore.saved_page import saved_page
from gradlab.notebook.bundle import script, styles

OWN = (
    "main{max-width:1180px}h1{font-size:17px;font-weight:600;margin:4px 2px 12px}"
    ".contains{opacity:.72;font-size:12px;padding:8px 2px}"
)


def stepper_page(data: dict[str, Any], *, title: Sentence, contains: Sentence, text: str) -> str:
    """Return the page.

    Parameters
    ----------
    data : dict
        The result of `explore.steps.view`.
    title, contains : Sentence
        What the page is, and which values and source it contains.
    text : str
        The steps as text, for browsers without scripts.
    """
    body = (
        f'<main><h1>{_inline(title)}</h1><div id="stepper" class="gl-view"></div>'
        f"<noscript><pre>{escape_html(text)}</pre></noscript>"
        f'<div class="contains">{_inline(contains)}</div></main>'
    )
    css = OWN + styles("kit/kit.css", "stepper/stepper.css")
    code = script("stepper/page.js") + "$stepper$page.render();\n"
    return saved_page(to_text(title), body, css, data={"steps": data}, code=code, pictures=False)


def _inline(sentence: Sentence) -> str:
    """Return a sentence as HTML without inline styles, which the page does not allow."""
    return "".join(f"<code>{escape_html(text)}</code>" if "code" in kind else escape_html(text) for text, kind in sentence)

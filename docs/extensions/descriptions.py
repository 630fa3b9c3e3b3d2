"""A description for search engines on every page: the page's own `html_meta`, otherwise its title and one sentence on gradlab."""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def describe(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: nodes.document | None) -> None:
    metatags = context.get("metatags") or ""
    if 'name="description"' not in metatags:
        text = f"{nodes.unescape(context.get('title') or app.config.project)}. {app.config.descriptions_default}"
        context["metatags"] = f'{metatags}<meta name="description" content="{escape(text)}">\n'


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("descriptions_default", "", "html")
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

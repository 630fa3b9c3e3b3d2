"""Directive `gallery`: thumbnails of the pictures on other pages, made from the outputs of their executed cells.

Each section of a page becomes a card that links to it, with its first picture, its title and its first paragraph. A cell with the
tag `thumbnail` is preferred to the first. The picture is the output itself, scaled down, so it follows the theme.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

SVG = re.compile(r"<img [^>]*?src='(data:image/svg\+xml,[^']+)'[^>]*>")
SIZE = re.compile(r' (width|height)="([\d.]+)"')


class Thumbnails(nodes.General, nodes.Element):
    """Placeholder for the cards of one page, until the outputs of all pages are known."""


class Gallery(SphinxDirective):
    """`{gallery} PAGE`: a grid with a card for each section of the page."""

    required_arguments = 1
    has_content = False
    option_spec: ClassVar = {}

    def run(self) -> list[nodes.Node]:
        page = self.arguments[0]
        self.env.note_dependency(str(self.env.doc2path(page)))
        return [Thumbnails(page=page)]


def picture_of(section: nodes.section) -> nodes.container | None:
    """Return the first output of the cell tagged `thumbnail`, or of the first cell that has a picture."""
    cells = [cell for cell in section.findall(nodes.container) if cell.get("nb_element") == "cell_code"]
    cells.sort(key=lambda cell: "tag_thumbnail" not in cell["classes"])
    for cell in cells:
        for output in cell.findall(nodes.container):
            if output.get("nb_element") == "mime_bundle":
                return output
    return None


def thumbnail(output: nodes.container) -> list[nodes.Node]:
    """Return the nodes that draw the output on a card: a picture, a page scaled down, a formula or text."""
    kinds = {child["mime_type"]: child for child in output.findall(nodes.container) if "mime_type" in child}
    if "text/html" in kinds:
        html = kinds["text/html"].astext()
        pictures = list(SVG.finditer(html))
        if "image/png" in kinds and len(pictures) == 1:
            size = {name: float(value) for name, value in SIZE.findall(pictures[0][0])}
            tall = " gallery-tall" * (size.get("height", 0) > size.get("width", 0))
            return [raw(f"<img class='gradlab-picture{tall}' alt='' src='{pictures[0][1]}'>")]
        return [raw(f'<div class="gallery-page">{html}</div>')]
    for kind in ("image/png", "text/latex"):
        if kind in kinds:
            return [child.deepcopy() for child in kinds[kind].children]
    text = kinds["text/plain"].astext() if "text/plain" in kinds else output.astext()
    return [raw(f'<p class="gallery-text">{escape(text)}</p>')]


def raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for place in list(doctree.findall(Thumbnails)):
        page = place["page"]
        address = app.builder.get_relative_uri(docname, page)
        grid: list[nodes.Node] = [raw('<div class="gallery">')]
        top = next(app.env.get_doctree(page).findall(nodes.section))
        for section in top.children:
            output = picture_of(section) if isinstance(section, nodes.section) else None
            if output is None:
                continue
            title = escape(section[0].astext())
            text = "".join(child.astext() for child in section.children[1:2] if isinstance(child, nodes.paragraph))
            grid += [
                raw('<div class="gallery-card"><div class="gallery-thumbnail" inert aria-hidden="true">'),
                *thumbnail(output),
            ]
            grid.append(raw(f'</div><a href="{address}#{section["ids"][0]}">{title}</a><p>{escape(text)}</p></div>'))
        place.replace_self([*grid, raw("</div>")])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(Thumbnails)
    app.add_directive("gallery", Gallery)
    app.connect("doctree-resolved", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

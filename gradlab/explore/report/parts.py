"""Parts of a report that are separate outputs: pictures, code, and single sentences."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import GRADIENT, Drawing, clean
from gradlab.explore.graph.listing import first_lines
from gradlab.explore.markup import (
    MONO,
    NO_MATH,
    Sentence,
    breakable,
    escape_html,
    parse_backticks,
    say,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.report.table import CARD
from gradlab.explore.theme import hex_of


@dataclass(frozen=True)
class Picture:
    """A drawing as a separate output. Its bitmap has at most `room` bytes: that of the drawing if possible, else of `instead`."""

    drawing: Drawing
    room: int
    instead: Drawing | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.drawing.html(), "text/plain": self.drawing.text} | bitmap(self.room, self.drawing, self.instead)


@dataclass(frozen=True)
class Card:
    """Sentences and pictures on one card, the first output of a report in a notebook."""

    html: str
    latex: str
    text: str

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/latex": self.latex, "text/plain": self.text}


@dataclass(frozen=True)
class Appendix:
    """The folded output below the card: the equivalent code and the graph as text.

    Its bitmap is the picture, for exports that drop HTML, where the card has only text. If `terminal` is True, the graph is in
    the plain text, too.
    """

    code: str
    drawing: Drawing | None
    room: int
    instead: Drawing | None = None
    terminal: bool = True

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        graph = self.drawing.text if self.drawing is not None else ""
        html = (code_html(self.code) if self.code else "") + (
            fold_html("Graph as text", shortened_text(graph, FOLDED)) if graph else ""
        )
        text = "\n\n".join(filter(None, [graph if self.terminal else "", code_text(self.code) if self.code else ""]))
        return {"text/html": html, "text/plain": text} | bitmap(self.room, self.drawing, self.instead)


def bitmap(room: int, *drawings: Drawing | None) -> dict[str, str]:
    """Return {"image/png": base64} of the first drawing that fits into `room` bytes, or {}."""
    for drawing in filter(None, drawings):
        data = drawing.bitmap(room) if room > 0 else None
        if data is not None:
            return {"image/png": base64.b64encode(data).decode()}
    return {}


def shortened_text(graph: str, characters: int) -> str:
    """Return the first lines of a graph as text, and how to print all of them."""
    return graph if len(graph) <= characters else f"{first_lines(graph, characters)}\n{WHOLE}"


CODE = "Equivalent code"
FOLDED = 2_500  # characters of the graph as text in a notebook
WHOLE = "(The whole text: %%grad -o report above the cell, then print(report.graph().text()).)"


def fold_html(title: str, text: str, *, opened: bool = False) -> str:
    """Return a title that unfolds to monospaced text."""
    return (
        f'<details{" open" if opened else ""} {NO_MATH} style="max-width:1180px;margin:2px 0;font-size:12px;'
        'font-family:var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-content-font-color1,inherit)">'
        f'<summary style="cursor:pointer;padding:1px 14px"><span style="opacity:.72">{escape_html(title)}</span></summary>'
        f'<pre style="{MONO};font-size:12.5px;line-height:1.5;background:rgba(128,128,128,.1);color:inherit;border:none;'
        'border-radius:6px;padding:7px 14px;margin:3px 0 6px 0;overflow-x:auto;white-space:pre">'
        f"{escape_html(text)}</pre></details>"
    )


def code_html(text: str, *, opened: bool = False) -> str:
    """Return the equivalent code, folded unless `opened` is True."""
    return fold_html(CODE, text, opened=opened)


def code_latex(text: str) -> str:
    """Return the equivalent code for LaTeX, monospaced."""
    lines = []
    for line in text.splitlines():
        bare = line.lstrip(" ")
        lines.append(rf"\texttt{{{'~' * (len(line) - len(bare))}{breakable(bare)}}}")
    return f"\\noindent {CODE}:\\par\\noindent\n" + "\\\\\n".join(lines) + "\\par"


def code_text(text: str) -> str:
    """Return the equivalent code for a terminal."""
    return f"{CODE}:\n{indent(clean(text))}"


@dataclass(frozen=True)
class Remark:
    """One sentence as an output, such as why there was nothing to differentiate."""

    sentence: Sentence

    def followed_by(self, sentences: Sequence[object]) -> Remark:
        """Return the remark with further sentences, in which code is between backticks."""
        return Remark(say(self.sentence, *(say(" ", parse_backticks(str(one))) for one in sentences)))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = (
            f'<div {NO_MATH} style="{CARD};padding:7px 14px;border-left:3px solid {hex_of(GRADIENT)};border-radius:4px">'
            f"{to_html(self.sentence)}</div>"
        )
        return {
            "text/html": html,
            "text/latex": rf"\noindent {to_latex(self.sentence)}\par",
            "text/plain": to_text(self.sentence),
        }


def indent(text: str) -> str:
    """Indent each line by two spaces."""
    return "\n".join(f"  {line}" for line in text.splitlines())

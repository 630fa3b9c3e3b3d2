"""The parts of a report that are outputs of their own, beside its table: pictures, code, and the sentence that stands alone."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import GRADIENT, Drawing, clean
from gradlab.explore.table import CARD
from gradlab.explore.words import MONO, NO_MATH, Sentence, escape_html, escape_latex, to_html, to_latex, to_text


@dataclass(frozen=True)
class Picture:
    """A drawing as an output of its own. Its bitmap takes at most `room` bytes: the whole if that is possible, else `instead`."""

    drawing: Drawing
    room: int
    instead: Drawing | None = None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.drawing.html(), "text/plain": self.drawing.text} | self.bitmap()

    def bitmap(self) -> dict[str, str]:
        """{"image/png": base64}, or nothing where there is no room for it."""
        for drawing in filter(None, (self.drawing, self.instead)):
            data = drawing.png(max_bytes=self.room) if self.room > 0 else None
            if data is not None:
                return {"image/png": base64.b64encode(data).decode()}
        return {}


@dataclass(frozen=True)
class Code:
    """Code to read and run, as an output of its own."""

    text: str

    def html(self) -> str:
        """A quiet heading and the code."""
        return (
            f'<div {NO_MATH} style="max-width:980px;margin:2px 0 6px 0;font-size:13px"><div style="opacity:.72;font-size:12px;'
            'font-family:var(--jp-ui-font-family,system-ui,sans-serif)">The same by hand</div>'
            f'<pre style="{MONO};font-size:12.5px;line-height:1.5;background:rgba(128,128,128,.1);color:inherit;border:none;'
            'border-radius:6px;padding:7px 11px;margin:3px 0 0 0;overflow-x:auto;white-space:pre">'
            f"{escape_html(self.text)}</pre></div>"
        )

    def latex(self) -> str:
        """The same in typewriter."""
        lines = []
        for line in self.text.splitlines():
            bare = line.lstrip(" ")
            lines.append(rf"\texttt{{{'~' * (len(line) - len(bare))}{escape_latex(bare)}}}")
        return "\\noindent The same by hand:\\par\\noindent\n" + "\\\\\n".join(lines) + "\\par"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {
            "text/html": self.html(),
            "text/latex": self.latex(),
            "text/plain": f"The same by hand:\n{indented(clean(self.text))}",
        }


@dataclass(frozen=True)
class Remark:
    """One sentence as an output: that there was nothing to differentiate, and why."""

    sentence: Sentence

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = (
            f'<div {NO_MATH} style="{CARD};padding:7px 14px;border-left:3px solid {GRADIENT};border-radius:4px">'
            f"{to_html(self.sentence)}</div>"
        )
        return {
            "text/html": html,
            "text/latex": rf"\noindent {to_latex(self.sentence)}\par",
            "text/plain": to_text(self.sentence),
        }


def indented(text: str) -> str:
    """Each line set off by two blanks."""
    return "\n".join(f"  {line}" for line in text.splitlines())

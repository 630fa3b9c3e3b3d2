"""The output of a notebook after a failure: the graph up to the failed call, and the doctor's findings on the error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import MAX_BYTES, Drawing
from gradlab.explore.markup import NO_MATH, Span, say, to_html, to_latex, to_text
from gradlab.explore.report import findings_view
from gradlab.explore.report.parts import bitmap
from gradlab.explore.report.table import CARD


@dataclass(frozen=True)
class FailureView:
    """A picture of a failed program, with text.

    Attributes
    ----------
    findings, remarks : sequence of Finding
        The findings of the doctor.
    drawing : Drawing or None
    error : str
        The class of the exception and its message; "" if the notebook has already shown them.
    """

    findings: Sequence[Any]
    remarks: Sequence[Any]
    drawing: Drawing | None = None
    error: str = ""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        both = (self.findings, self.remarks) if self.findings or self.remarks else None
        kind, _, message = self.error.partition(": ")
        sentence = say(Span(kind, "warning"), f": {message}" if message else "") if self.error else ()
        words = f'<div style="padding:7px 14px;overflow-wrap:anywhere">{to_html(sentence)}</div>' if sentence else ""
        words += findings_view.html(*both) if both else ""
        card = f'<div {NO_MATH} style="{CARD};border-radius:4px">{words}</div>' if words else ""
        if self.drawing is not None:
            columns = f'<div style="max-width:100%;min-width:0">{self.drawing.html()}</div>'
            columns += f'<div style="flex:1 1 320px;min-width:0;max-width:720px">{card}</div>' if card else ""
            card = f'<div style="display:flex;flex-wrap:wrap;gap:4px 24px;align-items:flex-start">{columns}</div>'
        latex = [to_latex(sentence) if sentence else "", findings_view.latex(*both) if both else ""]
        text = [
            to_text(sentence) if sentence else "",
            findings_view.text(*both) if both else "",
            self.drawing.text if self.drawing is not None else "",
        ]
        found = {"text/html": card, "text/plain": "\n\n".join(filter(None, text))}
        if any(latex):
            found["text/latex"] = "\n\n".join(filter(None, latex))
        return found | (bitmap(MAX_BYTES, self.drawing) if self.drawing is not None else {})


def describe_error(kind: str, message: str) -> str:
    """Return the class of an exception and its message on one line, at most 400 characters."""
    text = " ".join(message.split())
    return f"{kind}: {text if len(text) <= 400 else text[:399] + '…'}" if text else kind

"""What a doctor found, as a report shows it: Problems and Notes, with the line and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.doctor.findings import SHOWN, hidden
from gradlab.explore.markup import Sentence, Span, dimmed, escape_html, marked, say, to_html, to_latex, to_text
from gradlab.explore.report.table import RULE

Said = tuple[Sentence, Sentence]


def sentences(findings: Sequence[Any], remarks: Sequence[Any]) -> list[Said]:
    """For each finding a sentence and, quieter, what to do; Problems first."""
    everything = [("Problem", "■", finding) for finding in findings] + [("Note", "□", remark) for remark in remarks]
    return [(_first(word, mark, one), _second(one)) for word, mark, one in everything]


def _words(findings: Sequence[Any], remarks: Sequence[Any]) -> list[Said]:
    """The first of them, and where the others are."""
    shown = sentences(findings, remarks)[:SHOWN]
    more = hidden(findings, remarks)
    if more:
        where = [name for noun, name in (("problem", "report.findings"), ("note", "report.remarks")) if noun in more]
        shown.append((dimmed(say(more, ": ", Span(" and ".join(where), "code"))), ()))
    return shown


def _first(word: str, mark: str, finding: Any) -> Sentence:
    line = getattr(finding, "line", None)
    message = str(finding.message)
    said = marked(message)
    where = say(Span(f"  line {line}", "dim")) if line is not None and f"line {line}" not in message else ()
    model = getattr(finding, "model", "")
    whose = say(Span(model, "strong"), ": ") if model else ()
    return say(Span(f"{mark} {word}", "strong"), "  ", whose, said, where)


def _second(finding: Any) -> Sentence:
    """What to do; the evidence stands in the first sentence, in words."""
    fix = getattr(finding, "fix", None)
    return dimmed(marked(str(fix))) if fix else ()


def html(findings: Sequence[Any], remarks: Sequence[Any], *, every: bool = False) -> str:
    """A block below the head of the card: the first of them, and the others folded, unless it is to be `every` one."""
    rows = [_row(*said) for said in sentences(findings, remarks)]
    shown = len(rows) if every else SHOWN
    more = ""
    if len(rows) > shown:
        title = f'<span style="opacity:.72">{escape_html(hidden(findings, remarks))}</span>'
        more = (
            f'<details style="padding:3px 0"><summary style="cursor:pointer">{title}</summary>{"".join(rows[shown:])}</details>'
        )
    return f'<div style="padding:6px 14px;border-top:{RULE}">{"".join(rows[:shown])}{more}</div>' if rows else ""


def _row(first: Sentence, second: Sentence) -> str:
    below = f'<div style="padding-left:18px">{to_html(second)}</div>' if second else ""
    return f'<div style="padding:3px 0;white-space:pre-wrap">{to_html(first)}{below}</div>'


def text(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """The same for a terminal."""
    return "\n".join(
        to_text(first) + (f"\n    {to_text(second)}" if second else "") for first, second in _words(findings, remarks)
    )


def latex(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """The same for LaTeX."""
    return "\n".join(
        rf"\noindent {to_latex(first)}\par" + (f"\n\\noindent {to_latex(second)}\\par" if second else "")
        for first, second in _words(findings, remarks)
    )

"""What a doctor found, as a report shows it: Problems and Notes, with the line and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.markup import Sentence, Span, count, dimmed, marked, say, to_html, to_latex, to_text
from gradlab.explore.report.table import RULE

MOST = 5


def sentences(findings: Sequence[Any], remarks: Sequence[Any], most: int | None = MOST) -> list[tuple[Sentence, Sentence]]:
    """For each finding a sentence and, quieter, what to do and what it rests on; of more than `most` the last counts the rest."""
    everything = [("Problem", "■", finding) for finding in findings] + [("Note", "□", remark) for remark in remarks]
    shown = [(_first(word, mark, one), _second(one)) for word, mark, one in everything[:most]]
    rest = [] if most is None else everything[most:]
    if rest:
        problems = sum(word == "Problem" for word, _, _ in rest)
        kinds = [count(n, noun) for n, noun in ((problems, "more problem"), (len(rest) - problems, "more note")) if n]
        where = [name for n, name in ((problems, "report.findings"), (len(rest) - problems, "report.remarks")) if n]
        shown.append((dimmed(say(" and ".join(kinds), ": ", Span(" and ".join(where), "code"))), ()))
    return shown


def _first(word: str, mark: str, finding: Any) -> Sentence:
    line = getattr(finding, "line", None)
    message = str(finding.message)
    said = marked(message)
    where = say(Span(f"  line {line}", "dim")) if line is not None and f"line {line}" not in message else ()
    return say(Span(f"{mark} {word}", "strong"), "  ", said, where)


def _second(finding: Any) -> Sentence:
    """What to do; the evidence stands in the first sentence, in words."""
    fix = getattr(finding, "fix", None)
    return dimmed(marked(str(fix))) if fix else ()


def html(findings: Sequence[Any], remarks: Sequence[Any], most: int | None = MOST) -> str:
    """A block below the head of the card. On a page, whose reader has no `report` to ask, `most` is None."""
    rows = []
    for first, second in sentences(findings, remarks, most):
        below = f'<div style="padding-left:18px">{to_html(second)}</div>' if second else ""
        rows.append(f'<div style="padding:3px 0;white-space:pre-wrap">{to_html(first)}{below}</div>')
    return f'<div style="padding:6px 14px;border-top:{RULE}">{"".join(rows)}</div>' if rows else ""


def text(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """The same for a terminal."""
    return "\n".join(
        to_text(first) + (f"\n    {to_text(second)}" if second else "") for first, second in sentences(findings, remarks)
    )


def latex(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """The same for LaTeX."""
    return "\n".join(
        rf"\noindent {to_latex(first)}\par" + (f"\n\\noindent {to_latex(second)}\\par" if second else "")
        for first, second in sentences(findings, remarks)
    )

"""Findings of the doctor as a report shows them: Problems and Notes, with the line, the kind, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.doctor.findings import SHOWN, hidden
from gradlab.explore.doctor.pages import page_url
from gradlab.explore.doctor.registry import KINDS
from gradlab.explore.markup import (
    Sentence,
    Span,
    dim,
    escape_html,
    escape_latex,
    parse_backticks,
    say,
    style,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.report.table import RULE

Row = tuple[Sentence, str, Sentence]


def rows_of(findings: Sequence[Any], remarks: Sequence[Any]) -> list[Row]:
    """Return a sentence, the kind, and a quieter sentence with the fix for each finding; Problems first."""
    everything = [("Problem", "■", finding) for finding in findings] + [("Note", "□", remark) for remark in remarks]
    return [(_first(word, mark, one), str(getattr(one, "kind", "")), _second(one)) for word, mark, one in everything]


def _shown_rows(findings: Sequence[Any], remarks: Sequence[Any]) -> list[Row]:
    """Return the first rows, and one that says where the others are."""
    shown = rows_of(findings, remarks)[:SHOWN]
    more = hidden(findings, remarks)
    if more:
        where = [name for noun, name in (("problem", "report.findings"), ("note", "report.remarks")) if noun in more]
        shown.append((dim(say(more, ": ", Span(" and ".join(where), "code"))), "", ()))
    return shown


def _first(word: str, mark: str, finding: Any) -> Sentence:
    line = getattr(finding, "line", None)
    message = str(finding.message)
    said = parse_backticks(message)
    where = say(Span(f"  line {line}", "dim")) if line is not None and f"line {line}" not in message else ()
    model = getattr(finding, "model", "")
    whose = say(Span(model, "strong"), ": ") if model else ()
    return say(Span(f"{mark} {word}", "strong"), "  ", whose, said, where)


def _second(finding: Any) -> Sentence:
    """Return the fix. The evidence is part of the first sentence."""
    fix = getattr(finding, "fix", None)
    return dim(parse_backticks(str(fix))) if fix else ()


def html(findings: Sequence[Any], remarks: Sequence[Any], *, every: bool = False) -> str:
    """Return a block for the card below its heading: the first findings, and the others folded unless `every` is True."""
    rows = [_row(*row) for row in rows_of(findings, remarks)]
    shown = len(rows) if every else SHOWN
    more = ""
    if len(rows) > shown:
        title = f'<span style="opacity:.72">{escape_html(hidden(findings, remarks))}</span>'
        more = (
            f'<details style="padding:3px 0"><summary style="cursor:pointer">{title}</summary>{"".join(rows[shown:])}</details>'
        )
    return f'<div style="padding:6px 14px;border-top:{RULE}">{"".join(rows[:shown])}{more}</div>' if rows else ""


def _row(first: Sentence, kind: str, second: Sentence) -> str:
    below = f'<div style="padding-left:18px">{to_html(second)}</div>' if second else ""
    return f'<div style="padding:3px 0;white-space:pre-wrap">{to_html(first)}{_kind_html(kind)}{below}</div>'


def _kind_html(kind: str) -> str:
    """Return the kind in brackets: a link to its page if the documentation has an address, with its meaning as a tooltip.

    The documentation's own pages make it a link themselves (docs/_static/theme.js).
    """
    if not kind:
        return ""
    name, url = escape_html(kind), page_url(kind)
    meaning = f' title="{escape_html(KINDS[kind].meaning)}"' if kind in KINDS else ""
    body = f'<a href="{escape_html(url)}" style="color:inherit">{name}</a>' if url else name
    return f'  <span data-gradlab-kind="{name}" style="{style("dim")};white-space:nowrap"{meaning}>[{body}]</span>'


def text(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """Return the findings for a terminal."""
    return "\n".join(
        to_text(first) + (f"  [{kind}]" if kind else "") + (f"\n    {to_text(second)}" if second else "")
        for first, kind, second in _shown_rows(findings, remarks)
    )


def latex(findings: Sequence[Any], remarks: Sequence[Any]) -> str:
    """Return the findings for LaTeX."""
    return "\n".join(
        rf"\noindent {to_latex(first)}{f' [{escape_latex(kind)}]' if kind else ''}\par"
        + (f"\n\\noindent {to_latex(second)}\\par" if second else "")
        for first, kind, second in _shown_rows(findings, remarks)
    )

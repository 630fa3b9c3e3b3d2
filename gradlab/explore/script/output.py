"""What was found in a script, in words for a terminal and as a page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gradlab.explore.doctor.findings import SHOWN, Finding, hidden
from gradlab.explore.markup import NO_MATH, Sentence, Span, code, count, dimmed, say, to_html
from gradlab.explore.report import findings_view
from gradlab.explore.report.page import page
from gradlab.explore.report.table import CARD
from gradlab.explore.script.visiting import INTERRUPTED, Visit

WIDTH = 100  # of a terminal's line


def text(visit: Visit, *, unseen: bool = True, every: bool = False) -> str:
    """For a terminal: a heading, each finding below its file and line, and what was not seen.

    Parameters
    ----------
    visit : Visit
    unseen : bool, default True
        Say what was not seen.
    every : bool, default False
        All findings, not the first few and the number of the others.
    """
    return "\n\n".join([heading(visit), *_findings(visit, every), *(_wrapped(one, "") for one in _unseen(visit) if unseen)])


def heading(visit: Visit) -> str:
    """ "gradlab doctor: train.py called backward() 300 times. 1 Problem, 2 Notes."."""
    return f"── gradlab doctor: {visit.program.name}{_ended(visit)}: {_counted(visit)}"


def _ended(visit: Visit) -> str:
    how = " was interrupted and" if visit.ended == INTERRUPTED else f" ended with status {visit.ended} and" if visit.ended else ""
    times = "once" if visit.sweeps == 1 else count(visit.sweeps, "time")
    if visit.failed and not visit.sweeps:
        return f"{how.removesuffix(' and')} before any backward()"
    return f"{how} called backward() {times}" if visit.sweeps else f"{how} called no backward()"


def _counted(visit: Visit) -> str:
    seen = visit.diagnosis
    if not (visit.sweeps or seen.findings or seen.remarks):
        return "nothing was found" if visit.failed else "nothing to look at"
    parts = [count(len(seen.findings), "Problem")] if seen.findings else ["no Problem"]
    parts += [count(len(seen.remarks), "Note")] if seen.remarks else []
    return ", ".join(parts)


def _findings(visit: Visit, every: bool) -> Iterator[str]:
    seen = visit.diagnosis
    known = [("■ Problem", one) for one in seen.findings] + [("□ Note", one) for one in seen.remarks]
    for mark, finding in known if every else known[:SHOWN]:
        model = f"{finding.model}: " if finding.model else ""
        yield "\n".join([*_where(visit, finding), _wrapped(f"{mark}  {model}{finding.message}"), *_fix(finding)])
    if len(known) > SHOWN and not every:
        more = hidden(seen.findings, seen.remarks)
        yield f"{more}: `gradlab doctor --all` prints all of them, `--html FILE` writes them to a page."


def _where(visit: Visit, finding: Finding) -> Iterator[str]:
    """The line of the script, and of the module that it led to."""
    if finding.line is not None:
        lines = visit.program.source.splitlines()
        source = lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""
        yield f"{visit.program.called}:{finding.line}: {source}"
    place = visit.place(finding)
    if place is not None:
        yield f"    {place.where}: {place.statement}"


def _fix(finding: Finding) -> Sequence[str]:
    return [_wrapped(f"  → {finding.fix}")] if finding.fix else []


def _unseen(visit: Visit) -> Sequence[str]:
    return [*visit.diagnosis.unseen, *visit.unseen]


def _wrapped(text: str, indent: str = "    ") -> str:
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def page_of(visit: Visit) -> str:
    """A page that needs nothing else: what was found, and the report of the last backward that was looked at."""
    called = code(visit.program.called)
    title = say(Span("gradlab doctor", "plain"), ": ", called)
    words = " ".join([visit.program.called, *visit.program.arguments])
    head = [
        say(Span(words, "code strong"), f"{_ended(visit)}: {_counted(visit)}."),
        *(dimmed(say(one)) for one in _unseen(visit)),
    ]
    rows = "".join(f'<div style="padding:2px 0">{to_html(sentence)}</div>' for sentence in head)
    body = f'<div {NO_MATH} style="padding:0 2px 14px">{rows}</div>'
    report = visit.report()
    if report is not None:
        return page(title, body + report.html(every_finding=True), report.contains(advice=False))
    findings = findings_view.html(visit.diagnosis.findings, visit.diagnosis.remarks, every=True)
    contains: Sentence = say("This page contains the lines that findings name, and no values of tensors.")
    return page(title, body + (f'<div {NO_MATH} style="{CARD}">{findings}</div>' if findings else ""), contains)

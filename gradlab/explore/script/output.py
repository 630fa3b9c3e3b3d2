"""Print the findings in a script as text for a terminal, and write them as an HTML page."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from gradlab.explore.doctor.findings import SHOWN, Finding, hidden
from gradlab.explore.markup import NO_MATH, Sentence, Span, code, count, dim, say, to_html
from gradlab.explore.report import findings_view
from gradlab.explore.report.page import page
from gradlab.explore.report.table import CARD
from gradlab.explore.script.locations import source_line
from gradlab.explore.script.running import INTERRUPTED, ScriptRun

WIDTH = 100  # characters of a line of text


def text(run: ScriptRun, *, unseen: bool = True, every: bool = False) -> str:
    """Return a heading, the findings with their lines, and the limits of the checks, for a terminal.

    Parameters
    ----------
    run : ScriptRun
    unseen : bool, default: True
        Whether to include the sentences about parts of the run that were not checked.
    every : bool, default: False
        Whether to include all findings, or the first few and the number of the others.
    """
    sentences = [_wrap(sentence, "") for sentence in run.not_checked if unseen]
    return "\n\n".join([heading(run), *_findings(run, every), *sentences])


def heading(run: ScriptRun) -> str:
    """Return a heading such as "── gradlab doctor: train.py called backward() 300 times: 1 Problem, 2 Notes"."""
    return f"── gradlab doctor: {summary(run)}"


def summary(run: ScriptRun) -> str:
    """Return how the script ended and the number of findings, such as "train.py called backward() 300 times: 1 Problem"."""
    return f"{run.program.name}{_what_ran(run)}: {_counts(run)}"


def _what_ran(run: ScriptRun) -> str:
    status = run.script_status
    how = " was interrupted and" if status == INTERRUPTED else f" ended with status {status} and" if status else ""
    times = "once" if run.backward_calls == 1 else count(run.backward_calls, "time")
    if run.failed and not run.backward_calls:
        return f"{how.removesuffix(' and')} before any backward()"
    return f"{how} called backward() {times}" if run.backward_calls else f"{how} called no backward()"


def _counts(run: ScriptRun) -> str:
    found = run.diagnosis
    problems, notes = len(found.findings), len(found.remarks)
    ignored = [f"{found.ignored} ignored"] if found.ignored else []
    if not (run.backward_calls or problems or notes):
        return ", ".join(["nothing was found" if run.failed else "nothing to look at", *ignored])
    parts = [count(problems, "Problem") if problems else "no Problem", *([count(notes, "Note")] if notes else []), *ignored]
    return ", ".join(parts)


def _findings(run: ScriptRun, every: bool) -> Iterator[str]:
    found = run.diagnosis
    marked = [("■ Problem", one) for one in found.findings] + [("□ Note", one) for one in found.remarks]
    for mark, finding in marked if every else marked[:SHOWN]:
        model = f"{finding.model}: " if finding.model else ""
        message = _wrap(f"{mark}  {model}{finding.message}  [{finding.kind}]")
        yield "\n".join([*_lines(run, finding), message, *_fix(finding)])
    if len(marked) > SHOWN and not every:
        more = hidden(found.findings, found.remarks)
        yield f"{more}: `gradlab doctor --all` prints all of them, `--html FILE` writes them to a page."
    if marked:
        yield f"About a kind of finding: `gradlab doctor --explain {marked[0][1].kind}`"


def _lines(run: ScriptRun, finding: Finding) -> Iterator[str]:
    """Yield the line of the script, and the line of the module that it led to."""
    if finding.line is not None:
        yield f"{run.program.path}:{finding.line}: {source_line(run, finding.line)}"
    place = run.module_line(finding)
    if place is not None:
        yield f"    {place.where}: {place.statement}"


def _fix(finding: Finding) -> list[str]:
    return [_wrap(f"  → {finding.fix}")] if finding.fix else []


def _wrap(text: str, indent: str = "    ") -> str:
    return "\n".join(
        textwrap.fill(line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def html_page(run: ScriptRun) -> str:
    """Return a page that needs no other file: the findings, and the report of the last backward call that was checked."""
    title = say(Span("gradlab doctor", "plain"), ": ", code(run.program.path))
    words = " ".join([run.program.path, *run.program.arguments])
    head = [
        say(Span(words, "code strong"), f"{_what_ran(run)}: {_counts(run)}."),
        *(dim(say(sentence)) for sentence in run.not_checked),
    ]
    rows = "".join(f'<div style="padding:2px 0">{to_html(sentence)}</div>' for sentence in head)
    body = f'<div {NO_MATH} style="padding:0 2px 14px">{rows}</div>'
    report = run.report()
    if report is not None:
        return page(title, body + report.html(every_finding=True), report.contains(advice=False))
    findings = findings_view.html(run.diagnosis.findings, run.diagnosis.remarks, every=True)
    contains: Sentence = say("This page contains the lines that findings name, and no values of tensors.")
    return page(title, body + (f'<div {NO_MATH} style="{CARD}">{findings}</div>' if findings else ""), contains)


def write_page(run: ScriptRun, page: Path) -> OSError | None:
    """Write the HTML page. Return the error if that fails."""
    try:
        page.write_text(html_page(run), encoding="utf-8")
    except OSError as error:
        return error
    return None

"""Explain kinds of findings, as `gradlab doctor --explain KIND` prints them.

`sections` returns the parts of the page of a kind, and `explain` formats them for a terminal.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import gradlab.explore.doctor.examine  # noqa: F401  (registers the kinds)
from gradlab.explore.doctor.registry import KINDS, PROBLEM, STATE, Kind, homes_of, require_kinds, split_marks

WIDTH = 100  # characters of a line of text


@dataclass(frozen=True)
class Section:
    """A part of the page of a kind.

    Attributes
    ----------
    title : str
    text : str
        A paragraph, with code in backticks, or "".
    program : str
        A program, or "".
    marked : tuple of int
        The lines of the program that the finding names.
    rows : tuple of (str, str)
        A table of code and where to write it.
    """

    title: str
    text: str = ""
    program: str = ""
    marked: tuple[int, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()


def sections(kind: Kind) -> Iterator[Section]:
    """Yield the sections of the page of a kind, which follow its name and its meaning."""
    fault, marked = split_marks(kind.fault)
    healthy, _ = split_marks(kind.healthy)
    homes = homes_of(kind.name)
    yield Section("Why it matters", kind.why)
    yield Section("What to do", kind.remedy)
    yield Section("An example with the fault", program=fault.rstrip(), marked=marked)
    yield Section("An example without the fault", program=healthy.rstrip())
    if not homes:
        yield Section("Where it is reported", "`with gl.watch(model, optimizer) as w:` reports it, in `w.findings`.")
        yield Section("How to silence it", rows=((f'w.findings.without(["{kind.name}"])', "in code"),))
    elif homes == {STATE}:
        yield Section("Where it is reported", "After a run that was not recorded, by `%doctor` in a notebook and `gl.doctor()`.")
        yield Section("How to silence it", rows=(_in_notebook("%doctor", kind), _in_code(kind)))
    else:
        on_line = f"# gradlab: ignore[{kind.name}]", "at the end of the line"
        for_script = f"gradlab doctor --ignore {kind.name} train.py", "for a script"
        rows = (*([on_line] if marked else []), for_script, _in_notebook("%%doctor", kind), _in_code(kind))
        yield Section("How to silence it", rows=rows)


def _in_notebook(magic: str, kind: Kind) -> tuple[str, str]:
    return f"{magic} --ignore {kind.name}", "in a notebook"


def _in_code(kind: Kind) -> tuple[str, str]:
    return f'gl.doctor(ignore=["{kind.name}"])', "in code"


def explain(name: str) -> str:
    """Return the page of a kind as text for a terminal.

    Raises
    ------
    ValueError
        If there is no kind of this name.
    """
    require_kinds(name)
    kind = KINDS[name]
    severity = "Problem or Note" if kind.severity == PROBLEM and kind.notes else kind.severity
    parts = [f"{kind.name} ({severity})", _wrap(kind.meaning)]
    for section in sections(kind):
        body = [*_number_lines(section), *_align_rows(section.rows)]
        body += _wrap(section.text).splitlines() if section.text else []
        parts.append("\n".join([section.title, *(f"  {line}".rstrip() for line in body)]))
    return "\n\n".join(parts)


def list_kinds() -> str:
    """Return the names and meanings of all kinds, one a line, in alphabetical order."""
    width = max(map(len, KINDS))
    return "\n".join(f"{name:{width}}  {KINDS[name].meaning}" for name in sorted(KINDS))


def _number_lines(section: Section) -> Iterator[str]:
    """Yield the lines of a program, with `>` before those that the finding names."""
    for number, line in enumerate(section.program.splitlines(), 1):
        yield f"{'>' if number in section.marked else ' '} {number:>2}  {line}"
    if section.marked:
        yield from ("", "> marks the line that the finding names.")


def _align_rows(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    width = max((len(code) for code, _ in rows), default=0)
    for code, where in rows:
        yield f"{code:{width}}  {where}"


def _wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)

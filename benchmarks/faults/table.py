"""The table of `python -m benchmarks.faults`, in Markdown, and its verdicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.faults.program import FAULTS, TOOLS, Program, Run

RIGHT, OTHER, SILENT, REFUSED, FAILED = "right", "other", "silent", "refused by Keras", "did not run"
VERDICTS = (RIGHT, OTHER, SILENT, REFUSED, FAILED)


@dataclass
class Row:
    """The result of one program. `trouble` is the reason why it was not run."""

    program: Program
    run: Run
    corrected: Run | None = None
    trouble: str = ""


def verdict(row: Row, patterns: Mapping[str, str]) -> str:
    """Return whether a Problem names the fault.

    "right" if a Problem says what the program expects, "other" if there are Problems but none does, "silent" without a Problem.
    """
    program, run = row.program, row.run
    refused = bool(program.raises and re.search(program.raises, run.output))
    if row.trouble or (run.status and not refused and not run.backward_calls):
        return FAILED
    if any(says(problem, program.expects, patterns) for problem in run.problems):
        return RIGHT
    return OTHER if run.problems else REFUSED if refused else SILENT


def says(problem: Mapping[str, Any], expected: Sequence[str], patterns: Mapping[str, str]) -> bool:
    text = " ".join(f"{problem['message']} {problem['fix']} [{problem['kind']}]".split())
    return any(re.search(patterns[name], text, re.IGNORECASE) for name in expected)


def heading() -> str:
    return "| program | fault | backward | found | verdict | corrected |\n|---|---|---|---|---|---|"


def line(row: Row, patterns: Mapping[str, str], *, findings: bool = False) -> str:
    """Return a row of the table, followed by its cause and its findings if `findings`."""
    kinds = ", ".join(dict.fromkeys(problem["kind"] for problem in row.run.problems))
    told = verdict(row, patterns) + ("" if not row.program.why else " (not visible)")
    twin = "" if row.corrected is None else _problems_of(row.corrected)
    cells = (row.program.name, ", ".join(row.program.fault), row.run.backward_calls, kinds or "–", told, twin)
    text = f"| {' | '.join(map(str, cells))} |"
    if findings:
        text += f"\n    {row.program.cause}"
        for word, some in (("Problem", row.run.problems), ("Note", row.run.notes)):
            text += "".join(f"\n    {word} [{one['kind']}], line {one['line']}: {one['message']} → {one['fix']}" for one in some)
        for one in row.corrected.problems if row.corrected else ():
            text += f"\n    In the corrected program: [{one['kind']}], line {one['line']}: {one['message']}"
        text += "".join(f"\n    {one}" for one in (*row.run.failures, *(row.corrected.failures if row.corrected else ())))
        if row.trouble or row.run.status:
            text += "\n    " + (row.trouble or row.run.output.strip()[-600:]).replace("\n", "\n    ")
    return text


def _problems_of(run: Run) -> str:
    if run.status < 0 or (run.status and not run.backward_calls):
        return "did not run"
    return ", ".join(dict.fromkeys(problem["kind"] for problem in run.problems)) or "no Problem"


def totals(rows: Sequence[Row], patterns: Mapping[str, str]) -> str:
    """Summarise all rows: the verdicts, those that differ from the recorded ones, and the table by class of fault."""
    if not rows:
        return "No program."
    told = [verdict(row, patterns) for row in rows]
    counts = Counter(told)
    lines = [f"{len(rows)} programs: " + ", ".join(f"{counts[one]} {one}" for one in VERDICTS if counts[one]) + "."]
    pairs = list(zip(rows, told, strict=True))
    others = [f"{row.program.name} was {row.program.verdict}, is {now}" for row, now in pairs if row.program.verdict != now]
    lines.append(f"Changed verdicts: {'; '.join(others) or 'none'}.")
    twins = [row.corrected for row in rows if row.corrected is not None and row.corrected.backward_calls]
    if twins:
        lines.append(f"{sum(bool(one.problems) for one in twins)} of {len(twins)} corrected programs have a Problem.")
    failed = sum(bool(row.run.failures) for row in rows)
    if failed:
        lines.append(f"gradlab itself failed in {failed} programs.")
    return "\n".join([*lines, "", by_class([(row.program, now) for row, now in pairs])])


def by_class(pairs: Sequence[tuple[Program, str]]) -> str:
    """Return the table by class of the main fault, in Markdown: verdicts, and in how many programs other tools found the fault.

    Faults that cannot be seen from a run have a column of their own.
    """
    tools = [tool for tool in TOOLS if any(tool in program.found_by for program, _ in pairs)]
    columns = ("fault", "programs", RIGHT, OTHER, "no Problem", "not visible", *tools)
    lines = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    classes = dict.fromkeys(one for one in FAULTS if any(program.fault[0] == one for program, _ in pairs))
    for name in (*classes, "all"):
        own = [(program, now) for program, now in pairs if name in ("all", program.fault[0])]
        seen = Counter("not visible" if program.why and now != RIGHT else now for program, now in own)
        quiet = sum(seen[one] for one in (SILENT, REFUSED, FAILED))
        found = [sum(tool in program.found_by for program, _ in own) for tool in tools]
        lines.append(
            f"| {' | '.join(map(str, (name, len(own), seen[RIGHT], seen[OTHER], quiet, seen['not visible'], *found)))} |"
        )
    return "\n".join(lines)

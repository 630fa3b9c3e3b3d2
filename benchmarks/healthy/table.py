"""The table of `python -m benchmarks.healthy`, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median

from benchmarks.healthy.program import Program, Run


@dataclass
class Row:
    """The result of one program. `trouble` is the reason if it is not counted."""

    program: Program
    run: Run = field(default_factory=lambda: Run(0.0, 0))
    ratio: float = 0.0
    seconds: float = 0.0
    trouble: str = ""
    output: str = ""

    @property
    def problems(self) -> int:
        return len(self.run.problems) + self.run.hidden["Problem"]

    @property
    def notes(self) -> int:
        return len(self.run.notes) + self.run.hidden["Note"]

    @property
    def false_problems(self) -> int:
        """Number of Problems that are not true faults."""
        return self.problems - sum(_is_one_of(message, self.program.finds) for message in self.run.problems)

    @property
    def useless(self) -> int:
        return sum(_is_one_of(message, self.program.useless) for message in self.run.notes)


def heading() -> str:
    return "| program | checked | Problems | true faults | Notes | useless | time | without |\n|---|---|---|---|---|---|---|---|"


def line(row: Row, *, findings: bool = False) -> str:
    """Return a row of the table, followed by its findings if `findings`."""
    if row.trouble:
        cells = [row.trouble, *[""] * 6]
    else:
        finds = row.problems - row.false_problems
        cells = [
            row.run.checked or "nothing",
            row.problems,
            finds,
            row.notes,
            row.useless,
            f"{row.ratio:.2f}",
            f"{row.seconds:.1f} s",
        ]
    text = f"| {' | '.join(map(str, [row.program.file, *cells]))} |"
    if findings:
        for word, some in (("Problem", row.run.problems), ("Note", row.run.notes)):
            text += "".join(f"\n    {word}: {one}" for one in some)
        text += "".join(f"\n    {count} more {word}s" for word, count in row.run.hidden.items() if count)
        text += f"\n    {row.output.strip()}" if row.trouble and row.output.strip() else ""
    return text


def totals(rows: Sequence[Row]) -> str:
    """Summarise all rows in a sentence."""
    ran = [row for row in rows if not row.trouble]
    if not ran:
        return "No program ran."
    ratios = [row.ratio for row in ran]
    return (
        f"{len(ran)} programs ran: {sum(row.false_problems for row in ran)} false Problems, "
        f"{sum(row.problems - row.false_problems for row in ran)} true faults, {sum(row.notes for row in ran)} Notes, of which "
        f"{sum(row.useless for row in ran)} are useless (in {sum(row.useless > 0 for row in ran)} runs). Time ratio: "
        f"geometric mean {geometric_mean(ratios):.2f}, median {median(ratios):.2f}, maximum {max(ratios):.2f}."
    )


def _is_one_of(message: str, pieces: Sequence[str]) -> bool:
    return any(piece in message for piece in pieces)

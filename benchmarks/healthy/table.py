"""The table of `python -m benchmarks.healthy`, in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median

from benchmarks.healthy.program import Program, Run


@dataclass
class Row:
    """What came of one program; `trouble` says why it counts for nothing."""

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
        """Problems but for those that are true faults."""
        return self.problems - sum(_is_one_of(said, self.program.finds) for said in self.run.problems)

    @property
    def useless(self) -> int:
        return sum(_is_one_of(said, self.program.useless) for said in self.run.notes)


def heading() -> str:
    return (
        "| program | looked at | Problems | true faults | Notes | useless | time | without |\n|---|---|---|---|---|---|---|---|"
    )


def line(row: Row, *, said: bool = False) -> str:
    """A row of the table, and with `said` its findings below it."""
    if row.trouble:
        cells = [row.trouble, *[""] * 6]
    else:
        finds = row.problems - row.false_problems
        cells = [
            row.run.looked_at or "nothing",
            row.problems,
            finds,
            row.notes,
            row.useless,
            f"{row.ratio:.2f}",
            f"{row.seconds:.1f} s",
        ]
    told = f"| {' | '.join(map(str, [row.program.file, *cells]))} |"
    if said:
        for word, some in (("Problem", row.run.problems), ("Note", row.run.notes)):
            told += "".join(f"\n    {word}: {one}" for one in some)
        told += "".join(f"\n    {count} more {word}s" for word, count in row.run.hidden.items() if count)
        told += f"\n    {row.output.strip()}" if row.trouble and row.output.strip() else ""
    return told


def totals(rows: Sequence[Row]) -> str:
    """What all rows are together, in a sentence."""
    ran = [row for row in rows if not row.trouble]
    if not ran:
        return "No program ran."
    ratios = [row.ratio for row in ran]
    return (
        f"{len(ran)} programs ran: {sum(row.false_problems for row in ran)} false Problems, "
        f"{sum(row.problems - row.false_problems for row in ran)} true faults, {sum(row.notes for row in ran)} Notes, of which "
        f"{sum(row.useless for row in ran)} are useless ({sum(row.useless > 0 for row in ran)} runs have one). Time: "
        f"{geometric_mean(ratios):.2f} in the geometric mean, {median(ratios):.2f} in the median, at most {max(ratios):.2f}."
    )


def _is_one_of(said: str, pieces: Sequence[str]) -> bool:
    return any(piece in said for piece in pieces)

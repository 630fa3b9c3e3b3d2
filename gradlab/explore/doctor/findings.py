"""What the doctor says: findings, which are Problems, and remarks, which are Notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

ONCE = ("rebound-leaf",)  # kinds of which a line has one cause, though an error and what was seen both show it
SHOWN = 5  # findings in a report; the rest is counted


def sentence(advice: str) -> str:
    """Advice as the errors give it, as a sentence."""
    return f"{advice[:1].upper()}{advice[1:]}."


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    kind : str
        What it is, in one word of `KINDS`: "detached", "nan-born".
    message : str
        The cause in one or two sentences, with the user's names, lines and numbers; code stands between backticks.
    line : int or None
        The line of the cell that it lies in, `%%grad` being line 1; None outside of cells.
    node : int or None
        The node of the trace that it concerns.
    fix : str
        What to type or to do; "" where there is nothing to say.
    evidence : mapping of str to number or str
        The numbers that the message rests on, and what they are.
    remark : bool
        Whether it is a Note and no Problem.
    worth : float
        Findings of greater worth stand first.
    lines : tuple of int
        Further lines that it concerns.
    """

    kind: str
    message: str
    line: int | None = None
    node: int | None = None
    fix: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    remark: bool = False
    worth: float = 1.0
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.message} {self.fix}".strip()


@dataclass(frozen=True)
class Diagnosis:
    """What was found, the worthiest first.

    Attributes
    ----------
    findings : tuple of Finding
        Problems.
    remarks : tuple of Finding
        Notes.
    unseen : tuple of str
        What could not be looked at, in a sentence each.
    """

    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    unseen: tuple[str, ...] = ()

    @classmethod
    def of(cls, findings: Sequence[Finding], unseen: Sequence[str] = ()) -> Diagnosis:
        """The findings sorted, Problems and Notes apart. Of two families that name one kind and the same fix in one line, the
        worthier is heard."""
        ordered = sorted(findings, key=lambda finding: -finding.worth)
        first = {(one.kind, one.line, one.fix): one for one in reversed(ordered)}
        ordered = [one for one in ordered if not one.fix or first[one.kind, one.line, one.fix] is one]
        by_line: dict[int | None, Finding] = {}
        for one in ordered:
            if one.kind in ONCE and (one.line not in by_line or "` in place of `" not in by_line[one.line].fix):
                by_line[one.line] = one
        ordered = [one for one in ordered if one.kind not in ONCE or by_line[one.line] is one]
        return cls(
            tuple(finding for finding in ordered if not finding.remark),
            tuple(finding for finding in ordered if finding.remark),
            tuple(unseen),
        )

    def text(self) -> str:
        """In words, for a terminal."""
        if not self.findings and not self.remarks:
            lines = ["Nothing was found."]
        else:
            lines = [f"Problem: {finding}" for finding in self.findings[:SHOWN]]
            if len(self.findings) > SHOWN:
                lines.append(f"… and {len(self.findings) - SHOWN} more.")
            lines += [f"Note: {finding}" for finding in self.remarks[:SHOWN]]
        return "\n".join([*lines, *self.unseen])

    def __repr__(self) -> str:
        return self.text()

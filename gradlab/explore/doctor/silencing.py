"""Silence findings: by kind, or by a comment `# gradlab: ignore[KIND]` at the end of the line that a finding names.

A comment belongs to the innermost statement around its line, so it may be on any line of a statement that has several; of a
statement with a block, on the lines of its header. Several kinds are separated by commas. `# gradlab: ignore` without brackets
silences all kinds. Comments without effect, because of their form or an unknown kind, are reported.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.registry import KINDS, unknown_kind

START = re.compile(r"(?:^|(?<=\s))#\s*gradlab:\s*ignore\b")
COMMENT = re.compile(START.pattern + r"\s*(?:\[([^\]#]*)\])?\s*(?=#|$)")
WORD = "gradlab:"  # without it, a source has no such comment
FORM = "write # gradlab: ignore[KIND] at the end of the line."
ALL = "*"


class Comments:
    """The comments of a program that silence findings."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.kinds: dict[int, set[str]] = {}  # by line
        self.without_effect: list[str] = []  # a sentence for each
        if any(WORD in line for line in program.lines):
            for line, comment, is_alone in _read_comments(program.text):
                self._add(line, comment, is_alone)

    def _add(self, line: int, comment: str, is_alone: bool) -> None:
        found = list(COMMENT.finditer(comment))
        groups = [None if one[1] is None else [kind.strip() for kind in one[1].split(",") if kind.strip()] for one in found]
        reason = ""
        if len(found) < len(START.findall(comment)) or [] in groups or (found and is_alone):
            reason = FORM
        named = {kind for kinds in groups for kind in kinds or ()}
        if unknown := sorted(named - set(KINDS)):
            reason = unknown_kind(unknown[0])
        if reason:
            self.without_effect.append(f"The comment on line {line} has no effect: {reason}")
        if found and not is_alone:
            self.kinds[line] = named | ({ALL} if None in groups else set())

    def silence(self, kind: str, line: int) -> bool:
        """Return whether a comment silences a kind on a line."""
        if not self.kinds:
            return False
        first, last = _extent(self.program, line)
        return any(first <= at <= last and kinds & {kind, ALL} for at, kinds in self.kinds.items())


def kinds_in_comments(program: Program) -> frozenset[str]:
    """Return the kinds that comments of a program name, on any of its lines."""
    return frozenset(kind for kinds in Comments(program).kinds.values() for kind in kinds) - {ALL}


def split_ignored(findings: Sequence[Finding], case: Case) -> tuple[list[Finding], int, list[str]]:
    """Split findings into those to report and those that the user has silenced.

    Parameters
    ----------
    findings : sequence of Finding
    case : Case
        Its `ignore` has the silenced kinds, its programs the comments.

    Returns
    -------
    findings : list of Finding
    ignored : int
        The number of silenced findings, similar ones merged.
    without_effect : list of str
        A sentence for each comment without an effect.
    """
    own = Comments(case.program if case.program.lines or case.scene is None else case.scene.program)
    others: dict[str, Comments] = {}  # by file

    def is_silenced(finding: Finding) -> bool:
        lines = [line for line in (finding.line, *finding.lines) if line is not None]
        if finding.kind in case.ignore or any(own.silence(finding.kind, line) for line in lines):
            return True
        place = _place_in_another_file(finding, case)
        if place is None:
            return False
        file, line = place
        if file not in others:
            others[file] = Comments(Program.of_file(file))
        return others[file].silence(finding.kind, line)

    kept: list[Finding] = []
    silenced: list[Finding] = []
    for one in findings:
        (silenced if is_silenced(one) else kept).append(one)
    merged = Diagnosis.of(silenced)
    without_effect = [*own.without_effect]
    for file, comments in others.items():
        without_effect += [f"{PurePath(file).name}: {sentence}" for sentence in comments.without_effect]
    return kept, len(merged.findings) + len(merged.remarks), without_effect


def _place_in_another_file(finding: Finding, case: Case) -> tuple[str, int] | None:
    """Return the file and the line of a finding that is not in the cell or the script itself."""
    place = finding.place_in(case.trace)
    return None if place is None or place.in_cell or not place.file else (place.file, place.line)


def _extent(program: Program, line: int) -> tuple[int, int]:
    """Return the first and the last line of the innermost statement around a line, without its block."""
    around = [
        (first, last, one) for one in program.statements if (first := _first_line(one)) <= line <= (last := one.end_lineno or 0)
    ]
    if not around:
        return line, line
    first, last, statement = around[-1]
    blocks = [*getattr(statement, "body", ()), *(case.pattern for case in getattr(statement, "cases", ()))]
    return first, max(first, min((_first_line(one) for one in blocks), default=last + 1) - 1)


def _first_line(node: Any) -> int:
    """Return the first line of a statement, that of its first decorator if it has any."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([int(node.lineno), *(one.lineno for one in decorators)])


def _read_comments(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line and the text of each comment, and whether it is on a line of its own, between statements."""
    depth, before = 0, 0  # brackets that are open, and the last line with code
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string, depth == 0 and before != token.start[0]
            elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
                before = token.end[0]
                depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
    except (tokenize.TokenError, SyntaxError):
        return

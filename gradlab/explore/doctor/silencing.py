"""Silence findings: by kind, or by a comment `# gradlab: ignore[KIND]` at the end of the line that a finding names.

A comment belongs to the innermost statement around its line, so it may stand on any line of a statement that has several; of a
statement with a block, on the lines above the block. Several kinds are separated by commas. `# gradlab: ignore` without brackets
silences all kinds.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import KINDS, unknown_kind

COMMENT = re.compile(r"#\s*gradlab:\s*ignore\b(?:\s*\[([^\]]*)\])?")
WORD = "gradlab:"  # without it, a source has no such comment
ALL = "*"


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
        The number of silenced findings.
    unknown : list of str
        A sentence for each comment that names an unknown kind.
    """
    by_line = dict(_comments(case.program))
    unknown = [
        f"The comment on line {line} has no effect: {unknown_kind(kind)}"
        for line, kinds in by_line.items()
        for kind in sorted(kinds)
        if kind != ALL and kind not in KINDS
    ]
    kept = [one for one in findings if one.kind not in case.ignore and not _is_silenced(one, case, by_line)]
    return kept, len(findings) - len(kept), unknown


def _is_silenced(finding: Finding, case: Case, by_line: dict[int, frozenset[str]]) -> bool:
    if finding.line is not None and by_line and _match(finding.kind, case.program, finding.line, by_line):
        return True
    place = None
    if case.trace is not None and finding.node is not None and finding.node < len(case.trace.nodes):
        place = case.trace.nodes[finding.node].place
    if place is None or place.in_cell or not place.file:
        return False
    program = Program.of_file(place.file)
    comments = dict(_comments(program))
    return bool(comments) and _match(finding.kind, program, place.line, comments)


def _match(kind: str, program: Program, line: int, by_line: dict[int, frozenset[str]]) -> bool:
    first, last = _extent(program.at(line), line)
    return any(first <= at <= last and (kind in kinds or ALL in kinds) for at, kinds in by_line.items())


def _extent(statement: ast.stmt | None, line: int) -> tuple[int, int]:
    """Return the first and the last line of a statement, without its block."""
    if statement is None:
        return line, line
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(last, statement.lineno)


def _comments(program: Program) -> Iterator[tuple[int, frozenset[str]]]:
    """Yield the lines with a comment, and the kinds that each silences."""
    if not any(WORD in line for line in program.lines):
        return
    text = "\n".join("" if line.startswith(("%", "!")) else line for line in program.lines)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    for token in tokens:
        found = COMMENT.search(token.string) if token.type == tokenize.COMMENT else None
        if found:
            kinds = frozenset(kind.strip() for kind in (found[1] or "").split(",") if kind.strip())
            yield token.start[0], kinds if found[1] is not None else frozenset((ALL,))

"""Compare two reports: lines of code, gradients, values and findings."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.markup import Sentence, Span, code, count, join_items, number, parse_backticks, say, shape_text, to_text
from gradlab.explore.report.changed import drawing_of
from gradlab.explore.report.table import Column, Table, TensorRow, card
from gradlab.explore.trace.data import Trace

MAX_ROWS = 25
MAX_LINES = 6  # of code that differ
TOLERANCE = 1e-6  # relative to the norm, about the precision of float32


@dataclass(frozen=True)
class Change:
    """The change of one tensor.

    Attributes
    ----------
    name : str
    before, after : float or None
        The norms of its gradient; None if there is none.
    value_before, value_after : float or None
        The norms of its value.
    value_change : float or None
        The norm of the difference of the values if both reports have the numbers, else None.
    """

    name: str
    before: float | None
    after: float | None
    value_before: float | None
    value_after: float | None
    value_change: float | None = None

    @property
    def factor(self) -> float:
        """The ratio of the gradient's norms, after / before; NaN if undefined."""
        if self.before is None or self.after is None or self.before == 0:
            return math.nan
        return self.after / self.before

    @property
    def is_changed(self) -> bool:
        """True if the reports show that the gradient or the value differs by more than rounding."""
        return not (_same(self.before, self.after) and _same(self.value_before, self.value_after) and not self.value_change)


def _same(a: float | None, b: float | None) -> bool:
    if a is None or b is None:
        return a is b
    return a == b or (a != a and b != b) or abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


@dataclass(frozen=True)
class ReportComparison:
    """The changes from one report to another, as sentences and a table. Returned by `Report.compare`.

    Attributes
    ----------
    changes : tuple of Change
        One for each tensor in both reports, matched by name.
    gone, new : tuple of str
        Tensors only in the first report, and only in the second.
    findings_gone, findings_new : tuple
        Findings only in the first report, and only in the second.
    traces : (Trace, Trace), or None
        The two graphs.
    """

    changes: tuple[Change, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    findings_gone: tuple[Any, ...]
    findings_new: tuple[Any, ...]
    subject: tuple[Sentence, ...] = ()
    traces: tuple[Trace, Trace] | None = None

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines of code that differ, "- old" and "+ new". Empty if the source of one of the reports is unknown."""
        if self.traces is None or not all(trace.source for trace in self.traces):
            return ()
        before, after = ([line for line in trace.source if not line.startswith("%%")] for trace in self.traces)
        return changed_lines(before, after)

    @property
    def head(self) -> tuple[Sentence, ...]:
        """The comparison as sentences."""
        sentences: list[Sentence] = list(self.subject)
        if len(self.lines) > MAX_LINES:
            sentences.append(say(f"{len(self.lines)} lines of code differ."))
        else:
            sentences += [_line_of_code(line) for line in self.lines]
        if not self.changes:
            sentences.append(say("The two reports have no tensor of the same name."))
        else:
            changed = [change for change in self.changes if change.is_changed]
            grown = [change for change in changed if change.factor > 1 + TOLERANCE]
            shrunk = [change for change in changed if change.factor < 1 - TOLERANCE]
            parts: list[Any] = [f"Of {count(len(self.changes), 'tensor')} in both, "]
            if not changed:
                parts.append("no norm has changed.")
            else:
                parts.append(f"the norm of the gradient increased for {len(grown)} and decreased for {len(shrunk)}")
                most = max((c for c in (*grown, *shrunk) if c.factor), key=lambda c: abs(math.log(c.factor)), default=None)
                if most is not None and math.isfinite(most.factor):
                    parts += ["; the largest change is a factor of ", number(most.factor, 3), " for ", code(most.name)]
                parts.append(".")
            sentences.append(say(*parts))
        for names, text in ((self.gone, "Only in the first: "), (self.new, "Only in the second: ")):
            if names:
                sentences.append(say(text, join_items([code(name) for name in names]), "."))
        for findings, text in ((self.findings_gone, "Gone: "), (self.findings_new, "New: ")):
            sentences += [say(Span(text, "strong"), parse_backticks(str(finding.message))) for finding in findings]
        return tuple(sentences)

    def table(self, limit: int | None = MAX_ROWS) -> Table:
        """Return the table. If it has more rows than `limit`, the largest changes come first."""
        rows = list(self.changes)
        foot: Sentence = ()
        if limit is not None and len(rows) > limit:
            rows.sort(key=lambda change: -(abs(math.log(change.factor)) if 0 < change.factor < math.inf else math.inf))
            foot = say(f"{len(rows) - limit} more: ", code("comparison.table(limit=None)"))
            rows = rows[:limit]
        columns = (
            Column(say(Span("tensor", "dim")), 0.26),
            Column(say(Span("‖gradient‖ before", "gradient")), 0.15, right=True),
            Column(say(Span("after", "gradient")), 0.13, right=True),
            Column(say(Span("times", "dim")), 0.1, right=True),
            Column(say(Span("‖value‖ before", "value")), 0.13, right=True),
            Column(say(Span("after", "value")), 0.1, right=True),
        )
        cells = tuple(
            (
                say(code(row.name)),
                say(_number(row.before)),
                say(_number(row.after)),
                say(Span(number(row.factor, 3) if row.factor == row.factor else "", "dim")),
                say(_number(row.value_before)),
                say(_number(row.value_after)),
            )
            for row in rows
        )
        remarks = tuple(
            say(Span(f"the value changed by {number(row.value_change)} (norm of the difference)", "dim"))
            if row.value_change
            else ()
            for row in rows
        )
        return Table(columns, cells, self.head, foot, remarks)

    def text(self) -> str:
        """Return the sentences and the table for a terminal."""
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison: {' '.join(map(to_text, self.head))}>"

    @cached_property
    def drawing(self) -> Drawing | None:
        """Both graphs in one picture, with removed nodes, new nodes, and the number that changed next to each node. None if one
        of the reports has no graph, or one that is too large to compare."""
        return None if self.traces is None else drawing_of(*self.traces, self.text())

    def html(self) -> str:
        """Return the sentences, the table and the picture as one card."""
        drawing = self.drawing
        return card(self.table(), *([drawing] if drawing is not None else []))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {} if self.drawing is None else self.drawing.bundle()
        return bundle | self.table()._repr_mimebundle_() | {"text/html": self.html()}


def changed_lines(before: Sequence[str], after: Sequence[str]) -> tuple[str, ...]:
    """Return the lines that differ, "- old" and "+ new", without blank lines and common indentation."""
    differing = [line for line in list(difflib.unified_diff(before, after, n=0))[2:] if line[0] in "+-" and line[1:].strip()]
    indent = min((len(line[1:]) - len(line[1:].lstrip()) for line in differing), default=0)
    return tuple(f"{line[0]} {line[1 + indent :]}" for line in differing)


def _line_of_code(line: str) -> Sentence:
    bare = line[2:].lstrip()
    indent = "\N{NO-BREAK SPACE}" * (len(line) - 2 - len(bare))
    return say(Span("− " if line[0] == "-" else "+ ", "code dim"), code(indent + bare))


def _number(x: float | None) -> str:
    return "None" if x is None else number(x)


def compare(
    rows: Sequence[TensorRow],
    others: Sequence[TensorRow],
    findings: Sequence[Any],
    others_findings: Sequence[Any],
    heads: Sequence[Sentence],
    traces: tuple[Trace, Trace] | None = None,
) -> ReportComparison:
    """Compare `rows` with `others`. `heads` are the sentences of the two reports, `traces` their graphs."""
    second = {row.name: row for row in others}
    first = {row.name for row in rows}
    changes = [_change(row, second[row.name]) for row in rows if row.name in second]
    known = {(finding.kind, str(finding.message)) for finding in findings}
    known_then = {(finding.kind, str(finding.message)) for finding in others_findings}
    before, after = heads
    return ReportComparison(
        tuple(changes),
        tuple(row.name for row in rows if row.name not in second),
        tuple(row.name for row in others if row.name not in first),
        tuple(finding for finding in findings if (finding.kind, str(finding.message)) not in known_then),
        tuple(finding for finding in others_findings if (finding.kind, str(finding.message)) not in known),
        (say(Span("before: ", "dim"), before), say(Span("after: ", "dim"), after)),
        traces,
    )


def _change(row: TensorRow, other: TensorRow) -> Change:
    value_change = None
    if row.value_numbers is not None and other.value_numbers is not None and row.shape == other.shape:
        value_change = math.hypot(*(abs(b - a) for a, b in zip(row.value_numbers, other.value_numbers, strict=True)))
    reshaped = f" ({shape_text(row.shape)} → {shape_text(other.shape)})" if row.shape != other.shape else ""
    before, after, value_before, value_after = (
        None if value is None else value.norm for value in (row.gradient, other.gradient, row.value, other.value)
    )
    return Change(f"{row.name}{reshaped}", before, after, value_before, value_after, value_change)

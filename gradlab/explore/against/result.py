"""The result of `check_against_torch`, as sentences and a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.against.comparison import TOLERANCE, Agreement, Difference
from gradlab.explore.against.recorded_run import RecordedRun
from gradlab.explore.markup import Sentence, Span, code, count, dim, number, say, scalar, to_text
from gradlab.explore.report.table import Column, Table
from gradlab.explore.trace.data import Line

MOST = 25  # rows


class TorchComparison:
    """The differences between gradlab and torch. Returned by `check_against_torch`.

    Attributes
    ----------
    agrees : bool
        True if all compared values and gradients are equal up to rounding, and both libraries raised the same error or none.
    first : Difference or None
        The first operation of the program whose value differs. If all values agree, the first operation of the backward pass
        whose gradient differs.
    differences : tuple of Difference
        All differences, in this order.
    values, gradients : int
        The numbers of compared values and gradients.
    errors : dict of str to Exception
        The errors of the function, by library.
    alone : (list of str, list of str)
        Operations that only gradlab, and only torch, recorded. They were not compared.
    """

    def __init__(self, agreement: Agreement, ours: RecordedRun, theirs: RecordedRun, inputs: Sequence[str]) -> None:
        self.values, self.gradients = agreement.values, agreement.gradients
        self.differences = tuple(agreement.differences)
        self.errors = {name: run.error for name, run in (("gradlab", ours), ("torch", theirs)) if run.error is not None}
        self.alone = agreement.alone
        self._found, self._ours, self._theirs, self._inputs = agreement, ours, theirs, tuple(inputs)

    @property
    def agrees(self) -> bool:
        """See the attributes of the class."""
        if self.errors:
            return len(self.errors) == 2 and len({type(error).__name__ for error in self.errors.values()}) == 1
        return not self.differences

    def __bool__(self) -> bool:
        return self.agrees

    @property
    def first(self) -> Difference | None:
        """See the attributes of the class."""
        return self.differences[0] if self.differences else None

    # ------------------------------------------------------------------------------------------------------------- words
    @property
    def head(self) -> tuple[Sentence, ...]:
        """The result as sentences."""
        if self.errors:
            return self._error_sentences()
        first = self.first
        many = f"{count(self.values, 'value')} and {count(self.gradients, 'gradient')}"
        said = []
        if first is None:
            said.append(say(Span("gradlab and torch agree", "strong"), f": {many} are equal up to rounding."))
        else:
            said.append(
                say(
                    Span("gradlab and torch differ", "strong"),
                    ", first in ",
                    self._what(first),
                    *_at(first.line),
                    ": gradlab ",
                    Span(_number(first.gradlab), "strong"),
                    ", torch ",
                    Span(_number(first.torch), "strong"),
                    f" (element {list(first.index)})" if first.index else "",
                    ".",
                )
            )
            if len(self.differences) > 1:
                said.append(
                    say(
                        f"{len(self.differences)} of {self.values + self.gradients} differ; "
                        "the later ones may be consequences of the first."
                    )
                )
        said.append(dim(self._how()))
        ours, theirs = self.alone
        if ours or theirs:
            both = (("gradlab", ours), ("torch", theirs))
            named = "; ".join(f"{name}'s {', '.join(dict.fromkeys(names))}" for name, names in both if names)
            said.append(dim(say("Not compared, because only one library records them: ", named, ".")))
        if not self.gradients:
            said.append(dim(say("No gradients were compared: no result depends on an input of a floating dtype.")))
        return tuple(said)

    def _what(self, difference: Difference) -> Sentence:
        if not difference.operation:
            return say(difference.what)
        before, name, after = difference.what.partition(difference.operation)
        return say(before, code(name), after)

    def _how(self) -> Sentence:
        known = [f"{dtype} {number(TOLERANCE[dtype], 1)}" for dtype in TOLERANCE if dtype in self._found.dtypes]
        largest = f"; the largest difference among equal numbers is {number(self._found.largest, 2)}" if known else ""
        return say(
            f"Tolerance, relative to the largest element of the array or its inputs: {', '.join(known) or 'none'}{largest}."
        )

    def _error_sentences(self) -> tuple[Sentence, ...]:
        said = []
        runs = {"gradlab": self._ours, "torch": self._theirs}
        for name, error in self.errors.items():
            lines = str(error).strip().splitlines()
            said.append(
                say(
                    Span(f"In {name} the function raised {type(error).__name__}", "strong"),
                    *_at(runs[name].raised_at),
                    f": {lines[0] if lines else ''}",
                )
            )
        if len(self.errors) == 1:
            other = "torch" if "gradlab" in self.errors else "gradlab"
            said.append(say(f"In {other} it raised no error."))
        elif self.agrees:
            said.append(say("Nothing else was compared."))
        return tuple(said)

    # ------------------------------------------------------------------------------------------------------------- table
    def table(self, limit: int | None = MOST) -> Table:
        """Return the differences, then the results of the function and the gradients of its inputs. `limit=None` shows every
        row."""
        rows: list[tuple[Sentence, str, str, str, str]] = []
        for one in self.differences:
            line = "" if one.line is None else str(one.line.line)
            where = str(list(one.index)) if one.index else ""
            rows.append((self._what(one), line, _number(one.gradlab), _number(one.torch), where or "differs"))
        differing = {one.what for one in self.differences}
        if not self.errors:
            theirs = dict(self._theirs.outputs)
            for where, value in self._ours.outputs:
                if f"the result{where}" not in differing and where in theirs:
                    rows.append((say(f"the result{where}"), "", _array(value), _array(theirs[where]), "equal"))
            for name, a, b in zip(self._inputs, self._ours.gradients, self._theirs.gradients, strict=False):
                if f"the gradient of {name}" not in differing:
                    rows.append((say("the gradient of ", code(name)), "", _array(a), _array(b), "equal"))
        hidden = 0 if limit is None else max(0, len(rows) - limit)
        foot = say(f"{hidden} more: ", code("comparison.table(limit=None)")) if hidden else ()
        columns = (
            Column(say(Span("what", "dim")), 0.4),
            Column(say(Span("line", "dim")), 0.06, right=True),
            Column(say(Span("gradlab", "dim")), 0.18, right=True),
            Column(say(Span("torch", "dim")), 0.18, right=True),
            Column(say(Span("where", "dim")), 0.12),
        )
        cells = tuple((what, *(say(text) for text in rest)) for what, *rest in rows[: len(rows) - hidden])
        return Table(columns, cells, self.head, foot)

    def text(self) -> str:
        """Return the sentences and the table for a terminal."""
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Comparison: {to_text(self.head[0])}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self.table()._repr_mimebundle_()


def _at(line: Line | None) -> tuple[Span, ...]:
    """Return " (line 3: `x.sin()`)"."""
    if line is None:
        return ()
    source = (Span(": "), code(line.source)) if line.source else ()
    return (Span(f" ({line.where}"), *source, Span(")"))


def _number(x: object) -> str:
    if isinstance(x, str):
        return x
    return scalar(x, 7)


def _array(array: Any) -> str:
    """Return a number or a norm as text."""
    import numpy as np

    if array is None:
        return "None"
    if array.size == 1:
        return _number(array.reshape(-1)[0].item())
    return f"‖{number(float(np.linalg.norm(array.astype(np.float64).reshape(-1))), 7)}‖"

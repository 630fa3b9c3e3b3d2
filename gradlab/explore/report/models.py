"""Tabs with the reports of several models that one cell trained, or of several losses that it differentiated.

A tab is the summary of a `<details>` element. The `order` property of a flex box moves all summaries before the contents, so tabs
work without a script, by keyboard and with screen readers, in a saved page and in an untrusted notebook. `<details>` elements of
one name close each other; if the name is removed, several can be open, one below the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.markup import (
    Sentence,
    code,
    count,
    escape_html,
    number,
    say,
    scalar,
    to_latex,
    to_text,
)
from gradlab.explore.report.table import RULE, TABULAR
from gradlab.explore.trace.data import Trace

MAX_REPORTS = 6  # of other models
MAX_CHARACTERS = 300_000  # of these reports together


@dataclass(frozen=True)
class ModelRow:
    """Some numbers of a model.

    Attributes
    ----------
    label : str
        The difference from the other models: "act=Sigmoid".
    calls : str
        How often backward was called for the model, and which of these calls the numbers are from.
    loss : str
    first, last : str
        ‖gradient‖ of the first and the last weights, "" if they got none.
    ratio : str
        first / last.
    found : str
        The numbers of Problems and Notes.
    shown : bool
        True for the model whose report is below.
    """

    label: str
    calls: str
    loss: str
    first: str
    last: str
    ratio: str
    found: str
    shown: bool


HEADINGS = ("model", "calls", "loss", "first ‖gradient‖", "last ‖gradient‖", "first ÷ last", "found")


@dataclass(frozen=True)
class OtherModels:
    """The reports of the other models that the cell trained.

    Attributes
    ----------
    label : str
        The difference of the report's own model from the others.
    reports : tuple of Report
        The reports of the others, in the order of the program.
    place : int
        The position of the report's own model among them.
    left_out : int
        The number of models that were not examined.
    own : tuple
        The findings of the report's own model.
    noun, plural : str
        "model" or "loss".
    """

    label: str
    reports: tuple[Any, ...] = ()
    place: int = 0
    left_out: int = 0
    own: tuple[Any, ...] = ()
    noun: str = "model"
    plural: str = "models"

    @property
    def count_text(self) -> str:
        """The number of models including the report's own: "3 models"."""
        return count(1 + len(self.reports), self.noun, self.plural)

    def rows(self, own: Any) -> list[ModelRow]:
        """Return the rows of the table."""
        reports = [*self.reports[: self.place], own, *self.reports[self.place :]]
        return [_row(one, one is own, self.own if one is own else (*one.findings, *one.remarks)) for one in reports]


def _row(report: Any, shown: bool, found: Sequence[Any]) -> ModelRow:
    notes = sum(bool(one.remark) for one in found)
    problems = len(found) - notes
    weights = [row for row in report.rows if row.gradient is not None and len(row.shape) > 1]
    norms = [row.gradient.norm for row in weights if row.gradient is not None]
    ends = (norms[0], norms[-1]) if len(norms) > 1 else (None, None)
    trace = report.trace
    calls = str(trace.sweeps) if trace.sweep == trace.sweeps else f"call {trace.sweep} of {trace.sweeps}"
    outputs = [trace.nodes[i].value for i in trace.outputs]
    numbers = outputs[0].numbers if len(outputs) == 1 and outputs[0] is not None else None
    counts = [count(n, noun) for n, noun in ((problems, "Problem"), (notes, "Note")) if n]
    return ModelRow(
        report.label,
        calls,
        scalar(numbers[0]) if numbers is not None and len(numbers) == 1 else "",
        "" if ends[0] is None else number(ends[0]),
        "" if ends[1] is None else number(ends[1]),
        number(ends[0] / ends[1], 2) if ends[0] is not None and ends[1] else "",
        ", ".join(counts) or "nothing",
        shown,
    )


def _cells(row: ModelRow) -> tuple[str, ...]:
    return row.label, row.calls, row.loss, row.first, row.last, row.ratio, row.found


def _title(rows: Sequence[ModelRow], others: OtherModels) -> Sentence:
    more = f" {_left_out(others.left_out)}" if others.left_out else ""
    shown = next((row.label for row in rows if row.shown), "")
    return say(code("backward()"), f" was called for {others.count_text}. The report of ", code(shown), f" is below.{more}")


def _left_out(many: int) -> str:
    return f"{count(many, 'more model')} {'was' if many == 1 else 'were'} not examined."


def html(own: Any, others: OtherModels, body: str) -> str:
    """Return the tabs. The report's own tab is open and shows `body`. A report beyond the limits has a tab without content."""
    shown, room = [], MAX_CHARACTERS
    for report in others.reports[:MAX_REPORTS]:
        inside = report.body_html()
        room -= len(inside)
        shown.append(inside if room >= 0 else "")
    remaining = iter([*shown, *[""] * (len(others.reports) - len(shown))])
    rows = others.rows(own)
    bodies = [body if row.shown else next(remaining) for row in rows]
    name = f"gradlab-{zlib.crc32(''.join(bodies).encode()):x}"
    tabs = "".join(_tab(row, inside, name) for row, inside in zip(rows, bodies, strict=True))
    more = f'<div style="padding:5px 14px;opacity:.72">{escape_html(_left_out(others.left_out))}</div>' if others.left_out else ""
    return f'<div class="gradlab-tabs" style="display:flex;flex-wrap:wrap">{tabs}</div>{more}'


def _tab(row: ModelRow, inside: str, name: str) -> str:
    mark = f" ■ {row.found}" if "Problem" in row.found else f" □ {row.found}" if row.found != "nothing" else ""
    figures = [f"loss {row.loss}"] if row.loss else []
    figures += [f"first ‖gradient‖ {row.first}, last {row.last}"] if row.last else []
    title = f"<span>{escape_html(row.label)}{escape_html(mark)}</span>"
    below = (
        f'<div style="font-size:11px;font-weight:400;opacity:.72;{TABULAR}">{escape_html(" · ".join(figures))}</div>'
        if figures
        else ""
    )
    look = f"order:-1;padding:5px 16px 4px 12px;border-right:{RULE};cursor:pointer"
    if not inside:
        return f'<div style="{look}">{title}{below}</div>'
    return (
        f'<details name="{name}" style="display:contents"{" open" if row.shown else ""}>'
        f'<summary style="{look}">{title}{below}</summary><div style="border-top:{RULE}">{inside}</div></details>'
    )


def text(own: Any, others: OtherModels) -> str:
    """Return a table of the models for a terminal."""
    rows = others.rows(own)
    table = [HEADINGS, *map(_cells, rows)]
    wide = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    lines = [
        "  ".join(one.ljust(wide[i]) if i in (0, len(wide) - 1) else one.rjust(wide[i]) for i, one in enumerate(line)).rstrip()
        for line in table
    ]
    return "\n".join([to_text(_title(rows, others)), *(f"  {line}" for line in lines)])


def latex(own: Any, others: OtherModels) -> str:
    """Return a table of the models for LaTeX."""
    rows = others.rows(own)
    lines = [" & ".join(to_latex(say(one)) for one in line) + r" \\" for line in [HEADINGS, *map(_cells, rows)]]
    body = "\n".join(lines)
    return (
        rf"\noindent {to_latex(_title(rows, others))}\par"
        f"\n\\noindent\\begin{{tabular}}{{l{'r' * 5}l}}\n{body}\n\\end{{tabular}}\\par"
    )


# ---------------------------------------------------------------------------------------------------- calls of backward
def times(n: int) -> str:
    """Return "once", "twice" or "300 times"."""
    return "once" if n == 1 else "twice" if n == 2 else f"{n} times"


def calls_said(who: Sentence, trace: Trace, total: int, label: str = "", *, odd: bool = False, held: bool = True) -> Sentence:
    """Return a sentence with the number of calls of backward and the call that is shown.

    Parameters
    ----------
    who : Sentence
        "The cell called `backward()` itself".
    trace : Trace
        The trace of that call; its `sweeps` counts the calls of one model.
    total : int
        The number of calls for all models.
    label : str
        The difference of this model from others.
    odd : bool, default False
        True if the call is the first with a NaN or an infinity.
    held : bool, default True
        True if leaves have a `.grad` now.
    """
    last = trace.sweep == trace.sweeps
    which = f"; this is {'the last call' if last else f'call {trace.sweep}'}"
    if odd:
        which += ", the first with a NaN or an infinity"
    mine = say(f", {times(trace.sweeps)} for ", code(label) if label else "this model") if total != trace.sweeps else ()
    later = say(", and ", code(".grad"), " now holds the gradient of a later call") if held and not last else ()
    if trace.sweeps == 1:
        return say(who, f", {times(total)}", mine, ".")
    return say(who, f", {times(total)}", mine, which, later, ".")

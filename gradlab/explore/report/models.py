"""The models that one cell trained, side by side: a table with a row for each, which opens to its report.

Everything is static: a row of `<details>` stays readable where a notebook is not trusted, on a saved page, and on paper.
"""

from __future__ import annotations

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
    style,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.report.table import RULE, TABULAR
from gradlab.explore.trace.data import Trace

CARDS = 6  # reports of other models that their rows open to
ROOM = 300_000  # characters of these
WIDTHS = (110, 80, 125, 125, 95, 140)  # pixels of the figures
WIDE = sum(WIDTHS) + 110
LINE = "padding:3px 14px;overflow:hidden;line-height:1.6"


@dataclass(frozen=True)
class ModelRow:
    """A model in a few figures.

    Attributes
    ----------
    label : str
        What tells it from the others: "act=Sigmoid".
    calls : str
        How often backward was called for it, and which of these calls the figures are of.
    loss : str
    first, last : str
        ‖gradient‖ of its first and its last weights, "" if they got none.
    ratio : str
        The first over the last.
    found : str
        How many Problems and Notes there are.
    shown : bool
        Whether it is the one whose report stands below.
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
class Beside:
    """What a report knows of the other models that were trained with its own.

    Attributes
    ----------
    label : str
        What tells its own model from them.
    reports : tuple of Report
        Theirs, in the order of the program.
    place : int
        Where its own stands among them.
    left_out : int
        How many models more there were.
    own : tuple
        The findings of its own.
    """

    label: str
    reports: tuple[Any, ...] = ()
    place: int = 0
    left_out: int = 0
    own: tuple[Any, ...] = ()

    def rows(self, own: Any) -> list[ModelRow]:
        """The rows of the table."""
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
    told = [count(n, noun) for n, noun in ((problems, "Problem"), (notes, "Note")) if n]
    return ModelRow(
        report.label,
        calls,
        scalar(numbers[0]) if numbers is not None and len(numbers) == 1 else "",
        "" if ends[0] is None else number(ends[0]),
        "" if ends[1] is None else number(ends[1]),
        number(ends[0] / ends[1], 2) if ends[0] is not None and ends[1] else "",
        ", ".join(told) or "nothing",
        shown,
    )


def _cells(row: ModelRow) -> tuple[str, ...]:
    return row.label, row.calls, row.loss, row.first, row.last, row.ratio, row.found


def _title(rows: Sequence[ModelRow], left_out: int) -> Sentence:
    more = f" {count(left_out, 'more model')} {'was' if left_out == 1 else 'were'} not looked at." if left_out else ""
    shown = next((row.label for row in rows if row.shown), "")
    return say(code("backward()"), f" was called for {count(len(rows), 'model')}. Below is ", code(shown), f".{more}")


def html(own: Any, beside: Beside) -> str:
    """The table, a block of the card: a row of another model opens to its report."""
    cards, room = [], ROOM
    for report in beside.reports[:CARDS]:
        card = report.card_html()
        room -= len(card)
        cards.append(card if room >= 0 else "")
    others = iter([*cards, *[""] * (len(beside.reports) - len(cards))])
    rows = beside.rows(own)
    body = "".join(_row_html(row, "" if row.shown else next(others)) for row in rows)
    title = f'<div style="padding:7px 14px 3px">{to_html(_title(rows, beside.left_out))}</div>'
    head = f'<div style="{LINE};font-size:12px;opacity:.72">{_cells_html(HEADINGS, ("",) * 7)}</div>'
    return f'<div style="border-top:{RULE};overflow-x:auto">{title}<div style="min-width:{WIDE}px">{head}{body}</div></div>'


def _row_html(row: ModelRow, card: str) -> str:
    look = ("font-weight:600" if row.shown else "", "", "", style("gradient"), style("gradient"), "", "")
    line = _cells_html(_cells(row), look)
    if not card:
        return f'<div style="{LINE};border-top:{RULE};padding-left:28px">{line}</div>'
    return (
        f'<details><summary style="{LINE};border-top:{RULE};cursor:pointer">{line}</summary>'
        f'<div style="padding:6px 14px 10px 28px">{card}</div></details>'
    )


def _cells_html(texts: Sequence[str], look: Sequence[str]) -> str:
    """The label, and at the right the figures."""
    cells = "".join(
        f'<span style="display:inline-block;min-width:{width}px;{look}">{escape_html(text)}</span>'
        for text, look, width in zip(texts[1:], look[1:], WIDTHS, strict=True)
    )
    label = f'<span style="{look[0]}">{escape_html(texts[0])}</span>'
    return f'<span style="float:right;text-align:right;white-space:nowrap;{TABULAR}">{cells}</span>{label}'


def text(own: Any, beside: Beside) -> str:
    """The same for a terminal."""
    rows = beside.rows(own)
    table = [HEADINGS, *map(_cells, rows)]
    wide = [max(len(line[i]) for line in table) for i in range(len(HEADINGS))]
    lines = [
        "  ".join(one.ljust(wide[i]) if i in (0, len(wide) - 1) else one.rjust(wide[i]) for i, one in enumerate(line)).rstrip()
        for line in table
    ]
    return "\n".join([to_text(_title(rows, beside.left_out)), *(f"  {line}" for line in lines)])


def latex(own: Any, beside: Beside) -> str:
    """The same for LaTeX."""
    rows = beside.rows(own)
    lines = [" & ".join(to_latex(say(one)) for one in line) + r" \\" for line in [HEADINGS, *map(_cells, rows)]]
    body = "\n".join(lines)
    return (
        rf"\noindent {to_latex(_title(rows, beside.left_out))}\par"
        f"\n\\noindent\\begin{{tabular}}{{l{'r' * 5}l}}\n{body}\n\\end{{tabular}}\\par"
    )


# --------------------------------------------------------------------------------------------------------- how often, which
def times(n: int) -> str:
    """ "once", "twice", "300 times"."""
    return "once" if n == 1 else "twice" if n == 2 else f"{n} times"


def calls_said(who: Sentence, trace: Trace, total: int, label: str = "", *, odd: bool = False, held: bool = True) -> Sentence:
    """How often backward was called, and which call is shown.

    Parameters
    ----------
    who : Sentence
        "The cell called `backward()` itself".
    trace : Trace
        Of that call; its `sweeps` are those of one model.
    total : int
        The calls for all models.
    label : str
        What tells this model from others.
    odd : bool, default False
        Whether the call is the first with a NaN or an infinity.
    held : bool, default True
        Whether leaves have a `.grad` now.
    """
    last = trace.sweep == trace.sweeps
    which = f"; this is {'the last call' if last else f'call {trace.sweep}'}"
    if odd:
        which += ", the first with a NaN or an infinity"
    mine = say(f", {times(trace.sweeps)} for ", code(label) if label else "this model") if total != trace.sweeps else ()
    later = say(", and ", code(".grad"), " now holds that of a later call") if held and not last else ()
    if trace.sweeps == 1:
        return say(who, f", {times(total)}", mine, ".")
    return say(who, f", {times(total)}", mine, which, later, ".")

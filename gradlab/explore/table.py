"""The table of leaves, as HTML, LaTeX and plain text.

A table is plain data: sentences and statistics in rows. The small histograms are `<img>`s with an SVG inside, in one mid-tone
that stands out on white and on black: a notebook that is not trusted removes inline SVG, but keeps images.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from gradlab.explore.drawing import GRADIENT, VALUE, escape
from gradlab.explore.statistics import BINS, Statistics
from gradlab.explore.words import (
    NO_MATH,
    Sentence,
    Span,
    aligned,
    escape_html,
    number,
    say,
    shape_text,
    style,
    to_html,
    to_latex,
    to_text,
)

RULE = "1px solid rgba(128,128,128,.32)"
CARD = (
    f"border:{RULE};border-radius:8px;overflow:hidden;max-width:980px;margin:2px 0 6px 0;"
    "font-family:var(--jp-ui-font-family,system-ui,'Helvetica Neue',Arial,sans-serif);font-size:13px;line-height:1.5;"
    "color:var(--jp-content-font-color1,inherit)"
)
HEAD = f"padding:9px 14px;background:rgba(128,128,128,.075);border-bottom:{RULE}"
TABULAR = "font-variant-numeric:tabular-nums"
BLOCKS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Note:
    """A remark about a leaf that is certain. `serious`: something a user looks for when a gradient is wrong."""

    text: Sentence
    serious: bool = False


@dataclass(frozen=True)
class Row:
    """What the report says about one tensor. `value` and `gradient` are None where there is nothing to describe."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    value: Statistics | None
    gradient: Statistics | None
    notes: tuple[Note, ...] = ()
    is_leaf: bool = True

    @property
    def serious(self) -> bool:
        """Whether a remark is a warning."""
        return any(note.serious for note in self.notes)


@dataclass(frozen=True)
class Histogram:
    """A cell that shows how the elements are distributed; one element is written as a number."""

    statistics: Statistics
    kind: str  # "value" or "gradient"
    label: str

    def text(self) -> str:
        """Bars of text."""
        s = self.statistics
        if s.size == 1 or not s.finite:
            return number(s.mean) if s.finite else "" if not s.size else "NaN" if s.nans else "∞"
        top = max(s.bins)
        return "".join(BLOCKS[-(-8 * count // top)] for count in s.bins)

    def describe(self) -> str:
        """The exact numbers, for the hover and for screen readers."""
        s = self.statistics
        if not s.size:
            return f"{self.label}: no elements"
        odd = "".join(f", {n} {what}" for n, what in ((s.nans, "NaN"), (s.infs, "infinite")) if n)
        if not s.finite:
            return f"{self.label}: {s.size} elements{odd}"
        if s.size == 1:
            return f"{self.label}: {s.mean!r}"
        return f"{self.label}: {s.size} elements from {s.minimum!r} to {s.maximum!r}, mean {s.mean!r}{odd}"

    def html(self) -> str:
        """An image of bars, or the number."""
        s, hover = self.statistics, escape_html(self.describe())
        if s.size <= 1 or not s.finite:
            return f'<span title="{hover}" style="{style(self.kind)};{TABULAR}">{escape_html(self.text())}</span>'
        bar, top, wide = 5, max(s.bins), BINS * 5 - 1
        bars = "".join(
            f"M{i * bar} {21 - max(1, round(20 * n / top))}h4V21h-4" if n else f"M{i * bar} 20.5h4v.5h-4"
            for i, n in enumerate(s.bins)
        )
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="22">'
            f'<path fill="{escape(VALUE if self.kind == "value" else GRADIENT)}" d="{bars}"/></svg>'
        )
        return (
            f'<img alt="{hover}" title="{hover}" width="{wide}" height="22" style="margin:0;max-width:none" '
            f'src="data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}">'
        )


@dataclass(frozen=True)
class Column:
    """A column: its heading, how it is aligned, and whether LaTeX (which has no histograms here) shows it."""

    heading: Sentence
    right: bool = False
    latex: bool = True


@dataclass(frozen=True)
class Table:
    """A sentence and rows of cells. Shown by a notebook as `text/html`, `text/latex` and `text/plain`.

    `str(table)` is the plain text; `.html()`, `.latex()` and `.text()` give each form.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]  # of Sentence | Histogram | Numbered
    head: tuple[Sentence, ...] = ()
    foot: Sentence = ()
    extra: tuple[Any, ...] = field(default=())

    def html(self) -> str:
        """The card: the sentences above, the table below."""
        parts = [f'<div {NO_MATH} style="{CARD}">']
        if self.head:
            lines = "".join(f"<div>{to_html(sentence)}</div>" for sentence in self.head)
            parts.append(f'<div style="{HEAD if self.rows else HEAD.replace(f";border-bottom:{RULE}", "")}">{lines}</div>')
        if self.rows:
            parts.append(self._html_table())
        if self.foot:
            parts.append(f'<div style="padding:5px 14px 7px 14px;border-top:{RULE};{style("dim")}">{to_html(self.foot)}</div>')
        return "".join(parts) + "</div>"

    def _html_table(self) -> str:
        last = len(self.columns) - 1
        sides = [f"padding:5px 12px;text-align:{'right' if column.right else 'left'}" for column in self.columns]
        sides = [
            side + (";white-space:normal;line-height:1.35;width:38%" if i == last else ";white-space:nowrap")
            for i, side in enumerate(sides)
        ]
        look = "border-collapse:collapse;width:100%;margin:0;table-layout:auto;font-size:13px;border:0;color:inherit"
        out = [f'<table style="{look}"><thead><tr style="font-size:12px">']
        out += [
            f'<th scope="col" style="{side};font-weight:400">{to_html(column.heading)}</th>'
            for column, side in zip(self.columns, sides, strict=True)
        ]
        out.append("</tr></thead><tbody>")
        for row in self.rows:
            first, *others = (f'style="{side};font-weight:400">{_html_cell(cell)}' for cell, side in zip(row, sides, strict=True))
            out.append(f'<tr style="background:none;border-top:{RULE}"><th scope="row" {first}</th>')
            out += [f"<td {cell}</td>" for cell in others]
            out.append("</tr>")
        return "".join(out) + "</tbody></table>"

    def latex(self) -> str:
        """The same for LaTeX, without the histograms."""
        parts = [rf"\noindent {to_latex(sentence)}\par" for sentence in self.head]
        if self.rows:
            kept = [i for i, column in enumerate(self.columns) if column.latex]
            spec = "".join("r" if self.columns[i].right else "l" for i in kept[:-1])
            lines = [" & ".join(to_latex(self.columns[i].heading) for i in kept) + r" \\ \hline"]
            lines += [" & ".join(_latex_cell(row[i]) for i in kept) + r" \\" for row in self.rows]
            parts.append(
                "{\\footnotesize\\begin{tabular}{" + spec + "p{0.3\\linewidth}}\n" + "\n".join(lines) + "\n\\end{tabular}}\\par"
            )
        if self.foot:
            parts.append(rf"\noindent {to_latex(self.foot)}\par")
        return "\n".join(parts)

    def text(self) -> str:
        """The same for a terminal."""
        parts = [to_text(sentence) for sentence in self.head]
        if self.rows:
            grid = [
                [to_text(column.heading) for column in self.columns],
                *[[_text_cell(cell) for cell in row] for row in self.rows],
            ]
            widths = [max(len(line[i]) for line in grid) for i in range(len(self.columns))]
            for line in grid:
                cells = [
                    cell.rjust(width) if column.right else cell.ljust(width)
                    for cell, width, column in zip(line, widths, self.columns, strict=True)
                ]
                parts.append(("  " + "  ".join(cells)).rstrip())
        if self.foot:
            parts.append(to_text(self.foot))
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/latex": self.latex(), "text/plain": self.text()}


@dataclass(frozen=True)
class Numbered:
    """A number: four digits shown, the exact value on hover."""

    value: float
    kind: str = "plain"


def _html_cell(cell: Any) -> str:
    if isinstance(cell, Histogram):
        return cell.html()
    if isinstance(cell, Numbered):
        return (
            f'<span title="{escape_html(repr(cell.value))}" style="{TABULAR};{style(cell.kind)}">'
            f"{escape_html(aligned(cell.value))}</span>"
        )
    return to_html(cell)


def _latex_cell(cell: Any) -> str:
    return to_latex(cell) if isinstance(cell, tuple) else to_latex((Span(_text_cell(cell)),))


def _text_cell(cell: Any) -> str:
    if isinstance(cell, Histogram):
        return cell.text()
    return aligned(cell.value) if isinstance(cell, Numbered) else to_text(cell)


def leaf_table(
    rows: Sequence[Row], head: Sequence[Sentence] = (), *, limit: int | None = 25, what: str = "leaf", with_gradient: bool = True
) -> Table:
    """The table of a report. Beyond `limit` rows those with warnings come first, and the foot says what is left out."""
    chosen = list(rows)
    foot: Sentence = ()
    if limit is not None and len(chosen) > limit:
        chosen.sort(key=lambda row: not row.serious)  # stable
        hidden = chosen[limit:]
        chosen = chosen[:limit]
        loud = sum(row.serious for row in hidden)
        foot = say(
            f"{len(hidden)} more ",
            "tensor" if len(hidden) == 1 else "tensors",
            f", {loud} of them with a warning" if loud else ", without warnings" if any(r.serious for r in rows) else "",
            ". All of them: ",
            Span("report.table(limit=None)", "code"),
        )
    gradient = (
        (Column(say(Span("gradient", "gradient")), latex=False), Column(say(Span("‖gradient‖", "gradient")), right=True))
        if with_gradient
        else ()
    )
    columns = (
        Column(say(Span(what, "dim"))),
        Column(say(Span("shape", "dim"))),
        Column(say(Span("dtype", "dim"))),
        Column(say(Span("device", "dim"))),
        Column(say(Span("value", "value")), latex=False),
        Column(say(Span("‖value‖", "dim")), right=True),
        *gradient,
        Column(say("")),
    )
    cells = []
    for row in chosen:
        line: list[Any] = [
            say(Span(row.name, "code")),
            say(Span(shape_text(row.shape), "dim")),
            say(Span(row.dtype, "dim")),
            say(Span(row.device, "dim")),
        ]
        line += _pair(row.value, "value", row.name)
        if with_gradient:
            line += _pair(row.gradient, "gradient", f"{row.name}.grad" if row.is_leaf else f"gradient of {row.name}")
        notes: list[Span] = []
        for note in sorted(row.notes, key=lambda note: not note.serious):
            notes += ([Span("; ", "dim")] if notes else []) + list(
                note.text if note.serious else (Span(s.text, f"{s.kind} dim".removeprefix("plain ")) for s in note.text)
            )
        cells.append((*line, tuple(notes)))
    return Table(columns, tuple(cells), tuple(head), foot)


def _pair(statistics: Statistics | None, kind: str, label: str) -> list[Any]:
    if statistics is None:
        return [say(Span("–", "dim")), say(Span("–", "dim"))]
    return [Histogram(statistics, kind, label), Numbered(statistics.norm, "plain" if kind == "value" else kind)]

"""The table of a report as HTML, LaTeX and plain text: name, gradient, value, shape, and the remarks below a row.

A table is plain data: sentences, numbers and statistics in rows. The gradient is the second column, so it is never cut off;
columns that do not fit scroll inside the table. The small histograms are `<img>` elements with an SVG inside, because an
untrusted notebook removes inline SVG but keeps images. Their colour is visible on white and on black.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import GRADIENT, VALUE, Drawing, image_source, text_width
from gradlab.explore.markup import (
    NO_MATH,
    PLAIN_CODE,
    Sentence,
    Span,
    escape_html,
    number,
    say,
    scalar,
    shape_text,
    style,
    term,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.statistics import BINS, Statistics
from gradlab.explore.theme import hex_of

RULE = "1px solid #80808052"
FONT = (
    "font-family:var(--jp-ui-font-family,system-ui,'Helvetica Neue',Arial,sans-serif);font-size:13px;line-height:1.5;"
    "color:var(--jp-content-font-color1,inherit)"
)
CARD = f"border:{RULE};border-radius:8px;overflow:hidden;max-width:1180px;margin:2px 0 6px 0;{FONT}"
ITEM = f"border-top:{RULE};border-left:{RULE};box-sizing:border-box;min-width:0"  # a column of a card
HEAD = "padding:9px 14px;background:rgba(128,128,128,.075)"
TABULAR = "font-variant-numeric:tabular-nums"
BLOCKS = " ▁▂▃▄▅▆▇█"
HISTOGRAM, LONGEST_NAME = 160, 170  # pixels
WIDE = BINS * 5 - 1  # pixels of the bars alone
MAX_NUMBERS = 12  # elements of a tensor whose numbers are in the table
PRINTED = 18  # rows of a printed table between possible page breaks
LINE_HEIGHT = 20  # pixels of a line of text
LINE = 34  # characters of numbers per line of the table


@dataclass(frozen=True)
class TableNote:
    """A remark about a tensor. If `serious`, it can explain a wrong gradient and is shown as a warning."""

    text: Sentence
    serious: bool = False


@dataclass(frozen=True)
class TensorRow:
    """The row of one tensor in a report.

    Attributes
    ----------
    name : str
    shape, dtype, device
    value, gradient : Statistics or None
        None if there is none. The norm includes all elements, so it is NaN if any element is NaN.
    notes : tuple of TableNote
    is_leaf : bool
    value_numbers, gradient_numbers : tuple or None
        The elements in row-major order if there are few.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    device: str
    value: Statistics | None
    gradient: Statistics | None
    notes: tuple[TableNote, ...] = ()
    is_leaf: bool = True
    value_numbers: tuple[Any, ...] | None = None
    gradient_numbers: tuple[Any, ...] | None = None

    @property
    def serious(self) -> bool:
        """True if a remark is a warning."""
        return any(note.serious for note in self.notes)


# --------------------------------------------------------------------------------------------------------------- cells
@dataclass(frozen=True)
class Figure:
    """A tensor in a cell of a table: its numbers if there are few, else a histogram, and the norm."""

    statistics: Statistics
    kind: str  # "value" or "gradient"
    label: str
    numbers: tuple[Any, ...] | None = None

    @property
    def few(self) -> bool:
        """True if the numbers themselves are shown."""
        return self.numbers is not None and len(self.numbers) <= MAX_NUMBERS

    @property
    def height(self) -> int:
        """Estimated height in pixels."""
        return LINE_HEIGHT * len(self.lines()) if self.few else 32 if self.statistics.finite else LINE_HEIGHT

    def lines(self) -> list[str]:
        """Return the numbers as aligned lines of text: one for each row of a matrix, several for a long vector."""
        assert self.numbers is not None
        shape = self.statistics.shape
        texts = [scalar(x) for x in self.numbers]
        if not shape:
            return texts
        if not texts:
            return ["[]"]
        if len(shape) == 1:
            wide = max(map(len, texts))
            at_once = max(1, LINE // (wide + 2))
            rows = -(-len(texts) // at_once)
            at_once = -(-len(texts) // rows)
            if rows > 1:
                texts = [text.rjust(wide, "\N{FIGURE SPACE}") for text in texts]
            pieces = [", ".join(texts[i : i + at_once]) for i in range(0, len(texts), at_once)]
            return [
                ("[" if i == 0 else "\N{FIGURE SPACE}") + piece + ("," if i < len(pieces) - 1 else "]")
                for i, piece in enumerate(pieces)
            ]
        wide = max(map(len, texts))
        texts = [text.rjust(wide, "\N{FIGURE SPACE}") for text in texts]
        last, lines = shape[-1], []
        for start in range(0, len(texts), last):
            closed = sum((start + last) % step == 0 for step in _steps(shape))
            opened = sum(start % step == 0 for step in _steps(shape))
            inside = ", ".join(texts[start : start + last])
            brackets = "\N{FIGURE SPACE}" * (len(shape) - 1 - opened) + "[" * (opened + 1)
            lines.append(f"{brackets}{inside}{']' * (closed + 1)}" + ("," if start + last < len(texts) else ""))
        return lines

    def text(self) -> str:
        """Return the figure as one line of text."""
        s = self.statistics
        if self.few:
            return " ".join(" ".join(line.replace("\N{FIGURE SPACE}", "") for line in self.lines()).split())
        if not s.size:
            return "no elements"
        if not s.finite:
            return f"all {'NaN' if s.nans == s.size else '∞' if s.infs == s.size else 'NaN or ∞'}  ‖{number(s.norm)}‖"
        return f"{self.bars()}  {number(s.minimum, 3)} … {number(s.maximum, 3)}  ‖{number(s.norm)}‖"

    def bars(self) -> str:
        """Return the histogram as block characters."""
        top = max(self.statistics.bins, default=0)
        return "".join(BLOCKS[-(-8 * n // top)] for n in self.statistics.bins) if top else ""

    def describe(self) -> str:
        """Return the statistics for tooltips and screen readers: exact extremes, sums with their significant digits."""
        s = self.statistics
        if not s.size:
            return f"{self.label}: no elements"
        odd = "".join(f", {n} {what}" for n, what in ((s.nans, "NaN"), (s.infs, "infinite")) if n)
        if not s.finite:
            return f"{self.label}: {s.size} elements{odd}"
        if s.size == 1:
            return f"{self.label}: {s.mean!r}"
        return f"{self.label}: {s.size} elements from {s.minimum!r} to {s.maximum!r}, mean {s.mean:.6g}, norm {s.norm:.6g}{odd}"

    def html(self, *, norm: bool = True) -> str:
        """Return the numbers, or a histogram with the minimum, the maximum and, if `norm` is True, the norm."""
        s, hover, look = self.statistics, escape_html(self.describe()), style(self.kind)
        if self.few:
            lines = "<br>".join(escape_html(line) for line in self.lines())
            look = f"{look};{PLAIN_CODE};{TABULAR};white-space:nowrap;display:inline-block;vertical-align:top"
            return f'<code title="{hover}" style="{look}">{lines}</code>'
        if not s.finite:
            return f'<span title="{hover}" style="{look};{TABULAR}">{escape_html(self.text())}</span>'
        words = (
            f'<span style="font-size:11px;opacity:.72">{escape_html(f"{number(s.minimum, 3)} … {number(s.maximum, 3)}")}</span>'
        )
        if norm:
            words = (
                f'<span style="display:inline-block;vertical-align:middle;line-height:1.3;{TABULAR}">'
                f'<span style="{look}">‖{escape_html(number(s.norm))}‖</span><br>{words}</span>'
            )
        return f'<span title="{hover}" style="white-space:nowrap">{self.image()}{words}</span>'

    def image(self) -> str:
        """Return the histogram as an image. Its alt text is empty because the numbers are next to it."""
        s, top = self.statistics, max(self.statistics.bins, default=1) or 1
        bars = "".join(
            f"M{5 * i + 2} 21v-{max(1, round(20 * n / top))}" if n else f"M{5 * i + 2} 21v-.5" for i, n in enumerate(s.bins)
        )
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDE}" height="22">'
            f'<path stroke="{hex_of(VALUE if self.kind == "value" else GRADIENT)}" stroke-width="4" d="{bars}"/></svg>'
        )
        return (
            f'<img alt="" width="{WIDE}" height="22" style="margin:0 8px 0 0;max-width:none;display:inline;vertical-align:'
            f"middle\" src='{image_source(svg)}'>"
        )

    def latex(self) -> str:
        """Return the numbers, or the norm, the minimum and the maximum."""
        s = self.statistics
        if self.few or not s.finite:
            return to_latex(say(self.text()))
        return to_latex(say(f"‖{number(s.norm)}‖, {number(s.minimum, 3)} … {number(s.maximum, 3)}"))


def _steps(shape: tuple[int, ...]) -> list[int]:
    """Return the number of elements in one slice along each axis except the last."""
    steps, size = [], 1
    for length in reversed(shape):
        size *= length
        steps.append(size)
    return steps[1:]


@dataclass(frozen=True)
class Column:
    """A column: its heading, its share of the width of a printed page, and its alignment."""

    heading: Sentence
    share: float
    right: bool = False


# --------------------------------------------------------------------------------------------------------------- table
@dataclass(frozen=True)
class Table:
    """Rows of cells, with remarks below. A notebook displays it as `text/html`, `text/latex` and `text/plain`.

    `str(table)` is the plain text; `.html()`, `.latex()` and `.text()` return each format.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]  # of Sentence | Figure
    head: tuple[Sentence, ...] = ()
    foot: Sentence = ()
    remarks: tuple[Sentence, ...] = ()  # below each row; () for none

    def html(self) -> str:
        """Return a card with the sentences above the table."""
        return f'<div {NO_MATH} style="{CARD}">{head_html(self.head)}{self.body()}</div>'

    @property
    def width(self) -> float:
        """Estimated width in pixels, if only long names are wrapped."""
        first = max((text_width(to_text(row[0]), 13, mono=True) for row in self.rows), default=0.0)
        others = zip(*(row[1:] for row in self.rows), strict=True)
        return min(max(first, 64.0), LONGEST_NAME) + 24 + sum(max(40.0, *map(_cell_width, column)) + 24 for column in others)

    @property
    def height(self) -> float:
        """Estimated height in pixels."""
        heights = [max((cell.height for cell in row if isinstance(cell, Figure)), default=LINE_HEIGHT) + 11 for row in self.rows]
        return 30 + sum(heights) + LINE_HEIGHT * sum(map(bool, (*self.remarks, self.foot)))

    def body(self) -> str:
        """Return the table without the sentences. It scrolls horizontally."""
        if not self.rows:
            return ""
        sides = [
            f"padding:5px 12px;text-align:{'right' if column.right else 'left'};font-weight:400;background:none;"
            f"{'overflow-wrap:anywhere;min-width:64px' if i == 0 else 'white-space:nowrap'}"
            for i, column in enumerate(self.columns)
        ]
        look = "border-collapse:collapse;width:100%;margin:0;table-layout:auto;font-size:13px;border:0;color:inherit"
        out = [f'<div class="gradlab-table" style="overflow-x:auto"><table style="{look}"><thead><tr style="font-size:12px">']
        out += [
            f'<th scope="col" style="{side}">{to_html(column.heading)}</th>'
            for column, side in zip(self.columns, sides, strict=True)
        ]
        out.append("</tr></thead><tbody>")
        for row, remark in zip(self.rows, self._remarks(), strict=True):
            first, *others = (f'style="{side}">{_html_cell(cell)}' for cell, side in zip(row, sides, strict=True))
            out.append(f'<tr style="background:none;border-top:{RULE}"><th scope="row" {first}</th>')
            out += [f"<td {cell}</td>" for cell in others]
            out.append("</tr>")
            if remark:
                out.append(
                    f'<tr style="background:none"><td colspan="{len(self.columns)}" style="padding:0 12px 5px 12px;'
                    f'text-align:left;white-space:normal;line-height:1.35;background:none">{to_html(remark)}</td></tr>'
                )
        out.append("</tbody></table></div>")
        if self.foot:
            out.append(f'<div style="padding:5px 12px 7px 12px;border-top:{RULE};{style("dim")}">{to_html(self.foot)}</div>')
        return "".join(out)

    def _remarks(self) -> tuple[Sentence, ...]:
        return self.remarks or ((),) * len(self.rows)

    def latex(self) -> str:
        """Return the table for LaTeX, with columns that wrap, and norms instead of histograms."""
        parts = [rf"\noindent {to_latex(sentence)}\par" for sentence in self.head]
        if self.rows:
            spec = "".join(rf"p{{{column.share:.2f}\linewidth}}" for column in self.columns)
            heading = " & ".join(to_latex(column.heading) for column in self.columns)
            lines = []
            for row, remark in zip(self.rows, self._remarks(), strict=True):
                lines.append(" & ".join(rf"{{\raggedright {_latex_cell(cell)}\par}}" for cell in row) + r" \\")
                if remark:
                    lines[-1] += "\n" + rf"\multicolumn{{{len(self.columns)}}}{{p{{0.9\linewidth}}}}{{{to_latex(remark)}}} \\"
            parts.append(tabular(spec, heading, lines))
        if self.foot:
            parts.append(rf"\noindent {to_latex(self.foot)}\par")
        return "\n".join(parts)

    def text(self) -> str:
        """Return the table for a terminal."""
        parts = [to_text(sentence) for sentence in self.head]
        if self.rows:
            grid = [
                [to_text(column.heading) for column in self.columns],
                *[[_text_cell(cell) for cell in row] for row in self.rows],
            ]
            widths = [max(len(line[i]) for line in grid) for i in range(len(self.columns))]
            for line, remark in zip(grid, ((), *self._remarks()), strict=True):
                cells = [
                    cell.rjust(width) if column.right else cell.ljust(width)
                    for cell, width, column in zip(line, widths, self.columns, strict=True)
                ]
                parts.append(("  " + "  ".join(cells)).rstrip())
                if remark:
                    parts.append(f"    {to_text(remark)}")
        if self.foot:
            parts.append(to_text(self.foot))
        return "\n".join(parts)

    def __str__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/latex": self.latex(), "text/plain": self.text()}


def tabular(spec: str, heading: str, lines: Sequence[str]) -> str:
    """Return a LaTeX table, split into pieces of at most `PRINTED` rows so that a page can end between them."""
    pieces = [lines[i : i + PRINTED] for i in range(0, len(lines), PRINTED)]
    first = [rf"{heading} \\ \hline"] if heading else []
    tables = [
        "\\noindent\\begin{tabular}{" + spec + "}\n" + "\n".join([*(first if i == 0 else []), *piece]) + "\n\\end{tabular}\\par"
        for i, piece in enumerate(pieces)
    ]
    return "{\\footnotesize\\setlength{\\tabcolsep}{2pt}" + "\n".join(tables) + "}"


def head_html(head: Sequence[Sentence]) -> str:
    """Return the sentences at the top of a card."""
    lines = "".join(f"<div>{to_html(sentence)}</div>" for sentence in head if sentence)
    return f'<div style="{HEAD}">{lines}</div>' if lines else ""


def card(table: Table, *drawings: Drawing) -> str:
    """Return a card with sentences, a table and pictures, side by side if there is room."""
    columns = [f'<div style="{ITEM};flex:1000 1 420px">{table.body()}</div>'] if table.rows else []
    for drawing in drawings:
        wide = min(drawing.width, 1180.0) + 30
        columns.append(f'<div style="{ITEM};flex:1 1 {wide:.0f}px;padding:12px 14px;text-align:center">{drawing.html()}</div>')
    grid = f'<div style="display:flex;flex-wrap:wrap;margin-left:-1px">{"".join(columns)}</div>' if columns else ""
    return f'<div {NO_MATH} style="{CARD}">{head_html(table.head)}{grid}</div>'


def _cell_width(cell: Any) -> float:
    if isinstance(cell, Figure) and cell.few:
        return max(text_width(line, 13, mono=True) for line in cell.lines())
    return HISTOGRAM if isinstance(cell, Figure) else text_width(to_text(cell), 13)


def _html_cell(cell: Any) -> str:
    return cell.html() if isinstance(cell, Figure) else to_html(cell)


def _latex_cell(cell: Any) -> str:
    return cell.latex() if isinstance(cell, Figure) else to_latex(cell)


def _text_cell(cell: Any) -> str:
    return cell.text() if isinstance(cell, Figure) else to_text(cell)


def remark_of(row: TensorRow) -> Sentence:
    """Return all remarks on a row, warnings first."""
    notes: list[Span] = []
    for note in sorted(row.notes, key=lambda note: not note.serious):
        notes += ([Span("; ", "dim")] if notes else []) + list(
            note.text if note.serious else (Span(s.text, f"{s.kind} dim".removeprefix("plain ")) for s in note.text)
        )
    return tuple(notes)


def figure(row: TensorRow, kind: str) -> Figure | Sentence:
    """Return a row's value or gradient as a cell. A missing gradient does not have the colour of gradients."""
    statistics = row.value if kind == "value" else row.gradient
    if statistics is None:
        return say("None" if kind == "gradient" else "–")
    label = row.name if kind == "value" else f"{row.name}.grad" if row.is_leaf else f"gradient of {row.name}"
    return Figure(statistics, kind, label, row.value_numbers if kind == "value" else row.gradient_numbers)


def leaf_table(
    rows: Sequence[TensorRow],
    head: Sequence[Sentence] = (),
    *,
    limit: int | None = 25,
    what: str = "leaf",
    with_gradient: bool = True,
) -> Table:
    """Return the table of a report. If it has more than `limit` rows, those with warnings come first, and the foot counts the
    others."""
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
    several = [what for what in ("dtype", "device") if len({getattr(row, what) for row in rows}) > 1]
    columns = (
        Column(say(term(what, "leaf", "dim") if what == "leaf" else Span(what, "dim")), 0.18),
        *((Column(say(Span("gradient", "gradient")), 0.3),) if with_gradient else ()),
        Column(say(Span("value", "value")), 0.24),
        Column(say(Span("shape", "dim")), 0.1),
        *(Column(say(Span(name, "dim")), 0.08) for name in several),
    )
    cells = [
        (
            say(Span(row.name, "code")),
            *((figure(row, "gradient"),) if with_gradient else ()),
            figure(row, "value"),
            say(Span(shape_text(row.shape), "dim")),
            *(say(Span(getattr(row, name), "dim")) for name in several),
        )
        for row in chosen
    ]
    return Table(columns, tuple(cells), tuple(head), foot, tuple(remark_of(row) for row in chosen))

"""The lines of the cell, each with the largest norm of a gradient that reached a node of the line."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import text_width
from gradlab.explore.markup import Sentence, Span, escape_html, number, say, style, to_html, to_latex
from gradlab.explore.report.bars import Scale
from gradlab.explore.report.table import LINE_HEIGHT, TABULAR, tabular
from gradlab.explore.trace.data import Cut, Line, Trace

MOST = 16  # lines that are shown
BAR = 64  # pixels


@dataclass(frozen=True)
class CellLine:
    """A line of the cell.

    Attributes
    ----------
    number : int
        `%%grad` is 1; 0 represents lines that are left out.
    text : str
    norm : float or None
        The largest norm of a cotangent that reached any node of this line; NaN if any is NaN, None if none is known.
    cut : str
        How a history ends here: "detach"; empty if none ends.
    """

    number: int
    text: str
    norm: float | None = None
    cut: str = ""

    @property
    def note(self) -> str:
        """The text next to the line."""
        return " ".join(filter(None, ("" if self.norm is None else number(self.norm), "cut" if self.cut else "")))


def cell_lines(trace: Trace) -> tuple[CellLine, ...]:
    """Return the lines of the cell; none if only their source is known, which the reader has."""
    norms: dict[int, list[float]] = {}
    for node in trace.nodes:
        place = _in_cell(node.cell, node.place)
        if place is not None and node.gradient is not None and node.kind == "operation":
            norms.setdefault(place.line, []).append(node.gradient.norm)
    lines_of = dict(_single_assignments(trace.source))
    for leaf in trace.leaves:
        if leaf.name in lines_of and (leaf.arrived or leaf.gradient) is not None:
            arrived = leaf.arrived or leaf.gradient
            assert arrived is not None
            norms.setdefault(lines_of[leaf.name], []).append(arrived.norm)
    cuts: dict[int, str] = {}
    for cut in _cuts(trace):  # other cuts, as in `print(loss.item())`, do not affect the gradient
        if cut.place is not None and cut.place.in_cell:
            cuts.setdefault(cut.place.line, cut.how)
    if not norms and not cuts:
        return ()
    return tuple(
        CellLine(i, text, _largest(norms[i]) if i in norms else None, cuts.get(i, ""))
        for i, text in enumerate(trace.source, start=1)
    )


def _in_cell(*places: Line | None) -> Line | None:
    return next((place for place in places if place is not None and place.in_cell), None)


def _cuts(trace: Trace) -> Iterator[Cut]:
    for node in trace.nodes:
        for operand in node.operands:
            if operand.cut is not None:
                yield operand.cut


def _largest(norms: list[float]) -> float:
    return float("nan") if any(norm != norm for norm in norms) else max(norms)


def _single_assignments(source: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    """Yield the names that exactly one top-level statement of the cell assigns to, with its line."""
    lines = ["" if line.lstrip().startswith(("%", "!")) else line for line in source]
    try:
        statements = ast.parse("\n".join(lines)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    lines_of: dict[str, list[int]] = {}
    for statement in statements:
        targets: list[Any] = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
            targets = [statement.target]
        for target in targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    lines_of.setdefault(node.id, []).append(statement.lineno)
    for name, at in lines_of.items():
        if len(at) == 1:
            yield name, at[0]


def shorten(lines: tuple[CellLine, ...], most: int = MOST) -> list[CellLine]:
    """Return the relevant lines of a long cell, at most about `most`, with "…" for the others."""
    if len(lines) <= most:
        return list(lines)
    wanted = [line for line in lines if line.note]
    if len(wanted) > most - 2:
        ranked = sorted(wanted, key=lambda line: (not line.cut, -(line.norm or 0.0) if line.norm == line.norm else -float("inf")))
        wanted = sorted(ranked[: most - 2], key=lambda line: line.number)
    kept = {1, *(line.number for line in wanted)}
    shown: list[CellLine] = []
    for line in lines:
        if line.number in kept:
            shown.append(line)
        elif not shown or shown[-1].number:
            shown.append(CellLine(0, "…"))
    return shown


def _heading(program: str) -> Sentence:
    return say(Span(f"{program}, and the largest ", "dim"), Span("‖gradient‖", "gradient"), Span(" at each line", "dim"))


def html(lines: tuple[CellLine, ...], program: str = "the cell") -> str:
    """Return the lines as rows of a grid. Long lines are wrapped, so that the numbers and bars stay visible."""
    scale = Scale.of(line.norm for line in lines if line.norm is not None)
    rows = []
    for line in shorten(lines):
        said = []
        if line.norm is not None:
            exact, short = escape_html(repr(line.norm)), escape_html(number(line.norm))
            said.append(f'<span title="{exact}" style="{style("gradient")}">{short}</span>')
        if line.cut:
            said.append(f'<span title="{escape_html(line.cut)}" style="opacity:.72">cut</span>')
        bar = scale.html(line.norm, BAR) if scale is not None and line.norm is not None else ""
        rows.append(
            f'<span style="font-size:11px;opacity:.72">{line.number or ""}</span>'
            f'<samp style="text-align:left">{escape_html(line.text)}</samp><span>{" ".join(said)}</span>{bar or "<i></i>"}'
        )
    look = (
        f"display:grid;grid-template-columns:auto 1fr auto {BAR}px;column-gap:12px;align-items:baseline;padding:2px 12px 0;"
        f"text-align:right;line-height:{LINE_HEIGHT}px;white-space:pre-wrap;overflow-wrap:anywhere;{TABULAR}"
    )
    heading = f'<div style="padding:0 12px;font-size:12px">{to_html(_heading(program))}</div>'
    return f'<div style="padding:8px 0">{heading}<div style="{look}">{"".join(rows)}</div></div>'


def height(lines: tuple[CellLine, ...], width: float) -> float:
    """Estimate the height of the rows in pixels, in a column of `width` pixels."""
    room = max(1.0, (width - BAR - 110) / text_width("0", 13, mono=True))
    return 36 + LINE_HEIGHT * sum(max(1, math.ceil(len(line.text) / room)) for line in shorten(lines))


def text(lines: tuple[CellLine, ...], program: str = "the cell") -> str:
    """Return the lines for a terminal."""
    shown = shorten(lines)
    scale = Scale.of(line.norm for line in lines if line.norm is not None)
    wide = min(72, max(len(line.text) for line in shown))
    first = program[:1].upper() + program[1:] if program == "the cell" else program
    out = [f"{first}, and the largest ‖gradient‖ at each line:"]
    for line in shown:
        bar = scale.text(line.norm, 8) if scale is not None and line.norm is not None else ""
        out.append(f"  {line.number or '':>3}  {line.text.ljust(wide)}  {line.note:>10}  {bar}".rstrip())
    return "\n".join(out)


def latex(lines: tuple[CellLine, ...], program: str = "the cell") -> str:
    """Return the lines for LaTeX, with the code in a column that wraps."""
    out = []
    for line in shorten(lines):
        bare = line.text.lstrip(" ")
        source = "~" * (len(line.text) - len(bare))
        code = (rf"\texttt{{{source}}}" if source else "") + to_latex(say(Span(bare, "code"))) if bare else ""
        out.append(rf"{line.number or ''} & {{\raggedright {code}\par}} & {to_latex(say(line.note))} \\")
    return rf"\noindent {to_latex(_heading(program))}:\par" + "\n" + tabular(r"rp{0.72\linewidth}r", "", out)

"""The tree of a model as HTML, LaTeX and text: names at the left, numbers in columns at the right.

A fold is a `<details>` element, which opens without a kernel, in a saved page, and in an untrusted notebook. The numbers of each
row are a grid whose columns have the width of the widest number of the tree, so they are aligned at every depth. Next to a
picture, folds are open until the tree has the height of the picture.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gradlab.explore.drawing import text_width
from gradlab.explore.markup import (
    Sentence,
    Span,
    count,
    escape_html,
    group_digits,
    number,
    say,
    shape_text,
    style,
    term,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.report.bars import Scale
from gradlab.explore.report.table import LINE_HEIGHT, RULE, TABULAR, Figure, figure, remark_of, tabular
from gradlab.explore.report.tree import ModulePart

MAX_ROWS = 220  # in HTML, including folded rows
MAX_LINES = 60  # as text and in print
MAX_FIGURES = 16  # parameters of trees that show the numbers and histograms of each
BAR = 72
HEADINGS = ("‖gradient‖", "÷ ‖weights‖", "‖weights‖", "count")
GAP = 12  # pixels between columns
ROW = 27  # pixels of a row
LONGEST_NAME, LEVELS = 128, 2  # pixels of names, and levels whose names count; longer names are wrapped if there is no room
DEEPER = 16  # pixels by which a level is indented
MARKER = 26  # pixels left of a name


@dataclass(frozen=True)
class TreeView:
    """The trees of a report as HTML.

    Attributes
    ----------
    trees : sequence of ModulePart
    bars : bool, default True
        Show a column of bars.
    """

    trees: Sequence[ModulePart]
    bars: bool = True

    @cached_property
    def _visible(self) -> set[int]:
        return _within(self.trees, MAX_ROWS)

    @cached_property
    def _scale(self) -> Scale | None:
        return scale_of(self.trees)

    @cached_property
    def _figures(self) -> bool:
        """True if parameters show their numbers and histograms."""
        return sum(len(tree.rows) for tree in self.trees) <= MAX_FIGURES

    @cached_property
    def _columns(self) -> tuple[int, ...]:
        """Widths of the columns in pixels: of the widest number, or of the heading."""
        rows = [_texts(part) for part in _all(self.trees) if id(part) in self._visible]
        gradient, *others = (
            math.ceil(max(text_width(heading, 12), *(text_width(text, 13) for text in texts)))
            for heading, *texts in zip(HEADINGS, *rows, strict=True)
        )
        return (gradient, BAR, *others) if self.bars else (gradient, *others)

    @property
    def width(self) -> float:
        """Width in pixels that names and numbers need."""
        longest = max(self._name_widths(self.trees, 0))
        return MARKER + min(longest, LONGEST_NAME) + sum(self._columns) + GAP * len(self._columns) + 12

    def _name_widths(self, level: Sequence[ModulePart], depth: int) -> Iterator[float]:
        for part in level:
            name = text_width(part.name, 13, mono=True)
            yield depth * DEEPER + name + text_width(f"  {_detail(part)}", 13)
            if depth < LEVELS:
                yield from self._name_widths(part.parts, depth + 1)

    @property
    def height(self) -> float:
        """Estimated height in pixels with only the trees themselves open."""
        return ROW + sum(self._height(part, "") + self._inside(part) for part in self.trees)

    def html(self, room: float = 0.0) -> str:
        """Return the rows, with as many folds open as fit into `room` additional pixels of height."""
        opened = self._open_parts(room)
        rows = "".join(self._html(tree, opened, "") for tree in self.trees)
        return f'<div style="overflow-wrap:anywhere;{TABULAR}">{self._heading()}{rows}</div>'

    # --------------------------------------------------------------------------------------------------------- open folds
    def _open_parts(self, room: float) -> set[int]:
        """Return the ids of the parts that are open: the trees, then folds level by level while there is room."""
        opened = {id(tree) for tree in self.trees}
        waiting = deque(part for tree in self.trees for part in tree.parts)
        while waiting:
            part = waiting.popleft()
            if not part.parts or not all(id(child) in self._visible for child in part.parts):
                continue
            room -= self._inside(part)
            if room < 0:
                break
            opened.add(id(part))
            waiting += part.parts
        return opened

    def _inside(self, part: ModulePart) -> float:
        return sum(self._height(child, part.reason) for child in part.parts)

    def _height(self, part: ModulePart, above: str) -> float:
        figures = _row_figures(part) if self._figures and part.row is not None else []
        return ROW + max((figure.height + 2 for figure in figures), default=0.0) + (LINE_HEIGHT if _remark(part, above) else 0)

    # --------------------------------------------------------------------------------------------------------------- rows
    def _row(self, cells: Sequence[str], name: str) -> str:
        """Return a name and the numbers, which float at the right of the name, or below it if there is no room."""
        columns = " ".join(f"{width}px" for width in self._columns)
        look = f"float:right;display:grid;grid-template-columns:{columns};gap:{GAP}px;align-items:baseline;text-align:right"
        shown = [cell or "<i></i>" for cell in cells if cell or self.bars]
        return f'{name} <span style="{look}">{" ".join(shown)}</span>'

    def _heading(self) -> str:
        ends = ""
        if self._scale is not None and self.bars:
            low, high = map(escape_html, self._scale.ends)
            ends = (
                f'<span style="font-size:10px;opacity:.72;white-space:nowrap"><span style="float:left">{low}</span>{high}</span>'
            )
        norm, ratio, weights, total = HEADINGS
        heads = (term(norm, "norm", "gradient"), term(ratio, "ratio"), Span(weights, "value"), Span(total))
        gradient, *others = (f"<span>{to_html([head])}</span>" for head in heads)
        row = self._row([gradient, ends, *others], '<span style="opacity:.72">parameters</span>')
        return f'<div style="padding:5px 12px;font-size:12px;display:flow-root">{row}</div>'

    def _html(self, part: ModulePart, opened: set[int], above: str) -> str:
        line = self._line(part) + self._below(part, above)
        look = f"border-top:{RULE};overflow:hidden;padding:3px 12px"
        if part.row is not None or not part.parts:
            return f'<div style="{look} 3px {MARKER}px">{line}</div>'
        if all(id(child) in self._visible for child in part.parts):
            inside = "".join(self._html(child, opened, part.reason or above) for child in part.parts)
        else:
            rest = f"{count(len(part.rows), 'parameter')}: report.table(limit=None)"
            inside = f'<div style="{look} 3px {MARKER}px;opacity:.72">{escape_html(rest)}</div>'
        return (
            f"<details{' open' if id(part) in opened else ''}>"
            f'<summary style="{look};cursor:pointer">{line}</summary>'
            f'<div style="padding-left:{DEEPER}px">{inside}</div></details>'
        )

    def _line(self, part: ModulePart) -> str:
        gradient, ratio, weights, total = map(escape_html, _texts(part))
        bar = ""
        if self._scale is not None and self.bars:
            bar = self._scale.columns(_norms(part), BAR) if part.alike else self._scale.html(part.norm or 0.0, BAR)
        detail = _detail(part)
        quiet = f' <span style="opacity:.72">{escape_html(detail)}</span>' if detail else ""
        cells = [
            f"<span>{gradient}</span>" if part.norm is None else f'<span style="{style("gradient")}">{gradient}</span>',
            bar,
            f"<span>{ratio}</span>",
            f"<span>{weights}</span>",
            f'<span style="opacity:.72">{total}</span>',
        ]
        return self._row(cells, f"<samp>{escape_html(part.name)}</samp>{quiet}")

    def _below(self, part: ModulePart, above: str) -> str:
        """Return the remarks of a row on a separate line, and the numbers of a parameter."""
        out = ""
        if part.row is not None and self._figures:
            shown = "&emsp;".join(cell.html(norm=False) for cell in _row_figures(part))
            out += f'<div style="clear:both;padding:1px 0;overflow-x:auto">{shown}</div>' if shown else ""
        remark = _remark(part, above)
        if remark:
            out += f'<div style="clear:both;line-height:1.35;padding-bottom:2px">{to_html(remark)}</div>'
        return out


def scale_of(trees: Sequence[ModulePart]) -> Scale | None:
    """Return the common scale of all bars, from the norms of the modules and parameters."""
    return Scale.of(norm for part in _all(trees) if (norm := part.norm) is not None)


def _all(parts: Sequence[ModulePart]) -> Iterator[ModulePart]:
    for part in parts:
        yield part
        yield from _all(part.parts)


def _within(trees: Sequence[ModulePart], most: int) -> set[int]:
    """Return the ids of at most `most` parts: whole levels from the top, of equal blocks first the parts of the first one, then
    of the others."""
    kept: set[int] = set()
    later: list[ModulePart] = []

    def descend(level: list[ModulePart]) -> None:
        while level and len(kept) + len(level) <= most:
            kept.update(id(part) for part in level)
            below: list[ModulePart] = []
            for part in level:
                if part.alike:
                    if len(kept) + len(part.parts) > most:
                        continue
                    kept.update(id(block) for block in part.parts)
                    below += part.parts[0].parts
                    later.extend(part.parts[1:])
                else:
                    below += part.parts
            level = below

    descend(list(trees) if len(trees) <= most else list(trees[:most]))
    for block in later:
        descend(list(block.parts))
    return kept


def _row_figures(part: ModulePart) -> list[Figure]:
    assert part.row is not None
    return [cell for cell in (figure(part.row, "gradient"), figure(part.row, "value")) if isinstance(cell, Figure)]


def _norms(part: ModulePart) -> list[float]:
    return [norm if (norm := child.norm) is not None else 0.0 for child in part.parts]


def _detail(part: ModulePart) -> str:
    """Return the text behind the name: a shape, a class, or the number of equal blocks."""
    if part.alike:
        return f"{len(part.parts)} alike" + (f", {part.kind}" if part.kind else "")
    return shape_text(part.row.shape) if part.row is not None else part.kind


def _name(part: ModulePart) -> Sentence:
    detail = _detail(part)
    return say(Span(part.name, "code"), Span(f"  {detail}" if detail else "", "dim"))


def _remark(part: ModulePart, above: str) -> Sentence:
    """Return the remark below a row, unless the module already has it."""
    if part.row is not None:
        remark = remark_of(part.row)
        return () if above and above == to_text(remark) else remark
    if part.reason:
        return say(part.reason) if part.reason != above else ()
    return say(Span("; ".join(part.marks), "strong")) if part.marks else ()


def _texts(part: ModulePart) -> tuple[str, str, str, str]:
    """Return ‖gradient‖, ‖gradient‖ / ‖weights‖, ‖weights‖ and count. For equal blocks, each is a range."""
    total = group_digits(part.count)
    each = part.parts if part.alike else [part]
    return (
        _range([child.norm for child in each], "None"),
        _range([child.ratio for child in each], ""),
        _range([child.weights for child in each], ""),
        total,
    )


def _range(numbers: Sequence[float | None], nothing: str) -> str:
    known = [x for x in numbers if x is not None]
    if not known:
        return nothing
    if any(x != x for x in known):
        return "NaN"
    digits = 3 if len(numbers) == 1 else 2
    low, high = number(min(known), digits), number(max(known), digits)
    return low if low == high else f"{low}…{high}"


# ------------------------------------------------------------------------------------------------------ text and LaTeX
def _lines(trees: Sequence[ModulePart], most: int) -> Iterator[tuple[int, ModulePart, Sentence]]:
    """Yield (depth, part, remark) for each row. Equal blocks have only their common row."""
    kept = _within(trees, most)

    def walk(part: ModulePart, depth: int, above: str) -> Iterator[tuple[int, ModulePart, Sentence]]:
        yield depth, part, _remark(part, above)
        if part.parts and not part.alike and all(id(child) in kept for child in part.parts):
            for child in part.parts:
                yield from walk(child, depth + 1, part.reason or above)

    for tree in trees:
        yield from walk(tree, 0, "")


def text(trees: Sequence[ModulePart]) -> str:
    """Return the trees for a terminal, indented."""
    scale = scale_of(trees)
    grid = [("parameters", HEADINGS[0], "", *HEADINGS[1:], "")]
    for depth, part, remark in _lines(trees, MAX_LINES):
        bar = "" if scale is None else scale.blocks(_norms(part)) if part.alike else scale.text(part.norm or 0.0)
        gradient, ratio, weights, total = _texts(part)
        grid.append((f"{'  ' * depth}{to_text(_name(part))}", gradient, bar, ratio, weights, total, to_text(remark)))
    widths = [max(len(line[i]) for line in grid) for i in range(6)]
    out = []
    for line in grid:
        cells = [cell.ljust(w) if i in (0, 2) else cell.rjust(w) for i, (cell, w) in enumerate(zip(line, widths, strict=False))]
        out.append(("  " + "  ".join(cells)).rstrip())
        if line[6]:
            out.append(f"{' ' * (len(line[0]) - len(line[0].lstrip()) + 4)}{line[6]}")
    return "\n".join(out)


def latex(trees: Sequence[ModulePart]) -> str:
    """Return the trees for LaTeX, in columns that wrap."""
    heading = r"parameters & $\|$gradient$\|$ & $\div\,\|$weights$\|$ & $\|$weights$\|$ & count"
    lines = []
    for depth, part, remark in _lines(trees, MAX_LINES):
        name = rf"{{\raggedright {'~~' * depth}{to_latex(_name(part))}\par}}"
        lines.append(" & ".join([name, *(to_latex(say(cell)) for cell in _texts(part))]) + r" \\")
        if remark:
            lines[-1] += "\n" + rf"\multicolumn{{5}}{{p{{0.9\linewidth}}}}{{{'~~' * depth}{to_latex(remark)}}} \\"
    return tabular(r"p{0.38\linewidth}" + r"p{0.13\linewidth}" * 4, heading, lines)

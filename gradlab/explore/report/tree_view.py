"""The tree of a model as HTML, LaTeX and text: names at the left, figures in columns at the right, folds that open by themselves.

A fold is a `<details>`, so that it opens without a kernel, in a saved page, and in a notebook that is not trusted. Figures float
at the right in cells of fixed width: they stand below each other at every depth, and go below the name where there is no room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradlab.explore.markup import (
    Sentence,
    Span,
    count,
    escape_html,
    grouped,
    number,
    say,
    shape_text,
    style,
    to_html,
    to_latex,
    to_text,
)
from gradlab.explore.report.bars import Scale
from gradlab.explore.report.table import RULE, TABULAR, Figure, figure, remark_of, tabular
from gradlab.explore.report.tree import ModulePart

MOST_ROWS = 220  # in HTML, folded ones too
MOST_LINES = 60  # as text and in print
FIGURES = 30  # trees of at most so many parameters show numbers and histograms of each
BAR = 72
WIDTHS = {"gradient": 86, "bar": BAR + 14, "ratio": 94, "weights": 72, "count": 66}
WIDTH = 540  # pixels that names and figures need
NAME = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace);font-size:92%"


def html(trees: Sequence[ModulePart]) -> str:
    """The rows."""
    scale = scale_of(trees)
    kept = _within(trees, MOST_ROWS)
    figures = sum(len(tree.rows) for tree in trees) <= FIGURES
    rows = "".join(_html(tree, scale, kept, figures, 0) for tree in trees)
    return f'<div style="{TABULAR}">{_heading(scale)}{rows}</div>'


def scale_of(trees: Sequence[ModulePart]) -> Scale | None:
    """One scale for all bars: that of the modules and parameters."""
    return Scale.of(norm for part in _all(trees) if (norm := part.norm) is not None)


def _all(parts: Sequence[ModulePart]) -> Iterator[ModulePart]:
    for part in parts:
        yield part
        yield from _all(part.parts)


def _within(trees: Sequence[ModulePart], most: int) -> set[int]:
    """The identities of the parts that are shown, while there is room: whole levels from the top, of blocks that are alike the
    insides of the first; then those of the others."""
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


def _cell(what: str, content: str, look: str = "") -> str:
    side = "text-align:left;padding-left:14px;box-sizing:border-box;" if what == "bar" else ""
    return f'<span style="display:inline-block;{side}min-width:{WIDTHS[what]}px{";" if look else ""}{look}">{content}</span>'


def _right(cells: str) -> str:
    return f'<span style="float:right;text-align:right;white-space:nowrap">{cells}</span>'


def _heading(scale: Scale | None) -> str:
    ends = ""
    if scale is not None:
        low, high = map(escape_html, scale.ends)
        ends = (
            f'<span style="display:inline-block;width:{BAR}px;font-size:10px;opacity:.72">'
            f'<span style="float:right">{high}</span>{low}</span>'
        )
    cells = (
        _cell("gradient", "‖gradient‖", style("gradient"))
        + _cell("bar", ends)
        + _cell("ratio", "÷ ‖weights‖")
        + _cell("weights", "‖weights‖", style("value"))
        + _cell("count", "count")
    )
    title = '<span style="opacity:.72">parameters</span>'
    return f'<div style="padding:5px 12px;font-size:12px;overflow:hidden">{_right(cells)}{title}</div>'


def _html(part: ModulePart, scale: Scale | None, kept: set[int], figures: bool, depth: int, above: str = "") -> str:
    line = _line(part, scale) + _below(part, figures, above)
    look = f"border-top:{RULE};overflow:hidden;padding:3px 12px"
    if part.row is not None or not part.parts:
        return f'<div style="{look} 3px 26px">{line}</div>'
    if all(id(child) in kept for child in part.parts):
        inside = "".join(_html(child, scale, kept, figures, depth + 1, part.reason or above) for child in part.parts)
    else:
        rest = f"{count(len(part.rows), 'parameter')}: report.table(limit=None)"
        inside = f'<div style="{look} 3px 26px;opacity:.72">{escape_html(rest)}</div>'
    opened = " open" if depth == 0 else ""
    return (
        f'<details{opened}><summary style="{look};cursor:pointer">{line}</summary>'
        f'<div style="padding-left:16px">{inside}</div></details>'
    )


def _line(part: ModulePart, scale: Scale | None) -> str:
    gradient, ratio, weights, total = _figures(part)
    bar = "" if scale is None else scale.columns(_norms(part), BAR - 6) if part.alike else scale.html(part.norm or 0.0, BAR)
    detail = _detail(part)
    cells = (
        _cell("gradient", escape_html(gradient), "" if part.norm is None else style("gradient"))
        + _cell("bar", bar)
        + _cell("ratio", escape_html(ratio))
        + _cell("weights", escape_html(weights))
        + _cell("count", escape_html(total), "opacity:.72")
    )
    name = f'<span style="{NAME}">{escape_html(part.name)}</span>'
    return _right(cells) + name + (f' <span style="opacity:.72">{escape_html(detail)}</span>' if detail else "")


def _below(part: ModulePart, figures: bool, above: str) -> str:
    """The remarks of a row, on a line of their own; of a parameter its numbers too."""
    out = ""
    if part.row is not None and figures:
        shown = "&emsp;".join(cell.html() for cell in _shown(part))
        out += f'<div style="clear:both;padding:1px 0;overflow-x:auto">{shown}</div>' if shown else ""
    remark = _remark(part, above)
    if remark:
        out += f'<div style="clear:both;line-height:1.35;padding-bottom:2px">{to_html(remark)}</div>'
    return out


def _shown(part: ModulePart) -> list[Figure]:
    assert part.row is not None
    return [cell for cell in (figure(part.row, "gradient"), figure(part.row, "value")) if isinstance(cell, Figure)]


def _norms(part: ModulePart) -> list[float]:
    return [norm if (norm := child.norm) is not None else 0.0 for child in part.parts]


def _detail(part: ModulePart) -> str:
    """What stands behind the name: a shape, a class, or how many blocks are alike."""
    if part.alike:
        return f"{len(part.parts)} alike" + (f", {part.kind}" if part.kind else "")
    return shape_text(part.row.shape) if part.row is not None else part.kind


def _name(part: ModulePart) -> Sentence:
    detail = _detail(part)
    return say(Span(part.name, "code"), Span(f"  {detail}" if detail else "", "dim"))


def _remark(part: ModulePart, above: str) -> Sentence:
    """What is said below a row, unless it has been said of all of the module."""
    if part.row is not None:
        remark = remark_of(part.row)
        return () if above and above == to_text(remark) else remark
    if part.reason:
        return say(part.reason) if part.reason != above else ()
    return say(Span("; ".join(part.marks), "strong")) if part.marks else ()


def _figures(part: ModulePart) -> tuple[str, str, str, str]:
    """‖gradient‖, ‖gradient‖ / ‖weights‖, ‖weights‖, count; of blocks that are alike the range from one to another."""
    total = grouped(part.count)
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
    """(depth, part, remark) row by row; of blocks that are alike only their common row."""
    kept = _within(trees, most)

    def walk(part: ModulePart, depth: int, above: str) -> Iterator[tuple[int, ModulePart, Sentence]]:
        yield depth, part, _remark(part, above)
        if part.parts and not part.alike and all(id(child) in kept for child in part.parts):
            for child in part.parts:
                yield from walk(child, depth + 1, part.reason or above)

    for tree in trees:
        yield from walk(tree, 0, "")


def text(trees: Sequence[ModulePart]) -> str:
    """The same for a terminal, indented."""
    scale = scale_of(trees)
    grid = [("parameters", "‖gradient‖", "", "÷ ‖weights‖", "‖weights‖", "count", "")]
    for depth, part, remark in _lines(trees, MOST_LINES):
        bar = "" if scale is None else scale.blocks(_norms(part)) if part.alike else scale.text(part.norm or 0.0)
        gradient, ratio, weights, total = _figures(part)
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
    """The same for LaTeX, in columns that break their lines."""
    heading = r"parameters & $\|$gradient$\|$ & $\div\,\|$weights$\|$ & $\|$weights$\|$ & count"
    lines = []
    for depth, part, remark in _lines(trees, MOST_LINES):
        name = rf"{{\raggedright {'~~' * depth}{to_latex(_name(part))}\par}}"
        lines.append(" & ".join([name, *(to_latex(say(cell)) for cell in _figures(part))]) + r" \\")
        if remark:
            lines[-1] += "\n" + rf"\multicolumn{{5}}{{p{{0.9\linewidth}}}}{{{'~~' * depth}{to_latex(remark)}}} \\"
    return tabular(r"p{0.38\linewidth}" + r"p{0.13\linewidth}" * 4, heading, lines)

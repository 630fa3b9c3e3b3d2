"""The steps in a notebook: a sentence, a table and a strip of pictures, as HTML without scripts."""

from __future__ import annotations

from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.labels import shorten
from gradlab.explore.markup import NO_MATH, Sentence, Span, code, count, escape_html, say, style, to_html
from gradlab.explore.steps.data import Step
from gradlab.explore.steps.step_text import factor_text, matrix_text, short, sum_text, terms_of

ROWS = 40  # steps in the table
CELL = "text-align:right;padding:3px 7px;white-space:pre;font-variant-numeric:tabular-nums;background:none"
LEFT = CELL.replace("right", "left")
SCROLL = "overflow:auto;max-height:{}px;margin:4px 0 10px"


def headline(walk: Any) -> Sentence:
    """Return a sentence that describes the sweep."""
    start = say(" starting with ", Span(f"gradient={short(walk.start)}", "code gradient"))
    if not walk.steps:
        return say(code(walk.called), " is a leaf: there is no operation to step through.")
    return say(
        "Backward from ",
        code(walk.called),
        f" in {count(len(walk.steps), 'step')},",
        start,
        ". No ",
        code(".grad"),
        " was written.",
    )


def html(walk: Any, strip: Drawing) -> str:
    """Return the sentence, the table and the strip."""
    notes = "".join(f'<div style="{style("dim")}">{escape_html(note)}</div>' for note in walk.notes)
    return (
        f'<div {NO_MATH} style="margin:4px 0 6px">{to_html(headline(walk))}{notes}</div>'
        + (f'<div {NO_MATH} style="{SCROLL.format(300)}">{_table(walk)}</div>' if walk.steps else "")
        + f'<div style="{SCROLL.format(640)}">{strip.html()}</div>'
    )


def _table(walk: Any) -> str:
    heads = ("step", "line", "operation", "upstream", "goes to", "local", "downstream", "sum so far")
    sums = terms_of(walk.steps)
    rows = "".join(_rows(step, sums) for step in walk.steps[:ROWS])
    left_out = len(walk.steps) - ROWS
    more = (
        f'<tr><td colspan="8" style="{LEFT};{style("dim")}">{count(left_out, "more step")} in .steps</td></tr>'
        if left_out > 0
        else ""
    )
    cells = "".join(
        f'<th style="{LEFT if head in ("operation", "goes to") else CELL};font-weight:400;{style("dim")}">{head}</th>'
        for head in heads
    )
    head = f"<thead><tr>{cells}</tr></thead>"
    return f'<table style="border-collapse:collapse;font-size:12.5px">{head}<tbody>{rows}{more}</tbody></table>'


def _rows(step: Step, sums: list[list[Any]]) -> str:
    title = say(code(shorten(step.label, 28)), " ", Span(step.operation, "dim"))
    if step.name:
        title = say(title, " ", code(shorten(step.name, 28)))
    first = [
        _cell(str(step.number)),
        _cell("" if step.line is None else str(step.line), "dim"),
        f'<td style="{LEFT}">{to_html(title)}</td>',
        _cell(matrix_text(step.upstream), "gradient"),
    ]
    rows = []
    for share, (place, term) in zip(step.shares, step.meets, strict=True):
        there = sum_text(sums[place][: term + 1], share["total"]) or matrix_text(share["total"])
        factor = share["factor"]
        named = [factor_text(share)] if factor is None or factor.name else []
        local = "\n".join(named if factor is None else [*named, matrix_text(factor.numbers)])
        cells = [
            f'<td style="{LEFT}">{to_html(say(code(shorten(share["name"], 28))))}</td>',
            _cell(local, "value"),
            _cell(matrix_text(share["downstream"]), "gradient"),
            _cell(there, "gradient strong"),
        ]
        rows.append("".join([*first, *cells]))
        first = [_cell("")] * 4
    return "".join(f"<tr>{row}</tr>" for row in rows or ["".join([*first, *[_cell("")] * 4])])


def _cell(text: str, kind: str = "plain") -> str:
    lines = ";font:11px monospace" if "\n" in text else ""
    return f'<td style="{CELL};{style(kind)}{lines}">{escape_html(text)}</td>'


def contains(walk: Any, *, values: bool) -> Sentence:
    """Return a sentence that states which values and source a page contains."""
    if not values:
        return say("This page contains names, shapes and the graph of operations: no number of a tensor and no source.")
    source = " and the source lines" if any(step.place for step in walk.steps) else ""
    return say(
        "This page contains values and gradients of up to 16 elements, norms of larger ones, local derivatives",
        source,
        ". ",
        code("save(…, values=False)"),
        " leaves numbers and source out.",
    )

"""The page of the demonstration: the program, what is wrong, the fix, and the results before and after it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradlab.explore.demo.story import ANSWER, NAME, TARGET, DemoRun, Story, format_signed
from gradlab.explore.drawing import DIM, EDGE, VALUE, Drawing
from gradlab.explore.markup import MONO, NO_MATH, Span, code, escape_html, say, to_html
from gradlab.explore.report import findings_view
from gradlab.explore.report.page import page
from gradlab.explore.report.table import CARD, HEAD, RULE

WIDE, HIGH = 360, 200  # of a plot
LEFT, BELOW, ABOVE = 40, 26, 12
Points = Sequence[tuple[float, float]]


def sheet(story: Story, library: str) -> str:
    """Return the self-contained HTML page."""
    broken, fixed = story.broken, story.fixed
    title = say("A network that learns nothing, and why")
    line = broken.run.diagnosis.findings[0].line if broken.run.diagnosis.findings else None
    shown = [
        _head(library),
        _row(
            [_card(say(code(NAME)), _program(broken.run.program.source, line), fills=True)],
            [
                _card(say("What it learns"), _figure(fit(broken)) + _output(broken)),
                _card(say(code(f"gradlab doctor {NAME}")), findings_view.html(broken.run.diagnosis.findings, ()), fills=True),
            ],
        ),
        _row(
            [_card(say("With this line changed"), _diff(story.difference) + _figure(losses(story)), fills=True)],
            [_card(say("It learns"), _figure(fit(fixed)) + _output(fixed), fills=True)],
        ),
        _card(say("On a model of your own"), _own()),
    ]
    report = broken.run.report()
    if report is not None:
        shown.append(
            f'<details {NO_MATH} style="margin:14px 2px"><summary style="cursor:pointer">'
            "The whole report of the last backward before the fix: every gradient, and the graph they came through</summary>"
            f'<div style="margin-top:10px">{report.html()}</div></details>'
        )
    return page(title, "".join(shown), say("This page contains the two programs above, and numbers of their tensors."))


def _head(library: str) -> str:
    said = say("A network should learn a sine with ", code(library), ". The program runs, raises no error, and learns nothing.")
    return (
        f'<div {NO_MATH} style="padding:2px 2px 14px"><div style="font-size:22px;font-weight:600;line-height:1.3">'
        f'A network that learns nothing, and why</div><div style="font-size:15px;padding-top:4px">{to_html(said)}</div></div>'
    )


def _row(*columns: Sequence[str]) -> str:
    """Return cards in two columns, the first wider, or below each other if there is no room."""
    columns_html = "".join(
        f'<div style="flex:{wide} 1 {wide}px;min-width:0;display:flex;flex-direction:column">{"".join(cards)}</div>'
        for wide, cards in zip((560, 330), columns, strict=True)
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:0 14px">{columns_html}</div>'


def _card(title: Sequence[Span], body: str, *, fills: bool = False) -> str:
    grow = ";flex:1 0 auto;width:100%;box-sizing:border-box" if fills else ""
    return (
        f'<div {NO_MATH} style="{CARD};margin:0 0 14px 0{grow}">'
        f'<div style="{HEAD};font-weight:600">{to_html(title)}</div>{body}</div>'
    )


def _output(one: DemoRun) -> str:
    return f'<div style="{MONO};font-size:12px;text-align:center;padding:0 12px 11px;opacity:.8">{escape_html(one.printed)}</div>'


def _program(source: str, line: int | None) -> str:
    """Return the program with the line of the finding marked."""
    rows = []
    for number, text in enumerate(source.splitlines(), 1):
        mark = ";background:rgba(128,128,128,.18);box-shadow:inset 3px 0 currentColor" if number == line else ""
        at = f'<span style="flex:none;width:26px;opacity:.6;font-size:11.5px">{number}</span>'
        said = f'<span style="white-space:pre-wrap;overflow-wrap:anywhere;min-width:0">{escape_html(text) or " "}</span>'
        rows.append(f'<div style="display:flex;padding:0 14px{mark}">{at}{said}</div>')
    return f'<div style="{MONO};font-size:12.5px;line-height:1.6;padding:8px 0">{"".join(rows)}</div>'


def _diff(lines: Sequence[str]) -> str:
    rows = []
    for line in lines:
        ground = "rgba(128,128,128,.18)" if line[0] == "-" else "rgba(47,124,195,.16)"
        rows.append(
            f'<div style="background:{ground};padding:3px 14px;white-space:pre-wrap;overflow-wrap:anywhere">'
            f"{escape_html(line.replace('-', '−', 1) if line[0] == '-' else line)}</div>"
        )
    return f'<div style="{MONO};font-size:13px;line-height:1.6;padding:10px 0">{"".join(rows)}</div>'


def _own() -> str:
    steps = (
        (say("A script, as it is, with its arguments:"), "gradlab doctor train.py"),
        (say("A notebook, once:"), "%load_ext gradlab"),
        (say("and above the cell that trains:"), "%%grad"),
    )
    items = "".join(
        f'<div style="flex:1 1 220px;min-width:0"><div>{to_html(what)}</div>'
        f'<div style="{MONO};font-size:12.5px;line-height:1.5;background:rgba(128,128,128,.1);border-radius:6px;margin-top:4px;'
        f'padding:6px 10px">{escape_html(command)}</div></div>'
        for what, command in steps
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:10px 14px;padding:10px 14px 14px">{items}</div>'


def _figure(drawing: Drawing) -> str:
    return f'<div style="border-top:{RULE};padding:12px;text-align:center">{drawing.html()}</div>'


# ------------------------------------------------------------------------------------------------------------------ plots
def fit(one: DemoRun) -> Drawing:
    """Draw the targets and the outputs of the network."""
    wanted = list(zip(one.inputs, one.targets, strict=True))
    answered = list(zip(one.inputs, one.answers, strict=True))
    across, up = _scale(min(one.inputs), max(one.inputs), WIDE), _scale(-1.3, 1.3, HIGH, upwards=True)
    body = [
        *_axes(
            [(x, across(x), format_signed(x)) for x in (-3, 0, 3)], [(y, up(y), format_signed(y)) for y in (-1, 0, 1)], WIDE, "x"
        )
    ]
    body.append(_path([(across(x), up(y)) for x, y in wanted], EDGE, 1.5, dashed=True))
    body.append(_path([(across(x), up(y)) for x, y in answered], VALUE, 2.4))
    worst = max(abs(a - b) for a, b in zip(one.targets, one.answers, strict=True))
    said = f"{TARGET}, dashed, and {ANSWER} for x from −3 to 3: they differ by up to {worst:.2g}."
    key = _key([(TARGET, EDGE, True), (ANSWER, VALUE, False)])
    return Drawing("".join([*body, key]), WIDE, HIGH + 20, said, said)


def losses(story: Story) -> Drawing:
    """Draw the losses of both programs on a logarithmic scale."""
    both = [one.losses for one in (story.broken, story.fixed)]
    wide = 620
    low = math.floor(math.log10(max(min(map(min, both)), 1e-12)))
    high = math.ceil(math.log10(max(map(max, both))))
    across, up = _scale(0, len(both[0]) - 1, wide), _scale(low, high, HIGH, upwards=True)
    marks = [(k, up(k), f"1e{k}".replace("-", "−") if k else "1") for k in range(low, high + 1)]
    last = len(both[0])
    body = [*_axes([(k, across(min(k, last - 1)), f"{k:g}") for k in (0, last / 2, last)], marks, wide, "step")]
    for numbers, colour in zip(both, (DIM, VALUE), strict=True):
        body.append(_path([(across(i), up(math.log10(max(x, 1e-12)))) for i, x in enumerate(numbers)], colour, 2))
    before, after = (f"from {numbers[0]:.2g} to {numbers[-1]:.2g}" for numbers in both)
    said = f"Loss over {last} steps: before the fix {before}, with the fix {after}."
    key = _key([(f"loss before: {before}", DIM, False), (f"loss with the fix: {after}", VALUE, False)])
    return Drawing("".join([*body, key]), wide, HIGH + 20, said, said)


def _scale(low: float, high: float, size: float, *, upwards: bool = False):  # type: ignore[no-untyped-def]
    first, last = (size - BELOW, ABOVE) if upwards else (LEFT, size - 12)
    return lambda x: first + (x - low) / (high - low) * (last - first)


def _axes(
    across: Sequence[tuple[float, float, str]], up: Sequence[tuple[float, float, str]], wide: float, name: str
) -> list[str]:
    """Return the ticks of both axes, and the name of the horizontal one."""
    body = [f'<text x="0" y="{HIGH - 8}" font-size="11" fill="{DIM}">{name}</text>']
    for _, y, label in up:
        body.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{wide - 12}" y2="{y:.1f}" stroke="{EDGE}" stroke-opacity="0.28"/>')
        body.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" font-size="11" text-anchor="end" fill="{DIM}">{label}</text>')
    for _, x, label in across:
        body.append(f'<text x="{x:.1f}" y="{HIGH - 8}" font-size="11" text-anchor="middle" fill="{DIM}">{label}</text>')
    return body


def _path(points: Points, colour: str, width: float, *, dashed: bool = False) -> str:
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"{dash}/>'


def _key(items: Sequence[tuple[str, str, bool]]) -> str:
    body, x = [], float(LEFT)
    for label, colour, dashed in items:
        body.append(_path([(x, HIGH + 9), (x + 22, HIGH + 9)], colour, 2, dashed=dashed))
        body.append(f'<text x="{x + 28:.0f}" y="{HIGH + 13}" font-size="12" fill="{DIM}">{escape_html(label)}</text>')
        x += 28 + 7.0 * len(label) + 18
    return "".join(body)

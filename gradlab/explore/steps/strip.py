"""A strip of pictures with captions, one for each step, in rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.explore.drawing import DIM, GRADIENT, LINE, Drawing, escape, text_width, tidy
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count
from gradlab.explore.steps.picture import Film, PictureState, caption

ACROSS = 990.0  # pixels in a row
MOST = 40  # pictures
NODES = 450  # boxes in all of them
NARROW, WIDEST = 160.0, 310.0  # of a picture
ROOM = 390.0, 340.0  # maximal size of a whole graph, before it is reduced
LEAST_ZOOM = 0.72
SMALL, LETTERS = 10.5, 12.0
LINES = 3  # of the caption of a picture


def strip(film: Film, *, text: str, called: str) -> Drawing:
    """Draw the pictures of the steps, in the order of the sweep. If there are too many, the first are drawn, with a note."""
    shown: list[tuple[PictureState, str, float, float]] = []
    boxes = 0
    for state in film.states():
        stage = film.stage(state)
        boxes += len(stage.nodes)
        if len(shown) == MOST or (boxes > NODES and len(shown) > 1):
            break
        shown.append((state, stage.svg(state), stage.width, stage.height))
    wide = min(WIDEST, max(NARROW, *(width + 16 for _, _, width, _ in shown)))
    zoom = [max(LEAST_ZOOM, min(1.0, (wide - 16) / width)) for _, _, width, _ in shown]
    wide = max(wide, *(width * z + 16 for (_, _, width, _), z in zip(shown, zoom, strict=True)))
    columns = max(1, min(len(shown), int(ACROSS // wide)))
    words = [_wrap(_words(state, film.start, film.values), wide - 20) for state, *_ in shown]
    top = 26 + 13 * max(len(lines) for lines in words)
    tall = top + max(height * z for (_, _, _, height), z in zip(shown, zoom, strict=True)) + 6
    parts = []
    for i, (state, body, width, _) in enumerate(shown):
        x, y = (i % columns) * wide, (i // columns) * tall
        parts.append(f'<g transform="translate({tidy(x)},{tidy(y)})">{_cell(state, words[i], wide, tall)}')
        left = (wide - width * zoom[i]) / 2
        scale = f" scale({zoom[i]:.3f})" if zoom[i] < 1 else ""
        parts.append(f'<g transform="translate({tidy(left)},{tidy(top)}){scale}">{body}</g></g>')
    rows = -(-len(shown) // columns)
    height = rows * tall + 2
    left_out = len(film.steps) + 1 - len(shown)
    if left_out:
        note = f"The first {count(len(shown) - 1, 'step')} of {len(film.steps):,}; .steps has all of them."
        parts.append(f'<text x="2" y="{tidy(height + 14)}" font-size="11" fill="{DIM}">{escape(note)}</text>')
        height += 20
    alt = f"Backward from {called} in {count(len(film.steps), 'step')}, a picture for each.\n{text}"
    return Drawing("".join(parts), columns * wide + 2, height, text, alt[:2000])


def _words(state: PictureState, start: Any, values: bool) -> str:
    return caption(state, start, values=values)


def _cell(state: PictureState, lines: Sequence[str], wide: float, tall: float) -> str:
    step = state.step
    number = "0" if step is None else str(step.number)
    label = "" if step is None else shorten(step.label, 16)
    head = f'<tspan font-weight="700">{number}</tspan>' + (f'<tspan dx="6">{escape(label)}</tspan>' if label else "")
    if step is not None and step.line is not None:
        head += f'<tspan dx="6" fill="{DIM}">line {step.line}</tspan>'
    svg = f'<rect x="1" y="1" width="{tidy(wide)}" height="{tidy(tall)}" fill="none" stroke="{LINE}" stroke-width="1"/>'
    svg += f'<text x="9" y="18" font-size="{LETTERS}" fill="{DIM}">{head}</text>'
    for i, line in enumerate(lines):
        svg += f'<text x="9" y="{tidy(33 + 13 * i)}" font-size="{SMALL}" fill="{GRADIENT}">{escape(line)}</text>'
    return svg


def _wrap(text: str, room: float) -> list[str]:
    """Wrap the text into at most `LINES` lines."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if text_width(longer, SMALL) <= room or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"{lines[LINES - 1]} …"]
    return [
        line if text_width(line, SMALL) <= room else shorten(line, int(len(line) * room / text_width(line, SMALL)))
        for line in lines
    ]

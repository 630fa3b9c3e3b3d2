"""Two runs over each other: their losses on one pair of axes, and what their layers come to."""

from __future__ import annotations

import base64
import math
from typing import Any

from gradlab.explore.axes import ticks
from gradlab.explore.drawing import DIM, MAX_BYTES, VALUE, Drawing, tidy
from gradlab.explore.markup import NO_MATH, Span, grouped, number, say, to_html, to_text
from gradlab.explore.report.table import CARD, RULE, TABULAR, head_html
from gradlab.explore.watch.snapshot import snapshot
from gradlab.explore.watch.twin import LEFT, RIGHT, WIDE, Columns, grid, last_of, line, written

TALL = 170.0
HEADS = ("layer", "‖gradient‖", "of the other", "÷ ‖weights‖ a step", "of the other")


class RunComparison:
    """What `Watch.compare` returns.

    Attributes
    ----------
    drawing : Drawing
        The losses over the steps, the other run dashed; the axis of steps is that of the longer run.
    """

    def __init__(self, one: Any, other: Any) -> None:
        self._first, self._second = snapshot(one), snapshot(other)
        self.drawing = self._drawing()

    def text(self) -> str:
        """The comparison for a terminal."""
        rows = [list(HEADS), *self._rows()]
        wide = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
        body = ["  ".join(cell.ljust(wide[k]) if k == 0 else cell.rjust(wide[k]) for k, cell in enumerate(row)) for row in rows]
        return "\n".join([to_text(self._sentence()), "", *body])

    __repr__ = text

    def _sentence(self) -> Any:
        losses = [last_of(data["loss"]) for data in (self._first, self._second)]
        parts: list[Any] = []
        for word, data, loss in zip(("This run", "the other"), (self._first, self._second), losses, strict=True):
            parts += [", " if parts else "", Span(f"{word}: ", "strong"), f"step {grouped(data['steps'])}, {data['called']} "]
            parts.append(Span("not logged" if loss is None else number(loss, 3), "value"))
        return say(*parts)

    def _rows(self) -> list[list[str]]:
        """Of each layer that either run has its last numbers, side by side."""
        of = [dict(zip(data["names"], data["layers"], strict=True)) for data in (self._first, self._second)]

        def cell(layers: dict[str, Any], name: str, what: str, digits: int) -> str:
            value = last_of(layers[name][what]) if name in layers else None
            return "–" if value is None else number(value, digits)

        return [
            [name, *(cell(layers, name, what, digits) for what, digits in (("gradient", 3), ("ratio", 2)) for layers in of)]
            for name in dict.fromkeys([*of[0], *of[1]])
        ]

    def _drawing(self) -> Drawing:
        runs = [self._first, self._second]
        columns = [Columns(data) for data in runs]
        series = [one.of(data["loss"]) for one, data in zip(columns, runs, strict=True)]
        values = [x for one in series for x in one if x is not None]
        steps = max(one.steps for one in columns)
        if not values:
            return Drawing(written(0, 14, "No loss was logged."), WIDE, 24, self.text(), "No loss was logged.")
        low, high = min(values), max(values)
        log = low > 0 and high > 200 * low
        if high <= low:
            low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)

        def down(value: float) -> float:
            part = math.log(value / low) / math.log(high / low) if log else (value - low) / (high - low)
            return 20 + (TALL - 20) * (1 - part)

        parts = [written(0, 12, runs[0]["called"], fill=VALUE, weight=600), *grid(low, high, 5, log, down)]
        for k, (one, points) in enumerate(zip(columns, series, strict=True)):
            some = [
                (LEFT + (WIDE - LEFT - RIGHT) * min((i + 0.5) * one.width, one.steps) / steps, down(x))
                for i, x in enumerate(points)
                if x is not None
            ]
            parts.append(line(some, DIM if k else VALUE, 1.6).replace("<path", '<path stroke-dasharray="5 3"' if k else "<path"))
            if some:
                parts.append(written(some[-1][0] + 6, some[-1][1] + (14 if k else -4), "the other" if k else "this run"))
        for at, _ in ticks(0, steps, 6):
            if at == round(at):
                x = LEFT + (WIDE - LEFT - RIGHT) * at / steps
                parts.append(written(x, TALL + 18, grouped(int(at)), end="middle"))
        parts.append(written(0, TALL + 18, "step"))
        parts.append(
            f'<line x1="{LEFT}" y1="{tidy(TALL)}" x2="{WIDE - RIGHT}" y2="{tidy(TALL)}" stroke="{DIM}" stroke-width=".6"/>'
        )
        return Drawing("".join(parts), WIDE, TALL + 26, self.text(), to_text(self._sentence()))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        cell = '<td style="padding:1px 14px 1px 0;text-align:{}">{}</td>'
        rows = "".join(
            "<tr>" + "".join(cell.format("right" if k else "left", to_html(say(text))) for k, text in enumerate(row)) + "</tr>"
            for row in [list(HEADS), *self._rows()]
        )
        html = (
            f'<div {NO_MATH} style="{CARD}">{head_html([self._sentence()])}'
            f'<div style="padding:8px 14px">{self.drawing.html()}</div>'
            f'<div style="padding:6px 14px;border-top:{RULE};overflow-x:auto">'
            f'<table style="border-collapse:collapse;font-size:13px;color:inherit;{TABULAR}">{rows}</table></div></div>'
        )
        bundle = {"text/html": html, "text/plain": self.text()}
        bitmap = self.drawing.bitmap(MAX_BYTES)
        return bundle if bitmap is None else {**bundle, "image/png": base64.b64encode(bitmap).decode()}

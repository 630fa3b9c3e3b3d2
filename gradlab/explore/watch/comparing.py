"""Comparison of two runs: their losses on one pair of axes, and the last numbers of their layers."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from gradlab.explore.axes import SIZE, Axes, ticks
from gradlab.explore.drawing import DIM, INK, MAX_BYTES, VALUE, Drawing
from gradlab.explore.markup import NO_MATH, Span, group_digits, number, say, to_html, to_text
from gradlab.explore.report.table import CARD, RULE, TABULAR, head_html
from gradlab.explore.watch.card import last_of
from gradlab.explore.watch.picture import RIGHT, WIDE, line, step_ticks, text_svg, value_range
from gradlab.explore.watch.snapshot import snapshot

TALL = 150.0
HEADS = ("layer", "‖gradient‖", "other run", "‖update‖ ÷ ‖weights‖", "other run")


class RunComparison:
    """The comparison of two runs, as returned by `Watch.compare`.

    Attributes
    ----------
    drawing : Drawing
        The losses over the steps, the other run dashed. The axis has the steps of the longer run.
    """

    def __init__(self, one: Any, other: Any) -> None:
        self._first, self._second = snapshot(one), snapshot(other)
        self.drawing = self._drawing((one, other))

    def text(self) -> str:
        """Return the comparison as text."""
        rows = [list(HEADS), *self._rows()]
        wide = [max(len(row[k]) for row in rows) for k in range(len(HEADS))]
        body = ["  ".join(cell.ljust(wide[k]) if k == 0 else cell.rjust(wide[k]) for k, cell in enumerate(row)) for row in rows]
        return "\n".join([to_text(self._sentence()), "", *body])

    __repr__ = text

    def _sentence(self) -> Any:
        losses = [last_of(data["loss"]) for data in (self._first, self._second)]
        parts: list[Any] = []
        for word, data, loss in zip(("This run", "the other"), (self._first, self._second), losses, strict=True):
            parts += [
                ", " if parts else "",
                Span(f"{word}: ", "strong"),
                f"step {group_digits(data['steps'])}, {data['called']} ",
            ]
            parts.append(Span("not logged" if loss is None else number(loss, 3), "value"))
        return say(*parts)

    def _rows(self) -> list[list[str]]:
        """Return the last numbers of each layer of either run, side by side."""
        of = [dict(zip(data["names"], data["layers"], strict=True)) for data in (self._first, self._second)]

        def cell(layers: dict[str, Any], name: str, what: str, digits: int) -> str:
            value = last_of(layers[name][what]) if name in layers else None
            return "–" if value is None else number(value, digits)

        return [
            [name, *(cell(layers, name, what, digits) for what, digits in (("gradient", 3), ("ratio", 2)) for layers in of)]
            for name in dict.fromkeys([*of[0], *of[1]])
        ]

    def _drawing(self, runs: tuple[Any, Any]) -> Drawing:
        series = []
        for run in runs:
            run.flush()
            summary = run.measuring.columns.summary()
            means = summary.mean[:, run.measuring.layout.loss]
            some = ~np.isnan(means)
            series.append((summary.middles(run.steps)[some], means[some]))
        values = np.concatenate([means for _, means in series])
        if not len(values):
            return Drawing(
                text_svg(0, 14, "No loss was logged.", fill=DIM, size=SIZE), WIDE, 24, self.text(), "No loss was logged."
            )
        frame, steps = (60.0, 24.0, WIDE - 60 - RIGHT, TALL), max(run.steps for run in runs)
        axes = Axes(frame, (0.0, steps), *value_range(float(values.min()), float(values.max())))
        parts = [
            text_svg(1, 12, runs[0].loss_name, fill=VALUE, weight=600),
            axes.grid_svg(step_ticks(axes), ticks(*axes.y, 5, axes.log), WIDE),
        ]
        parts.append(text_svg(1, 24 + TALL + 14, "step"))
        for k, (x, y) in enumerate(series):
            if len(x):
                across, down = axes.across(x), axes.down(y)
                parts.append(line(across, down, INK if k else VALUE, 1.6, ' stroke-dasharray="5 3"' * k))
                parts.append(text_svg(across[-1] + 6, down[-1] + (14 if k else -4), "the other" if k else "this run"))
        body = f'<g font-size="{SIZE}" fill="{DIM}">{"".join(parts)}</g>'
        return Drawing(body, WIDE, TALL + 46, self.text(), to_text(self._sentence()))

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

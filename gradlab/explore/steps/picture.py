"""The graph of a sweep, drawn as it is after each step: small boxes, what has arrived beside them, lit edges with arrowheads.

A graph that is read at a glance is laid out once and drawn whole in each picture. Of a larger one a picture shows the active
operation with what it hands its cotangents to and where its own came from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gradlab.explore.drawing import (
    EDGE,
    GRADIENT,
    GRADIENT_PANEL,
    INK,
    LINE,
    MONO,
    PANEL,
    PAPER,
    VALUE,
    VALUE_PANEL,
    escape,
    text_width,
    tidy,
)
from gradlab.explore.graph.layout import Layout, Point, layered
from gradlab.explore.graph.ports import is_small_matrix, said
from gradlab.explore.labels import shortened
from gradlab.explore.steps.data import Step
from gradlab.explore.steps.step_text import matrix_text, product_text, short, sum_text, terms_of
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.values import Value

WHOLE = 40  # nodes of a graph that is drawn whole
ROOM = 1100.0, 800.0
AROUND = 6  # neighbours of the active operation that are drawn, on either side
LABEL, NUMBER, HEIGHT, LEAST = 12.5, 12.0, 24.0, 40.0
LONGEST = 22  # characters of a label
SMALL, ROW = 9.5, 12.0  # of the numbers of a matrix, and from line to line
BOLD = 1.1
HEAD = 7.0  # of an arrow


@dataclass(frozen=True)
class PictureState:
    """How things are after a step.

    Attributes
    ----------
    step : Step or None
        None before the first.
    arrived : dict of int to str
        What has arrived at a node, as it is written beside it: of a matrix a line for each row.
    passed : set of (int, int)
        The (source, target) edges that have been passed.
    """

    step: Step | None
    arrived: dict[int, str]
    passed: frozenset[tuple[int, int]]
    products: tuple[tuple[str, str, str], ...] = ()  # of each share: its name, the product, the sum there
    links: frozenset[tuple[int, int]] = field(default=frozenset())  # of this step


def beside(held: Any, *, matrices: bool = True) -> str:
    """What is written beside a node; with all numbers of small matrices if `matrices`."""
    if isinstance(held, tuple):
        return beside(next((part for part in held if part is not None), None), matrices=matrices)
    if matrices and isinstance(held, np.ndarray) and is_small_matrix(held.shape) and len(held) > 1:
        return matrix_text(held)
    if isinstance(held, Value):
        return f"‖·‖ {said(held.norm)}"
    if isinstance(held, np.ndarray) and held.size > 3:
        return f"‖·‖ {said(float(np.linalg.norm(held.reshape(-1))))}"
    return short(held)


def extent(text: str) -> Point:
    """How wide and how high it is, what is written beside a node."""
    if "\n" not in text:
        return text_width(text, NUMBER) * BOLD, HEIGHT
    lines = text.split("\n")
    return text_width(lines[0], SMALL, mono=True), max(HEIGHT, ROW * len(lines) + 4)


def states(
    steps: Sequence[Step], start: Any, root: int, trace: Trace, *, values: bool = True, matrices: bool = True
) -> Iterator[PictureState]:
    """The state before the first step and after each; without any number unless `values`. `matrices`: see `beside`."""
    arrived: dict[int, str] = {}
    passed: set[tuple[int, int]] = set()
    sums = terms_of(steps)
    for i in trace.outputs:
        arrived[i] = beside(start, matrices=matrices) if values else ""
        passed.add((root, i))
    yield PictureState(None, dict(arrived), frozenset(passed))
    for step in steps:
        arrived[step.node] = beside(step.upstream, matrices=matrices) if values else ""
        links, products = set(), []
        for share, (place, term) in zip(step.shares, step.meets, strict=True):
            arrived[share["to"]] = beside(share["total"], matrices=matrices) if values else ""
            links.add((share["to"], step.node))
            products.append(
                (share["name"], product_text(share, step), sum_text(sums[place][: term + 1], share["total"]))
                if values
                else (share["name"], "", "")
            )
        passed |= links
        yield PictureState(step, dict(arrived), frozenset(passed), tuple(products), frozenset(links))


class Stage:
    """Where the nodes of one picture stand.

    Parameters
    ----------
    trace : Trace
    chosen : sequence of int
        The nodes that are in it.
    room : dict of int to (float, float)
        How wide and how high it is, what is written beside each.
    """

    def __init__(self, trace: Trace, chosen: Sequence[int], room: dict[int, Point]) -> None:
        self.nodes = list(chosen)
        place = {node: i for i, node in enumerate(self.nodes)}
        links = [(e.source, e.target) for e in trace.edges if e.source in place and e.target in place]
        self.links = list(dict.fromkeys(links))  # x * x is one line
        self.labels = [shortened(trace.nodes[i].label, LONGEST) for i in self.nodes]
        self.kinds = [trace.nodes[i].kind for i in self.nodes]
        bold = [BOLD if kind in ("leaf", "output") else 1.0 for kind in self.kinds]
        self.widths = [max(LEAST, text_width(label, LABEL) * b + 18) for label, b in zip(self.labels, bold, strict=True)]
        sides = [room.get(node, (0.0, HEIGHT)) for node in self.nodes]
        self.heights = [height for _, height in sides]
        self._layout: Layout = layered(
            list(zip(self.widths, self.heights, strict=True)),
            [(place[a], place[b]) for a, b in self.links],
            [(4.0, width + 8) for width, _ in sides],
        )
        self.width, self.height = self._layout.width + 8, self._layout.height + 8

    def svg(self, state: PictureState) -> str:
        """The picture in a state, in the rectangle from (0, 0) to (width, height)."""
        active = None if state.step is None else state.step.node
        parts = ['<g transform="translate(4,4)" text-anchor="middle">']
        later = []
        for link, route in zip(self.links, self._layout.routes, strict=True):
            if link in state.links or (active is None and link in state.passed):
                later.append(_lit(route, 2.6))
            elif link in state.passed:
                later.append(_lit(route, 1.5))
            else:
                parts.append(f'<path d="{_path(route)}" fill="none" stroke="{EDGE}" stroke-width="1.1"/>')
        parts += later
        for i, node in enumerate(self.nodes):
            parts.append(self._node(i, self._layout.boxes[i], state, active == node))
        return "".join(parts) + "</g>"

    def _node(self, i: int, at: Point, state: PictureState, active: bool) -> str:
        kind, width, height, (x, y) = self.kinds[i], self.widths[i], self.heights[i], at
        fill, stroke, ink, radius, weight = PANEL, LINE, INK, 4.0, ""
        if kind == "leaf":
            fill, stroke, radius, weight = VALUE_PANEL, VALUE, HEIGHT / 2, ' font-weight="600"'
        elif kind == "output":
            fill, stroke, ink, radius, weight = INK, EDGE, PAPER, HEIGHT / 2, ' font-weight="600"'
        thick = ""
        text = state.arrived.get(self.nodes[i])
        if active:
            fill, stroke, thick = GRADIENT_PANEL, GRADIENT, ' stroke-width="2.4"'
        elif text is not None and kind == "operation":
            stroke = GRADIENT
        box = f'x="{tidy(x - width / 2)}" y="{tidy(y)}" width="{tidy(width)}" height="{tidy(height)}" rx="{tidy(radius)}"'
        svg = f'<rect {box} fill="{fill}" stroke="{stroke}"{thick}/>'
        base, right = y + height / 2 + 4.5, tidy(x + width / 2 + 5)
        svg += f'<text x="{tidy(x)}" y="{tidy(base)}" font-size="{LABEL}" fill="{ink}"{weight}>{escape(self.labels[i])}</text>'
        if not text:
            return svg
        lines = text.split("\n")
        look = f'fill="{GRADIENT}" text-anchor="start" font-weight="600" font-size="{NUMBER}"'
        if len(lines) > 1:
            base -= 1 + ROW * (len(lines) - 1) / 2
            look = f'fill="{GRADIENT}" text-anchor="start" font-size="{SMALL}" font-family="{MONO}" xml:space="preserve"'
        return svg + "".join(
            f'<text x="{right}" y="{tidy(base + ROW * k)}" {look}>{escape(line)}</text>' for k, line in enumerate(lines)
        )


def _path(route: Sequence[Point]) -> str:
    """A line through the points, vertical in each."""
    (x, y), *rest = route
    said_ = [f"M{tidy(x)} {tidy(y)}"]
    for to_x, to_y in rest:
        middle = tidy((y + to_y) / 2)
        curved = abs(to_x - x) > 0.05
        said_.append(f"C{tidy(x)} {middle} {tidy(to_x)} {middle} {tidy(to_x)} {tidy(to_y)}" if curved else f"V{tidy(to_y)}")
        x, y = to_x, to_y
    return "".join(said_)


def _lit(route: Sequence[Point], thick: float) -> str:
    """A line that a cotangent has gone up along, with an arrowhead at its upper end."""
    (x, y), *rest = route
    head = HEAD if thick > 2 else HEAD - 2
    path = _path([(x, y + head - 1), *rest])
    wide = head * 0.55
    return (
        f'<path d="{path}" fill="none" stroke="{GRADIENT}" stroke-width="{thick}"/>'
        f'<path d="M{tidy(x)} {tidy(y)}L{tidy(x + wide)} {tidy(y + head)}H{tidy(x - wide)}Z" fill="{GRADIENT}"/>'
    )


class Film:
    """The pictures of a sweep, one after another.

    Parameters
    ----------
    steps : sequence of Step
    start : Held
    trace : Trace
    values : bool
        Whether numbers are shown.
    room : (float, float)
        The most pixels that a picture of the whole graph may take. If it takes more, the norms of matrices are written instead of
        their numbers; if it still does, pictures show the active operation and its neighbours.
    """

    def __init__(
        self, steps: Sequence[Step], start: Any, trace: Trace, *, values: bool = True, room: tuple[float, float] = ROOM
    ) -> None:
        self.steps, self.start, self.trace, self.values = steps, start, trace, values
        self.whole: Stage | None = None
        self.matrices = True
        for matrices in (True, False) if len(trace.nodes) <= WHOLE else ():
            stage = self._drawn(matrices)
            if stage.width <= room[0] and stage.height <= room[1]:
                self.whole, self.matrices = stage, matrices
                return

    @cached_property
    def root(self) -> int:
        """The node that the sweep starts at."""
        outputs = set(self.trace.outputs)
        return next((edge.source for edge in self.trace.edges if edge.target in outputs), 0)

    def states(self) -> Iterator[PictureState]:
        """Before the first step and after each."""
        return states(self.steps, self.start, self.root, self.trace, values=self.values, matrices=self.matrices)

    def _drawn(self, matrices: bool) -> Stage:
        """The whole graph, with room for all that is written in any state."""
        room: dict[int, Point] = {}
        for state in states(self.steps, self.start, self.root, self.trace, values=self.values, matrices=matrices):
            for node, text in state.arrived.items():
                (wide, high), (wider, higher) = room.get(node, (0.0, HEIGHT)), extent(text)
                room[node] = max(wide, wider), max(high, higher)
        return Stage(self.trace, range(len(self.trace.nodes)), room)

    @cached_property
    def _uses(self) -> dict[int, list[int]]:
        uses: dict[int, list[int]] = {}
        for edge in self.trace.edges:
            uses.setdefault(edge.source, []).append(edge.target)
        return uses

    def stage(self, state: PictureState) -> Stage:
        """Where the nodes stand in the picture of a state."""
        if self.whole is not None:
            return self.whole
        active = self.root if state.step is None else state.step.node
        inputs = [] if state.step is None else list(dict.fromkeys(share["to"] for share in state.step.shares))
        users = list(dict.fromkeys(self._uses.get(active, ())))
        chosen = sorted({*inputs[:AROUND], active, *users[:AROUND]})
        room = {node: extent(state.arrived.get(node, "")) for node in chosen}
        return Stage(self.trace, chosen, room)


def caption(state: PictureState, start: Any, *, values: bool = True) -> str:
    """What happens in a step, in a few words: "2·2 = 4 to a, −3·2 = −6 to b; 24 − 6 = 18"."""
    if state.step is None:
        return f"the start: {short(start)}" if values else "the start"
    told = [f"{text} to {name}" if text else f"to {name}" for name, text, _ in state.products]
    sums = [f"{name}: {total}" for name, _, total in state.products if total]
    return "; ".join(filter(None, (", ".join(told) or "hands nothing on", *sums)))

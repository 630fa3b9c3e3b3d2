"""Pictures of the graph after each step of a sweep: small boxes with the gradients so far, and edges with arrowheads.

A small graph is laid out once and drawn as a whole in each picture. For a larger graph, a picture shows the active operation with
its inputs and users.
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
from gradlab.explore.graph.layout import Layout, Point, lay_out
from gradlab.explore.graph.ports import is_small_matrix, short_number
from gradlab.explore.labels import shorten
from gradlab.explore.steps.data import Step
from gradlab.explore.steps.step_text import matrix_text, product_text, short, sum_text, terms_of
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.values import Value

WHOLE = 40  # nodes of a graph that is drawn as a whole
ROOM = 1100.0, 800.0
AROUND = 6  # neighbours of the active operation that are drawn, on either side
LABEL, NUMBER, HEIGHT, LEAST = 12.5, 12.0, 24.0, 40.0
LONGEST = 22  # characters of a label
SMALL, ROW = 9.5, 12.0  # font size and line height of the numbers of a matrix
BOLD = 1.1
HEAD = 7.0  # of an arrow


@dataclass(frozen=True)
class PictureState:
    """The state after a step.

    Attributes
    ----------
    step : Step or None
        None before the first.
    arrived : dict of int to str
        The text of the gradient so far at each node, with a line for each row of a matrix.
    passed : set of (int, int)
        The (source, target) edges along which a gradient was passed.
    """

    step: Step | None
    arrived: dict[int, str]
    passed: frozenset[tuple[int, int]]
    products: tuple[tuple[str, str, str], ...] = ()  # for each share: its name, the product, the sum so far
    links: frozenset[tuple[int, int]] = field(default=frozenset())  # of this step


def beside(held: Any, *, matrices: bool = True) -> str:
    """Return the text next to a node, with all numbers of small matrices if `matrices` is True."""
    if isinstance(held, tuple):
        return beside(next((part for part in held if part is not None), None), matrices=matrices)
    if matrices and isinstance(held, np.ndarray) and is_small_matrix(held.shape) and len(held) > 1:
        return matrix_text(held)
    if isinstance(held, Value):
        return f"‖·‖ {short_number(held.norm)}"
    if isinstance(held, np.ndarray) and held.size > 3:
        return f"‖·‖ {short_number(float(np.linalg.norm(held.reshape(-1))))}"
    return short(held)


def extent(text: str) -> Point:
    """Return the width and height of the text next to a node."""
    if "\n" not in text:
        return text_width(text, NUMBER) * BOLD, HEIGHT
    lines = text.split("\n")
    return text_width(lines[0], SMALL, mono=True), max(HEIGHT, ROW * len(lines) + 4)


def states(
    steps: Sequence[Step], start: Any, root: int, trace: Trace, *, values: bool = True, matrices: bool = True
) -> Iterator[PictureState]:
    """Yield the state before the first step and after each, without numbers unless `values` is True. `matrices`: see `beside`."""
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
    """The layout of one picture.

    Parameters
    ----------
    trace : Trace
    chosen : sequence of int
        The nodes of the picture.
    room : dict of int to (float, float)
        The width and height of the text next to each node.
    """

    def __init__(self, trace: Trace, chosen: Sequence[int], room: dict[int, Point]) -> None:
        self.nodes = list(chosen)
        place = {node: i for i, node in enumerate(self.nodes)}
        links = [(e.source, e.target) for e in trace.edges if e.source in place and e.target in place]
        self.links = list(dict.fromkeys(links))  # x * x is one line
        self.labels = [shorten(trace.nodes[i].label, LONGEST) for i in self.nodes]
        self.kinds = [trace.nodes[i].kind for i in self.nodes]
        bold = [BOLD if kind in ("leaf", "output") else 1.0 for kind in self.kinds]
        self.widths = [max(LEAST, text_width(label, LABEL) * b + 18) for label, b in zip(self.labels, bold, strict=True)]
        sides = [room.get(node, (0.0, HEIGHT)) for node in self.nodes]
        self.heights = [height for _, height in sides]
        self._layout: Layout = lay_out(
            list(zip(self.widths, self.heights, strict=True)),
            [(place[a], place[b]) for a, b in self.links],
            [(4.0, width + 8) for width, _ in sides],
        )
        self.width, self.height = self._layout.width + 8, self._layout.height + 8

    def svg(self, state: PictureState) -> str:
        """Return the picture of a state, in the rectangle from (0, 0) to (width, height)."""
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
    """Return a line through the points that is vertical at each of them."""
    (x, y), *rest = route
    pieces = [f"M{tidy(x)} {tidy(y)}"]
    for to_x, to_y in rest:
        middle = tidy((y + to_y) / 2)
        curved = abs(to_x - x) > 0.05
        pieces.append(f"C{tidy(x)} {middle} {tidy(to_x)} {middle} {tidy(to_x)} {tidy(to_y)}" if curved else f"V{tidy(to_y)}")
        x, y = to_x, to_y
    return "".join(pieces)


def _lit(route: Sequence[Point], thick: float) -> str:
    """Return a line with an arrowhead at its upper end, for an edge along which a cotangent was passed."""
    (x, y), *rest = route
    head = HEAD if thick > 2 else HEAD - 2
    path = _path([(x, y + head - 1), *rest])
    wide = head * 0.55
    return (
        f'<path d="{path}" fill="none" stroke="{GRADIENT}" stroke-width="{thick}"/>'
        f'<path d="M{tidy(x)} {tidy(y)}L{tidy(x + wide)} {tidy(y + head)}H{tidy(x - wide)}Z" fill="{GRADIENT}"/>'
    )


class Film:
    """The pictures of a sweep.

    Parameters
    ----------
    steps : sequence of Step
    start : Held
    trace : Trace
    values : bool
        Show numbers.
    room : (float, float)
        The maximal size of a picture of the whole graph in pixels. If it is larger, it shows the norms of matrices instead of
        their numbers. If it is still larger, pictures show the active operation and its neighbours.
    """

    def __init__(
        self, steps: Sequence[Step], start: Any, trace: Trace, *, values: bool = True, room: tuple[float, float] = ROOM
    ) -> None:
        self.steps, self.start, self.trace, self.values = steps, start, trace, values
        self.whole: Stage | None = None
        self.matrices = True
        for matrices in (True, False) if len(trace.nodes) <= WHOLE else ():
            stage = self._draw_whole(matrices)
            if stage.width <= room[0] and stage.height <= room[1]:
                self.whole, self.matrices = stage, matrices
                return

    @cached_property
    def root(self) -> int:
        """The node at which the sweep starts."""
        outputs = set(self.trace.outputs)
        return next((edge.source for edge in self.trace.edges if edge.target in outputs), 0)

    def states(self) -> Iterator[PictureState]:
        """Yield the state before the first step and after each."""
        return states(self.steps, self.start, self.root, self.trace, values=self.values, matrices=self.matrices)

    def _draw_whole(self, matrices: bool) -> Stage:
        """Return the layout of the whole graph, with room for the texts of all states."""
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
        """Return the layout for the picture of a state."""
        if self.whole is not None:
            return self.whole
        active = self.root if state.step is None else state.step.node
        inputs = [] if state.step is None else list(dict.fromkeys(share["to"] for share in state.step.shares))
        users = list(dict.fromkeys(self._uses.get(active, ())))
        chosen = sorted({*inputs[:AROUND], active, *users[:AROUND]})
        room = {node: extent(state.arrived.get(node, "")) for node in chosen}
        return Stage(self.trace, chosen, room)


def caption(state: PictureState, start: Any, *, values: bool = True) -> str:
    """Return a short description of a step: "2·2 = 4 to a, −3·2 = −6 to b; 24 − 6 = 18"."""
    if state.step is None:
        return f"the start: {short(start)}" if values else "the start"
    products = [f"{text} to {name}" if text else f"to {name}" for name, text, _ in state.products]
    sums = [f"{name}: {total}" for name, _, total in state.products if total]
    return "; ".join(filter(None, (", ".join(products) or "passes no gradient on", *sums)))

"""The graph as a `Drawing`: leaves are blue pills, operations boxes, outputs dark pills, edges the tensors between.

An operation leads with what the user wrote, its node's name small below. The tensor that it makes hangs below its box
as a tag, where it leaves: with the user's name for it, and with its shape where that is not the shape of one of the
arguments. So every shape along a path can be told without a label on each line, and no label lies on a line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.drawing import (
    DIM,
    EDGE,
    INK,
    LINE,
    PANEL,
    PAPER,
    QUIET,
    VALUE,
    VALUE_PANEL,
    Drawing,
    escape,
    text_width,
    tidy,
)
from gradlab.explore.labels import shortened
from gradlab.explore.layout import Point, layered
from gradlab.explore.reading import GraphEdge, GraphNode
from gradlab.explore.words import shape_text

LABEL, SMALL, TAG = 12.5, 9.0, 9.5  # font sizes in pixels
HEIGHT, LEAST_WIDTH, PADDING = 34.0, 58.0, 11.0  # of a box
TAG_HEIGHT, OVERLAP = 15.0, 4.0  # of a tag, and how much of it lies on its box
LONGEST = 30  # characters of a name that are shown
MARGIN = 4.0
BOLD = 1.09  # how much wider bold letters are


@dataclass(frozen=True)
class _Box:
    """What is written on a node and how large it is."""

    node: GraphNode
    label: str
    small: str
    tag: tuple[str, str]  # the name and the shape of the tensor that it makes
    width: float

    @property
    def tag_width(self) -> float:
        name, shape = self.tag
        return text_width(name, TAG) * BOLD + text_width(shape, TAG) + (5 if name and shape else 0) + 13

    @property
    def height(self) -> float:
        return HEIGHT + (TAG_HEIGHT - OVERLAP if any(self.tag) else 0)


def paint(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], *, note: str, text: str, alt: str) -> Drawing:
    """Lay out and draw a graph; `note` is a line above it."""
    boxes = _boxes(nodes, edges)
    layout = layered([(box.width, box.height) for box in boxes], [(edge.source, edge.target) for edge in edges])
    top = MARGIN + (18 if note else 0)
    body = []
    if note:
        body.append(f'<text x="{tidy(MARGIN)}" y="13" font-size="11" fill="{DIM}">{escape(note)}</text>')
    width = max(layout.width, text_width(note, 11)) + 2 * MARGIN
    body.append(f'<g transform="translate({tidy((width - layout.width) / 2)},{tidy(top)})">')
    body.append(f'<g fill="none" stroke="{EDGE}" stroke-width="1.2">')
    body += [f'<path d="{path}"><title>{escape(title)}</title></path>' for path, title in _edges(edges, nodes, layout.routes)]
    body.append("</g>")
    body.append(f'<g font-size="{SMALL}" text-anchor="middle" fill="{QUIET}">')
    body += [_painted(box, position) for box, position in zip(boxes, layout.boxes, strict=True)]
    body += ["</g>", "</g>"]
    return Drawing("\n".join(body), width, layout.height + top + MARGIN, text, alt)


def figure(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> dict[str, Any]:
    """What `paint` draws as plain data, for a view that draws and lights it itself; node positions are those of `layered`."""
    boxes = _boxes(nodes, edges)
    layout = layered([(box.width, box.height) for box in boxes], [(edge.source, edge.target) for edge in edges])
    return {
        "width": round(layout.width + 2 * MARGIN, 1),
        "height": round(layout.height + 2 * MARGIN, 1),
        "tall": HEIGHT,
        "nodes": [
            {
                "kind": box.node.kind,
                "label": box.label,
                "small": box.small,
                "name": box.tag[0],
                "shape": box.tag[1],
                "wide": box.width,
                "tag": round(box.tag_width, 1),
                "x": round(x + MARGIN, 1),
                "y": round(y + MARGIN, 1),
                "many": box.node.count > 1,
                "title": hover(box.node),
            }
            for box, (x, y) in zip(boxes, layout.boxes, strict=True)
        ],
        "edges": [
            {"path": path, "title": title, "source": edge.source, "target": edge.target}
            for (path, title), edge in zip(_edges(edges, nodes, layout.routes, whole=True), edges, strict=True)
        ],
    }


# ---------------------------------------------------------------------------------------------------------------- boxes
def _boxes(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> list[_Box]:
    shapes: list[set[object]] = [set() for _ in nodes]
    outputs = Counter(edge.source for edge in edges if nodes[edge.target].kind == "output")
    uses = Counter(edge.source for edge in edges)
    for edge in edges:
        shapes[edge.target].add(edge.shape)
    return [_box(node, shapes[i], outputs[i] == uses[i]) for i, node in enumerate(nodes)]


def _box(node: GraphNode, shapes: set[object], only_outputs: bool) -> _Box:
    tag = ("", "")
    small = node.detail
    if node.kind == "leaf" and node.count == 1:
        small = shape_text(node.shape) if node.shape is not None else ""
    elif node.kind == "operation":
        small = node.operation
        name = shortened(node.name, LONGEST)
        changed = node.shape not in shapes and not only_outputs
        tag = (name, shape_text(node.shape) if node.shape is not None and (changed or name) else "")
    label, small = shortened(node.label, LONGEST), shortened(small, LONGEST + 8)
    bold = BOLD if node.kind in ("leaf", "output") else 1.0
    width = max(LEAST_WIDTH, text_width(label, LABEL) * bold + 2 * PADDING, text_width(small, SMALL) + 2 * PADDING)
    box = _Box(node, label, small, tag, round(width))
    return box if not any(tag) or box.tag_width <= box.width else _Box(node, label, small, tag, round(box.tag_width))


def _painted(box: _Box, position: Point) -> str:
    node, (x, y) = box.node, position
    fill, stroke, ink, quiet, radius = PANEL, LINE, INK, QUIET, 5.0
    if node.kind == "leaf":
        fill, stroke, radius = VALUE_PANEL, VALUE, HEIGHT / 2
    elif node.kind == "output":
        fill, stroke, ink, quiet, radius = INK, EDGE, PAPER, LINE, HEIGHT / 2
    left, width = tidy(-box.width / 2), tidy(box.width)
    look = f'height="{tidy(HEIGHT)}" rx="{tidy(radius)}" fill="{fill}" stroke="{stroke}"'
    parts = [f'<g transform="translate({tidy(x)},{tidy(y)})"><title>{escape(hover(node))}</title>']
    if node.count > 1:  # a second sheet behind the first
        parts.append(f'<rect x="{tidy(-box.width / 2 + 3)}" y="3" width="{width}" {look}/>')
    parts.append(f'<rect x="{left}" width="{width}" {look}/>')
    weight = ' font-weight="600"' if node.kind in ("leaf", "output") else ""
    baseline = 15 if box.small else 21.5
    parts.append(f'<text y="{baseline}" font-size="{LABEL}" fill="{ink}"{weight}>{escape(box.label)}</text>')
    if box.small:
        parts.append(f'<text y="26" fill="{quiet}">{escape(box.small)}</text>'.replace(f' fill="{QUIET}"', ""))
    if any(box.tag):
        parts.append(_tag(box))
    return "".join(parts) + "</g>"


def _tag(box: _Box) -> str:
    name, shape = box.tag
    top = HEIGHT - OVERLAP
    stroke, ink, fill = (VALUE, INK, VALUE_PANEL) if name else (LINE, QUIET, PAPER)
    said = f'<tspan font-weight="600">{escape(name)}</tspan>' if name else ""
    said += ("\N{EN SPACE}" if name and shape else "") + escape(shape)
    left, width = tidy(-box.tag_width / 2), tidy(box.tag_width)
    return (
        f'<rect x="{left}" y="{tidy(top)}" width="{width}" height="{tidy(TAG_HEIGHT)}" rx="{tidy(TAG_HEIGHT / 2)}" '
        f'fill="{fill}" stroke="{stroke}"/>'
        f'<text y="{tidy(top + 10.8)}" font-size="{TAG}" fill="{ink}">{said}</text>'
    )


def hover(node: GraphNode) -> str:
    """All that is known of a node, on one line."""
    made = f"{node.name}: " if node.name and node.kind == "operation" else ""
    what = f"{made}{node.label}"
    return ", ".join(
        part
        for part in (
            what,
            node.operation if node.kind == "operation" else "",
            node.detail,
            shape_text(node.shape) if node.shape is not None and shape_text(node.shape) not in node.detail else "",
            f"{node.line}: {node.source}" if node.line and node.source else node.line,
        )
        if part
    )


# ---------------------------------------------------------------------------------------------------------------- edges
def _edges(
    edges: Sequence[GraphEdge], nodes: Sequence[GraphNode], routes: Sequence[Sequence[Point]], *, whole: bool = False
) -> list[tuple[str, str]]:
    """The paths and their titles. Of the edges that share a lane the longest draws it, the others branch off; or, if `whole`,
    each draws it."""
    longest: dict[int, int] = {}
    copies: defaultdict[tuple[int, int], int] = defaultdict(int)
    total = Counter((edge.source, edge.target) for edge in edges)
    for i, edge in enumerate(edges):
        if edge.source not in longest or len(routes[i]) > len(routes[longest[edge.source]]):
            longest[edge.source] = i
    paths = []
    for i, edge in enumerate(edges):
        pair = edge.source, edge.target
        bulge = 12.0 * (copies[pair] - (total[pair] - 1) / 2)  # x * x: two lines side by side
        copies[pair] += 1
        points = routes[i] if whole or longest[edge.source] == i else routes[i][-2:]
        source, shape = nodes[edge.source], "" if edge.shape is None else shape_text(edge.shape)
        title = f"{source.name or source.label} to {nodes[edge.target].label}" + (f", {shape}" if shape else "")
        paths.append((_path(points, bulge), title))
    return paths


def _path(points: Sequence[Point], bulge: float) -> str:
    """A line through the points, vertical in each; `bulge` bends its last part to the side."""
    x, y = points[0]
    said = [f"M{tidy(x)} {tidy(y)}"]
    for number, (to_x, to_y) in enumerate(points[1:], start=1):
        last = number == len(points) - 1
        if number % 2 == 0 and not last:  # down its lane
            said.append(f"V{tidy(to_y)}")
        else:
            aside, middle = bulge if last else 0.0, tidy((y + to_y) / 2)
            curve = f"C{tidy(x + aside)} {middle} {tidy(to_x + aside)} {middle} {tidy(to_x)} {tidy(to_y)}"
            said.append(curve if aside or x != to_x else f"V{tidy(to_y)}")
        x, y = to_x, to_y
    return "".join(said)

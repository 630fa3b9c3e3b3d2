"""The graph of operations as a `Drawing`: leaves are blue pills, operations boxes, outputs dark pills, edges the tensors between.

An operation's label is the user's code, with the name of its node in small letters below. The tensor that it makes is shown as a
port (`ports`) below its box, where the edges leave: the user's name for it, its value and its gradient, and its shape if the
numbers do not show it. Without numbers, the shape is shown if it differs from the arguments' shapes. So every shape along a path
is known without a label on each line. Its line in the cell, its constants and its data inputs (`chips`) are beside the box. Where
several gradients meet, each edge shows its share in their sum.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from
from typing import Any

from gradlab.explore.drawing import (
    DIM,
    EDGE,
    GRADIENT_INK,
    GRADIENT_PANEL,
    INK,
    LINE,
    NEGATIVE,
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
from gradlab.explore.graph import ports, torn_edges
from gradlab.explore.graph.chips import Chips, chips_of, operand_text
from gradlab.explore.graph.layout import Layout, Point, lay_out
from gradlab.explore.graph.ports import PortLabel, Scale, port_of, scale_of, short_number
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count, shape_text
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line

LABEL, SMALL = 12.5, 9.0  # font sizes in pixels
HEIGHT, LEAST_WIDTH, PADDING = 34.0, 58.0, 11.0  # of a box
OVERLAP = 4.0  # overlap of a port and its box
LONGEST = 30  # characters of a name
DESCRIBED = 300  # characters of a live view's description
MARGIN = 4.0
NOTE = 12.0  # height of a line below the graph
BOLD = 1.09  # width of bold letters relative to regular ones
LABELLED = "+0.000"  # as wide as most labels
ASIDE = 5.0  # between a box or its port and the text beside it


NONE = Chips()


@dataclass(frozen=True)
class EdgeMark:
    """Style of a selected edge.

    Attributes
    ----------
    width : float
        Pixels.
    label : str
    against : bool
        Whether its contribution has the opposite sign: drawn with dashes.
    """

    width: float
    label: str = ""
    against: bool = False


@dataclass(frozen=True)
class _Box:
    """Texts and size of a node."""

    node: GraphNode
    label: str
    small: str
    port: PortLabel
    width: float
    line: str = ""  # line number
    chips: Chips = NONE
    beside: tuple[str, ...] = ()  # lines of text at the right of the port
    is_beside_box: bool = False  # whether that text is beside the box rather than the port
    look: str = ""  # "new" or "gone", for another style
    tear: str = ""  # text of a torn edge, which is drawn instead of a box

    @property
    def height(self) -> float:
        if self.tear:
            return torn_edges.HEIGHT
        tall = HEIGHT + (self.port.height - OVERLAP if self.port else 0)
        return max(tall, self.chips.height if any(self.chips.room) else 0)

    @property
    def spoken(self) -> str:
        """Text for screen readers."""
        line = f"line {self.line}" if self.line else ""
        return ", ".join(part for part in (self.label, self.small, *self.port.spoken, line) if part)

    @property
    def room(self) -> tuple[float, float]:
        """Space to keep free at the sides."""
        if self.tear:
            return 0.0, text_width(self.tear, torn_edges.LETTERS) + 6
        left, right = self.chips.room
        if self.line:
            left = max(left, text_width(self.line, SMALL) + ASIDE)
        if self.beside and (self.node.norms or self.is_beside_box):
            right = max(right, 4) + max(text_width(text, SMALL) for text in self.beside) + ASIDE
        elif self.beside:
            wide = max(text_width(text, SMALL) for text in self.beside) + ASIDE
            right = max(right, wide + self.port.width / 2 - self.width / 2)
        return left, right


def paint(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    *,
    note: str,
    text: str,
    alt: str,
    none: frozenset[int] = frozenset(),
    marks: Mapping[int, EdgeMark] | None = None,
    beside: Mapping[int, tuple[str, ...]] | None = None,
    looks: Mapping[int, str] | None = None,
    forward: bool = False,
    legend: str = "",
) -> Drawing:
    """Lay out and draw a graph.

    Parameters
    ----------
    nodes, edges
    note : str
        Line above the graph.
    text, alt : str
        See `Drawing`.
    none : set of int
        Leaves that got no gradient in the sweep, by their numbers in the complete graph.
    marks : mapping of int to EdgeMark, optional
        Selected edges. If given, all other edges are faint and no shares are shown.
    beside : mapping of int to tuple of str, optional
        Text beside nodes, instead of the default text.
    looks : mapping of int to str, optional
        Styles of nodes: "new" and "input" with a heavy outline, "failed" with an outline in the colour of negative numbers,
        "gone" faded and dashed.
    forward : bool
        Whether this is the run of a model. Then every node shows the shape of its result, and the dtype where it changes.
    legend : str
        Lines below the graph.
    """
    laid = _arrange(nodes, edges, none, beside, looks, forward=forward)
    layout, scale = laid.layout, laid.scale
    notes = [f"bar under a number: ‖gradient‖ on a log scale, {scale}"] if scale is not None else []
    if notes and text_width(notes[0], torn_edges.LETTERS) > max(layout.width, text_width(note, 11)):
        notes = ["bar under a number: ‖gradient‖", f"on a log scale, {scale}"]
    notes += legend.splitlines()
    top, bottom = MARGIN + (18 if note else 0), MARGIN + (8 + NOTE * len(notes) if notes else 0)
    width = max(layout.width, text_width(note, 11), *(text_width(line, torn_edges.LETTERS) for line in notes)) + 2 * MARGIN
    body = []
    if note:
        body.append(f'<text x="{tidy(MARGIN)}" y="13" font-size="11" fill="{DIM}">{escape(note)}</text>')
    body += _graph(laid, nodes, edges, ((width - layout.width) / 2, top), marks)
    for i, line in enumerate(notes):
        at = f'x="{tidy(width / 2)}" y="{tidy(top + layout.height + 4 + NOTE * (i + 1))}" text-anchor="middle"'
        body.append(f'<text {at} font-size="{torn_edges.LETTERS}" fill="{DIM}">{escape(line)}</text>')
    return Drawing("\n".join(body), width, layout.height + top + bottom, text, alt)


def figure(
    nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], *, none: frozenset[int] = frozenset(), stepped: bool = False
) -> dict[str, Any]:
    """Return the drawing for a live view, which highlights, selects and labels its nodes and edges (static/kit/graph.js).

    In "svg", an element with `data-node` or `data-edge` holds its index into "nodes" or "edges". "nodes" are `nodes` and then the
    ghosts behind cuts, each with its kind and a text for screen readers. "edges" are `edges` as [source, target, x, y], with room
    for a label at (x, y), and then the dotted and torn ones as [source, target], with −1 for a torn end. `none`: see `paint`. If
    the view is `stepped`, small matrices show their numbers, and norms have no bar.
    """
    laid = _arrange(nodes, edges, none, matrices=stepped)
    if stepped:
        laid = replace(laid, scale=None)
    layout = laid.layout
    width, height = layout.width + 2 * MARGIN, layout.height + 2 * MARGIN
    body = "\n".join(_graph(laid, nodes, edges, (MARGIN, MARGIN), whole=True))
    whole = [box for box in laid.boxes if not box.tear]
    labels = shorten(", ".join(box.label for box in whole), DESCRIBED)
    at = {i: k for k, i in enumerate(i for i, box in enumerate(laid.boxes) if not box.tear)}
    spots = _spots(edges, layout.routes[: len(edges)], [text or LABELLED for text in _share_labels(edges)])
    links: list[list[float]] = [[at.get(source, -1), at.get(target, -1)] for source, target in laid.links]
    for link, spot, route in zip(links, spots, layout.routes, strict=False):
        (x, y), (to_x, to_y) = route[-2:]
        link += [round(c, 1) for c in spot or ((x + to_x) / 2, (y + to_y) / 2)]
    return {
        "svg": Drawing(body, width, height, "", f"graph of {count(len(whole), 'node')}\n{labels}").inline(role="group"),
        "width": round(width, 1),
        "height": round(height, 1),
        "nodes": [{"kind": box.node.kind, "label": box.label, "spoken": box.spoken} for box in whole],
        "edges": links,
    }


def without_numbers(nodes: Sequence[GraphNode]) -> list[GraphNode]:
    """Return the nodes with shapes only, for a drawing whose numbers are not those of one sweep."""
    return [
        replace(node, label=_label_with_constant(node), value=None, gradient=None, operands=(), cell=None, place=None, norms=())
        for node in nodes
    ]


# ---------------------------------------------------------------------------------------------------------------- boxes
@dataclass(frozen=True)
class _Arrangement:
    """Boxes, links and layout of a graph and its cuts. The first boxes are the nodes, the first links are the edges."""

    boxes: list[_Box]
    links: list[tuple[int, int]]
    faint: set[int]  # links to the ghosts behind cuts
    layout: Layout
    scale: Scale | None


def _arrange(
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    none: frozenset[int],
    beside: Mapping[int, tuple[str, ...]] | None = None,
    looks: Mapping[int, str] | None = None,
    *,
    matrices: bool = False,
    forward: bool = False,
) -> _Arrangement:
    place = {member: i for i, node in enumerate(nodes) for member in (node.members or (i,))}
    boxes = _boxes(nodes, edges, frozenset(place[leaf] for leaf in none if leaf in place), matrices, forward)
    for i, words in (beside or {}).items():
        boxes[i] = replace(boxes[i], beside=words, is_beside_box=True)
    for i, look in (looks or {}).items():
        boxes[i] = replace(boxes[i], look=look)
    links = [(edge.source, edge.target) for edge in edges]
    faint: set[int] = set()
    for cut in torn_edges.torn_edges(nodes, place.get):
        tear = len(boxes) + (cut.leaf is None)
        if cut.leaf is None:
            boxes.append(_ghost(cut))
        boxes.append(_Box(nodes[0], "", "", PortLabel(), torn_edges.WIDTH, tear=cut.words))
        before = [(leaf, tear - 1) for leaf in cut.behind] if cut.leaf is None else [(cut.leaf, tear)]
        faint |= set(range(len(links), len(links) + len(before)))
        links += before
        if cut.leaf is None:
            links.append((tear - 1, tear))
        links += [(tear, target) for target in cut.targets]
    layout = lay_out([(box.width, box.height) for box in boxes], links, [box.room for box in boxes])
    return _Arrangement(boxes, links, faint, layout, scale_of(box.port.norm for box in boxes if box.port.norm is not None))


def _label_with_constant(node: GraphNode) -> str:
    """Return an operation's label with its only constant, for boxes without chips: "** 2", "1 ÷"."""
    constants = [operand for operand in node.operands if operand.kind == "constant"]
    if node.kind != "operation" or len(constants) != 1 or node.label.isidentifier() or not (text := operand_text(constants[0])):
        return node.label
    return f"{text} {node.label}" if constants[0].argument == 0 else f"{node.label} {text}"


def _boxes(
    nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], none: frozenset[int], matrices: bool, forward: bool
) -> list[_Box]:
    shapes: list[set[object]] = [set() for _ in nodes]
    given: list[set[str]] = [set() for _ in nodes]
    outputs = Counter(edge.source for edge in edges if nodes[edge.target].kind == "output")
    uses = Counter(edge.source for edge in edges)
    for edge in edges:
        shapes[edge.target].add(edge.shape)
        given[edge.target].add(nodes[edge.source].dtype)
    cancelled = _cancelled_texts(nodes, edges)
    return [
        _box(
            node,
            shapes[i],
            only_outputs=outputs[i] == uses[i],
            none=i in none,
            beside=cancelled.get(i, ()),
            made=_made_text(node, given[i]) if forward else None,
            matrices=matrices,
        )
        for i, node in enumerate(nodes)
    ]


def _box(
    node: GraphNode,
    shapes: set[object],
    *,
    only_outputs: bool,
    none: bool,
    beside: tuple[str, ...],
    made: str | None,
    matrices: bool,
) -> _Box:
    small, port, chips = node.detail, PortLabel(), NONE
    shape = shape_text(node.shape) if node.shape is not None else ""
    if node.kind == "leaf":
        if node.count == 1:
            small = shape
            port = port_of(node.value, node.gradient, "", "", matrices=matrices)
            if (port.values or port.gradients) and not port.norm:
                small = "" if len(node.shape or ()) < 2 else shape  # the numbers show it
            small = node.detail or small
        if none and node.count == 1:
            beside = ("no gradient",)
    elif node.kind == "output":
        port = port_of(node.value, node.gradient, "", shape, matrices=matrices)
        if port.values and len(node.shape or ()) < 2:
            small = ""
        elif not port.values:
            port = replace(port, shape="")
    else:
        small = node.detail or (node.operation if made is None else "")
        name = shorten(node.name, LONGEST)
        if made:
            port = port_of(node.value, None, name, made, always=True, matrices=matrices)
        elif not only_outputs or name:
            changed = node.kind == "operation" and node.shape not in shapes and not only_outputs
            port = port_of(node.value, node.gradient, name, shape, always=changed or bool(name), matrices=matrices)
            if node.kind == "folded" and port.norm is None and not port.gradients:
                port = PortLabel(name)
        chips = chips_of(node.operands, sided=node.kind == "operation")
        if node.norms:
            low, high = min(node.norms), max(node.norms)
            spread = short_number(low) if low == high else f"{short_number(low)} … {short_number(high)}"
            beside = (f"{len(node.norms)} norms:", spread)
    label, small = shorten(node.label, LONGEST), shorten(small, LONGEST + 16)
    bold = BOLD if node.kind in ("leaf", "output") else 1.0
    width = max(LEAST_WIDTH, text_width(label, LABEL) * bold + 2 * PADDING, text_width(small, SMALL) + 2 * PADDING, port.width)
    at = node.cell or node.place
    return _Box(node, label, small, port, round(width), "" if at is None else str(at.line), chips, beside)


def _made_text(node: GraphNode, given: set[str]) -> str:
    """Return the shape of a node's result, and its dtype if none of its inputs has it."""
    if node.shape is None or node.kind not in ("operation", "folded"):
        return ""
    shape = shape_text(node.shape)
    return f"{shape} {node.dtype}" if node.dtype and node.dtype not in given else shape


def _ghost(torn: torn_edges.TornEdge) -> _Box:
    """Return the box of the operation behind a cut, with its value and without gradient."""
    node = torn.ghost
    shape = shape_text(node.shape) if node.shape is not None else ""
    port = port_of(node.value, None, shorten(node.name, LONGEST), shape, always=True)
    label = shorten(node.label, LONGEST)
    width = max(LEAST_WIDTH, text_width(label, LABEL) + 2 * PADDING, text_width(node.detail, SMALL) + 2 * PADDING, port.width)
    at = torn.cut.place
    return _Box(node, label, node.detail, port, round(width), "" if at is None else str(at.line))


def _cancelled_texts(nodes: Sequence[GraphNode], edges: Sequence[GraphEdge]) -> dict[int, tuple[str, ...]]:
    """Return the text beside nodes at which non-zero gradients meet whose sum is 0."""
    parts: defaultdict[int, list[float]] = defaultdict(list)
    for edge in edges:
        if edge.gradient is not None and edge.gradient.norm > 0:
            parts[edge.source].append(edge.gradient.norm)
    return {
        i: (f"{' and '.join(map(short_number, norms))} cancel" if len(norms) <= 3 else f"{len(norms)} parts cancel",)
        for i, norms in parts.items()
        if len(norms) > 1 and (gradient := nodes[i].gradient) is not None and gradient.all_zero
    }


def _graph(
    laid: _Arrangement,
    nodes: Sequence[GraphNode],
    edges: Sequence[GraphEdge],
    origin: Point,
    marks: Mapping[int, EdgeMark] | None = None,
    *,
    whole: bool = False,
) -> Iterator[str]:
    """Yield the SVG elements of a graph whose upper left corner is at `origin`. `marks`: see `paint`; `whole`: see `_edges`."""
    boxes, routes = laid.boxes, laid.layout.routes
    yield f'<g transform="translate({tidy(origin[0])},{tidy(origin[1])})">'
    yield f'<g class="gl-lines" fill="none" stroke="{EDGE}" stroke-width="1.2">'
    lines = _edges(laid.links, routes, whole=whole or marks is not None)
    titles = [_title(edge, nodes) for edge in edges] + [""] * (len(laid.links) - len(edges))
    for i, (path, title) in enumerate(zip(lines, titles, strict=True)):
        drawn = ' stroke-dasharray="1.5 3.5" stroke-linecap="round"' if i in laid.faint else _edge_style(i, marks)
        yield f'<path data-edge="{i}" d="{path}"{drawn}>' + (f"<title>{escape(title)}</title></path>" if title else "</path>")
    yield "</g>"
    yield f'<g font-size="{SMALL}" text-anchor="middle" fill="{QUIET}">'
    number = count_from(0)
    for box, (x, y) in zip(boxes, laid.layout.boxes, strict=True):
        moved = f'transform="translate({tidy(x)},{tidy(y)})"'
        yield f"<g {moved}>{torn_edges.tear_svg(box.tear)}</g>" if box.tear else _node_svg(box, next(number), moved, laid.scale)
    yield '<g class="gl-shares">'
    yield from _labels(edges, routes[: len(edges)], _share_labels(edges) if marks is None else _mark_labels(edges, marks))
    yield "</g></g></g>"


def _node_svg(box: _Box, number: int, moved: str, scale: Scale | None) -> str:
    node = box.node
    fill, stroke, ink, quiet, radius, dashes = PANEL, LINE, INK, QUIET, 5.0, ""
    if node.kind == "leaf":
        fill, stroke, radius = VALUE_PANEL, VALUE, HEIGHT / 2
    elif node.kind == "output":
        fill, stroke, ink, quiet, radius = INK, EDGE, PAPER, PAPER, HEIGHT / 2
    elif node.kind == "ghost":
        ink, dashes = QUIET, ' stroke-dasharray="3 3"'
    faded = ' opacity="0.5"' if box.look == "gone" else ""
    if box.look == "gone":
        dashes = ' stroke-dasharray="3 3"'
    elif box.look == "failed":
        fill, stroke, ink, dashes = PAPER, NEGATIVE, NEGATIVE, ' stroke-width="2.2"'
    elif box.look == "input":
        dashes = ' stroke-width="2.2"'
    elif box.look == "new":
        stroke, dashes = EDGE if node.kind == "output" else INK, ' stroke-width="2.2"'
    left, width = tidy(-box.width / 2), tidy(box.width)
    look = f'height="{tidy(HEIGHT)}" rx="{tidy(radius)}" fill="{fill}" stroke="{stroke}"{dashes}'
    kind = "" if node.kind == "operation" else f' class="gl-{node.kind}"'
    parts = [
        f'<g data-node="{number}"{kind} {moved}{faded}><title>{escape(hover(node))}</title>',
        box.chips.svg(box.width),
    ]
    if node.count > 1:  # a second sheet behind the first
        parts.append(f'<rect x="{tidy(-box.width / 2 + 3)}" y="3" width="{width}" {look}/>')
    parts.append(f'<rect x="{left}" width="{width}" {look}/>')
    weight = ' font-weight="600"' if node.kind in ("leaf", "output") else ""
    lines = 13.5 if box.port else 15.0
    baseline = lines if box.small else 19.0 if box.port else 21.5
    parts.append(f'<text y="{tidy(baseline)}" font-size="{LABEL}" fill="{ink}"{weight}>{escape(box.label)}</text>')
    if box.small:
        parts.append(f'<text y="{tidy(lines + 11)}" fill="{quiet}">{escape(box.small)}</text>'.replace(f' fill="{QUIET}"', ""))
    if box.port:
        parts.append(box.port.svg(HEIGHT - OVERLAP, scale))
    if box.line:
        at = f'x="{tidy(-box.width / 2 - ASIDE + 1)}" y="8" text-anchor="end"'
        parts.append(f'<text {at} fill="{DIM}">{escape(box.line)}</text>')
    if box.beside:
        right, middle = _aside(box)
        for i, text in enumerate(box.beside):
            y = middle + 3.2 + 11 * (i - (len(box.beside) - 1) / 2)
            parts.append(f'<text x="{tidy(right)}" y="{tidy(y)}" text-anchor="start" fill="{DIM}">{escape(text)}</text>')
    return "".join(parts) + "</g>"


def _aside(box: _Box) -> Point:
    """Return the left end and the middle of the text beside a node."""
    if box.node.norms or box.is_beside_box:
        return box.width / 2 + max(box.chips.room[1], 4) + ASIDE, HEIGHT / 2
    return box.port.width / 2 + ASIDE, HEIGHT - OVERLAP + ports.HEIGHT / 2


def hover(node: GraphNode) -> str:
    """Return all data of a node in one line."""
    name = f"{node.name}: " if node.name and node.kind == "operation" else ""
    what = f"{name}{node.label}"
    return ", ".join(
        part
        for part in (
            what,
            node.operation if node.kind == "operation" else "",
            node.detail,
            shape_text(node.shape) if node.shape is not None and shape_text(node.shape) not in node.detail else "",
            where(node.place),
        )
        if part
    )


def where(place: Line | None) -> str:
    """Return for example "cell line 3: x.exp()"; "" for None."""
    return "" if place is None else f"{place.where}: {place.source}" if place.source else place.where


# ---------------------------------------------------------------------------------------------------------------- edges
def _title(edge: GraphEdge, nodes: Sequence[GraphNode]) -> str:
    source = nodes[edge.source]
    title = f"{source.name or source.label} to {nodes[edge.target].label}"
    return title if edge.shape is None else f"{title}, {shape_text(edge.shape)}"


def _edges(links: Sequence[tuple[int, int]], routes: Sequence[Sequence[Point]], *, whole: bool = False) -> list[str]:
    """Return the paths of the edges. The longest of the edges in a lane draws it and the others branch off; if `whole`, each
    draws it."""
    longest: dict[int, int] = {}
    copies: defaultdict[tuple[int, int], int] = defaultdict(int)
    total = Counter(links)
    for i, (source, _) in enumerate(links):
        if source not in longest or len(routes[i]) > len(routes[longest[source]]):
            longest[source] = i
    paths = []
    for i, pair in enumerate(links):
        bulge = 12.0 * (copies[pair] - (total[pair] - 1) / 2)  # x * x: two parallel lines
        copies[pair] += 1
        paths.append(_path(routes[i] if whole or longest[pair[0]] == i else routes[i][-2:], bulge))
    return paths


def _edge_style(i: int, marks: Mapping[int, EdgeMark] | None) -> str:
    """Return the SVG attributes of an edge if some edges are selected."""
    if marks is None:
        return ""
    mark = marks.get(i)
    if mark is None:
        return ' stroke-opacity="0.45" stroke-width="1"'
    dashes = f' stroke-dasharray="{tidy(3 + 1.5 * mark.width)} {tidy(2 + mark.width)}"' if mark.against else ""
    return f' stroke="{INK}" stroke-width="{tidy(mark.width)}"{dashes}'


def _share_labels(edges: Sequence[GraphEdge]) -> list[str]:
    """Return for each edge its share in the gradient of its tensor; "" if it is the only one, and for the second of two edges
    between the same nodes."""
    uses = Counter(edge.source for edge in edges)
    total: defaultdict[tuple[int, int], float] = defaultdict(float)  # x * x: two edges, one label
    for edge in edges:
        total[edge.source, edge.target] += math.nan if edge.share is None else edge.share
    shares = [total.pop((edge.source, edge.target), math.nan) for edge in edges]
    return [
        share_text(share) if uses[edge.source] > 1 and math.isfinite(share) else ""
        for edge, share in zip(edges, shares, strict=True)
    ]


def _mark_labels(edges: Sequence[GraphEdge], marks: Mapping[int, EdgeMark]) -> list[str]:
    return [marks[i].label if i in marks else "" for i in range(len(edges))]


def _labels(edges: Sequence[GraphEdge], routes: Sequence[Sequence[Point]], labels: Sequence[str]) -> list[str]:
    """Return the labels of the edges as SVG, where there is room."""
    drawn = []
    for text, spot in zip(labels, _spots(edges, routes, labels), strict=True):
        if text and spot is not None:
            (x, y), wide = spot, text_width(text, SMALL) + 7
            box = f'x="{tidy(x - wide / 2)}" y="{tidy(y - 6)}" width="{tidy(wide)}" height="12" rx="3"'
            drawn.append(
                f'<rect {box} fill="{GRADIENT_PANEL}"/><text x="{tidy(x)}" y="{tidy(y + 3.3)}" fill="{GRADIENT_INK}">'
                f"{escape(text)}</text>"
            )
    return drawn


def _spots(edges: Sequence[GraphEdge], routes: Sequence[Sequence[Point]], labels: Sequence[str]) -> list[Point | None]:
    """Return the position of each label on the last part of its edge, clear of earlier labels; None without text or room."""
    taken: list[tuple[float, float, float]] = []  # x, y and width of the labels so far
    copies = Counter((edge.source, edge.target) for edge in edges)
    labelled = Counter((edge.source, edge.target) for edge, text in zip(edges, labels, strict=True) if text)
    done: Counter[tuple[int, int]] = Counter()
    spots: list[Point | None] = []
    for edge, route, text in zip(edges, routes, labels, strict=True):
        pair = edge.source, edge.target
        aside = 12.0 * (done[pair] - (copies[pair] - 1) / 2) if labelled[pair] > 1 else 0.0
        done[pair] += 1
        (x, y), (to_x, to_y) = route[-2], route[-1]
        wide = text_width(text, SMALL) + 7
        tries = (
            (aside + x + (to_x - x) * (3 * t * t - 2 * t**3), y + (to_y - y) * (1.5 * t * (1 - t) + t**3))  # on the curve
            for t in (0.5, 0.35, 0.65, 0.2, 0.8)
        )
        free = ((a, b) for a, b in tries if all(abs(a - c) > (wide + w) / 2 + 2 or abs(b - d) > 13 for c, d, w in taken))
        spot = next(free, None) if text and to_y - y >= 16 else None
        if spot is None:
            spots.append(None)
            continue
        at_x, at_y = spot[0], min(max(spot[1], y + 8), to_y - 8)
        taken.append((at_x, at_y, wide))
        spots.append((at_x, at_y))
    return spots


def share_text(share: float) -> str:
    """Return for example "60 %", "−33 %" or "0.4 %"."""
    percent = 100 * share
    digits = 0 if abs(percent) >= 1 else 1
    text = f"{percent:.{digits}f} %".replace("-", "−")
    return "≈ 0 %" if text in ("0.0 %", "−0.0 %") and percent else text.replace("0.0", "0")


def _path(points: Sequence[Point], bulge: float) -> str:
    """Return a line through the points, vertical at each of them; `bulge` bends its last part to the side."""
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

"""A graph as rows in the order of the program: the lines of the user's own code, or the modules of a model.

A row summarises some nodes: their result, the gradient that reached it, and the rows this gradient came from, with shares. Loops
do not add rows: a line that ran fifty times is one row with fifty norms. Rows are plain data; `rails` draws them and `listing`
prints them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gradlab.explore.graph.chips import operand_text
from gradlab.explore.graph.contraction import Uses, uses_of
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.ports import elements
from gradlab.explore.graph.spans import brief, rounds, whole_layers
from gradlab.explore.graph.torn_edges import cut_words
from gradlab.explore.labels import shorten
from gradlab.explore.markup import count, shape_text
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, Trace
from gradlab.explore.trace.values import Value

MOST = 26  # rows in a picture
MODULES = 18  # rows of modules, which are higher
TOPS = 3  # leaves with a row of their own because several rows use them
STEPS = 2  # up to this many lines of the cell, the lines of the functions that they call are shown instead


@dataclass(frozen=True)
class Parameter:
    """A leaf that a row uses, with the norms of its gradient and of itself; None if unknown."""

    name: str
    gradient: float | None
    value: float | None
    none: bool = False  # it got no gradient in the sweep
    node: int = -1


@dataclass(frozen=True)
class GraphRow:
    """A row.

    Attributes
    ----------
    kind : str
        "line", "module", "stack", "function", "operation", "more", "leaf", "output" or "cut".
    label : str
        The user's code, or the name.
    small : str
        Additional text.
    line : str
        Line number.
    where : str
        Name of the row in other rows: "line 5", "ln_f".
    made : str
        Shape of the result; of a scalar the value.
    gradient : Value or None
        The gradient that reached the result.
    norms : tuple of float
        Norms of code that ran several times, or of several equal modules.
    came_from : tuple of (int, float or None)
        Rows that passed that gradient back, and their shares.
    parameters : tuple of Parameter
        Leaves that only this row uses.
    data : tuple of str
        Operands that need no gradient.
    members : tuple of int
        The nodes.
    end : int
        Node that makes the row's result; −1 for none.
    none : bool
        Whether it is a leaf that got no gradient in the sweep.
    depth : int
        Number of open rows around it.
    opened : bool or None
        Whether the rows in it are shown; None if it has none.
    key : str
        Address among rows that open and close.
    """

    kind: str
    label: str
    small: str = ""
    line: str = ""
    where: str = ""
    made: str = ""
    gradient: Value | None = None
    norms: tuple[float, ...] = ()
    came_from: tuple[tuple[int, float | None], ...] = ()
    parameters: tuple[Parameter, ...] = ()
    data: tuple[str, ...] = ()
    members: tuple[int, ...] = ()
    end: int = -1
    none: bool = False
    depth: int = 0
    opened: bool | None = None
    key: str = ""


@dataclass
class Part:
    """The source of a row. An open part has no members, since the rows in it have them."""

    kind: str
    label: str
    members: list[int]
    small: str = ""
    line: str = ""
    where: str = ""
    copies: tuple[float, ...] = ()
    depth: int = 0
    opened: bool | None = None
    key: str = ""


# ----------------------------------------------------------------------------------------------------------------- code
def code_rows(trace: Trace) -> list[GraphRow]:
    """Make a row for each of the user's lines: of the cell or, if there are hardly any, of the functions that it calls."""
    nodes = trace.nodes
    cells = _by_line(trace, [node.cell or node.place for node in nodes])
    if len(cells) <= STEPS:
        inner = _by_line(trace, [node.place or node.cell for node in nodes])
        cells = inner if len(inner) > len(cells) else cells
    return RowMaker(trace, nodes, trace.edges).rows(_merge(cells, nodes))


def _by_line(trace: Trace, places: Sequence[Line | None]) -> list[Part]:
    """Group the operations by statement: in the cell in source order, elsewhere in order of execution."""
    by_line: dict[tuple[str, int, str], list[int]] = {}
    lines: dict[tuple[str, int, str], Line] = {}
    lost: list[int] = []
    for i, (node, place) in enumerate(zip(trace.nodes, places, strict=True)):
        if node.kind not in ("operation", "folded"):
            continue
        if place is None:
            lost.append(i)
            continue
        first = first_line(trace, place)
        key = place.where.partition(" line ")[0], first, place.statement
        by_line.setdefault(key, []).append(i)
        lines.setdefault(key, place)
    one_file = len({key[0] for key in by_line}) == 1 and len({line.function for line in lines.values()}) == 1
    keys = sorted(by_line, key=(lambda key: key[1]) if one_file else (lambda key: by_line[key][0]))
    uses = uses_of(trace.nodes, trace.edges)
    parts = [_line_part(trace, uses, lines[key], key[1], by_line[key]) for key in keys]
    if lost and parts:  # operations that the library added belong to the line before
        at = {i: part for part in parts for i in part.members}
        for i in lost:
            part = at.get(i - 1, parts[0])
            part.members.append(i)
            at[i] = part
    return parts


def _line_part(trace: Trace, uses: Uses, line: Line, first: int, members: list[int]) -> Part:
    text = line.statement or line.source or line.where
    name = "" if line.function in ("", "<module>") or line.in_cell else line.function
    times = Counter((trace.nodes[i].operation, trace.nodes[i].place) for i in members)
    often = min(times.values())  # a library function may do one thing twice in one place
    small = " · ".join(filter(None, (f"in {name}" if name else "", f"{often} times" if often > 1 else "")))
    ends = rounds(trace.nodes, uses, sorted(members), often)
    norms = [value.norm for [i] in ends if (value := trace.nodes[i].gradient) is not None]
    copies = tuple(norms) if len(norms) == len(ends) else ()
    return Part("line", text, members, small, str(first), f"line {first}", copies)


def first_line(trace: Trace, place: Line) -> int:
    """Return the number of the line on which a statement begins."""
    if not place.in_cell or not place.statement:
        return place.line
    for number in range(min(place.line, len(trace.source)), 0, -1):
        text = " ".join(trace.source[number - 1].split())
        if text and place.statement.startswith(text.partition("#")[0].rstrip() or "\0"):
            return number
    return place.line


# -------------------------------------------------------------------------------------------------------------- modules
def module_rows(trace: Trace) -> list[GraphRow]:
    """Make a row for each module that was called, with equal modules together, and for code outside modules."""
    numbered = [replace(node, members=(i,)) for i, node in enumerate(trace.nodes)]
    nodes, edges = fold(*whole_layers(numbered, trace.edges, trace.layers), MODULES, trace.layers, lines=False)
    parts = []
    for i, node in enumerate(nodes):
        if node.kind not in ("leaf", "output"):
            kind = "module" if node.kind == "folded" else "operation"
            small = node.detail if node.kind == "folded" else node.operation
            at = node.cell or node.place
            label = node.label
            if kind == "operation" and node.place is not None and node.place != node.cell and node.place.source:
                label = brief(node.place.source)
            parts.append(Part(kind, label, [i], small, "" if at is None else str(at.line), label, node.norms))
    return RowMaker(trace, nodes, edges, folded=True).rows(_merge(parts, nodes))


# ----------------------------------------------------------------------------------------------------------------- rows
def _merge(parts: list[Part], nodes: Sequence[GraphNode]) -> list[Part]:
    """Merge neighbours until there are no more parts than rows, those with the fewest operations first."""
    sizes = [sum(nodes[i].count for i in part.members) for part in parts]
    parts = list(parts)
    spans = [(part.line, part.line) for part in parts]
    while len(parts) > MOST:
        at = min(range(len(parts) - 1), key=lambda i: sizes[i] + sizes[i + 1])
        a, b = parts[at], parts[at + 1]
        span = spans[at][0], spans[at + 1][1]
        many = count(sizes[at] + sizes[at + 1], "operation")
        where = f"lines {span[0]}–{span[1]}" if a.kind == "line" else f"{a.where} … {b.where}"
        label = where if a.kind == "line" else f"{a.label.partition(' … ')[0]} … {b.label.rpartition(' … ')[2]}"
        parts[at : at + 2] = [Part(a.kind, label, [*a.members, *b.members], many, a.line, where)]
        sizes[at : at + 2] = [sizes[at] + sizes[at + 1]]
        spans[at : at + 2] = [span]
    return parts


@dataclass(frozen=True)
class _Inside:
    """Properties of a row's members that do not depend on which rows are shown."""

    used_outside: tuple[int, ...]  # members that are used outside the row
    end: int
    data: tuple[str, ...]
    members: tuple[int, ...]


class RowMaker:
    """Make the rows of a graph, whichever parts of it are open.

    Parameters
    ----------
    trace : Trace
    nodes, edges : sequence
        Nodes and edges of the trace, or contracted ones.
    folded : bool
        Whether nodes replace several nodes of the trace.

    Attributes
    ----------
    uses : list of list of int
        The targets of each node's edges.
    """

    def __init__(self, trace: Trace, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], *, folded: bool = False) -> None:
        self._trace, self._nodes, self._folded = trace, nodes, folded
        self.uses = uses_of(nodes, edges)
        self._out_edges: defaultdict[int, list[GraphEdge]] = defaultdict(list)
        for edge in edges:
            self._out_edges[edge.source].append(edge)
        self._leaves = [i for i, node in enumerate(nodes) if node.kind == "leaf" and self.uses[i]]
        self._outputs = [i for i, node in enumerate(nodes) if node.kind == "output"]
        self._none = {leaf.node for leaf in trace.leaves if trace.sweep and leaf.gradient is None}
        self._parameters: dict[int, Parameter] = {}
        self._known: dict[tuple[int, ...], _Inside] = {}

    def rows(self, parts: Sequence[Part]) -> list[GraphRow]:
        """Return a row for each of some disjoint parts without leaves, with leaves that several of them use above and the outputs
        below."""
        place = self._places(parts)
        users = {i: {place[t] for t in self.uses[i] if place[t] >= 0} for i in self._leaves}
        shared = [i for i, among in users.items() if len(among) > 1]
        tops = shared if len(shared) <= TOPS else []
        parts = [*map(self._alone, tops), *parts, *map(self._alone, self._outputs[:2])]
        place = self._places(parts)
        leaves: defaultdict[int, list[Parameter]] = defaultdict(list)
        for i, among in users.items():
            if among and i not in tops:
                leaves[min(among) + len(tops)].append(self._parameter(_whole(self._nodes[i], i)))
        if self._folded:
            for at, part in enumerate(parts):
                inside = [m for i in part.members if self._nodes[i].kind == "folded" for m in self._nodes[i].members]
                leaves[at] += [self._parameter(m) for m in inside if self._trace.nodes[m].kind == "leaf"]
        return _with_cuts(self._trace, [self._row(place, at, part, tuple(leaves[at])) for at, part in enumerate(parts)])

    def _places(self, parts: Sequence[Part]) -> list[int]:
        """Return the number of each node's part; −1 for none."""
        place = [-1] * len(self._nodes)
        for at, part in enumerate(parts):
            for i in part.members:
                place[i] = at
        return place

    def _alone(self, i: int) -> Part:
        """Make the part of a leaf or an output that has its own row."""
        node = self._nodes[i]
        return Part(node.kind, node.label, [i], where=node.label, key=f"n{i}")

    def _parameter(self, i: int) -> Parameter:
        if i not in self._parameters:
            node = self._trace.nodes[i]
            gradient, value = (None if one is None else one.norm for one in (node.gradient, node.value))
            self._parameters[i] = Parameter(node.label, gradient, value, i in self._none, i)
        return self._parameters[i]

    def end(self, members: Sequence[int]) -> int:
        """Return the node that makes the result of some nodes: the last one that is used outside; −1 for none."""
        return self._inside(members).end if members else -1

    def _inside(self, members: Sequence[int]) -> _Inside:
        key = tuple(members)
        if key not in self._known:
            own, nodes = set(members), self._nodes
            used_outside = tuple(i for i in members if any(edge.target not in own for edge in self._out_edges.get(i, ())))
            texts = dict.fromkeys(operand_text(o) for i in members for o in nodes[i].operands if o.kind == "input")
            data = tuple(shorten(text, 24) for text in texts if text)[:2]
            whole = tuple(sorted(m for i in members for m in (nodes[i].members or (i,))))
            self._known[key] = _Inside(used_outside, max(used_outside, default=max(members)), data, whole)
        return self._known[key]

    def _row(self, place: Sequence[int], at: int, part: Part, parameters: tuple[Parameter, ...]) -> GraphRow:
        said = part.kind, part.label, part.small, part.line, part.where
        if not part.members:
            return GraphRow(*said, depth=part.depth, opened=part.opened, key=part.key)
        inside = self._inside(part.members)
        node = self._nodes[inside.end]
        shares: dict[int, float | None] = {}
        for edge in (edge for i in inside.used_outside for edge in self._out_edges[i]):
            target = place[edge.target]
            if target in (-1, at):
                continue
            known = edge.share if len(inside.used_outside) == 1 else None
            before = shares.get(target, 0.0)
            shares[target] = None if known is None or before is None else before + known
        return GraphRow(
            *said,
            made=made_text(node),
            gradient=node.gradient,
            norms=part.copies,
            came_from=tuple(sorted(shares.items())),
            parameters=parameters,
            data=inside.data,
            members=inside.members,
            end=inside.end,
            none=part.kind == "leaf" and _whole(node, inside.end) in self._none,
            depth=part.depth,
            opened=part.opened,
            key=part.key,
        )


def _whole(node: GraphNode, i: int) -> int:
    """Return the number in the trace of a node that was not folded."""
    return node.members[0] if node.members else i


def made_text(node: GraphNode) -> str:
    """Return the shape of a node's result; of a scalar the value."""
    numbers = elements(node.value)
    if len(numbers) == 1 and not node.shape:
        return numbers[0]
    return "" if node.shape is None else shape_text(node.shape)


def _with_cuts(trace: Trace, rows: list[GraphRow]) -> list[GraphRow]:
    """Add a row for each line of the cell where a history ends, in its place among the outermost rows."""
    if not all(row.line.isdigit() or row.kind in ("leaf", "output") for row in rows if not row.depth):
        return rows
    there = {row.line for row in rows if row.kind == "line"}
    for cut in trace.cuts:
        if cut.place is None or not there or str(cut.place.line) in there or not (cut.behind or cut.leaves):
            continue
        there.add(str(cut.place.line))
        outer = [(i, row) for i, row in enumerate(rows) if not row.depth]
        at = next((i for i, row in outer if row.kind == "output" or (row.line and int(row.line) > cut.place.line)), len(rows))
        shape = "" if cut.shape is None else shape_text(cut.shape)
        new = GraphRow("cut", cut.place.statement, cut_words(cut).partition(",")[0], str(cut.place.line), "", shape)
        moved = [replace(row, came_from=tuple((t + (t >= at), share) for t, share in row.came_from)) for row in rows]
        rows = [*moved[:at], new, *moved[at:]]
    return rows


def total(norms: Sequence[float | None]) -> float | None:
    """Return the norm of several tensors together; None if none is known."""
    known = [norm for norm in norms if norm is not None]
    return math.hypot(*known) if known else None


def lanes(rows: Sequence[GraphRow]) -> tuple[list[int], int]:
    """Return the lane of each row's rail, and the number of lanes. A tensor keeps its lane until its last use, and the row of
    that use continues the lane."""
    last = [max((t for t, _ in row.came_from if t > at), default=at) for at, row in enumerate(rows)]
    sources: list[list[int]] = [[] for _ in rows]
    for at, row in enumerate(rows):
        for target, _ in row.came_from:
            if target > at:
                sources[target].append(at)
    lane = [0] * len(rows)
    busy: dict[int, int] = {}  # the row until which each lane is used
    for at in range(len(rows)):
        ending = [lane[s] for s in sources[at] if last[s] == at]
        free = [number for number in range(len(busy) + 1) if busy.get(number, -1) <= at]
        lane[at] = min(ending) if ending else free[0]
        busy[lane[at]] = max(at, last[at])
    return lane, max(lane, default=0) + 1

"""`Paths`: the signed contribution of each edge, node and path to a leaf's gradient.

`contributions` defines contributions, and computes all of them in two sweeps. This module presents them: as plain data by the
numbers of a trace's nodes and edges, as text, as a table of the paths if they are few, and as a picture. In the picture an edge's
width shows its contribution, selected edges are dark, and dashes show a negative sign, so that neither colour nor width is needed
to see the sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gradlab.explore.drawing import Drawing, Pictured
from gradlab.explore.graph.contributions import Flow, arriving, leaf_paths
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.listing import first_lines, join_names
from gradlab.explore.graph.painting import EdgeMark, paint, share_text
from gradlab.explore.labels import shorten
from gradlab.explore.markup import Sentence, Span, code, count, dim, number, say, to_text
from gradlab.explore.report.table import Column, Table, card
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace, renumber

MANY = 1_000_000  # paths
GLANCE = 25  # nodes that can be read at a glance
THIN, THICK = 1.4, 6.4  # pixels
SLIGHT = 0.01  # relative to the largest contribution
HALF = 0.5  # gradients cancel if less than this part of their size remains
ROUNDING, COARSE = (
    1e-13,
    1e-6,
)  # relative to the largest contribution, below which it is rounding: double precision, others
LONGEST = 9  # steps in a path's text
STEP = 24  # characters of a step


@dataclass(frozen=True)
class Meeting:
    """A tensor at which several cotangents meet on their way to the leaf.

    Attributes
    ----------
    node : int
        The node that made it, or the leaf itself.
    edges : tuple of int
        The edges by which they arrive.
    amounts : tuple of float or None
        Their contributions; None if unknown.
    norms : tuple of float
        The norm of each cotangent.
    remains : float or None
        The norm of their sum over the sum of their norms: 1 if they point in one direction, 0 if they cancel.
    cosine : float or None
        The cosine between two cotangents.
    least : float
        Contributions that sum to less than this are not reported.
    """

    node: int
    edges: tuple[int, ...]
    amounts: tuple[float | None, ...]
    norms: tuple[float, ...]
    remains: float | None
    cosine: float | None
    least: float = 0.0

    @property
    def cancels(self) -> bool:
        """True if less than half remains of the contributions that meet here or, if these are unknown, of the cotangents."""
        known = [amount for amount in self.amounts if amount is not None]
        if len(known) == len(self.amounts):
            gross = math.fsum(map(abs, known))
            return gross > self.least and abs(math.fsum(known)) < HALF * gross
        return self.remains is not None and self.remains < HALF


@dataclass(frozen=True)
class Path:
    """One path from the leaf to an output.

    Attributes
    ----------
    Starting at the leaf.
        From the leaf on.
    Its contribution, in the units of `Paths.total`.
        Its contribution, in the units of `Paths.total`.
    Its share of the gradient.
        Of the gradient.
    The norm of the contribution; None if unknown.
        ‖what flowed along it‖; None where that is not known.
    text : str
        "w → × → + → loss".
    """

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    amount: float | None
    share: float | None
    norm: float | None
    text: str


class Paths(Pictured):
    """The contributions to one leaf's gradient, as plain data by the numbers of the trace's nodes and edges.

    Made by `Graph.paths` and `Report.paths`.

    The contribution of an edge is the part of the leaf's gradient g that flows along it: J_sᵀ c for the cotangent c that arrives
    at the tensor s, with J_s = ∂s/∂leaf. It is given as its signed length along g: the number itself if the leaf has one element,
    else ⟨J_sᵀ c, g⟩/‖g‖. The contributions of the edges that leave the leaf add up to `total`, and so do those of all paths. At
    any tensor, the contributions that arrive equal those that its operation passes on towards the leaf.

    Attributes
    ----------
    trace : Trace
        The graph.
    leaf : int
        Number of the leaf.
    name : str
    scalar : bool
        Whether the leaf has one element, so that contributions are the numbers themselves.
    total : float or None
        The leaf's gradient if it has one element, else its norm; None if no sweep was recorded.
    on : tuple of int
        Numbers of the edges on a path.
    amounts : dict of int to float
        Contribution of each edge, if known.
    count : int
        Number of paths.
    paths : tuple of Path
        The paths if there are at most 12 and they are known, the largest contribution first.
    why_not : str
        A sentence on missing contributions; "" if none is missing.
    """

    def __init__(self, trace: Trace, leaf: int, flow: Flow) -> None:
        self.trace, self.leaf = trace, leaf
        node = trace.nodes[leaf]
        self.name = node.name.partition(", ")[0] or node.label
        leaf_to_outputs = leaf_paths(trace, leaf)
        self._flow, self._ways = flow, leaf_to_outputs
        self.scalar = math.prod(node.shape or ()) == 1
        self.total, self.on, self.count = flow.total, leaf_to_outputs.edges, leaf_to_outputs.count
        self.amounts = dict(sorted(flow.amounts.items()))
        self.why_not = flow.why_not
        paths = [
            Path(
                (leaf, *(trace.edges[i].target for i in route.edges)),
                route.edges,
                route.amount,
                self._share(route.amount),
                route.norm,
                text,
            )
            for route, text in zip(flow.routes, self._texts([route.edges for route in flow.routes]), strict=True)
        ]
        self.paths = tuple(sorted(paths, key=lambda path: -abs(path.amount or 0.0)))

        self._noise = ROUNDING if node.dtype in ("float64", "complex128") else COARSE

    # -------------------------------------------------------------------------------------------------------------- data
    def _share(self, amount: float | None) -> float | None:
        return None if amount is None or not self.total else amount / self.total

    @property
    def shares(self) -> dict[int, float]:
        """Contribution of each edge over `total`; empty if the gradient is 0."""
        return {i: share for i, amount in self.amounts.items() if (share := self._share(amount)) is not None}

    @cached_property
    def nodes(self) -> dict[int, float]:
        """Total contribution of each node, if known."""
        amounts = {}
        for node, edges in arriving(self.trace, self._ways).items():
            parts = [self.amounts.get(i) for i in edges]
            if None not in parts:
                amounts[node] = math.fsum(part for part in parts if part is not None)
        return amounts

    @cached_property
    def meetings(self) -> tuple[Meeting, ...]:
        """The tensors at which several cotangents meet, the leaf first."""
        flow, meetings = self._flow, []
        least = SLIGHT * max(map(abs, self.amounts.values()), default=0.0)
        for node, edges in sorted(arriving(self.trace, self._ways).items(), key=lambda item: (item[0] != self.leaf, item[0])):
            if len(edges) > 1:
                pair = (edges[0], edges[1]) if len(edges) == 2 else (-1, -1)
                meetings.append(
                    Meeting(
                        node,
                        tuple(edges),
                        tuple(self.amounts.get(i) for i in edges),
                        tuple(flow.norms.get(i, 0.0) for i in edges),
                        flow.remains.get(node),
                        flow.cosines.get(pair),
                        least,
                    )
                )
        return tuple(meetings)

    def to_dict(self) -> dict[str, Any]:
        """Return the paths as plain data that `json.dumps` accepts.

        Returns
        -------
        dict
            ``{"leaf": …, "name": …, "scalar": …, "total": …, "count": …, "edges": […], "meetings": […], "paths": […],
            "why_not": …}``. `edges` has one entry for each edge on a path: `edge` (its number in the trace), `amount` and `share`
            (None if unknown), and `norm`. Numbers that are not finite are None, and so is a `count` above a million.
        """
        return {
            "leaf": self.leaf,
            "name": self.name,
            "scalar": self.scalar,
            "total": _finite(self.total),
            "count": self.count if self.count <= MANY else None,
            "edges": [
                {
                    "edge": i,
                    "amount": _finite(self.amounts.get(i)),
                    "share": _finite(self._share(self.amounts.get(i))),
                    "norm": _finite(self._flow.norms.get(i)),
                }
                for i in self.on
            ],
            "meetings": [
                {
                    "node": one.node,
                    "edges": list(one.edges),
                    "amounts": [_finite(amount) for amount in one.amounts],
                    "norms": [_finite(norm) for norm in one.norms],
                    "remains": _finite(one.remains),
                    "cosine": _finite(one.cosine),
                    "cancels": one.cancels,
                    "text": self._meeting_text(one) if one.cancels else "",
                }
                for one in self.meetings
            ],
            "paths": [
                {
                    "nodes": list(path.nodes),
                    "edges": list(path.edges),
                    "amount": _finite(path.amount),
                    "share": _finite(path.share),
                    "norm": _finite(path.norm),
                    "text": path.text,
                }
                for path in self.paths
            ],
            "why_not": self.why_not,
        }

    # ------------------------------------------------------------------------------------------------------------- words
    def _texts(self, leaf_paths: Sequence[Sequence[int]]) -> list[str]:
        """Return the paths as text, unabbreviated where two texts would be equal."""
        texts = [self._path_text(edges) for edges in leaf_paths]
        return [self._path_text(way, whole=texts.count(text) > 1) for way, text in zip(leaf_paths, texts, strict=True)]

    def _path_text(self, edges: Sequence[int], *, whole: bool = False) -> str:
        """Return for example "w → × → + → loss"."""
        nodes = self.trace.nodes
        steps = [self.name, *(shorten(nodes[self.trace.edges[i].target].label, STEP) for i in edges)]
        if len(steps) > LONGEST and not whole:
            steps = [*steps[: LONGEST - 3], "…", *steps[-2:]]
        return " → ".join(steps)

    def amount_text(self, amount: float) -> str:
        """Return a contribution as text: "+24" if the leaf has one element, else its share, "+62 %"."""
        if self.scalar or not self.total:
            return with_sign(amount)
        text = share_text(amount / self.total)
        return text if text[0] in "−≈0" else f"+{text}"

    def _meeting_text(self, meeting: Meeting) -> str:
        """Return for example "+3.1 meets −3.1"."""
        known = [amount for amount in meeting.amounts if amount is not None]
        if len(known) == len(meeting.amounts):
            plus, minus = math.fsum(a for a in known if a > 0), math.fsum(a for a in known if a < 0)
            return f"{self.amount_text(plus)} meets {self.amount_text(minus)}"
        if len(meeting.norms) > 2:
            return f"{len(meeting.norms)} parts cancel"
        cosine = "" if meeting.cosine is None else f", cosine {number(meeting.cosine, 2)}"
        return f"‖{number(meeting.norms[0], 3)}‖ meets ‖{number(meeting.norms[1], 3)}‖{cosine}"

    @property
    def head(self) -> tuple[Sentence, ...]:
        """The answer as sentences."""
        name = code(self.name)
        if self.total is None:
            return (say("Paths to ", name, ". ", self.why_not),)
        what = (
            say("The gradient of ", name, f" is {number(self.total)}")
            if self.scalar
            else say("‖gradient‖ of ", name, f" is {number(self.total)}")
        )
        several = f"It came along {count(self.count, 'path') if self.count <= MANY else 'more than a million paths'}"
        said = [say(*what, ". ", several, self._largest(), ".")]
        cancelled = [meeting for meeting in self.meetings if meeting.cancels]
        for meeting in cancelled[:3]:
            node = self.trace.nodes[meeting.node]
            where = "at the leaf itself" if meeting.node == self.leaf else self._place(node)
            cosine = (
                f" (cosine {number(meeting.cosine, 3)})" if meeting.cosine is not None and None not in meeting.amounts else ""
            )
            said.append(say("Cancellation: ", Span(self._meeting_text(meeting), "strong"), cosine, " ", where, "."))
        if len(cancelled) > 3:
            said.append(dim(say(f"and at {len(cancelled) - 3} more tensors.")))
        if self.why_not:
            said.append(dim(say(self.why_not)))
        return tuple(said)

    def _place(self, node: GraphNode) -> Sentence:
        at = node.cell or node.place
        line = "" if at is None else f" ({f'line {at.line}' if at.in_cell else at.where})"
        return say("at ", code(node.name or node.label), line)

    def _largest(self) -> str:
        """Return for example "; the largest part, +83 %, by w → × → loss"."""
        if len(self.paths) < 2 or self.paths[0].amount is None or not self.paths[0].amount:
            return ""
        return f"; the largest part, {self.amount_text(self.paths[0].amount)}, by {self.paths[0].text}"

    def table(self) -> Table:
        """Return a table of the paths if they are few, else of the edges that leave the leaf: contribution, share and norm."""
        if self.paths:
            lines = [(path.text, path.amount, path.norm) for path in self.paths]
        else:
            first = [i for i in self.on if self.trace.edges[i].source == self.leaf]
            lines = [(f"{self._path_text([i])} …", self.amounts.get(i), self._flow.norms.get(i)) for i in first]
            lines.sort(key=lambda line: -abs(line[1] or 0.0))
        columns = (
            Column(say(Span("path" if self.paths else "way out of the leaf", "dim")), 0.5),
            Column(say(Span("contribution", "gradient")), 0.16, right=True),
            Column(say(Span("share", "gradient")), 0.12, right=True),
            *(() if self.scalar else (Column(say(Span("‖part‖", "gradient")), 0.14, right=True),)),
        )
        least = max((abs(amount) for _, amount, _ in lines if amount is not None), default=0.0) * self._noise
        cells = tuple(
            (
                say(code(text)),
                say(
                    ("not known" if self.total else "–")
                    if amount is None
                    else "≈ 0"
                    if 0 < abs(amount) < least
                    else with_sign(amount)
                ),
                say("" if (share := self._share(amount)) is None else share_text(share)),
                *(() if self.scalar else (say("" if norm is None else number(norm)),)),
            )
            for text, amount, norm in lines[:GLANCE]
        )
        foot: Sentence = say(f"{len(lines) - GLANCE} more: ", code(".amounts")) if len(lines) > GLANCE else ()
        return Table(columns, cells, self.head, foot)

    def text(self) -> str:
        """Return text and table for a terminal."""
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Paths to {self.name}: {to_text(self.head[0])}>"

    # ----------------------------------------------------------------------------------------------------------- picture
    @cached_property
    def _visible_graph(self) -> tuple[Sequence[GraphNode], Sequence[GraphEdge], dict[int, int]]:
        """Return the nodes and edges of the picture, and a map from the trace's edges to the picture's."""
        nodes: Sequence[GraphNode] = [replace(node, members=(i,)) for i, node in enumerate(self.trace.nodes)]
        edges: Sequence[GraphEdge] = self.trace.edges
        if len(nodes) > GLANCE:  # leave out nodes that are on no path
            through = [i for i in range(len(nodes)) if self._ways.below[i] and self._ways.above[i]]
            inside = [edges[i] for i in self.on]
            nodes, edges = renumber(nodes, inside, through)
            leaf = [i for i, node in enumerate(nodes) if node.members == (self.leaf,)]
            nodes, edges = fold(nodes, edges, GLANCE, self.trace.layers, leaf)
        place = {member: i for i, node in enumerate(nodes) for member in node.members}
        drawn: dict[tuple[int, int], list[int]] = {}
        for i, edge in enumerate(edges):
            drawn.setdefault((edge.source, edge.target), []).append(i)
        where = {}
        for i in self.on:
            edge = self.trace.edges[i]
            there = drawn.get((place.get(edge.source, -1), place.get(edge.target, -1)), [])
            same = [k for k in there if edges[k].argument == edge.argument]
            if there:
                where[i] = (same or there)[0]
        return nodes, edges, where

    @cached_property
    def _drawing(self) -> Drawing:
        nodes, edges, where = self._visible_graph
        sums: dict[int, list[float | None]] = {}
        for i, k in where.items():
            sums.setdefault(k, []).append(self.amounts.get(i))
        amounts = {k: None if None in parts else math.fsum(p for p in parts if p is not None) for k, parts in sums.items()}
        most = max((abs(a) for a in amounts.values() if a is not None and math.isfinite(a)), default=0.0)
        marks: dict[int, EdgeMark] = {}
        uses: dict[int, int] = {}
        for edge in edges:
            uses[edge.source] = uses.get(edge.source, 0) + 1
        for k, amount in amounts.items():
            if amount is None or not math.isfinite(amount):
                marks[k] = EdgeMark(THIN, "?" if uses[edges[k].source] > 1 else "")
            else:
                wide = THIN + (THICK - THIN) * (abs(amount) / most if most else 0.0)
                forks = uses[edges[k].source] > 1 or nodes[edges[k].target].kind == "output"
                marks[k] = EdgeMark(wide, self.amount_text(amount) if forks else "", amount < 0)
        place = {member: i for i, node in enumerate(nodes) for member in node.members}
        beside = {
            place[meeting.node]: (self._meeting_text(meeting),)
            for meeting in self.meetings
            if meeting.cancels and meeting.node in place and nodes[place[meeting.node]].count == 1
        }
        note = f"paths to {shorten(self.name, 40)}: what each edge contributed to its gradient"
        if len(nodes) < len(self.trace.nodes):
            note += f", {len(self.trace.nodes)} nodes folded to {len(nodes)}"
        dashed = "negative" if self.scalar else "against the gradient"
        below = f"thick: much · dashed: {dashed}" if any(mark.against for mark in marks.values()) else ""
        alt = first_lines(f"{note}. {' '.join(map(to_text, self.head))}", 2_000)
        return paint(nodes, edges, note=note, text=self.text(), alt=alt, marks=marks, beside=beside, legend=below)

    def drawing(self) -> Drawing:
        """Return the picture, for combining it with others."""
        return self._drawing

    def html(self) -> str:
        """Return text, table and picture on one card."""
        return card(self.table(), self._drawing)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = self._drawing.bundle()
        return bundle | {"text/html": self.html(), "text/latex": self.table().latex(), "text/plain": self.text()}


def with_sign(amount: float) -> str:
    """Return for example "+3.1", "−3.1" or "0"."""
    text = number(amount, 4)
    return text if not amount or text[0] in "−N" else f"+{text}"


def leaf_called(trace: Trace, wanted: str, asked: str) -> int:
    """Return the number of the leaf that has this name.

    Raises
    ------
    ValueError
        If no leaf has it. The error lists the names.
    """
    leaves = {i: node for i, node in enumerate(trace.nodes) if node.kind == "leaf"}
    for i, node in leaves.items():
        if wanted == node.label or wanted in node.name.split(", "):
            return i
    names = [node.name.partition(", ")[0] or node.label for node in leaves.values()]
    raise ValueError(f"{asked}: no leaf of this graph is called {wanted!r}; there are {join_names(names) or 'none'}.")


def _finite(x: float | None) -> float | None:
    return None if x is None or not math.isfinite(x) else float(x)

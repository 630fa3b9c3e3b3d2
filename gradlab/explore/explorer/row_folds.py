"""The rows of Code and Modules in the live explorer: a tree that opens and closes, drawn by `rails` for each state.

The address of a row is the address of its parent and its position among the siblings: "0.2.1". A node with its own row inside
another row is "0.2.n17", and the rest, if there are too many, is "0.2.more".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from gradlab.explore.explorer.columns import members_of, ranges
from gradlab.explore.explorer.outline import Row
from gradlab.explore.graph.rails import came_text, gradient_text, paint_rows
from gradlab.explore.graph.rows import GraphRow, Part, RowMaker
from gradlab.explore.markup import count
from gradlab.explore.trace.data import Trace

MOST, MORE = 100, 200  # nodes of a row when it is opened, and how many are added each time
ROOM = 800  # rows of a picture
SCREEN = 16  # rows that are visible at once
WIDTH = 600.0  # of the first picture, before the width of the view is known
DEEPEST = 12
DESCRIBED = 12  # rows in the description for a screen reader, which can also read them one by one


class RowFolds:
    """Rows that can be opened and closed.

    Parameters
    ----------
    trace : Trace
    outline : list
        The tree of rows; see `outline`.
    modules : bool
        True for rows of modules, which are open at first if they fit on a screen.
    """

    def __init__(self, trace: Trace, outline: Sequence[Row], modules: bool) -> None:
        self.outline, self._trace, self._modules = outline, trace, modules
        self._maker = RowMaker(trace, trace.nodes, trace.edges)
        self._given: defaultdict[int, list[int]] = defaultdict(list)  # the leaves that are inputs of each node
        for edge in trace.edges:
            if trace.nodes[edge.source].kind == "leaf":
                self._given[edge.target].append(edge.source)
        self._operations: dict[str, list[int]] = {}  # of each row, by address
        self._ranges: dict[tuple[str, int], list[int]] = {}  # of members, by row and number of members

    # ---------------------------------------------------------------------------------------------------------- open rows
    def first(self) -> set[str]:
        """Return the rows that are open at first: the largest modules, and the first of equal ones, while all fit on a screen."""
        open_: set[str] = set()
        while self._modules:
            rows = self._tree(open_)
            closed = [(key, row) for key, row in rows if row[6] and key not in open_ and row[0] != "line"]
            fitting = [(key, row) for key, row in closed if len(row[6]) == 1 or len(rows) + len(row[6]) <= SCREEN]
            if not fitting:
                break
            largest = max((row for _, row in fitting), key=lambda row: sum(row[5][1::2]))
            open_.add(next(key for key, row in fitting if _labels_in(row) == _labels_in(largest)))
        return open_

    def to_depth(self, depth: int) -> set[str]:
        """Return all rows down to a depth."""
        open_: set[str] = set()
        for _ in range(min(depth, DEEPEST)):
            open_ |= {key for key, row in self._tree(open_) if row[0] != "node"}
        return open_

    def around(self, node: int) -> tuple[set[str], dict[str, int]]:
        """Return the rows that contain a node, and the number of nodes that the innermost row must show to include it."""
        open_: set[str] = set()
        while True:
            within = {key: row for key, row in self._tree(open_) if row[0] != "node" and node in members_of(row[5])}
            if within.keys() <= open_:
                break
            open_ |= within.keys()
        more = {
            key: place + 1
            for key, row in within.items()
            if not row[6] and node in (nodes := self._operations_in(key, row)) and (place := nodes.index(node)) >= MOST
        }
        return open_, more

    def extend(self, more: Mapping[str, int], key: str) -> dict[str, int]:
        """Return the numbers of nodes that open rows show, with more nodes for one row."""
        return {**more, key: more.get(key, MOST) + MORE}

    def _tree(self, open_: Collection[str]) -> list[tuple[str, Row]]:
        """Return the visible rows of the outline from top to bottom, with their addresses."""
        found: list[tuple[str, Row]] = []

        def walk(rows: Sequence[Row], prefix: str) -> None:
            for k, row in enumerate(rows):
                key = f"{prefix}{k}"
                found.append((key, row))
                if key in open_:
                    walk(row[6], f"{key}.")

        walk(self.outline, "")
        return found

    # --------------------------------------------------------------------------------------------------------- the picture
    def figure(
        self, open_: Iterable[str] | None = None, more: Mapping[str, int] | None = None, width: float = WIDTH
    ) -> dict[str, Any]:
        """Return the picture with these rows open, for a live view.

        Parameters
        ----------
        open_ : iterable of str, optional
            Addresses of rows; unknown ones are ignored. Default: the result of `first`.
        more : mapping of str to int, optional
            The number of nodes that an open row shows, if more than usual.
        width : float
            The available width in pixels.

        Returns
        -------
        dict
            "svg", "width" and "height"; "cut": whether a wider picture would show more; "open" and "more": the state; "rows": for
            each `data-row` of the SVG its "key", "label", "at" (the node of the trace with its output, −1 for none), "members"
            (including leaves that only it uses, as `columns.ranges`), "depth", "open" (null if it is empty) and "spoken".
        """
        wanted, more = self.first() if open_ is None else set(open_), dict(more or {})
        parts = self._parts(wanted, more)
        rows = self._maker.rows(parts)
        what = "modules" if self._modules else "code"
        alt = f"{count(len(rows), 'row')} of {what}\n{'; '.join(row.label for row in rows[:DESCRIBED])}"
        drawing, cut = paint_rows(rows, note="", alt=alt, width=width)
        return {
            "svg": drawing.inline(role="group"),
            "width": round(drawing.width, 1),
            "height": round(drawing.height, 1),
            "cut": cut,
            "open": [row.key for row in rows if row.opened],
            "more": more,
            "rows": [self._row_data(rows, here) for here in range(len(rows))],
        }

    def _parts(self, wanted: Collection[str], more: Mapping[str, int]) -> list[Part]:
        """Return the parts that become rows."""
        found: list[Part] = []

        def walk(rows: Sequence[Row], prefix: str, depth: int) -> None:
            for k, row in enumerate(rows):
                kind, label, small, line, where = row[:5]
                key = f"{prefix}{k}"
                nodes = self._operations_in(key, row)
                if kind == "node":
                    found.append(self._of_node(row[5][0], key, depth))
                    continue
                opens = bool(row[6]) or len(nodes) > 1
                is_open = opens and key in wanted
                copies = self._norms(key, row[6]) if kind == "stack" and not is_open else ()
                members = [] if is_open else nodes
                found.append(
                    Part(kind, label, members, small, line, where or label, copies, depth, is_open if opens else None, key)
                )
                if not is_open:
                    continue
                if row[6]:
                    walk(row[6], f"{key}.", depth + 1)
                    continue
                shown = nodes[: max(0, min(more.get(key, MOST), ROOM - len(found)))]
                found.extend(self._of_node(i, f"{key}.n{i}", depth + 1) for i in shown)
                if rest := nodes[len(shown) :]:
                    label = f"{len(rest):,} more"
                    found.append(Part("more", label, rest, "", "", "more", (), depth + 1, False, f"{key}.more"))

        walk(self.outline, "", 0)
        return found

    def _operations_in(self, key: str, row: Row) -> list[int]:
        if key not in self._operations:
            self._operations[key] = [i for i in members_of(row[5]) if self._trace.nodes[i].kind != "leaf"]
        return self._operations[key]

    def _norms(self, key: str, copies: Sequence[Row]) -> tuple[float, ...]:
        """Return the norms of the gradients of the outputs of equal modules if all are known, else ()."""
        ends = [self._maker.end(self._operations_in(f"{key}.{k}", copy)) for k, copy in enumerate(copies)]
        norms = [value.norm for i in ends if i >= 0 and (value := self._trace.nodes[i].gradient) is not None]
        return tuple(norms) if len(norms) == len(copies) else ()

    def _of_node(self, i: int, key: str, depth: int) -> Part:
        node = self._trace.nodes[i]
        place = node.place or node.cell
        label = f"{node.name} = {node.label}" if node.name else node.label
        line = "" if place is None else str(place.line)
        return Part("operation", label, [i], node.operation, line, node.name or node.label, (), depth, None, key)

    def _member_ranges(self, key: str, members: Sequence[int]) -> list[int]:
        """Return the ranges of some nodes and of the leaves that only they use."""
        known = key, len(members)
        if known not in self._ranges:
            inside = set(members)
            given = {leaf for i in members for leaf in self._given.get(i, ())}
            own = {leaf for leaf in given if inside.issuperset(self._maker.uses[leaf])}
            self._ranges[known] = ranges(sorted(inside | own))
        return self._ranges[known]

    def _row_data(self, rows: Sequence[GraphRow], here: int) -> dict[str, Any]:
        row = rows[here]
        members = self._operations[row.key] if row.opened else row.members
        came = came_text(rows, here)
        number = gradient_text(row)
        spoken = (
            row.label,
            row.small,
            row.line and f"line {row.line}",
            number and (number if number == "no gradient" else f"norm of the gradient {number}"),
            came and f"came from {came}",
        )
        return {
            "key": row.key or f"cut{row.line}",
            "at": self._maker.end(members) if row.opened else row.end,
            "members": [members[0], 1] if len(members) == 1 and row.opened is None else self._member_ranges(row.key, members),
            "label": row.label,
            "depth": row.depth,
            "open": row.opened,
            "spoken": ", ".join(filter(None, spoken)),
        }


def _labels_in(row: Row) -> list[str]:
    return [inner[1] for inner in row[6]]

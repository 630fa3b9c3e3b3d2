"""Explain the gradient of a leaf: a sentence, the lines concerned, and a small graph.

If a finding of the doctor concerns the leaf, it is the answer. Otherwise the recorded sweep gives it: where the history ends if
the gradient is None; the operation where it became 0, NaN or ∞; the operation with the largest factor if it is much smaller or
larger than the other gradients; and for any other gradient, its path and its share.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from gradlab.explore.graph.contributions import arriving, leaf_paths
from gradlab.explore.graph.listing import join_names
from gradlab.explore.graph.painting import share_text
from gradlab.explore.graph.paths import Paths
from gradlab.explore.graph.torn_edges import cut_words
from gradlab.explore.markup import Sentence, Span, code, number, parse_backticks, say, to_text
from gradlab.explore.report.explanation import Explanation, inline_code, where
from gradlab.explore.report.path_queries import paths_of
from gradlab.explore.report.table import TensorRow
from gradlab.explore.trace.data import Cut, GraphEdge, GraphNode, Line, Trace

FAR = 1e4  # a gradient is tiny or large if its root mean square differs by this factor from the median of the other leaves
MAX_LINES = 6
KINDS = {  # kinds of findings that explain a gradient without naming the leaf
    "nan": ("nan-", "inf-", "overflow"),
    "zero": ("cancelled", "zero-factor", "underflow", "dead", "saturated", "cut", "detach"),
    "tiny": ("vanishing", "saturated", "recurrent", "underflow"),
    "large": ("exploding", "recurrent", "inf-", "sum-for-mean"),
}


def why(trace: Trace, rows: Sequence[TensorRow], findings: Sequence[Any], asked: str, output: Any = None) -> Explanation:
    """Explain the gradient of a tensor; see `Report.why`."""
    name, at = _find_tensor(trace, rows, asked)
    row = next((row for row in rows if row.name == name), None)
    kind = _kind(trace, rows, at, row)
    finding = _finding(trace, findings, name, kind, at)
    if finding is not None:
        return _explain_by_finding(trace, name, kind, at, finding)
    builder = _ExplanationBuilder(trace, name, kind, at, row)
    if kind == "none":
        return builder.explain_none()
    if at is None:
        assert row is not None
        return builder.explanation(say("its graph is not known here."), say("its graph is not known here."), [])
    if kind in ("zero", "nan"):
        return builder.explain_zero_or_nan()
    if kind in ("tiny", "large"):
        return builder.explain_far()
    return builder.explain_ordinary(paths_of(trace, trace.nodes[at].label, output) if trace.nodes[at].kind == "leaf" else None)


def _find_tensor(trace: Trace, rows: Sequence[TensorRow], asked: str) -> tuple[str, int | None]:
    """Return the full name of a tensor, which may be given by a unique end, and its node."""
    if not isinstance(asked, str):
        raise TypeError(f"report.why(name) expects the name of a tensor, got {type(asked).__name__}.")
    by_name: dict[str, int | None] = {row.name: None for row in rows}
    for i, node in enumerate(trace.nodes):
        for one in node.name.split(", ") if node.name else [node.label] if node.kind == "leaf" else []:
            if node.kind != "output" and by_name.get(one) is None:
                by_name[one] = i
    if asked in by_name:
        return asked, by_name[asked]
    data = {operand.text for node in trace.nodes for operand in node.operands if operand.kind == "input" and operand.text}
    if asked in data:
        return asked, None
    ends = [one for one in by_name if f".{_plain(one)}".endswith(f".{_plain(asked)}")]
    if len(ends) == 1:
        return ends[0], by_name[ends[0]]
    if ends:
        raise ValueError(f"report.why({asked!r:.60}): several names end with this: {join_names(ends)}. Give one of them.")
    raise ValueError(
        f"report.why({asked!r:.60}): this report has no tensor of this name; it has {join_names(list(by_name)) or 'none'}."
    )


def _plain(name: str) -> str:
    """Return "model[0].weight" as "model.0.weight"."""
    return name.replace("[", ".").replace("]", "")


def _kind(trace: Trace, rows: Sequence[TensorRow], at: int | None, row: TensorRow | None) -> str:
    """Return the kind of gradient to explain, as in `Explanation.kind`."""
    own = trace.nodes[at].gradient if at is not None else None
    if row is not None and row.is_leaf:
        if row.gradient is None and own is None:
            return "none"
        odd = own.odd if own is not None else bool(row.gradient and (row.gradient.nans or row.gradient.infs))
    elif own is None:
        return "none"  # a tensor that requires no gradient, or that the sweep did not reach
    else:
        odd = own.odd
    if odd:
        return "nan"
    norm = own.norm if own is not None else float(row.gradient.norm) if row is not None and row.gradient is not None else 0.0
    if norm == 0:
        return "zero"
    size = math.prod((trace.nodes[at].shape if at is not None else row.shape if row is not None else ()) or ())
    others = [
        one.gradient.norm / math.sqrt(max(1, math.prod(one.shape)))
        for one in rows
        if one is not row and one.gradient is not None and 0 < one.gradient.norm < math.inf
    ]
    if len(others) > 1:
        own_size = norm / math.sqrt(max(1, size))
        low, high = statistics.median_low(others), statistics.median_high(others)
        return "tiny" if own_size * FAR < low else "large" if own_size > FAR * high else "ordinary"
    return "ordinary"


def _finding(trace: Trace, findings: Sequence[Any], name: str, kind: str, at: int | None) -> Any:
    """Return the finding that concerns the leaf: it names the leaf, or it is on its path and explains this kind of gradient."""
    for finding in findings:
        if name in re.findall(r"`([^`]*)`", str(finding.message)):
            return finding
    if at is None or kind not in KINDS:
        return None
    on = {trace.edges[i].target for i in leaf_paths(trace, at).edges} | {at}
    for finding in findings:
        if finding.node in on and str(finding.kind).startswith(KINDS[kind]):
            return finding
    return None


def _explain_by_finding(trace: Trace, name: str, kind: str, at: int | None, finding: Any) -> Explanation:
    lines = [i for i in (finding.line, *getattr(finding, "lines", ())) if i is not None]
    places = [_cell_line(trace, i) for i in dict.fromkeys(lines)]
    nodes: tuple[int, ...] = ()
    if at is not None:
        nodes = _find_path(trace, at, finding.node) if finding.node is not None and finding.node != at else ()
        nodes = nodes or (at, *([finding.node] if finding.node not in (None, at) else []))
    bare = say("the doctor found ", code(str(finding.kind)), " there.")
    said = say(code(name), ": ", parse_backticks(str(finding.message)))
    return Explanation(
        name, kind, said, say(code(name), ": ", bare), tuple(places)[:MAX_LINES], str(finding.fix or ""), finding, trace, nodes
    )


def _cell_line(trace: Trace, i: int) -> Line:
    """Return a line of the cell by its number."""
    known = next(
        (at for node in trace.nodes if (at := node.cell or node.place) is not None and at.in_cell and at.line == i), None
    )
    if known is not None:
        return known
    text = trace.source[i - 1].strip() if 0 < i <= len(trace.source) else ""
    return Line(f"cell line {i}", i, i, None, text, text, in_cell=True)


class _ExplanationBuilder:
    """Builder of the explanation of one leaf from the trace."""

    def __init__(self, trace: Trace, name: str, kind: str, at: int | None, row: TensorRow | None) -> None:
        self.trace, self.name, self.kind, self.at, self.row = trace, name, kind, at, row
        self.found = leaf_paths(trace, at) if at is not None else None

    def explanation(
        self, said: Sentence, bare: Sentence, nodes: Sequence[int], fix: str = "", lines: Sequence[Line] = ()
    ) -> Explanation:
        """Return the explanation."""
        places = [
            *lines,
            *(at for i in reversed(nodes) if (at := self.trace.nodes[i].cell or self.trace.nodes[i].place) is not None),
        ]
        unique = sorted({(not line.in_cell, line.line, line.where): line for line in places}.items())
        return Explanation(
            self.name,
            self.kind,
            said,
            bare,
            tuple(line for _, line in unique[:MAX_LINES]),
            fix,
            None,
            self.trace,
            tuple(dict.fromkeys(nodes)),
        )

    # -------------------------------------------------------------------------------------------------------------- None
    def explain_none(self) -> Explanation:
        """Explain a missing gradient by the cut in the history, or by `requires_grad`."""
        name = code(self.name)
        cut = self._cut()
        if cut is not None:
            how = cut_words(cut).removeprefix("cut by ").partition(", line")[0]
            there = "" if cut.place is None else f" ({where(cut.place)})"
            said = say(
                name,
                " got no gradient: it affects the result only through ",
                code(how),
                there,
                ", which stops the gradient.",
            )
            fix = f"Remove `{how}` there if {inline_code(self.name)} should be trained." if how in (".detach()", ".data") else ""
            users = [i for i in cut.reaches if 0 <= i < len(self.trace.nodes)]
            return self.explanation(said, said, users[:1], fix, [cut.place] if cut.place is not None else [])
        reason = next((to_text(note.text) for note in (self.row.notes if self.row is not None else ()) if note.serious), "")
        data = self.row is None and self.at is None
        if data or "requires_grad is False" in reason:
            said = say(name, " got no gradient: its ", code("requires_grad"), " is False.")
            fix = (
                f"Call {inline_code(f'{self.name}.requires_grad_()')} before it is used."
                if data or (self.row is not None and self.row.is_leaf)
                else ""
            )
            return self.explanation(said, said, [], fix)
        if reason.startswith("not in the graph") or not reason:
            said = say(name, " got no gradient: the result does not depend on it.")
        else:
            said = say(name, f" got no gradient: {reason.removeprefix('no gradient: ').removesuffix('.')}.")
        return self.explanation(said, said, [self.at] if self.at is not None else [])

    def _cut(self) -> Cut | None:
        """Return the cut between the leaf and the result."""
        cuts = [operand.cut for node in self.trace.nodes for operand in node.operands if operand.cut is not None]
        for cut in (*cuts, *self.trace.cuts):
            if self.name in cut.leaves or (self.at is not None and self.at in cut.behind):
                return cut
        return None

    # --------------------------------------------------------------------------------------------------- zero, NaN and ∞
    def explain_zero_or_nan(self) -> Explanation:
        """Explain a zero, NaN or infinite gradient by the operation where it became so."""
        assert self.at is not None
        assert self.found is not None
        zero = self.kind == "zero"
        name, nodes = code(self.name), self.trace.nodes
        state = "exactly 0" if zero else "not finite (NaN or ∞)"
        there = self._where_it_became(zero)
        parts = arriving(self.trace, self.found).get(self.at, [])
        norms = [g.norm for i in parts if (g := self.trace.edges[i].gradient) is not None]
        if zero and len(norms) > 1 and all(norms) and there is None:
            said = say(
                "The gradient of ", name, " is exactly 0: parts of norm ", " and ".join(map(number, norms[:3])), " cancel there."
            )
            bare = say("The gradient of ", name, f" is exactly 0: {len(norms)} parts cancel there.")
            return self.explanation(said, bare, [self.at, *(self.trace.edges[i].target for i in parts[:3])])
        if there is None:
            return self._from_the_start(state)
        node = nodes[there]
        way = _find_path(self.trace, self.at, there)
        upstream = node.gradient
        sources = [nodes[edge.source] for edge in self.trace.edges if edge.target == there]
        odd = next((one for one in sources if one.value is not None and one.value.odd), None)
        small = next(
            (one for one in sources if one.value is not None and (one.value.all_zero if zero else one.value.zeros)), None
        )
        size = "" if upstream is None else f" (norm {number(upstream.norm)})"
        does = "blocks the upstream gradient" if zero else "turns the upstream gradient into NaN or ∞"
        because: Sentence = ()
        if not zero and odd is not None:
            because = say(", where ", code(_node_name(odd)), " is not finite")
        elif small is not None:
            because = say(", where ", code(_node_name(small)), " is 0")
        said = say("The gradient of ", name, f" is {state}: ", code(_node_name(node)), *_at(node), f" {does}{size}", because, ".")
        bare = say("The gradient of ", name, f" is {state}: ", code(node.operation), f" {does}.")
        return self.explanation(said, bare, way)

    def _from_the_start(self, state: str) -> Explanation:
        """Explain a gradient that is zero, NaN or infinite from the start of the sweep, possibly because of a value."""
        assert self.at is not None
        nodes = self.trace.nodes
        for i, node in enumerate(nodes):  # each after what it is computed from
            sources = [nodes[edge.source].value for edge in self.trace.edges if edge.target == i]
            if (
                self.kind == "nan"
                and node.value is not None
                and node.value.odd
                and not any(v is not None and v.odd for v in sources)
            ):
                said = say(
                    "The gradient of ",
                    code(self.name),
                    f" is {state}: the value of ",
                    code(_node_name(node)),
                    *_at(node),
                    " is, too.",
                )
                return self.explanation(
                    said, say("The gradient of ", code(self.name), f" is {state}."), _find_path(self.trace, self.at, i) or [i]
                )
        said = say("The gradient of ", code(self.name), f" is {state}, as is every gradient on its path from the result.")
        return self.explanation(
            said, said, _find_path(self.trace, self.at, self.trace.outputs[0]) if self.trace.outputs else [self.at]
        )

    def _where_it_became(self, zero: bool) -> int | None:
        """Return the operation nearest to the leaf whose upstream gradient is not zero, or finite, but whose result is."""
        assert self.at is not None
        assert self.found is not None
        by_source = arriving(self.trace, self.found)

        def is_so(value: Any) -> bool:
            return value is not None and (value.all_zero if zero else value.odd)

        waiting, seen = [self.at], {self.at}
        for node in waiting:  # grows during the iteration
            for i in by_source.get(node, ()):
                edge = self.trace.edges[i]
                target = self.trace.nodes[edge.target]
                if not is_so(edge.gradient) or target.kind == "output" or edge.target in seen:
                    continue
                if target.gradient is not None and not is_so(target.gradient):
                    return edge.target
                seen.add(edge.target)
                waiting.append(edge.target)
        return None

    # ------------------------------------------------------------------------------------------------------ far from 1
    def explain_far(self) -> Explanation:
        """Explain a tiny or large gradient by the operation with the largest factor."""
        assert self.at is not None
        assert self.found is not None
        nodes, name = self.trace.nodes, code(self.name)
        way = _find_path(self.trace, self.at, self.trace.outputs[0], heavy=True) if self.trace.outputs else (self.at,)
        tiny = self.kind == "tiny"
        worst, factor = None, 1.0
        for low, high in pairwise(way):
            before, after = nodes[high].gradient, nodes[low].gradient
            if before is None or after is None or nodes[high].kind == "output" or not before.norm:
                continue
            here = after.norm / before.norm
            if (here < factor) if tiny else (here > factor):
                worst, factor = high, here
        own = nodes[self.at].gradient
        state = f"much {'smaller' if tiny else 'larger'} than the others"
        size = "" if own is None else f" (‖gradient‖ {number(own.norm)})"
        if worst is None:
            said = say("The gradient of ", name, f" is {state}{size}; no single operation on its path explains this.")
            return self.explanation(said, say("The gradient of ", name, f" is {state}."), list(way))
        node = nodes[worst]
        most = f"it {'decreases' if tiny else 'increases'} most at "
        change = f", where the norm changes by a factor of {number(factor, 3)}."
        said = say("The gradient of ", name, f" is {state}{size}; {most}", code(_node_name(node)), *_at(node), change)
        bare = say("The gradient of ", name, f" is {state}; {most}", code(node.operation), ".")
        return self.explanation(said, bare, list(way[: way.index(worst) + 1]))

    # ------------------------------------------------------------------------------------------------------------ others
    def explain_ordinary(self, paths: Paths | None) -> Explanation:
        """Describe the path of the gradient and its share."""
        assert self.at is not None
        assert self.found is not None
        nodes, name = self.trace.nodes, code(self.name)
        own = nodes[self.at].gradient
        of = ""
        if own is not None:
            of = f" ({number(own.numbers[0])})" if own.size == 1 and own.numbers else f" (‖gradient‖ {number(own.norm)})"
        if paths is not None and paths.paths:
            best = paths.paths[0]
            way, steps = best.nodes, best.text
            share = "" if best.amount is None else f"{paths.amount_text(best.amount)} of it by "
            several = f" along {paths.count} paths"
        else:
            way = _find_path(self.trace, self.at, self.trace.outputs[0], heavy=True) if self.trace.outputs else (self.at,)
            if paths is not None and paths.amounts:
                way = _heaviest_path(paths) or way
            steps = " → ".join([self.name, *(nodes[i].label for i in way[1:])][:9]) + (" …" if len(way) > 9 else "")
            share = ""
            several = " along one path" if self.found.count == 1 else " mainly by this path"
        fork = () if paths is not None and paths.paths else self._fork(way)
        said = say("The gradient of ", name, of, f" came{several}: {share}", code(steps), fork, ".")
        bare = say(
            "The gradient of ",
            name,
            f" came{several}: ",
            code(" → ".join([self.name, *(nodes[i].operation or nodes[i].name or "output" for i in way[1:])])),
            ".",
        )
        return self.explanation(said, bare, list(way))

    def _fork(self, way: Sequence[int]) -> Sentence:
        """Return the known share at the first node where several gradients add up."""
        for low, high in pairwise(way):
            meeting = [edge for edge in self.trace.edges if edge.source == low]
            share = sum(edge.share or 0.0 for edge in meeting if edge.target == high)
            if len({edge.target for edge in meeting}) > 1 and None not in [edge.share for edge in meeting]:
                node, other = self.trace.nodes[low], self.trace.nodes[high]
                return say(
                    "; at ",
                    code(_node_name(node)),
                    *_at(node),
                    f" {share_text(share)} of the gradient is from ",
                    code(_node_name(other)),
                )
        return ()


def _heaviest_path(paths: Paths) -> tuple[int, ...]:
    """Return the path that follows the largest contribution at each tensor."""
    by_source = arriving(paths.trace, leaf_paths(paths.trace, paths.leaf))
    way, node = [paths.leaf], paths.leaf
    while by_source.get(node):
        known = paths.amounts if all(i in paths.amounts for i in by_source[node]) else {}
        node = paths.trace.edges[max(by_source[node], key=lambda i: abs(known.get(i, paths.trace.edges[i].share or 0.0)))].target
        way.append(node)
    return tuple(way)


def _find_path(trace: Trace, start: int, end: int, *, heavy: bool = False) -> tuple[int, ...]:
    """Return a shortest path from one node to another, or () if there is none. If `heavy`, return the path that follows the
    largest gradients."""
    before: dict[int, int] = {start: start}
    after: dict[int, list[GraphEdge]] = {}
    for edge in trace.edges:
        after.setdefault(edge.source, []).append(edge)
    if heavy:
        way, node = [start], start
        while after.get(node):
            node = max(after[node], key=lambda edge: edge.gradient.norm if edge.gradient is not None else 0.0).target
            way.append(node)
        return tuple(way)
    waiting = [start]
    for node in waiting:  # grows during the iteration
        if node == end:
            break
        for edge in after.get(node, ()):
            if edge.target not in before:
                before[edge.target] = node
                waiting.append(edge.target)
    if end not in before:
        return ()
    way = [end]
    while way[-1] != start:
        way.append(before[way[-1]])
    return tuple(reversed(way))


def _node_name(node: GraphNode) -> str:
    return node.name.partition(", ")[0] or node.label


def _at(node: GraphNode) -> tuple[Span, ...]:
    line = node.cell or node.place
    operation = f", {node.operation}" if node.operation and node.kind == "operation" else ""
    return (Span(f" ({where(line)}{operation})"),) if line is not None else (Span(f" ({node.operation})"),) if operation else ()

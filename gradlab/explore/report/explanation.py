"""The explanation of a gradient, as it is displayed and as Markdown for other places."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.listing import listing
from gradlab.explore.graph.painting import EdgeMark, paint
from gradlab.explore.markup import Sentence, Span, code, number, parse_backticks, say, to_text
from gradlab.explore.report.table import Column, Table, card
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, Trace, renumber

MAX_NODES = 12  # of the picture
MAX_NEIGHBOURS = 3
PACKAGES = ("gradlab", "torch", "numpy")


@dataclass(frozen=True)
class Explanation:
    """The explanation of a tensor's gradient: a sentence, lines and a small graph. Returned by `Report.why`.

    Attributes
    ----------
    name : str
    kind : str
        "none", "zero", "nan" (or infinite), "tiny", "large" or "ordinary".
    answer : Sentence
        The cause.
    bare : Sentence
        The answer without numbers and source.
    lines : tuple of Line
        The lines concerned.
    fix : str
        Advice, with code between backticks; "" if there is none.
    finding : Finding or None
        The doctor's finding, if the answer comes from it.
    trace : Trace
        The graph.
    nodes : tuple of int
        The nodes concerned, starting at the leaf; the last is the cause.
    """

    name: str
    kind: str
    answer: Sentence
    bare: Sentence
    lines: tuple[Line, ...]
    fix: str
    finding: Any
    trace: Trace
    nodes: tuple[int, ...]

    @property
    def sentence(self) -> str:
        """The cause, as text."""
        return to_text(self.answer).strip()

    # ----------------------------------------------------------------------------------------------------------- picture
    @cached_property
    def _part(self) -> tuple[Sequence[GraphNode], Sequence[GraphEdge]]:
        """The nodes concerned and their neighbours, folded if there are many."""
        trace, chosen = self.trace, set(self.nodes)
        near = [edge.source for edge in trace.edges if edge.target in chosen and trace.nodes[edge.source].kind == "leaf"]
        last = self.nodes[-1]
        near += [edge.source for edge in trace.edges if edge.target == last][:MAX_NEIGHBOURS]
        near += [edge.target for edge in trace.edges if edge.source == last][:MAX_NEIGHBOURS]
        shown = sorted(chosen | (set(near) if len(chosen) <= MAX_NODES // 2 else set()))
        nodes = [replace(node, members=(i,)) for i, node in enumerate(trace.nodes)]
        kept = set(shown)
        inside = [edge for edge in trace.edges if edge.source in kept and edge.target in kept]
        part, edges = renumber(nodes, inside, shown)
        if len(part) > MAX_NODES:
            ends = [i for i, node in enumerate(part) if node.members[0] in (self.nodes[0], self.nodes[-1])]
            return fold(part, edges, MAX_NODES, trace.layers, [part[i].members[0] for i in ends])
        return part, edges

    @cached_property
    def drawing(self) -> Drawing | None:
        """The small graph; None if no node is concerned."""
        if not self.nodes:
            return None
        nodes, edges = self._part
        place = {member: i for i, node in enumerate(nodes) for member in node.members}
        steps = {*pairwise(self.nodes), *((self.nodes[0], i) for i in self.nodes[1:])}
        pairs = {(place.get(low), place.get(high)) for low, high in steps}
        marks = {i: EdgeMark(2.4) for i, edge in enumerate(edges) if (edge.source, edge.target) in pairs}
        looks = {i: "new" for i, node in enumerate(nodes) if self.nodes[-1] in node.members and len(self.nodes) > 1}
        none = frozenset(i for i in self.nodes if self.kind == "none" and self.trace.nodes[i].kind == "leaf")
        text = listing(nodes, edges) if any(node.kind == "output" for node in nodes) else ""
        return paint(nodes, edges, note="", text=text, alt=self.sentence, marks=marks, looks=looks, none=none)

    # ------------------------------------------------------------------------------------------------------------- words
    @property
    def head(self) -> tuple[Sentence, ...]:
        """The sentence and the advice."""
        first = say(*self.answer)
        return tuple(filter(None, (first, parse_backticks(self.fix) if self.fix else ())))

    def table(self) -> Table:
        """Return the sentence and the lines concerned as a table."""
        columns = (Column(say(Span("line", "dim")), 0.15), Column(say(Span("source", "dim")), 0.8))
        cells = tuple((say(where(line)), say(code(line.statement or line.source))) for line in self.lines)
        return Table(columns, cells, self.head)

    def text(self) -> str:
        """Return the explanation for a terminal."""
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Why {self.name}: {self.sentence}>"

    def html(self) -> str:
        """Return the sentence, the lines and the picture as one card."""
        drawing = self.drawing
        return card(self.table(), *([drawing] if drawing is not None else []))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawing = self.drawing
        bundle = {} if drawing is None else drawing.bundle()
        return bundle | {"text/html": self.html(), "text/latex": self.table().latex(), "text/plain": self.text()}

    def markdown(self, values: bool = True) -> str:
        """Return the answer as Markdown for a forum or an issue tracker, with the versions of the packages.

        Parameters
        ----------
        values : bool, default True
            False omits all numbers and the source. Names, operations and line numbers remain.

        Returns
        -------
        str
        """
        sentence = self.answer if values else self.bare
        parts = [f"**Why does {inline_code(self.name)} have this gradient?**", _markdown(sentence)]
        if values and self.fix:
            parts.append(_markdown(parse_backticks(self.fix)))
        if self.lines:
            shown = [
                f"- {where(line)}" + (f": {inline_code(line.statement or line.source)}" if values else "") for line in self.lines
            ]
            parts.append("\n".join(shown))
        if self.nodes:
            parts.append(code_block(self._graph_text(values)))
        contains = (
            f"This text contains values of {inline_code(self.name)} and of tensors computed from it"
            + (f", and {len(self.lines)} line{'s' * (len(self.lines) > 1)} of source" if self.lines else "")
            + "; `.markdown(values=False)` leaves them out."
            if values
            else "This text contains no values, no gradients and no source."
        )
        return "\n\n".join([*parts, " · ".join(versions(self.trace.library)), f"<sub>{contains}</sub>"]) + "\n"

    def _graph_text(self, values: bool) -> str:
        """Return the nodes concerned, starting at the leaf, one per line."""
        lines = []
        for i in self.nodes[:MAX_NODES]:
            node = self.trace.nodes[i]
            said = [
                node.label
                if node.kind != "operation" or not values
                else f"{node.name} = {node.label}"
                if node.name
                else node.label
            ]
            if not values and node.kind == "operation":
                said = [node.name] if node.name else []
            said += [node.operation] if node.kind == "operation" else []
            if values and node.gradient is not None:
                said.append(f"‖gradient‖ {number(node.gradient.norm)}")
            at = node.cell or node.place
            said += [where(at)] if at is not None else []
            lines.append("  ".join(said))
        more = len(self.nodes) - MAX_NODES
        return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


# ------------------------------------------------------------------------------------------------------------- in words
def where(line: Line) -> str:
    """Return "line 3" for a line of the cell, else "model.py line 12"."""
    return f"line {line.line}" if line.in_cell else line.where


def versions(library: str) -> list[str]:
    """Return "gradlab 0.1.0", "torch 2.13.0", …: the versions of the imported packages, Python and the system."""
    texts = []
    for package in PACKAGES:
        module = sys.modules.get(package)
        if module is not None and (package != "torch" or library == "torch"):
            try:
                texts.append(f"{package} {getattr(module, '__version__', None) or version(package)}")
            except PackageNotFoundError:
                continue
    return [*texts, f"Python {platform.python_version()}", platform.system()]


def inline_code(text: str) -> str:
    """Return the text as inline code in Markdown, also if it contains backticks."""
    text = " ".join(text.split())
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def code_block(text: str) -> str:
    """Return the text as a code block in Markdown, also if it contains backticks."""
    ticks = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks}text\n{text}\n{ticks}"


def _markdown(sentence: Sentence) -> str:
    """Return a sentence as Markdown, with every special character outside code escaped."""
    return "".join(
        inline_code(span.text) if "code" in span.kind else re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", span.text)
        for span in sentence
    )

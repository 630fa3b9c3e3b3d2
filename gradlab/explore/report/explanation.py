"""Why a leaf has the gradient that it has: what is shown of the answer, and what is pasted elsewhere."""

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
from gradlab.explore.markup import Sentence, Span, code, marked, number, say, to_text
from gradlab.explore.report.table import Column, Table, card
from gradlab.explore.trace.data import GraphEdge, GraphNode, Line, Trace, renumbered

SMALL = 12  # nodes of the picture
MOST_NEAR = 3
PACKAGES = ("gradlab", "torch", "numpy")


@dataclass(frozen=True)
class Explanation:
    """Why a tensor has its gradient. Made by `Report.why`; shown as a sentence, lines and a small graph.

    Attributes
    ----------
    name : str
    kind : str
        "none", "zero", "nan" (or infinite), "tiny", "large" or "ordinary".
    answer : Sentence
        The cause.
    bare : Sentence
        The same without numbers and source.
    lines : tuple of Line
        Where it happens.
    fix : str
        What to type or to do, code between backticks; "" where there is nothing to say.
    finding : Finding or None
        What the doctor found, if the answer is its.
    trace : Trace
        The graph.
    nodes : tuple of int
        The nodes concerned, from the leaf on; the last is where it happens.
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
        """The nodes concerned with what they are given besides, folded where they are many."""
        trace, chosen = self.trace, set(self.nodes)
        near = [edge.source for edge in trace.edges if edge.target in chosen and trace.nodes[edge.source].kind == "leaf"]
        last = self.nodes[-1]
        near += [edge.source for edge in trace.edges if edge.target == last][:MOST_NEAR]
        near += [edge.target for edge in trace.edges if edge.source == last][:MOST_NEAR]
        shown = sorted(chosen | (set(near) if len(chosen) <= SMALL // 2 else set()))
        nodes = [replace(node, members=(i,)) for i, node in enumerate(trace.nodes)]
        kept = set(shown)
        inside = [edge for edge in trace.edges if edge.source in kept and edge.target in kept]
        part, edges = renumbered(nodes, inside, shown)
        if len(part) > SMALL:
            ends = [i for i, node in enumerate(part) if node.members[0] in (self.nodes[0], self.nodes[-1])]
            return fold(part, edges, SMALL, trace.layers, [part[i].members[0] for i in ends])
        return part, edges

    @cached_property
    def drawing(self) -> Drawing | None:
        """The small graph; None where nothing of the graph is concerned."""
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
        """The sentence, and what to do."""
        first = say(*self.answer)
        return tuple(filter(None, (first, marked(self.fix) if self.fix else ())))

    def table(self) -> Table:
        """The sentence and the lines concerned."""
        columns = (Column(say(Span("line", "dim")), 0.15), Column(say(Span("source", "dim")), 0.8))
        cells = tuple((say(where(line)), say(code(line.statement or line.source))) for line in self.lines)
        return Table(columns, cells, self.head)

    def text(self) -> str:
        """For a terminal."""
        return self.table().text()

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<Why {self.name}: {self.sentence}>"

    def html(self) -> str:
        """The sentence, the lines and the picture on one card."""
        drawing = self.drawing
        return card(self.table(), *([drawing] if drawing is not None else []))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawing = self.drawing
        bundle = {} if drawing is None else drawing.bundle()
        return bundle | {"text/html": self.html(), "text/latex": self.table().latex(), "text/plain": self.text()}

    def markdown(self, values: bool = True) -> str:
        """The answer as Markdown, for a forum or an issue tracker, with the versions of what ran.

        Parameters
        ----------
        values : bool, default True
            False leaves out every number and the source: names, operations and numbers of lines remain.

        Returns
        -------
        str
        """
        sentence = self.answer if values else self.bare
        parts = [f"**Why does {quoted(self.name)} have this gradient?**", _markdown(sentence)]
        if values and self.fix:
            parts.append(_markdown(marked(self.fix)))
        if self.lines:
            shown = [f"- {where(line)}" + (f": {quoted(line.statement or line.source)}" if values else "") for line in self.lines]
            parts.append("\n".join(shown))
        if self.nodes:
            parts.append(fenced(self._graph_text(values)))
        contains = (
            f"This text contains values of {quoted(self.name)} and of what is computed from it"
            + (f", and {len(self.lines)} line{'s' * (len(self.lines) > 1)} of source" if self.lines else "")
            + "; `.markdown(values=False)` leaves them out."
            if values
            else "This text contains no values, no gradients and no source."
        )
        return "\n\n".join([*parts, " · ".join(versions(self.trace.library)), f"<sub>{contains}</sub>"]) + "\n"

    def _graph_text(self, values: bool) -> str:
        """The nodes concerned, from the leaf on, one a line."""
        lines = []
        for i in self.nodes[:SMALL]:
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
        more = len(self.nodes) - SMALL
        return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


# ------------------------------------------------------------------------------------------------------------- in words
def where(line: Line) -> str:
    """ "line 3" of the cell; "model.py line 12"."""
    return f"line {line.line}" if line.in_cell else line.where


def versions(library: str) -> list[str]:
    """ "gradlab 0.1.0", "torch 2.13.0", …: of what is imported."""
    texts = []
    for package in PACKAGES:
        module = sys.modules.get(package)
        if module is not None and (package != "torch" or library == "torch"):
            try:
                texts.append(f"{package} {getattr(module, '__version__', None) or version(package)}")
            except PackageNotFoundError:
                continue
    return [*texts, f"Python {platform.python_version()}", platform.system()]


def quoted(text: str) -> str:
    """Code in Markdown, whatever is in it."""
    text = " ".join(text.split())
    ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks} {text} {ticks}" if "`" in text else f"`{text}`"


def fenced(text: str) -> str:
    """A block of code in Markdown, whatever is in it."""
    ticks = "`" * max(3, max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{ticks}text\n{text}\n{ticks}"


def _markdown(sentence: Sentence) -> str:
    """A sentence, in which nothing but code and what is bold is special."""
    return "".join(
        quoted(span.text) if "code" in span.kind else re.sub(r"([\\`*_{}\[\]<>#|~])", r"\\\1", span.text) for span in sentence
    )

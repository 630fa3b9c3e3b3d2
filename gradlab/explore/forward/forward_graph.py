"""`graph(model, x)`: the run of a model as a picture with the input on top, as a table, and as text.

A module of the library in which no other module runs is one node. A larger graph is folded by the user's modules, and repeated
parts are one node with a count. At the right of a node is its share of all floating-point operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gradlab.explore.drawing import Drawing
from gradlab.explore.forward.assembling import Assembled
from gradlab.explore.forward.failure_view import FailureView, describe_error
from gradlab.explore.forward.run import MOST
from gradlab.explore.forward.summary import Summary, cost_text, flops_text, percent_text, time_text
from gradlab.explore.graph import listing
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.graphs import IMAGE, LEAST_LIMIT, Graph
from gradlab.explore.graph.painting import paint
from gradlab.explore.graph.spans import by_names, whole_layers
from gradlab.explore.markup import count, escape_html, group_digits, number, shape_text
from gradlab.explore.saved_page import saved_page
from gradlab.explore.trace.data import GraphEdge, GraphNode

TALLEST = 1360  # height in pixels, with the shapes below the nodes
TRIES = 10  # smaller limits that are tried if a fold is split
LEAST_SHARE = 0.005  # of the operations; smaller shares are not shown


@dataclass(frozen=True)
class Failure:
    """The exception that ended a run.

    Attributes
    ----------
    kind, message : str
        The class of the exception, and its message.
    traceback : str
        The traceback as Python prints it.
    findings, remarks : tuple
        The findings of the doctor.
    """

    kind: str
    message: str
    traceback: str
    findings: tuple[Any, ...] = ()
    remarks: tuple[Any, ...] = ()


class ForwardGraph(Graph):
    """The run of a model, as plain data. Returned by `graph`.

    Attributes
    ----------
    title : str
        The call: "net(x)".
    error : Failure or None
        The exception that ended the run. The call that failed is the last node, and is marked.
    flops : int
        Floating-point operations of the run, by the rules of `gradlab.explore.forward.costs`.
    """

    _tallest = TALLEST

    def __init__(
        self,
        run: Assembled,
        title: str,
        *,
        limit: int | None = None,
        error: Failure | None = None,
        unfold: Sequence[str] = (),
    ) -> None:
        self.run, self.title, self.error = run, title, error
        super().__init__(run.trace, limit=limit, level="operations", unfold=unfold)
        self.flops = sum(cost.flops or 0 for cost in run.costs)

    @property
    def calls_modules(self) -> bool:
        """True if a module was called."""
        return bool(self.run.trace.calls)

    def widget(self, **options: Any) -> Any:
        """Raise an error, because a run has only a static picture.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError(
            "The run of a model is a static picture; limit=… shows more. gl.graph(out).widget() opens the graph of a tensor."
        )

    def paths(self, leaf: Any, gradient: Any = None) -> Any:
        """Raise an error, because a run has no gradients.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError("The run of a model has no gradients. gl.graph(loss).paths(leaf) reads the graph behind a tensor.")

    # ------------------------------------------------------------------------------------------------------------- texts
    @property
    def _heading(self) -> str:
        tops = [part for part in self.run.tree if part.kind]
        what = tops[0].kind if len(tops) == 1 else ""
        parameters = sum(one.elements for one in self.run.owned if one.kind == "parameter")
        mode = "training mode" if self.run.training else "evaluation mode" if tops else ""
        facts = (
            what,
            f"{_many(parameters)} parameters" if parameters else "",
            flops_text(self.flops) if self.flops else "",
            mode,
            f"failed: {self.error.kind}" if self.error else "",
        )
        return f"{self.title}: {', '.join(filter(None, facts))}".removesuffix(": ")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        if self.error is None:
            return self.drawing().bundle()
        said = describe_error(self.error.kind, self.error.message)
        return FailureView(self.error.findings, self.error.remarks, self.drawing(), said)._repr_mimebundle_()

    def _page(self) -> str:
        said = [] if self.error is None else [describe_error(self.error.kind, self.error.message)]
        said += [str(one) for one in (*self.error.findings, *self.error.remarks)] if self.error is not None else []
        words = "".join(f"<p>{escape_html(text)}</p>" for text in said)
        body = f"<main>{self.drawing().image()}<div>{words}<pre>{escape_html(self.table().text())}</pre></div></main>"
        columns = "main{display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start}pre{overflow-x:auto}"
        return saved_page(self._heading, body, columns + IMAGE)

    def table(self, depth: int | None = None) -> Summary:
        """Return a table of the modules that ran, with output shapes, parameters, multiply-adds and memory, and their shares.

        Parameters
        ----------
        depth : int, optional
            How many levels of modules are shown. By default as many as make 60 rows.

        Returns
        -------
        Summary
            Shown as a table in a notebook, and as text.
        """
        return Summary(self.run, depth)

    def text(self) -> str:
        """Return the heading and the table."""
        lines = [self._heading, "", self.table().text()]
        if self.error is not None:
            lines += ["", f"{self.error.kind}: {self.error.message}"]
        return "\n".join(lines)

    def dot(self) -> str:
        """Return the whole run in Graphviz's DOT language, each call with the shape of its result."""
        nodes = [replace(node, operation=_describe_result(node)) if node.kind == "operation" else node for node in self.nodes]
        return listing.dot(nodes, self.edges)

    # ----------------------------------------------------------------------------------------------------------- picture
    @cached_property
    def _layers(self) -> tuple[Sequence[GraphNode], Sequence[GraphEdge]]:
        """The graph with one node for each module of the library."""
        run = self.run
        numbered = [replace(node, members=(i,)) for i, node in enumerate(self.nodes)]
        whole = run.whole.keys() - {numbered[i].module for i in self._never_folded}
        nodes, edges = whole_layers(numbered, self.edges, run.trace.calls, self._never_folded, whole)
        nodes = [replace(node, count=1, operation=run.whole[node.module]) if node.kind == "folded" else node for node in nodes]
        return nodes, edges

    @property
    def _never_folded(self) -> set[int]:
        """The nodes that are never folded: those of `unfold`, and the call that failed."""
        return self._unfolded | ({self.run.failed} if self.run.failed is not None else set())

    def _fold_to(self, limit: int) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
        nodes, edges = layers = self._layers
        opened, room = [self.run.root] if self.run.root else [], limit
        wanted = [i for i, node in enumerate(nodes) if self._never_folded.intersection(node.members)]
        while len(nodes) > limit and room >= max(LEAST_LIMIT, limit - TRIES):
            nodes, edges = by_names(*layers, room, self.run.trace.calls, wanted, opened_modules=opened)
            room -= 1  # a fold that is split has more nodes than the limit
        if len(nodes) > limit and not wanted:
            nodes, edges = fold(nodes, edges, limit, opened_modules=opened)
        return tuple(map(self._describe, nodes)), tuple(edges)

    def _describe(self, node: GraphNode) -> GraphNode:
        """Return a node with its class and the number of its parameters below the label."""
        if node.kind != "folded":
            return node
        parts = [part for part in node.detail.split(" · ") if part and not part.endswith((" operations", " operation"))]
        own = sum(self.run.costs[i].parameters for i in node.members)
        if own:
            parts.append(f"{_many(own)} parameters")
        if any(self.nodes[i].detail.startswith("off: ") for i in node.members) and len(parts) == 1:
            parts.append("off: not training")
        return replace(node, detail=" · ".join(parts), operands=(), name="")

    def _paint(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], note: str, alt: str) -> Drawing:
        looks: dict[int, str] = {}
        for i, node in enumerate(nodes):
            if node.kind == "leaf" and node.operation == "input":
                looks[i] = "input"
            elif self.run.failed in node.members:
                looks[i] = "failed"
        legend = []
        if self.flops:
            legend.append(f"right of a box: its share of the {flops_text(self.flops)}")
        if len(nodes) < (whole := len(self._layers[0])):
            legend.append(f"{whole} nodes, folded to {len(nodes)}: graph(…, limit={whole}) shows all")
        if self.run.truncated:
            legend.append(f"only the first {MOST:,} calls were recorded")
        return paint(
            nodes,
            edges,
            note=self._heading,
            text="",
            alt=alt,
            beside={i: lines for i, node in enumerate(nodes) if (lines := self._beside(node))},
            looks=looks,
            forward=True,
            legend="\n".join(legend),
        )

    def _beside(self, node: GraphNode) -> tuple[str, ...]:
        """Return the text at the right of a node: its share of the operations, its time, its values."""
        members = node.members or ()
        costs = [self.run.costs[i] for i in members if self.nodes[i].kind == "operation"]
        flops = sum(cost.flops or 0 for cost in costs)
        said = ["failed here"] if self.run.failed in members else []
        if self.flops and flops / self.flops >= LEAST_SHARE:
            said.append(percent_text(flops, self.flops))
        if self.run.timed and costs:
            said.append(time_text(sum(cost.seconds for cost in costs)))
        writes = sum(self.run.costs[i].writes for i in members)
        if writes and node.kind == "folded":
            said.append(f"writes {count(writes, 'buffer')}")
        value = node.value
        if value is not None and value.numbers is None:
            about = value.statistics
            said.append(f"{number(about.minimum, 2)} … {number(about.maximum, 2)}, mean {number(about.mean, 2)}")
            odd = [f"{many} {what}" for many, what in ((about.nans, "NaN"), (about.infs, "∞")) if many]
            said += [" and ".join(odd)] if odd else []
        return tuple(said)


def _describe_result(node: GraphNode) -> str:
    shape = "" if node.shape is None else f"{shape_text(node.shape)} {node.dtype}"
    return " · ".join(filter(None, (node.module, node.detail, shape)))


def _many(number_of: int) -> str:
    """Return a number as text: "7 850", "11.7 M"."""
    return group_digits(number_of) if number_of < 100_000 else cost_text(number_of)

"""`graph(model, x)`: the run of a model as a picture with the input on top, as a table, and as text.

A module of the library in which no other module runs is one node. A larger graph is folded by the user's modules, and what
repeats is one node with a count. Beside a node stands its share of all floating-point operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradlab.explore.drawing import Drawing, escape
from gradlab.explore.forward.assembling import Assembled
from gradlab.explore.forward.failure_view import FailureView, describe_error
from gradlab.explore.forward.run import MOST
from gradlab.explore.forward.summary import Summary, cost_text, flops_text, share_text, time_text
from gradlab.explore.graph import listing
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.graphs import LEAST_LIMIT, Graph
from gradlab.explore.graph.painting import paint
from gradlab.explore.graph.spans import by_names, whole_layers
from gradlab.explore.markup import count, escape_html, grouped, number, shape_text
from gradlab.explore.saved_page import saved_page
from gradlab.explore.trace.data import GraphEdge, GraphNode

TALLEST = 1360  # pixels: every node has its shape below it
TRIES = 10
LEAST_SHARE = 0.005  # of the operations, below which nothing is said


@dataclass(frozen=True)
class Failure:
    """What ended a run.

    Attributes
    ----------
    kind, message : str
        The class of the exception, and what it says.
    traceback : str
        As Python prints it.
    findings, remarks : tuple
        What the doctor knows of it.
    """

    kind: str
    message: str
    traceback: str
    findings: tuple[Any, ...] = ()
    remarks: tuple[Any, ...] = ()


class ForwardGraph(Graph):
    """The run of a model, as plain data. Made by `graph`.

    Attributes
    ----------
    title : str
        What ran: "net(x)".
    error : Failure or None
        What ended the run. The call that failed is the last, and is marked.
    flops : int
        Floating-point operations of the run, by the rules of `gradlab.explore.forward.costs`.
    """

    _tallest = TALLEST

    def __init__(
        self,
        run: Assembled,
        title: str,
        root: str,
        *,
        limit: int | None = None,
        error: Failure | None = None,
        unfold: Sequence[str] = (),
    ) -> None:
        self.run, self.title, self.root, self.error = run, title, root, error
        super().__init__(run.trace, limit=limit, level="operations", unfold=unfold)
        self.flops = sum(cost.flops or 0 for cost in run.costs)

    @property
    def calls_modules(self) -> bool:
        """Whether a module was called."""
        return bool(self.run.trace.calls)

    def widget(self, **options: Any) -> Any:
        """Not for a run, whose picture is static.

        Raises
        ------
        RuntimeError
            Always.
        """
        raise RuntimeError(
            "The run of a model is a static picture; limit=… shows more. gl.graph(out).widget() opens the graph of a tensor."
        )

    def paths(self, leaf: Any, gradient: Any = None) -> Any:
        """Not for a run, which has no gradients.

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
        drawing = self.drawing()
        image = f"<img alt=\"{escape(drawing.alt)}\" src='{drawing.data_uri()}'>"
        said = [] if self.error is None else [describe_error(self.error.kind, self.error.message)]
        said += [str(one) for one in (*self.error.findings, *self.error.remarks)] if self.error is not None else []
        words = "".join(f"<p>{escape_html(text)}</p>" for text in said)
        body = f"<main>{image}<div>{words}<pre>{escape_html(self.table().text())}</pre></div></main>"
        style = (
            "main{display:flex;flex-wrap:wrap;gap:24px;align-items:flex-start}img{max-width:100%;height:auto}pre{overflow-x:auto}"
        )
        return saved_page(self._heading, body, style)

    def table(self, depth: int | None = None) -> Summary:
        """The modules that ran, with output shape, parameters, multiply-adds and memory, each with its share of the whole.

        Parameters
        ----------
        depth : int, optional
            How many levels of modules are shown. By default as many as make 60 rows.

        Returns
        -------
        Summary
            Shown as a table in a notebook, and as text.
        """
        return Summary(self.run, self.root, depth)

    def text(self) -> str:
        """The heading, and the table."""
        lines = [self._heading, "", self.table().text()]
        if self.error is not None:
            lines += ["", f"{self.error.kind}: {self.error.message}"]
        return "\n".join(lines)

    def dot(self) -> str:
        """The whole run in Graphviz's DOT language, each call with the shape of its result."""
        nodes = [replace(node, operation=_made(node)) if node.kind == "operation" else node for node in self.nodes]
        return listing.dot(nodes, self.edges)

    # ----------------------------------------------------------------------------------------------------------- picture
    def _folded(self, limit: int) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
        run = self.run
        numbered = [replace(node, members=(i,)) for i, node in enumerate(self.nodes)]
        kept = {*self._unfolded, *([run.failed] if run.failed is not None else [])}
        whole = run.whole.keys() - {numbered[i].module for i in kept}
        nodes, edges = whole_layers(numbered, self.edges, run.trace.calls, kept, whole)
        nodes = [replace(node, count=1, operation=run.whole[node.module]) if node.kind == "folded" else node for node in nodes]
        self._unfolded_size = len(nodes)
        opened = [self.root] if self.root else []
        whole_nodes, whole_edges = nodes, edges
        for room in range(limit, max(LEAST_LIMIT, limit - TRIES) - 1, -1):  # a fold that is split takes more than it was given
            if len(nodes) > limit:
                wanted = [i for i, node in enumerate(whole_nodes) if kept.intersection(node.members)]
                nodes, edges = by_names(whole_nodes, whole_edges, room, run.trace.calls, wanted, opened_modules=opened)
        if len(nodes) > limit and not kept:
            nodes, edges = fold(nodes, edges, limit, opened_modules=opened)
        return tuple(self._described(node) for node in nodes), tuple(edges)

    def _described(self, node: GraphNode) -> GraphNode:
        """A node with what it holds: its class, and its parameters."""
        if node.kind != "folded":
            return node
        parts = [part for part in node.detail.split(" · ") if part and not part.endswith((" operations", " operation"))]
        own = sum(self.run.costs[i].parameters for i in node.members)
        if own:
            parts.append(f"{_many(own)} parameters")
        if any(self.nodes[i].detail.startswith("off: ") for i in node.members) and len(parts) == 1:
            parts.append("off: not training")
        return replace(node, detail=" · ".join(parts), operands=(), name="")

    def _painted(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], note: str, alt: str) -> Drawing:
        looks: dict[int, str] = {}
        for i, node in enumerate(nodes):
            if node.kind == "leaf" and node.operation == "input":
                looks[i] = "input"
            elif self.run.failed in node.members:
                looks[i] = "failed"
        legend = []
        if self.flops:
            legend.append(f"right of a box: its share of the {flops_text(self.flops)}")
        if len(nodes) < self._unfolded_size:
            legend.append(f"{self._unfolded_size} nodes, folded to {len(nodes)}: graph(…, limit={self._unfolded_size}) shows all")
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
        """What is said at the right of a node: its share of the operations, its time, its values."""
        members = node.members or ()
        costs = [self.run.costs[i] for i in members if self.nodes[i].kind == "operation"]
        flops = sum(cost.flops or 0 for cost in costs)
        said = ["failed here"] if self.run.failed in members else []
        if self.flops and flops / self.flops >= LEAST_SHARE:
            said.append(share_text(flops, self.flops))
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


def _made(node: GraphNode) -> str:
    shape = "" if node.shape is None else f"{shape_text(node.shape)} {node.dtype}"
    return " · ".join(filter(None, (node.module, node.detail, shape)))


def _many(number_of: int) -> str:
    """ "7 850", "11.7 M"."""
    return grouped(number_of) if number_of < 100_000 else cost_text(number_of)

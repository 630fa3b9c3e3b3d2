"""`Graph`: the recorded operations behind a tensor, as a picture, a text, or in Graphviz's language.

The graph is read once, as a trace. It is drawn at one of three levels. At the level of operations (`painting`) it is folded if it
is too large to read (`folding`) and laid out in layers (`layout`). At the other two, the user's own lines of code or the modules
of a model are rows in program order, with the graph as rails beside them (`rows`, `rails`). The text form (`listing`) is
complete. A `Graph` holds plain data, so keeping it keeps no tensors alive.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.explore.drawing import MAX_BYTES, Drawing, Pictured
from gradlab.explore.graph import listing
from gradlab.explore.graph.contributions import measure_flow
from gradlab.explore.graph.folding import fold
from gradlab.explore.graph.painting import paint
from gradlab.explore.graph.rails import paint_rows
from gradlab.explore.graph.rows import code_rows, module_rows
from gradlab.explore.graph.spans import whole_layers
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import count, shape_text
from gradlab.explore.saved_page import saved_page
from gradlab.explore.trace.data import GraphEdge, GraphNode, Trace
from gradlab.explore.trace.reading import spine_first
from gradlab.explore.views import open_view

if TYPE_CHECKING:
    from gradlab.explore.graph.paths import Paths

LEVELS = ("operations", "code", "modules")
GLANCE = 25  # nodes that can be read at a glance
LIMIT = 150  # nodes in a picture of a graph without records that could fold it by name
TALLEST = 900  # pixels
LEAST_LIMIT = 8
MOST_NODES = 50_000  # nodes that are read by default: takes about a second
MOST_CELL = 295_000  # characters of a picture in a notebook, in all formats
LEAST_TEXT = 20_000  # of these, for the text form, which is folded if necessary
SHORTEST_LINE = 8
MOST_ALT = 2_000
IMAGE = "img{max-width:100%;height:auto}"  # style of a picture on its own page


class Graph(Pictured):
    """The operations behind one or several tensors, as plain data. Made by `graph`.

    Attributes
    ----------
    trace : Trace
        The complete record.
    nodes : tuple of GraphNode
        Leaves, operations and outputs, each after its inputs.
    edges : tuple of GraphEdge
        Source and target as indices into `nodes`.
    limit : int or None
        Maximum number of nodes in the picture of the operations; None for as many as can be read at a glance.
    level : str
        What the picture shows: "operations", "code" or "modules".
    unfold : tuple of str
        Leaves that stay visible.
    cut : bool
        Whether nodes further away from the outputs were not read.
    """

    _tallest = TALLEST

    def __init__(
        self,
        trace: Trace,
        *,
        limit: int | None = None,
        level: str | None = None,
        unfold: Sequence[str] = (),
        outputs: Sequence[Any] = (),
        names: Mapping[str, Any] | None = None,
    ) -> None:
        self._outputs, self._names = tuple(outputs), dict(names or {})  # weak references
        self.trace, self.nodes, self.edges = trace, trace.nodes, trace.edges
        self.limit, self.unfold, self.cut = limit, tuple(unfold), trace.cut_off
        if level is not None and level not in LEVELS:
            raise ValueError(f"graph(level={level!r}): the levels are {', '.join(map(repr, LEVELS))}")
        self._unfolded = {
            i for i, node in enumerate(self.nodes) if node.kind == "leaf" and set(node.name.split(", ")) & set(unfold)
        }
        known = {name for i in self._unfolded for name in self.nodes[i].name.split(", ")}
        if unknown := [name for name in unfold if name not in known]:
            leaves = [node.name for node in self.nodes if node.kind == "leaf" and node.name]
            raise ValueError(
                f"graph(unfold={list(unfold)}): no leaf is called {unknown[0]!r}; there are {listing.join_names(leaves)}"
            )
        self.level = level or self._level()

    def _level(self) -> str:
        """Choose the level by the records."""
        if len(self.nodes) <= GLANCE or self.limit is not None or self.unfold:
            return "operations"
        if any(node.layer for node in self.nodes):
            return "modules"
        return "code" if len(code_rows(self.trace)) > 2 else "operations"

    def widget(self, **options: Any) -> Any:
        """Make a live view of the graph for a notebook: walk through it, unfold and search it, and see all data of each node.

        Values and gradients are those of the sweep that the graph was recorded with (`report.graph()`), or else of one private
        sweep from ones. That sweep writes no `.grad` and keeps the graph; hooks on the tensors run as in any sweep. The view
        holds the graph until its `close()`, and says how much memory that takes. If the tensors no longer exist, it shows the
        recorded numbers.

        Returns
        -------
        GraphWidget

        Raises
        ------
        ImportError
            If anywidget is not installed (`pip install "gradlab[notebook]"`).
        """
        outputs = [tensor for ref in self._outputs if (tensor := ref()) is not None]
        names = {name: tensor for name, ref in self._names.items() if (tensor := ref()) is not None}
        space = {**sys._getframe(1).f_globals, **sys._getframe(1).f_locals}
        return open_view(
            "graph", self, outputs=outputs if len(outputs) == len(self._outputs) else [], names=names, space=space, **options
        )

    @property
    def _rest(self) -> str:
        """Sentence on nodes that were not read."""
        return f"The graph has more: these are the {len(self.nodes):,} nodes nearest to the output. graph(…, most=…) reads on."

    @property
    def visible_graph(self) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
        """Nodes and edges of the picture of the operations, folded if necessary."""
        return self._operations[0]

    def _fold_to(self, limit: int) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
        if len(self.nodes) <= (self.limit or 0):
            return self.nodes, self.edges
        numbered = [replace(node, members=(i,)) for i, node in enumerate(self.nodes)]
        nodes, edges = whole_layers(numbered, self.edges, self.trace.layers, self._unfolded)
        if len(nodes) > limit:
            nodes, edges = fold(nodes, edges, limit, self.trace.layers, self._unfolded)
        return (self.nodes, self.edges) if len(nodes) == len(self.nodes) else (tuple(nodes), tuple(edges))

    @cached_property
    def _has_records(self) -> bool:
        return any(node.layer or node.place for node in self.nodes)

    def text(self) -> str:
        """Return the complete graph as an indented text, from the outputs back to the leaves."""
        return listing.listing(self.nodes, self.edges) + (f"\n\n{self._rest}" if self.cut else "")

    def dot(self) -> str:
        """Return the complete graph in Graphviz's DOT language."""
        return listing.dot(self.nodes, self.edges) + (f"// {self._rest}\n" if self.cut else "")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph to a file. The suffix selects the format.

        Parameters
        ----------
        path : path-like
            ".svg", ".png" or ".pdf" for the picture; ".html" for a page with the picture that follows the reader's light or dark
            theme and loads nothing; ".dot" for Graphviz; ".txt" for the text.

        Returns
        -------
        pathlib.Path
            The path that was written.

        Raises
        ------
        ValueError
            If the suffix is not one of these.
        RuntimeError
            If a PNG is requested and resvg_py is not installed, or a PDF and typst is not.
        """
        path = Path(path)
        match path.suffix.lower():
            case ".html":
                path.write_text(self._page(), encoding="utf-8")
            case ".dot" | ".gv":
                path.write_text(self.dot(), encoding="utf-8")
            case ".txt":
                path.write_text(self.text() + "\n", encoding="utf-8")
            case ".svg" | ".png" | ".pdf":
                self.drawing().save(path)
            case other:
                raise ValueError(
                    "a graph can be saved as .svg, .png, .pdf, .html, .dot or .txt; got "
                    f"{repr(other) if other else 'a name without an ending'}."
                )
        return path

    def _page(self) -> str:
        return saved_page(self._heading, self.drawing().image(), IMAGE)

    def paths(self, leaf: Any, gradient: Any = None) -> Paths:
        """Return every edge's signed contribution to a leaf's gradient, and the paths it took.

        The contribution of an edge, along which the cotangent c arrives at the tensor s, is the part of the leaf's gradient g
        that flows along it: J_sᵀ c with J_s = ∂s/∂leaf. For a leaf with one element it is that number, else its length along g,
        ⟨J_sᵀ c, g⟩/‖g‖ = ⟨c, J_s g⟩/‖g‖; divided by ‖g‖ it is the edge's share. The contributions of the edges that leave the
        leaf add up to the gradient, and their shares to 1. It takes one backward sweep and one sweep through that sweep
        (`contributions`), and one for each path if there are at most 12. `.grad`, random state and the graph do not change. Your
        hooks run.

        Parameters
        ----------
        leaf : str or Tensor
            The leaf, or its name in the graph.
        gradient : Tensor or array_like, optional
            Gradient of the output, of its shape; a sequence if there are several outputs. Ones by default.

        Returns
        -------
        Paths
            Shown as text, a table and a picture.

        Raises
        ------
        ValueError
            If no leaf of the graph has this name, or the shape of `gradient` is not the output's.
        TypeError
            If `leaf` is not a name or a tensor.
        RuntimeError
            If the output no longer exists, or backward has freed the saved tensors.
        """
        from gradlab.explore.graph.paths import Paths, leaf_called

        outputs = [ref() for ref in self._outputs]
        if not outputs or any(out is None for out in outputs):
            raise RuntimeError(
                "paths(…) sweeps the graph again, but its tensor no longer exists. Keep it in a variable, as in "
                "loss = …; gl.graph(loss).paths('w')."
            )
        asked = f"paths({leaf!r:.60})"
        at = leaf_called(self.trace, self._name_of(leaf, outputs[0], asked), asked)
        return Paths(self.trace, at, measure_flow(self.trace, at, outputs, _starts(outputs, gradient)))

    def _name_of(self, leaf: Any, out: Any, asked: str) -> str:
        if isinstance(leaf, str):
            return leaf
        library = library_of(leaf)
        if library is None:
            raise TypeError(f"paths(leaf) takes the name of a leaf or the leaf itself; got {type(leaf).__name__}.")
        own = library_of(out)
        assert own is not None
        node = library.node(leaf) if library is own and leaf.requires_grad else None
        most = len(self.nodes) - len(self._outputs) - 1 if self.cut else None
        walked, _ = spine_first(own, [own.whole(own.node(ref())) for ref in self._outputs], most)
        at = next((i for i, one in enumerate(walked) if one is node), None) if node is not None else None
        if at is None or self.nodes[at].kind != "leaf":
            raise ValueError(f"{asked}: this tensor is not a leaf of the graph. Its leaves are {self._leaves()}.")
        return self.nodes[at].label

    def _leaves(self) -> str:
        return listing.join_names([node.label for node in self.nodes if node.kind == "leaf"]) or "none"

    def drawing(self) -> Drawing:
        """Return the picture, for combining it with others."""
        return self._drawing

    @cached_property
    def _drawing(self) -> Drawing:
        drawing, folded, note = self._operations[1:] if self.level == "operations" else self._of_rows()
        room = max(LEAST_TEXT, MOST_CELL - MAX_BYTES * 4 // 3 - len(drawing.html()))
        few = self.level == "operations" and len(self.nodes) * SHORTEST_LINE < room  # rows are the text of a picture of rows
        whole = self.text() if few else ""
        text = whole if 0 < len(whole) <= room else listing.first_lines(f"{folded}\n\n{note}".rstrip(), room)
        return replace(drawing, text=text)

    @property
    def _heading(self) -> str:
        return listing.heading(self.nodes)

    def _alt(self, folded: str, note: str) -> str:
        start = f"Graph of {self._heading}. {note}".rstrip()
        return listing.first_lines(f"{start}\n{folded.partition(chr(10))[2]}", MOST_ALT)

    @cached_property
    def _operations(self) -> tuple[tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]], Drawing, str, str]:
        """Nodes and edges of the picture of the operations, the picture, its text, and the note above it."""
        limit = self.limit or (GLANCE if self._has_records else LIMIT)
        while True:
            nodes, edges = self._fold_to(limit)
            note = ""
            if len(nodes) < len(self.nodes):
                size = count(len(self.nodes), "node")
                note = f"{size}, folded to {len(nodes)}. graph(…, limit=…) shows more, .text() all."
            if self.cut:
                folded_to = f", folded to {len(nodes)}" if note else ""
                note = f"The {len(self.nodes):,} nodes nearest to the output{folded_to}. graph(…, most=…) reads on."
            folded = listing.listing(nodes, edges)
            drawing = self._paint(nodes, edges, note, self._alt(folded, note))
            fits = drawing.height <= self._tallest or len(self.nodes) <= GLANCE
            if fits or not self._has_records or self.limit is not None or self.unfold or limit <= LEAST_LIMIT:
                return (nodes, edges), drawing, folded, note
            limit = max(LEAST_LIMIT, min(limit - 1, int(1.15 * len(nodes) * self._tallest / drawing.height)))  # small steps

    def _paint(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], note: str, alt: str) -> Drawing:
        leaves = self.trace.leaves if self.trace.sweep else ()
        none = frozenset(leaf.node for leaf in leaves if leaf.gradient is None and leaf.node is not None)
        return paint(nodes, edges, note=note, text="", alt=alt, none=none)

    def _of_rows(self) -> tuple[Drawing, str, str]:
        rows = code_rows(self.trace) if self.level == "code" else module_rows(self.trace)
        note = f"The {len(self.nodes):,} nodes nearest to the output. graph(…, most=…) reads on." if self.cut else ""
        text = listing.table(rows)
        drawing, _ = paint_rows(rows, note=note, alt=self._alt(f"\n{text}", note))
        return drawing, f"{self._heading}\n\n{text}", note

    def __repr__(self) -> str:
        return f"<Graph of {self._heading}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._drawing.bundle()


def _starts(outputs: Sequence[Any], gradient: Any) -> list[Any] | None:
    """Return the gradients of the outputs at which a sweep starts; None for ones."""
    if gradient is None:
        return None
    gradients = [gradient] if len(outputs) == 1 else list(gradient)
    if len(gradients) != len(outputs):
        raise ValueError(f"paths(gradient=…): the graph has {len(outputs)} outputs, and {len(gradients)} gradients were given.")
    starts = []
    for out, one in zip(outputs, gradients, strict=True):
        library, own = library_of(one), library_of(out)
        assert own is not None
        array = np.asarray(one if library is None else library.array(one))
        if array.shape != tuple(out.shape):
            raise ValueError(
                f"paths(gradient=…): expected a gradient of the output's shape {shape_text(tuple(out.shape))}, got shape "
                f"{shape_text(array.shape)}."
            )
        starts.append(own.tensor(array, like=out))
    return starts

"""`graph(out)`: the recorded operations behind a tensor, as a picture, a text, or Graphviz's language.

The graph is read once (`reading`), folded where it has more nodes than anyone reads (`folding`), laid out (`layout`)
and painted (`painting`); its text form (`listing`) stays whole. A `Graph` holds plain data, so it can be kept without
keeping tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from gradlab.explore import listing
from gradlab.explore.drawing import MAX_BYTES, MAX_SIDE, Drawing
from gradlab.explore.folding import fold
from gradlab.explore.libraries import library_of
from gradlab.explore.names import caller_names
from gradlab.explore.painting import paint
from gradlab.explore.reading import GraphEdge, GraphNode, read
from gradlab.explore.words import count, shape_text

LIMIT = 150  # nodes in a picture
LEAST_LIMIT = 8
MOST_NODES = 50_000  # that are read, unless more are asked for: about a second
MOST_CELL = 295_000  # characters of a picture in a notebook, in all formats
LEAST_TEXT = 20_000  # of them for the text form, if need be the folded one
SHORTEST_LINE = 8
MOST_ALT = 2_000


def graph(out: Any, names: Mapping[str, Any] | None = None, *, limit: int = LIMIT, most: int = MOST_NODES) -> Graph:
    """The graph of the operations that made a tensor.

    Parameters
    ----------
    out : Tensor or sequence of Tensor
        What was computed, of gradlab or of PyTorch. It is read, never changed; a graph that backward has freed will do.
    names : mapping of str to Tensor, optional
        What to call tensors, intermediate ones too. By default the names that the caller's variables have.
    limit : int, default 150
        The most nodes in the picture, at least 8. A larger graph is folded: repeated segments first, then straight
        chains, then what belongs to one part of a model by its parameters' names. The text form is whole.
    most : int, default 50 000
        The most nodes that are read, a million taking about half a minute and a gigabyte. Of a larger graph there are those
        nearest to the outputs, and picture and text say so.

    Returns
    -------
    Graph
        Shown as a picture in a notebook.

    Raises
    ------
    TypeError
        If `out` is not a tensor or a sequence of tensors of one library.
    RuntimeError
        If a tensor does not require grad: there is no graph behind it.
    ValueError
        If there is no tensor at all, or `limit` is too small.
    """
    if names is None:
        names = caller_names()
    single = library_of(out) is not None or not isinstance(out, Sequence) or isinstance(out, str)
    outputs = [out] if single else list(out)
    if not outputs:
        raise ValueError("graph(out) draws a tensor or several; out is an empty sequence")
    if limit < LEAST_LIMIT:
        raise ValueError(f"graph(limit={limit}): a picture needs room for at least {LEAST_LIMIT} nodes")
    first = library_of(outputs[0])
    for output in outputs:
        library = library_of(output)
        if library is None:
            raise TypeError(
                "graph(out) draws the graph of a tensor or of a sequence of tensors; got "
                f"{type(output).__module__}.{type(output).__qualname__}"
            )
        if first is not None and library is not first:
            raise TypeError(f"graph(out) draws tensors of one library; got {first.name} and {library.name}")
        if not output.requires_grad:
            name = next((name for name, tensor in names.items() if tensor is output), "out")
            why = library.why_lost(output) or (
                "Call requires_grad_() on what it is computed from before computing it, and look "
                "for detach() and no_grad() on the way"
            )
            raise RuntimeError(
                "element 0 of tensors does not require grad and does not have a grad_fn: there is no graph behind "
                f"{name} ({library.dtype_name(output)}, {shape_text(tuple(output.shape))}). {why[:1].upper()}{why[1:]}"
            )
    if most < LEAST_LIMIT:
        raise ValueError(f"graph(most={most}): there must be room for at least {LEAST_LIMIT} nodes")
    nodes, edges = read(outputs, names, most)
    return Graph(nodes, edges, limit=limit, cut=len(nodes) - len(outputs) > most)


class Graph:
    """The operations behind one or several tensors, as plain data. Made by `graph`.

    Attributes
    ----------
    nodes : tuple of GraphNode
        Leaves, operations and outputs, each after what it is computed from.
    edges : tuple of GraphEdge
        Which node hands a tensor to which, by index into `nodes`.
    limit : int
        The most nodes in the picture.
    cut : bool
        Whether there is more of the graph, further away from the outputs, that was not read.
    """

    def __init__(self, nodes: Sequence[GraphNode], edges: Sequence[GraphEdge], *, limit: int = LIMIT, cut: bool = False) -> None:
        self.nodes, self.edges, self.limit, self.cut = tuple(nodes), tuple(edges), limit, cut

    @property
    def _rest(self) -> str:
        """What is said of nodes that were not read."""
        return f"The graph has more: these are the {len(self.nodes):,} nodes nearest to the output. graph(…, most=…) reads on."

    @cached_property
    def shown(self) -> tuple[tuple[GraphNode, ...], tuple[GraphEdge, ...]]:
        """The nodes and edges of the picture: all, or as folded to `limit`."""
        return fold(self.nodes, self.edges, self.limit)

    def text(self) -> str:
        """The whole graph as an indented text, from the outputs back to the leaves."""
        return listing.listing(self.nodes, self.edges) + (f"\n\n{self._rest}" if self.cut else "")

    def dot(self) -> str:
        """The whole graph in Graphviz's DOT language."""
        return listing.dot(self.nodes, self.edges) + (f"// {self._rest}\n" if self.cut else "")

    def drawing(self) -> Drawing:
        """The picture, to be put together with others."""
        return self._drawing

    @cached_property
    def _drawing(self) -> Drawing:
        nodes, edges = self.shown
        note = ""
        if len(nodes) < len(self.nodes):
            size = count(len(self.nodes), "node")
            note = f"{size}, folded to {len(nodes)}. graph(…, limit=…) shows more, .text() all."
        if self.cut:
            folded_to = f", folded to {len(nodes)}" if note else ""
            note = f"The {len(self.nodes):,} nodes nearest to the output{folded_to}. graph(…, most=…) reads on."
        folded = listing.listing(nodes, edges)
        start = f"Graph of {listing.heading(self.nodes)}. {note}".rstrip()
        alt = listing.bounded(f"{start}\n{folded.partition(chr(10))[2]}", MOST_ALT)
        drawing = paint(nodes, edges, note=note, text="", alt=alt)
        room = max(LEAST_TEXT, MOST_CELL - MAX_BYTES * 4 // 3 - len(drawing.html()))
        whole = self.text() if len(self.nodes) * SHORTEST_LINE < room else ""
        text = whole if 0 < len(whole) <= room else listing.bounded(f"{folded}\n\n{note}".rstrip(), room)
        return replace(drawing, text=text)

    def svg(self) -> str:
        """The picture as an SVG document that fits light and dark grounds."""
        return self._drawing.svg()

    def png(self, max_side: int = MAX_SIDE) -> bytes | None:
        """The picture as a PNG with a transparent ground, at most `max_side` pixels a side; None without resvg_py."""
        return self._drawing.png(max_side)

    def __repr__(self) -> str:
        return f"<Graph of {listing.heading(self.nodes)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._drawing.bundle()

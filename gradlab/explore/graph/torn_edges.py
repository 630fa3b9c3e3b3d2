"""Torn edges: where a tensor's history ends, and faded behind it, the part that was cut off.

A cut adds three things to a drawing: the operation that made the tensor (a ghost, with its value and without gradient), a tear
with the cut's name and line below it, and dotted edges to the ghost from its leaves. If a leaf itself was cut, there is no ghost.
If a large part of the graph is behind the cut, there are no dotted edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradlab.explore.drawing import DIM, EDGE, escape, text_width, tidy
from gradlab.explore.trace.data import Cut, GraphNode

WORDS = {
    "detach": ".detach()",
    "data": ".data",
    "item()": ".item()",
    "numpy()": ".numpy()",
    "integers": "conversion to integers",
}
LETTERS = 9.5
WIDTH, HEIGHT = 24.0, 19.0  # of a tear
MOST = 6  # maximum number of cuts in a drawing
LEAVES = 4  # maximum number of dotted edges to a ghost


@dataclass(frozen=True)
class TornEdge:
    """A cut in a drawing.

    Attributes
    ----------
    cut : Cut
    targets : tuple of int
        Nodes that use the cut tensor.
    leaf : int or None
        Node of the leaf, if a leaf itself was cut.
    behind : tuple of int
        Nodes with a dotted edge to the ghost.
    """

    cut: Cut
    targets: tuple[int, ...]
    leaf: int | None
    behind: tuple[int, ...]

    @property
    def words(self) -> str:
        """Text of the tear, "cut by .detach(), line 3"."""
        return cut_words(self.cut)

    @property
    def room(self) -> float:
        """Width of the text at the right of the tear."""
        return text_width(self.words, LETTERS) + 6

    @property
    def ghost(self) -> GraphNode:
        """The operation behind the cut, as a node."""
        cut = self.cut
        value = cut.value if cut.value is not None and (cut.shape is None or cut.value.shape == cut.shape) else None
        return GraphNode(
            "ghost", cut.label, cut.place.target if cut.place else "", cut.operation, cut.shape, "no gradient", value=value
        )


def cut_words(cut: Cut) -> str:
    how = WORDS.get(cut.how, cut.how)
    return f"cut by {how}" + (f", line {cut.place.line}" if cut.place is not None else "")


def torn_edges(nodes: Sequence[GraphNode], place: Callable[[int], int | None]) -> list[TornEdge]:
    """Return the cuts of some nodes; `place` maps the number of a node in the complete graph to its index here, or None."""
    by_cut: dict[tuple[object, ...], tuple[Cut, list[int]]] = {}
    for i, node in enumerate(nodes):
        for operand in node.operands:
            if operand.cut is not None:
                cut = operand.cut
                key = cut.how, cut.place, cut.operation, cut.shape, cut.behind
                targets = by_cut.setdefault(key, (cut, []))[1]
                if i not in targets:
                    targets.append(i)
    torn = []
    for cut, targets in list(by_cut.values())[:MOST]:
        behind = tuple(dict.fromkeys(at for leaf in cut.behind if (at := place(leaf)) is not None and at < min(targets)))
        alone = cut.operation == "AccumulateGrad" and len(behind) == 1
        torn.append(TornEdge(cut, tuple(targets), behind[0] if alone else None, behind if len(behind) <= LEAVES else ()))
    return torn


def tear_svg(words: str) -> str:
    """Return two zigzag ends centred at x = 0 below y = 0, and the text beside them."""
    steps = [-12 + 4 * i for i in range(7)]

    def zigzag(y: float) -> str:
        return "M" + "L".join(f"{x} {tidy(y + 5 * (i % 2))}" for i, x in enumerate(steps))

    return (
        f'<path d="{zigzag(1.5)}{zigzag(11.5)}" stroke="{EDGE}" stroke-width="1.4" fill="none"/>'
        f'<text x="{WIDTH / 2 + 5}" y="{HEIGHT / 2 + 3.3}" font-size="{LETTERS}" fill="{DIM}" text-anchor="start">'
        f"{escape(words)}</text>"
    )

"""Where a tensor's history ends: a torn edge, and behind it, faded, what was cut off.

A cut adds three things to a drawing: the operation that made the tensor (a ghost, with its value and without gradient), a tear
 with the cut's name and line below it, and dotted edges to the ghost from the leaves that it is computed from. Of a leaf that is
cut itself there is no ghost, and of what lies behind a large part of the graph no dotted edges.
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
MOST = 6  # cuts that are drawn
LEAVES = 4  # dotted edges to a ghost


@dataclass(frozen=True)
class TornEdge:
    """One cut, as it is drawn.

    Attributes
    ----------
    cut : Cut
    targets : tuple of int
        The nodes that were given what is left of the tensor.
    leaf : int or None
        The node of the leaf that was cut itself.
    behind : tuple of int
        The nodes from which a dotted edge goes to the ghost.
    """

    cut: Cut
    targets: tuple[int, ...]
    leaf: int | None
    behind: tuple[int, ...]

    @property
    def words(self) -> str:
        """ "cut by .detach(), line 3"."""
        return cut_words(self.cut)

    @property
    def room(self) -> float:
        """What the words take at the right of the tear."""
        return text_width(self.words, LETTERS) + 6

    @property
    def ghost(self) -> GraphNode:
        """What was cut off, as a node."""
        cut = self.cut
        value = cut.value if cut.value is not None and (cut.shape is None or cut.value.shape == cut.shape) else None
        return GraphNode(
            "ghost", cut.label, cut.place.target if cut.place else "", cut.operation, cut.shape, "no gradient", value=value
        )


def cut_words(cut: Cut) -> str:
    how = WORDS.get(cut.how, cut.how)
    return f"cut by {how}" + (f", line {cut.place.line}" if cut.place is not None else "")


def torn_edges(nodes: Sequence[GraphNode], place: Callable[[int], int | None]) -> list[TornEdge]:
    """The cuts of some nodes; `place` says where a node of the whole graph is among them."""
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
    """Two jagged ends about x = 0 from y = 0 on, and the words beside them."""
    steps = [-12 + 4 * i for i in range(7)]

    def jagged(y: float) -> str:
        return "M" + "L".join(f"{x} {tidy(y + 5 * (i % 2))}" for i, x in enumerate(steps))

    return (
        f'<path d="{jagged(1.5)}{jagged(11.5)}" stroke="{EDGE}" stroke-width="1.4" fill="none"/>'
        f'<text x="{WIDTH / 2 + 5}" y="{HEIGHT / 2 + 3.3}" font-size="{LETTERS}" fill="{DIM}" text-anchor="start">'
        f"{escape(words)}</text>"
    )

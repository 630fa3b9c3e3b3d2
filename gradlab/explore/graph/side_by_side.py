"""`graphs(a=out1, b=out2)`: several graphs side by side, each under its name, for teaching."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from gradlab.explore.drawing import DIM, SANS, Drawing, Pictured, above, beside, clean, escape, text_width
from gradlab.explore.graph.front import graph
from gradlab.explore.graph.graphs import Graph
from gradlab.explore.labels import shorten
from gradlab.explore.libraries import library_of
from gradlab.explore.markup import NO_MATH, escape_html
from gradlab.explore.names import caller_names

WIDTH = 1100  # pixels after which a bitmap starts a new row
GAP = 36
LABEL = 13.0
LONGEST = 60


def graphs(
    *outs: Any, names: Mapping[str, Any] | None = None, limit: int | None = None, level: str | None = None, **named: Any
) -> Graphs:
    """Draw the graphs of several tensors side by side, each under its name.

    Parameters
    ----------
    *outs : Tensor, sequence of Tensor, or Graph
        Computed tensors. Each gets the name of the caller's variable, or "graph 1", "graph 2", ….
    names : mapping of str to Tensor, optional
        Names for tensors. By default, the names of the caller's variables.
    limit, level : optional
        As for `graph`, for every graph.
    **named : Tensor, sequence of Tensor, or Graph
        More tensors, with their own names: ``gl.graphs(before=loss1, after=loss2)``.

    Returns
    -------
    Graphs
        Shown as pictures in a notebook, in a row if there is room, else one below the other.

    Raises
    ------
    ValueError
        If there are no arguments.
    TypeError, RuntimeError
        As for `graph`; the error names the argument.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> gl.graphs(sum=(w**2).sum(), mean=(w**2).mean())
    <Graphs sum, mean>
    """
    if not outs and not named:
        raise ValueError("graphs(a=…, b=…) draws the graphs of several tensors; none was given.")
    names = caller_names() if names is None else names
    pictures: dict[str, Graph] = {}
    for position, out in enumerate(outs, start=1):
        own = next((name for name, value in names.items() if value is out), f"graph {position}")
        label = own if own not in pictures and own not in named else f"{own} ({position})"
        pictures[label] = _graph(label, out, names, limit, level)
    for label, out in named.items():
        pictures[label] = _graph(label, out, names, limit, level)
    return Graphs(pictures)


def _graph(label: str, out: Any, names: Mapping[str, Any], limit: int | None, level: str | None) -> Graph:
    if isinstance(out, Graph):
        return out
    known = dict(names)
    if library_of(out) is not None and not any(value is out for value in known.values()):
        known[label] = out
    try:
        return graph(out, known, limit=limit, level=level)
    except (TypeError, RuntimeError, ValueError) as error:
        raise type(error)(f"graphs({label}=…): {error}") from None


class Graphs(Pictured):
    """Several named graphs. Made by `graphs`.

    Attributes
    ----------
    graphs : dict of str to Graph
        The graphs by name, in order.
    """

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self.graphs = dict(graphs)

    def __getitem__(self, name: str) -> Graph:
        """Return a graph by name."""
        return self.graphs[name]

    def __len__(self) -> int:
        return len(self.graphs)

    def text(self) -> str:
        """Return the graphs as texts, one below the other."""
        return "\n\n".join(f"{clean(name)}:\n{one.drawing().text}" for name, one in self.graphs.items())

    @cached_property
    def _drawing(self) -> Drawing:
        """All graphs on one sheet, in rows of about a notebook's width."""
        rows: list[list[Drawing]] = []
        left = 0.0
        for name, one in self.graphs.items():
            drawing = above(_label(name), one.drawing(), gap=6)
            if rows and drawing.width + GAP <= left:
                rows[-1].append(drawing)
                left -= drawing.width + GAP
            else:
                rows.append([drawing])
                left = WIDTH - drawing.width
        return above(*(beside(*row, gap=GAP) for row in rows), gap=GAP)

    def drawing(self) -> Drawing:
        """Return the picture, for combining it with others."""
        return self._drawing

    def html(self) -> str:
        """Return a figure for each graph, in a row that wraps."""
        figures = []
        for name, one in self.graphs.items():
            caption = f'<figcaption style="font-weight:600;font-size:13px;margin:0 0 4px 0">{escape_html(name)}</figcaption>'
            figures.append(f'<figure style="margin:0;min-width:0;max-width:100%">{caption}{one.drawing().html()}</figure>')
        return (
            f'<div {NO_MATH} style="display:flex;flex-wrap:wrap;align-items:flex-start;gap:20px 36px;padding:4px 0;'
            'font-family:var(--jp-ui-font-family,system-ui,sans-serif);color:var(--jp-content-font-color1,inherit)">'
            f"{''.join(figures)}</div>"
        )

    def __repr__(self) -> str:
        return f"<Graphs {', '.join(self.graphs)}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._drawing.bundle() | {"text/html": self.html(), "text/plain": self.text()}


def _label(name: str) -> Drawing:
    """Return a drawing of a graph's name."""
    text = shorten(name, LONGEST)
    return Drawing(
        f'<text x="4" y="13" font-size="{LABEL}" font-weight="600" font-family="{SANS}" fill="{DIM}">{escape(text)}</text>',
        text_width(text, LABEL) * 1.1 + 8,
        18,
        "",
        name,
    )

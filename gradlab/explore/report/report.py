"""What a reader has of a report: words, tables, pictures and plain data, shown by a notebook, saved as a page, compared.

Shown in a notebook it is a card (the sentence, the findings, the table, the cell's lines, and the picture beside them where there
is room), the Jacobian, and folded below it the equivalent code and the graph as a text. The card has its words in LaTeX too, and
the picture is a bitmap of the last output, so that an export which drops HTML keeps both.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradlab.explore import report_picture as pictures
from gradlab.explore.doctor.context.loss_table import LossTable, loss_table
from gradlab.explore.drawing import DIM, PICTURES, SANS, Drawing, Pictured, above, escape, text_width
from gradlab.explore.graph import Graph
from gradlab.explore.labels import unnumbered
from gradlab.explore.markup import NO_MATH, Sentence, code, count, listed, say, to_latex, to_text
from gradlab.explore.report import cell_lines, findings_view, loss_table_view, models, tree_view
from gradlab.explore.report.classes import with_few_styles
from gradlab.explore.report.comparison import ReportComparison, compare
from gradlab.explore.report.page import page
from gradlab.explore.report.parts import Below, Card, Picture, bitmap, code_html, code_latex, code_text
from gradlab.explore.report.plain_data import ReportData, plain
from gradlab.explore.report.plots import plot
from gradlab.explore.report.table import CARD, ITEM, LINE_HEIGHT, RULE, Table, TensorRow, head_html, leaf_table
from gradlab.explore.report.tree import ModulePart, forest
from gradlab.explore.report.tree_view import TreeView
from gradlab.explore.trace.data import Trace

if TYPE_CHECKING:
    from gradlab.explore.doctor.findings import Finding
    from gradlab.explore.graph.paths import Paths
    from gradlab.explore.report.explanation import Explanation

OUTPUT = 290_000  # bytes of all outputs of a report
BITMAP = 8_000  # and of the picture for exports that drop HTML
COLUMN = 420  # pixels that the words need at least beside a picture
WIDEST = 1180.0  # pixels of a card
BESIDE = 1076.0  # pixels of one in JupyterLab in a window of 1280: what fits into it is side by side
NARROW = 640  # of a card without gradients, at least


@dataclass(frozen=True)
class Bounds:
    """How much a report shows. What is beyond is counted in words."""

    leaf_rows: int = 25
    nodes: int | None = None  # None: as many as are read at a glance, and a model or a long cell as rows
    heat_maps: int = 6
    jacobian_rows: int = 64


@dataclass(frozen=True, repr=False)
class Report(Pictured):
    """What a differentiation gave, in plain data and finished pictures.

    Made by `explain`, by `%grad` and by a `%%grad` cell. Show it by displaying it; `table()`, `plot()`, `save()`, `graph()`,
    `to_dict()` and `compare()` give its parts.

    Attributes
    ----------
    rows : tuple of TensorRow
        One for each tensor: its name, shape, dtype, device, the statistics of its value and gradient, the remarks.
    picture : Drawing or None
        The graph and the heat maps.
    jacobian_picture : Drawing or None
        The heat map of the Jacobian, where one was asked for.
    by_hand : str
        Equivalent code, to be run; empty where the cell was that code.
    previous : dict of str to ndarray
        The gradients that were replaced, by name, as NumPy arrays.
    backward_calls : int
        How often the cell called `backward` itself.
    trace : Trace
        The graph and the sweep that all of this is of.
    findings, remarks : tuple of Finding
        What is wrong, and what is worth knowing. Where a cell trained several models, of all of them: `.model` is the label of
        the one concerned.
    beside : Beside or None
        The other models that the cell trained, and the other losses that it differentiated; see `models`.
    """

    head: tuple[Sentence, ...]
    bare: tuple[Sentence, ...]  # the same without numbers and source
    rows: tuple[TensorRow, ...]
    picture: Drawing | None
    jacobian_picture: Drawing | None
    by_hand: str
    maps: tuple[pictures.Map, ...]
    previous: dict[str, np.ndarray]
    backward_calls: int
    bounds: Bounds
    trace: Trace
    findings: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    graph_drawing: Drawing | None = None
    map_drawings: tuple[Drawing, ...] = ()
    beside: models.Beside | None = None
    _values: bool = field(default=True, kw_only=True)
    _output: Any = field(default=None, kw_only=True, repr=False, compare=False)  # a weak reference

    @property
    def sentence(self) -> str:
        """The opening sentences as text."""
        return " ".join(to_text(sentence).strip() for sentence in self.head)

    @property
    def label(self) -> str:
        """What tells the model or the loss from others of the cell: "act=Sigmoid", "g_loss"; "" of a single one."""
        return "" if self.beside is None else self.beside.label

    @property
    def models(self) -> dict[str, Report]:
        """The reports of all models that the cell trained and of all losses that it differentiated, by their labels, in the order
        of the program; this one among them."""
        if self.beside is None:
            return {"": self}
        others, place = self.beside.reports, self.beside.place
        return {one.label: one for one in (*others[:place], self, *others[place:])}

    def __getitem__(self, name: str) -> TensorRow:
        """The row of a tensor by the name it has in the table."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r}; this report has {', '.join(repr(row.name) for row in self.rows) or 'no rows'}")

    # -------------------------------------------------------------------------------------------------------- its parts
    def table(self, limit: int | None = -1) -> Table:
        """The sentence and the table of tensors. `limit=None` shows every row; the default is the report's own bound."""
        return self._table(self.rows, self.head, self.bounds.leaf_rows if limit == -1 else limit)

    def _table(self, rows: Sequence[TensorRow], head: Sequence[Sentence], limit: int | None) -> Table:
        what = "leaf" if all(row.is_leaf for row in rows) else "tensor"
        return leaf_table(rows, head, limit=limit, what=what, with_gradient=self._values and not self._jacobian_alone)

    @property
    def _jacobian_alone(self) -> bool:
        """Whether there is a Jacobian in place of gradients."""
        return self.jacobian_picture is not None and all(row.gradient is None for row in self.rows)

    @cached_property
    def _forest(self) -> tuple[list[ModulePart], list[TensorRow]]:
        """The models as trees, and the rows of the table."""
        if not self._values:
            return [], list(self.rows)
        return forest(self.rows, self.trace.layers)

    @cached_property
    def _lines(self) -> tuple[cell_lines.CellLine, ...]:
        return cell_lines.cell_lines(self.trace)

    @cached_property
    def losses(self) -> LossTable | None:
        """Which loss moves which optimizer's parameters, where there are several of either; else None."""
        return loss_table(self.trace)

    def plot(self, kind: str = "heat", ax: Any = None) -> Any:
        """Plot with matplotlib.

        Parameters
        ----------
        kind : {"heat", "hist", "norms"}
            Heat maps of the matrix-shaped gradients (pooled to 64 cells a side); the distribution of each gradient; the norms.
        ax : matplotlib Axes, or an array of them, optional
            Where to draw. Heat maps need an axes each. Default: a new figure.

        Returns
        -------
        Axes, or an array of Axes for several heat maps
        """
        return plot(kind, self.rows, self.maps, ax)

    def graph(self) -> Graph:
        """The graph as `graph` draws it, with the values and gradients of the sweep."""
        if not self.trace.nodes:
            raise RuntimeError("this report was made without the graph: leave --no-graph out.")
        return Graph(self.trace, limit=self.bounds.nodes)

    def paths(self, leaf: str) -> Paths:
        """Through which paths a leaf's gradient came: every edge's signed contribution to it. See `Graph.paths`.

        Where the graph is still there (`explain`, `backward(retain_graph=True)`) everything is known. Else it is read off the
        sweep that this report is of, whose shares at each tensor were recorded: then all of it is known where tensors have one
        element, and else what follows from the structure; `.why_not` says so.

        Parameters
        ----------
        leaf : str
            Its name in the table.

        Returns
        -------
        Paths
            Shown as words, a table and a picture.

        Raises
        ------
        ValueError
            If no leaf of the graph has this name.
        RuntimeError
            If the report was made without the graph.
        """
        from gradlab.explore.report.path_queries import paths_of

        return paths_of(self.trace, leaf, self._output)

    def why(self, name: str) -> Explanation:
        """Why a tensor has the gradient that it has, or none: one sentence, the lines concerned, a small graph of them.

        If the doctor found something that concerns the tensor, that is the answer. Else it says where a gradient that is None,
        zero, not finite, or far from the others' became so; of any other, by which path it came and with what share.

        Parameters
        ----------
        name : str
            As in the table; its end is enough where only one name ends so ("fc2.weight").

        Returns
        -------
        Explanation
            With `.sentence`, `.lines`, `.fix` and `.markdown(values=True)`, to be pasted into a forum or an issue tracker.

        Raises
        ------
        ValueError
            If the report has no tensor of this name, or several whose names end so.
        TypeError
            If `name` is no text.
        """
        from gradlab.explore.report.why import why

        found = (*self.findings, *self.remarks) if self.beside is None else self.beside.own
        return why(self.trace, self.rows, found, name, self._output)

    def to_dict(self) -> ReportData:
        """Return the report as plain data, which `json.dumps` takes as it is.

        Returns
        -------
        dict
            A `ReportData` of `gradlab.explore.report.plain_data`:
            ``{"version": 1, "leaves": […], "nodes": […], "edges": […], "rows": […], "findings": […], "remarks": […]}``.

            A node has `id`, `name`, `label`, `operation`, `line` (of the cell, `%%grad` is 1), `columns`, `source`, `module` (a
            dotted path), `shape`, `dtype`, `value`, `gradient`, `value_stats` and `gradient_stats`. An edge goes from `source` to
            `target`, by id, and has the gradient that went back along it; `share` is its signed part of the gradient that arrived
            at `source`, and those of all its edges sum to 1. `value` and `gradient` are a number for a scalar, nested lists of up
            to 16 elements, else None. Statistics are size, norm, minimum, maximum, mean, and how many elements are NaN, infinite
            and zero; minimum, maximum and mean are of the finite elements.

            A finding has `kind`, `severity` ("problem" or "note"), `message`, `fix`, `line`, `lines`, `node`, `model`, `times`
            and `evidence`, as `Finding` describes them. What is not known is None.

            JSON has no NaN: numbers that are not finite are the texts "NaN", "Infinity" and "-Infinity", which `float()` reads; a
            complex number is {"real": …, "imag": …}.
        """
        return plain(self.trace, self.rows, self.findings, self.remarks)

    def compare(self, other: Report) -> ReportComparison:
        """What changed from this report to a later one: in words, as a table, and on one picture of both graphs.

        Tensors are matched by name, operations in their order by what they are and by the names of what they make.

        Raises
        ------
        TypeError
            If `other` is no report.
        """
        if not isinstance(other, Report):
            raise TypeError(f"report.compare(other) takes another report, and got {type(other).__name__}: {other!r:.80}.")
        return compare(
            self.rows, other.rows, self.findings, other.findings, (self.head[0], other.head[0]), (self.trace, other.trace)
        )

    # ------------------------------------------------------------------------------------------------------------ shown
    def parts(self, *, explored: bool = False, terminal: bool = True) -> list[Any]:
        """What a notebook shows, one output each: the card, the Jacobian, and what is folded below. If a live view of the graph
        follows the card, the card has no lines of the cell, no heat maps and no picture of the graph: see `twin`. Without a
        `terminal`, the graph as text is in the HTML alone."""
        card = Card(with_few_styles(self._card(explored=explored)), self._latex(), self._words())
        size = sum(map(_size, card._repr_mimebundle_().values()))
        below = Below(self.by_hand, self.picture, 0, self.graph_drawing, terminal)
        size += sum(map(_size, below._repr_mimebundle_().values()))
        jacobian = self.jacobian_picture
        if jacobian is not None:
            size += _size(jacobian.html()) + _size(jacobian.text)
        count = (self.picture is not None) + (jacobian is not None)
        share = min(BITMAP, (OUTPUT - size) * 3 // 4 // max(1, count))  # base64 makes 4 of 3
        outputs: list[Any] = [card]
        if jacobian is not None:
            outputs.append(Picture(jacobian, share))
        if self.by_hand or self.picture is not None:
            outputs.append(replace(below, room=share))
        return outputs

    def twin(self) -> dict[str, str]:
        """What a saved notebook has in the place of a live view of the graph, by MIME type."""
        lines = cell_lines.html(self._lines, self.trace.program) if self._lines else ""
        maps = self._maps() if self.map_drawings else ""
        card = f'<div {NO_MATH} style="{CARD}">{lines}{maps}</div>' if lines or maps else ""
        picture = (self.graph_drawing or self.graph().drawing()).html()
        return {"text/html": card + picture, "text/plain": ""}  # words and a bitmap are in the other outputs

    def _maps(self) -> str:
        """The heat maps, side by side."""
        maps = "".join(f'<div style="min-width:0">{drawing.html()}</div>' for drawing in self.map_drawings)
        return f'<div style="border-top:{RULE};padding:12px;display:flex;flex-wrap:wrap;gap:16px 28px">{maps}</div>'

    def _card(self, *, every: bool = False, explored: bool = False) -> str:
        """The report, or, where there are those of other models or losses, a tab for each."""
        body, width = self._body(every=every, explored=explored)
        if self.beside is not None and self.beside.reports:
            body = models.html(self, self.beside, body)
        card = f"{CARD};max-width:{max(width, NARROW):.0f}px" if self._jacobian_alone else CARD  # there is little in it
        if explored:
            card = f"{CARD};max-width:none"  # as wide as the live view
        return f'<div {NO_MATH} style="{card}">{body}</div>'

    def body_html(self) -> str:
        """What its tab shows beside the report of another model."""
        return self._body()[0]

    def _body(self, *, every: bool = False, explored: bool = False) -> tuple[str, float]:
        """The sentence, the first findings or every one, and two columns: the words, and, if there is room, the picture; and how
        wide these are side by side."""
        trees, rows = self._forest
        blocks: list[str] = []
        needed, tall = 0.0 if self._jacobian_alone else float(COLUMN), 0.0
        drawing = None if explored else self.graph_drawing
        wide = min(drawing.width, WIDEST) + 21 if drawing is not None else 0.0
        tree = TreeView(trees) if trees else None
        if tree is not None:
            if tree.width + wide > BESIDE >= max(needed, replace(tree, bars=False).width) + wide:
                tree = replace(tree, bars=False)
            needed, tall = max(needed, tree.width), tall + tree.height
        if rows:
            table = self._table(rows, (), None if not self._values else self.bounds.leaf_rows)
            blocks.append(f'<div style="border-top:{RULE}">{table.body()}</div>' if trees else table.body())
            needed, tall = max(needed, table.width), tall + table.height
        if self._lines and not explored:
            blocks.append(f'<div style="border-top:{RULE}">{cell_lines.html(self._lines, self.trace.program)}</div>')
            tall += cell_lines.height(self._lines, needed)
        if self.losses is not None:
            blocks.append(loss_table_view.html(self.losses))
            tall += 2 * LINE_HEIGHT
        if self.map_drawings and not explored:
            blocks.append(self._maps())
            tall += max(drawing.height for drawing in self.map_drawings) + 24
        picture = ""
        if drawing is not None:
            picture = f'<div style="{ITEM};flex:1 1 {wide:.0f}px;padding:10px;text-align:center">{drawing.html()}</div>'
        if tree is not None:
            beside = drawing is not None and needed + wide <= BESIDE
            blocks.insert(0, tree.html(drawing.height + 20 - tall if drawing is not None and beside else 0.0))
        words = f'<div style="{ITEM};flex:1000 1 {needed:.0f}px">{"".join(blocks)}</div>' if blocks else ""
        grid = f'<div style="display:flex;flex-wrap:wrap;margin-left:-1px">{words}{picture}</div>' if words or picture else ""
        concerns = findings_view.html(self.findings, self.remarks, every=every)
        return head_html(self.head) + concerns + grid, needed + wide

    def _words(self) -> str:
        """The card for a terminal."""
        trees, rows = self._forest
        head = "\n".join(to_text(sentence).strip() for sentence in self.head)
        said = [models.text(self, self.beside)] if self.beside is not None and self.beside.reports else []
        said.append(findings_view.text(self.findings, self.remarks))
        tables = [tree_view.text(trees) if trees else "", self._table(rows, (), self.bounds.leaf_rows).text() if rows else ""]
        first = "\n".join(filter(None, [head, *said, *tables]))
        lines = cell_lines.text(self._lines, self.trace.program) if self._lines else ""
        return "\n\n".join(filter(None, [first, lines, loss_table_view.text(self.losses) if self.losses else ""]))

    def _latex(self) -> str:
        """The card for LaTeX, and the code: the picture is a bitmap of its own."""
        trees, rows = self._forest
        return "\n\n".join(
            filter(
                None,
                [
                    "\n".join(rf"\noindent {to_latex(sentence)}\par" for sentence in self.head),
                    models.latex(self, self.beside) if self.beside is not None and self.beside.reports else "",
                    findings_view.latex(self.findings, self.remarks),
                    tree_view.latex(trees) if trees else "",
                    self._table(rows, (), self.bounds.leaf_rows).latex() if rows else "",
                    cell_lines.latex(self._lines, self.trace.program) if self._lines else "",
                    loss_table_view.latex(self.losses) if self.losses else "",
                    code_latex(self.by_hand) if self.by_hand else "",
                ],
            )
        )

    def text(self) -> str:
        """The whole report for a terminal."""
        drawings = [drawing.text for drawing in (self.picture, self.jacobian_picture) if drawing is not None]
        return "\n\n".join(filter(None, [self._words(), *drawings, code_text(self.by_hand) if self.by_hand else ""]))

    def html(self, *, every_finding: bool = False) -> str:
        """The whole report as a fragment of HTML, with the first findings or, for a page of its own, with all of them."""
        jacobian = f'<div style="padding:10px 2px">{self.jacobian_picture.html()}</div>' if self.jacobian_picture else ""
        card = self._card(every=every_finding)
        return f"<div>{card}{jacobian}{code_html(self.by_hand, opened=True) if self.by_hand else ''}</div>"

    def __repr__(self) -> str:
        return f"<Report: {to_text(self.head[0])}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/html": self.html(), "text/plain": self.text(), "text/latex": self._latex()}
        room = OUTPUT - sum(map(_size, bundle.values()))
        share = min(BITMAP, room * 3 // 4)
        return bundle | bitmap(share, self.picture or self.jacobian_picture, self.graph_drawing)

    # ------------------------------------------------------------------------------------------------------------ saved
    def save(self, path: str | os.PathLike[str], *, values: bool = True) -> Path:
        """Write the report to a file that needs nothing else: `.html` all of it, `.svg` and `.png` its pictures.

        A page follows the reader's light or dark theme, asks no host for anything, and says which values and which source it
        contains. An existing file is replaced.

        Parameters
        ----------
        path : str or path
        values : bool, default True
            False leaves out every number of a tensor, the source, the findings and the equivalent code: names, shapes and the
            graph of operations remain.

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the path ends in none of these.
        RuntimeError
            If a bitmap cannot be made here.
        """
        if not values:
            return self._without_values().save(path)
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".html", *PICTURES):
            raise ValueError(f"a report is saved as .html, .svg, .png or .pdf, and {path.name!r} ends in none of them.")
        if kind != ".html":
            return self.drawing().save(path)
        path.write_text(page(self.head[0], self.html(every_finding=True), self.contains()), encoding="utf-8")
        return path

    def contains(self, *, advice: bool = True) -> Sentence:
        """Which values and which source a page of this report contains, and how to leave them out."""
        if not self._values:
            graph = f" and {count(len(self.trace.nodes), 'node')} of the graph" if self.graph_drawing is not None else ""
            return say(
                f"This page names {count(len(self.rows), 'tensor')}{graph}. It contains no values, no gradients and no source."
            )
        trees, rows = self._forest
        names = [say("the parameters of ", code(tree.name)) for tree in trees] + [say(code(row.name)) for row in rows]
        parts: list[Any] = ["This page contains "]
        parts += ["values and gradients of ", listed(names)] if names else ["no values of tensors"]
        if self.beside is not None and self.beside.reports:
            parts.append(f" of {self.beside.counted}")
        source = [f"{count(len(self.trace.source), 'line')} of {self.trace.program}'s source"] if self._lines else []
        source += ["the equivalent code"] if self.by_hand else []
        parts += [", ", listed(source)] if source else []
        return say(*parts, *(("; ", code("save(…, values=False)"), " leaves them out.") if advice else (".",)))

    def _without_values(self) -> Report:
        """The same report without numbers and source."""
        nodes = tuple(
            replace(
                node,
                label=node.label
                if node.kind == "leaf"
                else node.name or "output"
                if node.kind == "output"
                else unnumbered(node.label),
                detail="",
                place=None,
                cell=None,
                value=None,
                gradient=None,
                operands=(),
            )
            for node in self.trace.nodes
        )
        edges = tuple(replace(edge, gradient=None, share=None) for edge in self.trace.edges)
        trace = Trace(self.trace.library, nodes, edges, cut_off=self.trace.cut_off)
        drawing = None
        if self.graph_drawing is not None:
            drawing = Graph(trace, limit=self.bounds.nodes).drawing()
        rows = tuple(TensorRow(row.name, row.shape, row.dtype, row.device, None, None, (), row.is_leaf) for row in self.rows)
        return Report(
            self.bare,
            self.bare,
            rows,
            drawing,
            None,
            "",
            (),
            {},
            self.backward_calls,
            self.bounds,
            trace,
            (),
            (),
            drawing,
            _values=False,
        )

    def drawing(self) -> Drawing:
        lines = [caption(line) for sentence in self.head for line in _wrapped(to_text(sentence).strip())]
        drawings = [drawing for drawing in (self.picture, self.jacobian_picture) if drawing is not None]
        return above(above(*lines, gap=2), *drawings, gap=20)


def caption(text: str) -> Drawing:
    """A line of quiet text as a drawing."""
    return Drawing(
        f'<text x="0" y="13" font-size="12" font-family="{SANS}" fill="{DIM}">{escape(text)}</text>',
        text_width(text, 12) + 4,
        18,
        text,
        text,
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 110) or [""]

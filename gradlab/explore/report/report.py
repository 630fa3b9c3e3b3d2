"""Reports: sentences, tables, pictures and plain data, which can be displayed in a notebook, saved as a page, and compared.

In a notebook, a report is a card (the sentence, the findings, the table, the lines of the cell, and the picture next to them if
there is room), the Jacobian, and below it, folded, the equivalent code and the graph as text. The card has its text in LaTeX as
well, and the last output has a bitmap of the picture, so an export that drops HTML keeps both.
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
from gradlab.explore.labels import strip_numbers
from gradlab.explore.markup import NO_MATH, Sentence, code, count, join_items, say, to_latex, to_text
from gradlab.explore.report import cell_lines, findings_view, loss_table_view, models, tree_view
from gradlab.explore.report.classes import with_few_styles
from gradlab.explore.report.comparison import ReportComparison, compare
from gradlab.explore.report.page import page
from gradlab.explore.report.parts import Appendix, Card, Picture, bitmap, code_html, code_latex, code_text
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
BITMAP = 8_000  # bytes of the picture for exports that drop HTML
COLUMN = 420  # minimal width in pixels of the text next to a picture
WIDEST = 1180.0  # width of a card in pixels
BESIDE = 1076.0  # width of a card in JupyterLab in a window of 1280 pixels; content that fits into it is side by side
NARROW = 640  # minimal width of a card without gradients


@dataclass(frozen=True)
class Bounds:
    """Limits of what a report shows. The report says how much is left out."""

    leaf_rows: int = 25
    nodes: int | None = None  # None: as many as are easy to read, and rows for a model or a long cell
    heat_maps: int = 6
    jacobian_rows: int = 64


@dataclass(frozen=True, repr=False)
class Report(Pictured):
    """The result of a differentiation, as plain data and finished pictures.

    Returned by `explain`, `%grad` and a `%%grad` cell. Display it to show it; `table()`, `plot()`, `save()`, `graph()`,
    `to_dict()` and `compare()` return its parts.

    Attributes
    ----------
    rows : tuple of TensorRow
        One for each tensor: name, shape, dtype, device, statistics of the value and the gradient, remarks.
    picture : Drawing or None
        The graph and the heat maps.
    jacobian_picture : Drawing or None
        The heat map of the Jacobian, if one was requested.
    by_hand : str
        Equivalent code that can be run; empty if the cell was that code.
    previous : dict of str to ndarray
        The gradients that the cell replaced, by name, as NumPy arrays.
    backward_calls : int
        How often the cell called `backward` itself.
    trace : Trace
        The recorded graph and sweep of the report.
    findings, remarks : tuple of Finding
        Problems and Notes. If the cell trained several models, those of all of them; `.model` is the label of the model.
    other_models : OtherModels or None
        The other models that the cell trained, and the other losses that it differentiated; see `models`.
    """

    head: tuple[Sentence, ...]
    bare: tuple[Sentence, ...]  # `head` without numbers and source
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
    other_models: models.OtherModels | None = None
    _values: bool = field(default=True, kw_only=True)
    _output: Any = field(default=None, kw_only=True, repr=False, compare=False)  # a weak reference

    @property
    def sentence(self) -> str:
        """The opening sentences as text."""
        return " ".join(to_text(sentence).strip() for sentence in self.head)

    @property
    def label(self) -> str:
        """The label of the model or the loss if the cell has several, "act=Sigmoid" or "g_loss"; else ""."""
        return "" if self.other_models is None else self.other_models.label

    @property
    def models(self) -> dict[str, Report]:
        """The reports of all models that the cell trained and of all losses that it differentiated, including this one, by label
        and in the order of the program."""
        if self.other_models is None:
            return {"": self}
        others, place = self.other_models.reports, self.other_models.place
        return {one.label: one for one in (*others[:place], self, *others[place:])}

    def __getitem__(self, name: str) -> TensorRow:
        """Return the row of a tensor by its name in the table."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r}; this report has {', '.join(repr(row.name) for row in self.rows) or 'no rows'}")

    # -------------------------------------------------------------------------------------------------------- its parts
    def table(self, limit: int | None = -1) -> Table:
        """Return the sentence and the table of tensors. `limit=None` shows every row; the default is the limit of the report."""
        return self._table(self.rows, self.head, self.bounds.leaf_rows if limit == -1 else limit)

    def _table(self, rows: Sequence[TensorRow], head: Sequence[Sentence], limit: int | None) -> Table:
        what = "leaf" if all(row.is_leaf for row in rows) else "tensor"
        return leaf_table(rows, head, limit=limit, what=what, with_gradient=self._values and not self._jacobian_alone)

    @property
    def _jacobian_alone(self) -> bool:
        """True if there is a Jacobian instead of gradients."""
        return self.jacobian_picture is not None and all(row.gradient is None for row in self.rows)

    @cached_property
    def _forest(self) -> tuple[list[ModulePart], list[TensorRow]]:
        """The models as trees, and the other rows."""
        if not self._values:
            return [], list(self.rows)
        return forest(self.rows, self.trace.layers)

    @cached_property
    def _lines(self) -> tuple[cell_lines.CellLine, ...]:
        return cell_lines.cell_lines(self.trace)

    @cached_property
    def losses(self) -> LossTable | None:
        """The table of which loss moves which optimizer's parameters if there are several of either, else None."""
        return loss_table(self.trace)

    def plot(self, kind: str = "heat", ax: Any = None) -> Any:
        """Plot with matplotlib.

        Parameters
        ----------
        kind : {"heat", "hist", "norms"}
            Heat maps of the matrix-shaped gradients (pooled to at most 64 x 64 cells), histograms of the gradients, or the norms.
        ax : matplotlib Axes, or an array of them, optional
            Where to draw. Each heat map needs its own Axes. Default: a new figure.

        Returns
        -------
        Axes, or an array of Axes for several heat maps
        """
        return plot(kind, self.rows, self.maps, ax)

    def graph(self) -> Graph:
        """Return the graph, as `graph` does, with the values and gradients of the sweep."""
        if not self.trace.nodes:
            raise RuntimeError("this report has no graph. Run the cell without --no-graph.")
        return Graph(self.trace, limit=self.bounds.nodes)

    def paths(self, leaf: str) -> Paths:
        """Return the paths through which a leaf's gradient came, with the signed contribution of each edge. See `Graph.paths`.

        If the graph still exists (`explain`, `backward(retain_graph=True)`), all contributions are known. Otherwise they are
        computed from the shares that were recorded in the sweep of this report: then all are known if the tensors have one
        element, else only those that follow from the structure, and `.why_not` gives the reason.

        Parameters
        ----------
        leaf : str
            The name of the leaf in the table.

        Returns
        -------
        Paths
            Displayed as a sentence, a table and a picture.

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
        """Explain the gradient of a tensor, or why it has none: a sentence, the lines concerned, and a small graph.

        If a finding of the doctor concerns the tensor, it is the answer. Otherwise, for a gradient that is None, zero, not
        finite, or much larger or smaller than the others, the answer is the operation that causes this. For any other gradient,
        it is the path through which the gradient came, with its share.

        Parameters
        ----------
        name : str
            The name in the table, or its end if it is unique ("fc2.weight").

        Returns
        -------
        Explanation
            With `.sentence`, `.lines`, `.fix` and `.markdown(values=True)`, for a forum or an issue tracker.

        Raises
        ------
        ValueError
            If the report has no tensor of this name, or several whose names end with it.
        TypeError
            If `name` is not a string.
        """
        from gradlab.explore.report.why import why

        found = (*self.findings, *self.remarks) if self.other_models is None else self.other_models.own
        return why(self.trace, self.rows, found, name, self._output)

    def to_dict(self) -> ReportData:
        """Return the report as plain data that `json.dumps` accepts.

        Returns
        -------
        dict
            A `ReportData` of `gradlab.explore.report.plain_data`:
            ``{"version": 1, "leaves": […], "nodes": […], "edges": […], "rows": […], "findings": […], "remarks": […]}``.

            A node has `id`, `name`, `label`, `operation`, `line` (of the cell, `%%grad` is 1), `columns`, `source`, `module` (a
            dotted path), `shape`, `dtype`, `value`, `gradient`, `value_stats` and `gradient_stats`. An edge goes from `source` to
            `target`, by id, and has the gradient that went back along it. `share` is its signed part of the gradient of `source`;
            the shares of all edges from a node sum to 1. `value` and `gradient` are a number for a scalar, nested lists for up to
            16 elements, else None. Statistics are size, norm, minimum, maximum, mean, and the numbers of NaN, infinite and zero
            elements; minimum, maximum and mean ignore elements that are not finite.

            A finding has `kind`, `severity` ("problem" or "note"), `message`, `fix`, `line`, `lines`, `node`, `model`, `times`
            and `evidence`, as described in `Finding`. Unknown entries are None.

            Since JSON has no NaN, numbers that are not finite are the strings "NaN", "Infinity" and "-Infinity", which `float()`
            accepts. A complex number is {"real": …, "imag": …}.
        """
        return plain(self.trace, self.rows, self.findings, self.remarks)

    def compare(self, other: Report) -> ReportComparison:
        """Compare this report with a later one. The result is shown as sentences, a table, and a picture of both graphs.

        Tensors are matched by name; operations by their type, the names of their results, and their order.

        Raises
        ------
        TypeError
            If `other` is not a Report.
        """
        if not isinstance(other, Report):
            raise TypeError(f"report.compare(other) expects another report, got {type(other).__name__}: {other!r:.80}.")
        return compare(
            self.rows, other.rows, self.findings, other.findings, (self.head[0], other.head[0]), (self.trace, other.trace)
        )

    # ---------------------------------------------------------------------------------------------------------- display
    def parts(self, *, explored: bool = False, terminal: bool = True) -> list[Any]:
        """Return the outputs of a notebook: the card, the Jacobian, and the folded part below. If `explored`, a live view of the
        graph follows the card, which then has no lines of the cell, no heat maps and no picture of the graph: see `twin`. Unless
        `terminal`, the graph as text is only in the HTML."""
        card = Card(with_few_styles(self._card(explored=explored)), self._latex(), self._words())
        size = sum(map(_size, card._repr_mimebundle_().values()))
        below = Appendix(self.by_hand, self.picture, 0, self.graph_drawing, terminal)
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
        """Return the static output that replaces the live view of the graph in a saved notebook, by MIME type."""
        lines = cell_lines.html(self._lines, self.trace.program) if self._lines else ""
        maps = self._maps() if self.map_drawings else ""
        card = f'<div {NO_MATH} style="{CARD}">{lines}{maps}</div>' if lines or maps else ""
        picture = (self.graph_drawing or self.graph().drawing()).html()
        return {"text/html": card + picture, "text/plain": ""}  # the text and a bitmap are in the other outputs

    def _maps(self) -> str:
        """Return the heat maps, side by side."""
        maps = "".join(f'<div style="min-width:0">{drawing.html()}</div>' for drawing in self.map_drawings)
        return f'<div style="border-top:{RULE};padding:12px;display:flex;flex-wrap:wrap;gap:16px 28px">{maps}</div>'

    def _card(self, *, every: bool = False, explored: bool = False) -> str:
        """Return the report, or a tab for each report if there are other models or losses."""
        body, width = self._body(every=every, explored=explored)
        if self.other_models is not None and self.other_models.reports:
            body = models.html(self, self.other_models, body)
        card = f"{CARD};max-width:{max(width, NARROW):.0f}px" if self._jacobian_alone else CARD  # it has little content
        if explored:
            card = f"{CARD};max-width:none"  # as wide as the live view
        return f'<div {NO_MATH} style="{card}">{body}</div>'

    def body_html(self) -> str:
        """Return the content of the tab in the report of another model."""
        return self._body()[0]

    def _body(self, *, every: bool = False, explored: bool = False) -> tuple[str, float]:
        """Return the sentence, the first findings or all of them, and two columns with the text and, if there is room, the
        picture; and the width of the columns side by side."""
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
        """Return the card for a terminal."""
        trees, rows = self._forest
        head = "\n".join(to_text(sentence).strip() for sentence in self.head)
        said = [models.text(self, self.other_models)] if self.other_models is not None and self.other_models.reports else []
        said.append(findings_view.text(self.findings, self.remarks))
        tables = [tree_view.text(trees) if trees else "", self._table(rows, (), self.bounds.leaf_rows).text() if rows else ""]
        first = "\n".join(filter(None, [head, *said, *tables]))
        lines = cell_lines.text(self._lines, self.trace.program) if self._lines else ""
        return "\n\n".join(filter(None, [first, lines, loss_table_view.text(self.losses) if self.losses else ""]))

    def _latex(self) -> str:
        """Return the card and the code for LaTeX. The picture is a separate bitmap."""
        trees, rows = self._forest
        return "\n\n".join(
            filter(
                None,
                [
                    "\n".join(rf"\noindent {to_latex(sentence)}\par" for sentence in self.head),
                    models.latex(self, self.other_models) if self.other_models is not None and self.other_models.reports else "",
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
        """Return the whole report for a terminal."""
        drawings = [drawing.text for drawing in (self.picture, self.jacobian_picture) if drawing is not None]
        return "\n\n".join(filter(None, [self._words(), *drawings, code_text(self.by_hand) if self.by_hand else ""]))

    def html(self, *, every_finding: bool = False) -> str:
        """Return the whole report as a fragment of HTML, with the first findings or, for a separate page, all of them."""
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

    # ----------------------------------------------------------------------------------------------------------- saving
    def save(self, path: str | os.PathLike[str], *, values: bool = True) -> Path:
        """Save the report as a self-contained file: `.html` for the whole report, `.svg`, `.png` or `.pdf` for its pictures.

        A page follows the reader's light or dark theme, makes no network requests, and states which values and source it
        contains. An existing file is replaced.

        Parameters
        ----------
        path : str or path
        values : bool, default True
            False omits all numbers of tensors, the source, the findings and the equivalent code. Names, shapes and the graph of
            operations remain.

        Returns
        -------
        Path

        Raises
        ------
        ValueError
            If the path does not end with one of these.
        RuntimeError
            If a bitmap cannot be created.
        """
        if not values:
            return self._without_values().save(path)
        path = Path(path)
        kind = path.suffix.lower()
        if kind not in (".html", *PICTURES):
            raise ValueError(f"the path of a report must end with .html, .svg, .png or .pdf, got {path.name!r}.")
        if kind != ".html":
            return self.drawing().save(path)
        path.write_text(page(self.head[0], self.html(every_finding=True), self.contains()), encoding="utf-8")
        return path

    def contains(self, *, advice: bool = True) -> Sentence:
        """Return a sentence that states which values and source a page of this report contains, and how to omit them."""
        if not self._values:
            graph = f" and {count(len(self.trace.nodes), 'node')} of the graph" if self.graph_drawing is not None else ""
            return say(
                f"This page names {count(len(self.rows), 'tensor')}{graph}. It contains no values, no gradients and no source."
            )
        trees, rows = self._forest
        names = [say("the parameters of ", code(tree.name)) for tree in trees] + [say(code(row.name)) for row in rows]
        parts: list[Any] = ["This page contains "]
        parts += ["values and gradients of ", join_items(names)] if names else ["no values of tensors"]
        if self.other_models is not None and self.other_models.reports:
            parts.append(f" of {self.other_models.count_text}")
        source = [f"{count(len(self.trace.source), 'line')} of {self.trace.program}'s source"] if self._lines else []
        source += ["the equivalent code"] if self.by_hand else []
        parts += [", ", join_items(source)] if source else []
        return say(*parts, *(("; ", code("save(…, values=False)"), " leaves them out.") if advice else (".",)))

    def _without_values(self) -> Report:
        """Return the report without numbers and source."""
        nodes = tuple(
            replace(
                node,
                label=node.label
                if node.kind == "leaf"
                else node.name or "output"
                if node.kind == "output"
                else strip_numbers(node.label),
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
        lines = [caption(line) for sentence in self.head for line in _wrap(to_text(sentence).strip())]
        drawings = [drawing for drawing in (self.picture, self.jacobian_picture) if drawing is not None]
        return above(above(*lines, gap=2), *drawings, gap=20)


def caption(text: str) -> Drawing:
    """Return a line of dimmed text as a drawing."""
    return Drawing(
        f'<text x="0" y="13" font-size="12" font-family="{SANS}" fill="{DIM}">{escape(text)}</text>',
        text_width(text, 12) + 4,
        18,
        text,
        text,
    )


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _wrap(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 110) or [""]

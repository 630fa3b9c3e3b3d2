"""The report: what was differentiated by what, the gradients under the user's names, the graph, and the same by hand.

A report is made at once and then stands alone: it holds names, shapes, statistics and finished pictures, at most about 1 MB,
and never a tensor, a node or an array of the graph. It reaches the graph again only through a weak reference, and says so
when the graph is gone. (`previous`, gradients that a `%%grad` cell replaced, are kept for the user as NumPy arrays: they are as
large as those gradients were.)

`explain` makes one without writing any `.grad`; the `%%grad` magic makes one from the backward that it ran or saw. Shown in a
notebook, its parts (table, picture, Jacobian, code) are outputs of their own, so that an export which drops HTML keeps the rest;
`save` writes them as one file.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.explore import picture as pictures
from gradlab.explore.by_hand import ByHand, is_code
from gradlab.explore.drawing import MAX_BYTES, Drawing, above, clean
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.names import caller_names
from gradlab.explore.parts import Code, Picture, indented
from gradlab.explore.plots import plot
from gradlab.explore.reduced import reduced
from gradlab.explore.sources import Source, sources_of, weights_for, weights_needed, why_not
from gradlab.explore.statistics import Statistics, statistics_of
from gradlab.explore.table import Note, Row, Table, leaf_table
from gradlab.explore.words import (
    Sentence,
    Span,
    code,
    count,
    dimmed,
    escape_html,
    listed,
    number,
    say,
    shape_text,
    to_text,
)

TEXT = 12_000  # characters of the graph as text
OUTPUT = 290_000  # bytes of all outputs of a report
LONG = 60  # characters of an expression in the sentence


@dataclass(frozen=True)
class Bounds:
    """How much a report shows. What is beyond is counted in words."""

    leaf_rows: int = 25
    nodes: int = 150
    heat_maps: int = 6
    jacobian_rows: int = 64


@dataclass
class Subject:
    """What a report is about. Lives only while it is made."""

    library: Library
    root: Any  # the node that the cotangent of the output arrives at
    shape: tuple[int, ...]
    called: str  # a name, or the source of an expression; "" if there is neither
    out: Any = None  # the output; None where only its node is known
    weights: str = ""  # what the weights are called; "" for none

    @property
    def size(self) -> int:
        """The number of elements of the output."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def name(self) -> Span:
        """The output in a sentence."""
        if not self.called or len(self.called) > LONG or "\n" in self.called:
            return Span("the result" if not self.called else f"{self.called.splitlines()[0][: LONG - 1]}…", "code")
        return code(self.called)


def explain(
    out: Any, wrt: Any = None, weights: Any = None, *, names: Mapping[str, Any] | None = None, bounds: Bounds | None = None
) -> Report:
    """Report on the gradients of a tensor without writing any `.grad`.

    Parameters
    ----------
    out : Tensor
        What is differentiated, of any shape: a tensor of gradlab's or PyTorch's that requires grad.
    wrt : Tensor, sequence of Tensor, or mapping of str to Tensor, optional
        By what: leaves, or tensors computed on the way. Default: all leaves.
    weights : array_like or Tensor, optional
        For an `out` that is no scalar, the weights v of its shape: vᵀJ is shown. Without them a small `out` gets its Jacobian.
    names : mapping of str to Tensor, optional
        What the tensors are called. Default: the names they have where this is called.
    bounds : Bounds, optional
        How much is shown.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        If `out` or `wrt` are no tensors, or the weights no numbers.
    RuntimeError
        If `out` does not require grad; if it has more than `bounds.jacobian_rows` elements and there are no weights; if the
        weights have not its shape; if the graph was freed.
    """
    names = caller_names() if names is None else dict(names)
    bounds = bounds or Bounds()
    library = library_of(out)
    called = next((name for name, tensor in names.items() if tensor is out), "")
    if library is None:
        raise TypeError(f"explain(out) takes a tensor that was computed from others, and got {type(out).__name__}: {out!r:.80}.")
    reason = why_not(out, called or "out")
    if reason is not None:
        raise RuntimeError(f"element 0 of tensors does not require grad and does not have a grad_fn: {to_text(reason)}.")
    asked = _asked_for(wrt, names)
    subject = Subject(library, library.node(out), tuple(out.shape), called, out)
    given = None
    if weights is not None:
        subject.weights = next((name for name, tensor in names.items() if tensor is weights), "v")
        given = weights_for(library, out, weights, called or "out")
    elif not subject.size or (subject.size != 1 and subject.size > bounds.jacobian_rows):
        raise weights_needed(library, out, called or "out", f"explain({called or 'out'}, weights={{}})", bounds.jacobian_rows)
    sources = sources_of(library, [subject.root], names, asked)
    with_jacobian = given is None and subject.size != 1
    if not with_jacobian:
        differentiate(subject, sources, given)
    hand = ByHand(library.alias, library.name, called if is_code(called) else "out", subject.weights)
    inputs = [source.name for source in sources if source.used and source.wanted and source.named]
    hand = hand.jacobian(inputs) if with_jacobian else hand.gradients(inputs)
    matrix = jacobian_of(subject, sources, names) if with_jacobian else None
    return make_report(
        subject,
        sources,
        say("No ", code(".grad"), " was written."),
        names=names,
        by_hand=hand.text(),
        bounds=bounds,
        jacobian=matrix,
        weights=given,
    )


def _asked_for(wrt: Any, names: Mapping[str, Any]) -> dict[str, Any] | None:
    if wrt is None:
        return None
    if isinstance(wrt, Mapping):
        asked = dict(wrt)
    else:
        given = [wrt] if library_of(wrt) is not None or isinstance(wrt, str) or not isinstance(wrt, Sequence) else list(wrt)
        called = {id(tensor): name for name, tensor in names.items()}
        asked = {called.get(id(tensor), f"wrt[{i}]" if len(given) > 1 else "wrt"): tensor for i, tensor in enumerate(given)}
    for name, tensor in asked.items():
        if library_of(tensor) is None:
            raise TypeError(f"wrt must be tensors, and {name} is {type(tensor).__name__}: {tensor!r:.80}.")
    return asked


def differentiate(subject: Subject, sources: Sequence[Source], weights: Any) -> None:
    """Fill in the gradients of the sources by one sweep that writes no `.grad`."""
    wanted = [source for source in sources if source.used and source.wanted]
    if wanted:
        found = subject.library.grad([subject.out], [source.tensor for source in wanted], None if weights is None else [weights])
        for source, gradient in zip(wanted, found, strict=True):
            source.gradient = gradient


# --------------------------------------------------------------------------------------------------------------- making
def make_report(
    subject: Subject,
    sources: Sequence[Source],
    deed: Sentence,
    *,
    names: Mapping[str, Any],
    by_hand: str,
    bounds: Bounds,
    with_graph: bool = True,
    jacobian: Any = None,
    weights: Any = None,
    notes: Mapping[str, Sequence[Note]] | None = None,
    previous: Mapping[str, np.ndarray] | None = None,
    backward_calls: int = 0,
) -> Report:
    """Put a report together from sources whose gradients are known.

    `deed` says what happened to `.grad`; `notes` are further remarks by name; `weights` the tensor that weighted the output;
    `jacobian` a Jacobian, of which the report keeps the picture.
    """
    library, rows = subject.library, []
    matrices: list[tuple[str, Any]] = []
    tensors = [source.tensor for source in sources] + [source.gradient for source in sources if source.gradient is not None]
    known = iter(statistics_of([_own_array(library, tensor) for tensor in tensors]))
    values = [next(known) for _ in sources]
    for source, value in zip(sources, values, strict=True):
        gradient = source.gradient
        found = None if gradient is None else next(known)
        rows.append(_row(library, source, value, found, (notes or {}).get(source.name, ()), jacobian_only=jacobian is not None))
        if gradient is not None and len(gradient.shape) == 2 and gradient.numel() > 1:
            matrices.append((f"{source.name}.grad" if source.is_leaf else f"gradient of {source.name}", gradient))
    drawn = [(label, reduced(_own_array(library, gradient), pictures.CELLS)) for label, gradient in matrices[: bounds.heat_maps]]
    maps = tuple(pictures.kept(*matrix) for matrix in drawn)
    drawings = pictures.heat_maps(drawn)
    graph_alone = _graph(subject, names, bounds) if with_graph else None
    drawing, shown = pictures.picture(graph_alone, drawings)
    if shown < len(matrices) and drawing is not None:
        left_out = count(len(matrices) - shown, "more matrix-shaped gradient")
        drawing = above(drawing, _caption(f"{left_out} not drawn."), gap=14)
    head = (_sentence(subject, sources, weights), dimmed(deed))
    return Report(
        head,
        tuple(rows),
        drawing,
        jacobian.drawing() if jacobian is not None else None,
        by_hand,
        maps,
        dict(previous or {}),
        backward_calls,
        bounds,
        graph_alone,
        _Graph(subject, sources),
    )


def _row(
    library: Library, source: Source, value: Statistics, found: Statistics | None, extra: Sequence[Note], *, jacobian_only: bool
) -> Row:
    """The row of a tensor of which, and of whose gradient, the statistics are known."""
    tensor, notes = source.tensor, list(extra)
    if value.nans or value.infs:
        notes.append(Note(say("the value has ", _odd(value.nans, value.infs)), serious=True))
    if not source.wanted:
        dtype = library.dtype_name(tensor)
        floating = dtype.startswith(("float", "bfloat", "complex"))
        notes.append(
            Note(
                say("no gradient: ", "requires_grad is False" if floating else f"{dtype} has none, only floating point has"),
                serious=True,
            )
        )
    elif not source.used:
        notes.append(Note(say("not used: the graph does not lead here, so the gradient is None"), serious=True))
    elif found is None and not jacobian_only:
        notes.append(Note(say("the gradient is None: the sweep did not reach it"), serious=True))
    if found is not None:
        if found.nans or found.infs:
            notes.append(Note(say("the gradient has ", _odd(found.nans, found.infs)), serious=True))
        if found.all_zero:
            notes.append(
                Note(
                    say("the gradient is exactly 0" if found.size == 1 else "every element of the gradient is exactly 0"),
                    serious=True,
                )
            )
    line, _ = ("", "") if source.is_leaf else library.place(library.node(tensor))
    if line:
        notes.append(Note(say("made at ", line)))
    return Row(
        source.name,
        tuple(tensor.shape),
        library.dtype_name(tensor),
        str(tensor.device),
        value,
        found,
        tuple(notes),
        source.is_leaf,
    )


def _own_array(library: Library, tensor: Any) -> Any:
    """The tensor's array where it lies, for a library that says; else on the host."""
    array = getattr(tensor, "array", None)
    return library.array(tensor) if array is None else array


def _odd(nans: int, infs: int) -> str:
    return " and ".join(
        f"{n:,} {what}".replace(",", "\N{NARROW NO-BREAK SPACE}") for n, what in ((nans, "NaN"), (infs, "infinite")) if n
    )


def _sentence(subject: Subject, sources: Sequence[Source], weights: Any) -> Sentence:
    by = [code(source.name) for source in sources if source.used and source.wanted]
    weighted_by = subject.weights if len(subject.weights) <= LONG else f"{subject.weights[: LONG - 1]}…"
    parts: list[Any] = [Span(subject.name.text, "code strong" if subject.called else "strong")]
    if subject.size == 1 and subject.out is not None:
        value = float(subject.library.array(subject.out).reshape(()))
        parts.append(Span(f" = {number(value)}", "strong"))
    elif subject.shape:
        parts.append(f" ({shape_text(subject.shape)})")
    if weights is not None:
        few = len(weights.shape) == 1 and weights.shape[0] <= 8
        written = f"[{', '.join(number(float(x), 3) for x in subject.library.array(weights))}]" if few else ""
        parts += [", weighted by ", code(weighted_by or "v"), f" = {written}" if written and written != subject.weights else ""]
    parts += [", differentiated by ", listed(by) if by else "nothing", "." if sources else ": every leaf of its graph is gone."]
    return say(*parts)


def _graph(subject: Subject, names: Mapping[str, Any], bounds: Bounds) -> Drawing | None:
    if subject.out is None:
        return None
    from gradlab.explore.graph import graph
    from gradlab.explore.listing import bounded

    drawing = graph(subject.out, _named_out(subject, names), limit=bounds.nodes).drawing()
    if len(drawing.text) <= TEXT:
        return drawing
    return replace(drawing, text=bounded(drawing.text, TEXT) + "\n(report.graph().text() is the whole.)")


def _named_out(subject: Subject, names: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(names)
    if subject.out is not None and subject.called and not any(tensor is subject.out for tensor in known.values()):
        known[to_text((subject.name,))] = subject.out
    return known


def jacobian_of(subject: Subject, sources: Sequence[Source], names: Mapping[str, Any]) -> Any:
    """The Jacobian of the output by those of the sources that it depends on, side by side; None if there are none."""
    from gradlab.explore.jacobian import jacobian

    wanted = [source for source in sources if source.used and source.wanted]
    if not wanted or subject.out is None:
        return None
    called = {**_named_out(subject, names), **{source.name: source.tensor for source in wanted}}
    called = {clean(name): tensor for name, tensor in called.items()}
    return jacobian(subject.out, wanted[0].tensor if len(wanted) == 1 else [source.tensor for source in wanted], names=called)


def _caption(text: str) -> Drawing:
    from gradlab.explore.drawing import DIM, SANS, escape, text_width

    return Drawing(
        f'<text x="0" y="13" font-size="12" font-family="{SANS}" fill="{DIM}">{escape(text)}</text>',
        text_width(text, 12) + 4,
        18,
        text,
        text,
    )


class _Graph:
    """The way back to the graph: weak references to the output and to what has a name."""

    def __init__(self, subject: Subject, sources: Sequence[Source]) -> None:
        self._output = weakref.ref(subject.out) if subject.out is not None else None
        self._names = {source.name: weakref.ref(source.tensor) for source in sources if not source.name.startswith("(unnamed")}
        if self._output is not None and subject.called:
            self._names.setdefault(subject.name.text, self._output)

    def draw(self, limit: int) -> Any:
        """The graph with its names, or an error if it is gone."""
        from gradlab.explore.graph import graph

        output = self._output() if self._output is not None else None
        if output is None:
            raise RuntimeError(
                "the graph is gone; run the cell again. (A report keeps no tensor alive: bind the result to a name.)"
            )
        found = {name: tensor() for name, tensor in self._names.items()}
        return graph(output, {name: tensor for name, tensor in found.items() if tensor is not None}, limit=limit)


# --------------------------------------------------------------------------------------------------------------- report
@dataclass(frozen=True, repr=False)
class Report:
    """What a differentiation gave, in plain data and finished pictures.

    Made by `explain`, by `%grad` and by a `%%grad` cell. Show it by displaying it; `table()`, `plot()`, `save()` and `graph()`
    give its parts.

    Attributes
    ----------
    rows : tuple of Row
        One for each tensor: its name, shape, dtype, device, the statistics of its value and gradient, the remarks.
    picture : Drawing or None
        The graph and the heat maps.
    jacobian_picture : Drawing or None
        The heat map of the Jacobian, where one was asked for.
    by_hand : str
        Runnable code for the same; empty where the cell was that code.
    previous : dict of str to ndarray
        The gradients that were replaced, by name, as NumPy arrays.
    backward_calls : int
        How often the cell called `backward` itself; the report is of the last call.
    """

    head: tuple[Sentence, ...]
    rows: tuple[Row, ...]
    picture: Drawing | None
    jacobian_picture: Drawing | None
    by_hand: str
    maps: tuple[pictures.Map, ...]
    previous: dict[str, np.ndarray]
    backward_calls: int
    bounds: Bounds
    _graph_alone: Drawing | None  # for a bitmap, where one of the whole picture would be too large
    _graph: _Graph

    @property
    def sentence(self) -> str:
        """The opening sentences as text."""
        return " ".join(to_text(sentence) for sentence in self.head)

    def __getitem__(self, name: str) -> Row:
        """The row of a tensor by the name it has in the table."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{name!r}; this report has {', '.join(repr(row.name) for row in self.rows) or 'no rows'}")

    def table(self, limit: int | None = -1) -> Table:
        """The sentence and the table of leaves. `limit=None` shows every row; the default is the report's own bound."""
        what = "leaf" if all(row.is_leaf for row in self.rows) else "tensor"
        return leaf_table(
            self.rows,
            self.head,
            limit=self.bounds.leaf_rows if limit == -1 else limit,
            what=what,
            with_gradient=any(row.gradient is not None for row in self.rows) or self.jacobian_picture is None,
        )

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

    def graph(self) -> Any:
        """The graph as `graph` draws it. RuntimeError if the output is gone: a report keeps no tensor alive."""
        return self._graph.draw(self.bounds.nodes)

    def parts(self) -> list[Any]:
        """What a notebook shows, one output each: the table, the picture, the Jacobian, the code."""
        drawings = self._drawings()
        words: list[Any] = [self.table(), *([Code(self.by_hand)] if self.by_hand else [])]
        room = OUTPUT - sum(_size(text) for part in words for text in part._repr_mimebundle_().values())
        room -= sum(_size(drawing.html()) + _size(drawing.text) for drawing in drawings)
        share = min(MAX_BYTES, room * 3 // 4 // max(1, len(drawings)))  # base64 makes 4 of 3
        return [
            words[0],
            *(Picture(drawing, share, self._graph_alone if drawing is self.picture else None) for drawing in drawings),
            *words[1:],
        ]

    def _drawings(self) -> list[Drawing]:
        return [drawing for drawing in (self.picture, self.jacobian_picture) if drawing is not None]

    def text(self) -> str:
        """The whole report for a terminal."""
        return "\n\n".join(
            filter(
                None,
                [
                    self.table().text(),
                    *(drawing.text for drawing in self._drawings()),
                    f"The same by hand:\n{indented(clean(self.by_hand))}" if self.by_hand else "",
                ],
            )
        )

    def html(self) -> str:
        """The whole report as a fragment of HTML."""
        images = "".join(f'<div style="padding:10px 2px">{drawing.html()}</div>' for drawing in self._drawings())
        return f"<div>{self.table().html()}{images}{Code(self.by_hand).html() if self.by_hand else ''}</div>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the report to a file that needs nothing else: `.html` all of it, `.svg` and `.png` its pictures.

        An existing file is replaced. Returns the path.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".html":
            path.write_text(self._page(), encoding="utf-8")
        elif kind == ".svg":
            path.write_text(self._sheet().svg(), encoding="utf-8")
        elif kind == ".png":
            data = self._sheet().png(max_side=4000)
            if data is None:
                raise RuntimeError(
                    "a PNG needs the package resvg_py, which is not installed here; save as .svg or .html instead."
                )
            path.write_bytes(data)
        else:
            raise ValueError(f"a report is saved as .html, .svg or .png, and {path.name!r} ends in none of them.")
        return path

    def _sheet(self) -> Drawing:
        lines = [_caption(line) for sentence in self.head for line in _wrapped(to_text(sentence))]
        return above(above(*lines, gap=2), *self._drawings(), gap=20)

    def _page(self) -> str:
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
            f"<title>{escape_html(to_text(self.head[0]))}</title>"
            "<style>:root{color-scheme:light dark}body{margin:24px auto;max-width:980px;padding:0 16px;"
            "font:14px/1.5 system-ui,sans-serif;background:#fff;color:#1c2430}"
            "@media(prefers-color-scheme:dark){body{background:#111418;color:#e3e7ec}}</style>"
            f"</head><body>{self.html()}</body></html>\n"
        )

    def __repr__(self) -> str:
        return f"<Report: {to_text(self.head[0])}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        bundle = {"text/html": self.html(), "text/plain": self.text()}
        bundle["text/latex"] = "\n\n".join(part.latex() for part in self.parts() if not isinstance(part, Picture))
        drawings = self._drawings()
        room = OUTPUT - sum(map(_size, bundle.values()))
        return bundle | (Picture(drawings[0], min(MAX_BYTES, room * 3 // 4), self._graph_alone).bitmap() if drawings else {})


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 110) or [""]

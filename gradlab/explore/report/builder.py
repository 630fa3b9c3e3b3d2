"""How a report is made: from a trace, and from the tensors that its sweep did not reach.

A report is made at once and then stands alone: it holds a trace, statistics and finished pictures, and never a tensor, a node or
an array of the graph. (`previous`, gradients that a `%%grad` cell replaced, are kept for the user as NumPy arrays: they are as
large as those gradients were.)

`explain` makes one without writing any `.grad`; the `%%grad` magic makes one from the backward that it ran or saw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradlab.explore import report_picture as pictures
from gradlab.explore.drawing import Drawing, above, clean
from gradlab.explore.equivalent_code import EquivalentCode, is_code
from gradlab.explore.graph import Graph
from gradlab.explore.graph.graphs import MOST_NODES
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import Sentence, Span, code, count, dimmed, listed, number, say, scalar, shape_text, term, to_text
from gradlab.explore.names import caller_names
from gradlab.explore.pooled_matrix import PooledMatrix, reduced
from gradlab.explore.report.parts import shortened_text
from gradlab.explore.report.report import Bounds, Report, caption
from gradlab.explore.report.rows import rows_of
from gradlab.explore.report.table import SHOWN, TableNote, TensorRow
from gradlab.explore.report.tree import forest
from gradlab.explore.sources import Source, sources_of, weights_for, weights_needed, why_not
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.reading import trace_of
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.values import Value

TEXT = 12_000  # characters of the graph as text
LONG = 60  # characters of an expression in the sentence


@dataclass
class Subject:
    """What a report is about. Lives only while it is made."""

    library: Library
    root: Any  # the node that the cotangent of the output arrives at
    shape: tuple[int, ...]
    called: str  # a name, or the source of an expression; "" if there is neither
    out: Any = None  # the output; None where only its node is known
    weights: str = ""  # what the weights are called; "" for none
    value: Value | None = None  # where the output itself is gone or was changed since

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

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> report = gl.explain((w**2).sum())
    >>> report
    <Report: the result = 5, with respect to w.>
    >>> w.grad is None
    True
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
    weights_used = None
    if weights is not None:
        subject.weights = next((name for name, tensor in names.items() if tensor is weights), "v")
        weights_used = weights_for(library, out, weights, called or "out")
    elif not subject.size or (subject.size != 1 and subject.size > bounds.jacobian_rows):
        raise weights_needed(library, out, called or "out", f"explain({called or 'out'}, weights={{}})", bounds.jacobian_rows)
    sources = sources_of(library, [subject.root], names, asked)
    with_jacobian = weights_used is None and subject.size != 1
    trace = None
    if not with_jacobian:
        trace = differentiate(subject, sources, weights_used, names)
    hand = EquivalentCode(library.alias, library.name, called if is_code(called) else "out", subject.weights)
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
        weights=weights_used,
        trace=trace,
    )


def _asked_for(wrt: Any, names: Mapping[str, Any]) -> dict[str, Any] | None:
    if wrt is None:
        return None
    if isinstance(wrt, Mapping):
        asked = dict(wrt)
    else:
        targets = [wrt] if library_of(wrt) is not None or isinstance(wrt, str) or not isinstance(wrt, Sequence) else list(wrt)
        called = {id(tensor): name for name, tensor in names.items()}
        asked = {called.get(id(tensor), f"wrt[{i}]" if len(targets) > 1 else "wrt"): tensor for i, tensor in enumerate(targets)}
    for name, tensor in asked.items():
        if library_of(tensor) is None:
            raise TypeError(f"wrt must be tensors, and {name} is {type(tensor).__name__}: {tensor!r:.80}.")
    return asked


def differentiate(
    subject: Subject, sources: Sequence[Source], weights: Any, names: Mapping[str, Any], recorder: Recorder | None = None
) -> Trace | None:
    """Fill in the gradients of the sources by one sweep that writes no `.grad`, and return what was seen of it."""
    wanted = [source for source in sources if source.used and source.wanted]
    if not wanted:
        return None
    library, out = subject.library, subject.out
    recorder = recorder or Recorder(dict, called=names)
    start = library.tensor(np.ones(subject.shape), like=out) if weights is None else weights
    with recorder.sweeping(library, [(subject.root, start)], [out], None, (), private=True, retains=True):
        gradients = library.grad([out], [source.tensor for source in wanted], None if weights is None else [weights])
    for source, gradient in zip(wanted, gradients, strict=True):
        source.gradient = gradient
        recorder.found(source.tensor, gradient)
    return recorder.trace()


def differentiate_from(
    subject: Subject, sources: Sequence[Source], cotangents: Sequence[Any], recorder: Recorder
) -> Trace | None:
    """The same by a sweep that begins in the midst of a graph, at a node with these cotangents of its outputs."""
    wanted = [source for source in sources if source.used and source.wanted]
    library, node = subject.library, subject.root
    arrived = [(i, g) for i, g in enumerate(cotangents) if g is not None]
    if not wanted or not arrived:
        return None
    edge = library.autograd().graph.GradientEdge
    with recorder.sweeping(library, [(node, arrived[0][1])], [], None, (), private=True, retains=True):
        gradients = library.grad(
            [edge(node, i) for i, _ in arrived], [source.tensor for source in wanted], [g for _, g in arrived]
        )
    for source, gradient in zip(wanted, gradients, strict=True):
        source.gradient = gradient
        recorder.found(source.tensor, gradient)
    return recorder.trace()


# --------------------------------------------------------------------------------------------------------------- making
def make_report(
    subject: Subject,
    sources: Sequence[Source],
    deed: Sentence,
    *,
    trace: Trace | None = None,
    names: Mapping[str, Any],
    by_hand: str,
    bounds: Bounds,
    with_graph: bool = True,
    jacobian: Any = None,
    weights: Any = None,
    notes: Mapping[str, Sequence[TableNote]] | None = None,
    previous: Mapping[str, np.ndarray] | None = None,
    backward_calls: int = 0,
    maps: Sequence[tuple[str, PooledMatrix]] = (),
    findings: Sequence[Any] = (),
    remarks: Sequence[Any] = (),
) -> Report:
    """Put a report together.

    Parameters
    ----------
    subject : Subject
    sources : sequence of Source
        What the rows are of, in this order. What the trace knows of a leaf, its value and gradient at the moment of the sweep, is
        taken from there; of the others there is what they hold now, or why they have no gradient.
    deed : Sentence
        What happened to `.grad`.
    trace : Trace, optional
        The sweep. Without one there is the structure of the graph alone.
    names : mapping of str to Tensor
        What things are called.
    by_hand : str
        Equivalent code; empty for none.
    weights : Tensor or Value, optional
        What weighted the output.
    jacobian : Jacobian, optional
        Of which the report keeps the picture.
    notes : mapping of str to sequence of TableNote, optional
        Further remarks on rows, by name.
    maps : sequence of (str, Reduced)
        The matrix-shaped gradients of the sweep, where the sources do not hold them any more.
    findings, remarks : sequence
        What a doctor says: objects with `.kind`, `.message`, `.line`, `.node`, `.fix` and `.evidence`.
    """
    if trace is None:
        trace = Trace(subject.library.name, (), ())
        if with_graph and subject.out is not None:
            trace = trace_of([subject.out], _named_out(subject, names), MOST_NODES)
    trace = _called(trace, subject)
    jacobian_only = jacobian is not None and weights is None and subject.size != 1
    rows = rows_of(trace.leaves, sources, notes or {}, jacobian_only=jacobian_only, meant=trace.held_by_steps or None)
    matrices = _matrices(sources)
    held = [(label, reduced(_own_array(subject.library, gradient), pictures.CELLS)) for label, gradient in matrices]
    known = subject.value or (subject.library.values([subject.out])[0] if subject.out is not None else None)
    return report_of(
        trace,
        deed,
        rows=rows,
        subject=subject.name,
        shape=subject.shape,
        value=known.numbers[0] if subject.size == 1 and known is not None and known.numbers is not None else None,
        wrt=[source.name for source in sources if source.used and source.wanted] if sources else None,
        weighted=_weighted(subject, weights),
        by_hand=by_hand,
        bounds=bounds,
        with_graph=with_graph,
        jacobian=jacobian,
        matrices=held or maps,
        previous=previous,
        backward_calls=backward_calls,
        findings=findings,
        remarks=remarks,
        output=None if subject.out is None else subject.library.weakly(subject.out),
    )


def report_of(
    trace: Trace,
    deed: Sentence = (),
    *,
    rows: Sequence[TensorRow] | None = None,
    subject: Span | None = None,
    shape: Sequence[int] | None = None,
    value: Any = None,
    wrt: Sequence[str] | None = None,
    weighted: Sentence = (),
    by_hand: str = "",
    bounds: Bounds | None = None,
    with_graph: bool = True,
    jacobian: Any = None,
    matrices: Sequence[tuple[str, Any]] = (),
    previous: Mapping[str, np.ndarray] | None = None,
    backward_calls: int = 0,
    findings: Sequence[Any] = (),
    remarks: Sequence[Any] = (),
    output: Any = None,
) -> Report:
    """The report of a trace.

    Parameters
    ----------
    rows : sequence of TensorRow, optional
        Default: those of the trace's leaves.
    subject, shape, value
        What is differentiated: what it is called, its shape and its number. Default: the trace's first output.
    wrt : sequence of str, optional
        The names of those that it is differentiated with respect to. Default: the leaves.
    matrices : sequence of (str, Reduced)
        Gradients to be drawn as heat maps.
    output : weak reference, optional
        To what is differentiated.
    """
    bounds = bounds or Bounds()
    if rows is None:
        rows = rows_of(trace.leaves, (), {})
    out = trace.nodes[trace.outputs[0]] if trace.outputs else None
    if subject is None:
        subject = Span(out.label if out is not None else "the result", "code" if out is not None and out.name else "plain")
    if shape is None:
        shape = (out.shape or ()) if out is not None else ()
    if out is not None and out.value is not None and out.value.numbers is not None and len(out.value.numbers) == 1:
        value = out.value.numbers[0]  # of the moment of the sweep
    if wrt is None:
        wrt = [row.name for row in rows if row.gradient is not None]
    by = _with_respect_to(rows, wrt, trace)
    in_models = {row.name for tree in forest(rows, trace.layers)[0] for row in tree.rows}  # a tree says enough
    drawn = list(matrices[: bounds.heat_maps])
    large = [
        (label, matrix)
        for label, matrix in drawn
        if math.prod(matrix.shape) > SHOWN and label.removesuffix(".grad") not in in_models
    ]
    graph = _graph(trace, bounds, bool(in_models)) if with_graph and trace.nodes else None
    drawings = pictures.heat_maps(large) if large else []
    drawing, shown = pictures.picture(graph, drawings)
    left_out = len(drawings) - shown + (len(matrices) - len(drawn) if large else 0)
    note = caption(f"{count(left_out, 'more matrix-shaped gradient')} not drawn.") if left_out and drawing else None
    if drawing is not None and note is not None:
        drawing = above(drawing, note, gap=14)
    first = say(_strong(subject), *_equals(shape, value), weighted, ", with respect to ", by)
    return Report(
        head=tuple(filter(None, (first, dimmed(say(deed, () if backward_calls else _which_sweep(trace), _since(trace, rows)))))),
        bare=(say(subject if subject.text.isidentifier() else "The result", ", with respect to ", _listed_bare(wrt)),),
        rows=tuple(rows),
        picture=drawing,
        jacobian_picture=jacobian.drawing() if jacobian is not None else None,
        by_hand=by_hand,
        maps=tuple(pictures.kept(*matrix) for matrix in drawn),
        previous=dict(previous or {}),
        backward_calls=backward_calls,
        bounds=bounds,
        trace=trace,
        findings=tuple(findings),
        remarks=tuple(remarks),
        graph_drawing=graph,
        map_drawings=(*drawings[:shown], *([note] if note is not None else [])),
        _output=output,
    )


def _called(trace: Trace, subject: Subject) -> Trace:
    """The trace with its one output called as the sentence calls it."""
    outputs = trace.outputs
    if len(outputs) != 1 or trace.nodes[outputs[0]].name or not subject.called:
        return trace
    at = outputs[0]
    label = to_text((subject.name,))
    return replace(trace, nodes=(*trace.nodes[:at], replace(trace.nodes[at], label=label), *trace.nodes[at + 1 :]))


def _matrices(sources: Sequence[Source]) -> list[tuple[str, Any]]:
    """The matrix-shaped gradients that the sources hold."""
    return [
        (f"{source.name}.grad" if source.is_leaf else f"gradient of {source.name}", source.gradient)
        for source in sources
        if source.gradient is not None and len(source.gradient.shape) == 2 and source.gradient.numel() > 1
    ]


def _own_array(library: Library, tensor: Any) -> Any:
    """The tensor's array where it lies, for a library that says; else on the host."""
    array = getattr(tensor, "array", None)
    return library.array(tensor) if array is None else array


def _strong(subject: Span) -> Span:
    return Span(subject.text, "strong" if subject.kind == "plain" else f"{subject.kind} strong")


def _equals(shape: Sequence[int], value: Any) -> list[Any]:
    if value is not None:
        return [Span(f" = {scalar(value)}", "strong")]
    return [f" ({shape_text(shape)})"] if shape else []


def _weighted(subject: Subject, weights: Any) -> Sentence:
    if weights is None:
        return ()
    called = subject.weights if len(subject.weights) <= LONG else f"{subject.weights[: LONG - 1]}…"
    value = weights if isinstance(weights, Value) else subject.library.values([weights])[0]
    few = len(value.shape) == 1 and value.shape[0] <= 8
    written = f"[{', '.join(scalar(x, 3) for x in value.numbers)}]" if few and value.numbers is not None else ""
    return say(
        ", ",
        term("weighted by", "weighted"),
        " ",
        code(called or "v"),
        f" = {written}" if written and written != subject.weights else "",
    )


def _with_respect_to(rows: Sequence[TensorRow], wrt: Sequence[str], trace: Trace) -> Sentence:
    """ "a and b."; of models "the parameters of model: 149 of 151 tensors got a gradient, ‖gradient‖ 0.778."."""
    if not wrt:
        return say("nothing.") if rows else say("nothing: every ", term("leaf", "leaf"), " of its graph is gone.")
    trees, rest = forest(rows, trace.layers)
    if not trees:
        return say(listed([code(name) for name in wrt]), ".")
    others = {row.name: row for row in rest}
    items = [say("the parameters of ", code(tree.name)) for tree in trees] + [code(name) for name in wrt if name in others]
    below = [*(row for tree in trees for row in tree.rows), *(others[name] for name in wrt if name in others)]
    reached = sum(row.gradient is not None for row in below)
    if not reached:
        return say(listed(items), ".")
    norm = math.hypot(*(row.gradient.norm for row in below if row.gradient is not None))
    tensors = f"{reached} of {len(below)}" if reached < len(below) else f"all {len(below)}"
    return say(listed(items), f": {tensors} tensors got a gradient, ‖gradient‖ {number(norm)}.")


def _listed_bare(wrt: Sequence[str]) -> Sentence:
    return say(listed([code(name) for name in wrt]) if wrt else "nothing", ".")


def _which_sweep(trace: Trace) -> Sentence:
    if trace.sweep == trace.sweeps:
        return ()
    return say(f" Shown is sweep {trace.sweep} of {trace.sweeps}, the last that was looked at.")


def _since(trace: Trace, rows: Sequence[TensorRow]) -> Sentence:
    """What the program has done to the tensors of the table since the sweep that it shows."""
    shown = {row.name for row in rows}
    later: dict[tuple[str, str, str], list[str]] = {}
    left = trace.sweeps - trace.sweep + 1
    for event in reversed(trace.events):
        if event.kind == "backward":
            left -= 1
            if not left:
                break
            continue
        names = [name for name in event.names if name in shown]
        if names:
            place = event.place
            where = "" if place is None else f"line {place.line}" if place.in_cell else place.where
            source = "" if place is None else place.statement or place.source
            known = later.setdefault((event.kind, source, where), [])
            known += [name for name in names if name not in known]
    else:
        return ()
    if not trace.sweep or not later:
        return ()
    parts: list[Any] = [" Values and gradients are those that this backward saw and left; since then "]
    told = list(later.items())[:3]
    for at, ((kind, source, where), names) in enumerate(reversed(told)):
        if at:
            parts.append("; " if at < len(told) - 1 else ", and ")
        doer = {"step": "the optimizer's step", "write": "a write in place"}[kind]
        parts += [code(source) if source else doer, f" ({where})" if where else "", " has changed "]
        parts.append(listed([code(name) for name in names]) if len(names) <= 4 else f"{len(names)} tensors")
    return say(*parts, ".")


def _graph(trace: Trace, bounds: Bounds, tree: bool) -> Drawing:
    """The picture of the graph; beside a tree of modules, whose rows say more than rows of a picture, its operations."""
    drawing = Graph(trace, limit=bounds.nodes, level="operations" if tree else None).drawing()
    return replace(drawing, text=shortened_text(drawing.text, TEXT))


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

"""Build a report from a trace and from the tensors that its sweep did not reach.

A report is built at once and is then independent of the graph: it holds a trace, statistics and finished pictures, but no tensor,
node or array of the graph. (`previous`, the gradients that a `%%grad` cell replaced, are kept for the user as NumPy arrays of
full size.)

`explain` builds a report without writing any `.grad`. The `%%grad` magic builds one from the backward pass that it ran or
recorded.
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
from gradlab.explore.libraries.loss_scaling import factor_text
from gradlab.explore.markup import Sentence, Span, code, count, dim, join_items, number, say, scalar, shape_text, term, to_text
from gradlab.explore.names import caller_names
from gradlab.explore.pooled_matrix import PooledMatrix, pool_matrix
from gradlab.explore.report.parts import shortened_text
from gradlab.explore.report.report import Bounds, Report, caption
from gradlab.explore.report.rows import rows_of
from gradlab.explore.report.table import MAX_NUMBERS, TableNote, TensorRow
from gradlab.explore.report.tree import forest
from gradlab.explore.sources import Source, sources_of, weights_for, weights_needed, why_not
from gradlab.explore.trace.data import RAN_UNCOMPILED, Trace
from gradlab.explore.trace.reading import trace_of
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.values import Value

MAX_GRAPH_TEXT = 12_000  # characters of the graph as text
MAX_EXPRESSION = 60  # characters of an expression in the sentence


@dataclass
class Subject:
    """The differentiated output of a report. Exists only while the report is built."""

    library: Library
    root: Any  # the node that gets the cotangent of the output
    shape: tuple[int, ...]
    called: str  # a name, or the source of an expression; "" if neither is known
    out: Any = None  # the output; None if only its node is known
    weights: str = ""  # the name of the weights; "" without weights
    value: Value | None = None  # if the output itself was freed or changed since

    @property
    def size(self) -> int:
        """The number of elements of the output."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def name(self) -> Span:
        """The output as a part of a sentence."""
        if not self.called or len(self.called) > MAX_EXPRESSION or "\n" in self.called:
            return Span("the result" if not self.called else f"{self.called.splitlines()[0][: MAX_EXPRESSION - 1]}…", "code")
        return code(self.called)


def explain(
    out: Any, wrt: Any = None, weights: Any = None, *, names: Mapping[str, Any] | None = None, bounds: Bounds | None = None
) -> Report:
    """Report on the gradients of a tensor without writing any `.grad`.

    Parameters
    ----------
    out : Tensor
        The tensor to differentiate, of any shape: a gradlab or PyTorch tensor that requires grad.
    wrt : Tensor, sequence of Tensor, or mapping of str to Tensor, optional
        The tensors to differentiate with respect to: leaves or intermediate tensors. Default: all leaves.
    weights : array_like or Tensor, optional
        For a non-scalar `out`, weights v of the same shape: the report shows vᵀJ. Without weights, a small `out` gets its
        Jacobian.
    names : mapping of str to Tensor, optional
        The names of the tensors. Default: the caller's variables.
    bounds : Bounds, optional
        How much the report shows.

    Returns
    -------
    Report

    Raises
    ------
    TypeError
        If `out` or `wrt` are not tensors, or the weights are not numbers.
    RuntimeError
        If `out` does not require grad, if it has more than `bounds.jacobian_rows` elements and `weights` is None, if the weights
        do not have the shape of `out`, or if the graph was freed.

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
        raise TypeError(f"explain(out) expects a tensor that was computed from others, got {type(out).__name__}: {out!r:.80}.")
    reason = why_not(out, called or "out")
    if reason is not None:
        raise RuntimeError(f"element 0 of tensors does not require grad and does not have a grad_fn: {to_text(reason)}.")
    asked = _named_targets(wrt, names)
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


def _named_targets(wrt: Any, names: Mapping[str, Any]) -> dict[str, Any] | None:
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
            raise TypeError(f"wrt must be tensors, but {name} is {type(tensor).__name__}: {tensor!r:.80}.")
    return asked


def differentiate(
    subject: Subject, sources: Sequence[Source], weights: Any, names: Mapping[str, Any], recorder: Recorder | None = None
) -> Trace | None:
    """Compute the gradients of the sources by one sweep that writes no `.grad`, and return the trace of the sweep."""
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
        recorder.add_gradient(source.tensor, gradient)
    return recorder.trace()


def differentiate_from(
    subject: Subject, sources: Sequence[Source], cotangents: Sequence[Any], recorder: Recorder
) -> Trace | None:
    """Return the trace as `differentiate` does, for a sweep that starts at a node inside the graph with cotangents of its
    outputs."""
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
        recorder.add_gradient(source.tensor, gradient)
    return recorder.trace()


# ------------------------------------------------------------------------------------------------------------- building
def make_report(
    subject: Subject,
    sources: Sequence[Source],
    effect: Sentence,
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
    """Build a report.

    Parameters
    ----------
    subject : Subject
    sources : sequence of Source
        The tensors of the rows, in this order. The value and gradient of a leaf in the trace are those at the time of the sweep.
        For other tensors, the row shows the current values, or why there is no gradient.
    effect : Sentence
        What happened to `.grad`.
    trace : Trace, optional
        The trace of the sweep. Without it, only the structure of the graph is shown.
    names : mapping of str to Tensor
        The names of tensors.
    by_hand : str
        Equivalent code; empty if there is none.
    weights : Tensor or Value, optional
        The weights of the output.
    jacobian : Jacobian, optional
        The report keeps its picture.
    notes : mapping of str to sequence of TableNote, optional
        Additional remarks on rows, by name.
    maps : sequence of (str, Reduced)
        The matrix-shaped gradients of the sweep, if the sources do not hold them any more.
    findings, remarks : sequence
        The doctor's findings: objects with `.kind`, `.message`, `.line`, `.node`, `.fix` and `.evidence`.
    """
    if trace is None:
        trace = Trace(subject.library.name, (), ())
        if with_graph and subject.out is not None:
            trace = trace_of([subject.out], _named_out(subject, names), MOST_NODES)
    trace = _name_output(trace, subject)
    jacobian_only = jacobian is not None and weights is None and subject.size != 1
    rows = rows_of(trace.leaves, sources, notes or {}, jacobian_only=jacobian_only, expected=trace.held_by_steps or None)
    matrices = _matrices(sources)
    held = [(label, pool_matrix(_own_array(subject.library, gradient), pictures.CELLS)) for label, gradient in matrices]
    known = subject.value or (subject.library.values([subject.out])[0] if subject.out is not None else None)
    return report_of(
        trace,
        effect,
        rows=rows,
        subject=subject.name,
        shape=subject.shape,
        value=known.numbers[0] if subject.size == 1 and known is not None and known.numbers is not None else None,
        wrt=[source.name for source in sources if source.used and source.wanted] if sources else None,
        weighted=_weights_text(subject, weights),
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
    effect: Sentence = (),
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
    """Build the report of a trace.

    Parameters
    ----------
    rows : sequence of TensorRow, optional
        Default: the rows of the trace's leaves.
    subject, shape, value
        The name, the shape and the number of the differentiated output. Default: the trace's first output.
    wrt : sequence of str, optional
        The names of the tensors to differentiate with respect to. Default: the leaves.
    matrices : sequence of (str, Reduced)
        Gradients to draw as heat maps.
    output : weak reference, optional
        The differentiated output.
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
        value = out.value.numbers[0]  # at the time of the sweep
    if wrt is None:
        wrt = [row.name for row in rows if row.gradient is not None]
    by = _with_respect_to(rows, wrt, trace)
    in_models = {row.name for tree in forest(rows, trace.layers)[0] for row in tree.rows}  # shown in trees, without heat maps
    drawn = list(matrices[: bounds.heat_maps])
    large = [
        (label, matrix)
        for label, matrix in drawn
        if math.prod(matrix.shape) > MAX_NUMBERS and label.removesuffix(".grad") not in in_models
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
        head=tuple(
            filter(
                None,
                (
                    first,
                    dim(
                        say(
                            effect,
                            () if backward_calls else _which_sweep(trace),
                            _scale_text(trace),
                            _changes_since(trace, rows),
                            _compile_text(trace),
                        )
                    ),
                ),
            )
        ),
        bare=(say(subject if subject.text.isidentifier() else "The result", ", with respect to ", _listed_bare(wrt)),),
        rows=tuple(rows),
        picture=drawing,
        jacobian_picture=jacobian.drawing() if jacobian is not None else None,
        by_hand=by_hand,
        maps=tuple(pictures.map_of(*matrix) for matrix in drawn),
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


def _name_output(trace: Trace, subject: Subject) -> Trace:
    """Return the trace with its only output named as in the report's sentence."""
    outputs = trace.outputs
    if len(outputs) != 1 or trace.nodes[outputs[0]].name or not subject.called:
        return trace
    at = outputs[0]
    label = to_text((subject.name,))
    return replace(trace, nodes=(*trace.nodes[:at], replace(trace.nodes[at], label=label), *trace.nodes[at + 1 :]))


def _matrices(sources: Sequence[Source]) -> list[tuple[str, Any]]:
    """Return the matrix-shaped gradients that the sources hold."""
    return [
        (f"{source.name}.grad" if source.is_leaf else f"gradient of {source.name}", source.gradient)
        for source in sources
        if source.gradient is not None and len(source.gradient.shape) == 2 and source.gradient.numel() > 1
    ]


def _own_array(library: Library, tensor: Any) -> Any:
    """Return the tensor's array on its device if the tensor has an `array`, else on the host."""
    array = getattr(tensor, "array", None)
    return library.array(tensor) if array is None else array


def _strong(subject: Span) -> Span:
    return Span(subject.text, "strong" if subject.kind == "plain" else f"{subject.kind} strong")


def _equals(shape: Sequence[int], value: Any) -> list[Any]:
    if value is not None:
        return [Span(f" = {scalar(value)}", "strong")]
    return [f" ({shape_text(shape)})"] if shape else []


def _weights_text(subject: Subject, weights: Any) -> Sentence:
    if weights is None:
        return ()
    called = subject.weights if len(subject.weights) <= MAX_EXPRESSION else f"{subject.weights[: MAX_EXPRESSION - 1]}…"
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
    """Return "a and b.", or "the parameters of model: 149 of 151 tensors got a gradient, ‖gradient‖ 0.778."."""
    if not wrt:
        return say("nothing.") if rows else say("nothing: every ", term("leaf", "leaf"), " of its graph is gone.")
    trees, rest = forest(rows, trace.layers)
    if not trees:
        return say(join_items([code(name) for name in wrt]), ".")
    others = {row.name: row for row in rest}
    items = [say("the parameters of ", code(tree.name)) for tree in trees] + [code(name) for name in wrt if name in others]
    below = [*(row for tree in trees for row in tree.rows), *(others[name] for name in wrt if name in others)]
    reached = sum(row.gradient is not None for row in below)
    if not reached:
        return say(join_items(items), ".")
    norm = math.hypot(*(row.gradient.norm for row in below if row.gradient is not None))
    tensors = f"{reached} of {len(below)}" if reached < len(below) else f"all {len(below)}"
    return say(join_items(items), f": {tensors} tensors got a gradient, ‖gradient‖ {number(norm)}.")


def _listed_bare(wrt: Sequence[str]) -> Sentence:
    return say(join_items([code(name) for name in wrt]) if wrt else "nothing", ".")


def _which_sweep(trace: Trace) -> Sentence:
    if trace.sweep == trace.sweeps:
        return ()
    return say(f" Sweep {trace.sweep} of {trace.sweeps} is shown, the last one that was examined.")


def _scale_text(trace: Trace) -> Sentence:
    """Return how a GradScaler had scaled the loss, and how many steps it has skipped."""
    if trace.scale == 1.0:
        return ()
    keys = {leaf.key for leaf in trace.leaves}
    steps = [one.kind for one in trace.events if one.scale and one.kind != "unscale" and not keys.isdisjoint(one.held)]
    skipped = steps.count("skip")
    more = f" It skipped {skipped} of {count(len(steps), 'step')}, because a gradient was not finite." if skipped else ""
    return say(
        f" A GradScaler had multiplied the loss by {factor_text(trace.scale)}, and the gradients shown are divided by it. (",
        code(".grad"),
        " contains this factor until ",
        code("unscale_"),
        " or ",
        code("step"),
        f" of the GradScaler.){more}",
    )


def _compile_text(trace: Trace) -> Sentence:
    """Return that compiled functions ran as they are written, for a cell. A script's report says so below its findings."""
    return say(f" {RAN_UNCOMPILED}") if trace.uncompiled and trace.program == "the cell" else ()


def _changes_since(trace: Trace, rows: Sequence[TensorRow]) -> Sentence:
    """Return how the program changed the tensors of the table after the sweep that the report shows."""
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
    parts: list[Any] = [" Values and gradients are those of this backward pass. Since then, "]
    changes = list(later.items())[:3]
    for at, ((kind, source, where), names) in enumerate(reversed(changes)):
        if at:
            parts.append("; " if at < len(changes) - 1 else ", and ")
        change = {"step": "the optimizer's step", "write": "an in-place operation"}[kind]
        parts += [code(source) if source else change, f" ({where})" if where else "", " has changed "]
        parts.append(join_items([code(name) for name in names]) if len(names) <= 4 else f"{len(names)} tensors")
    return say(*parts, ".")


def _graph(trace: Trace, bounds: Bounds, tree: bool) -> Drawing:
    """Draw the graph: its operations if the report has a tree of modules, which shows more than rows of a picture."""
    drawing = Graph(trace, limit=bounds.nodes, level="operations" if tree else None).drawing()
    return replace(drawing, text=shortened_text(drawing.text, MAX_GRAPH_TEXT))


def _named_out(subject: Subject, names: Mapping[str, Any]) -> dict[str, Any]:
    known = dict(names)
    if subject.out is not None and subject.called and not any(tensor is subject.out for tensor in known.values()):
        known[to_text((subject.name,))] = subject.out
    return known


def jacobian_of(subject: Subject, sources: Sequence[Source], names: Mapping[str, Any]) -> Any:
    """Return the Jacobian of the output with respect to the sources it depends on, side by side; None if there are none."""
    from gradlab.explore.jacobian import jacobian

    wanted = [source for source in sources if source.used and source.wanted]
    if not wanted or subject.out is None:
        return None
    called = {**_named_out(subject, names), **{source.name: source.tensor for source in wanted}}
    called = {clean(name): tensor for name, tensor in called.items()}
    return jacobian(subject.out, wanted[0].tensor if len(wanted) == 1 else [source.tensor for source in wanted], names=called)

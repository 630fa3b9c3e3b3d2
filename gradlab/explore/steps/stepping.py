"""`step_through(out)`: the reverse sweep behind a tensor, taken apart into its steps.

One sweep is run, of the library's own, which writes no `.grad` and keeps the graph; everything else is read from what it did.
What is kept is plain data, but for `out` itself, which a sweep from another start needs: `close` lets it go.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.explore import views
from gradlab.explore.drawing import Drawing
from gradlab.explore.libraries import Library, library_of
from gradlab.explore.markup import code, count, say, to_text
from gradlab.explore.names import caller_names
from gradlab.explore.rule_math import rule_of
from gradlab.explore.sources import weights_for, weights_needed, why_not
from gradlab.explore.steps import display, slides, step_text
from gradlab.explore.steps.data import Share, Step, plain
from gradlab.explore.steps.factors import edges_into, factor_of
from gradlab.explore.steps.picture import Film
from gradlab.explore.steps.strip import ROOM, strip
from gradlab.explore.steps.sweep import Key, SweepRecord, Visit
from gradlab.explore.steps.view import view
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.reading import spine_first
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.retained_grads import grads_kept

MOST_ROWS = 60  # of a table
FREED = "second time"  # what both libraries say of a graph whose saved tensors are gone
RULES = 200  # steps whose formulas are written out with what the operation was given
MOST = 50_000  # nodes that are stepped through


def step_through(out: Any, gradient: Any = None) -> StepThrough:
    """The reverse sweep behind a tensor, one step for each operation in the order of the sweep.

    One sweep is run for it: no `.grad` is written, the graph is kept. Hooks that you have registered run as in every backward
    (`notes` says so).

    Parameters
    ----------
    out : Tensor
        What is differentiated, of gradlab or of PyTorch.
    gradient : array_like or Tensor, optional
        What the sweep starts with, of the shape of `out`; as in `out.backward(gradient)`. 1 for an `out` with one element.

    Returns
    -------
    StepThrough
        `.steps` and `.text()`; shown in a notebook as a table and a strip of pictures. `.save("back.html")` is a page that steps
        by itself, `.widget()` the live view.

    Raises
    ------
    TypeError
        If `out` is no tensor, or `gradient` no numbers.
    RuntimeError
        If `out` does not require grad, or has several elements and there is no `gradient`; if that has not its shape; if
        backward has freed the graph.

    Examples
    --------
    >>> import gradlab as gl
    >>> a, b = gl.tensor(-3.0, requires_grad=True), gl.tensor(2.0, requires_grad=True)
    >>> gl.step_through(a * b + b**3).steps[-1].shares[1]["total"]
    9.0
    """
    return stepped(out, gradient, caller_names())


def stepped(out: Any, gradient: Any, names: Mapping[str, Any]) -> StepThrough:
    """`step_through` where tensors are called by these names."""
    library = library_of(out)
    called = next((name for name, tensor in names.items() if tensor is out), "out")
    if library is None:
        raise TypeError(
            f"step_through(out) takes a tensor that was computed from others, and got {type(out).__name__}: {out!r:.80}."
        )
    reason = why_not(out, called)
    if reason is not None:
        raise RuntimeError(f"element 0 of tensors does not require grad and does not have a grad_fn: {to_text(reason)}.")
    size = int(np.prod(tuple(out.shape), dtype=np.int64))
    if gradient is None and size != 1:
        raise weights_needed(library, out, called, f"step_through({called}, {{}})")
    weights = None if gradient is None else weights_for(library, out, gradient, called)
    try:
        return _swept(library, out, weights, called, names)
    except RuntimeError as error:
        if FREED not in str(error):
            raise
        raise RuntimeError(
            "Trying to backward through the graph a second time: step_through runs a sweep of its own, and backward has freed "
            f"what the graph of {called} had saved. Compute {called} again, or keep the graph: "
            f"{called}.backward(retain_graph=True)."
        ) from error


def _swept(library: Library, out: Any, weights: Any, called: str, names: Mapping[str, Any]) -> StepThrough:
    root = library.node(out)
    nodes, _ = spine_first(library, [library.whole(root)], MOST)
    number = {node: i for i, node in enumerate(nodes)}
    leaves = [(node, end) for node in nodes if (end := library.end(node)) is not None]
    start = library.tensor(np.ones(tuple(out.shape)), like=out) if weights is None else weights
    watched = SweepRecord(library)
    first = watched.start((root, _output_number(library, out)), start)
    recorder = Recorder(dict, called=names)
    hooked = [names_of(names, tensor) for node, tensor in _with_tensors(library, nodes, names) if library.hooks(node, tensor)]
    with (
        grads_kept(library, nodes, names),
        recorder.sweeping(library, [(root, start)], [out], None, (), private=True, retains=True),
        library.watching(nodes, watched.see),
    ):
        gradients = library.grad([out], [end for _, end in leaves], [start]) if leaves else []
    for (node, _), gradient in zip(leaves, gradients, strict=True):
        if gradient is not None:
            if (tensor := library.variable(node)) is not None:
                recorder.add_gradient(tensor, gradient)
            watched.arrived((node, 0), gradient)
    watched.locals()
    trace = replace(recorder.trace(), freed=False)
    notes = []
    if hooked:
        named = sorted({name for name in hooked if name})
        of = f" of {', '.join(named)}" if named else ""
        notes.append(f"Hooks that you registered{of} ran in this sweep, as in every backward.")
    if trace.cut_off:
        notes.append(f"The graph has more: these are the steps of the {count(MOST, 'node')} nearest to the output.")
    own = _names_by_key(library, names)
    steps = tuple(_steps(library, watched.visits, number, trace, own))
    used = {name: library.weakly(x) for name, x in names.items() if library.is_tensor(x) and _is_among(library, x, number)}
    return StepThrough(
        trace,
        steps,
        out=out,
        called=called,
        start=plain(first),
        notes=notes,
        held=watched.held,
        names=used,
        hooked=bool(hooked),
    )


def _is_among(library: Library, tensor: Any, nodes: Mapping[Any, int]) -> bool:
    node = library.node(tensor) if tensor.requires_grad else None
    return node is not None and library.whole(node) in nodes


def _output_number(library: Library, out: Any) -> int:
    """Which output of its node `out` is, where the library numbers them."""
    return int(getattr(out, "output_nr", 0)) if library.name == "torch" else 0


def _with_tensors(library: Library, nodes: Sequence[Any], names: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The nodes with their leaves, and the user's tensors with their nodes."""
    known = set(nodes)
    for node in nodes:
        yield node, library.variable(node)
    for tensor in names.values():
        if library.is_tensor(tensor) and tensor.requires_grad and not tensor.is_leaf:
            node = library.node(tensor)
            if node in known:
                yield node, tensor


def names_of(names: Mapping[str, Any], tensor: Any) -> str:
    """The user's name for a tensor, or ""."""
    return "" if tensor is None else next((name for name, other in names.items() if other is tensor), "")


def _names_by_key(library: Library, names: Mapping[str, Any]) -> dict[Key, str]:
    """The user's names by where the gradient of the tensor arrives: of a node with several outputs each has its own."""
    by_key: dict[Key, str] = {}
    for name, tensor in names.items():
        if library.is_tensor(tensor) and tensor.requires_grad:
            by_key.setdefault((library.node(tensor), _output_number(library, tensor)), name)
    return by_key


def _steps(
    library: Library, visits: Sequence[Visit], number: Mapping[Any, int], trace: Trace, own: Mapping[Key, str]
) -> Iterator[Step]:
    sums: dict[Any, int] = {}
    into = edges_into(trace)
    done = 0
    for visit in visits:
        at = number.get(visit.node)
        if at is None or trace.nodes[at].kind != "operation":
            continue  # it hands out a part of another's
        done += 1
        node = trace.nodes[at]
        shares, meets = [], []
        arrived = tuple(map(plain, visit.upstream))
        upstream = arrived[0] if len(arrived) == 1 else arrived
        for handed in visit.handed.values():
            to = number.get(library.whole(handed.key[0]))
            if to is None:
                continue
            target = trace.nodes[to]
            shares.append(
                Share(
                    to=to,
                    name=own.get(handed.key) or target.name.partition(", ")[0] or target.label,
                    local=handed.local,
                    factor=factor_of(trace, into, at, to, upstream, handed.local, handed.downstream),
                    downstream=plain(handed.downstream),
                    total=plain(handed.total),
                )
            )
            meets.append((sums.setdefault(handed.key, len(sums)), handed.place))
        place = node.cell or node.place
        yield Step(
            done,
            at,
            node.label,
            node.operation,
            node.name.partition(", ")[0],
            node.place,
            None if place is None else place.line,
            upstream,
            tuple(shares),
            visit.hooked,
            tuple(meets),
            rule_of(library, visit.node) if done <= RULES else None,
        )


class StepThrough:
    """The steps of one reverse sweep. Made by `step_through`.

    Attributes
    ----------
    steps : list of Step
        One for each operation, in the order of the sweep.
    trace : Trace
        The graph, with values and gradients at its nodes; `Step.node` and `to` of shares are numbers of its nodes.
    called : str
        The output's name.
    start : Held
        What the sweep started with.
    notes : list of str
        What is to be said besides.
    hooked : bool
        Whether hooks of the user's ran.
    held : int
        How many bytes of arrays this object keeps. Of a sweep with more than 256 MiB the rest is kept as statistics (`Value`).
    """

    def __init__(
        self,
        trace: Trace,
        steps: Sequence[Step],
        *,
        out: Any,
        called: str,
        start: Any,
        notes: Sequence[str],
        held: int,
        names: Mapping[str, Any],
        hooked: bool = False,
    ) -> None:
        self.trace, self.steps, self.called, self.start = trace, list(steps), called, start
        self.notes, self.held = list(notes), held
        self.hooked = hooked
        self._out: Any = out
        self._names = names  # weak references

    # ------------------------------------------------------------------------------------------------------------ as text
    def text(self, most: int = MOST_ROWS) -> str:
        """The steps as a table for a terminal; of more than `most` the first and the last."""
        return step_text.table(self, most)

    def __repr__(self) -> str:
        return self.text()

    # ------------------------------------------------------------------------------------------------------- another start
    def again(self, gradient: Any) -> StepThrough:
        """The steps of a sweep from another start, of the shape of `out`. The same errors as of `step_through`.

        Raises
        ------
        RuntimeError
            After `close`: the graph has been let go.
        """
        if self._out is None:
            raise RuntimeError(f"the graph behind {self.called} was let go by close(): call step_through({self.called}) again.")
        names = {name: tensor for name, ref in self._names.items() if (tensor := ref()) is not None}
        return stepped(self._out, gradient, {**names, self.called: self._out})

    def close(self) -> None:
        """Let the graph go. What is here stays."""
        self._out, self._names = None, {}

    @property
    def closed(self) -> bool:
        """Whether the graph has been let go: then there is no sweep from another start."""
        return self._out is None

    # ---------------------------------------------------------------------------------------------------------- pictures
    def frames(self) -> Drawing:
        """A strip of pictures, one for each step; of many steps the first."""
        film = Film(self.steps, self.start, self.trace, room=ROOM)
        return strip(film, text=self.text(), called=self.called)

    def view(self, *, values: bool = True) -> dict[str, Any]:
        """What a live view draws, as plain data."""
        return view(
            self.steps,
            self.trace,
            called=self.called,
            shape=self.shape,
            start=self.start,
            notes=self.notes,
            linear=math.prod(self.shape) == 1 and not self.hooked and not any(step.hooked for step in self.steps),
            values=values,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the output."""
        return tuple(getattr(self.start, "shape", ()))

    def start_of(self, numbers: Sequence[float]) -> Any:
        """Numbers in row-major order as a start."""
        return np.asarray(numbers, float).reshape(self.shape)

    def widget(self, **options: Any) -> Any:
        """The live view, to be displayed in a notebook: step, play, run to a node, and start from another gradient.

        It holds the graph until it is closed.
        """
        return views.opened("stepper", self, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawing = self.frames()
        return {**drawing.bundle(), "text/html": display.html(self, drawing)}

    # -------------------------------------------------------------------------------------------------------------- files
    def save(self, path: str | os.PathLike[str], *, values: bool = True) -> Path:
        """Write the steps to a file that needs nothing else. An existing file is replaced.

        `.html` is a page that steps by itself, without a kernel and without asking any host for anything. `.svg` and `.gif` are
        animations for a slide (16:9, under 1 MB; an SVG stands still where the reader wants no motion), `.pdf` has a page for
        each step. Of more than 120 steps they have the first, a GIF of more than 60, a page of more than 2 000; they say so.

        Parameters
        ----------
        path : str or path
        values : bool, default True
            False leaves out every number of a tensor and the source: names, shapes and the graph remain.

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
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".html":
            page = views.opened(
                "stepper page",
                self.view(values=values),
                title=say("Backward from ", code(self.called), ", step by step"),
                contains=display.contains(self, values=values),
                text=self.text() if values else "This page needs JavaScript.",
            )
            path.write_text(page, encoding="utf-8")
            return path
        film = Film(self.steps, self.start, self.trace, values=values, room=slides.FITS)
        title, alt = f"backward from {self.called}", f"Backward from {self.called} in {count(len(self.steps), 'step')}."
        if kind == ".svg":
            path.write_text(slides.animated(film, title, alt), encoding="utf-8")
        elif kind in (".gif", ".pdf"):
            path.write_bytes((slides.gif if kind == ".gif" else slides.pdf)(film, title, alt))
        else:
            raise ValueError(f"steps are saved as .html, .svg, .gif or .pdf, and {path.name!r} ends in none of them.")
        return path

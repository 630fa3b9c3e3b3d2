"""`step_through(out)`: the steps of the reverse sweep behind a tensor.

The library runs one sweep, which writes no `.grad` and keeps the graph. All results are read from this sweep. They are plain
data, except `out` itself, which a sweep from another start needs and `close` releases.
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
FREED = "second time"  # in the errors of both libraries for a graph whose saved tensors were freed
RULES = 200  # steps whose formulas include the arguments of the operation
MOST = 50_000  # nodes of a sweep


def step_through(out: Any, gradient: Any = None) -> StepThrough:
    """Return the steps of the reverse sweep behind a tensor, one for each operation in the order of the sweep.

    This runs one sweep, which writes no `.grad` and keeps the graph. Hooks that you have registered run as in every backward pass
    (see `notes`).

    Parameters
    ----------
    out : Tensor
        The tensor to differentiate, of gradlab or PyTorch.
    gradient : array_like or Tensor, optional
        The gradient with which the sweep starts, as in `out.backward(gradient)`, with the shape of `out`. Default: 1 if `out` has
        one element.

    Returns
    -------
    StepThrough
        With `.steps` and `.text()`. A notebook displays a table and a strip of pictures. `.save("back.html")` saves an
        interactive page, `.widget()` returns the live view.

    Raises
    ------
    TypeError
        If `out` is not a tensor, or `gradient` is not numeric.
    RuntimeError
        If `out` does not require grad, if it has several elements and `gradient` is None, if `gradient` does not have the shape
        of `out`, or if backward has freed the graph.

    Examples
    --------
    >>> import gradlab as gl
    >>> a, b = gl.tensor(-3.0, requires_grad=True), gl.tensor(2.0, requires_grad=True)
    >>> gl.step_through(a * b + b**3).steps[-1].shares[1]["total"]
    9.0
    """
    return step_through_with_names(out, gradient, caller_names())


def step_through_with_names(out: Any, gradient: Any, names: Mapping[str, Any]) -> StepThrough:
    """Return the steps, like `step_through`, with these names for tensors."""
    library = library_of(out)
    called = next((name for name, tensor in names.items() if tensor is out), "out")
    if library is None:
        raise TypeError(
            f"step_through(out) expects a tensor that was computed from others, got {type(out).__name__}: {out!r:.80}."
        )
    reason = why_not(out, called)
    if reason is not None:
        raise RuntimeError(f"element 0 of tensors does not require grad and does not have a grad_fn: {to_text(reason)}.")
    size = int(np.prod(tuple(out.shape), dtype=np.int64))
    if gradient is None and size != 1:
        raise weights_needed(library, out, called, f"step_through({called}, {{}})")
    weights = None if gradient is None else weights_for(library, out, gradient, called)
    try:
        return _run_sweep(library, out, weights, called, names)
    except RuntimeError as error:
        if FREED not in str(error):
            raise
        raise RuntimeError(
            "Trying to backward through the graph a second time: step_through runs its own sweep, but backward has freed the "
            f"saved tensors of the graph of {called}. Compute {called} again, or keep the graph: "
            f"{called}.backward(retain_graph=True)."
        ) from error


def _run_sweep(library: Library, out: Any, weights: Any, called: str, names: Mapping[str, Any]) -> StepThrough:
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
            watched.on_arrival((node, 0), gradient)
    watched.locals()
    trace = replace(recorder.trace(), freed=False)
    notes = []
    if hooked:
        named = sorted({name for name in hooked if name})
        of = f" of {', '.join(named)}" if named else ""
        notes.append(f"Hooks that you registered{of} ran in this sweep, as in every backward pass.")
    if trace.cut_off:
        notes.append(f"The graph is larger: these are the steps of the {count(MOST, 'node')} nearest to the output.")
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
    """Return the index of `out` among the outputs of its node, if the library numbers them."""
    return int(getattr(out, "output_nr", 0)) if library.name == "torch" else 0


def _with_tensors(library: Library, nodes: Sequence[Any], names: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the nodes with their leaves, and the nodes of the user's tensors with these tensors."""
    known = set(nodes)
    for node in nodes:
        yield node, library.variable(node)
    for tensor in names.values():
        if library.is_tensor(tensor) and tensor.requires_grad and not tensor.is_leaf:
            node = library.node(tensor)
            if node in known:
                yield node, tensor


def names_of(names: Mapping[str, Any], tensor: Any) -> str:
    """Return the user's name for a tensor, or ""."""
    return "" if tensor is None else next((name for name, other in names.items() if other is tensor), "")


def _names_by_key(library: Library, names: Mapping[str, Any]) -> dict[Key, str]:
    """Return the user's names by node and output index."""
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
            continue  # it selects an output of another node
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
    """The steps of one reverse sweep. Returned by `step_through`.

    Attributes
    ----------
    steps : list of Step
        One for each operation, in the order of the sweep.
    trace : Trace
        The graph, with values and gradients at its nodes; `Step.node` and `to` of shares are indices of its nodes.
    called : str
        The name of the output.
    start : Held
        The gradient with which the sweep started.
    notes : list of str
        Additional remarks.
    hooked : bool
        True if hooks of the user ran.
    held : int
        Bytes of arrays that this object stores. Beyond 256 MiB, statistics (`Value`) are stored instead.
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
        """Return the steps as a table for a terminal. Of more than `most`, the first and the last are shown."""
        return step_text.table(self, most)

    def __repr__(self) -> str:
        return self.text()

    # ------------------------------------------------------------------------------------------------------- another start
    def again(self, gradient: Any) -> StepThrough:
        """Return the steps of a sweep from another start with the shape of `out`. Errors are those of `step_through`.

        Raises
        ------
        RuntimeError
            If `close` has released the graph.
        """
        if self._out is None:
            raise RuntimeError(f"close() has released the graph behind {self.called}. Call step_through({self.called}) again.")
        names = {name: tensor for name, ref in self._names.items() if (tensor := ref()) is not None}
        return step_through_with_names(self._out, gradient, {**names, self.called: self._out})

    def close(self) -> None:
        """Release the graph. The steps remain."""
        self._out, self._names = None, {}

    @property
    def is_closed(self) -> bool:
        """True if the graph has been released, so there is no sweep from another start."""
        return self._out is None

    # ---------------------------------------------------------------------------------------------------------- pictures
    def frames(self) -> Drawing:
        """Return a strip of pictures, one for each of the first steps."""
        film = Film(self.steps, self.start, self.trace, room=ROOM)
        return strip(film, text=self.text(), called=self.called)

    def view(self, *, values: bool = True) -> dict[str, Any]:
        """Return the plain data of a live view."""
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
        """Return a start from numbers in row-major order."""
        return np.asarray(numbers, float).reshape(self.shape)

    def widget(self, **options: Any) -> Any:
        """Return the live view for a notebook, which can step, play, run to a node, and start from another gradient.

        It holds the graph until it is closed.
        """
        return views.open_view("stepper", self, **options)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        drawing = self.frames()
        return {**drawing.bundle(), "text/html": display.html(self, drawing)}

    # -------------------------------------------------------------------------------------------------------------- files
    def save(self, path: str | os.PathLike[str], *, values: bool = True) -> Path:
        """Save the steps as a self-contained file. An existing file is replaced.

        `.html` is an interactive page, which needs no kernel and makes no network requests. `.svg` and `.gif` are animations for
        a slide (16:9, under 1 MB; an SVG does not move for readers who prefer reduced motion), `.pdf` has a page for each step.
        They have the first 120 steps, a GIF the first 60, a page the first 2 000, with a note if there are more.

        Parameters
        ----------
        path : str or path
        values : bool, default True
            False omits all numbers of tensors and the source. Names, shapes and the graph remain.

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
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".html":
            page = views.open_view(
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
            path.write_text(slides.animate(film, title, alt), encoding="utf-8")
        elif kind in (".gif", ".pdf"):
            path.write_bytes((slides.gif if kind == ".gif" else slides.pdf)(film, title, alt))
        else:
            raise ValueError(f"the path of steps must end with .html, .svg, .gif or .pdf, got {path.name!r}.")
        return path

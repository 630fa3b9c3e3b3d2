"""`%%grad` and `%grad`.

A `%%grad` cell runs as an ordinary cell (see `transform`). Its first line calls `begin`, which reads the options and starts to
watch the cell's own calls of `backward`; its last value passes through `value`; and when IPython says that the cell has ended,
however it ended, `after_cell` stops watching and, if all went well, differentiates, reports, and forgets. Nothing is kept between
cells. An error found then (no weights, a name that names nothing, an exception in a user's hook) makes the cell fail.
"""

from __future__ import annotations

import ast
import linecache
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display
from traitlets import Bool, Integer

from gradlab.core.watching import unwatch, watch
from gradlab.diagnose.places import cells
from gradlab.diagnose.sites import Sites, present, recording
from gradlab.notebook.options import CELL, LINE, OptionError, Request, parse_cell, parse_line, usage
from gradlab.notebook.transform import RUNS_THE_CELL, Ending
from gradlab.notebook.watching import CellWatcher


@dataclass
class Cell:
    """A running `%%grad` cell."""

    request: Request
    ending: Ending
    info: Any  # IPython's ExecutionInfo of the cell
    watcher: Any
    sites: Any  # what records where the operations stand, or None where that is done already
    shown: Any  # the last exception that was shown before
    value: Any = None

    def open(self) -> None:
        """Watch what the cell does. It is in `Running.cells` already, so it is closed even if an interrupt comes here."""
        watch(self.watcher)
        if self.sites is not None:
            watch(self.sites)

    def close(self) -> None:
        """Watch no more; to be called again if an interrupt comes."""
        unwatch(self.watcher)
        if self.sites is not None:
            unwatch(self.sites)


@dataclass
class Running(threading.local):
    """The cells that this thread is in: a cell may run another."""

    infos: list[Any] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def close_last(self) -> Cell:
        """Take the innermost cell away; it stays, for the next cell to close, if an interrupt comes before that is done."""
        self.cells[-1].close()
        return self.cells.pop()


@magics_class
class GradMagics(Magics):
    """`%%grad` and `%grad`, and their defaults: `%config GradMagics` lists them."""

    shell: Any
    auto_backward = Bool(True, help="Call backward() for a %%grad cell that does not call it itself.").tag(config=True)
    accumulate = Bool(False, help="Add to .grad instead of replacing it, as --accumulate does.").tag(config=True)
    graph = Bool(True, help="Draw the graph; --graph and --no-graph override this.").tag(config=True)
    leaf_rows = Integer(25, min=1, help="Rows of the table of leaves at most.").tag(config=True)
    nodes = Integer(150, min=1, help="Nodes drawn at most; a larger graph is folded.").tag(config=True)
    heat_maps = Integer(6, min=0, help="Heat maps of gradients at most.").tag(config=True)
    jacobian_rows = Integer(
        64, min=0, help="An output with up to so many elements gets its Jacobian if there are no weights."
    ).tag(config=True)

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        self._running = Running()
        self._widgets: dict[str, list[Any]] = {}  # those that are shown, by cell
        cells.numbers, cells.namespace = getattr(shell.compile, "_filename_map", {}), shell.user_ns

    # --------------------------------------------------------------------------------------------------- the magics
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def grad(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> None:
        """Line form: report on an expression. (A `%%grad` cell comes here only where it cannot run as itself.)"""
        if cell is None:
            self.line(line, local_ns)
            return
        self._parsed(parse_cell, line)
        below = cell.lstrip().split(None, 1)[:1]
        if below and below[0].startswith("%%"):
            works = " and ".join(sorted(RUNS_THE_CELL))
            raise UsageError(
                f"{CELL} cannot see the value of a {below[0]} cell: put {below[0]} on the line above {CELL}. "
                f"({works} may stand above or below.)"
            )
        raise UsageError(
            f"{CELL} needs a cell below its line."
            if not cell.strip()
            else f"{CELL} must be the first line of a cell, or stand below {' or '.join(sorted(RUNS_THE_CELL))}."
        )

    def line(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """`%grad [options] EXPR`: report without writing any `.grad`."""
        request = self._parsed(parse_line, line)
        space = {**self.shell.user_ns, **(local_ns or {})}
        with recording():
            value = eval(_compiled(request.expression), space)  # noqa: S307  (the user's own expression)
        names = self._names(space, Ending("value", request.expression, _mentioned(request.expression)))
        self._finish(request, *self._report_on(request, value, request.expression, names, space, dry=True))

    # ------------------------------------------------------------------------------------------- the life of a cell
    def before_cell(self, info: Any = None) -> None:
        """IPython's `pre_run_cell`."""
        cells.current = None
        if not _inside_a_cell():
            self._running.infos.clear()
            self.forget()  # whatever a cell without an end has left
        self._running.infos.append(info)
        self._close_widgets(_key(info))

    def begin(self, line: str, kind: str | None = None, text: str = "", mentions: tuple[str, ...] = ()) -> None:
        """What the first line of a `%%grad` cell calls. A wrong option fails here, before the cell runs."""
        __tracebackhide__ = True
        request = self._parsed(parse_cell, line)
        if kind is None:
            raise UsageError(
                f"{CELL} cannot see the value of a cell that another magic runs in its own way: put {CELL} on the first "
                f"line. ({' and '.join(sorted(RUNS_THE_CELL))} may stand above or below.)"
            )
        if not self._running.infos:
            return  # a silent run: nobody would see a report
        running = self._running
        if running.cells and running.cells[-1].info is running.infos[-1]:
            running.close_last()  # the same cell again: %%timeit runs it many times
        cells.current = sys._getframe(1).f_code.co_filename
        sites = Sites() if present() is None else None  # errors and the graph name the lines
        ending = Ending(kind, text, mentions)
        running.cells.append(Cell(request, ending, running.infos[-1], CellWatcher(), sites, _last_shown()))
        running.cells[-1].open()

    def value(self, value: Any) -> Any:
        """What the last expression of a `%%grad` cell passes through."""
        if self._running.cells:
            self._running.cells[-1].value = value
        return value

    def after_cell(self, result: Any = None) -> None:
        """IPython's `post_run_cell`: the cell has ended, however it ended."""
        running, info = self._running, getattr(result, "info", None)
        while running.infos and running.infos.pop() is not info and result is not None:
            pass
        ended = []
        while running.cells and not any(running.cells[-1].info is outer for outer in running.infos):
            ended.append(running.close_last())
        if not ended or result is None or not result.success or ended[0].info is not info:
            return
        cell = ended[0]
        if _last_shown() is not cell.shown:
            return  # %%time of old shows an exception and goes on
        try:
            report, matrix = self._after(cell)
            self._finish(cell.request, report, matrix, info)
        except BaseException as error:  # noqa: BLE001  (an interrupt too: it must reach the user as the cell's end)
            self._fail(result, error)

    def forget(self) -> None:
        while self._running.cells:
            self._running.close_last()

    def unload(self) -> None:
        """Leave nothing behind."""
        cells.current, cells.numbers, cells.namespace = None, {}, {}
        self.forget()
        for cell in list(self._widgets):
            self._close_widgets(cell)

    def _fail(self, result: Any, error: BaseException) -> None:
        """Let the cell fail with this error, shown without our own frames."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_globals.get("__name__", "").startswith("gradlab."):
            traceback = traceback.tb_next
        if traceback is None and not isinstance(error, (RuntimeError, TypeError, UsageError)):
            traceback = error.__traceback__  # not one of our own messages: then every frame counts
        self.shell.showtraceback((type(error), error.with_traceback(traceback), traceback), tb_offset=0)
        result.error_in_exec = error
        self.shell.last_execution_succeeded = False

    # ------------------------------------------------------------------------------------------------ what a cell means
    def _after(self, cell: Cell) -> tuple[Any, Any]:
        """The report, or a sentence where there is nothing to report on."""
        from gradlab.explore.parts import Remark
        from gradlab.explore.words import code, say

        request, ending, watcher = cell.request, cell.ending, cell.watcher
        space = self.shell.user_ns
        names = self._names(space, ending)
        if watcher.calls:
            watcher.settle()
            return self._report_on_last_call(request, watcher, ending, names, space)
        if not self.auto_backward:
            return Remark(
                say(
                    "This cell called no ",
                    code("backward()"),
                    ", and none was called for you (",
                    code("GradMagics.auto_backward"),
                    " is False): there is no gradient to show.",
                )
            ), None
        if request.of is not None:
            value, text = self._evaluated(request.of, space), request.of
        elif ending.kind == "value":
            value, text = cell.value, ending.text
        elif ending.kind == "name":
            value, text = space.get(ending.text), ending.text
        else:
            why = f"the cell ends in {ending.text}" if ending.text else "there is no statement in the cell"
            hint = say("End it in an expression, or write ", code("%%grad --of NAME"), ".")
            return Remark(say(f"There was nothing to differentiate: {why}. ", hint)), None
        return self._report_on(request, value, text, names, space, ending=ending)

    def _report_on(
        self,
        request: Request,
        value: Any,
        text: str,
        names: dict[str, Any],
        space: Mapping[str, Any],
        *,
        dry: bool = False,
        ending: Ending | None = None,
    ) -> tuple[Any, Any]:
        from gradlab.explore.by_hand import ByHand
        from gradlab.explore.libraries import library_of
        from gradlab.explore.parts import Remark
        from gradlab.explore.report import Subject, differentiate, jacobian_of, make_report
        from gradlab.explore.sources import sources_of, weights_for, weights_needed, why_not
        from gradlab.explore.words import code, say
        from gradlab.notebook.backward import backward

        plain = text.isidentifier()
        last = ending is not None and ending.kind == "value" and request.of is None
        reason = why_not(
            value,
            "the last expression"
            if last and (value is None or not plain)
            else code(text)
            if plain or request.of
            else "the expression",
        )
        if reason is not None:
            return Remark(say("There was nothing to differentiate: ", reason, ".")), None
        dry = dry or request.dry
        library = library_of(value)
        assert library is not None
        subject = Subject(library, library.node(value), tuple(value.shape), text, value)
        asked = self._asked(request, library, space)
        sources = sources_of(library, [subject.root], names, asked, () if ending is None else ending.mentions)
        hand = ByHand(library.alias, library.name, text)
        weights = None
        if request.weights is not None:
            given = self._evaluated(request.weights, space)
            weights = weights_for(library, value, given, text if plain else "the output")
            subject.weights = ast.unparse(ast.parse(request.weights, mode="eval"))
            hand.weights = (
                subject.weights if library_of(given) else f"{library.alias}.tensor({subject.weights}, dtype={hand.out}.dtype)"
            )
        with_jacobian = request.jacobian
        if weights is None and subject.size != 1:
            if not subject.size or not (request.jacobian or subject.size <= self.jacobian_rows):
                where = f"{CELL} -v {{}}" if ending is not None else f"{LINE} -v {{}} {text if plain else '…'}"
                raise weights_needed(library, value, text if plain else "out", where, self.jacobian_rows)
            with_jacobian = True
        wanted = [source for source in sources if source.used and source.wanted]
        inputs = [source.name for source in wanted if source.named]
        previous: Mapping[str, np.ndarray] = {}
        notes: dict[str, Any] = {}
        only_jacobian = weights is None and subject.size != 1
        if only_jacobian:
            deed = say(
                "The output is no scalar and there are no weights (",
                code("-v"),
                "), so this is its Jacobian; ",
                code(".grad"),
                " was left alone.",
            )
        elif dry:
            differentiate(subject, sources, weights)
            hand.gradients(inputs)
            deed = _left_alone(request.dry)
        else:
            written = backward(
                subject, sources, weights, accumulate=request.accumulate or self.accumulate, restricted=asked is not None
            )
            leaves = [source.name for source in wanted if source.named and source.is_leaf]
            others = [source.name for source in wanted if source.named and not source.is_leaf]
            if leaves or asked is None:
                hand.backward(leaves, everything=asked is None, replace=not (request.accumulate or self.accumulate))
            hand.gradients(others)
            previous, notes = written.replaced, _notes(written)
            deed = _deed(written, others)
        if with_jacobian:
            hand.jacobian(inputs)
        matrix = jacobian_of(subject, sources, names) if with_jacobian else None
        report = make_report(
            subject,
            sources,
            deed,
            names=names,
            by_hand=hand.text() if wanted else "",
            bounds=self._bounds(),
            with_graph=self._with_graph(request),
            jacobian=matrix,
            weights=weights,
            notes=notes,
            previous=previous,
        )
        return report, matrix

    def _report_on_last_call(
        self, request: Request, watcher: Any, ending: Ending, names: dict[str, Any], space: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        from gradlab.explore.libraries import GRADLAB
        from gradlab.explore.report import Subject, make_report
        from gradlab.explore.sources import sources_of
        from gradlab.explore.table import Note
        from gradlab.explore.words import code, say

        call = watcher.last
        root, out = call.roots[0], call.outputs[0]
        called = next((name for name, tensor in names.items() if tensor is out), "") or _receiver(ending)
        subject = Subject(GRADLAB, root, tuple(root.shape), called, out)
        asked = self._asked(request, GRADLAB, space)
        sources = sources_of(GRADLAB, call.roots, names, asked, ending.mentions)
        known = {id(leaf.tensor): leaf for leaf in call.leaves.values()}
        notes: dict[str, list[Note]] = {}
        fresh: list[str] = []
        added: list[str] = []
        for source in sources:
            leaf = known.get(id(source.tensor))
            if leaf is None or leaf.gradient is None:
                continue
            source.gradient = GRADLAB.tensor(leaf.gradient, like=source.tensor)
            (added if leaf.added else fresh).append(source.name)
            if leaf.added:
                notes[source.name] = [Note(say("accumulated"))]
        times = "once" if watcher.calls == 1 else "twice" if watcher.calls == 2 else f"{watcher.calls} times"
        deed = say(
            "The cell called ",
            code("backward()"),
            f" itself, {times}",
            "" if watcher.calls == 1 else "; this is the last call",
            ". ",
            f"It was called on {len(call.roots)} tensors together, of which this is the first. " if len(call.roots) > 1 else "",
            _what_happened(fresh, "set"),
            _what_happened(added, "added to"),
        )
        report = make_report(
            subject,
            sources,
            deed,
            names=names,
            by_hand="",
            bounds=self._bounds(),
            with_graph=self._with_graph(request),
            weights=GRADLAB.tensor(call.weights[0], like=out) if subject.size != 1 else None,
            notes=notes,
            backward_calls=watcher.calls,
        )
        return report, None

    # -------------------------------------------------------------------------------------------------------- pieces
    def _finish(self, request: Request, report: Any, matrix: Any = None, info: Any = None) -> None:
        """Keep the report where it was asked for, and show it; a Jacobian that was asked for live, if there is a front end."""
        from gradlab.explore.report import Report

        if request.out is not None:
            self.shell.user_ns[request.out] = report if isinstance(report, Report) else None
        if not request.quiet:
            live = matrix if request.jacobian and getattr(self.shell, "kernel", None) is not None else None
            for part in report.parts() if isinstance(report, Report) else [report]:
                if live is not None and getattr(part, "drawing", None) is report.jacobian_picture:
                    part = self.keep(live.widget(), info)  # it shows the picture too
                display(part)

    def keep(self, widget: Any, info: Any = None) -> Any:
        """Hold a widget until its cell runs again; the cell that runs is the default."""
        info = info or (self._running.infos[-1] if self._running.infos else None)
        self._widgets.setdefault(_key(info), []).append(widget)
        return widget

    def _close_widgets(self, cell: str) -> None:
        """A cell that runs again lets go of the widgets that it showed before."""
        for widget in self._widgets.pop(cell, ()):
            widget.close()

    def _parsed(self, parse: Any, line: str) -> Request:
        __tracebackhide__ = True
        try:
            return parse(line)
        except OptionError as error:
            raise UsageError(str(error)) from None

    def _evaluated(self, text: str, space: Mapping[str, Any]) -> Any:
        """The value of an option's expression after the cell."""
        try:
            return eval(compile(text, "<option of %%grad>", "eval"), dict(space))  # noqa: S307  (the user's own option)
        except Exception as error:
            raise UsageError(f"{text}: {type(error).__name__}: {error}") from error

    def _asked(self, request: Request, library: Any, space: Mapping[str, Any]) -> dict[str, Any] | None:
        from gradlab.explore.libraries import library_of

        if not request.names:
            return None
        asked = {name: self._evaluated(name, space) for name in request.names}
        for name, value in asked.items():
            other = library_of(value)
            if other is not library:
                kind = (
                    f"a {other.name} tensor, and the output is a {library.name} tensor"
                    if other
                    else f"{type(value).__name__}, no tensor"
                )
                raise UsageError(f"{name} is {kind}.")
        return asked

    def _names(self, space: Mapping[str, Any], ending: Ending) -> dict[str, Any]:
        from gradlab.explore.names import names_in

        return names_in(
            {name: value for name, value in space.items() if name not in self.shell.user_ns_hidden}, first=ending.mentions
        )

    def _bounds(self) -> Any:
        from gradlab.explore.report import Bounds

        return Bounds(self.leaf_rows, self.nodes, self.heat_maps, self.jacobian_rows)

    def _with_graph(self, request: Request) -> bool:
        return request.graph or (self.graph and not request.no_graph)


# The help that `%%grad?` shows.
GradMagics.grad.__doc__ = f"""Run a cell and show its gradients, or show those of an expression.

    {CELL} [NAME …] [options]          differentiates what the cell computes
    {LINE} [options] EXPR              differentiates an expression and writes no .grad

The cell runs as it would without this line. Then the value of its last expression, or of the one name that its last
statement assigns to, is differentiated by every leaf (a tensor that was made with requires_grad=True), or by the
NAMEs, which may be x, model.fc1.weight, params[0] or any tensor that was computed on the way.

{CELL}:
{usage(CELL)}

{LINE}:
{usage(LINE)}

.grad of the leaves is replaced, so that running the cell again gives the same; what was there is named in the report and
kept in its `previous` (-o NAME). The graph is kept: loss.backward() in a later cell works, and adds. If the cell calls
backward() itself, nothing more is called, and the report is of its last call. An output that is no scalar needs weights
(-v); a small one gets its Jacobian without. Defaults: %config GradMagics

    %%grad                             %%grad x -v [0.1, 1.0, 0.0001]        %grad --wrt a,b (a * b).sum()
    loss = ((w @ x - y) ** 2).mean()   y = x * 2
"""


def _compiled(expression: str) -> Any:
    """The expression of a `%grad` line, under a name by which its source is found."""
    name = f"<%grad {expression}>"
    linecache.cache[name] = (len(expression), None, [f"{expression}\n"], name)
    return compile(expression, name, "eval")


def _inside_a_cell() -> bool:
    """Whether the code of a cell is what calls."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not InteractiveShell.run_code.__code__:
        frame = frame.f_back
    return frame is not None


def _last_shown() -> Any:
    """The exception of which IPython has shown a traceback last."""
    return getattr(sys, "last_value", None)


def _key(info: Any) -> str:
    """What tells one cell from another: the front end's number, or its text."""
    return str(getattr(info, "cell_id", None) or getattr(info, "raw_cell", ""))


def _mentioned(expression: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)))


def _receiver(ending: Ending) -> str:
    """`t.pow(3).sum()` of a cell that ends in `t.pow(3).sum().backward()`."""
    if ending.kind != "value":
        return ""
    call = ast.parse(ending.text, mode="eval").body
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        return ast.unparse(call.func.value)
    return ""


def _left_alone(asked: bool) -> Any:
    from gradlab.explore.words import code, say

    return say(code(".grad"), " was left alone (", code("--dry"), ").") if asked else say("No ", code(".grad"), " was written.")


def _what_happened(names: list[str], verb: str) -> Any:
    from gradlab.explore.words import code, listed, say

    if not names:
        return ()
    return say(listed([code(f"{name}.grad") for name in names]), f" {'was' if len(names) == 1 else 'were'} {verb}. ")


def _deed(written: Any, others: list[str]) -> Any:
    """What the magic's own backward did to `.grad`, in words."""
    from gradlab.explore.words import code, listed, number, say

    def with_norms(gradients: dict[str, np.ndarray]) -> Any:
        return listed([say(code(f"{name}.grad"), f" (norm {number(_norm(old))})") for name, old in gradients.items()])

    parts: list[Any] = []
    if written:
        parts += [code("backward()"), " was called for you. "]
    if written.fresh:
        hint = say(" (", code("--accumulate"), " would add)") if not written.replaced else ""
        parts += [
            listed([code(f"{name}.grad") for name in written.fresh]),
            f" {'was' if len(written.fresh) == 1 else 'were'} set afresh",
            hint,
            ". ",
        ]
    if written.replaced:
        parts += [
            with_norms(written.replaced),
            f" {'was' if len(written.replaced) == 1 else 'were'} replaced (",
            code("--accumulate"),
            " would add; ",
            code("report.previous"),
            " keeps the old). ",
        ]
    if written.added:
        parts += [with_norms(written.added), f" {'was' if len(written.added) == 1 else 'were'} added to. "]
    if others:
        parts += [
            "The gradient" if len(others) == 1 else "The gradients",
            " of ",
            listed([code(name) for name in others]),
            f" {'is' if len(others) == 1 else 'are'} only shown: a tensor that is no leaf has no ",
            code(".grad"),
            ".",
        ]
    return say(*parts) if parts else say("No ", code(".grad"), " was written.")


def _notes(written: Any) -> dict[str, Any]:
    from gradlab.explore.table import Note
    from gradlab.explore.words import say

    replaced = {name: [Note(say("replaced"))] for name in written.replaced}
    added = {name: [Note(say("accumulated"))] for name in written.added}
    return replaced | added


def _norm(array: np.ndarray) -> float:
    from gradlab.explore.statistics import statistics

    return statistics(array).norm

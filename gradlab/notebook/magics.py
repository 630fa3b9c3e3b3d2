"""`%%grad` and `%grad`, `%%doctor` and `%doctor`.

A `%%grad` cell runs as an ordinary cell (see `transform`). Its first line calls `begin`, which reads the options and starts to
watch the cell's own calls of `backward`; its last value passes through `value`; and when IPython says that the cell has ended,
however it ended, `after_cell` stops watching and, if all went well, differentiates, reports, and forgets. Nothing is kept between
cells. An error found then (no weights, a name that names nothing, an exception in a user's hook) makes the cell fail.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import Any

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, needs_local_scope, no_var_expand
from IPython.display import display
from traitlets import Bool, Integer, observe

from gradlab.core.fixes import fix_setting
from gradlab.diagnose.faults import Faults
from gradlab.diagnose.sites import recording
from gradlab.diagnose.source_locations import cells, notebook
from gradlab.notebook.explained_error import explain_below
from gradlab.notebook.last_failure import last_failure
from gradlab.notebook.line_source import compile_line, remove_unused
from gradlab.notebook.options import (
    CELL,
    DOCTOR,
    LINE,
    WATCH,
    OptionError,
    Request,
    parse_cell,
    parse_doctor,
    parse_line,
    parse_watch,
    usage,
)
from gradlab.notebook.transform import RUNS_THE_CELL, Ending, show_as_typed

PARSERS = {CELL: parse_cell, DOCTOR: parse_doctor, WATCH: parse_watch}


@dataclass
class Cell:
    """A running `%%grad` cell."""

    request: Request
    ending: Ending
    info: Any  # IPython's ExecutionInfo of the cell
    recorder: Any
    shown: Any  # the last exception that was shown before
    value: Any = None
    differentiated: Any = None  # what the report is about, where the cell did not say
    swept: Any = ()  # the tensors that the report's sweep began at, and their cotangents

    def open(self) -> None:
        """See what the cell does. It is in `Running.cells` already, so it is closed even if an interrupt comes here."""
        self.recorder.meet_libraries()

    def close(self) -> None:
        """See no more; to be called again if an interrupt comes."""
        self.recorder.close()


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
    nodes = Integer(
        None, min=8, allow_none=True, help="Nodes drawn at most; a larger graph is folded. None: as many as are read at a glance."
    ).tag(config=True)
    heat_maps = Integer(6, min=0, help="Heat maps of gradients at most.").tag(config=True)
    jacobian_rows = Integer(
        64, min=0, help="An output with up to so many elements gets its Jacobian if there are no weights."
    ).tag(config=True)

    fixes = Bool(
        True, help="Say what to write instead in findings, errors and warnings. False, as in homework: only what is wrong."
    ).tag(config=True)

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        fix_setting.shown = self.fixes
        self._running = Running()
        self._widgets: dict[str, list[Any]] = {}  # those that are shown, by cell
        notebook.numbers, notebook.namespace = getattr(shell.compile, "_filename_map", {}), shell.user_ns
        notebook.last_error = partial(last_failure, shell)

    # --------------------------------------------------------------------------------------------------- the magics
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def grad(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> None:
        """Line form: report on an expression. (A `%%grad` cell comes here only where it cannot run as itself.)"""
        if cell is None:
            self.line(line, local_ns)
            return
        self.parsed(parse_cell, line)
        raise self.refused(CELL, cell)

    @no_var_expand
    @line_cell_magic
    def doctor(self, line: str, cell: str | None = None) -> Any:
        """Say what is wrong with gradients, and on which line.

            %doctor     reports on the last run: the findings of a %%grad or %%doctor cell, or else those in its error and in the
                        tensors that it left
            %%doctor    runs the cell, records it, and reports on it; an error is shown as always

        Both take `--ignore KIND,…`, which silences kinds of findings (they are printed in brackets after a finding), `-o NAME`,
        which keeps the diagnosis under a name, and `-q`. A comment `# gradlab: ignore[KIND]` silences a kind on its line.

        `%%doctor` calls no backward(), and writes no .grad: a result that the cell does not differentiate is looked at by a sweep
        that leaves no trace. `gl.doctor()` returns the same.
        """
        if cell is None:
            request = self.parsed(parse_doctor, line)
            diagnosis = self._session.report(self.users(), ignored_by(request))
            if request.out is not None:
                self.shell.user_ns[request.out] = diagnosis
            return None if request.quiet else diagnosis
        self.parsed(parse_doctor, line)
        raise self.refused(DOCTOR, cell)

    def refused(self, magic: str, cell: str) -> UsageError:
        """Why a cell that came to the magic itself was not run as one of ours."""
        below = cell.lstrip().split(None, 1)[:1]
        if below and below[0].startswith("%%"):
            works = " and ".join(sorted(RUNS_THE_CELL))
            return UsageError(
                f"{magic} cannot see the value of a {below[0]} cell: put {below[0]} on the line above {magic}. "
                f"({works} may stand above or below.)"
            )
        return UsageError(
            f"{magic} needs a cell below its line."
            if not cell.strip()
            else f"{magic} must be the first line of a cell, or stand below {' or '.join(sorted(RUNS_THE_CELL))}."
        )

    def line(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """`%grad [options] EXPR`: report without writing any `.grad`."""
        from gradlab.notebook.reporting import CellReporter

        request = self.parsed(parse_line, line)
        if request.help:
            print(GradMagics.grad.__doc__)  # noqa: T201  (as every magic's help)
            return
        space = {**self.shell.user_ns, **(local_ns or {})}
        with recording():
            value = eval(compile_line(request.expression), space)  # noqa: S307  (the user's own expression)
        report, matrix = CellReporter(self, request, space).of_line(value)
        if report is not None:
            self._finish(request, report, matrix)

    # ------------------------------------------------------------------------------------------- the life of a cell
    def before_cell(self, info: Any = None) -> None:
        """IPython's `pre_run_cell`."""
        with Faults("got ready for a cell"):
            cells.current = None
            if not _inside_a_cell():
                self._running.infos.clear()
                self.forget()  # whatever a cell without an end has left
            self._running.infos.append(info)
            self._close_widgets(_key(info))

    def begin(
        self,
        line: str,
        kind: str | None = None,
        text: str = "",
        mentions: tuple[str, ...] = (),
        assigned: tuple[str, ...] = (),
        *,
        magic: str = CELL,
    ) -> None:
        """What the first line of a `%%grad` or `%%doctor` cell calls. A wrong option fails here, before the cell runs."""
        __tracebackhide__ = True
        request = self.parsed(PARSERS[magic], line)
        ignored_by(request)
        if kind is None:
            raise UsageError(
                f"{magic} cannot see the value of a cell that another magic runs in its own way: put {magic} on the first "
                f"line. ({' and '.join(sorted(RUNS_THE_CELL))} may stand above or below.)"
            )
        if not self._running.infos:
            return  # a silent run: nobody would see a report
        running = self._running
        if running.cells and running.cells[-1].info is running.infos[-1]:
            running.close_last()  # the same cell again: %%timeit runs it many times
        frame = sys._getframe(1)
        cells.current, cells.header = frame.f_code.co_filename, f"{magic} {line}".rstrip()
        show_as_typed(frame, cells.header)
        with Faults("began to look at a cell"):
            if magic == WATCH:
                self.shell.magics_manager.registry["WatchMagics"].begin(request, running.infos[-1], mentions)
                return
            ending = Ending(kind, text, mentions, assigned)
            recorder = recorder_of(self.shell, mentions, self.heat_maps)
            recorder.on_end = lambda training: self._session.of_training(training, self.users(), ignored_by(request))
            running.cells.append(Cell(request, ending, running.infos[-1], recorder, _last_shown()))
            running.cells[-1].open()

    def imported(self) -> None:
        """What a `%%grad` cell calls after an import: a library that is new is watched from there on."""
        if self._running.cells:
            self._running.cells[-1].recorder.meet_libraries()  # which does not raise
        self.shell.magics_manager.registry["WatchMagics"].imported()

    def value(self, value: Any) -> Any:
        """What the last expression of a `%%grad` cell passes through."""
        if self._running.cells:
            self._running.cells[-1].value = value
        return value

    def after_cell(self, result: Any = None) -> None:
        """IPython's `post_run_cell`: the cell has ended, however it ended."""
        faults = Faults("looked at a cell that has ended")
        cell: Cell | None = None
        with faults:
            cell = self._ended(result)
        if cell is None:
            return
        try:
            failed = result.error_in_exec or (_last_shown() if _last_shown() is not cell.shown else None)
            if not result.success or failed is not None:  # %%time of old shows an exception and goes on
                with faults:
                    diagnosis = self._session.look(cell.recorder, self.users(), error=failed, ignore=ignored_by(cell.request))
                    if cell.request.findings_only:
                        self._say(cell.request, diagnosis)
                    elif not cell.request.quiet:
                        explain_below(diagnosis, failed, cell.recorder)
            else:
                self._tell(cell, result, faults)
        finally:
            with faults:
                cell.recorder.forget()

    def _ended(self, result: Any) -> Cell | None:
        """The `%%grad` cell that has ended, and those inside of it; None if this was none."""
        running, info = self._running, getattr(result, "info", None)
        while running.infos and running.infos.pop() is not info and result is not None:
            pass
        ended = []
        while running.cells and not any(running.cells[-1].info is outer for outer in running.infos):
            ended.append(running.close_last())
        return None if not ended or result is None or ended[0].info is not info else ended[0]

    def _tell(self, cell: Cell, result: Any, faults: Faults) -> None:
        """Report on a cell that ran to its end. What is wrong with its options, and what the user's program raises while it is
        differentiated, is the cell's error; a fault of ours is a warning."""
        report: Any = None
        try:
            cell.recorder.settle_journal()
            if not cell.request.findings_only:
                report, matrix = self._after(cell)
        except BaseException as error:  # noqa: BLE001  (an interrupt too: it must reach the user as the cell's end)
            self._fail(result, error)
            with faults:
                diagnosis = self._session.look(cell.recorder, self.users(), error=error, ignore=ignored_by(cell.request))
                if not cell.request.quiet:
                    explain_below(diagnosis, error, cell.recorder)
            return
        with faults:
            if cell.request.findings_only:
                ignore = ignored_by(cell.request)
                self._say(cell.request, self._session.look(cell.recorder, self.users(), value=self._wanted(cell), ignore=ignore))
            elif report is not None:
                self._finish(cell.request, self._diagnosed(cell, report), matrix, result.info, cell.swept)

    def forget(self) -> None:
        while self._running.cells:
            self._running.close_last().recorder.forget()

    @observe("fixes")
    def _show_fixes(self, change: Any) -> None:
        fix_setting.shown = change["new"]

    def unload(self) -> None:
        """Leave nothing behind."""
        fix_setting.shown = True
        cells.current = None
        notebook.numbers, notebook.namespace, notebook.last_error = {}, {}, None
        self.forget()
        if (doctor := sys.modules.get("gradlab.explore.doctor.session")) is not None:
            doctor.NOTEBOOK.forget()
        remove_unused()
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
        """The report of a cell that has ended, or a sentence where there is nothing to report on; and its Jacobian."""
        from gradlab.notebook.reporting import CellReporter

        reporter = CellReporter(self, cell.request, self.shell.user_ns, cell.ending, cell.recorder)
        try:
            return reporter.of_cell(cell.value)
        finally:
            cell.differentiated, cell.swept = reporter.value, reporter.swept

    def _diagnosed(self, cell: Cell, report: Any) -> Any:
        """The report, or the sentence in place of one, with what is found in the cell."""
        from gradlab.explore.report import Report
        from gradlab.explore.report.several import others_of

        if isinstance(report, Report):
            swept = report.trace if report.trace.leaves else None  # else it is the structure of the graph alone
            diagnosis = self._session.look(
                cell.recorder, self.users(), trace=swept, value=cell.differentiated, ignore=ignored_by(cell.request)
            )
            found = (*diagnosis.findings, *diagnosis.remarks)
            others = others_of(cell.recorder, found, bounds=self.bounds(), with_graph=self.with_graph(cell.request))
            self._session.keep_current(self.users())
            return replace(report, findings=diagnosis.findings, remarks=diagnosis.remarks, beside=others)
        ignore = ignored_by(cell.request)
        diagnosis = self._session.look(cell.recorder, self.users(), value=self._undifferentiated(cell), ignore=ignore)
        return report.followed_by(diagnosis.findings)

    def _wanted(self, cell: Cell) -> Any:
        """What a cell that called no backward() is looked at for: its value, or the last number that it computed, with history if
        there is one."""
        from gradlab.explore.libraries import library_of

        last = [cell.value] if cell.ending.kind == "value" else []
        for value in [*last, *(self.shell.user_ns.get(name) for name in reversed(cell.ending.assigned))]:
            if library_of(value) is not None and value.requires_grad and not value.is_leaf and value.numel() == 1:
                return value
        return self._undifferentiated(cell)

    def _undifferentiated(self, cell: Cell) -> Any:
        """What a cell with nothing to differentiate seems to want the gradient of: its value, or the last number that it
        computed; None where there is no tensor without history."""
        from gradlab.explore.libraries import library_of

        last = [cell.value] if cell.ending.kind == "value" else []
        for value in [*last, *(self.shell.user_ns.get(name) for name in reversed(cell.ending.assigned))]:
            if library_of(value) is not None and not value.requires_grad and value.numel() == 1:
                return value
        return None

    def users(self) -> dict[str, Any]:
        """The names that are the user's."""
        return {name: value for name, value in self.shell.user_ns.items() if name not in self.shell.user_ns_hidden}

    @property
    def _session(self) -> Any:
        from gradlab.explore.doctor.session import NOTEBOOK

        return NOTEBOOK

    # -------------------------------------------------------------------------------------------------------- pieces
    def _finish(self, request: Request, report: Any, matrix: Any = None, info: Any = None, swept: Any = ()) -> None:
        """Keep the report where it was asked for, and show it; a Jacobian that was asked for live, if there is a front end."""
        from gradlab.explore.report import Report

        if request.out is not None:
            self.shell.user_ns[request.out] = report if isinstance(report, Report) else None
        if not request.quiet:
            kernel = getattr(self.shell, "kernel", None) is not None
            live = matrix if request.jacobian and kernel else None
            explored = request.live and kernel and isinstance(report, Report) and bool(report.trace.nodes)
            parts = report.parts(explored=explored, terminal=not kernel) if isinstance(report, Report) else [report]
            for k, part in enumerate(parts):
                if live is not None and getattr(part, "drawing", None) is report.jacobian_picture:
                    part = self.keep(live.widget(), info)  # it shows the picture too
                display(part)
                if explored and k == 0:
                    self._explore(report, swept, info)

    def _explore(self, report: Any, swept: Any, info: Any) -> None:
        """Display the live view of a report's graph, in the place of its picture."""
        from gradlab.explore.explorer import Explorer
        from gradlab.explore.graph import Graph
        from gradlab.notebook.graph_widget import GraphWidget

        space = self.users()
        outputs = [out for out, _ in swept]
        starts = [start for _, start in swept if start is not None]
        explorer = Explorer.around(
            Graph(report.trace, limit=report.bounds.nodes),
            outputs,
            space,
            self.names(space, ()),
            starts if len(starts) == len(swept) else (),
        )
        display(self.keep(GraphWidget(explorer, twin=report.twin()), info))  # it shows the twin too

    def _say(self, request: Request, diagnosis: Any) -> None:
        """Keep what was found where it was asked for, and show it."""
        if request.out is not None:
            self.shell.user_ns[request.out] = diagnosis
        if not request.quiet:
            display(diagnosis)

    def keep(self, widget: Any, info: Any = None) -> Any:
        """Hold a widget until its cell runs again; the cell that runs is the default."""
        info = info or (self._running.infos[-1] if self._running.infos else None)
        self._widgets.setdefault(_key(info), []).append(widget)
        return widget

    def _close_widgets(self, cell: str) -> None:
        """A cell that runs again lets go of the widgets that it showed before."""
        for widget in self._widgets.pop(cell, ()):
            widget.close()

    def parsed(self, parse: Any, line: str) -> Request:
        __tracebackhide__ = True
        try:
            return parse(line)
        except OptionError as error:
            raise UsageError(str(error)) from None

    def evaluated(self, text: str, space: Mapping[str, Any]) -> Any:
        """The value of an option's expression after the cell."""
        try:
            return eval(compile(text, "<option of %%grad>", "eval"), dict(space))  # noqa: S307  (the user's own option)
        except Exception as error:
            raise UsageError(f"{text}: {type(error).__name__}: {error}") from error

    def names(self, space: Mapping[str, Any], first: tuple[str, ...]) -> dict[str, Any]:
        """{name: tensor} of a namespace, one name for each tensor."""
        from gradlab.explore.names import names_in

        return names_in({name: value for name, value in space.items() if name not in self.shell.user_ns_hidden}, first=first)

    def bounds(self) -> Any:
        """How much a report shows."""
        from gradlab.explore.report import Bounds

        return Bounds(self.leaf_rows, self.nodes, self.heat_maps, self.jacobian_rows)

    def with_graph(self, request: Request) -> bool:
        """Whether the graph is drawn."""
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


def ignored_by(request: Request) -> frozenset[str]:
    """Return the kinds of findings that a line silences.

    Raises
    ------
    UsageError
        If one of them is unknown.
    """
    if not request.ignore:
        return frozenset()
    import gradlab.explore.doctor.examine  # noqa: F401  (registers the kinds)
    from gradlab.explore.doctor.registry import require_kinds

    try:
        return require_kinds(request.ignore)
    except ValueError as error:
        raise UsageError(f"--ignore: {error}") from None


def recorder_of(shell: Any, mentions: tuple[str, ...], maps: int) -> Any:
    """What sees a cell of this shell. The explorers load with the first."""
    from gradlab.explore.trace.recorder import Recorder

    return Recorder(
        lambda: {name: x for name, x in shell.user_ns.items() if name not in shell.user_ns_hidden}, mentions, maps=maps
    )

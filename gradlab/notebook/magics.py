"""`%%grad` and `%grad`, `%%doctor` and `%doctor`.

A `%%grad` cell runs as an ordinary cell (see `transform`). Its first line calls `begin`, which reads the options and starts to
record the cell's calls of `backward`; its last value passes through `value`. When the cell ends, with or without error, IPython
calls `after_cell`, which stops recording and, if the cell succeeded, differentiates and shows the report. Nothing is kept between
cells. An error at this point (missing weights, an unknown name, an exception in a user's hook) makes the cell fail.
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
    shown: Any  # the last exception shown before the cell
    value: Any = None
    differentiated: Any = None  # the subject of the report, if the cell called no backward
    swept: Any = ()  # the roots of the report's sweep, and their cotangents

    def open(self) -> None:
        """Start recording. The cell is in `Running.cells` already, so it is closed even if an interrupt comes here."""
        self.recorder.meet_libraries()

    def close(self) -> None:
        """Stop recording. May be called again after an interrupt."""
        self.recorder.close()


@dataclass
class Running(threading.local):
    """The running cells of this thread: a cell may run another."""

    infos: list[Any] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)

    def close_last(self) -> Cell:
        """Close and remove the innermost cell. If an interrupt comes first, it stays for the next cell to close."""
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
    jacobian_rows = Integer(64, min=0, help="Without weights, an output with at most this many elements gets its Jacobian.").tag(
        config=True
    )

    fixes = Bool(True, help="Show fixes in findings, errors and warnings. False, as in homework: only show what is wrong.").tag(
        config=True
    )

    def __init__(self, shell: Any, **kwargs: Any) -> None:
        super().__init__(shell, **kwargs)
        fix_setting.shown = self.fixes
        self._running = Running()
        self._widgets: dict[str, list[Any]] = {}  # displayed widgets, by cell
        notebook.numbers, notebook.namespace = getattr(shell.compile, "_filename_map", {}), shell.user_ns
        notebook.last_error = partial(last_failure, shell)

    # --------------------------------------------------------------------------------------------------- the magics
    @no_var_expand
    @needs_local_scope
    @line_cell_magic
    def grad(self, line: str, cell: str | None = None, local_ns: dict[str, Any] | None = None) -> None:
        """Report on an expression. (A `%%grad` cell calls this only if it cannot run as an ordinary cell.)"""
        if cell is None:
            self.line(line, local_ns)
            return
        self.parse(parse_cell, line)
        raise self.usage_error(CELL, cell)

    @no_var_expand
    @line_cell_magic
    def doctor(self, line: str, cell: str | None = None) -> Any:
        """Find what is wrong with gradients, and on which line.

            %doctor     reports on the last run: the findings of a %%grad or %%doctor cell, or else on its error and its tensors
            %%doctor    runs the cell, records it, and reports on it; errors are shown as usual

        Both take `--ignore KIND,…`, which silences kinds of findings (they are printed in brackets after a finding), `-o NAME`,
        which assigns the diagnosis to a name, and `-q`. A comment `# gradlab: ignore[KIND]` silences a kind on its line.

        `%%doctor` calls no backward() and writes no .grad: a result that the cell does not differentiate is examined with a sweep
        that has no side effects. `gl.doctor()` returns the same.
        """
        if cell is None:
            request = self.parse(parse_doctor, line)
            diagnosis = self._session.report(self.users(), ignored_by(request))
            if request.out is not None:
                self.shell.user_ns[request.out] = diagnosis
            return None if request.quiet else diagnosis
        self.parse(parse_doctor, line)
        raise self.usage_error(DOCTOR, cell)

    def usage_error(self, magic: str, cell: str) -> UsageError:
        """Return the error for a cell that IPython passed to the magic itself."""
        below = cell.lstrip().split(None, 1)[:1]
        if below and below[0].startswith("%%"):
            works = " and ".join(sorted(RUNS_THE_CELL))
            return UsageError(
                f"{magic} cannot see the value of a {below[0]} cell: put {below[0]} on the line above {magic}. "
                f"({works} may be above or below.)"
            )
        return UsageError(
            f"{magic} needs a cell below its line."
            if not cell.strip()
            else f"{magic} must be the first line of a cell, or follow {' or '.join(sorted(RUNS_THE_CELL))}."
        )

    def line(self, line: str, local_ns: dict[str, Any] | None = None) -> None:
        """`%grad [options] EXPR`: report without writing any `.grad`."""
        from gradlab.notebook.reporting import CellReporter

        request = self.parse(parse_line, line)
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
        """Handle IPython's `pre_run_cell`."""
        with Faults("got ready for a cell"):
            cells.current = None
            if not _inside_a_cell():
                self._running.infos.clear()
                self.forget()  # clean up after a cell whose end was not reported
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
        """Start a `%%grad` or `%%doctor` cell: its first line calls this. A wrong option raises here, before the cell runs."""
        __tracebackhide__ = True
        request = self.parse(PARSERS[magic], line)
        ignored_by(request)
        if kind is None:
            raise UsageError(
                f"{magic} cannot see the value of a cell that another magic runs: put {magic} on the first "
                f"line. ({' and '.join(sorted(RUNS_THE_CELL))} may be above or below.)"
            )
        if not self._running.infos:
            return  # a silent run shows no report
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
            recorder = recorder_of(self.shell, mentions, self.heat_maps, runs_compiled=request.compiled)
            recorder.on_end = lambda training: self._session.of_training(training, self.users(), ignored_by(request))
            running.cells.append(Cell(request, ending, running.infos[-1], recorder, _last_shown()))
            running.cells[-1].open()

    def meet_libraries(self) -> None:
        """Start to record libraries that the cell has imported."""
        if self._running.cells:
            self._running.cells[-1].recorder.meet_libraries()  # does not raise
        self.shell.magics_manager.registry["WatchMagics"].meet_libraries()

    def value(self, value: Any) -> Any:
        """Store and return the value of a `%%grad` cell's last expression."""
        if self._running.cells:
            self._running.cells[-1].value = value
        return value

    def after_cell(self, result: Any = None) -> None:
        """Handle IPython's `post_run_cell`, after a cell that succeeded or failed."""
        faults = Faults("looked at a cell that has ended")
        cell: Cell | None = None
        with faults:
            cell = self._end_cell(result)
        if cell is None:
            return
        try:
            failed = result.error_in_exec or (_last_shown() if _last_shown() is not cell.shown else None)
            if not result.success or failed is not None:  # older versions of %%time show an exception and continue
                with faults:
                    diagnosis = self._session.look(cell.recorder, self.users(), error=failed, ignore=ignored_by(cell.request))
                    if cell.request.findings_only:
                        self._show_diagnosis(cell.request, diagnosis)
                    elif not cell.request.quiet:
                        explain_below(diagnosis, failed, cell.recorder)
            else:
                self._report_on(cell, result, faults)
        finally:
            with faults:
                cell.recorder.forget()

    def _end_cell(self, result: Any) -> Cell | None:
        """Close the cells that have ended, and return the outer one. Return None if it is not a `%%grad` cell."""
        running, info = self._running, getattr(result, "info", None)
        while running.infos and running.infos.pop() is not info and result is not None:
            pass
        ended = []
        while running.cells and not any(running.cells[-1].info is outer for outer in running.infos):
            ended.append(running.close_last())
        return None if not ended or result is None or ended[0].info is not info else ended[0]

    def _report_on(self, cell: Cell, result: Any, faults: Faults) -> None:
        """Report on a cell that succeeded.

        An error in its options, or in the user's program during differentiation, becomes the cell's error. An internal error
        is a warning.
        """
        report: Any = None
        try:
            cell.recorder.settle_journal()
            if not cell.request.findings_only:
                report, matrix = self._after(cell)
        except BaseException as error:  # noqa: BLE001  (an interrupt must end the cell, too)
            self._fail(result, error)
            with faults:
                diagnosis = self._session.look(cell.recorder, self.users(), error=error, ignore=ignored_by(cell.request))
                if not cell.request.quiet:
                    explain_below(diagnosis, error, cell.recorder)
            return
        with faults:
            if cell.request.findings_only:
                ignore = ignored_by(cell.request)
                self._show_diagnosis(
                    cell.request,
                    self._session.look(cell.recorder, self.users(), value=self._value_to_examine(cell), ignore=ignore),
                )
            elif report is not None:
                self._finish(cell.request, self._add_findings(cell, report), matrix, result.info, cell.swept)

    def forget(self) -> None:
        while self._running.cells:
            self._running.close_last().recorder.forget()

    @observe("fixes")
    def _show_fixes(self, change: Any) -> None:
        fix_setting.shown = change["new"]

    def unload(self) -> None:
        """Remove all state."""
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
        """Make the cell fail with this error, without gradlab's frames in the traceback."""
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_frame.f_globals.get("__name__", "").startswith("gradlab."):
            traceback = traceback.tb_next
        if traceback is None and not isinstance(error, (RuntimeError, TypeError, UsageError)):
            traceback = error.__traceback__  # an internal error: show all frames
        self.shell.showtraceback((type(error), error.with_traceback(traceback), traceback), tb_offset=0)
        result.error_in_exec = error
        self.shell.last_execution_succeeded = False

    # ------------------------------------------------------------------------------------------------ what a cell means
    def _after(self, cell: Cell) -> tuple[Any, Any]:
        """Return the report on a cell, or a remark if there is nothing to report, and its Jacobian."""
        from gradlab.notebook.reporting import CellReporter

        reporter = CellReporter(self, cell.request, self.shell.user_ns, cell.ending, cell.recorder)
        try:
            return reporter.of_cell(cell.value)
        finally:
            cell.differentiated, cell.swept = reporter.value, reporter.swept

    def _add_findings(self, cell: Cell, report: Any) -> Any:
        """Return the report or remark with the findings on the cell."""
        from gradlab.explore.report import Report
        from gradlab.explore.report.several import others_of

        if isinstance(report, Report):
            swept = report.trace if report.trace.leaves else None  # otherwise it has only the structure of the graph
            diagnosis = self._session.look(
                cell.recorder, self.users(), trace=swept, value=cell.differentiated, ignore=ignored_by(cell.request)
            )
            found = (*diagnosis.findings, *diagnosis.remarks)
            others = others_of(cell.recorder, found, bounds=self.bounds(), with_graph=self.with_graph(cell.request))
            self._session.keep_current(self.users())
            return replace(report, findings=diagnosis.findings, remarks=diagnosis.remarks, other_models=others)
        ignore = ignored_by(cell.request)
        diagnosis = self._session.look(cell.recorder, self.users(), value=self._value_without_history(cell), ignore=ignore)
        return report.followed_by(diagnosis.findings)

    def _value_to_examine(self, cell: Cell) -> Any:
        """Return the value to examine in a cell without backward(): its value or the last scalar, preferably one with history."""
        from gradlab.explore.libraries import library_of

        last = [cell.value] if cell.ending.kind == "value" else []
        for value in [*last, *(self.shell.user_ns.get(name) for name in reversed(cell.ending.assigned))]:
            if library_of(value) is not None and value.requires_grad and not value.is_leaf and value.numel() == 1:
                return value
        return self._value_without_history(cell)

    def _value_without_history(self, cell: Cell) -> Any:
        """Return the scalar tensor without history that a cell probably wants to differentiate, or None."""
        from gradlab.explore.libraries import library_of

        last = [cell.value] if cell.ending.kind == "value" else []
        for value in [*last, *(self.shell.user_ns.get(name) for name in reversed(cell.ending.assigned))]:
            if library_of(value) is not None and not value.requires_grad and value.numel() == 1:
                return value
        return None

    def users(self) -> dict[str, Any]:
        """Return the user's own names."""
        return {name: value for name, value in self.shell.user_ns.items() if name not in self.shell.user_ns_hidden}

    @property
    def _session(self) -> Any:
        from gradlab.explore.doctor.session import NOTEBOOK

        return NOTEBOOK

    # -------------------------------------------------------------------------------------------------------- pieces
    def _finish(self, request: Request, report: Any, matrix: Any = None, info: Any = None, swept: Any = ()) -> None:
        """Assign the report to the requested name, and show it. A requested live Jacobian is shown if there is a front end."""
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
        """Display the live view of a report's graph instead of its picture."""
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

    def _show_diagnosis(self, request: Request, diagnosis: Any) -> None:
        """Assign the diagnosis to the requested name, and show it."""
        if request.out is not None:
            self.shell.user_ns[request.out] = diagnosis
        if not request.quiet:
            display(diagnosis)

    def keep(self, widget: Any, info: Any = None) -> Any:
        """Keep a widget until its cell runs again. By default, the running cell."""
        info = info or (self._running.infos[-1] if self._running.infos else None)
        self._widgets.setdefault(_key(info), []).append(widget)
        return widget

    def _close_widgets(self, cell: str) -> None:
        """Close the widgets of a cell that runs again."""
        for widget in self._widgets.pop(cell, ()):
            widget.close()

    def parse(self, parser: Any, line: str) -> Request:
        __tracebackhide__ = True
        try:
            return parser(line)
        except OptionError as error:
            raise UsageError(str(error)) from None

    def evaluate(self, text: str, space: Mapping[str, Any]) -> Any:
        """Evaluate the expression of an option, after the cell."""
        try:
            return eval(compile(text, "<option of %%grad>", "eval"), dict(space))  # noqa: S307  (the user's own option)
        except Exception as error:
            raise UsageError(f"{text}: {type(error).__name__}: {error}") from error

    def names(self, space: Mapping[str, Any], first: tuple[str, ...]) -> dict[str, Any]:
        """Return {name: tensor} of a namespace, with one name for each tensor."""
        from gradlab.explore.names import names_in

        return names_in({name: value for name, value in space.items() if name not in self.shell.user_ns_hidden}, first=first)

    def bounds(self) -> Any:
        """Return the limits of what a report shows."""
        from gradlab.explore.report import Bounds

        return Bounds(self.leaf_rows, self.nodes, self.heat_maps, self.jacobian_rows)

    def with_graph(self, request: Request) -> bool:
        """Return whether to draw the graph."""
        return request.graph or (self.graph and not request.no_graph)


# The help that `%%grad?` shows.
GradMagics.grad.__doc__ = f"""Run a cell and show its gradients, or show those of an expression.

    {CELL} [NAME …] [options]          differentiates what the cell computes
    {LINE} [options] EXPR              differentiates an expression and writes no .grad

The cell runs as it would without this line. Then the value of its last expression, or of the one name that its last
statement assigns to, is differentiated with respect to every leaf (a tensor created with requires_grad=True), or to
the NAMEs, which may be x, model.fc1.weight, params[0] or any intermediate tensor.

{CELL}:
{usage(CELL)}

{LINE}:
{usage(LINE)}

.grad of the leaves is replaced, so that running the cell again gives the same result. The report mentions replaced
gradients and keeps them in its `previous` (-o NAME). The graph is kept: loss.backward() in a later cell works, and adds.
If the cell calls backward() itself, the report is on its last call. An output that is not a scalar needs weights (-v);
without them, a small one gets its Jacobian. Defaults: %config GradMagics

    %%grad                             %%grad x -v [0.1, 1.0, 0.0001]        %grad --wrt a,b (a * b).sum()
    loss = ((w @ x - y) ** 2).mean()   y = x * 2
"""


def _inside_a_cell() -> bool:
    """Return whether a cell's code is on the call stack."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code is not InteractiveShell.run_code.__code__:
        frame = frame.f_back
    return frame is not None


def _last_shown() -> Any:
    """Return the exception whose traceback IPython showed last."""
    return getattr(sys, "last_value", None)


def _key(info: Any) -> str:
    """Return a key for a cell: the front end's id, or its text."""
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


def recorder_of(shell: Any, mentions: tuple[str, ...], maps: int, *, runs_compiled: bool) -> Any:
    """Create the recorder of a cell of this shell. The first call imports the explorers."""
    from gradlab.explore.trace.recorder import Recorder

    return Recorder(
        lambda: {name: x for name, x in shell.user_ns.items() if name not in shell.user_ns_hidden},
        mentions,
        maps=maps,
        runs_compiled=runs_compiled,
    )

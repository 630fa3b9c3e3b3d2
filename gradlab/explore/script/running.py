"""Run a script and diagnose it.

The script runs in this process and this thread, as `__main__`. The size of its recording is bounded by time and by the limits of
`Recorder`, not by the number of steps: of a long training some backward calls are checked, spread over the training, and the last
one completely. Models and optimizers that are local to a function, or attributes of a trainer, have the names of that last call.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite
from types import ModuleType
from typing import Any

from gradlab import clock
from gradlab.explore.doctor.context.case import join_names
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.session import Session
from gradlab.explore.libraries.registry import libraries_not_imported, library_of
from gradlab.explore.markup import code, count, say
from gradlab.explore.names import names_in, owners_in
from gradlab.explore.report import Report, report_of
from gradlab.explore.report.models import OtherModels, calls_said
from gradlab.explore.report.several import others_of
from gradlab.explore.script.frames import trim_traceback
from gradlab.explore.script.import_hooks import listen_to_imports
from gradlab.explore.script.program import Program, script_environment
from gradlab.explore.script.redirection import flush_output
from gradlab.explore.trace.data import Line, Trace
from gradlab.explore.trace.notes import locals_of
from gradlab.explore.trace.recorder import Recorder

INTERRUPTED = 130


@dataclass(frozen=True)
class ScriptRun:
    """The result of running and diagnosing a script. Plain data.

    Attributes
    ----------
    program : Program
    script_status : int
        The exit status of the script itself, as Python returns it: that of `sys.exit`, 1 after an error, 130 after Ctrl-C.
    diagnosis : Diagnosis
    trace : Trace or None
        The trace of the backward call that the report shows.
    backward_calls : int
    unseen : tuple of str
        Sentences about parts of the run that were not checked, in addition to `diagnosis.unseen`.
    failed : bool
        Whether an error ended the script.
    others : OtherModels or None
        The other models that the script trained.
    folder : str
        The current folder when the script started. It may have changed since.
    seconds : float
        The time that the script took while it was recorded.
    """

    program: Program
    script_status: int
    diagnosis: Diagnosis
    trace: Trace | None
    backward_calls: int
    unseen: tuple[str, ...] = ()
    failed: bool = False
    others: OtherModels | None = None
    folder: str = ""
    seconds: float = 0.0

    @property
    def not_checked(self) -> tuple[str, ...]:
        """All sentences about parts of the run that were not checked."""
        return *self.diagnosis.unseen, *self.unseen

    def exit_status(self, *, strict: bool = False) -> int:
        """Return the script's own status if it is not 0, else 1 if there is a Problem (if `strict`, also a Note), else 0."""
        found = self.diagnosis.findings or (strict and self.diagnosis.remarks)
        return self.script_status or int(bool(found))

    def module_line(self, finding: Finding) -> Line | None:
        """Return the line of a finding in another file than the script, such as a module next to it, or None."""
        place = finding.place_in(self.trace)
        return place if place is not None and not place.in_cell else None

    def end_line(self, finding: Finding) -> int | None:
        """Return the last line of the expression in the script that a finding is about, or None if it is not known."""
        place = finding.place_in(self.trace)
        return place.end if place is not None and place.in_cell and place.line == finding.line else None

    def report(self) -> Report | None:
        """Return the report of the shown backward call with all findings, or None if there is none."""
        if self.trace is None or not self.trace.nodes:
            return None
        who = say(code(self.program.name), " called ", code("backward()"))
        label = "" if self.others is None else self.others.label
        report = report_of(
            self.trace,
            calls_said(who, self.trace, self.backward_calls, label, held=False),
            backward_calls=self.backward_calls,
            findings=self.diagnosis.findings,
            remarks=self.diagnosis.remarks,
        )
        return replace(report, other_models=self.others)


def run_script(
    program: Program,
    *,
    every: bool = False,
    compiled: bool = False,
    ignore: frozenset[str] = frozenset(),
    after: Callable[[Mapping[str, Any]], None] | None = None,
) -> ScriptRun:
    """Run a script and diagnose it when it has ended, also by an error or an interrupt.

    In a process that the script forked this does not return. The process ends with the status of its copy of the script.

    Parameters
    ----------
    program : Program
    every : bool, default: False
        Check every backward call, however long that takes.
    compiled : bool, default: False
        Run functions of `torch.compile` compiled, without their lines, and not as they are written.
    ignore : frozenset of str, optional
        The kinds of findings to silence.
    after : callable, optional
        Called with the names of the script if it ended without an error, before they are released.

    Returns
    -------
    ScriptRun
    """
    process, folder = os.getpid(), _current_folder()
    with script_environment(program) as main:
        recorder = Recorder(lambda: vars(main), runs_compiled=compiled)
        recorder.examines_every_sweep = every
        session = Session()
        recorder.on_end = lambda training: session.of_training(training, public_names(main), ignore)
        error: BaseException | None = None
        start = clock.now()
        try:
            try:
                recorder.meet_libraries()
                with listen_to_imports(set(libraries_not_imported()), recorder.meet_libraries):
                    exec(program.compile_source(), vars(main))  # noqa: S102  (the user's own script)
            except BaseException as raised:  # noqa: BLE001  (it is printed, and its status returned)
                error = raised
            finally:
                recorder.close()
            seconds = clock.now() - start
            status = _end_script(error)
            if os.getpid() != process:
                raise SystemExit(status)
            if after is not None and error is None:
                after(vars(main))
            run = _diagnose(program, recorder, session, main, error, ignore)
            return replace(run, script_status=status, folder=folder, seconds=seconds)
        finally:
            recorder.forget()


def _current_folder() -> str:
    """Return the current folder, or "" if it has been deleted."""
    try:
        return os.getcwd()
    except OSError:
        return ""


def _end_script(error: BaseException | None) -> int:
    """Print the error that ended a script, as Python does, and return the exit status."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _end_with(error.code)
    trim_traceback(error)
    flush_output()
    failed: BaseException | None = None
    try:
        getattr(sys, "excepthook", sys.__excepthook__)(type(error), error, error.__traceback__)
    except SystemExit as request:
        return _end_with(request.code)
    except BaseException as failure:  # noqa: BLE001  (an error in the script's own hook)
        failed = failure
    if failed is not None:
        _print_hook_error(trim_traceback(failed), error)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _end_with(code: object) -> int:
    """Return the exit status for an argument of `sys.exit`. Print it if it is neither None nor an integer."""
    if code is None or isinstance(code, int):
        return (code or 0) & 0xFF
    with suppress(BaseException):  # as Python does, if its `__str__` fails
        print(code, file=sys.stderr or sys.__stderr__)
    return 1


def _print_hook_error(failure: BaseException, error: BaseException) -> None:
    """Print an error in `sys.excepthook`, and the error that it was called with, as Python does."""
    for heading, one in (("Error in sys.excepthook:", failure), ("\nOriginal exception was:", error)):
        with suppress(Exception):  # the script may have closed or replaced `sys.stderr`
            print(heading, file=sys.stderr)  # noqa: T201
            sys.__excepthook__(type(one), one, one.__traceback__)


def public_names(main: ModuleType) -> dict[str, Any]:
    """Return the names of a module without those that Python sets."""
    return {name: value for name, value in vars(main).items() if not name.startswith("__")}


def _diagnose(
    program: Program,
    recorder: Recorder,
    session: Session,
    main: ModuleType,
    error: BaseException | None,
    ignore: frozenset[str],
) -> ScriptRun:
    """Return the result of a script that has ended, without its status and times."""
    space = public_names(main)
    if recorder.shown_sweep is not None:
        training = recorder.shown_sweep.training
        space = {**space, **(recorder.shown_sweep.owners if training is None else training.owners)}
    if error is not None:
        space = {**_owners_in_functions(error, program.filename), **space}
    failed = error if isinstance(error, Exception) else None
    trace = _last_trace(recorder)
    diagnosis = session.look(recorder, space, trace=trace, error=failed, ignore=ignore)
    if unchecked := _find_unchecked_nan(recorder, space, program):
        others = [one for one in diagnosis.remarks if one.kind != "nan-input"]  # a consequence
        diagnosis = diagnosis.with_parts([*diagnosis.findings, *others, unchecked], diagnosis.unseen, ()).without(ignore)
    unseen = tuple(_list_unseen(recorder, trace, failed))
    return ScriptRun(program, 0, diagnosis, trace, recorder.sweeps, unseen, failed is not None, others_of(recorder))


def _last_trace(recorder: Recorder) -> Trace | None:
    """Return the trace of the backward call that the report shows."""
    if recorder.last is None or recorder.last.error is not None:
        return None
    recorder.settle_journal()
    return recorder.trace()


def _find_unchecked_nan(recorder: Recorder, space: Mapping[str, Any], program: Program) -> Finding | None:
    """Return a finding if leaves contain NaN that no checked backward call explains."""
    spoilt = [one.nonfinite_sweep for one in recorder.trainings.all if one.nonfinite_sweep is not None]
    if any(not one.from_odd_leaves for one in spoilt) or not recorder.journal.skipped:
        return None
    leaves = [
        (name, tensor)
        for name, tensor in names_in(space).items()
        if tensor.requires_grad and (library := library_of(tensor)) is not None and library.is_leaf(tensor)
    ]
    names = [name for name, tensor in leaves if not isfinite(_norm(tensor))]
    if not names:
        return None
    return Finding(
        "nan-born",
        f"At the end {join_names(names)} {'holds' if len(names) == 1 else 'hold'} NaN or ∞, and the backward call that caused it "
        f"was not checked: {recorder.journal.skipped} of {recorder.sweeps} were not.",
        fix=f"Check every one, which takes longer: `gradlab doctor --every {program.path}`",
        evidence={"leaves": len(names), "skipped": recorder.journal.skipped},
        worth=9.0,
    )


def _norm(tensor: Any) -> float:
    library = library_of(tensor)
    return library.values([tensor])[0].norm if library is not None else 0.0


def _owners_in_functions(error: BaseException, filename: str) -> dict[str, Any]:
    """Return models and optimizers that were local to the script's functions when an error ended them, innermost first."""
    space: dict[str, Any] = {}
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename == filename and frame.f_code.co_name != "<module>":
            for name, value in owners_in(locals_of(frame)).items():
                space.setdefault(name, value)
    return space


def _list_unseen(recorder: Recorder, trace: Trace | None, failed: Exception | None) -> list[str]:
    sentences = []
    if not recorder.sweeps and not recorder.refused and failed is None:
        sentences.append(
            "No backward() was called in the script's own process and thread, so there are no gradients to look at. Other "
            "processes and threads are not recorded."
        )
    elif trace is not None and recorder.journal.skipped:
        checked = recorder.sweeps - recorder.journal.skipped
        whose = "" if trace.sweeps == recorder.sweeps else " of the model that is shown"
        last = "the last call" if trace.sweep == trace.sweeps else f"call {trace.sweep} of {trace.sweeps}"
        sentences.append(
            f"{checked} of {count(recorder.sweeps, 'backward call')} were checked, to keep the script fast, including "
            f"{last}{whose}."
        )
    return sentences

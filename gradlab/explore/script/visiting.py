"""`visit`: run a script, and say what the doctor finds in it.

The script runs in this process and this thread, as `__main__`. What is recorded of it is bounded by the time that it takes and by
what a `Recorder` keeps, not by its number of steps: of a long training some sweeps are looked at, spread over it, the last of
them whole. Names of models and optimizers that live in a function, or in a trainer's attributes, are those of that last sweep.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import isfinite
from types import ModuleType
from typing import Any

from gradlab.explore.doctor.context.case import listed
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.session import Session
from gradlab.explore.libraries.registry import awaited, library_of
from gradlab.explore.markup import code, count, say
from gradlab.explore.names import names_in, owners_in
from gradlab.explore.report import Report, report_of
from gradlab.explore.report.models import Beside, calls_said
from gradlab.explore.report.several import others_of
from gradlab.explore.script.eager import COMPILER, eagerly
from gradlab.explore.script.frames import trimmed
from gradlab.explore.script.import_hooks import arrivals
from gradlab.explore.script.program import Program, running
from gradlab.explore.trace.data import Line, Trace
from gradlab.explore.trace.notes import locals_of
from gradlab.explore.trace.recorder import Recorder

INTERRUPTED = 130


@dataclass(frozen=True)
class Visit:
    """What is known of a script that has ended. Plain data.

    Attributes
    ----------
    program : Program
    ended : int
        The status it ended with, as Python would: that of `sys.exit`, 1 of an error, 130 of Ctrl-C.
    diagnosis : Diagnosis
    trace : Trace or None
        Of the last sweep that was looked at.
    sweeps : int
        How often it called backward.
    unseen : tuple of str
        What was not seen of it, in a sentence each.
    failed : bool
        Whether an error ended it.
    others : Beside or None
        The other models that it trained.
    """

    program: Program
    ended: int
    diagnosis: Diagnosis
    trace: Trace | None
    sweeps: int
    unseen: tuple[str, ...] = ()
    failed: bool = False
    others: Beside | None = None

    @property
    def status(self) -> int:
        """The exit status: the script's own if that is not 0, else 1 if there is a Problem, else 0."""
        return self.ended or int(bool(self.diagnosis.findings))

    def place(self, finding: Finding) -> Line | None:
        """Where a finding lies that is not in the script itself: in a module beside it, say."""
        if self.trace is None or finding.node is None or not finding.node < len(self.trace.nodes):
            return None
        place = self.trace.nodes[finding.node].place
        return place if place is not None and not place.in_cell else None

    def report(self) -> Report | None:
        """The report of the last sweep that was looked at, with what was found; None where there was none."""
        if self.trace is None or not self.trace.nodes:
            return None
        who = say(code(self.program.name), " called ", code("backward()"))
        report = report_of(
            self.trace,
            calls_said(who, self.trace, self.sweeps, "" if self.others is None else self.others.label, held=False),
            backward_calls=self.sweeps,
            findings=self.diagnosis.findings,
            remarks=self.diagnosis.remarks,
        )
        return replace(report, beside=self.others)


def visit(
    program: Program,
    *,
    every: bool = False,
    ignore: frozenset[str] = frozenset(),
    after: Callable[[Mapping[str, Any]], None] | None = None,
) -> Visit:
    """Run a script, and look at it when it has ended, however it ended.

    Parameters
    ----------
    program : Program
    every : bool, default False
        Look at every call of backward, however long that takes.
    ignore : frozenset of str, optional
        The kinds of findings that are silenced.
    after : callable, optional
        Given the script's names when it has ended without an error, before they are let go.

    A process that the script forked ends here, with the status it would have had.
    """
    process = os.getpid()
    with running(program) as main:
        recorder = Recorder(lambda: vars(main))
        recorder.unhurried = every
        session = Session()
        recorder.on_end = lambda training: session.of_training(training, _module_getattr(main), ignore)
        error: BaseException | None = None
        try:
            try:
                with eagerly() as eager:

                    def arrived() -> None:
                        recorder.meet_libraries()
                        eager.arrived()

                    recorder.meet_libraries()
                    with arrivals({*awaited(), COMPILER}, arrived):
                        exec(program.compiled(), vars(main))  # noqa: S102  (the user's own script)
            except BaseException as raised:  # noqa: BLE001  (it is shown, and its status handed on)
                error = raised
            finally:
                recorder.close()
            ended = _ended(error)
            if os.getpid() != process:
                raise SystemExit(ended)
            if after is not None and error is None:
                after(vars(main))
            return _looked_at(program, recorder, session, main, error, ended, ignore, compiled=eager.asked)
        finally:
            recorder.forget()


def _ended(error: BaseException | None) -> int:
    """The status with which Python would end, once it has said what it says then."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return (error.code or 0) & 0xFF
        print(error.code, file=sys.stderr)  # noqa: T201  (as Python does)
        return 1
    trimmed(error)
    sys.stdout.flush()
    sys.excepthook(type(error), error, error.__traceback__)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _module_getattr(main: ModuleType) -> dict[str, Any]:
    """The script's own names."""
    return {name: value for name, value in vars(main).items() if not name.startswith("__")}


def _looked_at(
    program: Program,
    recorder: Recorder,
    session: Session,
    main: ModuleType,
    error: BaseException | None,
    ended: int,
    ignore: frozenset[str],
    *,
    compiled: bool,
) -> Visit:
    space = _module_getattr(main)
    if recorder.shown is not None:
        training = recorder.shown.training
        space = {**space, **(recorder.shown.owners if training is None else training.owners)}
    if error is not None:
        space = {**_where(error, program.filename), **space}
    failed = error if isinstance(error, Exception) else None
    trace = _trace(recorder)
    diagnosis = session.look(recorder, space, trace=trace, error=failed, ignore=ignore)
    if lost := _never_seen(recorder, space, program):
        others = [one for one in diagnosis.remarks if one.kind != "nan-input"]  # which follow from it
        diagnosis = diagnosis.with_parts([*diagnosis.findings, *others, lost], diagnosis.unseen, ()).without(ignore)
    unseen = tuple(_unseen(recorder, trace, failed, compiled))
    return Visit(program, ended, diagnosis, trace, recorder.sweeps, unseen, failed is not None, others_of(recorder))


def _trace(recorder: Recorder) -> Trace | None:
    """Of the sweep that is to be told of."""
    if recorder.last is None or recorder.last.error is not None:
        return None
    recorder.settle_journal()
    return recorder.trace()


def _never_seen(recorder: Recorder, space: Mapping[str, Any], program: Program) -> Finding | None:
    """What is said where leaves have become NaN while nobody looked."""
    spoilt = [one.spoilt for one in recorder.trainings.all if one.spoilt is not None]
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
        f"At the end {listed(names)} {'holds' if len(names) == 1 else 'hold'} NaN or ∞, and the call of backward() that brought "
        f"it was not looked at: {recorder.journal.skipped} of {recorder.sweeps} were not.",
        fix=f"Look at every one, which takes longer: `gradlab doctor --every {program.called}`",
        evidence={"leaves": len(names), "skipped": recorder.journal.skipped},
        worth=9.0,
    )


def _norm(tensor: Any) -> float:
    library = library_of(tensor)
    return library.values([tensor])[0].norm if library is not None else 0.0


def _where(error: BaseException, filename: str) -> dict[str, Any]:
    """What may learn of the names that the script's functions had when an error ended them, innermost first."""
    space: dict[str, Any] = {}
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame.f_code.co_filename == filename and frame.f_code.co_name != "<module>":
            for name, value in owners_in(locals_of(frame)).items():
                space.setdefault(name, value)
    return space


def _unseen(recorder: Recorder, trace: Trace | None, failed: Exception | None, compiled: bool) -> list[str]:
    sentences = []
    if not recorder.sweeps and not recorder.refused and failed is None:
        sentences.append(
            "No backward() was called in the script's own process and thread, so there are no gradients to look at. What other "
            "processes and threads do is not seen."
        )
    elif trace is not None and recorder.journal.skipped:
        looked = recorder.sweeps - recorder.journal.skipped
        whose = "" if trace.sweeps == recorder.sweeps else " of the model that is shown"
        last = "the last call" if trace.sweep == trace.sweeps else f"call {trace.sweep} of {trace.sweeps}"
        which = f"{last}{whose} among them"
        sentences.append(
            f"{looked} of {count(recorder.sweeps, 'backward call')} were looked at, so as not to slow the script; {which}."
        )
    if compiled:
        sentences.append(
            "torch.compile was disabled: compiled functions ran as ordinary Python code, so that their lines could be traced. "
            "Effects of compilation on the values were not checked."
        )
    return sentences

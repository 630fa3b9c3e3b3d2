"""The doctor during a watch. A `Recorder` records the first steps of a training, and the doctor's checks run on them as on a
`%%grad` cell or a script. A longer training continues without recording, at the cost of the watch alone.

Trainings that are watched at the same time in one thread share a recorder.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from gradlab.diagnose.source_locations import CELL_FILE, cells
from gradlab.explore.doctor.after_run import error_findings
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.examine import CHECKS_OF_ERRORS
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.doctor.session import Session
from gradlab.explore.doctor.silencing import kinds_in_comments
from gradlab.explore.trace.notes import cell_source
from gradlab.explore.trace.recorder import Recorder
from gradlab.explore.trace.trainings import Training

FULL, FIRST = 200, 100  # a training of at most FULL steps is examined completely, a longer one for its FIRST steps
LONGEST = 1_000  # maximum number of steps that a training is examined while others have not finished their first steps
SECONDS = 60.0  # maximum time for recording
ERRORS = frozenset(kind for one in CHECKS_OF_ERRORS for kind in one.kinds)


class ExaminationResult(NamedTuple):
    """The findings on the examined steps of a training.

    Attributes
    ----------
    diagnosis : Diagnosis
    nonfinite_tick : int or None
        The tick of the clock of notes at the start of the first sweep with a NaN or an infinity.
    steps : int
        How many steps were examined.
    silenced : frozenset of str
        The kinds of findings that the user silenced, by name or in a comment of the program.
    """

    diagnosis: Diagnosis = Diagnosis()
    nonfinite_tick: int | None = None
    steps: int = 0
    silenced: frozenset[str] = frozenset()


class _Here(threading.local):
    running: Examination | None = None


_here = _Here()


class Examination:
    """The doctor's examination of the trainings in a block or a cell.

    Parameters
    ----------
    namespace : callable
        Returns the namespace of the program.
    first : tuple of str
        The names that the cell mentions.
    session : Session, optional
        It has the state of earlier cells. Default: a new one.
    ignore : frozenset of str
        The kinds of findings to silence.
    """

    def __init__(
        self,
        namespace: Callable[[], Mapping[str, Any]],
        first: tuple[str, ...] = (),
        session: Session | None = None,
        ignore: frozenset[str] = frozenset(),
    ) -> None:
        self._namespace, self._first, self._ignore = namespace, first, ignore
        self._session = session or Session()
        self.recorder: Recorder | None = None
        self._watches: dict[int, Any] = {}  # the watches whose trainings are examined, by id
        self._trainings: dict[int, Training] = {}  # their recorded trainings
        self._results: dict[int, ExaminationResult] = {}  # of watches whose training continues after its examination
        self._closes = False  # whether to close with the last watch
        self._has_failed = False  # whether an error ended the program
        self._reported_cost = 0.0  # seconds of recording that `new_cost` has returned
        self._cell: tuple[str | None, str, str] | None = None  # the previous state of `cells`

    # ----------------------------------------------------------------------------------------------------- begin and end
    def open(self, filename: str | None = None) -> None:
        """Start recording. With a file name, it closes with the last watch, and findings outside a cell refer to lines of that
        file."""
        _here.running = self
        self._closes = filename is not None
        if filename is not None and cells.current is None:
            self._cell = cells.current, cells.called, cells.header
            cells.current = filename
            cells.called = "the cell" if CELL_FILE.match(filename) else PurePath(filename).name
            cells.header = linecache.getline(filename, 1).rstrip("\n")
        self._record()

    def _record(self) -> None:
        self._trainings.clear()
        self.recorder, self._reported_cost = Recorder(self._namespace, self._first), 0.0
        self.recorder.examines_every_sweep = True
        self.recorder.on_end = lambda training: self._session.of_training(training, self._namespace(), self._ignore)
        self.recorder.meet_libraries()

    def meet_libraries(self) -> None:
        """Start recording libraries that have been imported since."""
        if self.recorder is not None:
            self.recorder.meet_libraries()

    def close(self) -> None:
        """Stop recording, and release all objects of the program. May be called again."""
        if _here.running is self:
            _here.running = None
        if self.recorder is not None:
            self.recorder.forget()
            self.recorder = None
        self._watches.clear()
        self._trainings.clear()
        if self._cell is not None:
            (cells.current, cells.called, cells.header), self._cell = self._cell, None

    def conclude(self, error: BaseException | None = None) -> Diagnosis:
        """Return the findings on the recorded steps, at the end of the program.

        Parameters
        ----------
        error : BaseException, optional
            The error that ended it. An interrupt by the user does not count as an error.
        """
        failed = None if isinstance(error, KeyboardInterrupt) else error
        self._has_failed = failed is not None
        recorder = self.recorder
        if recorder is None:
            return Diagnosis() if failed is None else error_findings(self._namespace(), failed)
        recorder.close()
        shown = recorder.shown_sweep
        training = None if shown is None else shown.training
        owners = shown.owners if shown is not None and training is None else training.owners if training is not None else {}
        space = {**self._namespace(), **owners}
        diagnosis = self._session.look(recorder, space, error=failed, ignore=self._ignore)
        if training is not None and len(recorder.trainings.known) < 2:
            training.diagnosis = diagnosis
        for watch in self._watches.values():
            self._store_result(watch)
        self._watches.clear()
        return diagnosis

    # ----------------------------------------------------------------------------------------------------------- watches
    def join(self, watch: Any) -> None:
        """Examine the training of a watch that starts."""
        self._watches[id(watch)] = watch
        if self.recorder is None:
            self._record()

    def leave(self, watch: Any, error: BaseException | None = None) -> ExaminationResult:
        """Return the findings on a training that has ended."""
        if id(watch) in self._watches:
            if self._closes and len(self._watches) == 1:
                self.conclude(error)
            else:
                self._end(watch)
            self._watches.pop(id(watch), None)
        result = self._results.pop(id(watch), ExaminationResult())
        if self._closes and not self._watches and not self._results:
            self.close()
        return result

    def end_if_complete(self, watch: Any) -> ExaminationResult | None:
        """Return the findings on a training after its last examined step; None before that."""
        if id(watch) not in self._watches or self.recorder is None:
            return None
        steps = watch.steps
        enough = steps >= FULL or (steps >= FIRST and ((total := self.total_of(watch)) is None or total > FULL))
        if not enough and self.recorder.pace.spent < SECONDS:
            return None
        others = [one for one in self._watches.values() if one is not watch and 0 < one.steps < FULL]
        if others and steps < LONGEST and self.recorder.pace.spent < SECONDS:
            return None
        for one in [*self._watches.values()]:
            self._end(one)
        self._watches.clear()
        self.recorder.forget()
        self.recorder = None
        return self._results[id(watch)]

    def result_of(self, watch: Any) -> ExaminationResult | None:
        """Return the findings on a training that continues; None while it is being examined."""
        return self._results.get(id(watch))

    def total_of(self, watch: Any) -> int | None:
        """Return the number of steps of a training, if it was given or follows from the loops around its backward."""
        if watch.framework_total is not None:
            return int(watch.framework_total)
        training = self.training_of(watch)
        if training is None or self.recorder is None or not training.sweeps or not watch.steps:
            return None
        sweeps = training.progress.total(watch.outer_loops)
        return None if sweeps is None else round(sweeps * watch.steps / training.sweeps)

    def training_of(self, watch: Any) -> Training | None:
        """Return the recorded training of a watch. It is remembered, and found again after the tensors are released."""
        if self.recorder is None:
            return None
        trainings, known = self.recorder.trainings, self._trainings.get(id(watch))
        if known not in trainings.known and watch.target.is_held:
            keys = set(self.recorder.identities.keys(watch.target.params))
            known = next((one for one in trainings.known if not one.keys.isdisjoint(keys)), None)
            if known is None and not trainings.known:
                return trainings.rest
            if known is not None:
                self._trainings[id(watch)] = known
        return known

    def new_cost(self) -> float:
        """Return the seconds that recording took since the last call."""
        if self.recorder is None:
            return 0.0
        total = self.recorder.pace.spent
        new, self._reported_cost = total - self._reported_cost, total
        return new

    def _end(self, watch: Any) -> None:
        """End the recording of a watch's training, and judge it, while the program continues."""
        training, recorder = self.training_of(watch), self.recorder
        if recorder is not None and training is not None and not training.over and training.shown_sweep is not None:
            recorder.settle_journal()
            recorder.end_training(training)
        self._store_result(watch)

    def _store_result(self, watch: Any) -> None:
        training = self.training_of(watch)
        result = ExaminationResult(steps=watch.steps, silenced=self._ignore | kinds_in_comments(Program(cell_source())))
        if training is not None and isinstance(training.diagnosis, Diagnosis):
            below = self._has_failed and not self._closes  # cells show the findings on an error below its traceback
            shown = training.diagnosis.without(ERRORS) if below else training.diagnosis
            sweep = training.nonfinite_sweep
            result = result._replace(diagnosis=shown, nonfinite_tick=None if sweep is None else sweep.time)
        self._results[id(watch)] = result


def examination_of(program: tuple[Mapping[str, Any], str] | None) -> Examination | None:
    """Return the running examination of this thread, or a new one of a program, given by its namespace and its file."""
    if _here.running is None and program is not None:
        space, filename = program
        examination = Examination(lambda: space)
        try:
            examination.open(filename)
        except BaseException:
            examination.close()
            raise
    return _here.running

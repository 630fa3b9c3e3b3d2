"""The doctor beside a watch: a `Recorder` sees each of the first steps of a training, and the doctor's checks run on them as for
a `%%grad` cell or a script. A longer training goes on without it, at the cost of the watch alone.

Trainings that are watched at the same time, in one thread, share a recorder.
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

FULL, FIRST = 200, 100  # steps of a training that are examined: all of one with at most FULL, else the FIRST
LONGEST = 1_000  # steps of one training for which others are waited for
SECONDS = 60.0  # that recording takes at most
ERRORS = frozenset(kind for one in CHECKS_OF_ERRORS for kind in one.kinds)


class Examined(NamedTuple):
    """What is found in the steps of a training that were examined.

    Attributes
    ----------
    diagnosis : Diagnosis
    spoilt : int or None
        The tick of the clock of notes when its first sweep with a NaN or an infinity began.
    steps : int
        How many steps were examined.
    silenced : frozenset of str
        The kinds that the user silences, by name or in a comment of the program.
    """

    diagnosis: Diagnosis = Diagnosis()
    spoilt: int | None = None
    steps: int = 0
    silenced: frozenset[str] = frozenset()


class _Here(threading.local):
    running: Examination | None = None


_here = _Here()


class Examination:
    """The doctor's look at the trainings of a block or a cell.

    Parameters
    ----------
    namespace : callable
        Returns the names of the program.
    first : tuple of str
        The names that the cell mentions.
    session : Session, optional
        It knows what earlier cells left. Default: a new one.
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
        self._watches: dict[int, Any] = {}  # whose trainings are examined, by their identity
        self._trainings: dict[int, Training] = {}  # theirs
        self._seen: dict[int, Examined] = {}  # of those that were examined while their training goes on
        self._closes = False  # whether it closes with the last watch
        self._has_failed = False  # whether an error ended the program
        self._told = 0.0  # seconds of recording that were told
        self._cell: tuple[str | None, str, str] | None = None  # what was the cell before

    # ----------------------------------------------------------------------------------------------------- begin and end
    def open(self, filename: str | None = None) -> None:
        """Begin to record. With the name of the file whose lines findings are to count, if no cell runs, it closes with the last
        watch."""
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
        self.recorder, self._told = Recorder(self._namespace, self._first), 0.0
        self.recorder.examines_every_sweep = True
        self.recorder.on_end = lambda training: self._session.of_training(training, self._namespace(), self._ignore)
        self.recorder.meet_libraries()

    def meet_libraries(self) -> None:
        """See the libraries that have been imported by now."""
        if self.recorder is not None:
            self.recorder.meet_libraries()

    def close(self) -> None:
        """Record no more, and hold nothing of the program. May be called again."""
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
        """Return the findings on what was recorded, at the end of the program.

        Parameters
        ----------
        error : BaseException, optional
            The error with which it ended. An interrupt by the user counts as an end.
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
            self._keep(watch)
        self._watches.clear()
        return diagnosis

    # ------------------------------------------------------------------------------------------------------- of a watch
    def join(self, watch: Any) -> None:
        """Examine the training of a watch that begins."""
        self._watches[id(watch)] = watch
        if self.recorder is None:
            self._record()

    def leave(self, watch: Any, error: BaseException | None = None) -> Examined:
        """Return what is found in a training that is over."""
        if id(watch) in self._watches:
            if self._closes and len(self._watches) == 1:
                self.conclude(error)
            else:
                self._end(watch)
            self._watches.pop(id(watch), None)
        found = self._seen.pop(id(watch), Examined())
        if self._closes and not self._watches and not self._seen:
            self.close()
        return found

    def stepped(self, watch: Any) -> Examined | None:
        """Return what is found in a training after a step, if that is the last one that is examined."""
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
        return self._seen[id(watch)]

    def seen(self, watch: Any) -> Examined | None:
        """Return what was found in a training that goes on; None as long as it is being examined."""
        return self._seen.get(id(watch))

    def total_of(self, watch: Any) -> int | None:
        """Return how many steps a training has, if that was said, or the loops around its backward say so."""
        if watch.planned is not None:
            return int(watch.planned)
        training = self.training_of(watch)
        if training is None or self.recorder is None or not training.sweeps or not watch.steps:
            return None
        sweeps = training.progress.total(watch.around)
        return None if sweeps is None else round(sweeps * watch.steps / training.sweeps)

    def training_of(self, watch: Any) -> Training | None:
        """Return what is recorded of the training of a watch. It is known from then on, even if its tensors are released."""
        if self.recorder is None:
            return None
        trainings, known = self.recorder.trainings, self._trainings.get(id(watch))
        if known not in trainings.known and watch.of.held:
            keys = set(self.recorder.identities.keys(watch.of.params))
            known = next((one for one in trainings.known if not one.keys.isdisjoint(keys)), None)
            if known is None and not trainings.known:
                return trainings.rest
            if known is not None:
                self._trainings[id(watch)] = known
        return known

    def taken(self) -> float:
        """Return the seconds that recording took since this was last called."""
        if self.recorder is None:
            return 0.0
        total = self.recorder.pace.spent
        taken, self._told = total - self._told, total
        return taken

    def _end(self, watch: Any) -> None:
        """Have the training of a watch looked at, while the program goes on."""
        training, recorder = self.training_of(watch), self.recorder
        if recorder is not None and training is not None and not training.over and training.shown_sweep is not None:
            recorder.settle_journal()
            recorder.end_training(training)
        self._keep(watch)

    def _keep(self, watch: Any) -> None:
        training = self.training_of(watch)
        found = Examined(steps=watch.steps, silenced=self._ignore | kinds_in_comments(Program(cell_source())))
        if training is not None and isinstance(training.diagnosis, Diagnosis):
            below = self._has_failed and not self._closes  # a cell shows what its error tells below the traceback
            said = training.diagnosis.without(ERRORS) if below else training.diagnosis
            spoilt = training.nonfinite_sweep
            found = found._replace(diagnosis=said, spoilt=None if spoilt is None else spoilt.time)
        self._seen[id(watch)] = found


def examination_of(program: tuple[Mapping[str, Any], str] | None) -> Examination | None:
    """Return the examination that this thread is in; else a new one of a program, which is given by its names and its file."""
    if _here.running is None and program is not None:
        space, filename = program
        examination = Examination(lambda: space)
        try:
            examination.open(filename)
        except BaseException:
            examination.close()
            raise
    return _here.running

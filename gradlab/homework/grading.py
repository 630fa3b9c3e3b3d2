"""Grade submissions: the student's code runs in one process, the checks in another.

    this process                                     the submission's process (`gradlab.notebook.submission`)
    seeds, functions, expected values, counts   →    runs the notebook's cells; calls its functions when asked
    judges the results                          ←    plain data: numbers and text; "what is f(x)? vᵀJ? Ju? Hu?"

The submission's process learns about a function only by requests (see `homework.probes`), which are counted here. It sends
validated data (`homework.wire`), never a verdict. It has its own session and limits on time and memory. A process that hangs is
killed with its children, and restarted without the cell that hung.

Two things rely on the submission's own report: whether its function called a forbidden one, and whether its arguments were
modified. The submission is a program on this machine, with all rights of the user who starts it: to restrict these, use a
container.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from gradlab import clock
from gradlab.homework import wire
from gradlab.homework.excerpts import abbreviate
from gradlab.homework.exercises import CHECKS, load
from gradlab.homework.probes import QUESTIONS, Probe
from gradlab.homework.student import MOST_WORDS, SECONDS
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.verdicts import Verdict

ALTOGETHER = 55.0  # seconds for a submission
CELLS, EXERCISES = (10.0, 14.0, 1.5), (float(SECONDS), 16.0, 2.0)  # for one, for all, at least
GRACE, START = 5.0, 30.0  # seconds to report a timeout, also on a busy machine; to start
MEMORY_LIMIT = 1_000_000_000  # bytes of address space
MAX_QUEUED_MESSAGES = 8  # further messages wait in the submission's pipe
ENVIRONMENT_KEPT = {
    "PATH",
    "LANG",
    "TMPDIR",
    "TEMP",
    "TMP",
    "SYSTEMROOT",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "TZ",
}  # of the environment
WORKER = "gradlab.notebook.submission"
DIED, KILLED, SPENT = (
    "the notebook's process ended: does it call `exit`, or run out of memory?",
    "did not end, and could not be interrupted",
    "the notebook has used up its {:.0f} s. Is there a loop that never ends, in a cell or in a function?",
)


class Gone(Exception):  # noqa: N818  (a finding about the submission)
    """The submission's process did not answer."""


class Submission:
    """A submission's notebook, run in a separate process. The context manager ends the process.

    Parameters
    ----------
    cells : sequence of str
        The sources of the code cells, in order.
    folder : path
        The folder with its files, where it runs.
    altogether : float
        The time limit for the submission, in seconds.

    Attributes
    ----------
    outputs : list
        The outputs of each cell, {"text": …} or {"png": …}, as the submission reports them.
    """

    def __init__(self, cells: Sequence[str], folder: Path, altogether: float = ALTOGETHER) -> None:
        self.cells, self.folder = list(cells), folder
        self.outputs: list[list[dict[str, str]]] = [[] for _ in cells]
        self._ends, self._altogether = clock.now() + altogether, altogether
        self._budget = TimeBudget(*CELLS)
        self._ended, self._slow, self._stuck = set[int](), set[int](), set[int]()  # numbers of cells, by how they ended before
        self._process: subprocess.Popen[bytes] | None = None
        self._arrived: queue.Queue[Any] = queue.Queue(MAX_QUEUED_MESSAGES)
        self._sent: queue.Queue[Any] = queue.Queue()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Submission:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    # ------------------------------------------------------------------------------------------------------ asking
    def call(self, request: dict[str, Any], probes: list[Probe]) -> dict[str, Any]:
        """Perform a request in the process (see `homework.calling`). Return {"end": "gone"} if it does not answer."""
        try:
            self.run()
            seconds = self._at_most(request["seconds"])
            outcome = self._exchange({"do": "call", **request, "seconds": seconds}, seconds + GRACE, probes)
        except Gone as gone:
            return {"end": "gone", "words": str(gone)}
        return outcome if isinstance(outcome, dict) else {"end": "unreadable"}

    def run(self) -> None:
        """Run the cells, unless the process is running and has run them."""
        while self._process is None or self._process.poll() is not None:
            self.end()
            self._start()
            for at, text in enumerate(self.cells):
                if at in self._stuck:
                    continue
                wanted = CELLS[0] if at in self._ended else CELLS[2] if at in self._slow else self._budget.seconds()
                seconds, began = self._at_most(wanted), clock.now()
                try:
                    with self._budget.spend():
                        outputs = self._exchange({"do": "cell", "text": text, "seconds": seconds}, seconds + GRACE, [])
                    (self._ended if clock.now() - began < seconds else self._slow).add(at)
                except Gone as gone:
                    self._at_most(0)
                    self._stuck.add(at)
                    self.outputs[at] = [{"text": f"This cell: {gone}"}]
                    break
                self.outputs[at] = _outputs(outputs)

    def _at_most(self, seconds: float) -> float:
        left = self._ends - clock.now()
        if left <= 0:
            self.end()
            raise Gone(SPENT.format(self._altogether))
        return min(seconds, left)

    def _exchange(self, message: dict[str, Any], seconds: float, probes: list[Probe]) -> Any:
        """Send a message, answer the requests of the process, and return its result."""
        self._sent.put(wire.pack(message))
        return self._await_reply(seconds, probes)

    def _await_reply(self, seconds: float, probes: list[Probe]) -> Any:
        until = clock.now() + seconds
        while True:
            try:
                got = clock.get(self._arrived, until)
            except queue.Empty:
                self.end()
                raise Gone(KILLED) from None
            if isinstance(got, wire.BadFrame) or got is None or clock.now() > until:
                self.end()
                if isinstance(got, wire.BadFrame):
                    raise Gone(f"the output of the notebook's process cannot be read: {got}")
                raise Gone(DIED if got is None else KILLED)
            if not (isinstance(got, dict) and set(got) == {"ask"}):
                return got.get("done") if isinstance(got, dict) else None
            self._sent.put(wire.pack(_answer_question(got["ask"], probes)))

    # ------------------------------------------------------------------------------------------------------ the process
    def _start(self) -> None:
        self._at_most(0)
        environment = {
            key: value for key, value in os.environ.items() if key in ENVIRONMENT_KEPT or key.startswith(("LC_", "PYTHON"))
        }
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # each takes memory
        environment |= {
            "HOME": str(self.folder),
            "IPYTHONDIR": str(self.folder / ".ipython"),
            "MPLBACKEND": "Agg",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "MPLCONFIGDIR": str(self.folder),
        }
        self._process = subprocess.Popen(  # noqa: S603  (this Python, a module of ours)
            [sys.executable, "-P", "-m", WORKER, str(MEMORY_LIMIT)],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._arrived, self._sent, self._over = queue.Queue(MAX_QUEUED_MESSAGES), queue.Queue(), threading.Event()
        self._threads = [
            threading.Thread(target=_read_messages, args=(self._process.stdout, self._arrived, self._over), daemon=True),
            threading.Thread(target=_write_messages, args=(self._process.stdin, self._sent), daemon=True),
        ]
        for thread in self._threads:  # a process that does not read, or floods, blocks only these
            thread.start()
        self._await_reply(self._at_most(START), [])  # the start does not count as time of a cell

    def end(self) -> None:
        """Kill the process and its children."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        self._over.set()
        self._sent.put(None)
        for thread in self._threads:  # each closes its pipe; a child that escaped may hold the other end
            thread.join(1.0)


def _read_messages(pipe: BinaryIO, arrived: queue.Queue[Any], over: threading.Event) -> None:
    with pipe:
        while not over.is_set():
            try:
                got = wire.read(pipe)
            except wire.BadFrame as bad:
                got = bad
            except (OSError, ValueError):
                got = None
            while not over.is_set():
                with contextlib.suppress(queue.Full):
                    arrived.put(got, timeout=0.2)
                    break
            if got is None or isinstance(got, wire.BadFrame):
                return


def _write_messages(pipe: BinaryIO, sent: queue.Queue[Any]) -> None:
    with contextlib.suppress(OSError, ValueError), pipe:
        while (frame := sent.get()) is not None:
            pipe.write(frame)
            pipe.flush()


def _answer_question(asked: Any, probes: list[Probe]) -> dict[str, Any]:
    """Answer a request for a function's values, or return an error."""
    try:
        number, what, arrays = asked
        if not (isinstance(number, int) and 0 <= number < len(probes) and what in QUESTIONS):
            raise ValueError("no such function")
        return {"answer": probes[number].answer(what, list(arrays))}
    except Exception as error:  # noqa: BLE001  (an invalid request gets the error as its answer)
        return {"error": abbreviate(f"{type(error).__name__}: {error}", MOST_WORDS)}


def _outputs(raw: Any) -> list[dict[str, str]]:
    if not isinstance(raw, list):
        return []
    return [
        {key: value for key, value in one.items() if key in ("text", "png") and isinstance(value, str)}
        for one in raw[:100]
        if isinstance(one, dict)
    ]


# ------------------------------------------------------------------------------------------------------ a whole notebook
def run(notebook: str | Path, seed: int = 0, checks: str | Path | None = None, altogether: float = ALTOGETHER) -> list[Verdict]:
    """Run a notebook in a separate process, and check all its exercises.

    Parameters
    ----------
    notebook : path
        A student's notebook, or the one with solutions. It is not modified.
    seed : int
        Seed of the shapes and numbers that the checks draw.
    checks : path, optional
        The folder of `checks.py`; by default the notebook's own.
    altogether : float
        The time limit for the submission, in seconds.

    Returns
    -------
    list of Verdict
        One for each exercise, in order.

    Raises
    ------
    ValueError
        If the file is not a notebook.

    Notes
    -----
    The docstring of `gradlab.homework.grading` explains what a submission can and cannot do to its verdict.

    Examples
    --------
    >>> from gradlab.homework import run
    >>> for verdict in run("hw3_jacobian.ipynb", seed=123):  # doctest: +SKIP
    ...     print(verdict)
    """
    path = Path(notebook).resolve()
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        texts = [_text(cell) for cell in read["cells"] if cell["cell_type"] == "code" and not _is_graded(cell)]
    except (ValueError, KeyError, TypeError, UnicodeError) as error:
        raise ValueError(f"{path.name} is not a notebook: {error}") from None
    return grade_cells(texts, path.parent, path.parent if checks is None else Path(checks), seed, altogether)[0]


def grade_cells(
    texts: Sequence[str],
    beside: Path,
    checks: Path,
    seed: int,
    altogether: float = ALTOGETHER,
) -> tuple[list[Verdict], list[list[dict[str, str]]]]:
    """Return the verdicts on all exercises and the outputs of the cells. `beside` has the notebook's other files."""
    homework, budget = load(checks), TimeBudget(*EXERCISES)
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="gradlab-", ignore_cleanup_errors=True) as folder:
        for file in beside.iterdir():
            if file.is_file() and not file.is_symlink() and file.suffix != ".ipynb":
                shutil.copy(file, folder)
        shutil.copy(checks / CHECKS, folder)
        with Submission(texts, Path(folder), altogether) as submission:
            with contextlib.suppress(Gone):
                submission.run()  # the cells have their own time budget
            for number in sorted(homework.exercises):
                seconds = budget.seconds()
                with budget.spend():
                    verdicts.append(homework.check(number, submission, seed, TimeBudget(seconds, seconds, 0.1)))
            outputs = submission.outputs
    return verdicts, outputs


def _text(cell: dict[str, Any]) -> str:
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def _is_graded(cell: dict[str, Any]) -> bool:
    """Return whether a cell is a check, which does not run in the submission's process."""
    return bool(cell.get("metadata", {}).get("nbgrader", {}).get("grade")) or _text(cell).lstrip().startswith("%check")

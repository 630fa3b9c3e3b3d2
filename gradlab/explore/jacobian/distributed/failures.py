"""Errors of workers: the task, the user's line, and the exception itself if it can be pickled."""

from __future__ import annotations

import linecache
import pickle
import traceback
from dataclasses import dataclass
from typing import NamedTuple

from gradlab.diagnose.sites import is_user_file
from gradlab.explore.jacobian.plan import Block, Plan


class WorkerError(RuntimeError):
    """A worker's error whose own exception cannot be pickled; or, as the cause of an exception, its traceback on the worker."""


class UserLine(NamedTuple):
    """A line of the user's code. `text` is empty if the worker cannot read the file, as for a notebook cell."""

    filename: str
    number: int
    function: str
    text: str

    def __str__(self) -> str:
        text = self.text or linecache.getline(self.filename, self.number).strip()  # this process may have the file
        return f"{self.filename}, line {self.number}, in {self.function}" + (f': "{text}"' if text else "")


@dataclass(frozen=True)
class Failure:
    """An error to be raised again in another process."""

    pickled: bytes | None
    text: str  # "ValueError: …"
    traceback: str
    doing: str
    line: UserLine | None
    advice: str

    def error(self) -> BaseException:
        """Return the exception, with a note on the task and the line, and the worker's traceback as its cause."""
        original: BaseException | None = None
        if self.pickled is not None:
            try:
                original = pickle.loads(self.pickled)  # noqa: S301  (from our own worker)
            except Exception:  # noqa: BLE001  (a class that this process does not have, or that cannot be unpickled)
                original = None
        if not isinstance(original, Exception):
            original = WorkerError(self.text)
        at = f", at {self.line}" if self.line else ""
        original.add_note(f"This was raised {self.doing}{at}.{self.advice}")
        original.__cause__ = WorkerError(f"on the worker:\n{self.traceback}")
        return original


def failure_of(error: BaseException, doing: str) -> Failure:
    """Make the failure of an exception that was just caught, with its traceback and the user's line."""
    users = [frame for frame in traceback.extract_tb(error.__traceback__) if is_user_file(frame.filename)]
    line = UserLine(users[-1].filename, users[-1].lineno or 0, users[-1].name, users[-1].line or "") if users else None
    advice = ""
    if isinstance(error, ModuleNotFoundError):
        advice = (
            " A function is sent by the name of its module if it has one, and workers must be able to import it: "
            f"cloudpickle.register_pickle_by_value({error.name or 'module'}) sends it along instead."
        )
    text, whole = "".join(traceback.format_exception_only(error)).strip(), "".join(traceback.format_exception(error))
    return Failure(_pickle(error), text, whole, doing, line, advice)  # pickling removes the traceback


def _pickle(error: BaseException) -> bytes | None:
    """Return an exception as bytes; None if it cannot be pickled and unpickled."""
    try:
        import cloudpickle

        content = bytes(cloudpickle.dumps(error.with_traceback(None)))
        pickle.loads(content)  # noqa: S301  (our own bytes)
    except Exception:  # noqa: BLE001  (whatever the reason, the text is sent instead)
        return None
    return content


def block_text(plan: Plan, block: Block) -> str:
    """Describe a block: "block 3, rows 30 to 39 of the Jacobian"."""
    numbers = f"{block.kind[:-1]} {block.start}" if block.size == 1 else f"{block.kind} {block.start} to {block.stop - 1}"
    return f"block {block.number}, {numbers} of the Jacobian"

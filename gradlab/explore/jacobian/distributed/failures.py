"""Errors of workers: what was being computed, at which line of the user's, and the error itself where it can travel."""

from __future__ import annotations

import linecache
import pickle
import traceback
from dataclasses import dataclass
from typing import NamedTuple

from gradlab.diagnose.sites import is_user_file
from gradlab.explore.jacobian.plan import Block, Plan


class WorkerError(RuntimeError):
    """What a worker raised, where its own error cannot travel; or, as the cause of an error, the traceback that it had there."""


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
    """An error, to be raised again in another process."""

    pickled: bytes | None
    text: str  # "ValueError: …"
    traceback: str
    doing: str
    line: UserLine | None
    advice: str

    def error(self) -> BaseException:
        """The error, with a note that says what was being computed and where, and the worker's traceback as its cause."""
        original: BaseException | None = None
        if self.pickled is not None:
            try:
                original = pickle.loads(self.pickled)  # noqa: S301  (from our own worker)
            except Exception:  # noqa: BLE001  (a class that this process does not have, or that does not come back)
                original = None
        if not isinstance(original, Exception):
            original = WorkerError(self.text)
        at = f", at {self.line}" if self.line else ""
        original.add_note(f"This was raised {self.doing}{at}.{self.advice}")
        original.__cause__ = WorkerError(f"on the worker:\n{self.traceback}")
        return original


def caught(error: BaseException, doing: str) -> Failure:
    """An error that was just caught, its traceback and the user's line in it with it."""
    users = [frame for frame in traceback.extract_tb(error.__traceback__) if is_user_file(frame.filename)]
    line = UserLine(users[-1].filename, users[-1].lineno or 0, users[-1].name, users[-1].line or "") if users else None
    advice = ""
    if isinstance(error, ModuleNotFoundError):
        advice = (
            " A function travels by the name of its module where it has one, and workers must be able to import that: "
            f"cloudpickle.register_pickle_by_value({error.name or 'module'}) sends it along instead."
        )
    text, whole = "".join(traceback.format_exception_only(error)).strip(), "".join(traceback.format_exception(error))
    return Failure(_pickled(error), text, whole, doing, line, advice)  # pickling takes the traceback away


def _pickled(error: BaseException) -> bytes | None:
    """An error in bytes; None if it cannot travel, or not back."""
    try:
        import cloudpickle

        content = bytes(cloudpickle.dumps(error.with_traceback(None)))
        pickle.loads(content)  # noqa: S301  (what was just made)
    except Exception:  # noqa: BLE001  (whatever stops it: then its text travels)
        return None
    return content


def block_text(plan: Plan, block: Block) -> str:
    """A block in words: "block 3, rows 30 to 39 of the Jacobian"."""
    numbers = f"{block.kind[:-1]} {block.start}" if block.size == 1 else f"{block.kind} {block.start} to {block.stop - 1}"
    return f"block {block.number}, {numbers} of the Jacobian"

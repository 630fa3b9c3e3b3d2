"""Handling of errors of gradlab itself inside a user's program: warn once, and let the program continue.

Hooks, modes, observers and IPython's event handlers run in the middle of the user's code, which an error of gradlab must not
stop. They therefore run inside `with faults:`. A recorder, a watch and a notebook each have a `Faults` object, which reports
its first exception by a `FaultWarning`. Exceptions raised by signal handlers and those that do not inherit from `Exception`
(an interrupt, a time limit) belong to the program and propagate.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from gradlab.core.observers import Observer

PACKAGE_FOLDER = str(Path(__file__).parent.parent) + os.sep
LIBRARIES = frozenset(("gradlab", "torch"))

T = TypeVar("T")


class FaultWarning(RuntimeWarning):
    """Warning about an error of gradlab inside a user's program, which continued."""


class Faults:
    """Context manager for the errors of one recorder, watch or notebook. It is reusable and reentrant.

    Parameters
    ----------
    what : str
        The action as a verb phrase, as in "gradlab failed while it recorded a cell".

    Attributes
    ----------
    first : str
        The message of the first error, or "" if there was none.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.first = ""

    def __enter__(self) -> Faults:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
        if not isinstance(error, Exception) or _is_from_a_signal(error):
            return False
        self.report(error)
        return True

    def handle(self, error: Exception) -> None:
        """Report a caught error, or raise it if it belongs to the program."""
        if _is_from_a_signal(error):
            raise error
        self.report(error)

    def guard(self, function: Callable[..., T]) -> Callable[..., T | None]:
        """Wrap `function` so that it returns None if it fails."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T | None:
            with self:
                return function(*args, **kwargs)
            return None

        return call

    def describe(self, error: Exception) -> str:
        """Return the message of the warning."""
        return describe_fault(error, self.what)

    def report(self, error: Exception) -> None:
        """Warn about an error, if it is the first."""
        if self.first:
            return
        self.first = message = self.describe(error)
        frame = _users_frame()
        where = ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        try:
            warnings.warn_explicit(message, FaultWarning, *where)
        except Warning:  # the program's filters turn warnings into errors, but this warning is not its own
            print(f"FaultWarning: {message}", file=sys.stderr)  # noqa: T201


OBSERVER_METHODS = frozenset(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))


class Watcher(Observer):
    """An observer that does not change any result. Errors in its methods are reported, not raised.

    Attributes
    ----------
    faults : Faults
        Set by a subclass.
    """

    faults: Faults

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in OBSERVER_METHODS & vars(cls).keys():
            setattr(cls, name, guarded_method(vars(cls)[name]))


def guarded_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of a `Watcher` so that it returns None if it fails."""

    @wraps(method)
    def call(self: Watcher, *args: Any) -> Any:
        try:
            return method(self, *args)
        except Exception as error:  # noqa: BLE001
            self.faults.handle(error)
            return None

    return call


def _users_frame() -> FrameType | None:
    """Return the nearest frame outside gradlab and PyTorch."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back  # type: ignore[assignment]
    return frame


def describe_fault(error: Exception, what: str) -> str:
    """Return the message of a warning: the error, its place, the consequence for the program, and what to report."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(PACKAGE_FOLDER)]
    where = "".join(
        f" in {frame.name} ({os.path.relpath(frame.filename, PACKAGE_FOLDER)}, line {frame.lineno})"
        for frame in (ours or frames)[-1:]
    )
    loaded = [(name, getattr(sys.modules.get(name), "__version__", None)) for name in ("gradlab", "torch", "numpy")]
    versions = ", ".join([f"{name} {version}" for name, version in loaded if version] + [f"Python {sys.version.split()[0]}"])
    return (
        f"gradlab failed while it {what}: {type(error).__name__}: {error}{where}. The program continues as without "
        "gradlab, but reports about it may be incomplete. Please report this as an issue of gradlab, with this message and the "
        f"code that caused it. ({versions})"
    )


def _is_from_a_signal(error: Exception) -> bool:
    """Return True if a signal handler raised the error."""
    codes = {
        code
        for number in signal.valid_signals()
        if (code := getattr(signal.getsignal(number), "__code__", None)) is not None
        and not code.co_filename.startswith(PACKAGE_FOLDER)
    }
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))

"""What happens when gradlab itself fails inside a user's program: one warning, and the program goes on.

Hooks, modes, observers and handlers of IPython's events run in the middle of somebody else's code, which must not end by an error
of ours. So each of them runs inside `with faults:`, where `faults` belongs to what watches (a recorder, a watch, a notebook), and
the first exception of each is told by a `FaultWarning`. Exceptions that a handler of a signal raises, and those that are no
`Exception` (an interrupt, a time limit), are the program's own and pass.
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

HOME = str(Path(__file__).parent.parent) + os.sep
LIBRARIES = frozenset(("gradlab", "torch"))

T = TypeVar("T")


class FaultWarning(RuntimeWarning):
    """gradlab failed inside a user's program, which went on."""


class Faults:
    """The faults of one recorder, watch or notebook: a context manager that may be entered again and inside itself.

    Parameters
    ----------
    what : str
        What was being done, as in "gradlab failed while it recorded a cell".

    Attributes
    ----------
    first : str
        The message of the first fault; "" of none.
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

    def failed(self, error: Exception) -> None:
        """Report a fault that was caught; raise it if it is the program's own."""
        if _is_from_a_signal(error):
            raise error
        self.report(error)

    def guarded(self, function: Callable[..., T]) -> Callable[..., T | None]:
        """`function`, which returns None where it fails."""

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> T | None:
            with self:
                return function(*args, **kwargs)
            return None

        return call

    def report(self, error: Exception) -> None:
        """Warn of a fault, if it is the first."""
        if self.first:
            return
        self.first = message = described(error, self.what)
        frame = _users_frame()
        where = ("<unknown>", 1) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        try:
            warnings.warn_explicit(message, FaultWarning, *where)
        except Warning:  # the program's filters make errors of warnings, and this is none of its own
            print(f"FaultWarning: {message}", file=sys.stderr)  # noqa: T201


CALLBACKS = frozenset(name for name, value in vars(Observer).items() if callable(value) and not name.startswith("_"))


class Watcher(Observer):
    """An observer that only looks, and changes nothing that is computed: what its methods raise is a fault.

    Attributes
    ----------
    faults : Faults
        Set by a subclass.
    """

    faults: Faults

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in CALLBACKS & vars(cls).keys():
            setattr(cls, name, guarded_method(vars(cls)[name]))


def guarded_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a `Watcher`, which returns None where it fails."""

    @wraps(method)
    def call(self: Watcher, *args: Any) -> Any:
        try:
            return method(self, *args)
        except Exception as error:  # noqa: BLE001
            self.faults.failed(error)
            return None

    return call


def _users_frame() -> FrameType | None:
    """The nearest frame that is neither ours nor torch's."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in LIBRARIES:
        frame = frame.f_back  # type: ignore[assignment]
    return frame


def described(error: Exception, what: str) -> str:
    """The message of a warning: what failed where, what becomes of the program, and what to report."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(HOME)]
    where = "".join(
        f" in {frame.name} ({os.path.relpath(frame.filename, HOME)}, line {frame.lineno})" for frame in (ours or frames)[-1:]
    )
    loaded = [(name, getattr(sys.modules.get(name), "__version__", None)) for name in ("gradlab", "torch", "numpy")]
    versions = ", ".join([f"{name} {version}" for name, version in loaded if version] + [f"Python {sys.version.split()[0]}"])
    return (
        f"gradlab failed while it {what}: {type(error).__name__}: {error}{where}. The program goes on as without gradlab; what "
        "is shown of it may be incomplete. Please report this as an issue of gradlab, with this message and the code that led "
        f"to it. ({versions})"
    )


def _is_from_a_signal(error: Exception) -> bool:
    """Whether a handler of a signal raised it."""
    codes = {
        code
        for number in signal.valid_signals()
        if (code := getattr(signal.getsignal(number), "__code__", None)) is not None and not code.co_filename.startswith(HOME)
    }
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))

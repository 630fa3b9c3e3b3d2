"""What an exercise is there to replace, and whether it was called: found by the object itself, when it runs.

A name says nothing: a student's own `jacobian` is welcome, and the library's may be reached by `getattr`, under another name
or by `eval`. So while a student's function runs, each call of Python's is looked at (`sys.setprofile`): does it run the code
of one of the library's functions that are off limits? "torch.*" is a whole library: whatever code of it runs.
"""

from __future__ import annotations

import importlib
import inspect
import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from types import CodeType, FrameType, ModuleType
from typing import Any

LIBRARY, CALLER = "gradlab", "gradlab.homework.calling"
WHOLE = ".*"  # ends the name of a library of which nothing may run
AROUND = {
    CALLER,
    *(f"gradlab.homework.{name}" for name in ("time_limits", "forbidden", "programs", "verdicts", "excerpts")),
}  # what runs a student's
WAYS = "gradlab.homework.ways."


def resolved(path: str) -> Any:
    """What a dotted path of the library stands for.

    Raises
    ------
    ValueError
        If there is no such thing."""
    parts = path.split(".")
    if parts[0] != LIBRARY:
        raise ValueError(f"{path!r} is not a path such as 'gradlab.func.jacrev'.")
    thing: Any = importlib.import_module(LIBRARY)
    for part in parts[1:]:
        thing = getattr(thing, part, None)
        if thing is None:
            raise ValueError(f"{path!r}: the library has no such thing.")
    return thing


@cache
def codes_of(path: str) -> dict[CodeType, str]:
    """The code of a function of the library, with that of the functions inside it, or of all functions of a module; and for
    each the path to say."""
    if path.endswith(WHOLE) and path.removesuffix(WHOLE).isidentifier():
        return {}
    thing, said = resolved(path), path.replace(LIBRARY, "gl", 1)
    if not isinstance(thing, ModuleType):
        return dict.fromkeys(_nested(inspect.unwrap(thing).__code__), said)
    return {
        code: f"{said}.{name}"
        for name, one in vars(thing).items()
        if callable(one)
        and not name.startswith("_")
        and getattr(one, "__module__", "") == thing.__name__
        and hasattr(inspect.unwrap(one), "__code__")
        for code in _nested(inspect.unwrap(one).__code__)
    }


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


class ForbiddenCalls:
    """Whether code that is off limits has run: `used` is (path, line of the student's code or 0, its text), or None."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.used: tuple[str, int, str] | None = None
        self._codes: dict[CodeType, str] = {}
        self._libraries = {path.removesuffix(WHOLE) for path in paths if path.endswith(WHOLE)}
        self._resting = 0
        for path in paths:
            self._codes |= codes_of(path)

    @contextmanager
    def watching(self) -> Iterator[ForbiddenCalls]:
        """Look at every call in the block, and in the threads that it starts."""
        if not self._codes and not self._libraries:
            yield self
            return
        before, of_threads = sys.getprofile(), threading.getprofile()
        threading.setprofile(self._event)
        sys.setprofile(self._event)
        try:
            yield self
        finally:
            sys.setprofile(before)
            threading.setprofile(of_threads)

    def exempt(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which may call what it likes."""

        def allowed(*args: Any) -> Any:
            self._resting += 1
            try:
                return function(*args)
            finally:
                self._resting -= 1

        return allowed

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or self._resting or self.used is not None:
            return
        if frame.f_code in self._codes:
            self.used = self._codes[frame.f_code], *_users_line(frame, self._libraries)
        elif self._libraries:
            name = str(frame.f_globals.get("__name__", ""))
            if name.partition(".")[0] in self._libraries and name not in AROUND and not name.startswith(WAYS):
                self.used = f"{name}.{frame.f_code.co_name}", *_users_line(frame, self._libraries)


def _users_line(frame: FrameType | None, libraries: set[str]) -> tuple[int, str]:
    """The line outside of the library that led here, if it is not the check's that called the function itself."""
    while (
        frame is not None
        and frame.f_globals.get("__name__") != CALLER
        and str(frame.f_globals.get("__name__", "")).partition(".")[0] in {LIBRARY, *libraries}
    ):
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__") == CALLER:
        return 0, ""
    return frame.f_lineno, linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()

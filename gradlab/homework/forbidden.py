"""Detect calls of functions that an exercise forbids, by their code objects.

Names are not enough: a student's own `jacobian` is allowed, and the library's can be reached with `getattr`, under another name
or with `eval`. So while a student's function runs, `sys.setprofile` compares the code of each Python call with that of the
forbidden functions. "torch.*" forbids all code of a library.
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
ANY_FUNCTION = ".*"  # ends the name of a library that is forbidden as a whole
RUNNING_MODULES = {
    CALLER,
    *(f"gradlab.homework.{name}" for name in ("time_limits", "forbidden", "programs", "verdicts", "excerpts")),
}  # they run around a student's code
WAYS = "gradlab.homework.ways."


def resolve(path: str) -> Any:
    """Return the object at a dotted path of the library.

    Raises
    ------
    ValueError
        If there is no such object.
    """
    parts = path.split(".")
    if parts[0] != LIBRARY:
        raise ValueError(f"{path!r} is not a path such as 'gradlab.func.jacrev'.")
    thing: Any = importlib.import_module(LIBRARY)
    for part in parts[1:]:
        thing = getattr(thing, part, None)
        if thing is None:
            raise ValueError(f"{path!r}: the library has no such object.")
    return thing


@cache
def codes_of(path: str) -> dict[CodeType, str]:
    """Return the code objects of a function with its inner functions, or of a module's functions, with the path to report."""
    if path.endswith(ANY_FUNCTION) and path.removesuffix(ANY_FUNCTION).isidentifier():
        return {}
    thing, said = resolve(path), path.replace(LIBRARY, "gl", 1)
    if not isinstance(thing, ModuleType):
        return dict.fromkeys(_nested_codes(inspect.unwrap(thing).__code__), said)
    return {
        code: f"{said}.{name}"
        for name, one in vars(thing).items()
        if callable(one)
        and not name.startswith("_")
        and getattr(one, "__module__", "") == thing.__name__
        and hasattr(inspect.unwrap(one), "__code__")
        for code in _nested_codes(inspect.unwrap(one).__code__)
    }


def _nested_codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested_codes(constant)


class ForbiddenCalls:
    """A watch for forbidden code. `used` is (path, line of the student's code or 0, its text), or None."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.used: tuple[str, int, str] | None = None
        self._codes: dict[CodeType, str] = {}
        self._libraries = {path.removesuffix(ANY_FUNCTION) for path in paths if path.endswith(ANY_FUNCTION)}
        self._exempt_calls = 0
        for path in paths:
            self._codes |= codes_of(path)

    @contextmanager
    def watching(self) -> Iterator[ForbiddenCalls]:
        """Watch every call in the block, and in the threads that it starts."""
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
        """Wrap a function that may call forbidden ones."""

        def call_unwatched(*args: Any) -> Any:
            self._exempt_calls += 1
            try:
                return function(*args)
            finally:
                self._exempt_calls -= 1

        return call_unwatched

    def _event(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or self._exempt_calls or self.used is not None:
            return
        if frame.f_code in self._codes:
            self.used = self._codes[frame.f_code], *_users_line(frame, self._libraries)
        elif self._libraries:
            name = str(frame.f_globals.get("__name__", ""))
            if name.partition(".")[0] in self._libraries and name not in RUNNING_MODULES and not name.startswith(WAYS):
                self.used = f"{name}.{frame.f_code.co_name}", *_users_line(frame, self._libraries)


def _users_line(frame: FrameType | None, libraries: set[str]) -> tuple[int, str]:
    """Return the line outside the library that led here, or (0, "") if the check itself called the function."""
    while (
        frame is not None
        and frame.f_globals.get("__name__") != CALLER
        and str(frame.f_globals.get("__name__", "")).partition(".")[0] in {LIBRARY, *libraries}
    ):
        frame = frame.f_back
    if frame is None or frame.f_globals.get("__name__") == CALLER:
        return 0, ""
    return frame.f_lineno, linecache.getline(frame.f_code.co_filename, frame.f_lineno, frame.f_globals).strip()

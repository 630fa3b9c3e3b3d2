"""Remove frames of gradlab from a script's traceback, so that it reads as if Python alone had run the script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

EXPLORE = str(Path(__file__).parent.parent)
OWN_FILES = (f"{EXPLORE}/script/", f"{EXPLORE}/libraries/recording_", f"{EXPLORE}/trace/recorder.py")


def trim_traceback(error: BaseException) -> BaseException:
    """Remove frames of gradlab, and those of torch that called them, from an error, its causes and its contexts.

    Returns
    -------
    BaseException
        The error.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _build_traceback(_user_frames(one.__traceback__))
            waiting += [one.__cause__, one.__context__]
    return error


def _user_frames(traceback: TracebackType | None) -> list[TracebackType]:
    frames: list[TracebackType] = []
    for one in _iterate(traceback):
        code = one.tb_frame.f_code
        if code.co_filename.startswith(OWN_FILES):
            continue
        if len(frames) > 1 and _function_name(frames[-1]) == "handle_torch_function" and frames[-2].tb_frame.f_code is code:
            del frames[-2:]  # torch asked the recorder's mode, which called the same function again
        frames.append(one)
    return frames


def _iterate(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _function_name(one: TracebackType) -> str:
    return one.tb_frame.f_code.co_name


def _build_traceback(frames: list[TracebackType]) -> Any:
    """Return a traceback of these frames."""
    built: TracebackType | None = None
    for one in reversed(frames):
        built = TracebackType(built, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return built

"""A script's traceback without what stands there by our doing: it reads as if Python alone had run the script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

EXPLORE = str(Path(__file__).parent.parent)
OURS = (f"{EXPLORE}/script/", f"{EXPLORE}/libraries/recording_", f"{EXPLORE}/trace/recorder.py")


def trimmed(error: BaseException) -> BaseException:
    """The error, and those behind it, without our frames, and without those of torch's that led to ours."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = _joined(_kept(one.__traceback__))
            waiting += [one.__cause__, one.__context__]
    return error


def _kept(traceback: TracebackType | None) -> list[TracebackType]:
    frames: list[TracebackType] = []
    for one in _frames(traceback):
        code = one.tb_frame.f_code
        if code.co_filename.startswith(OURS):
            continue
        if len(frames) > 1 and _name(frames[-1]) == "handle_torch_function" and frames[-2].tb_frame.f_code is code:
            del frames[-2:]  # the function asked whether anybody wants the call, and was called again below our mode
        frames.append(one)
    return frames


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _name(one: TracebackType) -> str:
    return one.tb_frame.f_code.co_name


def _joined(frames: list[TracebackType]) -> Any:
    """The frames as a traceback of their own."""
    joined: TracebackType | None = None
    for one in reversed(frames):
        joined = TracebackType(joined, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return joined

"""Unseen calls between the user's program and PyTorch that leave no frame of ours where warnings and tracebacks look.

PyTorch's C++ shows a warning at the innermost Python frame, its Python code some frames further out, and both once for each line.
Below a function mode these are frames of ours. So a function is called from a frame with the file, line and globals of its
caller. If it raises, our frames are removed from the traceback.
"""

from __future__ import annotations

from types import CodeType, FunctionType, TracebackType
from typing import Any

from gradlab.diagnose.sites import is_gradlab_file
from gradlab.explore.libraries.outside_compiler import DYNAMO


def _stand_in(func: Any, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs)  # on the line after the first: see `call_from`


_CODE = _stand_in.__code__
_MARK = _CODE.co_consts  # the tuple itself, which copies of the code share


class Places:
    """Functions that call others from a place in the program, one for each place."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], tuple[CodeType, Any]] = {}

    def call_from(self, frame: Any) -> Any:
        """Return a function of (func, args, kwargs) that calls `func` as if from a frame's code and current line."""
        code, at = frame.f_code, frame.f_lasti
        known = self._calls.get((id(code), at))
        if known is not None and known[0] is code and known[1].__globals__ is frame.f_globals:
            return known[1]
        line = frame.f_lineno or code.co_firstlineno
        own = _CODE.replace(co_filename=code.co_filename, co_name=code.co_name, co_firstlineno=line - 1)
        call = FunctionType(own, frame.f_globals)
        self._calls[id(code), at] = code, call
        return call

    def clear(self) -> None:
        """Release the program's objects."""
        self._calls.clear()


def is_stand_in(code: CodeType) -> bool:
    """Return whether a frame's code is one of `Places`."""
    return code.co_consts is _MARK


def without_ours(error: BaseException) -> None:
    """Remove our frames from the outer end of an error's traceback. Call this where the error is caught, before a bare `raise`,
    which adds none."""
    traceback = error.__traceback__
    while traceback is not None and (_is_ours(traceback) or _leads_to_ours(traceback)):
        traceback = traceback.tb_next
    error.__traceback__ = traceback


def _is_ours(traceback: TracebackType) -> bool:
    code = traceback.tb_frame.f_code
    return is_gradlab_file(code.co_filename) or is_stand_in(code)


def _leads_to_ours(traceback: TracebackType) -> bool:
    """Return whether a frame is of the wrapper that `torch.compiler.disable` made around a function of ours."""
    following = traceback.tb_next
    return traceback.tb_frame.f_globals.get("__name__") == DYNAMO and following is not None and _is_ours(following)

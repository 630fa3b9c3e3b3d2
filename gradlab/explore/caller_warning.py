"""Warnings about a call of the user's, shown at that line, each time."""

from __future__ import annotations

import sys
import warnings

from gradlab.diagnose.sites import is_gradlab_file


def warn_at_the_caller(message: str) -> None:
    """Issue a UserWarning at the nearest line outside gradlab.

    Python shows a warning once per text and line, so a loop's later results would be wrong silently. Therefore no registry of
    shown warnings is kept. Filters apply as usual.
    """
    frame = sys._getframe(1)
    while is_gradlab_file(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, frame.f_lineno, module=frame.f_globals.get("__name__") or "unknown"
    )

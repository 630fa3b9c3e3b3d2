"""Warnings about what a call of the user's has made: at that line, and each time."""

from __future__ import annotations

import sys
import warnings

from gradlab.diagnose.sites import is_gradlab_file


def warn_at_the_caller(message: str) -> None:
    """A UserWarning at the nearest line outside gradlab.

    Python shows a warning once for a text and a line, and a loop's later results would be wrong in silence: so no registry of
    what was shown is kept. The filters decide as ever.
    """
    frame = sys._getframe(1)
    while is_gradlab_file(frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    warnings.warn_explicit(
        message, UserWarning, frame.f_code.co_filename, frame.f_lineno, module=frame.f_globals.get("__name__") or "unknown"
    )

"""NumPy warns of 1/0, log(0) and of overflow. torch computes inf and nan in silence, and so do we.

A filter for our own modules does it where nobody says otherwise; it costs nothing. Filters that a user sets later come before
it. So sweeps ask whether ours still comes first, and else run with NumPy's warnings off; and a recording function whose forward
raises such a warning, because the user made errors of them, computes once more with warnings off. (What a user asks to see each
time, by "always", is seen of forwards: to ask before each operation would slow all of them.)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")
OURS = warnings.filters[0]


def heard() -> bool:
    """Whether NumPy's warnings may come through: a filter was set since."""
    filters = warnings.filters
    return not filters or filters[0] is not OURS


def quietly(compute: Callable[..., Any], *args: Any) -> Any:
    """compute(*args); once more with NumPy's warnings off, where they are errors."""
    try:
        return compute(*args)
    except RuntimeWarning:
        with silence():
            return compute(*args)


def silence() -> Any:
    """A context in which NumPy does not warn. (0.8 µs: for sweeps, and where something is heard.)"""
    return np.errstate(all="ignore")

"""NumPy warns of 1/0, log(0) and of overflow. torch computes inf and nan in silence, and so do we.

A filter for our own modules does it where nobody says otherwise; it costs nothing. It is set with the first tensor of our own
(`core.first_tensor`). Filters that a user sets later come before it. So sweeps ask whether ours still comes first, and else run
with NumPy's warnings off; and a recording function whose forward raises such a warning, because the user made errors of them,
computes once more with warnings off. (What a user asks to see each time, by "always", is seen of forwards: to switch NumPy's
warnings off and on takes 0.8 µs, or 0.1 µs by the context variable that NumPy has for it, and a product of two small tensors
takes 0.7 µs.)
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

BEFORE = warnings.filters  # the list that is there again after a `catch_warnings` in which the first tensor is made
ours: list[Any] = []  # our filter, once it is set
setting = threading.RLock()


def ignore_ours() -> None:
    """Ignore NumPy's warnings from gradlab's own modules, in the whole process."""
    with setting:
        if not ours:
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")
            ours[:] = warnings.filters[:1]
            if BEFORE is not warnings.filters:
                BEFORE.insert(0, ours[0])  # type: ignore[attr-defined]  # a list; typeshed says Sequence


def heard() -> bool:
    """Whether NumPy's warnings may come through: a filter was set since."""
    filters = warnings.filters
    return not filters or not ours or filters[0] is not ours[0]


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

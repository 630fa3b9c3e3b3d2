"""Suppress NumPy's warnings about 1/0, log(0) and overflow, since PyTorch computes inf and nan silently.

A warnings filter for gradlab's own modules, set when the first tensor is created (`core.first_tensor`), usually suffices and
costs nothing. Filters that a user adds later take precedence over it. Sweeps therefore check whether ours still comes first,
and otherwise run with NumPy's warnings off. If the user turns warnings into errors and a forward raises one, the recording
function computes again with warnings off.

With the filter "always", users do see the warnings of forwards, because suppressing them would cost too much. Switching NumPy's
warnings off and on takes 0.8 µs, or 0.1 µs through NumPy's context variable, and a product of two small tensors takes 0.7 µs.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

INITIAL_FILTERS = warnings.filters  # restored at the end of a `catch_warnings` block in which the first tensor is created
our_filter: list[Any] = []  # our filter, once it is set
filter_lock = threading.RLock()


def ignore_own_warnings() -> None:
    """Ignore NumPy's warnings from gradlab's own modules, in the whole process."""
    with filter_lock:
        if not our_filter:
            warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")
            our_filter[:] = warnings.filters[:1]
            if INITIAL_FILTERS is not warnings.filters:
                INITIAL_FILTERS.insert(0, our_filter[0])  # type: ignore[attr-defined]  # a list; typeshed says Sequence


def filter_is_overridden() -> bool:
    """Return True if our filter is not set or another one precedes it, so that NumPy's warnings may be shown."""
    filters = warnings.filters
    return not filters or not our_filter or filters[0] is not our_filter[0]


def call_quietly(compute: Callable[..., Any], *args: Any) -> Any:
    """Return `compute(*args)`, computed again with NumPy's warnings off if the first call raises one."""
    try:
        return compute(*args)
    except RuntimeWarning:
        with silence():
            return compute(*args)


def silence() -> Any:
    """Return a context in which NumPy does not warn. Entering it costs 0.8 µs."""
    return np.errstate(all="ignore")

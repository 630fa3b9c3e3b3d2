"""What a thread's state is when nothing is at work, and what of it is not so."""

from __future__ import annotations

import sys

from gradlab.backend.bounds import debug
from gradlab.core.engine import running
from gradlab.core.modes import mode
from gradlab.core.watching import WATCHED, watchers


def left_behind():
    """What is not as it was at the start."""
    tangents = sys.modules.get("gradlab.core.tangents")
    fine = {
        "grad mode": mode.grad is True,
        "inference mode": mode.inference is False,
        "forward mode": mode.forward is True,
        "watchers": watchers.active == watchers.sweeps == (),
        "watched": not WATCHED,
        "a sweep": running.sweep is None,
        "a dual level": tangents is None or tangents.opened.level is None,
        "sync debug": not debug.at_once,
    }
    return [name for name, so in fine.items() if not so]


def clear():
    """Make it so."""
    mode.grad = mode.forward = True
    mode.inference = debug.at_once = False
    watchers.active = watchers.sweeps = ()
    running.sweep = None
    WATCHED.clear()
    if "gradlab.core.tangents" in sys.modules:
        sys.modules["gradlab.core.tangents"].opened.level = None

"""The operators that have names in `gradlab.special`, as their declarations say. `python tests/stubs.py` writes the stub."""

from __future__ import annotations

import gradlab.ops  # noqa: F401  (its modules declare)
from gradlab.core.operator import OPERATORS

_NAMES = {name: operator.published() for operator in OPERATORS.values() for name in operator.special}
__all__ = list(_NAMES)
globals().update(_NAMES)

"""The operators that have names in `gradlab.special`, as their declarations say. `python tests/stubs.py` writes the stub."""

from __future__ import annotations

from gradlab.core.operator import OPERATORS
from gradlab.ops import arithmetic, clamping, declared, elementary, gamma, integers, interpolation, powers  # noqa: F401  (they declare)

_NAMES = {name: operator.published() for operator in OPERATORS.values() for name in operator.special}
__all__ = list(_NAMES)
globals().update(_NAMES)

"""Operators declared with a name in `gradlab.special`. The stub is written by `python tests/stubs.py`."""

from __future__ import annotations

import gradlab.ops  # noqa: F401  (its modules declare operators)
from gradlab.core.operator import OPERATORS

_NAMES = {name: operator.public_function() for operator in OPERATORS.values() for name in operator.special}
__all__ = list(_NAMES)
globals().update(_NAMES)

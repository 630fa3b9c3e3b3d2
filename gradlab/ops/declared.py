"""The functions of primitives that are public as they stand: `operator` declares them in `gradlab.rules`, beside their calculus.

Adding one touches its declaration alone. The stub beside this module is written by `python tests/stubs.py`.
"""

from __future__ import annotations

from gradlab.core.operator import OPERATORS
from gradlab.rules import elementary, elementwise, special  # noqa: F401  (they declare)

__all__ = [name for operator in OPERATORS.values() if operator.is_primitive and operator.top for name in operator.names]

globals().update(
    {name: operator.published() for operator in OPERATORS.values() if operator.is_primitive for name in operator.names}
)

"""Public functions that are the recording functions of primitives.

`operator` declares them in `gradlab.rules`, next to their derivatives, so a new one needs only its declaration. The stub of this
module is written by `python tests/stubs.py`.
"""

from __future__ import annotations

from gradlab.core.operator import OPERATORS
from gradlab.rules import elementary, elementwise, special  # noqa: F401  (they declare operators)

__all__ = [name for operator in OPERATORS.values() if operator.is_primitive and operator.top for name in operator.names]

globals().update(
    {name: operator.public_function() for operator in OPERATORS.values() if operator.is_primitive for name in operator.names}
)

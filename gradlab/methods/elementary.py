"""What the functions of one number have as methods in a form of its own. (The others follow from their declarations.)"""

from __future__ import annotations

from typing import Any

from gradlab.core import inplace
from gradlab.core.tensor import Tensor
from gradlab.ops import elementary as functions
from gradlab.ops import gamma


class Elementary:
    """The order first, and what is about complex numbers."""

    conj, conj_physical, resolve_conj, resolve_neg = (
        functions.conj,
        functions.conj_physical,
        functions.resolve_conj,
        functions.resolve_neg,
    )
    real, imag = property(functions.real), property(functions.imag)

    def polygamma(self, n: int) -> Tensor:
        """The n-th derivative of the digamma function."""
        return gamma.polygamma(n, self)

    def polygamma_(self, n: int) -> Tensor:
        """`polygamma`, written into this tensor's memory."""
        return inplace.composed_in_place(lambda x, n: gamma.polygamma(n, x), self, n)

    def conj_physical_(self) -> Any:
        """The tensor itself: its numbers are real."""
        return self

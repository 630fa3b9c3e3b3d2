"""The in-place methods that torch has as functions too: `gradlab.exp_(x)` is `x.exp_()`. Most follow from their operators'
declarations; these are the others."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.methods import tensor  # noqa: F401  (it gives Tensor its methods)

__all__ = ["conj_physical_", "detach_", "fill_", "zero_"]

conj_physical_, detach_, fill_, zero_ = Tensor.conj_physical_, Tensor.detach_, Tensor.fill_, Tensor.zero_

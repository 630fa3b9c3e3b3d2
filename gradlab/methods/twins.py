"""In-place methods that are functions, too: `gradlab.zero_(x)` is `x.zero_()`.

Most are generated from the operators' declarations (see `gradlab.methods.declared`); these are the others.
"""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.methods import tensor  # noqa: F401  (installs the methods of Tensor)

__all__ = ["conj_physical_", "detach_", "fill_", "zero_"]

conj_physical_, detach_, fill_, zero_ = Tensor.conj_physical_, Tensor.detach_, Tensor.fill_, Tensor.zero_

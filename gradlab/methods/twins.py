"""The in-place methods that torch has as functions too: `gradlab.exp_(x)` is `x.exp_()`. Most follow from their operators'
declarations; these are the others."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.methods import tensor  # noqa: F401  (it gives Tensor its methods)

__all__ = [
    "clamp_",
    "clamp_max_",
    "clamp_min_",
    "clip_",
    "conj_physical_",
    "detach_",
    "fill_",
    "gcd_",
    "lcm_",
    "square_",
    "xlogy_",
    "zero_",
]

clamp_, clamp_min_, clamp_max_, square_ = Tensor.clamp_, Tensor.clamp_min_, Tensor.clamp_max_, Tensor.square_
xlogy_, gcd_, lcm_, clip_ = Tensor.xlogy_, Tensor.gcd_, Tensor.lcm_, clamp_
conj_physical_, detach_, fill_, zero_ = Tensor.conj_physical_, Tensor.detach_, Tensor.fill_, Tensor.zero_

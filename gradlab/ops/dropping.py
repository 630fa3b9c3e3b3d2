"""Dropout as functions of torch's own namespace: elements, or whole channels, are zeroed at random and the rest scaled up.

A seed drops what it drops in torch: noise is drawn as `empty_like(input).bernoulli_(1 - p)` draws it, in the order of the
input's memory. `feature_` drops channels; `alpha_` puts what SELU saturates at in place of zeros and keeps mean and variance
(Klambauer et al. 2017).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.backend.streams import stream
from gradlab.core import inplace
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.arguments import not_a_tensor
from gradlab.rules import elementwise as el

__all__ = [
    "alpha_dropout",
    "alpha_dropout_",
    "dropout",
    "dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "feature_dropout",
    "feature_dropout_",
]

SATURATION = 1.7580993408473766  # of SELU: its scale times its alpha


def noise(x: Any, kept: float, feature: bool) -> Any:
    """1 with probability `kept`, else 0, for each element of an array or (`feature`) for each channel of each sample."""
    if feature and x.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input. They are (samples, channels, …).")
    shape = x.shape[:2] + (1,) * (x.ndim - 2) if feature else x.shape
    xp = namespace_of[type(x)]
    engine = stream(xp)
    if feature or x.flags.c_contiguous:
        drawn = engine.bernoulli(kept, shape)
    else:  # memory order
        order = sorted(range(x.ndim), key=lambda i: -x.strides[i])
        drawn = engine.bernoulli(kept, tuple(shape[i] for i in order)).transpose(np.argsort(order))
    return xp.asarray(drawn.astype(np.float32 if x.dtype == np.float16 else x.dtype, order="K"))


def _dropout(name: str, feature: bool, alpha: bool, in_place: bool) -> Any:
    def drop(input: Tensor, p: float, train: bool) -> Tensor:
        if type(input) is not Tensor:
            raise not_a_tensor(name, input)
        if not 0 <= p <= 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
        x = input.array
        if p == 0 or not train or not x.size:
            return input
        if x.dtype.kind != "f":
            raise RuntimeError(
                f"result type Float can't be cast to the desired output type {input.dtype.word}. Call .float() first."
            )
        shift: Any = None
        if p == 1:
            factor = namespace_of[type(x)].zeros((), dtype=x.dtype)
        else:
            factor = noise(x, 1 - p, feature)
            if alpha:
                scale = 1 / ((SATURATION**2 * p + 1) * (1 - p)) ** 0.5
                shift = (factor - 1) * (SATURATION * scale) + SATURATION * scale * p
                factor *= scale
            else:
                factor /= 1 - p
            if x.dtype == np.float16:  # computed in float32, as torch does
                factor, shift = factor.astype(x.dtype), None if shift is None else shift.astype(x.dtype)
        if in_place:
            inplace.in_place(el.mul, input, constant(factor))
            return input if shift is None else inplace.in_place(el.add, input, constant(shift))
        out = el.mul.record(input, constant(factor))
        return out if shift is None else el.add.record(out, constant(shift))

    drop.__name__ = drop.__qualname__ = name
    drop.__doc__ = (
        f"{'Channels' if feature else 'Elements'} of `input` dropped with probability `p` if `train`"
        f"{', keeping mean and variance' if alpha else ', the others divided by 1 - p'}"
        f"{'; in place' if in_place else ''}."
    )
    return drop


dropout, dropout_ = (_dropout(f"dropout{end}", False, False, bool(end)) for end in ("", "_"))
alpha_dropout, alpha_dropout_ = (_dropout(f"alpha_dropout{end}", False, True, bool(end)) for end in ("", "_"))
feature_dropout, feature_dropout_ = (_dropout(f"feature_dropout{end}", True, False, bool(end)) for end in ("", "_"))
feature_alpha_dropout, feature_alpha_dropout_ = (
    _dropout(f"feature_alpha_dropout{end}", True, True, bool(end)) for end in ("", "_")
)

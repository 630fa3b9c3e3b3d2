"""Layers that set elements to zero at random while training, and hand their input on in evaluation."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.described import Described

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class Dropping(Described):
    """A probability of dropping, and whether the input is overwritten."""

    shown = "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace


class Dropout(Dropping):
    """Each element zero with probability p, the others divided by 1 - p."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(Dropping):
    """Whole channels of (N, C, L) or (C, L) dropped."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(Dropping):
    """Whole channels of (N, C, H, W) dropped."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(Dropping):
    """Whole channels of (N, C, D, H, W) dropped."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(Dropping):
    """Dropout that keeps mean 0 and variance 1, for SELU."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(Dropping):
    """Alpha dropout of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.feature_alpha_dropout(input, self.p, self.training)

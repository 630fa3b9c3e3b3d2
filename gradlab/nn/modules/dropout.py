"""Layers that zero elements at random in training, and return their input in evaluation."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.bases import ReprModule

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


class DropoutBase(ReprModule):
    """Base of the dropout layers, with the settings `p` and `inplace`."""

    repr_format = "p={p}, inplace={inplace}"

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace


class Dropout(DropoutBase):
    """Zero each element with probability p, and divide the others by 1 - p.

    Parameters
    ----------
    {dropout}
    {inplace}

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    {in_evaluation}

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.Dropout(0.5).eval()(gradlab.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(DropoutBase):
    """Zero whole channels of sequences with probability p, and divide the others by 1 - p.

    Parameters
    ----------
    {dropout}
    {inplace}

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    {in_evaluation}

    Input: (N, C, L) or (C, L). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> y = nn.Dropout1d()(gradlab.ones(4, 8, 3))
    >>> ((y == 0).all(-1) | (y == 2).all(-1)).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(DropoutBase):
    """Zero whole channels of images with probability p, and divide the others by 1 - p.

    Parameters
    ----------
    {dropout}
    {inplace}

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    {in_evaluation}

    Input: (N, C, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> y = nn.Dropout2d()(gradlab.ones(4, 8, 2, 2)).flatten(2)
    >>> ((y == 0).all(-1) | (y == 2).all(-1)).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(DropoutBase):
    """Zero whole channels of volumes with probability p, and divide the others by 1 - p.

    Parameters
    ----------
    {dropout}
    {inplace}

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    {in_evaluation}

    Input: (N, C, D, H, W). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> y = nn.Dropout3d()(gradlab.ones(4, 8, 2, 2, 2)).flatten(2)
    >>> ((y == 0).all(-1) | (y == 2).all(-1)).all()
    tensor(True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(DropoutBase):
    """Dropout that preserves mean 0 and variance 1, for networks with `SELU`.

    Parameters
    ----------
    {dropout}
    inplace : bool, optional
        Shown by `repr`. The input is never overwritten.

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    Dropped elements are set to the limit of SELU. Then all are scaled and shifted (Klambauer et al. 2017).

    {in_evaluation}

    {elementwise}

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.AlphaDropout().eval()(gradlab.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(DropoutBase):
    """Alpha dropout of whole channels, which preserves mean 0 and variance 1.

    Parameters
    ----------
    {dropout}
    inplace : bool, optional
        Shown by `repr`. The input is never overwritten.

    Raises
    ------
    {dropout_refused}

    Notes
    -----
    {in_evaluation}

    Input: (N, C, *). Output: the same shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.FeatureAlphaDropout().eval()(gradlab.ones(1, 3, 1)).shape
    gradlab.Size([1, 3, 1])
    """

    def forward(self, input: Tensor) -> Tensor:
        return functional.feature_alpha_dropout(input, self.p, self.training)

"""Layers that compare two tensors vector by vector."""

from __future__ import annotations

from gradlab.core.tensor import Tensor
from gradlab.nn import functional
from gradlab.nn.modules.module import Module

__all__ = ["CosineSimilarity", "PairwiseDistance"]


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps over the last dimension.

    Parameters
    ----------
    p : float, optional
        Order of the norm (default: 2).
    eps : float, optional
        Added to the differences, so that the norm is differentiable at 0.
    keepdim : bool, optional
        Keep the last dimension, with size 1.

    Notes
    -----
    Inputs, both: (N, D) or (D), or shapes that broadcast. Output: (N) or (); (N, 1) or (1) with `keepdim`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.PairwiseDistance(eps=0.0)(gradlab.tensor([[0.0, 0.0]]), gradlab.tensor([[3.0, 4.0]]))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors: x1 · x2 / (‖x1‖ ‖x2‖) along `dim`.

    Parameters
    ----------
    dim : int, optional
        Dimension of the vectors (default: 1).
    eps : float, optional
        Lower bound of the norms, to avoid division by 0.

    Notes
    -----
    Inputs, both: (*, D, *), shapes that broadcast, D along `dim`. Output: (*, *).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> nn.CosineSimilarity(dim=0)(gradlab.tensor([1.0, 0.0]), gradlab.tensor([3.0, 4.0]))
    tensor(0.6000)
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)

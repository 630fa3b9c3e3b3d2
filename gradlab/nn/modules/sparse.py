"""Embeddings: rows of a table looked up by index, and sums, means or maxima of rows."""

from __future__ import annotations

from typing import Any

from gradlab.core.modes import no_grad
from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.nn.parameter import Parameter
from gradlab.ops.creation import empty

__all__ = ["Embedding", "EmbeddingBag"]


class EmbeddingTable(Module):
    """Base of the embeddings: the table `weight` (num_embeddings, embedding_dim), initially standard normal.

    The row `padding_idx` is initialised to zeros and receives no gradient.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: Tensor | None,
        freeze: bool,
        device: Any,
        dtype: Any,
        word: str,
    ) -> None:
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < max(num_embeddings, 1):
                raise AssertionError(f"{word} must be within num_embeddings")
            if padding_idx < 0:
                padding_idx += num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse = max_norm, norm_type, scale_grad_by_freq, sparse
        if weight is None:
            self.weight = Parameter(empty(num_embeddings, embedding_dim, device=device, dtype=dtype), not freeze)
            self.reset_parameters()
        elif tuple(weight.shape) != (num_embeddings, embedding_dim):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        else:
            self.weight = Parameter(weight, not freeze)

    def reset_parameters(self) -> None:
        """Initialise the table, and set the row of the padding to zero.

        Returns
        -------
        None

        Examples
        --------
        >>> from gradlab import nn
        >>> layer = nn.Embedding(2, 3)
        >>> before = layer.weight.detach().clone()
        >>> layer.reset_parameters()
        >>> bool((layer.weight == before).any())
        False
        """
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    def repr_fields(self, last: tuple[str, ...]) -> str:
        usual = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2,
            "scale_grad_by_freq": False,
            "sparse": False,
            "mode": None,
        }
        shown = [f"{name}={getattr(self, name)!r}" for name in last if getattr(self, name) != usual[name]]
        return ", ".join([f"{self.num_embeddings}, {self.embedding_dim}", *shown])


def table_shape(embeddings: Tensor) -> tuple[int, int]:
    """Return the numbers of rows and columns of a table."""
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


@with_shared_texts
class Embedding(EmbeddingTable):
    """Rows of a table looked up by integer indices.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Numbers of rows and columns of the table.
    padding_idx : int, optional
        A row that is initialised to zeros and receives no gradient. May be negative.
    max_norm, norm_type : float, optional
        Rows that are looked up and whose `norm_type`-norm (default: 2) exceeds `max_norm` are scaled down to it, in place.
    scale_grad_by_freq : bool, optional
        Divide the gradient of a row by the number of times it was looked up.
    sparse : bool, optional
        As in `functional.embedding`.
    _weight, _freeze : optional
        The table, and whether it is not trained. Used by `from_pretrained`.
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (num_embeddings, embedding_dim)
        The table, initialised from the standard normal distribution.

    Raises
    ------
    AssertionError
        If `padding_idx` is not a row, or `_weight` has another shape.

    Notes
    -----
    Input: integers (*). Output: (*, embedding_dim).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> table = nn.Embedding(4, 2)
    >>> table(gradlab.tensor([1, 1, 3])).sum().backward()
    >>> table.weight.grad
    tensor([[0., 0.],
            [2., 2.],
            [0., 0.],
            [1., 1.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            _freeze,
            device,
            dtype,
            "Padding_idx",
        )

    def forward(self, input: Tensor) -> Tensor:
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        return self.repr_fields(("padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Create an embedding from an existing table.

        Parameters
        ----------
        embeddings : Tensor
            The table, of shape (num_embeddings, embedding_dim).
        freeze : bool, default: True
            Do not train the table (`requires_grad=False`).
        padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse : optional
            As in the class.

        Returns
        -------
        Embedding

        Raises
        ------
        ValueError
            If the table is not two-dimensional.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> layer = nn.Embedding.from_pretrained(gl.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(gl.tensor([1]))
        tensor([[3., 4.]])
        """
        rows, columns = table_shape(embeddings)
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)


@with_shared_texts
class EmbeddingBag(EmbeddingTable):
    """The mean, sum or maximum of the rows in bags of indices.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Numbers of rows and columns of the table.
    max_norm, norm_type : float, optional
        Rows that are looked up and whose `norm_type`-norm (default: 2) exceeds `max_norm` are scaled down to it, in place.
    scale_grad_by_freq : bool, optional
        Divide the gradient of a row by the number of times it was looked up.
    mode : str, optional
        "mean" (the default), "sum" or "max".
    sparse : bool, optional
        As in `functional.embedding_bag`.
    _weight : Tensor, optional
        The table. Used by `from_pretrained`.
    include_last_offset : bool, optional
        Whether the last offset is the number of indices.
    padding_idx : int, optional
        A row that is initialised to zeros, excluded from bags and receives no gradient.
    {device}
    {dtype}

    Attributes
    ----------
    weight : Parameter of shape (num_embeddings, embedding_dim)
        The table, initialised from the standard normal distribution.

    Raises
    ------
    AssertionError
        If `padding_idx` is not a row, or `_weight` has another shape.

    Notes
    -----
    Input: integers (B, L), or one-dimensional with the starts of the bags as offsets (B). Output: (B, embedding_dim).

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> bags = nn.EmbeddingBag(4, 2, mode="sum")
    >>> bags(gradlab.tensor([1, 1, 3]), gradlab.tensor([0, 2])).sum().backward()
    >>> bags.weight.grad
    tensor([[0., 0.],
            [2., 2.],
            [0., 0.],
            [1., 1.]])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            False,
            device,
            dtype,
            "padding_idx",
        )
        self.mode, self.include_last_offset = mode, include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return functional.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        return self.repr_fields(("max_norm", "norm_type", "scale_grad_by_freq", "mode", "padding_idx"))

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Create an embedding bag from an existing table.

        Parameters
        ----------
        embeddings : Tensor
            The table, of shape (num_embeddings, embedding_dim).
        freeze : bool, default: True
            Do not train the table (`requires_grad=False`).
        max_norm, norm_type, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx : optional
            As in the class.

        Returns
        -------
        EmbeddingBag

        Raises
        ------
        ValueError
            If the table is not two-dimensional.

        Examples
        --------
        >>> import gradlab as gl
        >>> from gradlab import nn
        >>> layer = nn.EmbeddingBag.from_pretrained(gl.tensor([[1.0, 2.0], [3.0, 4.0]]))
        >>> layer(gl.tensor([[0, 1]]))
        tensor([[2., 3.]])
        """
        rows, columns = table_shape(embeddings)
        bag = cls(
            rows, columns, max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx
        )
        bag.weight.requires_grad = not freeze
        return bag

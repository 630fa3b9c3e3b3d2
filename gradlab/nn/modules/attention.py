"""Multi-head attention with its projections as parameters."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.modules.bases import empty_parameter
from gradlab.nn.modules.linear import Linear
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.shared import with_shared_texts

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection: a `Linear` with torch's name."""


@with_shared_texts
class MultiheadAttention(Module):
    """Multi-head attention: softmax(q kᵀ / √d) v in each head; the results are joined and projected (Vaswani et al. 2017).

    Parameters
    ----------
    embed_dim, num_heads : int
        Size E of a query, and number of heads. Each head has E / num_heads columns.
    dropout : float, optional
        Probability that an attention weight is dropped in training.
    bias : bool, optional
        Whether the projections have biases (default: True).
    add_bias_kv, add_zero_attn : bool, optional
        Append a learned key and value, or zeros, to the sequences.
    kdim, vdim : int, optional
        Sizes of a key and of a value (default: E).
    batch_first : bool, optional
        Whether the batch dimension comes first.
    {device}
    {dtype}

    Attributes
    ----------
    in_proj_weight : Parameter of shape (3 E, E), or None
        The stacked projections of query, key and value. If `kdim` or `vdim` differs from E, they are `q_proj_weight`,
        `k_proj_weight` and `v_proj_weight`.
    in_proj_bias : Parameter of shape (3 E,), or None
        Their biases, initialised to zeros.
    out_proj : Linear
        The output projection.

    Raises
    ------
    ValueError
        If `embed_dim` or `num_heads` is not positive.
    AssertionError
        If `num_heads` does not divide `embed_dim`.

    Notes
    -----
    Query: (L, N, E), key: (S, N, kdim), value: (S, N, vdim); N first if `batch_first`, or without N. Output: (L, N, E) and the
    weights averaged over the heads, (N, L, S); (N, heads, L, S) with `average_attn_weights=False`, None with
    `need_weights=False`. In boolean masks, True hides a key. Masks of floats are added to the scores.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> attention, x = nn.MultiheadAttention(4, 2, batch_first=True), gradlab.ones(1, 2, 4)
    >>> output, weights = attention(x, x, x)
    >>> weights.detach()
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.dropout, self.batch_first = embed_dim, num_heads, dropout, batch_first
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        same = self._qkv_same_embed_dim
        if same:
            self.in_proj_weight = empty_parameter(3 * embed_dim, embed_dim, device=device, dtype=dtype)
        for name, columns in (("q", embed_dim), ("k", self.kdim), ("v", self.vdim)):
            weight = None if same else empty_parameter(embed_dim, columns, device=device, dtype=dtype)
            self.register_parameter(f"{name}_proj_weight", weight)
        if not same:
            self.register_parameter("in_proj_weight", None)
        self.register_parameter("in_proj_bias", empty_parameter(3 * embed_dim, device=device, dtype=dtype) if bias else None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            setattr(self, name, empty_parameter(1, 1, embed_dim, device=device, dtype=dtype) if add_bias_kv else None)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Initialise the projections (Glorot uniform), their biases (zeros), and the appended key and value."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        turned = self.batch_first and query.dim() == 3
        if turned:
            once = {id(x): x.transpose(1, 0) for x in (query, key, value)}  # the same tensor remains the same
            query, key, value = once[id(query)], once[id(key)], once[id(value)]
        output, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            self.training,
            key_padding_mask,
            need_weights,
            attn_mask,
            not self._qkv_same_embed_dim,
            self.q_proj_weight,
            self.k_proj_weight,
            self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(1, 0) if turned else output, weights

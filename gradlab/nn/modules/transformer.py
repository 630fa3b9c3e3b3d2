"""Transformer encoders and decoders (Vaswani et al. 2017): attention and a feed-forward part with residual connections."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from gradlab.core.modes import is_grad_enabled
from gradlab.core.tensor import Tensor
from gradlab.nn import functional, init
from gradlab.nn.functional.attention import float_mask
from gradlab.nn.modules.activation import GELU, ReLU
from gradlab.nn.modules.attention import MultiheadAttention
from gradlab.nn.modules.container import ModuleList
from gradlab.nn.modules.dropout import Dropout
from gradlab.nn.modules.linear import Linear
from gradlab.nn.modules.module import Module
from gradlab.nn.modules.normalization import LayerNorm
from gradlab.nn.modules.shared import with_shared_texts
from gradlab.ops import triu
from gradlab.ops.creation import full

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

Activation = str | Callable[[Tensor], Tensor]


# -------------------------------------------------------------------------------------------------------------------- masks
def causal_mask(size: int, device: Any = None, dtype: Any = None) -> Tensor:
    """Return the causal mask (size, size): -inf above the diagonal, 0 elsewhere."""
    return triu(full((size, size), float("-inf"), dtype=dtype, device=device), 1)


def canonical_mask(mask: Tensor | None, name: str, x: Tensor, other: Tensor | None = None, other_name: str = "") -> Tensor | None:
    """Convert a mask to floats to add to scores. Give PyTorch's warning if the other mask has another type."""
    if mask is not None and other is not None and mask.dtype != other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            UserWarning,
            stacklevel=3,
        )
    return float_mask(name, mask, x)


def is_causal_mask(mask: Tensor | None, is_causal: bool | None, x: Tensor, batch_first: bool) -> bool:
    """Return `is_causal` if it is given, otherwise whether the mask is the causal mask."""
    if is_causal is not None or mask is None:
        return is_causal is True
    length = x.shape[1 if batch_first and x.dim() == 3 else 0]
    return tuple(mask.shape) == (length, length) and bool((mask == causal_mask(length, mask.device, mask.dtype)).all())


# -------------------------------------------------------------------------------------------------------------------- layers
class Layer(Module):
    """Base of encoder and decoder layers: the feed-forward part, and norms before or after each part."""

    def make_feed_forward(
        self,
        d_model: int,
        width: int,
        dropout: float,
        bias: bool,
        norm_first: bool,
        norms: int,
        eps: float,
        activation: Activation,
        device: Any,
        dtype: Any,
    ) -> None:
        """Create the parts other than attention, in torch's order."""
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.linear1 = Linear(d_model, width, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(width, d_model, **options)
        self.norm_first = norm_first
        for number in range(norms):
            setattr(self, f"norm{number + 1}", LayerNorm(d_model, eps=eps, **options))
        for number in range(norms):
            setattr(self, f"dropout{number + 1}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in ("relu", "gelu"):
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = functional.relu if activation == "relu" else functional.gelu
        self.activation = activation

    def apply_feed_forward(self, x: Tensor) -> Tensor:
        """Apply the feed-forward part."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


@with_shared_texts
class TransformerEncoderLayer(Layer):
    """Self-attention and two linear layers, each added to its input and normalized.

    Parameters
    ----------
    d_model, nhead : int
        Size E of an element, and number of heads.
    dim_feedforward : int, optional
        Size between the two linear layers (default: 2048).
    dropout : float, optional
        Probability of dropout (default: 0.1).
    activation : str or callable, optional
        Activation between the linear layers: "relu" (the default), "gelu" or a function.
    layer_norm_eps : float, optional
        `eps` of the layer norms (default: 1e-5).
    batch_first : bool, optional
        Whether the batch dimension comes first.
    norm_first : bool, optional
        Normalize before each part instead of after the sum.
    bias : bool, optional
        Whether there are biases (default: True).
    {device}
    {dtype}

    Raises
    ------
    RuntimeError
        If `activation` is another string.

    Notes
    -----
    Input: (T, N, E), (N, T, E) if `batch_first`, or (T, E). Output: the same shape. `src_mask` (T, T) and
    `src_key_padding_mask` (N, T) are used as in `MultiheadAttention`.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
    >>> layer(gradlab.zeros(5, 1, 4)).shape == (5, 1, 4)
    True
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
        self.make_feed_forward(d_model, dim_feedforward, dropout, bias, norm_first, 2, layer_norm_eps, activation, device, dtype)

    def forward(
        self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool = False
    ) -> Tensor:
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask")
        mask = canonical_mask(src_mask, "src_mask", src)

        def attend_to_self(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, padding, False, mask, is_causal=is_causal)[0])

        x = src
        if self.norm_first:
            x = x + attend_to_self(self.norm1(x))
            return x + self.dropout2(self.apply_feed_forward(self.norm2(x)))
        x = self.norm1(x + attend_to_self(x))
        return self.norm2(x + self.dropout2(self.apply_feed_forward(x)))


@with_shared_texts
class TransformerDecoderLayer(Layer):
    """Self-attention, attention to the encoder's output, and two linear layers, each added to its input and normalized.

    Parameters
    ----------
    d_model, nhead : int
        Size E of an element, and number of heads.
    dim_feedforward : int, optional
        Size between the two linear layers (default: 2048).
    dropout : float, optional
        Probability of dropout (default: 0.1).
    activation : str or callable, optional
        Activation between the linear layers: "relu" (the default), "gelu" or a function.
    layer_norm_eps : float, optional
        `eps` of the layer norms (default: 1e-5).
    batch_first : bool, optional
        Whether the batch dimension comes first.
    norm_first : bool, optional
        Normalize before each part instead of after the sum.
    bias : bool, optional
        Whether there are biases (default: True).
    {device}
    {dtype}

    Raises
    ------
    RuntimeError
        If `activation` is another string.

    Notes
    -----
    Target: (T, N, E), memory: (S, N, E); N first if `batch_first`, or without N. Output: the target's shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
    >>> layer(gradlab.zeros(5, 1, 4), gradlab.zeros(3, 1, 4)).shape == (5, 1, 4)
    True
    """

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        for name in ("self_attn", "multihead_attn"):
            setattr(
                self, name, MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first, device=device, dtype=dtype)
            )
        self.make_feed_forward(d_model, dim_feedforward, dropout, bias, norm_first, 3, layer_norm_eps, activation, device, dtype)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend_to_self(x: Tensor) -> Tensor:
            return self.dropout1(self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0])

        def attend_to_memory(x: Tensor) -> Tensor:
            return self.dropout2(
                self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask, is_causal=memory_is_causal)[0]
            )

        x = tgt
        if self.norm_first:
            x = x + attend_to_self(self.norm1(x))
            x = x + attend_to_memory(self.norm2(x))
            return x + self.dropout3(self.apply_feed_forward(self.norm3(x)))
        x = self.norm1(x + attend_to_self(x))
        x = self.norm2(x + attend_to_memory(x))
        return self.norm3(x + self.dropout3(self.apply_feed_forward(x)))


# -------------------------------------------------------------------------------------------------------------------- stacks
def reason_not_nested(layer: Module) -> str:
    """Return the reason, for the warning, why torch would not use nested tensors for this layer; empty if it would."""
    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    known = layer.activation in (functional.relu, functional.gelu) or isinstance(layer.activation, (ReLU, GELU))
    reasons = (
        (layer.norm_first, "norm_first was True"),
        (not attention.batch_first, "self_attn.batch_first was not True(use batch_first for better inference performance)"),
        (not attention._qkv_same_embed_dim, "self_attn._qkv_same_embed_dim was not True"),
        (attention.in_proj_bias is None, "self_attn was passed bias=False"),
        (not known, "activation_relu_or_gelu was not True"),
        (layer.norm1.eps != layer.norm2.eps, "norm1.eps was not equal to encoder_layer.norm2.eps"),
        (attention.num_heads % 2 == 1, "self_attn.num_heads is odd"),
    )
    return next((f"encoder_layer.{reason}" for holds, reason in reasons if holds), "")


@with_shared_texts
class TransformerEncoder(Module):
    """A stack of copies of an encoder layer, with an optional norm at the end.

    Parameters
    ----------
    encoder_layer : Module
        The layer to copy.
    num_layers : int
        Number of copies.
    norm : Module, optional
        Norm to apply last.
    enable_nested_tensor, mask_check : bool, optional
        Conditions for skipping padded positions.

    Notes
    -----
    The result at padded positions is 0 where torch would skip them: in evaluation, without recording, with padding only at the
    end and no other mask.

    Input and output: as in the layer.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), num_layers=2)
    >>> encoder(gradlab.zeros(1, 5, 4)).shape == (1, 5, 4)
    True
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm, self.mask_check = num_layers, norm, mask_check
        self.enable_nested_tensor = self.use_nested_tensor = enable_nested_tensor
        if enable_nested_tensor and (why := reason_not_nested(encoder_layer)):
            warnings.warn(
                f"enable_nested_tensor is True, but self.use_nested_tensor is False because {why}", UserWarning, stacklevel=2
            )
            self.use_nested_tensor = False

    def forward(
        self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None, is_causal: bool | None = None
    ) -> Tensor:
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src, mask, "mask")
        mask = canonical_mask(mask, "mask", src)
        first = self.layers[0]
        causal = is_causal_mask(mask, is_causal, src, first.self_attn.batch_first)
        x = src
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if (
            padding is not None
            and mask is None
            and self.use_nested_tensor
            and not first.training
            and src.dim() == 3
            and not (is_grad_enabled() and (src.requires_grad or any(p.requires_grad for p in first.parameters())))
        ):
            hidden = padding != 0
            if not self.mask_check or not bool((hidden[:, :-1] & ~hidden[:, 1:]).any()):
                x = x.masked_fill(hidden.unsqueeze(-1), 0.0)
        return x if self.norm is None else self.norm(x)


@with_shared_texts
class TransformerDecoder(Module):
    """A stack of copies of a decoder layer, with an optional norm at the end.

    Parameters
    ----------
    decoder_layer : Module
        The layer to copy.
    num_layers : int
        Number of copies.
    norm : Module, optional
        Norm to apply last.

    Notes
    -----
    Input and output: as in the layer.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), num_layers=2)
    >>> decoder(gradlab.zeros(5, 1, 4), gradlab.zeros(3, 1, 4)).shape == (5, 1, 4)
    True
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        causal = is_causal_mask(tgt_mask, tgt_is_causal, tgt, self.layers[0].self_attn.batch_first)
        x = tgt
        for layer in self.layers:
            x = layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return x if self.norm is None else self.norm(x)


@with_shared_texts
class Transformer(Module):
    """An encoder, and a decoder that attends to its output (Vaswani et al. 2017).

    Parameters
    ----------
    d_model, nhead : int, optional
        Size E of an element, and number of heads (default: 512 and 8).
    num_encoder_layers, num_decoder_layers : int, optional
        Numbers of layers (default: 6 each).
    custom_encoder, custom_decoder : Module, optional
        Replacements of the encoder and the decoder.
    dim_feedforward : int, optional
        Size between the two linear layers (default: 2048).
    dropout : float, optional
        Probability of dropout (default: 0.1).
    activation : str or callable, optional
        Activation between the linear layers: "relu" (the default), "gelu" or a function.
    layer_norm_eps : float, optional
        `eps` of the layer norms (default: 1e-5).
    batch_first : bool, optional
        Whether the batch dimension comes first.
    norm_first : bool, optional
        Normalize before each part instead of after the sum.
    bias : bool, optional
        Whether there are biases (default: True).
    {device}
    {dtype}

    Raises
    ------
    RuntimeError
        If the batch sizes of source and target differ, or their number of features is not `d_model`.

    Notes
    -----
    Source: (S, N, E), target: (T, N, E); N first if `batch_first`, or without N. Output: the target's shape.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> model = nn.Transformer(4, 2, 1, 1, dim_feedforward=8, batch_first=True)
    >>> model(gradlab.zeros(1, 3, 4), gradlab.zeros(1, 5, 4)).shape == (1, 5, 4)
    True
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        each = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self.encoder = (
            custom_encoder
            if custom_encoder is not None
            else TransformerEncoder(
                TransformerEncoderLayer(*each, **options), num_encoder_layers, LayerNorm(d_model, eps=layer_norm_eps, **options)
            )
        )
        self.decoder = (
            custom_decoder
            if custom_decoder is not None
            else TransformerDecoder(
                TransformerDecoderLayer(*each, **options), num_decoder_layers, LayerNorm(d_model, eps=layer_norm_eps, **options)
            )
        )
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.shape[axis] != tgt.shape[axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Return the causal mask, which hides later positions.

        Parameters
        ----------
        sz : int
            Length of the sequence.
        device : device or str, optional
            Device of the result.
        dtype : dtype, optional
            Dtype of the result (default: the default dtype).

        Returns
        -------
        Tensor
            Shape (sz, sz): -inf above the diagonal, 0 elsewhere.

        Examples
        --------
        >>> from gradlab import nn
        >>> nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return causal_mask(sz, device, dtype)

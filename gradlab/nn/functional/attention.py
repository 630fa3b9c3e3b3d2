"""Attention: the mean of the values for each query, weighted by the softmax of its products with the keys.

Vaswani et al. (2017), section 3.2.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.layers import linear
from gradlab.ops.arguments import check_tensors, not_a_tensor
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import compute_in_float32
from gradlab.ops.dropping import dropout
from gradlab.ops.joins import cat
from gradlab.ops.permutation import permute, transpose
from gradlab.ops.shapes import reshape, squeeze, unsqueeze
from gradlab.ops.softmax import softmax
from gradlab.rules import attention as rules

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

MATRICES = rules.scores.with_node("MmBackward0"), rules.mixture.with_node("MmBackward0")  # the names of torch's nodes in 2-D


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    r"""Average the values for each query, weighted by the softmax of its products with the keys.

    Parameters
    ----------
    query : Tensor
        The queries, (…, L, E), floating point.
    key : Tensor
        The keys, (…, S, E).
    value : Tensor
        The values, (…, S, V).
    attn_mask : Tensor, optional
        Mask that broadcasts to (…, L, S): bools, True where a query attends to a key, or floats, which are added to the scores.
    dropout_p : float, default: 0.0
        Probability that a weight is dropped. This function has no evaluation mode.
    is_causal : bool, default: False
        Let query i attend to the keys 0 … i only. Cannot be combined with `attn_mask`.
    scale : float, optional
        Factor of the scores. If omitted, 1/√E.
    enable_gqa : bool, default: False
        Allow `query` to have a multiple of the heads (dimension -3) of `key` and `value`.

    Returns
    -------
    Tensor
        Shape (…, L, V). The result is 0 for a query whose keys are all masked.

    Raises
    ------
    TypeError
        If one of the three is not a Tensor.
    RuntimeError
        If the shapes or dtypes do not fit, a tensor is not floating point, both `attn_mask` and `is_causal` are given, or
        `dropout_p` is not between 0 and 1.

    Notes
    -----
    .. math:: Y = \operatorname{softmax}(s Q K^T + M) V

    Vaswani et al. (2017), section 3.2.1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> q = gl.tensor([[0.0], [0.0]])
    >>> F.scaled_dot_product_attention(q, q, gl.tensor([[2.0], [4.0]]), is_causal=True)
    tensor([[2.],
            [3.]])
    """
    for at, (what, x) in enumerate((("query", query), ("key", key), ("value", value)), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("scaled_dot_product_attention", x, what, at)
    q, k, v = query.array, key.array, value.array
    check_attention(query, key, value, attn_mask, is_causal, dropout_p)
    if q.dtype.char == "e":
        return compute_in_float32(
            partial(scaled_dot_product_attention, scale=scale, enable_gqa=enable_gqa),
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
        )
    if enable_gqa:
        key, value = (repeat_heads(x, q.shape[-3] if q.ndim > 2 else 1) for x in (key, value))
    scores_of, mixture_of = MATRICES if max(q.ndim, k.ndim, v.ndim) == 2 else (rules.scores, rules.mixture)
    scores = scores_of.record(query, key, scale=q.shape[-1] ** -0.5 if scale is None else float(scale))
    mask, xp = None, namespace_of[type(q)]
    if is_causal:
        mask = mask_to_bias(xp, xp.tri(q.shape[-2], k.shape[-2], dtype=bool), q.dtype)
    elif attn_mask is not None:
        mask = attn_mask.array
        if mask.dtype.kind == "b":
            mask = mask_to_bias(xp, mask, q.dtype)
        elif attn_mask.node is not None:  # a learned mask
            scores, mask = scores + attn_mask, None
        else:
            mask = mask.astype(q.dtype, copy=False)
    if mask is not None and len(mask.shape) > len(scores.array.shape):
        scores = expand(scores, np.broadcast_shapes(scores.array.shape, mask.shape))
    weights = rules.safe_softmax.record(scores, mask=mask, axis=(-1,)) if scores.array.size else scores
    return mixture_of.record(dropout(weights, dropout_p, True) if dropout_p else weights, value)


def mask_to_bias(xp: Any, seen: Any, dtype: Any) -> Any:
    """Convert a boolean mask to the bias of the scores: 0 where True, -inf where False."""
    return xp.where(seen, xp.zeros((), dtype=dtype), -np.inf)


def repeat_heads(x: Tensor, heads: int) -> Tensor:
    """Repeat the heads of key or value to match those of the query."""
    *batch, own, length, width = x.array.shape
    if heads % own:
        raise RuntimeError(
            f"Number of heads in key and value must divide the number of heads in query: {own} does not divide {heads}."
        )
    if own == heads:
        return x
    return reshape(expand(unsqueeze(x, -3), (*batch, own, heads // own, length, width)), *batch, heads, length, width)


def check_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, dropout_p: float
) -> None:
    """Raise PyTorch's errors for arguments that do not fit."""
    q, k, v = query.array, key.array, value.array
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{q.ndim} key.dim: {k.ndim} and value.dim: {v.ndim} instead."
        )
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.c_name} "
            f"key.dtype: {key.dtype.c_name} and value.dtype: {value.dtype.c_name} instead."
        )
    if q.dtype.kind != "f":
        raise RuntimeError(f"expected scalar type Float but found {query.dtype.word}. Call .float() first.")
    if attn_mask is not None:
        if is_causal:
            raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
        if attn_mask.array.dtype.kind != "b" and attn_mask.array.dtype not in (q.dtype, np.float32):
            raise RuntimeError(
                "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
                f"{attn_mask.dtype.c_name} and  query.dtype: {query.dtype.c_name} instead."
            )
    if not 0 <= dropout_p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Compute multi-head attention: project queries, keys and values, attend in each head, and project the result.

    Parameters
    ----------
    query : Tensor
        The queries, (L, N, E), or without N.
    key : Tensor
        The keys, (S, N, E), or without N.
    value : Tensor
        The values, (S, N, E), or without N.
    embed_dim_to_check : int
        Expected value of E.
    num_heads : int
        Number of heads. A head has E / num_heads columns.
    in_proj_weight : Tensor or None
        Weights of the three input projections, (3E, E).
    in_proj_bias : Tensor or None
        Bias of the input projections, (3E).
    bias_k, bias_v : Tensor or None
        A key and a value to append, (1, 1, E); both or neither.
    add_zero_attn : bool
        Append a key and a value of zeros.
    dropout_p : float
        Probability that an attention weight is dropped in training.
    out_proj_weight : Tensor
        Weights of the output projection, (E, E).
    out_proj_bias : Tensor or None
        Bias of the output projection, (E).
    training : bool, default: True
        Apply dropout.
    key_padding_mask : Tensor, optional
        (N, S): bools, True where a key is ignored, or floats, which are added to the scores.
    need_weights : bool, default: True
        Return the attention weights, too.
    attn_mask : Tensor, optional
        (L, S) or (N · num_heads, L, S): bools, True where a key is ignored, or floats, which are added to the scores.
    use_separate_proj_weight : bool, default: False
        Use a separate weight for each input projection.
    q_proj_weight, k_proj_weight, v_proj_weight : Tensor, optional
        The separate weights.
    static_k, static_v : Tensor, optional
        Projected keys and values to use instead of `key` and `value`, (N · num_heads, S, E / num_heads).
    average_attn_weights : bool, default: True
        Average the returned weights over the heads.
    is_causal : bool, default: False
        A hint that `attn_mask` is the causal mask. Requires a mask.

    Returns
    -------
    tuple of Tensor and Tensor or None
        The result (L, N, E), and the weights (N, L, S), or (N, num_heads, L, S) if not averaged. The weights are None if
        `need_weights` is False.

    Raises
    ------
    AssertionError
        If the shapes do not fit, or arguments that belong together are not given together.
    RuntimeError
        If `is_causal` is given without a mask.

    Notes
    -----
    `nn.MultiheadAttention` holds these weights. Vaswani et al. (2017), section 3.2.2.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x, w = gl.tensor([[[1.0]], [[3.0]]]), gl.ones(3, 1)
    >>> y, weights = F.multi_head_attention_forward(x, x, x, 1, 1, w, None, None, None, False, 0.0, gl.ones(1, 1), None)
    >>> y.shape, weights.sum(-1)
    (gradlab.Size([2, 1, 1]), tensor([[1.0000, 1.0000]]))
    """
    batched = check_ranks(query, key, value, key_padding_mask, attn_mask, num_heads)
    padding, mask = key_padding_mask, attn_mask
    if not batched:
        same = key is query, value is key
        query = unsqueeze(query, 1)
        key = query if same[0] else unsqueeze(key, 1)
        value = key if same[1] else unsqueeze(value, 1)
        padding = None if padding is None else unsqueeze(padding, 0)
    length, batch, width = query.array.shape
    if padding is not None and mask is not None and padding.array.dtype != mask.array.dtype:
        warnings.warn(
            "Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.",
            UserWarning,
            stacklevel=2,
        )
    padding = float_mask("key_padding_mask", padding, query)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    by_hint = is_causal and padding is None and not need_weights
    mask = None if by_hint else float_mask("attn_mask", mask, query)
    require(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    require(width % num_heads == 0, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        require(
            key.array.shape[:2] == value.array.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        q, k, v = project_separately((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        require(key.array.shape == value.array.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = project_qkv(query, key, value, in_proj_weight, in_proj_bias)
    mask = None if mask is None else expand_to_heads(mask, (length, key.array.shape[0]), batch * num_heads)
    more = 0  # number of appended keys, which masks do not cover
    require(bias_k is not None or bias_v is None, "bias_v is set but bias_k is None")
    require(bias_v is not None or bias_k is None, "bias_k is set but bias_v is None")
    if bias_k is not None and bias_v is not None:
        require(static_k is None, "bias cannot be added to static key.")
        require(static_v is None, "bias cannot be added to static value.")
        k, v = (cat([x, expand(bias, 1, batch, width)]) for x, bias in ((k, bias_k), (v, bias_v)))
        more += 1
    heads, size = batch * num_heads, width // num_heads
    q = transpose(reshape(q, length, heads, size), 0, 1)
    k, v = (
        transpose(reshape(x, x.array.shape[0], heads, size), 0, 1) if static is None else check_static(what, static, heads, size)
        for what, x, static in (("static_k", k, static_k), ("static_v", v, static_v))
    )
    if add_zero_attn:
        k, v = (cat([x, constant(zeros_like(x, (heads, 1, size)))], 1) for x in (k, v))
        more += 1
    keys = k.array.shape[1]
    mask = merge_masks(widen_mask(mask, more), widen_mask(padding, more), batch, num_heads, keys)
    dropout_p = dropout_p if training else 0.0
    if need_weights:
        scores = rules.scores.record(q, k, scale=size**-0.5)
        weights = softmax(scores if mask is None else scores + mask, -1)
        if dropout_p > 0:
            weights = dropout(weights, dropout_p, True)
        out = transpose(rules.mixture.record(weights, v), 0, 1)
        weights = reshape(weights, batch, num_heads, length, keys)
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        if mask is not None:
            mask = unsqueeze(mask, 0) if mask.array.shape[0] == 1 else reshape(mask, batch, num_heads, -1, keys)
        q, k, v = (reshape(x, batch, num_heads, x.array.shape[1], size) for x in (q, k, v))
        out, weights = permute(scaled_dot_product_attention(q, k, v, mask, dropout_p, by_hint), 2, 0, 1, 3), None
    out = linear(reshape(out, length * batch, width), out_proj_weight, out_proj_bias)
    out = reshape(out, length, batch, out.array.shape[1])
    if batched:
        return out, weights
    return squeeze(out, 1), None if weights is None else squeeze(weights, 0)


def require(met: bool, otherwise: str) -> None:
    """Raise PyTorch's AssertionError if a condition is not met."""
    if not met:
        raise AssertionError(otherwise)


def check_ranks(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Return whether there is a batch axis. Raise if the arguments do not agree about it."""
    check_tensors("multi_head_attention_forward", query=query, key=key, value=value)
    ndim = query.array.ndim
    require(ndim in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    require(
        key.array.ndim == value.array.ndim == ndim,
        f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found "
        f"{key.array.ndim}-D and {value.array.ndim}-D tensors respectively",
    )
    for what, mask, ranks, words in (
        ("key_padding_mask", key_padding_mask, (ndim - 1,), f"`None` or {ndim - 1}-D"),
        ("attn_mask", attn_mask, (2, 3), "`None`, 2-D or 3-D"),
    ):
        if mask is not None:
            require(
                mask.array.ndim in ranks,
                f"For {kind} `query`, expected `{what}` to be {words} but found {mask.array.ndim}-D tensor instead",
            )
    if ndim == 2 and attn_mask is not None and attn_mask.array.ndim == 3:
        wanted = (num_heads, query.array.shape[0], key.array.shape[0])
        require(attn_mask.array.shape == wanted, f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return ndim == 3


def float_mask(what: str, mask: Tensor | None, query: Tensor) -> Tensor | None:
    """Convert a mask to floats to add to the scores: -inf where a boolean mask is True."""
    if mask is None or mask.array.dtype.kind == "f":
        return mask
    require(mask.array.dtype.kind == "b", f"only bool and floating types of {what} are supported")
    xp = namespace_of[type(mask.array)]
    return constant(mask_to_bias(xp, ~mask.array, query.array.dtype))


def project_qkv(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Project query, key and value by the thirds of one weight, in one product if they are the same tensor."""
    width = query.array.shape[-1]

    def part(x: Tensor, first: int, last: int) -> list[Tensor]:
        rows = slice(first * width, last * width)
        whole = first == 0 and last == 3
        out = linear(x, weight if whole else weight[rows], bias if whole or bias is None else bias[rows])
        return [out[..., i * width : (i + 1) * width] for i in range(last - first)] if last - first > 1 else [out]

    if key is value:
        q, k, v = part(query, 0, 3) if query is key else (*part(query, 0, 1), *part(key, 1, 3))
    else:
        q, k, v = *part(query, 0, 1), *part(key, 1, 2), *part(value, 2, 3)
    return q, k, v


def project_separately(xs: tuple[Tensor, ...], weights: tuple[Tensor | None, ...], bias: Tensor | None) -> list[Tensor]:
    """Project query, key and value by separate weights."""
    width, projections = xs[0].array.shape[-1], []
    for at, (name, letter, x, weight) in enumerate(zip(("query", "key", "value"), "qkv", xs, weights, strict=True)):
        require(weight is not None, f"use_separate_proj_weight is True but {letter}_proj_weight is None")
        assert weight is not None
        wanted = width, x.array.shape[-1]
        require(weight.array.shape == wanted, f"expecting {name} weights shape of {wanted}, but got {weight.shape}")
        projections.append(linear(x, weight, None if bias is None else bias[at * width : (at + 1) * width]))
    return projections


def expand_to_heads(mask: Tensor, wanted: tuple[int, int], heads: int) -> Tensor:
    """Add an axis for the heads of all samples in front of `attn_mask`."""
    ndim, shape = mask.array.ndim, mask.array.shape
    correct = wanted if ndim == 2 else (heads, *wanted)
    if shape != correct:
        raise RuntimeError(f"The shape of the {ndim}D attn_mask is {mask.shape}, but should be {correct}.")
    return unsqueeze(mask, 0) if ndim == 2 else mask


def check_static(what: str, static: Tensor, heads: int, size: int) -> Tensor:
    for axis, wanted in ((0, heads), (2, size)):
        require(
            static.array.shape[axis] == wanted, f"expecting {what}.size({axis}) of {wanted}, but got {static.array.shape[axis]}"
        )
    return static


def zeros_like(x: Tensor, shape: tuple[int, ...]) -> Any:
    return namespace_of[type(x.array)].zeros(shape, dtype=x.array.dtype)


def widen_mask(mask: Tensor | None, more: int) -> Tensor | None:
    """Append `more` columns that hide nothing to a mask."""
    return mask if mask is None or not more else cat([mask, constant(zeros_like(mask, (*mask.array.shape[:-1], more)))], -1)


def merge_masks(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int) -> Tensor | None:
    """Combine both masks to one that broadcasts to (N·heads, L, S)."""
    if padding is None:
        return mask
    for axis, wanted in enumerate((batch, keys)):
        require(
            padding.array.shape[axis] == wanted,
            f"Expected key_padded_mask.shape[{axis}] to be {wanted}, but got {padding.array.shape[axis]}",
        )
    each = reshape(expand(reshape(padding, batch, 1, 1, keys), batch, heads, 1, keys), batch * heads, 1, keys)
    return each if mask is None else mask + each

"""Attention: each query takes the mean of the values, weighted by the softmax of its products with the keys.

Vaswani et al. 2017, section 3.2.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.functional.layers import linear
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.broadcasting import expand
from gradlab.ops.copies import in_single
from gradlab.ops.dropping import dropout
from gradlab.ops.joins import cat
from gradlab.ops.permutation import permute, transpose
from gradlab.ops.reductions import softmax
from gradlab.ops.shapes import reshape, squeeze, unsqueeze
from gradlab.rules import attention as rules

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]

MATRICES = rules.scores.named("MmBackward0"), rules.mixture.named("MmBackward0")  # as torch names them in 2-D


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
    """softmax(query · keyᵀ · scale + mask) · value: query (…, L, E), key (…, S, E), value (…, S, V), result (…, L, V).

    `attn_mask` broadcasts to (…, L, S): True where a key may be seen, or floats to add. `is_causal` lets query i see keys 0 … i.
    `scale` is 1/√E by default; `dropout_p` drops weights, always. With `enable_gqa` query may have a multiple of key's heads
    (axis -3)."""
    for at, (what, x) in enumerate((("query", query), ("key", key), ("value", value)), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("scaled_dot_product_attention", x, what, at)
    q, k, v = query.array, key.array, value.array
    check_attention(query, key, value, attn_mask, is_causal, dropout_p)
    if q.dtype.char == "e":
        return in_single(
            partial(scaled_dot_product_attention, scale=scale, enable_gqa=enable_gqa),
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
        )
    if enable_gqa:
        key, value = (repeated_heads(x, q.shape[-3] if q.ndim > 2 else 1) for x in (key, value))
    scores_of, mixture_of = MATRICES if max(q.ndim, k.ndim, v.ndim) == 2 else (rules.scores, rules.mixture)
    scores = scores_of.record(query, key, scale=q.shape[-1] ** -0.5 if scale is None else float(scale))
    mask, xp = None, namespace_of[type(q)]
    if is_causal:
        mask = forbidding(xp, xp.tri(q.shape[-2], k.shape[-2], dtype=bool), q.dtype)
    elif attn_mask is not None:
        mask = attn_mask.array
        if mask.dtype.kind == "b":
            mask = forbidding(xp, mask, q.dtype)
        elif attn_mask.node is not None:  # a learned mask
            scores, mask = scores + attn_mask, None
        else:
            mask = mask.astype(q.dtype, copy=False)
    if mask is not None and len(mask.shape) > len(scores.array.shape):
        scores = expand(scores, np.broadcast_shapes(scores.array.shape, mask.shape))
    weights = rules.safe_softmax.record(scores, mask=mask, axis=(-1,)) if scores.array.size else scores
    return mixture_of.record(dropout(weights, dropout_p, True) if dropout_p else weights, value)


def forbidding(xp: Any, seen: Any, dtype: Any) -> Any:
    """What to add to scores so that only what may be seen counts."""
    return xp.where(seen, xp.zeros((), dtype=dtype), -np.inf)


def repeated_heads(x: Tensor, heads: int) -> Tensor:
    """Each head of key or value as often as there are heads of the query for it."""
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
    """Torch's refusals."""
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
    """Attention of several heads on projections of query (L, N, E), key (S, N, E) and value (S, N, E), or without N.

    Returns (L, N, E) and, if `need_weights`, the weights: (N, L, S) averaged over heads, or (N, heads, L, S). A head has
    E / heads columns. `in_proj_weight` (3E, E) projects all three, or `q_proj_weight`, `k_proj_weight`, `v_proj_weight` one each.
    In masks of bools True forbids: `attn_mask` (L, S) or (N·heads, L, S), `key_padding_mask` (N, S); floats are added to scores.
    `bias_k`, `bias_v` (1, 1, E) and `add_zero_attn` put a further key and value at the end."""
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
    padding = additive("key_padding_mask", padding, query)
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    by_hint = is_causal and padding is None and not need_weights
    mask = None if by_hint else additive("attn_mask", mask, query)
    demand(width == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    demand(width % num_heads == 0, f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        demand(
            key.array.shape[:2] == value.array.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        q, k, v = separately_projected((query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias)
    else:
        demand(key.array.shape == value.array.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = projected(query, key, value, in_proj_weight, in_proj_bias)
    mask = None if mask is None else of_heads(mask, (length, key.array.shape[0]), batch * num_heads)
    more = 0  # keys at the end that no mask knows of
    demand(bias_k is not None or bias_v is None, "bias_v is set but bias_k is None")
    demand(bias_v is not None or bias_k is None, "bias_k is set but bias_v is None")
    if bias_k is not None and bias_v is not None:
        demand(static_k is None, "bias cannot be added to static key.")
        demand(static_v is None, "bias cannot be added to static value.")
        k, v = (cat([x, expand(bias, 1, batch, width)]) for x, bias in ((k, bias_k), (v, bias_v)))
        more += 1
    heads, size = batch * num_heads, width // num_heads
    q = transpose(reshape(q, length, heads, size), 0, 1)
    k, v = (
        transpose(reshape(x, x.array.shape[0], heads, size), 0, 1) if given is None else checked_static(what, given, heads, size)
        for what, x, given in (("static_k", k, static_k), ("static_v", v, static_v))
    )
    if add_zero_attn:
        k, v = (cat([x, constant(zeros_like(x, (heads, 1, size)))], 1) for x in (k, v))
        more += 1
    keys = k.array.shape[1]
    mask = merged(widened(mask, more), widened(padding, more), batch, num_heads, keys)
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


def demand(met: bool, otherwise: str) -> None:
    """Torch's AssertionError, where something about the arguments does not hold."""
    if not met:
        raise AssertionError(otherwise)


def check_ranks(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None, attn_mask: Tensor | None, num_heads: int
) -> bool:
    """Whether there is a batch axis; an error where the arguments do not agree about it."""
    ndim = query.array.ndim
    demand(ndim in (2, 3), f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    demand(
        key.array.ndim == value.array.ndim == ndim,
        f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found "
        f"{key.array.ndim}-D and {value.array.ndim}-D tensors respectively",
    )
    for what, mask, ranks, words in (
        ("key_padding_mask", key_padding_mask, (ndim - 1,), f"`None` or {ndim - 1}-D"),
        ("attn_mask", attn_mask, (2, 3), "`None`, 2-D or 3-D"),
    ):
        if mask is not None:
            demand(
                mask.array.ndim in ranks,
                f"For {kind} `query`, expected `{what}` to be {words} but found {mask.array.ndim}-D tensor instead",
            )
    if ndim == 2 and attn_mask is not None and attn_mask.array.ndim == 3:
        wanted = (num_heads, query.array.shape[0], key.array.shape[0])
        demand(attn_mask.array.shape == wanted, f"Expected `attn_mask` shape to be {wanted} but got {attn_mask.shape}")
    return ndim == 3


def additive(what: str, mask: Tensor | None, query: Tensor) -> Tensor | None:
    """A mask of floats to add to scores: -inf where one of bools is True."""
    if mask is None or mask.array.dtype.kind == "f":
        return mask
    demand(mask.array.dtype.kind == "b", f"only bool and floating types of {what} are supported")
    xp = namespace_of[type(mask.array)]
    return constant(forbidding(xp, ~mask.array, query.array.dtype))


def projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value by their thirds of one weight; in one product where they are the same tensor."""
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


def separately_projected(xs: tuple[Tensor, ...], weights: tuple[Tensor | None, ...], bias: Tensor | None) -> list[Tensor]:
    """Query, key and value each by a weight of its own."""
    width, made = xs[0].array.shape[-1], []
    for at, (name, letter, x, weight) in enumerate(zip(("query", "key", "value"), "qkv", xs, weights, strict=True)):
        demand(weight is not None, f"use_separate_proj_weight is True but {letter}_proj_weight is None")
        assert weight is not None
        wanted = width, x.array.shape[-1]
        demand(weight.array.shape == wanted, f"expecting {name} weights shape of {wanted}, but got {weight.shape}")
        made.append(linear(x, weight, None if bias is None else bias[at * width : (at + 1) * width]))
    return made


def of_heads(mask: Tensor, wanted: tuple[int, int], heads: int) -> Tensor:
    """An `attn_mask` with an axis for the heads of all samples in front."""
    ndim, shape = mask.array.ndim, mask.array.shape
    correct = wanted if ndim == 2 else (heads, *wanted)
    if shape != correct:
        raise RuntimeError(f"The shape of the {ndim}D attn_mask is {mask.shape}, but should be {correct}.")
    return unsqueeze(mask, 0) if ndim == 2 else mask


def checked_static(what: str, given: Tensor, heads: int, size: int) -> Tensor:
    for axis, wanted in ((0, heads), (2, size)):
        demand(given.array.shape[axis] == wanted, f"expecting {what}.size({axis}) of {wanted}, but got {given.array.shape[axis]}")
    return given


def zeros_like(x: Tensor, shape: tuple[int, ...]) -> Any:
    return namespace_of[type(x.array)].zeros(shape, dtype=x.array.dtype)


def widened(mask: Tensor | None, more: int) -> Tensor | None:
    """A mask with `more` columns that allow everything."""
    return mask if mask is None or not more else cat([mask, constant(zeros_like(mask, (*mask.array.shape[:-1], more)))], -1)


def merged(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, keys: int) -> Tensor | None:
    """Both masks in one, (N·heads, L, S) or what broadcasts to it."""
    if padding is None:
        return mask
    for axis, wanted in enumerate((batch, keys)):
        demand(
            padding.array.shape[axis] == wanted,
            f"Expected key_padded_mask.shape[{axis}] to be {wanted}, but got {padding.array.shape[axis]}",
        )
    each = reshape(expand(reshape(padding, batch, 1, 1, keys), batch, heads, 1, keys), batch * heads, 1, keys)
    return each if mask is None else mask + each

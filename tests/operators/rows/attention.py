"""Attention: scaled dot products, and several heads."""

from __future__ import annotations

import numpy as np
from operators.spelling import B, N, V, rows_for

# The node is torch's own only on plain matrices: with axes in front, its matmul folds and expands in steps of its own; where
# all widths are equal, it runs one fused node, which has no second derivatives.
SHAPES = [
    {"q": N(2, 3, 4, 8), "k": N(2, 3, 5, 8), "v": N(2, 3, 5, 6)},
    {"q": N(3, 4, 8), "k": N(3, 5, 8), "v": N(3, 5, 6)},
    {"q": N(4, 3), "k": N(5, 3), "v": N(5, 2)},
]
FUSED = {"q": N(2, 3, 4, 8), "k": N(2, 3, 5, 8), "v": N(2, 3, 5, 8), "f": N(4, 5), "m": B(4, 5)}
S = "F.scaled_dot_product_attention"


def first_order(call):
    return f"y = {call}; (y.detach(), torch.autograd.grad((y * y.detach().cos()).sum(), (q, k, v)))"


E, HEADS, L, KEYS, BATCH = 8, 2, 3, 4, 2
LAYER = {
    "q": N(L, BATCH, E),
    "k": N(KEYS, BATCH, E),
    "v": N(KEYS, BATCH, E),
    "w": N(3 * E, E),
    "b": N(3 * E),
    "o": N(E, E),
    "c": N(E),
}
UNBATCHED = LAYER | {"q": N(L, E), "k": N(KEYS, E), "v": N(KEYS, E)}
CAUSAL = V(np.triu(np.ones((L, KEYS)), 1).tolist(), bool)


def mha(
    head="q, k, v", tail="", embed=E, heads=HEADS, weight="w", bias="b", bias_k=None, bias_v=None, zero=False, p=0.0, out="o, c"
):
    return (
        f"F.multi_head_attention_forward({head}, {embed}, {heads}, {weight}, {bias}, {bias_k}, {bias_v}, {zero}, {p}, {out}"
        f"{', ' if tail else ''}{tail})"
    )


ROWS = [
    *rows_for(
        SHAPES,
        f"""
        ~ {S}(q, k, v)
        ~ {S}(q, k, v, is_causal=True)
        ~ {S}(q, k, v, scale=0.3)
        ~ {S}(query=q, key=k, value=v, scale=2.0)
        ~ torch.manual_seed(3); {S}(q, k, v, dropout_p=0.4)
        ~ torch.manual_seed(3); {S}(q, k, v, None, 0.4, True)
        ~ {S}(q * 100, k, v)
        torch.autograd.grad({S}(q[..., :0, :], k, v).sum(), (q, k, v))
    """,
    ),
    *rows_for(
        {"q": N(4, 3), "k": N(5, 3), "v": N(5, 2), "f": N(4, 5), "m": B(4, 5)},
        f"""
        {S}(q, k, v)
        {S}(q, k, v, is_causal=True)
        {S}(q, k, v, f.detach())
        {S}(q, k, v, attn_mask=f)
        {S}(q, k, v, m | torch.eye(4, 5).bool())
        {S}(q, k, v, m & (torch.arange(4) > 1)[:, None])
        {S}(q, k, v, torch.zeros(4, 5, dtype=torch.bool))
        {S}(q, k, v, torch.full((4, 5), -inf, dtype=q.dtype))
        {S}(q, k, v, m[0] | True)
    """,
    ),
    *rows_for(
        [SHAPES[0] | {"f": N(4, 5), "m": B(2, 1, 4, 5)}, SHAPES[0] | {"f": N(2, 3, 4, 5), "m": B(4, 5)}],
        f"""
        ~ {S}(q, k, v, f)
        ~ {S}(q, k, v, f.detach())
        ~ {S}(q, k, v, m | torch.eye(4, 5).bool())
        ~ {S}(q, k[:, :1], v[:, :1])
        ~ {S}(q, k[0], v[0])
        ~ {S}(torch.cat([q, q * 2], 1), k, v, enable_gqa=True)
        ~ {S}(q[0], k[0, :1], v[0, :1], enable_gqa=True)
    """,
    ),
    *rows_for(
        FUSED,
        [
            first_order(f"{S}({tail})")
            for tail in (
                "q, k, v",
                "q, k, v, is_causal=True",
                "q, k, v, f.detach()",
                "q, k, v, m | torch.eye(4, 5).bool()",
                "q, k, v, scale=0.5",
                "q, k, v, m & (torch.arange(4) > 1)[:, None]",
                "q * 50, k, v",
            )
        ],
    ),
    *rows_for(
        FUSED,
        f"""
        {S}(q.detach(), k.detach(), v.detach())
        {S}(q[0, 0, 0], k, v)
        {S}(q, k, v, f, is_causal=True)
        {S}(q, k, v, m.long())
        {S}(q, k, v, f.half())
        {S}(q, k, v, f[:, :4])
        {S}(q, k, v, dropout_p=2.0)
        {S}(q, k[..., :7], v)
        {S}(q, k[:, :2], v[:, :2])
        {S}(q[:, :2], k, v, enable_gqa=True)
        {S}(q.half(), k, v)
        {S}(q, k, v, None, 0.0, False, 0.3)
        {S}([1.0], k, v)
        {S}(q, None, v)
    """,
    ),
    # ---------------------------------------------------------------------------------------------------- several heads
    *rows_for(
        LAYER
        | {
            "s": CAUSAL,
            "p": V([[0, 0, 1, 1], [0, 0, 0, 1]], bool),
            "f": N(L, KEYS),
            "h": N(BATCH * HEADS, L, KEYS),
            "x": N(1, 1, E),
            "y": N(1, 1, E),
        },
        [
            mha(),
            mha(tail="average_attn_weights=False"),
            mha(bias=None, out="o, None"),
            mha(tail="attn_mask=s"),
            mha(tail="attn_mask=f.detach()"),
            mha(tail="attn_mask=f"),
            mha(tail="attn_mask=h"),
            mha(tail="key_padding_mask=p"),
            mha(tail="key_padding_mask=p, attn_mask=s"),
            mha(tail="key_padding_mask=p, attn_mask=f"),
            mha(tail="is_causal=True, attn_mask=s"),
            mha(bias_k="x", bias_v="y"),
            mha(bias_k="x", bias_v="y", tail="attn_mask=s"),
            mha(zero=True),
            mha(zero=True, tail="key_padding_mask=p, attn_mask=s"),
            mha("q, k, k"),
            mha("q, q, q"),
            f"torch.manual_seed(3); {mha(p=0.5)}",
            mha(p=0.5, tail="training=False"),
            mha(tail="static_k=h[:, :, :4].contiguous()"),
            mha(tail="static_k=h[:3]"),
            mha(embed=9),
            mha(heads=3),
            mha("q, k, q"),
            mha("q[0, 0], k, v"),
            mha("q[:, 0], k, v"),
            mha("q, k[:, 0], v"),
            mha(tail="attn_mask=f[:, :3]"),
            mha(tail="attn_mask=h[:3]"),
            mha(tail="attn_mask=h[None]"),
            mha(tail="attn_mask=f.long()"),
            mha(tail="key_padding_mask=p[:, :3]"),
            mha(tail="key_padding_mask=p[:1]"),
            mha(tail="key_padding_mask=p[0]"),
            mha(tail="is_causal=True"),
            mha(bias_k="x"),
            mha(bias_v="x"),
            mha(weight=None),
            mha(tail="use_separate_proj_weight=True"),
            mha(
                weight=None,
                tail="use_separate_proj_weight=True, q_proj_weight=w[:8], k_proj_weight=w[8:16], v_proj_weight=w[16:]",
            ),
            mha(
                weight=None, tail="use_separate_proj_weight=True, q_proj_weight=w[:8], k_proj_weight=w[:7], v_proj_weight=w[16:]"
            ),
            mha(
                "q, k[..., :5], v[..., :6]",
                weight=None,
                tail="use_separate_proj_weight=True, q_proj_weight=w[:8], k_proj_weight=w[8:16, :5], v_proj_weight=w[16:, :6]",
            ),
        ],
    ),
    # without weights torch runs the fused node: values and first derivatives
    *rows_for(
        LAYER | {"s": CAUSAL, "p": V([[0, 0, 1, 1], [0, 0, 0, 1]], bool), "h": N(BATCH * HEADS, L, KEYS)},
        [
            f"y, n = {mha('q / 8, k, v', tail=tail)}; "
            "(y.detach(), n, torch.autograd.grad((y * y.detach()).sum(), (q, k, v, w, b, o, c)))"
            for tail in (
                "need_weights=False",
                "need_weights=False, attn_mask=s",
                "need_weights=False, attn_mask=s, is_causal=True",
                "need_weights=False, key_padding_mask=p",
                "need_weights=False, key_padding_mask=p, attn_mask=h.detach()",
            )
        ],
    ),
    *rows_for(
        UNBATCHED | {"s": CAUSAL, "p": V([0, 0, 1, 1], bool), "h": N(HEADS, L, KEYS)},
        [
            mha(),
            mha(tail="average_attn_weights=False"),
            mha(tail="attn_mask=s, key_padding_mask=p"),
            mha(tail="attn_mask=h"),
            mha(tail="attn_mask=h[:1]"),
            mha(tail="key_padding_mask=p[None]"),
            mha("q, q, q"),
        ],
    ),
]

"""Normalisation over a batch, over features, over groups of channels."""

from __future__ import annotations

from operators.spelling import N, U, rows_for

STATS = {"m": N(6), "v": U(6), "w": N(6), "b": N(6)}
INPUTS = [{"x": N(4, 6)}, {"x": N(2, 6, 3)}, {"x": N(2, 6, 2, 3)}, {"x": N(2, 6, 2, 1, 2)}]
RUN = "m, v = m.detach(), v.detach(); "


def first_order(call, *leaves):
    """The call, its node and its first derivatives: where torch has no second ones (a bias alone raises; in group_norm even the
    first do), or None where ours are not there (gradients that do not depend on the input)."""
    return f"y = {call}; (y.detach(), y.grad_fn.name(), torch.autograd.grad((y ** 3).sum(), ({', '.join(leaves)},)))"


ROWS = [
    # -------------------------------------------------------------------------------------------------------- batch norm
    *rows_for(
        [
            x | STATS
            for x in [*INPUTS, {"x": N(1, 6)}, {"x": N(1, 6, 1)}, {"x": N(1, 6, 3)}, {"x": N(0, 6)}, {"x": N(6)}, {"x": N()}]
        ],
        [
            RUN + call
            for call in (
                "F.batch_norm(x, None, None, training=True)",
                "F.batch_norm(x, m, v, w, b, True)",
                "F.batch_norm(x, m, v, w, b)",
                first_order("F.batch_norm(x, m, v)", "x"),
                "F.batch_norm(x, m, v, training=True, momentum=0.3); (m, v)",
                "F.batch_norm(x, m, v, training=True, momentum=0); (m, v)",
            )
        ],
    ),
    *rows_for(
        [x | STATS for x in INPUTS[:2]],
        [
            RUN + call
            for call in (
                "F.batch_norm(x, None, None, w, None, True)",
                first_order("F.batch_norm(x, None, None, None, b, True)", "x", "b"),
                "F.batch_norm(x, m, v, w)",
                first_order("F.batch_norm(x, m, v, None, b)", "x", "b"),
                "F.batch_norm(x, m, v, w, b, True, 0.1, 0.01)",
                "F.batch_norm(input=x, running_mean=m, running_var=v, weight=w, bias=b, training=True, momentum=1.0, eps=1e-3); (m, v)",  # noqa: E501
                "F.batch_norm(x, m, v, w, b, training=True); F.batch_norm(x + 1, m, v, w, b, training=True); F.batch_norm(x, m, v, w, b)",  # noqa: E501
                "y = F.batch_norm(x, m, v, w, b, True); (y ** 3).sum().backward(); (y.detach(), x.grad, w.grad, b.grad, m._version)",  # noqa: E501
                "torch.autograd.grad((F.batch_norm(x.detach(), m, v, w, b, True) ** 3).sum(), (w, b))",
                "F.batch_norm(x, m, v, w.detach(), b, True)",
                "F.batch_norm(x.transpose(0, 1).contiguous().transpose(0, 1), m, v, w, b, True)",
                "F.batch_norm(x * 0 + 3, None, None, w, b, True)",
                "F.batch_norm(x, None, None, w, b)",
                "F.batch_norm(x, m, None)",
                "F.batch_norm(x, m, None, training=True)",
                "F.batch_norm(x, m, v, training=True, momentum=None)",
                "F.batch_norm(x, m[:5], v, w, b)",
                "F.batch_norm(x, m, torch.ones(7, dtype=x.dtype), w, b)",
                "F.batch_norm(x, m, v, w[:5], b)",
                "F.batch_norm(x, m, v, w, b[:5], True)",
                "F.batch_norm(x.long(), m, v)",
                "F.batch_norm(x, w, v, training=True)",
                "F.batch_norm(x, m, b)",
                "F.batch_norm(x, m, v, training=True, eps=0.0)",
                "F.batch_norm(x, m, v, training=True, eps=-1.0)",
                "F.batch_norm([1.0], m, v)",
            )
        ],
    ),
    # -------------------------------------------------------------------------------------------------------- layer norm
    *rows_for(
        [
            {"x": N(4, 6), "w": N(6), "b": N(6)},
            {"x": N(6), "w": N(6), "b": N(6)},
            {"x": N(2, 3, 6), "w": N(6), "b": N(6)},
            {"x": N(0, 6), "w": N(6), "b": N(6)},
        ],
        """
        F.layer_norm(x, (6,), w, b)
        F.layer_norm(x, [6])
        F.layer_norm(x, x.shape[-1:], w)
        F.layer_norm(input=x, normalized_shape=(6,), weight=w, bias=b, eps=0.1)
        F.layer_norm(x, x.shape)
        F.rms_norm(x, (6,))
        F.rms_norm(x, [6], w)
        F.rms_norm(input=x, normalized_shape=(6,), weight=w, eps=0.01)
        F.rms_norm(x, x.shape)
    """,
    ),
    *rows_for(
        {"x": N(4, 6), "w": N(6), "b": N(6)},
        [
            first_order("F.layer_norm(x, (6,), None, b)", "x", "b"),
            first_order("F.layer_norm(x.detach(), (6,), w, b)", "w", "b"),
            first_order("F.group_norm(x.detach(), 3, w, b)", "w", "b"),
        ],
    ),
    *rows_for(
        [{"x": N(4, 2, 3), "w": N(2, 3), "b": N(2, 3)}, {"x": N(2, 1, 2, 3), "w": N(2, 3), "b": N(2, 3)}],
        """
        F.layer_norm(x, (2, 3), w, b)
        F.layer_norm(x, (2, 3))
        F.rms_norm(x, (2, 3), w)
        F.layer_norm(x, (2, 3), w.detach(), b)
        F.layer_norm(x * 1e3 + 1e4, (2, 3), w, b)
        y = F.layer_norm(x, (2, 3), w, b); y.sum().backward(); (x.grad, w.grad, b.grad)
    """,
    ),
    *rows_for(
        {"x": N(4, 6), "w": N(6), "b": N(6), "o": N(4, 1), "z": N(4, 0), "e": N()},
        """
        F.layer_norm(o, (1,))
        F.layer_norm(z, (0,))
        F.layer_norm(x.T, (4,))
        F.layer_norm(x, 6)
        F.layer_norm(x, 6.0)
        F.layer_norm(x, (5,))
        F.layer_norm(x, (6, 4))
        F.layer_norm(x, (2, 4, 6))
        F.layer_norm(x, (6,), w[:5])
        F.layer_norm(x, (6,), w, b[:5])
        F.layer_norm(x, (6,), x)
        F.layer_norm(x, ())
        F.layer_norm(e, ())
        F.layer_norm(x.long(), (6,))
        F.layer_norm([1.0], (1,))
        F.rms_norm(x, (5,))
        F.rms_norm(x, 6)
        F.rms_norm(x, (6,), w[:5])
        F.rms_norm(x, ())
        F.rms_norm(x.long(), (6,))
        F.rms_norm(x * 0, (6,))
        F.layer_norm(x, (6,), w, b)[1:].sum(0)
    """,
    ),
    # -------------------------------------------------------------------------------------------------------- group norm
    *rows_for(
        [x | {"w": N(6), "b": N(6)} for x in [*INPUTS, {"x": N(0, 6, 3)}, {"x": N(1, 6)}, {"x": N(6)}, {"x": N()}]],
        """
        F.group_norm(x, 2, w, b)
        F.group_norm(x, 1)
        F.group_norm(x, 2, w)
        F.group_norm(input=x, num_groups=2, weight=w, bias=b, eps=0.1)
        F.group_norm(x, 4)
        F.group_norm(x, 0)
        F.group_norm(x, -1)
        F.group_norm(x, 2, w[:5])
        F.group_norm(x, 2, w.view(2, 3))
        F.group_norm(x, 2, w, b[:5])
    """,
    ),
    *rows_for(
        {"x": N(2, 6, 3), "w": N(6), "b": N(6)},
        """
        F.group_norm(x.long(), 3)
        F.group_norm(x, 3, w.detach(), b)
        F.group_norm(x, 6, w, b)
        F.group_norm(x.transpose(0, 2), 3)
        y = F.group_norm(x, 2, w, b); y.sum().backward(); (x.grad, w.grad, b.grad)
    """,
    ),
    # ----------------------------------------------------------------------------------------------------- instance norm
    *rows_for(
        [x | STATS for x in [*INPUTS, {"x": N(2, 6, 1)}, {"x": N(6)}]],
        [
            RUN + call
            for call in (
                "F.instance_norm(x)",
                "F.instance_norm(x, weight=w, bias=b)",
                "F.instance_norm(x, m, v, w, b); (m, v)",
                first_order("F.instance_norm(x, m, v, use_input_stats=False)", "x"),
                "F.instance_norm(x, m, v, w, b, False)",
                "F.instance_norm(x, m, v, w, b, True, 0.3, 0.1)",
            )
        ],
    ),
    *rows_for(
        {"x": N(2, 6, 3)} | STATS,
        [
            RUN + call
            for call in (
                "F.instance_norm(x, use_input_stats=False)",
                "F.instance_norm(x, None, None, w[:5])",
                "F.instance_norm(x, m[:5], v[:5])",
                "F.instance_norm(x, m)",
                "F.instance_norm(x.long())",
                "F.instance_norm(x, m, v, w, b); F.instance_norm(x, m, v); (m, v)",
            )
        ],
    ),
    # -------------------------------------------------------------------------------------------- local response and RMS
    *rows_for(
        [{"x": N(2, 6, 3)}, {"x": N(2, 6, 3, 2)}, {"x": N(1, 3, 2, 1, 2)}, {"x": N(0, 6, 3)}, {"x": N(4, 6)}],
        """
        F.local_response_norm(x, 3)
        F.local_response_norm(x, 2, alpha=0.5, beta=0.5, k=2.0)
        F.local_response_norm(x, 9, 1.0)
    """,
    ),
    *rows_for(
        {"x": N(2, 6, 3)},
        """
        F.local_response_norm(x, 0)
    """,
    ),
]

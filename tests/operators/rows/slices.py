"""Slices of an axis combined at places, sums to a size, and parts that are no views."""

from __future__ import annotations

from itertools import product

from operators.spelling import I, N, V, rows_for

# (torch's second derivative of "prod" without the tensor's own numbers is wrong, and so are its extremes' gradients at ties with
# numbers that are left out: see tests/test_edges.py.)
KINDS = list(product(("prod", "mean", "amax", "amin"), (True, False)))

ROWS = [
    *rows_for(
        {"x": N(4, 3), "s": N(5, 3), "i": V([0, 2, 0, 3, 2], "int64")},
        [f"torch.index_reduce(x, 0, i, s, {kind!r}, include_self={own})" for kind, own in KINDS if kind != "prod" or own],
    ),
    *rows_for(
        {"x": N(2, 4, 3), "s": N(2, 2, 3), "i": V([3, 3], "int64")},
        [f"x.index_reduce(1, i, s, {kind!r}, include_self={own})" for kind, own in KINDS if kind != "prod" or own],
    ),
    *rows_for(
        {"x": V([[2.0, 1.0], [0.0, -1.0]]), "s": V([[2.0, 1.0], [2.0, 0.0], [0.0, -1.0]]), "i": V([0, 0, 1], "int64")},
        [f"x.index_reduce(-2, i, s, {kind!r})" for kind, own in KINDS if own],
    ),
    *rows_for(
        {"n": I(4, 2), "m": I(3, 2), "i": V([0, 0, 1], "int32")},
        [f"torch.index_reduce(n, 0, i, m, {kind!r}, include_self={own})" for kind, own in KINDS],
    ),
    *rows_for(
        {"x": N(3, 2), "s": N(2, 2), "z": N(), "i": V([0, 2], "int64")},
        """
        y = x * 1; y.index_reduce_(0, i, s, 'mean'); y
        y = x * 1; y.index_reduce_(0, i, s, 'amax', include_self=False); y
        torch.index_reduce(z, 0, torch.tensor(0), z, 'prod')
        x.index_reduce(0, i[:0], s[:0], 'amax')
        x.index_reduce(0, i, s, 'sum')
        x.index_reduce(0, i + 1, s, 'prod')
        x.index_reduce(0, i, s[:1], 'prod')
        x.index_reduce(0, i, s[:, :1], 'prod')
        x.index_reduce(0, i, s.double().float().half(), 'prod')
        x.index_reduce(0, i[None], s, 'prod')
        x.index_reduce(0, i.float(), s, 'prod')
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 4), "n": I(2, 3)},
        """
        x.sum_to_size(4)
        x.sum_to_size(3, 1)
        x.sum_to_size((1, 3, 4))
        x.sum_to_size(2, 1, 4)
        x.sum_to_size([2, 3, 4])
        x.sum_to_size(())
        x.sum_to_size(1)
        x.sum_to_size(1, 1, 1)
        n.sum_to_size(1, 3)
        x.sum_to_size(2, 4)
        x.sum_to_size(1, 2, 3, 4)
        x.sum_to_size(0)
    """,
    ),
    *rows_for(
        {"x": N(6, 2)},
        """
        torch.unsafe_split(x, 4)
        torch.unsafe_chunk(x, 3)
        x.unsafe_split(2, 1)
        x.unsafe_split_with_sizes([1, 5])
        x.unsafe_chunk(4)
        [p._is_view() for p in x.unsafe_chunk(2)]
        y = x * 1; a, b = y.unsafe_split(3); a.mul_(2); a, b
        y = x * 1; a, b = y.unsafe_chunk(2); a.mul_(b); a
        y = x.detach().clone(); a, b = y.unsafe_chunk(2); a.zero_(); y, y._version, a._version
        torch.unsafe_chunk(x, 0)
        torch.unsafe_split(x[0, 0], 1)
        x.unsafe_split_with_sizes([1, 2])
    """,
    ),
]

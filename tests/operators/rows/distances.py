"""Distances and similarities."""

from __future__ import annotations

from operators.spelling import I, N, U, V, rows_for


def with_gradient(*lines):
    """The lines, each with its gradient: of these torch has no second derivatives."""
    return [f"d = {line}; d.backward(torch.ones_like(d)); [d.detach(), x.grad, d.grad_fn.name()]" for line in lines]


ROWS = [
    *rows_for(
        [
            {"x": N(3, 4), "y": N(3, 4)},
            {"x": N(2, 3, 2), "y": N(2, 3, 2)},
            {"x": N(3, 4), "y": N(4)},
            {"x": N(0, 3), "y": N(0, 3)},
        ],
        """
        F.cosine_similarity(x, y)
        F.cosine_similarity(x, y, dim=-1)
        F.cosine_similarity(x1=x, x2=y, dim=0, eps=1e-3)
        torch.cosine_similarity(x, y, -1)
        F.pairwise_distance(x, y)
        F.pairwise_distance(x, y, p=1)
        F.pairwise_distance(x, y, 3, 1e-3, True)
        F.pairwise_distance(x, y, p=inf, keepdim=True)
        torch.pairwise_distance(x, y, eps=0)
        F.normalize(x)
        F.normalize(x, dim=0)
        F.normalize(x, p=1, dim=-1)
        F.normalize(x, 3.0, 1)
        F.normalize(x, p=inf)
        F.normalize(x, dim=(0, 1))
        F.normalize(x, eps=100)
        F.normalize(x.detach(), out=torch.empty(0, dtype=x.dtype))
        F.normalize(x, out=torch.empty(0, dtype=x.dtype))
    """,
    ),
    *rows_for(
        [{"x": N(4), "y": N(4)}, {"x": V([0.0, 0, 0, 0]), "y": N(4)}, {"x": V([1e-9, 0, 0, 0]), "y": V([1.0, 2, 2, 0])}],
        """
        F.cosine_similarity(x, y, 0)
        F.cosine_similarity(x, y, dim=-1)
        F.pairwise_distance(x, y)
        F.pairwise_distance(x, y, keepdim=True)
        F.normalize(x, dim=0)
        F.normalize(x, dim=-1, eps=1e-3)
    """,
    ),
    *rows_for({"x": N(0, 3)}, "F.pdist(x.detach())"),  # the gradient crashes torch
    *rows_for(
        [{"x": N(4, 3)}, {"x": N(1, 3)}], with_gradient("F.pdist(x)", "F.pdist(x, 1)", "F.pdist(x, p=3)", "torch.pdist(x, p=inf)")
    ),
    *rows_for(
        [
            {"x": N(4, 3), "y": N(2, 3)},
            {"x": N(2, 4, 3), "y": N(2, 2, 3)},
            {"x": N(2, 1, 4, 3), "y": N(3, 5, 3)},
            {"x": N(0, 3), "y": N(2, 3)},
        ],
        with_gradient(
            "torch.cdist(x, y)",
            "torch.cdist(x, y, p=1)",
            "torch.cdist(x, y, 3.0)",
            "torch.cdist(x, y, p=inf)",
            'torch.cdist(x1=x, x2=y, compute_mode="donot_use_mm_for_euclid_dist")',
        ),
    ),
    *rows_for(
        [{"x": N(4, 3), "y": N(2, 3)}, {"x": N(2, 4, 3), "y": N(2, 2, 3)}, {"x": N(2, 1, 4, 3), "y": N(3, 5, 3)}],
        'torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist")',
    ),
    *rows_for({"x": N(30, 3), "y": N(27, 3)}, with_gradient("torch.cdist(x, y)")),
    *rows_for(
        {"x": N(30, 3), "y": N(27, 3)},
        """
        torch.cdist(x, y.detach())
        torch.cdist(x.detach(), y)
    """,
    ),
    # rows that coincide, and differences of 0
    *rows_for(
        {"x": V([[0.0, 1], [2, 3], [0, 1]])},
        """
        d = torch.cdist(x, x.detach()); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = torch.cdist(x, x.detach(), p=1.0); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = torch.cdist(x, x.detach(), p=3.0); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = F.pdist(x); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = F.pdist(x, 1); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = F.pairwise_distance(x, x.detach(), eps=0.0); d.backward(torch.ones_like(d)); [d.detach(), x.grad]
        d = torch.cdist(x.detach(), x.detach(), p=0); d
        d = F.pdist(x.detach(), 0); d
    """,
    ),
    *rows_for(
        [{"x": N(3, 4), "y": N(5)}, {"x": I(3, 4), "y": I(3, 4)}, {"x": N(3, 4), "y": I(3, 4)}],
        with_gradient("F.pdist(x)", "torch.cdist(x, y)"),
    ),
    *rows_for(
        [{"x": N(3, 4), "y": N(5)}, {"x": I(3, 4), "y": I(3, 4)}, {"x": N(3, 4), "y": I(3, 4)}],
        """
        F.cosine_similarity(x, y)
        F.pairwise_distance(x, y)
        F.normalize(x)
    """,
    ),
    *rows_for({"x": N(3, 4), "y": U(3, 2)}, with_gradient("torch.cdist(x, y)")),
    *rows_for(
        {"x": N(3, 4), "y": U(3, 2)},
        """
        F.cosine_similarity(x[0], x[1])
        F.normalize(x[0])
        F.pdist(x[0])
        torch.cdist(x[0], x)
        torch.cdist(x, x, p=-1)
        torch.cdist(x, x, compute_mode="fast")
        torch.cdist(x, x.half())
        torch.cdist(x.expand(2, 3, 4), x.expand(3, 3, 4))
        F.pdist(x, -1)
        F.normalize(x, dim=5)
        F.cosine_similarity(x, x, dim=5)
        F.cosine_similarity(x, 2.0)
        F.pairwise_distance(x, y)
    """,
    ),
]

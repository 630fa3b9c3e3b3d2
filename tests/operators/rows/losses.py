"""Losses of `torch.nn.functional`, but for those over class indices."""

from __future__ import annotations

from operators.spelling import N, U, V, rows_for

PAIR = [{"x": N(3, 4), "y": N(3, 4)}, {"x": N(), "y": N()}, {"x": N(0, 3), "y": N(0, 3)}, {"x": N(2, 3, 2), "y": N(2, 3, 2)}]

ROWS = [
    *rows_for(
        PAIR,
        """
        F.mse_loss(x, y)
        F.mse_loss(x, y.detach())
        F.mse_loss(x, y, reduction="sum")
        F.mse_loss(x, y, reduction="none")
        F.mse_loss(input=x, target=y, weight=y.detach().abs())
        F.mse_loss(x, y, reduction="sum", weight=y)
        F.mse_loss(x, y, reduction="none", weight=y)
        F.l1_loss(x, y)
        F.l1_loss(x, y, reduction="sum")
        F.l1_loss(x, y, reduction="none")
        F.l1_loss(x, y, weight=y.detach().abs())
        F.smooth_l1_loss(x, y)
        F.smooth_l1_loss(x, y, beta=0.3)
        F.smooth_l1_loss(x, y, reduction="sum", beta=2)
        F.smooth_l1_loss(x, y, reduction="none")
        F.smooth_l1_loss(x, y, beta=0.0)
        F.huber_loss(x, y)
        F.huber_loss(x, y, delta=0.3)
        F.huber_loss(x, y, "sum", 2)
        F.huber_loss(x, y, reduction="none", delta=0.5)
        F.huber_loss(x, y, weight=y.detach().abs())
        F.huber_loss(x, y, "none", 0.7, y.detach().abs())
        F.binary_cross_entropy_with_logits(x, y)
        F.binary_cross_entropy_with_logits(x, y, reduction="sum")
        F.binary_cross_entropy_with_logits(x, y, reduction="none")
        F.binary_cross_entropy_with_logits(x, y, weight=y.detach().abs())
        w = torch.tensor(2.0, dtype=x.dtype); F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=w + 1)
        F.binary_cross_entropy_with_logits(x, y, pos_weight=y.detach().abs(), reduction="none")
        F.poisson_nll_loss(x, y)
        F.poisson_nll_loss(x, y, reduction="sum")
        F.poisson_nll_loss(x.abs(), y.abs() * 3, log_input=False, full=True)
        F.poisson_nll_loss(x, y.abs() * 3, full=True, reduction="none")
        F.gaussian_nll_loss(x, y, x.abs())
        F.gaussian_nll_loss(x, y, x.detach().abs(), full=True, reduction="sum")
        F.gaussian_nll_loss(x, y, x.detach().abs(), eps=0.5, reduction="none")
        F.gaussian_nll_loss(x, y, 1.5)
        F.kl_div(x, y.abs())
        F.kl_div(x, y.abs(), reduction="sum")
        F.kl_div(x, y.abs(), reduction="none")
        F.kl_div(x, y, reduction="batchmean", log_target=True)
        F.kl_div(x, y.detach().abs(), reduction="batchmean")
        F.kl_div(x, y, log_target=True, reduction="none")
        F.hinge_embedding_loss(x, y.detach().sign())
        F.hinge_embedding_loss(x, y.detach().sign(), margin=0.3, reduction="none")
        F.hinge_embedding_loss(x, y.detach().sign(), 2, reduction="sum")
        F.margin_ranking_loss(x, y, (x * y).detach().sign())
        F.margin_ranking_loss(x, y, (x * y).detach().sign(), margin=0.5, reduction="sum")
        F.margin_ranking_loss(x, y, (x * y).detach().sign(), 0.5, reduction="none")
        F.soft_margin_loss(x, y.detach().sign())
        F.soft_margin_loss(x, y.detach().sign(), reduction="sum")
        F.soft_margin_loss(x, y.detach().sign(), reduction="none")
    """,
    ),
    *rows_for(
        [{"p": U(3, 4), "y": U(3, 4)}, {"p": U(), "y": U()}, {"p": U(0, 2), "y": U(0, 2)}],
        """
        F.binary_cross_entropy(p, y)
        F.binary_cross_entropy(p, y.detach(), reduction="sum")
        F.binary_cross_entropy(p, y, reduction="none")
        F.binary_cross_entropy(p, y, weight=p.detach())
        F.binary_cross_entropy(p, y, p.detach(), reduction="none")
    """,
    ),
    *rows_for(
        {"p": U(3, 4), "y": U(3, 4), "w": U(4)},
        """
        F.binary_cross_entropy(p, y, w.detach())
        F.binary_cross_entropy(p, y, w)
        F.binary_cross_entropy(p, y, w.detach()[:3])
        F.binary_cross_entropy(p, y, w.detach().expand(2, 3, 4))
        F.binary_cross_entropy(p * 3, y)
        F.binary_cross_entropy(p, y * 3)
        F.binary_cross_entropy(p, y[0])
        F.binary_cross_entropy(p, y.double().float().half())
        F.binary_cross_entropy(p, y > 0.5)
        F.binary_cross_entropy(p * nan, y)
        F.binary_cross_entropy(p, y, reduction="average")
        F.binary_cross_entropy_with_logits(p, y, w.detach())
        F.binary_cross_entropy_with_logits(p, y, w)
        F.binary_cross_entropy_with_logits(p, y, pos_weight=w)
        F.binary_cross_entropy_with_logits(p, y, pos_weight=w.detach())
        F.binary_cross_entropy_with_logits(p, y, w.detach(), pos_weight=w.detach()[:1])
        F.binary_cross_entropy_with_logits(p, y, w.detach()[:3])
        F.binary_cross_entropy_with_logits(p, y, pos_weight=w.detach()[:3])
        F.binary_cross_entropy_with_logits(p, y, w.detach().expand(2, 3, 4))
        F.binary_cross_entropy_with_logits(p, y[0])
        F.binary_cross_entropy_with_logits(p, (y > 0.5).long())
        F.binary_cross_entropy_with_logits(p, (y > 0.5).to(p.dtype))
        F.binary_cross_entropy_with_logits(p, y, reduction="average")
        F.multilabel_soft_margin_loss(p, y)
        F.multilabel_soft_margin_loss(p, y.detach(), w)
        F.multilabel_soft_margin_loss(p, y, weight=w, reduction="none")
        F.multilabel_soft_margin_loss(p, y, reduction="sum")
        F.multilabel_soft_margin_loss(p[0], y[0])
        F.multilabel_soft_margin_loss(p, y, reduction="average")
        F.gaussian_nll_loss(p, y, w)
        F.gaussian_nll_loss(p, y, p[:, 0])
        F.gaussian_nll_loss(p, y, p[:, :1])
        F.gaussian_nll_loss(p, y, -p)
        F.gaussian_nll_loss(p, y, -1.0)
        F.gaussian_nll_loss(p, y, p, reduction="average")
        F.soft_margin_loss(p, y)
        F.soft_margin_loss(p, torch.tensor([1, -1, 1, 1]))
    """,
    ),
    # At the bends, and where a logarithm is not finite. The second derivative of the cross entropy is left out at p = 0 and 1: it
    # is of the order 1e24.
    *rows_for(
        {"x": V([0.0, 1, -1, 0.5, -0.5, 3, 0.25]), "y": V([0.0] * 7)},
        """
        F.l1_loss(x, y, reduction="none")
        F.smooth_l1_loss(x, y, reduction="sum")
        F.smooth_l1_loss(x, y, reduction="none", beta=0.5)
        F.huber_loss(x, y, reduction="sum")
        F.huber_loss(x, y, reduction="none", delta=0.5)
        F.hinge_embedding_loss(x, torch.tensor([-1, -1, -1, 1, 1, 1, 0]), reduction="none")
        F.margin_ranking_loss(x, y, torch.tensor([1, 1, 1, -1, 1, 1, -1]), margin=1, reduction="none")
    """,
    ),
    *rows_for(
        {"x": V([0.0, 100, -100, 1000, -1000, float("inf"), 2]), "y": V([0.0, 1, 1, 0, 0, 0, 1])},
        """
        F.binary_cross_entropy_with_logits(x, y.detach(), reduction="none")
        F.mse_loss(x, y, reduction="none")
        F.l1_loss(x, y)
        F.huber_loss(x, y, reduction="none")
    """,
    ),
    *rows_for(
        {"p": V([0.0, 1, 0.25, 0, 1, 0.75]), "y": V([0.0, 1, 0.5, 1, 0, 1])},
        """
        # in float32: torch keeps the denominator from 0 by a 1e-12 in float32 always
        p = p.detach().float().requires_grad_(); z = F.binary_cross_entropy(p, y.float()); z.backward(); [z.detach(), p.grad]
        F.kl_div(p.detach(), y.detach(), reduction="none")
        z = F.kl_div(p, y.detach(), reduction="none"); z.backward(torch.ones_like(z)); [z.detach(), p.grad]
    """,
    ),
    *rows_for(
        [{"x": N(3, 4), "y": N(4)}, {"x": N(3, 1), "y": N(3)}, {"x": N(2, 3), "y": N()}, {"x": N(3, 4), "y": N(3)}],
        """
        F.mse_loss(x, y)
        F.mse_loss(x, y, reduction="none")
        F.l1_loss(x, y)
        F.smooth_l1_loss(x, y)
        F.huber_loss(x, y)
        F.mse_loss(x, y, weight=y)
        F.kl_div(x, y.detach().abs(), reduction="sum")
        F.poisson_nll_loss(x, y)
        F.hinge_embedding_loss(x, y.detach())
        F.margin_ranking_loss(x, x, y)
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "y": N(3, 4)},
        """
        F.mse_loss(x, y, size_average=False)
        F.mse_loss(x, y, reduce=False)
        F.mse_loss(x, y, True, True)
        F.mse_loss(x, y, False, False)
        F.l1_loss(x, y, size_average=True)
        F.smooth_l1_loss(x, y, reduce=False)
        F.soft_margin_loss(x, y.detach(), size_average=False)
        F.hinge_embedding_loss(x, y, 1.0, False)
        F.margin_ranking_loss(x, y, y, 0, False)
        F.kl_div(x, y.detach().abs(), False)
        F.poisson_nll_loss(x, y, reduce=False)
        F.multilabel_soft_margin_loss(x, y, None, False)
        F.binary_cross_entropy_with_logits(x, y, None, None, False)
        F.mse_loss(x, y, reduction="elementwise_mean")
        F.mse_loss(x, y, reduction="average")
        F.mse_loss(x, y, reduction="average", weight=y)
        F.l1_loss(x, y, reduction="average")
        F.smooth_l1_loss(x, y, reduction="average")
        F.huber_loss(x, y, reduction="average")
        F.huber_loss(x, y, reduction="average", weight=y)
        F.kl_div(x, y, reduction="average")
        F.poisson_nll_loss(x, y, reduction="average")
        F.hinge_embedding_loss(x, y, reduction="average")
        F.margin_ranking_loss(x, y, y, reduction="average")
        F.soft_margin_loss(x, y, reduction="average")
        F.smooth_l1_loss(x, y, beta=-1)
        F.huber_loss(x, y, delta=0)
        F.huber_loss(x, y, delta=-1.5)
        F.mse_loss(x, y.double())
        F.mse_loss(x, y.long())
        F.l1_loss(x, y.long())
        F.huber_loss(x.detach(), y.long())
        F.smooth_l1_loss(x, y.long())
        F.mse_loss(x.long(), y.long())
        F.l1_loss(x.long(), y.long())
        F.l1_loss(x.long(), y.long(), reduction="sum")
        F.huber_loss(x.long(), y.long())
        F.smooth_l1_loss(x.long(), y.long())
        F.mse_loss(x > 0, y > 0)
        F.kl_div(x, y.long(), reduction="sum")
        F.kl_div(x, y.double(), reduction="sum", log_target=True)
        F.poisson_nll_loss(x, y.long())
        F.margin_ranking_loss(x, y, y[0])
        F.mse_loss(x, y, weight=y[0])
        F.huber_loss(x, y, weight=y[0])
        F.l1_loss(x, y, weight=y[0])
        y = x * 2; z = F.mse_loss(y, x.detach()); y += 1; z.backward()
        F.mse_loss(x, y).grad_fn.next_functions[0][0] is None
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "y": N(3, 4), "t": V([1, -1, 1], "int64")},
        """
        F.cosine_embedding_loss(x, y, t)
        F.cosine_embedding_loss(x, y, t, margin=0.2, reduction="sum")
        F.cosine_embedding_loss(x, y, t, 0.1, reduction="none")
        F.cosine_embedding_loss(x, y, t.to(x.dtype))
        F.cosine_embedding_loss(x[0], y[0], t[1])
        F.cosine_embedding_loss(x[0], y[0], t[1], reduction="none")
        F.cosine_embedding_loss(x, y, t * 0)
        F.cosine_embedding_loss(x, y, t, size_average=False)
        F.cosine_embedding_loss(x, y, t[:, None])
        F.cosine_embedding_loss(x[0], y[0], t[:1])
        F.cosine_embedding_loss(x, y[0], t)
        F.cosine_embedding_loss(x, y, t, reduction="average")
    """,
    ),
    *rows_for(
        {"a": N(3, 4), "p": N(3, 4), "n": N(3, 4)},
        """
        F.triplet_margin_loss(a, p, n)
        F.triplet_margin_loss(a, p, n, margin=0.3, p=1)
        F.triplet_margin_loss(a, p, n, 2, p=3, reduction="sum")
        F.triplet_margin_loss(a, p, n, margin=5, swap=True, reduction="none")
        F.triplet_margin_loss(a, p, n, eps=0.1)
        F.triplet_margin_loss(a[0], p[0], n[0])
        F.triplet_margin_loss(a, p, n, size_average=False)
        F.triplet_margin_loss(a, p, n, margin=0)
        F.triplet_margin_loss(a, p[0], n)
        F.triplet_margin_loss(a, p, n, reduction="average")
        F.triplet_margin_with_distance_loss(a, p, n)
        F.triplet_margin_with_distance_loss(a, p, n, swap=True, margin=4, reduction="sum")
        F.triplet_margin_with_distance_loss(a, p, n, distance_function=lambda u, v: (u - v).abs().sum(-1), reduction="none")
        F.triplet_margin_with_distance_loss(a, p, n, margin=-1.0)
        F.triplet_margin_with_distance_loss(a, p, n[0])
        F.triplet_margin_with_distance_loss(a, p, n, reduction="average")
    """,
    ),
]

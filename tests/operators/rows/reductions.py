"""Sums, products, means, spreads, norms, extremes, softmax."""

from __future__ import annotations

from operators.spelling import B, I, N, U, V, rows_for

NAN, INF = float("nan"), float("inf")
ANY_DIM = ["sum", "mean", "nansum", "nanmean", "std", "var", "amax", "amin"]
AXES = "", "0", "-1", "(0, 2)", "[1, -1]", "1, keepdim=True", "dim=-2", "axis=0", "axis=(0, 1), keepdims=True", "()"
EMPTY = ["sum", "mean", "prod", "nansum", "nanmean", "all", "any", "amax", "amin", "max", "min", "argmax", "argmin"]

ROWS = [
    # Torch's gradient of a spread over () is not that of its value, the spread over everything.
    *rows_for(
        {"x": N(2, 3, 4)},
        [f"x.{name}({axes}){'.detach()' * (axes == '()' and name in ('std', 'var'))}" for name in ANY_DIM for axes in AXES],
    ),
    *rows_for(
        {"x": N(2, 3, 4)},
        """
        torch.sum(x, (0, 1), True)
        torch.sum(input=x, dim=1)
        torch.sum(x, dtype=torch.float64)
        torch.sum(x.detach(), dtype=torch.int32)
        torch.sum(x.detach(), 1, out=torch.empty(2, 4, dtype=x.dtype))
        torch.sum(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.sum(x, 1, out=torch.empty(0, dtype=x.dtype))
        torch.mean(x, 0, dtype=torch.float64)
        torch.mean(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        x.sum(3)
        x.sum(-4)
        x.sum((0, 0))
        x.mean((1, -2))
        x.prod()
        x.prod(1)
        x.prod(-1, keepdim=True)
        x.prod(axis=0)
        torch.prod(x, 0, dtype=torch.float64)
        torch.prod(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        x.prod(5)
        x.std(False)
        x.std(0, False)
        x.std(1, unbiased=False, keepdim=True)
        x.var((0, 1), correction=2)
        x.var(dim=1, correction=0, keepdim=True)
        torch.std(x, correction=0.5)
        torch.var(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.std_mean(x)
        torch.std_mean(x, 1)
        torch.var_mean(x, (0, 2), keepdim=True)
        torch.var_mean(x, 1, False)
        torch.var_mean(x, 1, correction=0)
        x[:1].std(0)
        x[:1].var(0)
        x.var(correction=24)
        torch.std_mean(x[:1], 0)
        torch.norm(x)
        torch.norm(x, dim=1)
        torch.norm(x, 2, (0, 1), True)
        torch.norm(x, "fro")
        torch.norm(x, "fro", dim=(0, 2))
        torch.norm(x, dim=-1, keepdim=True)
        torch.norm(x, p=None)
        torch.norm(x, dtype=torch.float64)
        torch.norm(x.detach(), dim=1, out=torch.empty(0, dtype=x.dtype))
        x.norm(p=1)
        x.norm(1, 0)
        x.norm(2.5, (0, 1))
        x.norm(3)
        x.norm(1.5, -1, True)
        x.norm(0.5, 1)
        x.norm(-1.0, 1)
        x.norm(-2, 0)
        x.norm(inf)
        x.norm(-inf, 1)
        x.norm(0, 1).detach()
        x.norm(p="fro", dim=3)
        torch.amax(x, (0, 1))
        torch.amax(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.amin(x, dim=(1, 2), keepdim=True)
        x.amax(3)
        torch.aminmax(x)
        x.aminmax(dim=1)
        torch.aminmax(x, dim=-1, keepdim=True)
        torch.aminmax(x, dim=4)
        torch.max(x)
        x.min()
        torch.max(x, 1)
        torch.max(x, -1, True)
        x.min(dim=0, keepdim=True)
        x.max(axis=2, keepdims=True)
        x.max(1).values
        x.max(1)[1]
        x.min(1).indices
        list(x.max(0))
        torch.max(x.detach(), 1, out=(torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=torch.int64)))
        torch.max(x.detach(), out=torch.empty((), dtype=x.dtype))
        torch.max(x, x * x)
        x.min(x * 0)
        torch.min(x, other=x * 0)
        x.max(3)
        x.min(-4)
        x.argmax()
        x.argmin(1)
        x.argmax(-1, keepdim=True)
        torch.argmin(x, keepdim=True)
        torch.argmax(x, dim=None, keepdim=True)
        torch.argmax(x, axis=0)
        torch.argmax(x.detach(), 1, out=torch.empty(0, dtype=torch.int64))
        x.argmax(3)
        (x > 0).all()
        (x > 0).any(1)
        (x > 0).all((0, 1), keepdim=True)
        (x > 0).any(-1, True)
        (x > 0).any(())
        torch.all(x, dim=2)
        torch.any(x > 5)
        torch.any(x > 0, 1, out=torch.empty(0, dtype=torch.bool))
        (x > 0).sum()
        (x > 0).sum(1)
        (x > 0).sum((0, 2), keepdim=True)
        (x > 0).sum(dtype=torch.float32)
        (x > 0).sum(0, dtype=torch.int32)
        (x > 0).float().mean()
        (x > 0).mean()
        (x > 0).prod()
        (x > 0).prod(1)
        (x > 0).max()
        (x > 0).max(1)
        (x > 0).amax((0, 1))
        (x > 0).argmax()
        (x > 0).std()
        (x > 0).norm()
        (x > 0).logsumexp(1)
        torch.count_nonzero(x)
        x.count_nonzero(1)
        torch.count_nonzero(x > 0, dim=(0, 2))
        torch.count_nonzero(x > 0, -1)
        torch.logsumexp(x, 1)
        x.logsumexp((0, 2))
        x.logsumexp(dim=-1, keepdim=True)
        torch.logsumexp(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.logsumexp(x, 3)
        torch.softmax(x, 1)
        x.softmax(-1)
        x.softmax(dim=0)
        torch.softmax(x, dim=1, dtype=torch.float64)
        torch.softmax(x, 1, torch.float64)
        x.log_softmax(1)
        torch.log_softmax(x, dim=-1)
        torch.log_softmax(x, -1, dtype=torch.float64)
        torch.log_softmax(x, 3)
        torch.softmax(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.renorm(x, 2, 0, 1.0)
        x.renorm(1, 1, 2.5)
        x.renorm(p=3, dim=-1, maxnorm=1)
        (x * 1).renorm_(2, 0, 1.0)
        x.renorm(-1, 0, 1.0)
        x.renorm(2, 4, 1.0)
        x[0, 0].renorm(2, 0, 1.0)
        torch.sum([1.0, 2.0])
        torch.mean(2.0)
        torch.max([1, 2])
        torch.prod([1.0])
        torch.softmax([1.0], 0)
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "y": N(4)},
        """
        torch.dist(x, y)
        x.dist(y, 1)
        torch.dist(x, x * 1, 2)
        torch.dist(x, y, p=inf)
        torch.dist(x, y, 2.5)
        torch.max(x, y)
        x.sum(1) / x.std(1) - x.max(1).values + x.min(0).values[:3]
        ((x - x.mean(0)) / x.std(0, correction=0)).pow(3).mean()
        (x.softmax(1) * x.log_softmax(1)).sum(1)
        x - x.logsumexp(1, keepdim=True)
    """,
    ),
    *rows_for(
        {"x": N()},
        """
        x.sum()
        x.sum(0)
        x.sum(-1, True)
        x.sum(1)
        x.mean(-1)
        x.nansum(0)
        x.prod()
        x.prod(0)
        x.prod(-1, keepdim=True)
        x.std()
        x.var(0)
        x.var(correction=0)
        torch.var_mean(x)
        x.norm()
        x.norm(1, 0)
        x.norm(3)
        x.norm(inf)
        x.amax()
        x.amax(0)
        x.aminmax()
        x.aminmax(dim=0)
        x.max()
        x.max(0)
        x.min(-1, keepdim=True)
        x.max(1)
        x.argmax()
        x.argmin(0)
        x.argmax(1)
        x.argmax(0, keepdim=True)
        x.all()
        x.any(0)
        x.all(1)
        x.count_nonzero()
        x.count_nonzero(0)
        x.logsumexp(0)
        x.logsumexp(-1, keepdim=True)
        x.softmax(0)
        x.log_softmax(-1)
        x.softmax(1)
        torch.dist(x, x * 2)
    """,
    ),
    *rows_for([{"x": N(0, 3)}, {"x": N(0)}], [f"x.{name}({dim})" for name in EMPTY for dim in ("", "0", "-1")]),
    *rows_for({"x": N(0, 3)}, [f"x.{name}({dim})" for name in ("std", "var") for dim in ("", "0", "-1")]),
    *rows_for(
        {"x": N(0, 3)},
        """
        x.sum((0, 1))
        x.amax((0, 1))
        x.aminmax()
        x.aminmax(dim=0)
        x.aminmax(dim=1)
        x.norm()
        x.norm(dim=0)
        x.norm(inf)
        x.norm(-inf, 0)
        x.norm(inf, 1)
        x.norm(-1.5, 0)
        x.logsumexp(0)
        x.logsumexp(1)
        x.logsumexp((0, 1))
        x.softmax(0)
        x.log_softmax(1)
        x.count_nonzero()
        x.count_nonzero(1)
        torch.dist(x, x)
        x.sum(2)
        (x > 0).sum()
        (x > 0).all(0)
    """,
    ),
    *rows_for(
        [{"i": I(3, 4)}, {"i": V([[3, 0, 7], [1, 250, 7]], "uint8")}, {"i": V([[3, 0, -7], [1, 50, 7]], "int32")}],
        """
        i.sum()
        i.sum(1, keepdim=True)
        i.sum(dtype=torch.float32)
        i.sum(0, dtype=torch.int32)
        torch.sum(i, 1, out=torch.empty(0, dtype=torch.int64))
        i.mean()
        i.mean(dtype=torch.float32)
        i.float().mean(1)
        i.prod()
        i.prod(1)
        i.prod(dtype=torch.float64)
        i.nansum()
        i.nanmean()
        i.std()
        torch.var_mean(i)
        i.norm()
        i.norm(dtype=torch.float64)
        i.max()
        i.min(1)
        i.amax(0)
        i.aminmax()
        i.argmax()
        i.argmin(1)
        i.all()
        i.any(1)
        i.all(dim=0, keepdim=True)
        i.count_nonzero(0)
        i.logsumexp(1)
        i.softmax(1)
        i.softmax(0)
        i.log_softmax(-1)
        i.softmax(1, dtype=torch.float32)
        torch.max(i, i * 0)
    """,
    ),
    *rows_for(
        [
            {"x": V([[2.0, 5.0, 5.0], [5.0, 1.0, 1.0]])},
            {"x": V([[1.0, NAN, 3.0], [NAN, NAN, -2.0]])},
            {"x": V([[INF, -INF, 0.0], [-INF, -INF, -INF], [INF, 1.0, INF]])},
            {"x": V([[0.0, 0.0, 0.0], [0.0, 3.0, -4.0]])},
            {"x": V([[1e3, -1e3, 1e3], [-1e3, -1e3, -2e3]])},
        ],
        """
        x.max()
        x.min()
        x.max(1)
        x.min(0)
        x.amax()
        x.amax(1)
        x.amin(0)
        x.aminmax()
        x.aminmax(dim=1)
        x.argmax()
        x.argmin(1)
        x.argmax(0)
        x.nansum()
        x.nansum(1)
        x.nanmean(0)
        x.prod(1).detach()
        x.mean(1)
        x.std(1)
        x.var(0)
        x.norm()
        x.norm(dim=1)
        x.norm(1, 1).detach()
        x.norm(3, 1)
        x.norm(1.5, 1)
        x.norm(0.5, 1)
        x.norm(inf, 1).detach()
        x.norm(-inf, 0).detach()
        x.softmax(1)
        x.log_softmax(1)
        x.logsumexp(1)
        x.logsumexp((0, 1))
        x.all()
        x.any(1)
        x.count_nonzero(1)
        torch.max(x, x.flip(1))
    """,
    ),
    *rows_for(
        [{"x": V([[2.0, 0.0, 3.0], [4.0, 5.0, 6.0]])}, {"x": V([3.0, 0.0, 2.0, 4.0])}],
        """
        x.prod()
        x.prod(0)
        x.prod(-1, keepdim=True)
        (x * x).prod(-1)
    """,
    ),
    # The sign of NaN is NaN or 0 in torch, whichever loop runs, so the gradients of these norms are compared without one.
    *rows_for(
        [{"x": V([[2.0, 5.0, 5.0], [5.0, 1.0, 1.0]])}, {"x": V([[0.0, 0.0, 0.0], [0.0, 3.0, -4.0]])}],
        """
        x.norm(1, 1)
        x.norm(inf, 1)
        x.norm(-inf, 0)
    """,
    ),
    # The derivative of a product is the product of the others, where torch divides the product by the element: that is NaN
    # next to a NaN or an infinity, so there (above) only values are compared.
    # Torch's product of everything has no second derivative where two factors are 0; along an axis it has.
    *rows_for(
        {"x": V([[0.0, 0.0, 3.0], [0.0, 5.0, 6.0]])},
        """
        x.prod(0)
        x.prod(1)
        (x + 1).prod()
    """,
    ),
    *rows_for(
        {"x": U(5, 1, 3), "b": B(3, 2)},
        """
        x.sum((0, -1))
        x.std(0)
        x.squeeze(1).max(0)
        b.all()
        b.any(0)
        b.sum()
        b.sum(1)
        b.amax(0)
        b.count_nonzero()
        b.prod()
        b.max(1)
        b.aminmax()
    """,
    ),
]

"""Running sums, products and extremes; differences, integrals, slopes, covariances."""

from __future__ import annotations

from operators.spelling import B, I, N, U, V, rows_for

NAN, INF = float("nan"), float("inf")

ROWS = [
    *rows_for(
        [{"x": N(3, 4)}, {"x": N(2, 3, 2)}],
        [
            f"x.{name}({dim})"
            for name in ("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp")
            for dim in ("0", "1", "-1", "dim=-2")
        ],
    ),
    *rows_for(
        {"x": N(3, 4)},
        """
        torch.cumsum(x, 1)
        torch.cumsum(x, axis=0)
        torch.cumsum(x, 1, dtype=torch.float64)
        torch.cumsum(x.detach(), 1, dtype=torch.int64)
        torch.cumsum(x.detach(), 0, out=torch.empty(0, dtype=x.dtype))
        torch.cumsum(x, 2)
        torch.cumprod(x, dim=0)
        torch.cumprod(x, 0, dtype=torch.float64)
        torch.cumprod(x.detach(), 0, out=torch.empty(3, 4, dtype=x.dtype))
        torch.cumprod(x, -3)
        (x * 1).cumsum_(0)
        (x * 1).cumprod_(-1)
        x.clone().cumsum_(dim=1)
        torch.cummax(x, 1).values
        torch.cummin(x, dim=0).indices
        torch.cummax(x.detach(), 0, out=(torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=torch.int64)))
        torch.cummax(x, 4)
        torch.logcumsumexp(x, dim=1)
        torch.logcumsumexp(x.detach(), 1, out=torch.empty(0, dtype=x.dtype))
        torch.logcumsumexp(x, 5)
        x.exp().cumsum(1).log() - x.logcumsumexp(0)
        torch.cumsum([1.0], 0)
        torch.diff(x)
        x.diff(dim=0)
        x.diff(2)
        torch.diff(x, n=3, dim=1)
        torch.diff(x, n=7)
        torch.diff(x, n=0)
        torch.diff(x, n=-1)
        torch.diff(x, dim=3)
        torch.diff(x, prepend=x[:, :1], append=x[:, :2])
        torch.diff(x, 2, 0, x[:1])
        torch.diff(x, prepend=x[:2])
        torch.diff(x > 0)
        torch.diff(x > 0, 2)
        torch.diff(x.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.trapezoid(x)
        torch.trapz(x)
        torch.trapezoid(x, dx=0.5)
        torch.trapz(x, dx=2, dim=0)
        torch.trapezoid(x, dim=-2)
        torch.trapezoid(x, x.cumsum(1))
        torch.trapezoid(x, x[0].exp().cumsum(0))
        torch.trapezoid(x, x[:, 0].exp().cumsum(0), dim=0)
        torch.trapezoid(x, x[0, :2])
        torch.trapezoid(x, dim=2)
        torch.cumulative_trapezoid(x)
        torch.cumulative_trapezoid(x, dx=0.5, dim=0)
        torch.cumulative_trapezoid(x, x.exp().cumsum(1))
        torch.cumulative_trapezoid(x, x[0].exp().cumsum(0))
        torch.gradient(x)
        torch.gradient(x, spacing=2)
        torch.gradient(x, spacing=0.5, dim=1)
        torch.gradient(x, spacing=[2.0, 0.5])
        torch.gradient(x, dim=(0, 1), spacing=(1, 3))
        torch.gradient(x, dim=0, edge_order=2)
        torch.gradient(x, edge_order=2, spacing=0.25)
        p = torch.tensor([0.0, 1.0, 3.0, 4.5]).to(x.dtype); torch.gradient(x.detach(), spacing=(p[:3], p))
        torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 3.0, 4.5]).to(x.dtype),), dim=1)
        torch.gradient(x, spacing=(torch.tensor([0.0, 1.0, 3.0, 4.5]).to(x.dtype),), dim=1, edge_order=2)
        torch.gradient(x, dim=5)
        torch.gradient(x, dim=1, spacing=[1.0, 2.0])
        torch.gradient(x, dim=0, spacing=(torch.zeros(3, 3).to(x.dtype),))
        torch.gradient(x, spacing=torch.tensor(2.0).to(x.dtype))
        torch.diff(x, append=x[0])
        torch.trapezoid(x, x > 0)
        torch.gradient(x, edge_order=3)
        torch.gradient(x[:, :1], dim=1)
        torch.gradient(x, spacing=[1.0, 2.0, 3.0])
        torch.cov(x)
        x.cov()
        torch.cov(x, correction=0)
        torch.cov(x, fweights=torch.tensor([1, 2, 1, 3]))
        torch.cov(x, aweights=torch.tensor([0.5, 1.0, 2.0, 1.5]).to(x.dtype))
        torch.cov(x, correction=0, fweights=torch.tensor([1, 2, 1, 3]), aweights=torch.tensor([0.5, 1.0, 2.0, 1.5]).to(x.dtype))
        torch.cov(x, fweights=torch.tensor([1, 2]))
        torch.cov(x, fweights=torch.tensor([0.5, 1.0, 2.0, 1.5]))
        torch.cov(x, fweights=torch.tensor([1, -2, 1, 3]))
        torch.cov(x, aweights=torch.tensor([1, 2, 1, 3]))
        torch.cov(x[None])
        torch.cov(x > 0)
        torch.cov(x[:, :1])
        torch.cov(x[0])
        torch.corrcoef(x)
        x.corrcoef()
        torch.corrcoef(x[:2])
        torch.corrcoef(x[None])
        torch.corrcoef(x[0])
    """,
    ),
    *rows_for(
        {"x": N()},
        """
        x.cumsum(0)
        x.cumsum(-1)
        x.cumprod(0)
        x.cummax(0)
        x.cummin(-1)
        x.logcumsumexp(0)
        x.cumsum(1)
        x.cummax(1)
        x.clone().cumsum_(0)
        torch.diff(x)
        torch.cov(x)
        torch.cumulative_trapezoid(x)
        torch.gradient(x)
    """,
    ),
    *rows_for(
        [{"x": N(0)}, {"x": N(0, 3)}, {"x": N(1, 3)}],
        """
        x.cumsum(0)
        x.cumprod(-1).detach()
        x.detach().cummax(0)
        x.detach().cummin(-1)
        x.logcumsumexp(0).detach()
        torch.diff(x)
        torch.diff(x, dim=0)
        torch.trapezoid(x, dim=0)
        torch.cumulative_trapezoid(x, dim=0)
    """,
    ),
    *rows_for(
        [{"i": I(3, 4)}, {"i": V([[3, 0, 7], [1, 250, 7]], "uint8")}, {"i": B(3, 4)}],
        """
        i.cumsum(1)
        i.cumsum(0, dtype=torch.float32)
        i.cumprod(0)
        i.cumprod(1, dtype=torch.int32)
        i.cummax(1)
        i.cummin(0)
        i.logcumsumexp(0)
        torch.diff(i)
        torch.diff(i, dim=0, n=2)
        i.float().cov()
        torch.trapezoid(i)
        torch.cumulative_trapezoid(i)
    """,
    ),
    *rows_for(
        {"i": I(3, 4)},
        """
        i.cumsum_(0)
        i.clone().cumprod_(1)
        torch.cov(i)
        torch.corrcoef(i)
        i.cov(correction=0)
    """,
    ),
    *rows_for(
        [
            {"x": V([[1.0, 1.0, NAN, 2.0, NAN], [3.0, 3.0, 2.0, 3.0, 4.0]])},
            {"x": V([[-INF, 1.0, 2.0, INF, 0.0]])},
            {"x": V([[-INF, -INF, -INF], [INF, 0.0, -INF]])},
            {"x": V([[1000.0, 1000.0, -1000.0], [-1000.0, 0.0, 1.0]])},
        ],
        """
        x.cumsum(1)
        x.cummax(1)
        x.cummin(1)
        x.cumprod(1).detach()
        x.logcumsumexp(1).detach()
    """,
    ),
    *rows_for(
        [{"x": V([[1000.0, 1000.0, -1000.0], [-1000.0, 0.0, 1.0]])}, {"x": N(40)}],
        """
        x.logcumsumexp(-1)
        x.cumsum(-1)
        x.cummax(-1)
    """,
    ),
    *rows_for(
        [
            {"x": V([[2.0, 0.0, 3.0, 5.0], [4.0, 5.0, 6.0, 0.0]])},
            {"x": V([3.0, 0.0, 2.0, 0.0, 4.0])},
            {"x": V([0.0, 0.0])},
            {"x": U(17)},
        ],
        """
        x.cumprod(-1)
        (x * x).cumprod(0)
    """,
    ),
]

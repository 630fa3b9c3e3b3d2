"""Order, quantiles, distinct elements, counts and searches."""

from __future__ import annotations

from operators.spelling import B, I, N, V, rows_for

NAN, INF = float("nan"), float("inf")

ROWS = [
    *rows_for(
        {"x": N(3, 5)},
        """
        torch.sort(x)
        x.sort(0)
        x.sort(dim=-1, descending=True)
        x.sort(1, True)
        x.sort(stable=True)
        x.sort(stable=True, dim=0, descending=True)
        x.sort().values
        x.sort()[1]
        torch.sort(x.detach(), out=(torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=torch.int64)))
        x.sort(2)
        torch.argsort(x)
        x.argsort(0)
        x.argsort(dim=-1, descending=True)
        x.argsort(stable=True)
        x.argsort(-3)
        torch.msort(x)
        x.msort()
        torch.topk(x, 2)
        x.topk(3, 0)
        x.topk(k=2, dim=1, largest=False)
        x.topk(5)
        x.topk(0)
        x.topk(1).values.squeeze(1)
        x.topk(6)
        x.topk(-1)
        x.topk(2, 3)
        torch.topk(x.detach(), 2, out=(torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=torch.int64)))
        torch.kthvalue(x, 2)
        x.kthvalue(1, 0)
        x.kthvalue(3, dim=-1, keepdim=True)
        x.kthvalue(0)
        x.kthvalue(6)
        x.kthvalue(4, 0)
        torch.median(x)
        x.median(1)
        x.median(0, True)
        x.median(dim=-1, keepdim=True).values
        x.median(2)
        torch.nanmedian(x)
        x.nanmedian(0)
        torch.median(x.detach(), 1, out=(torch.empty(0, dtype=x.dtype), torch.empty(0, dtype=torch.int64)))
        torch.mode(x)
        x.mode(0)
        x.mode(dim=1, keepdim=True)
        x.mode(2)
        torch.quantile(x, 0.5)
        torch.quantile(x, 0.3, dim=1)
        x.quantile(0.25, 0, True)
        x.quantile(0.75, keepdim=True)
        x.quantile(0)
        x.quantile(1.0, dim=-1)
        torch.quantile(x, torch.tensor([0.1, 0.5, 0.9]).to(x.dtype))
        torch.quantile(x, torch.tensor([0.1, 0.5, 0.9]).to(x.dtype), dim=0)
        torch.quantile(x, torch.tensor([0.1, 0.9]).to(x.dtype), dim=1, keepdim=True)
        torch.quantile(x, torch.tensor(0.4).to(x.dtype), dim=1)
        x.quantile(0.3, dim=1, interpolation="lower")
        x.quantile(0.3, dim=1, interpolation="higher")
        x.quantile(0.3, dim=1, interpolation="nearest")
        x.quantile(0.3, dim=1, interpolation="midpoint")
        x.quantile(0.5, interpolation="cubic")
        x.quantile(1.5)
        x.quantile(-0.1)
        x.quantile(torch.tensor([0.5, 2.0]).to(x.dtype))
        x.quantile(torch.tensor([[0.5]]).to(x.dtype))
        x.quantile(torch.tensor([0.5]).half())
        x.quantile(0.5, dim=2)
        torch.quantile(x.detach(), 0.5, 1, out=torch.empty(0, dtype=x.dtype))
        torch.nanquantile(x, 0.4, dim=1)
        x.nanquantile(0.4)
        x.unique().detach()
        x.unique_consecutive().detach()
        torch.unique(x).sum().backward()
        torch.unique_consecutive(x).sum().backward()
        torch.unique(x, dim=0).sum().backward()
        x[:, [0, 2, 1, 4, 3]].sort(1).values - x.sort(1).values
        (x.topk(2).values * x.kthvalue(1, keepdim=True).values).sum(0) + x.median(1).values.sum()
        torch.sort([3.0, 1.0])
        torch.topk(3.0, 1)
    """,
    ),
    *rows_for(
        {"x": V([[2.0, 5.0, 4.0], [5.0, 1.0, 0.5]])},
        [
            f"repr(torch.{call})"
            for call in (
                "max(x, 1)",
                "min(x, 0)",
                "sort(x)",
                "topk(x, 2)",
                "kthvalue(x, 2)",
                "median(x, 1)",
                "nanmedian(x, 1)",
                "mode(x)",
                "cummax(x, 0)",
                "cummin(x, 1)",
                "aminmax(x)",
                "histogram(x.detach(), 2)",
                "var_mean(x, 1)",
                "unique(x)",
                "max(x.int(), 1)",
                "quantile(x, 0.5, 1)",
                "logsumexp(x, 1)",
                "softmax(x, 1)",
                "std(x)",
                "argsort(x)",
                "max(x, 1).values",
                "cov(x)",
            )
        ],
    ),
    *rows_for(
        {"x": N(7), "q": V([0.1, 0.45, 0.8])},
        """
        torch.quantile(x, q)
        x.quantile(q, dim=0)
        x.nanquantile(q, 0, True)
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 4)},
        """
        x.sort(1)
        x.topk(2, 1)
        x.median(0)
        x.kthvalue(2, 1)
        x.quantile(0.3, 1)
        x.quantile(torch.tensor([0.1, 0.9]).to(x.dtype), dim=1, keepdim=True)
        x.argsort(0, descending=True)
    """,
    ),
    *rows_for(
        {"x": N(2, 300)},
        """
        x.topk(3)
        x.topk(4, largest=False)
        x.topk(1, 1)
        x.topk(1, largest=False)
        x.median(1)
        x.kthvalue(17)
        x.nanmedian(1)
        x.quantile(0.77, 1)
    """,
    ),
    *rows_for(
        {"x": N()},
        """
        x.sort()
        x.sort(0, True)
        x.argsort()
        x.topk(1)
        x.topk(0)
        x.topk(2)
        x.kthvalue(1)
        x.kthvalue(2)
        x.median()
        x.median(0)
        x.nanmedian()
        x.mode()
        x.quantile(0.5)
        x.quantile(0.5, 0)
        x.unique().detach()
        x.unique(return_inverse=True, return_counts=True)[1:]
        x.unique_consecutive().detach()
        x.unique(dim=0)
        x.sort(1)
    """,
    ),
    *rows_for(
        [{"x": N(0)}, {"x": N(0, 3)}],
        """
        x.sort(0)
        x.sort()
        x.argsort()
        x.topk(0)
        x.topk(1, 0)
        x.kthvalue(1, 0)
        x.median()
        x.median(0)
        x.nanmedian()
        x.mode(0)
        x.quantile(0.5)
        x.unique().detach()
        x.unique_consecutive().detach()
        torch.histc(x, 3)
    """,
    ),
    *rows_for(
        [
            {"x": V([[2.0, 5.0, 5.0, 2.0], [5.0, 1.0, 1.0, 1.0]])},
            {"x": V([[1.0, NAN, 3.0, 1.0], [NAN, NAN, -2.0, NAN]])},
            {"x": V([[INF, -INF, 0.0], [-INF, 1.0, INF]])},
            {"x": V([[NAN, NAN], [NAN, 1.0]])},
        ],
        """
        x.sort()
        x.sort(0, descending=True)
        x.argsort(descending=True)
        x.median()
        x.median(1)
        x.nanmedian()
        x.nanmedian(1)
        x.topk(1).values.detach()
        x.topk(2).values.detach()
        x.topk(2, largest=False).values.detach()
        x.kthvalue(2).values.detach()
        x.quantile(0.4)
        x.quantile(0.4, 1)
        x.nanquantile(0.4, 1)
        x.nanquantile(0.4)
        x.unique().detach()
        x.unique(return_counts=True)[1]
        x.unique(return_inverse=True)[1]
        x.unique_consecutive(return_inverse=True, return_counts=True)[1:]
        x.unique_consecutive(dim=1, return_counts=True)[1]
    """,
    ),
    # Modes of NaNs, and the order of rows with NaNs, are accidents in torch. Here every NaN is a value of its own.
    *rows_for(
        [
            {"x": V([[2.0, 5.0, 5.0, 2.0], [5.0, 1.0, 1.0, 1.0]])},
            {"x": V([[INF, -INF, 0.0], [-INF, 1.0, INF], [INF, -INF, 0.0]])},
        ],
        """
        x.mode()
        x.mode(0)
        x.topk(1)
        x.unique(dim=0, return_inverse=True)[1]
        x.unique(dim=1, return_inverse=True, return_counts=True)[1:]
    """,
    ),
    *rows_for(
        [{"i": I(3, 4, low=0, high=4)}, {"i": V([[3, 0, 7], [1, 250, 7]], "uint8")}, {"i": I(6, low=-2, high=2)}],
        """
        i.sort()
        i.sort(0, True)
        i.argsort()
        i.topk(2).values
        i.kthvalue(2).values
        i.median()
        i.median(0)
        i.nanmedian()
        i.mode()
        i.mode(0)
        i.quantile(0.5)
        torch.unique(i)
        i.unique(sorted=False)
        torch.unique(i, return_inverse=True)
        torch.unique(i, return_counts=True)
        i.unique(True, True, True)
        torch.unique(i, dim=0)
        i.unique(dim=-1, return_inverse=True, return_counts=True)
        torch.unique_consecutive(i)
        i.unique_consecutive(return_inverse=True, return_counts=True)
        torch.unique_consecutive(i.sort(0).values, dim=0, return_counts=True)
        torch.unique(i, dim=2)
        torch.bincount(i.flatten())
        i.flatten().bincount(minlength=9)
        torch.bincount(i)
        torch.isin(i, torch.tensor([1, 3]))
        torch.isin(i, 1)
        torch.isin(2, i)
        torch.isin(i, torch.tensor([1, 3]), invert=True)
        torch.histc(i)
    """,
    ),
    *rows_for(
        {"i": B(3, 4)},
        """
        i.sort()
        i.argsort(descending=True)
        i.topk(2).values
        i.median()
        i.mode()
        torch.unique(i)
        i.unique(return_counts=True)
        i.unique_consecutive()
        torch.bincount(i.flatten())
    """,
    ),
    *rows_for(
        {"i": I(5, low=0, high=4), "w": N(5)},
        """
        torch.bincount(i, w.detach())
        torch.bincount(i, weights=w.detach(), minlength=6)
        torch.bincount(i, i)
        torch.bincount(i, w[:3])
        torch.bincount(i, minlength=-1)
        torch.bincount(i.float())
        torch.bincount(i[:0])
        torch.bincount(i[:0], minlength=3)
    """,
    ),
    *rows_for(
        {"s": V([1.0, 3.0, 3.0, 5.0, 7.0]), "v": V([[0.0, 3.0, 4.0], [7.0, 8.0, NAN]])},
        """
        torch.searchsorted(s, v)
        torch.searchsorted(s, v, right=True)
        torch.searchsorted(s, v, side="right")
        torch.searchsorted(s, v, side="left", right=True)
        torch.searchsorted(s, v, side="middle")
        torch.searchsorted(s, v, out_int32=True)
        torch.searchsorted(s, 3)
        torch.searchsorted(s, 3.5, right=True)
        torch.searchsorted(s.flip(0), v, sorter=torch.tensor([4, 3, 2, 1, 0]))
        torch.searchsorted(s, v, sorter=torch.tensor([0, 1]))
        torch.searchsorted(s.expand(2, 5).contiguous(), v)
        torch.searchsorted(s.expand(3, 5).contiguous(), v)
        torch.searchsorted(s.expand(3, 5).contiguous(), 2.0)
        torch.searchsorted(s[0], v)
        torch.searchsorted(s.detach(), v.detach(), out=torch.empty(0, dtype=torch.int64))
        torch.bucketize(v, s)
        torch.bucketize(v, s, right=True)
        torch.bucketize(v, s, out_int32=True)
        torch.bucketize(4, s)
        torch.bucketize(v[0, 1], s)
        torch.bucketize(s, v)
    """,
    ),
    *rows_for(
        {"x": N(40)},
        """
        torch.histc(x)
        torch.histc(x, bins=5)
        x.histc(4, min=-1, max=1)
        x.histc(4, 1, -1)
        x.histc(bins=3, max=2)
        x.histc(0)
        torch.histc(x * 0 + 1, 4)
        torch.histogram(x.detach(), 5)
        torch.histogram(x.detach(), bins=4, range=(-1.0, 1.0))
        torch.histogram(x.detach(), torch.tensor([-1.0, 0.0, 0.25, 2.0]).to(x.dtype))
        torch.histogram(x.detach(), 5, density=True)
        torch.histogram(x.detach(), 3, weight=x.detach().abs())
        torch.histogram(x.detach(), 3).hist
        torch.histc(torch.tensor([0.0, float("inf")]), 3)
    """,
    ),
]

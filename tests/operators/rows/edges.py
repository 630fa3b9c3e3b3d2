"""Edges: memory that overlaps, integers at their bounds, windows that share places, and what is empty."""

from operators.spelling import I, N, U, V, rows_for


def once_more(start: str, value: str, times: int) -> str:
    """A line that takes the derivative `times` times, and once more."""
    again = "y = torch.autograd.grad(y.sum(), x, create_graph=True)[0]; "
    return (
        f"x = {start}.requires_grad_(); y = {value}; {again * times}y.tolist(), y.requires_grad, "
        "torch.autograd.grad(y.sum(), x)[0].tolist()"
    )


ROWS = [
    *rows_for(
        {"x": N(2, 3, 3), "w": N(4, 3, 1), "b": N(4)},
        """
        F.conv1d(x, w, stride=2, padding=1)
        F.conv1d(x, w, b, stride=2, padding=1)
        F.conv1d(x, w, stride=2, padding=1, dilation=3)
        F.conv1d(x[:, :, :1], w, stride=3, padding=1)
        F.conv_transpose1d(x, w.transpose(0, 1), b, stride=2, padding=1)
        F.conv_transpose1d(x, w.transpose(0, 1), stride=2, padding=1, output_padding=1)
    """,
    ),
    *rows_for(
        {"x": N(2, 2, 3, 5), "w": N(4, 1, 1, 1), "b": N(4)},
        """
        F.conv2d(x, w, b, stride=2, padding=(1, 2), groups=2)
        F.conv2d(x, w, stride=(1, 2), padding=(0, 2), groups=2)
        F.conv_transpose2d(x, w.reshape(2, 2, 1, 1), b, stride=2, padding=(1, 2))
    """,
    ),
    *rows_for(
        {"x": N(1, 2, 3, 3, 3), "w": N(2, 2, 1, 1, 1)},
        """
        F.conv3d(x, w, stride=2, padding=1)
        F.conv_transpose3d(x, w, stride=2, padding=1)
    """,
    ),
    *rows_for(
        {},
        """
        F.max_unpool1d(torch.tensor([[1., 2., 3.]]), torch.tensor([[0, 0, 1]]), 2)
        F.max_unpool2d(torch.tensor([[[1., 2.], [3., 4.]]]), torch.tensor([[[0, 0], [1, 1]]]), 2)
        torch.isclose(torch.tensor([2**62, -2**63, 2**63 - 1]), torch.tensor([-2**62, 2**63 - 1, 2**63 - 2]))
        torch.isclose(torch.tensor([-128, 100], dtype=torch.int8), torch.tensor([127, -128], dtype=torch.int8), rtol=1)
        torch.isclose(torch.tensor([0], dtype=torch.uint8), torch.tensor([255], dtype=torch.uint8), rtol=1.)
        torch.isclose(torch.tensor([True, False]), torch.tensor([True, True]))
        torch.allclose(torch.tensor([100], dtype=torch.int8), torch.tensor([-100], dtype=torch.int8), atol=60)
        torch.histogram(torch.tensor([3., 3.]), 4)
        torch.histogram(torch.tensor([]), 4)
        torch.histogram(torch.tensor([1., 2.]), 4, range=(0., 0.))
        torch.histogram(torch.tensor([1., 2.]), 4, range=(2., 0.))
        torch.histogram(torch.tensor([1., inf]), 4)
        torch.histogram(torch.tensor([1., 2.]), 0)
        torch.histogram(torch.tensor([1, 2]), 2)
        torch.logspace(0, 2, 5, base=2.5, dtype=torch.int64)
        torch.logspace(0, 2, 4, base=0.5, dtype=torch.int64)
        torch.lgamma(torch.tensor([-inf, inf, nan, -1., 0., -0.]))
        torch.tensordot(torch.ones(2, 1, dtype=torch.int32), torch.ones(2, 3, dtype=torch.int32), dims=([0, 1], [0, 1]))
        torch.tensordot(torch.ones(2, 3, dtype=torch.int8), torch.ones(2, 1, dtype=torch.int8), dims=([0, 1], [0, 1]))
        torch.unravel_index(torch.tensor([3, 200], dtype=torch.uint8), (2, 300))
        torch.unravel_index(torch.tensor([3, 5], dtype=torch.int32), (2, 3))
        torch.unravel_index(torch.tensor([3]), (0, 3))
        torch.vander(torch.tensor([1, 2, 3], dtype=torch.int32))
        torch.vander(torch.tensor([True, False]), increasing=True)
        torch.linalg.vander(torch.tensor([1, 20, 3], dtype=torch.int8), N=4)
        torch.linalg.vander(torch.tensor([True, False]))
        torch.linalg.vander(torch.tensor(3.))
        torch.linalg.vander(torch.tensor(3.), N=3)
        torch.linalg.vander(torch.tensor([1., 2.]), N=1)
        torch.addcmul(torch.tensor([1, 2]), torch.tensor([1, 2]), torch.tensor([3, 4]), value=.5)
        torch.addcmul(torch.tensor([1, 2]), torch.tensor([1, 2]), torch.tensor([3, 4]), value=2.)
        torch.addcmul(torch.tensor([1], dtype=torch.int8), torch.tensor([2]), torch.tensor([3]), value=300)
        torch.ones(1).byte().addcmul(torch.ones(1).byte(), torch.ones(1).byte(), value=300)
        torch.addcmul(torch.tensor([1]), torch.tensor([2.]), torch.tensor([3]), value=.5)
        torch.addcmul(torch.tensor([True]), torch.tensor([True]), torch.tensor([True]))
        x = torch.tensor([1, 2]); x.addcmul_(torch.tensor([1, 2]), torch.tensor([3, 4]), value=1.5); x
        torch.add(torch.tensor([True, False]), torch.tensor([True, False]), alpha=2)
        torch.add(torch.tensor([False]), torch.tensor([True]), alpha=False)
        torch.add(torch.tensor([1], dtype=torch.uint8), torch.tensor([1], dtype=torch.uint8), alpha=300)
        torch.add(torch.tensor([1], dtype=torch.uint8), torch.tensor([1], dtype=torch.uint8), alpha=-1)
        torch.sub(torch.tensor([5], dtype=torch.uint8), torch.tensor([1], dtype=torch.uint8), alpha=2)
        torch.sub(torch.tensor([1], dtype=torch.int8), torch.tensor([1], dtype=torch.int8), alpha=200)
        torch.rsub(torch.tensor([1], dtype=torch.uint8), torch.tensor([3], dtype=torch.uint8), alpha=2)
        torch.rsub(torch.tensor([1]), torch.tensor([3]), alpha=2.5)
        torch.rsub(torch.tensor([True]), torch.tensor([3]), alpha=2)
        torch.masked_fill(torch.zeros(2, dtype=torch.uint8), torch.tensor([True, False]), -1)
    """,
    ),
    *rows_for(
        {"x": N(3), "y": N(3)},
        """
        torch.rsub(x, y, alpha=2)
        torch.rsub(x, 3, alpha=2.5)
    """,
    ),
    *rows_for(
        {"x": I(2, 3), "y": I(2, 2), "w": I(4, 3, 2)},
        """
        F.bilinear(x.int(), y.int(), w.int())
    """,
    ),
    # Of integers, sizes that cannot be.
    *rows_for(
        {},
        """
        torch.bincount(torch.tensor([2**63 - 1]))
        torch.bincount(torch.tensor([2**62]))
        torch.bincount(torch.tensor([1, 2]), minlength=2**62)
        torch.bincount(torch.tensor([], dtype=torch.int64), torch.tensor([]))
        torch.repeat_interleave(torch.tensor([2**61]))
        torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([2, 2**62]))
        F.one_hot(torch.tensor([2**62]))
        F.one_hot(torch.tensor([1]), 2**62)
        torch.histc(torch.tensor([1., 2.]), 2**62)
        torch.histogram(torch.tensor([1., 2.]), 2**62)
        torch.vander(torch.tensor([1., 2.]), 2**62)
        torch.empty_strided((2, 2), (3, -1))
        torch.zeros(3).new_empty_strided((2, 2), (3, -1))
    """,
    ),
    # `out` shares memory, with itself or with an argument.
    *rows_for(
        {},
        """
        x = torch.arange(4.); torch.gather(x, 0, torch.tensor([3, 2, 1, 0]), out=x)
        x = torch.arange(4.); torch.take(x, torch.tensor([3, 2, 1, 0]), out=x)
        x = torch.arange(4.); torch.index_select(x, 0, torch.tensor([3, 2, 1, 0]), out=x)
        x = torch.arange(4.); torch.masked_select(x, torch.tensor([True] * 4), out=x)
        x = torch.arange(4.); torch.take_along_dim(x, torch.tensor([3, 2, 1, 0]), 0, out=x)
        x = torch.arange(4.); torch.cat([x[2:], x[:2]], out=x)
        x = torch.arange(4.); torch.cat([x[:2]], out=x[2:])
        x = torch.arange(4.); torch.cat([x[:1], x[1:2]], out=x[1:3])
        x = torch.arange(4.); torch.stack([x[:2], x[2:]], out=x.view(2, 2))
        x = torch.arange(4); torch.index_select(torch.arange(4), 0, x, out=x)
        x = torch.arange(4); torch.nonzero(x, out=x)
        x = torch.arange(4.); torch.scatter(x, 0, torch.tensor([0, 1, 2, 3]), x.flip(0), out=x)
        x = torch.arange(4.); torch.scatter_add(x, 0, torch.tensor([3, 2, 1, 0]), x, out=x)
        x = torch.arange(4.); torch.index_add(torch.zeros(4), 0, torch.tensor([3, 2, 1, 0]), x, out=x)
        x = torch.arange(4.); torch.index_copy(x, 0, torch.tensor([3, 2, 1, 0]), x, out=x)
        x = torch.arange(4.); torch.scatter_reduce(x, 0, torch.tensor([3, 2, 1, 0]), x, "sum", out=x)
        x = torch.arange(4.); torch.add(x[:3], 1, out=x[1:])
        x = torch.arange(4.); torch.add(x, 1, out=x)
        x = torch.arange(4.); torch.exp(x[:3], out=x[1:])
        x = torch.arange(4.).view(2, 2); torch.add(x, x.t(), out=x)
        x = torch.arange(4); torch.bitwise_and(x[:3], 1, out=x[1:])
        x = torch.arange(4.); torch.cumsum(x, 0, out=x)
        x = torch.zeros(1).expand(4); torch.gather(torch.arange(4.), 0, torch.tensor([3, 2, 1, 0]), out=x)
        x = torch.zeros(1).expand(4); torch.masked_select(torch.arange(4.), torch.tensor([True] * 4), out=x)
        x = torch.zeros(1).expand(4); torch.cat([torch.arange(4.)], out=x)
        x = torch.zeros(1).expand(4); torch.add(torch.arange(4.), 1, out=x)
        x = torch.zeros(1).expand(4); torch.cumsum(torch.arange(4.), 0, out=x)
        x = torch.zeros(1).expand(4); torch.sort(torch.arange(4.), out=(x, torch.zeros(4, dtype=torch.int64)))
        x = torch.zeros(1).expand(4); torch.arange(4, out=x)
        x = torch.zeros(1, 1).expand(2, 2); torch.mm(torch.ones(2, 2), torch.ones(2, 2), out=x)
    """,
    ),
    # One derivative more than is not 0.
    *rows_for(
        {},
        [
            once_more(*row)
            for row in (
                ("torch.tensor(3.)", "x ** 2", 2),
                ("torch.tensor(0.)", "x ** 2", 2),
                ("torch.tensor(3.)", "torch.square(x)", 2),
                ("torch.tensor(3.)", "x ** 3", 3),
                ("torch.tensor(0.)", "x ** 3", 3),
                ("torch.tensor([2., 3.])", "x ** 2 @ x", 3),
                (
                    "torch.tensor([2., 3.])",
                    "torch.ones(2).scatter_reduce(0, torch.tensor([0, 1]), x, 'prod', include_self=False)",
                    1,
                ),
            )
        ],
    ),
    *rows_for(
        {"x": N(3, 4), "y": U(3, 4)},
        """
        ~ torch.scatter_reduce(x, 1, torch.tensor([[0, 2, 0, 3], [1, 1, 1, 0], [3, 2, 1, 0]]), y, "prod")
        ~ x.detach().scatter_reduce(1, torch.tensor([[0, 2, 0, 3], [1, 1, 1, 0], [3, 2, 1, 0]]), y, "prod", include_self=False)
        torch.take_along_dim(x, torch.tensor([[-1, 0], [-4, 2], [3, 3]]), 1)
        torch.take_along_dim(x, torch.tensor([[-1, 5]]), 1)
        torch.take_along_dim(x, torch.tensor([-1]))
        ~ x.index_fill(1, torch.tensor([3, 1, 1]), y[0, 0])
    """,
    ),
    # Nothing in it.
    *rows_for(
        {},
        """
        torch.gather(torch.ones(3), 0, torch.tensor([]))
        torch.scatter(torch.ones(3), 0, torch.tensor([]), torch.tensor([]))
        torch.scatter_reduce(torch.ones(3), 0, torch.tensor([]), torch.tensor([]), "prod")
        torch.searchsorted(torch.zeros(0, 0), torch.zeros(0, 0))
        torch.searchsorted(torch.zeros(0, 3), torch.zeros(0, 2))
        torch.searchsorted(torch.zeros(2, 0), torch.zeros(2, 3))
        torch.searchsorted(torch.tensor([3, 2, 1]), torch.tensor([2]), sorter=torch.tensor([-1, 0, 1]))
        torch.searchsorted(torch.tensor([3, 2, 1]), torch.tensor([2]), sorter=torch.tensor([2., 0., 1.]))
        torch.unique(torch.zeros(5, 0, 5), dim=1)
        torch.unique(torch.zeros(0, 5), dim=0, return_inverse=True, return_counts=True)
        torch.unique(torch.zeros(0, 0), dim=0)
        torch.unique_consecutive(torch.zeros(0, 5), dim=0, return_inverse=True, return_counts=True)
        torch.linalg.lu_factor(torch.zeros(0, 0))
        torch.linalg.lu(torch.zeros(2, 0, 3))
        torch.linalg.lu_solve(torch.zeros(0, 0), torch.tensor([], dtype=torch.int32), torch.zeros(0, 4))
        torch.linalg.lu_solve(torch.zeros(0, 3, 3), torch.zeros(0, 3, dtype=torch.int32), torch.zeros(0, 3, 4))
        torch.linalg.lu_solve(torch.zeros(2, 0, 0), torch.zeros(2, 0, dtype=torch.int32), torch.zeros(2, 0, 4))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([5, 5], dtype=torch.int32), torch.ones(2, 1))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([0, 1], dtype=torch.int32), torch.ones(2, 1))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 1]), torch.ones(2, 1))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([1], dtype=torch.int32), torch.ones(2, 1))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones(3, 1))
        torch.linalg.lu_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones(2))
        torch.linalg.cond(torch.zeros(0, 0))
        torch.linalg.norm(torch.zeros(0, 3), 2)
        torch.linalg.norm(torch.zeros(3, 0), 1)
        torch.linalg.norm(torch.zeros(0, 3), inf)
        torch.linalg.norm(torch.zeros(0, 3), -1)
        F.batch_norm(torch.zeros(0), torch.zeros(0), torch.zeros(0), training=True)
        F.batch_norm(torch.zeros(0), None, None, torch.ones(1), torch.ones(1), training=True)
    """,
    ),
    # Matrices of which one triangle is read, integers, and other arguments.
    *rows_for(
        {"x": V([[1.0, 5.0, 2.0], [2.0, 3.0, 4.0], [0.0, 1.0, 7.0]])},
        """
        torch.linalg.pinv(x.detach(), hermitian=True)
        torch.linalg.matrix_rank(x, hermitian=True)
        torch.linalg.pinv(x[:2], hermitian=True)
        ~ torch.linalg.pinv(x + x.mT, hermitian=True)
    """,
    ),
    *rows_for(
        {"x": N(4, 2), "y": N(4, 3)},
        """
        ~ torch.linalg.lstsq(x, y)[:2]
        ~ torch.linalg.lstsq(x, y, driver="gels")[:2]
    """,
    ),
    *rows_for(
        {"x": N(3, 4)},
        """
        torch.gradient(x, spacing=None)
        F.lp_pool1d(x, inf, 2)
        F.lp_pool1d(x, -inf, 2)
        F.lp_pool2d(x[None], inf, 2)
        ~ F.soft_margin_loss(40 + x, torch.ones_like(x))
    """,
    ),
    *rows_for(
        {},
        """
        F.local_response_norm(torch.arange(24).view(2, 3, 4), 2)
        torch.addr(torch.zeros(2, 2).bool(), torch.ones(2).bool(), torch.ones(2).bool(), alpha=2)
        torch.addr(torch.zeros(2, 2).bool(), torch.ones(2).bool(), torch.ones(2).bool(), beta=False, alpha=False)
        torch.addr(torch.zeros(2, 2).int(), torch.ones(2).int(), torch.ones(2).int(), alpha=2.5)
        torch.addr(torch.zeros(2, 2).int(), torch.ones(2).int(), torch.ones(2).int(), beta=2.5)
        F.unfold(torch.ones(1, 1, 3, 3).bool(), 2)
        F.fold(torch.ones(1, 4, 4).bool(), (3, 3), 2)
        torch.linalg.vecdot(torch.ones(2, 2, dtype=torch.int32), torch.ones(2, 2, dtype=torch.int32))
        torch.special.chebyshev_polynomial_t(torch.tensor([.5, .5, .5, 2.]), torch.tensor([-.5, -1., 2.7, 3.9]))
        torch.special.laguerre_polynomial_l(torch.tensor([.5, .5, .5, 2.]), torch.tensor([-.5, -1., 2.7, 3.9]))
        torch.true_divide(5., torch.tensor([2.]))
        torch.tensor([2., 3.]).__rpow__(torch.tensor([2., 3.]))
        torch.tensor([2., 3.]).__rmod__(torch.tensor([5., 4.]))
    """,
    ),
    *rows_for(
        {"x": V(2.0), "y": V(0.0)},
        """
        torch.manual_seed(1); torch.normal(x, y.exp()) * 0
    """,
    ),
]

"""x[index] and x[index] = value, gathering and scattering, masks."""

from __future__ import annotations

from operators.spelling import B, I, N, V, rows_for

ALL = {"x": N(3, 4), "b": N(2, 3, 4), "v": N(4), "s": N(), "i": V([0, 2], "int64")}

# Where `scatter` and its like use a part of the source alone, torch cannot differentiate for the source; here that works.
ROWS = [
    *rows_for(
        ALL,
        """
        x[0]
        x[-1]
        x[5]
        x[-4]
        x[1, 2]
        x[:, 1]
        x[:, 4]
        x[0, 0, 0]
        x[1:]
        x[:2]
        x[::2]
        x[1:10]
        x[5:]
        x[-2:]
        x[2:1]
        x[::-1]
        x[::0]
        x[:]
        x[...]
        x[()]
        x[:, :]
        x[0:3]
        x[:, 1:3]
        x[1:, ::2]
        x[0:3, 1]
        x[None]
        x[None, 0]
        x[0, None]
        x[..., None]
        x[1:, None]
        x[:, None]
        x[..., 1:]
        x[..., 0]
        x[0, ...]
        x[None, None]
        x[..., ...]
        x[0.5]
        x[True]
        x[False]
        x[True, 0]
        x[True, False]
        x[torch.tensor(True)]
        x[torch.tensor(1)]
        x[torch.tensor(1), torch.tensor(2)]
        x[slice(torch.tensor(0), torch.tensor(2))]
        x[[0, 2]]
        x[[0, 2], [1, 3]]
        x[(0, 1),]
        x[range(2)]
        x[[True, False, True]]
        x[[]]
        x[i]
        x[i.int()]
        x[-i - 1]
        x[i, 0]
        x[0, i]
        x[i, 5]
        x[i, i]
        x[i][:, i]
        x[i[:, None], i]
        x[:, i]
        x[..., i]
        x[1:2, None, i]
        x[i, :, None]
        x[i, None]
        x[i.reshape(2, 1)]
        x[torch.tensor([3])]
        x[torch.tensor([-4])]
        x[torch.tensor([], dtype=torch.int64)]
        x[torch.zeros(0, 2, dtype=torch.int64)]
        x[torch.tensor([0, 1, 2]), torch.tensor([0, 1])]
        x[i.float()]
        x[torch.tensor([True, False])]
        x[torch.tensor([True, False, True])]
        x[torch.tensor([True, False, True]), 1]
        x[torch.tensor([True, False, True]), i]
        x[:, torch.tensor([True, False, True, True])]
        x[x > 0]
        x[x > 9]
        x[(x > 0).T]
        x[x[:, 0] > 0, 0]
        b[:, i]
        b[:, i, :]
        b[0, :, i]
        b[i[:1], :, i]
        b[i[:1], :, 1:]
        b[:, None, i]
        b[:, i, i]
        b[1, i]
        b[:, i, 0]
        b[0, i, 0]
        b[..., i]
        b[..., 1, :]
        b[1, ..., 2]
        b[:, 1:, 2]
        b[i[:1], ..., i[:1]]
        b[:, b[0] > 0]
        b[b[:, :, 0] > 0]
        s[()]
        s[...]
        s[None]
        s[True]
        s[0]
        s[1:]
        v[i[0]]
        v[i].sum() * v[1]
        len(x), x.tolist()[0] == x[0].tolist()
    """,
    ),
    *rows_for(
        ALL,
        """
        y = x.clone(); y[0] = 1; y
        y = x.clone(); y[0] = v; y
        y = x.clone(); y[-1] = s; y
        y = x.clone(); y[0, 0] = s; y
        y = x.clone(); y[:, 1] = v[:3]; y
        y = x.clone(); y[1:, ::2] = 3; y
        y = x.clone(); y[1:] = v; y
        y = x.clone(); y[:] = v; y
        y = x.clone(); y[:] = 2; y
        y = x.clone(); y[...] = s; y
        y = x.clone(); y[()] = 2.5; y
        y = x.clone(); y[None] = v; y
        y = x.clone(); y[True] = 1; y
        y = x.clone(); y[i] = v; y
        y = x.clone(); y[i] = 1; y
        y = x.clone(); y[[0, 2]] = v; y
        y = x.clone(); y[i, i] = s; y
        y = x.clone(); y[i, i] = v[:2]; y
        y = x.clone(); y[i, 1] = v[:2]; y
        y = x.clone(); y[:, i] = v[:2]; y
        y = x.clone(); y[i, 1:] = s; y
        y = x.clone(); y[x > 0] = 0; y
        y = x.clone(); y[x > 0] = s; y
        y = x.clone(); y[x[:, 0] > -9] = v; y
        y = x.clone(); y[0] = x[1] * 2; y[1] += y[0]; y
        y = x.clone(); y[0] *= v; y
        y = x.clone(); y[i] += 1; y
        y = x.clone(); y[:, 1:] -= y[:, :-1].clone(); y
        # the node of a view whose base was written to speaks of strides in torch
        ~ y = x.clone(); z = y[0]; y[0] = v; z
        y = x.clone(); z = y[0]; z[1] = s; y
        y = x.clone(); z = y.T; z[1:, i] = s; y
        y = x.clone(); y.T[0].mul_(2); y
        y = s.clone(); y[...] = 1; y
        y = s.clone(); y[()] = v[0]; y
        y = x.detach().clone(); y[0] = v; y
        y = x.detach().clone(); y[i] = v; y
        y = x.detach().clone(); y[1] = 7; y[:, 2] = -1; y[0, 0] = 5; y
        y = torch.zeros(3, 4, dtype=torch.int64); y[0] = 1.7; y[1, 1] = True; y
        y = torch.zeros(3, 4, dtype=torch.int64); y[0] = v.detach().double(); y
        y = torch.zeros(3, dtype=torch.bool); y[1] = 2; y
        y = x.clone(); y[5] = 1; 0
        y = x.clone(); y[0, 0, 0] = 1; 0
        y = x.clone(); y[::-1] = 1; 0
        y = x.clone(); y[0.5] = 1; 0
        y = x.clone(); y[0] = None; 0
        y = x.clone(); y[0] = 'a'; 0
        y = x.clone(); y[0, 0] = [1, 2]; 0
        y = x.clone(); y[:, 1] = v[:2]; 0
        y = x.clone(); y[0] = x; 0
        y = x.clone(); y[0] = v[None]; y
        y = x.clone(); y[i] = x; 0
        y = x.clone(); y[i] = v.half(); y
        y = x.clone(); y[x > 0] = torch.tensor(1); y
        y = x.clone(); y[x > 0] = v[:3]; 0
        y = s.clone(); y[0] = 1; 0
        x[0] = 1; 0
        x[i] = 1; 0
        x[...] = 1; 0
        x.expand(2, 3, 4)[0] = 1; 0
        y = torch.zeros(1, 4).expand(3, 4); y[:] = 1; 0
    """,
    ),
    *rows_for(
        ALL,
        """
        x.gather(1, torch.tensor([[0, 1], [1, 1], [2, 3]]))
        x.gather(0, torch.tensor([[0, 1, 2, 0], [2, 2, 2, 2]]))
        x.gather(-1, torch.tensor([[3]]))
        torch.gather(input=x, dim=0, index=torch.tensor([[1]]), sparse_grad=False)
        x.gather(1, torch.tensor([[0, 1]]).int())
        x.gather(1, torch.tensor([[0, 4]]))
        x.gather(1, torch.tensor([[0, -1]]))
        x.gather(1, torch.tensor([0]))
        x.gather(0, torch.tensor([[0, 1, 2, 0, 1]]))
        x.gather(1, torch.tensor([[0.0, 1]]))
        x.gather(2, torch.tensor([[0, 1]]))
        x.gather(1, [[0]])
        x.gather(1, torch.zeros(0, dtype=torch.int64))
        s.gather(0, torch.tensor(0))
        s.gather(0, torch.tensor([0, 0]))
        b.gather(1, torch.tensor([[[0, 2], [1, 1]]]))
        torch.gather(x.detach(), 1, torch.tensor([[1], [0]]), out=torch.empty(0, dtype=x.dtype))
        torch.take_along_dim(x, torch.tensor([[0], [1], [2]]), 1)
        torch.take_along_dim(x, torch.tensor([[0, 3]]), dim=1)
        torch.take_along_dim(x, torch.tensor([0, 11]))
        x.take_along_dim(x.argsort(0), 0)
        torch.take_along_dim(x, torch.tensor([0]), 1)
        torch.take_along_dim(x, torch.tensor([[0.0]]), 1)
        x.take(i)
        x.take(torch.tensor([[11, -12], [3, 3]]))
        torch.take(x, torch.tensor(5))
        x.take(torch.tensor(12))
        x.take(torch.tensor([0.0]))
        x.take(i.int())
        x.take([0])
        s.take(torch.tensor([0, 0]))
        torch.zeros(0).take(i)
        x.index_select(0, i)
        torch.index_select(x, 1, torch.tensor([3, 0, 3]))
        x.index_select(0, torch.tensor(1))
        x.index_select(dim=-1, index=i.int())
        b.index_select(1, i)
        x.index_select(0, torch.tensor([3]))
        x.index_select(0, torch.tensor([-1]))
        x.index_select(0, torch.tensor([[0]]))
        x.index_select(0, torch.tensor([0.0]))
        x.index_select(2, i)
        x.index_select(0, [0])
        s.index_select(0, torch.tensor([0]))
        x.masked_select(x > 0)
        torch.masked_select(x, v > 0)
        v.masked_select(x > 0)
        x.masked_select(torch.tensor([True]))
        x.masked_select(x)
        x.masked_select(torch.tensor([True, False, True]))
        s.masked_select(torch.tensor(True))
        (x > 0).nonzero().shape[1]
        torch.nonzero(torch.tensor([[1, 0], [0, 2]]))
        torch.nonzero(torch.tensor([[1, 0], [0, 2]]), as_tuple=True)
        torch.tensor(3).nonzero()
        torch.tensor(0).nonzero()
        torch.tensor(3).nonzero(as_tuple=True)
        torch.zeros(2, 0).nonzero()
        torch.unravel_index(torch.tensor([0, 5, 11]), (3, 4))
        torch.unravel_index(torch.tensor(7), (2, 2, 2))
        torch.unravel_index(torch.tensor([1.0]), (3, 4))
        torch.unravel_index(torch.tensor([1]), (3, -4))
        torch.argwhere(torch.tensor([0.0, nan, 2.0]))
        torch.tensor([[1, 0], [0, 2]]).argwhere()
    """,
    ),
    *rows_for(
        ALL,
        """
        x.scatter(1, torch.tensor([[0], [1], [2]]), 5.0)
        x.scatter(1, torch.tensor([[0], [1], [2]]), value=-1)
        x.scatter(1, torch.tensor([[0, 1], [1, 2], [2, 3]]), b[0, :, :2])
        torch.scatter(x, 0, torch.tensor([[0, 1, 2, 0]]), src=b[1, :1])
        x.scatter(1, torch.tensor([[0, 1], [1, 2], [2, 3]]), b[0].detach())
        x.scatter(1, torch.tensor([[0], [1]]), b[0, :2, :1])
        torch.zeros(3, 5).scatter_(1, torch.tensor([[0], [1], [2]]), 1)
        torch.zeros(3, 5, dtype=torch.int64).scatter_(1, torch.tensor([[0], [1], [2]]), 2.5)
        x.clone().scatter_(1, torch.tensor([[0]]), 1)
        x.clone().scatter_(1, torch.tensor([[0]]), s.reshape(1, 1))
        x.clone().scatter_(-1, torch.tensor([[0], [3], [1]]), v[:3, None])
        x.scatter_(1, torch.tensor([[0]]), 1)
        y = x * 1; y[1:].scatter_(1, torch.tensor([[0], [3]]), v[:2, None]); y
        x.detach().scatter(1, torch.tensor([[0]]), 2, reduce='add')
        x.detach().scatter(1, torch.tensor([[0, 0]]), 2, reduce='multiply')
        x.detach().clone().scatter_(1, torch.tensor([[0, 0]]), 2, reduce='add')
        x.scatter(1, torch.tensor([[0]]), 2, reduce='mean')
        x.scatter(1, torch.tensor([[0], [1], [4]]), 5.0)
        x.scatter(1, torch.tensor([[0], [1], [-1]]), 5.0)
        x.scatter(1, torch.tensor([0]), 5.0)
        x.scatter(1, torch.tensor([[0.0]]), 5.0)
        x.scatter(1, torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.int32))
        x.scatter(1, torch.tensor([[0]]), s)
        x.scatter(1, torch.tensor([[0]] * 4), 5.0)
        x.scatter(1, torch.zeros(0, dtype=torch.int64), 5.0)
        s.scatter(0, torch.tensor(0), 2.0)
        s.scatter(0, torch.tensor([0]), v[:1])
        x.scatter_add(1, torch.tensor([[0, 0], [1, 2], [3, 3]]), b[0, :, :2])
        torch.scatter_add(x, 0, torch.tensor([[0, 1, 2, 0]]), b[0, 1:2])
        x.clone().scatter_add_(1, torch.tensor([[0, 0]]), b[0, :1, :2])
        torch.zeros(3, 4).scatter_add_(0, torch.tensor([[0, 1, 2, 0], [0, 0, 0, 0]]), torch.ones(2, 4))
        torch.zeros(4, 3).T.scatter_add_(0, torch.tensor([[0, 1, 2, 0], [0, 0, 0, 0]]), torch.ones(2, 4))
        torch.zeros(3, dtype=torch.int64).scatter_add_(0, torch.tensor([0, 0, 2]), torch.tensor([1, 2, 3]))
        x.scatter_add(1, torch.tensor([[0, 0]]), v[:1, None])
        x.scatter_add(1, torch.tensor([[0, 0]]), 2)
        x.scatter_add(1, torch.tensor([[0, 9]]), b[0])
        x.scatter_reduce(0, torch.tensor([[0, 1, 2, 0]] * 3), b[0], 'sum')
        x.scatter_reduce(0, torch.tensor([[0, 1, 2, 0]] * 3), b[0], 'sum', include_self=False)
        torch.scatter_reduce(x, 0, torch.tensor([[0, 1, 2, 0]] * 3), b[0], reduce='mean')
        x.scatter_reduce(0, torch.tensor([[0, 1, 2, 0]] * 3), b[0], 'mean', include_self=False)
        x.scatter_reduce(1, torch.tensor([[0, 1, 1, 0]] * 3), b[0], 'prod')
        x.detach().scatter_reduce(1, torch.tensor([[0, 1, 1, 0]] * 3), b[0], 'prod', include_self=False)
        x.scatter_reduce(1, torch.tensor([[0, 1, 1, 0]] * 3), b[0], 'amax')
        x.scatter_reduce(1, torch.tensor([[0, 1, 1, 0]] * 3), b[0], 'amin', include_self=False)
        x.clone().scatter_reduce_(1, torch.tensor([[0, 1, 1, 0]] * 3), b[0], 'amax')
        torch.zeros(3).scatter_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([1.0, 1.0, nan]), 'amax')
        torch.ones(3, dtype=torch.int64).scatter_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([5, 3, -2]), 'mean')
        torch.ones(3, dtype=torch.int64).scatter_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([5, 3, -2]), 'amin')
        torch.ones(3, dtype=torch.int64).scatter_reduce(0, torch.tensor([0, 0, 2]), torch.tensor([5, 3, -2]), 'prod')
        x.scatter_reduce(1, torch.tensor([[0, 0]]), x, 'max')
        x.index_add(0, i, b[0, :2])
        x.index_add(0, i, b[0, :2], alpha=2)
        torch.index_add(x, 1, torch.tensor([0, 0, 3, 0]), b[1])
        x.clone().index_add_(0, i, b[0, :2])
        torch.zeros(3, 4).index_add_(0, i, torch.ones(2, 4), alpha=-1)
        x.index_add(0, torch.tensor(0), b[0, :1])
        s.index_add(0, torch.tensor(0), s * 2)
        x.detach().int().index_add(0, i, torch.ones(2, 4).int(), alpha=2)
        x.index_add(0, i, b[0, :1])
        x.index_add(0, i, b[0, :2, :3])
        x.index_add(0, i, b[0, :2].half())
        x.index_add(0, torch.tensor([0, 5]), b[0, :2])
        x.index_add(0, i.float(), b[0, :2])
        x.index_add(0, torch.tensor([[0]]), b[0, :1])
        x.index_copy(0, i, b[0, :2])
        torch.index_copy(x, 1, torch.tensor([3, 0]), b[0, :, :2])
        x.clone().index_copy_(0, i, b[0, :2])
        x.index_copy(0, torch.tensor(0), b[0, :1])
        x.index_copy(0, i, b[0])
        x.index_copy(0, i, b[0, :2, :3])
        x.index_copy(0, i, b[0, :2].half())
        x.index_copy(0, torch.tensor([0, 5]), b[0, :2])
        x.index_copy(0, i.int(), b[0, :2])
        x.index_fill(0, i, 2)
        x.index_fill(1, torch.tensor([-1]), value=3.0)
        torch.index_fill(x, 0, i, s)
        x.clone().index_fill_(1, i, -inf)
        x.clone().index_fill_(1, i, s)
        s.index_fill(0, torch.tensor([0]), 2)
        x.index_fill(0, i, v)
        x.index_fill(0, torch.tensor([9]), 2)
        x.index_fill(0, i.float(), 2)
        x.index_put((i,), b[0, :2])
        x.index_put((i, i), v[:2])
        x.index_put([i, i], s)
        x.index_put((i, i), v[:2], accumulate=True)
        torch.index_put(x, (torch.tensor([0, 0, 1]),), v, True)
        x.index_put((x > 0,), s)
        x.clone().index_put_((i, i), v[:2])
        x.clone().index_put_((i, i[:1]), v[:2], accumulate=True)
        x.index_put((i, i), v[:3])
        x.index_put((i, i), v[:2].half())
        x.index_put(i, v)
        x.index_put((i, i, i), v[:2])
        x.index_put((i,), 2.0)
        x.index_put((i.float(),), s)
        x.put(i, v[:2])
        torch.put(x, torch.tensor([[0, -1]]), v[:2], accumulate=False)
        x.put(torch.tensor([1, 1]), v[:2], accumulate=True)
        x.clone().put_(i, v[:2])
        x.put(i, v[:3])
        x.put(torch.tensor([50]), v[:1])
        x.put(i, v[:2].half())
        s.put(torch.tensor(0), s * 3)
    """,
    ),
    *rows_for(
        ALL,
        """
        x.masked_fill(x > 0, 0)
        x.masked_fill(x > 0, -inf)
        torch.masked_fill(x, x > 0, value=2.5)
        x.masked_fill(v > 0, True)
        v.masked_fill(x > 0, 0)
        x.masked_fill(x > 0, s)
        x.masked_fill(torch.tensor(True), 1)
        s.masked_fill(torch.tensor(True), 3)
        x.clone().masked_fill_(x > 0, 0)
        x.clone().masked_fill_(mask=v > 0, value=s)
        v.clone().masked_fill_(x > 0, 0)
        y = x * 1; y[0].masked_fill_(v > 0, 7); y
        x.masked_fill(x > 0, v)
        x.masked_fill(x, 1)
        x.masked_fill(x.byte(), 1)
        x.masked_fill(torch.tensor([True, False, True]), 0)
        x.masked_fill(x > 0, None)
        x.masked_fill([True], 1)
        x.masked_fill_(x > 0, 1)
        torch.zeros(3, dtype=torch.int64).masked_fill(torch.tensor([True, False, True]), 1.5)
        torch.zeros(3, dtype=torch.int64).masked_fill(torch.tensor([True, False, True]), inf)
        torch.zeros(3, dtype=torch.bool).masked_fill(torch.tensor([True, False, True]), 2)
        torch.zeros(3).half().masked_fill(torch.tensor([True, False, True]), -1e4)
        x.detach().masked_fill(x > 0, torch.tensor(1))
        x.masked_scatter(x > 0, b)
        torch.masked_scatter(x, v > 0, b[0])
        v.masked_scatter(x > 0, b)
        x.clone().masked_scatter_(x > 0, b)
        x.masked_scatter(x > -9, v)
        x.masked_scatter(x > 0, b.half())
        x.masked_scatter(x, b)
        s.masked_scatter(torch.tensor(True), v)
    """,
    ),
    *rows_for(
        [{"x": I(3, 4)}, {"x": B(3, 4)}],
        """
        x[1:, 0]
        x[[0, 2], 1]
        x[x > 0]
        x.gather(1, torch.tensor([[0, 1], [1, 1], [2, 3]]))
        x.take(torch.tensor([0, 5]))
        x.masked_select(x > 0)
        x.masked_fill(x > 0, 1)
        x.index_select(1, torch.tensor([1, 1]))
        x.scatter(1, torch.tensor([[0]]), 1)
        y = x.clone(); y[0] = 1; y[:, 1] = 0; y
        y = x.clone(); y[[0, 2]] = y[1].clone(); y
        x.nonzero()
    """,
    ),
    *rows_for(
        {"x": V([[1, float("nan")], [float("inf"), 0]])},
        """
        x[x > 0]
        x[[1, 1]]
        x.masked_fill(x != x, 0)
        y = x * 2; y[y != y] = 0; y
        x.gather(1, torch.tensor([[1, 0]]))
        torch.zeros(2, 2, dtype=x.dtype).index_add(0, torch.tensor([0, 0]), x)
        x.masked_fill(x == inf, 0).sum()
    """,
    ),
]

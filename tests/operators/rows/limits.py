"""Arguments at the limits of what an operator takes: integers of all dtypes, 0-d results, empty batches."""

from __future__ import annotations

from operators.spelling import N, V, rows_for

ROWS = [
    *rows_for(
        {"u": V([5, 1], "uint8"), "i": V([5, 1], "int8"), "x": V([1.5, 2.5])},
        """
        torch.sub(u, u, alpha=2)
        u.sub(1, alpha=2)
        y = u.clone(); y.sub_(1, alpha=2); y
        torch.add(u, u, alpha=-1)
        torch.sub(i, u, alpha=-2)
        torch.add(u, u, alpha=300)
        torch.addcmul(u, u, u, value=-1)
        torch.stack(torch.unravel_index(u, (30, 20)))
        torch.stack(torch.unravel_index(u, (2, 300)))
        torch.einsum('i,i->', u, u)
        torch.einsum('i,j->ij', i, i)
    """,
    ),
    *rows_for(
        {"x": V(0.5), "t": V(True, "bool"), "m": V([[1.0, 2.0], [3.0, 4.0]]), "i": V([[1, 2], [3, 4]], "int64")},
        """
        torch.nn.init.uniform_(torch.empty(()), 2.0, 2.0).numpy().shape
        torch.nn.init.normal_(torch.empty(()), 2.0, 0.0).numpy()
        torch.normal(torch.zeros(()), 1.5).numpy().shape
        torch.normal(1.0, torch.zeros(())).numpy()
        torch.normal(torch.ones(()), torch.zeros(())).numpy()
        (t ** False).numpy(), (t ** True).numpy()
        torch.take_along_dim(m, torch.tensor([[-1], [0]]), 1)
        torch.take_along_dim(m, torch.tensor([[-2]]), 0)
        torch.einsum('ij,jk->ik', i, i)
        torch.einsum('ii->i', i)
        torch.einsum('ab,a->a', i.int(), i[0].int())
        torch.einsum('a,b->', i[0].to(torch.int8), i[1].to(torch.int8))
        torch.einsum('ab,c->c', i > 1, i[0] > 1)
        torch.einsum('ab,bc->ac', i, i.int())
    """,
    ),
    *rows_for(
        {"A": N(0, 3, 3), "B": N(0, 3, 2), "C": N(0, 0), "D": N(0, 2), "s": N(0, 3), "r": N(2, 0), "v": N(2, 2)},
        """
        torch.linalg.lu_solve(A, torch.empty(0, 3, dtype=torch.int32), B)
        torch.linalg.lu_solve(C, torch.empty(0, dtype=torch.int32), D)
        torch.linalg.lu_solve(torch.ones(2, 0, 0), torch.empty(2, 0, dtype=torch.int32), torch.ones(2, 0, 2))
        torch.searchsorted(s, torch.ones(0, 2))
        torch.searchsorted(r, torch.ones(2, 2))
        torch.searchsorted(r, torch.ones(2, 0))
        torch.searchsorted(r[0], torch.ones(3))
    """,
    ),
]

"""Products of matrices and vectors, einsum and what is like it."""

from __future__ import annotations

from operators.spelling import B, I, N, V, rows_for

ROWS = [
    *rows_for(
        {"a": N(3, 4), "b": N(4, 2), "v": N(4), "w": N(3), "s": N()},
        """
        torch.mm(a, b)
        a.mm(b)
        a.mm(mat2=b)
        torch.mm(input=a, mat2=b)
        a @ b
        torch.matmul(a, b)
        a.matmul(other=b)
        torch.matmul(input=a, other=b)
        torch.mv(a, v)
        a.mv(v)
        torch.mv(input=a, vec=v)
        a @ v
        w @ a
        v @ v
        torch.dot(v, v)
        v.dot(tensor=v)
        torch.dot(input=v, tensor=v)
        torch.vdot(v, v)
        v.vdot(other=v)
        torch.outer(v, w)
        v.outer(vec2=w)
        torch.ger(v, w)
        v.ger(w)
        torch.inner(v, v)
        torch.inner(a, a)
        a.inner(v)
        torch.inner(v, a)
        torch.inner(s, v)
        torch.inner(a, s)
        torch.mm(a.detach(), b.detach(), out=torch.empty(0, dtype=a.dtype))
        torch.matmul(a.detach(), b.detach(), out=torch.empty(3, 2, dtype=a.dtype))
        torch.dot(v.detach(), v.detach(), out=torch.empty((), dtype=a.dtype))
        torch.outer(v.detach(), w.detach(), out=torch.empty(4, 3, dtype=a.dtype))
        torch.mm(a, b, out=torch.empty(3, 2, dtype=a.dtype))
        torch.mm(a, a)
        torch.mm(a, v)
        torch.mm(v, a)
        torch.mm(a, 2)
        a @ 2
        torch.matmul(a, 2)
        torch.matmul(a, s)
        s @ a
        torch.mv(a, w)
        torch.mv(v, v)
        torch.mv(a, b)
        torch.dot(v, w)
        torch.dot(a, v)
        torch.dot(v, 2)
        torch.vdot(v, w)
        torch.outer(a, v)
        torch.outer(v, a)
        torch.inner(a, b)
        torch.inner(v, w)
        a @ b.long()
        a.double() @ b.float()
        torch.mv(a, v.long())
        torch.dot(v, v.long())
        torch.outer(v, w.long())
        torch.inner(v, v.long())
        torch.kron(a, b)
        torch.kron(a, v)
        a.kron(s)
        torch.kron(v, w)
        torch.kron(a, 2)
        torch.kron(a.detach(), b.long())
        torch.trace(a)
        a.trace()
        a.long().trace()
        torch.trace(v)
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 4), "y": N(2, 4, 3), "m": N(4, 3), "v": N(4), "u": N(3)},
        """
        torch.bmm(x, y)
        x.bmm(mat2=y)
        torch.bmm(input=x, mat2=y)
        x @ y
        x @ m
        m @ x
        x @ v
        u @ x
        u.detach() @ x
        m.detach() @ x
        x @ y[0]
        x[:, None] @ y
        x @ y[:1]
        x.mT @ y.mT
        x[:0] @ y[:0]
        x[:0] @ m
        x[..., :0] @ y[:, :0]
        torch.bmm(x.detach(), y.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.bmm(x, x)
        torch.bmm(x, m)
        torch.bmm(m, x)
        torch.bmm(x, y[:1])
        torch.bmm(x, y.long())
        x @ x
        x @ torch.cat([y, y, y])[1:4]
        x @ u
        m.mT @ x
        torch.inner(x, v)
        torch.inner(x, x)
        torch.trace(x)
        torch.kron(x, m)
    """,
    ),
    *rows_for(
        {"a": I(2, 3), "b": I(3, 2), "v": I(3), "c": B(2, 2)},
        """
        a @ b
        torch.mm(a, b)
        a @ v
        v @ v
        torch.outer(v, v)
        torch.addmm(v[:2], a, b)
        torch.addmm(v[:2], a, b, beta=2, alpha=3)
        torch.einsum("ij,jk", a, b)
        torch.tensordot(a, b, 1)
        torch.kron(a, b)
        torch.trace(a @ b)
        c @ c
        torch.mm(c, c)
        torch.dot(c[0], c[0])
        torch.bmm(c[None], c[None])
        torch.mv(c, c[0])
        torch.outer(c[0], c[0])
        torch.cross(v, v + 1, dim=0)
    """,
    ),
    *rows_for(
        {"a": N(3, 4), "b": N(4, 2), "c": N(3, 2), "r": N(2), "s": N(), "k": N(3, 1)},
        """
        torch.addmm(c, a, b)
        torch.addmm(r, a, b)
        torch.addmm(s, a, b)
        torch.addmm(k, a, b)
        torch.addmm(c, a, b, beta=0.5, alpha=-2)
        torch.addmm(r, a, b, beta=2)
        torch.addmm(r, a, b, alpha=2)
        torch.addmm(r * torch.nan, a, b, beta=0).sum().item()
        torch.addmm(r, a, b, beta=0)
        c.addmm(a, b)
        c.addmm(mat1=a, mat2=b, beta=2)
        torch.addmm(input=c, mat1=a, mat2=b)
        c.clone().addmm_(a, b)
        c.clone().addmm_(a, b, beta=0.5, alpha=3)
        torch.addmm(c.detach(), a.detach(), b.detach(), out=torch.empty(0, dtype=a.dtype))
        torch.addmm(c, a, a)
        torch.addmm(a, a, b)
        torch.addmm(c, r, b)
        torch.addmm(c, a, r)
        torch.addmm(c.long(), a, b)
        torch.addmm(c, a, b.long())
        torch.addmm(c, a, 2)
    """,
    ),
    *rows_for(
        {"a": N(3, 4), "v": N(4), "w": N(3), "s": N()},
        """
        torch.addmv(w, a, v)
        torch.addmv(s, a, v)
        torch.addmv(w[:1], a, v)
        torch.addmv(w, a, v, beta=0.5, alpha=-2)
        torch.addmv(w, a, v, beta=0)
        w.addmv(a, v)
        w.addmv(mat=a, vec=v, alpha=2)
        w.clone().addmv_(a, v)
        w.clone().addmv_(a, v, beta=2, alpha=3)
        torch.addmv(w.detach(), a.detach(), v.detach(), out=torch.empty(3, dtype=a.dtype))
        torch.addmv(v, a, v)
        torch.addmv(w, a, w)
        torch.addmv(w, v, v)
        torch.addr(a, w, v)
        torch.addr(v, w, v)
        torch.addr(s, w, v)
        torch.addr(a, w, v, beta=0.5, alpha=-2)
        torch.addr(a, w, v, beta=0)
        a.addr(w, v)
        a.addr(vec1=w, vec2=v, alpha=2)
        a.clone().addr_(w, v)
        a.clone().addr_(w, v, beta=2, alpha=3)
        torch.addr(a.detach(), w.detach(), v.detach(), out=torch.empty(3, 4, dtype=a.dtype))
        torch.addr(a, v, v)
        torch.addr(a, a, v)
    """,
    ),
    *rows_for(
        {"x": N(2, 3, 4), "y": N(2, 4, 2), "c": N(3, 2), "d": N(2, 3, 2), "r": N(2)},
        """
        torch.baddbmm(d, x, y)
        torch.baddbmm(c, x, y)
        torch.baddbmm(r, x, y)
        torch.baddbmm(d, x, y, beta=0.5, alpha=-2)
        torch.baddbmm(d, x, y, beta=0)
        d.baddbmm(x, y)
        d.baddbmm(batch1=x, batch2=y, alpha=2)
        d.clone().baddbmm_(x, y)
        d.clone().baddbmm_(x, y, beta=2, alpha=3)
        torch.baddbmm(d.detach(), x.detach(), y.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.baddbmm(d, x, y[:1])
        torch.baddbmm(d, c, c)
        torch.baddbmm(y, x, y)
        torch.addbmm(c, x, y)
        torch.addbmm(r, x, y)
        torch.addbmm(c, x, y, beta=0.5, alpha=-2)
        torch.addbmm(c, x, y, beta=0)
        c.addbmm(x, y)
        c.addbmm(batch1=x, batch2=y, alpha=2)
        c.clone().addbmm_(x, y)
        c.clone().addbmm_(x, y, beta=2, alpha=3)
        torch.addbmm(c.detach(), x.detach(), y.detach(), out=torch.empty(3, 2, dtype=x.dtype))
        torch.addbmm(c, x, y[:1])
        torch.addbmm(c, c, c)
    """,
    ),
    *rows_for(
        {"a": N(3, 4), "b": N(4, 5), "q": N(3, 3), "v": N(3)},
        """
        torch.einsum("ij,jk->ik", a, b)
        torch.einsum("ij,jk", a, b)
        torch.einsum("ij,jk->ki", a, b)
        torch.einsum(" i j , j k -> i k ", a, b)
        torch.einsum("ij,jk->ik", [a, b])
        torch.einsum(a, [0, 1], b, [1, 2], [0, 2])
        torch.einsum(a, [0, 1], b, [1, 2])
        torch.einsum(a, [..., 1], b, [1, 2], [..., 2])
        torch.einsum("ij->ji", a)
        torch.einsum("ij->", a)
        torch.einsum("ij->i", a)
        torch.einsum("ji", a)
        torch.einsum("ij->ij", a)
        torch.einsum("ii", q)
        torch.einsum("ii->i", q)
        torch.einsum("i,i", v, v)
        torch.einsum("i,j", v, v)
        torch.einsum("i,j->ji", v, v)
        torch.einsum("ij,ij->ij", q, q)
        torch.einsum("ij,ij->", q, q)
        torch.einsum("ij,j->i", q, v)
        torch.einsum("i,ij,j->", v, q, v)
        torch.einsum("ii,ij->j", q, a)
        torch.einsum("ij,jk,kl->il", q, a, b)
        torch.einsum("...j,jk->...k", a, b)
        torch.einsum("...,...->...", a, a[:1])
        torch.einsum("ij,j->ij", a[:, :1], b[:, 0])
        torch.einsum("ij,jk", a[:0], b)
        torch.einsum("ij,jk", a[:, :0], b[:0])
        torch.einsum("Ab,bC", a, b)
        torch.einsum("ij,jk->il", a, b)
        torch.einsum("ij,jk", a)
        torch.einsum("ij", a, b)
        torch.einsum("ijk", a)
        torch.einsum("i", a)
        torch.einsum("ij->ijj", a)
        torch.einsum("ij,jk", a, a)
        torch.einsum("i1", a)
        torch.einsum("...ij...", a)
        torch.einsum("ii", a)
        torch.einsum("i..j", a)
        torch.einsum("ij->i->j", a)
        torch.einsum(a)
        torch.einsum("ij")
        torch.einsum("ij,jk", a, b.long())
        torch.einsum("ij,jk", a, 2)
        torch.einsum("ij->i..", a)
        torch.einsum("...ijk", a)
        torch.tensordot(a, b, 1)
        torch.tensordot(a, b, dims=1)
        torch.tensordot(a, a)
        torch.tensordot(q, q, dims=([0], [1]))
        torch.tensordot(q, q, dims=([0, 1], [1, 0]))
        torch.tensordot(v, v, 0)
        torch.tensordot(a, b, ([-1], [0]))
        torch.tensordot(a.detach(), b.detach(), 1, out=torch.empty(3, 5, dtype=a.dtype))
        torch.tensordot(a, a, 1)
        torch.tensordot(a, a, 3)
        torch.tensordot(a, a, -1)
        torch.tensordot(a, a, ([0, 1], [0]))
        torch.tensordot(a, a, ([0], [1]))
        torch.tensordot(a, b.long(), 1)
    """,
    ),
    *rows_for(
        {"x": N(2, 5, 3, 4), "y": N(2, 6, 3, 4), "z": N(3, 4)},
        """
        torch.einsum("bqhd,bkhd->bhqk", x, y)
        torch.einsum("bqhd,bkhd->bqk", x, y)
        torch.einsum("bqhd,hd->bq", x, z)
        torch.einsum("b...d,...d->b...", x, z)
        torch.einsum("bqhd,bkhd,hd->qk", x, y, z)
        torch.einsum("bqhd->dq", x)
        torch.einsum("bqhd,bqhd->", x, x)
        torch.tensordot(x, y, dims=([2, 3], [2, 3]))
        torch.tensordot(x, z, 2)
        torch.tensordot(x, y, dims=([0, 2, 3], [0, 2, 3]))
    """,
    ),
    *rows_for(
        {"a": N(4, 3), "b": N(4, 3), "c": N(1, 3), "v": N(3), "p": N(3, 4)},
        """
        torch.cross(a, b, dim=1)
        torch.cross(a, b, dim=-1)
        a.cross(b, dim=1)
        a.cross(other=b, dim=1)
        torch.cross(p, p + 1, 0)
        torch.linalg.cross(a, b)
        torch.linalg.cross(a, c)
        torch.linalg.cross(c, a)
        torch.linalg.cross(p, p * p, dim=0)
        torch.linalg.cross(v, v * v)
        torch.linalg.cross(a.detach(), b.detach(), out=torch.empty(0, dtype=a.dtype))
        torch.linalg.cross(p, p)
        torch.linalg.cross(a, v)
        torch.linalg.cross(a, b, dim=5)
        torch.linalg.cross(a, p)
        torch.linalg.cross(a, b.long())
        torch.linalg.vecdot(a, b)
        torch.linalg.vecdot(a, b, dim=0)
        torch.linalg.vecdot(a, c)
        torch.linalg.vecdot(v, v)
        torch.linalg.vecdot(a, p)
        torch.linalg.vecdot(a.detach(), b.detach(), out=torch.empty(4, dtype=a.dtype))
        torch.linalg.diagonal(a)
        torch.linalg.diagonal(a, offset=-1)
        torch.linalg.matmul(p, a)
        torch.linalg.multi_dot([p, a])
        torch.linalg.multi_dot([p, a, p, a])
        torch.linalg.multi_dot((v, p, a))
        torch.linalg.multi_dot([p, a, v])
        torch.linalg.multi_dot([v, p, b, v])
        torch.linalg.multi_dot([v, v])
        torch.linalg.multi_dot([p.detach(), a.detach()], out=torch.empty(3, 3, dtype=a.dtype))
        torch.linalg.multi_dot([a])
        torch.linalg.multi_dot([a, b])
        torch.linalg.multi_dot([a, v, p])
        torch.linalg.multi_dot([a, p[None]])
        torch.linalg.multi_dot([p, a.long()])
    """,
    ),
    *rows_for(
        {"q": N(3, 3), "x": N(2, 2, 2), "v": N(4), "z": V([[0.0, 1.0], [0.0, 0.0]])},
        """
        torch.matrix_power(q, 1)
        torch.matrix_power(q, 2)
        torch.matrix_power(q, 3)
        torch.linalg.matrix_power(q, 5)
        q.matrix_power(6)
        q.matrix_power(n=4)
        torch.matrix_power(x, 3)
        torch.matrix_power(q, -1)
        torch.matrix_power(q, -3)
        ~ torch.matrix_power(q, 0)
        torch.matrix_power(q.detach(), 3, out=torch.empty(0, dtype=q.dtype))
        torch.matrix_power(v, 2)
        torch.matrix_power(q[:2], 2)
        torch.matrix_power(q.long(), 3)
        torch.matrix_power(z, -1)
        torch.matrix_exp(q)
        torch.linalg.matrix_exp(x)
        q.matrix_exp()
        torch.matrix_power(input=q, n=2)
        torch.matrix_exp(input=q)
        torch.linalg.matrix_power(input=q, n=2)
        torch.matrix_exp(4 * q)
        torch.matrix_exp(z)
        torch.matrix_exp(0 * q)
        torch.matrix_exp(q[:0, :0])
        torch.matrix_exp(q[:2])
        torch.matrix_exp(q.long())
        torch.linalg.vander(v)
        torch.linalg.vander(x)
        torch.linalg.vander(v, N=3)
        torch.linalg.vander(v.long(), N=3)
        # torch.vander itself writes over what its gradient needs, and raises there
        torch.vander(v.detach())
        torch.vander(v.detach(), 3, increasing=True)
        torch.vander(v.detach(), N=1)
        torch.vander(v.detach(), 0)
        torch.vander(v.long())
        torch.vander(q)
    """,
    ),
]

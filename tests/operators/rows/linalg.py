"""Linear algebra. Signs of singular vectors and eigenvectors are a library's own choice, so rows look at what has none."""

from __future__ import annotations

from operators.spelling import I, N, V, rows_for

IGNORE = "import warnings; warnings.simplefilter('ignore')"  # torch warns once in a process
P = "x @ x.mT + 2 * torch.eye(x.shape[-1], dtype=x.dtype)"
SINGULAR = [[2.0, 4.0, 8.0], [1.0, 2.0, 4.0], [1.0, 1.0, 1.0]]  # to the last digit, whatever rounds: powers of two

ROWS = [
    *rows_for(
        [{"x": N(3, 3)}, {"x": N(2, 3, 3)}],
        f"""
        torch.linalg.inv(x)
        torch.inverse(x)
        x.inverse()
        torch.linalg.inv_ex(x)
        torch.linalg.inv(x.detach(), out=torch.empty(0, dtype=x.dtype))
        torch.linalg.det(x)
        torch.det(x)
        torch.det(input=x)
        torch.linalg.det(A=x)
        torch.linalg.pinv(input=x, rtol=0.3)
        torch.linalg.pinv(x, atol=0.5)
        torch.linalg.matrix_norm(input=x, ord=1)
        torch.linalg.cond(input=x, p=2)
        torch.linalg.eigvalsh(input=x, UPLO="L")
        torch.linalg.svdvals(A=x)
        x.det()
        torch.linalg.slogdet(x)
        torch.slogdet(x)
        x.slogdet()
        torch.logdet({P})
        torch.logdet(x)
        x.logdet()
        torch.linalg.pinv(x)
        torch.pinverse(x)
        x.pinverse()
        torch.linalg.pinv(x[..., :2])
        torch.linalg.pinv(x[..., :2, :])
        torch.linalg.pinv({P}, hermitian=True)
        torch.linalg.cholesky({P})
        torch.linalg.cholesky({P}, upper=True)
        {IGNORE}; torch.cholesky({P})
        {IGNORE}; torch.cholesky({P}, True)
        {IGNORE}; ({P}).cholesky()
        {IGNORE}; torch.qr(x[..., :2])
        {IGNORE}; x.qr(some=False)
        {IGNORE}; torch.lu(x)
        torch.linalg.cholesky_ex({P})
        torch.cholesky_solve(x[..., :2], torch.linalg.cholesky({P}))
        torch.cholesky_solve(x, torch.linalg.cholesky({P}, upper=True), upper=True)
        x.cholesky_solve(torch.linalg.cholesky({P}))
        torch.cholesky_inverse(torch.linalg.cholesky({P}))
        torch.linalg.cholesky({P}, upper=True).cholesky_inverse(upper=True)
        torch.linalg.qr(x)
        torch.linalg.qr(x[..., :2])
        torch.linalg.qr(x[..., :2, :])
        torch.linalg.qr(x, mode="complete")
        torch.linalg.qr(x[..., :2, :], "complete")
        torch.linalg.qr(x.detach()[..., :2], "complete")
        torch.linalg.qr(x.detach(), "r")
        torch.linalg.qr(x[..., :2], "complete")
        torch.linalg.svd(x).S
        torch.linalg.svdvals(x)
        torch.linalg.svdvals(x[..., :2])
        torch.linalg.svdvals(x.detach())
        [t.grad_fn.name() for t in torch.linalg.svd(x)]
        [t.grad_fn.name() for t in torch.svd(x)]
        [t.grad_fn.name() for t in torch.linalg.eigh(x)]
        [t.shape for t in torch.linalg.svd(x[..., :2])]
        [t.shape for t in torch.linalg.svd(x[..., :2], full_matrices=False)]
        [t.shape for t in torch.svd(x[..., :2, :], some=False)]
        torch.linalg.svd(x).U.abs()
        torch.linalg.svd(x[..., :2], full_matrices=False).U.square()
        torch.linalg.svd(x[..., :2], full_matrices=False).Vh.square()
        torch.linalg.svd(x[..., :2, :], full_matrices=False).U.square()
        torch.linalg.svd(x[..., :2, :], full_matrices=False).Vh.square()
        torch.linalg.svd(x[..., :2]).U[..., :2].square()
        U, S, Vh = torch.linalg.svd(x, full_matrices=False); U[..., :1] @ Vh[..., :1, :]
        U, S, V = torch.svd(x[..., :2]); (U * (S + 1)[..., None, :]) @ V.mT
        torch.svd(x, compute_uv=False)
        x.svd().S
        torch.linalg.eigh(x + x.mT).eigenvalues
        torch.linalg.eigh(x + x.mT).eigenvectors.square()
        torch.linalg.eigh(x + x.mT, UPLO="U")[1].abs()
        torch.linalg.eigh(x)[0]
        torch.linalg.eigvalsh(x + x.mT)
        torch.linalg.eigvalsh(x.detach(), UPLO="U")
        torch.linalg.lu(x)
        torch.linalg.lu(x[..., :2])
        torch.linalg.lu(x[..., :2, :])
        torch.linalg.lu_factor(x)
        torch.linalg.lu_factor_ex(x)
        LU, p = torch.linalg.lu_factor(x); torch.linalg.lu_solve(LU, p, x.cos()[..., :2])
        LU, p = torch.linalg.lu_factor(x); torch.linalg.lu_solve(LU, p, x.cos()[..., :2, :], left=False)
        LU, p = torch.linalg.lu_factor(x); torch.linalg.lu_solve(LU, p, x.cos(), adjoint=True)
        {IGNORE}; LU, p = torch.linalg.lu_factor(x); torch.lu_solve(x.cos(), LU, p)
        torch.linalg.matrix_rank(x)
        torch.linalg.matrix_rank(x[..., :2])
        torch.linalg.matrix_rank(x, tol=1.0)
        torch.linalg.matrix_rank(x, atol=1.0, rtol=0.1)
        torch.linalg.cond(x)
        torch.linalg.cond(x[..., :2])
        torch.linalg.cond(x, -2)
        torch.linalg.cond(x.detach(), 1)
        torch.linalg.cond(x.detach(), "fro")
        # the gradient of cond(x, 1) raises in torch, which writes over what it needs
        torch.linalg.cond(x, "nuc")
        torch.linalg.cond(x.detach(), inf)
        torch.linalg.lstsq(x, x.cos()[..., :2])
        torch.linalg.lstsq(x[..., :2], x.cos()).solution
        torch.linalg.lstsq(x[..., :2, :], x.cos()[..., :2, :1]).solution
        torch.linalg.lstsq(x[..., :2], x[..., 0].cos()).solution
        torch.linalg.lstsq(x.detach()[..., :2], x.detach(), driver="gelsd")
        torch.linalg.lstsq(x.detach()[..., :2], x.detach(), driver="gels").residuals
        torch.linalg.matrix_norm(x)
        torch.linalg.matrix_norm(x, "nuc")
        torch.linalg.matrix_norm(x, 2)
        torch.linalg.matrix_norm(x, -2)
        torch.linalg.matrix_norm(x, 1)
        torch.linalg.matrix_norm(x, -1)
        torch.linalg.matrix_norm(x, inf, keepdim=True)
        torch.linalg.matrix_norm(x, -inf)
        torch.linalg.matrix_norm(x, 2, dim=(-1, -2), keepdim=True)
        torch.linalg.matrix_norm(x, 1, dim=(-1, 0))
        torch.linalg.matrix_norm(x, "nuc", dim=(0, -1))
        torch.linalg.vector_norm(x)
        torch.linalg.vector_norm(x, 3, dim=-1)
        torch.linalg.vector_norm(x, ord=1, dim=(0, -1), keepdim=True)
        torch.linalg.vector_norm(x, inf)
        torch.linalg.norm(x)
        torch.linalg.norm(x, dim=0)
        torch.linalg.norm(x, 1, 0)
        torch.linalg.norm(x, ord=2, dim=(-2, -1))
        torch.linalg.norm(x, "fro", dim=(0, 1), keepdim=True)
        torch.linalg.norm(x, 2)
        torch.linalg.norm(x, "nuc")
        torch.linalg.norm(x, inf)
        torch.linalg.matrix_norm(x.detach(), dtype=torch.float64)
    """,
    ),
    *rows_for(
        {"a": N(3, 3), "b": N(3, 2), "v": N(3), "c": N(2, 3, 3), "d": N(2, 3), "e": N(2, 3, 1)},
        """
        torch.linalg.solve(a, b)
        torch.linalg.solve(a, v)
        torch.linalg.solve(c, b)
        torch.linalg.solve(a, e)
        torch.linalg.solve(c, d)
        torch.linalg.solve(c, v)
        torch.linalg.solve(a, b.mT, left=False)
        torch.linalg.solve(A=a, B=b)
        torch.linalg.solve_triangular(input=a, B=b, upper=True)
        torch.linalg.lstsq(input=a, b=b.cos()).solution
        torch.linalg.solve_ex(a, b)
        torch.linalg.solve(a.detach(), b.detach(), out=torch.empty(0, dtype=a.dtype))
        torch.linalg.solve_triangular(a, b, upper=True)
        torch.linalg.solve_triangular(a, b, upper=False)
        torch.linalg.solve_triangular(a, b, upper=False, unitriangular=True)
        torch.linalg.solve_triangular(a, b.mT, upper=True, left=False)
        torch.linalg.solve_triangular(c, b, upper=True)
        torch.linalg.solve_triangular(a, e, upper=False, unitriangular=True)
        torch.linalg.solve(a, d)
        torch.linalg.solve(b, a)
        torch.linalg.solve(a, b.mT)
        torch.linalg.solve(a, b.to(torch.float16))
        torch.linalg.solve(a.long(), b.long())
        torch.linalg.solve(v, v)
        torch.linalg.solve_triangular(a, v, upper=True)
        torch.linalg.solve_triangular(b, b, upper=True)
        torch.linalg.solve_triangular(a, b.mT, upper=True)
        torch.linalg.lstsq(a, b.mT)
        torch.linalg.lstsq(v, v)
        torch.linalg.lstsq(a, b, driver="x")
        torch.cholesky_solve(v, a)
        torch.cholesky_solve(b.mT, a)
        torch.linalg.tensorsolve(c, d)
        torch.linalg.tensorsolve(b, v)
    """,
    ),
    *rows_for(
        {"x": N(4, 2, 2), "y": N(4), "z": N(2, 2, 4)},
        """
        torch.linalg.tensorsolve(x, y)
        torch.linalg.tensorsolve(x, y.reshape(2, 2), dims=(0,))
        ~ torch.linalg.tensorinv(x, ind=1)
        ~ torch.linalg.tensorinv(z)
        torch.linalg.tensorinv(x)
        torch.linalg.tensorinv(x, 0)
    """,
    ),
    *rows_for(
        {"x": N(3, 4), "v": N(3), "i": I(3, 3), "h": N(3, 3), "t": N(2, 3, 3)},
        """
        torch.linalg.inv(x)
        torch.linalg.inv(v)
        torch.linalg.inv(i)
        torch.linalg.inv(2)
        torch.linalg.inv(h.detach().half())
        torch.linalg.det(x)
        torch.linalg.det(i)
        torch.linalg.det(v)
        torch.linalg.slogdet(x)
        torch.logdet(x)
        torch.linalg.cholesky(x)
        torch.linalg.cholesky(i)
        torch.cholesky_inverse(x)
        torch.linalg.qr(v)
        torch.linalg.qr(x, "x")
        torch.linalg.qr(i)
        torch.linalg.qr(h.detach().half())
        torch.linalg.svd(v)
        torch.linalg.svd(i)
        torch.linalg.svd(h.detach().half())
        torch.svd(i)
        torch.linalg.eigh(x)
        torch.linalg.eigh(h, "x")
        torch.linalg.eigh(i)
        torch.linalg.pinv(v)
        torch.linalg.pinv(i)
        torch.linalg.lu(v)
        torch.linalg.lu(i)
        torch.linalg.matrix_rank(v)
        torch.linalg.matrix_rank(i)
        torch.linalg.cond(v)
        torch.linalg.cond(h, "x")
        torch.linalg.cond(x.detach(), 1)
        torch.linalg.norm(i)
        torch.linalg.norm(t, 2)
        torch.linalg.norm(h, "x")
        torch.linalg.norm(v, "fro")
        torch.linalg.norm(h, 3)
        torch.linalg.norm(h, dim=(0, 0))
        torch.linalg.norm(t, dim=(0, 1, 2))
        torch.linalg.norm(v, 3)
        torch.linalg.norm(v, -inf)
        torch.linalg.norm(v, 0).item()
        torch.linalg.matrix_norm(v)
        torch.linalg.matrix_norm(h, 3)
        torch.linalg.matrix_norm(h, dim=(0,))
        torch.linalg.matrix_norm(h, dim=(0, 0))
        torch.linalg.matrix_norm(i)
        torch.linalg.vector_norm(i)
        torch.linalg.vector_norm(h, "fro")
        torch.symeig(h)
        h.eig()
        torch.solve(h, h)
        torch.lstsq(h, h)
        torch.matrix_rank(h)
    """,
    ),
    # torch's own determinant of a singular matrix has the gradient 0; its formula for create_graph=True the cofactors, as here
    *rows_for(
        {"s": V(SINGULAR), "n": V([[-1.0, 0.0], [0.0, 1.0]]), "q": V([[float("nan"), 0.0], [0.0, 1.0]])},
        """
        torch.linalg.inv(s)
        torch.linalg.inv(torch.stack([torch.eye(3, dtype=s.dtype), s]))
        torch.linalg.inv_ex(s, check_errors=True)
        torch.linalg.inv_ex(s.detach()).info
        torch.linalg.solve(s, s)
        torch.linalg.solve(torch.stack([s, s]), s)
        torch.linalg.solve_ex(s.detach(), s.detach()).info
        torch.linalg.solve_ex(s, s, check_errors=True)
        torch.linalg.det(s.detach()).abs()
        torch.linalg.slogdet(s.detach()).logabsdet
        torch.logdet(s.detach())
        torch.logdet(n.detach())
        torch.linalg.matrix_rank(s)
        torch.linalg.cond(s.detach(), 1)
        torch.linalg.lu_factor(s)
        torch.linalg.lu_factor_ex(s.detach()).info
        torch.linalg.cholesky(n)
        torch.cholesky(n)
        torch.linalg.cholesky(torch.stack([torch.eye(2, dtype=n.dtype), n]))
        torch.linalg.cholesky_ex(n.detach()).info
        torch.linalg.cholesky_ex(n, check_errors=True)
        torch.linalg.svd(q)
        torch.linalg.eigh(q)
        torch.linalg.solve_triangular(n - n, n, upper=True).isfinite()
    """,
    ),
    *rows_for(
        {"x": N(0, 0), "y": N(0, 3), "z": N(0, 2, 2), "e": V([[1.0, 0.0], [0.0, 1.0]]), "o": V([[0.0, 0.0], [0.0, 0.0]])},
        """
        torch.linalg.inv(x)
        torch.linalg.inv(z)
        torch.linalg.det(x.detach())
        torch.linalg.slogdet(x)
        torch.linalg.det(z.detach())
        torch.linalg.svd(x)
        torch.linalg.svdvals(y)
        torch.linalg.qr(x)
        torch.linalg.eigh(x)
        torch.linalg.eigvalsh(z)
        torch.linalg.cholesky(x)
        torch.linalg.solve(x, y)
        torch.linalg.pinv(y)
        torch.linalg.matrix_rank(y)
        torch.linalg.matrix_norm(y)
        torch.linalg.matrix_norm(z)
        torch.linalg.eigh(e)[0]
        torch.linalg.eigvalsh(e * 2)
        torch.linalg.svdvals(e)
        torch.linalg.svd(e)[1]
        torch.linalg.matrix_norm(e, "nuc")
        torch.linalg.matrix_norm(e, 2)
        torch.linalg.matrix_norm(o, 2)
        torch.linalg.matrix_norm(o, "nuc")
        torch.linalg.matrix_norm(o, 1)
        torch.linalg.matrix_norm(o)
    """,
    ),
]

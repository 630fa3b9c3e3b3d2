"""Random programs of views, writes, indexing and sums: all methods give one matrix, and no pattern omits an entry."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore.jacobian import hessian, jacobian

SHAPES = [(3,), (2, 3), (3, 3), (), (2, 1), (1, 3), (2, 3, 3)]
MAKE = """A.tanh() | A * 2 | A + B | A * B | A - B | gl.where(A > B, A, B) | A @ B | A.sum() | A.sum(-1, keepdim=True) | A.mean(0)
A.softmax(-1) | A.logsumexp(0) | A.cumsum(-1) | A.cumprod(0) | A.sort(-1).values | A.flip(0) | A.roll(1, -1) | A.tril(-1)
A.repeat(2, *[1] * A.dim()) | A.gather(-1, A.argsort(-1)) | A.topk(1, -1).values | A[[0, -1]] | A[A > 0] | A[..., [0, -1, 0]]
A[None, :, [0, 0]] | A.masked_fill(A > 0.3, 0.) | A.clamp(-.5, .5) | A.norm() | gl.stack([A, A * 3]) | A.amax(-1, keepdim=True)
gl.nn.functional.pad(A, (1, 2)) | gl.nn.functional.pad(A[None], (1, 1), mode='circular') | A.unfold(-1, 2, 1)
gl.nn.functional.conv1d(A.reshape(1, 1, -1), gl.ones(1, 1, 2, dtype=gl.float64), padding=1) | A.as_strided((2,), (1,))
gl.zeros(4, dtype=gl.float64).scatter_add(0, gl.tensor([1, 1]), A.reshape(-1)[:2]) | gl.cat([A.reshape(-1), A.reshape(-1) * 2])"""
VIEW = """A[0] | A[1:] | A[..., ::2] | A.transpose(0, -1) | A.reshape(-1) | A.unsqueeze(0) | A.diagonal() | A[:, 0] | A[-1, ...]
A.expand(2, *A.shape) | A[0, 0]"""
WRITE = """A.add_(B) | A.mul_(2) | A.exp_() | A.zero_() | A.copy_(B) | A[0] = B | A[...] = B | A[[0, -1]] = B | A[A > 0] = 0.25
A[1:] *= 2 | A[0] += 1 | A.masked_fill_(B > 0, 0.) | A[::2] *= B[0] | A.diagonal()[:] = B[0] | A[gl.tensor([0, 0])] = B
A.index_add_(0, gl.tensor([0, 0]), B[:1].expand(2, *B.shape[1:])) | A.mT[0] += 1 | A.mul_(A)"""
WAYS = (
    {"method": "batched", "chunk_size": 3},
    {"method": "columns"},
    {"method": "columns", "chunk_size": 2},
    {"method": "sparse"},
    {"method": "sparse", "chunk_size": 1},
)


def lines(table):
    return table.replace("\n", " | ").split(" | ")


def names_of(seed):
    """Run up to fourteen random lines and return the names they bind. Lines that raise are skipped."""
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    names = {name: gl.tensor(numbers.normal(size=draw.choice(SHAPES)), dtype=gl.float64).requires_grad_() for name in "xyz"}
    for k in range(draw.randint(3, 14)):
        table = draw.choices((MAKE, VIEW, WRITE), (46, 20, 34))[0]
        line = draw.choice(lines(table)).replace("A", draw.choice(list(names)[-6:])).replace("B", draw.choice(list(names)))
        try:
            exec(line if table is WRITE else f"t{k} = {line}", {"gl": gl}, names)
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
    return draw, names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(150))
def test_all_methods_give_one_matrix(seed):
    draw, names = names_of(seed)
    made = [t for name, t in names.items() if name not in "xyz" and t.requires_grad and t.numel() <= 60]
    if not made:
        pytest.skip("no tensor was computed")
    outputs, inputs = tuple(draw.sample(made, min(2, len(made)))), tuple(names[name] for name in "xyz")
    try:
        rows = np.asarray(jacobian(outputs, inputs, method="rows"))
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            pytest.skip("a saved tensor was overwritten")
        raise
    for way in WAYS:
        made = np.asarray(jacobian(outputs, inputs, **way))
        np.testing.assert_allclose(made, rows, rtol=1e-7, atol=1e-9 * max(1, abs(rows).max(initial=0)), err_msg=str(way))


def vector(n=6):
    return gl.linspace(0.5, 2, n, dtype=gl.float64)


def test_writing_twice_to_one_place_has_the_entries_of_its_rule():
    def f(u):
        t = u * 1
        t[gl.tensor([0, 0])] = u[2:4]
        return t

    rows = np.asarray(jacobian(f, vector(), method="rows"))
    np.testing.assert_array_equal(rows[0], [0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(jacobian(f, vector(), method="sparse"), rows)


def test_a_write_through_an_expanded_view():
    def f(u):
        t = u * 3
        t.expand(2, 6)[1:] *= 2
        return t

    for method in ("rows", "columns", "sparse"):
        np.testing.assert_array_equal(jacobian(f, vector(), method=method), 6 * np.eye(6))
    t = gl.func.jvp(f, (vector(),), (vector(),))[1]
    np.testing.assert_array_equal(t.numpy(), 6 * vector().numpy())


def test_a_jacobian_uses_the_tensors_before_a_write():
    x = vector(3).requires_grad_()
    y = x * 2
    J = jacobian(y, x)
    y.mul_(5)
    np.testing.assert_array_equal(J, 2 * np.eye(3))
    np.testing.assert_array_equal(jacobian(y, x), 10 * np.eye(3))
    h = x * 2
    J = jacobian(h * 3, h, method="columns")
    h.add_(1)
    np.testing.assert_array_equal(J, 3 * np.eye(3))


@pytest.mark.torch
@pytest.mark.parametrize("method", ["rows", "batched", "columns"])
def test_a_jacobian_uses_tensors_of_torch_before_a_write(method):
    torch = pytest.importorskip("torch")
    x = torch.linspace(1, 2, 3, requires_grad=True)
    y = x * 2
    J = jacobian(y, x, method=method)
    y.mul_(5)
    np.testing.assert_array_equal(J, 2 * np.eye(3))
    h = x * 2
    J = jacobian((h * 3, h, x), (h, x), method=method)
    h.add_(1)
    np.testing.assert_array_equal(J, np.kron([[3, 6], [1, 2], [0, 1]], np.eye(3)))


def test_a_product_has_its_own_memory():
    u = np.ones(6)
    J = jacobian(lambda x: x.reshape(2, 3), vector())
    for made in (J.jvp(u), J @ u, J.vjp(u), u @ J):
        np.testing.assert_array_equal(made, u)
        assert not np.shares_memory(made, u)


def test_the_hessian_of_a_linear_function_has_an_empty_pattern():
    for method in ("sparse", "rows", "columns", "auto"):
        H = hessian(lambda x, y: (x * 3).sum() + y.sum(), (vector(4), vector(3)), method=method)
        assert H.sparse().shape == (7, 7) and not np.asarray(H).any()


class ByNumPy(gl.autograd.Function):
    """The square, with a backward that uses NumPy, or times a `scale` of 0."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return gl.from_numpy(2 * ctx.scale * g.detach().numpy() * x.detach().numpy()), None


def test_an_unrecorded_backward_is_not_taken_for_zero_in_a_forward_sweep():
    x = vector(3)
    for way in ({"method": "rows"}, {"method": "batched"}, {"method": "sparse"}):
        np.testing.assert_allclose(jacobian(lambda u: ByNumPy.apply(u, 1) + u, x, **way), np.diag(2 * x.numpy() + 1))
    for request in (
        lambda: np.asarray(jacobian(lambda u: ByNumPy.apply(u, 1) + u, x, method="columns")),
        lambda: gl.func.jvp(lambda u: ByNumPy.apply(u, 1), (x,), (x,)),
        lambda: jacobian(lambda u: ByNumPy.apply(u, 1), x).jvp(np.ones(3)),
    ):
        with pytest.raises(NotImplementedError, match=r"ByNumPy\.backward uses operations that are not recorded"):
            request()
    np.testing.assert_array_equal(jacobian(lambda u: ByNumPy.apply(u, 0) + u, x, method="columns"), np.eye(3))

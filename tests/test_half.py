"""Compare float16 operations of gradlab and torch, for magnitudes from the smallest subnormal number to the largest number.

Torch computes a float16 operation in float32 and rounds the result once (opmath). A result is correct if it is within one
rounding of the float64 result or of torch's float16 result. Composite operations and gradients are rounded in each step, also in
torch, so their bound is the number of roundings. Where torch overflows in an intermediate step, gradlab may return the number.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import gradlab

torch = pytest.importorskip("torch", reason="the extra 'oracle' is not installed: no live comparison with torch")
pytestmark = pytest.mark.oracle

EPS, TINY, MAX = 2.0**-11, 2.0**-24, 65504.0  # half a unit in the last place, the smallest number, the largest
# Each line: the number of roundings allowed, and expressions of x, y (4, 6), w (6, 3), u (2, 6, 6), k (a kernel), s (a number).
# n allows two roundings, and twenty for the gradient, which is a difference of rounded terms.
ROWS = """
1: x + s | x - s | s - x | x * s | s * x | x / s | x + y | x - y | x * y | x / y | x ** 2 | x ** 3 | x ** 0.3 | lib.rsub(x, s)
1: lib.add(x, y, alpha=3) | lib.sub(x, y, alpha=3) | lib.addcmul(x, y, y) | lib.addcdiv(x[:, :3], y[:, 3:], y[:, :3])
1: lib.lerp(x, y, 0.25)
1: x.clone().mul_(s) | x.clone().div_(s) | x * lib.tensor(s) | x / lib.tensor(s) | x.clone().addcmul_(x, y, value=0.5)
1: x.tanh() | x.sigmoid() | x.exp() | x.log() | x.log1p() | x.expm1() | x.sqrt() | x.rsqrt() | x.reciprocal() | x.sinh()
1: x.cosh()
1: x.asinh() | x.atan() | x.erf() | lib.hypot(x, y) | lib.logaddexp(x, y) | lib.atan2(x, y)
1: F.mish(x) | F.gelu(x) | F.gelu(x, approximate='tanh') | F.silu(x) | F.softplus(x) | F.softplus(x, beta=1e-3) | F.elu(x)
1: F.selu(x)
1: F.logsigmoid(x) | F.hardswish(x) | F.hardsigmoid(x) | F.leaky_relu(x, 1e-5) | F.softshrink(x) | F.celu(x, 2.)
1: F.hardtanh(x)
1: x.sum(0) | x.mean() | x.mean(1) | x.var() | x.std(0) | x.var(1, correction=0) | x.prod(1) | x.cumsum(1) | x.cumprod(1)
1: x.nansum(0) | x.logsumexp(1) | x.softmax(1) | x.log_softmax(0) | lib.var_mean(x)[0] | lib.std_mean(x, 1)[0]
1: x.norm() | x.norm(1, 0) | x.norm(float('inf')) | lib.linalg.vector_norm(x, 0.5, 1)
2: x.norm(3, 1) | lib.linalg.vector_norm(x / 4, 4) | F.glu(x) | lib.renorm(x, 2, 0, 1.)
1: x @ w | x.mv(w[:, 0]) | x[0].dot(w[:, 0]) | lib.bmm(x[None], w[None]) | F.linear(x, w.T) | lib.outer(x[0], y[0])
1: lib.addmm(y[:, :3], x, w) | lib.addmm(y[:, :3], x, w, beta=.5, alpha=.25) | lib.baddbmm(y[None, :, :3], x[None], w[None])
1: F.linear(x, w.T, w[0])
1: F.conv1d(x[None], k) | F.conv1d(x[None], k, k[:, 0, 0], padding=1) | F.conv_transpose1d(x[None], k, stride=2)
1: F.avg_pool1d(x[None], 3)
1: F.layer_norm(x, (6,)) | F.layer_norm(x, (6,), w[:, 0], w[:, 1]) | F.group_norm(x[None], 2)
1: F.batch_norm(x, None, None, training=True)
2: F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y)
2: F.cross_entropy(x, lib.tensor([0, 5, 2, 1])) | F.nll_loss(x, lib.tensor([0, 5, 2, 1])) | F.rms_norm(x, (6,))
2: F.rms_norm(x, (6,), w[:, 0])
4: lib.dist(x, y) | F.pairwise_distance(x, y)
4: F.scaled_dot_product_attention(x, y, x) | F.scaled_dot_product_attention(x[:, None], y[:, None], x[:, None])
4: F.tanhshrink(x)
4: lib.einsum('ij,jk->ik', x, w) | lib.tensordot(x, w, 1) | F.interpolate(x[None], scale_factor=1.5, mode='linear')
4: F.interpolate(x[None], size=9, mode='nearest')
n: x.logcumsumexp(1) | F.normalize(x) | F.cosine_similarity(x, y) | F.softsign(x) | F.bilinear(x, y, u)
n: F.bilinear(x, y, u, w[:2, 0])
n: F.binary_cross_entropy_with_logits(x, y.sigmoid()) | lib.sinc(x)
"""
SCALES = [2e-7, 1e-4, 0.05, 1.0, 20.0, 300.0, 4e4]
CASES = [(line[0], text.strip()) for line in ROWS.strip().splitlines() for text in line[3:].split(" | ")]


def halves(seed: int, scale: float) -> dict[str, np.ndarray]:
    """Return leaves of random magnitudes: `scale` for x, `scale` or a fixed one for the others."""
    draw = np.random.default_rng(seed)
    shapes = {"x": (4, 6), "y": (4, 6), "w": (6, 3), "k": (4, 4, 3), "u": (2, 6, 6)}
    sizes = {
        "x": scale,
        "y": draw.choice([scale, 1.0]),
        "w": draw.choice([scale, 1.0, 0.01]),
        "k": draw.choice([scale, 0.5]),
        "u": 1.0,
    }
    return {n: (draw.uniform(-1, 1, shape) * sizes[n]).astype(np.float16) for n, shape in shapes.items()}


def run(lib: Any, text: str, leaves: dict[str, np.ndarray], s: float, dtype: str, weights: np.ndarray | None) -> Any:
    """Return the result, and the gradients of its weighted sum for every leaf."""
    names = {n: lib.from_numpy(v.copy()).to(getattr(lib, dtype)).requires_grad_() for n, v in leaves.items()}
    made = eval(text, {"lib": lib, "F": lib.nn.functional, "s": s, **names})
    if weights is None:
        return made, None
    made.backward(lib.from_numpy(weights.reshape(tuple(made.shape))).to(made.dtype))
    return made, {n: None if x.grad is None else x.grad for n, x in names.items()}


def array(x: Any) -> np.ndarray:
    return x.detach().numpy(force=True)


def wrong_elements(found: np.ndarray, exact: np.ndarray, roundings: int) -> np.ndarray:
    """Return a mask of the elements of `found` that are not correct roundings of the float64 array `exact`."""
    with np.errstate(all="ignore"):
        bound = roundings * EPS * np.abs(exact) + roundings * TINY
        right = np.abs(found.astype(float) - exact) <= bound
        right |= np.isnan(found) & np.isnan(exact)
        right |= (found == exact) | (
            (np.abs(exact) + bound >= MAX) & (np.abs(found) >= MAX * (1 - 4 * EPS)) & (np.sign(found) == np.sign(exact))
        )
    return ~right


def agreeing_elements(found: np.ndarray, other: np.ndarray, roundings: int) -> np.ndarray:
    """Return a mask of the elements that agree in two float16 results."""
    return ~wrong_elements(found, other.astype(float), roundings)


@pytest.mark.parametrize(("roundings", "text"), CASES, ids=[text for _, text in CASES])
def test_forward_is_rounded_once(roundings: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, scale in enumerate(SCALES * 3):
            leaves, s = halves(seed, scale), [3e5, 1e-6, 0.3, 7.0][seed % 4]
            exact, theirs = (array(run(torch, text, leaves, s, dtype, None)[0]) for dtype in ("float64", "float16"))
            found = run(gradlab, text, leaves, s, "float16", None)[0]
            assert found.dtype == gradlab.float16 and tuple(found.shape) == theirs.shape
            allowed = 2 if roundings == "n" else int(roundings)
            wrong = wrong_elements(array(found), exact, allowed) & ~agreeing_elements(array(found), theirs, allowed)
            assert not wrong.any(), (scale, s, array(found)[wrong], theirs[wrong], exact[wrong])


@pytest.mark.parametrize(("roundings", "text"), CASES, ids=[text for _, text in CASES])
def test_gradients(roundings: str, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed, scale in enumerate(SCALES[2:] * 3):
            leaves, s = halves(seed, scale), [3e5, 1e-6, 0.3, 7.0][seed % 4]
            shape = run(torch, text, leaves, s, "float64", None)[0].shape
            weights = np.random.default_rng(seed).uniform(-1, 1, tuple(shape)).astype(np.float16)
            (_, exact), (_, theirs) = (run(torch, text, leaves, s, dtype, weights) for dtype in ("float64", "float16"))
            made, found = run(gradlab, text, leaves, s, "float16", weights)
            for name, g in found.items():
                assert (g is None) == (theirs[name] is None), name
                if g is not None:
                    assert g.dtype == gradlab.float16
                    if roundings == "n":
                        right = array(exact[name])
                        wrong = np.abs(array(g).astype(float) - right) > 20 * EPS * np.abs(right).max() + 4 * TINY
                        wrong &= ~agreeing_elements(array(g), array(theirs[name]), 20)
                    else:
                        allowed = 4 * int(roundings)
                        wrong = wrong_elements(array(g), array(exact[name]), allowed) & ~agreeing_elements(
                            array(g), array(theirs[name]), allowed
                        )
                    assert not wrong.any(), (name, scale, s, *(array(one)[wrong] for one in (g, theirs[name], exact[name])))


def test_nodes_and_hooks_of_halves_have_dtype_float16() -> None:
    """Although it is computed in float32, its node, saved tensors and hooks have dtype float16."""
    x = gradlab.tensor([0.5, -2.0], dtype=gradlab.half, requires_grad=True)
    y = gradlab.nn.functional.gelu(x * 1)
    seen = []
    y.register_hook(lambda g: seen.append(g.dtype))
    y.retain_grad()
    assert (y.dtype, y.grad_fn.name(), y.grad_fn._saved_self.dtype) == (gradlab.half, "GeluBackward0", gradlab.half)
    y.sum().backward()
    assert seen == [gradlab.half]
    assert (x.grad.dtype, y.grad.dtype) == (gradlab.half, gradlab.half)
    held = x * 1
    made = held.softmax(0) * gradlab.nn.functional.mish(held)
    with gradlab.no_grad():
        held.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        made.sum().backward()


def test_second_derivatives_and_tangents_of_halves() -> None:
    for name in ("tanh", "sigmoid", "exp", "silu", "softplus", "mish"):
        leaves = {
            lib: lib.tensor([0.5, -1.5, 2.0], dtype=dtype, requires_grad=True)
            for lib, dtype in ((gradlab, gradlab.half), (torch, torch.double))
        }
        second, tangents = {}, {}
        for lib, x in leaves.items():
            f = getattr(lib.nn.functional, name, None) or getattr(lib, name)
            (g,) = lib.autograd.grad(f(x).sum(), x, create_graph=True)
            (second[lib],) = lib.autograd.grad(g.sum(), x)
            with lib.autograd.forward_ad.dual_level():
                dual = lib.autograd.forward_ad.make_dual(x.detach(), lib.ones_like(x))
                tangents[lib] = lib.autograd.forward_ad.unpack_dual(f(dual)).tangent
        for found in (second, tangents):
            assert found[gradlab].dtype == gradlab.half
            ours, exact = (found[lib].detach().numpy().astype(float) for lib in (gradlab, torch))
            assert np.allclose(ours, exact, rtol=8 * EPS, atol=4 * EPS)


def test_sums_of_many_halves_are_computed_in_float32() -> None:
    """A sum of ones in float16 would stop at 2048."""
    row = gradlab.ones(3, dtype=gradlab.half, requires_grad=True)
    table = gradlab.ones(5000, 3, dtype=gradlab.half)
    for y in (table + row, table * row, table @ row):
        row.grad = None
        y.sum().backward(gradlab.tensor(0.5, dtype=gradlab.half)) if y.dim() == 1 else y.backward(gradlab.ones_like(y))
        assert row.grad.tolist() == [2500.0 if y.dim() == 1 else 5000.0] * 3
    assert table.sum(0).tolist() == [5000.0] * 3

"""Test results that are wrong in torch against numerical derivatives, formulas and series expansions."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, gamma, pi, sqrt
from typing import Any

import numpy as np
import pytest
from differences import numerical_jacobian

import gradlab as gl


def array(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def gradient(f: Callable[[gl.Tensor], gl.Tensor], x: np.ndarray, seed: np.ndarray) -> np.ndarray:
    leaf = gl.from_numpy(x.copy()).requires_grad_()
    return gl.autograd.grad(f(leaf), leaf, gl.from_numpy(seed))[0].numpy()


def assert_slope(f: Callable[[gl.Tensor], gl.Tensor], x: np.ndarray) -> None:
    """Assert that the gradient of a weighted sum agrees with numerical derivatives."""

    def run(x: np.ndarray) -> np.ndarray:
        return f(gl.from_numpy(x.copy())).numpy()

    seed = array(*run(x).shape, seed=7)
    np.testing.assert_allclose(
        gradient(f, x, seed).reshape(-1), seed.reshape(-1) @ numerical_jacobian(run, x), rtol=1e-5, atol=1e-7
    )


FACTOR, RIGHT = array(3, 3) + 3 * np.eye(3), gl.from_numpy(array(3, 2, seed=1))
SLOPES: dict[str, tuple[Callable[[gl.Tensor], gl.Tensor], np.ndarray]] = {
    "cholesky_solve": (lambda x: gl.cholesky_solve(RIGHT, x), FACTOR),
    "cholesky_solve, upper": (lambda x: gl.cholesky_solve(RIGHT, x, upper=True), FACTOR),
    "cholesky_inverse": (gl.cholesky_inverse, FACTOR),
    "cholesky_inverse, upper": (lambda x: gl.cholesky_inverse(x, upper=True), FACTOR),
    "max_unpool1d": (lambda x: gl.nn.functional.max_unpool1d(x, gl.tensor([[0, 2, 0, 2]]), 2), array(1, 4)),
    "max_unpool2d": (lambda x: gl.nn.functional.max_unpool2d(x, gl.tensor([[[5, 5], [1, 5]]]), 2), array(1, 2, 2)),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradients(name: str) -> None:
    assert_slope(*SLOPES[name])


def test_pinv_of_the_lower_triangle() -> None:
    """The upper triangle is arbitrary. The derivative is taken along a symmetric direction."""
    x, step, seed, h = array(4, 4), array(4, 4, seed=1), array(4, 4, seed=2), 1e-6
    step = step + step.T

    def pinv(x: Any) -> Any:
        return gl.linalg.pinv(x, hermitian=True)

    by_difference = (pinv(gl.from_numpy(x + h * step)) - pinv(gl.from_numpy(x - h * step))).numpy() / (2 * h)
    assert (gradient(pinv, x, seed) * step).sum() == pytest.approx((seed * by_difference).sum(), rel=1e-6)
    whole = np.tril(x) + np.tril(x, -1).T
    np.testing.assert_allclose(pinv(gl.from_numpy(x)).numpy(), np.linalg.inv(whole), rtol=1e-9)


def test_hardsigmoid() -> None:
    assert gradient(gl.nn.functional.hardsigmoid, np.array(0.5), np.array(1.0)) == 1 / 6


# ----------------------------------------------------------------------------------------------------- special functions
X = np.linspace(0.1, 20, 67)


def special(name: str, x: Any = X) -> np.ndarray:
    return getattr(gl.special, name)(gl.from_numpy(np.asarray(x, float))).numpy()


@pytest.mark.parametrize("n", [0, 1])
def test_bessel_j(n: int) -> None:
    """Bessel's integral, DLMF 10.9.2: (1/π) ∫₀^π cos(nτ - x sin τ) dτ, exact to all digits with the trapezoidal rule."""
    tau = 2 * pi * np.arange(128) / 128
    expected = np.cos(n * tau - X[:, None] * np.sin(tau)).mean(1)
    np.testing.assert_allclose(special(f"bessel_j{n}"), expected, rtol=0, atol=2e-15)


def test_bessel_y() -> None:
    """The Wronskian, DLMF 10.5.2: J₁ Y₀ - J₀ Y₁ = 2 / (πx); and Y₀' = -Y₁."""
    j0, j1, y0, y1 = (special(f"bessel_{name}") for name in ("j0", "j1", "y0", "y1"))
    np.testing.assert_allclose(j1 * y0 - j0 * y1, 2 / (pi * X), rtol=1e-13)
    h = 1e-5
    np.testing.assert_allclose((special("bessel_y0", X + h) - special("bessel_y0", X - h)) / (2 * h), -y1, atol=3e-8)


def test_airy_ai() -> None:
    """Maclaurin series, DLMF 9.4.1."""
    x = np.linspace(-4, 2, 49)
    f, g = np.ones_like(x), x.copy()
    first, second = f.copy(), g.copy()
    for k in range(1, 40):
        first = first * x**3 / ((3 * k - 1) * (3 * k))
        second = second * x**3 / ((3 * k) * (3 * k + 1))
        f, g = f + first, g + second
    expected = f / (3 ** (2 / 3) * gamma(2 / 3)) - g / (3 ** (1 / 3) * gamma(1 / 3))
    np.testing.assert_allclose(special("airy_ai", x), expected, rtol=0, atol=1e-14)


def test_the_tail_of_the_normal() -> None:
    """Φ(-x) = φ(x) / (x + 1/(x + 2/(x + …))), DLMF 7.9.1; and the derivatives of its logarithm, φ/Φ and -φ/Φ (x + φ/Φ)."""
    x = np.array([5.0, 8.0, 12.0, 20.0, 30.0])
    rest = x.copy()  # x + 2/(x + 3/(x + …))
    for k in range(300, 1, -1):
        rest = x + k / rest
    mills = x + 1 / rest  # φ/Φ at -x
    np.testing.assert_allclose(special("ndtr", -x), np.exp(-x * x / 2) / sqrt(2 * pi) / mills, rtol=1e-12)
    leaf = gl.from_numpy(-x).requires_grad_()
    (slope,) = gl.autograd.grad(gl.special.log_ndtr(leaf).sum(), leaf, create_graph=True)
    (curve,) = gl.autograd.grad(slope.sum(), leaf)
    np.testing.assert_allclose(slope.detach().numpy(), mills, rtol=1e-14)
    np.testing.assert_allclose(curve.numpy(), -mills / rest, rtol=3e-13)


def test_log_ndtr_far_out() -> None:
    """At -x, φ/Φ is x + 1/x - …, DLMF 7.12.1. Torch's result is 0.4 % off at -5 · 10⁶ and inf at -10¹⁰."""
    x = np.array([1e2, 5e6, 1e10, 1e20])
    np.testing.assert_allclose(gradient(gl.special.log_ndtr, -x, np.ones(4)), x + 1 / x - 2 / x**3, rtol=1e-11)


def test_polygamma_of_many() -> None:
    """The limit of ψ″ at ∞ is 0. At 1/2 it is -14 ζ(3), computed from its series (DLMF 5.15.1)."""
    x = gl.tensor([float("inf"), 0.5], dtype=gl.float64)
    k = np.arange(200_000) + 0.5
    assert gl.polygamma(2, x).numpy() == pytest.approx([0, -factorial(2) * (k**-3.0).sum()], rel=1e-10)


@pytest.mark.parametrize("leaf", ["x", "w", "b"])
def test_third_derivatives_of_layer_norm(leaf: str) -> None:
    """Third derivatives of a sum of squares, along two directions of x and by a leaf. Torch treats mean and std as constants."""
    start = {"x": array(2, 3), "w": array(3, seed=1), "b": array(3, seed=2)}
    first, second = gl.from_numpy(array(2, 3, seed=3)), gl.from_numpy(array(2, 3, seed=4))

    def curvature(at: np.ndarray) -> tuple[gl.Tensor, gl.Tensor]:
        given = {name: gl.from_numpy(value.copy()).requires_grad_() for name, value in (start | {leaf: at}).items()}
        y = gl.nn.functional.layer_norm(given["x"], (3,), given["w"], given["b"])
        (g,) = gl.autograd.grad(y.pow(2).sum(), given["x"], create_graph=True)
        (h,) = gl.autograd.grad((g * first).sum(), given["x"], create_graph=True)
        return (h * second).sum(), given[leaf]

    value, by = curvature(start[leaf])
    (found,) = gl.autograd.grad(value, by)
    expected = numerical_jacobian(lambda at: curvature(at)[0].detach().numpy().reshape(1), start[leaf])
    np.testing.assert_allclose(found.numpy().reshape(-1), expected.reshape(-1), rtol=1e-5, atol=1e-6)


def test_forward_mode_of_writes_into_what_they_read() -> None:
    """(x²)' = 2x, (x + x²)' = 1 + 2x and (x · x²)' = 3x². Torch reads the tangent after it has been partly overwritten."""
    writes: list[tuple[Callable[[gl.Tensor], gl.Tensor], float]] = [
        (lambda x: x.mul_(x), 6.0),
        (lambda x: x.addcmul_(x, x), 7.0),
        (lambda x: x.mul_(x * x), 27.0),
        (lambda x: x.mul_(x[...]), 6.0),
    ]
    for write, expected in writes:
        with gl.autograd.forward_ad.dual_level():
            x = gl.autograd.forward_ad.make_dual(gl.tensor([3.0]), gl.tensor([1.0]))
            assert gl.autograd.forward_ad.unpack_dual(write(x)).tangent.tolist() == [expected]  # type: ignore[union-attr]

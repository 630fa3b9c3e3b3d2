"""Memory of normalisations, and their accuracy for a large mean."""

from __future__ import annotations

import numpy as np
import pytest

import gradlab as gl

F = gl.nn.functional
NORMS = {
    "layer": lambda x, w, b: F.layer_norm(x, x.shape[1:], w, b),
    "batch": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "group": lambda x, w, b: F.group_norm(x, 4, w, b),
}


def arrays_of(node):
    """Return all arrays that a node saves."""
    kept = [saved if isinstance(saved, np.ndarray) else saved.array for saved in node.saved]
    return kept + [a for m in node.meta if isinstance(m, (list, tuple)) for a in m if isinstance(a, np.ndarray)]


@pytest.mark.parametrize("norm", NORMS)
def test_the_input_and_a_few_numbers_for_each_group_are_saved(norm):
    x, w, b = (gl.randn(*shape).requires_grad_() for shape in ((32, 64), (64,), (64,)))
    y = NORMS[norm](x, w, b)
    large = [a for a in arrays_of(y.grad_fn) if a.size > 4 * 64 * 2]
    assert [a is x.array for a in large] == [True]


@pytest.mark.parametrize("norm", NORMS)
def test_close_to_float64_around_a_large_mean(norm):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((32, 64)) + 100).astype(np.float32)
    w, b, v = rng.standard_normal(64), rng.standard_normal(64), rng.standard_normal((32, 64))
    results = []
    for dtype in (np.float32, np.float64):
        leaves = [gl.from_numpy(a.astype(dtype)).requires_grad_() for a in (x, w, b)]
        y = NORMS[norm](*leaves)
        y.backward(gl.from_numpy(v.astype(dtype)))
        results.append([y.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=0, atol=2e-4 * np.abs(double).max())


def test_evaluation_uses_the_running_statistics_as_they_were():
    x, mean, var = gl.randn(4, 3).requires_grad_(), gl.tensor([0.5, 1.0, 2.0]), gl.tensor([4.0, 1.0, 0.25])
    y = F.batch_norm(x, mean, var, eps=0.0)
    mean.zero_()
    var.zero_()
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.tile([0.5, 1.0, 2.0], (4, 1)), rtol=1e-6)

"""Test named results, and properties of reductions that the operators' tables do not cover: accuracy, warnings, errors."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pytest

import gradlab as gl


def test_a_result_is_a_tuple_with_names():
    result = gl.tensor([[3.0, 1.0], [2.0, 5.0]]).max(1)
    values, indices = result
    assert values is result.values is result[0]
    assert indices is result.indices
    assert isinstance(result, tuple)
    assert type(result) is gl.return_types.max
    with pytest.raises(AttributeError, match="It has: values, indices"):
        _ = result.index_of
    with pytest.raises(AttributeError, match="has no attribute 'maximum'"):
        _ = gl.return_types.maximum


def test_a_result_survives_pickling():
    result = gl.tensor([3.0, 1.0]).sort()
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is gl.return_types.sort
    assert again.indices.tolist() == [1, 0]


def test_an_unknown_derivative_raises_an_error():
    x = gl.tensor([3.0, 1.0, 3.0], requires_grad=True)
    y = gl.unique(x)
    assert y.grad_fn.name() == "Unique2Backward0"
    with pytest.raises(NotImplementedError, match="the derivative for '_unique2' is not implemented"):
        (y.sum() + x.sum()).backward()


def test_long_sums_are_accurate():
    """Compare with exact sums. A simple loop in float32 would lose four of seven digits."""
    x = np.random.default_rng(0).uniform(0, 1, 300_000).astype(np.float32)
    t = gl.from_numpy(x)
    exact = math.fsum(x.tolist())
    assert t.sum().item() == pytest.approx(exact, rel=1e-6)
    assert t.mean().item() == pytest.approx(exact / x.size, rel=1e-6)
    assert t.cumsum(0)[-1].item() == pytest.approx(exact, rel=1e-6)
    assert t.half().sum().item() == math.inf  # out of the range of float16
    assert t.half().mean().item() == pytest.approx(0.5, abs=1e-3)
    assert t.var().item() == pytest.approx(1 / 12, rel=1e-2)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "std", "nansum", "nanmean", "max", "norm", "median"])
def test_infinities_cause_no_warnings(name):
    x = gl.tensor([[math.inf, -math.inf, math.nan], [0.0, 1e38, 1e38]], requires_grad=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=RuntimeWarning, module=r"(?!gradlab\.)")
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"gradlab\.")
        for y in (getattr(x, name)(), x.softmax(0), x.logsumexp(1), x.cumsum(0), x.cumprod(1), x.logcumsumexp(0)):
            y.sum().backward()


def test_second_derivatives_of_a_product_with_zeros():
    """The derivative d² (x₁ x₂ x₃) / dx₁ dx₂ is x₃, whichever factor is zero. Torch's product over all elements returns 0."""
    x = gl.tensor([0.0, 0.0, 3.0], requires_grad=True)
    (gradient,) = gl.autograd.grad(x.prod(), [x], create_graph=True)
    assert gradient.tolist() == [0.0, 0.0, 0.0]
    rows = [gl.autograd.grad(g, [x], retain_graph=True)[0].tolist() for g in gradient]
    assert rows == [[0.0, 3.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_reduction_saves_only_what_backward_needs():
    x = gl.randn(4, 3).requires_grad_()
    results = x.sum(), x.mean(0), x.var(0), x.std(), x.softmax(1), x.cumsum(0)
    assert [len(y.grad_fn.saved) for y in results] == [0, 0, 1, 2, 1, 0]

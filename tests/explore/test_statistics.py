"""Statistics of arrays against NumPy, and for values for which NumPy's overflow."""

import numpy as np
import pytest

from gradlab.explore import statistics as module
from gradlab.explore.statistics import BINS, statistics

ARRAYS = {
    "matrix": np.random.default_rng(0).normal(size=(7, 11)).astype(np.float32),
    "transposed": np.random.default_rng(1).normal(size=(40, 9)).T,
    "strided": np.random.default_rng(2).normal(size=(60, 8))[::3, ::-2],
    "integers": np.arange(-5, 12),
    "booleans": np.array([True, False, True]),
    "scalar": np.array(3.5),
    "half": np.array([300.0, 400.0], np.float16),
    "broadcast": np.broadcast_to(np.float32([1, 2]), (5, 2)),
}


@pytest.mark.parametrize("piece", [4, 1 << 18])
@pytest.mark.parametrize("name", ARRAYS)
def test_against_numpy(name, piece, monkeypatch):
    monkeypatch.setattr(module, "PIECE", piece)
    array = ARRAYS[name]
    s = statistics(array)
    x = array.astype(np.float64)
    assert s.shape == array.shape and s.size == array.size and s.nans == s.infs == 0
    np.testing.assert_allclose(
        [s.norm, s.minimum, s.maximum, s.mean], [np.linalg.norm(x), x.min(), x.max(), x.mean()], rtol=1e-12, atol=1e-15
    )
    assert s.zeros == int((x == 0).sum())
    if x.min() != x.max():
        counts, edges = np.histogram(x, BINS)
        away = np.abs(x.reshape(-1, 1) - edges[1:-1]).min() > 1e-9  # rounding decides at an edge
        assert sum(s.bins) == x.size and (not away or s.bins == tuple(counts))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("piece", [7, 10**6])
def test_the_fast_path_gives_the_same(dtype, piece, monkeypatch):
    monkeypatch.setattr(module, "CACHED", piece)
    whole = np.random.default_rng(1).normal(3, 2, (40, 9)).astype(dtype)
    whole[::5, 2] = 0
    for array in (whole, whole.T, whole[::-2, 1:], np.abs(whole[:1])):
        short, long = module.finite_statistics(array, histogram=True), statistics(array)
        assert short.bins == long.bins and (short.nans, short.infs, short.zeros) == (long.nans, long.infs, long.zeros)
        assert (short.shape, short.minimum, short.maximum) == (long.shape, long.minimum, long.maximum)
        np.testing.assert_allclose([short.norm, short.mean], [long.norm, long.mean], rtol=1e-6)
    for bad in (np.nan, np.inf, 1e200, 0):
        assert module.finite_statistics(np.full(20, bad)) is None, (
            "it does not handle nonfinite values and squares that underflow"
        )


def test_on_the_device_of_the_array(backend):
    """The strict substitute for device arrays raises if it is converted to NumPy."""
    host = np.array([[1.0, np.nan, -3.0], [0.0, np.inf, 4.0]], np.float32)
    assert statistics(backend(host)) == statistics(host)
    assert statistics(backend(np.float32([2, 2]))).bins[BINS // 2] == 2


def test_nan_and_infinity_are_counted_and_excluded():
    s = statistics(np.array([1.0, np.nan, np.inf, -np.inf, -2.0, 0.0]))
    assert (s.nans, s.infs, s.zeros, s.finite) == (1, 2, 1, 3)
    assert (s.minimum, s.maximum, sum(s.bins)) == (-2.0, 1.0, 3)
    assert s.norm == pytest.approx(5**0.5)


def test_nothing_finite():
    s = statistics(np.array([np.nan, np.inf]))
    assert np.isnan(s.norm) and np.isnan(s.mean) and sum(s.bins) == 0
    assert statistics(np.zeros((0, 3))).size == 0
    assert not statistics(np.zeros((0, 3))).all_zero


@pytest.mark.parametrize("scale", [1e200, 1e-200, 1e308, 5e-324])
def test_no_overflow_and_no_underflow(scale):
    units = np.array([1.0, 1.0, -1.0, 0.0]) if scale == 5e-324 else np.array([1.0, 0.75, -0.5, 0.0])
    s = statistics(units * scale)
    assert s.norm == pytest.approx(scale * float(np.linalg.norm(units)), rel=1e-12)  # 5e-324 rounds to whole units
    assert s.mean == pytest.approx(scale * float(units.mean()), rel=1e-12)
    assert s.bins[0] == 1 and sum(s.bins) == 4 and s.bins[-1] >= 1


def test_one_value_is_in_the_middle_bin():
    s = statistics(np.full((3, 2), 7.0))
    assert s.bins[BINS // 2] == 6 and sum(s.bins) == 6


def test_all_zero():
    assert statistics(np.zeros(4)).all_zero and not statistics(np.array([0.0, 1e-300])).all_zero
    assert not statistics(np.array([0.0, np.nan])).all_zero


@pytest.mark.parametrize(
    ("values", "norm"),
    [([np.nan] * 3, np.nan), ([np.inf, -np.inf], np.inf), ([np.nan, np.inf], np.nan), ([], 0.0), ([3.0, np.nan, 4.0], 5.0)],
)
def test_the_norm_without_finite_values(values, norm):
    np.testing.assert_equal(statistics(np.array(values)).norm, norm)

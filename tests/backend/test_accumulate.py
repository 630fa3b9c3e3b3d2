"""Adding rows at repeated indices."""

from __future__ import annotations

import numpy as np
import pytest

from gradlab.backend.accumulate import MIN_SIZE_SPARSE, add_rows


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64"])
@pytest.mark.parametrize(
    ("lead", "picks", "count", "width"),
    [
        ((), (5,), 3, 2),
        ((2, 3), (4,), 3, 1),
        ((), (0,), 3, 2),
        ((), (2, 2), 4, 3),
        ((), (MIN_SIZE_SPARSE // 4 + 1,), 50, 4),
        ((2,), (MIN_SIZE_SPARSE // 8, 1), 7, 4),
        ((), (MIN_SIZE_SPARSE,), 5, 1),
        ((), (), 2, 3),
    ],
)
def test_add_rows_agrees_with_a_loop(lead, picks, count, width, dtype):
    rng = np.random.default_rng(0)
    at = rng.integers(0, count, picks)
    rows = np.asarray(rng.integers(-4, 5, (*lead, *picks, width))).astype(dtype)
    expected = np.zeros((*lead, count, width), dtype)
    for place in np.ndindex(*lead, *picks):
        expected[(*place[: len(lead)], at[place[len(lead) :]])] += rows[place]
    found = add_rows(np, rows, at, count)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)

"""Products of many small matrices with any strides: those of attention."""

from __future__ import annotations

import numpy as np
import pytest

from gradlab.rules.attention import multiply_matrices

VIEWS = {
    "contiguous": lambda b: b,
    "transposed": lambda b: b.mT.copy().mT,
    "heads": lambda b: b.transpose(0, 2, 1, 3).copy().transpose(0, 2, 1, 3),
    "transposed heads": lambda b: b.transpose(0, 3, 1, 2).copy().transpose(0, 2, 3, 1),
    "every other element": lambda b: np.repeat(b, 2, -1)[..., ::2],
    "repeated rows": lambda b: np.broadcast_to(b[..., :1, :], b.shape),
    "repeated columns": lambda b: np.broadcast_to(b[..., :1], b.shape),
    "backwards": lambda b: b[..., ::-1],
}


@pytest.mark.parametrize("name", VIEWS)
def test_products_match_the_sums_of_products(name):
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((2, 3, 4, 5)), VIEWS[name](draw.standard_normal((2, 3, 5, 6)))
    result = multiply_matrices(a, b)
    assert result.shape == (2, 3, 4, 6)
    np.testing.assert_allclose(result, np.einsum("bhij,bhjk->bhik", a, b), rtol=1e-12)

"""The number 1 as an array without axes. Beside a small array it takes NumPy 0.2 µs less than a Python number."""

from __future__ import annotations

import numpy as np

from gradlab.rules.arguments import Array

ONE = np.ones((), np.float32)  # changes neither float32 nor float64
ONE.flags.writeable = False


def one_minus(x: Array) -> Array:
    """Return 1 - x for an array of at least single precision, a Tensor or a formula."""
    return np.subtract(ONE, x) if type(x) is np.ndarray else 1 - x

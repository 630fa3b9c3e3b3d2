"""Numerical derivatives."""

from __future__ import annotations

import numpy as np


def numerical_jacobian(f, x, eps=1e-6):
    """Return ∂f/∂x by central differences. `f` maps arrays to arrays."""
    columns = []
    for j in range(x.size):
        step = np.zeros(x.size)
        step[j] = eps
        step = step.reshape(x.shape)
        columns.append((f(x + step) - f(x - step)).reshape(-1) / (2 * eps))
    return np.stack(columns, axis=1)

"""Derivatives without autograd, for checks to compare against."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradlab.core.modes import no_grad
from gradlab.core.tensor import Tensor, constant


def central_differences(function: Callable[[Tensor], Tensor], x: Tensor, step: float = 1e-6) -> np.ndarray:
    """Compute the Jacobian of `function` at `x` by central differences in float64: (f(x + h eⱼ) - f(x - h eⱼ)) / 2h.

    Parameters
    ----------
    function : callable
        From a float64 tensor of x's shape to a tensor.
    x : Tensor
        The point. It is not modified.
    step : float
        The step h. The error is about h² f‴/6 + 1e-16 |f|/h.

    Returns
    -------
    ndarray, shape (outputs, inputs)
        Both sides flattened.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.homework import central_differences
    >>> central_differences(lambda x: x**2, gl.tensor([1.0, 2.0])).round(4)
    array([[2., 0.],
           [0., 4.]])
    """
    at = np.array(x.array, np.float64)
    flat = at.reshape(-1)
    columns = []
    with no_grad():
        for j in range(flat.size):
            ends = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[j] += sign * step
                ends.append(np.array(_array(function(constant(moved.reshape(at.shape)))), np.float64).reshape(-1))
            columns.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(columns, axis=1)


def _array(value: Any) -> Any:
    return value.array if isinstance(value, Tensor) else value

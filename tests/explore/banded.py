"""A banded residual, its Jacobian by hand, and Jacobians of it for tests of long runs."""

from __future__ import annotations

import numpy as np

import gradlab as gl

ROWS, COLUMNS = 12, 9
METHODS = ("rows", "batched", "columns", "sparse")
W = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))
START = np.random.default_rng(1).normal(size=ROWS)


def make_x(values=START):
    return gl.tensor(values, dtype=gl.float64)


def banded_residual(x):
    """Return a residual with three bands and as many elements as x."""
    left = gl.cat([x[:1] * 0, x[:-1]])
    return x * x * x - left * x + gl.sin(gl.cat([x[1:], x[-1:]]))


def banded_jacobian(values=START):
    """Return ∂banded_residual/∂x, worked out by hand."""
    n = len(values)
    J = np.diag(3 * values**2)
    for i in range(n):
        if i:
            J[i, i] -= values[i - 1]
            J[i, i - 1] -= values[i]
        J[i, min(i + 1, n - 1)] += np.cos(values[min(i + 1, n - 1)])
    return J


def make_jacobian(method="batched", chunk=None, **options):
    chunk = {"rows": None, "sparse": 1}.get(method, 5) if chunk is None else chunk
    return gl.jacobian(banded_residual, make_x(), method=method, chunk_size=chunk, **options)


def make_file(tmp_path, mode="w+", dtype=np.float64, shape=(ROWS, ROWS), name="J.bin"):
    return np.memmap(tmp_path / name, dtype, mode, shape=shape)


def stop_before_block(J, k, error):
    """Make `J` raise `error` before its k-th block from now on. Return a list that grows with each computed block."""
    computed, inner = [], J.runner.values

    def values(block):
        if len(computed) == k:
            computed.append(None)
            raise error
        computed.append(block.number)
        return inner(block)

    J.runner.values = values
    return computed

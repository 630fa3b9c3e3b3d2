"""A slow Jacobian that tests of clusters stop in the middle, and a program that computes it in a separate process.

`python slow_work.py ADDRESS STORE METHOD GATE` computes it on the cluster at an address, prints its progress, and resumes from
the store.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

import gradlab as gl

SIZE = 120
START = np.linspace(0.1, 2.0, SIZE)


class Slow(gl.autograd.Function):
    """The cube, with slow backward and forward derivatives. The middle one waits for a gate, if there is one."""

    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.gate = gate
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return while_time_passes(g, ctx.gate) * 3 * x * x, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return while_time_passes(t, ctx.gate) * 3 * x * x


def while_time_passes(v, gate):
    """Return v after a delay, or for the row or column in the middle after `gate`, the path of a `waiting.Gate`."""
    at = np.flatnonzero(v)
    if gate is not None and SIZE // 2 in at and len(at) <= 2:
        Path(gate).read_text()
    else:
        time.sleep(0.02)
    return v


def slow(x, gate=None):
    """Combine each element with its neighbour, which gives a banded Jacobian with slow sweeps."""
    y = Slow.apply(x, gate)
    return gl.sin(y) + gl.roll(y, 1) * x


def make_jacobian(f=slow, method="batched", **options):
    return gl.jacobian(f, gl.tensor(START, dtype=gl.float64), method=method, chunk_size=1, **options)


def pattern():
    i = np.arange(SIZE)
    return np.concatenate([i, i]), np.concatenate([i, (i - 1) % SIZE])


def expected_jacobian():
    """Return ∂slow/∂x, worked out by hand."""
    x = START
    back = np.roll(x, 1)
    J = np.diag(np.cos(x**3) * 3 * x**2 + back**3)
    J[np.arange(SIZE), np.arange(SIZE) - 1] += 3 * back**2 * x
    return J


def main():
    from distributed import Client

    address, store, method, gate = sys.argv[1:]

    def say(*what):
        sys.stdout.write(f"{what[0]}\n")
        sys.stdout.flush()

    with Client(address, set_as_default=False) as client:
        J = make_jacobian(partial(slow, gate=gate), method, out=store, resume=True, executor=client, progress=say)
        say("began")
        J.compute()
        say("done")


if __name__ == "__main__":
    main()

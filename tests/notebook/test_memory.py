"""No tensor of a recorded cell is kept alive."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

LARGE = """{magic}
import weakref
def net(h):
    for _ in range(6):
        h = (h * 0.99 + x).tanh()
        alive.append(weakref.ref(h))
    return (h @ w).mean()
loss = net(w)
loss.backward()
"""


@pytest.mark.slow
@pytest.mark.parametrize("magic", ["%%grad", "%%grad -o report", "%%grad --jacobian -q", "%%doctor"])
@pytest.mark.parametrize("library", ["gradlab", pytest.param("torch", marks=pytest.mark.torch)])
def test_tensors_of_a_cell_are_freed(shell, library, magic):
    shell.ok(f"import {library} as lib\nw = lib.randn(500, 500, requires_grad=True); x = lib.randn(500, 500); alive = []")
    shell.ok(LARGE.format(magic=magic))
    shell.ok("alive.clear(); w.grad = None; del loss")
    gc.collect()
    tracemalloc.start()
    try:
        for cell in (LARGE.format(magic=magic), "w.grad = None; del loss"):
            shell.ok(cell)
        gc.collect()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    alive = shell.ns["alive"]
    assert len(alive) == 6 and [one() for one in alive] == [None] * 6
    assert kept < 500_000, f"{kept / 2**20:.1f} MiB of NumPy and Python are kept"  # one matrix is 1 MB
    assert library == "torch" or peak > 6_000_000, "the measurement counts only memory in use"

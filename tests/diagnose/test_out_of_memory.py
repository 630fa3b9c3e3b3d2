"""Test errors for too little memory: the requested size, the largest saved tensors, and what to do.

On the host the allocation really fails. For a GPU, `StrictArray` raises an error like CuPy's.
"""

from __future__ import annotations

import numpy as np
import pytest
from strict import StrictArray, install

import gradlab as gl
from gradlab.core.errors import OutOfMemoryError
from gradlab.core.tensor import constant
from gradlab.diagnose.out_of_memory import format_bytes

HUGE = 1 << 50  # bytes, more than any machine has


def test_a_result_that_does_not_fit():
    x = gl.ones(1000, requires_grad=True)
    y = (x.exp() * x[:10].exp().sum()).sin()
    with pytest.raises(OutOfMemoryError) as caught:
        y.expand(HUGE // 4000, 1000) * 2
    text = str(caught.value)
    assert text.startswith("DefaultCPUAllocator: can't allocate memory: you tried to allocate ") and "(1024.00 TiB)" in text
    assert "The operation was mul." in text and "no_grad()" in text and "checkpoint" in text
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("The graph holds"))
    assert "saved tensors. The largest:" in lines[at]
    largest = [line for line in lines[at + 1 : at + 6] if line.startswith("  ")]
    assert largest[0].strip().startswith("3.91 KiB") and "1000 float32" in largest[0]
    assert any("SinBackward0, its argument x" in line for line in largest)
    assert any("ExpBackward0, its result" in line for line in largest)
    assert isinstance(caught.value, MemoryError) and isinstance(caught.value, RuntimeError)
    assert gl.OutOfMemoryError is gl.cuda.OutOfMemoryError is OutOfMemoryError
    assert isinstance(caught.value.__context__, MemoryError)


def test_memory_is_counted_once_and_five_tensors_are_listed():
    x = gl.ones(100, requires_grad=True)
    y = x
    for _ in range(9):
        y = y * y  # each saves its argument twice
    with pytest.raises(OutOfMemoryError) as caught:
        y.expand(HUGE // 400, 100) + 1
    text = str(caught.value)
    assert "The graph holds 3.52 KiB in 9 saved tensors." in text
    assert sum(line.startswith("  ") for line in text.splitlines()) == 5


def test_the_message_without_a_graph():
    with pytest.raises(OutOfMemoryError, match=r"The operation was mul\.(.|\n)*No graph is held"):
        gl.ones(1).expand(HUGE // 4) * 2


def test_a_sweep_that_does_not_fit():
    x = gl.ones(10, requires_grad=True)
    y = x.exp()
    with pytest.raises(OutOfMemoryError, match=r"The operation was backward\.(.|\n)*ExpBackward0, its result \(10 float32\)"):
        gl.autograd.grad(y, x, gl.ones(1).expand(HUGE // 40, 10), is_grads_batched=True)


class CuPyError(MemoryError):
    """Copy of `cupy.cuda.memory.OutOfMemoryError`."""

    def __init__(self, size, total):
        super().__init__(f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes).")
        self._size = size


CuPyError.__module__ = "cupy.cuda.memory"


def test_a_gpu_without_memory(monkeypatch):
    """Test only the text: the error is raised by the test, with the attributes of CuPy's error."""
    install()
    x = constant(StrictArray(np.ones((4, 4)))).requires_grad_()
    y = x.exp()

    def full(self, other):
        raise CuPyError(20 << 20, 30 << 20)

    monkeypatch.setattr(StrictArray, "__array_ufunc__", lambda self, *args, **kwargs: full(self, None))
    monkeypatch.setattr(StrictArray, "__mul__", full)
    with pytest.raises(
        OutOfMemoryError,
        match=r"^CUDA out of memory\. Tried to allocate 20\.00 MiB\. The operation was mul\."
        r"(.|\n)*ExpBackward0, its result \(4×4 float64\)",
    ):
        y * y


def test_amounts():
    assert [format_bytes(n) for n in (None, 12, 1 << 10, 20 << 20, 3 << 30, 1 << 50)] == [
        "an unknown amount",
        "12 bytes",
        "1.00 KiB",
        "20.00 MiB",
        "3.00 GiB",
        "1024.00 TiB",
    ]

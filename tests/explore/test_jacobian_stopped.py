"""After Ctrl-C at any line, the Jacobian continues to the same numbers, in this process and in the next."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gradlab as gl
from gradlab.explore import jacobian as package

HERE = str(Path(package.__file__).parent)
METHODS = ("rows", "batched", "columns", "sparse")


def at_line(k, call):
    """Interrupt `call()` at the k-th line of the package that it runs. Return whether it was reached."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(HERE):
            return None
        if event == "line":
            count += 1
            if count == k:
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def random_function(rng):
    """Return a random function of a vector with some structure, and an input."""
    n = int(rng.integers(3, 7))
    shift, scale = int(rng.integers(1, n)), gl.tensor(rng.normal(size=n))
    steps = [
        lambda x: gl.tanh(x) * scale,
        lambda x: x * gl.roll(x, shift),
        lambda x: x[: n - 1] * x[1:],
        lambda x: gl.cat([x, x.sum()[None]]),
        lambda x: gl.sin(x) + x[:1],
    ]
    chosen = [steps[i] for i in rng.permutation(2)] + [steps[int(rng.integers(2, 5))]]

    def f(x):
        for step in chosen:
            x = step(x)
        return x

    return f, gl.tensor(rng.normal(size=n))


def make_jacobian(f, x, method, **options):
    return gl.jacobian(f, x, method=method, chunk_size=None if method == "rows" else 2, **options)


@pytest.mark.slow
@pytest.mark.parametrize("out", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_interrupted_at_every_line(method, out):
    f, x = random_function(np.random.default_rng(METHODS.index(method)))
    expected = np.array(make_jacobian(f, x, method))

    def room():
        return np.full(expected.shape, 7.0) if out else None

    k, reached = 1, True
    while reached:
        J = make_jacobian(f, x, method, out=room())
        assert J.plan.blocks()
        reached = at_line(k, lambda J=J: np.asarray(J))
        assert np.array_equal(np.asarray(J), expected), f"interrupted at line {k}"
        assert np.array_equal(J.sparse().toarray(), expected) and J.complete
        k += 1
    assert k > 30, "at least one line was interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_interrupted_single_rows(method):
    f, x = random_function(np.random.default_rng(10 + METHODS.index(method)))
    expected = np.array(make_jacobian(f, x, method))
    k, reached = 1, True
    while reached:
        J = make_jacobian(f, x, method)
        assert J.plan.blocks()
        reached = at_line(k, lambda J=J: [J[i] for i in range(len(J))])
        np.testing.assert_allclose(J[0], expected[0], atol=1e-14)
        np.testing.assert_allclose(np.asarray(J), expected, atol=1e-14, err_msg=f"interrupted at line {k}")
        k += 1
    assert k > 10


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # the file was opened, but its `with` had not begun
@pytest.mark.parametrize("method", METHODS)
def test_another_process_after_an_interrupt_at_every_line(tmp_path, method):
    """The file and its record after an interrupt can be resumed in both processes."""
    f, x = random_function(np.random.default_rng(20 + METHODS.index(method)))
    expected = np.array(make_jacobian(f, x, method))
    k, reached = 1, True
    while reached:
        path = tmp_path / f"{k}.bin"
        J = make_jacobian(f, x, method, out=np.memmap(path, np.float64, "w+", shape=expected.shape), resume=True)
        reached = at_line(k, lambda J=J: np.asarray(J))
        next_one = make_jacobian(f, x, method, out=np.memmap(path, np.float64, "r+", shape=expected.shape), resume=True)
        assert len(J.store.done) - 1 <= len(next_one.store.done) <= len(J.store.done), "at most one chunk is lost"
        assert np.array_equal(np.asarray(next_one), expected), f"interrupted at line {k}"
        assert np.array_equal(np.fromfile(path).reshape(expected.shape), expected)
        k += 31
    assert k > 100


@pytest.mark.parametrize("seed", range(6))
def test_random_functions_that_fail_at_every_block(seed):
    rng = np.random.default_rng(100 + seed)
    f, x = random_function(rng)
    whole = np.array(make_jacobian(f, x, "rows"))
    for method in METHODS:
        expected = np.array(make_jacobian(f, x, method))
        np.testing.assert_allclose(expected, whole, atol=1e-13)
        for k in range(len(make_jacobian(f, x, method).plan.blocks())):
            J, left = make_jacobian(f, x, method), [k]

            def interrupt(done, total, left=left):
                left[0] -= 1
                if left[0] == -1:
                    raise RuntimeError("stop")

            J.runner.progress = interrupt
            with pytest.raises(RuntimeError, match="stop"):
                np.asarray(J)
            assert len(J.store.done) == k + 1
            assert np.array_equal(np.asarray(J), expected), (method, k)

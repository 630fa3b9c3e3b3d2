"""Threads for large arrays: results do not depend on their number, and the pool survives errors, interrupts and forks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import gradlab as gl
from gradlab.backend import threads
from gradlab.backend.pieces import MIN_SIZE_SHARED, PIECE_SIZE, run_in_pieces
from gradlab.core.registry import PRIMITIVES

SHARING = sorted(name for name, op in PRIMITIVES.items() if op.properties.costly)
alone = pytest.mark.skipif(sys.platform == "emscripten", reason="there are no threads on Pyodide")


@pytest.fixture(autouse=True)
def _number():
    before = gl.get_num_threads()
    yield
    gl.set_num_threads(before)


def bits(array):
    return array.shape, array.dtype, array.strides, array.tobytes()


@alone
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", SHARING)
def test_results_are_bitwise_equal_for_any_number_of_threads(name, dtype):
    op = PRIMITIVES[name]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.1, 0.9, (3, MIN_SIZE_SHARED // 3 + 1017)).astype(dtype) for _ in op.args]
    arrays[0].flat[::1000] *= 1e6  # values for which the loops have special branches

    def run(number):
        gl.set_num_threads(number)
        xs = [gl.tensor(a, requires_grad=True) for a in arrays]
        y = op.record(*xs)
        y.backward(gl.ones_like(y))
        return [bits(t.numpy(force=True)) for t in (y, *[x.grad for x in xs if x.grad is not None])]

    one = run(1)
    assert run(2) == one
    assert run(4) == one
    with np.errstate(all="ignore"):
        assert one[0] == bits(op.forward(*arrays))


def test_some_primitives_use_threads():
    assert {"exp", "log", "tanh", "sin", "cos"} <= set(SHARING)


@alone
@pytest.mark.parametrize("which", ["transposed", "broadcast", "a number"])
def test_arrays_that_cannot_be_split_and_numbers(which):
    gl.set_num_threads(3)
    x = np.random.default_rng(1).uniform(0.5, 2, (1100, 1000))
    y = {"transposed": x.T.copy().T, "broadcast": x[:1], "a number": np.array([[1.5]])}[which]
    assert bits(run_in_pieces(np.power, x, y)) == bits(np.power(x, y))


@alone
def test_every_piece_runs_once_and_in_several_threads():
    gl.set_num_threads(4)
    seen, together = [], threading.Barrier(4)

    def work(piece):
        if piece < 4:
            together.wait(60)  # so that each of four threads runs one
        seen.append((piece, threading.get_ident()))

    threads.run_pieces(work, 50)
    assert sorted(piece for piece, _ in seen) == list(range(50))
    assert len({ident for _, ident in seen}) == 4
    assert threads.pool.job is None


@alone
def test_nested_work_does_not_wait():
    gl.set_num_threads(3)
    seen = []
    threads.run_pieces(lambda i: threads.run_pieces(lambda j: seen.append((i, j)), 5), 20)
    assert sorted(seen) == [(i, j) for i in range(20) for j in range(5)]


@alone
@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_after_every_piece_has_ended(kind):
    gl.set_num_threads(4)
    for _ in range(200):
        begun, ended = [], []

        def work(piece, begun=begun, ended=ended):
            begun.append(piece)
            try:
                if piece == 7:
                    raise kind("seven")
            finally:
                ended.append(piece)

        with pytest.raises(kind, match="seven"):
            threads.run_pieces(work, 30)
        assert sorted(begun) == sorted(ended)
        assert threads.pool.job is None
    done = []
    threads.run_pieces(done.append, 9)
    assert sorted(done) == list(range(9))


@alone
def test_an_interrupt_waits_for_pieces_in_other_threads():
    gl.set_num_threads(2)
    caller = threading.get_ident()
    hold, inside, ended = threading.Event(), threading.Event(), []

    def work(piece):
        if threading.get_ident() == caller:
            inside.wait(60)
            threading.Timer(0.1, hold.set).start()
            raise KeyboardInterrupt
        inside.set()
        hold.wait(60)
        ended.append(piece)

    with pytest.raises(KeyboardInterrupt):
        threads.run_pieces(work, 2)
    assert len(ended) == 1


@alone
def test_pieces_run_under_the_callers_errstate():
    gl.set_num_threads(4)
    x = np.full(20 * PIECE_SIZE, 1.0)
    x[-1] = -1.0
    with np.errstate(invalid="ignore"):
        assert np.isnan(run_in_pieces(np.log, x)[-1])
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        run_in_pieces(np.log, x)


@alone
def test_user_threads_may_all_use_large_arrays():
    gl.set_num_threads(3)
    x = np.linspace(0.1, 0.9, MIN_SIZE_SHARED)
    want, wrong = np.exp(x).tobytes(), []

    def use():
        wrong.extend(turn for turn in range(10) if run_in_pieces(np.exp, x).tobytes() != want)

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for number in (2, 5, 1, 3):
        gl.set_num_threads(number)
    for user in users:
        user.join()
    assert not wrong
    assert threads.pool.job is None


PROGRAM = """
import atexit, os, sys, warnings
warnings.simplefilter("error")
import numpy as np, gradlab as gl
gl.set_num_threads(3)
x = gl.linspace(0.1, 0.9, 1 << 21)
want = np.exp(x.numpy())
def right():
    assert np.array_equal(x.exp().numpy(), want)
right()
atexit.register(right)
class Late:
    def __del__(self):
        right()
late = Late()
"""


def run_program(program):
    return subprocess.run(
        [sys.executable, "-c", PROGRAM + program], capture_output=True, text=True, timeout=120, env=os.environ, check=False
    )


@pytest.mark.e2e
@alone
def test_the_interpreter_exits_with_a_running_pool():
    done = run_program("print('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.e2e
@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "emscripten", reason="this system cannot fork")
def test_child_and_parent_compute_after_a_fork():
    done = run_program("""
for _ in range(5):
    child = os.fork()
    right()
    if not child:
        os._exit(0 if gl.get_num_threads() == 3 else 1)
    assert os.waitpid(child, 0)[1] == 0
print('end')
""")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@pytest.mark.parametrize(("value", "number"), [("3", 3), ("5,2", 5)])
def test_the_environment_sets_the_number_of_threads(monkeypatch, value, number):
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads.default_thread_count() == (1 if sys.platform == "emscripten" else number)


@pytest.mark.parametrize("value", ["", "0", "many"])
def test_the_default_number_of_threads_is_the_number_of_cores(monkeypatch, value):
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not report which cores a process may use")
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert threads.default_thread_count() == len(os.sched_getaffinity(0))

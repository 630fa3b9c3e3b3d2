"""Jacobians that threads and processes of concurrent.futures compute: the same bits, errors with their place."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from explore.banded import METHODS, ROWS, START, a_file, asked, banded, the_matrix, x_of

import gradlab as gl
from gradlab.explore.jacobian.distributed import failures, pools

pytest.importorskip("cloudpickle", reason="functions travel by cloudpickle: pip install 'gradlab[distributed]'")


@pytest.fixture
def threads():
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.fixture(scope="module")
def processes():
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture(params=["threads", "processes"])
def executor(request):
    return request.getfixturevalue(request.param)


# -------------------------------------------------------------------------------------------------------------- the same numbers
@pytest.mark.parametrize("method", METHODS)
def test_the_same_bits_as_one_thread(executor, method):
    J = asked(method, executor=executor)
    assert not J.store.done, "nothing starts until it is asked for"
    assert np.array_equal(np.asarray(J), np.asarray(asked(method))) and J.complete
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)
    assert J.sweeps == J.plan.sweeps
    assert "equal to one process's with this plan to the bit" in str(J.plan)


def test_compute_takes_an_executor_too(executor):
    J = asked()
    assert J.compute(executor) is J and J.complete
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)
    assert J.compute(executor) is J


def test_without_one_compute_is_this_threads():
    J = asked().compute()
    assert J.complete and not J.plan.equality


@pytest.mark.parametrize("method", ["batched", "columns", "sparse"])
def test_hessians(executor, method):
    def energy(x):
        return (x[1:] * x[:-1]).sum() + (x**4).sum()

    H = gl.hessian(energy, x_of(), method=method, chunk_size=2, executor=executor)
    np.testing.assert_allclose(np.asarray(H), np.diag(12 * START**2) + np.eye(ROWS, k=1) + np.eye(ROWS, k=-1), atol=1e-14)


def test_several_inputs_and_outputs(executor):
    a, b = gl.tensor([1.0, 2.0], dtype=gl.float64), gl.tensor([3.0], dtype=gl.float64)
    J = gl.jacobian(lambda a, b: (a * b, a.sum()), (a, b), chunk_size=1, executor=executor)
    assert np.asarray(J).tolist() == [[3, 0, 1], [0, 3, 2], [1, 1, 0]]


def test_what_is_written_into_an_input_later_is_not_meant(threads):
    x = x_of(START.copy())
    J = gl.jacobian(banded, x, executor=threads)
    x.zero_()
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)


def test_into_a_file_that_another_process_goes_on_with(executor, tmp_path):
    stopped = asked(out=a_file(tmp_path), resume=True, chunk=1, executor=executor, progress=stopping_at(5))
    with pytest.raises(KeyboardInterrupt, match=r"rows of the Jacobian are known and kept\..*resume=True in another process"):
        stopped.compute()
    J = asked(out=a_file(tmp_path, "r+"), resume=True, chunk=1)
    assert len(J.store.done) == len(stopped.store.done) >= 5
    np.testing.assert_allclose(np.asarray(J), the_matrix(), atol=1e-14)


def stopping_at(block):
    def tell(done, total):
        if done >= block:
            raise KeyboardInterrupt

    return tell


def test_an_interrupt_keeps_what_is_done(executor):
    J = asked(chunk=1, executor=executor)
    with pytest.raises(KeyboardInterrupt, match="Another request"):
        J.compute(progress=stopping_at(4))
    assert len(J.store.done) >= 4
    done = set(J.store.done)
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)
    assert done <= J.store.done


def test_progress_counts_blocks(threads, capsys):
    told = []
    J = asked(chunk=5, executor=threads, progress=lambda done, total: told.append((done, total)))
    J.compute()
    assert told[-1] == (3, 3) and told == sorted(told)
    asked(chunk=5).compute(threads, progress=True)
    bar = capsys.readouterr().err
    assert "3/3 blocks" in bar and "<" in bar, "and the time that is left"


def test_rows_that_are_asked_for_alone_are_computed_here(threads):
    J = asked(executor=threads)
    np.testing.assert_allclose(J[3], the_matrix()[3], atol=1e-14)
    np.testing.assert_allclose(J @ START, the_matrix() @ START, atol=1e-13)
    assert not J.complete
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)


def test_more_blocks_than_tasks_under_way(executor):
    x = np.linspace(0, 1, 300)
    J = gl.jacobian(banded, x_of(x), method="batched", chunk_size=1, executor=executor)
    np.testing.assert_allclose(J, the_matrix(x), atol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_assumes_an_array_of_the_host(backend, threads, method, tmp_path):
    x = gl.tensor(backend(START))
    options = {"method": method, "chunk_size": None if method == "rows" else 1}
    J = gl.jacobian(banded, x, executor=threads, **options).compute()
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)
    out = a_file(tmp_path)
    gl.jacobian(banded, x, executor=threads, out=out, resume=True, **options).compute()
    np.testing.assert_allclose(out, the_matrix(), atol=1e-14)
    S = gl.jacobian(lambda x: gl.sin(x) * x.sum(-1, keepdim=True), gl.stack([x, x]), batch=0, executor=threads).compute()
    by_hand = np.diag(np.cos(START) * START.sum()) + np.sin(START)[:, None]
    np.testing.assert_allclose(S, np.concatenate([by_hand, by_hand]), atol=1e-12)


# ---------------------------------------------------------------------------------------------------------------------- mishaps
class Odd(gl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if np.asarray(g)[..., 7].any():
            raise ZeroDivisionError("seven")
        return g * 2


def test_an_error_says_the_block_the_rows_and_the_users_line(executor):
    J = gl.jacobian(Odd.apply, x_of(), chunk_size=3, executor=executor)
    with pytest.raises(ZeroDivisionError) as caught:
        J.compute()
    assert str(caught.value) == "seven"
    first, *_ = caught.value.__notes__
    assert first.startswith("This was raised by a worker in block 2, rows 6 to 8 of the Jacobian, at ")
    assert first.endswith('in backward: "raise ZeroDivisionError("seven")".') and __file__ in first
    assert "Traceback (most recent call last)" in str(caught.value.__cause__)
    assert any("are known and kept" in note for note in caught.value.__notes__)


class StubbornError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")
        self.lock = threading.Lock()


def test_an_error_that_cannot_travel_comes_as_text():
    try:
        raise StubbornError(1, 2)
    except StubbornError as error:
        found = failures.caught(error, "in a test").error()
    assert type(found) is failures.WorkerError and str(found).endswith("StubbornError: 1 and 2")


def test_what_cannot_travel_is_said_before_anything_starts(processes):
    lock, calls = threading.Lock(), []

    def guarded(x):
        calls.append(x)
        with lock:
            return x * 2

    with pytest.raises(
        TypeError, match="nothing was started: the closure variable lock of guarded, of type lock, cannot be pickled"
    ):
        gl.jacobian(guarded, x_of(), executor=processes)
    assert not calls
    J = gl.jacobian(guarded, x_of())
    with pytest.raises(TypeError, match=r"Make such things inside of the function, or give executor= a ThreadPoolExecutor"):
        J.compute(processes)
    assert not J.store.done
    with concurrent.futures.ThreadPoolExecutor(1) as threads:  # what it advises
        np.testing.assert_allclose(J.compute(threads), 2 * np.eye(ROWS))


def test_tensors_are_refused(threads):
    x = x_of().requires_grad_()
    with pytest.raises(TypeError, match="executor= takes a function, which each worker calls; got a gradlab tensor"):
        gl.jacobian(x * 2, x, executor=threads)


@pytest.mark.parametrize("executor", [3, "threads", object()])
def test_what_is_no_executor_is_refused(executor):
    with pytest.raises(TypeError, match=r"executor= takes a dask\.distributed\.Client or a concurrent\.futures\.Executor; got "):
        asked(executor=executor)


def test_a_function_that_draws_is_noticed(threads):
    J = gl.jacobian(lambda x: x * gl.rand(ROWS, dtype=gl.float64), x_of(), executor=threads)
    with pytest.raises(RuntimeError, match="returns other values on a worker") as caught:
        J.compute()
    assert "when a worker began, before any block" in caught.value.__notes__[0]


def test_a_process_that_dies_breaks_its_executor_and_a_new_one_goes_on(tmp_path):
    marker = tmp_path / "died"
    marker.touch()
    J = gl.jacobian(deadly(os.getpid(), str(marker)), x_of(), chunk_size=1)
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(concurrent.futures.BrokenExecutor) as caught,
    ):
        J.compute(pool)
    assert any("Another request with a new one continues" in note for note in caught.value.__notes__)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        np.testing.assert_allclose(J.compute(pool), 2 * np.eye(ROWS))


def deadly(home, marker):
    """A function that ends the process that calls it, the first time, if it is not this one."""

    def f(x):
        if os.getpid() != home and os.path.exists(marker):
            os.remove(marker)
            os._exit(1)
        return x * 2

    return f


# ------------------------------------------------------------------------------------------------------------------ nothing more
def test_nothing_of_it_is_loaded_unless_used():
    code = (
        "import sys, numpy as np, gradlab as gl; from concurrent.futures import ThreadPoolExecutor as T\n"
        "x = gl.ones(3)\n"
        "np.asarray(gl.jacobian(lambda x: x * 2, x)); print(sorted(m for m in sys.modules if 'jacobian.distr' in m),"
        " [m for m in ('dask', 'distributed', 'zarr', 'cloudpickle') if m in sys.modules])\n"
        "np.asarray(gl.jacobian(lambda x: x * 2, x, executor=T(1)))\n"
        "print([m for m in ('dask', 'distributed', 'zarr') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[] []", "[]"]


def test_workers_are_counted(threads):
    assert pools.pool_of(threads).workers() == 3
    assert pools.pool_of(Own()).workers() == os.cpu_count()


class Own(concurrent.futures.Executor):
    """An executor of somebody's that says nothing of its size, and runs all at once."""

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_will_do():
    J = asked(chunk=1).compute(Own())
    np.testing.assert_allclose(J, the_matrix(), atol=1e-14)

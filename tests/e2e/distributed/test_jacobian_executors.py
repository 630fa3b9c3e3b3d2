"""Jacobians computed by threads and processes of concurrent.futures: bitwise equal results, errors with their lines."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from explore.banded import METHODS, ROWS, START, banded_jacobian, banded_residual, make_file, make_jacobian, make_x

import gradlab as gl
from gradlab.explore.jacobian.distributed import failures, pools

pytest.importorskip("cloudpickle", reason="functions are sent by cloudpickle: pip install 'gradlab[distributed]'")


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


# ----------------------------------------------------------------------------------------------------------------- equal results
@pytest.mark.parametrize("method", METHODS)
def test_results_are_bitwise_equal_to_one_thread(executor, method):
    J = make_jacobian(method, executor=executor)
    assert not J.store.done, "nothing starts before a request"
    assert np.array_equal(np.asarray(J), np.asarray(make_jacobian(method))) and J.complete
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)
    assert J.sweeps == J.plan.sweeps
    assert "equal those of one process with this plan bit for bit" in str(J.plan)


def test_compute_takes_an_executor_too(executor):
    J = make_jacobian()
    assert J.compute(executor) is J and J.complete
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)
    assert J.compute(executor) is J


def test_without_an_executor_compute_runs_in_this_thread():
    J = make_jacobian().compute()
    assert J.complete and not J.plan.equality


@pytest.mark.parametrize("method", ["batched", "columns", "sparse"])
def test_hessians(executor, method):
    def energy(x):
        return (x[1:] * x[:-1]).sum() + (x**4).sum()

    H = gl.hessian(energy, make_x(), method=method, chunk_size=2, executor=executor)
    np.testing.assert_allclose(np.asarray(H), np.diag(12 * START**2) + np.eye(ROWS, k=1) + np.eye(ROWS, k=-1), atol=1e-14)


def test_several_inputs_and_outputs(executor):
    a, b = gl.tensor([1.0, 2.0], dtype=gl.float64), gl.tensor([3.0], dtype=gl.float64)
    J = gl.jacobian(lambda a, b: (a * b, a.sum()), (a, b), chunk_size=1, executor=executor)
    assert np.asarray(J).tolist() == [[3, 0, 1], [0, 3, 2], [1, 1, 0]]


def test_later_writes_to_an_input_have_no_effect(threads):
    x = make_x(START.copy())
    J = gl.jacobian(banded_residual, x, executor=threads)
    x.zero_()
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)


def test_into_a_file_that_another_process_resumes(executor, tmp_path):
    stopped = make_jacobian(out=make_file(tmp_path), resume=True, chunk=1, executor=executor, progress=stop_at(5))
    with pytest.raises(KeyboardInterrupt, match=r"rows of the Jacobian are known and kept\..*resume=True in another process"):
        stopped.compute()
    J = make_jacobian(out=make_file(tmp_path, "r+"), resume=True, chunk=1)
    assert len(J.store.done) == len(stopped.store.done) >= 5
    np.testing.assert_allclose(np.asarray(J), banded_jacobian(), atol=1e-14)


def stop_at(block):
    def stop(done, total):
        if done >= block:
            raise KeyboardInterrupt

    return stop


def test_an_interrupt_keeps_finished_blocks(executor):
    J = make_jacobian(chunk=1, executor=executor)
    with pytest.raises(KeyboardInterrupt, match="Another request"):
        J.compute(progress=stop_at(4))
    assert len(J.store.done) >= 4
    done = set(J.store.done)
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)
    assert done <= J.store.done


def test_progress_counts_blocks(threads, capsys):
    told = []
    J = make_jacobian(chunk=5, executor=threads, progress=lambda done, total: told.append((done, total)))
    J.compute()
    assert told[-1] == (3, 3) and told == sorted(told)
    make_jacobian(chunk=5).compute(threads, progress=True)
    bar = capsys.readouterr().err
    assert "3/3 blocks" in bar and "<" in bar, "with the remaining time"


def test_single_rows_are_computed_here(threads):
    J = make_jacobian(executor=threads)
    np.testing.assert_allclose(J[3], banded_jacobian()[3], atol=1e-14)
    np.testing.assert_allclose(J @ START, banded_jacobian() @ START, atol=1e-13)
    assert not J.complete
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)


def test_more_blocks_than_concurrent_tasks(executor):
    x = np.linspace(0, 1, 300)
    J = gl.jacobian(banded_residual, make_x(x), method="batched", chunk_size=1, executor=executor)
    np.testing.assert_allclose(J, banded_jacobian(x), atol=1e-14)


@pytest.mark.parametrize("method", METHODS)
def test_arrays_of_devices(backend, threads, method, tmp_path):
    x = gl.tensor(backend(START))
    options = {"method": method, "chunk_size": None if method == "rows" else 1}
    J = gl.jacobian(banded_residual, x, executor=threads, **options).compute()
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)
    out = make_file(tmp_path)
    gl.jacobian(banded_residual, x, executor=threads, out=out, resume=True, **options).compute()
    np.testing.assert_allclose(out, banded_jacobian(), atol=1e-14)
    S = gl.jacobian(lambda x: gl.sin(x) * x.sum(-1, keepdim=True), gl.stack([x, x]), batch=0, executor=threads).compute()
    by_hand = np.diag(np.cos(START) * START.sum()) + np.sin(START)[:, None]
    np.testing.assert_allclose(S, np.concatenate([by_hand, by_hand]), atol=1e-12)


# ----------------------------------------------------------------------------------------------------------------------- errors
class Odd(gl.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        if np.asarray(g)[..., 7].any():
            raise ZeroDivisionError("seven")
        return g * 2


def test_an_error_has_the_block_the_rows_and_the_line_of_the_user(executor):
    J = gl.jacobian(Odd.apply, make_x(), chunk_size=3, executor=executor)
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


def test_an_error_that_cannot_be_pickled_is_sent_as_text():
    try:
        raise StubbornError(1, 2)
    except StubbornError as error:
        found = failures.failure_of(error, "in a test").error()
    assert type(found) is failures.WorkerError and str(found).endswith("StubbornError: 1 and 2")


def test_a_function_that_cannot_be_pickled_is_an_error_before_anything_starts(processes):
    lock, calls = threading.Lock(), []

    def with_lock(x):
        calls.append(x)
        with lock:
            return x * 2

    with pytest.raises(
        TypeError, match="nothing was started: the closure variable lock of with_lock, of type lock, cannot be pickled"
    ):
        gl.jacobian(with_lock, make_x(), executor=processes)
    assert not calls
    J = gl.jacobian(with_lock, make_x())
    with pytest.raises(TypeError, match=r"Create such objects inside the function, or give executor= a ThreadPoolExecutor"):
        J.compute(processes)
    assert not J.store.done
    with concurrent.futures.ThreadPoolExecutor(1) as threads:  # the advice of the error
        np.testing.assert_allclose(J.compute(threads), 2 * np.eye(ROWS))


def test_tensors_are_errors(threads):
    x = make_x().requires_grad_()
    with pytest.raises(TypeError, match="executor= takes a function, which each worker calls; got a gradlab tensor"):
        gl.jacobian(x * 2, x, executor=threads)


@pytest.mark.parametrize("executor", [3, "threads", object()])
def test_other_objects_as_executors_are_errors(executor):
    with pytest.raises(TypeError, match=r"executor= takes a dask\.distributed\.Client or a concurrent\.futures\.Executor; got "):
        make_jacobian(executor=executor)


def test_a_function_with_random_numbers_is_an_error(threads):
    J = gl.jacobian(lambda x: x * gl.rand(ROWS, dtype=gl.float64), make_x(), executor=threads)
    with pytest.raises(RuntimeError, match="returns other values on a worker") as caught:
        J.compute()
    assert "when a worker began, before any block" in caught.value.__notes__[0]


def test_a_process_that_dies_breaks_its_executor_and_a_new_one_continues(tmp_path):
    marker = tmp_path / "died"
    marker.touch()
    J = gl.jacobian(function_that_exits(os.getpid(), str(marker)), make_x(), chunk_size=1)
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool,
        pytest.raises(concurrent.futures.BrokenExecutor) as caught,
    ):
        J.compute(pool)
    assert any("Another request with a new one continues" in note for note in caught.value.__notes__)
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        np.testing.assert_allclose(J.compute(pool), 2 * np.eye(ROWS))


def function_that_exits(home, marker):
    """Return a function whose first call in another process ends that process."""

    def f(x):
        if os.getpid() != home and os.path.exists(marker):
            os.remove(marker)
            os._exit(1)
        return x * 2

    return f


# --------------------------------------------------------------------------------------------------------------- other executors
def test_modules_are_only_loaded_when_used():
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
    """An executor of a user that does not report its size and runs tasks immediately."""

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_works():
    J = make_jacobian(chunk=1).compute(Own())
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)

"""Jacobians on a dask cluster of processes: the same numbers if processes are killed, in the memory of a few blocks."""

from __future__ import annotations

import asyncio
import importlib
import linecache
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from explore import slow_work
from explore.banded import METHODS, ROWS, START, banded_jacobian, make_file, make_jacobian, make_x
from grouped import exhaustive_after_first
from waiting import TIMEOUT_SECONDS, Gate, wait_until

import gradlab as gl
from gradlab.explore.jacobian.targets.zarr_array import ZarrArray
from gradlab.explore.jacobian.targets.zarr_parts import ZarrParts

distributed = pytest.importorskip("distributed", reason="pip install 'gradlab[distributed]'")
zarr = pytest.importorskip("zarr", reason="pip install 'gradlab[distributed]'")
pytestmark = pytest.mark.filterwarnings("default")  # warnings of dask
TESTS = Path(__file__).parents[2]
GIGABYTES = float(os.environ.get("GRADLAB_RESULT_GB", "0.5"))


@contextmanager
def local_cluster(workers):
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@contextmanager
def client_of(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(len(cluster.workers), timeout=60)
        yield client


@pytest.fixture(scope="module")
def cluster():
    """Cluster for tests that kill no worker. Other tests start their own, since a killed worker may not restart."""
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with client_of(cluster) as client:
        yield client


# ----------------------------------------------------------------------------------------------------------------------- equality
@pytest.mark.parametrize("where", ["gathered", "memmap", "zarr", "parts"])
@pytest.mark.parametrize("method", METHODS)
def test_results_are_bitwise_equal_to_one_process(client, tmp_path, method, where):
    out = {"gathered": None, "memmap": make_file(tmp_path) if where == "memmap" else None, "zarr": tmp_path / "J"}.get(where)
    if where == "parts":
        out = zarr.create_group(store=tmp_path / "J")
    if where == "zarr" and method == "sparse":
        out = str(tmp_path / "J")  # a zarr group
    J = make_jacobian(method, 1, out=out, resume=where not in ("gathered", "parts"), executor=client).compute()
    alone = make_jacobian(method, 1)
    assert np.array_equal(np.asarray(J), np.asarray(alone))
    np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)
    assert J.sweeps == alone.plan.sweeps


@pytest.mark.parametrize("method", ["batched", "sparse"])
def test_workers_read_existing_blocks(client, tmp_path, monkeypatch, method):
    def fail(*_):
        raise AssertionError("read by the client")

    make_jacobian(method, 1, out=tmp_path / "J", resume=True, executor=client).compute()
    for kind in (ZarrArray, ZarrParts):
        monkeypatch.setattr(kind, "read_block", fail)
    assert make_jacobian(method, 1, out=tmp_path / "J", resume=True, executor=client).complete
    with pytest.raises(AssertionError, match="read by the client"):
        make_jacobian(method, 1, out=tmp_path / "J", resume=True)


def test_hessians_and_samples(client):
    H = gl.hessian(lambda x: (x**4).sum() + (x[1:] * x[:-1]).sum(), make_x(), executor=client)
    np.testing.assert_allclose(H, np.diag(12 * START**2) + np.eye(ROWS, k=1) + np.eye(ROWS, k=-1), atol=1e-14)
    W, x = (gl.tensor(np.random.default_rng(k).normal(size=(6, 6))) for k in (0, 1))
    J = gl.jacobian(lambda x: gl.tanh(x @ W), x, batch=0, chunk_size=2, executor=client)
    assert np.array_equal(np.asarray(J), np.asarray(gl.jacobian(lambda x: gl.tanh(x @ W), x, batch=0, chunk_size=2)))


@pytest.mark.torch
def test_torch_on_the_cluster_against_vmap_of_jacrev(client, tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    x = torch.randn(20, 6)
    J = gl.jacobian(model, x, batch=0, executor=client, out=tmp_path / "J", resume=True).compute()
    expected = torch.func.vmap(torch.func.jacrev(model))(x).detach()
    np.testing.assert_allclose(J.tensor(), expected, atol=1e-6)
    rows = gl.jacobian(lambda x: model(x).sum(0), x, method="batched", executor=client)
    np.testing.assert_allclose(rows.tensor(), torch.func.jacrev(lambda x: model(x).sum(0))(x).detach(), atol=1e-6)


@pytest.mark.parametrize(
    ("threads", "said"), [("1", "bit for bit: versions, BLAS"), ("2", "up to rounding: the number of threads")]
)
def test_the_plan_says_whether_results_are_bitwise_equal(cluster, threads, said):
    """A worker of dask has one thread for BLAS by default."""
    code = (
        "import sys, gradlab as gl; from distributed import Client; from explore.banded import make_jacobian\n"
        "client = Client(sys.argv[1]); print(make_jacobian(executor=client).compute().plan)"
    )
    env = {**os.environ, "OMP_NUM_THREADS": threads, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", code, cluster.scheduler_address], env=env, capture_output=True, text=True, check=True
    )
    assert "3 of 3 blocks are from dask's workers and equal those of one process with this plan " + said in done.stdout


# --------------------------------------------------------------------------------------------------------------- lost processes
def kill_worker_at(client, at):
    """Return a progress function that kills a worker when `at` blocks are done."""
    pids = sorted(client.run(os.getpid).values())

    def kill(done, total):
        if done >= at and pids:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    return kill


@pytest.mark.parametrize("method", exhaustive_after_first("batched", "sparse", "columns"))
def test_a_worker_that_is_killed_in_the_middle(tmp_path, method):
    sparsity = slow_work.pattern() if method == "sparse" else None
    options = {"method": method} if sparsity is None else {"method": method, "sparsity": sparsity}
    alone = np.asarray(slow_work.make_jacobian(**options))
    with local_cluster(2) as cluster, client_of(cluster) as client:
        J = slow_work.make_jacobian(**options, executor=client, out=tmp_path / "J", resume=True)
        J.compute(progress=kill_worker_at(client, 1 if method == "sparse" else 30))
    assert np.array_equal(np.asarray(J), alone)
    np.testing.assert_allclose(alone, slow_work.expected_jacobian(), atol=1e-12)


@pytest.mark.exhaustive
def test_the_only_worker_is_killed_and_restarts():
    """The worker loses the scattered job, which is sent again."""
    with local_cluster(1) as cluster, client_of(cluster) as client:
        J = slow_work.make_jacobian().compute(client, progress=kill_worker_at(client, 30))
        np.testing.assert_allclose(J, slow_work.expected_jacobian(), atol=1e-12)


def start_client(address, store, method, gate):
    """Start a client in a separate process, which waits in the middle of the work."""
    env = {**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    return subprocess.Popen(
        [sys.executable, str(TESTS / "explore" / "slow_work.py"), address, str(store), method, gate],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("method", ["batched", "columns"])
def test_the_client_is_killed_and_another_process_continues(cluster, tmp_path, method):
    gate = Gate(tmp_path / "gate")
    process = start_client(cluster.scheduler_address, tmp_path / "J", method, gate.path)
    with gate.hold():
        process.kill()
        process.communicate()
    left = slow_work.make_jacobian(partial(slow_work.slow, gate=gate.path), method, out=tmp_path / "J", resume=True)
    assert 0 < len(left.store.done) < slow_work.SIZE
    again = start_client(cluster.scheduler_address, tmp_path / "J", method, gate.path)
    out, _ = again.communicate(timeout=120)
    assert out.split()[-1] == "done" and int(out.split()[1]) > len(left.store.done)
    found = zarr.open_array(tmp_path / "J", mode="r")[:]
    assert np.array_equal(found, np.asarray(slow_work.make_jacobian(method=method)))
    np.testing.assert_allclose(found, slow_work.expected_jacobian(), atol=1e-12)


@pytest.mark.exhaustive
def test_the_scheduler_is_killed_and_one_process_continues(tmp_path):
    processes, env = [], {**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}

    def start(module, *options):
        processes.append(subprocess.Popen([sys.executable, "-m", module, *options], env=env, stderr=subprocess.DEVNULL))
        return processes[-1]

    file = str(tmp_path / "scheduler.json")
    try:
        scheduler = start("distributed.cli.dask_scheduler", "--scheduler-file", file, "--port", "0", "--no-dashboard")
        start("distributed.cli.dask_worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard", "--no-nanny")
        wait_until(lambda: os.path.exists(file), "the scheduler's file")
        client = distributed.Client(scheduler_file=file, set_as_default=False, timeout=60)
        client.wait_for_workers(1)
        J = slow_work.make_jacobian(executor=client, out=tmp_path / "J", resume=True)

        def kill_scheduler(done, total):
            if done >= 20 and scheduler.poll() is None:
                scheduler.kill()
                scheduler.wait()

        with pytest.raises(Exception, match=r"\d+ of 120 rows of the Jacobian are known and kept"):
            J.compute(progress=kill_scheduler)
        client.close(timeout=5)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    again = slow_work.make_jacobian(out=tmp_path / "J", resume=True)
    assert len(again.store.done) >= 20
    np.testing.assert_allclose(again, slow_work.expected_jacobian(), atol=1e-12)


@pytest.mark.usefixtures("sigint")
def test_ctrl_c_keeps_finished_blocks(client, tmp_path):
    """A worker is in the middle of a row, and the client waits for it."""
    gate, over = Gate(tmp_path / "gate"), threading.Event()

    def interrupt():
        with gate.hold():
            os.kill(os.getpid(), signal.SIGINT)
            over.wait(TIMEOUT_SECONDS)

    J = slow_work.make_jacobian(partial(slow_work.slow, gate=gate.path), executor=client)
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt, match="rows of the Jacobian are known and kept"):
        J.compute()
    assert 0 < len(J.store.done) < slow_work.SIZE
    over.set()
    thread.join()
    np.testing.assert_allclose(J, slow_work.expected_jacobian(), atol=1e-12)


# ------------------------------------------------------------------------------------------------------------------------ errors
def test_an_error_has_the_block_and_the_line(client):
    def f(x):
        return slow_work.slow(x * bad(x))

    def bad(x):
        if os.getpid() != home:
            raise LookupError("not here")
        return 1.0

    home = os.getpid()
    J = gl.jacobian(f, gl.tensor(slow_work.START), executor=client)
    with pytest.raises(LookupError) as caught:
        J.compute()
    assert str(caught.value) == "not here"
    assert 'in bad: "raise LookupError("not here")"' in caught.value.__notes__[0], caught.value.__cause__


def from_cell(filename):
    """Return a function compiled like those of IPython, whose source is only in `linecache`, which workers do not share."""
    source = "def f(x):\n    return x * [1][os.getpid() != home]\n"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    scope = {"os": os, "home": os.getpid()}
    exec(compile(source, filename, "exec"), scope)
    return scope["f"]


def a_lambda(home):
    return lambda x: x * [1][os.getpid() != home]


LAMBDA = a_lambda.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("f", "at"),
    [
        pytest.param(from_cell("/tmp/ipykernel_1/123.py"), "/tmp/ipykernel_1/123.py, line 2, in f: ", id="a cell in Jupyter"),
        pytest.param(from_cell("<ipython-input-1-abc>"), "<ipython-input-1-abc>, line 2, in f: ", id="a cell in IPython"),
        pytest.param(a_lambda(os.getpid()), f"{__file__}, line {LAMBDA}, in <lambda>: ", id="a lambda"),
    ],
)
def test_an_error_names_the_line_of_the_user(client, f, at):
    with pytest.raises(IndexError) as caught:
        gl.jacobian(f, gl.tensor(slow_work.START), executor=client).compute()
    note = caught.value.__notes__[0]
    assert f', at {at}"return ' in note and 'x * [1][os.getpid() != home]".' in note, caught.value.__cause__


SCRIPT = """
import os
from concurrent.futures import ProcessPoolExecutor

import gradlab as gl

home = os.getpid()

def f(x):
    return x * [1][os.getpid() != home]

if __name__ == "__main__":
    with ProcessPoolExecutor(1) as executor:
        gl.jacobian(f, gl.ones(3), executor=executor).compute()
"""


def test_an_error_names_the_line_of_a_script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert f', at {path}, line 10, in f: "return x * [1][os.getpid() != home]".' in done.stderr, done.stderr


def test_a_function_that_cannot_be_pickled_is_an_error_before_anything_starts(client):
    lock = threading.Lock()

    def with_lock(x):
        with lock:
            return x * 2

    with pytest.raises(TypeError, match="nothing was started: the closure variable lock of with_lock"):
        gl.jacobian(with_lock, make_x(), executor=client)


def test_an_asynchronous_client_is_an_error(cluster):
    async def ask():
        async with distributed.Client(cluster.scheduler_address, asynchronous=True, set_as_default=False) as client:
            make_jacobian(executor=client)

    with pytest.raises(TypeError, match="asynchronous=True"):
        asyncio.run(ask())


def test_a_module_that_workers_do_not_have(client, tmp_path, monkeypatch):
    (tmp_path / "of_mine.py").write_text("def f(x):\n    return x * 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    of_mine = importlib.import_module("of_mine")
    J = gl.jacobian(of_mine.f, make_x(), executor=client)
    with pytest.raises(ModuleNotFoundError, match="No module named 'of_mine'") as caught:
        J.compute()
    advice = re.search(r"cloudpickle\.register_pickle_by_value\(of_mine\)", caught.value.__notes__[0])[0]
    exec(advice, {"cloudpickle": pytest.importorskip("cloudpickle"), "of_mine": of_mine})
    np.testing.assert_allclose(J.compute(), 2 * np.eye(ROWS))


def test_a_store_that_workers_cannot_access_is_written_here(client):
    """A store in memory, of which workers would get a copy."""
    for out in (zarr.storage.MemoryStore(), "memory://dask/J.zarr"):
        J = make_jacobian(out=out, executor=client).compute()
        np.testing.assert_allclose(zarr.open_array(out, mode="r")[:], J)
        np.testing.assert_allclose(J, banded_jacobian(), atol=1e-14)


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", ["dense", "parts"])
def test_the_clients_memory_is_bounded(cluster, tmp_path, kind):
    """The result has half a gigabyte, or as many as GRADLAB_RESULT_GB says."""
    code = """
import resource, sys
import numpy as np, zarr, gradlab as gl
from distributed import Client

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # GB

address, where, kind, size = *sys.argv[1:4], float(sys.argv[4])
n = int((size * 1e9 / 8) ** 0.5)
a = gl.tensor(np.random.default_rng(0).normal(size=n))
client = Client(address)
out = zarr.create_group(store=where) if kind == "parts" else where
J = gl.jacobian(lambda x: (x * a).sum() * a + x * x, gl.ones(n, dtype=gl.float64), method="batched", out=out, executor=client)
before = peak()
J.compute(progress=False)
print(n, before, peak())
some = J[n // 2]
expected = np.asarray(a) * np.asarray(a)[n // 2]
expected[n // 2] += 2
assert np.allclose(some, expected)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, cluster.scheduler_address, str(tmp_path / "J"), kind, str(GIGABYTES)],
        capture_output=True,
        text=True,
        check=True,
    )
    n, before, after = map(float, done.stdout.split())
    said = f"{kind}: {n * n * 8 / 1e9:.1f} GB written; the client's peak was {before:.2f} GB before and {after:.2f} GB after"
    sys.stdout.write(said)
    assert after - before < 0.25, said

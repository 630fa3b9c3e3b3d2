"""Clients and workers of a cluster are killed at random times, and each result is complete and bitwise equal in the end.

GRADLAB_RESUMES is the number of times that a process resumes the work of another, by default 5.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="pip install 'gradlab[distributed]'")
pytest.importorskip("zarr", reason="pip install 'gradlab[distributed]'")
TESTS = Path(__file__).parents[2]
RESUMES = int(os.environ.get("GRADLAB_RESUMES", "5"))

# The clients are forked from a process that has imported everything and has no threads; the cluster is in another process.
SCRIPT = """
import os, random, shutil, signal, sys, time
import numpy as np
import zarr
from distributed import Client
from explore import slow_work

address, folder, resumes, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw = random.Random(seed)
METHODS = {"batched": {}, "columns": {}, "sparse": {"sparsity": slow_work.pattern()}}

def asked(method, **options):
    return slow_work.make_jacobian(method=method, **METHODS[method], **options)

def client(method, store):
    status = 1
    try:
        with Client(address, set_as_default=False) as client:
            if draw.random() < 0.2:  # kill a worker at a random time
                try:
                    pids = list(client.run(os.getpid).values())
                except OSError:  # a worker has just been killed
                    pids = []
                if pids and os.fork() == 0:
                    try:
                        time.sleep(draw.uniform(1, 2))  # a worker that has just started may not be restarted
                        os.kill(draw.choice(pids), signal.SIGKILL)
                    finally:
                        os._exit(0)
            asked(method, out=store, resume=True, executor=client, progress=False).compute()
            status = 0
    except BaseException:
        import traceback
        traceback.print_exc()
    finally:
        os._exit(status)

wanted = {}
for method in METHODS:
    pid = os.fork()
    if not pid:
        np.save(f"{folder}/{method}.npy", np.asarray(asked(method)))
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    wanted[method] = np.load(f"{folder}/{method}.npy")
    assert np.allclose(wanted[method], slow_work.expected_jacobian(), atol=1e-12)

gone_on = whole = killed = 0
while gone_on < resumes:
    method, store, first = draw.choice(list(METHODS)), f"{folder}/J{whole}", True
    while True:
        draw.seed(draw.random())
        pid = os.fork()
        if not pid:
            client(method, store)
        gone_on += not first
        first = False
        until = time.monotonic() + draw.choice([draw.uniform(0, 3), draw.uniform(0, 3), draw.uniform(0, 3), 60])
        status = None
        while time.monotonic() < until and status is None:
            done, found = os.waitpid(pid, os.WNOHANG)
            status = found if done else None
            time.sleep(0.01)
        if status is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            killed += 1
            continue
        assert status == 0, status
        break
    pid = os.fork()
    if not pid:
        J = asked(method, out=store, resume=True)
        os._exit(0 if J.complete and np.array_equal(np.asarray(J), wanted[method]) else 1)
    assert os.waitpid(pid, 0)[1] == 0, f"{method} is not what one process computes"
    shutil.rmtree(store)
    whole += 1
print(f"{gone_on} resumes after {killed} kills of clients, {whole} results, all equal to the bit")
"""


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("default")  # warnings of dask
@pytest.mark.skipif(not hasattr(os, "fork"), reason="clients are forked")
def test_resumes_at_random_times(tmp_path):
    from distributed import LocalCluster

    seed = os.environ.get("GRADLAB_SEED", "0")
    env = {**os.environ, "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, cluster.scheduler_address, str(tmp_path), str(RESUMES), seed],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    sys.stdout.write(done.stdout + done.stderr[-4000:])
    assert done.returncode == 0, done.stderr[-4000:]
    assert "all equal to the bit" in done.stdout

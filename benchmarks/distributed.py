"""Jacobians on a dask cluster of one and two workers, and by reckoning on up to 1 000:
`OMP_NUM_THREADS=1 python -m benchmarks.distributed`.

Measured are a fixed amount of work on more workers (strong scaling) and one that grows with them (weak), against one process: of
sleep, which shows what handing out tasks costs whatever else the machine does, and of matrix products. The table is of a
simulation: every finished task takes a millisecond of one scheduler's time (dask's own figure) before its worker is sent another,
tasks are cut as `gradlab.explore.jacobian.distributed.sizes` says, and take up to a fifth more or less than expected.
"""

from __future__ import annotations

import argparse
import heapq
import random
import time
from collections import deque

import numpy as np

import gradlab as gl
from gradlab.explore.jacobian.distributed import sizes

ROWS = 12  # of a second each
AHEAD = 2


class Sleep(gl.autograd.Function):
    """The identity, a row of whose Jacobian takes a second."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        time.sleep(1.0)
        return g * 1


def products(size: int):
    """A function a row of whose Jacobian is matrix products for about a second."""
    A = gl.tensor(np.random.default_rng(0).normal(size=(size, size)) / size**0.5)

    def f(x):
        y = gl.ones(size, size, dtype=gl.float64) * x[0]
        for _ in range(6):
            y = gl.tanh(A @ y)
        return x * y.sum()

    return f


def measure(kind: str, rows: int, client) -> float:
    """The seconds that so many rows of a second each take."""
    f = Sleep.apply if kind == "sleep" else products(1600)
    J = gl.jacobian(f, gl.ones(rows, dtype=gl.float64), method="batched", chunk_size=1, progress=False)
    start = time.perf_counter()
    J.compute(client)
    return time.perf_counter() - start


def scaling(kind: str) -> None:
    from distributed import Client, LocalCluster

    alone = measure(kind, ROWS, None)
    print(f"{kind}: one process, {ROWS} rows: {alone:.1f} s")
    for workers in (1, 2):
        with (
            LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            measure(kind, workers, client)  # the job, the function called
            strong, weak = measure(kind, ROWS, client), measure(kind, workers * ROWS, client)
        for name, seconds in (("strong", strong * workers), ("weak  ", weak)):
            print(f"{kind}: {workers} workers, {name}: {seconds / workers if name == 'strong' else seconds:5.1f} s,", end=" ")
            print(f"overhead {seconds / alone - 1:+.1%}")


def simulated(workers: int, block: float, work: float = 120.0) -> tuple[float, float]:
    """(the share of their time that workers compute, seconds of a task in the middle), of `work` seconds for each worker in
    blocks of `block` seconds."""
    draw, made = random.Random(0), sizes.Sizes()
    left, lengths = round(work * workers / block), []
    blocks_in_all = left
    queues: list[deque[float]] = [deque() for _ in range(workers)]  # tasks that are sent and not begun
    idle_since: list[float | None] = [0.0] * workers
    events: list[tuple[float, int, int]] = []  # (when, which worker, blocks) that a task ends
    scheduler = now = 0.0

    def begin(worker: int, at: float) -> None:
        count = queues[worker].popleft()
        seconds = count * block * draw.uniform(0.8, 1.2)
        lengths.append(seconds)
        idle_since[worker] = None
        heapq.heappush(events, (at + seconds, worker, int(count)))

    def send(worker: int, at: float) -> None:
        nonlocal left, scheduler
        if not left:
            return
        count = min(left, made.blocks(left, workers))
        left -= count
        scheduler = max(scheduler, at) + sizes.OVERHEAD
        queues[worker].append(count)
        if idle_since[worker] is not None:
            begin(worker, scheduler)

    for _ in range(AHEAD):
        for worker in range(workers):
            send(worker, 0.0)
    while events:
        now, worker, count = heapq.heappop(events)
        made.note(count * block, count)
        idle_since[worker] = now
        if queues[worker]:
            begin(worker, now)
        send(worker, now)
    return blocks_in_all * block / (workers * now), float(np.median(lengths))


def table() -> None:
    print("share of their time that workers compute (seconds of a task), by what a block takes; two minutes of work a worker")
    costs = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
    print(f"{'workers':>8}" + "".join(f"{cost:>16g} s" for cost in costs))
    for workers in (10, 30, 100, 300, 1000):
        cells = [simulated(workers, cost) for cost in costs]
        print(f"{workers:>8}" + "".join(f"{share:>10.1%} ({seconds:4.1f})" for share, seconds in cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="sleep, products, table; by default all")
    asked = parser.parse_args().what or ["table", "sleep", "products"]
    for one in asked:
        if one == "table":
            table()
        else:
            sizes.USUAL = sizes.SHORTEST = sizes.LONGEST = 1.0
            scaling(one)

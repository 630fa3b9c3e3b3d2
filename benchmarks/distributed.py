"""Measure Jacobians on a dask cluster of one and two workers, and simulate up to 1 000 workers.

  OMP_NUM_THREADS=1 python -m benchmarks.distributed

A fixed amount of work (strong scaling) and one proportional to the workers (weak scaling) are compared with one process. The work
is sleep, which shows the cost of distributing tasks independently of the machine's load, and matrix products. The table shows a
simulation: every finished task takes a millisecond of the scheduler's time (dask's figure) before its worker receives another,
tasks have the sizes of `gradlab.explore.jacobian.distributed.sizes`, and take up to a fifth more or less than expected.
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

ROWS = 12  # of one second each
AHEAD = 2


class Sleep(gl.autograd.Function):
    """The identity. One row of its Jacobian takes a second."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        time.sleep(1.0)
        return g * 1


def products(size: int):
    """Return a function whose Jacobian takes about a second of matrix products for each row."""
    A = gl.tensor(np.random.default_rng(0).normal(size=(size, size)) / size**0.5)

    def f(x):
        y = gl.ones(size, size, dtype=gl.float64) * x[0]
        for _ in range(6):
            y = gl.tanh(A @ y)
        return x * y.sum()

    return f


def measure(kind: str, rows: int, client) -> float:
    """Return the seconds for this number of rows, each of which takes a second."""
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
            measure(kind, workers, client)  # warm up: send the job and call the function
            strong, weak = measure(kind, ROWS, client), measure(kind, workers * ROWS, client)
        for name, seconds in (("strong", strong * workers), ("weak  ", weak)):
            print(f"{kind}: {workers} workers, {name}: {seconds / workers if name == 'strong' else seconds:5.1f} s,", end=" ")
            print(f"overhead {seconds / alone - 1:+.1%}")


def simulate(workers: int, block: float, work: float = 120.0) -> tuple[float, float]:
    """Return (fraction of time that workers compute, median seconds of a task).

    There are `work` seconds of work for each worker, in blocks of `block` seconds.
    """
    draw, made = random.Random(0), sizes.Sizes()
    left, lengths = round(work * workers / block), []
    blocks_in_all = left
    queues: list[deque[float]] = [deque() for _ in range(workers)]  # tasks that are sent and not started
    idle_since: list[float | None] = [0.0] * workers
    events: list[tuple[float, int, int]] = []  # (time, worker, blocks) of the end of a task
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
    print("fraction of time that workers compute (seconds of a task), by seconds of a block; two minutes of work for each worker")
    costs = (0.001, 0.01, 0.1, 0.5, 2.0, 10.0)
    print(f"{'workers':>8}" + "".join(f"{cost:>16g} s" for cost in costs))
    for workers in (10, 30, 100, 300, 1000):
        cells = [simulate(workers, cost) for cost in costs]
        print(f"{workers:>8}" + "".join(f"{share:>10.1%} ({seconds:4.1f})" for share, seconds in cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="sleep, products, table (default: all)")
    asked = parser.parse_args().what or ["table", "sleep", "products"]
    for one in asked:
        if one == "table":
            table()
        else:
            sizes.USUAL = sizes.SHORTEST = sizes.LONGEST = 1.0
            scaling(one)

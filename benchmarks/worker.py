"""A process for one library: read the names of workloads, time them, and print the median seconds of a call."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from statistics import median


def time_call(call: object, budget: float = 0.4) -> float:
    """Return the median time of a call over about `budget` seconds, in samples of at least 2 ms."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    inner = max(1, round(2e-3 / max(once, 1e-9)))
    samples, end = [], time.perf_counter() + budget
    while time.perf_counter() < end or len(samples) < 5:
        start = time.perf_counter()
        for _ in range(inner):
            call()
        samples.append((time.perf_counter() - start) / inner)
    return median(samples)


def main() -> None:
    name = sys.argv[1]
    from workloads import WORKLOADS, mlp_by_hand

    lib = None if name == "numpy" else importlib.import_module(name)
    if name == "torch":
        lib.set_num_threads(os.cpu_count())
    for line in sys.stdin:
        call = mlp_by_hand() if lib is None else WORKLOADS[line.strip()](lib)
        print(json.dumps(time_call(call)), flush=True)


if __name__ == "__main__":
    main()

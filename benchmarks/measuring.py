"""Measure workloads: gradlab's time and that of another library, each in its own process.

The processes take turns, with pauses, because BLAS and OpenMP threads spin for a while after a call and would slow down the other
process. The result is a `Measurement` with medians over the rounds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

PAUSE = 0.25
HERE = Path(__file__).parent
IMPORT, BY_HAND = "import", "mlp, NumPy by hand"  # measured in addition to the workloads


class Measurement(NamedTuple):
    """Seconds of a call. For `import`, the peer is NumPy, and gradlab's time is what it takes in addition."""

    ours: float
    peer: float
    ratio: float  # median over the rounds, in each of which the two took turns


class Worker:
    """A process for one library."""

    def __init__(self, library: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=HERE.parent,
        )

    def time(self, name: str) -> float:
        """Return the median seconds of a call of the workload."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the worker failed on {name}")
        time.sleep(PAUSE)
        return json.loads(answer)


class Measuring:
    """The worker processes, which are started on first use."""

    def __init__(self, peer: str, rounds: int) -> None:
        self.peer, self.rounds = peer, rounds
        self.workers: dict[str, Worker] = {}

    def worker(self, library: str) -> Worker:
        if library not in self.workers:
            self.workers[library] = Worker(library)
        return self.workers[library]

    def measure(self, name: str) -> Measurement:
        """Measure a workload, `IMPORT` or `BY_HAND`."""
        if name == IMPORT:
            pairs = [import_times() for _ in range(self.rounds + 1)][1:]  # the first one may write the bytecode
        else:
            workload, peer = ("mlp", "numpy") if name == BY_HAND else (name, self.peer)
            ours, theirs = self.worker("gradlab"), self.worker(peer)
            pairs = [(ours.time(workload), theirs.time(workload)) for _ in range(self.rounds)]
        return Measurement(median(a for a, _ in pairs), median(b for _, b in pairs), median(a / b for a, b in pairs))


def import_times() -> tuple[float, float]:
    """Return the seconds of `import gradlab` after `import numpy`, and of `import numpy`, in a new process."""
    code = (
        "import time; a = time.perf_counter(); import numpy; b = time.perf_counter(); import gradlab; c = time.perf_counter(); "
        "print(c - b, b - a)"
    )
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=HERE.parent, env=env)
    ours, numpy = map(float, ran.stdout.split())
    return ours, numpy

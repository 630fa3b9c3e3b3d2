"""`python -m benchmarks [PATTERN …] [--rounds N] [--table]`: gradlab's time divided by torch's, each in its own process.

The two processes take turns, with pauses, because BLAS and OpenMP threads spin for a while after a call and would slow down the
other process. Medians over the rounds are printed. A ratio below 1 means that gradlab is faster. `--table` prints the table of
docs/guide/speed.md, in Markdown.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from benchmarks.speed_page import table
from benchmarks.workloads import WORKLOADS

PAUSE = 0.25
HERE = Path(__file__).parent


class Worker:
    def __init__(self, library: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=None,
            cwd=HERE.parent,
        )

    def time(self, name: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(name + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"the worker failed on {name}")
        time.sleep(PAUSE)
        return json.loads(answer)


def import_time(rounds: int) -> None:
    """Print the time of `import gradlab` in addition to that of NumPy."""

    def seconds(statement: str) -> float:
        code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
        ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=HERE.parent)
        return float(ran.stdout)

    beyond = [seconds("import numpy, gradlab") - seconds("import numpy") for _ in range(max(rounds, 5))]
    print(f"{'import gradlab, without NumPy':32s} {median(beyond) * 1e3:9.1f} ms")


def measured_table(peer: str, rounds: int) -> str:
    """Measure the table of docs/guide/speed.md."""
    ours, theirs = Worker("gradlab"), Worker(peer)

    def ratio(name: str) -> float:
        return median(ours.time(name) / theirs.time(name) for _ in range(rounds))

    return table(peer, rounds, ratio)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("patterns", nargs="*", default=["*"], help="which workloads, as chain/* (all by default)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", default="torch", help="the library to compare with")
    parser.add_argument("--table", action="store_true", help="print the table of docs/guide/speed.md instead")
    options = parser.parse_args()
    if options.table:
        print(measured_table(options.peer, options.rounds))
        return
    if "*" in options.patterns or "import" in options.patterns:
        import_time(options.rounds)
    names = [n for n in WORKLOADS if any(fnmatch.fnmatch(n, p) for p in options.patterns)]
    ours, theirs = Worker("gradlab"), Worker(options.peer)
    print(f"{'workload':32s} {'gradlab':>12s} {options.peer:>12s} {'ratio':>7s}")
    for name in names:
        pairs = [(ours.time(name), theirs.time(name)) for _ in range(options.rounds)]
        print(
            f"{name:32s} {median(a for a, _ in pairs) * 1e6:9.1f} µs {median(b for _, b in pairs) * 1e6:9.1f} µs "
            f"{median(a / b for a, b in pairs):7.2f}",
            flush=True,
        )
    if "mlp" in names:
        floor = Worker("numpy")
        pairs = [(ours.time("mlp"), floor.time("mlp")) for _ in range(options.rounds)]
        print(
            f"{'mlp, against NumPy by hand':32s} {median(a for a, _ in pairs) * 1e6:9.1f} µs "
            f"{median(b for _, b in pairs) * 1e6:9.1f} µs {median(a / b for a, b in pairs):7.2f}"
        )


main()

"""`python -m benchmarks.memory [NAME …]`: gradlab's peak memory of a training step divided by torch's.

Each step runs in its own process, on a batch large enough that arrays use most of the memory. The increase of the resident set
over its size before the first step is printed (Linux only: the kernel's high-water mark).
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BATCHES = {"mlp": 16_384, "correlation": 65_536, "attention": 512, "convnet": 1024}


def resident(field: str) -> float:
    """Return VmRSS or VmHWM of this process, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def measure(library: str, name: str) -> float:
    sys.path.insert(0, str(HERE))
    from workloads import WORKLOADS

    lib = importlib.import_module(library)
    WORKLOADS[name](lib)()  # load all modules and start all threads
    step = WORKLOADS[name](lib, BATCHES[name])
    before = resident("VmRSS")
    for _ in range(3):
        step()
    return resident("VmHWM") - before


def main() -> None:
    if len(sys.argv) == 4 and sys.argv[1] == "--measure":
        print(measure(*sys.argv[2:]))
        return
    print(f"{'workload':16s} {'gradlab':>10s} {'torch':>10s} {'ratio':>7s}")
    for name in sys.argv[1:] or BATCHES:
        ours, theirs = (
            float(
                subprocess.run(
                    [sys.executable, "-m", "benchmarks.memory", "--measure", library, name],
                    capture_output=True,
                    text=True,
                    check=True,
                    cwd=HERE.parent,
                ).stdout
            )
            for library in ("gradlab", "torch")
        )
        print(f"{name:16s} {ours:7.1f} MB {theirs:7.1f} MB {ours / theirs:7.2f}", flush=True)


main()

"""Table of docs/guide/speed.md: its workloads and their times, with date, machine and versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

CHAINS = "100 small operations and backward, on 1 / 100 / 10 000 / 1 000 000 elements"
ROWS = {
    CHAINS: [f"chain/{size}/backward" for size in (1, 100, 10_000, 1_000_000)],
    "2 000 operations on single numbers": ["scalar/2000"],
    "MLP step, 64×784": ["mlp"],
    "the same with modules and Adam": ["adam"],
    "small convolutional net": ["convnet"],
    "attention block": ["attention"],
    "embedding": ["embedding"],
    "Jacobian 256×256, batched": ["jacobian/batched/256"],
}


def processor() -> str:
    """Return the processor's name, if the system has one."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def round_ratio(ratio: float) -> str:
    """Round to two significant digits: to hundredths below 0.1, to 0.05 up to 1, to 0.1 above."""
    if ratio < 0.1:
        return f"{ratio:.2f}"
    return f"{round(ratio * 20) / 20:.2f}" if ratio < 0.975 else f"{ratio:.1f}"


def table(peer: str, rounds: int, ratio: Callable[[str], float]) -> str:
    """Return the table in Markdown. `ratio(workload)` is gradlab's time divided by the peer's."""
    times = {workload: " / ".join(round_ratio(ratio(name)) for name in names) for workload, names in ROWS.items()}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {version(name)}" for name in ("gradlab", peer, "numpy"))
    how = f"each library in its own process, medians of {rounds} rounds (`python -m benchmarks --table`)"
    where = f"{processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}"
    head = [f"| workload | gradlab's time / {peer}'s |", "| --- | --- |"]
    rows = [f"| {workload} | {time} |" for workload, time in times.items()]
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    return "\n".join([f"Time relative to {peer}, {how}.", f"{date}, {where}, {versions}.", "", *head, *rows])

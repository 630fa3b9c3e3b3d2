"""Table of docs/guide/speed.md: its workloads and their times, with date, machine and versions."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks.measuring import BY_HAND, IMPORT, Measurement

CHAINS = "100 small operations and backward, on 1 / 100 / 10 000 / 1 000 000 elements"
ROWS = {
    CHAINS: [f"chain/{size}/backward" for size in (1, 100, 10_000, 1_000_000)],
    "100 small operations without gradient, on 1 / 100 elements": ["chain/1/no_grad", "chain/100/no_grad"],
    "2 000 operations on single numbers": ["scalar/2000"],
    "MLP step, 64×784": ["mlp"],
    "the same with modules and Adam": ["adam"],
    "small convolutional net": ["convnet"],
    "attention block": ["attention"],
    "embedding": ["embedding"],
    "Jacobian 64×64, row by row": ["jacobian/rows/64"],
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


def names_of_table() -> list[str]:
    """Return the names of the measurements that the table needs."""
    return [*(name for names in ROWS.values() for name in names), BY_HAND, IMPORT]


def table(peer: str, rounds: int, measured: Mapping[str, Measurement]) -> str:
    """Return the table in Markdown, from the measurements named in `names_of_table`."""
    ratios = {workload: " / ".join(round_ratio(measured[name].ratio) for name in names) for workload, names in ROWS.items()}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = ", ".join(f"{name} {version(name)}" for name in ("gradlab", peer, "numpy"))
    where = f"{processor()}, {cores} cores, {platform.system()}, Python {platform.python_version()}"
    lines = [
        f"Time relative to {peer}, each library in its own process, medians of {rounds} rounds (`python -m benchmarks`).",
        f"{datetime.now(UTC):%Y-%m-%d}, {where}, {versions}.",
        "",
        f"| workload | gradlab's time / {peer}'s |",
        "| --- | --- |",
        *[f"| {workload} | {ratio} |" for workload, ratio in ratios.items()],
        "",
    ]
    imported = measured[IMPORT]
    limits = (
        f"The MLP step takes {round_ratio(measured[BY_HAND].ratio)} times as long as the same arithmetic written in NumPy by "
        f"hand. `import gradlab` takes {imported.ours * 1e3:.0f} ms in addition to the {imported.peer * 1e3:.0f} ms of NumPy."
    )
    return "\n".join([*lines, limits])

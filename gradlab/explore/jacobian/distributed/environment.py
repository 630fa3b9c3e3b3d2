"""Facts that determine the last bits of a sum: versions, BLAS, the processor's kernels, the number of threads, the device."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gradlab.explore.libraries import library_of

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def environment(tensor: Any) -> dict[str, str]:
    """Return the facts for this process and tensors like this one."""
    config: Any = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    facts = {
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "BLAS": f"{blas.get('name')} {blas.get('version')}",
        "the processor": f"{platform.machine()} {_model()}, {' '.join(config.get('SIMD Extensions', {}).get('found', ()))}",
        "the number of threads": _threads(),
    }
    library = library_of(tensor)
    if library is not None:
        facts[f"{library.name}'s version"] = str(getattr(sys.modules.get(library.name), "__version__", "unknown"))
        kind = getattr(tensor.device, "type", tensor.device)
        facts["the device"] = str(kind)
    torch = sys.modules.get("torch")
    if torch is not None and library is not None and library.name == "torch":
        facts["torch's kernels"] = torch.backends.cpu.get_cpu_capability()
        facts["torch's threads"] = str(torch.get_num_threads())
        if facts["the device"] == "cuda":
            facts["the card"] = torch.cuda.get_device_name(tensor.device)
    return facts


def differing(mine: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """Return the differences between two processes as texts."""
    return [
        f"{what} {theirs.get(what, 'unknown')} there and {mine.get(what, 'unknown')} here"
        for what in {**mine, **theirs}
        if mine.get(what) != theirs.get(what)
    ]


def _threads() -> str:
    """Return the number of BLAS threads: from threadpoolctl if it is installed, else from the environment."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        said = [os.environ[name] for name in THREADS if os.environ.get(name)]
        return said[0] if said else str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    return ", ".join(sorted({f"{one['internal_api']} {one['num_threads']}" for one in threadpool_info()}))


def _model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
    return named or platform.processor()  # platform.processor() starts a process

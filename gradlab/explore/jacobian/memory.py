"""How much memory there is, and refusing what does not fit."""
from __future__ import annotations

import os

import numpy as np

SHARE = 0.25                                        # of the free memory that a sweep may take at its peak
SMALL = 32e6                                        # bytes that are taken without asking whether they are free
CAUTION = 0.9                                       # of the free memory that a whole matrix may take


def free_memory() -> int:
    """The bytes that can be had without swapping, as the system tells; 4 GB where it does not."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 4 << 30


def size_text(count: float) -> str:
    """A number of bytes for people: "1.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def has_room(shape: tuple[int, int], dtype: np.dtype) -> bool:
    """Whether a dense matrix fits into memory."""
    wanted = shape[0] * shape[1] * dtype.itemsize
    return wanted <= SMALL or wanted <= free_memory() * CAUTION


def needs_room(shape: tuple[int, int], dtype: np.dtype) -> None:
    """Refuse a dense matrix that does not fit into memory."""
    if not has_room(shape, dtype):
        wanted, free = shape[0] * shape[1] * dtype.itemsize, free_memory()
        raise MemoryError(
            f"the dense Jacobian, {shape[0]:,}×{shape[1]:,} of {dtype}, takes {size_text(wanted)}; {size_text(free)} are free. "
            "J.sparse() keeps only what can be nonzero, J @ u and v @ J need no matrix, J[i] is one row, J.rows() goes through "
            "all of them, and jacobian(..., out=np.memmap(...)) writes it to a file")

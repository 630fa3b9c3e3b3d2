"""Freed memory is kept for the next array, rather than handed back to the kernel after each.

A large array that the C library returns to the kernel costs a page fault for every 4 KB when the next one is made: on virtual
machines that is several times the arithmetic (a chain of operations on a million floats with its backward ran in 10 ms
instead of 31). So glibc is told to keep up to `KEPT` bytes at the top of its heap, and to serve arrays up to `LARGEST` from
there. The peak is what it was; what is idle between two steps stays with the process. Other C libraries are left alone, and
so is glibc if `GRADLAB_MALLOC=system` is set.
"""
from __future__ import annotations

import ctypes
import os
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3                # <malloc.h>
KEPT, LARGEST = 256 << 20, 64 << 20


def keep_freed_memory() -> bool:
    """Raise glibc's two thresholds; whether it was done. A user's own `MALLOC_…` settings have precedence."""
    if not sys.platform.startswith("linux") or os.environ.get("GRADLAB_MALLOC") == "system" or {
            "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"} & os.environ.keys():
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # The older glibc has an upper bound of 32 MB; only where arrays come from the heap may what is freed there be kept.
    return bool((mallopt(M_MMAP_THRESHOLD, LARGEST) or mallopt(M_MMAP_THRESHOLD, 32 << 20)) and mallopt(M_TRIM_THRESHOLD, KEPT))

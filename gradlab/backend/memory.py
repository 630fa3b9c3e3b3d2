"""Memory: what is kept of the host's when an array is freed, what is in use on a GPU, and what a GPU reads by itself.

Freed memory is kept for the next array, rather than handed back to the kernel after each.

A large array that the C library returns to the kernel costs a page fault for every 4 KB when the next one is made: on virtual
machines that is several times the arithmetic (a chain of operations on a million floats with its backward ran in 10 ms
instead of 31). So glibc is told to keep up to `KEPT` bytes at the top of its heap, and to serve arrays up to `LARGEST` from
there, once the first tensor of gradlab's own is made (`core.first_tensor`). The peak is what it was; what is idle between two
steps stays with the process. Other C libraries are left alone, and so is glibc if `GRADLAB_MALLOC=system` is set.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from typing import Any

import numpy as np

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # <malloc.h>
KEPT, LARGEST = 256 << 20, 64 << 20


def keep_freed_memory() -> bool:
    """Raise glibc's two thresholds; whether it was done. A user's own `MALLOC_…` settings have precedence."""
    if (
        not sys.platform.startswith("linux")
        or os.environ.get("GRADLAB_MALLOC") == "system"
        or {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"} & os.environ.keys()
    ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # The older glibc has an upper bound of 32 MB; only where arrays come from the heap may what is freed there be kept.
    return bool((mallopt(M_MMAP_THRESHOLD, LARGEST) or mallopt(M_MMAP_THRESHOLD, 32 << 20)) and mallopt(M_TRIM_THRESHOLD, KEPT))


class Peaks:
    """The most bytes in use on each GPU. CuPy's pool counts what is in use by looking at every block, and no maximum: a hook of
    its allocator counts along, from when it is asked to."""

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.most: dict[int, int] = {}
        self.hook: Any = None

    def start(self, cupy: Any, index: int, used: int) -> None:
        """Count on a GPU, of which so many bytes are in use."""
        self.used[index] = self.most[index] = used
        if self.hook is None:
            self.hook = self.hook_for(cupy)
            self.hook.__enter__()  # for as long as the process lives

    def count(self, index: int, size: int) -> None:
        """So many bytes more are in use (or less, if negative)."""
        if index in self.used:
            self.used[index] = used = self.used[index] + size
            if used > self.most[index]:
                self.most[index] = used

    def hook_for(self, cupy: Any) -> Any:
        count = self.count

        class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]  # noqa: RUF100
            name = "gradlab: the most bytes in use"

            def malloc_postprocess(self, **told: Any) -> None:
                count(told["device_id"], told["mem_size"])

            def free_postprocess(self, **told: Any) -> None:
                count(told["device_id"], -told["mem_size"])

        return Hook()


peaks = Peaks()


# ------------------------------------------------------------------------------------------------------------- page-locked
IN_FLIGHT: deque[tuple[Any, Any]] = deque()


def pinned(cupy: Any, array: np.ndarray) -> np.ndarray:
    """A copy in page-locked memory, which a GPU reads by itself."""
    import cupyx

    copy = cupyx.empty_pinned(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_pinned(cupy: Any, array: Any) -> bool:
    """Whether the memory of a NumPy array is page-locked."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    return isinstance(owner, cupy.cuda.PinnedMemoryPointer)


def sent(cupy: Any, array: np.ndarray) -> Any:
    """Page-locked memory copied to the current GPU without a wait. It is kept until the copy is done, since the pool would hand
    it out again."""
    there, stream = cupy.empty(array.shape, array.dtype), cupy.cuda.get_current_stream()
    there.set(array, stream=stream)
    IN_FLIGHT.append((stream.record(), array))
    while IN_FLIGHT and IN_FLIGHT[0][0].done:
        IN_FLIGHT.popleft()
    return there

"""Memory management: keep freed host memory, count memory in use on GPUs, and copy from page-locked memory.

Freed memory is kept for the next array instead of being returned to the kernel each time. If the C library returns the memory of
a large array, the next one costs a page fault for every 4 KB, which on virtual machines takes several times as long as the
arithmetic. With the memory kept, a chain of operations on a million floats with its backward ran in 10 ms instead of 31. So when
the first tensor is created (`core.first_tensor`), glibc is configured to keep up to `MAX_KEPT_BYTES` at the top of its heap and
to allocate arrays of up to `MAX_HEAP_ARRAY_BYTES` there. The peak does not change, but memory that is idle between two steps
stays with the process. Other C libraries are not changed, and neither is glibc if `GRADLAB_MALLOC=system` is set.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections import deque
from typing import Any

import numpy as np

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # <malloc.h>
MAX_KEPT_BYTES, MAX_HEAP_ARRAY_BYTES = 256 << 20, 64 << 20


def keep_freed_memory() -> bool:
    """Raise glibc's two thresholds and return True if it succeeded. The user's `MALLOC_…` settings take precedence."""
    if (
        not sys.platform.startswith("linux")
        or os.environ.get("GRADLAB_MALLOC") == "system"
        or {"MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"} & os.environ.keys()
    ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # Older versions of glibc limit the first threshold to 32 MB. The second is raised only if the first was.
    return bool(
        (mallopt(M_MMAP_THRESHOLD, MAX_HEAP_ARRAY_BYTES) or mallopt(M_MMAP_THRESHOLD, 32 << 20))
        and mallopt(M_TRIM_THRESHOLD, MAX_KEPT_BYTES)
    )


class Peaks:
    """Peak memory in use on each GPU, counted by a hook of CuPy's allocator from the call of `start` on.

    CuPy's pool does not keep a maximum, and counts the bytes in use by visiting every block.
    """

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.peak: dict[int, int] = {}
        self.hook: Any = None

    def start(self, cupy: Any, index: int, used: int) -> None:
        """Start counting on GPU `index`, which has `used` bytes in use."""
        self.used[index] = self.peak[index] = used
        if self.hook is None:
            self.hook = self.hook_for(cupy)
            self.hook.__enter__()  # until the process ends

    def count(self, index: int, size: int) -> None:
        """Add `size` bytes to those in use on a GPU; a negative size subtracts."""
        if index in self.used:
            self.used[index] = used = self.used[index] + size
            if used > self.peak[index]:
                self.peak[index] = used

    def hook_for(self, cupy: Any) -> Any:
        count = self.count

        class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]  # noqa: RUF100
            name = "gradlab: peak memory"

            def malloc_postprocess(self, **event: Any) -> None:
                count(event["device_id"], event["mem_size"])

            def free_postprocess(self, **event: Any) -> None:
                count(event["device_id"], -event["mem_size"])

        return Hook()


peaks = Peaks()


# ------------------------------------------------------------------------------------------------------------- page-locked
TRANSFERS_IN_FLIGHT: deque[tuple[Any, Any]] = deque()


def copy_to_pinned(cupy: Any, array: np.ndarray) -> np.ndarray:
    """Return a copy in page-locked memory, which a GPU can read directly."""
    import cupyx

    copy = cupyx.empty_pinned(array.shape, array.dtype)
    copy[...] = array
    return copy


def is_pinned(cupy: Any, array: Any) -> bool:
    """Return True if the memory of a NumPy array is page-locked."""
    owner = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    owner = owner.obj if isinstance(owner, memoryview) else owner
    return isinstance(owner, cupy.cuda.PinnedMemoryPointer)


def send_pinned(cupy: Any, array: np.ndarray) -> Any:
    """Copy page-locked memory to the current GPU without waiting.

    The array is kept alive until the copy is complete, since the pool could reuse its memory.
    """
    there, stream = cupy.empty(array.shape, array.dtype), cupy.cuda.get_current_stream()
    there.set(array, stream=stream)
    TRANSFERS_IN_FLIGHT.append((stream.record(), array))
    while TRANSFERS_IN_FLIGHT and TRANSFERS_IN_FLIGHT[0][0].done:
        TRANSFERS_IN_FLIGHT.popleft()
    return there

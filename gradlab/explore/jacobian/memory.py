"""Available memory and disk space, and errors if a matrix does not fit."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from typing import IO, Any

import numpy as np

from gradlab.explore.markup import size_text

SHARE = 0.25  # of the free memory, for the peak of a sweep
SMALL = 32e6  # bytes that are used without checking the free memory
CAUTION = 0.9  # of the free memory, for a whole matrix


def free_memory() -> int:
    """Return the bytes available without swapping, according to the system; 4 GB if unknown."""
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


def has_room(shape: tuple[int, int], dtype: np.dtype) -> bool:
    """Return whether a dense matrix fits into memory."""
    wanted = shape[0] * shape[1] * dtype.itemsize
    return wanted <= SMALL or wanted <= free_memory() * CAUTION


def needs_room(shape: tuple[int, int], dtype: np.dtype) -> None:
    """Raise if a dense matrix does not fit into memory."""
    if not has_room(shape, dtype):
        wanted, free = shape[0] * shape[1] * dtype.itemsize, free_memory()
        raise MemoryError(
            f"the dense Jacobian, {shape[0]:,}×{shape[1]:,} of {dtype}, takes {size_text(wanted)}; {size_text(free)} are free. "
            "J.sparse() keeps only what can be nonzero, J @ u and v @ J need no matrix, J[i] is one row, J.rows() goes through "
            "all of them, and jacobian(..., out=np.memmap(...)) writes it to a file"
        )


def map_of(out: np.ndarray) -> np.memmap | None:
    """Return the memory map of a file that an array is, or is a view of, if writes reach the file."""
    base: Any = out
    while isinstance(base, np.ndarray) and not (isinstance(base, np.memmap) and base.filename is not None):
        base = base.base
    return base if isinstance(base, np.memmap) and base.mode != "c" else None


def first_byte(out: np.ndarray, of: np.memmap) -> int:
    """Return the offset of an array in its file. Views have the whole map's `offset`, so it is computed from the addresses."""
    mapped: Any = of
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    whole = np.frombuffer(mapped, np.uint8)
    begins = of.offset - of.offset % mmap.ALLOCATIONGRANULARITY
    return int(begins + out.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def needs_disk(out: np.ndarray) -> None:
    """Reserve disk space for an array in a file, so that no write can find the disk full.

    A new file has holes. A write through memory into a hole for which the disk has no room kills the process (SIGBUS). The
    contents of the file do not change.

    Raises
    ------
    OSError
        If there is no room.
    """
    of = map_of(out)
    if of is None:
        return
    low, high = np.lib.array_utils.byte_bounds(out)
    start, length, path = first_byte(out, of) - (out.__array_interface__["data"][0] - low), high - low, str(of.filename)
    try:
        with open(path, "r+b") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), start, length)
            elif (status := os.fstat(file.fileno())) and getattr(status, "st_blocks", status.st_size) * 512 < status.st_size:
                of.flush()
                _rewrite(file, start, length)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return  # the file system does not support it, or the file was renamed
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
        raise OSError(
            error.errno,
            f"{os.strerror(error.errno)}: out= takes {size_text(length)} of its file, and its disk has "
            f"{size_text(free)} more. Nothing was written, and the file did not change. Make room, or give out= a file on "
            "another disk",
            path,
        ) from None


def _rewrite(file: IO[bytes], start: int, length: int) -> None:
    """Rewrite the contents, which allocates holes."""
    step = 1 << 20
    for at in range(start, start + length, step):
        file.seek(at)
        some = file.read(min(step, start + length - at))
        file.seek(at)
        file.write(some)
    file.flush()
    os.fsync(file.fileno())

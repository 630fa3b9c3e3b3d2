"""How much memory and disk there is, and refusing what does not fit."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from typing import IO, Any

import numpy as np

from gradlab.explore.markup import size_text

SHARE = 0.25  # of the free memory that a sweep may take at its peak
SMALL = 32e6  # bytes that are taken without asking whether they are free
CAUTION = 0.9  # of the free memory that a whole matrix may take


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
            "all of them, and jacobian(..., out=np.memmap(...)) writes it to a file"
        )


def map_of(out: np.ndarray) -> np.memmap | None:
    """The map of a file that an array is or is a view of, if what is written into it reaches the file."""
    base: Any = out
    while isinstance(base, np.ndarray) and not (isinstance(base, np.memmap) and base.filename is not None):
        base = base.base
    return base if isinstance(base, np.memmap) and base.mode != "c" else None


def first_byte(out: np.ndarray, of: np.memmap) -> int:
    """Where in its file an array begins: views have the whole map's own `offset`, so it is told by the addresses."""
    mapped: Any = of
    while isinstance(mapped, np.ndarray):
        mapped = mapped.base
    whole = np.frombuffer(mapped, np.uint8)
    begins = of.offset - of.offset % mmap.ALLOCATIONGRANULARITY
    return int(begins + out.__array_interface__["data"][0] - whole.__array_interface__["data"][0])


def needs_disk(out: np.ndarray) -> None:
    """Have the file system keep room for all of an array in a file, so that no write can find the disk full.

    A file that was made and not written yet has holes, and a write through memory into a hole that the disk has no room for ends
    the process (SIGBUS). What the file holds stays as it is.

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
            return  # the file system has no way to, or the file has another name now
        free = shutil.disk_usage(os.path.dirname(os.path.abspath(path))).free
        raise OSError(
            error.errno,
            f"{os.strerror(error.errno)}: out= takes {size_text(length)} of its file, and its disk has "
            f"{size_text(free)} more. Nothing was written, and what the file held it holds. Make room, or give out= a file on "
            "another disk",
            path,
        ) from None


def _rewrite(file: IO[bytes], start: int, length: int) -> None:
    """Write what is there, which gives holes a place."""
    step = 1 << 20
    for at in range(start, start + length, step):
        file.seek(at)
        some = file.read(min(step, start + length - at))
        file.seek(at)
        file.write(some)
    file.flush()
    os.fsync(file.fileno())

"""Read untrusted zip files for `load`. Damaged files and decompression bombs raise an error.

Neither `gradlab.save` nor `torch.save` compresses, so the members of a file are together no larger than the file. A file that
somebody compressed afterwards may be smaller than its members. One that expands far more than that is treated as a decompression
bomb and not read.
"""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

MAX_COMPRESSION_RATIO, EXPANSION_ALLOWANCE = 16, 64 << 20  # limits: ratio to the file's size, and bytes allowed in addition
OWN_ERROR_PREFIXES = ("gradlab.load:", "Attempting to deserialize object")


@contextmanager
def report_damage(what: str = "the file is damaged") -> Iterator[None]:
    """Convert errors while reading the content of a file to a RuntimeError about the file.

    gradlab's own errors, MemoryError and errors of the file system propagate unchanged.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if str(error).startswith(OWN_ERROR_PREFIXES) or (isinstance(error, OSError) and error.errno != errno.EINVAL):
            raise
        raise RuntimeError(f"gradlab.load: {what} ({type(error).__name__}: {error!s:.300}).") from error


@contextmanager
def open_archive(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open a zip file for `read_member`, after checking its total size."""
    try:
        archive = zipfile.ZipFile(file)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise _not_a_zip_file() from None
    except Exception:  # noqa: BLE001  (damaged bytes can raise anything)
        raise _not_a_zip_file() from None
    with archive, report_damage():
        size, infos = file.seek(0, 2), archive.infolist()
        wanted = sum(info.file_size for info in infos)
        if wanted > MAX_COMPRESSION_RATIO * size + EXPANSION_ALLOWANCE:
            raise RuntimeError(
                f"gradlab.load: the file has {size:,} bytes but would expand to {wanted:,}. Neither gradlab.save nor "
                "torch.save compresses, so it is not read. If you trust it, unpack it and zip it again without "
                "compression."
            )
        if not any(info.CRC for info in infos):  # torch.serialization.set_crc32_options(False)
            for info in infos:
                info.CRC = None  # type: ignore[assignment]
        yield archive


def _not_a_zip_file() -> RuntimeError:
    return RuntimeError(
        "gradlab.load: the file was written neither by gradlab.save nor as a zip file by torch.save. It may be damaged, or "
        "written by torch older than 1.6. In the latter case load it and save it again with a newer torch."
    )


def read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the bytes of a member, after checking their number and their checksum."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r:.100} has the unsupported compression type {info.compress_type}")
    with archive.open(info) as member:
        data = member.read(info.file_size) if info.file_size else b""  # without a size `read` could expand without limit
    if len(data) != info.file_size:
        raise EOFError(f"{name!r:.100} has {len(data):,} bytes, expected {info.file_size:,}")
    return data

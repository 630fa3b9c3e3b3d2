"""Zip files from anywhere, read for `load`: what is damaged says so, and what would fill the memory is refused before it does.

Neither `gradlab.save` nor `torch.save` compresses, so the members of a file are together no larger than the file. One that
somebody has packed anew may be; one that says it becomes very much larger is a bomb.
"""

from __future__ import annotations

import errno
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

MOST_PACKED, FREE = 16, 64 << 20  # a file may grow so many times, and by so many bytes anyhow
OURS = ("gradlab.load:", "Attempting to deserialize object")


@contextmanager
def told_if_damaged(what: str = "the file is damaged") -> Iterator[None]:
    """Whatever goes wrong while a file's content is read is told as a RuntimeError about the file.

    Errors that are ours, too little memory and a file system's errors stay what they are.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        if str(error).startswith(OURS) or (isinstance(error, OSError) and error.errno != errno.EINVAL):
            raise
        raise RuntimeError(f"gradlab.load: {what} ({type(error).__name__}: {error!s:.300}).") from error


@contextmanager
def opened(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """A zip file's archive, to be read by `content`."""
    try:
        archive = zipfile.ZipFile(file)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise _no_zip_file() from None
    except Exception:  # noqa: BLE001  (whatever the bytes lead it to)
        raise _no_zip_file() from None
    with archive, told_if_damaged():
        size, infos = file.seek(0, 2), archive.infolist()
        wanted = sum(info.file_size for info in infos)
        if wanted > MOST_PACKED * size + FREE:
            raise RuntimeError(
                f"gradlab.load: the file of {size:,} bytes says that it holds {wanted:,}, compressed. Neither "
                "gradlab.save nor torch.save compresses, so it is not read. If you trust it, unpack it, and zip "
                "it without compression."
            )
        if not any(info.CRC for info in infos):  # torch.serialization.set_crc32_options(False)
            for info in infos:
                info.CRC = None  # type: ignore[assignment]
        yield archive


def _no_zip_file() -> RuntimeError:
    return RuntimeError(
        "gradlab.load: the file is neither one that gradlab.save wrote nor a zip file of torch.save's (it may be "
        "damaged, or of torch older than 1.6: load and save it there again)."
    )


def content(archive: zipfile.ZipFile, name: str) -> bytes:
    """All bytes of a member: as many as it says, and with the checksum that it says."""
    info = archive.getinfo(name)
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name!r:.100} is compressed in an unknown way, {info.compress_type}")
    with archive.open(info) as member:
        data = member.read(info.file_size) if info.file_size else b""  # a number bounds what is unpacked at once
    if len(data) != info.file_size:
        raise EOFError(f"{name!r:.100} has {len(data):,} of its {info.file_size:,} bytes")
    return data

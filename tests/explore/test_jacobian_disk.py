"""A matrix in a file that the disk has no room for: an error before anything is written, and no dead process."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from explore.banded import ROWS, a_file, asked, stopping, the_matrix

from gradlab.explore.jacobian import memory

needs_allocation = pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no posix_fallocate here")
SCRIPT = """
    import sys
    import numpy as np
    import gradlab as gl

    def f(x):
        return x * x

    def matrix(name, n, mode, **options):
        out = np.memmap(f"{sys.argv[1]}/{name}", np.float64, mode, shape=(n, n))
        return gl.jacobian(f, gl.ones(n, dtype=gl.float64), out=out, method="batched", **options)

    small = np.asarray(matrix("small", 100, "w+", resume=True))
    try:
        np.asarray(matrix("large", 1000, "w+", resume="again" not in sys.argv))
    except OSError as error:
        print(error)
    print(np.array_equal(small, 2 * np.eye(100)), matrix("small", 100, "r+", resume=True).complete)
"""


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, which only root can have."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    command = [mount, "-t", "tmpfs", "-o", "size=2m", "none", place]
    if mount is None or subprocess.run(command, check=False, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.e2e
@needs_allocation
@pytest.mark.parametrize("way", ["resumed", "again"])
def test_a_full_disk_is_an_error_and_not_the_end_of_the_process(small_disk, way):
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), small_disk, way]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    said, rest = ran.stdout.splitlines()
    assert said.startswith("[Errno 28] No space left on device: out= takes 8.0 MB of its file, and its disk has 2.0 MB more. ")
    assert "Nothing was written, and the file did not change. Make room, or" in said and said.endswith("/large'")
    assert rest == "True True", "what was done stays, and is gone on with"


def refusing(calls, number=errno.ENOSPC):
    def allocate(*given):
        calls.append(given[-2:])
        raise OSError(number, os.strerror(number))

    return allocate


@needs_allocation
def test_what_is_asked_of_the_file_system(tmp_path, monkeypatch):
    """All bytes of the array and no others; a memory map that is private, and memory, need none."""
    calls = []
    monkeypatch.setattr(os, "posix_fallocate", refusing(calls))
    whole = a_file(tmp_path, shape=(3, ROWS, ROWS))
    size = ROWS * ROWS * 8
    for out, expected in (
        (whole[1], (size, size)),
        (whole[2].T, (2 * size, size)),
        (whole[0, ::-1], (0, size)),
        (np.asarray(whole[1]), (size, size)),
        (whole[1].view(np.ndarray)[:, ::-1], (size, size)),
    ):
        with pytest.raises(OSError, match=r"No space left on device: out= takes 1\.2 kB of its file") as caught:
            asked(out=out)
        assert calls.pop() == expected and caught.value.errno == errno.ENOSPC and caught.value.filename.endswith("J.bin")
    np.testing.assert_array_equal(whole, np.zeros((3, ROWS, ROWS)))
    for out in (np.empty((ROWS, ROWS)), a_file(tmp_path, "c")):
        np.testing.assert_allclose(np.asarray(asked(out=out)), the_matrix())
    assert calls == []


@needs_allocation
def test_what_is_done_stays_when_the_disk_is_full_later(tmp_path, monkeypatch):
    J = asked(out=a_file(tmp_path), resume=True)
    stopping(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        np.asarray(J)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refusing([]))
        with pytest.raises(OSError, match="Nothing was written"):
            asked(out=a_file(tmp_path, "r+"), resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    J = asked(out=a_file(tmp_path, "r+"), resume=True)
    assert J.store.done == {0, 1}
    np.testing.assert_allclose(np.asarray(J), the_matrix())


def test_a_record_that_finds_the_disk_full_leaves_the_old_one(tmp_path, monkeypatch):
    J, calls = asked(out=a_file(tmp_path), resume=True), []
    inner = os.fsync

    def full(number):
        calls.append(number)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return inner(number)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        np.asarray(J)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["J.bin", "J.bin.json"]
    again = asked(out=a_file(tmp_path, "r+"), resume=True)
    assert again.store.done == {0}
    np.testing.assert_allclose(np.asarray(again), the_matrix())


@needs_allocation
def test_file_systems_that_cannot_allocate_are_written_as_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", refusing([], errno.EOPNOTSUPP))
    np.testing.assert_allclose(np.asarray(asked(out=a_file(tmp_path))), the_matrix())


def test_without_posix_fallocate_the_holes_are_written(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    out = a_file(tmp_path, shape=(400, 400))
    out[5] = np.arange(400)
    before = np.array(out)
    memory.needs_disk(out[1:])
    np.testing.assert_array_equal(out, before)
    assert os.stat(tmp_path / "J.bin").st_blocks * 512 >= 399 * 400 * 8 - 4096

"""A matrix in a file that does not fit on the disk gives an error before anything is written, and does not kill the process."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from explore.banded import ROWS, banded_jacobian, make_file, make_jacobian, stop_before_block

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
    """Mount a file system of two megabytes, which only root can do."""
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
def test_a_full_disk_is_an_error(small_disk, way):
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), small_disk, way]
    ran = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ran.returncode == 0, (ran.returncode, ran.stderr)
    said, rest = ran.stdout.splitlines()
    assert said.startswith("[Errno 28] No space left on device: out= takes 8.0 MB of its file, and its disk has 2.0 MB more. ")
    assert "Nothing was written, and the file did not change. Make room, or" in said and said.endswith("/large'")
    assert rest == "True True", "the finished blocks are kept, and it resumes"


def refusing(calls, number=errno.ENOSPC):
    def allocate(*given):
        calls.append(given[-2:])
        raise OSError(number, os.strerror(number))

    return allocate


@needs_allocation
def test_allocated_ranges_of_the_file(tmp_path, monkeypatch):
    """Exactly the bytes of the array are allocated, and none for a private memory map or an array in memory."""
    calls = []
    monkeypatch.setattr(os, "posix_fallocate", refusing(calls))
    whole = make_file(tmp_path, shape=(3, ROWS, ROWS))
    size = ROWS * ROWS * 8
    for out, expected in (
        (whole[1], (size, size)),
        (whole[2].T, (2 * size, size)),
        (whole[0, ::-1], (0, size)),
        (np.asarray(whole[1]), (size, size)),
        (whole[1].view(np.ndarray)[:, ::-1], (size, size)),
    ):
        with pytest.raises(OSError, match=r"No space left on device: out= takes 1\.2 kB of its file") as caught:
            make_jacobian(out=out)
        assert calls.pop() == expected and caught.value.errno == errno.ENOSPC and caught.value.filename.endswith("J.bin")
    np.testing.assert_array_equal(whole, np.zeros((3, ROWS, ROWS)))
    for out in (np.empty((ROWS, ROWS)), make_file(tmp_path, "c")):
        np.testing.assert_allclose(np.asarray(make_jacobian(out=out)), banded_jacobian())
    assert calls == []


@needs_allocation
def test_finished_blocks_are_kept_if_the_disk_is_full_later(tmp_path, monkeypatch):
    J = make_jacobian(out=make_file(tmp_path), resume=True)
    stop_before_block(J, 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        np.asarray(J)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refusing([]))
        with pytest.raises(OSError, match="Nothing was written"):
            make_jacobian(out=make_file(tmp_path, "r+"), resume=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    J = make_jacobian(out=make_file(tmp_path, "r+"), resume=True)
    assert J.store.done == {0, 1}
    np.testing.assert_allclose(np.asarray(J), banded_jacobian())


def test_a_record_that_cannot_be_written_keeps_the_old_one(tmp_path, monkeypatch):
    J, calls = make_jacobian(out=make_file(tmp_path), resume=True), []
    inner = os.fsync

    def raise_full(number):
        calls.append(number)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return inner(number)

    monkeypatch.setattr(os, "fsync", raise_full)
    with pytest.raises(OSError, match="No space left"):
        np.asarray(J)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["J.bin", "J.bin.json"]
    again = make_jacobian(out=make_file(tmp_path, "r+"), resume=True)
    assert again.store.done == {0}
    np.testing.assert_allclose(np.asarray(again), banded_jacobian())


@needs_allocation
def test_file_systems_that_cannot_allocate_are_written_directly(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "posix_fallocate", refusing([], errno.EOPNOTSUPP))
    np.testing.assert_allclose(np.asarray(make_jacobian(out=make_file(tmp_path))), banded_jacobian())


def test_without_posix_fallocate_holes_are_filled(tmp_path, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    out = make_file(tmp_path, shape=(400, 400))
    out[5] = np.arange(400)
    before = np.array(out)
    memory.needs_disk(out[1:])
    np.testing.assert_array_equal(out, before)
    assert os.stat(tmp_path / "J.bin").st_blocks * 512 >= 399 * 400 * 8 - 4096

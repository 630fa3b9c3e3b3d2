"""Files that are damaged, forged or made to fill the memory: each says so, in one sentence and at once."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import random
import struct
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_saving import forged, of_torch

import gradlab as gl

Change = Callable[[bytes, random.Random], bytes]


def flipped(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 4]) if data else 0):
        made[draw.randrange(len(made))] = draw.choice([0, 255, draw.randrange(256), made[draw.randrange(len(made))]])
    return bytes(made)


def cut_off(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def lengthened(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.randbytes(draw.randrange(1, 5)) + data[at:]


def zipped_anew(file: bytes, end: str, change: Callable[[bytes], bytes], **options: Any) -> bytes:
    """The zip file, with a change of the members whose names end so, and checksums that fit."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(made, "w", **options) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name.endswith(end) else old.read(name))
    return made.getvalue()


def ours() -> bytes:
    file, x = io.BytesIO(), gl.arange(6.0)
    gl.save(
        {
            "a": [x, x[2:], gl.nn.Parameter(gl.ones(2, 3))],
            "b": (1, 2.5, "s", b"xy", None, float("nan")),
            "c": np.arange(4),
            "d": gl.float32,
            "e": {1, 2},
            "f": np.float32(2),
            "g": gl.device("cpu"),
            "h": gl.Size([1, 2]),
            "i": np.array(["ab", "c"]),
            "j": np.asfortranarray(np.ones((2, 3))),
            "k": np.array(""),
        },
        file,
    )
    return file.getvalue()


def theirs() -> bytes:
    torch = pytest.importorskip("torch")
    state = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)).state_dict()
    return of_torch(
        {
            "m": state,
            "x": torch.nn.Parameter(torch.ones(2)),
            "b": b"\x00\xff",
            "s": {1, 2},
            "d": torch.float32,
            "n": [1, 2.5, "ä", None, (1, 2)],
            "dev": torch.device("cpu"),
            "z": torch.Size([2]),
        }
    ).getvalue()


WRITERS = [ours, pytest.param(theirs, marks=pytest.mark.oracle)]


class SaidError(Exception):
    """An error that names the file."""


@contextlib.contextmanager
def saying() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, TypeError) as error:
        if str(error).startswith(("gradlab.load: ", "Attempting to deserialize object on a CUDA device")):
            raise SaidError from error
        raise


def loaded(data: bytes) -> Any:
    """What is loaded; None if the file is said to be none of ours, damaged, or of another kind."""
    with contextlib.suppress(SaidError), saying():
        return gl.load(io.BytesIO(data))
    return None


@pytest.mark.parametrize("writer", WRITERS)
def test_every_file_is_read_again(writer: Any) -> None:
    found = loaded(writer())
    assert found["b"] in ((1, 2.5, "s", b"xy", None, found["b"][-1]), b"\x00\xff")


@pytest.mark.parametrize("change", [flipped, cut_off, lengthened])
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_bytes_are_noticed_or_change_nothing(writer: Any, change: Change) -> None:
    """Checksums tell; what they do not cover, dates and padding, does not matter."""
    data, draw, said = writer(), random.Random(0), 0
    expected = repr(gl.load(io.BytesIO(data)))
    for _ in range(1500):
        found = loaded(change(data, draw))
        assert found is None or repr(found) == expected
        said += found is None
    assert said > 500


@pytest.mark.parametrize("change", [flipped, cut_off, lengthened])
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_content_with_right_checksums_is_noticed_or_read(writer: Any, change: Change) -> None:
    data, draw, said = writer(), random.Random(1), 0
    for _ in range(700):
        end = draw.choice(["gradlab.json", "0.npy", "3.npy"] if writer is ours else ["data.pkl", "byteorder", "data/0"])
        said += loaded(zipped_anew(data, end, lambda part: change(part, draw))) is None
    assert said > 100


@pytest.mark.parametrize(
    "obj",
    [
        [[]] * 3,
        {"eval": [1]},
        {"tensor": -1.5},
        {"bytes": "é"},
        {"float": "x" * 9},
        {"Counter": [[1]]},
        {"device": "nowhere"},
        {"device": 3},
        {"dtype": []},
        {"scalar": 10**30},
        {"array": 0.5},
    ],
)
def test_forged_structures(obj: Any) -> None:
    for part in ({"object": obj}, {"tensors": [obj]}, {"version": obj}):
        loaded(zipped_anew(ours(), "gradlab.json", lambda old, part=part: json.dumps(json.loads(old) | part).encode()))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"list":' * 50_000, "", "[", "1", '{"version": 1, "tensors": 3}', "1" * 5000])
def test_structures_that_are_none(text: str) -> None:
    with pytest.raises(RuntimeError, match=r"gradlab\.load: the file is damaged \("):
        gl.load(io.BytesIO(zipped_anew(ours(), "gradlab.json", lambda old: text.encode())))


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    "array",
    [
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}") + bytes(24),
        header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8),
        header("{'descr': '|S1000000000', 'fortran_order': False, 'shape': (1,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (((((1"),
        header("\n\n 'a"),
        header("(" * 9000),
        b"",
        b"\x93NUMPY\x09\x00",
        header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") + bytes(4),
    ],
)
def test_arrays_that_are_none(array: bytes) -> None:
    with pytest.raises(RuntimeError, match=r"gradlab\.load: the file is damaged \("):
        gl.load(io.BytesIO(zipped_anew(ours(), "0.npy", lambda old: array)))


# ------------------------------------------------------------------------------------------------------- memory
def peak(data: bytes) -> tuple[str, int]:
    """What loading says, and the most memory that it took, in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=r"^gradlab\.load: ") as caught:
            gl.load(io.BytesIO(data))
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_refused_before_it_costs_memory(how: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("a/data.pkl", tensor(1 << 26))
        with archive.open("a/data/0", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(bytes(1 << 22))
    said, most = peak(file.getvalue())
    assert "bytes says that it holds 268," in said and "unpack it, and zip it without compression" in said and most < 20e6


@pytest.mark.slow
@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_that_lies_about_its_size(how: int) -> None:
    """The sizes that it says are small; what is unpacked is not."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("gradlab.json", bytes(200 << 20))
        info = archive.getinfo("gradlab.json")
        right = struct.pack("<L", info.file_size)
    data = file.getvalue().replace(right, struct.pack("<L", 1000))
    _, most = peak(data)
    assert most < 20e6


def tensor(count: int) -> bytes:
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI%d\ntQ" % count
        + b"I0\n(I%d\nt(I1\nt" % count
        + b"I00\nNtR."
    )


@pytest.mark.parametrize(
    "pickled",
    [
        b"\x80\x02}r\xff\xff\xff\x7f.",
        b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40),
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62),
        b"\x80\x02\x8b\xff\xff\xff\x7f",
        b"\x80\x04\x95" + struct.pack("<Q", 1 << 50),
    ],
)
def test_pickles_that_name_more_than_there_is(pickled: bytes) -> None:
    tracemalloc.start()
    try:
        loaded(forged(pickled).getvalue())
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("state", [b"(dS'strides'\n(I0\nts", b"(dS'shape'\n(I1\nI4\nts", b"(dS'dtype'\nS'O'\ns"])
def test_a_storage_is_given_no_attributes(state: bytes) -> None:
    """A view of it would then read what lies outside."""
    storage = b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ"
    with pytest.raises(RuntimeError, match=r"a state for a ndarray"):
        gl.load(forged(b"(" + storage + b"(N" + state + b"tbt."))


# ------------------------------------------------------------------------------------- what is odd, and whole
@pytest.mark.parametrize("writer", WRITERS)
def test_a_file_that_was_zipped_anew_with_compression_is_read(writer: Any) -> None:
    data = writer()
    assert repr(loaded(zipped_anew(data, "", bytes, compression=zipfile.ZIP_DEFLATED))) == repr(loaded(data))


@pytest.mark.oracle
def test_torch_files_without_checksums_are_read() -> None:
    torch = pytest.importorskip("torch")
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        assert gl.load(of_torch(torch.arange(5.0))).tolist() == [0, 1, 2, 3, 4]
    finally:
        torch.serialization.set_crc32_options(before)


@pytest.mark.oracle
def test_pickle_protocols_of_torch() -> None:
    torch = pytest.importorskip("torch")
    saved = {"a": [torch.ones(2), b"ab", bytearray(b"cd"), {1}, "ä"], "b": torch.nn.Linear(1, 1).state_dict()}
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        file = io.BytesIO()
        torch.save(saved, file, pickle_protocol=protocol)
        if protocol == 5:
            assert gl.load(file)["a"][2] == bytearray(b"cd")
        found = loaded(file.getvalue())
        assert found is None or found["b"]._metadata == saved["b"]._metadata


def test_a_wrong_map_location_is_no_damage(tmp_path: Path) -> None:
    gl.save(gl.ones(2), tmp_path / "a")
    with pytest.raises(RuntimeError) as caught:
        gl.load(tmp_path / "a", map_location="nowhere")
    assert "damaged" not in str(caught.value) and "nowhere" in str(caught.value)


def test_a_file_that_cannot_be_read_is_no_damage() -> None:
    class Broken(io.BytesIO):
        def read(self, size: Any = -1) -> bytes:
            if self.tell() < 100:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Input/output error"):
        gl.load(Broken(ours()))

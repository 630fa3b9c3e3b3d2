"""Load files that are damaged, forged or designed to exhaust memory: each raises an error in one sentence, without delay."""

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
from test_saving import forged_file, of_torch

import gradlab as gl

Change = Callable[[bytes, random.Random], bytes]


def flip_bytes(data: bytes, draw: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(draw.choice([1, 1, 1, 2, 4]) if data else 0):
        made[draw.randrange(len(made))] = draw.choice([0, 255, draw.randrange(256), made[draw.randrange(len(made))]])
    return bytes(made)


def truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def insert_bytes(data: bytes, draw: random.Random) -> bytes:
    at = draw.randrange(len(data) + 1)
    return data[:at] + draw.randbytes(draw.randrange(1, 5)) + data[at:]


def rezip(file: bytes, end: str, change: Callable[[bytes], bytes], **options: Any) -> bytes:
    """Apply a change to the members of a zip file whose names end with `end`, and write it with valid checksums."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(file)) as old, zipfile.ZipFile(made, "w", **options) as new:
        for name in old.namelist():
            new.writestr(name, change(old.read(name)) if name.endswith(end) else old.read(name))
    return made.getvalue()


def gradlab_file() -> bytes:
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


def torch_file() -> bytes:
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


WRITERS = [gradlab_file, pytest.param(torch_file, marks=pytest.mark.oracle)]


class NamedFileError(Exception):
    """Error whose message is about the file."""


@contextlib.contextmanager
def mark_named_errors() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, TypeError) as error:
        if str(error).startswith(("gradlab.load: ", "Attempting to deserialize object on a CUDA device")):
            raise NamedFileError from error
        raise


def load_or_none(data: bytes) -> Any:
    """Return the loaded object, or None if the error says that the file is damaged or not supported."""
    with contextlib.suppress(NamedFileError), mark_named_errors():
        return gl.load(io.BytesIO(data))
    return None


@pytest.mark.parametrize("writer", WRITERS)
def test_undamaged_files_are_loaded(writer: Any) -> None:
    found = load_or_none(writer())
    assert found["b"] in ((1, 2.5, "s", b"xy", None, found["b"][-1]), b"\x00\xff")


@pytest.mark.parametrize("change", [flip_bytes, truncate, insert_bytes])
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_bytes_are_detected_or_harmless(writer: Any, change: Change) -> None:
    """Checksums detect damage. Dates and padding, which they do not cover, do not matter."""
    data, draw, said = writer(), random.Random(0), 0
    expected = repr(gl.load(io.BytesIO(data)))
    for _ in range(1500):
        found = load_or_none(change(data, draw))
        assert found is None or repr(found) == expected
        said += found is None
    assert said > 500


@pytest.mark.parametrize("change", [flip_bytes, truncate, insert_bytes])
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_content_with_valid_checksums_never_crashes(writer: Any, change: Change) -> None:
    data, draw, said = writer(), random.Random(1), 0
    for _ in range(700):
        end = draw.choice(["gradlab.json", "0.npy", "3.npy"] if writer is gradlab_file else ["data.pkl", "byteorder", "data/0"])
        said += load_or_none(rezip(data, end, lambda part: change(part, draw))) is None
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
        load_or_none(rezip(gradlab_file(), "gradlab.json", lambda old, part=part: json.dumps(json.loads(old) | part).encode()))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"list":' * 50_000, "", "[", "1", '{"version": 1, "tensors": 3}', "1" * 5000])
def test_invalid_structures(text: str) -> None:
    with pytest.raises(RuntimeError, match=r"gradlab\.load: the file is damaged \("):
        gl.load(io.BytesIO(rezip(gradlab_file(), "gradlab.json", lambda old: text.encode())))


def npy_header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    "array",
    [
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -3)}") + bytes(24),
        npy_header("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}") + bytes(8),
        npy_header("{'descr': '|S1000000000', 'fortran_order': False, 'shape': (1,)}"),
        npy_header("{'descr': '<f4', 'fortran_order': False, 'shape': (((((1"),
        npy_header("\n\n 'a"),
        npy_header("(" * 9000),
        b"",
        b"\x93NUMPY\x09\x00",
        npy_header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}") + bytes(4),
    ],
)
def test_invalid_arrays(array: bytes) -> None:
    with pytest.raises(RuntimeError, match=r"gradlab\.load: the file is damaged \("):
        gl.load(io.BytesIO(rezip(gradlab_file(), "0.npy", lambda old: array)))


# ------------------------------------------------------------------------------------------------------- memory
def load_and_measure(data: bytes) -> tuple[str, int]:
    """Return the error message of loading and the peak memory in bytes."""
    tracemalloc.start()
    try:
        with pytest.raises(RuntimeError, match=r"^gradlab\.load: ") as caught:
            gl.load(io.BytesIO(data))
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_is_rejected_without_allocating_memory(how: int) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("a/data.pkl", pickled_tensor(1 << 26))
        with archive.open("a/data/0", "w", force_zip64=True) as member:
            for _ in range(64):
                member.write(bytes(1 << 22))
    said, most = load_and_measure(file.getvalue())
    assert "bytes but would expand to 268," in said and "unpack it and zip it again without compression" in said and most < 20e6


@pytest.mark.slow
@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_bomb_with_a_forged_size(how: int) -> None:
    """The sizes in its header are small, the unpacked data is large."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", how) as archive:
        archive.writestr("gradlab.json", bytes(200 << 20))
        info = archive.getinfo("gradlab.json")
        right = struct.pack("<L", info.file_size)
    data = file.getvalue().replace(right, struct.pack("<L", 1000))
    _, most = load_and_measure(data)
    assert most < 20e6


def pickled_tensor(count: int) -> bytes:
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
def test_pickles_that_request_more_memory_than_the_file_has(pickled: bytes) -> None:
    tracemalloc.start()
    try:
        load_or_none(forged_file(pickled).getvalue())
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("state", [b"(dS'strides'\n(I0\nts", b"(dS'shape'\n(I1\nI4\nts", b"(dS'dtype'\nS'O'\ns"])
def test_attributes_of_a_storage_cannot_be_set(state: bytes) -> None:
    """With forged attributes, a view of the storage could read memory outside it."""
    storage = b"(S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ"
    with pytest.raises(RuntimeError, match=r"cannot set attributes of a ndarray"):
        gl.load(forged_file(b"(" + storage + b"(N" + state + b"tbt."))


# --------------------------------------------------------------------------------- unusual but valid files
@pytest.mark.parametrize("writer", WRITERS)
def test_a_recompressed_file_is_loaded(writer: Any) -> None:
    data = writer()
    assert repr(load_or_none(rezip(data, "", bytes, compression=zipfile.ZIP_DEFLATED))) == repr(load_or_none(data))


@pytest.mark.oracle
def test_torch_files_without_checksums_are_loaded() -> None:
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
        found = load_or_none(file.getvalue())
        assert found is None or found["b"]._metadata == saved["b"]._metadata


def test_a_wrong_map_location_is_not_reported_as_damage(tmp_path: Path) -> None:
    gl.save(gl.ones(2), tmp_path / "a")
    with pytest.raises(RuntimeError) as caught:
        gl.load(tmp_path / "a", map_location="nowhere")
    assert "damaged" not in str(caught.value) and "nowhere" in str(caught.value)


def test_an_io_error_is_not_reported_as_damage() -> None:
    class Broken(io.BytesIO):
        def read(self, size: Any = -1) -> bytes:
            if self.tell() < 100:
                raise OSError(5, "Input/output error")
            return super().read(size)

    with pytest.raises(OSError, match="Input/output error"):
        gl.load(Broken(gradlab_file()))

"""Test `save` and `load`: objects are restored, only data is read, and files of `torch.save` are supported."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradlab as gl


def save_and_load(obj: Any, **options: Any) -> Any:
    file = io.BytesIO()
    gl.save(obj, file)
    file.seek(0)
    return gl.load(file, **options)


# fmt: off
PLAIN = [None, True, 0, -(2**70), 1.5, float("inf"), -0.0, "ä\n", b"\x00\xff", [], [1, [2, "x"]], (), (1, (2,)), {},
         {"a": {1: None}}, {(1, 2): [3]}, {1, 2}, frozenset({"a"}), OrderedDict(b=1, a=2), gl.Size([2, 3]),
         gl.float16, gl.bool, gl.device("cpu")]
# fmt: on


@pytest.mark.parametrize("obj", PLAIN, ids=repr)
def test_plain_data(obj: Any) -> None:
    found = save_and_load(obj)
    assert found == obj and type(found) is type(obj) and repr(found) == repr(obj)


def test_nan() -> None:
    assert str(save_and_load([float("nan"), float("-inf")])) == "[nan, -inf]"


@pytest.mark.parametrize("dtype", [gl.bool, gl.uint8, gl.int8, gl.int16, gl.int32, gl.int64, gl.float16, gl.float32, gl.float64])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3)])
def test_tensors(dtype: gl.dtype, shape: tuple[int, ...]) -> None:
    x = (gl.rand(shape) * 100).to(dtype)
    found = save_and_load(x)
    assert found.dtype is dtype and found.shape == x.shape and gl.equal(found, x) and not found.requires_grad
    found.zero_()


def test_requires_grad_and_history() -> None:
    x = gl.ones(2, requires_grad=True)
    leaf, result = save_and_load([x, x * 2])
    assert leaf.requires_grad and leaf.is_leaf and leaf.grad is None
    assert result.requires_grad and result.is_leaf


def test_numpy() -> None:
    array, number = save_and_load([np.arange(6.0).reshape(2, 3).T, np.float32(2.5)])
    assert np.array_equal(array, np.arange(6.0).reshape(2, 3).T)
    assert number == np.float32(2.5) and type(number) is np.float32


def test_shared_memory_is_shared_after_loading() -> None:
    x = gl.arange(12.0).reshape(3, 4)
    base, row, column, flipped, same = save_and_load([x, x[1], x[:, 2], x.t(), x])
    assert same is base
    base[1, 2] = 100
    assert row[2] == column[1] == flipped[2, 1] == 100
    assert flipped.stride() == (1, 4)


def test_a_view_is_saved_without_its_base() -> None:
    file = io.BytesIO()
    gl.save(gl.zeros(1000, 1000)[0, :3], file)
    assert file.tell() < 2000


def test_state_dicts_share_memory() -> None:
    w = gl.randn(3, 3)
    loaded = save_and_load({"encoder.w": w, "decoder.w": w.t()})
    loaded["encoder.w"][0, 1] = 7
    assert loaded["decoder.w"][1, 0] == 7


def test_paths(tmp_path: Path) -> None:
    for path in (tmp_path / "a.pt", str(tmp_path / "b.pth")):
        gl.save({"x": gl.ones(2)}, path)
        assert gl.load(path)["x"].tolist() == [1, 1]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.pt", "b.pth"]


def test_an_interrupted_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt"
    gl.save({"epoch": 1}, path)

    def raise_disk_full(*args: Any, **options: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", raise_disk_full)
    with pytest.raises(OSError, match="disk full"):
        gl.save({"x": gl.ones(2)}, path)
    assert gl.load(path) == {"epoch": 1}
    assert os.listdir(tmp_path) == ["model.pt"]


class Model:
    def state_dict(self) -> dict[str, Any]:
        return {}


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        ({"a": [1, Model()]}, r"the object\['a'\]\[1\] is a .*\.Model, which cannot be saved.*state_dict\(\)"),
        (lambda x: x, r"the object is a builtins\.function"),
        ({"f": print}, r"the object\['f'\] is a builtins\.builtin_function"),
        (1j, "complex"),
        (np.array([None]), "ndarray"),
    ],
)
def test_errors_name_the_object_that_cannot_be_saved(obj: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        gl.save(obj, io.BytesIO())


def test_cycles_are_refused() -> None:
    a: list[Any] = [1]
    a.append({"a": a})
    with pytest.raises(ValueError, match=r"the object\[1\]\['a'\] contains itself"):
        gl.save(a, io.BytesIO())
    shared = [1]
    assert save_and_load([shared, shared]) == [[1], [1]]


def test_wrong_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gl.load(tmp_path / "none.pt")
    with pytest.raises(RuntimeError, match=r"Parent directory .* does not exist"):
        gl.save(1, tmp_path / "no" / "a.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object with a 'write' attribute"):
        gl.save(1, 3)
    with pytest.raises(AttributeError, match=r"You can only gradlab\.load from a file that is seekable"):
        gl.load(3)
    for content in (b"", b"hello", pickle.dumps({"a": 1})):
        with pytest.raises(RuntimeError, match=r"written neither by gradlab\.save nor as a zip file by torch\.save"):
            gl.load(io.BytesIO(content))


def with_structure(change: Any) -> io.BytesIO:
    """Return a saved file with a changed structure."""
    file = io.BytesIO()
    x = gl.arange(6.0)
    gl.save([x, x[2:]], file)
    made = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, json.dumps(change(json.loads(data))) if name == "gradlab.json" else data)
    made.seek(0)
    return made


@pytest.mark.parametrize(
    "change",
    [
        {"offset": 3},
        {"offset": -1},
        {"stride": [2]},
        {"shape": [5]},
        {"stride": [-9]},
        {"array": 7},
        {"shape": "x"},
        {"array": "../0"},
    ],
)
def test_a_tensor_cannot_exceed_its_memory(change: dict[str, Any]) -> None:
    def apply_change(structure: dict[str, Any]) -> dict[str, Any]:
        structure["tensors"][1] |= change
        return structure

    with pytest.raises(RuntimeError, match="the file is damaged"):
        gl.load(with_structure(apply_change))


@pytest.mark.parametrize(
    "obj", [{"eval": "1"}, {"tensor": 9}, {"dtype": "object"}, {"tuple": 3}, {}, {"dict": [[{"list": []}, 1]]}]
)
def test_unknown_structure_is_refused(obj: Any) -> None:
    with pytest.raises(RuntimeError, match="the file is damaged"):
        gl.load(with_structure(lambda structure: structure | {"object": obj}))


def test_a_newer_format_raises_an_error() -> None:
    with pytest.raises(RuntimeError, match="has format 99"):
        gl.load(with_structure(lambda structure: structure | {"version": 99}))


def test_map_location() -> None:
    for where in ("cpu", gl.device("cpu"), lambda storage, location: storage, {"cuda:0": "cpu"}):
        assert save_and_load(gl.ones(2), map_location=where).device == gl.device("cpu")
    if not gl.cuda.is_available():
        file = with_structure(lambda structure: structure | {"tensors": [t | {"device": "cuda:0"} for t in structure["tensors"]]})
        with pytest.raises(RuntimeError, match=r"Attempting to deserialize object on a CUDA device but gradlab\.cuda"):
            gl.load(file)
        assert gl.load(file, map_location="cpu")[1].tolist() == [2, 3, 4, 5]
    assert save_and_load(gl.ones(2), weights_only=True, mmap=False).tolist() == [1, 1]


# ---------------------------------------------------------------------------------------------------- files of torch.save
def of_torch(obj: Any) -> io.BytesIO:
    torch = pytest.importorskip("torch")
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return file


@pytest.mark.oracle
def test_checkpoints_of_torch() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    saved = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": 3,
        "loss": 0.5,
        "name": "ä",
        "none": None,
        "shape": torch.Size([2]),
        "dtype": torch.float32,
        "device": torch.device("cpu"),
        "set": {1, 2},
        "bytes": b"\x00\xff",
    }
    found = gl.load(of_torch(saved))

    def same(one: Any, other: Any) -> bool:
        if isinstance(other, torch.Tensor):
            return (str(one.dtype)[8:], one.tolist(), one.stride()) == (str(other.dtype)[6:], other.tolist(), other.stride())
        if isinstance(other, dict):
            return type(one) is type(other) and list(one) == list(other) and all(same(one[k], other[k]) for k in other)
        if isinstance(other, (list, tuple)):
            return list(map(type, one)) == list(map(type, other)) and all(map(same, one, other))
        return str(one).replace("gradlab.", "torch.") == str(other)

    assert same(found, saved)


@pytest.mark.oracle
def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"):
        x = (torch.rand(3, 4) * 90).to(getattr(torch, name))
        found, row, turned = gl.load(of_torch([x, x[1], x.t()]))
        assert found.tolist() == x.tolist() and found.dtype.name == name
        found[1, 0] = 1
        assert row[0] == turned[0, 1] == 1
    leaf, parameter = gl.load(of_torch([torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.ones(2))]))
    assert leaf.requires_grad and parameter.requires_grad and isinstance(parameter, gl.nn.Parameter)


@pytest.mark.oracle
def test_torch_files_with_code_are_rejected() -> None:
    torch = pytest.importorskip("torch")

    class Bomb:
        def __reduce__(self) -> Any:
            return os.system, ("echo boom > /dev/stderr",)

    with pytest.raises(TypeError, match=r"names (posix|nt)\.system, but gradlab reads only tensors and plain data"):
        gl.load(of_torch({"a": Bomb()}))
    with pytest.raises(TypeError, match=r"names torch\.nn\.modules\.linear\.Linear.*save the state_dict\(\)"):
        gl.load(of_torch(torch.nn.Linear(2, 2)))
    with pytest.raises(TypeError, match="dtype bfloat16"):
        gl.load(of_torch(torch.ones(2, dtype=torch.bfloat16)))


def forged_file(pickled: bytes) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", pickled)
        archive.writestr("a/data/0", np.zeros(4, np.float32).tobytes())
    file.seek(0)
    return file


def tensor_of(offset: int, size: str, stride: str) -> bytes:
    """Return a pickle, as written by torch, of a tensor in a storage of four floats."""
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n((S'storage'\nctorch\nFloatStorage\nS'0'\nS'cpu'\nI4\ntQ"
        + f"I{offset}\n{size}{stride}I00\nNtR.".encode()
    )


def test_forged_torch_files() -> None:
    assert gl.load(forged_file(tensor_of(1, "(I3\nt", "(I1\nt"))).tolist() == [0, 0, 0]
    for offset, size, stride in (
        (2, "(I3\nt", "(I1\nt"),
        (0, "(I3\nt", "(I2\nt"),
        (-1, "(I1\nt", "(I1\nt"),
        (0, "(I2\nt", "(I-1\nt"),
        (0, "(I-2\nt", "(I1\nt"),
        (0, "(S'a'\nt", "(I1\nt"),
    ):
        with pytest.raises(RuntimeError, match="the file is damaged"):
            gl.load(forged_file(tensor_of(offset, size, stride)))
    with pytest.raises(TypeError, match=r"names builtins\.eval"):
        gl.load(forged_file(b"cbuiltins\neval\n(S'1'\ntR."))
    for damaged in (b"(I1\n", b"ctorch\nfloat32\n(N(S'itemsize'\nI1\ndtb.", b"ccollections\nOrderedDict\n(N(S'get'\nI1\ndtb."):
        with pytest.raises(RuntimeError, match="the file is damaged"):
            gl.load(forged_file(damaged))
    assert gl.float32.itemsize == 4


def test_the_state_of_a_schedule_is_saved(tmp_path: Path) -> None:
    from gradlab import optim

    made = optim.SGD([gl.ones(2, requires_grad=True)], lr=0.1, momentum=0.9)
    state = {"schedule": optim.lr_scheduler.MultiStepLR(made, [2, 5]).state_dict(), "optimizer": made.state_dict()}
    gl.save(state, tmp_path / "state")
    loaded = gl.load(tmp_path / "state")
    assert loaded == state
    assert type(loaded["schedule"]["milestones"]) is type(state["schedule"]["milestones"])

"""`save` and `load`: data with tensors in it, in a file that no code is run to read.

The file is a zip: `gradlab.json` holds the structure, `arrays/N.npy` the memory of the tensors. What JSON knows is written as
it is, everything else as an object with one key that says what it is:

    list [...]   dict {"dict": [[key, value], ...]}   tuple {"tuple": [...]}   tensor {"tensor": 3}   dtype {"dtype": "float32"}

A tensor is a number of an array with offset, shape and strides, so tensors that share memory share it when they are loaded; one
that occurs twice is one object. Torch's own files are read by `gradlab.torch_files`.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import secrets
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gradlab.backend.namespaces import address, cuda, device
from gradlab.core.dtypes import DTYPES, dtype, known_dtype
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.zips import content, opened

__all__ = ["load", "save"]

STRUCTURE, VERSION = "gradlab.json", 1
SAVED = "biufSU"  # kinds of arrays
NPY = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|[\x02\x03]\x00....)\{'descr': '([<>|][" + SAVED.encode() + rb"]\d{1,9})', "
    rb"'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n",
    re.DOTALL,
)
KNOWN_DTYPES = {d.name: d for d in DTYPES}
GROUPS: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset, "Size": Size}
DICTS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
NAMES = {kind: name for name, kind in {**GROUPS, **DICTS, "list": list}.items()}


# --------------------------------------------------------------------------------------------------------------- saving
class _Writer:
    """The structure of an object as JSON knows it; the tensors and arrays met on the way."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: dict[int, int] = {}  # of the tensors met, by id
        self.arrays: list[np.ndarray] = []
        self.open: set[int] = set()  # the containers that the present place lies in

    def plain(self, x: Any, where: str) -> Any:
        """`x` as JSON; `where` is how the user would write the place."""
        kind = type(x)
        if x is None or kind in (bool, int, str) or (kind is float and math.isfinite(x)):
            return x
        if kind is float:
            return {"float": repr(x)}
        if isinstance(x, Tensor):
            return {"tensor": self.number(x)}
        if isinstance(x, dtype):
            return {"dtype": x.name}
        if isinstance(x, device):
            return {"device": str(x)}
        if kind is bytes:
            return {"bytes": base64.b64encode(x).decode()}
        if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in SAVED:
            self.arrays.append(np.asarray(x))
            return {"array" if isinstance(x, np.ndarray) else "scalar": len(self.arrays) - 1}
        return self.container(x, where)

    def container(self, x: Any, where: str) -> Any:
        if id(x) in self.open:
            raise ValueError(f"gradlab.save: {where} contains itself.")
        self.open.add(id(x))
        try:
            if type(x) in NAMES:
                name = NAMES[type(x)]
                if name in DICTS:
                    return {name: [[self.plain(k, f"a key of {where}"), self.plain(v, f"{where}[{k!r}]")] for k, v in x.items()]}
                items = [self.plain(v, f"{where}[{i}]") for i, v in enumerate(x)]
                return items if name == "list" else {name: items}
        finally:
            self.open.discard(id(x))
        hint = "save its state: x.state_dict()." if hasattr(x, "state_dict") else "convert it to these first."
        raise TypeError(
            f"gradlab.save: {where} is a {type(x).__module__}.{type(x).__qualname__}, which cannot be saved. A file "
            f"holds tensors, arrays, numbers, strings, and lists, tuples, sets and dicts of these: {hint}"
        )

    def number(self, x: Tensor) -> int:
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.tensors)
            self.tensors.append(x)
        return self.numbers[id(x)]

    def described(self) -> list[dict[str, Any]]:
        """What is written of each tensor: where its elements lie in which array."""
        hosts = [x.detach().cpu().array for x in self.tensors]
        owners = [owner(a) for a in hosts]
        shared = {id(o) for at, o in enumerate(owners) if any(o is other for other in owners[:at])}
        numbers: dict[int, int] = {}
        entries = []
        for x, array, base in zip(self.tensors, hosts, owners, strict=True):
            memory = flat(base) if id(base) in shared else None
            if memory is None or memory.dtype != array.dtype or any(s % array.itemsize for s in array.strides):
                spec: dict[str, Any] = {"array": len(self.arrays), "shape": array.shape}
                self.arrays.append(np.ascontiguousarray(array).reshape(array.shape))
            else:
                if id(base) not in numbers:
                    numbers[id(base)] = len(self.arrays)
                    self.arrays.append(memory)
                spec = {
                    "array": numbers[id(base)],
                    "shape": array.shape,
                    "stride": [s // array.itemsize for s in array.strides],
                    "offset": (address(array) - address(memory)) // array.itemsize,
                }
            spec |= {"requires_grad": True} if x.requires_grad else {}
            spec |= {"device": str(x.device)} if x.is_cuda else {}
            entries.append(spec | ({"class": "Parameter"} if getattr(x, "_role", "") == "Parameter" else {}))
        return entries


def owner(array: np.ndarray) -> Any:
    """The array whose memory it is."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def flat(array: np.ndarray) -> np.ndarray | None:
    """All of an array's memory along one axis, or None if it has gaps."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array.reshape(-1, order="A" if array.flags.f_contiguous else "C")
    return None


def save(obj: Any, f: Any, *ignored: Any, **options: Any) -> None:
    """Write an object to a path or a binary file.

    A path is replaced when all is written: an interrupted save leaves the old file.

    Parameters
    ----------
    obj : object
        Tensors, NumPy arrays, numbers, strings, bytes, None, dtypes, devices, shapes, and lists, tuples, sets and dicts of these.
    f : path or binary file
        Where to.
    *ignored, **options : optional
        What torch takes besides (how it pickles), without effect.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If there is something else in `obj`; the error says where.
    RuntimeError
        If there is no such folder.

    Examples
    --------
    >>> import io
    >>> import gradlab as gl
    >>> file = io.BytesIO()
    >>> gl.save({"w": gl.ones(2), "step": 3}, file)
    >>> _ = file.seek(0)
    >>> gl.load(file)
    {'w': tensor([1., 1.]), 'step': 3}
    """
    writer = _Writer()
    plain = writer.plain(obj, "the object")
    structure = {"format": "gradlab", "version": VERSION, "object": plain, "tensors": writer.described()}
    if hasattr(f, "write"):
        _write(structure, writer.arrays, f)
        return
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute. It is a {type(f).__name__}."
        )
    path = Path(f)
    if not path.parent.is_dir():
        raise RuntimeError(f"Parent directory {path.parent} does not exist.")
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with fresh.open("wb") as file:
            _write(structure, writer.arrays, file)
        fresh.replace(path)
    finally:
        with suppress(FileNotFoundError):
            fresh.unlink()


def _write(structure: dict[str, Any], arrays: list[np.ndarray], file: Any) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(STRUCTURE, json.dumps(structure))
        for n, array in enumerate(arrays):
            with archive.open(f"arrays/{n}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


# -------------------------------------------------------------------------------------------------------------- loading
def load(
    f: Any, map_location: Any = None, *ignored: Any, weights_only: bool | None = None, mmap: bool | None = None, **options: Any
) -> Any:
    """Read what `save` wrote, or a file of torch's that holds tensors and plain data (such as a `state_dict`).

    Nothing but data is ever read: no code in a file is run.

    Parameters
    ----------
    f : path or seekable binary file
        Where from.
    map_location : device, str or callable, optional
        The device of the tensors; by default the one they were saved from. A function (torch's ``lambda storage, location:
        storage``) means the CPU.
    *ignored, **options : optional
        What torch takes besides, without effect.
    weights_only, mmap : bool, optional
        Accepted, without effect.

    Returns
    -------
    object
        As it was saved.

    Raises
    ------
    AttributeError
        If `f` is no path, and no file that is seekable.
    RuntimeError
        If the file is damaged, or holds something else than data.

    Examples
    --------
    >>> import io
    >>> import gradlab as gl
    >>> file = io.BytesIO()
    >>> gl.save(gl.arange(3), file)
    >>> _ = file.seek(0)
    >>> gl.load(file)
    tensor([0, 1, 2])
    """
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _read(file, map_location)
    if not hasattr(f, "read") or not hasattr(f, "seek"):
        raise AttributeError(
            f"'{type(f).__name__}' object has no attribute 'seek'. You can only gradlab.load from a file that "
            "is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from that."
        )
    return _read(f, map_location)


def _read(file: BinaryIO, map_location: Any) -> Any:
    target = target_of(map_location)
    with opened(file) as archive:
        names = archive.namelist()
        if STRUCTURE in names:
            return _Reader(archive, target).read()
        if pickles := [n for n in names if n.endswith("data.pkl")]:
            from gradlab.torch_files import read

            return read(archive, pickles[0], target)
        raise RuntimeError("gradlab.load: the zip file holds neither gradlab's data nor torch's.")


def target_of(map_location: Any) -> Callable[[str], device]:
    """A function of the device that something was saved on: the one that it is loaded to."""
    if map_location is None or isinstance(map_location, dict):
        targets = {str(saved): device(where) for saved, where in (map_location or {}).items()}
        return lambda saved: targets[saved] if saved in targets else _there(device(saved))
    where = device("cpu") if callable(map_location) else device(map_location)
    return lambda saved: where


def _there(where: device) -> device:
    if where.type == "cuda" and not cuda.probe():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but gradlab.cuda.is_available() is False. If you "
            "are running on a CPU-only machine, please use gradlab.load with map_location=gradlab.device('cpu') "
            "to map your storages to the CPU."
        )
    return where


class _Reader:
    """The object of a file."""

    def __init__(self, archive: zipfile.ZipFile, target: Callable[[str], device]) -> None:
        self.archive, self.target = archive, target
        self.arrays: dict[int, np.ndarray] = {}
        self.tensors: list[Tensor] = []

    def read(self) -> Any:
        structure = json.loads(content(self.archive, STRUCTURE))
        if structure["version"] > VERSION:
            raise RuntimeError(
                f"gradlab.load: the file has format {structure['version']}, this gradlab reads up to {VERSION}: update gradlab."
            )
        self.tensors = [self.tensor(spec) for spec in structure["tensors"]]
        return self.object(structure["object"])

    def array(self, n: int) -> np.ndarray:
        if n not in self.arrays:
            self.arrays[n] = _npy(content(self.archive, f"arrays/{int(n)}.npy"))
        return self.arrays[n]

    def tensor(self, spec: dict[str, Any]) -> Tensor:
        array = self.array(spec["array"])
        known_dtype(array.dtype)
        if "offset" in spec:  # np.ndarray raises if it leaves the memory
            array = np.ndarray(
                tuple(spec["shape"]),
                array.dtype,
                array,
                spec["offset"] * array.itemsize,
                [s * array.itemsize for s in spec["stride"]],
            )
        tensor = constant(array).to(self.target(spec.get("device", "cpu")))
        if spec.get("class") == "Parameter":
            from gradlab import nn

            return nn.Parameter(tensor, bool(spec.get("requires_grad")))
        return tensor.requires_grad_() if spec.get("requires_grad") else tensor

    def object(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self.object(x) for x in data]
        if not isinstance(data, dict):
            return data
        ((kind, value),) = data.items()
        if kind in DICTS:
            return DICTS[kind]({self.object(k): self.object(v) for k, v in value})
        if kind in GROUPS:
            return GROUPS[kind](self.object(x) for x in value)
        return LEAVES[kind](self, value)


def _npy(data: bytes) -> np.ndarray:
    """The array of a .npy file as `save` writes it; one that says that it is larger than the file is not tried."""
    header = NPY.match(data)
    if header is None:
        raise ValueError("no array in NumPy's format")
    descr, fortran, sizes = (part.decode() for part in header.groups())
    kind, shape = np.dtype(descr), tuple(int(n) for n in sizes.replace(",", " ").split())
    if math.prod(shape) * kind.itemsize != len(data) - header.end():
        raise ValueError(f"{len(data) - header.end()} bytes for an array of shape {shape}, {kind}")
    return np.ndarray(shape, kind, data, header.end(), order="F" if fortran == "True" else "C").copy("K")


LEAVES: dict[str, Callable[[_Reader, Any], Any]] = {
    "tensor": lambda reader, n: reader.tensors[n],
    "array": lambda reader, n: reader.array(n),
    "scalar": lambda reader, n: reader.array(n)[()],
    "float": lambda reader, text: float(text),
    "bytes": lambda reader, text: base64.b64decode(text),
    "dtype": lambda reader, name: KNOWN_DTYPES[name],
    "device": lambda reader, name: device(name),
}

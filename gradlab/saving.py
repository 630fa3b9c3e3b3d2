"""Save and load data that contains tensors. Loading a file never runs code.

The file is a zip archive: `gradlab.json` holds the structure, `arrays/N.npy` the memory of the tensors. JSON types are written as
they are, all other types as an object with one key that names the type:

    list [...]   dict {"dict": [[key, value], ...]}   tuple {"tuple": [...]}   tensor {"tensor": 3}   dtype {"dtype": "float32"}

A tensor is stored as the number of an array with offset, shape and strides. Tensors that share memory therefore share it after
loading, and a tensor that occurs twice is loaded as one object. Files of `torch.save` are read by `gradlab.torch_files`.
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
from gradlab.core.dtypes import DTYPES, dtype, from_numpy_dtype
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.zips import open_archive, read_member

__all__ = ["load", "save"]

STRUCTURE, VERSION = "gradlab.json", 1
ARRAY_KINDS = "biufSU"  # NumPy's codes for the kinds of arrays that can be saved
NPY_HEADER = re.compile(
    rb"\x93NUMPY(?:\x01\x00..|[\x02\x03]\x00....)\{'descr': '([<>|][" + ARRAY_KINDS.encode() + rb"]\d{1,9})', "
    rb"'fortran_order': (True|False), 'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n",
    re.DOTALL,
)
KNOWN_DTYPES = {d.name: d for d in DTYPES}
GROUPS: dict[str, type] = {"tuple": tuple, "set": set, "frozenset": frozenset, "Size": Size}
DICTS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
CONTAINER_NAMES = {kind: name for name, kind in {**GROUPS, **DICTS, "list": list}.items()}


# --------------------------------------------------------------------------------------------------------------- saving
class _Writer:
    """Encoder of an object as JSON. It collects the tensors and arrays it finds."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.numbers: dict[int, int] = {}  # numbers of the tensors, by id
        self.arrays: list[np.ndarray] = []
        self.open: set[int] = set()  # ids of the enclosing containers, to detect cycles

    def encode(self, x: Any, where: str) -> Any:
        """Return `x` as JSON. `where` is the expression for `x`, for error messages."""
        kind = type(x)
        if x is None or kind in (bool, int, str) or (kind is float and math.isfinite(x)):
            return x
        if kind is float:
            return {"float": repr(x)}
        if isinstance(x, Tensor):
            return {"tensor": self.tensor_number(x)}
        if isinstance(x, dtype):
            return {"dtype": x.name}
        if isinstance(x, device):
            return {"device": str(x)}
        if kind is bytes:
            return {"bytes": base64.b64encode(x).decode()}
        if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in ARRAY_KINDS:
            self.arrays.append(np.asarray(x))
            return {"array" if isinstance(x, np.ndarray) else "scalar": len(self.arrays) - 1}
        return self.encode_container(x, where)

    def encode_container(self, x: Any, where: str) -> Any:
        if id(x) in self.open:
            raise ValueError(f"gradlab.save: {where} contains itself.")
        self.open.add(id(x))
        try:
            if type(x) in CONTAINER_NAMES:
                name = CONTAINER_NAMES[type(x)]
                if name in DICTS:
                    return {
                        name: [[self.encode(k, f"a key of {where}"), self.encode(v, f"{where}[{k!r}]")] for k, v in x.items()]
                    }
                items = [self.encode(v, f"{where}[{i}]") for i, v in enumerate(x)]
                return items if name == "list" else {name: items}
        finally:
            self.open.discard(id(x))
        hint = "Save its state: x.state_dict()." if hasattr(x, "state_dict") else "Convert it to one of these types first."
        raise TypeError(
            f"gradlab.save: {where} is a {type(x).__module__}.{type(x).__qualname__}, which cannot be saved. Supported types "
            f"are tensors, arrays, numbers, strings, and lists, tuples, sets and dicts of these. {hint}"
        )

    def tensor_number(self, x: Tensor) -> int:
        if id(x) not in self.numbers:
            self.numbers[id(x)] = len(self.tensors)
            self.tensors.append(x)
        return self.numbers[id(x)]

    def tensor_specs(self) -> list[dict[str, Any]]:
        """Return the entry of each tensor: its array, with offset, shape and strides."""
        hosts = [x.detach().cpu().array for x in self.tensors]
        owners = [memory_owner(a) for a in hosts]
        shared = {id(o) for at, o in enumerate(owners) if any(o is other for other in owners[:at])}
        numbers: dict[int, int] = {}
        entries = []
        for x, array, base in zip(self.tensors, hosts, owners, strict=True):
            memory = flat_memory(base) if id(base) in shared else None
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


def memory_owner(array: np.ndarray) -> Any:
    """Return the array that owns the memory."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def flat_memory(array: np.ndarray) -> np.ndarray | None:
    """Return the memory of an array as a 1-d array, or None if it has gaps."""
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array.reshape(-1, order="A" if array.flags.f_contiguous else "C")
    return None


def save(obj: Any, f: Any, *ignored: Any, **options: Any) -> None:
    """Save an object to a path or a binary file.

    An existing file is replaced only after everything has been written, so an interrupted save keeps the old file.

    Parameters
    ----------
    obj : object
        Tensors, NumPy arrays, numbers, strings, bytes, None, dtypes, devices, shapes, and lists, tuples, sets and dicts of these.
    f : path or binary file
        The destination.
    *ignored, **options : optional
        Further arguments of `torch.save`, accepted for compatibility; they have no effect.

    Returns
    -------
    None

    Raises
    ------
    TypeError
        If `obj` contains an object of another type. The error says where.
    ValueError
        If a container in `obj` contains itself.
    RuntimeError
        If the parent folder does not exist.

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
    plain = writer.encode(obj, "the object")
    structure = {"format": "gradlab", "version": VERSION, "object": plain, "tensors": writer.tensor_specs()}
    if hasattr(f, "write"):
        _write(structure, writer.arrays, f)
        return
    if not isinstance(f, (str, os.PathLike)):
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute. Got {type(f).__name__}."
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
    """Load an object from a file of `save` or `torch.save`.

    Files of `torch.save` may contain tensors and plain data, such as a `state_dict`.

    Only data is read. Code in a file is never run.

    Parameters
    ----------
    f : path or seekable binary file
        The source.
    map_location : device, str, dict or callable, optional
        The device of the loaded tensors. Defaults to the device from which they were saved. A dict maps saved devices to new
        ones. Any function, such as torch's ``lambda storage, location: storage``, selects the CPU.
    *ignored, **options : optional
        Further arguments of `torch.load`, accepted for compatibility; they have no effect.
    weights_only, mmap : bool, optional
        Accepted for compatibility; have no effect.

    Returns
    -------
    object
        The saved object.

    Raises
    ------
    AttributeError
        If `f` is neither a path nor a seekable file.
    RuntimeError
        If the file is damaged or is not a file of `save` or `torch.save`.
    TypeError
        If a file of `torch.save` contains code or a dtype that is not supported.

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
    target = device_mapping(map_location)
    with open_archive(file) as archive:
        names = archive.namelist()
        if STRUCTURE in names:
            return _Reader(archive, target).read()
        if pickles := [n for n in names if n.endswith("data.pkl")]:
            from gradlab.torch_files import read

            return read(archive, pickles[0], target)
        raise RuntimeError("gradlab.load: the zip file contains no data saved by gradlab or torch.")


def device_mapping(map_location: Any) -> Callable[[str], device]:
    """Return a function that maps the device of a saved tensor to the device to load it to."""
    if map_location is None or isinstance(map_location, dict):
        targets = {str(saved): device(where) for saved, where in (map_location or {}).items()}
        return lambda saved: targets[saved] if saved in targets else _require_available(device(saved))
    where = device("cpu") if callable(map_location) else device(map_location)
    return lambda saved: where


def _require_available(where: device) -> device:
    if where.type == "cuda" and not cuda.probe():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but gradlab.cuda.is_available() is False. If you "
            "are running on a CPU-only machine, please use gradlab.load with map_location=gradlab.device('cpu') "
            "to map your storages to the CPU."
        )
    return where


class _Reader:
    """Decoder of the object in a file."""

    def __init__(self, archive: zipfile.ZipFile, target: Callable[[str], device]) -> None:
        self.archive, self.target = archive, target
        self.arrays: dict[int, np.ndarray] = {}
        self.tensors: list[Tensor] = []

    def read(self) -> Any:
        structure = json.loads(read_member(self.archive, STRUCTURE))
        if structure["version"] > VERSION:
            raise RuntimeError(
                f"gradlab.load: the file has format {structure['version']}, but this version of gradlab reads formats up to "
                f"{VERSION}. Update gradlab."
            )
        self.tensors = [self.build_tensor(spec) for spec in structure["tensors"]]
        return self.decode(structure["object"])

    def read_array(self, n: int) -> np.ndarray:
        if n not in self.arrays:
            self.arrays[n] = _parse_npy(read_member(self.archive, f"arrays/{int(n)}.npy"))
        return self.arrays[n]

    def build_tensor(self, spec: dict[str, Any]) -> Tensor:
        array = self.read_array(spec["array"])
        from_numpy_dtype(array.dtype)
        if "offset" in spec:  # np.ndarray raises if the view exceeds the memory
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

    def decode(self, data: Any) -> Any:
        if isinstance(data, list):
            return [self.decode(x) for x in data]
        if not isinstance(data, dict):
            return data
        ((kind, value),) = data.items()
        if kind in DICTS:
            return DICTS[kind]({self.decode(k): self.decode(v) for k, v in value})
        if kind in GROUPS:
            return GROUPS[kind](self.decode(x) for x in value)
        return DECODERS[kind](self, value)


def _parse_npy(data: bytes) -> np.ndarray:
    """Return the array in the bytes of a .npy file of `save`. Check the size in the header before allocating memory."""
    header = NPY_HEADER.match(data)
    if header is None:
        raise ValueError("not an array in NumPy's format")
    descr, fortran, sizes = (part.decode() for part in header.groups())
    kind, shape = np.dtype(descr), tuple(int(n) for n in sizes.replace(",", " ").split())
    if math.prod(shape) * kind.itemsize != len(data) - header.end():
        raise ValueError(f"expected an array of shape {shape} and dtype {kind}, got {len(data) - header.end()} bytes")
    return np.ndarray(shape, kind, data, header.end(), order="F" if fortran == "True" else "C").copy("K")


DECODERS: dict[str, Callable[[_Reader, Any], Any]] = {
    "tensor": lambda reader, n: reader.tensors[n],
    "array": lambda reader, n: reader.read_array(n),
    "scalar": lambda reader, n: reader.read_array(n)[()],
    "float": lambda reader, text: float(text),
    "bytes": lambda reader, text: base64.b64decode(text),
    "dtype": lambda reader, name: KNOWN_DTYPES[name],
    "device": lambda reader, name: device(name),
}

"""Read tensors and plain data from files of `torch.save`, without torch and without running code.

Such a file is a zip archive. `data.pkl` is a pickle of the object, in which each tensor is a call of `_rebuild_tensor_v2` on a
storage with a persistent id. `data/KEY` is the memory of a storage. A pickle can name any function of any module. This reader
has its own versions of the few that rebuild tensors and plain data, and rejects all other names.

It is based on the standard library's unpickler in Python. The one in C allocates memory for any number of objects that a damaged
file asks for.
"""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gradlab.backend.namespaces import device, move_to, namespace_of
from gradlab.core.dtypes import DTYPES, dtype
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.parameter import Parameter
from gradlab.zips import read_member, report_damage

STORAGE_DTYPES = {f"{d.word}Storage": d for d in DTYPES}
DTYPES_BY_NAME = {d.name: d for d in DTYPES}
UNSUPPORTED_STORAGES = {"BFloat16Storage": "bfloat16", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}


PythonUnpickler: Any = pickle._Unpickler  # type: ignore[attr-defined]


class _Unpickler(PythonUnpickler):  # type: ignore[misc]
    """Unpickler of tensors, storages, parameters and plain data."""

    def __init__(self, archive: zipfile.ZipFile, name: str, target: Callable[[str], device]) -> None:
        pickled = read_member(archive, name)
        super().__init__(io.BytesIO(pickled), encoding="utf-8")
        self.archive, self.folder, self.target, self.length = archive, name.removesuffix("data.pkl"), target, len(pickled)
        order = f"{self.folder}byteorder"
        self.big = order in archive.namelist() and read_member(archive, order) == b"big"
        self.storages: dict[str, Any] = {}

        def rebuild(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *ignored: Any) -> Tensor:
            array = strided_view(storage, offset, size, stride)
            return constant(array).requires_grad_() if requires_grad else constant(array)

        def rebuild_parameter(data: Tensor, requires_grad: bool, *ignored: Any) -> Tensor:
            return Parameter(data, bool(requires_grad))

        def encode(text: str, how: str) -> bytes:
            if how != "latin1":  # the encoding of bytes in pickle protocol 2
                raise ValueError(f"expected bytes encoded as 'latin1', got {how!r:.100}")
            return text.encode(how)

        # A pickle can set attributes on objects it names. Built-in classes reject this, and these functions are used only here.
        self.known: dict[tuple[str, str], Any] = {
            ("collections", "OrderedDict"): OrderedDict,
            ("collections", "Counter"): Counter,
            ("builtins", "set"): set,
            ("__builtin__", "set"): set,
            ("torch", "Size"): partial(Size),
            ("torch", "device"): partial(device),
            ("_codecs", "encode"): encode,
            ("torch._utils", "_rebuild_tensor_v2"): rebuild,
            ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
        }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in self.known:
            return self.known[module, name]
        if module in ("torch", "torch.storage") and name in UNSUPPORTED_STORAGES:
            raise TypeError(
                f"gradlab.load: the file contains tensors of dtype {UNSUPPORTED_STORAGES[name]}, which gradlab does not "
                "support. In torch, save them as float32."
            )
        if module in ("torch", "torch.storage") and name in STORAGE_DTYPES:
            return STORAGE_DTYPES[name]
        if module == "torch" and name in DTYPES_BY_NAME:
            return DTYPES_BY_NAME[name]
        raise TypeError(
            f"gradlab.load: the file names {module}.{name}, but gradlab reads only tensors and plain data, never "
            "code. In torch, save the state_dict() of a model or optimizer, not the object itself."
        )

    def persistent_load(self, pid: Any) -> Any:
        kind, typed, key, location, _ = pid
        if kind != "storage" or not isinstance(typed, dtype):
            raise TypeError(f"gradlab.load: expected the id of a storage, got {pid!r:.100}.")
        if key not in self.storages:
            written = typed.numpy.newbyteorder(">" if self.big else "<")
            memory = np.frombuffer(read_member(self.archive, f"{self.folder}data/{key}"), written).astype(typed.numpy)
            self.storages[key] = move_to(memory, self.target(str(location)))
        return self.storages[key]

    def build(self) -> None:
        """Set attributes of an OrderedDict, such as the `_metadata` of a state_dict. Reject all other objects."""
        state, target = self.stack[-1], self.stack[-2]
        if not isinstance(target, OrderedDict) or type(state) is not dict:
            raise ValueError(f"cannot set attributes of a {type(target).__name__}")
        super().load_build()

    def load_bytearray8(self) -> None:
        """Read a bytearray. The standard library allocates its memory before it reads."""
        length = int.from_bytes(self.read(8), "little")
        if length > self.length:
            raise EOFError("a bytearray is longer than the file")
        self.stack.append(bytearray(self.read(length)))

    dispatch = PythonUnpickler.dispatch | {pickle.BUILD[0]: build, pickle.BYTEARRAY8[0]: load_bytearray8}


def strided_view(storage: Any, offset: int, size: Any, stride: Any) -> Any:
    """Return a view of a storage. Raise if it exceeds the memory."""
    if min((0, offset, *size, *stride)) < 0 or (
        0 not in size and offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) >= storage.size
    ):
        raise ValueError("a tensor exceeds its storage")
    return namespace_of[type(storage)].lib.stride_tricks.as_strided(
        storage[offset:], tuple(size), tuple(s * storage.itemsize for s in stride)
    )


def read(archive: zipfile.ZipFile, name: str, target: Callable[[str], device]) -> Any:
    """Return the object pickled in the member `name` of the zip file. `target` maps saved devices to new ones."""
    with report_damage("the file is damaged or contains data that gradlab cannot read"):
        return _Unpickler(archive, name, target).load()

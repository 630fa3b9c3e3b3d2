"""Files that `torch.save` wrote, read without torch: tensors and plain data, and no code.

Such a file is a zip: `data.pkl` is a pickle of the object, in which each tensor is a call of `_rebuild_tensor_v2` on a storage
that is named by a persistent id; `data/KEY` is the memory of a storage. A pickle may name any function of any module; this reader
knows the few that rebuild tensors and plain data, as functions of its own, and refuses every other name.

It is the standard library's unpickler in Python: the one in C makes room for whatever number of objects a damaged file names.
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

from gradlab.backend.namespaces import device, moved, namespace_of
from gradlab.core.dtypes import DTYPES, dtype
from gradlab.core.errors import Size
from gradlab.core.tensor import Tensor, constant
from gradlab.nn.parameter import Parameter
from gradlab.zips import content, told_if_damaged

STORAGES = {f"{d.word}Storage": d for d in DTYPES}
OF_NAME = {d.name: d for d in DTYPES}
ABSENT = {"BFloat16Storage": "bfloat16", "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128"}


InPython: Any = pickle._Unpickler  # type: ignore[attr-defined]


class _Unpickler(InPython):  # type: ignore[misc]
    """Knows tensors, storages, parameters and plain data."""

    def __init__(self, archive: zipfile.ZipFile, name: str, target: Callable[[str], device]) -> None:
        pickled = content(archive, name)
        super().__init__(io.BytesIO(pickled), encoding="utf-8")
        self.archive, self.folder, self.target, self.length = archive, name.removesuffix("data.pkl"), target, len(pickled)
        order = f"{self.folder}byteorder"
        self.big = order in archive.namelist() and content(archive, order) == b"big"
        self.storages: dict[str, Any] = {}

        def rebuild(storage: Any, offset: int, size: Any, stride: Any, requires_grad: bool = False, *ignored: Any) -> Tensor:
            array = strided(storage, offset, size, stride)
            return constant(array).requires_grad_() if requires_grad else constant(array)

        def rebuild_parameter(data: Tensor, requires_grad: bool, *ignored: Any) -> Tensor:
            return Parameter(data, bool(requires_grad))

        def encode(text: str, how: str) -> bytes:
            if how != "latin1":  # as bytes are written in the pickles of Python 2
                raise ValueError(f"bytes that are encoded as {how!r:.100}")
            return text.encode(how)

        # The pickle may set attributes on what it names: classes of Python's refuse, and the functions are this reader's own.
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
        if module in ("torch", "torch.storage") and name in ABSENT:
            raise TypeError(
                f"gradlab.load: the file holds tensors of dtype {ABSENT[name]}, which gradlab does not have. In "
                "torch, save them as float32."
            )
        if module in ("torch", "torch.storage") and name in STORAGES:
            return STORAGES[name]
        if module == "torch" and name in OF_NAME:
            return OF_NAME[name]
        raise TypeError(
            f"gradlab.load: the file names {module}.{name}, and gradlab reads tensors and plain data alone, never "
            "code. In torch, save the state_dict() of a model or optimizer, not the object itself."
        )

    def persistent_load(self, pid: Any) -> Any:
        kind, typed, key, location, _ = pid
        if kind != "storage" or not isinstance(typed, dtype):
            raise TypeError(f"gradlab.load: the file refers to {pid!r:.100}, which is no storage that gradlab knows.")
        if key not in self.storages:
            written = typed.numpy.newbyteorder(">" if self.big else "<")
            memory = np.frombuffer(content(self.archive, f"{self.folder}data/{key}"), written).astype(typed.numpy)
            self.storages[key] = moved(memory, self.target(str(location)))
        return self.storages[key]

    def build(self) -> None:
        """Attributes of a dict, as a state_dict's `_metadata`; nothing else may be given any."""
        state, target = self.stack[-1], self.stack[-2]
        if not isinstance(target, OrderedDict) or type(state) is not dict:
            raise ValueError(f"a state for a {type(target).__name__}")
        super().load_build()

    def bytes_in_place(self) -> None:
        """A bytearray, for which the standard library makes room before it reads."""
        length = int.from_bytes(self.read(8), "little")
        if length > self.length:
            raise EOFError("a bytearray that is longer than the file")
        self.stack.append(bytearray(self.read(length)))

    dispatch = InPython.dispatch | {pickle.BUILD[0]: build, pickle.BYTEARRAY8[0]: bytes_in_place}


def strided(storage: Any, offset: int, size: Any, stride: Any) -> Any:
    """A view of a storage, which must not leave its memory."""
    if min((0, offset, *size, *stride)) < 0 or (
        0 not in size and offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) >= storage.size
    ):
        raise ValueError("a tensor of the file lies outside its storage")
    return namespace_of[type(storage)].lib.stride_tricks.as_strided(
        storage[offset:], tuple(size), tuple(s * storage.itemsize for s in stride)
    )


def read(archive: zipfile.ZipFile, name: str, target: Callable[[str], device]) -> Any:
    """The object whose pickle is `name` in the zip file; `target` gives the device for the one it was saved on."""
    with told_if_damaged("the file is damaged, or holds what gradlab cannot read"):
        return _Unpickler(archive, name, target).load()

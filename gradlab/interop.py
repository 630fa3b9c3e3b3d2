"""Tensors from and for other libraries, by DLPack: memory is shared, nothing is copied; and gradlab in the place of torch.

`as_torch` puts gradlab's own modules into `sys.modules` under torch's names, and an import hook in front of those that are
not imported yet, so that a program written for torch runs with gradlab as it stands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from gradlab.backend.namespaces import device, moved, namespace_of, namespace_on
from gradlab.core.dtypes import known_dtype
from gradlab.core.errors import advice, expected
from gradlab.core.tensor import Tensor, constant

__all__ = ["as_torch", "from_dlpack", "to_dlpack"]

CUDA = 2, 13  # DLPack's numbers of a GPU's memory; all else is the host's


class _Capsule:
    """A bare DLPack capsule as an object with the protocol's methods."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array (NumPy, CuPy, PyTorch, JAX).

    Parameters
    ----------
    ext_tensor : object
        It has `__dlpack__`, or is a capsule that it returned.
    device : device, optional
        Where it is to be.
    copy : bool, optional
        True copies, False refuses to.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If it has not the protocol.
    BufferError
        If its own library refuses, as for an array that requires a gradient.
    TypeError
        If it is of a dtype that tensors have not.
    ValueError
        If `copy` is False, and to be on `device` it must be copied.

    Examples
    --------
    >>> import gradlab as gl
    >>> import numpy
    >>> gl.from_dlpack(numpy.arange(3.0))
    tensor([0., 1., 2.], dtype=gradlab.float64)
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        ext_tensor = _Capsule(ext_tensor)
    if not hasattr(ext_tensor, "__dlpack__"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Give an array of a library that has the DLPack protocol, or "
            f"what its __dlpack__() returned; this is a {type(ext_tensor).__name__}."
        )
    kind = int(ext_tensor.__dlpack_device__()[0])
    array = namespace_on(_device("cuda" if kind in CUDA else "cpu")).from_dlpack(ext_tensor)
    known_dtype(array.dtype)
    if copy:
        array = array.copy()
    if device is not None:
        there = moved(array, _device(device))
        if copy is False and there is not array:
            raise ValueError(f"copy=False was given, but to be on {device} the array must be copied.")
        array = there
    return constant(array)


_device = device


def to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory.

    Libraries take the tensor itself too: `numpy.from_dlpack(tensor)`.

    Parameters
    ----------
    tensor : Tensor
        It must not require a gradient.

    Returns
    -------
    capsule

    Raises
    ------
    BufferError
        If it requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> type(gl.to_dlpack(gl.ones(2))).__name__
    'PyCapsule'
    """
    if not isinstance(tensor, Tensor):
        raise expected("to_dlpack", "tensor", 1, "Tensor", tensor)
    return tensor.__dlpack__()


class Interop:
    """What other libraries ask of a tensor."""

    array: Any

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """The DLPack capsule that a library's `from_dlpack` takes: the memory is shared."""
        if self.requires_grad:  # type: ignore[attr-defined]
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        options = {k: v for k, v in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)) if v is not None}
        if namespace_of[type(self.array)] is np and stream is not None:
            raise BufferError("A tensor in host memory has no stream: leave stream= away.")
        return self.array.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack's number of the kind of memory, and of the device."""
        return self.array.__dlpack_device__()


# ------------------------------------------------------------------------------------------------ in the place of torch
class _Finder:
    """Finds gradlab's modules under torch's names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        ours = "gradlab" + name[len("torch") :]
        try:
            module = import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):
                raise
            sentence = f"No module named {name!r}: gradlab does not have this module of torch's yet."
            raise ModuleNotFoundError(sentence, name=name) from None
        return ModuleSpec(name, _Loader(module), is_package=hasattr(module, "__path__"))


class _Loader(Loader):
    """Hands out a module that is loaded already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.own = module, (module.__spec__, module.__loader__)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self.own


_aside: dict[str, ModuleType] = {}  # torch's own modules where they were loaded while the name means gradlab


class _AsTorch:
    """What `as_torch` returns: `undo()`, or the end of a `with` block, gives the name back."""

    finder = _Finder()
    active = 0

    def __init__(self) -> None:
        theirs = sys.modules.get("torch")
        if theirs is not None and theirs is not sys.modules["gradlab"]:
            raise RuntimeError(
                "torch is imported already, and gradlab cannot take its place: "
                + advice("call gradlab.as_torch() in a fresh process, before anything imports torch.")
            )
        if not _AsTorch.active:
            sys.meta_path.insert(0, self.finder)  # type: ignore[arg-type]
        _AsTorch.active += 1
        self.done = False

    def undo(self) -> None:
        """From here on `import torch` means torch again; names that were imported stay what they are."""
        if self.done:
            return
        self.done = True
        _AsTorch.active -= 1
        if not _AsTorch.active:
            sys.meta_path.remove(self.finder)  # type: ignore[arg-type]
            for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
                del sys.modules[name]
            sys.modules.update(_aside)
            _aside.clear()

    def __enter__(self) -> _AsTorch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.undo()


def as_torch() -> _AsTorch:
    """Let `import torch` mean gradlab in this process, with all its modules.

    A module or a name of torch's that gradlab does not have raises when it is asked for.

    Returns
    -------
    object
        With `undo()`, which takes it back; a context manager too.

    Raises
    ------
    RuntimeError
        If torch is imported already.

    Examples
    --------
    >>> import gradlab
    >>> undo = gradlab.as_torch()  # doctest: +SKIP
    >>> import torch  # doctest: +SKIP
    """
    return _AsTorch()


@contextmanager
def meaning_gradlab() -> Iterator[ModuleType]:
    """While the block runs `import torch` means gradlab, also where torch is imported already; then what it meant before."""
    held = _taken()
    try:
        with as_torch():
            yield sys.modules["gradlab"]
    finally:
        _taken()
        sys.modules.update(held)


@contextmanager
def meaning_torch() -> Iterator[ModuleType]:
    """While the block runs `import torch` means torch itself, also under `as_torch`; afterwards what it meant before.

    Raises
    ------
    ModuleNotFoundError
        If torch is not installed.
    """
    if not _AsTorch.active:
        yield import_module("torch")
        return
    held, place = _taken(), sys.meta_path.index(_AsTorch.finder)  # type: ignore[arg-type]
    try:
        sys.meta_path.remove(_AsTorch.finder)  # type: ignore[arg-type]
        sys.modules.update(_aside)
        yield import_module("torch")
    finally:
        _aside.update(_taken())  # it cannot be imported twice
        sys.modules.update(held)
        sys.meta_path.insert(place, _AsTorch.finder)  # type: ignore[arg-type]


def _taken() -> dict[str, ModuleType]:
    """What stands under torch's names, taken away."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name == "torch" or name.startswith("torch.")}

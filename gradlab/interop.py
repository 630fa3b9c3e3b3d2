"""Exchange tensors with other libraries by DLPack, without copying, and run programs written for torch with gradlab.

`as_torch` installs an import hook that finds gradlab's modules under torch's names, so that a program written for torch runs with
gradlab without changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any

import numpy as np

from gradlab.backend.namespaces import device, move_to, namespace_of, namespace_on
from gradlab.core.dtypes import from_numpy_dtype
from gradlab.core.errors import advice, wrong_type
from gradlab.core.tensor import Tensor, constant

__all__ = ["as_torch", "from_dlpack", "to_dlpack"]

CUDA_DEVICE_TYPES = 2, 13  # DLPack's device types of GPU memory; all others are host memory


class _Capsule:
    """Object with the methods of the DLPack protocol that wraps a bare capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array (NumPy, CuPy, PyTorch, JAX).

    Parameters
    ----------
    ext_tensor : object
        An object with a `__dlpack__` method, or a DLPack capsule.
    device : device, optional
        The desired device. Defaults to the device of `ext_tensor`.
    copy : bool, optional
        True always copies. False raises an error if a copy is needed. None copies only if needed.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If `ext_tensor` does not support the DLPack protocol.
    BufferError
        If the other library refuses to export the array, for example because it requires a gradient.
    TypeError
        If gradlab does not have the array's dtype.
    ValueError
        If `copy` is False and the array must be copied to `device`.

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
            "from_dlpack received an invalid capsule. Expected an array of a library that supports the DLPack protocol, or "
            f"the result of its __dlpack__(), got {type(ext_tensor).__name__}."
        )
    kind = int(ext_tensor.__dlpack_device__()[0])
    array = namespace_on(_device("cuda" if kind in CUDA_DEVICE_TYPES else "cpu")).from_dlpack(ext_tensor)
    from_numpy_dtype(array.dtype)
    if copy:
        array = array.copy()
    if device is not None:
        there = move_to(array, _device(device))
        if copy is False and there is not array:
            raise ValueError(f"copy=False was given, but the array must be copied to {device}.")
        array = there
    return constant(array)


_device = device


def to_dlpack(tensor: Tensor) -> Any:
    """Return a DLPack capsule of the tensor's memory.

    Libraries accept the tensor itself, too: `numpy.from_dlpack(tensor)`.

    Parameters
    ----------
    tensor : Tensor
        A tensor that does not require a gradient.

    Returns
    -------
    capsule

    Raises
    ------
    BufferError
        If the tensor requires a gradient.

    Examples
    --------
    >>> import gradlab as gl
    >>> type(gl.to_dlpack(gl.ones(2))).__name__
    'PyCapsule'
    """
    if not isinstance(tensor, Tensor):
        raise wrong_type("to_dlpack", "tensor", 1, "Tensor", tensor)
    return tensor.__dlpack__()


class Interop:
    """Methods of the DLPack protocol."""

    array: Any

    def __dlpack__(
        self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Return a DLPack capsule that shares the tensor's memory, for `from_dlpack` of another library."""
        if self.requires_grad:  # type: ignore[attr-defined]
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        options = {k: v for k, v in (("max_version", max_version), ("dl_device", dl_device), ("copy", copy)) if v is not None}
        if namespace_of[type(self.array)] is np and stream is not None:
            raise BufferError("A tensor in host memory has no stream: leave stream= out.")
        return self.array.__dlpack__(stream=stream, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type and device index."""
        return self.array.__dlpack_device__()


# ----------------------------------------------------------------------------------------------- gradlab under torch's name
class _Finder:
    """Import hook that finds gradlab's modules under torch's names."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != "torch" and not name.startswith("torch."):
            return None
        ours = "gradlab" + name[len("torch") :]
        try:
            module = import_module(ours)
        except ModuleNotFoundError as error:
            if error.name is None or not ours.startswith(error.name):
                raise
            message = f"No module named {name!r}: gradlab does not have this module of torch yet."
            raise ModuleNotFoundError(message, name=name) from None
        return ModuleSpec(name, _Loader(module), is_package=hasattr(module, "__path__"))  # type: ignore[arg-type]


class _Loader:  # without the base class `importlib.abc.Loader`, whose import takes 6 ms
    """Loader of a module that is already imported. It keeps the module's `__spec__` and `__loader__`."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.own = module, (module.__spec__, module.__loader__)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self.own


_hidden_torch: dict[str, ModuleType] = {}  # modules of the real torch, loaded while the name refers to gradlab


class _AsTorch:
    """Handle and context manager that `as_torch` returns. `undo()`, or the end of the `with` block, restores the name."""

    finder = _Finder()
    active = 0

    def __init__(self) -> None:
        theirs = sys.modules.get("torch")
        if theirs is not None and theirs is not sys.modules["gradlab"]:
            raise RuntimeError(
                "torch is already imported, so gradlab cannot replace it: "
                + advice("call gradlab.as_torch() in a new process, before anything imports torch.")
            )
        if not _AsTorch.active:
            sys.meta_path.insert(0, self.finder)  # type: ignore[arg-type]
        _AsTorch.active += 1
        self.done = False

    def undo(self) -> None:
        """Make `import torch` import torch again. Names that are already imported do not change."""
        if self.done:
            return
        self.done = True
        _AsTorch.active -= 1
        if not _AsTorch.active:
            sys.meta_path.remove(self.finder)  # type: ignore[arg-type]
            for name in [n for n in sys.modules if n == "torch" or n.startswith("torch.")]:
                del sys.modules[name]
            sys.modules.update(_hidden_torch)
            _hidden_torch.clear()

    def __enter__(self) -> _AsTorch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.undo()


def as_torch() -> _AsTorch:
    """Make `import torch`, and imports of its modules, import gradlab in this process.

    Modules and names of torch that gradlab does not have raise an error when they are used.

    Returns
    -------
    object
        A handle whose method `undo()` restores the name, and a context manager.

    Raises
    ------
    RuntimeError
        If torch is already imported.

    Examples
    --------
    >>> import gradlab
    >>> undo = gradlab.as_torch()  # doctest: +SKIP
    >>> import torch  # doctest: +SKIP
    """
    return _AsTorch()


@contextmanager
def gradlab_as_torch() -> Iterator[ModuleType]:
    """Make `import torch` import gradlab within the block, even if torch is already imported."""
    held = _pop_torch_modules()
    try:
        with as_torch():
            yield sys.modules["gradlab"]
    finally:
        _pop_torch_modules()
        sys.modules.update(held)


@contextmanager
def real_torch() -> Iterator[ModuleType]:
    """Make `import torch` import the real torch within the block, even under `as_torch`.

    Raises
    ------
    ModuleNotFoundError
        If torch is not installed.
    """
    if not _AsTorch.active:
        yield import_module("torch")
        return
    held, place = _pop_torch_modules(), sys.meta_path.index(_AsTorch.finder)  # type: ignore[arg-type]
    try:
        sys.meta_path.remove(_AsTorch.finder)  # type: ignore[arg-type]
        sys.modules.update(_hidden_torch)
        yield import_module("torch")
    finally:
        _hidden_torch.update(_pop_torch_modules())  # torch cannot be imported twice
        sys.modules.update(held)
        sys.meta_path.insert(place, _AsTorch.finder)  # type: ignore[arg-type]


def _pop_torch_modules() -> dict[str, ModuleType]:
    """Remove all modules under torch's names from `sys.modules` and return them."""
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name == "torch" or name.startswith("torch.")}

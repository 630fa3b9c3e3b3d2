"""Look up the namespace and device of arrays, and copy arrays between devices.

All code above this package uses `namespace_of[type(array)]` and writes `xp.…`. No other module distinguishes NumPy from CuPy.
CuPy is imported when a GPU is first requested, because the import takes 0.6 s and most users have no GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import run_pending_checks
from gradlab.backend.memory import is_pinned, send_pinned

SCALARS = (np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64)

namespace_of: dict[type, Any] = dict.fromkeys((np.ndarray, *SCALARS), np)  # 0-d ufuncs return scalars


class device:  # noqa: N801  (torch's name)
    """The device on which a tensor is stored.

    Parameters
    ----------
    type : str, int or device, optional
        Device such as "cpu", "cuda" or "cuda:1". An integer is the number of a GPU.
    index : int, optional
        Number of the GPU.
    device : str or device, optional
        Alias of `type`.

    Raises
    ------
    RuntimeError
        If the string is not a valid device.
    TypeError
        If `type` is not a string, an integer or a device.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.device("cuda", 1)
    device(type='cuda', index=1)
    """

    __module__ = "gradlab"
    __slots__ = ("before", "index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any = None, index: int | None = None, *, device: Any = None) -> None:
        type = device if type is None else type
        if isinstance(type, int):
            index, type = type, "cuda"
        elif isinstance(type, globals()["device"]):
            index, type = type.index, type.type
        elif isinstance(type, str) and index is None and ":" in type:
            type, _, number = type.partition(":")
            if not number.isdecimal():
                raise RuntimeError(f"Invalid device string: '{type}:{number}'. Write 'cpu', 'cuda' or 'cuda:0'.")
            index = int(number)
        if not isinstance(type, str):
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({type.__class__.__name__}), but "
                "expected one of:\n * (str type, int index), such as 'cpu', 'cuda:0' or 'cuda', 0"
            )
        if not type:
            raise RuntimeError("Device string must not be empty. Write 'cpu', 'cuda' or 'cuda:0'.")
        if not type.replace("_", "").isalpha():
            raise RuntimeError(f"Invalid device string: '{type}'. Write 'cpu', 'cuda' or 'cuda:0'; a dtype is not a string.")
        if type not in ("cpu", "cuda"):
            raise RuntimeError(
                f"Expected one of cpu, cuda device type at start of device string: {type}. gradlab supports no other devices."
            )
        self.type, self.index = type, index

    def __repr__(self) -> str:
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, tuple[str, int | None]]:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        self.before = [*getattr(self, "before", ()), current.device]
        set_default_device(self)
        return self

    def __exit__(self, *raised: object) -> None:
        current.device = self.before.pop()


CPU = device("cpu")


class _Current:
    """The default device."""

    device = CPU


current = _Current()
_device_of: dict[type, Callable[[Any], device]] = {np.ndarray: lambda array: CPU}


def set_default_device(device: Any) -> None:
    """Set the device on which tensors are created by default. It is initially the CPU.

    Parameters
    ----------
    device : device, str or None
        Default device. None means the CPU.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If the device does not exist.
    TypeError
        If `device` is not a string, an integer, a device or None.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_default_device("cpu")
    """
    where = globals()["device"]("cpu" if device is None else device)
    if where.type == "cuda":
        cupy_for(where)
    current.device = CPU if where.type == "cpu" else where


def get_default_device() -> device:
    """Return the device on which tensors are created by default.

    Returns
    -------
    device

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.get_default_device()
    device(type='cpu')
    """
    return current.device


def register(array_type: type, namespace: Any, device_of: Callable[[Any], device]) -> None:
    """Register an array type. Its `namespace` must provide the NumPy functions that the rules use."""
    namespace_of[array_type] = namespace
    _device_of[array_type] = device_of


def device_of(array: Any) -> device:
    """Return the device of an array."""
    return _device_of[type(array)](array)


def address(array: Any) -> int:
    """Return the memory address of the first element."""
    return array.__array_interface__["data"][0] if type(array) is np.ndarray else array.data.ptr


def wrap(result: Any) -> Any:
    """Convert a NumPy scalar, as reductions and 0-d ufuncs return it, to an array. Return arrays unchanged."""
    return np.asarray(result) if isinstance(result, np.generic) else result


def make_writable(view: Any, source: Any) -> Any:
    """Make `view` writable if its source is. NumPy returns some views as read-only although their elements are distinct."""
    if type(view) is np.ndarray and source.flags.writeable:
        view.flags.writeable = True
    return view


def is_writable(array: Any) -> bool:
    """Return True if the array is writable and its elements do not share memory."""
    flags = array.flags
    if not getattr(flags, "writeable", True):  # CuPy's arrays are always writable
        return False
    return flags.c_contiguous or all(stride != 0 or n <= 1 for stride, n in zip(array.strides, array.shape, strict=True))


def is_array(value: Any) -> bool:
    """Return True if `value` is an array of a registered type. NumPy scalars are not."""
    return type(value) in _device_of


# ---------------------------------------------------------------------------------------------------------------- CUDA
class _Cuda:
    """The result of looking for a GPU, which is done once. The reason of a failure is kept for the error message."""

    def __init__(self) -> None:
        self.asked, self.cupy, self.reason, self.count = False, None, "", 0

    def probe(self) -> bool:
        if not self.asked:
            self.asked = True
            try:
                import cupy

                self.count = cupy.cuda.runtime.getDeviceCount()
                if float((cupy.arange(3.0) * 2).sum()) != 6.0:  # compiles and runs a kernel
                    raise RuntimeError("a test kernel returned a wrong result")
                register(cupy.ndarray, cupy, lambda array: device("cuda", array.device.id))
                self.cupy = cupy
            except Exception as error:  # noqa: BLE001  (ImportError, CUDARuntimeError, DynamicLibNotFoundError, …)
                self.reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".strip(": ")
        return self.cupy is not None


cuda = _Cuda()


def cupy_for(requested: device) -> Any:
    """Return the cupy module for an existing device. Otherwise raise an error with the reason and a remedy."""
    if not cuda.probe():
        raise RuntimeError(
            f"device='{requested}' was requested, but no CUDA GPU can be used here ({cuda.reason}). Use device='cpu', or "
            "install the extra 'cuda' (pip install 'gradlab[cuda]'; 'cuda13' for CUDA 13) on a machine with an NVIDIA GPU and "
            "its driver."
        )
    if requested.index is not None and not 0 <= requested.index < cuda.count:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal. '{requested}' was requested; this machine has "
            f"{cuda.count} GPU{'s' if cuda.count != 1 else ''}, cuda:0 to cuda:{cuda.count - 1}."
        )
    return cuda.cupy


def namespace_on(where: device) -> Any:
    """Return the namespace of arrays on a device."""
    return np if where.type == "cpu" else cupy_for(where)


def current_gpu() -> int:
    """Return the number of the current GPU, which "cuda" refers to."""
    return cuda.cupy.cuda.Device().id if cuda.cupy is not None else 0


def to_host(array: Any) -> Any:
    """Return the array itself if it is on the host, or a copy on the host, which waits for the device."""
    if not is_array(array) or type(array) is np.ndarray:
        return array
    run_pending_checks()
    return array.get()


def read_floats(arrays: Sequence[Any]) -> list[np.ndarray]:
    """Return real arrays as float64 on the host. Arrays on a device are copied in one transfer, so the host waits once."""
    there = [array for array in arrays if not isinstance(array, (np.ndarray, np.generic))]
    parts: Iterator[np.ndarray] = iter(())
    if there:
        flat = namespace_of[type(there[0])].concatenate([array.astype(np.float64).reshape(-1) for array in there])
        parts = iter(np.split(to_host(flat), np.cumsum([array.size for array in there[:-1]], dtype=int)))
    return [
        np.asarray(array, np.float64) if isinstance(array, (np.ndarray, np.generic)) else next(parts).reshape(array.shape)
        for array in arrays
    ]


def tree_to_host(value: Any) -> Any:
    """Return `value` with every array moved to the host, including those nested in tuples, lists and dictionaries."""
    if type(value) in (tuple, list):
        return type(value)([tree_to_host(v) for v in value])
    if type(value) is dict:
        return {name: tree_to_host(v) for name, v in value.items()}
    return to_host(value)


def is_on_device(array: Any, where: device) -> bool:
    """Return True if the array is on the device. "cuda" is the current GPU."""
    here = device_of(array)
    return here.type == where.type and (
        here.type == "cpu" or here.index == (current_gpu() if where.index is None else where.index)
    )


def move_to(array: Any, where: device, waits: bool = True) -> Any:
    """Return the array on device `where`, without a copy if it is already there.

    With `waits=False` page-locked memory is copied asynchronously.
    """
    if is_on_device(array, where):
        return array
    if where.type == "cpu":
        return to_host(array)
    cupy = cupy_for(where)
    with cupy.cuda.Device(current_gpu() if where.index is None else where.index):
        if not waits and array.flags.c_contiguous and is_pinned(cupy, array):
            return send_pinned(cupy, array)
        return array.copy() if type(array) is cupy.ndarray else cupy.array(array)  # `copy` also copies from another GPU

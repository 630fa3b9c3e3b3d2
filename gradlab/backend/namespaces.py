"""Which array namespace an array belongs to, on which device it lies, and how it gets to another.

Everything above this package asks `namespace_of[type(array)]` and writes `xp.…`; nothing else knows NumPy from CuPy.
CuPy is imported when a GPU is first asked for, never before: it costs 0.6 s and most readers have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gradlab.backend.bounds import settle
from gradlab.backend.memory import is_pinned, sent

SCALARS = (np.bool_, np.uint8, np.int8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64)

namespace_of: dict[type, Any] = dict.fromkeys((np.ndarray, *SCALARS), np)  # 0-d ufuncs return scalars


class device:  # noqa: N801  (torch's name)
    """Where a tensor's memory lies.

    Parameters
    ----------
    type : str or device, optional
        "cpu", "cuda" or "cuda:1".
    index : int, optional
        Which GPU.
    device : str or device, optional
        The same as `type`.

    Raises
    ------
    RuntimeError
        If the string names neither the CPU nor a GPU.
    TypeError
        If it is neither a string, a number nor a device.

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
            raise RuntimeError(f"Invalid device string: '{type}'. Write 'cpu', 'cuda' or 'cuda:0'; a dtype is no string.")
        if type not in ("cpu", "cuda"):
            raise RuntimeError(
                f"Expected one of cpu, cuda device type at start of device string: {type}. These are the "
                "devices that gradlab has."
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
    """Where tensors are made if no device is asked for."""

    device = CPU


current = _Current()
_device_of: dict[type, Callable[[Any], device]] = {np.ndarray: lambda array: CPU}


def set_default_device(device: Any) -> None:
    """Set where tensors are made if no device is asked for: the CPU unless changed.

    Parameters
    ----------
    device : device, str or None
        The device; None is the CPU.

    Returns
    -------
    None

    Raises
    ------
    RuntimeError
        If there is no such device.
    TypeError
        If it is neither a string, a number nor a device.

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
    """Where tensors are made if no device is asked for.

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
    """Make arrays of a further type known: `namespace` speaks the NumPy names that the rules use."""
    namespace_of[array_type] = namespace
    _device_of[array_type] = device_of


def device_of(array: Any) -> device:
    """The device on which an array lies."""
    return _device_of[type(array)](array)


def address(array: Any) -> int:
    """Where in memory the first element lies."""
    return array.__array_interface__["data"][0] if type(array) is np.ndarray else array.data.ptr


def wrap(result: Any) -> Any:
    """An array, where NumPy's reductions and 0-d ufuncs return a scalar."""
    return np.asarray(result) if isinstance(result, np.generic) else result


def writable(view: Any, source: Any) -> Any:
    """`view`, writable if its source is: NumPy hands some views out read-only that have no element twice."""
    if type(view) is np.ndarray and source.flags.writeable:
        view.flags.writeable = True
    return view


def is_writable(array: Any) -> bool:
    """Whether the array may be written to, each element having a place of its own."""
    flags = array.flags
    if not getattr(flags, "writeable", True):  # CuPy's arrays always are
        return False
    return flags.c_contiguous or all(stride != 0 or n <= 1 for stride, n in zip(array.strides, array.shape, strict=True))


def is_array(value: Any) -> bool:
    """Whether `value` is an array of a known backend (a NumPy scalar is none)."""
    return type(value) in _device_of


# ---------------------------------------------------------------------------------------------------------------- CUDA
class _Cuda:
    """What is known of the GPU: asked once, the reason of a failure kept for the message."""

    def __init__(self) -> None:
        self.asked, self.cupy, self.reason, self.count = False, None, "", 0

    def probe(self) -> bool:
        if not self.asked:
            self.asked = True
            try:
                import cupy

                self.count = cupy.cuda.runtime.getDeviceCount()
                if float((cupy.arange(3.0) * 2).sum()) != 6.0:  # forces a kernel to be compiled and run
                    raise RuntimeError("a test kernel returned a wrong result")
                register(cupy.ndarray, cupy, lambda array: device("cuda", array.device.id))
                self.cupy = cupy
            except Exception as error:  # noqa: BLE001  (ImportError, CUDARuntimeError, DynamicLibNotFoundError, …)
                self.reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".strip(": ")
        return self.cupy is not None


cuda = _Cuda()


def cupy_for(asked: device) -> Any:
    """The cupy module, for a device that exists; else the error that says why there is none and what to do."""
    if not cuda.probe():
        raise RuntimeError(
            f"device='{asked}' was asked for, but no CUDA GPU can be used here ({cuda.reason}). Use device='cpu', or "
            "install the extra 'cuda' (pip install 'gradlab[cuda]'; 'cuda13' for CUDA 13) on a machine with an NVIDIA GPU and "
            "its driver."
        )
    if asked.index is not None and not 0 <= asked.index < cuda.count:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal. '{asked}' was asked for; this machine has "
            f"{cuda.count} GPU{'s' if cuda.count != 1 else ''}, cuda:0 to cuda:{cuda.count - 1}."
        )
    return cuda.cupy


def namespace_on(where: device) -> Any:
    """The namespace whose arrays lie on that device."""
    return np if where.type == "cpu" else cupy_for(where)


def current_gpu() -> int:
    """The number of the GPU that "cuda" stands for."""
    return cuda.cupy.cuda.Device().id if cuda.cupy is not None else 0


def host(array: Any) -> Any:
    """The array on the host: itself, or a copy of what lies on a device, for which the host waits."""
    if not is_array(array) or type(array) is np.ndarray:
        return array
    settle()
    return array.get()


def read(arrays: Sequence[Any]) -> list[np.ndarray]:
    """The numbers of real arrays, in float64 on the host. Those on a device come in one transfer: the host waits once."""
    there = [array for array in arrays if not isinstance(array, (np.ndarray, np.generic))]
    parts: Iterator[np.ndarray] = iter(())
    if there:
        flat = namespace_of[type(there[0])].concatenate([array.astype(np.float64).reshape(-1) for array in there])
        parts = iter(np.split(host(flat), np.cumsum([array.size for array in there[:-1]], dtype=int)))
    return [
        np.asarray(array, np.float64) if isinstance(array, (np.ndarray, np.generic)) else next(parts).reshape(array.shape)
        for array in arrays
    ]


def on_host(value: Any) -> Any:
    """The same with every array in it on the host, however deep in tuples, lists and dictionaries."""
    if type(value) in (tuple, list):
        return type(value)([on_host(v) for v in value])
    if type(value) is dict:
        return {name: on_host(v) for name, v in value.items()}
    return host(value)


def lies_on(array: Any, where: device) -> bool:
    """Whether the array lies on that device; "cuda" is the current GPU."""
    here = device_of(array)
    return here.type == where.type and (
        here.type == "cpu" or here.index == (current_gpu() if where.index is None else where.index)
    )


def moved(array: Any, where: device, waits: bool = True) -> Any:
    """The array on another device; itself if it is there already. Page-locked memory is sent without waiting if it may be."""
    if lies_on(array, where):
        return array
    if where.type == "cpu":
        return host(array)
    cupy = cupy_for(where)
    with cupy.cuda.Device(current_gpu() if where.index is None else where.index):
        if not waits and array.flags.c_contiguous and is_pinned(cupy, array):
            return sent(cupy, array)
        return array.copy() if type(array) is cupy.ndarray else cupy.array(array)  # `copy` comes from another GPU as well

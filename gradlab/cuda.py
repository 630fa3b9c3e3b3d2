"""GPU functions with the names of `torch.cuda`: a thin layer over CuPy, which is imported when a GPU is first used.

Operations run on the current GPU and its current stream. Without a GPU, queries such as `is_available`, `device_count` and
`memory_allocated` work. Functions that need a GPU raise an error that says why there is none.
"""

from __future__ import annotations

import os as _os
from types import SimpleNamespace
from typing import Any

from gradlab.backend import bounds as _bounds
from gradlab.backend import streams as _streams
from gradlab.backend.memory import peaks as _peaks
from gradlab.backend.namespaces import cuda as _cuda
from gradlab.backend.namespaces import cupy_for
from gradlab.backend.namespaces import current_gpu as _current_gpu
from gradlab.backend.namespaces import device as _device
from gradlab.backend.namespaces import device_of as _device_of
from gradlab.core.errors import OutOfMemoryError
from gradlab.core.errors import module_getattr as _module_getattr
from gradlab.core.tensor import Tensor as _Tensor
from gradlab.core.tensor import constant as _constant

__all__ = [
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device",
    "device_count",
    "device_of",
    "empty_cache",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_sync_debug_mode",
    "init",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "reset_max_memory_allocated",
    "reset_peak_memory_stats",
    "seed",
    "set_device",
    "set_rng_state",
    "set_stream",
    "set_sync_debug",
    "set_sync_debug_mode",
    "stream",
    "synchronize",
    "why_unavailable",
]


# ------------------------------------------------------------------------------------------------- availability and seeds
def is_available() -> bool:
    """Return True if a CUDA GPU can be used: CuPy imports, a device responds, and a small kernel compiles and runs.

    The check runs only once per process.
    """
    return _cuda.probe()


def device_count() -> int:
    """Return the number of GPUs that can be used."""
    return _cuda.count if _cuda.probe() else 0


def why_unavailable() -> str:
    """Return in one line why no GPU can be used. The string is empty if one is available."""
    _cuda.probe()
    return _cuda.reason


def is_initialized() -> bool:
    """Return True if a GPU has been used."""
    return _cuda.cupy is not None


def init() -> None:
    """Initialize the GPU. Raise if there is none."""
    cupy_for(_device("cuda"))


def is_bf16_supported() -> bool:
    """Return False, since NumPy has no bfloat16."""
    return False


def manual_seed(seed: int) -> None:
    """Give the current GPU its own random number generator, with a given seed.

    A GPU without its own generator uses that of the CPU. `gradlab.manual_seed` removes the generators of all GPUs and sets the
    seed of the CPU's.
    """
    _streams.seed_gpu(_current_gpu(), seed)


def manual_seed_all(seed: int) -> None:
    """Give each GPU its own random number generator, with a given seed."""
    for number in range(device_count()):
        _streams.seed_gpu(number, seed)


def seed() -> None:
    """Give the current GPU its own random number generator, with a seed from the operating system."""
    manual_seed(int.from_bytes(_os.urandom(8)))


def get_rng_state(device: Any = "cuda") -> _Tensor:
    """Return the state of a GPU's random number generator (uint8)."""
    return _constant(_streams.stream_of(_cupy_and_index(device)[1]).get_state())


def set_rng_state(new_state: _Tensor, device: Any = "cuda") -> None:
    """Give a GPU its own random number generator, in a state that `get_rng_state` returned."""
    if not isinstance(new_state, _Tensor):
        raise TypeError(f"expected a gradlab.ByteTensor, but got {type(new_state).__name__}")
    _streams.set_gpu_state(_cupy_and_index(device)[1], new_state.array)


# ---------------------------------------------------------------------------------------------------------------- devices
def _cupy_and_index(where: Any) -> tuple[Any, int]:
    """Return the cupy module and the index of a GPU, given as an index, a string, a device or None (the current GPU)."""
    asked = _device("cuda" if where is None else where)
    if asked.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {asked}")
    cupy = cupy_for(asked)
    return cupy, cupy.cuda.Device().id if asked.index is None else asked.index


def current_device() -> int:
    """Return the index of the current GPU, which "cuda" refers to."""
    return _cupy_and_index(None)[1]


def set_device(device: Any) -> None:
    """Set the current GPU, which "cuda" refers to."""
    cupy, index = _cupy_and_index(device)
    cupy.cuda.Device(index).use()


class device:  # noqa: N801  (torch's name)
    """Context manager that makes a GPU the current one, given as an index, a string such as "cuda:1" or a device.

    None has no effect.
    """

    def __init__(self, device: Any) -> None:
        self.given = device
        self.entered: list[Any] = []

    def __enter__(self) -> None:
        cupy, index = _cupy_and_index(self.given)
        self.entered.append(cupy.cuda.Device(index))
        self.entered[-1].__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.entered.pop().__exit__(*raised)


class device_of(device):  # noqa: N801  (torch's name)
    """Context manager that changes the current GPU to that of a tensor. A CPU tensor has no effect."""

    def __init__(self, obj: Any) -> None:
        where = _device_of(obj.array)
        super().__init__(where if where.type == "cuda" else None)

    def __enter__(self) -> None:
        if self.given is not None:
            super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        if self.given is not None:
            super().__exit__(*raised)


def get_device_name(device: Any = None) -> str:
    """Return the name of a GPU."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU, for example (9, 0)."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Return the properties of a GPU: `name`, `total_memory` (bytes), `major`, `minor`, `multi_processor_count`."""
    cupy, index = _cupy_and_index(device)
    properties = cupy.cuda.runtime.getDeviceProperties(index)
    return SimpleNamespace(
        name=properties["name"].decode(),
        total_memory=properties["totalGlobalMem"],
        major=properties["major"],
        minor=properties["minor"],
        multi_processor_count=properties["multiProcessorCount"],
    )


# ------------------------------------------------------------------------------------------------------- waiting and bounds
def synchronize(device: Any = None) -> None:
    """Wait until all work on a GPU has finished. Raise if an operation since the last wait had an index out of bounds."""
    cupy, index = _cupy_and_index(device)
    cupy.cuda.Device(index).synchronize()
    _bounds.run_pending_checks()


def set_sync_debug(at_once: bool) -> None:
    """Set when the indices, classes and probabilities of GPU operations are checked.

    If `at_once` is True, they are checked by the operation itself, so the host waits for each operation. Otherwise they are
    checked when a value is next read.
    """
    _bounds.debug.at_once = bool(at_once)
    if at_once:
        _bounds.run_pending_checks()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Set the debug mode for synchronizing operations. Only "default" (0) is supported. See also `set_sync_debug`."""
    if debug_mode not in (0, "default"):
        if debug_mode not in (1, 2, "warn", "error"):
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        raise NotImplementedError(
            "gradlab does not warn about synchronizing operations. gradlab.cuda.set_sync_debug(True) checks the "
            "bounds of indices in the operation itself."
        )


def get_sync_debug_mode() -> int:
    """Return 0, the only debug mode. See `set_sync_debug_mode`."""
    return 0


class Event:
    """Marker in a stream's queue. With `enable_timing`, the time between two events can be measured."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        cupy, _ = _cupy_and_index(None)
        self.timed = enable_timing
        self.inner = cupy.cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in a stream. Defaults to the current stream."""
        self.inner.record((current_stream() if stream is None else stream).inner)

    def wait(self, stream: Stream | None = None) -> None:
        """Make all future work of a stream wait for this event. Defaults to the current stream."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Return True if all work before the event has finished."""
        return bool(self.inner.done)

    def synchronize(self) -> None:
        """Wait until all work before the event has finished."""
        self.inner.synchronize()
        _bounds.run_pending_checks()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time from this event to `end_event` in milliseconds, by the GPU's clock."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        cupy, _ = _cupy_and_index(None)
        return float(cupy.cuda.get_elapsed_time(self.inner, end_event.inner))


class Stream:
    """Queue of work on a GPU. Work in different streams is ordered only by events."""

    def __init__(self, device: Any = None, priority: int = 0, *, inner: Any = None) -> None:
        cupy, self.number = _cupy_and_index(device)
        if inner is None:
            with cupy.cuda.Device(self.number):
                inner = cupy.cuda.Stream(non_blocking=True, priority=priority or None)
        self.inner = inner

    @property
    def device(self) -> Any:
        """GPU of the stream."""
        return _device("cuda", self.number)

    @property
    def cuda_stream(self) -> int:
        """Address of the underlying CUDA stream."""
        return int(self.inner.ptr)

    def query(self) -> bool:
        """Return True if all work in the stream has finished."""
        return bool(self.inner.done)

    def synchronize(self) -> None:
        """Wait until all work in the stream has finished."""
        self.inner.synchronize()
        _bounds.run_pending_checks()

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event in the stream and return it. Defaults to a new event."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Make all future work in the stream wait for an event."""
        self.inner.wait_event(event.inner)

    def wait_stream(self, stream: Stream) -> None:
        """Make all future work in the stream wait for the current work of another stream."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.number, self.cuda_stream) == (other.number, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.number, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<gradlab.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class StreamContext:
    """Context manager that selects a stream and its GPU. None has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self.entered: list[device] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            where = device(self.stream.number)
            where.__enter__()
            self.stream.inner.__enter__()
            self.entered.append(where)

    def __exit__(self, *raised: Any) -> None:
        if self.stream is not None:
            self.stream.inner.__exit__(*raised)
            self.entered.pop().__exit__(*raised)


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that selects a stream: ``with stream(s):``."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Set the current stream. None has no effect."""
    if stream is not None:
        set_device(stream.number)
        stream.inner.use()


def current_stream(device: Any = None) -> Stream:
    """Return the current stream of a GPU."""
    cupy, index = _cupy_and_index(device)
    with cupy.cuda.Device(index):
        return Stream(index, inner=cupy.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the default stream of a GPU."""
    cupy, index = _cupy_and_index(device)
    return Stream(index, inner=cupy.cuda.Stream.null)


def is_current_stream_capturing() -> bool:
    """Return True if the current stream is being captured into a CUDA graph."""
    return is_initialized() and bool(current_stream().inner.is_capturing())


# ---------------------------------------------------------------------------------------------------------------- memory
def _pool_bytes(where: Any, ask: str) -> int:
    if _cuda.cupy is None:
        return 0
    cupy, index = _cupy_and_index(where)
    with cupy.cuda.Device(index):
        return int(getattr(cupy.get_default_memory_pool(), ask)())


def memory_allocated(device: Any = None) -> int:
    """Return the GPU memory in use, in bytes. 0 if no GPU has been used."""
    return _pool_bytes(device, "used_bytes")


def memory_reserved(device: Any = None) -> int:
    """Return the GPU memory held by the memory pool, in bytes, in use or not. 0 if no GPU has been used."""
    return _pool_bytes(device, "total_bytes")


def max_memory_allocated(device: Any = None) -> int:
    """Return the maximum GPU memory in use since `reset_peak_memory_stats` or the first call of this function, in bytes.

    CuPy does not count allocations before that. Only allocations of the calling thread are counted.
    """
    if _cuda.cupy is None:
        return 0
    index = _cupy_and_index(device)[1]
    if index not in _peaks.peak:
        reset_peak_memory_stats(index)
    return _peaks.peak[index]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Start a new measurement of the maximum GPU memory in use."""
    cupy, index = _cupy_and_index(device)
    _peaks.start(cupy, index, memory_allocated(index))


reset_max_memory_allocated = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total memory of a GPU, in bytes."""
    cupy, index = _cupy_and_index(device)
    free, total = cupy.cuda.Device(index).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Release all unused cached GPU memory."""
    if _cuda.cupy is not None:
        _cuda.cupy.get_default_memory_pool().free_all_blocks()
        _cuda.cupy.get_default_pinned_memory_pool().free_all_blocks()


__getattr__ = _module_getattr("gradlab.cuda")

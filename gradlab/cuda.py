"""The GPU, as `torch.cuda` spells it: a thin layer over CuPy, which is imported when a GPU is first asked for.

Operations run on the current GPU and its current stream. Where there is no GPU, what only asks (`is_available`, `device_count`,
`memory_allocated`) answers, and what needs one raises and says why there is none.
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
from gradlab.core.errors import names_of as _names_of
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


# ------------------------------------------------------------------------------------------------------------ what there is
def is_available() -> bool:
    """Whether a CUDA GPU can be used: CuPy imports, a device answers, and a small kernel compiles and runs. Asked once."""
    return _cuda.probe()


def device_count() -> int:
    """How many GPUs can be used."""
    return _cuda.count if _cuda.probe() else 0


def why_unavailable() -> str:
    """What stood in the way, in one line; empty when a GPU is available."""
    _cuda.probe()
    return _cuda.reason


def is_initialized() -> bool:
    """Whether a GPU has been used."""
    return _cuda.cupy is not None


def init() -> None:
    """Look for a GPU; raise if there is none."""
    cupy_for(_device("cuda"))


def is_bf16_supported() -> bool:
    """False: NumPy has no bfloat16."""
    return False


def manual_seed(seed: int) -> None:
    """Give the current GPU a random stream of its own, started by `seed`. (Without one it draws from the CPU's, which
    gradlab.manual_seed starts over for all.)"""
    _streams.seed_gpu(_current_gpu(), seed)


def manual_seed_all(seed: int) -> None:
    """The same for each GPU."""
    for number in range(device_count()):
        _streams.seed_gpu(number, seed)


def seed() -> None:
    """Give the current GPU a stream of its own, of a seed that the operating system draws."""
    manual_seed(int.from_bytes(_os.urandom(8)))


def get_rng_state(device: Any = "cuda") -> _Tensor:
    """The state of the stream that a GPU draws from (uint8)."""
    return _constant(_streams.stream_of(_at(device)[1]).get_state())


def set_rng_state(new_state: _Tensor, device: Any = "cuda") -> None:
    """Let a GPU draw from a stream of its own, in a state that `get_rng_state` returned."""
    if not isinstance(new_state, _Tensor):
        raise TypeError(f"expected a gradlab.ByteTensor, but got {type(new_state).__name__}")
    _streams.set_gpu(_at(device)[1], new_state.array)


# ---------------------------------------------------------------------------------------------------------------- devices
def _at(where: Any) -> tuple[Any, int]:
    """The cupy module, and the number of a GPU given as a number, a string, a device or None (the current one)."""
    asked = _device("cuda" if where is None else where)
    if asked.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {asked}")
    cupy = cupy_for(asked)
    return cupy, cupy.cuda.Device().id if asked.index is None else asked.index


def current_device() -> int:
    """The number of the GPU that "cuda" stands for."""
    return _at(None)[1]


def set_device(device: Any) -> None:
    """Choose the GPU that "cuda" stands for."""
    cupy, index = _at(device)
    cupy.cuda.Device(index).use()


class device:  # noqa: N801  (torch's name)
    """Inside `with`, "cuda" stands for the GPU given (a number, "cuda:1", a device); None changes nothing."""

    def __init__(self, device: Any) -> None:
        self.given = device
        self.entered: list[Any] = []

    def __enter__(self) -> None:
        cupy, index = _at(self.given)
        self.entered.append(cupy.cuda.Device(index))
        self.entered[-1].__enter__()

    def __exit__(self, *raised: Any) -> None:
        self.entered.pop().__exit__(*raised)


class device_of(device):  # noqa: N801  (torch's name)
    """The same for the GPU on which a tensor lies; a tensor of the CPU changes nothing."""

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
    """What the GPU is called."""
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability: (9, 0) for instance."""
    properties = get_device_properties(device)
    return properties.major, properties.minor


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """`name`, `total_memory` (bytes), `major`, `minor`, `multi_processor_count` of a GPU."""
    cupy, index = _at(device)
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
    """Wait until the GPU has done what it was given. Raises for an index out of bounds that it was given since the last wait."""
    cupy, index = _at(device)
    cupy.cuda.Device(index).synchronize()
    _bounds.settle()


def set_sync_debug(at_once: bool) -> None:
    """Whether indices, classes and probabilities that are given to an operation on a GPU are looked at when it runs, which makes
    the host wait each time, rather than when a value is next read."""
    _bounds.debug.at_once = bool(at_once)
    if at_once:
        _bounds.settle()


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Torch's, of which gradlab has "default" (0) alone: it does not watch for waits. See `set_sync_debug` for its own."""
    if debug_mode not in (0, "default"):
        if debug_mode not in (1, 2, "warn", "error"):
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        raise NotImplementedError(
            "gradlab does not warn of waits for the GPU. gradlab.cuda.set_sync_debug(True) looks at bounds "
            "of indices at the operation itself."
        )


def get_sync_debug_mode() -> int:
    """0: see `set_sync_debug_mode`."""
    return 0


class Event:
    """A mark among what a stream is given. With `enable_timing` the time between two of them can be asked for."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        cupy, _ = _at(None)
        self.timed = enable_timing
        self.inner = cupy.cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Set the mark in a stream; in the current one if none is given."""
        self.inner.record((current_stream() if stream is None else stream).inner)

    def wait(self, stream: Stream | None = None) -> None:
        """Let what a stream is given from here on wait for the mark."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether all before the mark is done."""
        return bool(self.inner.done)

    def synchronize(self) -> None:
        """Wait until all before the mark is done."""
        self.inner.synchronize()
        _bounds.settle()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this mark to the other, on the GPU's clock."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        cupy, _ = _at(None)
        return float(cupy.cuda.get_elapsed_time(self.inner, end_event.inner))


class Stream:
    """A queue of work on a GPU. Work of two streams has no order but what events give it."""

    def __init__(self, device: Any = None, priority: int = 0, *, inner: Any = None) -> None:
        cupy, self.number = _at(device)
        if inner is None:
            with cupy.cuda.Device(self.number):
                inner = cupy.cuda.Stream(non_blocking=True, priority=priority or None)
        self.inner = inner

    @property
    def device(self) -> Any:
        """The GPU it belongs to."""
        return _device("cuda", self.number)

    @property
    def cuda_stream(self) -> int:
        """CUDA's own handle."""
        return int(self.inner.ptr)

    def query(self) -> bool:
        """Whether all it was given is done."""
        return bool(self.inner.done)

    def synchronize(self) -> None:
        """Wait until all it was given is done."""
        self.inner.synchronize()
        _bounds.settle()

    def record_event(self, event: Event | None = None) -> Event:
        """Set a mark, a new one if none is given, and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what it is given from here on wait for the mark."""
        self.inner.wait_event(event.inner)

    def wait_stream(self, stream: Stream) -> None:
        """Let what it is given from here on wait for all that the other was given."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.number, self.cuda_stream) == (other.number, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.number, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<gradlab.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class StreamContext:
    """Inside `with`, work is given to a stream, on its GPU; None changes nothing."""

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
    """`with stream(s):` gives work to s."""
    return StreamContext(stream)


def set_stream(stream: Stream | None) -> None:
    """Give work to a stream from here on."""
    if stream is not None:
        set_device(stream.number)
        stream.inner.use()


def current_stream(device: Any = None) -> Stream:
    """The stream that work is given to."""
    cupy, index = _at(device)
    with cupy.cuda.Device(index):
        return Stream(index, inner=cupy.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream that work is given to if none is chosen."""
    cupy, index = _at(device)
    return Stream(index, inner=cupy.cuda.Stream.null)


def is_current_stream_capturing() -> bool:
    """Whether the current stream is recorded into a CUDA graph."""
    return is_initialized() and bool(current_stream().inner.is_capturing())


# ---------------------------------------------------------------------------------------------------------------- memory
def _pool(where: Any, ask: str) -> int:
    if _cuda.cupy is None:
        return 0
    cupy, index = _at(where)
    with cupy.cuda.Device(index):
        return int(getattr(cupy.get_default_memory_pool(), ask)())


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use; 0 where no GPU has been used."""
    return _pool(device, "used_bytes")


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory held, in use or not; 0 where no GPU has been used."""
    return _pool(device, "total_bytes")


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes in use since `reset_peak_memory_stats`, or since this was first asked: CuPy counts none before. Allocations
    are counted in the thread that asked."""
    if _cuda.cupy is None:
        return 0
    index = _at(device)[1]
    if index not in _peaks.most:
        reset_peak_memory_stats(index)
    return _peaks.most[index]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Count the most bytes in use from here on."""
    cupy, index = _at(device)
    _peaks.start(cupy, index, memory_allocated(index))


reset_max_memory_allocated = reset_peak_memory_stats


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Bytes that are free on the GPU, and that it has."""
    cupy, index = _at(device)
    free, total = cupy.cuda.Device(index).mem_info
    return int(free), int(total)


def empty_cache() -> None:
    """Give the GPU memory that is not in use back."""
    if _cuda.cupy is not None:
        _cuda.cupy.get_default_memory_pool().free_all_blocks()
        _cuda.cupy.get_default_pinned_memory_pool().free_all_blocks()


__getattr__ = _names_of("gradlab.cuda")

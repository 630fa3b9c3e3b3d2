"""The GPU, as `torch.cuda` spells it."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from gradlab.backend.namespaces import cuda as _cuda
from gradlab.backend.namespaces import cupy_for
from gradlab.backend.namespaces import device as _device
from gradlab.core.errors import names_of as _names_of


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


def manual_seed(seed: int) -> None:
    """Accepted, and does nothing: random tensors on a GPU are those of the CPU's stream, which gradlab.manual_seed starts."""
    int(seed)


manual_seed_all = manual_seed


def current_device() -> int:
    """The number of the GPU that "cuda" stands for."""
    return cupy_for(_device("cuda")).cuda.Device().id


def set_device(device: Any) -> None:
    """Choose the GPU that "cuda" stands for."""
    where = _device(device)
    cupy_for(where).cuda.Device(where.index or 0).use()


def get_device_name(device: Any = None) -> str:
    """What the GPU is called."""
    return get_device_properties(device).name


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """`name`, `total_memory` (bytes), `major`, `minor`, `multi_processor_count` of a GPU."""
    where = _device("cuda" if device is None else device)
    cupy = cupy_for(where)
    found = cupy.cuda.runtime.getDeviceProperties(current_device() if where.index is None else where.index)
    return SimpleNamespace(name=found["name"].decode(), total_memory=found["totalGlobalMem"], major=found["major"],
                           minor=found["minor"], multi_processor_count=found["multiProcessorCount"])


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done what it was given."""
    where = _device("cuda" if device is None else device)
    cupy = cupy_for(where)
    (cupy.cuda.Device() if where.index is None else cupy.cuda.Device(where.index)).synchronize()


def empty_cache() -> None:
    """Give the GPU memory that is not in use back."""
    if _cuda.cupy is not None:
        _cuda.cupy.get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use; 0 where no GPU has been used."""
    return _cuda.cupy.get_default_memory_pool().used_bytes() if _cuda.cupy is not None else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory held, in use or not; 0 where no GPU has been used."""
    return _cuda.cupy.get_default_memory_pool().total_bytes() if _cuda.cupy is not None else 0

__getattr__ = _names_of("gradlab.cuda")

"""The GPU, as `torch.cuda` spells it."""
from __future__ import annotations

from gradlab.backend.namespaces import cuda as _cuda


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

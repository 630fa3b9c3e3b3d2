"""Flags for matrix products on the GPU. They can be set and have no effect."""

from __future__ import annotations

from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)


def is_built() -> bool:
    """Return True if gradlab can use a GPU on this machine."""
    from gradlab.cuda import is_available

    return is_available()

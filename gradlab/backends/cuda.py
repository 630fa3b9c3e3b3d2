"""Flags of the GPU's matrix products: they can be set, and do nothing."""

from __future__ import annotations

from types import SimpleNamespace

matmul = SimpleNamespace(
    allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True
)


def is_built() -> bool:
    """Whether gradlab can use a GPU here."""
    from gradlab.cuda import is_available

    return is_available()

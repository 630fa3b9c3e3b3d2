"""Sequences of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.core.tensor import Tensor
from gradlab.nn.functional.padding import pad
from gradlab.ops.joins import stack

__all__ = ["pad_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Iterable[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad sequences (Lᵢ, …) to one tensor (max L, batch, …), or (batch, max L, …) with `batch_first`.

    `padding_side` is "right" (the end) or "left" (the start).
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    listed = list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    longest = max(x.shape[0] for x in listed)

    def pad_one(x: Tensor) -> Tensor:
        lacking = longest - x.shape[0]
        if not lacking:
            return x
        ends = (0, lacking) if padding_side == "right" else (lacking, 0)
        return pad(x, (*(0, 0) * (x.ndim - 1), *ends), value=padding_value)

    return stack([pad_one(x) for x in listed], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Split the result of `pad_sequence` into sequences of the given lengths."""
    batch = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(batch, lengths, strict=True)]

"""Padding, as `torch.nn.functional` spells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gradlab.core.errors import wrong_type
from gradlab.core.tensor import Tensor
from gradlab.ops.copies import make_contiguous
from gradlab.rules.resampling import padding_map, remap, resample

__all__ = ["pad"]

CONSTANT = resample.with_node("ConstantPadNdBackward0")
CIRCULAR = resample.with_node("CopySlices")
ENDS = {
    (mode, n): remap.with_node(f"{node}Pad{n}DBackward0")
    for mode, node in (("reflect", "Reflection"), ("replicate", "Replication"))
    for n in (1, 2, 3)
}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad or crop a tensor.

    Parameters
    ----------
    input : Tensor
        The tensor, of any dtype.
    pad : sequence of ints
        Two numbers, before and after, for the last dimension, then two for the last but one, and so on. Negative numbers crop.
    mode : {"constant", "reflect", "replicate", "circular"}, default: "constant"
        Values of the padding: `value`; a mirror image without the edge; the edge; the opposite end. All but "constant" pad the
        last one to three dimensions of an input with one or two more.
    value : float, optional
        The constant, 0 if omitted.

    Returns
    -------
    Tensor
        Same dtype as `input`, with the lengths changed by `pad`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor or `pad` is not a tuple or list.
    RuntimeError
        If `pad` has an odd length or more than two numbers for a dimension, crops more than a dimension has, or exceeds the limit
        of the mode; if `value` is given in a mode other than "constant".
    NotImplementedError
        If the mode is unknown or does not support the number of dimensions; for bools in "reflect" and "replicate".

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.pad(gl.tensor([1.0, 2.0]), (1, 2))
    tensor([0., 1., 2., 0., 0.])
    >>> F.pad(gl.tensor([[1.0, 2.0, 3.0]]), (2, 1), mode="reflect")
    tensor([[3., 2., 1., 2., 3., 2.]])
    """
    if not isinstance(input, Tensor):
        raise wrong_type("pad", "input", 1, "Tensor", input)
    if not isinstance(pad, (tuple, list)):
        raise wrong_type("pad", "pad", 2, "tuple of ints", pad)
    sides = [int(p) for p in pad]
    shape = input.array.shape
    if len(sides) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2. It holds two numbers for each axis, got {sides}.")
    if len(sides) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(sides)} and input of dimension {len(shape)}"
        )
    n = len(sides) // 2
    ends = [(sides[2 * i], sides[2 * i + 1]) for i in reversed(range(n))]  # in the order of the axes
    op: Any = CONSTANT
    if mode != "constant":
        check_mode(shape, sides, ends, mode, value)
        if input.array.dtype.kind == "b" and mode != "circular":
            kernel = "reflection" if mode == "reflect" else "replication"
            raise NotImplementedError(f"\"{kernel}_pad{n}d\" not implemented for 'Bool'. Call .int() first.")
        op = CIRCULAR if mode == "circular" else ENDS[mode, n]
    for length, (before, after) in zip(shape[len(shape) - n :], ends, strict=True):
        if length + before + after < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative. Padding {sides} removes more elements than shape {list(shape)} has."
            )
    maps = tuple(
        [padding_map(length, before, after, mode) for length, (before, after) in zip(shape[len(shape) - n :], ends, strict=True)]
    )
    fill = 0 if value is None else input.array.dtype.type(value).item()
    return make_contiguous(op.record(input, maps=maps, over=None, first=False, fill=fill))


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """Pad a tensor with a constant, or crop it.

    Parameters
    ----------
    input : Tensor
        The tensor, of any dtype.
    pad : sequence of ints
        Two numbers, before and after, for the last dimension, then two for the last but one, and so on. Negative numbers crop.
    value : float, default: 0
        The constant.

    Returns
    -------
    Tensor
        Same dtype as `input`, with the lengths changed by `pad`.

    Raises
    ------
    TypeError
        If `input` is not a Tensor or `pad` is not a tuple or list.
    RuntimeError
        If `pad` has an odd length or more than two numbers for a dimension, or crops more than a dimension has.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.constant_pad_nd(gl.tensor([1.0, 2.0]), (1, 1), 9.0)
    tensor([9., 1., 2., 9.])
    """
    return globals()["pad"](input, pad, "constant", value)


def check_mode(shape: tuple[int, ...], sides: list[int], ends: list[tuple[int, int]], mode: str, value: float | None) -> None:
    """Check PyTorch's conditions of the modes that repeat elements of the input."""
    n, ndim = len(ends), len(shape)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}. Use 'constant', 'reflect', 'replicate' or 'circular'.")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if n not in (1, 2, 3) or ndim not in (n + 1, n + 2):
        raise NotImplementedError(
            f"Padding size {len(sides)} is not supported for {ndim}D input tensor. In mode {mode!r}, use two "
            "numbers for 2-D and 3-D inputs, four for 3-D and 4-D inputs."
        )
    for axis, (before, after) in enumerate(ends, ndim - n):
        length = shape[axis]
        if mode == "reflect" and max(before, after) >= length:
            at = 4 if n == 1 else 4 + 2 * (ndim - 1 - axis)
            raise RuntimeError(
                f"Argument #{at}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {axis} of input {list(shape)}"
            )
        if mode == "circular" and max(before, after) > length:
            raise RuntimeError("Padding value causes wrapping around more than once.")

"""Linear and bilinear layers."""

from __future__ import annotations

from math import prod

from gradlab.core.promotion import cast
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import not_a_tensor
from gradlab.ops.copies import compute_in_float32
from gradlab.ops.permutation import permute, t
from gradlab.ops.products import matmul
from gradlab.ops.shapes import reshape, unsqueeze
from gradlab.rules import shapes
from gradlab.rules.matrix import addmm

__all__ = [
    "bilinear",
    "linear",
]

TRANSPOSED = shapes.permute.with_node("TBackward0")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Multiply by the transpose of a weight matrix, and add a bias: a fully connected layer.

    Parameters
    ----------
    input : Tensor
        The features, (…, in).
    weight : Tensor
        The weights, (out, in), or (in).
    bias : Tensor, optional
        The bias, (out).

    Returns
    -------
    Tensor
        Shape (…, out), or (…) if `weight` has one dimension.

    Raises
    ------
    TypeError
        If `input` or `weight` is not a Tensor.
    RuntimeError
        If the shapes do not fit, the dtypes differ, or a tensor has no dimension.

    Notes
    -----
    .. math:: y = x W^T + b

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[1.0, 2.0]])
    >>> w = gl.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.linear(x, w, gl.tensor([0.0, 0.0, 10.0]))
    tensor([[ 1.,  2., 13.]])
    """
    if type(input) is not Tensor or type(weight) is not Tensor:
        raise not_a_tensor("linear", *((input,) if not isinstance(input, Tensor) else (weight, "weight", 2)))
    x, w = input.array, weight.array
    if not x.ndim or not w.ndim:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {w.ndim}D")
    if bias is None:
        return matmul(input, t(weight))
    b = bias.array
    if w.ndim == 1 and x.ndim == 2:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor. The weight has shape (out, in).")
    if w.ndim == 1 or not (x.ndim == 2 or (0 < b.ndim < 2 and x.flags.c_contiguous) or (x.ndim == 1 and b.ndim == 2)):
        return matmul(input, t(weight)) + bias
    if not x.dtype == w.dtype == b.dtype:
        what, other = ("self", bias) if b.dtype != w.dtype else ("mat1", input)
        raise RuntimeError(
            f"{what} and mat2 must have the same dtype, but got {other.dtype.word} and {weight.dtype.word}. "
            "Convert one of them: x.float(), x.to(weight.dtype)."
        )
    if w.ndim > 2:
        t(weight)  # raises
    transposed = TRANSPOSED.record(weight, axes=(-1, -2))
    if x.ndim == 2:
        return addmm.record(bias, input, transposed)
    rows = addmm.record(bias, shapes.reshape.record(input, shape=(prod(x.shape[:-1]), x.shape[-1])), transposed)
    return shapes.reshape.record(rows, shape=x.shape[:-1] + w.shape[:1])


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute a bilinear form of two inputs, and add a bias.

    Parameters
    ----------
    input1 : Tensor
        The first features, (…, in1).
    input2 : Tensor
        The second features, (…, in2).
    weight : Tensor
        The weights, (out, in1, in2).
    bias : Tensor, optional
        The bias, (out).

    Returns
    -------
    Tensor
        Shape (…, out).

    Raises
    ------
    TypeError
        If an input or `weight` is not a Tensor.
    IndexError
        If an input has no dimension.
    RuntimeError
        If the shapes do not fit, or the dtypes differ.

    Notes
    -----
    .. math:: y_k = x_1^T W_k x_2 + b_k

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.bilinear(gl.tensor([1.0, 2.0]), gl.tensor([3.0]), gl.ones(1, 2, 1))
    tensor([9.])
    """
    for at, (what, x) in enumerate((("input1", input1), ("input2", input2), ("weight", weight)), start=1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("bilinear", x, what, at)
    one, two, w = input1.array.shape, input2.array.shape, weight.array.shape
    if not one or not two:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    dtypes = {"input1": input1, "input2": input2, "weight": weight} | ({} if bias is None else {"bias": bias})
    if len({x.array.dtype for x in dtypes.values()}) > 1:
        named = ", ".join(f"{what}: {x.dtype.c_name}" for what, x in dtypes.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {named}")
    if len(one) != len(two):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(one)} and {len(two)}")
    for i, (n, m) in enumerate(zip(one[:-1], two[:-1], strict=True)):
        if n != m:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {n} and {m}")
    for at, shape in ((1, one), (2, two)):
        if at >= len(w) or shape[-1] != w[at]:
            raise RuntimeError(
                f"bilinear(): input{at} size does not match weight size: got {shape[-1]} but expected "
                f"{w[at] if at < len(w) else 'none'}. The weight has shape (out, in1, in2)."
            )
    if bias is not None and bias.array.shape != w[:1]:
        raise RuntimeError(
            "bilinear(): bias size does not match weight size: got "
            f"{bias.array.shape[0] if bias.array.ndim else 1} but expected {w[0]}"
        )
    if input1.array.dtype.char == "e":
        return compute_in_float32(bilinear, input1, input2, weight, bias)
    rows = prod(one[:-1])
    left = matmul(reshape(input1, rows, one[-1]), reshape(permute(weight, 1, 0, 2), w[1], w[0] * w[2]))
    out = (reshape(left, rows, w[0], w[2]) * unsqueeze(reshape(input2, rows, two[-1]), 1)).sum(-1)
    out = cast(out, left.array.dtype)  # integers have become int64
    out = shapes.reshape.record(out, shape=one[:-1] + w[:1])
    return out if bias is None else out + bias

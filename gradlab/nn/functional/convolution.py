"""Convolutions, with the names of `torch.nn.functional`. Inputs are (N, C, …) or, unbatched, (C, …)."""

from __future__ import annotations

import warnings
from typing import Any

from gradlab.core.errors import invalid_combination, wrong_type
from gradlab.core.tensor import Tensor
from gradlab.nn.functional.descriptions import with_descriptions
from gradlab.nn.functional.padding import pad as padded
from gradlab.ops.shapes import squeeze, unsqueeze
from gradlab.rules import convolution as rules

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

POSITIONS = {"stride": 4, "padding": 5, "output_padding": 6, "dilation": 8}
Sizes = int | tuple[int, ...] | list[int]


@with_descriptions
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Compute the cross-correlation of a tensor with kernels, over the last dimension.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N.
    weight : Tensor
        The kernels, (O, C / groups, K).
    bias : Tensor, optional
        The bias, (O).
    {stride}
    {padding}
    {dilation}
    {groups}

    Returns
    -------
    Tensor
        Shape (N, O, L'), or without N.

    Raises
    ------
    {convolution_raises}

    Notes
    -----
    .. math:: y_o = b_o + \sum_c w_{oc} \star x_c

    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> x = gl.tensor([[1.0, 2.0, 4.0, 8.0]])
    >>> F.conv1d(x, gl.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2., 4.]])
    """
    return convolution("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@with_descriptions
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Compute the cross-correlation of a tensor with kernels, over the last two dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N.
    weight : Tensor
        The kernels, (O, C / groups, K₁, K₂).
    bias : Tensor, optional
        The bias, (O).
    {stride}
    {padding}
    {dilation}
    {groups}

    Returns
    -------
    Tensor
        Shape (N, O, H', W'), or without N.

    Raises
    ------
    {convolution_raises}

    Notes
    -----
    .. math:: y_o = b_o + \sum_c w_{oc} \star x_c

    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.conv2d(gl.arange(9.0).reshape(1, 3, 3), gl.ones(1, 1, 2, 2))
    tensor([[[ 8., 12.],
             [20., 24.]]])
    >>> F.conv2d(gl.ones(1, 4, 8, 8), gl.ones(6, 4, 3, 3), padding="same").shape
    gradlab.Size([1, 6, 8, 8])
    """
    return convolution("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


@with_descriptions
def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes | str = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Tensor:
    r"""Compute the cross-correlation of a tensor with kernels, over the last three dimensions.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, D, H, W), or without N.
    weight : Tensor
        The kernels, (O, C / groups, K₁, K₂, K₃).
    bias : Tensor, optional
        The bias, (O).
    {stride}
    {padding}
    {dilation}
    {groups}

    Returns
    -------
    Tensor
        Shape (N, O, D', H', W'), or without N.

    Raises
    ------
    {convolution_raises}

    Notes
    -----
    .. math:: y_o = b_o + \sum_c w_{oc} \star x_c

    Each length becomes (L + 2 padding - dilation (K - 1) - 1) // stride + 1.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.conv3d(gl.ones(2, 1, 4, 4, 4), gl.ones(3, 1, 2, 2, 2), stride=2).shape
    gradlab.Size([2, 3, 2, 2, 2])
    """
    return convolution("conv3d", 3, input, weight, bias, stride, padding, dilation, groups)


@with_descriptions
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Compute the transposed convolution (the adjoint of `conv1d`): each element adds a multiple of the kernel.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, L), or without N.
    weight : Tensor
        The kernels, (C, O / groups, K).
    bias : Tensor, optional
        The bias, (O).
    {stride_of_transposed}
    padding : int or tuple of ints, default: 0
        Number of elements removed from both ends of the result.
    {output_padding}
    {groups}
    {dilation}

    Returns
    -------
    Tensor
        Shape (N, O, L'), or without N.

    Raises
    ------
    {transposed_convolution_raises}

    Notes
    -----
    Each length becomes (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. It maps cotangents of `conv1d` with
    the same arguments back to its input.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.conv_transpose1d(gl.tensor([[1.0, 10.0]]), gl.tensor([[[1.0, 2.0, 3.0]]]))
    tensor([[ 1., 12., 23., 30.]])
    """
    return transposed_convolution("conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@with_descriptions
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Compute the transposed convolution (the adjoint of `conv2d`): each element adds a multiple of the kernel.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, H, W), or without N.
    weight : Tensor
        The kernels, (C, O / groups, K₁, K₂).
    bias : Tensor, optional
        The bias, (O).
    {stride_of_transposed}
    padding : int or tuple of ints, default: 0
        Number of elements removed from both ends of the result.
    {output_padding}
    {groups}
    {dilation}

    Returns
    -------
    Tensor
        Shape (N, O, H', W'), or without N.

    Raises
    ------
    {transposed_convolution_raises}

    Notes
    -----
    Each length becomes (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. It maps cotangents of `conv2d` with
    the same arguments back to its input.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.conv_transpose2d(gl.ones(1, 1, 2, 2), gl.ones(1, 1, 2, 2), stride=2)
    tensor([[[[1., 1., 1., 1.],
              [1., 1., 1., 1.],
              [1., 1., 1., 1.],
              [1., 1., 1., 1.]]]])
    """
    return transposed_convolution("conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@with_descriptions
def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
) -> Tensor:
    """Compute the transposed convolution (the adjoint of `conv3d`): each element adds a multiple of the kernel.

    Parameters
    ----------
    input : Tensor
        The channels, (N, C, D, H, W), or without N.
    weight : Tensor
        The kernels, (C, O / groups, K₁, K₂, K₃).
    bias : Tensor, optional
        The bias, (O).
    {stride_of_transposed}
    padding : int or tuple of ints, default: 0
        Number of elements removed from both ends of the result.
    {output_padding}
    {groups}
    {dilation}

    Returns
    -------
    Tensor
        Shape (N, O, D', H', W'), or without N.

    Raises
    ------
    {transposed_convolution_raises}

    Notes
    -----
    Each length becomes (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. It maps cotangents of `conv3d` with
    the same arguments back to its input.

    Examples
    --------
    >>> import gradlab as gl
    >>> import gradlab.nn.functional as F
    >>> F.conv_transpose3d(gl.ones(2, 3, 4, 4, 4), gl.ones(3, 1, 2, 2, 2), stride=2).shape
    gradlab.Size([2, 1, 8, 8, 8])
    """
    return transposed_convolution("conv_transpose3d", 3, input, weight, bias, stride, padding, output_padding, groups, dilation)


# ----------------------------------------------------------------------------------------------------------------- shared
def convolution(
    name: str, n: int, input: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any, groups: int
) -> Tensor:
    """Check the arguments of `conv1d`, `conv2d` or `conv3d`, and record the primitive."""
    try:
        check_tensors(name, n, input, weight, bias)
        stride, dilation = sizes("stride", stride, n), sizes("dilation", dilation, n)
        padding = padding if isinstance(padding, str) else sizes("padding", padding, n)
    except (AttributeError, TypeError):
        raise wrong_arguments(name, input, weight, bias, stride, padding, dilation, groups) from None
    if isinstance(padding, str):
        input, padding = string_padding(input, weight.array.shape[2:], padding, stride, dilation)
    if input.array.ndim == n + 1:
        return squeeze(convolution(name, n, unsqueeze(input, 0), weight, bias, stride, padding, dilation, groups), 0)
    x, w = input.array.shape, weight.array.shape
    check_numbers(stride, padding, dilation, groups)
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight "
            f"of size [{list(w)}] instead"
        )
    if x[1] != w[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(w)}, expected input{list(x)} to have {w[1] * groups} "
            f"channels, but got {x[1]} channels instead"
        )
    check_bias(f"Given weight of size {list(w)}", bias, w[0])
    size = tuple([length + 2 * p for length, p in zip(x[2:], padding, strict=True)])
    reach = tuple([d * (k - 1) + 1 for k, d in zip(w[2:], dilation, strict=True)])
    if any(s < r for s, r in zip(size, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({join_sizes(size)}). Kernel size: ({join_sizes(reach)}). Kernel size "
            "can't be greater than actual input size"
        )
    out = tuple([(s - r) // step + 1 for s, r, step in zip(size, reach, stride, strict=True)])
    plan = rules.plan_of(x[2:], out, w[2:], stride, padding, dilation)
    if bias is None:
        return rules.conv.record(input, weight, plan=plan, groups=groups)
    return rules.conv_bias.record(input, weight, bias, plan=plan, groups=groups, transposed=False)


def transposed_convolution(
    name: str,
    n: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    dilation: Any,
) -> Tensor:
    """Check the arguments of `conv_transpose1d`, …, and record the primitive."""
    for position, (argument, x) in enumerate([("input", input), ("weight", weight), ("bias", bias)], 1):
        if type(x) is not Tensor and (x is not None or position < 3) and not isinstance(x, Tensor):
            raise wrong_type(name, argument, position, "Tensor", x)
    check_tensors(name, n, input, weight, bias)
    stride, dilation, padding = sizes("stride", stride, n), sizes("dilation", dilation, n), sizes("padding", padding, n)
    extra = sizes("output_padding", output_padding, n)
    if input.array.ndim == n + 1:
        return squeeze(
            transposed_convolution(name, n, unsqueeze(input, 0), weight, bias, stride, padding, extra, groups, dilation), 0
        )
    x, w = input.array.shape, weight.array.shape
    check_numbers(stride, padding, dilation, groups)
    if any(e < 0 for e in extra):
        raise RuntimeError("negative output_padding is not supported")
    if w[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight "
            f"of size [{list(w)}] instead"
        )
    if x[1] != w[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(w)}, expected input{list(x)} to have {w[0]} channels, but "
            f"got {x[1]} channels instead"
        )
    check_bias(f"Given transposed=1, weight of size {list(w)}", bias, w[1] * groups)
    if any(e >= s and e >= d for e, s, d in zip(extra, stride, dilation, strict=True)):
        values = [("output_padding", (0, *extra)), ("stride", (1, *stride)), ("dilation", (1, *dilation))]
        axes = ("depth", "height", "width") if n == 3 else ("height", "width")
        listed = " ".join(
            f"{what}_{axis}: {v}" for what, numbers in values for axis, v in zip(axes, numbers[-len(axes) :], strict=True)
        )
        raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got {listed}")
    size = tuple(
        [
            (length - 1) * s - 2 * p + d * (k - 1) + e + 1
            for length, s, p, d, k, e in zip(x[2:], stride, padding, dilation, w[2:], extra, strict=True)
        ]
    )
    if any(length < 1 for length in size):
        raise RuntimeError(
            f"Given input size per channel: ({join_sizes(x[2:])}). Calculated output size per channel: ({join_sizes(size)}). "
            "Output size is too small"
        )
    plan = rules.plan_of(size, x[2:], w[2:], stride, padding, dilation)
    if bias is None:
        return rules.conv_transpose.record(input, weight, plan=plan, groups=groups)
    return rules.conv_bias.record(input, weight, bias, plan=plan, groups=groups, transposed=True)


SIGNATURES = [
    f"(Tensor input, Tensor weight, Tensor bias = None, tuple of ints stride = 1, {padding}, tuple of ints dilation = "
    "1, int groups = 1)"
    for padding in ("tuple of ints padding = 0", 'str padding = "valid"')
]


def wrong_arguments(
    name: str, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> TypeError:
    """Return PyTorch's error for arguments of the wrong types. It depends on whether a module made the call."""
    if all(isinstance(numbers, tuple) for numbers in (stride, padding, dilation)):
        return invalid_combination(name, (input, weight, bias, stride, padding, dilation, groups), *SIGNATURES)
    named = {
        k: v
        for k, v, usual in (("stride", stride, 1), ("padding", padding, 0), ("dilation", dilation, 1), ("groups", groups, 1))
        if v is not usual
    }
    return invalid_combination(name, (input, weight) if bias is None else (input, weight, bias), *SIGNATURES, **named)


def join_sizes(size: Any) -> str:
    return " x ".join(map(str, size))


def sizes(name: str, value: Any, n: int) -> tuple[int, ...]:
    """Return one number for each axis. Raise PyTorch's error for another length."""
    if type(value) is int:
        return (value,) * n
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if not all(hasattr(v, "__index__") for v in values):
        raise wrong_type(f"conv_transpose{n}d", name, POSITIONS[name], "tuple of ints", values[0])
    if len(values) not in (1, n):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the convolution "
            f"dimensions, but got {name}={list(values)}"
        )
    values = tuple([v.__index__() for v in values])
    return values * n if len(values) == 1 else values


def check_tensors(name: str, n: int, input: Any, weight: Any, bias: Any) -> None:
    """Check the numbers of dimensions and the dtypes."""
    if input.array.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.array.shape)}. The axes are (batch, channels, "
            f"{'length' if n == 1 else 'height, width'}). Use unsqueeze to add one."
        )
    if weight.array.ndim != n + 2:
        raise RuntimeError(
            f"weight should have at least three dimensions, got {list(weight.array.shape)}"
            if weight.array.ndim < 3
            else f"Expected {weight.array.ndim}-dimensional input for {weight.array.ndim}-dimensional weight "
            f"{list(weight.array.shape)}, but got {n + 2}-dimensional input of size {list(input.array.shape)} instead"
            if n == 1
            else f"expected stride to be a single integer value or a list of {weight.array.ndim - 2} values to match the "
            f"convolution dimensions, but got stride={[1] * n}. The weight of a {n}-dimensional convolution has {n + 2} axes; "
            f"this one has {weight.array.ndim}."
        )
    if input.array.dtype is not weight.array.dtype and input.array.dtype != weight.array.dtype:
        if bias is not None and bias.array.dtype != input.array.dtype:
            raise RuntimeError(
                f"Input type ({input.dtype.c_name}) and bias type ({bias.dtype.c_name}) should be the same. "
                "Convert one of them: x.float(), x.to(weight.dtype)."
            )
        raise RuntimeError(
            f"expected scalar type {input.dtype.word} but found {weight.dtype.word}. Convert one of them: "
            "x.float(), x.to(weight.dtype)."
        )
    if bias is not None and bias.array.dtype != input.array.dtype:
        raise RuntimeError(
            f"Input type ({input.dtype.c_name}) and bias type ({bias.dtype.c_name}) should be the same. Convert "
            "one of them: bias.to(x.dtype)."
        )


def check_numbers(stride: tuple[int, ...], padding: tuple[int, ...], dilation: tuple[int, ...], groups: int) -> None:
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) <= 0:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")


def check_bias(context: str, bias: Tensor | None, channels: int) -> None:
    if bias is not None and bias.array.shape != (channels,):
        raise RuntimeError(
            f"{context}, expected bias to be 1-dimensional with {channels} elements, but got bias of size "
            f"{list(bias.array.shape)} instead"
        )


def string_padding(
    input: Tensor, kernel: tuple[int, ...], padding: str, stride: tuple[int, ...], dilation: tuple[int, ...]
) -> tuple[Tensor, tuple[int, ...]]:
    """Convert "same" and "valid" to numbers. If "same" is uneven, pad the input on its right side by the extra zero."""
    if padding == "valid":
        return input, (0,) * len(kernel)
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'. Use 'same' or 'valid'.")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions. Give the padding in numbers.")
    total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    if any(t % 2 for t in total):
        warnings.warn(
            "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the "
            "input be created.",
            UserWarning,
            stacklevel=4,
        )
        input = padded(input, [side for t in reversed(total) for side in (0, t % 2)])
    return input, tuple([t // 2 for t in total])

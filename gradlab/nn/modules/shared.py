"""What the docstrings of several layers say in common, said once: a line `{name}` in a layer's docstring stands for it."""

from __future__ import annotations

import re
from typing import TypeVar

C = TypeVar("C", bound=type)

TEXTS = {
    "device": ("device : device, optional\n    Where the parameters are: the CPU unless given."),
    "dtype": ("dtype : dtype, optional\n    The parameters' dtype: the default dtype unless given."),
    "inplace": ("inplace : bool, optional\n    Whether the input is overwritten: False unless given."),
    "elementwise": "Input: any shape. Output: the same shape.",
    "softmax_dim": (
        "dim : int, optional\n"
        "    The dimension that is normalized. Without it one is guessed from the number of dimensions, with a warning."
    ),
    "size_average": ("size_average, reduce : bool, optional\n    Deprecated: `reduction` says what they said."),
    "reduction": (
        'reduction : str, optional\n    "mean" (the default) averages the terms, "sum" adds them, "none" leaves them as they are.'
    ),
    "differences": 'Input: any shape. Target: the same shape. Output: a scalar, or with "none" one number for each element.',
    "sample": 'Output: a scalar, or with "none" one number for each sample.',
    "class_weight": (
        "weight : Tensor of shape (C,), optional\n"
        "    What each class's terms are multiplied by; a buffer. All alike unless given."
    ),
    "element_weight": (
        "weight : Tensor, optional\n    What the terms are multiplied by; a buffer, of a shape that broadcasts with the input's."
    ),
    "ignore_index": ("ignore_index : int, optional\n    A target that counts for nothing: -100 unless given."),
    "dropout": ("p : float, optional\n    The probability of being dropped, 0 ... 1: 0.5 unless given."),
    "dropout_refused": ("ValueError\n    If `p` is not within 0 ... 1."),
    "in_evaluation": "In evaluation (`module.eval()`) the input is handed on unchanged.",
    "windows": (
        "kernel_size : int or tuple of ints\n"
        "    The windows' size: one for every dimension, or one for each.\n"
        "stride : int or tuple of ints, optional\n"
        "    From one window to the next: the windows' size unless given."
    ),
    "window_padding": (
        "padding : int or tuple of ints, optional\n"
        "    How much is added on either side: nothing unless given; at most half a window."
    ),
    "ceil_mode": ("ceil_mode : bool, optional\n    Whether a last window that is only partly filled counts."),
    "dilation": ("dilation : int or tuple of ints, optional\n    The distance of a window's elements: 1 unless given."),
    "return_indices": (
        "return_indices : bool, optional\n"
        "    Whether (values, indices) are returned; `MaxUnpool` takes such indices. They count within a channel's\n"
        "    flattened input."
    ),
    "output_size": (
        "output_size : int, None or tuple of these\n"
        "    The result's size in each of the pooled dimensions; None keeps the input's."
    ),
    "padding": (
        "padding : int or tuple of ints\n"
        "    How much on every side, or (before, after) for each dimension, the last dimension first. Negative numbers\n"
        "    cut off."
    ),
    "padding_1d": "Input: (N, C, L) or (C, L). Output: L becomes L + before + after.",
    "padding_2d": "Input: (N, C, H, W) or (C, H, W). Output: H and W grow by their two sides' padding.",
    "padding_3d": "Input: (N, C, D, H, W) or (C, D, H, W). Output: D, H and W grow by their two sides' padding.",
    "pooled_1d": (
        "Input: (N, C, L) or (C, L). Output: L becomes ⌊(L + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1,\n"
        "where a layer without padding or dilation has 0 and 1; with `ceil_mode` rounded up."
    ),
    "pooled_2d": (
        "Input: (N, C, H, W) or (C, H, W). Output: each pooled size n becomes ⌊(n + 2 padding - dilation (kernel_size -\n"
        "1) - 1) / stride⌋ + 1, where a layer without padding or dilation has 0 and 1; with `ceil_mode` rounded up."
    ),
    "pooled_3d": (
        "Input: (N, C, D, H, W) or (C, D, H, W). Output: each pooled size n becomes ⌊(n + 2 padding - dilation\n"
        "(kernel_size - 1) - 1) / stride⌋ + 1; with `ceil_mode` rounded up."
    ),
    "convolution": (
        "in_channels, out_channels : int\n"
        "    How many channels come in and go out.\n"
        "kernel_size : int or tuple of ints\n"
        "    The kernel's size: one for every dimension, or one for each.\n"
        "stride : int or tuple of ints, optional\n"
        "    The kernel's step: 1 unless given."
    ),
    "groups": (
        "groups : int, optional\n"
        "    Into how many groups the channels are divided, which do not mix; it divides both numbers of channels.\n"
        "bias : bool, optional\n"
        "    Whether a number is added to each output channel: True unless given."
    ),
    "same_padding": (
        "padding : int, tuple of ints or str, optional\n"
        '    How much is added on either side; "valid" is none, "same" as much as keeps the size at stride 1.'
    ),
    "padding_mode": (
        'padding_mode : str, optional\n    What is added: "zeros" (the default), "reflect", "replicate" or "circular".'
    ),
    "convolution_refused": (
        "ValueError\n"
        '    If `groups` is not positive or does not divide the channels, if `padding` is another string or "same" with a\n'
        "    stride, or if `padding_mode` is unknown."
    ),
    "transposed_padding": (
        "padding : int or tuple of ints, optional\n"
        "    How much is cut off on either side of the result.\n"
        "output_padding : int or tuple of ints, optional\n"
        "    How much is added at the result's end, to choose among the sizes that a convolution maps to one."
    ),
    "zeros_only": ('padding_mode : str, optional\n    Only "zeros".'),
    "transposed_refused": (
        'ValueError\n    If `groups` is not positive or does not divide the channels, or `padding_mode` is not "zeros".'
    ),
    "kernel": (
        "weight : Parameter of shape (out_channels, in_channels / groups) + kernel_size\n"
        "    The kernels, uniform within ±1/√fan_in at the start.\n"
        "bias : Parameter of shape (out_channels,), or None\n"
        "    What is added, of the same distribution."
    ),
    "transposed_kernel": (
        "weight : Parameter of shape (in_channels, out_channels / groups) + kernel_size\n"
        "    The kernels, uniform within ±1/√fan_in at the start.\n"
        "bias : Parameter of shape (out_channels,), or None\n"
        "    What is added, of the same distribution."
    ),
    "convolved": "n becomes ⌊(n + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1 in each dimension of the kernel.",
    "unconvolved": (
        "n becomes (n - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 in each dimension of the\nkernel."
    ),
    "norm_eps": ("eps : float, optional\n    Added to the variance, so that nothing is divided by 0: 1e-5 unless given."),
    "channel_norm": (
        "num_features : int\n"
        "    How many channels C the input has.\n"
        "eps : float, optional\n"
        "    Added to the variance, so that nothing is divided by 0: 1e-5 unless given.\n"
        "momentum : float or None, optional\n"
        "    The part of a new batch in the running statistics: 0.1 unless given; None for the plain average.\n"
        "affine : bool, optional\n"
        "    Whether the result is scaled by `weight` and moved by `bias`.\n"
        "track_running_stats : bool, optional\n"
        "    Whether running statistics are kept, and used in evaluation.\n"
        "device : device, optional\n"
        "    Where the parameters are: the CPU unless given.\n"
        "dtype : dtype, optional\n"
        "    The parameters' dtype: the default dtype unless given.\n"
        "bias : bool, optional\n"
        "    Whether there is a `bias` beside `weight`: True unless given."
    ),
    "norm_bias": ("bias : bool, optional\n    Whether there is a `bias` beside `weight`: True unless given."),
    "channel_state": (
        "Attributes\n"
        "----------\n"
        "weight, bias : Parameter of shape (num_features,), or None\n"
        "    Ones and zeros at the start.\n"
        "running_mean, running_var : Tensor of shape (num_features,), or None\n"
        "    Buffers, zeros and ones at the start.\n"
        "num_batches_tracked : Tensor or None\n"
        "    A buffer: how many batches the running statistics have seen."
    ),
    "batch_norm": (
        "While training the mean and the (biased) variance are the batch's, over all dimensions but the channels'; the\n"
        "running statistics, of the unbiased variance, are updated. In evaluation the running ones are used (Ioffe and\n"
        "Szegedy 2015)."
    ),
}


def with_shared_texts(cls: C) -> C:
    """Put TEXTS in place of the names in braces that stand alone on a line of a class's docstring."""
    doc = vars(cls).get("__doc__")
    if doc and "{" in doc:
        cls.__doc__ = re.sub(r"^( *)\{(\w+)\}$", lambda m: m[1] + TEXTS[m[2]].replace("\n", "\n" + m[1]), doc, flags=re.MULTILINE)
    return cls

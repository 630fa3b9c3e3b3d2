"""Texts that docstrings of several layers share. A line `{name}` in a docstring is replaced by the text."""

from __future__ import annotations

import re
from typing import TypeVar

C = TypeVar("C", bound=type)

TEXTS = {
    "device": ("device : device, optional\n    Device of the parameters (default: the CPU)."),
    "dtype": ("dtype : dtype, optional\n    Dtype of the parameters (default: the default dtype)."),
    "inplace": ("inplace : bool, optional\n    Overwrite the input (default: False)."),
    "elementwise": "Input: any shape. Output: the same shape.",
    "softmax_dim": (
        "dim : int, optional\n"
        "    The dimension to normalize. If omitted, it is guessed from the number of dimensions, with a warning."
    ),
    "size_average": ("size_average, reduce : bool, optional\n    Deprecated in favour of `reduction`."),
    "reduction": (
        'reduction : str, optional\n    "mean" (the default) averages the terms, "sum" adds them, "none" returns them.'
    ),
    "differences": 'Input: any shape. Target: the same shape. Output: a scalar, or with "none" one number for each element.',
    "sample": 'Output: a scalar, or with "none" one number for each sample.',
    "class_weight": ("weight : Tensor of shape (C,), optional\n    Weight of each class, a buffer (default: all equal)."),
    "element_weight": (
        "weight : Tensor, optional\n    Weights of the terms, a buffer of a shape that broadcasts with the input's."
    ),
    "ignore_index": ("ignore_index : int, optional\n    A target that is ignored (default: -100)."),
    "dropout": ("p : float, optional\n    Probability of being dropped, between 0 and 1 (default: 0.5)."),
    "dropout_refused": ("ValueError\n    If `p` is not between 0 and 1."),
    "in_evaluation": "In evaluation (`module.eval()`) the input is returned unchanged.",
    "windows": (
        "kernel_size : int or tuple of ints\n"
        "    Size of the windows: one number for all dimensions, or one for each.\n"
        "stride : int or tuple of ints, optional\n"
        "    Step from one window to the next (default: `kernel_size`)."
    ),
    "window_padding": (
        "padding : int or tuple of ints, optional\n"
        "    Padding at both ends of each dimension (default: 0); at most half a window."
    ),
    "ceil_mode": ("ceil_mode : bool, optional\n    Include a last window that extends past the end."),
    "dilation": ("dilation : int or tuple of ints, optional\n    Distance between the elements of a window (default: 1)."),
    "return_indices": (
        "return_indices : bool, optional\n"
        "    Return (values, indices). `MaxUnpool` uses such indices into the flattened input of each channel."
    ),
    "output_size": (
        "output_size : int, None or tuple of these\n"
        "    Size of the result in each of the pooled dimensions. None keeps that of the input."
    ),
    "padding": (
        "padding : int or tuple of ints\n"
        "    Padding on every side, or (before, after) for each dimension, the last dimension first. Negative numbers crop."
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
        "    Numbers of channels of the input and the output.\n"
        "kernel_size : int or tuple of ints\n"
        "    Size of the kernel: one number for all dimensions, or one for each.\n"
        "stride : int or tuple of ints, optional\n"
        "    Step of the kernel (default: 1)."
    ),
    "groups": (
        "groups : int, optional\n"
        "    Number of groups of channels that are convolved separately (default: 1). It must divide both numbers of channels.\n"
        "bias : bool, optional\n"
        "    Add a bias to each output channel (default: True)."
    ),
    "same_padding": (
        "padding : int, tuple of ints or str, optional\n"
        '    Padding at both ends (default: 0). "valid" adds none; "same" preserves the size, for stride 1.'
    ),
    "padding_mode": (
        'padding_mode : str, optional\n    Kind of padding: "zeros" (the default), "reflect", "replicate" or "circular".'
    ),
    "convolution_refused": (
        "ValueError\n"
        '    If `groups` is not positive or does not divide the channels, if `padding` is another string or "same" with a\n'
        "    stride, or if `padding_mode` is unknown."
    ),
    "transposed_padding": (
        "padding : int or tuple of ints, optional\n"
        "    Number of elements removed from both ends of the result (default: 0).\n"
        "output_padding : int or tuple of ints, optional\n"
        "    Number of elements added at the end of the result (default: 0). A convolution maps several sizes to the same one."
    ),
    "zeros_only": ('padding_mode : str, optional\n    Only "zeros".'),
    "transposed_refused": (
        'ValueError\n    If `groups` is not positive or does not divide the channels, or `padding_mode` is not "zeros".'
    ),
    "kernel": (
        "weight : Parameter of shape (out_channels, in_channels / groups) + kernel_size\n"
        "    The kernels, initialised uniformly within ±1/√fan_in.\n"
        "bias : Parameter of shape (out_channels,), or None\n"
        "    The biases, initialised likewise."
    ),
    "transposed_kernel": (
        "weight : Parameter of shape (in_channels, out_channels / groups) + kernel_size\n"
        "    The kernels, initialised uniformly within ±1/√fan_in.\n"
        "bias : Parameter of shape (out_channels,), or None\n"
        "    The biases, initialised likewise."
    ),
    "convolved": "n becomes ⌊(n + 2 padding - dilation (kernel_size - 1) - 1) / stride⌋ + 1 in each dimension of the kernel.",
    "unconvolved": (
        "n becomes (n - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1 in each dimension of the\nkernel."
    ),
    "norm_eps": ("eps : float, optional\n    Added to the variance, so that nothing is divided by 0 (default: 1e-5)."),
    "channel_norm": (
        "num_features : int\n"
        "    Number C of channels.\n"
        "eps : float, optional\n"
        "    Added to the variance, so that nothing is divided by 0 (default: 1e-5).\n"
        "momentum : float or None, optional\n"
        "    Weight of a new batch in the running statistics (default: 0.1). None for the cumulative average.\n"
        "affine : bool, optional\n"
        "    Multiply the result by `weight` and add `bias`.\n"
        "track_running_stats : bool, optional\n"
        "    Update running statistics in training, and use them in evaluation.\n"
        "device : device, optional\n"
        "    Device of the parameters (default: the CPU).\n"
        "dtype : dtype, optional\n"
        "    Dtype of the parameters (default: the default dtype).\n"
        "bias : bool, optional\n"
        "    Add a `bias`, too (default: True)."
    ),
    "norm_bias": ("bias : bool, optional\n    Add a `bias`, too (default: True)."),
    "channel_state": (
        "Attributes\n"
        "----------\n"
        "weight, bias : Parameter of shape (num_features,), or None\n"
        "    Initialised to ones and zeros.\n"
        "running_mean, running_var : Tensor of shape (num_features,), or None\n"
        "    Buffers, initialised to zeros and ones.\n"
        "num_batches_tracked : Tensor or None\n"
        "    A buffer: the number of batches in the running statistics."
    ),
    "batch_norm": (
        "In training, the mean and the biased variance are those of the batch, over all dimensions except the channels. The\n"
        "running statistics are updated, with the unbiased variance. In evaluation the running statistics are used (Ioffe\n"
        "and Szegedy 2015)."
    ),
}


def with_shared_texts(cls: C) -> C:
    """Replace each line `{name}` in the docstring of a class by its text in TEXTS."""
    doc = vars(cls).get("__doc__")
    if doc and "{" in doc:
        cls.__doc__ = re.sub(r"^( *)\{(\w+)\}$", lambda m: m[1] + TEXTS[m[2]].replace("\n", "\n" + m[1]), doc, flags=re.MULTILINE)
    return cls

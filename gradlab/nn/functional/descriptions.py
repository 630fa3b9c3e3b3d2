"""Descriptions of arguments, results and errors that the docstrings of many layers, activations and losses share.

    @with_descriptions
    def silu(input: Tensor, inplace: bool = False) -> Tensor: …

A line `{inplace}` in a docstring is replaced by the description below, or by one of `core.operator.PARAMETERS`. The docstring of
an in-place twin, `@document_twin_of(elu)`, is that of the function without the argument `inplace`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

from gradlab.core.operator import PARAMETERS

F = TypeVar("F", bound=Callable[..., Any])

INPLACE = "inplace : bool, default: False\n    Write the result into the memory of `input`, and return `input`."
# Since Python 3.13 docstrings are compiled without their indentation.
NAMED = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
ARGUMENT = re.compile("".join(rf" *{re.escape(line.lstrip())}\n" for line in INPLACE.split("\n")))
WINDOWS = "the last dimension", "each of the last two dimensions", "each of the last three dimensions"
SIZES = "int, optional", "int or tuple of ints and None", "int or tuple of ints and None"

# ------------------------------------------------------------------------------------------------------------ activations
DESCRIPTIONS = PARAMETERS | {
    "floats": "input : Tensor\n    The tensor, of any shape, floating point.",
    "inplace": INPLACE,
    "same": "Tensor\n    Same shape and dtype as `input`.",
    "refused": "TypeError\n    If `input` is not a Tensor.\nNotImplementedError\n    If `input` holds integers or bools.",
    "leaf": "RuntimeError\n    If `inplace` and `input` is a leaf that requires a gradient.",
}
# ----------------------------------------------------------------------------------------------------------------- losses
DESCRIPTIONS |= {
    "prediction": "input : Tensor\n    The predictions, of any shape.",
    "target": "target : Tensor\n    The targets, of the shape of `input`. Another shape is broadcast, with a warning.",
    "class_weight": "weight : Tensor, optional\n    A weight for each class, (C).",
    "ignore_index": "ignore_index : int, default: -100\n    A target that is ignored.",
    "averaging": (
        "size_average, reduce : bool, optional\n"
        '    Deprecated in favour of `reduction`: `reduce=False` is "none", `size_average=False` is "sum", otherwise "mean"\n'
        "    is used."
    ),
    "reduction": (
        'reduction : {"mean", "sum", "none"}, default: "mean"\n    Return the mean of the terms, their sum, or the terms.'
    ),
    "loss": 'Tensor\n    A scalar, or with `reduction="none"` the terms, of the shape of `input`.',
    "loss1": 'Tensor\n    A scalar, or with `reduction="none"` the terms, of the broadcast shape.',
    "not_a_reduction": "ValueError\n    If `reduction` is not one of the three.",
    "swap": (
        "swap : bool, default: False\n"
        "    Use the distance of positive and negative if it is less than that of anchor and negative."
    ),
}
# ----------------------------------------------------------------------------------------------------------- convolutions
DESCRIPTIONS |= {
    "stride": ("stride : int or tuple of ints, default: 1\n    Step of the kernel from one element of the result to the next."),
    "padding": (
        'padding : int, tuple of ints, "same" or "valid", default: 0\n'
        '    Number of zeros added at both ends. "valid" adds none; "same" preserves the lengths, for stride 1.'
    ),
    "dilation": "dilation : int or tuple of ints, default: 1\n    Distance between the elements of the kernel.",
    "groups": "groups : int, default: 1\n    Number of groups of channels, which are convolved separately.",
    "stride_of_transposed": (
        "stride : int or tuple of ints, default: 1\n    Step of the kernel in the result from one element of `input` to the next."
    ),
    "output_padding": (
        "output_padding : int or tuple of ints, default: 0\n"
        "    Number of elements added at the end of the result; less than `stride` or `dilation`."
    ),
    "convolution_raises": (
        "TypeError\n"
        "    If an argument has the wrong type.\n"
        "RuntimeError\n"
        "    If the shapes or dtypes do not fit, the kernel is longer than the padded input, a number is out of range, or\n"
        '    `padding="same"` is given with a stride other than 1.'
    ),
    "transposed_convolution_raises": (
        "TypeError\n"
        "    If an argument has the wrong type.\n"
        "RuntimeError\n"
        "    If the shapes or dtypes do not fit, a number is out of range, or the result would be empty."
    ),
}
# ---------------------------------------------------------------------------------------------------------------- windows
DESCRIPTIONS |= {
    "kernel_size": "kernel_size : int or tuple of ints\n    Size K of a window.",
    "pool_stride": "stride : int or tuple of ints, optional\n    Step from one window to the next. If omitted, `kernel_size`.",
    "ceil_mode": (
        "ceil_mode : bool, default: False\n"
        "    Include a last window that extends past the end, if it starts in the input or in the padding before it."
    ),
    "return_indices": (
        "return_indices : bool, default: False\n    Return the indices of the maxima, too, in the flattened pooled dimensions."
    ),
    "window_raises": (
        "TypeError\n"
        "    If `input` is not a Tensor or a size is not an integer.\n"
        "RuntimeError\n"
        "    If `input` has the wrong number of dimensions, a number is out of range, or no window fits."
    ),
    "adaptive_raises": (
        "TypeError\n"
        "    If `input` is not a Tensor.\n"
        "RuntimeError\n"
        "    If `input` has the wrong number of dimensions or an empty one, or `output_size` the wrong length.\n"
        "NotImplementedError\n"
        "    If `input` holds integers or bools."
    ),
    "unfold_kernel": "kernel_size : int or tuple of ints\n    Height and width of a window.",
    "zeros_around": "padding : int or tuple of ints, default: 0\n    Number of zeros added at both ends.",
    "resized": (
        "size : int or tuple of ints, optional\n"
        "    Lengths of the dimensions after the channels: one for all, or one for each.\n"
        "scale_factor : float or tuple of floats, optional\n"
        "    Factor of the lengths, which are then rounded down, in place of `size`."
    ),
    "align_corners": ("align_corners : bool, optional\n    Align the centres of the corner elements instead of the outer edges."),
}
DESCRIPTIONS |= {
    f"output_size_{n}": f"output_size : {sizes}\n    Number of windows along {windows}. None keeps the length of the input."
    for n, (windows, sizes) in enumerate(zip(WINDOWS, SIZES, strict=True), start=1)
}
# ------------------------------------------------------------------------------------------------- features and embeddings
DESCRIPTIONS |= {
    "channel_weight": "weight : Tensor, optional\n    A factor for each channel, (C).",
    "channel_bias": "bias : Tensor, optional\n    A bias for each channel, (C).",
    "momentum": "momentum : float, default: 0.1\n    Weight of the batch in the running statistics.",
    "eps": "eps : float, default: 1e-05\n    Added to the variance.",
    "normalized_shape": ("normalized_shape : tuple of ints\n    Shape of the last dimensions, which are normalised together."),
    "norm_refused": "TypeError\n    If `input` is not a Tensor.\nNotImplementedError\n    If `input` holds integers or bools.",
    "max_norm": (
        "max_norm : float, optional\n    Rows that are read and have a larger norm are scaled down to this norm, in place."
    ),
    "norm_type": "norm_type : float, default: 2\n    Order of that norm.",
    "scale_grad_by_freq": (
        "scale_grad_by_freq : bool, default: False\n    Divide the gradient of a row by the number of times it was read."
    ),
    "sparse": "sparse : bool, default: False\n    Not supported: gradients are dense.",
    "dropped": "input : Tensor\n    The tensor, of any shape, floating point.",
    "p": "p : float, default: 0.5\n    Probability that an element or a channel is dropped, from 0 to 1.",
    "training": "training : bool, default: True\n    Whether to drop. If False, `input` is returned.",
    "training_off": "training : bool, default: False\n    Whether to drop. If False, `input` is returned.",
    "kept": "Tensor\n    Same shape and dtype as `input`; `input` itself if nothing is dropped.",
    "dropout_raises": (
        "ValueError\n"
        "    If `p` is not between 0 and 1.\n"
        "TypeError\n"
        "    If `input` is not a Tensor.\n"
        "RuntimeError\n"
        "    In training: if `input` holds integers or bools."
    ),
}


def with_descriptions(function: F) -> F:
    """Replace the names in braces in the docstring of a function by their descriptions."""
    if function.__doc__:
        function.__doc__ = NAMED.sub(lambda match: indent(DESCRIPTIONS[match[2]], match[1]), function.__doc__)
    return function


def document_twin_of(function: Callable[..., Any]) -> Callable[[F], F]:
    """Adapt the docstring of `function` to its in-place twin."""

    def document(twin: F) -> F:
        name, doc = function.__name__, function.__doc__
        if doc:
            _, _, sections = doc.partition("\n")
            sections = ARGUMENT.sub("", sections)
            sections = sections.replace("`inplace` and ", "").replace(f"F.{name}(", f"F.{name}_(")
            sections = sections.replace("Same shape and dtype as `input`.", "`input`.")
            twin.__doc__ = f"In-place version of `{name}`.\n{sections}"
        return twin

    return document

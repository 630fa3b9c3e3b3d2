"""What is said once of the arguments, results and refusals of many layers, activations and losses.

    @described
    def silu(input: Tensor, inplace: bool = False) -> Tensor: …

In the docstring `{inplace}` on a line of its own stands for the description below, or for one of `core.operator.PARAMETERS`. The
docstring of an in-place twin, `@twin_of(elu)`, is that of the function, but for the argument `inplace`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import indent
from typing import Any, TypeVar

from gradlab.core.operator import PARAMETERS

F = TypeVar("F", bound=Callable[..., Any])

INPLACE = "inplace : bool, default False\n    Whether the result is written into the memory of `input`, which is then returned."
# From Python 3.13 on a docstring has lost its indentation by the time that it is read here.
NAMED = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)
ARGUMENT = re.compile("".join(rf" *{re.escape(line.lstrip())}\n" for line in INPLACE.split("\n")))
WINDOWS = "the last dimension", "each of the last two dimensions", "each of the last three dimensions"
SIZES = "int, optional", "int or tuple of ints and None", "int or tuple of ints and None"

# ------------------------------------------------------------------------------------------------------------ activations
DESCRIPTIONS = PARAMETERS | {
    "floats": "input : Tensor\n    The tensor, of any shape, floating point.",
    "inplace": INPLACE,
    "same": "Tensor\n    Of the shape and dtype of `input`.",
    "refused": "TypeError\n    If `input` is no tensor.\nNotImplementedError\n    If `input` holds integers or bools.",
    "leaf": "RuntimeError\n    If `inplace` and `input` is a leaf that requires a gradient.",
}
# ----------------------------------------------------------------------------------------------------------------- losses
DESCRIPTIONS |= {
    "prediction": "input : Tensor\n    The predictions, of any shape.",
    "target": "target : Tensor\n    What they should be, of the shape of `input`; another one broadcasts, with a warning.",
    "class_weight": "weight : Tensor, optional\n    A factor for each class, (C).",
    "ignore_index": "ignore_index : int, default -100\n    A target that does not count.",
    "averaging": (
        "size_average, reduce : bool, optional\n"
        '    What `reduction` was before, deprecated: `reduce=False` is "none", `size_average=False` "sum", else it is\n'
        '    "mean".'
    ),
    "reduction": (
        'reduction : {"mean", "sum", "none"}, default "mean"\n'
        "    Whether the mean or the sum of the terms is returned, or the terms."
    ),
    "loss": 'Tensor\n    A number; with `reduction="none"` the terms, of the shape of `input`.',
    "loss1": 'Tensor\n    A number; with `reduction="none"` the terms, of the common shape.',
    "not_a_reduction": "ValueError\n    If `reduction` is none of the three.",
    "swap": (
        "swap : bool, default False\n"
        "    Whether the distance of positive and negative counts where it is less than that of anchor and negative."
    ),
}
# ----------------------------------------------------------------------------------------------------------- convolutions
DESCRIPTIONS |= {
    "stride": (
        "stride : int or tuple of ints, default 1\n    How far the kernel moves from one element of the result to the next."
    ),
    "padding": (
        'padding : int, tuple of ints, "same" or "valid", default 0\n'
        '    How many zeros are put at both ends; "valid" is none, "same" as many as keep the lengths, for stride 1.'
    ),
    "dilation": "dilation : int or tuple of ints, default 1\n    How far apart the kernel's elements lie.",
    "groups": "groups : int, default 1\n    In how many groups channels are connected, each with its own part of the result.",
    "stride_of_transposed": (
        "stride : int or tuple of ints, default 1\n"
        "    How far the kernel moves in the result from one element of `input` to the next."
    ),
    "output_padding": (
        "output_padding : int or tuple of ints, default 0\n"
        "    How many elements longer the result is at its far ends; less than `stride` or `dilation`."
    ),
    "convolution_raises": (
        "TypeError\n"
        "    If an argument is not of its type.\n"
        "RuntimeError\n"
        "    If the shapes or dtypes do not fit, the kernel is longer than the padded input, a number is out of range, or\n"
        '    `padding="same"` is given with another stride than 1.'
    ),
    "transposed_convolution_raises": (
        "TypeError\n"
        "    If an argument is not of its type.\n"
        "RuntimeError\n"
        "    If the shapes or dtypes do not fit, a number is out of range, or the result would have no element."
    ),
}
# ---------------------------------------------------------------------------------------------------------------- windows
DESCRIPTIONS |= {
    "kernel_size": "kernel_size : int or tuple of ints\n    The lengths K of a window.",
    "pool_stride": "stride : int or tuple of ints, optional\n    How far a window lies from the next; its length if left out.",
    "ceil_mode": (
        "ceil_mode : bool, default False\n"
        "    Whether a last window may hang over the end; its start lies inside or in the padding before."
    ),
    "return_indices": (
        "return_indices : bool, default False\n"
        "    Whether the places of the maxima are returned too, counted in the dimensions pooled."
    ),
    "window_raises": (
        "TypeError\n"
        "    If `input` is no tensor, or a size no integer.\n"
        "RuntimeError\n"
        "    If `input` has another number of dimensions, a number is out of range, or no window fits."
    ),
    "adaptive_raises": (
        "TypeError\n"
        "    If `input` is no tensor.\n"
        "RuntimeError\n"
        "    If `input` has another number of dimensions, or one without elements, or the size is not one number for each.\n"
        "NotImplementedError\n"
        "    If `input` holds integers or bools."
    ),
    "unfold_kernel": "kernel_size : int or tuple of ints\n    The height and width of a window.",
    "zeros_around": "padding : int or tuple of ints, default 0\n    How many zeros are put at both ends.",
    "resized": (
        "size : int or tuple of ints, optional\n"
        "    The lengths after channels, one for all or one for each.\n"
        "scale_factor : float or tuple of floats, optional\n"
        "    What the lengths are multiplied by, and rounded down, in place of `size`."
    ),
    "align_corners": (
        "align_corners : bool, optional\n    Whether the first and last elements keep their places, rather than the outer edges."
    ),
}
DESCRIPTIONS |= {
    f"output_size_{n}": f"output_size : {sizes}\n    How many windows there are along {windows}; None: as many as elements."
    for n, (windows, sizes) in enumerate(zip(WINDOWS, SIZES, strict=True), start=1)
}
# ------------------------------------------------------------------------------------------------- features and embeddings
DESCRIPTIONS |= {
    "channel_weight": "weight : Tensor, optional\n    A factor for each channel, (C).",
    "channel_bias": "bias : Tensor, optional\n    What is added to each channel, (C).",
    "momentum": "momentum : float, default 0.1\n    How far the running numbers move towards those of the batch.",
    "eps": "eps : float, default 1e-05\n    What is added to the variance.",
    "normalized_shape": (
        "normalized_shape : tuple of ints\n    The lengths of the last dimensions, which are normalised together."
    ),
    "norm_refused": "TypeError\n    If `input` is no tensor.\nNotImplementedError\n    If `input` holds integers or bools.",
    "max_norm": (
        "max_norm : float, optional\n    The norm that rows which are read are scaled down to, in place, if theirs is greater."
    ),
    "norm_type": "norm_type : float, default 2\n    The order of that norm.",
    "scale_grad_by_freq": (
        "scale_grad_by_freq : bool, default False\n    Whether the gradient of a row is divided by how often it was read."
    ),
    "sparse": "sparse : bool, default False\n    Not supported: gradients are dense.",
    "dropped": "input : Tensor\n    The tensor, of any shape, floating point.",
    "p": "p : float, default 0.5\n    The probability of being dropped, from 0 to 1.",
    "training": "training : bool, default True\n    Whether anything is dropped.",
    "training_off": "training : bool, default False\n    Whether anything is dropped.",
    "kept": "Tensor\n    Of the shape and dtype of `input`; `input` itself where nothing is dropped.",
    "dropout_raises": (
        "ValueError\n"
        "    If `p` is not between 0 and 1.\n"
        "TypeError\n"
        "    If `input` is no tensor.\n"
        "RuntimeError\n"
        "    In training: if `input` holds integers or bools."
    ),
}


def described(function: F) -> F:
    """The function, its docstring with the descriptions that it names."""
    if function.__doc__:
        function.__doc__ = NAMED.sub(lambda match: indent(DESCRIPTIONS[match[2]], match[1]), function.__doc__)
    return function


def twin_of(function: Callable[..., Any]) -> Callable[[F], F]:
    """Give an in-place twin the docstring of its function."""

    def document(twin: F) -> F:
        name, doc = function.__name__, function.__doc__
        if doc:
            _, _, sections = doc.partition("\n")
            sections = ARGUMENT.sub("", sections)
            sections = sections.replace("`inplace` and ", "").replace(f"F.{name}(", f"F.{name}_(")
            sections = sections.replace("Of the shape and dtype of `input`.", "`input`, with its new elements.")
            twin.__doc__ = f"`{name}`, written into the memory of `input`.\n{sections}"
        return twin

    return document

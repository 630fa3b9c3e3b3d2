"""Labels of nodes as the user writes operations (`×`, `mean(0)`, `.T`), from the node's name and arguments.

gradlab and PyTorch name their nodes alike (`MulBackward0`), so one table serves both. Operations that are not in the table get
their name in Python's spelling (`LogSoftmaxBackward0`: `log_softmax`), and the user's own functions the user's name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

# fmt: off
SIGNS = {
    "Add": "+", "Sub": "−", "Rsub": "−", "Mul": "×", "Div": "÷", "Pow": "**", "Remainder": "%", "Fmod": "fmod",
    "Mm": "@", "Bmm": "@", "Mv": "@", "Dot": "@", "Matmul": "@", "UnsafeMatmul": "@", "Addmm": "@ +", "Addmv": "@ +",
    "Baddbmm": "@ +", "Addbmm": "@ +", "T": ".T", "Mt": ".mT", "Neg": "neg", "Reciprocal": "1 ÷",
    "Index": "[…]", "Slice": "[…]", "Select": "[…]", "CopySlices": "[…] =", "IndexPut": "[…] =",
    "UnsafeView": "view", "ReshapeAlias": "reshape", "ToCopy": "to", "Fill": "fill_", "Zero": "zero_",
    "NativeBatchNormLegit": "batch_norm", "NativeBatchNormLegitNoTraining": "batch_norm", "FusedDropout": "dropout",
    "MkldnnRnnLayer": "lstm", "LstmMps": "lstm", "FusedRmsNorm": "rms_norm",
    "CudnnAttention": "scaled_dot_product_attention", "EfficientAttention": "scaled_dot_product_attention",
    "FlashAttention": "scaled_dot_product_attention",
    "Convolution": "conv", "ConvolutionOverrideable": "conv", "NnpackSpatialConvolution": "conv",
    "CudnnConvolutionTranspose": "conv", "MiopenConvolutionTranspose": "conv", "MpsConvolutionTranspose": "conv",
    "MaxPool2DWithIndices": "max_pool2d", "MaxPool3DWithIndices": "max_pool3d", "NllLoss2D": "nll_loss",
    "NllLossNd": "nll_loss", "NllLoss": "nll_loss", "AccumulateGrad": "leaf",
}
# fmt: on
REDUCTIONS = ("sum", "mean", "std", "var", "max", "min", "amax", "amin", "prod", "logsumexp")

BACKENDS = re.compile(r"^(?:Cudnn|Miopen|Mkldnn|Mps|Nnpack|Native|Slow|ThnnFused)(?=[A-Z])")
BACKWARD = re.compile(r"(?:Backward\d*)+$")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def sign(node_name: str) -> str:
    """Return the user's spelling of a node's operation: "×" for "MulBackward0"."""
    name = BACKWARD.sub("", node_name)
    if name in SIGNS:
        return SIGNS[name]
    if name == node_name or node_name.endswith("Backward"):  # no digit: a custom Function
        return name or node_name
    if name.startswith("ScaledDotProduct"):
        return "scaled_dot_product_attention"
    name = BACKENDS.sub("", name)
    return SIGNS.get(name) or _WORD.sub("_", name).lower()


def operation_label(node_name: str, settings: dict[str, Any], rank: int | None) -> str:
    """Return the user's spelling of an operation with its known settings: "mean(0)", "** 3", "permute(0, 2, 1)".

    Parameters
    ----------
    node_name : str
        For example "MeanBackward1".
    settings : dict
        Any of exponent; axis, axes (gradlab); dim, dims, dim0 and dim1 (PyTorch), as the node keeps them.
    rank : int or None
        The number of axes of the operation's argument, for counting axes from the left; None if unknown.
    """
    label = sign(node_name)
    if label == "**":
        return f"** {settings['exponent']:g}" if "exponent" in settings else label
    if not label.isidentifier() or label == "diagonal":
        return label
    keys = ("dim0", "dim1") if "dim0" in settings else ("dim", "dims", "axis", "axes")
    values = [settings[key] for key in keys if key in settings]
    axes = [axis for value in values for axis in (value if isinstance(value, tuple) else (value,))]
    if rank is not None:
        room = rank + (label in ("unsqueeze", "stack"))
        axes = [axis + room if axis < 0 else axis for axis in axes]
    if label == "transpose" and "axes" in settings:  # gradlab stores the whole permutation
        axes = [place for place, axis in enumerate(axes) if axis != place]
    if label in ("permute", "transpose") and rank == 2 and (label == "transpose" or axes == [1, 0]):
        return ".T"
    if not axes or (label in REDUCTIONS and axes == list(range(rank or 0))):
        return label  # over all axes
    return f"{label}({', '.join(map(str, axes))})"


def index_written(index: Any, axis: int | None) -> str:
    """Return an index stored by a node as it is written: "[0]", "[:, 1:3]"; "" if it contains more than numbers and slices.

    Parameters
    ----------
    index : tuple or int
        For gradlab, one entry per axis; for PyTorch's `select`, the position.
    axis : int or None
        The axis of PyTorch's `select`, not negative.
    """
    if isinstance(index, int) and axis is not None:
        index = (*[slice(None)] * axis, index)
    if not isinstance(index, tuple) or not index:
        return ""
    if index[-1] is Ellipsis:
        index = index[:-1]
    parts = []
    for part in index:
        if type(part) is int:
            parts.append(str(part))
        elif part is Ellipsis or part is None:
            parts.append("..." if part is Ellipsis else "None")
        elif isinstance(part, slice) and all(end is None or type(end) is int for end in (part.start, part.stop, part.step)):
            ends = ":".join("" if end is None else str(end) for end in (part.start, part.stop))
            parts.append(ends if part.step in (None, 1) else f"{ends}:{part.step}")
        else:
            return ""
    return f"[{', '.join(parts)}]" if parts else ""


def strip_numbers(label: str) -> str:
    """Return a label without the user's numbers: an index is "[…]", an axis is left out."""
    return "[…]" if label.startswith("[") else label.partition("(")[0]


def shorten(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters in the middle, since its ends distinguish names."""
    if len(text) <= limit:
        return text
    head = (limit - 1) // 3
    return f"{text[:head]}…{text[head + 1 - limit :]}"


def part_of_model(names: Sequence[str]) -> str:
    """Return the part of a model to which parameters belong: "net[3]" for "net[3].weight" and "net[3].bias".

    It is "" if they have nothing in common. For parameters of several parts it is the first and the last: "net[0] … net[8]".
    """
    if not names:
        return ""
    first, last = module_path(names[0]), module_path(names[-1])
    shared = min(common_parts(names[0], name) for name in names)
    ends = ["".join(parts[: shared + 1]) for parts in (first, last)]
    if len(first) == len(last) == shared or ends[0] == ends[1]:
        return "".join(first[:shared])
    return f"{ends[0]} … {ends[1]}"


def common_parts(one: str, other: str) -> int:
    """Return the number of leading steps that two names share."""
    shared = 0
    for a, b in zip(module_path(one), module_path(other), strict=False):
        if a != b:
            break
        shared += 1
    return shared


def steps_of(name: str) -> list[str]:
    """Return all steps of a name: "net", "[0]", ".weight" for "net[0].weight"; none for ""."""
    return re.split(r"(?=[.\[])", name) if name else []


def module_path(name: str) -> list[str]:
    """Return the steps to a parameter's module: "net", "[0]" for "net[0].weight" and for "net[0]"; none for "weight"."""
    steps = steps_of(name)
    return steps if steps and steps[-1].startswith("[") else steps[:-1]

"""Labels of function calls in a picture: "+", "transpose(1, 2)", "dropout(p=0.1)"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gradlab.explore.labels import shorten

LONGEST = 26  # characters
SIGNS = {
    **dict.fromkeys(("add", "__add__", "__radd__", "__iadd__", "add_"), "+"),
    **dict.fromkeys(("sub", "__sub__", "__isub__", "sub_", "rsub", "__rsub__"), "−"),
    **dict.fromkeys(("mul", "__mul__", "__rmul__", "__imul__", "mul_"), "×"),
    **dict.fromkeys(("div", "__div__", "__truediv__", "__itruediv__", "div_", "true_divide", "__rtruediv__", "__rdiv__"), "÷"),
    **dict.fromkeys(("floor_divide", "__floordiv__"), "//"),
    **dict.fromkeys(("pow", "__pow__", "__ipow__", "__rpow__"), "**"),
    **dict.fromkeys(("matmul", "__matmul__", "__rmatmul__", "mm", "bmm"), "@"),
    **dict.fromkeys(("gt", "__gt__", "greater"), ">"),
    **dict.fromkeys(("lt", "__lt__", "less"), "<"),
    **dict.fromkeys(("ge", "__ge__"), "≥"),
    **dict.fromkeys(("le", "__le__"), "≤"),
    **dict.fromkeys(("eq", "__eq__"), "=="),
    **dict.fromkeys(("ne", "__ne__"), "!="),
    **dict.fromkeys(("__and__", "logical_and", "bitwise_and"), "and"),
    **dict.fromkeys(("__or__", "logical_or", "bitwise_or"), "or"),
    **dict.fromkeys(("__invert__", "logical_not", "bitwise_not"), "not"),
    **dict.fromkeys(("neg", "__neg__"), "neg"),
    "__abs__": "abs",
    "T": ".T",
    "mT": ".mT",
    "data": ".data",
    "set data": ".data =",
}
REVERSED = frozenset(("__rsub__", "rsub", "__rtruediv__", "__rdiv__", "__rpow__"))
# Functions whose arguments are shown. Others, such as those of layers, are described by their module or their name.
# fmt: off
WITH_SETTINGS = frozenset((
    "view", "reshape", "transpose", "permute", "movedim", "swapaxes", "flatten", "unflatten", "squeeze", "unsqueeze",
    "expand", "repeat", "repeat_interleave", "mean", "sum", "prod", "std", "var", "max", "min", "amax", "amin", "argmax",
    "argmin", "norm", "softmax", "log_softmax", "logsumexp", "cumsum", "cumprod", "cat", "stack", "chunk", "split", "unbind",
    "topk", "sort", "roll", "flip", "pad", "interpolate", "clamp", "clamp_min", "clamp_max", "to", "type", "gather",
    "index_select", "select", "narrow", "masked_fill", "tril", "triu", "einsum", "one_hot", "zeros", "ones", "full", "arange",
    "linspace", "randn", "rand", "new_zeros", "new_ones", "zeros_like", "pixel_shuffle", "leaky_relu", "elu", "max_pool1d",
    "max_pool2d", "avg_pool1d", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "layer_norm",
))
# Calls that read a value from a tensor, on which the control flow of the program may depend.
READS = frozenset((
    "__bool__", "item", "tolist", "__int__", "__float__", "__index__", "__complex__", "is_nonzero", "equal", "allclose",
    "numpy", "__array__",
))
# Calls that return a property of a tensor and compute nothing.
SHAPES = frozenset((
    "size", "dim", "ndimension", "numel", "nelement", "stride", "is_contiguous", "is_floating_point", "is_complex",
    "is_same_size", "element_size", "get_device", "__len__", "__repr__", "__format__", "__hash__",
    "requires_grad_", "register_hook", "untyped_storage", "storage_offset", "data_ptr", "has_names",
    "retain_grad", "__dir__", "is_inference", "__deepcopy__", "__reduce_ex__", "__contains__",
))
# fmt: on
DROPOUTS = frozenset(
    ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout", "feature_dropout", "dropout_")
)


def label_of(function: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return the label of a call."""
    if function in ("__getitem__", "getitem"):
        return shorten(f"[{_index(args[1])}]", LONGEST) if len(args) > 1 else "[…]"
    if function == "__setitem__":
        return shorten(f"[{_index(args[1])}] =", LONGEST) if len(args) > 1 else "[…] ="
    sign = SIGNS.get(function)
    if sign is not None:
        numbers = [text for one in args[:2] if (text := _setting(one)) and not isinstance(one, bool)]
        if len(numbers) != 1:
            return sign
        return f"{numbers[0]} {sign}" if function in REVERSED else f"{sign} {numbers[0]}"
    if function in DROPOUTS:
        p = kwargs.get("p", args[1] if len(args) > 1 else None)
        return function if p is None else f"{function}(p={_setting(p)})"
    name = function.strip("_") if function.startswith("__") else function
    if function not in WITH_SETTINGS:
        return name
    given = [text for one in args if (text := _setting(one))]
    given += [
        text if key in ("dim", "dtype", "axis") else f"{key}={text}" for key, one in kwargs.items() if (text := _setting(one))
    ]
    inside = given[0][1:-1] if len(given) == 1 and given[0].startswith("(") else ", ".join(given)
    return shorten(f"{name}({inside})" if given else name, LONGEST)


def describe_call(function: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> str:
    """Return details of a call: that a dropout is off, or the value that was read."""
    if function in READS:
        return str(result) if isinstance(result, bool) else _setting(result)
    if function in DROPOUTS:
        training = kwargs.get("training", args[2] if len(args) > 2 else True)
        return "" if training else "off: not training"
    return ""


def _setting(value: Any) -> str:
    """Return a number, a string, a dtype or a tuple of these as a short text; "" for anything else."""
    kind = type(value)
    if value is None or kind is bool:
        return "" if value is None else str(bool(value))
    if kind is int:
        return str(value).replace("-", "−")
    if kind is float:
        return f"{value:.4g}".replace("-", "−")
    if kind is str:
        return str(value)
    if kind.__name__ == "dtype":
        return str(value).rpartition(".")[2]
    if kind.__name__ == "device":
        return str(value)
    if kind in (tuple, list) or kind.__name__ == "Size":
        if len(value) > 8 or not all(type(one) in (int, float) for one in value):
            return ""
        return f"({', '.join(map(_setting, value))})"
    return ""


def _index(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_index, value))
    if isinstance(value, slice):
        parts = ["" if one is None else str(one) if type(one) is int else "…" for one in (value.start, value.stop)]
        return ":".join(parts) + ("" if value.step is None else f":{value.step}")
    if value is None or value is Ellipsis:
        return "None" if value is None else "…"
    return str(value).replace("-", "−") if type(value) is int else "index"

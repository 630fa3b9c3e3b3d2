"""Format tensors exactly as PyTorch prints them.

An array with more than `threshold` elements is first cropped, on its own device, to the elements that will be shown: the first
and last `edgeitems` of each long axis. Only those are copied to the host. One style (integers, fixed point or scientific
notation, and one width) is chosen for the whole block. Each element becomes a cell of text, and the cells are joined from the
innermost axis outwards. Suffixes show the device, the dtype, grad_fn and so on. Each starts a new line if the current one would
exceed `linewidth`.

The text is PyTorch's with `torch.` replaced by `gradlab.`, which has three consequences. The width is that of the widest finite
nonzero element, so `nan`, `inf` and `-0.` may exceed their column. The style of a cropped array depends only on the elements
shown. Lines are broken as if the name were the shorter `torch.`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, move_to, namespace_of


@dataclass(frozen=True)
class PrintOptions:
    """Options of `set_printoptions`, with PyTorch's defaults."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


class _Current:
    options = PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed.

    Options that are not given keep their values, except `sci_mode`, which is reset to None.

    Parameters
    ----------
    precision : int, optional
        Digits after the decimal point (initially 4).
    threshold : float, optional
        Number of elements above which a tensor is summarised (initially 1000). Use `math.inf` to always print all of them.
    edgeitems : int, optional
        Elements shown at either end of a summarised axis (initially 3).
    linewidth : int, optional
        Characters per line (initially 80).
    profile : {"default", "short", "full"}, optional
        Predefined set of options. The other arguments take precedence over it.
    sci_mode : bool, optional
        Force (True) or forbid (False) scientific notation. If None, it is chosen by the magnitudes.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        If `profile` is unknown, or if another option is not a number or is negative.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_printoptions(precision=2)
    >>> gl.tensor(3.14159)
    tensor(3.14)
    >>> gl.set_printoptions(profile="default")
    """
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"profile must be one of {', '.join(map(repr, PROFILES))}, got {profile!r}.")
    options: dict[str, Any] = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    for name, value in options.items():
        if value is not None and not (isinstance(value, (int, float)) and value >= 0):
            raise ValueError(f"{name} must be a non-negative number, got {value!r}.")
    base = _Current.options if profile is None else PROFILES[profile]
    _Current.options = replace(base, sci_mode=sci_mode, **{name: value for name, value in options.items() if value is not None})


def get_printoptions() -> dict[str, Any]:
    """Return the current options as keyword arguments for `set_printoptions`."""
    return asdict(_Current.options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options for a `with` block. Takes the arguments of `set_printoptions`."""
    before = _Current.options
    set_printoptions(**options)
    try:
        yield
    finally:
        _Current.options = before


# ------------------------------------------------------------------------------------------------------------ elements
def _fixed_or_scientific(values: Sequence[float]) -> tuple[str, str]:
    """Return the format specification for finite nonzero floats and the suffix of each number."""
    integral = all(value.is_integer() for value in values)
    scientific = _Current.options.sci_mode
    if scientific is None:
        largest, smallest = max(map(abs, values)), min(map(abs, values))
        scientific = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
    if scientific:
        return f".{_Current.options.precision}e", ""
    return (".0f", ".") if integral else (f".{_Current.options.precision}f", "")


def _cells(block: np.ndarray) -> tuple[list[str], int]:
    """Return the elements as text in C order, right-aligned to one width, and that width."""
    values = block.ravel().tolist()
    if block.dtype.kind != "f":
        texts = [str(value) for value in values]
        width = max(map(len, texts), default=1)
    else:
        nonzero = [value for value in values if value and math.isfinite(value)]
        spec, point = _fixed_or_scientific(nonzero) if nonzero else (".0f", ".")
        texts = [format(value, spec) + (point if math.isfinite(value) else "") for value in values]
        width = max((len(text) for text, value in zip(texts, values, strict=True) if value and math.isfinite(value)), default=1)
    return [text.rjust(width) for text in texts], width


# -------------------------------------------------------------------------------------------------------------- layout
def _crop(array: Any, edge: int) -> tuple[np.ndarray, list[bool]]:
    """Return the shown elements of a summarised array, on the host, and a flag for each axis whose middle was cut out."""
    xp = namespace_of[type(array)]
    cut = [length > 2 * edge for length in array.shape]
    for axis, is_cut in enumerate(cut):
        if is_cut:
            before = (slice(None),) * axis
            array = xp.concatenate((array[(*before, slice(edge))], array[(*before, slice(-edge, None))]), axis)
    return move_to(array, CPU), cut


def _groups(cells: list[str], length: int, is_cut: bool, gap: str) -> Iterator[list[str]]:
    """Yield consecutive groups of `length` cells, with `gap` in the middle of each if the axis was cut."""
    for start in range(0, len(cells), length):
        group = cells[start : start + length]
        if is_cut:
            group.insert(length // 2, gap)
        yield group


def format_array(array: Any, *, indent: int = 7) -> str:
    """Return the elements of an array in brackets, as PyTorch prints them.

    Parameters
    ----------
    array : array of any backend
        Boolean, integer or floating-point elements, any shape.
    indent : int, default: 7
        Length of the text before the first bracket. Later lines are indented by it.

    Returns
    -------
    str
        `"[[1., 2.],\\n        [3., 4.]]"`, or `"[]"` for an empty array.
    """
    if array.size == 0:
        return "[]"
    cut = [False] * array.ndim
    if array.size > _Current.options.threshold and array.ndim:
        if not _Current.options.edgeitems:
            return "[...]"
        block, cut = _crop(array, _Current.options.edgeitems)
    else:
        block = move_to(array, CPU)
    cells, width = _cells(block)
    per_line = max(1, (_Current.options.linewidth - indent - block.ndim + 1) // (width + 2))
    for axis in reversed(range(block.ndim)):
        innermost = axis == block.ndim - 1
        newline = "\n" * (1 if innermost else block.ndim - 1 - axis) + " " * (indent + axis + 1)
        rows = []
        for group in _groups(cells, block.shape[axis], cut[axis], " ..." if innermost else "..."):
            if innermost:
                group = [", ".join(group[start : start + per_line]) for start in range(0, len(group), per_line)]
            rows.append("[" + ("," + newline).join(group) + "]")
        cells = rows
    return cells[0]


def tensor_repr(
    array: Any,
    *,
    dtype_name: str,
    default_dtype_name: str = "float32",
    requires_grad: bool = False,
    grad_fn_name: str | None = None,
    device: str | None = None,
    prefix: str = "tensor(",
    tangent: object = None,
) -> str:
    """Return the `repr` of a tensor.

    Parameters
    ----------
    array : array of any backend
        Values.
    dtype_name, default_dtype_name : str
        Names such as `"float64"`. Shown as `dtype=gradlab.float64` unless the dtype can be inferred from the numbers.
    requires_grad : bool, default: False
        Shown if there is no `grad_fn_name`.
    grad_fn_name : str, optional
        Name of the node that created the tensor (`"MulBackward0"`).
    device : str, optional
        Device to show (`"cuda:0"`). Omit it for the default device.
    prefix : str, default: "tensor("
        Text before the numbers. Its length is the indentation.
    tangent : object, optional
        Tangent of a dual tensor, shown by its `str`.
    """
    suffixes = []
    if device is not None:
        suffixes.append(f"device='{device}'")
    if array.size == 0:
        shows_shape, inferred = array.ndim != 1, {default_dtype_name}
    else:
        shows_shape, inferred = not _Current.options.edgeitems, {default_dtype_name, "int64", "bool"}
    if shows_shape:
        suffixes.append(f"size={tuple(array.shape)}")
    if dtype_name not in inferred:
        suffixes.append(f"dtype=gradlab.{dtype_name}")
    if grad_fn_name is not None:
        suffixes.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        suffixes.append("requires_grad=True")
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")

    text = prefix + format_array(array, indent=len(prefix))
    column = len(text) - text.rfind("\n") + 1  # counted as in PyTorch: one or two more than the length of the line
    for suffix in suffixes:
        length = len(suffix.replace("gradlab.", "torch."))
        if column + length + 2 > _Current.options.linewidth:
            text += ",\n" + " " * len(prefix) + suffix
            column = len(prefix) + length
        else:
            text += ", " + suffix
            column += length + 2
    return text + ")"

"""How a tensor is written: PyTorch's layout, to the character.

An array of more than `threshold` elements is first cropped to the elements that will be shown (the first and last
`edgeitems` of each long axis), on its own device; only those travel to the host. Then one *style* is chosen for the
whole block (integers, fixed point or scientific, one width), each element becomes a cell of text, and the cells are
joined from the innermost axis outwards. Facts that the numbers do not show (device, dtype, grad_fn …) follow as
suffixes, each on a new line where the line would pass `linewidth`.

Three things are as they are so that the text is PyTorch's own with `torch.` written `gradlab.`: the width is that of
the widest finite nonzero element, so `nan`, `inf` and `-0.` may stick out of their column; the style of a cropped array
is decided by the elements shown; and lines are broken as if the shorter name stood there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gradlab.backend.namespaces import CPU, moved, namespace_of


@dataclass(frozen=True)
class PrintOptions:
    """What `set_printoptions` sets; the defaults are PyTorch's."""

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
    """Set how tensors are printed; what is not given stays, except `sci_mode`, which returns to None.

    Parameters
    ----------
    precision : int
        Digits after the decimal point (4).
    threshold : float
        Tensors with more elements than this are summarised (1000; `math.inf` never).
    edgeitems : int
        Elements shown at either end of a summarised axis (3).
    linewidth : int
        Characters a line (80).
    profile : {"default", "short", "full"}
        A set of the above, over which the other arguments take precedence.
    sci_mode : bool
        Force (True) or forbid (False) scientific notation. None decides by the magnitudes.

    Returns
    -------
    None

    Raises
    ------
    ValueError
        If there is no such profile, or a number is none or is below 0.

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
            raise ValueError(f"{name} must be a number not below 0, got {value!r}.")
    base = _Current.options if profile is None else PROFILES[profile]
    _Current.options = replace(base, sci_mode=sci_mode, **{name: value for name, value in options.items() if value is not None})


def get_printoptions() -> dict[str, Any]:
    """The current options, as keywords for `set_printoptions`."""
    return asdict(_Current.options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Set print options (as `set_printoptions`) for the extent of a `with` block."""
    before = _Current.options
    set_printoptions(**options)
    try:
        yield
    finally:
        _Current.options = before


# ------------------------------------------------------------------------------------------------------------ elements
def _fixed_or_scientific(values: Sequence[float]) -> tuple[str, str]:
    """The format specification for these finite nonzero floats, and what is appended to each number."""
    integral = all(value.is_integer() for value in values)
    scientific = _Current.options.sci_mode
    if scientific is None:
        largest, smallest = max(map(abs, values)), min(map(abs, values))
        scientific = largest / smallest > 1000 or largest > 1e8 or smallest < 1e-4
    if scientific:
        return f".{_Current.options.precision}e", ""
    return (".0f", ".") if integral else (f".{_Current.options.precision}f", "")


def _cells(block: np.ndarray) -> tuple[list[str], int]:
    """The elements as text in C order, right-aligned to one width, and that width."""
    values = block.ravel().tolist()
    if block.dtype.kind != "f":
        texts = [str(value) for value in values]
        width = max(map(len, texts), default=1)
    else:
        telling = [value for value in values if value and math.isfinite(value)]
        spec, point = _fixed_or_scientific(telling) if telling else (".0f", ".")
        texts = [format(value, spec) + (point if math.isfinite(value) else "") for value in values]
        width = max((len(text) for text, value in zip(texts, values, strict=True) if value and math.isfinite(value)), default=1)
    return [text.rjust(width) for text in texts], width


# -------------------------------------------------------------------------------------------------------------- layout
def _crop(array: Any, edge: int) -> tuple[np.ndarray, list[bool]]:
    """The elements shown of an array that is summarised, on the host, and which axes had their middle cut out."""
    xp = namespace_of[type(array)]
    cut = [length > 2 * edge for length in array.shape]
    for axis, is_cut in enumerate(cut):
        if is_cut:
            before = (slice(None),) * axis
            array = xp.concatenate((array[(*before, slice(edge))], array[(*before, slice(-edge, None))]), axis)
    return moved(array, CPU), cut


def _groups(cells: list[str], length: int, is_cut: bool, gap: str) -> Iterator[list[str]]:
    """Consecutive runs of `length` cells, with `gap` in the middle of each where the axis was cut."""
    for start in range(0, len(cells), length):
        group = cells[start : start + length]
        if is_cut:
            group.insert(length // 2, gap)
        yield group


def format_array(array: Any, *, indent: int = 7) -> str:
    """The elements of an array in brackets, as PyTorch writes them.

    Parameters
    ----------
    array : array of any backend
        bool, integer or floating-point elements, any shape.
    indent : int
        How far the text that precedes the first bracket reaches: the lines after the first are indented by as much.

    Returns
    -------
    str
        `"[[1., 2.],\\n        [3., 4.]]"`; `"[]"` where there is no element.
    """
    if array.size == 0:
        return "[]"
    cut = [False] * array.ndim
    if array.size > _Current.options.threshold and array.ndim:
        if not _Current.options.edgeitems:
            return "[...]"
        block, cut = _crop(array, _Current.options.edgeitems)
    else:
        block = moved(array, CPU)
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
    """The text of a tensor, as `repr` gives it.

    Parameters
    ----------
    array : array of any backend
        The values.
    dtype_name, default_dtype_name : str
        `"float64"`: shown as `dtype=gradlab.float64` where a reader could not infer it from the numbers.
    requires_grad : bool
        Shown where there is no `grad_fn_name`.
    grad_fn_name : str, optional
        Name of the node that made the tensor (`"MulBackward0"`).
    device : str, optional
        Given only where it is to be shown (`"cuda:0"`): it is not the default one.
    prefix : str
        What precedes the numbers; its length is the indentation.
    tangent : object, optional
        The tangent of a dual tensor, shown by its `str`.
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
    column = len(text) - text.rfind("\n") + 1  # PyTorch's count; one or two more than the line is long
    for suffix in suffixes:
        length = len(suffix.replace("gradlab.", "torch."))
        if column + length + 2 > _Current.options.linewidth:
            text += ",\n" + " " * len(prefix) + suffix
            column = len(prefix) + length
        else:
            text += ", " + suffix
            column += length + 2
    return text + ")"

"""PyTorch's names for the order of elements in memory: `layout`, which is always `strided`, and `memory_format`.

An array has its own strides. A memory format is only used when a copy is made.
"""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import advice


class layout:  # noqa: N801  (torch's name)
    """The storage layout of a tensor. There is only one: `gradlab.strided`.

    Parameters
    ----------
    name : str
        The name of the layout. Users do not create layouts.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(2).layout
    gradlab.strided
    """

    __module__ = "gradlab"

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"gradlab.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format(layout):  # noqa: N801  (torch's name)
    """The order of axes in memory.

    Parameters
    ----------
    name : str
        The name of the format: `contiguous_format`, `preserve_format`, `channels_last` or `channels_last_3d`. Users do not create
        formats.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.ones(1, 2, 3, 3).to(memory_format=gl.channels_last).stride()
    (18, 1, 6, 2)
    """

    __module__ = "gradlab"


strided = layout("strided")
contiguous_format, preserve_format = memory_format("contiguous_format"), memory_format("preserve_format")
channels_last, channels_last_3d = memory_format("channels_last"), memory_format("channels_last_3d")
CHANNELS_LAST_NDIM = {channels_last: 4, channels_last_3d: 5}


def check_strided(wanted: Any) -> None:
    """Raise an error if the layout is not `strided`."""
    if wanted is not strided:
        raise (
            NotImplementedError(f"gradlab's tensors are dense: {wanted} is not supported.")
            if isinstance(wanted, layout)
            else TypeError(f"argument 'layout' must be gradlab.layout, not {type(wanted).__name__}")
        )


def _is_channels_last(array: Any, wanted: Any) -> bool:
    """Return True for a channels-last format. Raise an error if the array does not have its number of axes."""
    if not isinstance(wanted, memory_format):
        raise TypeError(f"argument 'memory_format' must be gradlab.memory_format, not {type(wanted).__name__}")
    axes = CHANNELS_LAST_NDIM.get(wanted)
    if axes is not None and array.ndim != axes:
        raise RuntimeError(f"required rank {axes} tensor to use {wanted.name} format. The tensor has {array.ndim} axes.")
    return axes is not None


def channels_last_view(array: Any) -> Any:
    """Move the channels to the last axis. The view of an array in a channels-last format is C-contiguous."""
    return array.transpose(0, *range(2, array.ndim), 1)


def has_memory_format(array: Any, wanted: Any) -> bool:
    """Return True if the elements are in that order in memory."""
    if wanted is preserve_format:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator. " + advice("Use gradlab.contiguous_format.")
        )
    return bool((channels_last_view(array) if _is_channels_last(array, wanted) else array).flags.c_contiguous)


def to_memory_format(array: Any, wanted: Any) -> Any:
    """Return the array if its elements are in that order in memory, otherwise a copy."""
    if wanted is None or wanted is preserve_format:
        return array
    if not _is_channels_last(array, wanted):
        return namespace_of[type(array)].ascontiguousarray(array) if array.ndim else array
    last = namespace_of[type(array)].ascontiguousarray(channels_last_view(array))
    return last.transpose(0, -1, *range(1, array.ndim - 1))

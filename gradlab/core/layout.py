"""How elements lie in memory, as torch names it: `layout`, which is `strided` alone, and `memory_format`, an order of the axes.

An array carries its own strides, so a memory format is only ever what a copy is made in.
"""

from __future__ import annotations

from typing import Any

from gradlab.backend.namespaces import namespace_of
from gradlab.core.errors import advice


class layout:  # noqa: N801  (torch's name)
    """How a tensor is stored. There is one: `gradlab.strided`.

    Parameters
    ----------
    name : str
        How it is spelled. It is not made by hand.

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
    """The order in which axes lie in memory.

    Parameters
    ----------
    name : str
        How it is spelled. It is not made by hand: there are `contiguous_format`, `preserve_format`, `channels_last`,
        `channels_last_3d`.

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
AXES = {channels_last: 4, channels_last_3d: 5}


def only_strided(wanted: Any) -> None:
    """Raise unless the layout is the one there is."""
    if wanted is not strided:
        raise (
            NotImplementedError(f"gradlab's tensors are dense: {wanted} is not supported.")
            if isinstance(wanted, layout)
            else TypeError(f"argument 'layout' must be gradlab.layout, not {type(wanted).__name__}")
        )


def _checked(array: Any, wanted: Any) -> bool:
    """Whether it is a format with channels last, for which the array has the axes."""
    if not isinstance(wanted, memory_format):
        raise TypeError(f"argument 'memory_format' must be gradlab.memory_format, not {type(wanted).__name__}")
    axes = AXES.get(wanted)
    if axes is not None and array.ndim != axes:
        raise RuntimeError(f"required rank {axes} tensor to use {wanted.name} format. This one has {array.ndim} axes.")
    return axes is not None


def channels_in_front(array: Any) -> Any:
    """The view whose axes, of an array with channels last, are contiguous."""
    return array.transpose(0, *range(2, array.ndim), 1)


def is_arranged(array: Any, wanted: Any) -> bool:
    """Whether the elements lie in that order."""
    if wanted is preserve_format:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator. " + advice("Give gradlab.contiguous_format.")
        )
    return bool((channels_in_front(array) if _checked(array, wanted) else array).flags.c_contiguous)


def arranged(array: Any, wanted: Any) -> Any:
    """The elements in that order in memory: the array itself, or a copy."""
    if wanted is None or wanted is preserve_format:
        return array
    if not _checked(array, wanted):
        return namespace_of[type(array)].ascontiguousarray(array) if array.ndim else array
    last = namespace_of[type(array)].ascontiguousarray(channels_in_front(array))
    return last.transpose(0, -1, *range(1, array.ndim - 1))

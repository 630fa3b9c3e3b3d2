"""Parameters and buffers: tensors that a module registers when they are assigned to it.

Both are plain tensors that carry a mark (`Tensor._role`), and `isinstance` asks for the mark. So a layer's weights take the
same quick path through every operation as any other tensor; a subclass would be slower everywhere.
"""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import FIX_INTEGER_PARAMETER, advice, cannot_require_grad
from gradlab.core.observers import OBSERVERS, notify_detach
from gradlab.core.storage import own_storage
from gradlab.core.tensor import Tensor, constant
from gradlab.ops.creation import empty

__all__ = ["Buffer", "Parameter"]

PARAMETER, BUFFER, TEMPORARY = "Parameter", "Buffer", "Buffer that is not saved"


def marked(data: Any, role: str) -> Tensor:
    """`data`'s memory as a tensor of its own, without history, that carries the mark."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"{role.split()[0]}(): argument 'data' must be Tensor, not {type(data).__name__}. "
            + advice("Make it one first: gradlab.tensor(…).")
        )
    tensor = constant(data.array)
    tensor.storage, tensor._role = own_storage(data), role
    if OBSERVERS:
        notify_detach(tensor, data, f"{role.split()[0]}()")
    return tensor


class Marked(type):
    """The type of `Parameter` and `Buffer`: `isinstance` asks a tensor for its mark."""

    roles: tuple[str, ...] = ()

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is Tensor and getattr(instance, "_role", "") in cls.roles


class ParameterType(Marked):
    """Calling `Parameter` marks a tensor."""

    def __call__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        tensor = marked(data, PARAMETER)
        if requires_grad:
            if tensor.array.dtype.kind != "f":
                first = "Only Tensors of floating point and complex dtype can require gradients. This one has dtype"
                raise cannot_require_grad(first, tensor.dtype, FIX_INTEGER_PARAMETER)
            tensor.requires_grad_()
        return tensor


class BufferType(Marked):
    """Calling `Buffer` marks a tensor."""

    def __call__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        tensor = marked(data, BUFFER if persistent else TEMPORARY)
        return tensor.requires_grad_() if data is not None and data.requires_grad else tensor


class Parameter(Tensor, metaclass=ParameterType):
    """A tensor to be learned: a module that it is assigned to lists it among its parameters.

    Parameters
    ----------
    data : Tensor, optional
        The values, whose memory it shares; without them it is empty.
    requires_grad : bool, optional
        Whether gradients are computed for it: True unless given.

    Raises
    ------
    TypeError
        If `data` is not a tensor.
    RuntimeError
        If `requires_grad` is True and the dtype is not floating point.

    Notes
    -----
    It is a leaf, whatever history `data` had.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> weight = nn.Parameter(gradlab.tensor([1.0, 2.0]))
    >>> (weight ** 2).sum().backward()
    >>> weight.grad
    tensor([2., 4.])
    """

    __slots__ = ()
    __module__ = "gradlab.nn.parameter"
    roles = (PARAMETER,)

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        """What `Parameter(…)` takes; the metaclass makes the tensor."""


class Buffer(Tensor, metaclass=BufferType):
    """A tensor of a module's state that is not learned: it moves and is saved with the module.

    Parameters
    ----------
    data : Tensor, optional
        The values, whose memory it shares; without them it is empty.
    persistent : bool, optional
        Whether it is in the `state_dict`: True unless given.

    Raises
    ------
    TypeError
        If `data` is not a tensor.

    Examples
    --------
    >>> import gradlab
    >>> from gradlab import nn
    >>> layer = nn.Identity()
    >>> layer.seen = nn.Buffer(gradlab.tensor(3))
    >>> layer.state_dict()["seen"]
    tensor(3)
    """

    __slots__ = ()
    __module__ = "gradlab.nn.parameter"
    roles = (BUFFER, TEMPORARY)

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True) -> None:
        """What `Buffer(…)` takes; the metaclass makes the tensor."""

"""Parameters and buffers: tensors that a module registers when they are assigned to it.

Both are plain tensors with a mark (`Tensor._role`), which `isinstance` checks. So operations on weights take the same fast path
as on any other tensor. A subclass would make them slower.
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


def make_marked(data: Any, role: str) -> Tensor:
    """Return a new tensor with the memory of `data`, without history, and with a mark."""
    if data is None:
        data = empty(0)
    if not isinstance(data, Tensor):
        raise TypeError(
            f"{role.split()[0]}(): argument 'data' must be Tensor, not {type(data).__name__}. "
            + advice("Convert it first: gradlab.tensor(…).")
        )
    tensor = constant(data.array)
    tensor.storage, tensor._role = own_storage(data), role
    if OBSERVERS:
        notify_detach(tensor, data, f"{role.split()[0]}()")
    return tensor


class MarkedType(type):
    """Metaclass of `Parameter` and `Buffer`, whose `isinstance` checks the mark of a tensor."""

    roles: tuple[str, ...] = ()

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is Tensor and getattr(instance, "_role", "") in cls.roles


class ParameterType(MarkedType):
    """Metaclass of `Parameter`: calling it marks a tensor."""

    def __call__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        tensor = make_marked(data, PARAMETER)
        if requires_grad:
            if tensor.array.dtype.kind != "f":
                first = "Only Tensors of floating point and complex dtype can require gradients. This one has dtype"
                raise cannot_require_grad(first, tensor.dtype, FIX_INTEGER_PARAMETER)
            tensor.requires_grad_()
        return tensor


class BufferType(MarkedType):
    """Metaclass of `Buffer`: calling it marks a tensor."""

    def __call__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        tensor = make_marked(data, BUFFER if persistent else TEMPORARY)
        return tensor.requires_grad_() if data is not None and data.requires_grad else tensor


class Parameter(Tensor, metaclass=ParameterType):
    """A tensor to train. A module registers it as a parameter when it is assigned as an attribute.

    Parameters
    ----------
    data : Tensor, optional
        The values, whose memory is shared (default: an empty tensor).
    requires_grad : bool, optional
        Whether the parameter requires a gradient (default: True).

    Raises
    ------
    TypeError
        If `data` is not a tensor.
    RuntimeError
        If `requires_grad` is True and the dtype is not floating point.

    Notes
    -----
    A parameter is a leaf, even if `data` has a history.

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
        """Declare the arguments of `Parameter(…)`. The metaclass creates the tensor."""


class Buffer(Tensor, metaclass=BufferType):
    """A tensor of a module's state that is not trained. It is moved and saved with the module.

    Parameters
    ----------
    data : Tensor, optional
        The values, whose memory is shared (default: an empty tensor).
    persistent : bool, optional
        Include the buffer in the `state_dict` (default: True).

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
        """Declare the arguments of `Buffer(…)`. The metaclass creates the tensor."""

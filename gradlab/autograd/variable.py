"""`Variable(tensor, requires_grad=…)`: what older texts write for a tensor that requires gradients."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """The tensor itself, detached: torch's older name for tensors.

    Parameters
    ----------
    data : Tensor, optional
        A tensor; none, an empty one.
    requires_grad : bool, default False
        Whether it asks for gradients.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `data` is no tensor.
    RuntimeError
        If it asks for gradients and is not floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.autograd.Variable(gl.ones(2), requires_grad=True)
    tensor([1., 1.], requires_grad=True)
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = False) -> Tensor:  # type: ignore[misc]
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(requires_grad)

"""`Variable(tensor, requires_grad=…)`, the way in which older PyTorch code makes a tensor that requires gradients."""

from __future__ import annotations

from typing import Any

from gradlab.core.tensor import Tensor


class _VariableMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """Return the tensor, detached. `Variable` is PyTorch's older name for tensors.

    Parameters
    ----------
    data : Tensor, optional
        Tensor to detach. Without it, an empty tensor is made.
    requires_grad : bool, default: False
        Whether the result requires gradients.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If `data` is not a Tensor.
    RuntimeError
        If `requires_grad` is True and `data` is not floating point.

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

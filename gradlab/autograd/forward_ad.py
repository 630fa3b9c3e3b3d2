"""Forward-mode differentiation with dual tensors, with the names of `torch.autograd.forward_ad`.

>>> import gradlab as gl
>>> import gradlab.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(gl.tensor([1., 2.]), gl.tensor([1., 0.]))
...     print(fwAD.unpack_dual((x * x).sum()).tangent)
tensor(2.)

A dual tensor carries a tangent, and operations propagate it. The implementation is in `core.tangents`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

from gradlab.core import tangents
from gradlab.core.errors import type_name
from gradlab.core.modes import DecoratorContextManager, mode
from gradlab.core.scopes import scope_guard
from gradlab.core.tensor import Tensor
from gradlab.rules.shapes import reshape

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """Result of `unpack_dual`: the tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a forward AD level, inside which tensors can have tangents. Return its number, 0."""
    if tangents.level_state.level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. A level is already open in this thread: exit it first. "
            "For a second derivative, compute the gradient of a tangent or the tangent of a gradient."
        )
    tangents.enter_level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Exit the forward AD level. No tensor has a tangent afterwards."""
    if tangents.level_state.level is None:
        raise RuntimeError("Dual level must be a positive number. No level is open in this thread.")
    if level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported. "
            f"The open level is 0, not {level}."
        )
    tangents.leave_level()


def _open_level() -> AbstractContextManager[int]:
    """Return a context manager that opens a level. A level that is already open stays open at the end."""
    own = tangents.level_state.level is None

    def end() -> None:
        if own and tangents.level_state.level is not None:
            tangents.leave_level()

    return scope_guard(enter_dual_level, end)


class dual_level(DecoratorContextManager):  # noqa: N801  (torch's name)
    """Context manager and decorator that opens a forward AD level. Tensors lose their tangents on exit."""

    def __enter__(self) -> int:  # type: ignore[override]
        self.opened = _open_level()
        return self.opened.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.opened.__exit__(None, None, None)


def check_tangent(primal: Tensor, tangent: Tensor) -> None:
    """Raise an error if `primal` cannot have `tangent` as its tangent."""
    for what, tensor in (("primal", primal), ("tangent", tangent)):
        if tensor.array.dtype.kind != "f":
            raise ValueError(f"Expected {what} to be floating point or complex, but got: {tensor.dtype}. Call .float() first.")
    if tangent.array.shape != primal.array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is "
            f"not supported. Tensor is of size {list(primal.array.shape)} while the given forward gradient is of "
            f"size {list(tangent.array.shape)}."
        )


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a view of `tensor` with `tangent`, which must have the same shape, as its tangent. Gradients flow to both.

    The tangent is copied only if its memory layout differs from that of `tensor`. Otherwise, a write to the dual tensor also
    writes to `tangent`.
    """
    if tangents.level_state.level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if level:
        raise RuntimeError(f"Invalid level given to _make_dual. The open level is 0, not {level}.")
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual(): the {what} must be a Tensor, not {type_name(value)}.")
    check_tangent(tensor, tangent)
    if tangents.tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is "
            "not supported. Use unpack_dual(tensor).primal, which has no tangent."
        )
    if tangents.tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported. "
            "Use unpack_dual(tangent).primal, which has no tangent."
        )
    with tangents.level_state.level as opened:
        dual = reshape.record(tensor, shape=tensor.array.shape)
        if mode.forward:
            opened.assign(dual, tangents.match_layout(tangent, tensor.array))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal, a view of `tensor` without tangent, and the tangent, or None if it has no tangent."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type_name(tensor)}")
    opened = tangents.level_state.level
    if opened is None:
        return UnpackedDualTensor(tensor, None)
    if level:
        raise RuntimeError(f"Invalid level given to _fw_primal. The open level is 0, not {level}.")
    tangent = tangents.tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with opened:
        primal = reshape.record(tensor, shape=tensor.array.shape)
    opened.assign(primal, None)
    return UnpackedDualTensor(primal, tangent)


class _set_fwd_grad_enabled(DecoratorContextManager):  # noqa: N801  (torch's name)
    """Context manager and decorator that enables or disables the computation of tangents."""

    def __init__(self, mode: bool) -> None:
        self.before = globals()["mode"].forward
        globals()["mode"].forward = self.wanted = mode

    def __enter__(self) -> None:  # type: ignore[override]
        mode.forward = self.wanted

    def __exit__(self, *raised: Any) -> None:
        mode.forward = self.before

    def new_context(self) -> DecoratorContextManager:
        return type(self)(self.wanted)


def _is_fwd_grad_enabled() -> bool:
    return mode.forward

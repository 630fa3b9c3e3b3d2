"""Forward mode, as `torch.autograd.forward_ad` spells it: tensors that carry a tangent, and operations that pass it on.

>>> import gradlab as gl
>>> import gradlab.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(gl.tensor([1., 2.]), gl.tensor([1., 0.]))
...     print(fwAD.unpack_dual((x * x).sum()).tangent)
tensor(2.)

`core.tangents` says how it is done.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

from gradlab.core import tangents
from gradlab.core.errors import type_name
from gradlab.core.modes import Decorating, mode
from gradlab.core.scopes import scoped
from gradlab.core.tensor import Tensor
from gradlab.rules.shapes import reshape

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the tensor without its tangent, and the tangent or None."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Open a level, within which tensors can have tangents. Returns its number, 0."""
    if tangents.opened.level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. A level is open in this thread: leave it "
            "first. A second derivative comes from a gradient of the tangent, or a tangent of the gradient."
        )
    tangents.enter()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: no tensor has a tangent afterwards."""
    if tangents.opened.level is None:
        raise RuntimeError("Dual level must be a positive number. No level is open in this thread.")
    if level:
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This is not supported. "
            f"The level that is open is 0, not {level}."
        )
    tangents.leave()


def _level() -> AbstractContextManager[int]:
    """A level for an extent; one that is open already is not closed."""
    own = tangents.opened.level is None

    def end() -> None:
        if own and tangents.opened.level is not None:
            tangents.leave()

    return scoped(enter_dual_level, end)


class dual_level(Decorating):  # noqa: N801  (torch's name)
    """Context manager and decorator: a level is open inside it, and its tangents are gone when it ends."""

    def __enter__(self) -> int:  # type: ignore[override]
        self.opened = _level()
        return self.opened.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.opened.__exit__(None, None, None)


def check_tangent(primal: Tensor, tangent: Tensor) -> None:
    """Raise where a tensor cannot have a tangent, or not this one."""
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
    """A view of `tensor` that has the tangent `tangent`, of its shape. Gradients flow to both.

    The tangent is not copied, so a write into the dual tensor writes into it; unless its elements lie otherwise in memory than
    the tensor's.
    """
    if tangents.opened.level is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    if level:
        raise RuntimeError(f"Invalid level given to _make_dual. The level that is open is 0, not {level}.")
    for what, value in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(value, Tensor):
            raise TypeError(f"make_dual(): the {what} must be a Tensor, not {type_name(value)}.")
    check_tangent(tensor, tangent)
    if tangents.tangent_of(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is "
            "not supported. unpack_dual(tensor).primal has none."
        )
    if tangents.tangent_of(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported. "
            "unpack_dual(tangent).primal has none."
        )
    with tangents.opened.level as opened:
        dual = reshape.record(tensor, shape=tensor.array.shape)
        if mode.forward:
            opened.hand(dual, tangents.laid_out(tangent, tensor.array))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """(primal, tangent) of a tensor: a view of it without tangent, and the tangent; None where it has none."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type_name(tensor)}")
    opened = tangents.opened.level
    if opened is None:
        return UnpackedDualTensor(tensor, None)
    if level:
        raise RuntimeError(f"Invalid level given to _fw_primal. The level that is open is 0, not {level}.")
    tangent = tangents.tangent_of(tensor)
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    with opened:
        primal = reshape.record(tensor, shape=tensor.array.shape)
    opened.hand(primal, None)
    return UnpackedDualTensor(primal, tangent)


class _set_fwd_grad_enabled(Decorating):  # noqa: N801  (torch's name)
    """Whether tangents are computed inside."""

    def __init__(self, mode: bool) -> None:
        self.before = globals()["mode"].forward
        globals()["mode"].forward = self.wanted = mode

    def __enter__(self) -> None:  # type: ignore[override]
        mode.forward = self.wanted

    def __exit__(self, *raised: Any) -> None:
        mode.forward = self.before

    def fresh(self) -> Decorating:
        return type(self)(self.wanted)


def _is_fwd_grad_enabled() -> bool:
    return mode.forward

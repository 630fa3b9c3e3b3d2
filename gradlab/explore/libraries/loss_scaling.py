"""Losses that are multiplied before their backward, so that small gradients are not rounded to 0 in float16. PyTorch's GradScaler
does this; `scaling_torch` detects it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

# Called with "step" or "skip" after a step of an optimizer that was made or skipped, and with "unscale" when the gradients of an
# optimizer were divided; with the optimizer, and the factor as a number or a tensor on a device.
ReportScaling = Callable[[str, Any, Any], None]


class LossScaling:
    """Detection of losses that are multiplied before their backward, against underflow. This one detects none."""

    def open(self) -> None:
        """Start detecting. May be called repeatedly; so may `close`."""

    def close(self) -> None:
        """Stop detecting, and restore everything."""

    @property
    def is_active(self) -> bool:
        """Return whether any loss was multiplied. Until then, the other methods need not be called."""
        return False

    def loss_of(self, tensor: Any) -> tuple[Any, Any]:
        """Return the loss from which a tensor was made by multiplication, and the factor, a number or a tensor on a device; the
        tensor and 1 if there is none."""
        return tensor, 1.0

    def scale_of_gradients(self, parameters: Sequence[Any], *, in_step: bool = False) -> Any:
        """Return the factor that the gradients of some parameters contain now, but not what the next step subtracts; 1 if there
        is none. With `in_step`, an optimizer is about to subtract them."""
        return 1.0


def is_skipped(optimizer: Any) -> bool:
    """Return whether an optimizer that is called for a step leaves it out. One that divides the gradients itself does, if they
    have overflowed. False if finding out would wait for a device."""
    overflow = getattr(optimizer, "found_inf", None)
    return overflow is not None and not is_on_device(overflow) and bool(float(overflow))


def overflow_to_read(optimizer: Any) -> Any:
    """Return a number on a device that is not 0 if `is_skipped` could not find out that the optimizer leaves the step out; None
    if it could."""
    overflow = getattr(optimizer, "found_inf", None)
    return overflow.clone() if overflow is not None and is_on_device(overflow) else None


def is_on_device(tensor: Any) -> bool:
    return bool(tensor.device.type != "cpu")


def factor_text(scale: float) -> str:
    """Return a scale in words: with all its digits, or with three of them if it is below 1."""
    return f"{scale:.0f}" if scale >= 1 and scale.is_integer() else f"{scale:.3g}"

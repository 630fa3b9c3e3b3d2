"""Handle operands on different devices.

Recording functions do not check devices. The array libraries refuse to mix them, and only after such an error the functions here
are called. As in PyTorch, a 0-d tensor on the CPU is moved to the device of the others, by a recorded transfer, so that its
gradient returns to the CPU. Any other mixture raises PyTorch's error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradlab.backend.namespaces import CPU, current_gpu, device, device_of, is_array
from gradlab.core.errors import advice
from gradlab.core.registry import core_primitives
from gradlab.core.tensor import Tensor


def arrays_in(value: Any) -> Iterator[Any]:
    """Yield the arrays in nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from arrays_in(one)
    elif is_array(value) or isinstance(value, Tensor):
        yield getattr(value, "array", value)


def move_to_one_device(op: Any, operands: tuple[Tensor, ...], meta: tuple[Any, ...] = ()) -> list[Tensor] | None:
    """Move 0-d operands on the CPU to the device of the others, after a forward failed.

    Return None if all operands are on one device, so that the error has another cause. Arrays in the metadata (an index, a mask)
    are not moved.

    Raises
    ------
    RuntimeError
        If the operands are on devices that may not be mixed, or on a GPU that is not the current one.
    """
    arrays = [x.array for x in operands]
    fixed = [a for a in (*arrays, *arrays_in(meta)) if a.ndim or device_of(a) != CPU]
    devices = dict.fromkeys(device_of(a) for a in fixed)
    if len(devices) > 1:
        raise different_devices(op.name, fixed) from None
    where = next(iter(devices), CPU)
    if all(device_of(a) == where for a in arrays):
        if where != CPU and where.index != current_gpu():
            raise not_on_current_gpu(op.name, where) from None
        return None
    return [
        x if device_of(x.array) == where else core_primitives.transfer.record(x, where=where, back=CPU, waits=True)
        for x in operands
    ]


def different_devices(name: str, arrays: Any) -> RuntimeError:
    """PyTorch's error for arrays on different devices."""
    first = arrays[0]
    here = device_of(first)
    other = next(a for a in arrays if device_of(a) != here)
    there = device_of(other)
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {here} and {there}! {name.strip('_')}() "
        f"got one of shape {list(first.shape)} on {here} and one of shape {list(other.shape)} on {there}. Move one of them: "
        f"x.to('{here if there == CPU else there}')."
    )


def not_on_current_gpu(name: str, where: device) -> RuntimeError:
    return RuntimeError(
        f"{name.strip('_')}() got tensors on {where}, but the current GPU is cuda:{current_gpu()}. Operations "
        "run on the current GPU: "
        + advice(f"use `with gradlab.cuda.device({where.index}):` or gradlab.cuda.set_device({where.index}).")
    )

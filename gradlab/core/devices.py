"""Operands that lie on several devices.

No recording function asks where its operands lie: the arrays' own libraries refuse to mix devices, and only then somebody looks
here. A 0-d tensor of the CPU goes to where the others are, as in PyTorch, by a recorded transfer, so that its gradient comes
back; whatever else is mixed raises PyTorch's sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gradlab.backend.namespaces import CPU, current_gpu, device, device_of, is_array
from gradlab.core.errors import advice
from gradlab.core.registry import used
from gradlab.core.tensor import Tensor


def arrays_in(value: Any) -> Iterator[Any]:
    """The arrays in a nest of tuples and lists."""
    if isinstance(value, (tuple, list)):
        for one in value:
            yield from arrays_in(one)
    elif is_array(value) or isinstance(value, Tensor):
        yield getattr(value, "array", value)


def together(op: Any, operands: tuple[Tensor, ...], meta: tuple[Any, ...] = ()) -> list[Tensor] | None:
    """After a forward has failed: the operands on one device, if some lay elsewhere and may be moved; None if all lay on the
    same, so that something else is wrong; else raises. Of what is in the metadata (an index, a mask) nothing is moved."""
    arrays = [x.array for x in operands]
    fixed = [a for a in (*arrays, *arrays_in(meta)) if a.ndim or device_of(a) != CPU]
    homes = dict.fromkeys(device_of(a) for a in fixed)
    if len(homes) > 1:
        raise different_devices(op.name, fixed) from None
    where = next(iter(homes), CPU)
    if all(device_of(a) == where for a in arrays):
        if where != CPU and where.index != current_gpu():
            raise another_gpu(op.name, where) from None
        return None
    return [x if device_of(x.array) == where else used.transfer.record(x, where=where, back=CPU, waits=True) for x in operands]


def different_devices(name: str, arrays: Any) -> RuntimeError:
    """Torch's sentence for arrays of which two lie on different devices."""
    first = arrays[0]
    here = device_of(first)
    other = next(a for a in arrays if device_of(a) != here)
    there = device_of(other)
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {here} and {there}! {name.strip('_')}() "
        f"got one of shape {list(first.shape)} on {here} and one of shape {list(other.shape)} on {there}. Move one of them: "
        f"x.to('{here if there == CPU else there}')."
    )


def another_gpu(name: str, where: device) -> RuntimeError:
    return RuntimeError(
        f"{name.strip('_')}() got tensors on {where}, and the current GPU is cuda:{current_gpu()}. Operations "
        "run on the current one: "
        + advice(f"write `with gradlab.cuda.device({where.index}):`, or gradlab.cuda.set_device({where.index}).")
    )

"""Operations on three tensors: a scaled product or quotient added to a tensor, and linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradlab.core import inplace
from gradlab.core.errors import invalid_combination
from gradlab.core.operator import composite
from gradlab.core.promotion import agree_tensors
from gradlab.core.tensor import Tensor
from gradlab.ops.arguments import convert_number
from gradlab.ops.arithmetic import OPERAND_TYPES
from gradlab.rules import elementwise as el

__all__ = [
    "addcdiv",
    "addcmul",
    "lerp",
]


def _addcmul_in_place(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return inplace.in_place(el.addcmul, input, tensor1, tensor2, value=convert_factor(value, input, tensor1, tensor2))


@composite(inplace="method", twin=_addcmul_in_place)
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute input + value · tensor1 · tensor2, element by element.

    Parameters
    ----------
    {input}
    tensor1, tensor2 : Tensor
        Factors. Their shapes must broadcast with that of `input`.
    value : number, default: 1
        Multiplier of the product.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, common dtype.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the shapes do not broadcast.
    NotImplementedError
        If all operands are boolean.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addcmul(gl.tensor([1., 1.]), gl.tensor([2., 3.]), gl.tensor([4., 5.]), value=0.5)
    tensor([5.0000, 8.5000])
    """
    return el.addcmul.record(input, tensor1, tensor2, value=convert_factor(value, input, tensor1, tensor2), out=out)


def convert_factor(value: Any, *operands: Any) -> Any:
    """Convert the factor `value` of `addcmul` to the operands' common dtype, unless that dtype is floating point."""
    if type(operands[0]) is Tensor and operands[0].array.dtype.kind == "f":  # the common case
        return value
    if any(not isinstance(x, Tensor) or x.array.dtype.kind == "f" for x in operands):
        return value
    dtype = agree_tensors(el.addcmul, *operands)[0].array.dtype
    if dtype.kind == "b":
        raise NotImplementedError("\"addcmul_cpu_out\" not implemented for 'Bool'. Call .int() first.")
    return convert_number(value, dtype)


def _addcdiv_in_place(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    return inplace.in_place(el.addcdiv, input, tensor1, tensor2, value=value)


@composite(inplace="method", twin=_addcdiv_in_place)
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1, out: Tensor | None = None) -> Tensor:
    """Compute input + value · tensor1 / tensor2, element by element.

    Parameters
    ----------
    {input}
    tensor1, tensor2 : Tensor
        Numerator and denominator. Their shapes must broadcast with that of `input`.
    value : number, default: 1
        Multiplier of the quotient.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, common dtype.

    Raises
    ------
    TypeError
        If an operand is not a Tensor.
    RuntimeError
        If the shapes do not broadcast, or if neither `tensor1` nor `tensor2` is floating point.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.addcdiv(gl.tensor([1., 1.]), gl.tensor([2., 3.]), gl.tensor([4., 5.]), value=0.5)
    tensor([1.2500, 1.3000])
    """
    if all(isinstance(x, Tensor) and x.array.dtype.kind != "f" for x in (tensor1, tensor2)):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true division "
            "of tensor1 and tensor2. Convert one of them: tensor1.float()."
        )
    return el.addcdiv.record(input, tensor1, tensor2, value=value, out=out)


@composite(inplace="method")
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Tensor:
    """Interpolate linearly between `input` and `end`: input + weight · (end - input).

    Parameters
    ----------
    {input}
    end : Tensor
        End point, of the same dtype as `input`.
    weight : Tensor or number
        Interpolation weight: 0 gives `input`, 1 gives `end`.
    {out}

    Returns
    -------
    Tensor
        Broadcast shape of the operands, same dtype as `input`.

    Raises
    ------
    TypeError
        If `input` or `end` is not a Tensor.
    RuntimeError
        If the dtypes differ or the shapes do not broadcast.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.lerp(gl.tensor([0., 10.]), gl.tensor([1., 20.]), 0.25)
    tensor([ 0.2500, 12.5000])
    """
    if not isinstance(input, Tensor) or not isinstance(end, Tensor) or not isinstance(weight, OPERAND_TYPES):
        raise invalid_combination(
            "lerp", (input, end, weight), "(Tensor input, Tensor end, Tensor weight)", "(Tensor input, Tensor end, Number weight)"
        )
    for name, x in (("end", end), ("weight", weight)):
        if isinstance(x, Tensor) and x.array.dtype != input.array.dtype and (name == "end" or x.array.ndim):
            raise RuntimeError(
                f"expected dtype {input.dtype.c_name} for `{name}` but got dtype {x.dtype.c_name}. Convert it: "
                f"{name}.to(input.dtype)."
            )
    if isinstance(weight, Tensor):
        return el.lerp.record(input, end, weight, out=out)
    return el.lerp_scalar.record(input, end, weight=weight.item() if isinstance(weight, np.generic) else weight, out=out)

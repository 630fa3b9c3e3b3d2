"""Python's special methods of `Tensor`: operators, conversion to numbers, iteration, printing, copying."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradlab.backend.bounds import PENDING_CHECKS, run_pending_checks
from gradlab.backend.namespaces import CPU, device, move_to
from gradlab.core import inplace
from gradlab.core.dtypes import DTYPE_OF_NUMPY, default
from gradlab.core.errors import advice
from gradlab.core.observers import OBSERVERS, notify_leave_autograd
from gradlab.core.printing import tensor_repr
from gradlab.core.tensor import Tensor, constant
from gradlab.methods.declared import Declared
from gradlab.ops import arithmetic, clamping, comparison, indexing, powers, products, splits
from gradlab.rules import elementwise as el
from gradlab.rules import quotients


class Python:
    """Operators and protocols."""

    array: Any
    node: Any

    __add__, __mul__, __sub__ = el.add.record, el.mul.record, el.sub.record
    __truediv__, __matmul__, __neg__, __abs__ = el.div.record, products.matmul_operator, el.neg.record, el.absolute.record
    __rsub__, __rtruediv__, __rpow__ = arithmetic.reverse_sub, arithmetic.reverse_div, powers.rpow_operator
    __floordiv__, __pos__ = quotients.floor_divide.record, clamping.positive
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = (
        comparison.equals,
        comparison.differs,
        comparison.is_less,
        comparison.is_at_most,
        comparison.is_greater,
        comparison.is_at_least,
    )
    __and__, __or__, __xor__ = comparison.bits_and, comparison.bits_or, comparison.bits_xor
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__
    __lshift__, __rshift__ = comparison.shift_left, comparison.shift_right
    __iand__, __ior__, __ixor__ = Declared.bitwise_and_, Declared.bitwise_or_, Declared.bitwise_xor_
    __ilshift__, __irshift__ = Declared.bitwise_left_shift_, Declared.bitwise_right_shift_
    __ifloordiv__, __imod__ = Declared.floor_divide_, Declared.remainder_
    __getitem__, __setitem__ = indexing.get, indexing.set

    def __radd__(self, other: Any) -> Any:
        return el.add.record(self, other)

    def __rmul__(self, other: Any) -> Any:
        return el.mul.record(self, other)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) in (int, float) and self.array.dtype.kind == "f":
            return el.pow_scalar.record(self, exponent=exponent)
        return powers.pow_operator(self, exponent)

    def __mod__(self, other: Any) -> Any:
        return (quotients.remainder if isinstance(other, Tensor) else quotients.remainder_scalar).record(self, other)

    def __rmod__(self, other: Any) -> Any:
        return (quotients.remainder if isinstance(other, Tensor) else quotients.number_remainder).record(other, self)

    def __rfloordiv__(self, other: Any) -> Any:
        return quotients.floor_divide.record(other, self)

    def __rlshift__(self, other: Any) -> Any:
        return comparison.shift_left(other, self)

    def __rrshift__(self, other: Any) -> Any:
        return comparison.shift_right(other, self)

    def __rmatmul__(self, other: Any) -> Any:
        return products.matmul_operator(other, self)

    def __invert__(self) -> Tensor:
        if self.array.dtype.kind == "f":
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return comparison.bitwise_not(self)

    def __bool__(self) -> bool:
        if self.array.size != 1:
            how = (
                "with no values is ambiguous. Use x.numel() > 0."
                if not self.array.size
                else (
                    "with more than one value is ambiguous. "
                    + advice("Use .any() or .all(), or gradlab.where to choose element by element.")
                )
            )
            raise RuntimeError(f"Boolean value of Tensor {how}")
        if PENDING_CHECKS:
            run_pending_checks()
        return bool(self.array.item())

    def __float__(self) -> float:
        return float(_single_element(self))

    def __int__(self) -> int:
        return int(_single_element(self))

    def __complex__(self) -> complex:
        return complex(_single_element(self))

    def __index__(self) -> int:
        if self.array.size != 1 or self.array.dtype.kind == "f":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if PENDING_CHECKS:
            run_pending_checks()
        return int(self.array.item())

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor. Use .item() to get its value.")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor. Use .item() to get its value.")
        return iter(splits.unbind(self))

    def __reversed__(self) -> Tensor:
        return self.flip(tuple(range(self.array.ndim)))

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, (Tensor, bool, int, float, np.generic)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")
        if PENDING_CHECKS:
            run_pending_checks()
        return bool((self == value).array.any())

    def __repr__(self) -> str:
        leaf = self.is_leaf
        if PENDING_CHECKS:
            run_pending_checks()
        text = tensor_repr(
            self.array,
            dtype_name=self.dtype.name,
            default_dtype_name=DTYPE_OF_NUMPY[default.float].name,
            requires_grad=leaf and self.requires_grad,
            grad_fn_name=None if leaf else self.node.title,
            device=str(self.device) if self.is_cuda else None,
            tangent=getattr(self, "_tangent", None),
        )
        return f"Parameter containing:\n{text}" if getattr(self, "_role", "") == "Parameter" else text

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.array.ndim else object.__format__(self, spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_wrap__(self, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
        """Wrap the result of a NumPy ufunc as a tensor without history. Bools become uint8, as in PyTorch."""
        array = np.asarray(array)
        return constant(array.astype(np.uint8) if array.dtype.kind == "b" else array)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)} - {"volatile"})  # reading it warns

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment. Use .detach().clone() for a copy without history."
            )
        twin = memo[id(self)] = constant(copy.deepcopy(self.array))  # on its own device
        if self.requires_grad:
            twin.requires_grad_()
        if role := getattr(self, "_role", ""):
            twin._role = role
        if role != "Parameter":  # torch copies neither the gradient nor the attributes of a parameter
            twin.grad_slot = copy.deepcopy(self.grad_slot, memo)
            if self.__dict__:
                twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def __reduce__(self) -> Any:
        role = getattr(self, "_role", "")
        state = self.detach().cpu().array, self.requires_grad, None if role == "Parameter" else self.grad_slot, role
        return _rebuilt, (*state, self.device) if self.is_cuda else state, self.__dict__ or None

    def __iadd__(self, other: Any) -> Tensor:
        return inplace.in_place(el.add, self, other)

    def __isub__(self, other: Any) -> Tensor:
        return inplace.in_place(el.sub, self, other)

    def __imul__(self, other: Any) -> Tensor:
        return inplace.in_place(el.mul, self, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return inplace.in_place(el.div, self, other)

    def __ipow__(self, exponent: Any) -> Tensor:
        return self.pow_(exponent)


def _single_element(x: Tensor) -> Any:
    """Return the only element as a Python number."""
    if x.array.size != 1:
        raise ValueError(
            f"only one element tensors can be converted to Python scalars. This one has shape "
            f"{list(x.array.shape)}. Select one element by its index, or reduce it with .sum() or .mean()."
        )
    if x.node is not None and not WarningsGiven.scalar_conversion:
        WarningsGiven.scalar_conversion = True
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
            "tensor.detach() first.",
            UserWarning,
            stacklevel=3,
        )
    if OBSERVERS:
        notify_leave_autograd(x, "item()")
    if PENDING_CHECKS:
        run_pending_checks()
    return x.array.item()


class WarningsGiven:
    """Warnings that were given already: torch gives them once per process."""

    scalar_conversion = False


def _rebuilt(array: np.ndarray, requires_grad: bool, grad: Tensor | None, role: str = "", where: device = CPU) -> Tensor:
    tensor = constant(move_to(array, where))
    if role:
        tensor._role = role
    if requires_grad:
        tensor.requires_grad_()
    tensor.grad_slot = grad
    return tensor

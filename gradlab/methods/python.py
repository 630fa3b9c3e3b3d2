"""What Python itself asks of a tensor: operators, numbers, iteration, printing, copies."""
from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradlab import indexing
from gradlab.core import inplace
from gradlab.core.dtypes import OF_NUMPY, default
from gradlab.core.printing import tensor_repr
from gradlab.core.tensor import Tensor, constant
from gradlab.functions import arithmetic, comparison, products
from gradlab.rules import elementwise as el


class Python:
    """Operators and protocols."""

    array: Any
    node: Any

    __add__, __mul__, __sub__ = el.add.record, el.mul.record, el.sub.record
    __truediv__, __matmul__, __neg__, __abs__ = el.div.record, products.operator, el.neg.record, el.absolute.record
    __rsub__, __rtruediv__, __rpow__ = arithmetic.rsub, arithmetic.rdiv, arithmetic.rpow
    __eq__, __ne__, __lt__, __le__, __gt__, __ge__ = (comparison.eq, comparison.ne, comparison.lt, comparison.le,
                                                      comparison.gt, comparison.ge)
    __and__, __or__, __xor__ = comparison.bitwise_and, comparison.bitwise_or, comparison.bitwise_xor
    __getitem__, __setitem__ = indexing.get, indexing.set

    def __radd__(self, other: Any) -> Any:
        return el.add.record(self, other)

    def __rmul__(self, other: Any) -> Any:
        return el.mul.record(self, other)

    def __pow__(self, exponent: Any) -> Any:
        if type(exponent) in (int, float) and self.array.dtype.kind == "f":
            return el.pow_scalar.record(self, exponent=exponent)
        return arithmetic.pow(self, exponent)

    def __invert__(self) -> Tensor:
        if self.array.dtype.kind == "f":
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
        return constant(np.invert(self.array))

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not self.array.size else
                               "Boolean value of Tensor with more than one value is ambiguous. Use .any() or .all().")
        return bool(self.array.item())

    def __float__(self) -> float:
        return float(self._only())

    def __int__(self) -> int:
        return int(self._only())

    def _only(self) -> Any:
        if self.array.size != 1:
            raise ValueError(f"only one element tensors can be converted to Python scalars; this one has {self.array.size}.")
        return self.array.item()

    def __index__(self) -> int:
        if self.array.size != 1 or self.array.dtype.kind == "f":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.array.item())

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter([self[i] for i in range(self.array.shape[0])])

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).array.any())

    def __repr__(self) -> str:
        leaf = self.is_leaf
        return tensor_repr(self.array, dtype_name=self.dtype.name, default_dtype_name=OF_NUMPY[default.float].name,
                           requires_grad=leaf and self.requires_grad, grad_fn_name=None if leaf else self.grad_fn.name(),
                           device=str(self.device) if self.is_cuda else None)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.array.ndim else object.__format__(self, spec)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                               "moment. Use .detach().clone() for a copy without history.")
        twin = memo[id(self)] = constant(self.array.copy())
        if self.requires_grad:
            twin.requires_grad_()
        twin.grad_slot = copy.deepcopy(self.grad_slot, memo)
        return twin

    def __reduce__(self) -> Any:
        if not self.is_leaf:
            raise RuntimeError("a tensor with history cannot be pickled: detach() it first.")
        return _rebuilt, (self.detach().cpu().array, self.requires_grad, self.grad_slot)


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


def _rebuilt(array: np.ndarray, requires_grad: bool, grad: Tensor | None) -> Tensor:
    made = constant(array)
    if requires_grad:
        made.requires_grad_()
    made.grad_slot = grad
    return made

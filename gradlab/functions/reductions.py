"""Sums, means, spreads and extremes over axes; softmax along one."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gradlab.backend.namespaces import wrap
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.promotion import expected_tensor
from gradlab.core.tensor import Tensor, constant
from gradlab.functions.arguments import many_dims, one_dim
from gradlab.functions.arithmetic import abs, maximum, minimum
from gradlab.functions.shapes import cast, clone
from gradlab.rules import reductions as rules
from gradlab.rules import shapes
from gradlab.rules import softmax as softmax_rules

__all__ = ["all", "any", "argmax", "argmin", "log_softmax", "max", "mean", "min", "norm", "softmax", "std", "sum", "var"]


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The sum over the axes `dim` (all by default)."""
    if not isinstance(input, Tensor):
        raise expected_tensor(rules.sum_, input)
    if dtype is not None:
        input = cast(input, dtype)
    op = rules.sum_all if dim is None else rules.sum_
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The mean over the axes `dim` (all by default) of a floating point tensor."""
    if not isinstance(input, Tensor):
        raise expected_tensor(rules.mean, input)
    if dtype is not None:
        input = cast(input, dtype)
    if input.array.dtype.kind != "f":
        raise RuntimeError("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
                           f"Got: {input.dtype.word}. Call .float() first.")
    op = rules.mean_all if dim is None else rules.mean
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


def _spread(op: Any, name: str) -> Any:
    def spread(input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *,
               correction: float | None = None) -> Tensor:
        if isinstance(dim, bool):                                                            # x.std(False) means unbiased
            dim, unbiased = None, dim
        if correction is None:
            correction = 0 if unbiased is False else 1
        if input.array.dtype.kind != "f":
            raise RuntimeError("std and var only support floating point and complex dtypes. Call .float() first.")
        return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim, correction=correction)
    spread.__name__ = spread.__qualname__ = name
    return spread


std, var = _spread(rules.std, "std"), _spread(rules.var, "var")
std.__doc__ = "The standard deviation over the axes `dim`; `correction` (1) is subtracted from n in the denominator."
var.__doc__ = "The variance over the axes `dim`; `correction` (1) is subtracted from n in the denominator."


class ValuesAndIndices(NamedTuple):
    """What a reduction along one axis returns: the values, and where they stood."""

    values: Tensor
    indices: Tensor

    def __repr__(self) -> str:
        return f"gradlab.return_types.max(\nvalues={self.values!r},\nindices={self.indices!r})"


class ValuesAndIndicesOfMin(ValuesAndIndices):
    """The same, of `min`."""

    def __repr__(self) -> str:
        return ValuesAndIndices.__repr__(self).replace("return_types.max", "return_types.min", 1)


def _extreme(everything: Any, pick: str, result: Any, pairwise: Any, alias: str) -> Any:
    along = shapes.gather.named(f"{alias.title()}Backward0")

    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
        if isinstance(dim, Tensor):
            return pairwise(input, dim)
        if dim is None:
            if not input.array.size:
                raise RuntimeError(f"{alias}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                                   "reduction dim with the 'dim' argument.")
            return everything.record(input, axis=tuple(range(-input.array.ndim, 0)), keepdims=False)
        axis = one_dim(dim, input.array.ndim)
        if not input.array.ndim:
            return result(clone(input), constant(np.zeros((), np.int64)))
        if not input.array.shape[axis]:
            raise IndexError(f"{alias}(): Expected reduction dim {axis + input.array.ndim} to have non-zero size.")
        indices = getattr(input.array, pick)(axis=axis, keepdims=True)
        values = along.record(input, axis=axis, indices=indices, keepdims=keepdim)
        return result(values, constant(indices if keepdim else wrap(indices.squeeze(axis))))
    extreme.__name__ = extreme.__qualname__ = alias
    return extreme


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands (in the flattened tensor, or along `dim`)."""
    return _position("argmax", input, dim, keepdim)


def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands (in the flattened tensor, or along `dim`)."""
    return _position("argmin", input, dim, keepdim)


def _position(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    shape = input.array.shape
    axis = None if dim is None else one_dim(dim, len(shape))
    if axis is None and not input.array.size:
        raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
    if axis is not None and shape and not shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis + len(shape)} to have non-zero size.")
    return constant(wrap(getattr(input.array, name)(axis=axis if shape else None, keepdims=keepdim)))


def all(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether all elements hold."""
    return constant(wrap(input.array.all(axis=many_dims(dim, input.array.ndim), keepdims=keepdim)))


def any(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Whether any element holds."""
    return constant(wrap(input.array.any(axis=many_dims(dim, input.array.ndim), keepdims=keepdim)))


def norm(input: Tensor, p: float | str = 2, dim: Any = None, keepdim: bool = False) -> Tensor:
    """(Σ |x|ᵖ)^(1/p) over the axes `dim`; p = 2 (also "fro") and 1."""
    if p in (2, "fro", None):
        if input.array.dtype.kind != "f":
            raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                               f"{input.dtype.word}. Call .float() first.")
        return rules.vector_norm.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)
    if p == 1:
        return sum(abs(input), dim, keepdim)
    raise RuntimeError(f"norm(): p={p!r} is not supported yet; p may be 1, 2 or 'fro'.")


def _softmax(op: Any) -> Any:
    def normalised(input: Tensor, dim: int, *, dtype: Dtype | None = None) -> Tensor:
        if dtype is not None:
            input = cast(input, dtype)
        if input.array.dtype.kind != "f":
            raise NotImplementedError(f"\"{op.name}_lastdim_kernel_impl\" not implemented for '{input.dtype.word}'. Call "
                                      ".float() first.")
        axis = one_dim(dim, input.array.ndim)
        return op.record(input, axis=(axis,) if input.array.ndim else ()) if input.array.size else clone(input)
    normalised.__name__ = normalised.__qualname__ = op.name
    return normalised


softmax, log_softmax = _softmax(softmax_rules.softmax), _softmax(softmax_rules.log_softmax)
softmax.__doc__ = "exp(x) / Σ exp(x) along `dim`."
log_softmax.__doc__ = "log(softmax(x)) along `dim`, computed without overflow."

max = _extreme(rules.max_all, "argmax", ValuesAndIndices, maximum, "max")
min = _extreme(rules.min_all, "argmin", ValuesAndIndicesOfMin, minimum, "min")
max.__doc__ = "The largest element; along `dim`, (values, indices); with a second tensor, the larger of each pair."
min.__doc__ = "The smallest element; along `dim`, (values, indices); with a second tensor, the smaller of each pair."

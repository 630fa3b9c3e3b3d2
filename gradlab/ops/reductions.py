"""Sums, means, spreads, norms and extremes over axes; softmax along one.

`over_dims` gives each `out=` and NumPy's names for `dim` and `keepdim`. `max` and `min` along an axis find the places on the
array and pick the elements there (`Picking`).
"""

from __future__ import annotations

import warnings
from math import inf
from math import prod as product
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, wrap
from gradlab.core.dtypes import as_numpy_dtype
from gradlab.core.dtypes import dtype as Dtype  # noqa: N812  (`dtype` is a parameter's name here)
from gradlab.core.silence import quietly
from gradlab.core.tensor import Tensor, constant
from gradlab.core.watching import WATCHED, cut
from gradlab.ops.arguments import many_dims, one_dim, over_dims
from gradlab.ops.copies import cast, in_single
from gradlab.ops.declared import maximum, minimum
from gradlab.ops.results import Picking, result_type
from gradlab.ops.shapes import reshape
from gradlab.rules import elementwise as el
from gradlab.rules import reductions as rules
from gradlab.rules import softmax as softmax_rules

__all__ = [
    "all",
    "amax",
    "amin",
    "aminmax",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "dist",
    "log_softmax",
    "logsumexp",
    "max",
    "mean",
    "min",
    "nanmean",
    "nansum",
    "prod",
    "renorm",
    "softmax",
    "std",
    "std_mean",
    "sum",
    "var",
    "var_mean",
]


# ------------------------------------------------------------------------------------------------- sums, means, products
@over_dims
def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The sum over the axes `dim` (all by default). Bools and integers are summed as int64."""
    if dtype is not None or input.array.dtype.kind != "f":
        wanted = as_numpy_dtype(dtype)
        if wanted is None or wanted.kind != "f":
            return whole_sum(input, dim, keepdim, wanted)
        input = cast(input, dtype)
    op = rules.sum_all if dim is None else rules.sum_
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


def whole_sum(input: Tensor, dim: Any, keepdim: bool, dtype: Any) -> Tensor:
    """A sum that is an integer. Of bools, `count_nonzero` makes it ten times as fast."""
    x = input.array
    if x.dtype.kind == "f" and input.node is not None:
        raise RuntimeError(f"Autograd not support dtype: {constant(x.astype(dtype)).dtype.word}. Call .detach() first.")
    if x.dtype.kind == "b" and dim is None and dtype is None:
        return constant(np.asarray(np.count_nonzero(x)) if type(x) is np.ndarray else namespace_of[type(x)].count_nonzero(x))
    if dtype is not None and x.dtype != dtype:
        x = quietly(x.astype, dtype)
    return constant(wrap(x.sum(axis=many_dims(dim, x.ndim), keepdims=keepdim, dtype=dtype or np.int64)))


def no_mean(name: str, input: Tensor) -> RuntimeError:
    return RuntimeError(
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
        f"Got: {input.dtype.word}. Call .float() first."
        if name == "mean"
        else f"{name}(): expected input to have floating point or complex dtype but got {input.dtype.word}. Call .float() first."
    )


@over_dims
def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The mean over the axes `dim` (all by default) of a floating point tensor."""
    if dtype is not None:
        input = cast(input, dtype)
    if input.array.dtype.kind != "f":
        raise no_mean("mean", input)
    op = rules.mean_all if dim is None else rules.mean
    return op.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


@over_dims
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The sum over the axes `dim` (all by default), NaNs counting as 0."""
    if input.array.dtype.kind != "f":
        return sum(input, dim, keepdim, dtype=dtype)
    return rules.nansum.record(cast(input, dtype), axis=many_dims(dim, input.array.ndim), keepdims=keepdim)


@over_dims
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The mean over the axes `dim` (all by default) of what is not NaN."""
    if input.array.dtype.kind != "f":
        raise no_mean("nanmean", input)
    numbers = constant(wrap(input.array == input.array))
    return el.div.record(nansum(input, dim, keepdim, dtype=dtype), sum(numbers, dim, keepdim))


@over_dims
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Dtype | None = None) -> Tensor:
    """The product of all elements, or of those along `dim`. Bools and integers are multiplied as int64."""
    if dtype is not None:
        input = cast(input, dtype)
        if input.array.dtype.kind != "f":
            made = input.array.prod(axis=None if dim is None else many_dims(dim, input.array.ndim), keepdims=keepdim)
            return constant(wrap(made.astype(input.array.dtype)))
    ndim = input.array.ndim
    if dim is None:
        return rules.product_all.record(input, axis=tuple(range(-ndim, 0)), keepdims=False)
    return rules.product.record(input, axis=(one_dim(dim, ndim),) if ndim else (), keepdims=keepdim)


# -------------------------------------------------------------------------------------------------------------- spreads
def spread_arguments(name: str, input: Tensor, dim: Any, unbiased: Any, correction: Any) -> tuple[tuple[int, ...], float]:
    """The axes of a variance and what is subtracted from n; `x.std(False)` means unbiased=False."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 0 if unbiased is False else 1
    x = input.array
    if x.dtype.kind != "f":
        raise RuntimeError(
            f"{name if '_' in name else 'std and var'} only support floating point and complex dtypes. Call .float() first."
        )
    axis = many_dims(dim, x.ndim)
    if (rules.count(x.shape, axis) if x.size else 0) <= correction:
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            UserWarning,
            stacklevel=4,
        )
    return axis, correction


@over_dims
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """The standard deviation over the axes `dim`; `correction` (1) is subtracted from n in the denominator."""
    axis, less = spread_arguments("std", input, dim, unbiased, correction)
    return rules.std.record(input, axis=axis, keepdims=keepdim, correction=less)


@over_dims
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> Tensor:
    """The variance over the axes `dim`; `correction` (1) is subtracted from n in the denominator."""
    axis, less = spread_arguments("var", input, dim, unbiased, correction)
    return rules.var.record(input, axis=axis, keepdims=keepdim, correction=less)


@over_dims
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over the axes `dim`."""
    axis, less = spread_arguments("std_mean", input, dim, unbiased, correction)
    std, mean = rules.std_mean.primitives
    return rules.std_mean(
        std.record(input, axis=axis, keepdims=keepdim, correction=less), mean.record(input, axis=axis, keepdims=keepdim)
    )


@over_dims
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None
) -> tuple[Tensor, Tensor]:
    """The variance and the mean over the axes `dim`."""
    axis, less = spread_arguments("var_mean", input, dim, unbiased, correction)
    var, mean = rules.var_mean.primitives
    return rules.var_mean(
        var.record(input, axis=axis, keepdims=keepdim, correction=less), mean.record(input, axis=axis, keepdims=keepdim)
    )


# ---------------------------------------------------------------------------------------------------------------- norms
def vector_norm(
    input: Tensor,
    ord: float = 2,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Dtype | None = None,
    op: Any = rules.vector_norm,
) -> Tensor:
    """(Σ |x|ᵖ)^(1/p) over the axes `dim`, all by default, for any real p; at 0 the number of nonzeros, at ±inf the largest or
    smallest magnitude."""
    if input.array.dtype.kind != "f":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{input.dtype.word}. Call .float() first."
        )
    if dtype is not None:
        input = cast(input, dtype)
    shape = input.array.shape
    axis = many_dims(dim, len(shape))
    if (ord < 0 or ord == inf) and not rules.count(shape, axis):
        which = next((a + len(shape) for a in axis if not shape[a]), 0)
        where = "an empty tensor because" if dim is None else f"the dimension {which}because this dimension is empty and"
        raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on {where} the operation does not have an identity")
    return op.record(input, axis=axis, keepdims=keepdim, order=int(ord) if ord == ord // 1 and -inf < ord < inf else ord)


@over_dims
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of input - other."""
    return vector_norm(el.sub.record(input, other), p, op=rules.distance)


@over_dims
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice along `dim` scaled down to p-norm `maxnorm`, if its norm is larger."""
    ndim = input.array.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if input.array.dtype.char == "e":
        return in_single(renorm, input, p, dim, maxnorm)
    axis = one_dim(dim, ndim)
    norms = vector_norm(input, p, [a for a in range(-ndim, 0) if a != axis], True)
    scale = el.where.record(constant(norms.array > maxnorm), maxnorm / (norms + 1e-7), constant(np.ones((), input.array.dtype)))
    return RENORM.record(input, scale)


RENORM = el.mul.named("RenormBackward0")


def sum_to_size(input: Tensor, size: tuple[int, ...]) -> Tensor:
    """The transpose of broadcasting to `input`'s shape."""
    have, more = input.array.shape, input.array.ndim - len(size)
    if more < 0 or [n for n, m in zip(size, have[more:], strict=True) if n not in (1, m)]:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(have)}}}.")
    axes = [i for i, n in enumerate(have) if i < more or size[i - more] != n]
    if not size:
        return sum(input)
    made = sum(input, axes, keepdim=True) if axes else input
    return reshape(made, size) if more else made


# ------------------------------------------------------------------------------------------------------------- extremes
def empty_reduction(name: str, shape: tuple[int, ...], axis: tuple[int, ...] | None) -> Exception | None:
    """Torch's errors for an extreme of nothing, or None where there is something. `axis` None: the whole tensor."""
    if axis is None:
        return (
            None
            if product(shape)
            else (IndexError if name.startswith("arg") else RuntimeError)(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
                "'dim' argument."
            )
        )
    for a in axis:
        if not shape[a]:
            return IndexError(f"{name}(): Expected reduction dim {a + len(shape)} to have non-zero size.")
    return None


def _extreme_over(op: Any, name: str, what: str) -> Any:
    def extreme(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        shape = input.array.shape
        axis = many_dims(dim, len(shape))
        if not input.array.size:
            if dim == () and (error := empty_reduction(name, shape, None)):
                raise error
            for d in dim if isinstance(dim, (tuple, list)) else (dim,):
                if not shape[d]:
                    raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
        return op.record(input, axis=axis, keepdims=keepdim)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"The {what} element over the axes `dim` (all by default); a gradient is shared evenly among equals."
    return over_dims(extreme)


amax, amin = _extreme_over(rules.amax, "amax", "largest"), _extreme_over(rules.amin, "amin", "smallest")
AMINMAX = result_type("aminmax", "min", "max")


@over_dims
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, of everything or along `dim`, as (min, max)."""
    shape = input.array.shape
    if dim is None and not input.array.size:
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    axis = many_dims(None if dim is None else one_dim(dim, len(shape)), len(shape))
    if error := empty_reduction("aminmax", shape, axis):
        raise IndexError(str(error).replace("()", "", 1))
    least, most = rules.aminmax.primitives
    return AMINMAX(
        rules.aminmax(least.record(input, axis=axis, keepdims=keepdim), most.record(input, axis=axis, keepdims=keepdim))
    )


def _extreme(everything: Any, position: str, pairwise: Any, name: str, what: str) -> Any:
    picking = Picking(name, f"{name.title()}Backward0")

    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:
        x = input.array
        if dim is None and other is None:
            if not x.size and (error := empty_reduction(name, x.shape, None)):
                raise error
            return everything.record(input, axis=tuple(range(-x.ndim, 0)), keepdims=False)
        if isinstance(dim, Tensor) or other is not None:
            return pairwise(input, dim if other is None else other)
        axis = one_dim(dim, x.ndim)
        if not x.ndim:
            return picking.of_scalar(input)
        if error := empty_reduction(name, x.shape, (axis,)):
            raise error
        return picking(input, axis, getattr(x, position)(axis=axis, keepdims=True), keepdim)

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {what} element; along `dim`, (values, indices); with a second tensor, the {what} of each pair. A "
        "gradient is shared evenly among equals; along `dim` the first has it."
    )
    return over_dims(extreme)


max = _extreme(rules.max_all, "argmax", maximum, "max", "largest")
min = _extreme(rules.min_all, "argmin", minimum, "min", "smallest")


@over_dims
def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element stands (in the flattened tensor, or along `dim`); the first of equals, a NaN before all."""
    return _position("argmax", input, dim, keepdim)


@over_dims
def argmin(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element stands (in the flattened tensor, or along `dim`); the first of equals, a NaN before all."""
    return _position("argmin", input, dim, keepdim)


def _position(name: str, input: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    x = input.array
    axis = None if dim is None else one_dim(dim, x.ndim)
    if x.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input. Call .int() first.")
    if (axis is None or x.ndim) and (error := empty_reduction(name, x.shape, None if axis is None else (axis,))):
        raise error
    made = constant(wrap(getattr(x, name)(axis=axis if x.ndim else None, keepdims=keepdim)))
    if WATCHED:
        cut(made, input, "position")
    return made


def _quantifier(name: str, doc: str) -> Any:
    def quantifier(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
        x = input.array
        found = getattr(x, name)(axis=() if dim == () else many_dims(dim, x.ndim), keepdims=keepdim)
        return constant(wrap(found.astype(np.uint8) if x.dtype == np.uint8 else found))

    quantifier.__name__ = quantifier.__qualname__ = name
    quantifier.__doc__ = f"{doc} over the axes `dim` (all by default): bools, of uint8 uint8."
    return over_dims(quantifier)


all, any = _quantifier("all", "Whether every element is nonzero"), _quantifier("any", "Whether some element is nonzero")


@over_dims
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not zero, over the axes `dim` (all by default)."""
    x = input.array
    return constant(wrap((x != 0).sum(axis=many_dims(dim, x.ndim), dtype=np.int64)))


# -------------------------------------------------------------------------------------------------------------- softmax
def _softmax(op: Any) -> Any:
    def normalised(input: Tensor, dim: int, dtype: Dtype | None = None) -> Tensor:
        if dtype is not None:
            input = cast(input, dtype)
        ndim = input.array.ndim
        axis = one_dim(dim, ndim)
        if input.array.dtype.kind != "f":
            if not input.array.size:
                return constant(input.array.copy())
            raise NotImplementedError(
                f'"{op.name}_{"lastdim_" * (axis == -1)}kernel_impl" not implemented for '
                f"'{input.dtype.word}'. Call .float() first, or give dtype=."
            )
        return op.record(input, axis=(axis,) if ndim else ())

    normalised.__name__ = normalised.__qualname__ = op.name
    return over_dims(normalised)


softmax, log_softmax = _softmax(softmax_rules.softmax), _softmax(softmax_rules.log_softmax)
softmax.__doc__ = "exp(x) / Σ exp(x) along `dim`."
log_softmax.__doc__ = "log(softmax(x)) along `dim`, computed without overflow."


@over_dims
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """log Σ exp(x) over the axes `dim`, computed without overflow."""
    return softmax_rules.logsumexp.record(input, axis=many_dims(dim, input.array.ndim), keepdims=keepdim)

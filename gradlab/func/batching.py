"""Vectorizing map: `vmap` turns a function of one sample into a function of a batch.

The function is called for one slice after another, and the results are stacked. This is correct for every function, including
functions that branch on values, draw random numbers or call `item()`, but costs one call for each slice. Calling an operation on
the whole batch is faster by a factor of about the batch size, and nearly every operation accepts leading batch dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from gradlab.backend.streams import States, get_states, restore_states
from gradlab.core.tensor import Tensor
from gradlab.func.tree import Tree, broadcast_prefix, flatten
from gradlab.ops.joins import stack

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """Return a function that maps `func` over an axis of its arguments.

    It calls `func` once for each slice and stacks the results. Use it for clarity, and batched operations for speed.

    Parameters
    ----------
    func : callable
        Function of tensors without the mapped axis. It returns a Tensor, or a nested structure of tuples, lists and dictionaries
        of Tensors.
    in_dims : int or nested tuple, default: 0
        Axis of each argument to map over. Arguments with None, and keyword arguments, are passed unchanged to each call.
    out_dims : int, None or nested structure of these, default: 0
        Position of the mapped axis in each result. None is for a result that is the same for all slices.
    randomness : {"error", "different", "same"}, default: "error"
        What to do if `func` draws random numbers: raise an error, draw different numbers for each slice, or draw the same
        numbers for all slices.
    chunk_size : int, optional
        Ignored, because only one slice is processed at a time.

    Returns
    -------
    callable
        Function with the arguments and results of `func`, each with one additional axis.

    Raises
    ------
    ValueError
        If `in_dims` does not match the arguments, or `out_dims` does not match the results.

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.func.vmap(lambda row: row.sum())(gl.ones(3, 4))
    tensor([4., 4., 4.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for leaf in flatten(out_dims)[0]:
            if leaf is not None and not isinstance(leaf, int):
                raise ValueError(
                    f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                    "collection of ints representing where in the outputs the vmapped dimension should appear."
                )
        count, leaves, axes, tree = flatten_inputs(func, in_dims, args)
        results, structure = [], None
        before = get_states()
        for i in range(count) or (None,):  # for an empty batch, one call on zeros determines the shapes of the results
            if randomness == "same":
                restore_states(before)
            arguments = tree.build(
                [
                    x if axis is None else x.select(axis, i) if i is not None else zeros_of_slice(x, axis)
                    for x, axis in zip(leaves, axes, strict=True)
                ]
            )
            result_leaves, structure = flatten(func(*arguments, **kwargs))
            results.append(result_leaves)
            if randomness == "error" and i in (0, None, count - 1) and has_drawn(before):
                raise RuntimeError(
                    "vmap: called random operation while in randomness error mode. Please either use the 'same' "
                    "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
                )
        assert structure is not None
        places = output_axes(func, out_dims, structure)
        return structure.build(
            [
                combine_results(func, values, place, count)
                for values, place in zip(zip(*results, strict=True), places, strict=True)
            ]
        )

    return wrapper


def has_drawn(before: States) -> bool:
    """Return True if random numbers have been drawn since the states `before` were read."""
    now = get_states()
    return now.keys() != before.keys() or not all(np.array_equal(now[k], before[k]) for k in now)


def flatten_inputs(
    func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]
) -> tuple[int, list[Any], list[int | None], Tree]:
    """Check and flatten the arguments. Return the number of slices, the leaves, their mapped axes, and the structure."""
    name = name_of(func)
    called = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{called}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of "
            f"inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    leaves, tree = flatten(args)
    axes = broadcast_prefix(in_dims, tree)
    if axes is None:
        raise ValueError(
            f"{called}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{flatten(in_dims)[1]} but inputs has structure {tree}."
        )
    sizes = []
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        if not isinstance(axis, int):
            raise ValueError(f"{called}: Got in_dim={axis} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(x, Tensor):
            raise ValueError(
                f"{called}: Got in_dim={axis} for an input but the input is of type {type(x)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -x.ndim <= axis < x.ndim:
            raise ValueError(
                f"{called}: Got in_dim={axis} for some input, but that input is a Tensor of dimensionality {x.ndim} "
                f"so expected in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}."
            )
        axes[i] = axis % x.ndim
        sizes.append(x.array.shape[axis])
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], leaves, axes, tree


def output_axes(func: Callable[..., Any], out_dims: Any, tree: Tree) -> list[int | None]:
    """Return the position of the mapped axis in each result."""
    single = tree.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1
    places = [out_dims[0]] if single else broadcast_prefix(out_dims, tree)
    if places is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure "
            f"{tree}."
        )
    return places


def combine_results(func: Callable[..., Any], values: tuple[Any, ...], place: int | None, count: int) -> Any:
    """Stack the values of one result for all slices along the axis `place`."""
    name, first = name_of(func), values[0]
    if place is None:
        if isinstance(first, Tensor) and not all(
            x is first or (x.node is None and np.array_equal(x.array, first.array)) for x in values
        ):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return first
    for x in values:
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set "
                "out_dims= to None for output?"
            )
    whole = stack(values, place)
    return whole if count else whole.narrow(place, 0, 0)


def zeros_of_slice(x: Tensor, axis: int) -> Tensor:
    """Return zeros of the shape of a slice, for an empty batch."""
    shape = x.array.shape
    return x.new_zeros(shape[:axis] + shape[axis + 1 :])


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function for error messages."""
    if isinstance(func, partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)

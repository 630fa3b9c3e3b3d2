"""`vmap`: a function of one sample as a function of a batch.

The function is run on one slice after another, and what it returns is stacked: right for every function, also where it branches
on its values, draws random numbers or calls `item()`, at the cost of one run of the function for each slice. Where one call of
an operation on the whole batch would do (nearly every operation takes leading axes), that is quicker by about the batch size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from gradlab.backend.streams import States, go_on_from, states
from gradlab.core.tensor import Tensor
from gradlab.func.tree import Tree, flatten, spread
from gradlab.ops.joins import stack

__all__ = ["vmap"]


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that maps `func` over an axis of its arguments.

    It runs `func` once for each slice and stacks the results: use it to say what is meant, and batched operations for speed.

    Parameters
    ----------
    func : callable
        Takes tensors without the mapped axis, and returns a tensor, or tensors in tuples, lists and dictionaries.
    in_dims : int or nested tuple
        Which axis of each argument is mapped over; None hands the argument on whole. Keyword arguments are mapped over their
        first axis if they are tensors.
    out_dims : int, None or nested
        Where the mapped axis goes in each result; None for a result that is the same for all slices.
    randomness : "error", "different" or "same"
        Whether `func` may draw random numbers, and whether each slice sees other ones.
    chunk_size : int, optional
        Accepted; one slice is in memory at a time.

    Returns
    -------
    callable
        Takes what `func` takes, with an axis more, and returns what it returns, with one more.

    Raises
    ------
    ValueError
        If the axes do not fit the arguments or the results.

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
    def mapped(*args: Any, **kwargs: Any) -> Any:
        for leaf in flatten(out_dims)[0]:
            if leaf is not None and not isinstance(leaf, int):
                raise ValueError(
                    f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                    "collection of ints representing where in the outputs the vmapped dimension should appear."
                )
        count, leaves, axes, tree = inputs_of(func, in_dims, args)
        results, structure = [], None
        before = states()
        for i in range(count) or (None,):  # of an empty batch one run on zeros says what results are like
            if randomness == "same":
                go_on_from(before)
            arguments = tree.build(
                [
                    x if axis is None else x.select(axis, i) if i is not None else emptied(x, axis)
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
        places = places_of(func, out_dims, structure)
        return structure.build(
            [together(func, values, place, count) for values, place in zip(zip(*results, strict=True), places, strict=True)]
        )

    return mapped


def has_drawn(before: States) -> bool:
    """Whether a random stream is not where it was."""
    now = states()
    return now.keys() != before.keys() or not all(np.array_equal(now[k], before[k]) for k in now)


def inputs_of(func: Callable[..., Any], in_dims: Any, args: tuple[Any, ...]) -> tuple[int, list[Any], list[int | None], Tree]:
    """How many slices there are; the arguments' leaves, the axis of each, and how they were nested."""
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
    axes = spread(in_dims, tree)
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


def places_of(func: Callable[..., Any], out_dims: Any, tree: Tree) -> list[int | None]:
    """Where the mapped axis goes in each result."""
    single = tree.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1
    places = [out_dims[0]] if single else spread(out_dims, tree)
    if places is None:
        raise ValueError(
            f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {flatten(out_dims)[1]} but outputs has structure "
            f"{tree}."
        )
    return places


def together(func: Callable[..., Any], values: tuple[Any, ...], place: int | None, count: int) -> Any:
    """One result of all slices as one."""
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


def emptied(x: Tensor, axis: int) -> Tensor:
    """Zeros of the shape of a slice, for a batch that has none."""
    shape = x.array.shape
    return x.new_zeros(shape[:axis] + shape[axis + 1 :])


def name_of(func: Callable[..., Any]) -> str:
    """What errors call a function."""
    if isinstance(func, partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)

"""Datasets, and combinations and parts of datasets."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

from gradlab.core.tensor import Tensor
from gradlab.random import Generator, randperm

T = TypeVar("T", covariant=True)


class Dataset(Generic[T]):
    """Base class of datasets with an index. Subclasses define `__getitem__` and `__len__`.

    Examples
    --------
    >>> from gradlab.utils.data import Dataset
    >>> class Squares(Dataset):
    ...     def __getitem__(self, i):
    ...         return i, i * i
    ...     def __len__(self):
    ...         return 10
    >>> Squares()[3]
    (3, 9)
    """

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Base class of datasets without an index. Subclasses define `__iter__`.

    Examples
    --------
    >>> from gradlab.utils.data import DataLoader, IterableDataset
    >>> class Squares(IterableDataset):
    ...     def __iter__(self):
    ...         return (i * i for i in range(4))
    >>> list(DataLoader(Squares(), batch_size=3))
    [tensor([0, 1, 4]), tensor([9])]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Dataset whose item i is the tuple of item i of each tensor.

    Parameters
    ----------
    *tensors : Tensor
        Tensors with the same size of the first dimension.

    Raises
    ------
    AssertionError
        If the sizes differ.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.utils.data import TensorDataset
    >>> TensorDataset(gl.tensor([1, 2]), gl.tensor([3.0, 4.0]))[1]
    (tensor(2), tensor(4.))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(f"Size mismatch between tensors. Their first sizes are {[t.shape[0] for t in tensors]}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Dataset whose items are tuples or dicts of the items of several datasets.

    Parameters
    ----------
    *args : Dataset
        Datasets, for items that are tuples.
    **kwargs : Dataset
        Datasets, for items that are dicts with these names.

    Raises
    ------
    ValueError
        If the lengths differ, or if both `args` and `kwargs`, or neither, are given.

    Examples
    --------
    >>> from gradlab.utils.data import StackDataset
    >>> StackDataset(x=[1, 2], y=[3, 4])[0]
    {'x': 1, 'y': 3}
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but "
                "both types are given."
                if args
                else "At least one dataset should be passed"
            )
        self.datasets: Any = args or kwargs
        lengths = {len(data) for data in args or kwargs.values()}
        if len(lengths) != 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: data[index] for name, data in self.datasets.items()}
        return tuple(data[index] for data in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Concatenation of datasets.

    Parameters
    ----------
    datasets : iterable of Dataset
        The datasets, each with a length.

    Raises
    ------
    AssertionError
        If `datasets` is empty, or one of them is an IterableDataset.

    Examples
    --------
    >>> from gradlab.utils.data import ConcatDataset
    >>> ConcatDataset([[1, 2], [3]])[2]
    3
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(data, IterableDataset) for data in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset. Use ChainDataset.")
        self.cumulative_sizes = list(accumulate(map(len, self.datasets)))

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - (self.cumulative_sizes[which - 1] if which else 0)]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]


class ChainDataset(IterableDataset[Any]):
    """Concatenation of iterable datasets.

    Parameters
    ----------
    datasets : iterable of IterableDataset
        The datasets.

    Examples
    --------
    >>> from gradlab.utils.data import ChainDataset, IterableDataset
    >>> class Two(IterableDataset):
    ...     def __iter__(self):
    ...         return iter((1, 2))
    >>> list(ChainDataset([Two(), Two()]))
    [1, 2, 1, 2]
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for data in self.datasets:
            if not isinstance(data, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from data

    def __len__(self) -> int:
        return sum(map(len, self.datasets))  # type: ignore[arg-type]


class Subset(Dataset[T]):
    """The items of a dataset at given indices.

    Parameters
    ----------
    dataset : Dataset
        The dataset.
    indices : sequence of int
        Indices of the items.

    Examples
    --------
    >>> from gradlab.utils.data import Subset
    >>> list(Subset(["a", "b", "c"], [2, 0]))
    ['c', 'a']
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        """Return several items at once."""
        return items_of(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[Any]]:
    """Split a dataset at random into subsets.

    Parameters
    ----------
    dataset : Dataset
        The dataset.
    lengths : sequence of int, or of float
        Lengths of the subsets, or fractions with sum 1. The remainder is distributed to the first subsets, one item each.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Returns
    -------
    list of Subset

    Raises
    ------
    ValueError
        If the lengths do not sum to that of the dataset, or a fraction is not between 0 and 1.

    Examples
    --------
    >>> from gradlab.utils.data import random_split
    >>> [len(part) for part in random_split(range(10), [0.75, 0.25])]
    [8, 2]
    """
    sizes, count = list(lengths), len(dataset)
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1:
        for i, part in enumerate(sizes):
            if part < 0 or part > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(count * part) for part in sizes]
        for i in range(int(count - sum(sizes))):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2)
    if sum(sizes) != count:
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset! The lengths are "
            f"{sizes}, which is {sum(sizes)}; the dataset has {count} items."
        )
    order = randperm(count, generator=generator).tolist()
    return [Subset(dataset, order[end - size : end]) for end, size in zip(accumulate(sizes), sizes, strict=True)]  # type: ignore[misc]


def items_of(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    """Return several items, at once if the dataset supports it."""
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if several else [dataset[i] for i in indices]

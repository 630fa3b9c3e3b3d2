"""Samplers: the order in which a loader reads samples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np

from gradlab.core.dtypes import float64
from gradlab.core.tensor import constant
from gradlab.ops.from_data import as_tensor
from gradlab.random import Generator, multinomial, randint, randperm

T = TypeVar("T", covariant=True)


def check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def check_boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise (ValueError if name == "drop_last" else TypeError)(f"{name} should be a boolean value, but got {name}={value}")


def draw_seed(generator: Generator | None = None) -> int:
    """Draw a seed as torch does."""
    return int(constant(np.empty((), np.int64)).random_(generator=generator).item())


class Sampler(Generic[T]):
    """Base class of samplers. Subclasses define `__iter__`, which yields indices, and usually `__len__`.

    Examples
    --------
    >>> from gradlab.utils.data import DataLoader, Sampler
    >>> class Backwards(Sampler):
    ...     def __iter__(self):
    ...         return iter((2, 1, 0))
    ...     def __len__(self):
    ...         return 3
    >>> list(DataLoader([10, 20, 30], sampler=Backwards(), batch_size=None))
    [30, 20, 10]
    """

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """Sampler of all indices in order.

    Parameters
    ----------
    data_source : Dataset
        The dataset.

    Examples
    --------
    >>> from gradlab.utils.data import SequentialSampler
    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Sampler of all indices in random order.

    Parameters
    ----------
    data_source : Dataset
        The dataset.
    replacement : bool, default: False
        Draw with replacement.
    num_samples : int, optional
        Number of indices (default: the length of the dataset).
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Raises
    ------
    TypeError, ValueError
        If `replacement` is not a bool, or `num_samples` is not a positive int.

    Examples
    --------
    >>> from gradlab.utils.data import RandomSampler
    >>> sorted(RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        check_boolean("replacement", replacement)
        check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Number of indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator or Generator().manual_seed(draw_seed())
        rounds, rest = divmod(self.num_samples, 32 if self.replacement else n)
        for size in [32 if self.replacement else n] * rounds + [rest]:  # torch draws even if the rest is 0
            yield from (
                randint(n, (size,), generator=generator) if self.replacement else randperm(n, generator=generator)[:size]
            ).tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Sampler of given indices in random order.

    Parameters
    ----------
    indices : sequence of int
        The indices.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Examples
    --------
    >>> from gradlab.utils.data import SubsetRandomSampler
    >>> sorted(SubsetRandomSampler([4, 2]))
    [2, 4]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Sampler that draws indices with given weights.

    Parameters
    ----------
    weights : sequence of float
        Weight of each item. They need not sum to 1.
    num_samples : int
        Number of indices.
    replacement : bool, default: True
        Draw with replacement.
    generator : Generator, optional
        Source of random numbers (default: the default generator).

    Raises
    ------
    ValueError
        If `num_samples` is not a positive int, `replacement` is not a bool, or `weights` is not one-dimensional.

    Examples
    --------
    >>> from gradlab.utils.data import WeightedRandomSampler
    >>> list(WeightedRandomSampler([0.0, 1.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=float64)
        if self.weights.ndim != 1:
            raise ValueError(f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}")
        self.num_samples, self.replacement, self.generator = num_samples, replacement, generator

    def __iter__(self) -> Iterator[int]:
        yield from multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator).tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Group the indices of another sampler into lists.

    Parameters
    ----------
    sampler : Sampler or iterable of int
        The indices.
    batch_size : int
        Number of indices in a list.
    drop_last : bool
        Omit the last list if it is shorter.

    Raises
    ------
    ValueError
        If `batch_size` is not a positive int, or `drop_last` is not a bool.

    Examples
    --------
    >>> from gradlab.utils.data import BatchSampler
    >>> list(BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        check_positive("batch_size", batch_size)
        check_boolean("drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return batches_in(len(self.sampler), self.batch_size, self.drop_last)


def batches_in(count: int, size: int, drop_last: bool) -> int:
    return count // size if drop_last else -(-count // size)

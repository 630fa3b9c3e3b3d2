"""`torch.utils.data`: datasets, samplers, and the loader that makes batches of them, in torch's order under a seed.

The order is torch's because the same numbers are drawn: a loader's iterator draws a base seed (meant for workers, which gradlab
does not start), then the random sampler draws a seed and shuffles with a stream of its own; with `generator=` both use that.
"""

from __future__ import annotations

import math
import re
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, Generic, TypeVar

import numpy as np

from gradlab.backend.namespaces import SCALARS
from gradlab.core.dtypes import float64
from gradlab.core.errors import names_of
from gradlab.core.tensor import Tensor, constant
from gradlab.ops import stack
from gradlab.ops.from_data import as_tensor, tensor
from gradlab.random import Generator, multinomial, randint, randperm

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

T = TypeVar("T", covariant=True)


# ------------------------------------------------------------------------------------------------------------- datasets
class Dataset(Generic[T]):
    """Base of data that is asked for by index: a class of one's own defines `__getitem__` and `__len__`."""

    def __getitem__(self, index: Any) -> T:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T]):
    """Base of data that comes one after another: a class of one's own defines `__iter__`."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset[Any]) -> Any:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of the same first size; item i is the tuple of their items i."""

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.shape[0] != tensors[0].shape[0] for t in tensors):
            raise AssertionError(f"Size mismatch between tensors. Their first sizes are {[t.shape[0] for t in tensors]}.")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].shape[0]


class StackDataset(Dataset[Any]):
    """Datasets of the same length side by side: items are tuples, or dicts if the datasets were given by keywords."""

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
    """Datasets one after another."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(data, IterableDataset) for data in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset. ChainDataset does.")
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
    """Iterable datasets one after another."""

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
    """The items of a dataset at the given indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> T:
        return self.dataset[[self.indices[i] for i in index] if isinstance(index, list) else self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[T]:
        """Several items at once."""
        return _items(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[Any]]:
    """The dataset cut at random into subsets of the given lengths, or of the given fractions, which add up to 1.

    What the fractions leave over goes to the first subsets, one item each."""
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


# ------------------------------------------------------------------------------------------------------------- samplers
def _positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


def _boolean(name: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise (ValueError if name == "drop_last" else TypeError)(f"{name} should be a boolean value, but got {name}={value}")


def _seed(generator: Generator | None = None) -> int:
    """What torch draws where it needs a seed."""
    return int(constant(np.empty((), np.int64)).random_(generator=generator).item())


class Sampler(Generic[T]):
    """Base of samplers: a class of one's own defines `__iter__`, which gives indices, and mostly `__len__`."""

    def __iter__(self) -> Iterator[T]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler[int]):
    """The indices in order."""

    def __init__(self, data_source: Any) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices in random order; with replacement, `num_samples` independent ones."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None, generator: Generator | None = None
    ) -> None:
        self.data_source, self.replacement, self._num_samples, self.generator = data_source, replacement, num_samples, generator
        _boolean("replacement", replacement)
        _positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices there will be."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator or Generator().manual_seed(_seed())
        rounds, rest = divmod(self.num_samples, 32 if self.replacement else n)
        for size in [32 if self.replacement else n] * rounds + [rest]:  # torch draws for a rest of 0 too
            yield from (
                randint(n, (size,), generator=generator) if self.replacement else randperm(n, generator=generator)[:size]
            ).tolist()

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices, self.generator = indices, generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices, drawn by weights (which need not add up to 1)."""

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        _positive("num_samples", num_samples)
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
    """Another sampler's indices in lists of batch_size; a short last one is left out if drop_last."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        _positive("batch_size", batch_size)
        _boolean("drop_last", drop_last)
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        return _batches(len(self.sampler), self.batch_size, self.drop_last)


def _batches(count: int, size: int, drop_last: bool) -> int:
    return count // size if drop_last else -(-count // size)


# -------------------------------------------------------------------------------------------------------------- collate
def default_collate(batch: Any) -> Any:
    """One batch of a list of samples: tensors are stacked, arrays and numbers become a tensor, strings stay a list, and of dicts,
    tuples and lists each place is collated by itself."""
    first = batch[0]
    if isinstance(first, Tensor):
        return stack(batch, 0)
    if isinstance(first, np.ndarray):
        if first.dtype.kind not in "biuf":
            raise TypeError(_uncollatable(first.dtype.str))
        return stack([as_tensor(array) for array in batch], 0)
    if isinstance(first, SCALARS):
        return as_tensor(np.array(batch))
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, int):
        return tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        collated = {key: default_collate([sample[key] for sample in batch]) for key in first}
        return collated if type(first) is dict else type(first)(collated)  # type: ignore[call-arg]
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                "each element in list of batch should be of equal size. Give the loader a collate_fn that says "
                "how they go together."
            )
        columns = [default_collate(samples) for samples in zip(*batch, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else columns
    raise TypeError(_uncollatable(type(first)))


def _uncollatable(kind: Any) -> str:
    return (
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{re.sub('^torch', 'gradlab', str(kind))}"
    )


def default_convert(data: Any) -> Any:
    """What a loader without batches hands out: arrays become tensors, all else stays."""
    if isinstance(data, (np.ndarray, *SCALARS)):
        return as_tensor(data) if data.dtype.kind in "biuf" else data
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [default_convert(value) for value in data] if isinstance(data, (tuple, list)) else data


def _items(dataset: Any, indices: Sequence[Any]) -> list[Any]:
    several = getattr(dataset, "__getitems__", None)
    return several(indices) if several else [dataset[i] for i in indices]


def get_worker_info() -> None:
    """None: data is loaded in the process itself."""


# --------------------------------------------------------------------------------------------------------------- loader
class DataLoader(Generic[T]):
    """Batches of a dataset: `for x, y in DataLoader(data, batch_size=64, shuffle=True)`.

    `sampler` gives the indices, or `batch_sampler` lists of them; batch_size=None hands out single samples; `collate_fn` makes
    a batch of a list of samples. What concerns worker processes is accepted and changes nothing: samples are made in this process
    when they are asked for. `pin_memory` puts the batches into page-locked memory where there is a GPU.
    """

    _fixed = "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 to enable "
                "multiprocessing, otherwise set prefetch_factor to None."
            )
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        streams = isinstance(dataset, IterableDataset)
        if streams:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None and not streams:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            _positive("batch_size", batch_size)
            if batch_sampler is None and not streams:
                batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.dataset, self.batch_size, self.drop_last = dataset, batch_size, drop_last
        self.sampler, self.batch_sampler, self.generator = sampler, batch_sampler, generator
        batched = batch_sampler is not None or batch_size is not None
        self.collate_fn = collate_fn or (default_collate if batched else default_convert)
        self.num_workers, self.pin_memory, self.timeout, self.worker_init_fn = num_workers, pin_memory, timeout, worker_init_fn
        self.multiprocessing_context, self.prefetch_factor = multiprocessing_context, prefetch_factor
        self.persistent_workers, self.pin_memory_device, self.in_order = persistent_workers, pin_memory_device, in_order
        self._made = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._fixed and "_made" in vars(self):
            raise ValueError(f"{name} attribute should not be set after DataLoader is initialized. Make another one.")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return _LoaderIterator(self)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            count = len(self.dataset)  # type: ignore[arg-type]
            return count if self.batch_size is None else _batches(count, self.batch_size, self.drop_last)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


class _LoaderIterator:
    """One pass over a loader. Making it draws the base seed, its first item the order: as in torch."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        _seed(loader.generator)
        self._samples = self._streamed() if isinstance(loader.dataset, IterableDataset) else self._indexed()

    def _streamed(self) -> Iterator[Any]:
        loader = self._loader
        items = iter(loader.dataset)
        if loader.batch_size is None:
            yield from items
            return
        while batch := list(islice(items, loader.batch_size)):
            if len(batch) == loader.batch_size or not loader.drop_last:
                yield batch

    def _indexed(self) -> Iterator[Any]:
        loader = self._loader
        if loader.batch_sampler is None:
            yield from (loader.dataset[i] for i in loader.sampler)
        else:
            yield from (_items(loader.dataset, indices) for indices in loader.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        batch = self._loader.collate_fn(next(self._samples))
        return pinned(batch) if self._loader.pin_memory else batch


def pinned(batch: Any) -> Any:
    """The batch with its tensors in page-locked memory, where there is a GPU to read it; a batch of a user's own type is asked
    for `pin_memory()`, if it has that."""
    if isinstance(batch, Mapping):
        return {name: pinned(part) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = [pinned(part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


__getattr__ = names_of("gradlab.utils.data")

"""The loader of batches of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

from gradlab.core.errors import module_getattr
from gradlab.random import Generator
from gradlab.utils.data.collate import default_collate, default_convert
from gradlab.utils.data.datasets import IterableDataset, items_of
from gradlab.utils.data.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    batches_in,
    check_positive,
    draw_seed,
)

T = TypeVar("T", covariant=True)


class DataLoader(Generic[T]):
    """Iterate over batches of a dataset: `for x, y in DataLoader(data, batch_size=64, shuffle=True)`.

    Parameters
    ----------
    dataset : Dataset or IterableDataset
        The data.
    batch_size : int or None, default: 1
        Number of samples in a batch. None yields single samples.
    shuffle : bool, optional
        Use a new random order in each epoch.
    sampler : Sampler or iterable of int, optional
        The indices, in place of `shuffle`.
    batch_sampler : Sampler or iterable of lists, optional
        Lists of indices, in place of `batch_size`, `shuffle`, `sampler` and `drop_last`.
    collate_fn : callable, optional
        Function that combines a list of samples to a batch (default: `default_collate`).
    pin_memory : bool, default: False
        Copy batches to page-locked memory if there is a GPU.
    drop_last : bool, default: False
        Omit the last batch if it is smaller.
    generator : Generator, optional
        Source of random numbers (default: the default generator).
    num_workers, timeout, worker_init_fn, multiprocessing_context, prefetch_factor : optional
        Accepted for compatibility; have no effect, as there are no worker processes.
    persistent_workers, pin_memory_device, in_order : optional
        Accepted for compatibility; have no effect. Samples are loaded in this process, when they are needed.

    Raises
    ------
    ValueError, TypeError
        If arguments exclude each other or have the wrong type.

    Examples
    --------
    >>> import gradlab as gl
    >>> from gradlab.utils.data import DataLoader, TensorDataset
    >>> data = TensorDataset(gl.arange(5), gl.arange(5) ** 2)
    >>> [y.tolist() for x, y in DataLoader(data, batch_size=2)]
    [[0, 1], [4, 9], [16]]
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
            check_positive("batch_size", batch_size)
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
            raise ValueError(f"{name} attribute should not be set after DataLoader is initialized. Create a new one.")
        super().__setattr__(name, value)

    def __iter__(self) -> Iterator[Any]:
        return _LoaderIterator(self)

    def __len__(self) -> int:
        if isinstance(self.dataset, IterableDataset):
            count = len(self.dataset)  # type: ignore[arg-type]
            return count if self.batch_size is None else batches_in(count, self.batch_size, self.drop_last)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


class _LoaderIterator:
    """Iterator of a loader. As in torch, creating it draws the base seed, and its first item draws the order."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        self._loader = loader
        draw_seed(loader.generator)
        self._samples = self._iterate_stream() if isinstance(loader.dataset, IterableDataset) else self._iterate_indices()

    def _iterate_stream(self) -> Iterator[Any]:
        loader = self._loader
        items = iter(loader.dataset)
        if loader.batch_size is None:
            yield from items
            return
        while batch := list(islice(items, loader.batch_size)):
            if len(batch) == loader.batch_size or not loader.drop_last:
                yield batch

    def _iterate_indices(self) -> Iterator[Any]:
        loader = self._loader
        if loader.batch_sampler is None:
            yield from (loader.dataset[i] for i in loader.sampler)
        else:
            yield from (items_of(loader.dataset, indices) for indices in loader.batch_sampler)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        batch = self._loader.collate_fn(next(self._samples))
        return pin_tensors(batch) if self._loader.pin_memory else batch


def pin_tensors(batch: Any) -> Any:
    """Copy the tensors of a batch to page-locked memory if there is a GPU. Call `pin_memory()` of other types that have it."""
    if isinstance(batch, Mapping):
        return {name: pin_tensors(part) for name, part in batch.items()}
    if isinstance(batch, (tuple, list)):
        parts = [pin_tensors(part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    return batch.pin_memory() if hasattr(batch, "pin_memory") else batch


__getattr__ = module_getattr("gradlab.utils.data")

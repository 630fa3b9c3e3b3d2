"""Programs with datasets and loaders, run with torch to record results and with gradlab to compare them."""

from __future__ import annotations

import warnings
from collections import namedtuple
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

Case = Callable[[Any], Any]
Pair = namedtuple("Pair", "x y")


def module(lib: Any) -> Any:
    return import_module(f"{lib.__name__}.utils.data")


def plain(data: Any) -> Any:
    """Convert batches to plain data: tensors to dtype and nested lists, containers by type."""
    if isinstance(data, dict):
        return {k: plain(v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return [type(data).__name__, *map(plain, data)]
    if isinstance(data, bytes):
        return repr(data)
    return [str(data.dtype), data.tolist()] if hasattr(data, "tolist") else data


def orders(seed: int, count: int = 10, rounds: int = 3, own: bool = False, **settings: Any) -> Case:
    """Return a case of several epochs of a loader: the batches, and the next number of the random generator."""

    def case(lib: Any) -> Any:
        data = module(lib).TensorDataset(lib.arange(count), lib.arange(count) * 10)
        lib.manual_seed(seed)
        generator = {"generator": lib.Generator().manual_seed(seed + 1)} if own else {}
        loader = module(lib).DataLoader(data, **settings, **generator)
        passes = [[plain(batch) for batch in loader] for _ in range(rounds)]
        return [len(loader), passes, lib.rand(2).tolist()]

    return case


def interrupt_epochs(lib: Any) -> Any:
    """Epochs that are not finished, and two at the same time."""
    lib.manual_seed(4)
    generator = lib.Generator().manual_seed(5)
    loaders = [
        module(lib).DataLoader(range(12), batch_size=5, shuffle=True),
        module(lib).DataLoader(range(12), batch_size=5, shuffle=True, generator=generator),
    ]
    found = []
    for loader in loaders:
        first, second = iter(loader), iter(loader)
        found += [plain(next(first)), plain(next(second)), plain(next(first)), plain(next(iter(loader)))]
    return [found, lib.rand(1).tolist()]


def sample(make: Callable[[Any, Any, Any], Any], own: bool = False) -> Case:
    def case(lib: Any) -> Any:
        lib.manual_seed(11)
        sampler = make(module(lib), lib, lib.Generator().manual_seed(3) if own else None)
        return [len(sampler), list(sampler), list(sampler), lib.rand(1).tolist()]

    return case


SAMPLERS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sequential": lambda d, lib, g: d.SequentialSampler(range(5)),
    "random": lambda d, lib, g: d.RandomSampler(range(9), generator=g),
    "random, more than there are": lambda d, lib, g: d.RandomSampler(range(9), num_samples=21, generator=g),
    "random, fewer": lambda d, lib, g: d.RandomSampler(range(9), num_samples=4, generator=g),
    "with replacement": lambda d, lib, g: d.RandomSampler(range(9), True, 40, g),
    "with replacement, 32": lambda d, lib, g: d.RandomSampler(range(9), True, 32, g),
    "subset": lambda d, lib, g: d.SubsetRandomSampler([5, 8, 2, 3], g),
    "weighted": lambda d, lib, g: d.WeightedRandomSampler([0.1, 0.9, 0.5, 2.0], 12, generator=g),
    "weighted, without replacement": lambda d, lib, g: d.WeightedRandomSampler(lib.tensor([0.1, 0.9, 0.5]), 3, False, g),
    "batches": lambda d, lib, g: d.BatchSampler(d.RandomSampler(range(10), generator=g), 3, False),
    "whole batches": lambda d, lib, g: d.BatchSampler(d.SequentialSampler(range(10)), 3, True),
}


def splits(*lengths: Any, own: bool = False) -> Case:
    def case(lib: Any) -> Any:
        lib.manual_seed(2)
        generator = {"generator": lib.Generator().manual_seed(42)} if own else {}
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            parts = module(lib).random_split(range(100, 110), lengths, **generator)
        return [
            [list(part.indices) for part in parts],
            [list(part) for part in parts if len(part)],
            [len(p) for p in parts],
            [str(w.message) for w in seen],
        ]

    return case


BATCHES: dict[str, Callable[[Any], list[Any]]] = {
    "ints": lambda lib: [1, 2],
    "floats": lambda lib: [1.5, 2.0],
    "float first": lambda lib: [1.5, 2],
    "bools": lambda lib: [True, False],
    "strings": lambda lib: ["a", "b"],
    "bytes": lambda lib: [b"a", b"b"],
    "tensors": lambda lib: [lib.ones(2), lib.zeros(2)],
    "scalars": lambda lib: [lib.tensor(1), lib.tensor(2)],
    "pairs": lambda lib: [(1, lib.ones(2)), (2, lib.zeros(2))],
    "lists": lambda lib: [[1, 2], [3, 4]],
    "dicts": lambda lib: [{"a": 1, "b": (1, "x")}, {"a": 2, "b": (3, "y")}],
    "named tuples": lambda lib: [Pair(1, 2.0), Pair(3, 4.0)],
    "arrays": lambda lib: [np.ones(2), np.zeros(2)],
    "float32 arrays": lambda lib: [np.ones((2, 2), np.float32)] * 3,
    "one array": lambda lib: [np.arange(3)],
    "arrays without axes": lambda lib: [np.array(1.5)] * 2,
    "NumPy floats": lambda lib: [np.float32(1), np.float32(2)],
    "NumPy ints": lambda lib: [np.int64(1), np.int64(2)],
    "NumPy doubles": lambda lib: [np.float64(1.5)] * 2,
    "NumPy bools": lambda lib: [np.bool_(True)] * 2,
    "nested": lambda lib: [({"x": [lib.ones(1), 2]}, np.int32(3))] * 2,
}


def convert_data(lib: Any) -> Any:
    data = [np.ones(2), 1, "a", {"b": np.float32(2), "c": (np.arange(2), None)}, Pair(1, np.ones(1))]
    return plain(module(lib).default_convert(data))


def stream_of(lib: Any, count: int) -> Any:
    class Numbers(module(lib).IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(count))

    return Numbers()


def streams(lib: Any) -> Any:
    loader, numbers = module(lib).DataLoader, stream_of(lib, 7)
    lib.manual_seed(1)
    chained = module(lib).ChainDataset([stream_of(lib, 3), stream_of(lib, 2)])
    return [
        [plain(batch) for batch in loader(numbers, **settings)]
        for settings in ({"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}, {})
    ] + [[plain(batch) for batch in loader(chained, batch_size=2)], lib.rand(1).tolist()]


def datasets(lib: Any) -> Any:
    d = module(lib)

    class Squares(d.Dataset):
        def __getitem__(self, index: int) -> Any:
            return lib.tensor([float(index)]), index**2

        def __len__(self) -> int:
            return 5

    squares = Squares()
    joined = squares + d.TensorDataset(lib.arange(3), lib.arange(3) * 2)
    subset = d.Subset(squares, [3, 1])
    stacked = d.StackDataset(x=squares, y=range(5))
    return [
        len(joined),
        plain(joined[4]),
        plain(joined[5]),
        plain(joined[-1]),
        joined.cumulative_sizes,
        len(subset),
        plain(subset[0]),
        plain(list(d.DataLoader(d.Subset(subset, [1, 0]), batch_size=2))),
        plain(stacked[2]),
        len(stacked),
        plain(d.StackDataset(range(3), "abc")[1]),
        plain(d.TensorDataset(lib.arange(6).view(3, 2))[1:]),
        plain(d.Subset(d.TensorDataset(lib.arange(5)), [4, 2, 0])[[0, 1]]),
        [plain(batch) for batch in d.DataLoader(squares, batch_size=2)],
        [plain(batch) for batch in d.DataLoader(squares, batch_size=None)][:2],
        list(d.DataLoader(squares, batch_size=4, collate_fn=lambda samples: [y for _, y in samples])),
        plain(list(d.DataLoader(squares, sampler=[2, 0], batch_size=2))),
        plain(list(d.DataLoader(squares, batch_sampler=[[2, 0], [1]]))),
    ]


def settings_of(lib: Any) -> Any:
    loader = module(lib).DataLoader(range(10), 4, True, num_workers=0, pin_memory=False)
    return [
        loader.batch_size,
        loader.drop_last,
        loader.num_workers,
        loader.pin_memory,
        type(loader.sampler).__name__,
        type(loader.batch_sampler).__name__,
        loader.batch_sampler.batch_size,
        len(loader.dataset),
        len(loader),
        loader.timeout,
    ]


def error_of(body: Callable[[Any, Any], Any]) -> Case:
    def case(lib: Any) -> Any:
        try:
            body(lib, module(lib))
        except Exception as error:  # noqa: BLE001
            return {"raised": [type(error).__name__, str(error)]}
        return "no error"

    return case


def data_of(lib: Any) -> Any:
    return module(lib).TensorDataset(lib.arange(4))


def loader(**settings: Any) -> Callable[[Any, Any], Any]:
    return lambda lib, d: d.DataLoader(data_of(lib), **settings)


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "lengths": lambda lib, d: d.random_split(range(10), [3, 4]),
    "fractions": lambda lib, d: d.random_split(range(10), [0.5, 0.9]),
    "negative fraction": lambda lib, d: d.random_split(range(10), [1.5, -0.5]),
    "workers": loader(num_workers=-1),
    "batch size 0": loader(batch_size=0),
    "batch size 2.5": loader(batch_size=2.5),
    "shuffle and sampler": loader(shuffle=True, sampler=[1]),
    "batch_size and batch_sampler": loader(batch_size=2, batch_sampler=[[1]]),
    "drop_last and batch_sampler": loader(drop_last=True, batch_sampler=[[1]]),
    "drop_last": loader(batch_size=None, drop_last=True),
    "timeout": loader(timeout=-1),
    "prefetch": loader(prefetch_factor=2),
    "persistent": loader(persistent_workers=True),
    "shuffling nothing": lambda lib, d: d.DataLoader([], shuffle=True),
    "changed": lambda lib, d: setattr(d.DataLoader(data_of(lib)), "batch_size", 3),
    "sizes": lambda lib, d: d.TensorDataset(lib.ones(2), lib.ones(3)),
    "nothing joined": lambda lib, d: d.ConcatDataset([]),
    "index": lambda lib, d: d.ConcatDataset([range(3), range(4)])[-8],
    "no samples": lambda lib, d: d.RandomSampler([1], num_samples=0),
    "replacement": lambda lib, d: d.RandomSampler([1], replacement=1),
    "batch of 0": lambda lib, d: d.BatchSampler([1], 0, False),
    "drop_last 0": lambda lib, d: d.BatchSampler([1], 1, 0),
    "no weighted samples": lambda lib, d: d.WeightedRandomSampler([1.0], 0),
    "matrix of weights": lambda lib, d: d.WeightedRandomSampler([[1.0]], 2),
    "weighted, replacement": lambda lib, d: d.WeightedRandomSampler([1.0], 2, 3),
    "unequal tensors": lambda lib, d: d.default_collate([lib.ones(2), lib.ones(3)]),
    "unequal lists": lambda lib, d: d.default_collate([[1, 2], [3]]),
    "nothing": lambda lib, d: d.default_collate([None]),
    "array of strings": lambda lib, d: d.default_collate([np.array(["a"])]),
    "no item": lambda lib, d: d.Dataset()[0],
    "no length": lambda lib, d: len(d.Dataset()),
    "stream, shuffle": lambda lib, d: d.DataLoader(stream_of(lib, 3), shuffle=True),
    "stream, sampler": lambda lib, d: d.DataLoader(stream_of(lib, 3), sampler=[1]),
    "stream, batch_sampler": lambda lib, d: d.DataLoader(stream_of(lib, 3), batch_sampler=[[1]]),
    "stream, length": lambda lib, d: len(d.DataLoader(stream_of(lib, 3))),
}
TOPICS: dict[str, dict[str, Case]] = {
    "loaders": {
        "in order": orders(0, batch_size=4),
        "drop_last": orders(0, batch_size=4, drop_last=True),
        "one by one": orders(0, 3),
        "shuffled": orders(1, batch_size=4, shuffle=True),
        "shuffled, dropping": orders(2, 11, batch_size=4, shuffle=True, drop_last=True),
        "shuffled, 1000": orders(3, 1000, 2, batch_size=250, shuffle=True),
        "own stream": orders(4, own=True, batch_size=3, shuffle=True),
        "own stream, in order": orders(4, own=True, batch_size=3),
        "single samples": orders(5, 4, batch_size=None, shuffle=True),
        "interrupted": interrupt_epochs,
        "streams": streams,
        "datasets": datasets,
        "settings": settings_of,
        "converted": convert_data,
        **{f"sampler {name}": sample(make) for name, make in SAMPLERS.items()},
        **{f"sampler {name}, own stream": sample(make, True) for name, make in SAMPLERS.items()},
        **{
            f"split {lengths}": splits(*lengths)
            for lengths in ((7, 3), (0.5, 0.35, 0.15), (10,), (0.98, 0.01, 0.01), (1,), (5, 0, 5))
        },
        "split by a seed": splits(0.8, 0.2, own=True),
        **{
            f"collate {name}": lambda lib, batch=batch: plain(module(lib).default_collate(batch(lib)))
            for name, batch in BATCHES.items()
        },
    },
    "data_errors": {name: error_of(body) for name, body in ERRORS.items()},
}

"""Datasets, samplers and the loader of `torch.utils.data`. A seed gives the same order as in PyTorch.

The order is the same because the same random numbers are drawn: the iterator of a loader draws a base seed (for workers, which
gradlab does not start), then the random sampler draws a seed and shuffles with its own generator. With `generator=` both use it.
"""

from gradlab.utils.data.collate import default_collate, default_convert, get_worker_info
from gradlab.utils.data.datasets import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from gradlab.utils.data.loader import DataLoader
from gradlab.utils.data.samplers import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

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

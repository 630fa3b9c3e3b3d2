"""`torch.utils.data`: datasets, samplers, and the loader that makes batches of them, in torch's order under a seed.

The order is torch's because the same numbers are drawn: a loader's iterator draws a base seed (meant for workers, which gradlab
does not start), then the random sampler draws a seed and shuffles with a stream of its own; with `generator=` both use that.
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

"""Collation of samples to a batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from gradlab.backend.namespaces import SCALARS
from gradlab.core.dtypes import float64
from gradlab.core.tensor import Tensor
from gradlab.ops import stack
from gradlab.ops.from_data import as_tensor, tensor


def default_collate(batch: Any) -> Any:
    """Combine a list of samples to a batch.

    Parameters
    ----------
    batch : list
        Samples of the same structure. Tensors are stacked, arrays and numbers become a tensor, strings remain a list, and dicts,
        tuples and lists are collated item by item.

    Returns
    -------
    Tensor, list, tuple or dict
        Structure of a sample.

    Raises
    ------
    TypeError
        If the type of the samples cannot be collated.
    RuntimeError
        If lists or tuples of the samples have different lengths.

    Examples
    --------
    >>> from gradlab.utils.data import default_collate
    >>> default_collate([(1, "a"), (2, "b")])
    [tensor([1, 2]), ('a', 'b')]
    """
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
                "each element in list of batch should be of equal size. Pass a collate_fn to the loader that combines "
                "samples of different sizes."
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
    """Convert the arrays in a sample to tensors, for a loader without batches.

    Parameters
    ----------
    data : Any
        A sample.

    Returns
    -------
    Any
        The sample with tensors.

    Examples
    --------
    >>> import numpy as np
    >>> from gradlab.utils.data import default_convert
    >>> default_convert({"x": np.ones(2), "name": "a"})
    {'x': tensor([1., 1.], dtype=gradlab.float64), 'name': 'a'}
    """
    if isinstance(data, (np.ndarray, *SCALARS)):
        return as_tensor(data) if data.dtype.kind in "biuf" else data
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    return [default_convert(value) for value in data] if isinstance(data, (tuple, list)) else data


def get_worker_info() -> None:
    """Return None: there are no worker processes.

    Returns
    -------
    None
        Always.

    Examples
    --------
    >>> from gradlab.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """

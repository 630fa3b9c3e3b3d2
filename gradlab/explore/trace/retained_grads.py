"""Run internal sweeps without changing the `.grad` of the user's tensors that retain their gradient."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gradlab.explore.libraries import Library


@contextmanager
def grads_kept(library: Library, nodes: Sequence[Any], names: Mapping[str, Any]) -> Iterator[None]:
    """Restore the `.grad` of intermediate tensors that retain their gradient, since every sweep writes to it."""
    tensors = library.retaining(nodes)
    tensors += [t for t in names.values() if library.is_tensor(t) and t.requires_grad and not t.is_leaf and t.retains_grad]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = [tensor.grad for tensor in tensors]
    try:
        yield
    finally:
        for tensor, gradient in zip(tensors, before, strict=True):
            tensor.grad = gradient

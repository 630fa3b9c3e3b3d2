"""Functions that the predicates of rows may call, for tensors of either library."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def array(tensor: Any) -> np.ndarray:
    if str(tensor.device) == "meta":
        return np.zeros(tuple(tensor.shape))  # it has no values
    tensor = tensor.detach().cpu()
    if str(tensor.dtype) == "torch.bfloat16":
        tensor = tensor.float()
    return np.asarray(tensor.numpy(), dtype=float)


def norm(tensor: Any) -> float:
    return float(np.sqrt((array(tensor) ** 2).sum()))


def nans(tensor: Any) -> int:
    return int(np.isnan(array(tensor)).sum())


def infs(tensor: Any) -> int:
    return int(np.isinf(array(tensor)).sum())


def zero_share(tensor: Any) -> float:
    return float((array(tensor) == 0).mean())


def all_zero(*tensors: Any) -> bool:
    return all(t is not None and zero_share(t) == 1 for t in tensors)


def learning(parameters: Iterable[Any]) -> bool:
    """Return whether every parameter has a finite, non-zero gradient."""
    return all(p.grad is not None and np.isfinite(array(p.grad)).all() and norm(p.grad) > 0 for p in parameters)


def without_gradient(model: Any) -> list[str]:
    """Return the names of a module's parameters that have no gradient."""
    return [name for name, p in model.named_parameters() if p.grad is None]


def close(a: Any, b: Any, rtol: float = 1e-5) -> bool:
    return bool(np.allclose(array(a), array(b), rtol=rtol))


def records(tensor: Any, *names: str) -> bool:
    """Return whether the graph of a tensor has nodes of all these operations, such as "Log" and "Softmax"."""
    waiting, seen = [tensor.grad_fn], set()
    found: set[str] = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.add(node.name().partition("Backward")[0])
        waiting += [source for source, _ in node.next_functions]
    return set(names) <= found


SYMPTOMS = {f.__name__: f for f in (array, norm, nans, infs, zero_share, all_zero, learning, without_gradient, close, records)}

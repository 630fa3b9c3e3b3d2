"""The one place that writes `.grad` for the user: the `backward` of a `%%grad` cell.

It is an ordinary `backward` with `retain_graph=True`, so hooks run once, as usual. In addition, a replaced gradient is returned,
non-leaf tensors get back their previous `.grad`, and if the sweep fails every `.grad` is restored.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gradlab.explore.report import Subject
from gradlab.explore.sources import Source


@dataclass
class Written:
    """Changes of `.grad`: names of leaves, and their previous gradients."""

    fresh: list[str] = field(default_factory=list)
    replaced: dict[str, np.ndarray] = field(default_factory=dict)
    added: dict[str, np.ndarray] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fresh or self.replaced or self.added)


def backward(subject: Subject, sources: Sequence[Source], weights: Any, *, accumulate: bool, restricted: bool) -> Written:
    """Run one backward, set the gradients of the sources, and return the changes of each `.grad`.

    Parameters
    ----------
    weights : Tensor or None
        The cotangent of the output.
    accumulate : bool
        Add to existing gradients instead of replacing them.
    restricted : bool
        Whether only the sources get a gradient, or every leaf of the graph.
    """
    wanted = [source for source in sources if source.used and source.wanted]
    leaves = [source for source in wanted if source.is_leaf]
    others = [source for source in wanted if not source.is_leaf]
    library = subject.library
    held = [source.tensor.grad for source in leaves]
    before = [None if gradient is None else np.array(library.array(gradient)) for gradient in held]
    spare = [_clone(gradient) if accumulate else gradient for gradient in held]  # accumulation is in place
    retained = [_quiet_grad(source.tensor) for source in others]
    retaining = [source.tensor.retains_grad for source in others]
    done = False
    try:
        if not accumulate:
            for source in leaves:
                source.tensor.grad = None
        for source in others:
            source.tensor.grad = None
        extra = {"inputs": [source.tensor for source in wanted]} if restricted else {}
        subject.out.backward(weights, retain_graph=True, **extra)
        for source in leaves:
            source.gradient = source.tensor.grad
        for source in others:
            source.gradient = _quiet_grad(source.tensor)
        done = True
    finally:
        if not done:
            for source, gradient in zip(leaves, spare, strict=True):
                source.tensor.grad = gradient
        for source, gradient, asked in zip(others, retained, retaining, strict=True):
            source.tensor.grad = gradient
            if not asked:  # an input of backward retains its gradient from then on
                library.retain_no_more(source.tensor)
    written = Written()
    for source, old in zip(leaves, before, strict=True):
        if source.gradient is None:
            continue
        if old is None:
            written.fresh.append(source.name)
        else:
            (written.added if accumulate else written.replaced)[source.name] = old
    return written


def _clone(gradient: Any) -> Any:
    return None if gradient is None else gradient.detach().clone()


def _quiet_grad(tensor: Any) -> Any:
    """Return `.grad` of a non-leaf tensor without the libraries' warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad

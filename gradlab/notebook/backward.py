"""The one place that writes `.grad` for the user: the `backward` of a `%%grad` cell.

It is an ordinary `backward` with the graph kept, so hooks run once and as always. What is ours is what happens round it: a
gradient that is replaced is handed back, tensors that are no leaves get back the `.grad` they had, and if anything stops the
sweep every `.grad` is as it was.
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
    """What happened to `.grad`: names of leaves, and the gradients that were there before."""

    fresh: list[str] = field(default_factory=list)
    replaced: dict[str, np.ndarray] = field(default_factory=dict)
    added: dict[str, np.ndarray] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fresh or self.replaced or self.added)


def backward(subject: Subject, sources: Sequence[Source], weights: Any, *, accumulate: bool, restricted: bool) -> Written:
    """Run one backward, fill in the gradients of the sources, leaves among them, and say what happened to each `.grad`.

    Parameters
    ----------
    weights : Tensor or None
        The cotangent of the output.
    accumulate : bool
        Add to the gradients that are there instead of replacing them.
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
    """`.grad` of a tensor that is no leaf, of which the libraries warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tensor.grad

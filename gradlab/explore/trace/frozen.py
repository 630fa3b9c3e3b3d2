"""Record how frozen parts change: running statistics of batch normalisations, and parameters that an optimizer still moves.

Programs without frozen parts cost a comparison for each call of a norm, and a look at each parameter before a step. Frozen
parts are sampled: the statistics once, and the parameters that have a gradient before and after each step. Calls that are not
recorded are unknown, so each few steps the norms that were called in training mode are looked at again: one may be frozen now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.libraries import Library, library_of
from gradlab.explore.trace.data import MovedLeaf, MovedStatistics
from gradlab.explore.trace.identities import Identities
from gradlab.explore.trace.lines import Lines
from gradlab.explore.trace.notes import RecordedCall, cell_site

INTERVAL = 8  # steps after which norms are looked at again
MAX_SAMPLED = 100  # steps of an optimizer with frozen parameters that are sampled


@dataclass(slots=True)
class _Norm:
    """A batch normalisation when it was first seen in training mode with frozen parameters."""

    call: RecordedCall  # the first call since, as soon as one is recorded
    is_called: bool  # whether one is
    before: tuple[np.ndarray, ...]  # the running mean and variance, then the parameters
    first: int  # the number of sweeps until then
    last: int  # the number of sweeps until the last call
    learning: RecordedCall | None  # the last call before it was frozen


@dataclass(slots=True)
class _Leaf:
    """A parameter that steps changed although it does not require a gradient."""

    ref: Callable[[], Any]
    gradient: tuple[Callable[[], Any], np.ndarray]  # at the last of these steps
    moved: np.ndarray
    steps: int = 0
    site: Any = None
    cell: Any = None
    has_new_gradient: bool = False  # whether someone wrote its gradient between two steps


class FrozenParts:
    """The frozen parts of a program that change."""

    def __init__(self, identities: Identities) -> None:
        self.identities = identities
        self._norms: dict[int, _Norm] = {}
        self._learning: dict[int, RecordedCall] = {}  # the last calls of other norms in training mode
        self._steps = self._sampled = 0
        self._leaves: dict[int, _Leaf] = {}
        self._stepping: list[tuple[Any, np.ndarray]] = []  # the parameters before the step that is running

    def clear(self) -> None:
        self._norms.clear()
        self._learning.clear()
        self._leaves.clear()
        self._stepping.clear()

    def see_call(self, call: RecordedCall, sweeps: int) -> None:
        """Sample a batch normalisation that is called in training mode, if its parameters are frozen."""
        if not call.training or "BatchNorm" not in call.kind:
            return
        module = call.module()
        known = self._norms.get(id(module))
        if known is not None and known.call.module() is module:
            known.call, known.is_called, known.last = known.call if known.is_called else call, True, sweeps
        elif before := _samples(module):
            earlier = self._learning.pop(id(module), None)
            earlier = earlier if earlier is not None and earlier.module() is module else None
            self._norms[id(module)] = _Norm(call, True, before, sweeps, sweeps, earlier)
        else:
            self._learning[id(module)] = call

    def _look_again(self, sweeps: int) -> None:
        """Sample the norms in training mode whose parameters have been frozen since their last recorded call."""
        for key, call in list(self._learning.items()):
            module = call.module()
            if module is None:
                del self._learning[key]
            elif module.training and (before := _samples(module)):
                del self._learning[key]
                self._norms[key] = _Norm(call, False, before, sweeps, sweeps, call)

    def before_step(self, library: Library, optimizer: Any) -> None:
        """Sample the frozen parameters that an optimizer is going to step."""
        self._stepping.clear()
        for group in optimizer.param_groups if self._sampled < MAX_SAMPLED else ():
            for p in group["params"]:
                if p.requires_grad or p.grad is None or library.is_sharded(p):
                    continue
                if (sample := library.sample(p)) is not None:
                    self._stepping.append((p, sample))

    def after_step(self, library: Library, site: Any, sweeps: int) -> None:
        """Compare these parameters with their values before the step."""
        self._steps += 1
        self._sampled += bool(self._stepping)
        if not self._steps % INTERVAL:
            self._look_again(sweeps)
        for p, before in self._stepping:
            after, gradient = library.sample(p), None if p.grad is None else library.sample(p.grad)
            if after is None or gradient is None or after.shape != before.shape:
                continue
            known = self._leaves.get(id(p))
            if known is None or known.ref() is not p:
                known = self._leaves[id(p)] = _Leaf(library.weak(p), (library.weak(p.grad), gradient), np.zeros_like(after))
            ref, old = known.gradient
            known.has_new_gradient |= bool(gradient.any()) and not (ref() is p.grad and np.array_equal(old, gradient))
            known.gradient = library.weak(p.grad), gradient
            if (after != before).any():
                known.steps += 1
                known.moved = known.moved + (after - before)
                known.site, known.cell = site, cell_site()
        self._stepping.clear()

    def moved_leaves(self, lines: Lines) -> tuple[MovedLeaf, ...]:
        """Return the frozen parameters that steps changed, although no gradient was computed for them."""
        made = []
        for one in self._leaves.values():
            p = one.ref()
            library = None if p is None else library_of(p)
            weights = None if library is None or p.requires_grad else library.sample(p)
            if weights is not None and one.steps and not one.has_new_gradient:
                moved, weight = (float(np.linalg.norm(values)) for values in (one.moved, weights))
                place, cell = lines.line(one.site), lines.line(one.cell)
                made.append(MovedLeaf(self.identities.key(p), one.steps, moved, weight, place, cell))
        return tuple(made)

    def moved_statistics(self, path_of: Callable[[RecordedCall], str], lines: Lines) -> tuple[MovedStatistics, ...]:
        """Return the frozen batch normalisations with changed statistics, in the order of their first calls.

        Left out are those that were new at the first call, and those with parameters that changed since, as an average of other
        weights does.
        """
        made = []
        for norm in self._norms.values():
            module = norm.call.module()
            after = _samples(module)
            same = [np.array_equal(one, old) for one, old in zip(after, norm.before, strict=False)]
            mean, variance = norm.before[:2]
            if module is None or len(after) != len(norm.before) or not all(same[2:]) or all(same) or _is_new(mean, variance):
                continue
            with np.errstate(all="ignore"):
                shift = (after[0] - mean) / np.sqrt(variance + getattr(module, "eps", 0.0))
                spread = float(after[1].sum() / variance.sum())
            made.append(
                MovedStatistics(
                    path_of(norm.call),
                    norm.call.kind,
                    self.identities.key(module),
                    lines.line(_outermost(norm.call).site),
                    None if norm.learning is None else lines.line(_outermost(norm.learning).site),
                    float(np.sqrt((shift**2).mean())),
                    spread,
                    norm.last > norm.first,
                )
            )
        return tuple(made)


def _samples(module: Any) -> tuple[np.ndarray, ...]:
    """Return samples of the running statistics and the parameters of a batch normalisation; () without any, or if it learns."""
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if weight is None or getattr(weight, "requires_grad", True) or (bias is not None and getattr(bias, "requires_grad", True)):
        return ()
    tensors = [
        getattr(module, "running_mean", None),
        getattr(module, "running_var", None),
        weight,
        *([bias] * (bias is not None)),
    ]
    library = library_of(weight)
    if library is None or any(library_of(tensor) is not library or library.is_sharded(tensor) for tensor in tensors):
        return ()
    samples = [sample for tensor in tensors if (sample := library.sample(tensor)) is not None]
    return tuple(samples) if len(samples) == len(tensors) else ()


def _outermost(call: RecordedCall) -> RecordedCall:
    """Return the call of a module around all others."""
    while call.outer is not None:
        call = call.outer
    return call


def _is_new(mean: np.ndarray, variance: np.ndarray) -> bool:
    """Return whether the running statistics are those of a new layer."""
    return not mean.any() and bool((variance == 1).all())

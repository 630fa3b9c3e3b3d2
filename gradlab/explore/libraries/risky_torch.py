"""The nodes of PyTorch's graphs that turn a finite cotangent into one that is not: found before a sweep, looked at as it runs.

PyTorch frees what a node has saved as soon as the node has been run, so a sweep that is over tells nothing of its operations.
While a hook of a node runs, that node and all that is still to come are there. Hooks on every node are too dear; but most rules
hand on what is finite as something finite, and the others are known: their derivative has a pole, or is a result that may be
infinite, and Python functions of the user's own may do anything.

Where they are is found by a walk through the graph, and remembered for graphs that look the same: a root of the same kind, made
as many nodes after the last. A graph that changes all the time is walked as often as its share of the time allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from gradlab import clock
from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.forms_torch import has_numbers
from gradlab.explore.libraries.unseen_torch import unseen
from gradlab.explore.operations import lookup

LEAST = 3  # nodes that are looked at, whatever it costs
CREDIT = 0.01  # seconds that walks may take before their share of the time counts
Path = tuple[int, ...]  # which input, from the root on
Born = Callable[[Any, Sequence[Any]], None]  # the node, and the cotangents that it was given


class Risky:
    """Hooks on these nodes of one sweep after the other.

    Parameters
    ----------
    born : callable
        Called with a node that made of finite cotangents some that are not, and with these, while it is being run.
    share : float
        Of a step's time, for hooks.
    faults : Faults
        Where an error of ours ends.
    most : int
        Of how many nodes of a graph to look through.
    """

    def __init__(self, born: Born, share: float, faults: Faults, most: int) -> None:
        self._born, self._share, self._faults, self._most = born, share, faults, most
        self._last = 0  # the number of the last root
        self._key: Any = None  # what the graph looked like that the paths are of
        self._paths: list[Path] = []
        self._credit = CREDIT  # seconds for walks
        self._costs: deque[float] = deque(maxlen=31)  # of a hook, each sweep
        self._looking, self._seen = False, 0.0

    def arm(self, loss: Any, own: float) -> list[Any]:
        """Hook the nodes behind a tensor. `own`: what a step takes, in seconds. Returns handles."""
        root = loss.grad_fn
        if root is None:
            return []
        number = root._sequence_nr()
        key = type(root), number - self._last
        self._last = number
        self._credit = min(self._credit + self._share * own, CREDIT)
        if key != self._key:
            if self._credit <= 0:
                return []
            began = clock.now()
            self._key, self._paths = key, paths(root, self._most)
            self._credit -= clock.now() - began
        if not self._paths:
            return []
        began = clock.now()
        handles: list[Any] = []
        for path in self._paths[: self._affordable(own)]:
            node: Any = root
            for at in path:
                sources = node.next_functions
                node = sources[at][0] if at < len(sources) else None
                if node is None:
                    self._key = None  # it only looked the same
                    return handles
            if is_risky(node):
                handles.append(node.register_hook(self._hook(node)))
        self._seen = clock.now() - began
        return handles

    def disarmed(self, hooks: int) -> float:
        """The sweep is over. Returns the seconds that its hooks took."""
        took, self._seen = self._seen, 0.0
        if hooks:  # none where the sweep ran inside of another
            self._costs.append(took / hooks)
        return took

    def _affordable(self, own: float) -> int:
        each = median(self._costs) if len(self._costs) >= 3 else 0.0
        return max(LEAST, int(self._share * own / each)) if each > 0 else len(self._paths)

    def _hook(self, node: Any) -> Callable[[Any, Any], None]:
        @unseen
        def look(handed: Any, cotangents: Any) -> None:
            began = clock.now()
            if not self._looking and not all(map(_is_finite, handed)) and all(map(_is_finite, cotangents)):
                self._looking = True  # what looks at it sweeps through this node once more
                try:
                    self._born(node, cotangents)
                finally:
                    self._looking = False
            self._seen += clock.now() - began

        return self._faults.guard(look)


def paths(root: Any, most: int) -> list[Path]:
    """The ways to the risky nodes, the nearest first."""
    risky: list[Path] = []
    first: tuple[Any, Path] = (root, ())
    seen, waiting = {root}, deque([first])
    while waiting and len(seen) < most:
        node, path = waiting.popleft()
        if is_risky(node):
            risky.append(path)
        for at, (source, _) in enumerate(node.next_functions):
            if source is not None and source not in seen:
                seen.add(source)
                waiting.append((source, (*path, at)))
    return risky


_kinds: dict[type, bool] = {}


def is_risky(node: Any) -> bool:
    """Whether a node may make of something finite something that is not."""
    kind = type(node)
    known = _kinds.get(kind)
    if known is None:
        own = isinstance(node, torch.autograd.function.BackwardCFunction)
        known = _kinds[kind] = own or lookup(node.name()).poles
    return known and not _is_tame_power(node)


def _is_tame_power(node: Any) -> bool:
    exponent = getattr(node, "_saved_exponent", None)
    return isinstance(exponent, (int, float)) and exponent >= 1


def _is_finite(tensor: Any) -> bool:
    if tensor is None or not has_numbers(tensor) or tensor.layout != torch.strided:
        return True
    tensor = tensor.detach()
    return bool(tensor.sum().isfinite()) or bool(tensor.isfinite().all())  # a sum may overflow

"""The nodes of PyTorch's graphs that turn a finite cotangent into one that is not: found before a sweep, looked at as it runs.

PyTorch frees what a node has saved as soon as the node has been run, so a sweep that is over tells nothing of its operations.
While a hook of a node runs, that node and all that is still to come are there. Hooks on every node are too dear; but most rules
hand on what is finite as something finite, and the others are known: their derivative has a pole, or is a result that may be
infinite, and Python functions of the user's own may do anything.

Where they are is found by a walk through the graph, and remembered for graphs that look the same: a root of the same kind, made
as many nodes after the last. Walks and hooks together have a share of the time: where they would take more, some sweeps are not
looked at, and neither are most of those whose graphs have long been without such a node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, isfinite
from typing import Any

import torch

from gradlab import clock
from gradlab.diagnose.faults import Faults
from gradlab.explore.libraries.forms_torch import PLAIN, has_numbers
from gradlab.explore.libraries.unseen_torch import are_modes_on, unseen
from gradlab.explore.operations import lookup

MOST = 64  # sweeps in a row that are passed over, since those to come may take longer, or have other nodes
CREDIT = 0.01  # seconds that looking may take before its share of the time counts
Path = tuple[int, ...]  # which input, from the root on
Born = Callable[[Any, Sequence[Any]], None]  # the node, and the cotangents that it was given


class Risky:
    """Hooks on these nodes of one sweep after the other.

    Parameters
    ----------
    born : callable
        Called with a node that made of finite cotangents some that are not, and with these, while it is being run.
    share : float
        Of a step's time, for walks and hooks.
    faults : Faults
        Where an error of ours ends.
    most : int
        Of how many nodes of a graph to look through.

    Attributes
    ----------
    skips : int
        How many sweeps to pass over, without a call of `arm`, before the next one is looked at. Whoever does counts them down.
    """

    def __init__(self, born: Born, share: float, faults: Faults, most: int) -> None:
        self._born, self._share, self._faults, self._most = born, share, faults, most
        self.skips = 0
        self._last: int | None = 0  # the number of the last root; None if that sweep was passed over
        self._key: Any = None  # what the graph looked like that the paths are of
        self._paths: list[Path] = []
        self._tame = 0  # how many sweeps were passed over, since graphs had no risky node
        self._credit, self._then = CREDIT, clock.now()  # seconds, and when they were counted
        self._sweeps, self._each = 0, 0.0  # that were passed over since, and the seconds from one to the next
        self._looking, self._took = False, 0.0  # seconds that looking at this sweep took
        self._hooks: list[Callable[[Any, Any], None]] = []  # used again in each sweep
        self._nodes: list[Any] = []  # those that are hooked, and the handles of the hooks
        self._handles: list[Any] = []

    @unseen
    def arm(self, loss: Any) -> bool:
        """Hook the nodes behind a tensor. Return whether any is hooked."""
        root = loss.grad_fn
        if root is None or self._handles:  # a sweep inside of another is not looked at
            return False
        began = clock.now()
        passed = began - self._then
        self._credit = min(self._credit + self._share * passed, CREDIT)
        self._each, self._sweeps = passed / (self._sweeps + 1), 0
        self._then = began
        if self._credit < 0:
            self._skip()
            return False
        number, last = root._sequence_nr(), self._last
        self._last = number
        if last is None:  # how many nodes were made since the last root is known of the next sweep
            self._took = clock.now() - began
            self._credit -= self._took
            return False
        key = type(root), number - last
        if key != self._key:
            self._key, self._paths, self._tame = key, paths(root, self._most), 0
        elif not self._paths:  # graphs without such a node are looked at less and less often
            self._tame = min(2 * self._tame + 1, MOST)
            self._last, self.skips, self._sweeps = None, self._tame, self._tame
        for path in self._paths:
            node: Any = root
            for at in path:
                sources = node.next_functions
                node = sources[at][0] if at < len(sources) else None
                if node is None:
                    self._key = None  # it only looked the same
                    break
            if node is not None and is_risky(node):
                at = len(self._nodes)
                if at == len(self._hooks):
                    self._hooks.append(partial(self._look, at))
                self._nodes.append(node)
                self._handles.append(node.register_hook(self._hooks[at]))
        self._took = clock.now() - began
        if not self._handles:
            self._pay()
        return bool(self._handles)

    def disarm(self) -> float:
        """Remove the hooks after the sweep. Return the seconds that they took."""
        began = clock.now()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()
        self._took += clock.now() - began
        self._pay()
        return self._took

    def _pay(self) -> None:
        """Count what looking at this sweep took."""
        self._credit -= self._took
        if self._credit < 0:
            self._skip()

    def _skip(self) -> None:
        """Pass over as many sweeps as it takes until there is time again, as far as those before tell."""
        self._last = None
        wanted = ceil(-self._credit / self._share / self._each) if self._each > 0 else 0
        self.skips = self._sweeps = min(wanted, MOST)

    def _look(self, at: int, handed: Any, cotangents: Any) -> None:
        """Look at the cotangents that a node has handed on."""
        began = clock.now()
        try:
            if not self._looking and (are_modes_on() or not all(map(_is_finite, handed))):
                self._look_unseen(self._nodes[at], handed, cotangents)
        except Exception as error:  # noqa: BLE001  (a `with` costs more)
            self._faults.handle(error)
        self._took += clock.now() - began

    @unseen
    def _look_unseen(self, node: Any, handed: Any, cotangents: Any) -> None:
        if not all(map(_is_finite, handed)) and all(map(_is_finite, cotangents)):
            self._looking = True  # what looks at it sweeps through this node once more
            try:
                self._born(node, cotangents)
            finally:
                self._looking = False


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
    if tensor is None or (type(tensor) not in PLAIN and not has_numbers(tensor)) or tensor.layout != torch.strided:
        return True
    tensor = tensor.detach()
    try:
        return isfinite(abs(tensor.sum().item())) or bool(tensor.isfinite().all())  # a sum may overflow
    except RuntimeError:  # of a transform of `torch.func`, or on the meta device: there are no numbers
        return True

"""Hooks on the nodes of PyTorch graphs at which a finite cotangent may become non-finite ("risky" nodes).

PyTorch frees the saved tensors of a node as soon as it has run, so its operation cannot be examined after the sweep. While a hook
of a node runs, that node and all later ones still exist. Hooks on every node would cost too much. Most rules map finite
cotangents to finite ones; the others are known: their derivative has a pole or is a result that may be infinite, and custom
autograd functions may do anything.

A search through the graph finds these nodes, and the paths to them are reused for graphs that look the same: the root has the
same type, and as many nodes were created since the last root. Searches and hooks together may take a share of the time. If they
would take more, some sweeps are skipped; so are most sweeps once several graphs in a row had no risky node.
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

MAX_SKIPS = 64  # sweeps skipped in a row at most: later ones may take longer, or have other nodes
CREDIT = 0.01  # seconds that hooks may take at once before their share of the time is enforced
Path = tuple[int, ...]  # the input to follow at each node, from the root on
OnNode = Callable[[Any, Sequence[Any]], None]  # called with a node and its incoming cotangents


class RiskyNodeHooks:
    """Hooks on the risky nodes of one sweep after another.

    Parameters
    ----------
    report : callable
        Called, while it runs, with a node that turned finite cotangents into non-finite ones, and with the finite ones.
    share : float
        Share of a step's time for searches and hooks.
    faults : Faults
        Collects errors of ours.
    most : int
        Maximum number of nodes of a graph to search.

    Attributes
    ----------
    skips : int
        How many sweeps to skip, without a call of `add`, before the next one is inspected. The caller decrements it.
    """

    def __init__(self, report: OnNode, share: float, faults: Faults, most: int) -> None:
        self._report, self._share, self._faults, self._most = report, share, faults, most
        self.skips = 0
        self._last: int | None = 0  # sequence number of the last root; None if that sweep was skipped
        self._key: Any = None  # root type and node count of the graph that `_paths` belongs to
        self._paths: list[Path] = []
        self._safe_skips = 0  # sweeps skipped in a row because graphs had no risky node
        self._credit, self._then = CREDIT, clock.now()  # seconds that may be spent, and when they were last counted
        self._sweeps, self._each = 0, 0.0  # sweeps skipped since then, and the seconds from one sweep to the next
        self._is_inspecting, self._took = False, 0.0  # `_took`: seconds spent on this sweep
        self._hooks: list[Callable[[Any, Any], None]] = []  # reused in each sweep
        self._nodes: list[Any] = []  # the hooked nodes
        self._handles: list[Any] = []

    @unseen
    def add(self, loss: Any) -> bool:
        """Hook the risky nodes behind a tensor. Return whether there are any."""
        root = loss.grad_fn
        if root is None or self._handles:  # sweeps inside other sweeps are not inspected
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
        if last is None:  # without the last root the number of new nodes is unknown
            self._took = clock.now() - began
            self._credit -= self._took
            return False
        key = type(root), number - last
        if key != self._key:
            self._key, self._paths, self._safe_skips = key, paths(root, self._most), 0
        elif not self._paths:  # graphs without a risky node are inspected less and less often
            self._safe_skips = min(2 * self._safe_skips + 1, MAX_SKIPS)
            self._last, self.skips, self._sweeps = None, self._safe_skips, self._safe_skips
        for path in self._paths:
            node: Any = root
            for at in path:
                sources = node.next_functions
                node = sources[at][0] if at < len(sources) else None
                if node is None:
                    self._key = None  # another graph that looked the same
                    break
            if node is not None and is_risky(node):
                at = len(self._nodes)
                if at == len(self._hooks):
                    self._hooks.append(partial(self._inspect, at))
                self._nodes.append(node)
                self._handles.append(node.register_hook(self._hooks[at]))
        self._took = clock.now() - began
        if not self._handles:
            self._charge()
        return bool(self._handles)

    def remove(self) -> float:
        """Remove the hooks after the sweep. Return the seconds spent on it."""
        began = clock.now()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()
        self._took += clock.now() - began
        self._charge()
        return self._took

    def _charge(self) -> None:
        """Subtract the time spent on this sweep from the credit."""
        self._credit -= self._took
        if self._credit < 0:
            self._skip()

    def _skip(self) -> None:
        """Skip as many sweeps as it takes to regain the credit, estimated from the time between earlier sweeps."""
        self._last = None
        wanted = ceil(-self._credit / self._share / self._each) if self._each > 0 else 0
        self.skips = self._sweeps = min(wanted, MAX_SKIPS)

    def _inspect(self, at: int, results: Any, cotangents: Any) -> None:
        """Check the cotangents that a node has returned."""
        began = clock.now()
        try:
            if not self._is_inspecting and (are_modes_on() or not all(map(_is_finite, results))):
                self._inspect_unseen(self._nodes[at], results, cotangents)
        except Exception as error:  # noqa: BLE001  (faster than `with`)
            self._faults.handle(error)
        self._took += clock.now() - began

    @unseen
    def _inspect_unseen(self, node: Any, results: Any, cotangents: Any) -> None:
        if not all(map(_is_finite, results)) and all(map(_is_finite, cotangents)):
            self._is_inspecting = True  # the report sweeps through this node again
            try:
                self._report(node, cotangents)
            finally:
                self._is_inspecting = False


def paths(root: Any, most: int) -> list[Path]:
    """Return the paths to the risky nodes, the nearest first."""
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
    """Return whether a node may turn a finite cotangent into a non-finite one."""
    kind = type(node)
    known = _kinds.get(kind)
    if known is None:
        own = isinstance(node, torch.autograd.function.BackwardCFunction)
        known = _kinds[kind] = own or lookup(node.name()).poles
    return known and not _is_power_without_pole(node)


def _is_power_without_pole(node: Any) -> bool:
    exponent = getattr(node, "_saved_exponent", None)
    return isinstance(exponent, (int, float)) and exponent >= 1


def _is_finite(tensor: Any) -> bool:
    if tensor is None or (type(tensor) not in PLAIN and not has_numbers(tensor)) or tensor.layout != torch.strided:
        return True
    tensor = tensor.detach()
    try:
        return isfinite(abs(tensor.sum().item())) or bool(tensor.isfinite().all())  # a sum may overflow
    except RuntimeError:  # in a transform of `torch.func`, or on the meta device: there are no numbers
        return True

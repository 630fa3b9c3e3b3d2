"""Anomaly mode: find the operation that failed in a backward pass, and its line in the forward pass.

An observer stores, for each recorded operation, the stack of the call (code objects and offsets, which are cheap and formatted
only when shown) and the node whose backward recorded it. In a backward pass it looks for NaN in the results of each node, and
reports where a node that raised an error was recorded. It also records source sites, so that all errors can name lines. While
the mode is off, nothing is done or stored.

The mode is per thread.
"""

from __future__ import annotations

import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from traceback import FrameSummary, StackSummary
from typing import Any

import numpy as np

from gradlab.backend.namespaces import namespace_of, to_host
from gradlab.core import engine
from gradlab.core.observers import Observer, ReverseSweep, add_observer, observers, remove_observer
from gradlab.core.ports import Bundle
from gradlab.core.saved_names import tensor_names
from gradlab.core.scopes import scope_guard
from gradlab.core.search import reachable_nodes
from gradlab.core.tensor import Tensor
from gradlab.diagnose.sites import GRADLAB_PREFIXES, Sites
from gradlab.diagnose.sites import active_recorder as recorded_already
from gradlab.diagnose.source_locations import CELL_FILE, location_of

__all__ = ["detect_anomaly", "set_detect_anomaly"]

REVERSE_CODE = engine._reverse.__code__  # a sweep's current node is read from its frame: the loop does not store it


class Stack(Sequence[str]):
    """The frames outside gradlab that led to a call, outermost first; in a notebook, those from the cell on.

    The items are strings as in a traceback. They are formatted on demand.
    """

    def __init__(self, frames: tuple[tuple[Any, int], ...]) -> None:
        self.frames = frames
        self._lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        """One string for each frame."""
        if self._lines is None:
            locations = [location for frame in self.frames if (location := location_of(frame)) is not None]
            cell = next((at for at, location in enumerate(locations) if CELL_FILE.match(location.filename)), 0)
            self._lines = StackSummary.from_list(
                [
                    FrameSummary(
                        p.filename,
                        p.line,
                        p.function,
                        lookup_line=False,
                        end_lineno=p.end,
                        colno=p.start_column if p.start_column >= 0 else None,
                        end_colno=p.end_column if p.end_column >= 0 else None,
                    )
                    for p in locations[cell:]
                ]
            ).format()
        return self._lines

    def __getitem__(self, at: Any) -> Any:
        return self.lines[at]

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __repr__(self) -> str:
        return repr(self.lines)


class Anomaly(Observer):
    """Observer of recorded operations and of the results of their backward."""

    def __init__(self, sites: Sites | None) -> None:
        self.check_nan, self.sites = True, sites  # None: another observer records sites
        # For nodes whose result is the first with NaN: how that came about.
        self.first_nan: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """Store the stack, and the node whose backward recorded the operation."""
        if result.node is None:
            return
        node = result.node.public[0]
        self.on_rebase(node)
        if self.check_nan and has_nan(result.array):
            nan_operands = [x for x in args if isinstance(x, Tensor) and has_nan(x.array)]
            if not nan_operands:
                self.first_nan[node] = "produced nan from inputs without nan"
            elif any(x.is_leaf for x in nan_operands):
                self.first_nan[node] = "received nan"

    def on_rebase(self, node: Any) -> None:
        """Store the stack of a node, and the node whose backward recorded it."""
        parent, frames, frame = None, [], sys._getframe(2)
        while frame is not None:
            if not frame.f_code.co_filename.startswith(GRADLAB_PREFIXES):
                frames.append((frame.f_code, frame.f_lasti))
            elif parent is None and frame.f_code is REVERSE_CODE:
                parent = frame.f_locals["node"].public[0]
            frame = frame.f_back  # type: ignore[assignment]
        node.metadata["traceback_"] = Stack(tuple(reversed(frames)))
        if parent is not None:
            node.metadata["parent_"] = parent

    def on_join(self, results: Sequence[Any], members: Sequence[Any]) -> None:
        """Copy the metadata of the members to their joint node."""
        node = results[0].node.public[0]
        node.metadata.update(members[0].metadata)
        for member in members:
            if (how := self.first_nan.get(member)) is not None:
                self.first_nan.setdefault(node, how)

    # ------------------------------------------------------------------------------------------------------ in a sweep
    def on_node(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Raise a RuntimeError if a node returned NaN."""
        if not self.check_nan:
            return
        for at, c in enumerate(cotangents):
            array = getattr(c, "array", c)
            if array is not None and type(array) is not Bundle and has_nan(array):
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {at}th output.{self.explain_nan(node, at, g, array)}"
                )

    def on_sweep_end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        """Warn where the node that raised an error was recorded."""
        node = failed_node(error) if isinstance(error, Exception) else None
        if node is not None:
            node = node.public[0]
            warn(f"Error detected in {node.name()}. {traceback_of(node, 'that caused the error')}")
            seen = {node}
            while (node := parent_of(node)) is not None and node not in seen:
                seen.add(node)
                warn(
                    f"\n\nPrevious calculation was induced by {node.name()}. "
                    f"{traceback_of(node, 'that induced the previous calculation')}"
                )

    def explain_nan(self, node: Any, at: int, g: Any, c: Any) -> str:
        """Return where the NaN is, what it was computed from, and where the forward pass had NaN first."""
        places = np.argwhere(to_host(np.isnan(c) if type(c) is np.ndarray else namespace_of[type(c)].isnan(c)))
        index = tuple(places[0].tolist()) if c.ndim else ()
        rules = list(node.op.rules) if getattr(node.op, "rules", None) and not node.op.variadic else []
        called = dict(zip(node.op.args, node.op.public, strict=True)) if rules else {}
        argument = f" with respect to {called[rules[at]]}" if at < len(rules) else ""
        count = f"{len(places)} of {c.size} elements are nan, the first at {list(index)}" if c.ndim else "it is nan"
        text = f" It is the gradient{argument}: {count}"
        incoming = getattr(g, "array", g)
        if type(incoming) is not Bundle:
            if has_nan(incoming):
                text += ". The incoming gradient already has nan: it was passed to backward(), or a hook returned it"
            else:
                values = [("the incoming gradient", incoming), *saved_arrays(node)]
                facts = [f"{name} = {at}" for name, value in values if (at := element_at(value, index)) is not None]
                text += f", computed from {', '.join(facts)}" if facts else ""
        below = [n for n in reversed(reachable_nodes([node])) if n.public[0] in self.first_nan]
        if below:
            first = below[0].public[0]
            stack = first.metadata["traceback_"].frames
            location = location_of(stack[-1]) if stack else None
            text += f". In the forward pass, {first.name()} {self.first_nan[first]}" + (
                f" ({location.where}{f': `{location.expression}`' if location.expression else ''})" if location else ""
            )
        return text + "."


def failed_node(error: BaseException) -> Any:
    """Return the node that the outermost sweep in the traceback of an error was running, or None."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not REVERSE_CODE:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_locals.get("node")


def has_nan(array: Any) -> bool:
    """Return True if an array contains NaN."""
    return array.dtype.kind == "f" and bool(namespace_of[type(array)].isnan(array).any())


def saved_arrays(node: Any) -> list[tuple[str, Any]]:
    """Return the name and array of each tensor that a node saved."""
    if type(node.saved) is not tuple or getattr(node.op, "foreign", False):
        return []
    saved = zip(tensor_names(node.op), node.saved, strict=True)
    return [(f"its {name}", getattr(x, "array", x)) for name, x in saved if x is not None]


def element_at(array: Any, index: tuple[int, ...]) -> Any:
    """Return the element at an index, or the only element of a 0-d array; None if the index does not fit."""
    if array.ndim == 0:
        return array.item()
    if array.ndim != len(index) or any(i >= n for i, n in zip(index, array.shape, strict=True)):
        return None
    return to_host(array)[index].item()


def parent_of(node: Any) -> Any:
    """Return the node whose backward recorded this one, or None."""
    return node.metadata.get("parent_")


def traceback_of(node: Any, what: str) -> str:
    """Return the traceback of a node's forward call, introduced by a sentence."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        return "No forward pass information available. Enable detect anomaly during forward pass for more information."
    return f"Traceback of forward call {what}:\n{''.join(stack)}"


def warn(message: str) -> None:
    """Issue a UserWarning at the nearest line outside gradlab."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(GRADLAB_PREFIXES):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


# ------------------------------------------------------------------------------------------------------------- the mode
class _Check(threading.local):
    nan = True


_check = _Check()


def active_mode() -> Anomaly | None:
    """Return the observer of this thread, or None while the mode is off."""
    return next((w for w in observers.active if isinstance(w, Anomaly)), None)


def is_anomaly_enabled() -> bool:
    """Return True if anomaly mode is enabled in this thread.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> with gl.autograd.set_detect_anomaly(False):
    ...     gl.is_anomaly_enabled()
    False
    """
    return active_mode() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Return True if anomaly mode checks the results of each backward for NaN.

    Returns
    -------
    bool

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.is_anomaly_check_nan_enabled()
    True
    """
    return _check.nan


def _switch_off(mode: Anomaly) -> None:
    """Remove the observers. If an interrupt prevents a removal, calling it again completes it."""
    if mode.sites is not None:
        remove_observer(mode.sites)
    remove_observer(mode)


def _anomaly_mode(check_nan: bool) -> AbstractContextManager[None]:
    """Return a context manager that enables anomaly mode and restores the previous state."""
    before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
    return scope_guard(lambda: set_anomaly_enabled(True, check_nan), lambda: set_anomaly_enabled(*before))


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off in this thread.

    Parameters
    ----------
    enabled : bool
        True to enable, False to disable.
    check_nan : bool, default: True
        If True, NaN in a result of the backward pass raises an error.

    Returns
    -------
    None

    Examples
    --------
    >>> import gradlab as gl
    >>> gl.set_anomaly_enabled(False)
    >>> gl.is_anomaly_enabled()
    False
    """
    mode, _check.nan = active_mode(), check_nan
    if enabled and mode is None:
        mode = Anomaly(Sites() if recorded_already() is None else None)
        try:
            if mode.sites is not None:
                add_observer(mode.sites)
            add_observer(mode)
        except KeyboardInterrupt:
            _switch_off(mode)
            raise
    elif not enabled and mode is not None:
        _switch_off(mode)
    if mode is not None:
        mode.check_nan = check_nan


class set_detect_anomaly:  # noqa: N801  (torch's name)
    """Switch anomaly mode on or off, immediately; used as a context manager, until the end of the block.

    Parameters
    ----------
    mode : bool
        True to enable, False to disable.
    check_nan : bool, default: True
        If True, NaN in a result of the backward pass raises an error.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import gradlab as gl
    >>> with gl.autograd.set_detect_anomaly(False):
    ...     print(gl.is_anomaly_enabled())
    False
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
        set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *raised: object) -> None:
        set_anomaly_enabled(*self._before)


class detect_anomaly:  # noqa: N801  (torch's name)
    """Context manager in which an error in a backward pass names the line of the forward pass that caused it.

    The forward pass must run inside the block too. Both passes become slower, so use it only to find an error.

    Parameters
    ----------
    check_nan : bool, default: True
        If True, NaN in a result of the backward pass raises a RuntimeError that names the operation.

    Returns
    -------
    context manager

    Raises
    ------
    RuntimeError
        In a backward pass inside the block, if `check_nan` is True and the backward of an operation returns NaN.

    Examples
    --------
    >>> import gradlab as gl
    >>> x = gl.tensor([0.0], requires_grad=True)
    >>> with gl.autograd.detect_anomaly():  # doctest: +ELLIPSIS
    ...     (x.sqrt() * 0).backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output...
    """

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._extent = _anomaly_mode(self._check_nan)
        self._extent.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._extent.__exit__(None, None, None)

"""Anomaly mode: what went wrong in a backward pass, and in which line of the forward pass it began.

An observer that notes, with each recorded operation, the stack it was called from (code objects and offsets, which cost little
and are formatted when they are shown) and the node of whose backward it is part. In a sweep it looks for nan in what
each node returns, and tells where a node that raised was recorded. Source sites are recorded as well, so that all errors
can name lines. While the mode is off nothing is done and nothing is kept.

The mode belongs to a thread.
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

from gradlab.backend.namespaces import host, namespace_of
from gradlab.core import engine
from gradlab.core.engine import reachable
from gradlab.core.observers import Observer, ReverseSweep, add_observer, observers, remove_observer
from gradlab.core.ports import Bundle
from gradlab.core.saved_names import tensors
from gradlab.core.scopes import scoped
from gradlab.core.tensor import Tensor
from gradlab.diagnose.sites import HOME, Sites
from gradlab.diagnose.sites import present as recorded_already
from gradlab.diagnose.source_locations import CELL, location_of

__all__ = ["detect_anomaly", "set_detect_anomaly"]

REVERSE = engine._reverse.__code__  # which node a sweep is at is read off its frame: the loop keeps no account of it


class Stack(Sequence[str]):
    """The frames outside gradlab that led to a call, outermost first, in a notebook from the cell on.

    As strings, like those of a traceback; they are formatted on demand.
    """

    def __init__(self, frames: tuple[tuple[Any, int], ...]) -> None:
        self.frames = frames
        self._lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        """One string for each frame."""
        if self._lines is None:
            locations = [location for frame in self.frames if (location := location_of(frame)) is not None]
            cell = next((at for at, location in enumerate(locations) if CELL.match(location.filename)), 0)
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
    """Watches what is recorded and what the sweeps return."""

    def __init__(self, sites: Sites | None) -> None:
        self.check_nan, self.sites = True, sites  # None: somebody else's record sites
        self.first_nan: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()  # how a node came to make nan

    def on_record(self, op: Any, result: Any, args: tuple[Any, ...], meta: tuple[Any, ...]) -> None:
        """Note the stack, and of whose backward the operation is part."""
        if result.node is None:
            return
        node = result.node.public[0]
        self.on_rebase(node)
        if self.check_nan and has_nan(result.array):
            nan_operands = [x for x in args if isinstance(x, Tensor) and has_nan(x.array)]
            if not nan_operands:
                self.first_nan[node] = "made nan of numbers"
            elif any(x.is_leaf for x in nan_operands):
                self.first_nan[node] = "was given nan"

    def on_rebase(self, node: Any) -> None:
        """Note the stack for a node, and of whose backward it is part."""
        parent, frames, frame = None, [], sys._getframe(2)
        while frame is not None:
            if not frame.f_code.co_filename.startswith(HOME):
                frames.append((frame.f_code, frame.f_lasti))
            elif parent is None and frame.f_code is REVERSE:
                parent = frame.f_locals["node"].public[0]
            frame = frame.f_back  # type: ignore[assignment]
        node.metadata["traceback_"] = Stack(tuple(reversed(frames)))
        if parent is not None:
            node.metadata["parent_"] = parent

    def on_join(self, results: Sequence[Any], members: Sequence[Any]) -> None:
        """What was noted for the members holds of the node of all."""
        node = results[0].node.public[0]
        node.metadata.update(members[0].metadata)
        for member in members:
            if (how := self.first_nan.get(member)) is not None:
                self.first_nan.setdefault(node, how)

    # ------------------------------------------------------------------------------------------------------ in a sweep
    def visit(self, node: Any, g: Any, cotangents: Sequence[Any]) -> None:
        """Look for nan in what a node returns."""
        if not self.check_nan:
            return
        for at, c in enumerate(cotangents):
            array = getattr(c, "array", c)
            if array is not None and type(array) is not Bundle and has_nan(array):
                raise RuntimeError(
                    f"Function '{node.name()}' returned nan values in its {at}th output.{self.why(node, at, g, array)}"
                )

    def end(self, sweep: ReverseSweep, error: BaseException | None) -> None:
        """Tell where the node at which a sweep failed was recorded."""
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

    def why(self, node: Any, at: int, g: Any, c: Any) -> str:
        """Where the nan is, what it was computed from, and where the forward pass had nan first."""
        places = np.argwhere(host(np.isnan(c) if type(c) is np.ndarray else namespace_of[type(c)].isnan(c)))
        index = tuple(places[0].tolist()) if c.ndim else ()
        rules = list(node.op.rules) if getattr(node.op, "rules", None) and not node.op.variadic else []
        called = dict(zip(node.op.args, node.op.public, strict=True)) if rules else {}
        argument = f" with respect to {called[rules[at]]}" if at < len(rules) else ""
        count = f"{len(places)} of {c.size} elements are nan, the first at {list(index)}" if c.ndim else "it is nan"
        text = f" It is the gradient{argument}: {count}"
        incoming = getattr(g, "array", g)
        if type(incoming) is not Bundle:
            if has_nan(incoming):
                text += ". The gradient that came in has nan already: backward() was given it, or a hook made it"
            else:
                values = [("the gradient that came in", incoming), *kept(node)]
                facts = [f"{name} = {at}" for name, value in values if (at := there(value, index)) is not None]
                text += f", computed from {', '.join(facts)}" if facts else ""
        below = [n for n in reversed(reachable([node])) if n.public[0] in self.first_nan]
        if below:
            first = below[0].public[0]
            stack = first.metadata["traceback_"].frames
            location = location_of(stack[-1]) if stack else None
            text += f". In the forward pass {first.name()} {self.first_nan[first]}" + (
                f" ({location.where}{f': `{location.expression}`' if location.expression else ''})" if location else ""
            )
        return text + "."


def failed_node(error: BaseException) -> Any:
    """The node at which the outermost sweep in an error's traceback was; None if it had not begun with any."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not REVERSE:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_locals.get("node")


def has_nan(array: Any) -> bool:
    """Whether there is nan in it."""
    return array.dtype.kind == "f" and bool(namespace_of[type(array)].isnan(array).any())


def kept(node: Any) -> list[tuple[str, Any]]:
    """The arrays that a node saved, by name."""
    if type(node.saved) is not tuple or getattr(node.op, "foreign", False):
        return []
    saved = zip(tensors(node.op), node.saved, strict=True)
    return [(f"its {name}", getattr(x, "array", x)) for name, x in saved if x is not None]


def there(array: Any, index: tuple[int, ...]) -> Any:
    """The element at an index, of an array that has one there (or one for all)."""
    if array.ndim == 0:
        return array.item()
    if array.ndim != len(index) or any(i >= n for i, n in zip(index, array.shape, strict=True)):
        return None
    return host(array)[index].item()


def parent_of(node: Any) -> Any:
    """The node of whose backward this one is part."""
    return node.metadata.get("parent_")


def traceback_of(node: Any, what: str) -> str:
    """Where a node was recorded, in words."""
    stack = node.metadata.get("traceback_")
    if stack is None:
        return "No forward pass information available. Enable detect anomaly during forward pass for more information."
    return f"Traceback of forward call {what}:\n{''.join(stack)}"


def warn(message: str) -> None:
    """A UserWarning at the nearest line outside gradlab."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HOME):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


# ------------------------------------------------------------------------------------------------------------- the mode
class _Check(threading.local):
    nan = True


_check = _Check()


def present() -> Anomaly | None:
    """The mode of this thread; None while it is off."""
    return next((w for w in observers.active if isinstance(w, Anomaly)), None)


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread.

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
    return present() is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN in what each node returns.

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
    """Leave nothing of the mode; what an interrupt has left undone is done when it is called again."""
    if mode.sites is not None:
        remove_observer(mode.sites)
    remove_observer(mode)


def _switched_on(check_nan: bool) -> AbstractContextManager[None]:
    """Anomaly mode for an extent; afterwards it is as it was before."""
    before = is_anomaly_enabled(), is_anomaly_check_nan_enabled()
    return scoped(lambda: set_anomaly_enabled(True, check_nan), lambda: set_anomaly_enabled(*before))


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off in this thread.

    Parameters
    ----------
    enabled : bool
        Whether it is on from here.
    check_nan : bool, default True
        Whether a NaN that a node returns in a backward is an error.

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
    mode, _check.nan = present(), check_nan
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
    """Switch anomaly mode on or off at once; as a context manager, for its extent.

    Parameters
    ----------
    mode : bool
        On or off.
    check_nan : bool
        Whether a backward that returns nan raises an error.

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
    """A backward inside the block that fails tells in which line of the forward pass the failing operation is.

    The forward pass must run inside the block too. It slows both passes down: use it to find an error.

    Parameters
    ----------
    check_nan : bool, default True
        Whether a backward that returns NaN raises a RuntimeError that names the operation.

    Returns
    -------
    context manager

    Raises
    ------
    RuntimeError
        From the backward inside the block, if `check_nan` is True and an operation returns NaN.

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
        self._extent = _switched_on(self._check_nan)
        self._extent.__enter__()

    def __exit__(self, *raised: object) -> None:
        self._extent.__exit__(None, None, None)

"""`with gradlab.tracing() as traced:` records what a `%%grad` cell records, in a script, a function or a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gradlab.core.scopes import scope_guard
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder


class Traced:
    """The result of a `tracing` block. After the block, it holds only plain data.

    Attributes
    ----------
    sweeps : int
        The number of calls of `backward` in the block.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder: Recorder | None = recorder
        self._trace: Trace | None = None
        self.sweeps = 0

    @property
    def trace(self) -> Trace:
        """The trace of the last recorded `backward`.

        Raises
        ------
        RuntimeError
            If there is none.
        """
        if self._recorder is not None:
            return self._recorder.trace()
        if self._trace is None:
            raise RuntimeError("no backward was called in the tracing block: there is no trace. Call backward() in the block.")
        return self._trace

    def finish(self) -> None:
        """Convert the recorded data to plain data and release the rest. Called at the end of the block."""
        recorder = self._recorder
        if recorder is not None:
            self.sweeps = recorder.sweeps
            if recorder.last is not None:
                self._trace = recorder.trace()
            self._recorder = None


@contextmanager
def tracing() -> Iterator[Traced]:
    """Record operations and backward passes of gradlab and PyTorch in the block, in this thread.

    Afterwards `traced.trace` is a `Trace` of the last `backward` of the block: each node with its line, module, value and
    gradient, constants, and cuts. Recording takes some microseconds per operation. After ten sweeps, some are skipped so that
    recording takes at most a fifth of the program's own time; `Trace.sweep` is the number of the recorded sweep among
    `Trace.sweeps`.

    The results of the program do not change. The graph of a model's last `backward` lives until its next one or the end of the
    block. No other object lives longer than without recording, and none after the block. If recording itself fails, a
    `FaultWarning` is issued and the program continues.

    Returns
    -------
    context manager
        Yields a `Traced`.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> with gl.tracing() as traced:
    ...     (w * w).sum().backward()
    >>> traced.trace.nodes[0].gradient.norm  # of w: (2, 4)
    4.47213595499958
    """
    frame = sys._getframe(2)
    space = frame.f_globals
    recorder = Recorder(lambda: space)
    traced = Traced(recorder)
    try:
        with scope_guard(recorder.meet_libraries, recorder.close):
            yield traced
    finally:
        traced.finish()
        recorder.forget()

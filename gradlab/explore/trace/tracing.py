"""`with gradlab.tracing() as traced:`: what a `%%grad` cell sees, in a script, a function or a test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gradlab.core.scopes import scope_guard
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder


class Traced:
    """What a `tracing` block saw. Holds plain data once the block is over.

    Attributes
    ----------
    sweeps : int
        How many times `backward` has been called in the block.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder: Recorder | None = recorder
        self._trace: Trace | None = None
        self.sweeps = 0

    @property
    def trace(self) -> Trace:
        """The trace of the last `backward` that was looked at.

        Raises
        ------
        RuntimeError
            If there was none.
        """
        if self._recorder is not None:
            return self._recorder.trace()
        if self._trace is None:
            raise RuntimeError("no backward was called in the tracing block: there is no trace. Call backward() inside of it.")
        return self._trace

    def finish(self) -> None:
        """Keep what was seen as plain data, and let go of the rest; the block does it when it ends."""
        recorder = self._recorder
        if recorder is not None:
            self.sweeps = recorder.sweeps
            if recorder.last is not None:
                self._trace = recorder.trace()
            self._recorder = None


@contextmanager
def tracing() -> Iterator[Traced]:
    """Record what is computed and swept in the block, of gradlab and of PyTorch, in this thread.

    Afterwards `traced.trace` is a `Trace` of the last `backward` of the block: each node with its line, module, value and the
    gradient that arrived there, constants, cuts. It costs some microseconds an operation while it is on; after ten
    sweeps, some are skipped so that recording takes at most a fifth of the program's own time (`Trace.sweep` says which of
    `Trace.sweeps` it is).

    The program computes the same as without it. The graph of a model's last `backward` lives until its next one or the end of the
    block, where its trace is made; nothing else lives longer, and nothing does after the block. If recording itself fails, a
    `FaultWarning` says so, and the program goes on.

    Returns
    -------
    context manager
        Of a `Traced`.

    Examples
    --------
    >>> import gradlab as gl
    >>> w = gl.tensor([1.0, 2.0], requires_grad=True)
    >>> with gl.tracing() as traced:
    ...     (w * w).sum().backward()
    >>> traced.trace.nodes[0].gradient.norm  # that of w: (2, 4)
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

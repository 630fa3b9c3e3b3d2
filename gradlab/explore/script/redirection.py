"""Keep standard output for the report: what a script prints goes to standard error.

Threads, exit handlers and child processes of the script may still print after it has ended. So the report is written to a copy of
the file descriptor, and the command leaves standard output redirected until the process ends.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gradlab.core.scopes import scope_guard

STDOUT, STDERR = 1, 2  # file descriptors


class Redirection:
    """Redirection of standard output to standard error, of `sys.stdout` and of the file descriptor.

    Child processes inherit the file descriptor.
    """

    def __init__(self) -> None:
        self.process = os.getpid()
        self._stream: Any = None
        self._redirected: Any = None  # closed with its last reference, also for a script that wraps its buffer
        self._descriptor: int | None = None
        self._writes_to_descriptor = False

    def begin(self) -> None:
        """Redirect standard output."""
        self._stream = sys.stdout
        flush_output(self._stream)
        try:
            self._writes_to_descriptor = _writes_to(self._stream, STDOUT)
            self._descriptor = os.dup(STDOUT)
            self._redirected = sys.stdout = _redirect_descriptor()
        except OSError:  # the process has no standard output or no standard error
            sys.stdout = sys.stderr

    def write(self, report: str) -> None:
        """Write a report and a newline to the original standard output, or nothing if the report is empty.

        Characters that its encoding does not have are escaped.
        """
        if not report:
            return
        flush_output(self._stream, self._redirected)  # the script may have kept them under other names
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        data = f"{report}\n".encode(encoding, "backslashreplace")
        if self._descriptor is not None and self._writes_to_descriptor:
            write_all(self._descriptor, data)
        elif self._stream is not None:
            print(data.decode(encoding), end="", file=self._stream, flush=True)

    def end(self) -> None:
        """Restore standard output, except in a forked process: what it prints is not part of the report either."""
        if os.getpid() != self.process:
            return
        flush_output(self._stream, self._redirected)
        if self._stream is not None:
            sys.stdout = self._stream
        descriptor = self._descriptor
        if descriptor is not None:
            with suppress(OSError):  # the script may have closed it
                os.dup2(descriptor, STDOUT)
            self._descriptor = None
            with suppress(OSError):
                os.close(descriptor)


class _Writer(io.FileIO):
    """File without a buffer, whose lock a daemon thread could hold when the interpreter flushes it at exit."""

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        while done < len(view):
            done += super().write(view[done:]) or 0
        return done


def _redirect_descriptor() -> io.TextIOWrapper:
    """Redirect the file descriptor of standard output, and return a stream that writes to it.

    The stream is not `sys.stderr` itself, since scripts close standard output, or wrap it in a stream that closes it.
    """
    encoding, errors = getattr(sys.stdout, "encoding", None), getattr(sys.stdout, "errors", None)
    os.dup2(STDERR, STDOUT)
    binary: Any = _Writer(STDOUT, "w", closefd=False)
    return io.TextIOWrapper(binary, encoding=encoding, errors=errors, line_buffering=True)


def _writes_to(stream: Any, descriptor: int) -> bool:
    """Return whether a stream writes to the file of a descriptor."""
    try:
        return os.path.sameopenfile(stream.fileno(), descriptor)
    except (AttributeError, OSError, ValueError):
        return False


def write_all(descriptor: int, data: bytes) -> None:
    """Write all bytes to a file descriptor."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def flush_output(*streams: Any) -> None:
    """Flush `sys.stdout`, the standard output with which Python started, and further streams."""
    for stream in (sys.stdout, sys.__stdout__, *streams):
        with suppress(Exception):  # the script may have closed or replaced it
            stream.flush()


def print_error(text: str, stream: Any) -> None:
    """Print a text to the stream that was `sys.stderr` before the script, or to its file descriptor if the script closed it."""
    try:
        if stream is not None:
            print(text, file=stream, flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # there is no place left to report it
        pass
    except ValueError:
        with suppress(OSError):
            write_all(STDERR, f"{text}\n".encode(getattr(stream, "encoding", None) or "utf-8", "backslashreplace"))


@contextmanager
def redirect_stdout_to_stderr(*, restore: bool = True) -> Iterator[Redirection]:
    """Redirect standard output, also that of child processes, to standard error in a `with` block.

    Parameters
    ----------
    restore : bool, default: True
        Whether to restore standard output at the end of the block. Otherwise it remains redirected until the process ends.
    """
    redirection = Redirection()
    with scope_guard(redirection.begin, redirection.end if restore else flush_output):
        yield redirection

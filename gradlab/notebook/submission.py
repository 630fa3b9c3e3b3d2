"""The process that runs a submission: the notebook's cells, and then its functions on request of the grading process.

`python -m gradlab.notebook.submission BYTES` reads messages from standard input and answers on standard output (see
`homework.wire`); both are closed for the student's code. It limits its memory to BYTES of address space. The cells run in an
IPython without a terminal; their text and PNG output is kept up to a limit.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import io
import os
import re
import sys
import threading
from typing import Any, BinaryIO

import numpy as np
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from gradlab.homework import wire
from gradlab.homework.calling import perform
from gradlab.homework.time_limits import TimeUp, time_limit
from gradlab.notebook import extension as loaded_beforehand  # noqa: F401  (so that loading it does not count as time of a cell)

FIRST, LAST = (
    (15_000, 600),
    (5_000, 300),
)  # characters and lines of a cell's text; nbgrader cuts off text after line 1000
MAX_PICTURE, MAX_OUTPUTS = 400_000, 50  # bytes, outputs of a cell
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FILE, OPEN, CORE = 200 << 20, 256, 0  # bytes of a file, open files, bytes of a core dump


class Outputs:
    """The outputs of a cell, in order. Of long text, the first and the last lines are kept: an error comes last."""

    def __init__(self) -> None:
        self._made: list[dict[str, str]] = []
        self._left, self._lines_left = FIRST  # characters and lines until the first ones are full
        self._last, self._left_out = "", 0  # the last lines; the number of characters between the first lines and these

    def text(self, text: str) -> None:
        """Add text."""
        begun = bool(self._made) and "text" in self._made[-1]
        if self._left > 0 and text and (begun or len(self._made) < MAX_OUTPUTS):
            first = self._fitting(text)
            if begun:
                self._made[-1]["text"] += first
            elif first:
                self._made.append({"text": first})
            text = text[len(first) :]
        self._last += text
        if len(self._last) > 2 * LAST[0]:
            self._shorten()

    def _fitting(self, text: str) -> str:
        """Return the lines of a text that belong to the first ones."""
        lines = text[: self._left].split("\n", self._lines_left)
        if len(text) <= self._left and len(lines) <= self._lines_left:
            self._left, self._lines_left = self._left - len(text), self._lines_left - len(lines) + 1
            return text
        self._left = 0
        return "".join(f"{line}\n" for line in lines[:-1])

    def _shorten(self) -> None:
        """Drop all but the last lines, and all but the end of a line that is too long."""
        most, lines = LAST
        kept = self._last[-most:].split("\n")
        whole = kept[1:] if len(self._last) > most and any(kept[1:]) else kept
        last = "\n".join(whole[-lines - 1 :])
        self._left_out += len(self._last) - len(last)
        self._last = last

    def finish(self) -> list[dict[str, str]]:
        """Return the kept outputs."""
        self._shorten()
        left_out = f"\n… {self._left_out} characters are left out here …\n" if self._left_out else ""
        return [*self._made, {"text": left_out + self._last}] if self._last else self._made

    def data(self, data: dict[str, Any]) -> None:
        """Add a displayed object: its picture if it has one, else its text."""
        picture = data.get("image/png")
        if isinstance(picture, bytes):
            picture = base64.b64encode(picture).decode()
        if isinstance(picture, str) and len(picture) <= MAX_PICTURE and len(self._made) < MAX_OUTPUTS and not self._last:
            self._made.append({"png": picture})
        else:
            self.text(str(data.get("text/plain", "")) + "\n")


class Stream(io.TextIOBase):
    """Standard output and error of a cell."""

    outputs = Outputs()
    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.outputs.text(ANSI.sub("", text))
        return len(text)


class Published(DisplayPublisher):
    """The publisher of `display`."""

    stream: Stream

    def publish(self, data: Any, *args: Any, **kwargs: Any) -> None:
        self.stream.outputs.data(dict(data))

    def clear_output(self, wait: bool = False) -> None:
        """Keep the outputs."""


class Shown(DisplayHook):
    """The value that a cell ends with."""

    stream: Stream

    def write_output_prompt(self) -> None:
        """Write no prompt."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.stream.outputs.data(dict(format_dict))

    def finish_displayhook(self) -> None:
        """Write nothing."""


class Shell(InteractiveShell):
    """An IPython that keeps its outputs."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Ignore the GUI."""


def main() -> None:
    """Serve until the input ends."""
    questions, answers = _pipes()
    _limit_memory(int(sys.argv[1]))
    stream = Stream()
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = stream  # type: ignore[assignment,misc]
    shell = _shell(stream)
    turn = threading.Lock()

    def ask(number: int, what: str, arrays: list[np.ndarray]) -> np.ndarray:
        with turn:
            answers.write(wire.pack({"ask": [number, what, arrays]}))
            answers.flush()
            got = wire.read(questions)
        if not isinstance(got, dict) or "answer" not in got:
            raise RuntimeError(str(got.get("error")) if isinstance(got, dict) else "the check is over")
        return np.asarray(got["answer"])

    answers.write(wire.pack({"done": "ready"}))
    answers.flush()
    while (message := wire.read(questions)) is not None:
        stream.outputs = Outputs()
        if message["do"] == "cell":
            done: Any = _run(shell, message["text"], message["seconds"], stream)
        else:
            done = perform(shell.user_ns, message, ask)
        answers.write(wire.pack({"done": done}))
        answers.flush()


def _run(shell: Shell, text: str, seconds: float, stream: Stream) -> list[dict[str, str]]:
    try:
        with time_limit(seconds):
            shell.run_cell(text, store_history=True)
    except TimeUp:
        stream.outputs.text(f"\nThis cell did not end within {seconds:.0f} s.\n")
    except BaseException as error:  # noqa: BLE001  (the next cell still runs)
        stream.outputs.text(f"\n{type(error).__name__}\n")
    _forget(shell)
    return stream.outputs.finish()


def _forget(shell: Shell) -> None:
    """Drop the last error, whose frames may hold much memory."""
    if getattr(sys, "last_traceback", None) is not None:
        sys.last_type = sys.last_value = sys.last_traceback = None
        sys.last_exc = None  # type: ignore[attr-defined,unused-ignore]
        shell.InteractiveTB.tb = None
        gc.collect()


def _shell(stream: Stream) -> Shell:
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.InteractiveShell.colors = "NoColor"
    settings.InteractiveShell.banner1 = ""
    Published.stream = Shown.stream = stream
    shell = Shell.instance(config=settings, display_pub_class=Published, displayhook_class=Shown)
    sys.path.insert(0, os.getcwd())
    shell.user_ns["exit"] = shell.user_ns["quit"] = _no_exit
    return shell


def _no_exit(*_: object) -> None:
    print("exit: ignored in a notebook.")  # noqa: T201  (into the cell's output)


def _pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return duplicates of the two pipes, and connect standard input and output to nothing."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (stays open)
    return questions, answers


def _limit_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # not on Windows: the time is limited, the memory is not
        return
    for what, limit in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_FSIZE, FILE),
        (resource.RLIMIT_NOFILE, OPEN),
        (resource.RLIMIT_CORE, CORE),
    ):
        with contextlib.suppress(ValueError, OSError):  # (macOS does not limit address space)
            resource.setrlimit(what, (limit, limit))


if __name__ == "__main__":
    main()

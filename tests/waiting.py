"""Waiting for what another process or thread does: for a condition, never for a while. And a clock that is moved by hand.

`tests/test_fixed_waits.py` keeps fixed waits out of all other files.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

LONG = 120  # seconds after which something has failed, on a busy machine too
TURN = 0.02


def until(condition, what="the condition"):
    """What the condition returns as soon as that is true; it is asked again and again."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come true in {LONG} s"
        time.sleep(TURN)
    return found


def address_of_jupyter(process, runtime):
    """Where a Jupyter server listens, once it does: given port 0, it takes a free one, and writes down which."""

    def answering():
        assert process.poll() is None, "the server has ended"
        for told in runtime.glob("jpserver-*.json"):
            with suppress(OSError, ValueError):  # nobody listens yet, or it is just being written
                server = json.loads(told.read_text())
                url = f"http://127.0.0.1:{server['port']}"
                with urllib.request.urlopen(f"{url}/api?token={server['token']}", timeout=LONG):
                    return url
        return None

    return until(answering, "the start of Jupyter")


class Gate:
    """Holds up another process that runs `code`, until it is opened, and nobody after that: a named pipe, and then a file."""

    def __init__(self, path):
        self.path = os.fspath(path)
        os.mkfifo(self.path)
        self.code = f"__import__('pathlib').Path({self.path!r}).read_text()"

    @contextmanager
    def reached(self):
        """Wait until it has come here, and let it go on when the block ends."""
        with open(self.path, "w"):
            yield
            Path(f"{self.path}.opened").touch()
            os.replace(f"{self.path}.opened", self.path)  # for who comes later

    def open(self):
        """Let it go on, as soon as it has come here."""
        with self.reached():
            pass


class HandClock:
    """A clock for `gradlab.clock.reading` that stands still until it is moved."""

    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time

    def move(self, seconds):
        self.time += seconds

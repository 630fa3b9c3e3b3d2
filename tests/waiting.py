"""Wait for conditions instead of fixed times, and replace the clock by one that is moved by hand.

`tests/test_fixed_waits.py` checks that no other file waits for a fixed time.
"""

from __future__ import annotations

import json
import os
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

TIMEOUT_SECONDS = 120  # more than anything takes, even on a busy machine
POLL_SECONDS = 0.02


def wait_until(condition, what="the condition"):
    """Poll a condition until its value is true, and return the value."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not come true in {TIMEOUT_SECONDS} s"
        time.sleep(POLL_SECONDS)
    return found


def jupyter_url(process, runtime):
    """Return the URL of a Jupyter server as soon as it responds. Started with port 0, it writes its port to a file."""

    def answering():
        assert process.poll() is None, "the server has ended"
        for told in runtime.glob("jpserver-*.json"):
            with suppress(OSError, ValueError):  # the server does not listen yet, or the file is incomplete
                server = json.loads(told.read_text())
                url = f"http://127.0.0.1:{server['port']}"
                with urllib.request.urlopen(f"{url}/api?token={server['token']}", timeout=TIMEOUT_SECONDS):
                    return url
        return None

    return wait_until(answering, "the start of Jupyter")


class Gate:
    """Barrier that blocks another process running `code` until it is opened: a named pipe, which is then replaced by a file."""

    def __init__(self, path):
        self.path = os.fspath(path)
        os.mkfifo(self.path)
        self.code = f"__import__('pathlib').Path({self.path!r}).read_text()"

    @contextmanager
    def hold(self):
        """Wait until the other process has reached the gate, and let it continue at the end of the block."""
        with open(self.path, "w"):
            yield
            Path(f"{self.path}.opened").touch()
            os.replace(f"{self.path}.opened", self.path)  # later processes pass

    def open(self):
        """Wait until the other process has reached the gate, and let it continue."""
        with self.hold():
            pass


class HandClock:
    """Clock for `gradlab.clock.use_source` that changes only when it is moved."""

    def __init__(self):
        self.time = 1000.0

    def __call__(self):
        return self.time

    def move(self, seconds):
        self.time += seconds

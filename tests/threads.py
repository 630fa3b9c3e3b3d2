"""Run work in several threads, and skip tests where threads or processes are not available."""

from __future__ import annotations

import sys
import threading

import pytest

no_threads = pytest.mark.skipif(sys.platform == "emscripten", reason="there are no threads on Pyodide")
no_processes = pytest.mark.skipif(sys.platform == "emscripten", reason="there are no processes on Pyodide")


def run_in_threads(work, count=4):
    """Run `work(i)` in threads that are switched often. Raise the first error."""
    errors = []

    def run(i):
        try:
            work(i)
        except BaseException as error:  # noqa: BLE001  (raised by the test)
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    if errors:
        raise errors[0]

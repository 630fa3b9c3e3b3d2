"""Run programs as `%%grad` cells and record them."""

from __future__ import annotations

import linecache
from itertools import count

from gradlab.diagnose.source_locations import cells
from gradlab.explore.trace.recorder import Recorder

_NUMBERS = count(1)


def trace_cell(source, space):
    """Run lines as a cell below `%%grad` in a namespace, and return the trace of its last sweep."""
    lines = ["%%grad", *source.strip("\n").splitlines()]
    name = f"<cell of a test {next(_NUMBERS)}>"
    linecache.cache[name] = (len(source), None, [f"{line}\n" for line in lines], name)
    code = compile("\n".join(["pass", *lines[1:]]), name, "exec")
    cells.current, cells.header = name, "%%grad"
    try:
        with Recorder(lambda: space) as recorder:
            exec(code, space)
        return recorder.trace()
    finally:
        cells.current, cells.header = None, ""

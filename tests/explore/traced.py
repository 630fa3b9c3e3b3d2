"""For tests: programs that run as a `%%grad` cell does, and are recorded."""

from __future__ import annotations

import linecache
from itertools import count

from gradlab.diagnose.source_locations import cells
from gradlab.explore.trace.recorder import Recorder

_NUMBERS = count(1)


def traced(source, space):
    """Run the lines below `%%grad` in a namespace, as a cell; the trace of its last sweep."""
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

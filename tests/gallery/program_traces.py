"""Run a program of the gallery as a `%%grad` cell is run, and read its trace."""

from __future__ import annotations

import linecache
from typing import Any

from programs import IMPORTS, PROGRAMS

from gradlab.diagnose.source_locations import cells
from gradlab.explore.trace.data import Trace
from gradlab.explore.trace.recorder import Recorder

FILE = "/tmp/ipykernel_1/{}.py"  # what ipykernel calls a cell's source


def namespace_of(name: str) -> dict[str, Any]:
    """The names of a notebook in which all cells before the program's have run."""
    program = PROGRAMS[name]
    space: dict[str, Any] = {"__name__": "__main__"}
    _run(IMPORTS[program.library], FILE.format("1"), space)
    _run(program.before, FILE.format("2"), space)
    return space


def trace_of(name: str) -> Trace:
    """Return the trace of a program's backward."""
    space, before = namespace_of(name), cells.current
    cells.current = file = FILE.format("3")
    try:
        recorder = Recorder(lambda: space)
        with recorder:
            _run("pass\n" + PROGRAMS[name].cell, file, space)  # the line of `%%grad`
        return recorder.trace()
    finally:
        cells.current = before


def _run(source: str, file: str, space: dict[str, Any]) -> None:
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), space)

"""The namespace of a notebook that has run some cells."""

from __future__ import annotations

import itertools
import linecache

import gradlab as gl

numbers = itertools.count()


def cells(*texts):
    """The namespace of a notebook that has run these cells; their text can be read, as IPython's can."""
    space = {"gl": gl}
    for text in texts:
        name = f"<cell {next(numbers)}>"
        linecache.cache[name] = len(text), None, text.strip("\n").splitlines(keepends=True), name
        exec(compile(text.strip("\n"), name, "exec"), space)
    return space

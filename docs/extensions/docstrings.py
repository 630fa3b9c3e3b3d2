"""Docstrings are written to be read in a terminal: `|x|`, `size*` and `exp_` mean what they say. Here they are made to mean that in
reStructuredText too, where bars, stars and a last underscore are marks."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

# What is left alone: code in backquotes, and roles and directives with what belongs to them.
CODE = re.compile(r"(``[^`]*``|:?[\w:]*`[^`]*`)")
MARKS = re.compile(r"(?<!\\)(\||\*(?!\*?\w+ :)|(?<=\w)_(?!\w))")


def escaped(lines: list[str]) -> list[str]:
    """The lines with these marks escaped, outside of code, examples and formulas."""
    done, block = [], -1  # block: the indentation of a directive, while inside of one
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block >= 0 and line.strip() and indent <= block:
            block = -1
        if line.lstrip().startswith((".. ", ">>>")):
            block = indent if line.lstrip().startswith("..") else max(indent - 1, 0) if indent else 0
        example = line.lstrip().startswith((">>>", "..."))
        if block >= 0 or example or re.match(r"\s*\*{0,2}\w+(, \*{0,2}\w+)* : ", line):
            done.append(line)
        else:
            parts = CODE.split(line)
            done.append("".join(part if i % 2 else MARKS.sub(r"\\\1", part) for i, part in enumerate(parts)))
    return done


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = escaped(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before numpydoc, which writes such marks itself
    return {"parallel_read_safe": True, "parallel_write_safe": True}

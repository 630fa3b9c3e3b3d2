"""Docstrings are written to be read in a terminal: `|x|`, `size*` and `exp_` mean what they say.

In reStructuredText bars, stars and a last underscore are marks; here they are escaped.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``[^`]*``|:?[\w:]*`[^`]*`)")
MARKS = re.compile(r"(?<!\\)(\||\*|(?<=\w)_(?!\w))")
PARAMETER = re.compile(r"\s*\*{0,2}\w+(, \*{0,2}\w+)* : ")  # numpydoc sees to these


def escaped(lines: list[str]) -> list[str]:
    """The lines with these marks escaped: not in code, in examples, and in directives with what is indented below them."""
    done, directive = [], None  # the indentation of the directive that the line may belong to
    for line in lines:
        text = line.lstrip()
        indent = len(line) - len(text)
        if directive is not None and text and indent <= directive:
            directive = None
        if text.startswith(".. "):
            directive = indent
        if directive is None and not text.startswith((">>>", "...")) and not PARAMETER.match(line):
            parts = CODE.split(line)
            line = "".join(part if i % 2 else MARKS.sub(r"\\\1", part) for i, part in enumerate(parts))
        done.append(line)
    return done


def process(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = escaped(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before numpydoc, which writes such marks itself
    return {"parallel_read_safe": True, "parallel_write_safe": True}

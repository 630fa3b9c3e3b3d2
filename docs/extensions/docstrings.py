"""Escape bars, stars and final underscores in docstrings.

Docstrings are written for a terminal, so `|x|`, `size*` and `exp_` are meant literally. In reStructuredText they are markup.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``[^`]*``|:?[\w:]*`[^`]*`)")
MARKS = re.compile(r"(?<!\\)(\||\*|(?<=\w)_(?!\w))")
PARAMETER = re.compile(r"\s*\*{0,2}\w+(, \*{0,2}\w+)* : ")  # numpydoc handles these


def escape_marks(lines: list[str]) -> list[str]:
    """Escape the marks, except in code, in examples, and in directives and the lines indented below them."""
    done, directive = [], None  # indentation of the directive that the line may belong to
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
    lines[:] = escape_marks(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("autodoc-process-docstring", process, priority=400)  # before numpydoc, which adds such marks of its own
    return {"parallel_read_safe": True, "parallel_write_safe": True}

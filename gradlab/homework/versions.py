"""The student's version of a notebook, made from the one with solutions.

The marks are nbgrader's, and so is what becomes of them: text between `### BEGIN SOLUTION` and `### END SOLUTION` gives way to
a stub, text between `### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` goes. A test holds the result against what
`nbgrader generate_assignment` makes of the same notebook.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import Any

CODE_STUB = ["# YOUR CODE HERE", "raise NotImplementedError()"]
TEXT_STUB = ["YOUR ANSWER HERE"]
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
HIDE, SHOW = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"


def student_version(notebook: dict[str, Any]) -> dict[str, Any]:
    r"""A copy of a notebook (as nbformat's JSON, version 4) without solutions, hidden tests and outputs.

    Parameters
    ----------
    notebook : dict
        As nbformat's JSON. It is not changed.

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        If a mark is opened and not closed, closed and not opened, or opened twice.

    Examples
    --------
    >>> from gradlab.homework import student_version
    >>> text = "def f(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    >>> cell = {"cell_type": "code", "source": text, "metadata": {}}
    >>> "2 * x" in "".join(student_version({"cells": [cell]})["cells"][0]["source"])
    False
    """
    version = deepcopy(notebook)
    for cell in version["cells"]:
        graded = cell.get("metadata", {}).get("nbgrader", {})
        text = "".join(cell["source"])
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        stub = CODE_STUB if cell["cell_type"] == "code" else TEXT_STUB
        lines, replaced = _without(text.split("\n"), BEGIN, END, stub)
        if graded.get("solution") and not replaced:
            lines = stub
        cell["source"] = without_hidden_tests("\n".join(lines)).splitlines(keepends=True)
    return version


def as_text(notebook: dict[str, Any]) -> str:
    """A notebook as a file's text."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def has_solutions(text: str) -> bool:
    """Whether this is the text of a notebook with solutions."""
    return BEGIN in text


def without_hidden_tests(text: str) -> str:
    """The text of a cell as students see it."""
    return "\n".join(_without(text.split("\n"), HIDE, SHOW, [])[0])


def _without(lines: list[str], begin: str, end: str, stub: list[str]) -> tuple[list[str], bool]:
    kept: list[str] = []
    inside = replaced = False
    for line in lines:
        if begin in line:
            if inside:
                raise ValueError(f"{begin} stands inside another one: {line!r}.")
            inside = replaced = True
            indent = re.match(r"\s*", line)
            kept += [(indent.group() if indent else "") + text for text in stub]
        elif end in line:
            if not inside:
                raise ValueError(f"{end} has no {begin} before it.")
            inside = False
        elif not inside:
            kept.append(line)
    if inside:
        raise ValueError(f"{begin} is not closed by {end}.")
    return kept, replaced

"""The students' version of a notebook, made from the one with solutions.

The marks are those of nbgrader: a stub replaces the text between `### BEGIN SOLUTION` and `### END SOLUTION`, and text between
`### BEGIN HIDDEN TESTS` and `### END HIDDEN TESTS` is removed. A test compares the result with `nbgrader generate_assignment`.
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
    r"""Return a copy of a notebook without solutions, hidden tests and outputs.

    Parameters
    ----------
    notebook : dict
        JSON of nbformat, version 4. It is not modified.

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
    """Return the text of a notebook's file."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def has_solutions(text: str) -> bool:
    """Return whether this is the text of a notebook with solutions."""
    return BEGIN in text


def without_hidden_tests(text: str) -> str:
    """Return the text of a cell as students see it."""
    return "\n".join(_without(text.split("\n"), HIDE, SHOW, [])[0])


def _without(lines: list[str], begin: str, end: str, stub: list[str]) -> tuple[list[str], bool]:
    kept: list[str] = []
    inside = replaced = False
    for line in lines:
        if begin in line:
            if inside:
                raise ValueError(f"{begin} inside another one: {line!r}.")
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

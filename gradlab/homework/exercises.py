"""A homework: exercises, each a function that looks at a student's namespace and notes what it finds.

    homework = Homework("The Jacobian, row by row")

    @homework.exercise(1, "One row", points=10)
    def one_row(student):
        row = student.function("row")
        student.close(10, "row 2 of a rotation", row(...), expected)

The same function runs in the notebook (`%check 1`, with a seed that is always the same, so that the same cell run twice says
the same), in pytest and in nbgrader (`grade`, with a seed that the student does not see).
"""
from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradlab.homework.student import Stopped, Student
from gradlab.homework.verdicts import Finding, Verdict

Checks = Callable[[Student], None]
CHECKS = "checks.py"


class Homework:
    """Exercises by number. `checks.py` makes one and calls it `homework`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.exercises: dict[int, tuple[str, float, Checks]] = {}

    @property
    def points(self) -> float:
        """What all exercises are worth."""
        return sum(points for _, points, _ in self.exercises.values())

    def exercise(self, number: int, title: str, points: float) -> Callable[[Checks], Checks]:
        """Declare the checks of an exercise: a decorator of a function of a `Student`."""
        if number in self.exercises:
            raise ValueError(f"{self.title}: exercise {number} is declared twice.")

        def declare(checks: Checks) -> Checks:
            self.exercises[number] = title, points, checks
            return checks
        return declare

    def check(self, number: int, namespace: dict[str, Any], seed: int = 0) -> Verdict:
        """Run the checks of one exercise on a namespace."""
        if number not in self.exercises:
            raise ValueError(f"{self.title} has the exercises {', '.join(map(str, sorted(self.exercises)))}; {number} is none "
                             "of them.")
        title, points, checks = self.exercises[number]
        verdict = Verdict(number, title, points)
        with suppress(Stopped):
            checks(Student(namespace, verdict, seed + 1000 * number))
        declared = sum(finding.points for finding in verdict.findings)
        if declared > points:
            raise ValueError(f"{self.title}: the checks of exercise {number} give {declared:g} points, it is worth {points:g}.")
        if not verdict.findings:
            verdict.findings.append(Finding("nothing", False, "the exercise checked nothing"))
        return verdict


def load(folder: str | Path = ".") -> Homework:
    """The homework that `checks.py` in a folder declares, read anew each time.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it makes no `homework`.
    """
    path = Path(folder).resolve() / CHECKS
    if not path.is_file():
        raise FileNotFoundError(f"there is no {CHECKS} in {path.parent}. It belongs beside the notebook: open the notebook from "
                                "the folder that `gradlab course` made, or copy the file there.")
    spec = importlib.util.spec_from_file_location(f"gradlab_checks_of_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    homework = getattr(module, "homework", None)
    if not isinstance(homework, Homework):
        raise ValueError(f"{path} makes no `homework = Homework(…)`.")
    return homework


def check(number: int, namespace: dict[str, Any], seed: int = 0, folder: str | Path = ".") -> Verdict:
    """Check one exercise of the homework in a folder against a notebook's variables (`globals()`)."""
    return load(folder).check(number, namespace, seed)


def grade(number: int, namespace: dict[str, Any], seed: int, folder: str | Path = ".") -> float:
    """Print the verdict on one exercise and return its points: the last line of an autograded nbgrader cell.

    nbgrader takes the number that a test cell ends with for its score."""
    verdict = check(number, namespace, seed, folder)
    print(verdict)  # noqa: T201  (into the feedback)
    return verdict.points

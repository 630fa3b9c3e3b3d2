"""A homework: exercises, each a function that looks at a student's namespace and notes what it finds.

    homework = Homework("The Jacobian, row by row")

    @homework.exercise(1, "One row", points=10)
    def one_row(student):
        row = student.function("row")
        student.close(10, "row 2 of a rotation", row(f, x), expected)

The same function runs in the notebook (`%check 1`, with a seed that is always the same, so that the same cell run twice says
the same) and where submissions are graded (see `homework.grading`), with a seed that the student does not see.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradlab.homework.student import Here, Nowhere, Stopped, Student, Work
from gradlab.homework.time_limits import Purse
from gradlab.homework.verdicts import CheckItem, Verdict

Checks = Callable[[Student], None]
CHECKS = "checks.py"


class Homework:
    """Exercises by number. `checks.py` makes one and calls it `homework`.

    Parameters
    ----------
    title : str
        What errors and summaries call it.

    Examples
    --------
    >>> from gradlab.homework import Homework
    >>> homework = Homework("A first gradient")
    >>> @homework.exercise(1, "The gradient", points=10)
    ... def gradient(student):
    ...     student.close(10, "of a square", student.function("gradient")(3.0), 6.0)
    >>> homework.points
    10
    """

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

    def check(self, number: int, work: dict[str, Any] | Work, seed: int = 0, purse: Purse | None = None) -> Verdict:
        """Run the checks of one exercise on a notebook's variables, or on work that is elsewhere. A check that fails says so
        in its verdict."""
        title, points, checks = self._exercise(number)
        verdict = Verdict(number, title, points, drawn=seed != 0)
        try:
            with suppress(Stopped):
                checks(Student(Here(work) if isinstance(work, dict) else work, verdict, seed + 1000 * number, purse))
            declared = sum(finding.points for finding in verdict.findings)
            if declared > points:
                raise ValueError(f"its findings are worth {declared:g} points, it is worth {points:g}")
            if not verdict.findings:
                raise ValueError("it checked nothing")
        except Exception as error:  # noqa: BLE001  (whatever it is, the other exercises go on)
            words = f"the check itself failed ({type(error).__name__}: {error}). Tell your teacher"
            verdict.findings.append(CheckItem("the check", False, words))
        return verdict

    def case(self, number: int, call: int = 1, seed: int = 0) -> tuple[Any, ...]:
        """The functions and tensors that an exercise's check gives to a student's function in its call number `call`."""
        self._exercise(number)
        nowhere = Nowhere()
        self.check(number, nowhere, seed)
        if not 1 <= call <= len(nowhere.given):
            raise ValueError(f"exercise {number} has the cases 1 to {len(nowhere.given)}; {call} is none of them.")
        return nowhere.given[call - 1]

    def _exercise(self, number: int) -> tuple[str, float, Checks]:
        if number not in self.exercises:
            raise ValueError(
                f"{self.title} has the exercises {', '.join(map(str, sorted(self.exercises)))}; {number} is none of them."
            )
        return self.exercises[number]


def load(folder: str | Path = ".") -> Homework:
    """The homework that `checks.py` in a folder declares, read anew each time.

    Parameters
    ----------
    folder : path, optional
        The one of the notebook.

    Returns
    -------
    Homework

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it makes no `homework`.

    Examples
    --------
    >>> from gradlab.homework import load
    >>> load("hw3_jacobian").points  # doctest: +SKIP
    100
    """
    path = Path(folder).resolve() / CHECKS
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {CHECKS} in {path.parent}. It belongs beside the notebook: open the notebook from "
            "the folder that `gradlab course` made, or copy the file there."
        )
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
    """Check one exercise of the homework in a folder against a notebook's variables.

    Parameters
    ----------
    number : int
        The exercise's.
    namespace : dict
        The variables: `globals()`.
    seed : int, default 0
        Of the shapes and numbers that the check draws.
    folder : path, optional
        Where `checks.py` is.

    Returns
    -------
    Verdict

    Raises
    ------
    FileNotFoundError, ValueError
        As of `load`, or if there is no such exercise.

    Examples
    --------
    >>> from gradlab.homework import check
    >>> print(check(1, globals()))  # doctest: +SKIP
    """
    return load(folder).check(number, namespace, seed)


def case(exercise: int, call: int = 1, folder: str | Path = ".") -> Any:
    """What `%check` gave to your function: "Try it: f, x = case(1, 2)" is the second call of exercise 1.

    Parameters
    ----------
    exercise : int
        Its number.
    call : int, default 1
        Which of the calls, counted from 1.
    folder : path, optional
        Where `checks.py` is.

    Returns
    -------
    tuple
        The functions and tensors, to be looked at and tried; where it is one thing, that thing. (Work that is graded is tried
        on others: the verdict there says "Try one like it".)

    Raises
    ------
    FileNotFoundError, ValueError
        As of `load`, or if there is no such call.

    Examples
    --------
    >>> from gradlab.homework import case
    >>> f, x = case(1, 2)  # doctest: +SKIP
    """
    arguments = load(folder).case(exercise, call)
    return arguments[0] if len(arguments) == 1 else arguments

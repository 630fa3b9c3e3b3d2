"""A homework: exercises, each a function that checks a student's work and records findings.

    homework = Homework("The Jacobian, row by row")

    @homework.exercise(1, "One row", points=10)
    def one_row(student):
        row = student.function("row")
        student.close(10, "row 2 of a rotation", row(f, x), expected)

The same function runs in the notebook (`%check 1`, always with the same seed, so that its result is reproducible) and where
submissions are graded (see `homework.grading`), with a seed that the student does not know.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from gradlab.homework.student import Here, Nowhere, Stopped, Student, Work
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.verdicts import CheckItem, Verdict

Checks = Callable[[Student], None]
CHECKS = "checks.py"


class Homework:
    """Exercises by number. `checks.py` creates one as `homework`.

    Parameters
    ----------
    title : str
        The name in errors and summaries.

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
        """The sum of the points of all exercises."""
        return sum(points for _, points, _ in self.exercises.values())

    def exercise(self, number: int, title: str, points: float) -> Callable[[Checks], Checks]:
        """Return a decorator that declares the checks of an exercise, a function of a `Student`."""
        if number in self.exercises:
            raise ValueError(f"{self.title}: exercise {number} is declared twice.")

        def declare(checks: Checks) -> Checks:
            self.exercises[number] = title, points, checks
            return checks

        return declare

    def check(self, number: int, work: dict[str, Any] | Work, seed: int = 0, budget: TimeBudget | None = None) -> Verdict:
        """Run the checks of one exercise on a notebook's variables, or on other work. If the check itself raises, the
        verdict says so."""
        title, points, checks = self._exercise(number)
        verdict = Verdict(number, title, points, drawn=seed != 0)
        try:
            with suppress(Stopped):
                checks(Student(Here(work) if isinstance(work, dict) else work, verdict, seed + 1000 * number, budget))
            declared = sum(finding.points for finding in verdict.findings)
            if declared > points:
                raise ValueError(f"its findings are worth {declared:g} points, the exercise is worth {points:g}")
            if not verdict.findings:
                raise ValueError("it checked nothing")
        except Exception as error:  # noqa: BLE001  (the other exercises are still checked)
            words = f"the check itself failed ({type(error).__name__}: {error}). Please report this to your teacher"
            verdict.findings.append(CheckItem("the check", False, words))
        return verdict

    def case(self, number: int, call: int = 1, seed: int = 0) -> tuple[Any, ...]:
        """Return the functions and tensors that an exercise's check passes to a student's function in call number `call`."""
        self._exercise(number)
        nowhere = Nowhere()
        self.check(number, nowhere, seed)
        if not 1 <= call <= len(nowhere.given):
            raise ValueError(f"exercise {number} has the cases 1 to {len(nowhere.given)}, got {call}.")
        return nowhere.given[call - 1]

    def _exercise(self, number: int) -> tuple[str, float, Checks]:
        if number not in self.exercises:
            raise ValueError(f"{self.title} has the exercises {', '.join(map(str, sorted(self.exercises)))}, got {number}.")
        return self.exercises[number]


def load(folder: str | Path = ".") -> Homework:
    """Load the homework that `checks.py` in a folder declares. The file is executed each time.

    Parameters
    ----------
    folder : path, optional
        The notebook's folder.

    Returns
    -------
    Homework

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it does not create a `homework`.

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
        raise ValueError(f"{path} does not create a `homework = Homework(…)`.")
    return homework


def check(number: int, namespace: dict[str, Any], seed: int = 0, folder: str | Path = ".") -> Verdict:
    """Check one exercise of the homework in a folder against a notebook's variables.

    Parameters
    ----------
    number : int
        The number of the exercise.
    namespace : dict
        The variables: `globals()`.
    seed : int, default 0
        Seed of the shapes and numbers that the check draws.
    folder : path, optional
        Where `checks.py` is.

    Returns
    -------
    Verdict

    Raises
    ------
    FileNotFoundError, ValueError
        As for `load`, or if there is no such exercise.

    Examples
    --------
    >>> from gradlab.homework import check
    >>> print(check(1, globals()))  # doctest: +SKIP
    """
    return load(folder).check(number, namespace, seed)


def case(exercise: int, call: int = 1, folder: str | Path = ".") -> Any:
    """Return the inputs that `%check` passed to your function: `f, x = case(1, 2)` for call 2 of exercise 1.

    Parameters
    ----------
    exercise : int
        The number of the exercise.
    call : int, default 1
        The number of the call, from 1.
    folder : path, optional
        Where `checks.py` is.

    Returns
    -------
    tuple
        The functions and tensors; a single one is returned without a tuple. (Grading uses other inputs: its verdicts say
        "Try one like it".)

    Raises
    ------
    FileNotFoundError, ValueError
        As for `load`, or if there is no such call.

    Examples
    --------
    >>> from gradlab.homework import case
    >>> f, x = case(1, 2)  # doctest: +SKIP
    """
    arguments = load(folder).case(exercise, call)
    return arguments[0] if len(arguments) == 1 else arguments

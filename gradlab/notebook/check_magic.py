"""`%check N`: check exercise N of the homework beside the notebook, and show the verdict.

For an exercise that passes again in this session, one line is shown.
"""

from __future__ import annotations

import os
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

ALL = "--all"
USAGE = f"%check takes the number of an exercise, and {ALL} to show all of its checks, as in %check 1 or %check 1 {ALL}"


@magics_class
class CheckMagics(Magics):
    """`%check`."""

    shell: Any

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._passed: set[tuple[str, int]] = set()  # folder and number of the exercises that passed when they were last checked

    @line_magic
    def check(self, line: str) -> None:
        """%check N [--all]: check exercise N of the homework beside this notebook.

        The checks are in `checks.py` in the notebook's folder. They call the functions of the exercise on their own tensors,
        change none of your variables, and show what is right, how far off the rest is, and what to look at next.

        If the exercise passes and had passed when it was last checked, one line says so. `--all` shows all of its checks.
        """
        from gradlab.homework import load
        from gradlab.homework.verdicts import PassedAgain

        words = line.split()
        numbers = [word for word in words if word != ALL]
        if len(numbers) != 1 or not numbers[0].isdecimal() or words.count(ALL) > 1:
            raise UsageError(f"{USAGE}; got {line.strip()!r}." if words else f"{USAGE}.")
        number = int(numbers[0])
        try:
            verdict = load().check(number, self.shell.user_ns)
        except (FileNotFoundError, ValueError) as error:
            raise UsageError(f"%check: {error}") from None
        exercise = os.getcwd(), number
        before = exercise in self._passed
        passed = verdict.has_passed and all(finding.good for finding in verdict.findings)
        (self._passed.add if passed else self._passed.discard)(exercise)
        display(PassedAgain(verdict) if passed and before and ALL not in words else verdict)

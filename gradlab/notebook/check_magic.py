"""`%check N`: check exercise N of the homework beside the notebook, and show the verdict."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class
from IPython.display import display

USAGE = "%check takes the number of an exercise, as in %check 1"


@magics_class
class CheckMagics(Magics):
    """`%check`."""

    shell: Any

    @line_magic
    def check(self, line: str) -> None:
        """%check N: check exercise N of the homework beside this notebook.

        The checks stand in `checks.py` in the notebook's folder. They call the functions that the exercise asked for on
        tensors of their own, change nothing of yours, and say what is right, how far off the rest is, and what to look at next.
        """
        from gradlab.homework import load

        words = line.split()
        if len(words) != 1 or not words[0].isdecimal():
            raise UsageError(f"{USAGE}; got {line.strip()!r}." if words else f"{USAGE}.")
        try:
            homework = load()
            verdict = homework.check(int(words[0]), self.shell.user_ns)
        except (FileNotFoundError, ValueError) as error:
            raise UsageError(f"%check: {error}") from None
        display(verdict)

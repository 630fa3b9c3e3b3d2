"""Exercises that are checked where they are written, and graded where the submission cannot reach.

A homework is a folder with a notebook, which holds tasks and solutions, and a `checks.py`, which makes a `Homework` and says
for each exercise what is checked. `%check 1` in the notebook runs those functions in the notebook's kernel; `run`, and
nbgrader by way of `gradlab.notebook.grading`, run them in a process of their own, with the submission in another. The notebook
for students is made from the one with solutions by `student_version`.
"""

from gradlab.homework.comparison import compare
from gradlab.homework.differences import central_differences
from gradlab.homework.exercises import Homework, case, check, load
from gradlab.homework.grading import run
from gradlab.homework.predictions import ask, guess
from gradlab.homework.probes import Twice
from gradlab.homework.reveals import reveal
from gradlab.homework.student import Student
from gradlab.homework.verdicts import Verdict
from gradlab.homework.versions import student_version

__all__ = [
    "Homework",
    "Student",
    "Twice",
    "Verdict",
    "ask",
    "case",
    "central_differences",
    "check",
    "compare",
    "guess",
    "load",
    "reveal",
    "run",
    "student_version",
]

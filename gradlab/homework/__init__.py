"""Homework: exercises that are checked in the notebook and graded in a separate process.

A homework is a folder with a notebook, which holds tasks and solutions, and a `checks.py`, which creates a `Homework` with a
function of checks for each exercise. `%check 1` runs these functions in the notebook's kernel. `run`, and nbgrader through
`gradlab.notebook.grading`, keep the checks in this process and run the submission in another. `student_version` makes the
students' notebook from the one with solutions.
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

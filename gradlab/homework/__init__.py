"""Exercises that are checked where they are written: in the notebook, by pytest and by nbgrader alike.

A homework is a folder with a notebook, which holds tasks and solutions, and a `checks.py`, which makes a `Homework` and says
for each exercise what is checked. `%check 1` in the notebook, `check` and `grade` from code, and `run` for a whole notebook all
run those same functions. The notebook for students is made from the one with solutions by `student_version`.
"""
from gradlab.homework.differences import central_differences
from gradlab.homework.exercises import Homework, check, grade, load
from gradlab.homework.predictions import reveal
from gradlab.homework.running import run
from gradlab.homework.student import Student
from gradlab.homework.verdicts import Verdict
from gradlab.homework.versions import student_version

__all__ = ["Homework", "Student", "Verdict", "central_differences", "check", "grade", "load", "reveal", "run", "student_version"]

"""The cases of a lesson: each lesson has a module `cases_lesson_N.py`, which `test_lessons.py` uses.

LESSON = "lessons/03_chain_rule.ipynb"
MINUTES = 25                  # as its first cell says
WORDS = 1200                  # at most, in its text; a formula or a piece of code counts as one; 1200 if it is not said
QUESTIONS = {"two_rows": Case("guess2", "reveal2", right="[3, 5]", wrong="[1, 2]", absurd="'row 1'", reply="what a second")}
SHOWS = {"rows": "tensor([[2., 3.]"}     # what the output of a cell contains, in whatever order the cells are run
ONCE = {"memory": "1200 bytes"}          # the same for cells run from top to bottom only
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType


@dataclass(frozen=True)
class Case:
    """A question of a lesson, with guesses and the expected replies."""

    asks: str  # the cell with `ask(...)`
    reveals: str  # the cell with `reveal(...)`
    right: str  # guesses, as text of Python: "[1, 2]", "'Mul'"
    wrong: str  # a known misconception
    absurd: str  # what nobody could mean: "'row 1'", "gl.ones(7)", "float('nan')"
    reply: str  # in the answer to the wrong one
    answer: str | tuple[str, ...] | None = None  # in no output above the cell that reveals
    rules: tuple[str, ...] = ()  # in no text above the cell that asks
    agreed: str = "As you said"  # in the answer to the right one
    refused: str = "You wrote"  # in the answer to the absurd one


def lessons() -> dict[str, ModuleType]:
    """The modules with cases, by lesson."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("cases_lesson_*.py"))
    return {name.removeprefix("cases_"): importlib.import_module(f"notebooks.{name}") for name in names}

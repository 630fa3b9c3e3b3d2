"""Answers to a homework as they are typed in: the notebook's solutions with something replaced, and what that is worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from homework.notebook_of import cells

from gradlab import cli
from gradlab.homework import load, student_version
from gradlab.homework.student import SECONDS
from gradlab.homework.time_limits import TimeBudget
from gradlab.homework.verdicts import Verdict

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 20))]
TYPED = ("answer", "chain")  # the cells that an answer consists of, and one that they need


class Typed(NamedTuple):
    """An answer: its exercise, the notebook's cells, the points, and a sentence of its verdict (none where all is right)."""

    name: str
    exercise: int
    cells: list[str]
    points: float
    says: str = ""


class Paper:
    """A homework of the course."""

    def __init__(self, name: str) -> None:
        self.name, self.folder = name, cli.notebooks() / "homework" / name

    @property
    def source(self) -> dict[str, Any]:
        return json.loads((self.folder / f"{self.name}.ipynb").read_text())

    def solutions(self) -> dict[str, str]:
        """The right answers, by cell."""
        return {
            cell["id"]: "".join(line for line in cell["source"] if "SOLUTION" not in line)
            for cell in self.source["cells"]
            if cell["id"].startswith(TYPED)
        }

    def replace_in(self, cell: str, *pairs: str) -> list[str]:
        """All solutions, with something replaced in one cell."""
        answers = self.solutions()
        for old, new in zip(pairs[::2], pairs[1::2], strict=True):
            assert old in answers[cell], old
            answers[cell] = answers[cell].replace(old, new)
        return list(answers.values())

    def instead(self, **texts: str) -> list[str]:
        """All solutions, with other cells in their places."""
        answers = self.solutions()
        assert set(texts) <= set(answers)
        return list((answers | texts).values())

    def verdict(self, exercise: int, texts: list[str], seed: int = 0, seconds: float = SECONDS) -> Verdict:
        budget = TimeBudget(seconds, seconds, 0.1)
        return load(self.folder).check(exercise, cells("import numpy as np", *texts), seed, budget)

    def write_notebook(self, folder: Path, texts: list[str]) -> Path:
        """A student's notebook with these answers, beside its checks."""
        notebook, left = student_version(self.source), iter(texts)
        for cell in notebook["cells"]:
            if cell["id"].startswith(TYPED):
                cell["source"] = next(left)
        (folder / "checks.py").write_bytes((self.folder / "checks.py").read_bytes())
        path = folder / f"{self.name}.ipynb"
        path.write_text(json.dumps(notebook))
        return path


def verdict_text(found: Verdict) -> str:
    """All that a verdict says, in one line."""
    return " ".join(str(found).split())

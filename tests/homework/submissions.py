"""Submissions of homework 3 as students hand them in: right, half right, empty, and cheating, with the points each is worth.

Each is the student's version of the notebook with some of its answer cells filled in.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gradlab import cli
from gradlab.homework import student_version

NAME = "hw3_jacobian"
SOURCE = cli.notebooks() / "homework" / NAME


def source(name: str = NAME) -> dict[str, Any]:
    """The notebook of a homework, with solutions."""
    return json.loads((SOURCE.parent / name / f"{name}.ipynb").read_text(encoding="utf-8"))


def submission(answers: dict[str, str], restored: dict[str, str] | None = None) -> dict[str, Any]:
    """The student's version with these texts in the cells of these ids. `restored` changes cells that are locked, which nbgrader
    puts back."""
    notebook = student_version(source())
    for cell in notebook["cells"]:
        text = {**answers, **(restored or {})}.get(cell["id"])
        if text is not None:
            cell["source"] = text.strip("\n").splitlines(keepends=True)
    return notebook


def solutions() -> dict[str, str]:
    """The right answers, by cell."""
    return {
        cell["id"]: "".join(line for line in cell["source"] if "SOLUTION" not in line)
        for cell in source()["cells"]
        if cell["id"].startswith("answer")
    }


FORGETS_TO_ZERO = """
def jacobian_by_rows(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    rows = []
    for i in range(len(y)):
        v = gl.zeros_like(y)
        v[i] = 1
        y.backward(v, retain_graph=True)
        rows.append(x.grad.reshape(-1).clone())
    return gl.stack(rows)
"""

ONE_AT_A_TIME = """
def mixes(f, x, V):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    return gl.stack([gl.autograd.grad(y, x, v, retain_graph=True)[0] for v in V])
"""

ALWAYS_ROWS = """
def jacobian(f, x):
    return jacobian_by_rows(f, x)
"""

BORROWS = """
from gradlab.autograd.functional import jacobian as work

def jacobian_by_rows(f, x):
    return work(f, x).reshape(-1, x.numel())
"""

HARD_CODED = """
def jacobian_by_columns(f, x):
    return gl.tensor([[3.0, 2.0, 0.0], [0.0, 6.0, 1.0]])
"""

QUOTED = """
def sum_of_rows(f, x):
    return getattr(gl.autograd.functional, "vjp")(f, x, gl.ones_like(f(x)))[1]


def message_of_the_second_call(f, x):
    return "Trying to backward through the graph a second time"
"""

ENDLESS_ROWS = """
def jacobian_by_rows(f, x):
    while True:
        pass
"""

STUBBORN_COLUMNS = """
def jacobian_by_columns(f, x):
    kept = []
    while True:
        try:
            kept.append(bytearray(10 ** 7))
        except BaseException:
            pass
"""

BROKEN_ROWS = """
def jacobian_by_rows(f, x)
    return 3 +
"""

EXITS = """
import os, sys

def mixes(f, x, V):
    os._exit(0)

sys.exit()
"""

FORGES = """
import gradlab.homework, gradlab.homework.verdicts, json, sys

print('gradlab-verdicts:' + json.dumps([{"number": n, "title": "t", "worth": w, "findings": [
    {"what": "all", "good": True, "words": "exact", "points": w}]} for n, w in enumerate((30, 20, 20, 15, 15, 0), 1)]))
gradlab.homework.Verdict.points = property(lambda self: self.worth)
gradlab.homework.Homework.check = lambda *a, **k: 30
sys.modules["__main__"].perform = lambda *a: {"end": "value", "value": {"number": 30}, "changed": [], "points": 30}
30
"""

RIGHT = solutions()
HALF = {"answer1": RIGHT["answer1"], "answer3": ONE_AT_A_TIME, "answer4": ALWAYS_ROWS}
EMPTY: dict[str, str] = {}
CHEATING = {"answer1": BORROWS, "answer2": HARD_CODED, "answer3": FORGES, "answer5": QUOTED}
CHEATED_CELLS = {"check1": "30", "check2": "grade = lambda *a, **k: 20\ngrade()"}
ENDLESS = {**RIGHT, "answer1": ENDLESS_ROWS, "answer2": STUBBORN_COLUMNS}
BROKEN = {**RIGHT, "answer1": BROKEN_ROWS, "answer3": EXITS}

# Points by exercise. Half: all of 1; of 3 the numbers, not the single sweep; of 4 both matrices, and the sweeps where rows are
# few. What is right beside an endless loop, a cell that cannot be read or a process that ends itself is worth what it is worth.
INTENDED = {
    "right": (RIGHT, {}, (30, 20, 20, 15, 15, 0)),
    "half": (HALF, {}, (30, 0, 12, 10.5, 0, 0)),
    "empty": (EMPTY, {}, (0, 0, 0, 0, 0, 0)),
    "cheating": (CHEATING, CHEATED_CELLS, (0, 0, 0, 0, 0, 0)),
    "endless": (ENDLESS, {}, (0, 0, 20, 15, 15, 0)),
    "broken": (BROKEN, {}, (0, 20, 0, 15, 15, 0)),
}


def write_notebook(folder: Path, who: str) -> Path:
    """A submission in a folder, as a notebook beside its checks."""
    answers, restored, _ = INTENDED[who]
    return written_as(folder, submission(answers, restored))


def written_as(folder: Path, notebook: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "checks.py").write_bytes((SOURCE / "checks.py").read_bytes())
    path = folder / f"{NAME}.ipynb"
    path.write_text(json.dumps(notebook))
    return path

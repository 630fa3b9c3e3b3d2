"""Nothing that is printed to a student contains the answer: verdicts, errors with tracebacks, warnings, reports, the doctor.

The answer to an exercise that asks for code is each decisive line of the notebook's solution and, where a faulty function is
to be repaired, other ways to say the repair (`REPAIRS`). A line is decisive if the student's version of the notebook does not
have it; of functions that students write from scratch, a line of more than `SHORT` characters. The answer to an exercise that
asks for values or words is the value. What the student wrote does not count: a traceback quotes it.
"""

from __future__ import annotations

import re
import sys
import warnings
from html import unescape
from typing import NamedTuple

import pytest
from homework import answers, answers_hw1, answers_hw2, answers_hw4, answers_hw5, submissions
from homework.typed_in import Paper

from gradlab.homework import load, student_version

SHORT = 24
REPAIRS = {  # fixes for the faults of each exercise, in any names
    ("hw1_read_the_graph", 4): (
        r"retain_grad\(\)",
        r"dtype=\w+\.float|1\. instead of 1|\.float\(\)",
        r"`with \w+\.no_grad\(\)|x -= 0\.01|detach\(\)\.requires_grad_|\.clone\(\)",
        r"(?i)keep the tensor itself|remove \.item|gl\.stack",
    ),
    ("hw4_clinic", 1): (r"zero_grad|grad = None|\.zero_\(",),
    ("hw4_clinic", 2): (r"`with \w+\.no_grad\(\)|w -= |requires_grad_\(\)|w\.data\b",),
    ("hw4_clinic", 3): (r"(?i)\b(remove|without|leave out) `?(h\.)?detach",),
    ("hw4_clinic", 4): (r"squeeze\(|\[:, None\]|reshape\(|flatten\(",),
    ("hw4_clinic", 5): (r"= h \+ 1|instead of `?[hx] \+= 1|to a copy|clone\(\)",),
    ("hw4_clinic", 6): (r"1\.0|1\. |requires_grad=True|requires_grad_\(\)",),
    ("hw4_clinic", 7): (r"detach",),
    ("hw4_clinic", 8): (r"`with \w+\.no_grad\(\)|(?i:compute it outside|\bmove )",),
}


class Typed(NamedTuple):
    """A wrong answer: the homework, the exercise, and the cells that differ from the solution's."""

    paper: Paper
    exercise: int
    name: str
    cells: list[str]


def wrong_answers():
    for module in (answers_hw1, answers_hw2):
        for one in (*module.TABLE, *module.WRONG):
            if one.name != module.ENDLESS:
                named = zip(module.PAPER.solutions(), one.cells, strict=True)
                yield Typed(module.PAPER, one.exercise, one.name, [text for name, text in named if str(one.exercise) in name])
    for name, listed in (
        (submissions.NAME, (*answers.TABLE, *answers.WRONG)),
        (answers_hw5.SOURCE.name, answers_hw5.WRONG),
    ):
        for one in listed:
            yield Typed(Paper(name), one.exercise, one.name, one.cells)
    for one in (*answers_hw4.HANDED_OUT, *answers_hw4.TABLE, *answers_hw4.WRONG):
        if one.says != "did not end within":
            yield Typed(Paper(answers_hw4.NAME), one.exercise, one.name, [one.text])


WRONG = list(wrong_answers())
FIRST = {(one.paper.name, one.exercise): one.name for one in reversed(WRONG)}
DESIGNED = {one.name for module in (answers, answers_hw1, answers_hw2, answers_hw4) for one in module.TABLE}
GATE = {one.name for one in answers_hw4.HANDED_OUT} | DESIGNED | set(FIRST.values())


def text_of(cell):
    return "".join(cell["source"])


def code_lines(text):
    """Return the lines of code without comments and indentation."""
    return [line for line in (re.sub(r"\s+# .*$", "", line).strip() for line in text.splitlines()) if line]


def decisive_lines(paper):
    """Return the lines of all solutions that students do not get, by exercise."""
    given = {
        cell["id"]: code_lines(text_of(cell)) for cell in student_version(paper.source)["cells"] if cell["cell_type"] == "code"
    }
    everywhere = {line for lines in given.values() for line in lines}
    decisive = {}
    for name, solution in paper.solutions().items():
        exercise = int(found[0]) if (found := re.search(r"\d", name)) else 0
        repair = (paper.name, exercise) in REPAIRS
        own = [line for line in code_lines(solution) if line not in (given[name] if repair else everywhere)]
        decisive.setdefault(exercise, []).extend(line for line in own if repair or len(line) > SHORT)
    return decisive


@pytest.fixture
def shown_warnings(monkeypatch):
    """Print warnings, as Python does, instead of recording them, as pytest does."""

    def show(message, category, filename, line, file=None, text=None):
        sys.stderr.write(warnings.formatwarning(message, category, filename, line, text))

    monkeypatch.setattr(warnings, "showwarning", show)


def everything(ran):
    """Return all that a cell has shown, as plain text."""
    shown = [text for bundle in ran.outputs for kind, text in bundle.items() if kind.startswith("text/")]
    return unescape(re.sub(r"<[^>]+>", "", "\n".join([ran.stdout, ran.stderr, *shown])))


def run_notebook(shell, paper, exercise, cells):
    """Run the notebook with the solutions, then these cells in place of one; return their output."""
    source = {cell["id"]: text_of(cell) for cell in paper.source["cells"] if cell["cell_type"] == "code"}
    for name, text in (source | paper.solutions()).items():
        if not name.startswith(("try", "check")):
            shell.ok(text)
    printed = [everything(shell.run(cell)) for cell in cells]
    trial = source.get(f"try{exercise}", "")
    printed.append(everything(shell.run(f"%check {exercise}")))
    calls = [trial, *(f"{name}()" for cell in cells for name in re.findall(r"^def (broken_\w+)\(", cell, re.MULTILINE))]
    tried = [cell for call in calls if call for cell in (call, f"%%doctor\n{call}", f"%%grad\n{call}", "%doctor")]
    return "\n".join([*printed, *(everything(shell.run(cell)) for cell in tried)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [pytest.param(one, marks=() if one.name in GATE else pytest.mark.exhaustive) for one in WRONG],
    ids=[f"{one.paper.name[:3]}-{one.exercise}-{one.name}" for one in WRONG],
)
@pytest.mark.filterwarnings("default")
def test_nothing_printed_contains_the_answer(shell, monkeypatch, shown_warnings, typed):
    monkeypatch.chdir(typed.paper.folder)
    printed = run_notebook(shell, typed.paper, typed.exercise, typed.cells)
    own = "\n".join(typed.cells)
    assert f"Exercise {typed.exercise}, " in printed
    lines = decisive_lines(typed.paper)[typed.exercise]
    assert [line for line in lines if line in printed and line not in own] == []
    theirs = [line for line in printed.splitlines() if not any(part and part in line for part in code_lines(own))]
    patterns = [one for one in REPAIRS.get((typed.paper.name, typed.exercise), ()) if not re.search(one, own)]
    assert [(one, line) for one in patterns for line in theirs if re.search(one, line)] == []


@pytest.mark.filterwarnings("default")
def test_the_answers_are_found_where_they_are_printed(shell, monkeypatch, shown_warnings):
    """The tests above can fail: with fixes shown, the warning and the doctor print the repairs."""
    paper = Paper(answers_hw4.NAME)
    monkeypatch.chdir(paper.folder)
    for cell in ("load", "data"):
        shell.ok(next(text_of(one) for one in paper.source["cells"] if one["id"] == cell))
    shell.ok("%config GradMagics.fixes = True")
    assert "w -= lr * w.grad" in decisive_lines(paper)[2] and "h = h + 1" in decisive_lines(paper)[5]
    shell.run(answers_hw4.ill(2))
    assert "with gl.no_grad(): w -= lr * w.grad" in everything(shell.run("train_2()"))
    shell.run(answers_hw4.ill(5))
    assert "h = h + 1" in everything(shell.run("%%doctor\ntrain_5()"))


# --------------------------------------------------------------------------------------------------------- values and words
VALUES = [("hw1_read_the_graph", 1, "answers"), ("hw2_own_autograd", 6, "broken"), ("hw4_clinic", 9, "diagnosis")]
VALUES += [("hw5_rules", 3, "fails"), ("hw5_rules", 3, "explain")]
GUESSES = (True, False, None, 7, 0.7, "another", [7.0, 8.0, 9.0])


@pytest.mark.parametrize(("name", "exercise", "variable"), VALUES)
@pytest.mark.filterwarnings("ignore")
def test_a_verdict_on_a_wrong_value_does_not_contain_the_right_one(name, exercise, variable):
    paper, space = Paper(name), {}
    exec("import gradlab as gl\nimport numpy as np\n" + "\n".join(paper.solutions().values()), space)
    right = space[variable]
    for key, value in right.items():
        for guess in GUESSES:
            if guess == value or (isinstance(guess, bool) and value in (0, 1)):
                continue
            space[variable] = right | {key: guess}
            found = load(paper.folder).check(exercise, space)
            assert not found.has_passed, (key, guess)
            for item in found.findings:
                told = f"{item.words} {item.hint}".replace(repr(guess), "").replace("True or False was expected", "")
                assert item.good or not re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", told), (key, guess, told)

"""Homework 2: what each answer is worth and told. The answers stand in `answers_hw2.py`."""

from __future__ import annotations

import numpy as np
import pytest
from homework.answers_hw2 import ANSWERS, IN_TORCH, PAPER, RIGHT_TOO, TABLE, WRONG
from homework.notebook_of import cells
from homework.typed_in import told

import gradlab as gl
from gradlab.homework import case, load, run, student_version

EVERY = {answer.name: answer for answer in ANSWERS}


@pytest.mark.parametrize("seed", range(20))
def test_the_solutions_earn_everything(seed):
    homework, space = load(PAPER.folder), cells("import numpy as np", *PAPER.solutions().values())
    for number in homework.exercises:
        found = homework.check(number, space, seed)
        assert found.passed, str(found)


def test_it_is_100_points_and_the_answers_are_many():
    assert load(PAPER.folder).points == 100
    assert len(EVERY) == len(ANSWERS)
    assert len(TABLE) + len(WRONG) >= 12 and len(RIGHT_TOO) >= 3


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_answer_is_worth_its_points_and_told_why(name):
    answer = EVERY[name]
    found = PAPER.verdict(answer.exercise, answer.cells)
    assert found.points == answer.points, str(found)
    assert answer.says in told(found), str(found)
    assert "the check itself failed" not in str(found)
    assert found.passed == (not answer.says)


@pytest.mark.parametrize("name", [name for name in EVERY if name != "log without an end"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_seeds_give_the_same_points(name):
    answer = EVERY[name]
    for seed in (9, 20531):
        found = PAPER.verdict(answer.exercise, answer.cells, seed)
        assert found.points == answer.points, str(found)

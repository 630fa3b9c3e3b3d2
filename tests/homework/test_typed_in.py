"""Check each answer to homeworks 1 and 2: its points, its words, and that the solution is not shown. The
answers are in `answers_hw1.py` and `answers_hw2.py`."""

from __future__ import annotations

import json
from time import perf_counter

import pytest
from homework import answers_hw1, answers_hw2
from homework.notebook_of import cells
from homework.typed_in import SEEDS, verdict_text

from gradlab import clock
from gradlab.homework import load, run, student_version

WORK = {"hw1": answers_hw1, "hw2": answers_hw2}
SHORT = 1.5  # seconds for an exercise that never ends
ANSWERS = {(of, answer.name): (work, answer) for of, work in WORK.items() for answer in work.ANSWERS}
ENDING = [key for key in ANSWERS if key[1] not in (answers_hw1.ENDLESS, answers_hw2.ENDLESS)]
WRONG = [(of, answer.name) for of, work in WORK.items() for answer in (*work.TABLE, *work.WRONG)]
ELSEWHERE = [(of, None) for of in WORK]
ELSEWHERE += [pytest.param(of, who, marks=pytest.mark.exhaustive) for of, work in WORK.items() for who in work.ELSEWHERE]


def verdict(work, answer, seed=0):
    if answer.name != work.ENDLESS:
        return work.PAPER.verdict(answer.exercise, answer.cells, seed)
    with clock.use_source(perf_counter):
        return work.PAPER.verdict(answer.exercise, answer.cells, seed, SHORT)


@pytest.fixture(params=WORK)
def work(request):
    return WORK[request.param]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_solutions_earn_everything(work, seed):
    homework, space = load(work.PAPER.folder), cells("import numpy as np", *work.PAPER.solutions().values())
    for number in homework.exercises:
        found = homework.check(number, space, seed)
        assert found.has_passed, str(found)


def test_the_answers_are_many_and_each_has_a_name(work):
    assert len({answer.name for answer in work.ANSWERS}) == len(work.ANSWERS)
    assert len(work.TABLE) + len(work.WRONG) >= 12 and len(work.RIGHT_TOO) >= 3


@pytest.mark.parametrize("key", ANSWERS, ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_an_answer_is_worth_its_points_and_told_why(key):
    work, answer = ANSWERS[key]
    found = verdict(work, answer)
    assert found.points == answer.points, str(found)
    assert answer.says in verdict_text(found), str(found)
    assert "the check itself failed" not in str(found)
    assert found.has_passed == (not answer.says)


@pytest.mark.exhaustive
@pytest.mark.parametrize("key", ENDING, ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_other_seeds_give_the_same_points(key):
    work, answer = ANSWERS[key]
    found = verdict(work, answer, 20531)
    assert found.points == answer.points, str(found)


def test_students_get_no_solution(work):
    text = json.dumps(student_version(work.PAPER.source))
    assert "SOLUTION" not in text and "HIDDEN" not in text
    assert text.count("raise NotImplementedError()") == work.STUBS + 1  # and the sentence that says to take it out
    for line in work.GONE:
        assert any(line in solution for solution in work.PAPER.solutions().values()) and line not in text


@pytest.mark.e2e
@pytest.mark.parametrize(("of", "who"), ELSEWHERE)
def test_in_a_process_of_its_own(tmp_path, of, who):
    """Compare with the verdicts here, except the quotes of errors."""
    paper = WORK[of].PAPER
    texts = list(paper.solutions().values()) if who is None else ANSWERS[of, who][1].cells
    verdicts = run(paper.write_notebook(tmp_path, texts), seed=4)
    if who is None:
        assert [one.points for one in verdicts] == [one.worth for one in verdicts], verdicts
    else:
        answer = ANSWERS[of, who][1]
        found = verdicts[answer.exercise - 1]
        assert found.points == answer.points, str(found)

"""The checks of homework 3 on the answers that students give: the points and words of each,
without the answer. The answers are in `answers.py`."""

from __future__ import annotations

import threading
from time import perf_counter

import numpy as np
import pytest
from homework.answers import ANSWERS, RIGHT_TOO, TABLE, WRONG
from homework.notebook_of import cells
from homework.submissions import FORGETS_TO_ZERO, RIGHT, SOURCE

import gradlab as gl
from gradlab import clock
from gradlab.homework import Homework, case, central_differences, load
from gradlab.homework.time_limits import TimeBudget, TimeUp, time_limit

EVERY = {answer.name: answer for answer in ANSWERS}
quiet = pytest.mark.filterwarnings("ignore:.*not a leaf Tensor.*:UserWarning", "ignore::RuntimeWarning")


def verdict(number, *texts, seed=0):
    return load(SOURCE).check(number, cells(*texts), seed)


def said(found):
    return " ".join(f"{finding.words} {finding.hint}" for finding in found.findings if not finding.good)


# ------------------------------------------------------------------------------------------------------------- the answers
@pytest.mark.parametrize("seed", range(20))
def test_the_solutions_earn_everything(seed):
    space = cells(*RIGHT.values())
    for number, (_, points, _) in load(SOURCE).exercises.items():
        found = load(SOURCE).check(number, space, seed)
        assert found.has_passed, str(found)
        assert found.points == points


def test_it_is_100_points_and_the_answers_are_many():
    assert load(SOURCE).points == 100
    assert len(EVERY) == len(ANSWERS) == len(TABLE) + len(RIGHT_TOO) + len(WRONG)
    assert len(RIGHT_TOO) + len(WRONG) >= 40


@quiet
@pytest.mark.parametrize("name", EVERY)
def test_an_answer_is_worth_its_points_and_told_why(name):
    answer = EVERY[name]
    found = verdict(answer.exercise, *answer.cells)
    assert found.points == answer.points, str(found)
    assert answer.says in str(found)
    assert "the check itself failed" not in str(found)
    assert found.has_passed == (not answer.says)


@quiet
@pytest.mark.parametrize("name", EVERY)
def test_other_seeds_give_the_same_points(name):
    answer = EVERY[name]
    for seed in (9, 20531):
        found = verdict(answer.exercise, *answer.cells, seed=seed)
        assert found.points == answer.points, str(found)


def test_the_same_cell_run_twice_says_the_same():
    space = cells(FORGETS_TO_ZERO)
    homework = load(SOURCE)
    gl.manual_seed(3)
    first = str(homework.check(1, space))
    drawn = gl.rand(2)
    gl.manual_seed(3)
    assert str(homework.check(1, space)) == first
    assert gl.equal(gl.rand(2), drawn)  # a check leaves the random numbers where they were


def test_a_check_leaves_no_mode_and_no_name_behind():
    space = cells(
        "def jacobian_by_rows(f, x):\n    gl.set_grad_enabled(False)\n    gl.rand(3)\n    raise KeyError('x')\n"
        "def jacobian(f, x):\n    return jacobian_by_rows(f, x)\n"
    )
    before = gl.get_rng_state()
    own = space["jacobian_by_rows"]
    found = load(SOURCE).check(1, space)
    assert gl.is_grad_enabled()
    assert gl.equal(gl.get_rng_state(), before)
    assert "raised KeyError" in said(found)
    assert "raise KeyError('x')" in said(found)
    load(SOURCE).check(4, space)
    assert space["jacobian_by_rows"] is own
    assert "jacobian_by_columns" not in space


# ------------------------------------------------------------------------------------------------------------------ cases
def test_a_verdict_names_a_case_that_can_be_run():
    found = verdict(1, FORGETS_TO_ZERO)
    assert [one.case for one in found.findings if one.case][:2] == ["f, x = case(1, 1)", "f, x = case(1, 2)"]
    assert "Try it: f, x = case(1, 2)" in str(found)
    space = cells(FORGETS_TO_ZERO, *[RIGHT["answer3"]])
    space["case"] = lambda *which: case(*which, folder=SOURCE)
    exec("f, x = case(1, 2)\nJ = jacobian_by_rows(f, x)", space)
    off = np.abs(np.asarray(space["J"]) - central_differences(space["f"], space["x"]))
    assert f"largest difference {off.max():.2g}" in next(one for one in found.findings if one.case.endswith("2)")).words
    exec("f, x, V = case(3, 1)\nVJ = mixes(f, x, V)", space)
    np.testing.assert_allclose(space["VJ"], np.asarray(space["V"]) @ central_differences(space["f"], space["x"]), atol=1e-8)
    with pytest.raises(ValueError, match="exercise 3 has the cases 1 to 1, got 2"):
        case(3, 2, folder=SOURCE)


# ------------------------------------------------------------------------------------------------------- checks that fail
def test_a_check_that_fails_says_so_and_the_others_go_on():
    homework = Homework("made here")

    @homework.exercise(1, "raises", 5)
    def raises(student):
        student.check(2, "first", True, "")
        raise ZeroDivisionError("in the check")

    @homework.exercise(2, "gives too much", 5)
    def gives(student):
        student.check(6, "first", True, "")

    @homework.exercise(3, "nothing", 5)
    def nothing(student):
        pass

    found = [homework.check(n, {}) for n in (1, 2, 3)]
    assert found[0].points == 2
    for one, words in zip(
        found, ("ZeroDivisionError: in the check", "the exercise is worth 5", "it checked nothing"), strict=True
    ):
        assert words in str(one) and "Please report this to your teacher" in str(one)
        assert not one.has_passed


def test_what_is_off_limits_must_exist():
    homework = Homework("made here")
    homework.exercise(1, "t", 1)(lambda student: student.function("f", forbidden=("gradlab.func.jacback",)))
    assert "the library has no such object" in str(homework.check(1, {"f": print}))


# ------------------------------------------------------------------------------------------------------------------- time
ENDLESS = "def jacobian_by_rows(f, x):\n    while True:\n        pass\n"


def test_an_endless_loop_ends_with_a_sentence():
    with clock.use_source(perf_counter):
        found = load(SOURCE).check(1, cells(ENDLESS), budget=TimeBudget(0.5, 0.5, 0.1))
    assert found.points == 0
    assert "is there a loop that never ends?" in str(found)
    assert load(SOURCE).check(2, cells(*RIGHT.values())).has_passed


def swallows(times, clock):
    struck = 0
    while True:
        try:
            while True:
                clock.move(0.01)
        except TimeUp:
            struck += 1
            if struck == times:
                raise


def test_time_that_is_swallowed_comes_again(clock):
    with pytest.raises(TimeUp), time_limit(10):
        swallows(2, clock)


def test_a_limit_that_is_not_reached_leaves_nothing():
    before = set(threading.enumerate())
    for _ in range(50):
        with time_limit(10):
            pass
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


def test_a_purse_gives_less_to_those_that_come_late(clock):
    budget = TimeBudget(each=10, together=14, least=1)
    for spent, left in ((0, 10), (10, 4), (4, 1), (20, 1)):
        with budget.spend():
            clock.move(spent)
        assert budget.seconds() == left


# ------------------------------------------------------------------------------------------------------------ what is expected
def test_what_is_expected_is_right_without_the_library():
    """The checks compare with central differences; those of a function whose Jacobian is known by hand are that Jacobian."""

    def f(x):
        a, b, c = x
        return gl.stack([a * b, b**2 + gl.sin(c)])

    J = central_differences(f, gl.tensor([2.0, 3.0, 0.0], dtype=gl.float64))
    np.testing.assert_allclose(J, [[3, 2, 0], [0, 6, 1]], atol=1e-8)


def test_an_unknown_exercise_is_refused():
    with pytest.raises(ValueError, match="has the exercises 1, 2, 3, 4, 5, 6, got 7"):
        load(SOURCE).check(7, {})


def test_a_folder_without_checks_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no checks\.py in .*beside the notebook"):
        load(tmp_path)
    (tmp_path / "checks.py").write_text("homework = 3\n")
    with pytest.raises(ValueError, match=r"does not create a `homework = Homework"):
        load(tmp_path)

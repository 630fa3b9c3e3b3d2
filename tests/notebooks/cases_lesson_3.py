"""Lesson 3, the chain rule, one box at a time."""

from notebooks.cases import Case

LESSON = "lessons/03_chain_rule.ipynb"
MINUTES = 25
QUESTIONS = {
    "cubes": Case(
        asks="guess1",
        reveals="reveal1",
        right="[0, 3, 12, 27, 48]",
        wrong="0, 1, 8, 27, 64",
        absurd="'cubes'",
        reply="those are the cubes",
        answer="27., 48.",
        rules=("3x^2", "cotangent", "multiplies"),
    ),
    "twice": Case(
        asks="guess2",
        reveals="reveal2",
        right="4",
        wrong="1",
        absurd="'four'",
        reply="instead of `+=`",
        answer="`4.`",
        rules=("**added**", "a share for each use"),
    ),
    "replaced": Case(
        asks="guess3",
        reveals="reveal3",
        right="'4'",
        wrong="2",
        absurd="[1, 2]",
        reply="the one replaced",
        answer="4.0",
        rules=("The 1 is lost",),
    ),
    "bias": Case(
        asks="guess4",
        reveals="reveal4",
        right="'(3,), all 5'",
        wrong="'(5, 3), all 1'",
        absurd="gl.ones(7)",
        reply="the bias has three elements",
        answer="(3,), all 5",
        rules=("A gradient has the shape",),
    ),
    "columns": Case(
        asks="guess5",
        reveals="reveal5",
        right="0, 0",
        wrong="[4, 4]",
        absurd="float('nan')",
        reply="the mean also rises",
        rules=("the mean also rises", "add up to 0"),
    ),
    "three_uses": Case(
        asks="question1",
        reveals="answer1",
        right="7",
        wrong="5",
        absurd="[]",
        reply="each is a share",
        answer="`7.`",
        rules=("2p + 3",),
    ),
    "order": Case(
        asks="question2",
        reveals="answer2",
        right="'h g f'",
        wrong="'h f g'",
        absurd="5",
        reply="before `g` has passed its share",
        answer="h g f",
    ),
    "shape": Case(
        asks="question3",
        reveals="answer3",
        right="(4, 1)",
        wrong="4, 5",
        absurd="'a column'",
        reply="that is the shape of the sum",
        answer="[4, 1]",
    ),
}
SHOWS = {
    "six": "2.0 is what x.std() gives: 2.0",
    "stepper": "by a push of x[0]: -0.25",
    "orders": "y k e gives 2.0\ny e k gives 6.0\ny k e k gives 8.0\n",
    "whole": "14 operations on 2 leaves",
    "gradcheck": "the gradients are right; 2 Jacobians agree",
}
ONCE = {"verdict": "1 of 6 are right"}  # unchanged, the cell has only the first answer

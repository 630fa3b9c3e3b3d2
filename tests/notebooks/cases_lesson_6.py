"""Lesson 6, two products."""

from notebooks.cases import Case

LESSON = "lessons/06_two_products.ipynb"
MINUTES = 25
WORDS = 1000
QUESTIONS = {
    "exists": Case(
        asks="guess1",
        reveals="reveal1",
        right="['w @ J', 'J @ w', 'both', 'neither']",
        wrong="['J @ w', 'J @ w', 'both', 'neither']",
        absurd="'w @ J'",
        reply="needs a number for each column, and there are 2",
        rules=("mixes", "for each column", "for each output"),
    ),
    "along": Case(
        asks="guess2",
        reveals="reveal2",
        right="'3, 2, 4'",
        wrong="2, 1, 0",
        absurd="gl.ones(2)",
        reply="that is column 0",
        answer="[3., 2., 4.]",
        rules=("one-hot u", "picks a column", "column 1"),
    ),
    "best": Case(
        asks="guess3",
        reveals="reveal3",
        right="[-8, -4]",
        wrong="'-16, -16'",
        absurd="'the smallest'",
        reply="lost to rounding",
        rules=("rounding", "not linear"),
    ),
    "twice": Case(
        asks="guess4",
        reveals="reveal4",
        right="[5.0, 3.0, 4.0]",
        wrong="0, 0, 0",
        absurd="'row 1'",
        reply="not for every v",
        answer="[5., 3., 4.]",
        rules=("wherever v is",),
    ),
    "winner": Case(
        asks="guess5",
        reveals="reveal5",
        right="{'1000 to 1': 'rows', '1 to 1000': 'columns', '50 to 50': 'as many'}",
        wrong="['columns', 'rows', 'as many']",
        absurd="[1, 2, 3]",
        reply="one output is one row",
        answer="rows are fewer",
        rules=("a sweep for each output", "the smaller number"),
    ),
    "colours": Case(
        asks="guess6",
        reveals="reveal6",
        right="3",
        wrong="998",
        absurd="'a few'",
        reply="one for each row; but most of a row is zero",
        answer="colours",
        rules=("colour", "do not share a column"),
    ),
    "lengths": Case(
        asks="question1",
        reveals="answer1",
        right="7, 4",
        wrong="(4, 7)",
        absurd="[]",
        reply="that is for vᵀJ",
        answer="[7, 4]",
        rules=("4 by 7",),
    ),
    "fewest": Case(
        asks="question2",
        reveals="answer2",
        right="5.0",
        wrong="2000",
        absurd="float('inf')",
        reply="one for each output",
    ),
    "identity": Case(
        asks="question3",
        reveals="answer3",
        right="'c'",
        wrong="'B'",
        absurd="'all of them'",
        reply="with the same vector on both sides",
        rules=("B cannot detect it", "does not use h"),
    ),
}
SHOWS = {
    "f": "tensor([6., 7., 4.])",
    "adjoint_code": "tensor(13.) tensor(13.)\n",
    "plans": "1×1,000 by method 'batched': 1 row, in 1 backward sweep",
    "widget": "live view of the Jacobian",
}

"""Lesson 8, your own rule."""

from notebooks.cases import Case

LESSON = "lessons/08_own_rule.ipynb"
MINUTES = 25
WORDS = 1100
QUESTIONS = {
    "single": Case(
        asks="guess1",
        reveals="reveal1",
        right="'Fails'",
        wrong="'passes'",
        absurd="0.5",
        reply="too inaccurate to show it",
        answer="the gradients are NOT",
        rules=("yardstick", "rounding"),
    ),
    "slip": Case(
        asks="guess2",
        reveals="reveal2",
        right="'passes'",
        wrong="'fails'",
        absurd="'maybe'",
        reply="it was not tested there",
        rules=("only the points",),
    ),
    "lie": Case(
        asks="guess3",
        reveals="reveal3",
        right="'fails'",
        wrong="'passes'",
        absurd="[1, 2]",
        reply="the rule returns 1",
        answer="the gradients are NOT",
        rules=("detects this", "asserts that"),
    ),
    "second": Case(
        asks="guess4",
        reveals="reveal4",
        right="18.0",
        wrong="'27'",
        absurd="'6x'",
        reply="that is the first derivative",
        answer="tensor(18.",
        rules=("6x",),
    ),
    "falls": Case(
        asks="guess5",
        reveals="reveal5",
        right="False",
        wrong="True",
        absurd="'perhaps'",
        reply="the valley is not one",
        rules=("The second step", "wall"),
    ),
    "values": Case(
        asks="question1",
        reveals="answer1",
        right="3",
        wrong="2",
        absurd="gl.ones(3)",
        reply="has a place, too",
        rules=("None for the number",),
    ),
    "blame": Case(
        asks="question2",
        reveals="answer2",
        right="'the differences'",
        wrong="'what backward says'",
        absurd="'tanh'",
        reply="it rounds each number only once",
        rules=("rounds each number once",),
    ),
    "sweeps": Case(
        asks="question3",
        reveals="answer3",
        right="2",
        wrong="1000",
        absurd="'a million'",
        reply="all of H, one for each input",
        rules=("One backward computes the gradient",),
    ),
}
SHOWS = {
    "clipped_code": "tensor([1.0000, 2.7183, 7.3891], grad_fn=<ClippedExpBackward>)",
    "double": "clipped(x.double()): the gradients are right",
    "train": "sign    first loss 3.62, last 3.62\nPassOn  first loss 3.62, last 0.00",
    "hessian_code": "The same: True",
    "product_code": "As H @ u says: True\nAs functional.hvp says: True",
}

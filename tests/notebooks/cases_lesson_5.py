"""Lesson 5, the Jacobian, row by row."""

from notebooks.cases import Case

LESSON = "lessons/05_jacobian.ipynb"
MINUTES = 25
QUESTIONS = {
    "one_row": Case(
        asks="guess1",
        reveals="reveal1",
        right="[1, 2]",
        wrong="2, 3",
        absurd="'row 1'",
        reply="that is row 0",
        answer="[1., 2.]",
        rules=("one-hot", "adds the rows", "v_0"),
    ),
    "two_rows": Case(
        asks="guess2",
        reveals="reveal2",
        right="'3, 5'",
        wrong="1, 2",
        absurd="gl.ones(7)",
        reply="instead of `+=`",
        answer="[3., 5.]",
        rules=("**adds**",),
    ),
    "path": Case(
        asks="guess5",
        reveals="reveal5",
        right="'pow'",
        wrong="'Mul'",
        absurd="5",
        reply="that computes output 0",
        answer="Pow",
    ),
    "weights": Case(
        asks="guess3",
        reveals="reveal3",
        right="[1, 1, 1]",
        wrong="0, 0, 0",
        absurd="'ones'",
        reply="those would give zeros",
        answer="[1., 1., 1.]",
        rules=("derivative of the loss", "derivative of some loss"),
    ),
    "mix": Case(
        asks="guess4",
        reveals="reveal4",
        right="[1.2, 2.3]",
        wrong="1, 2",
        absurd="3",
        reply="a tenth of row 0",
        answer="[1.2",
    ),
    "calls": Case(
        asks="question1",
        reveals="answer1",
        right="3, 3, 5",
        wrong="5, 3, 5",
        absurd="[]",
        reply="one for each input",
        answer="[3, 3, 5]",
    ),
    "some_weights": Case(
        asks="question2",
        reveals="answer2",
        right="0, 3, 0.25",
        wrong="1, 1, 1",
        absurd="1, 2",
        reply="Yours gives `[3., 9.]`",
        agreed="It gives `[3, 7]`",
    ),
    "first": Case(
        asks="question3",
        reveals="answer3",
        right="[3, 9]",
        wrong="2, 3",
        absurd="float('nan')",
        reply="that is after the first iteration",
        answer="[3., 9.]",
    ),
}
SHOWS = {
    "refused": "grad can be implicitly created only for scalar outputs",
    "forget_graph": "backward through the graph a second time",
    "rows": "tensor([[2., 3.],\n        [1., 2.],\n        [0., 4.]])",
    "reveal3": "The same is in x.grad: True",
    "doubled": "tensor([[2., 0., 0., 0.]])\ntensor([[0., 2., 0., 0.]])\ntensor([[2., 2., 2., 2.]])\ntensor([[2., 2., 2., 2.]])",
    "picture_code": "in 1 ",  # sweeps: what the sentence above it says
}

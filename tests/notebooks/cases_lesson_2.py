"""Lesson 2, a graph built as you run."""

from notebooks.cases import Case

LESSON = "lessons/02_graph.ipynb"
MINUTES = 25
WORDS = 1000
QUESTIONS = {
    "arrows": Case(
        asks="guess1",
        reveals="reveal1",
        right="['yes', 'yes', 'yes', 'yes', 'no', 'no']",
        wrong="['yes', 'yes', 'yes', 'yes', 'yes', 'no']",
        absurd="'upwards'",
        reply="the direction of the forward pass",
        rules=("used twice",),
    ),
    "branches": Case(
        asks="guess2",
        reveals="reveal2",
        right="[3, 2]",
        wrong="'4, 2'",
        absurd="'it depends'",
        reply="is one leaf",
        answer="[3, 2]",
        rules=("did not run", "is recorded"),
    ),
    "loop": Case(
        asks="guess3",
        reveals="reveal3",
        right="6",
        wrong="1",
        absurd="[6, 6]",
        reply="it appears once in the code",
        rules=("six products",),
    ),
    "power": Case(
        asks="guess4",
        reveals="reveal4",
        right="'PowBackward0'",
        wrong="'mulbackward0'",
        absurd="3",
        reply="that would be `x * x * x`",
        answer="PowBackward0",
        rules=("you call is one node",),
    ),
    "leaf": Case(
        asks="guess5",
        reveals="reveal5",
        right="[True, False, True, False, True, True]",
        wrong="[True, False, True, True, True, True]",
        absurd="'x'",
        reply="a conversion is an operation",
        rules=("without a record",),
    ),
    "middle": Case(
        asks="guess6",
        reveals="reveal6",
        right="'nothing'",
        wrong="2",
        absurd="gl.ones(7)",
        reply="but does not store it",
        answer=("not a leaf Tensor", "retain_grad"),
        rules=("passes through", "retain_grad"),
    ),
    "leaves": Case(
        asks="question1",
        reveals="answer1",
        right="['leaf', 'no leaf', 'leaf', 'no leaf']",
        wrong="['leaf', 'no leaf', 'leaf', 'leaf']",
        absurd="'two'",
        reply="indexing is an operation",
    ),
    "accumulate": Case(
        asks="question2",
        reveals="answer2",
        right="2",
        wrong="3",
        absurd="'a, b'",
        reply="`c` requires no gradient",
    ),
    "update": Case(
        asks="question3",
        reveals="answer3",
        right="'k.sub_(0.1 * k.grad)'",
        wrong="'k = k - 0.1 * k.grad'",
        absurd="2",
        reply="it requires no gradient",
    ),
}
SHOWS = {
    "opening": "step 0 is done\nstep 1 fails: unsupported operand type(s) for *: 'float' and 'NoneType'",
    "walk": "z was made by MulBackward0\n    an input of it leads to AccumulateGrad of tensor(2., requires_grad=True)",
    "side_by_side": "moved = −  SubBackward0",
    "repairs": "tensor(3.0231, requires_grad=True) True\ntensor(3.0231, requires_grad=True) True",
}

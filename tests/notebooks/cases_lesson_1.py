"""Lesson 1, tensors that remember."""

from notebooks.cases import Case

LESSON = "lessons/01_tensors.ipynb"
MINUTES = 20
WORDS = 900
QUESTIONS = {
    "who": Case(
        asks="guess1",
        reveals="reveal1",
        right="['True', 'True', 'False', 'False', 'False', 'False', 'not a tensor', 'True']",
        wrong="['True', 'True', 'False', 'False', 'False', 'False', 'not a tensor', 'False']",
        absurd="'all of them'",
        reply="one input that requires a gradient is enough",
        rules=("one of its inputs", "One input"),
    ),
    "ints": Case(
        asks="guess2",
        reveals="reveal2",
        right="'An error'",
        wrong="'a tensor of integers'",
        absurd="7",
        reply="an integer cannot change by a small amount",
        answer="floating point",
        rules=("1.` for", "floating point", "An integer cannot"),
    ),
    "shared": Case(
        asks="guess3",
        reveals="reveal3",
        right="[9, 2, 3]",
        wrong="'1, 2, 3'",
        absurd="gl.ones(7)",
        reply="that holds for a copy",
        answer="9., 2., 3.",
        rules=("the array's memory",),
    ),
    "rebuilt": Case(
        asks="guess4",
        reveals="reveal4",
        right="'nothing'",
        wrong="6",
        absurd="'nothing at all'",
        reply="does not lead back to",
        rules=("new leaf",),
    ),
    "runs": Case(
        asks="guess5",
        reveals="reveal5",
        right="[5, 15]",
        wrong="[15, 15]",
        absurd="'three times'",
        reply="a new `p` in each run",
        answer="15",
        rules=("adds to", "added up"),
    ),
    "has_grad": Case(
        asks="question1",
        reveals="answer1",
        right="['no', 'yes', 'no', 'yes', 'yes']",
        wrong="['no', 'yes', 'yes', 'yes', 'yes']",
        absurd="'yes'",
        reply="is the result of `detach()`",
    ),
    "raises": Case(
        asks="question2",
        reveals="answer2",
        right="'c.long().requires_grad_()'",
        wrong="'c.exp().tolist()'",
        absurd="[1, 2, 3]",
        reply="a list holds Python numbers",
    ),
    "reruns": Case(
        asks="question3",
        reveals="answer3",
        right="1",
        wrong="4",
        absurd="float('nan')",
        reply="cell M created a new `m`",
    ),
}
SHOWS = {
    "without": "element 0 of tensors does not require grad and does not have a grad_fn",
    "members": "x.grad 2.0, y.grad None",
    "refused": "Use tensor.detach().numpy() instead.\n[0.5 1.5]",
    "torn": "cut by .detach(), line 5",
}

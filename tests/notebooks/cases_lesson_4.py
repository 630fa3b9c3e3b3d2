"""Lesson 4, what the graph keeps."""

from notebooks.cases import Case

LESSON = "lessons/04_what_the_graph_keeps.ipynb"
MINUTES = 25
QUESTIONS = {
    "exp": Case(
        asks="guess1",
        reveals="reveal1",
        right="'its result'",
        wrong="'its argument'",
        absurd="7",
        reply="would have to be computed again",
        answer="its result",
        rules=("A rule stores", "The derivative of $e^x$"),
    ),
    "again": Case(
        asks="guess2",
        reveals="reveal2",
        right="'runs', 'runs', 'raises', 'raises'",
        wrong="['raises'] * 4",
        absurd="gl.ones(7)",
        reply="nothing was saved, so nothing was freed",
        rules=("nothing to free",),
    ),
    "in_place": Case(
        asks="guess3",
        reveals="reveal3",
        right="'raises, runs, raises, runs'",
        wrong="['raises'] * 4",
        absurd="3",
        reply="`y` is a result, and the product saves its factors",
        rules=("no box has kept", "*version*"),
    ),
    "cuts": Case(
        asks="guess4",
        reveals="reveal4",
        right="[27, 9, 9, 9, 9, 'error']",
        wrong="[27] * 6",
        absurd="'constant'",
        reply="a Python number has no history",
        rules=("has the derivative 9", "makes a constant"),
    ),
    "late": Case(
        asks="guess5",
        reveals="reveal5",
        right="'over 5 times'",
        wrong="'about as long'",
        absurd="200",
        reply="the graph grows with every step",
        answer="over 5 times",
        rules=("walks all of it",),
    ),
    "again_too": Case(
        asks="question1",
        reveals="answer1",
        right="['runs', 'runs', 'raises', 'raises']",
        wrong="['runs', 'runs', 'runs', 'raises']",
        absurd="'x'",
        reply="it saves its result, as exp does",
    ),
    "legal": Case(
        asks="question2",
        reveals="answer2",
        right="'y = x / 2; y *= 2'",
        wrong="'y = x.sigmoid(); y *= 2'",
        absurd="'none'",
        reply="the sigmoid saves its result",
        answer="y = x / 2",
    ),
    "branch": Case(
        asks="question3",
        reveals="answer3",
        right="'u.sin().detach() * u.cos()'",
        wrong="'(u.sin() * u.cos()).detach()'",
        absurd="float('nan')",
        reply="that detaches both",
        answer="u.sin().detach()",
    ),
}
SHOWS = {
    "saved": "x * six keeps {'_saved_other': [6.0, 6.0]}\nx + six keeps {}",
    "site": "fix      write `h = h + 1` instead of `h += 1`",
    "quiet": "right:       tensor([0.3679, 1.0000, 2.7183])\nh.data += 1: tensor([1.3679, 2.0000, 3.7183])\n"
    "quiet(start.double()): the gradients are NOT what differences give.",
    "doctor": "No other path leads from `early` to the result",
    "refused": "in step 2: Trying to backward through the graph a second time",
    "memory": "after the forward pass:             2.0 MB are held\nafter backward(retain_graph=True):  2.0 MB are held\n"
    "after backward():                   0.0 MB are held",
}

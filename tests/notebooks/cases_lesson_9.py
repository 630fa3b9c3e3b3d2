"""Lesson 9, the first step."""

from notebooks.cases import Case

LESSON = "lessons/09_first_step.ipynb"
MINUTES = 25
WORDS = 1200
QUESTIONS = {
    "start": Case("guess1", "reveal1", "'3.3'", "'27'", "'yes'", reply="its logarithm", rules=("ln 27", "1/27")),
    "spread": Case("guess2", "reveal2", "'14'", "'200'", "gl.ones(7)", reply="that is the variance", rules=("variances",)),
    "slope": Case("guess3", "reveal3", "'0.06'", "'0.97'", "3", reply="that is the value", rules=("0.0591",)),
    "factor": Case("guess4", "reveal4", "'1 / √30'", "'1 / 30'", "'row 1'", reply="like the square root", rules=(r"\sqrt{30}",)),
    "ten": Case(
        "question1", "answer1", "'it knows nothing yet'", "'it has learned'", "[]", reply="equal probabilities for 10 classes"
    ),
    "wider": Case("question2", "answer2", "2", "4", "'E'", reply="the standard deviation is the square root"),
    "zero": Case("question3", "answer3", "'W1 gets no gradient'", "'nothing'", "0.5", reply="the gradient that goes back to `h`"),
}
SHOWS = {
    "load": "720 names, 4080 examples, 27 letters",
    "network": "the first loss is 28.3, the last 20 are 2.7 on average",
    "output": "the first loss is 3.31, the last 20 are 1.3 on average",
    "hidden": "the first loss is 3.31, the last 20 are 1.3 on average",
    "compare": "all from N(0, 1)   first 28.26   steps 180 to 200: 2.69",
}

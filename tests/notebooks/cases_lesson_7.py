"""Lesson 7, training, and what goes wrong."""

from notebooks.cases import Case

LESSON = "lessons/07_training.ipynb"
MINUTES = 25
WORDS = 1100
QUESTIONS = {
    "rate": Case("guess1", "reveal1", "'0.6'", "'0.45'", "'yes'", reply="lands closer", rules=("crosses",)),
    "forgetful": Case(
        "guess2", "reveal2", "'swings'", "'falls faster'", "gl.ones(7)", reply="it overshoots", rules=("sum of all gradients",)
    ),
    "leaf": Case(
        "guess3",
        "reveal3",
        "['no', 'no', 'yes']",
        "['yes', 'no', 'yes']",
        "7",
        reply="the result of a subtraction is not a leaf",
        rules=("*rebind*",),
    ),
    "pairs": Case("guess4", "reveal4", "1600", "40", "'row 1'", reply="is the intention", answer="1600", rules=("broadcast",)),
    "cut": Case("guess5", "reveal5", "'w2'", "'both'", "3", reply="as if they did", rules=("does not learn",)),
    "depth": Case("guess6", "reveal6", "'below 1/1000000'", "'about 1/12'", "0", reply="are multiplied", rules=("1/4",)),
    "again": Case("guess7", "reveal7", "'goes on'", "'starts anew'", "2", reply="is in another cell", rules=("keeps its names",)),
    "curve": Case("question1", "answer1", "'the rate is too large'", "'no zero_grad'", "1.44", reply="it would oscillate"),
    "norms": Case("question2", "answer2", "'the graph is cut'", "'gradients vanish'", "[]", reply="not None"),
    "which": Case("question3", "answer3", "'B and C'", "'C'", "'E'", reply="from the last run"),
}
SHOWS = {
    "loop": "3.31 at first, 5e-10 at the end",
    "reveal1": "lr=1.0 ends at 4e+25",
    "reveal2": "3.3 at the end",
    "reveal4": "loss 3.25, and the variance of t is 3.25\n`mse_loss` warns: True",
    "reveal5": "loss 3.3 at first, 0.",
    "doctor": "h.detach()",
}

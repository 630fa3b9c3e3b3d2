"""Answers to homework 4 as they are typed in: the solutions with something replaced, the points of the exercise, and a sentence
of its verdict (none where all is right)."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from gradlab import cli

NAME = "hw4_clinic"
FOLDER = cli.notebooks() / "homework" / NAME
DATA = "data"  # the cell of the helpers


class Case(NamedTuple):
    """An answer."""

    name: str
    exercise: int
    text: str  # of the answer's cell
    points: float
    says: str = ""


def source() -> dict[str, Any]:
    return json.loads((FOLDER / f"{NAME}.ipynb").read_text())


def texts() -> dict[str, str]:
    """The cells of the answers, and of the data."""
    return {c["id"]: "".join(c["source"]) for c in source()["cells"] if c["id"].startswith("answer") or c["id"] == DATA}


def parts(number: int) -> tuple[str, str]:
    """A training as it is given, and repaired."""
    before, _, after = texts()[f"answer{number}"].partition("### BEGIN SOLUTION\n")
    return before.strip("\n"), after.replace("### END SOLUTION", "").strip("\n")


SOLUTIONS = {name: "\n".join(line for line in text.split("\n") if "SOLUTION" not in line) for name, text in texts().items()}


def ill(number: int, *pairs: str) -> str:
    """A training as it is given, with something replaced."""
    return _replace_in(parts(number)[0], *pairs)


def well(number: int, *pairs: str) -> str:
    """A training mended, with something replaced."""
    return _replace_in(parts(number)[1], *pairs)


def _replace_in(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


def rename(**words: str) -> str:
    """The diagnosis, with other words for some."""
    right = SOLUTIONS["answer9"]
    return right + "".join(f"\ndiagnosis[{key.removeprefix('of')}] = {word!r}" for key, word in words.items())


BACK, STEP, W = "        loss.backward()\n", "        w = w - lr * w.grad", "            w -= lr * w.grad"
REWRITTEN = """
def train_1(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    weights = gl.zeros(3, dtype=gl.float64, requires_grad=True)
    for step in range(steps):
        p = x @ weights
        loss = ((p - t) ** 2).mean()
        (slope,) = gl.autograd.grad(loss, weights)
        weights.data -= lr * slope
    return loss, weights
"""

# fmt: off
# As they are given: nothing is earned.
HANDED_OUT = [
    Case("1 as it is", 1, ill(1), 0, "each step adds all earlier gradients"),
    Case("2 as it is", 2, ill(2), 0, "raised TypeError"),
    Case("3 as it is", 3, ill(3), 0, "the weights of the first layer never change"),
    Case("4 as it is", 4, ill(4), 0, "every prediction with every target"),
    Case("5 as it is", 5, ill(5), 0, "raised RuntimeError"),
    Case("6 as it is", 6, ill(6), 0, "does not require grad"),
    Case("7 as it is", 7, ill(7), 0, "backward through the graph a second time"),
    Case("8 as it is", 8, ill(8), 0, "does not require grad"),
]
# The patches of the course's design that must not pass.
TABLE = [
    Case("a smaller learning rate", 1, ill(1, "lr = 0.1", "lr = 0.02"), 0,
         "the loss falls, but each step adds all earlier gradients"),
    Case("retain_grad on the new w", 2, ill(2, STEP, STEP + "\n        w.retain_grad()"), 4, "memory grows with every step"),
    Case("only more steps", 3, ill(3, "range(steps)", "range(5 * steps)"), 0, "never change: no gradient reaches them"),
    Case("the warning silenced", 4, ill(4, "    lr = 0.1\n", "    lr = 0.1\n    __import__('warnings').simplefilter('ignore')\n"),
         0,
         "every prediction with every target: 40 by 40"),
    Case("the target repeated", 4, ill(4, "mse_loss(p, t)", "mse_loss(p.expand(40, 40), t.expand(40, 40))"), 0,
         "every prediction with every target: 40 by 40"),
    Case("data for the write in place", 5, ill(5, "h += 1", "h.data += 1"), 0, "no error, but a wrong gradient"),
    Case("the float copy asks for a gradient", 6,
         ill(6, "v = w.double()", "v = w.double().requires_grad_()", "w -= lr * w.grad", "v -= lr * v.grad"), 0,
         "`w` itself never changes"),
    Case("retain_graph", 7, ill(7, "loss.backward()", "loss.backward(retain_graph=True)"), 0,
         "it runs; memory grows with every step: the last step visits 9 times as many nodes as step 6"),
    Case("the loss asks for a gradient", 8, ill(8, BACK, "        loss.requires_grad_()\n" + BACK), 0,
         "`backward` runs, but no weight has a gradient"),
    Case("the loss asks for a gradient, and None is skipped", 8,
         ill(8, BACK, "        loss.requires_grad_()\n" + BACK, "w -= lr * w.grad", "if w.grad is not None: w -= w.grad"), 0,
         "`backward` runs, but no weight has a gradient"),
]
WRONG = [
    Case("cleared between backward and the step", 1, ill(1, BACK, BACK + "        w.grad.zero_()\n"), 0, "no weight changes"),
    Case("cleared in every other step", 1, ill(1, BACK, "        if step % 2 == 0: w.grad = None\n" + BACK), 0, ""),
    Case("right at another rate", 1, well(1, "lr = 0.1", "lr = 0.2"), 0, "the first step is 2 times the right one"),
    Case("right with twice the steps", 1, well(1, "range(steps)", "range(2 * steps)"), 0, "a wrong gradient"),
    Case("right, and half of it rewritten", 1, REWRITTEN, 6, "lines were changed"),
    Case("on other data", 1, well(1, "points(seed)", "points(0)"), 0, "a wrong gradient"),
    Case("under no_grad, still rebound", 2, ill(2, STEP, "        with gl.no_grad():\n            w = w - lr * w.grad"), 0,
         "raised RuntimeError"),
    Case("only a loss comes back", 2, well(2, "return loss, w", "return loss"), 0, "it must return the loss and the weights"),
    Case("the loss as a number", 2, well(2, "return loss, w", "return loss.item(), w"), 0,
         "it must return the loss and the weights"),
    Case("the other layer is cut", 3, ill(3, "h.detach()", "h").replace("gl.tanh(x @ w1 + b1)", "gl.tanh(x @ w1.detach() + b1)"),
         0,
         "a wrong gradient"),
    Case("transposed, so broadcast again", 4, ill(4, "p = x @ w", "p = (x @ w).T"), 8, ""),
    Case("the shift left out", 5, ill(5, "        h += 1\n", ""), 0, "a wrong gradient"),
    Case("whole numbers asked for a gradient", 6, ill(6, "[1, 1, 1]", "[1, 1, 1], requires_grad=True"), 0, "raised RuntimeError"),
    Case("floats that ask for nothing", 6, ill(6, "[1, 1, 1]", "[1.0, 1.0, 1.0]"), 0, "does not require grad"),
    Case("the state starts anew", 7, ill(7, "0.5 * state +", "0.0 * state.detach() +"), 0, ""),
    Case("only the forward in no_grad is gone", 8, ill(8, "        with gl.no_grad():\n            loss", "        loss"), 0,
         "raised RuntimeError"),
    Case("the library's refusal swallowed", 8, ill(8, BACK, "        try: loss.backward()\n        except RuntimeError: pass\n"),
         0,
         "raised TypeError"),
    Case("an endless loop", 1, well(1, BACK, "        while True: pass\n"), 0, "did not end within"),
    Case("nothing finite", 1, well(1, "lr * w.grad", "lr * w.grad / 0"), 0, "no longer finite"),
    Case("no function", 1, "train_1 = 3", 0, "a function was expected"),
    Case("not there", 1, "", 0, "this name is not defined"),
    Case("a fault by another's name", 9, rename(of1="nothing is recorded"), 28, "wrong"),
    Case("a decoy", 9, rename(of4="the loss is the wrong one"), 28, "if its inputs are right"),
    Case("misspelt", 9, rename(of2="leaf"), 28, "`leaf` is not in the list"),
    Case("a number", 9, rename(of2=3), 28, "no diagnosis yet"),
    Case("no dict", 9, "diagnosis = ['bad seed']", 0, "a dict was expected"),
    Case("not begun", 9, "diagnosis = {1: ..., 2: ...}", 0, "no diagnosis yet"),
]
RIGHT_TOO = [
    Case("cleared after the step", 1, ill(1, W, W + "\n            w.grad.zero_()"), 8),
    Case("a comment, blank lines, a docstring", 1,
         well(1, "    lr = 0.1", '    """Mended."""\n\n    # the rate stays\n    lr = 0.1'), 8),
    Case("a new leaf each step", 2, ill(2, STEP, "        w = (w - lr * w.grad).detach().requires_grad_()"), 8),
    Case("written to data", 2, ill(2, STEP, "        w.data = w.data - lr * w.grad"), 8),
    Case("the target made a column", 4, ill(4, "mse_loss(p, t)", "mse_loss(p, t[:, None])"), 8),
    Case("weights of one axis", 4, ill(4, "gl.zeros(3, 1,", "gl.zeros(3,"), 8),
    Case("written by hand", 4, ill(4, "gl.nn.functional.mse_loss(p, t)", "((p - t.unsqueeze(1)) ** 2).mean()"), 8),
    Case("added in the same line", 5, ill(5, "gl.sigmoid(x @ w1 + b1)", "gl.sigmoid(x @ w1 + b1) + 1", "        h += 1\n", ""),
         8),
    Case("a dtype", 6, ill(6, "[1, 1, 1]", "[1, 1, 1], dtype=gl.float64, requires_grad=True"), 8),
    Case("a leaf made of each step's numbers", 6,
         ill(6, "v = w.double()", "v = w.double().requires_grad_()", "w -= lr * w.grad", "w = v - lr * v.grad"), 8),
    Case("cut where it is read", 7, ill(7, "0.5 * state +", "0.5 * state.detach() +"), 8),
    Case("cut in place", 7, ill(7, BACK, BACK + "        state.detach_()\n"), 8),
    Case("written to data, outside", 8,
         ill(8, "        with gl.no_grad():\n            loss", "        loss", "w -= lr", "w.data -= lr"), 8),
    Case("a helper called detach", 3, "def detach(h):\n    return h\n\n\n" + ill(3, "h.detach()", "detach(h)"), 8),
]
# fmt: on
ANSWERS = [*HANDED_OUT, *TABLE, *WRONG, *RIGHT_TOO]

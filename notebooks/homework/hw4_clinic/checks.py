"""The checks of homework 4: eight training loops, each with one fault, and their diagnosis.

The right weights are computed in NumPy, with gradients from central differences, independent of the library's derivatives. They
are compared after one, two and six steps, and the final loss at three seeds. The cost of a step is the number of nodes that its
sweep visits, which does not depend on the load of the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gradlab.homework import Homework, Student
from gradlab.homework.excerpts import abbreviate, first_sentence

homework = Homework("Homework 4, the clinic")

MAX_LINES = 2  # lines
EARLY = (1, 2, 6)  # steps
TRUE = np.array([1.5, -2.0, 0.5])


# ----------------------------------------------------------------------------------------------------------------- data
def points(seed):
    x = np.random.default_rng(seed).normal(size=(40, 3))
    return x, x @ TRUE


def waves(seed):
    x = np.random.default_rng(seed).uniform(-2, 2, (40, 1))
    return x, np.sin(2 * x)


def series(seed):
    x, state, t = np.random.default_rng(seed).normal(size=(60, 3)), 0.0, []
    for row in x:
        state = 0.5 * state + row @ TRUE
        t.append(state)
    return x, np.array(t)


def layers(seed):
    """Return the initial weights of eight hidden units, as in the notebook's cell, in one row."""
    random = np.random.default_rng(seed + 1)
    drawn = [random.normal(size=(1, 8)), random.normal(size=8), random.normal(size=(8, 1)) / 2, np.zeros(1)]
    return np.concatenate([one.reshape(-1) for one in drawn])


def split(w):
    return w[:8].reshape(1, 8), w[8:16], w[16:24].reshape(8, 1), w[24:]


# ---------------------------------------------------------------------------------------------------------------- losses
def linear(data, w, step, state):
    x, t = data
    return ((x @ w - t) ** 2).mean(), None


def spread(data, w, step, state):
    """Return the loss of every prediction with every target."""
    x, t = data
    return (((x @ w)[:, None] - t) ** 2).mean(), None


def network(data, w, step, state):
    (x, t), (w1, b1, w2, b2) = data, split(w)
    return ((np.tanh(x @ w1 + b1) @ w2 + b2 - t) ** 2).mean(), None


def shifted_network(data, w, step, state):
    (x, t), (w1, b1, w2, b2) = data, split(w)
    return (((1 / (1 + np.exp(-(x @ w1 + b1))) + 1) @ w2 + b2 - t) ** 2).mean(), None


def recurrent(data, w, step, state):
    x, t = data
    state = 0.5 * (0.0 if state is None else state) + x[step] @ w
    return (state - t[step]) ** 2, state


@dataclass(frozen=True)
class FaultyTraining:
    """A faulty training loop, and the right one."""

    title: str
    text: str  # the faulty source
    data: Callable
    start: Callable  # the initial weights for a seed, in one row
    loss: Callable  # of the data, the weights, the step and the state of the previous step
    word: str  # the diagnosis
    hint: str  # the hint for a wrong diagnosis
    tells: Callable | None = None
    rate: float = 0.1
    steps: int = 60
    exact: float = 1e-6  # of the largest weight; more where the weights are float32

    @property
    def fixed_lines(self) -> list[str]:
        """The lines of the data, the steps and the rate, which must stay."""
        lines = [line.strip() for line in self.text.strip("\n").splitlines()]
        return [line for line in lines if line.startswith(("def ", "x, t = ", "lr = ", "for step in "))]


# ----------------------------------------------------------------------------------------------------- what went wrong
def flat(run):
    return np.concatenate([one.reshape(-1) for one in run["weights"]]) if run["weights"] else np.empty(0)


def slope(training, data, w, step=0, state=None, h=1e-6):
    """Return the gradient of the loss, by central differences."""
    made = np.empty_like(w)
    for i in range(len(w)):
        up, down = w.copy(), w.copy()
        up[i] += h
        down[i] -= h
        made[i] = (training.loss(data, up, step, state)[0] - training.loss(data, down, step, state)[0]) / (2 * h)
    return made


def reference_training(training, seed, steps):
    """Return the weights after each step, and the last loss."""
    data, w, state, every, loss = training.data(seed), training.start(seed), None, [], 0.0
    every.append(w)
    for step in range(steps):
        loss, after = training.loss(data, w, step, state)
        w, state = w - training.rate * slope(training, data, w, step, state), after
        every.append(w)
    return every, float(loss)


def is_close(got, right, tolerance):
    return got.shape == right.shape and bool(np.abs(got - right).max() <= tolerance * max(1.0, np.abs(right).max()))


def find_accumulation(training, seed, runs, expected):
    """Return a message if each step is the sum of all gradients so far, at any rate."""
    data, start = training.data(seed), expected[0]
    one, two = flat(runs[0]), flat(runs[1])
    first, second = slope(training, data, start), slope(training, data, one)
    rate = float((start - one) @ first / (first @ first))
    if rate and is_close((one - two) / rate, first + second, 1e-4):
        falls = "the loss falls, but " if runs[len(EARLY)]["loss"] < training.loss(data, start, 0, None)[0] else ""
        return f"{falls}each step adds all earlier gradients"
    return ""


def find_frozen_layer(training, seed, runs, expected):
    """Return a message if the first layer does not change."""
    moved = np.abs(flat(runs[len(EARLY)]) - expected[0]) > 0
    if len(moved) == 25 and not moved[:16].any() and moved[16:].any():
        return "the weights of the first layer never change: no gradient reaches them"
    return ""


def find_broadcast_loss(training, seed, runs, expected):
    """Return a message if the loss pairs every prediction with every target."""
    w = expected[0] - training.rate * slope(replace(training, loss=spread), training.data(seed), expected[0])
    if is_close(flat(runs[0]), w, 1e-5):
        return "the loss pairs every prediction with every target: 40 by 40 differences instead of 40"
    return ""


def find_constant_weights(training, seed, runs, expected):
    return "`w` itself never changes" if is_close(flat(runs[len(EARLY)]), expected[0], 1e-12) else ""


def find_missing_gradient(training, seed, runs, expected):
    if any(run["loss_is_leaf"] for run in runs):
        return "`backward` runs, but no weight has a gradient"
    return find_constant_weights(training, seed, runs, expected)


# -------------------------------------------------------------------------------------------------------- faulty loops
def zeros(seed):
    return np.zeros(3)


TRAININGS = {
    1: FaultyTraining(
        "The swing",
        """
def train_1(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    w = gl.zeros(3, dtype=gl.float64, requires_grad=True)
    for step in range(steps):
        loss = ((x @ w - t) ** 2).mean()
        loss.backward()
        with gl.no_grad():
            w -= lr * w.grad
    return loss, w
""",
        points,
        zeros,
        linear,
        "gradients add up",
        "print `w.grad` before and after the second `backward`",
        find_accumulation,
    ),
    2: FaultyTraining(
        "The second step",
        """
def train_2(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    w = gl.zeros(3, dtype=gl.float64, requires_grad=True)
    for step in range(steps):
        w.grad = None
        loss = ((x @ w - t) ** 2).mean()
        loss.backward()
        w = w - lr * w.grad
    return loss, w
""",
        points,
        zeros,
        linear,
        "the leaf is lost",
        "print `w.is_leaf` in each step",
    ),
    3: FaultyTraining(
        "Half asleep",
        """
def train_3(seed=0, steps=200):
    x, t = waves(seed)
    lr = 0.1
    weights = w1, b1, w2, b2 = layers(seed)
    for step in range(steps):
        h = gl.tanh(x @ w1 + b1)
        p = h.detach() @ w2 + b2
        loss = ((p - t) ** 2).mean()
        for w in weights:
            w.grad = None
        loss.backward()
        with gl.no_grad():
            for w in weights:
                if w.grad is not None:
                    w -= lr * w.grad
    return loss, weights
""",
        waves,
        layers,
        network,
        "the graph is cut",
        "print `w.grad` of all four weights",
        find_frozen_layer,
        steps=200,
    ),
    4: FaultyTraining(
        "The plateau",
        """
def train_4(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    w = gl.zeros(3, 1, dtype=gl.float64, requires_grad=True)
    for step in range(steps):
        p = x @ w
        loss = gl.nn.functional.mse_loss(p, t)
        w.grad = None
        loss.backward()
        with gl.no_grad():
            w -= lr * w.grad
    return loss, w
""",
        points,
        zeros,
        linear,
        "shapes are broadcast",
        "print the shapes of p, t and p - t",
        find_broadcast_loss,
    ),
    5: FaultyTraining(
        "Overwritten",
        """
def train_5(seed=0, steps=100):
    x, t = waves(seed)
    lr = 0.1
    weights = w1, b1, w2, b2 = layers(seed)
    for step in range(steps):
        h = gl.sigmoid(x @ w1 + b1)
        h += 1
        loss = ((h @ w2 + b2 - t) ** 2).mean()
        for w in weights:
            w.grad = None
        loss.backward()
        with gl.no_grad():
            for w in weights:
                w -= lr * w.grad
    return loss, weights
""",
        waves,
        layers,
        shifted_network,
        "a saved value is changed",
        "run it under `%%grad`: which two lines does the error name?",
        rate=0.1,
        steps=100,
    ),
    6: FaultyTraining(
        "Round numbers",
        """
def train_6(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    w = gl.tensor([1, 1, 1])
    for step in range(steps):
        v = w.double()
        loss = ((x @ v - t) ** 2).mean()
        w.grad = None
        loss.backward()
        with gl.no_grad():
            w -= lr * w.grad
    return loss, w
""",
        points,
        lambda seed: np.ones(3),
        linear,
        "integers cannot learn",
        "print `w.dtype`",
        find_constant_weights,
        exact=1e-4,
    ),
    7: FaultyTraining(
        "The long memory",
        """
def train_7(seed=0, steps=60):
    x, t = series(seed)
    lr = 0.1
    w = gl.zeros(3, dtype=gl.float64, requires_grad=True)
    state = gl.zeros((), dtype=gl.float64)
    for step in range(steps):
        state = 0.5 * state + x[step] @ w
        loss = (state - t[step]) ** 2
        w.grad = None
        loss.backward()
        with gl.no_grad():
            w -= lr * w.grad
    return loss, w
""",
        series,
        zeros,
        recurrent,
        "a graph is carried over",
        "draw `gl.graph(loss)` after one step and after three",
        rate=0.1,
    ),
    8: FaultyTraining(
        "Nothing recorded",
        """
def train_8(seed=0, steps=60):
    x, t = points(seed)
    lr = 0.1
    w = gl.zeros(3, dtype=gl.float64, requires_grad=True)
    for step in range(steps):
        with gl.no_grad():
            loss = ((x @ w - t) ** 2).mean()
        w.grad = None
        loss.backward()
        w -= lr * w.grad
    return loss, w
""",
        points,
        zeros,
        linear,
        "nothing is recorded",
        "print `loss.grad_fn`",
        find_missing_gradient,
    ),
}
WRONG_DIAGNOSES = {
    "the learning rate is too large": "the repaired training works with the same rate",
    "there are too few steps": "the repaired training needs no more steps",
    "the seed is a bad one": "try another seed: it fails there, too",
    "the loss is the wrong one": "the mean of squares is right, if its inputs are right",
}
DIAGNOSES = sorted([*(training.word for training in TRAININGS.values()), *WRONG_DIAGNOSES])


def check_repair(student: Student, number: int) -> None:
    """Check the repair of one training loop."""
    training, name = TRAININGS[number], f"train_{number}"
    seeds = [int(seed) for seed in student.random.integers(0, 10_000, 3)]
    plan = [[seeds[0], steps] for steps in (*EARLY, training.steps)] + [[seed, training.steps] for seed in seeds[1:]]
    expected, _ = reference_training(training, seeds[0], max(EARLY))
    answer = student.function(name, way="training")(training.text, training.fixed_lines, plan).value
    answer = answer if isinstance(answer, dict) else {"runs": [], "lines": None, "gone": None}
    runs, gone = answer["runs"], answer["gone"] or []
    wrong = explain_first_steps(training, seeds[0], runs, expected)
    what = "the first steps, compared with differences"
    if wrong:
        hint = "read the report of one step in a `%%grad` cell: the function is unchanged." if answer["lines"] == 0 else ""
        student.check(2, what, False, wrong, hint)
        for rest in ("the final loss, at three seeds", "a late step costs as much as an early one"):
            student.check(2, rest, False, "it counts once the first steps are right")
    else:
        student.check(2, what, True, "", words="weights after 1, 2 and 6 steps are right")
        worse = []
        for seed, run in zip(seeds, runs[len(EARLY) :], strict=True):
            least = reference_training(training, seed, training.steps)[1]
            if not run["loss"] <= 1.02 * least + 1e-7:
                worse.append(f"{run['loss']:.2g} at seed {seed}, possible is {least:.2g}")
        student.check(
            2, "the final loss, at three seeds", not worse, "; ".join(worse), words="as low as possible in this number of steps"
        )
        student.check(
            2,
            "a late step costs as much as an early one",
            not graph_growth(runs),
            graph_growth(runs),
            words="the graph does not grow",
        )
    right = not wrong and not worse and not graph_growth(runs)
    line = answer["lines"]
    words = (
        f"do not change data, steps and rate: the line `{gone[0]}` is missing"
        if gone
        else "its source cannot be read: is it a function in a cell of its own?"
        if line is None
        else f"{line} lines were changed"
        if line > MAX_LINES
        else "it counts once the training is right"
    )
    student.check(2, f"in at most {MAX_LINES} lines", right and not gone and line is not None and line <= MAX_LINES, words)


def graph_growth(runs) -> str:
    """Return a message if the graph of late steps is larger than that of early ones, else ""."""
    early, late = runs[2]["nodes"], runs[3]["nodes"]
    if late <= early + 2:
        return ""
    return f"memory grows with every step: the last step visits {late / early:.0f} times as many nodes as step {EARLY[-1]}"


def explain_first_steps(training, seed, runs, expected) -> str:
    """Return what is wrong with the first steps, in words, or ""."""
    if not runs:
        return "the result cannot be read"
    for run in runs:
        if run["raised"]:
            if training.tells is find_missing_gradient and run["loss_is_leaf"]:
                return find_missing_gradient(training, seed, runs, expected)
            where = f" in `{run['line']}`" if run["line"] else ""
            return f"raised {first_sentence(run['raised'])}{where}"
        if run["loss"] is None:
            return "it must return the loss and the weights, as before"
        if flat(run).shape != expected[0].shape:
            return f"expected {expected[0].size} weights, got {flat(run).size}"
    if all(is_close(flat(run), expected[steps], training.exact) for run, steps in zip(runs, EARLY, strict=False)):
        return ""
    if not all(np.isfinite(flat(run)).all() for run in runs):
        return "the weights are no longer finite"
    if graph_growth(runs):
        return f"it runs; {graph_growth(runs)}"
    if training.tells is not None and (said := training.tells(training, seed, runs, expected)):
        return said
    got, right = expected[0] - flat(runs[0]), expected[0] - expected[1]
    if not is_close(got, right, training.exact):
        if not got.any():
            return "no weight changes in the first step"
        worst = int(np.abs(got - right).argmax())
        rate = float(got @ right / (right @ right))
        if is_close(got, rate * right, 1e-4):
            return f"the first step is {rate:.2g} times the right one"
        return (
            f"no error, but a wrong gradient: in the first step, entry {worst} is {got[worst] / training.rate:.3g}; "
            f"differences give {right[worst] / training.rate:.3g}"
        )
    return "the first step is right, a later one is not: what does a step leave for the next one?"


def declare(number: int) -> None:
    @homework.exercise(number, TRAININGS[number].title, points=8)
    def repair(student: Student) -> None:
        check_repair(student, number)


for _number in TRAININGS:
    declare(_number)


@homework.exercise(9, "The diagnosis", points=36)
def check_diagnosis(student: Student) -> None:
    diagnosis = student.value("diagnosis")
    if not isinstance(diagnosis, dict):
        raise student.stop("`diagnosis`", "a dict was expected: {1: …, 2: …}")
    right = 0
    for number, training in TRAININGS.items():
        word = diagnosis.get(number)
        what = f"{number}, {training.title}"
        if word is None or word == "" or not isinstance(word, str):
            student.check(4, what, False, "no diagnosis yet", "write it in quotes, as in the list.")
        elif word not in DIAGNOSES:
            student.check(4, what, False, f"`{abbreviate(word, 60)}` is not in the list", "write it in quotes, as in the list.")
        elif word in WRONG_DIAGNOSES:
            student.check(4, what, False, f"wrong: {WRONG_DIAGNOSES[word]}", f"{training.hint}.")
        else:
            right += student.check(4, what, word == training.word, "wrong", f"{training.hint}.")
    student.check(4, "all eight", right == len(TRAININGS), f"{right} of {len(TRAININGS)}")

"""What is checked of homework 4: eight trainings, each handed out with one fault, and their diagnosis.

What a training should do is computed here in NumPy, its gradients as central differences: no derivative of the library's own is
taken for granted. It is compared after one step, after two and after six; the loss at the end at three seeds. How long a step
takes is counted in nodes of the graph that it walks, which no other program on the machine can change.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gradlab.homework import Homework, Student
from gradlab.homework.excerpts import abbreviate, first_sentence

homework = Homework("Homework 4, the clinic")

FEW = 2  # lines
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
    """Eight hidden units, as the notebook's cell draws them, in one row."""
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
    """Every prediction with every target."""
    x, t = data
    return (((x @ w)[:, None] - t) ** 2).mean(), None


def network(data, w, step, state):
    (x, t), (w1, b1, w2, b2) = data, split(w)
    return ((np.tanh(x @ w1 + b1) @ w2 + b2 - t) ** 2).mean(), None


def shifted(data, w, step, state):
    (x, t), (w1, b1, w2, b2) = data, split(w)
    return (((1 / (1 + np.exp(-(x @ w1 + b1))) + 1) @ w2 + b2 - t) ** 2).mean(), None


def remembered(data, w, step, state):
    x, t = data
    state = 0.5 * (0.0 if state is None else state) + x[step] @ w
    return (state - t[step]) ** 2, state


@dataclass(frozen=True)
class Patient:
    """A training, and what it should have been."""

    title: str
    text: str  # as it is handed out
    data: Callable
    start: Callable  # the weights at first, in one row, of the seed
    loss: Callable  # of the data, the weights, the step and what the step before left
    word: str  # what is wrong with it
    reread: str  # where a wrong diagnosis sends
    tells: Callable | None = None
    rate: float = 0.1
    steps: int = 60
    exact: float = 1e-6  # of the largest weight; more where the weights are float32

    @property
    def kept(self) -> list[str]:
        """Lines of the data, the steps and the rate, as Python would write them."""
        lines = [line.strip() for line in self.text.strip("\n").splitlines()]
        return [line for line in lines if line.startswith(("def ", "x, t = ", "lr = ", "for step in "))]


# ----------------------------------------------------------------------------------------------------- what went wrong
def flat(run):
    return np.concatenate([one.reshape(-1) for one in run["weights"]]) if run["weights"] else np.empty(0)


def slope(patient, data, w, step=0, state=None, h=1e-6):
    """The gradient of the loss, by central differences."""
    made = np.empty_like(w)
    for i in range(len(w)):
        up, down = w.copy(), w.copy()
        up[i] += h
        down[i] -= h
        made[i] = (patient.loss(data, up, step, state)[0] - patient.loss(data, down, step, state)[0]) / (2 * h)
    return made


def trained(patient, seed, steps):
    """The weights after each of the steps, and the loss in the last one."""
    data, w, state, every, loss = patient.data(seed), patient.start(seed), None, [], 0.0
    every.append(w)
    for step in range(steps):
        loss, after = patient.loss(data, w, step, state)
        w, state = w - patient.rate * slope(patient, data, w, step, state), after
        every.append(w)
    return every, float(loss)


def alike(got, right, tolerance):
    return got.shape == right.shape and bool(np.abs(got - right).max() <= tolerance * max(1.0, np.abs(right).max()))


def added_up(patient, seed, runs, expected):
    """Whether each step is the sum of the gradients before it, at whatever rate."""
    data, start = patient.data(seed), expected[0]
    one, two = flat(runs[0]), flat(runs[1])
    first, second = slope(patient, data, start), slope(patient, data, one)
    rate = float((start - one) @ first / (first @ first))
    if rate and alike((one - two) / rate, first + second, 1e-4):
        falls = "the loss falls, but " if runs[len(EARLY)]["loss"] < patient.loss(data, start, 0, None)[0] else ""
        return f"{falls}each step is the sum of all before"
    return ""


def rests(patient, seed, runs, expected):
    """Which weights do not move."""
    moved = np.abs(flat(runs[len(EARLY)]) - expected[0]) > 0
    if len(moved) == 25 and not moved[:16].any() and moved[16:].any():
        return "the weights of the first layer do not move, however long it trains: no gradient reaches them"
    return ""


def every_with_every(patient, seed, runs, expected):
    """Whether the loss takes every prediction with every target."""
    w = expected[0] - patient.rate * slope(replace(patient, loss=spread), patient.data(seed), expected[0])
    if alike(flat(runs[0]), w, 1e-5):
        return "the loss takes every prediction with every target: 40 by 40 differences, where there should be 40"
    return ""


def never_moves(patient, seed, runs, expected):
    return "`w` itself never moves" if alike(flat(runs[len(EARLY)]), expected[0], 1e-12) else ""


def untold(patient, seed, runs, expected):
    if any(run["untold"] for run in runs):
        return "`backward` runs, and no weight has a gradient"
    return never_moves(patient, seed, runs, expected)


# --------------------------------------------------------------------------------------------------------------- patients
def zeros(seed):
    return np.zeros(3)


PATIENTS = {
    1: Patient(
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
        added_up,
    ),
    2: Patient(
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
    3: Patient(
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
        rests,
        steps=200,
    ),
    4: Patient(
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
        every_with_every,
    ),
    5: Patient(
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
        shifted,
        "a saved value is changed",
        "run it under `%%grad`: which two lines does the error name?",
        rate=0.1,
        steps=100,
    ),
    6: Patient(
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
        never_moves,
        exact=1e-4,
    ),
    7: Patient(
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
        remembered,
        "a graph is carried over",
        "draw `gl.graph(loss)` after one step and after three",
        rate=0.1,
    ),
    8: Patient(
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
        untold,
    ),
}
DECOYS = {
    "the learning rate is too large": "the same rate trains the training that you have mended",
    "there are too few steps": "as many steps are enough for the training that you have mended",
    "the seed is a bad one": "try another seed: it goes wrong there, too",
    "the loss is the wrong one": "the mean of squares is what it should be, once it gets what it should get",
}
WORDS = sorted([*(patient.word for patient in PATIENTS.values()), *DECOYS])


def examined(student: Student, number: int) -> None:
    """The repair of one training."""
    patient, name = PATIENTS[number], f"train_{number}"
    seeds = [int(seed) for seed in student.random.integers(0, 10_000, 3)]
    plan = [[seeds[0], steps] for steps in (*EARLY, patient.steps)] + [[seed, patient.steps] for seed in seeds[1:]]
    expected, _ = trained(patient, seeds[0], max(EARLY))
    answer = student.function(name, way="training")(patient.text, patient.kept, plan).value
    answer = answer if isinstance(answer, dict) else {"runs": [], "lines": None, "gone": None}
    runs, gone = answer["runs"], answer["gone"] or []
    wrong = unlike(patient, seeds[0], runs, expected)
    what = "the first steps, against differences"
    if wrong:
        hint = "the report of one step in a `%%grad` cell: the function is as it was handed out." if answer["lines"] == 0 else ""
        student.check(2, what, False, wrong, hint)
        for rest in ("the loss at the end, at three seeds", "a late step costs what an early one does"):
            student.check(2, rest, False, "it counts once the first steps are right")
    else:
        student.check(2, what, True, "", words="weights after 1, 2 and 6 steps are right")
        told = []
        for seed, run in zip(seeds, runs[len(EARLY) :], strict=True):
            least = trained(patient, seed, patient.steps)[1]
            if not run["loss"] <= 1.02 * least + 1e-7:
                told.append(f"{run['loss']:.2g} at seed {seed}, {least:.2g} can be had")
        student.check(
            2, "the loss at the end, at three seeds", not told, "; ".join(told), words="as low as it gets in so many steps"
        )
        student.check(
            2, "a late step costs what an early one does", not grown(runs), grown(runs), words="the graph does not grow"
        )
    right = not wrong and not told and not grown(runs)
    line = answer["lines"]
    words = (
        f"data, steps and rate stay as they are: the line `{gone[0]}` is gone"
        if gone
        else "its text cannot be read: is it a function in a cell of its own?"
        if line is None
        else f"{line} lines are not as they were"
        if line > FEW
        else "it counts once the training is right"
    )
    student.check(2, f"in at most {FEW} lines", right and not gone and line is not None and line <= FEW, words)


def grown(runs) -> str:
    """Whether late steps walk more than early ones, in words."""
    early, late = runs[2]["nodes"], runs[3]["nodes"]
    if late <= early + 2:
        return ""
    return f"memory grows with every step: the last step walks {late / early:.0f} times the nodes of step {EARLY[-1]}"


def unlike(patient, seed, runs, expected) -> str:
    """What is wrong with the first steps, in words; nothing if they are right."""
    if not runs:
        return "what came back cannot be read"
    for run in runs:
        if run["raised"]:
            if patient.tells is untold and run["untold"]:
                return untold(patient, seed, runs, expected)
            where = f" in `{run['line']}`" if run["line"] else ""
            return f"raised {first_sentence(run['raised'])}{where}"
        if run["loss"] is None:
            return "it should return the loss and the weights, as it did"
        if flat(run).shape != expected[0].shape:
            return f"{flat(run).size} weights came back; there are {expected[0].size}"
    if all(alike(flat(run), expected[steps], patient.exact) for run, steps in zip(runs, EARLY, strict=False)):
        return ""
    if not all(np.isfinite(flat(run)).all() for run in runs):
        return "the weights are no longer finite"
    if grown(runs):
        return f"it runs; {grown(runs)}"
    if patient.tells is not None and (said := patient.tells(patient, seed, runs, expected)):
        return said
    got, right = expected[0] - flat(runs[0]), expected[0] - expected[1]
    if not alike(got, right, patient.exact):
        if not got.any():
            return "no weight moves in the first step"
        worst = int(np.abs(got - right).argmax())
        rate = float(got @ right / (right @ right))
        if alike(got, rate * right, 1e-4):
            return f"the first step is {rate:.2g} times as long as it should be"
        return (
            f"no error, and the wrong gradient: in the first step its entry {worst} is {got[worst] / patient.rate:.3g}; "
            f"differences say {right[worst] / patient.rate:.3g}"
        )
    return "the first step is right, a later one is not: what does one step leave to the next?"


def declare(number: int) -> None:
    @homework.exercise(number, PATIENTS[number].title, points=8)
    def repair(student: Student) -> None:
        examined(student, number)


for _number in PATIENTS:
    declare(_number)


@homework.exercise(9, "The diagnosis", points=36)
def diagnosed(student: Student) -> None:
    diagnosis = student.value("diagnosis")
    if not isinstance(diagnosis, dict):
        raise student.stop("`diagnosis`", "a dict was expected: {1: …, 2: …}")
    right = 0
    for number, patient in PATIENTS.items():
        word = diagnosis.get(number)
        what = f"{number}, {patient.title}"
        if word is None or word == "" or not isinstance(word, str):
            student.check(4, what, False, "no diagnosis yet", "put it in quotes, as it stands in the list.")
        elif word not in WORDS:
            student.check(
                4, what, False, f"`{abbreviate(word, 60)}` is not in the list", "put it in quotes, as it stands in the list."
            )
        elif word in DECOYS:
            student.check(4, what, False, f"not that: {DECOYS[word]}", f"{patient.reread}.")
        else:
            right += student.check(4, what, word == patient.word, "not that", f"{patient.reread}.")
    student.check(4, "all eight", right == len(PATIENTS), f"{right} of {len(PATIENTS)}")

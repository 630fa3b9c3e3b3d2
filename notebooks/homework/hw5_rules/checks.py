"""What is checked of homework 5: rules of one's own, and products with the Hessian.

Each rule is compared with formulas in NumPy and with central differences of them; the Hessians with differences of gradients
that are written out. What is done with f is counted: gradients, and products of second order.
"""

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, Twice, central_differences
from gradlab.homework.student import Stopped
from gradlab.homework.verdicts import as_array, compared

homework = Homework("Homework 5, rules and curvature")

RELATIVE = 1e-9
MOST = 200  # products, for 300 inputs
NO_HISTORY = "the gradient has no history"
WHOLE = (
    "gradlab.jacobian",
    "gradlab.hessian",
    "gradlab.func.jacrev",
    "gradlab.func.jacfwd",
    "gradlab.func.hessian",
    "gradlab.autograd.functional",
    "gradlab.autograd.functional_helpers.jacobian_rows",
    "gradlab.autograd.functional_helpers.jacobian_columns",
)
EIGEN = ("gradlab.linalg.eigh", "gradlab.linalg.eigvalsh", "gradlab.linalg.eig", "gradlab.linalg.eigvals")


# ------------------------------------------------------------------------------------------------------------ rules
class Rule:
    """A class of the student's, used in the ways of `gradlab.homework.ways.rule`. `more`: arguments of forward behind x."""

    def __init__(self, student: Student, name: str, forbidden: tuple[str, ...]) -> None:
        self.student, self.name, self.applied = student, name, student.function(name, forbidden, way="rule")

    def __call__(self, what: str, *tensors, more=()):
        """What came back, as a dict."""
        try:
            made = self.applied(what, list(more), *tensors).value
        except Stopped:
            self._explained(len(more) + 1)
            raise
        made = made if isinstance(made, dict) else {}
        if "no rule" in made:
            raise self.student.stop(
                f"`{self.name}`",
                f"a class of gl.autograd.Function was expected; it is {made['no rule']}",
                f"`class {self.name}(gl.autograd.Function):`, with forward and backward.",
            )
        return made

    def _explained(self, taken: int) -> None:
        """Say what an error of the library means here."""
        said = self.student.verdict.findings[-1].words
        if "incorrect number of gradients" in said:
            given = said.partition(", got ")[2].partition(")")[0]
            self.student.check(
                0,
                "backward",
                False,
                f"returned {given}, forward took {taken}",
                "one for each argument of forward behind ctx: None for a plain number.",
            )
        elif "once_differentiable" in said:
            self.student.check(0, "backward", False, NO_HISTORY, AGAIN)


AGAIN = (
    "`backward` is differentiated like any code: build it from `ctx.saved_tensors`, which must be inputs or outputs of "
    "`forward`, with operations of gl."
)


def normal(student: Student, *shape: int):
    return gl.tensor(student.random.normal(size=shape))


def away_from(student: Student, n: int, near: float, far: float) -> np.ndarray:
    """n numbers of either sign, by size between these."""
    return student.random.uniform(near, far, n) * student.random.choice([-1.0, 1.0], n)


def numbers(student: Student, points: float, what: str, got, expected: np.ndarray, tolerance: float, hint: str = "") -> bool:
    """Note whether these are the numbers. (What `student.close` says of mistakes is about Jacobians.)"""
    good, words = compared(got, expected, tolerance)
    return student.check(points, what, good, words, hint, words)


def at_each(student: Student, points: float, what: str, got, expected: np.ndarray, x: np.ndarray, hint: str = "") -> bool:
    """Note whether each entry is right to `RELATIVE` of itself, or say at which x it is not."""
    array = as_array(got)
    if array is None or array.shape != expected.shape:
        return numbers(student, points, what, got, expected, RELATIVE, hint)
    off = ~(np.abs(array - expected) <= RELATIVE * np.abs(expected) + 1e-300)
    if not off.any():
        return student.check(points, what, True, "")
    worst = off & ~np.isfinite(array) if (off & ~np.isfinite(array)).any() else off
    at = int(np.flatnonzero(worst.reshape(-1))[0])
    value, wanted, where = array.reshape(-1)[at], expected.reshape(-1)[at], x.reshape(-1)[at]
    words = f"{value:g} at x = {where:g}"
    if np.isfinite(value):
        words = f"at x = {where:g} it is off by {abs(value - wanted) / abs(wanted):.1g} of itself" if wanted else words
    return student.check(points, what, False, words, hint)


def pending(student: Student, points: float, what: str, after: str = "the numbers are") -> None:
    student.check(points, what, False, f"it counts once {after} right")


def second(student: Student, rule: Rule, points: float, what: str, expected: np.ndarray, *tensors, more=()) -> None:
    """Differentiate twice, and compare."""
    made = rule("twice", *tensors, more=more)
    if made.get("cut"):
        student.check(points, what, False, NO_HISTORY, AGAIN)
    else:
        numbers(student, points, what, made.get("second"), expected, 1e-6, AGAIN)


def in_flight(student: Student, points: float, right: bool, got, expected, but_that_of_the_second) -> None:
    """Two calls before the first sweep."""
    what = "two calls in flight"
    if not right:
        pending(student, points, what)
        return
    array = as_array(got)
    same = array is not None and array.shape == expected.shape
    good = same and np.allclose(array, expected, rtol=0, atol=1e-7)
    words = "the gradient of the first call is wrong once a second one was made"
    if same and np.allclose(array, but_that_of_the_second, rtol=0, atol=1e-7):
        words = "the second one's x is used for the first one's gradient: it works once"
    student.check(points, what, good, words, "where does a call keep what is its own? `ctx.save_for_backward`, or `ctx`.")


# ------------------------------------------------------------------------------------------------------------ 1
def logistic(x: np.ndarray) -> np.ndarray:
    """The derivative of log(1 + exp(x))."""
    small = np.exp(-np.abs(x))
    return np.where(x > 0, 1, small) / (1 + small)


@homework.exercise(1, "softplus", points=20)
def softplus(student: Student) -> None:
    rule = Rule(student, "Softplus", ("gradlab.nn.functional.softplus", "gradlab.nn.functional.logsigmoid", "gradlab.logaddexp"))
    n = int(student.random.integers(4, 8))
    x, v, u, w = (gl.tensor(away_from(student, n, 0.2, 3)), *(normal(student, n) for _ in range(3)))
    tails = gl.tensor(np.array([-1000.0, -30.0, 30.0, 1000.0]))
    at, far, by = np.asarray(x), np.asarray(tails), np.asarray(v)
    slope = np.diag(central_differences(lambda t: np.logaddexp(0, t.array), x))

    right = numbers(student, 3, f"the value at {n} points", rule("value", x).get("value"), np.logaddexp(0, at), 1e-9)
    at_each(student, 3, "the value at ±1000 and ±30", rule("value", tails).get("value"), np.logaddexp(0, far), far, SMALLER)
    made = rule("once", x, v)
    if made.get("cut"):
        raise student.stop("`Softplus`", "what `apply` returns does not require a gradient", "is it marked non-differentiable?")
    right = numbers(student, 3, "the gradient there", made.get("gradient"), by * slope, 1e-7, GIVEN) and right
    made = rule("once", tails, gl.ones_like(tails))
    at_each(student, 2, "the gradient at ±1000 and ±30", made.get("gradient"), logistic(far), far, SLOPE)
    if right:
        made = rule("once", x.float(), v.float())
        kept = made.get("dtypes") == ["gradlab.float32"] * 2
        student.check(1, "an x in float32", kept, "the value or the gradient is not float32 any more", "what is made in it?")
    else:
        pending(student, 1, "an x in float32")
    made = rule("in flight", x, v, w)
    in_flight(student, 2, right, made.get("gradient"), by * logistic(at), by * logistic(np.asarray(w)))
    overwritten(student, rule("overwritten", x, v), 2, right, by * logistic(at))
    x2, v2, u2 = gl.cat([x, tails]), gl.cat([v, tails * 0 + 1]), gl.cat([u, tails * 0 + 1])
    s = logistic(np.asarray(x2))
    second(student, rule, 4, "the second derivative", np.asarray(v2) * np.asarray(u2) * s * (1 - s), x2, v2, u2)


GIVEN = "`g` holds the derivatives by the outputs: each is handed on times the slope."
SMALLER = "exp of 710 is too large for a float64, and 1 + exp(-40) is 1: `log1p` of the smaller one of exp(x) and exp(-x)."
SLOPE = "of exp(x) and exp(-x), one is at most 1: write the slope with that one, or with a function that does."


def overwritten(student: Student, made: dict, points: float, right: bool, expected: np.ndarray) -> None:
    """The tensor that came in, written to before the sweep."""
    what = "x written to before the sweep"
    if not right:
        pending(student, points, what)
        return
    array = as_array(made.get("gradient"))
    student.check(
        points,
        what,
        made.get("refused") or (array is not None and array.shape == expected.shape and np.allclose(array, expected)),
        "no error, and a wrong gradient: `backward` saw the x that came later",
        "`ctx.save_for_backward(x)` notices; an attribute does not.",
        "refused" if made.get("refused") else "right all the same",
    )


# ------------------------------------------------------------------------------------------------------------ 2
def lengths(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(1, keepdims=True))


def along(x: np.ndarray, v: np.ndarray, length: float) -> np.ndarray:
    """vᵀJ of rows brought to a length."""
    unit = x / lengths(x)
    return length * (v - unit * (unit * v).sum(1, keepdims=True)) / lengths(x)


@homework.exercise(2, "Rows to one length", points=25)
def rows_to_length(student: Student) -> None:
    rule = Rule(student, "Normalise", ("gradlab.nn.functional.normalize",))
    m, n = (int(one) for one in student.random.choice(np.arange(2, 6), 2, replace=False))
    length = float(student.random.choice([0.5, 1.5, 2.5, 3.5]))
    x, v, u, w = (normal(student, m, n) for _ in range(4))
    at, by = np.asarray(x), np.asarray(v)

    def differences(array: np.ndarray, v: np.ndarray) -> np.ndarray:
        J = central_differences(lambda t: length * t.array / lengths(t.array), gl.tensor(array))
        return (v.reshape(-1) @ J).reshape(array.shape)

    got = rule("value", x, more=(length,)).get("value")
    right = numbers(student, 4, f"the value, {m} by {n}", got, length * at / lengths(at), 1e-9, ROWS)
    made = rule("once", x, v, more=(length,))
    expected, got = differences(at, by), made.get("gradient")
    good = numbers(student, 7, "the gradient", got, expected, 1e-6, looks_like(got, at, by, length))
    array = as_array(got)
    dots = (array * at).sum(1) if array is not None and array.shape == at.shape else np.full(m, np.nan)
    what = "J x = 0: a longer row gives the same"
    if as_array(got) is not None and np.abs(array).max() == 0:
        pending(student, 4, what, "the gradient is")
    else:
        worst = f"moving row {int(np.abs(dots).argmax())} along itself changes your output by {np.abs(dots).max():.2g}"
        student.check(4, what, bool(np.abs(dots).max() < 1e-8), worst, STAYS, "0 for each row")
    right = right and good
    one, its = normal(student, 1, n + 1), normal(student, 1, n + 1)
    made = rule("once", one, its, more=(length,))
    numbers(student, 3, "a batch of one row", made.get("gradient"), differences(np.asarray(one), np.asarray(its)), 1e-6, ROWS)
    made = rule("in flight", x, v, w, more=(length,))
    in_flight(student, 3, right, made.get("gradient"), along(at, by, length), along(np.asarray(w), by, 2 * length))
    towards = lambda t: along(t.array, by, length) * np.asarray(u)  # noqa: E731
    bent = central_differences(towards, x).sum(0).reshape(m, n)
    second(student, rule, 4, "the second derivative", bent, x, v, u, more=(length,))


ROWS = "each row has a length of its own: a sum along which axis?"
STAYS = "an output whose length is fixed cannot answer to a change of the row's length."


def looks_like(got, x: np.ndarray, v: np.ndarray, length: float) -> str:
    """What a wrong gradient gives away."""
    array, unit = as_array(got), x / lengths(x)
    if array is None or array.shape != x.shape:
        return ""
    known = (
        (length * v / lengths(x), "that is the gradient for lengths that do not depend on x. They do."),
        (along(x, v, 1), "everything is right but for the factor `length`."),
        (along(x, v, length) * lengths(x), "everything is right but for the length of the row of x."),
        (length * (v - x * (x * v).sum(1, keepdims=True)) / lengths(x), "which of the two is of length one: the row, or x?"),
        (length * (v - unit * (unit * v).sum()) / lengths(x), "each row has a sum of its own: along which axis?"),
        (v, "that is g itself: `backward` hands it on unchanged."),
    )
    return next((words for one, words in known if np.allclose(array, one, rtol=0, atol=1e-8)), "")


# ------------------------------------------------------------------------------------------------------------ 3
@homework.exercise(3, "A useful lie", points=15)
def sign(student: Student) -> None:
    rule = Rule(student, "Sign", ("gradlab.nn.functional.hardtanh",))
    inside, outside = away_from(student, 4, 0.1, 0.9), away_from(student, 3, 1.1, 3)
    x, edge = gl.tensor(student.random.permutation(np.concatenate([inside, outside]))), gl.tensor(np.array([-1.0, 1.0]))
    at, v, ones = np.asarray(x), normal(student, 7), gl.ones_like(edge)
    right = numbers(student, 2, "the value", rule("value", x).get("value"), np.sign(at), RELATIVE)
    made = rule("once", x, v)
    expected = np.asarray(v) * (np.abs(at) <= 1)
    got = as_array(made.get("gradient"))
    hint = ""
    if got is not None and got.shape == expected.shape:
        everywhere, nowhere = np.array_equal(got, np.asarray(v)), not got.any()
        hint = "g goes through everywhere; beyond 1 in size it should not." if everywhere else hint
        hint = "that is the true derivative: nothing that comes before could learn." if nowhere else hint
        hint = "g itself goes through, not 1." if np.array_equal(got, (np.abs(at) <= 1) * 1.0) else hint
    right = numbers(student, 4, "the gradient", made.get("gradient"), expected, RELATIVE, hint) and right
    made = rule("once", edge, ones)
    good = right and np.array_equal(as_array(made.get("gradient")), [1, 1])
    student.check(1, "at x = 1 and -1", good, "the task says |x| ≤ 1" if right else "it counts once the numbers are right")

    fails, explain = student.value("fails"), student.value("explain")
    fails, explain = (one if isinstance(one, dict) else {} for one in (fails, explain))
    truth = {"Sign": True, "Softplus in float32": True}
    if right:
        truth["Sign"] = not rule("gradcheck", x).get("passes")
    for key, hint in RUN.items():
        said = fails.get(key)
        written = "True or False was expected" if not isinstance(said, bool) else "run it, and read what comes"
        student.check(1, f"does gradcheck fail: {key}", isinstance(said, bool) and said == truth[key], written, hint)
    step = 1e-6
    quotient = (np.sign(0.5 + step) - np.sign(0.5 - step)) / (2 * step)
    rounding = np.finfo(np.float32).eps / (2 * step)
    for key, low, high, hint in (
        ("quotient", quotient, quotient, "how much does sign change from 0.499999 to 0.500001?"),
        ("backward", 1.0, 1.0, "what does your `backward` hand on at 0.5, when g is 1?"),
        ("float32", rounding / 10, rounding * 10, "how far apart are two float32 numbers near 1? That, divided by 2e-6."),
    ):
        said = explain.get(key)
        number = isinstance(said, (int, float)) and not isinstance(said, bool)
        words = "this is not it" if number else "a number was expected"
        student.check(2, f"explain: {key}", number and low <= said <= high, words, hint)


RUN = {
    "Sign": "`%gradcheck Sign.apply(x)`, with an x in float64 such as 0.5.",
    "Softplus in float32": "`%gradcheck Softplus.apply(x)`, with an x that is not double: what it says names the cause.",
}


# ------------------------------------------------------------------------------------------------------------ 4
def curved(student: Student, n: int):
    """A scalar function of R^n without symmetry, and its gradient, written out."""
    weight, scale = student.random.uniform(-1, 1, (n + 2, n)), student.random.uniform(0.5, 1.5, n + 2)
    mixed = student.random.uniform(0.2, 0.8, n)
    W, c, m = gl.tensor(weight), gl.tensor(scale), gl.tensor(mixed)

    def f(x):
        x = x.reshape(-1)
        return c @ gl.sin(W @ x) + (m @ x) ** 3 / 3

    def gradient(t):
        x = np.asarray(t.array).reshape(-1)
        return weight.T @ (scale * np.cos(weight @ x)) + (mixed @ x) ** 2 * mixed

    return Twice(f), gradient


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def done(uses) -> str:
    """What was done with f, in words."""
    return f"{counted(sum(uses.pulls), 'gradient')} and {counted(sum(uses.bends), 'product')} of second order"


def quotients(uses) -> str:
    """Why numbers do not come from sweeps at x, if they do not."""
    if not uses.elsewhere:
        return ""
    if uses.pulls or uses.pushes:
        return f"{sum(uses.bends)} sweeps of second order: these are differences of gradients"
    return "0 sweeps: these are difference quotients"


@homework.exercise(4, "H u without H", points=20)
def product(student: Student) -> None:
    hvp = student.function("hvp", forbidden=WHOLE)

    def called(*args):
        try:
            return hvp(*args)
        except Stopped:
            if "does not require grad" in student.verdict.findings[-1].words:
                student.check(0, "hvp", False, NO_HISTORY, "which word asks `grad` to record its own work?")
            raise

    n = int(student.random.integers(5, 8))
    (f, gradient), x, u = curved(student, n), normal(student, n), normal(student, n)
    H = central_differences(gradient, x)
    answer = called(f, x, u)
    uses, slope = answer.uses, gradient(x)
    got, U = as_array(answer.value), np.asarray(u)
    hint = ""
    if got is not None and got.shape == (n,):
        for one, words in (
            (slope, "that is the gradient of f."),
            (H.sum(0), "that is H times ones: where does u come in?"),
            (slope + H @ U, f"that is H u plus the gradient of f: {ADDED}"),
            (slope * U, "that is the gradient times u, entry by entry."),
            (np.diag(H) * U, "that is the diagonal of H times u."),
        ):
            hint = words if np.allclose(got, one, rtol=0, atol=1e-6) else hint
    but = quotients(uses)
    right = student.close(6, f"{n} inputs", answer, H @ U, 1e-5, hint or "H u is the gradient of gᵀu, g the gradient of f.", but)
    few = sum(uses.pulls) + sum(uses.bends) <= 2 and sum(uses.pushes) <= 1
    if not right:
        pending(student, 7, "at most 2 sweeps")
    else:
        cost = counted(uses.sweeps, "sweep")
        wrong = but or f"{cost}, 2 are enough ({done(uses)})"
        hint = "differentiate a number, gᵀu, not each entry of g."
        student.check(7, "at most 2 sweeps", few and not but, wrong, hint, done(uses))
    (f, gradient), x, u = curved(student, 6), normal(student, 2, 3), normal(student, 2, 3)
    expected = (central_differences(gradient, x) @ np.asarray(u).reshape(-1)).reshape(2, 3)
    other = called(f, x, u)
    but = but or quotients(other.uses)
    student.close(3, "an x of shape (2, 3)", other, expected, 1e-5, "what comes back has the shape of x.", quotients(other.uses))
    (f, gradient), x, u = curved(student, n), normal(student, n).requires_grad_(), normal(student, n)
    x.grad = gl.ones_like(x)
    expected = central_differences(gradient, x) @ np.asarray(u)
    first, again = called(f, x, u), called(f, x, u)
    what = "x and u are left alone, and a second call says the same"
    changed = answer.changed or other.changed or first.changed or again.changed
    if not right or but:
        pending(student, 4, what, "the numbers come from sweeps and are" if right else "the numbers are")
    elif changed:
        student.check(4, what, False, f"a tensor that came in was changed: {changed}", "work on a copy, without history.")
    elif student.close(0, "an x that requires a gradient and has one", first, expected, 1e-5):
        same = np.allclose(as_array(again.value), expected, rtol=0, atol=1e-5)
        student.check(4, what, same, "the second call gives other numbers", "what do you keep between calls?")


ADDED = "`.grad` adds up, and `create_graph` fills it as well."


# ------------------------------------------------------------------------------------------------------------ 5
def with_spectrum(student: Student, values: np.ndarray, top: np.ndarray | None = None):
    """A function and a point where its Hessian has these eigenvalues; `top` is the eigenvector of the first."""
    n = len(values)
    frame = student.random.normal(size=(n, n))
    if top is not None:
        frame[:, 0] = top
    Q = np.linalg.qr(frame)[0]
    x, wave = student.random.normal(size=n), student.random.uniform(0.5, 1, n)
    A = gl.tensor(Q @ np.diag(values) @ Q.T + np.diag(wave * np.sin(x)))
    w = gl.tensor(wave)

    def f(x):
        x = x.reshape(-1)
        return x @ (A @ x) / 2 + w @ gl.sin(x)

    return Twice(f), gl.tensor(x)


@homework.exercise(5, "The steepest curvature", points=20)
def steepest(student: Student) -> None:
    largest = student.function("largest_eigenvalue", forbidden=WHOLE + EIGEN, given={"hvp": "hvp"})
    n = int(student.random.integers(5, 8))
    size = student.random.uniform(3, 5)
    small = lambda n: student.random.uniform(-0.6, 0.6, n - 1) * size  # noqa: E731
    usual, apart = np.array([size, *small(n)]), np.array([size, 0.5 * size, *(small(n - 1) / 3)])
    negative = np.array([-size, 0.6 * size, *small(n - 1)])
    against = student.random.normal(size=n)
    against -= against.mean()
    for what, points, values, top in (
        (f"{n} inputs", 5, usual, None),
        ("an eigenvalue that is negative", 5, negative, None),
        ("an eigenvector at right angles to (1, 1, …)", 3, apart, against),
    ):
        f, x = with_spectrum(student, values, top)
        answer = largest(f, x)
        found(student, points, what, answer, values)
    f, x = with_spectrum(student, np.array([size, *small(300)]))
    answer = largest(f, x)
    good = found(student, 2, "300 inputs", answer, np.array([size]))
    products = sum(answer.uses.bends)
    what, but = f"300 inputs: at most {MOST} products", quotients(answer.uses)
    if not good:
        pending(student, 5, what)
    else:
        student.check(5, what, products <= MOST and not but, but or f"{products} products", STOP, f"{products}")
    if answer.changed:
        student.check(0, "x is left alone", False, f"x itself was changed: {answer.changed} (no points lost here)")


STOP = "stop when uᵀHu no longer changes; and H itself, column by column, is 300 products."


def found(student: Student, points: float, what: str, answer, values: np.ndarray) -> bool:
    """Note whether it is the first of the eigenvalues, as a number."""
    got, expected = as_array(answer.value), values[0]
    number = got.reshape(()) if got is not None and got.size == 1 else got
    hint = ""
    if number is not None and not number.shape:
        if abs(number + expected) < 1e-5 * abs(expected):
            student.check(points, what, False, "right size, wrong sign: uᵀHu", "a length has no sign; uᵀHu has one.")
            return False
        if np.abs(values[1:] - number).min(initial=np.inf) < 0.05 * abs(expected):
            hint = "that is another eigenvalue: largest is meant by size, and the start must have a share of its eigenvector."
        else:
            settled = "go on until uᵀHu no longer changes."
            small = np.abs(number) <= 1.001 * abs(expected)  # as uᵀHu is, where u has length one
            hint = settled if small else "bring u to length one in each turn."
    return numbers(student, points, what, number if number is not None else answer.value, np.asarray(expected), 1e-6, hint)

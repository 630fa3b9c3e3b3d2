"""The checks of homework 5: the student's own rules, and products with the Hessian.

Each rule is compared with formulas in NumPy and their central differences, and Hessians with differences of explicit gradients.
Uses of f are counted: gradients, and second-order products.
"""

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, Twice, central_differences
from gradlab.homework.student import Stopped
from gradlab.homework.verdicts import as_array, compare_arrays

homework = Homework("Homework 5, rules and curvature")

RELATIVE = 1e-9
MAX_PRODUCTS = 200  # products, for 300 inputs
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
    """A student's class, used through `gradlab.homework.ways.rule`. `more`: the arguments of forward after x."""

    def __init__(self, student: Student, name: str, forbidden: tuple[str, ...]) -> None:
        self.student, self.name, self.applied = student, name, student.function(name, forbidden, way="rule")

    def __call__(self, what: str, *tensors, more=()):
        """Use the class. Return the result as a dict."""
        try:
            made = self.applied(what, list(more), *tensors).value
        except Stopped:
            self._explain_error(len(more) + 1)
            raise
        made = made if isinstance(made, dict) else {}
        if "no rule" in made:
            raise self.student.stop(
                f"`{self.name}`",
                f"a class of gl.autograd.Function was expected, got {made['no rule']}",
                f"define `class {self.name}(gl.autograd.Function):` with forward and backward.",
            )
        return made

    def _explain_error(self, taken: int) -> None:
        """Record what an error of the library means here."""
        said = self.student.verdict.findings[-1].words
        if "incorrect number of gradients" in said:
            given = said.partition(", got ")[2].partition(")")[0]
            self.student.check(
                0,
                "backward",
                False,
                f"returned {given}, forward took {taken}",
                "return one for each argument of forward after ctx: None for a plain number.",
            )
        elif "once_differentiable" in said:
            self.student.check(0, "backward", False, NO_HISTORY, AGAIN)


AGAIN = (
    "`backward` is differentiated like any code: compute it with operations of gl from `ctx.saved_tensors`, which must be "
    "inputs or outputs of `forward`."
)


def normal(student: Student, *shape: int):
    return gl.tensor(student.random.normal(size=shape))


def draw_away_from_zero(student: Student, n: int, near: float, far: float) -> np.ndarray:
    """Return n numbers with random signs and absolute values in this range."""
    return student.random.uniform(near, far, n) * student.random.choice([-1.0, 1.0], n)


def check_numbers(
    student: Student, points: float, what: str, got, expected: np.ndarray, tolerance: float, hint: str = ""
) -> bool:
    """Record whether the numbers are right. (The mistakes that `student.close` recognizes are about Jacobians.)"""
    good, words = compare_arrays(got, expected, tolerance)
    return student.check(points, what, good, words, hint, words)


def check_entries(student: Student, points: float, what: str, got, expected: np.ndarray, x: np.ndarray, hint: str = "") -> bool:
    """Record whether each entry is right to a relative error of `RELATIVE`, or at which x it is not."""
    array = as_array(got)
    if array is None or array.shape != expected.shape:
        return check_numbers(student, points, what, got, expected, RELATIVE, hint)
    off = ~(np.abs(array - expected) <= RELATIVE * np.abs(expected) + 1e-300)
    if not off.any():
        return student.check(points, what, True, "")
    worst = off & ~np.isfinite(array) if (off & ~np.isfinite(array)).any() else off
    at = int(np.flatnonzero(worst.reshape(-1))[0])
    value, wanted, where = array.reshape(-1)[at], expected.reshape(-1)[at], x.reshape(-1)[at]
    words = f"{value:g} at x = {where:g}"
    if np.isfinite(value):
        words = f"at x = {where:g} the relative error is {abs(value - wanted) / abs(wanted):.1g}" if wanted else words
    return student.check(points, what, False, words, hint)


def record_pending(student: Student, points: float, what: str, after: str = "the numbers are") -> None:
    student.check(points, what, False, f"it counts once {after} right")


def check_second(student: Student, rule: Rule, points: float, what: str, expected: np.ndarray, *tensors, more=()) -> None:
    """Check the second derivative."""
    made = rule("twice", *tensors, more=more)
    if made.get("cut"):
        student.check(points, what, False, NO_HISTORY, AGAIN)
    else:
        check_numbers(student, points, what, made.get("second"), expected, 1e-6, AGAIN)


def check_two_calls(student: Student, points: float, right: bool, got, expected, but_that_of_the_second) -> None:
    """Check two calls before the first sweep."""
    what = "two calls before a sweep"
    if not right:
        record_pending(student, points, what)
        return
    array = as_array(got)
    same = array is not None and array.shape == expected.shape
    good = same and np.allclose(array, expected, rtol=0, atol=1e-7)
    words = "the gradient of the first call is wrong after a second call"
    if same and np.allclose(array, but_that_of_the_second, rtol=0, atol=1e-7):
        words = "the first call's gradient uses the second call's x: the rule works only once"
    student.check(points, what, good, words, "store the values of each call with `ctx.save_for_backward`, or on `ctx`.")


# ------------------------------------------------------------------------------------------------------------ 1
def logistic(x: np.ndarray) -> np.ndarray:
    """Return the derivative of log(1 + exp(x))."""
    small = np.exp(-np.abs(x))
    return np.where(x > 0, 1, small) / (1 + small)


@homework.exercise(1, "softplus", points=20)
def softplus(student: Student) -> None:
    rule = Rule(student, "Softplus", ("gradlab.nn.functional.softplus", "gradlab.nn.functional.logsigmoid", "gradlab.logaddexp"))
    n = int(student.random.integers(4, 8))
    x, v, u, w = (gl.tensor(draw_away_from_zero(student, n, 0.2, 3)), *(normal(student, n) for _ in range(3)))
    tails = gl.tensor(np.array([-1000.0, -30.0, 30.0, 1000.0]))
    at, far, by = np.asarray(x), np.asarray(tails), np.asarray(v)
    slope = np.diag(central_differences(lambda t: np.logaddexp(0, t.array), x))

    right = check_numbers(student, 3, f"the value at {n} points", rule("value", x).get("value"), np.logaddexp(0, at), 1e-9)
    check_entries(student, 3, "the value at ±1000 and ±30", rule("value", tails).get("value"), np.logaddexp(0, far), far, SMALLER)
    made = rule("once", x, v)
    if made.get("cut"):
        raise student.stop("`Softplus`", "the result of `apply` does not require a gradient", "is it marked non-differentiable?")
    right = check_numbers(student, 3, "the gradient there", made.get("gradient"), by * slope, 1e-7, GIVEN) and right
    made = rule("once", tails, gl.ones_like(tails))
    check_entries(student, 2, "the gradient at ±1000 and ±30", made.get("gradient"), logistic(far), far, SLOPE)
    if right:
        made = rule("once", x.float(), v.float())
        kept = made.get("dtypes") == ["gradlab.float32"] * 2
        student.check(
            1, "an x in float32", kept, "the value or the gradient is no longer float32", "which dtype does each step have?"
        )
    else:
        record_pending(student, 1, "an x in float32")
    made = rule("in flight", x, v, w)
    check_two_calls(student, 2, right, made.get("gradient"), by * logistic(at), by * logistic(np.asarray(w)))
    check_overwritten_input(student, rule("overwritten", x, v), 2, right, by * logistic(at))
    x2, v2, u2 = gl.cat([x, tails]), gl.cat([v, tails * 0 + 1]), gl.cat([u, tails * 0 + 1])
    s = logistic(np.asarray(x2))
    check_second(student, rule, 4, "the second derivative", np.asarray(v2) * np.asarray(u2) * s * (1 - s), x2, v2, u2)


GIVEN = "`g` is the upstream gradient: multiply it by the slope, element by element."
SMALLER = "exp(710) overflows float64, and 1 + exp(-40) is 1: use `log1p` of the smaller of exp(x) and exp(-x)."
SLOPE = "one of exp(x) and exp(-x) is at most 1: use that one in the slope, or a function that does."


def check_overwritten_input(student: Student, made: dict, points: float, right: bool, expected: np.ndarray) -> None:
    """Check an input that is modified before the sweep."""
    what = "x modified before the sweep"
    if not right:
        record_pending(student, points, what)
        return
    array = as_array(made.get("gradient"))
    student.check(
        points,
        what,
        made.get("refused") or (array is not None and array.shape == expected.shape and np.allclose(array, expected)),
        "no error, but a wrong gradient: `backward` used the modified x",
        "`ctx.save_for_backward(x)` detects this; an attribute does not.",
        "refused" if made.get("refused") else "still right",
    )


# ------------------------------------------------------------------------------------------------------------ 2
def lengths(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(1, keepdims=True))


def rows_vjp(x: np.ndarray, v: np.ndarray, length: float) -> np.ndarray:
    """Return vᵀJ of the rows scaled to a length."""
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
    right = check_numbers(student, 4, f"the value, {m} by {n}", got, length * at / lengths(at), 1e-9, ROWS)
    made = rule("once", x, v, more=(length,))
    expected, got = differences(at, by), made.get("gradient")
    good = check_numbers(student, 7, "the gradient", got, expected, 1e-6, recognize_gradient(got, at, by, length))
    array = as_array(got)
    dots = (array * at).sum(1) if array is not None and array.shape == at.shape else np.full(m, np.nan)
    what = "J x = 0: a longer row gives the same result"
    if as_array(got) is not None and np.abs(array).max() == 0:
        record_pending(student, 4, what, "the gradient is")
    else:
        worst = f"scaling row {int(np.abs(dots).argmax())} changes your output by {np.abs(dots).max():.2g}"
        student.check(4, what, bool(np.abs(dots).max() < 1e-8), worst, STAYS, "0 for each row")
    right = right and good
    one, its = normal(student, 1, n + 1), normal(student, 1, n + 1)
    made = rule("once", one, its, more=(length,))
    check_numbers(
        student, 3, "a batch of one row", made.get("gradient"), differences(np.asarray(one), np.asarray(its)), 1e-6, ROWS
    )
    made = rule("in flight", x, v, w, more=(length,))
    check_two_calls(student, 3, right, made.get("gradient"), rows_vjp(at, by, length), rows_vjp(np.asarray(w), by, 2 * length))
    towards = lambda t: rows_vjp(t.array, by, length) * np.asarray(u)  # noqa: E731
    bent = central_differences(towards, x).sum(0).reshape(m, n)
    check_second(student, rule, 4, "the second derivative", bent, x, v, u, more=(length,))


ROWS = "each row has its own length: along which axis is the sum?"
STAYS = "the output has a fixed length, so it does not depend on the row's length."


def recognize_gradient(got, x: np.ndarray, v: np.ndarray, length: float) -> str:
    """Return the cause of a wrong gradient, or ""."""
    array, unit = as_array(got), x / lengths(x)
    if array is None or array.shape != x.shape:
        return ""
    known = (
        (length * v / lengths(x), "that is the gradient for lengths that do not depend on x, but they do."),
        (rows_vjp(x, v, 1), "only the factor `length` is missing."),
        (rows_vjp(x, v, length) * lengths(x), "only the division by the row's length is missing."),
        (length * (v - x * (x * v).sum(1, keepdims=True)) / lengths(x), "which of the two is of length one: the row, or x?"),
        (length * (v - unit * (unit * v).sum()) / lengths(x), "each row has its own sum: along which axis?"),
        (v, "that is g itself: `backward` returns it unchanged."),
    )
    return next((words for one, words in known if np.allclose(array, one, rtol=0, atol=1e-8)), "")


# ------------------------------------------------------------------------------------------------------------ 3
@homework.exercise(3, "A surrogate gradient", points=15)
def sign(student: Student) -> None:
    rule = Rule(student, "Sign", ("gradlab.nn.functional.hardtanh",))
    inside, outside = draw_away_from_zero(student, 4, 0.1, 0.9), draw_away_from_zero(student, 3, 1.1, 3)
    x, edge = gl.tensor(student.random.permutation(np.concatenate([inside, outside]))), gl.tensor(np.array([-1.0, 1.0]))
    at, v, ones = np.asarray(x), normal(student, 7), gl.ones_like(edge)
    right = check_numbers(student, 2, "the value", rule("value", x).get("value"), np.sign(at), RELATIVE)
    made = rule("once", x, v)
    expected = np.asarray(v) * (np.abs(at) <= 1)
    got = as_array(made.get("gradient"))
    hint = ""
    if got is not None and got.shape == expected.shape:
        everywhere, nowhere = np.array_equal(got, np.asarray(v)), not got.any()
        hint = "g passes everywhere; it should not where |x| > 1." if everywhere else hint
        hint = "that is the true derivative: earlier layers could not learn." if nowhere else hint
        hint = "return g itself, not 1." if np.array_equal(got, (np.abs(at) <= 1) * 1.0) else hint
    right = check_numbers(student, 4, "the gradient", made.get("gradient"), expected, RELATIVE, hint) and right
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
        written = "True or False was expected" if not isinstance(said, bool) else "run it, and read the result"
        student.check(1, f"does gradcheck fail: {key}", isinstance(said, bool) and said == truth[key], written, hint)
    step = 1e-6
    quotient = (np.sign(0.5 + step) - np.sign(0.5 - step)) / (2 * step)
    rounding = np.finfo(np.float32).eps / (2 * step)
    for key, low, high, hint in (
        ("quotient", quotient, quotient, "how much does sign change from 0.499999 to 0.500001?"),
        ("backward", 1.0, 1.0, "what does your `backward` return at 0.5 for g = 1?"),
        ("float32", rounding / 10, rounding * 10, "divide the distance of two float32 numbers near 1 by 2e-6."),
    ):
        said = explain.get(key)
        number = isinstance(said, (int, float)) and not isinstance(said, bool)
        words = "this is not the answer" if number else "a number was expected"
        student.check(2, f"explain: {key}", number and low <= said <= high, words, hint)


RUN = {
    "Sign": "run `%gradcheck Sign.apply(x)` with an x in float64, such as 0.5.",
    "Softplus in float32": "run `%gradcheck Softplus.apply(x)` with an x in float32: the message names the cause.",
}


# ------------------------------------------------------------------------------------------------------------ 4
def curved_function(student: Student, n: int):
    """Return a scalar function of R^n without symmetry, and its gradient as a formula."""
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


def format_count(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def describe_uses(uses) -> str:
    """Return how f was used, in words."""
    return f"{format_count(sum(uses.pulls), 'gradient')} and {format_count(sum(uses.bends), 'product')} of second order"


def quotient_error(uses) -> str:
    """Return why the numbers do not come from sweeps at x, or ""."""
    if not uses.elsewhere:
        return ""
    if uses.pulls or uses.pushes:
        return f"{sum(uses.bends)} sweeps of second order: these are differences of gradients"
    return "0 sweeps: these are difference quotients"


@homework.exercise(4, "H u without H", points=20)
def product(student: Student) -> None:
    hvp = student.function("hvp", forbidden=WHOLE)

    def call_hvp(*args):
        try:
            return hvp(*args)
        except Stopped:
            if "does not require grad" in student.verdict.findings[-1].words:
                student.check(0, "hvp", False, NO_HISTORY, "which argument makes `grad` record its own operations?")
            raise

    n = int(student.random.integers(5, 8))
    (f, gradient), x, u = curved_function(student, n), normal(student, n), normal(student, n)
    H = central_differences(gradient, x)
    answer = call_hvp(f, x, u)
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
    but = quotient_error(uses)
    right = student.close(6, f"{n} inputs", answer, H @ U, 1e-5, hint or "H u is the gradient of gᵀu, g that of f.", but)
    few = sum(uses.pulls) + sum(uses.bends) <= 2 and sum(uses.pushes) <= 1
    if not right:
        record_pending(student, 7, "at most 2 sweeps")
    else:
        cost = format_count(uses.sweeps, "sweep")
        wrong = but or f"{cost}, but 2 are enough ({describe_uses(uses)})"
        hint = "differentiate the scalar gᵀu, not each entry of g."
        student.check(7, "at most 2 sweeps", few and not but, wrong, hint, describe_uses(uses))
    (f, gradient), x, u = curved_function(student, 6), normal(student, 2, 3), normal(student, 2, 3)
    expected = (central_differences(gradient, x) @ np.asarray(u).reshape(-1)).reshape(2, 3)
    other = call_hvp(f, x, u)
    but = but or quotient_error(other.uses)
    student.close(3, "an x of shape (2, 3)", other, expected, 1e-5, "the result has the shape of x.", quotient_error(other.uses))
    (f, gradient), x, u = curved_function(student, n), normal(student, n).requires_grad_(), normal(student, n)
    x.grad = gl.ones_like(x)
    expected = central_differences(gradient, x) @ np.asarray(u)
    first, again = call_hvp(f, x, u), call_hvp(f, x, u)
    what = "x and u are unchanged, and a second call returns the same"
    changed = answer.changed or other.changed or first.changed or again.changed
    if not right or but:
        record_pending(student, 4, what, "the numbers come from sweeps and are" if right else "the numbers are")
    elif changed:
        student.check(4, what, False, f"an input was modified: {changed}", "work on a copy, without history.")
    elif student.close(0, "an x that requires a gradient and has one", first, expected, 1e-5):
        same = np.allclose(as_array(again.value), expected, rtol=0, atol=1e-5)
        student.check(4, what, same, "the second call returns other numbers", "what do you store between calls?")


ADDED = "`.grad` accumulates, also with `create_graph`."


# ------------------------------------------------------------------------------------------------------------ 5
def with_spectrum(student: Student, values: np.ndarray, top: np.ndarray | None = None):
    """Return a function and a point where its Hessian has these eigenvalues. `top` is the eigenvector of the first."""
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
        ("a negative eigenvalue", 5, negative, None),
        ("an eigenvector orthogonal to (1, 1, …)", 3, apart, against),
    ):
        f, x = with_spectrum(student, values, top)
        answer = largest(f, x)
        check_eigenvalue(student, points, what, answer, values)
    f, x = with_spectrum(student, np.array([size, *small(300)]))
    answer = largest(f, x)
    good = check_eigenvalue(student, 2, "300 inputs", answer, np.array([size]))
    products = sum(answer.uses.bends)
    what, but = f"300 inputs: at most {MAX_PRODUCTS} products", quotient_error(answer.uses)
    if not good:
        record_pending(student, 5, what)
    else:
        student.check(5, what, products <= MAX_PRODUCTS and not but, but or f"{products} products", STOP, f"{products}")
    if answer.changed:
        student.check(0, "x is unchanged", False, f"x itself was modified: {answer.changed} (no points lost here)")


STOP = "stop when uᵀHu no longer changes. (All columns of H would need 300 products.)"


def check_eigenvalue(student: Student, points: float, what: str, answer, values: np.ndarray) -> bool:
    """Record whether the result is the first eigenvalue."""
    got, expected = as_array(answer.value), values[0]
    number = got.reshape(()) if got is not None and got.size == 1 else got
    hint = ""
    if number is not None and not number.shape:
        if abs(number + expected) < 1e-5 * abs(expected):
            student.check(points, what, False, "right size, wrong sign: uᵀHu", "a length has no sign; uᵀHu has one.")
            return False
        if np.abs(values[1:] - number).min(initial=np.inf) < 0.05 * abs(expected):
            hint = "another eigenvalue: find the largest by size, from a start not orthogonal to its eigenvector."
        else:
            settled = "iterate until uᵀHu no longer changes."
            small = np.abs(number) <= 1.001 * abs(expected)  # as for uᵀHu with |u| = 1
            hint = settled if small else "normalize u to length one in each iteration."
    return check_numbers(student, points, what, number if number is not None else answer.value, np.asarray(expected), 1e-6, hint)

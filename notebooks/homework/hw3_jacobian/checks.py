"""What is checked of homework 3: the Jacobian by rows, by columns and in mixes.

Functions and points are drawn anew for each seed, in float64, and compared with central differences: no derivative of the
library's own is taken for granted. How the numbers were come by is counted: each call of f, each sweep through it, either way.
"""

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, central_differences
from gradlab.homework.verdicts import described

homework = Homework("Homework 3, the Jacobian row by row")

WHOLE = (
    "gradlab.jacobian",
    "gradlab.hessian",
    "gradlab.func.jacrev",
    "gradlab.func.jacfwd",
    "gradlab.func.hessian",
    "gradlab.func.linearize",
    "gradlab.vmap",
    "gradlab.autograd.functional.jacobian",
    "gradlab.autograd.functional.hessian",
    "gradlab.autograd.functional_helpers.jacobian_rows",
    "gradlab.autograd.functional_helpers.jacobian_columns",
)
PRODUCTS = ("gradlab.func.vjp", "gradlab.autograd.functional")


def smooth(student: Student, outputs: int, inputs: int):
    """A function of R^inputs to R^outputs whose Jacobian has no zero and no symmetry."""
    weight = gl.tensor(student.random.uniform(0.5, 1.5, (outputs, inputs)))
    mixed = gl.tensor(student.random.uniform(0.2, 0.8, (inputs,)))

    def f(x):
        x = x.reshape(-1)
        return gl.tanh(weight @ x) + (weight @ (x * x)) * (mixed @ gl.sin(x))

    return f


def point(student: Student, *shape: int):
    return gl.tensor(student.random.uniform(-1, 1, shape))


def sizes(student: Student) -> tuple[int, int]:
    """Two numbers that differ, from 2 to 6."""
    few, more = sorted(student.random.choice(np.arange(2, 7), 2, replace=False))
    return int(few), int(more)


def counted(count: int, what: str) -> str:
    """ "1 row", "3 rows"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def done(uses) -> str:
    """What was done with f, in words."""
    rows, columns = sum(uses.pulls), sum(uses.pushes)
    batch = lambda sweeps: f" in {counted(len(sweeps), 'sweep')}" if 0 < len(sweeps) < sum(sweeps) else ""  # noqa: E731
    swept = [f"{counted(rows, 'row')} swept backward{batch(uses.pulls)}"] * bool(rows) + [
        f"{counted(columns, 'column')} swept forward{batch(uses.pushes)}"
    ] * bool(columns)
    return " and ".join(swept) or "no sweep ran through f"


def backward_only(uses) -> str:
    """Why numbers do not come from backward sweeps at x, if they do not."""
    if uses.elsewhere and not uses.pulls:
        return "no sweep reached x: these are difference quotients"
    if uses.elsewhere:
        return f"f was called at {counted(uses.elsewhere, 'point')} beside x: these are difference quotients"
    return "" if uses.pulls and not uses.pushes else done(uses)


def price(student: Student, points: float, what: str, right: bool, wrong: str, hint: str, words: str) -> None:
    """Note whether something was done as asked (`wrong` says how it was not); that counts where the numbers are right as well."""
    if right:
        student.check(points, what, not wrong, wrong, hint, words)
    else:
        student.check(points, what, False, "it counts once the numbers are right")


def left_as_it_was(student: Student, answer) -> None:
    """Say it where a tensor was changed, in the exercises where that costs nothing."""
    if answer.changed:
        student.check(0, "x is left alone", False, f"x itself was changed: {answer.changed} (no points lost here)")


@homework.exercise(1, "The Jacobian by rows", points=30)
def by_rows(student: Student) -> None:
    jacobian = student.function("jacobian_by_rows", forbidden=WHOLE + PRODUCTS)
    few, more = sizes(student)
    right, changed, otherwise = True, "", ""
    for what, m, n, points in (("more inputs than outputs", few, more, 8), ("more outputs than inputs", more, few, 8)):
        f, x = smooth(student, m, n), point(student, n)
        expected = central_differences(f, x)
        answer = jacobian(f, x)
        but = backward_only(answer.uses)
        good = student.close(points, f"{what}, {m} by {n}", answer, expected, but=but)
        right, changed, otherwise = right and good, changed or answer.changed, otherwise or but
        if m < n:
            wrong = but or ("" if answer.uses.pulls == [1] * m else f"{done(answer.uses)}, for {m} outputs")
            price(
                student,
                6,
                "one backward call a row",
                good,
                wrong,
                "each call of `backward` gives one row: which weights pick it?",
                f"{m} for {m} outputs",
            )
    f, x = smooth(student, few, 6), point(student, 2, 3)
    expected = central_differences(f, x)
    answer = jacobian(f, x)
    student.close(
        4,
        f"an input of shape (2, 3), so {few} by 6",
        answer,
        expected,
        hint="a column for each element of x, in the order of `x.reshape(-1)`.",
    )
    f, x = smooth(student, more, few), point(student, few).requires_grad_()
    x.grad = gl.ones_like(x)
    expected = central_differences(f, x)
    first, again = jacobian(f, x), jacobian(f, x)
    changed = changed or answer.changed or first.changed or again.changed
    what = "the tensor that came in is left alone, and a second call says the same"
    if not right or otherwise:
        student.check(4, what, False, f"it counts once the numbers are right{' and come from sweeps' if right else ''}")
    elif changed:
        student.check(
            4,
            what,
            False,
            f"x itself was changed: {changed}",
            "work on a tensor of your own: a copy, without history, that asks for a gradient.",
        )
    elif student.close(0, "an x that requires a gradient and has one", first, expected):
        same = np.array_equal(np.asarray(first.value), np.asarray(again.value))
        student.check(4, what, same, "the second call gives other numbers", "what do you keep between calls?")


@homework.exercise(2, "The Jacobian by columns", points=20)
def by_columns(student: Student) -> None:
    jacobian = student.function("jacobian_by_columns", forbidden=WHOLE)
    few, more = sizes(student)
    right, otherwise, each = True, "", ""
    for m, n in ((few, more), (more, few)):
        f, x = smooth(student, m, n), point(student, n)
        expected = central_differences(f, x)
        answer = jacobian(f, x)
        uses = answer.uses
        right = (
            student.close(
                3, f"{m} by {n}", answer, expected, hint="u = (0, 1, 0, …) gives the column that belongs to the second input."
            )
            and right
        )
        if uses.elsewhere:
            otherwise = "no sweep: these are difference quotients" if not uses.sweeps else "these are difference quotients"
        elif uses.pulls or not uses.pushes:
            otherwise = otherwise or done(uses)
        each = each or ("" if uses.pushes == [1] * n else f"{done(uses)}, for {n} inputs")
    hint = "`gl.func.jvp` runs f once and carries one direction u through it."
    price(student, 6, "swept forward, not backward", right, otherwise, hint, "forward")
    price(student, 8, "one forward sweep a column", right, otherwise or each, hint, f"{n} for {n} inputs")
    left_as_it_was(student, answer)


@homework.exercise(3, "A batch of weights", points=20)
def batch(student: Student) -> None:
    mixes = student.function("mixes", forbidden=WHOLE + PRODUCTS)
    m, n = sizes(student)
    f, x, k = smooth(student, m, n), point(student, n), int(student.random.integers(7, 10))
    V = gl.tensor(student.random.normal(size=(k, m)))
    expected = np.asarray(V) @ central_differences(f, x)
    answer = mixes(f, x, V)
    but = backward_only(answer.uses)
    right = student.close(
        4, f"{k} weight vectors, {m} outputs, {n} inputs", answer, expected, hint="row i of the answer belongs to row i of V."
    )
    hint = "`gl.autograd.grad(…, is_grads_batched=True)` takes all of V at once."
    price(student, 8, "swept backward", right, but, hint, done(answer.uses))
    price(
        student,
        8,
        "all in one sweep",
        right,
        but or ("" if answer.uses.pulls == [k] else f"{done(answer.uses)}: {counted(len(answer.uses.pulls), 'sweep')}"),
        hint,
        "1 sweep",
    )
    left_as_it_was(student, answer)


@homework.exercise(4, "The cheaper way", points=15)
def choice(student: Student) -> None:
    jacobian = student.function("jacobian", forbidden=WHOLE, given={"jacobian_by_rows": "rows", "jacobian_by_columns": "columns"})
    few, more = sizes(student)
    for m, n in ((few, 6 + more), (6 + more, few)):
        f, x = smooth(student, m, n), point(student, n)
        expected = central_differences(f, x)
        answer = jacobian(f, x)
        uses = answer.uses
        right = student.close(3, f"{m} by {n}", answer, expected)
        wrong = "these are difference quotients" if uses.elsewhere else done(uses) if not 0 < uses.sweeps <= min(m, n) else ""
        price(
            student,
            4.5,
            f"{m} by {n}: at most {counted(min(m, n), 'sweep')}",
            right,
            wrong,
            "a row costs one sweep, and so does a column: of which are there fewer?",
            done(uses),
        )


@homework.exercise(5, "Forgetting, on purpose", points=15)
def forgetting(student: Student) -> None:
    summed = student.function("sum_of_rows", forbidden=WHOLE + PRODUCTS)
    m, n = sizes(student)
    f, x = smooth(student, m, n), point(student, n)
    expected, said = central_differences(f, x).sum(0), second_call(f, x).partition(". ")[0]
    answer = summed(f, x)
    but = backward_only(answer.uses)
    right = student.close(
        5, f"the sum of {m} rows", answer, expected, hint="which weights v make vᵀJ the sum of all rows?", but=but
    )
    price(
        student,
        4,
        "in one backward call",
        right,
        but or ("" if answer.uses.pulls == [1] else done(answer.uses)),
        "rows add up when their weights do.",
        "1 call",
    )
    left_as_it_was(student, answer)
    message = student.function("message_of_the_second_call")(f, x).value
    student.check(
        6,
        "what the second call says",
        isinstance(message, str) and message.startswith(said),
        "this is not the text of the error" if isinstance(message, str) else "a str was expected: `str(error)`",
        "call `backward` twice without retain_graph, and catch the RuntimeError.",
        "word for word",
    )


@homework.exercise(6, "Is it transposed?", points=0)
def adjoint_test(student: Student) -> None:
    is_transposed = student.function("is_transposed", forbidden=WHOLE)
    few, more = sizes(student)
    square, x = smooth(student, more, more), point(student, more)
    wide, y = smooth(student, few, more), point(student, more)
    J, K = central_differences(square, x), central_differences(wide, y)
    slip = J.T.copy()
    slip[student.random.integers(more), student.random.integers(more)] += 1
    for what, f, at, matrix, expected in (
        ("a transposed one, square", square, x, J.T, True),
        ("a right one, square", square, x, J, False),
        ("a transposed one with a slip in one entry", square, x, slip, False),
        (f"a transposed one of {few} by {more}", wide, y, K.T, True),
        (f"a right one, {few} by {more}", wide, y, K, False),
    ):
        answer = is_transposed(gl.tensor(np.ascontiguousarray(matrix)), f, at)
        said = answer.value
        if isinstance(said, (gl.Tensor, np.ndarray)) and np.asarray(said).dtype == bool and np.asarray(said).size == 1:
            said = bool(np.asarray(said).reshape(()))
        hint = "with the transpose in hand, uᵀ(Jᵀv) is vᵀ(Ju), whatever u and v are; with anything else it is not."
        words = "this is not what it is" if isinstance(said, bool) else f"True or False was expected, not {described(said)}"
        student.check(0, what, said is expected, words, hint)
        if said is expected and answer.uses.elsewhere:
            student.check(0, "from a product", False, "these are difference quotients")
        elif answer.uses.sweeps > 2:
            student.check(0, "at most 2 sweeps", False, done(answer.uses), "one u is enough, if it is random.")
    left_as_it_was(student, answer)


def second_call(f, x) -> str:
    """What the library says when a graph is walked again that was not kept."""
    x = x.detach().clone().requires_grad_()
    y = f(x)
    y.backward(gl.ones_like(y))
    try:
        y.backward(gl.ones_like(y))
    except RuntimeError as error:
        return str(error)
    return ""

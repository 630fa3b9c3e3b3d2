"""The checks of homework 3: the Jacobian by rows, by columns and in mixes.

Functions and points are random, in float64. Results are compared with central differences, independent of the library's
derivatives. Calls of f and sweeps through it, in both directions, are counted.
"""

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, central_differences
from gradlab.homework.verdicts import describe

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
    """Return a function from R^inputs to R^outputs whose Jacobian has no zeros and no symmetry."""
    weight = gl.tensor(student.random.uniform(0.5, 1.5, (outputs, inputs)))
    mixed = gl.tensor(student.random.uniform(0.2, 0.8, (inputs,)))

    def f(x):
        x = x.reshape(-1)
        return gl.tanh(weight @ x) + (weight @ (x * x)) * (mixed @ gl.sin(x))

    return f


def point(student: Student, *shape: int):
    return gl.tensor(student.random.uniform(-1, 1, shape))


def sizes(student: Student) -> tuple[int, int]:
    """Return two different numbers from 2 to 6."""
    few, more = sorted(student.random.choice(np.arange(2, 7), 2, replace=False))
    return int(few), int(more)


def format_count(count: int, what: str) -> str:
    """Return a count in words: "1 row", "3 rows"."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def describe_uses(uses) -> str:
    """Return how f was used, in words."""
    rows, columns = sum(uses.pulls), sum(uses.pushes)
    batch = lambda sweeps: f" in {format_count(len(sweeps), 'sweep')}" if 0 < len(sweeps) < sum(sweeps) else ""  # noqa: E731
    swept = [f"{format_count(rows, 'row')} swept backward{batch(uses.pulls)}"] * bool(rows) + [
        f"{format_count(columns, 'column')} swept forward{batch(uses.pushes)}"
    ] * bool(columns)
    return " and ".join(swept) or "no sweep ran through f"


def backward_only(uses) -> str:
    """Return why the numbers do not come from backward sweeps at x, or ""."""
    if uses.elsewhere and not uses.pulls:
        return "no sweep reached x: these are difference quotients"
    if uses.elsewhere:
        return f"f was called at {format_count(uses.elsewhere, 'point')} other than x: these are difference quotients"
    return "" if uses.pulls and not uses.pushes else describe_uses(uses)


def check_cost(student: Student, points: float, what: str, right: bool, wrong: str, hint: str, words: str) -> None:
    """Record whether the method was right (`wrong` says why not). It counts only if the numbers are right."""
    if right:
        student.check(points, what, not wrong, wrong, hint, words)
    else:
        student.check(points, what, False, "it counts once the numbers are right")


def check_unchanged(student: Student, answer) -> None:
    """Record a modified tensor, without a loss of points."""
    if answer.changed:
        student.check(0, "x is unchanged", False, f"x itself was modified: {answer.changed} (no points lost here)")


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
            wrong = but or ("" if answer.uses.pulls == [1] * m else f"{describe_uses(answer.uses)}, for {m} outputs")
            check_cost(
                student,
                6,
                "one backward call for each row",
                good,
                wrong,
                "each call of `backward` computes one row: which weights select it?",
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
        hint="there is a column for each element of x, in the order of `x.reshape(-1)`.",
    )
    f, x = smooth(student, more, few), point(student, few).requires_grad_()
    x.grad = gl.ones_like(x)
    expected = central_differences(f, x)
    first, again = jacobian(f, x), jacobian(f, x)
    changed = changed or answer.changed or first.changed or again.changed
    what = "x is unchanged, and a second call returns the same"
    if not right or otherwise:
        student.check(4, what, False, f"it counts once the numbers are right{' and come from sweeps' if right else ''}")
    elif changed:
        student.check(
            4,
            what,
            False,
            f"x itself was modified: {changed}",
            "work on your own tensor: a copy without history that requires a gradient.",
        )
    elif student.close(0, "an x that requires a gradient and has one", first, expected):
        same = np.array_equal(np.asarray(first.value), np.asarray(again.value))
        student.check(4, what, same, "the second call returns other numbers", "what do you store between calls?")


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
            student.close(3, f"{m} by {n}", answer, expected, hint="u = (0, 1, 0, …) gives the column of the second input.")
            and right
        )
        if uses.elsewhere:
            otherwise = "no sweep: these are difference quotients" if not uses.sweeps else "these are difference quotients"
        elif uses.pulls or not uses.pushes:
            otherwise = otherwise or describe_uses(uses)
        each = each or ("" if uses.pushes == [1] * n else f"{describe_uses(uses)}, for {n} inputs")
    hint = "`gl.func.jvp` runs f once with one direction u."
    check_cost(student, 6, "swept forward, not backward", right, otherwise, hint, "forward")
    check_cost(student, 8, "one forward sweep for each column", right, otherwise or each, hint, f"{n} for {n} inputs")
    check_unchanged(student, answer)


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
        4, f"{k} weight vectors, {m} outputs, {n} inputs", answer, expected, hint="row i of the result belongs to row i of V."
    )
    hint = "`gl.autograd.grad(…, is_grads_batched=True)` takes all of V at once."
    check_cost(student, 8, "swept backward", right, but, hint, describe_uses(answer.uses))
    sweeps = format_count(len(answer.uses.pulls), "sweep")
    wrong = "" if answer.uses.pulls == [k] else f"{describe_uses(answer.uses)}: {sweeps}"
    check_cost(
        student,
        8,
        "all in one sweep",
        right,
        but or wrong,
        hint,
        "1 sweep",
    )
    check_unchanged(student, answer)


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
        wrong = (
            "these are difference quotients"
            if uses.elsewhere
            else describe_uses(uses)
            if not 0 < uses.sweeps <= min(m, n)
            else ""
        )
        check_cost(
            student,
            4.5,
            f"{m} by {n}: at most {format_count(min(m, n), 'sweep')}",
            right,
            wrong,
            "a row costs one sweep, and so does a column: are there fewer rows or columns?",
            describe_uses(uses),
        )


@homework.exercise(5, "Forgetting on purpose", points=15)
def forgetting(student: Student) -> None:
    summed = student.function("sum_of_rows", forbidden=WHOLE + PRODUCTS)
    m, n = sizes(student)
    f, x = smooth(student, m, n), point(student, n)
    expected, said = central_differences(f, x).sum(0), second_call_error(f, x).partition(". ")[0]
    answer = summed(f, x)
    but = backward_only(answer.uses)
    right = student.close(
        5, f"the sum of {m} rows", answer, expected, hint="which weights v make vᵀJ the sum of all rows?", but=but
    )
    check_cost(
        student,
        4,
        "in one backward call",
        right,
        but or ("" if answer.uses.pulls == [1] else describe_uses(answer.uses)),
        "the sum of rows is the product with the sum of their weights.",
        "1 call",
    )
    check_unchanged(student, answer)
    message = student.function("message_of_the_second_call")(f, x).value
    student.check(
        6,
        "the message of the second call",
        isinstance(message, str) and message.startswith(said),
        "this is not the message of the error" if isinstance(message, str) else "a str was expected: `str(error)`",
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
        ("transposed, square", square, x, J.T, True),
        ("not transposed, square", square, x, J, False),
        ("transposed, with one wrong entry", square, x, slip, False),
        (f"transposed, {few} by {more}", wide, y, K.T, True),
        (f"not transposed, {few} by {more}", wide, y, K, False),
    ):
        answer = is_transposed(gl.tensor(np.ascontiguousarray(matrix)), f, at)
        said = answer.value
        if isinstance(said, (gl.Tensor, np.ndarray)) and np.asarray(said).dtype == bool and np.asarray(said).size == 1:
            said = bool(np.asarray(said).reshape(()))
        hint = "for the transpose, uᵀ(Jᵀv) is vᵀ(Ju) for all u and v; for any other matrix it is not."
        words = "this is the wrong answer" if isinstance(said, bool) else f"True or False was expected, not {describe(said)}"
        student.check(0, what, said is expected, words, hint)
        if said is expected and answer.uses.elsewhere:
            student.check(0, "from a product", False, "these are difference quotients")
        elif answer.uses.sweeps > 2:
            student.check(0, "at most 2 sweeps", False, describe_uses(answer.uses), "one u is enough, if it is random.")
    check_unchanged(student, answer)


def second_call_error(f, x) -> str:
    """Return the library's error for a second backward pass through a freed graph."""
    x = x.detach().clone().requires_grad_()
    y = f(x)
    y.backward(gl.ones_like(y))
    try:
        y.backward(gl.ones_like(y))
    except RuntimeError as error:
        return str(error)
    return ""

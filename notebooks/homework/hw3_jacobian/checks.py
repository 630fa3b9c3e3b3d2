"""What is checked of homework 3: the Jacobian by rows, by columns and in mixes.

Functions and points are drawn anew for each seed, in float64, and compared with central differences: no derivative of the
library's own is taken for granted.
"""
import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, central_differences

homework = Homework("Homework 3, the Jacobian row by row")

WHOLE = ("jacobian", "hessian", "jacrev", "jacfwd", "vmap", "linearize", "vjp", "hvp", "vhp")
BATCHED = ("is_grads_batched",)
FORWARD = ("jvp", "jvp_of_graph", "make_dual")


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


def price(student: Student, points: float, what: str, right: bool, cheap: bool, otherwise: str, hint: str, words: str) -> None:
    """Note whether something was done in few enough sweeps; that counts where it is right as well."""
    if right:
        student.check(points, what, cheap, otherwise, hint, words)
    else:
        student.check(points, what, False, "it counts once the numbers are right")


def counts_calls(f):
    """f, and a list with an entry for each call of it."""
    calls = []

    def counted(x):
        calls.append(1)
        return f(x)
    return counted, calls


@homework.exercise(1, "The Jacobian by rows", points=30)
def by_rows(student: Student) -> None:
    jacobian = student.function("jacobian_by_rows", forbidden=(*WHOLE, *BATCHED, *FORWARD))
    few, more = sizes(student)
    for what, m, n, points in (("more inputs than outputs", few, more, 8), ("more outputs than inputs", more, few, 8)):
        f, x = smooth(student, m, n), point(student, n)
        with student.counted() as sweeps:
            J = jacobian(f, x)
        right = student.close(points, f"{what}, {m} by {n}", J, central_differences(f, x))
        if what.startswith("more inputs"):
            made = sweeps.backward + sweeps.grad
            price(student, 6, "one backward call a row", right, made == m, f"{made} sweeps for {m} outputs",
                  "each call of `backward` gives one row: which weights pick it?", f"{made} for {m} outputs")
    f, x = smooth(student, few, 6), point(student, 2, 3)
    student.close(4, f"an input of shape (2, 3), so {few} by 6", jacobian(f, x), central_differences(f, x),
                  hint="a column for each element of x, in the order of `x.reshape(-1)`.")
    x = point(student, few).requires_grad_()
    x.grad = before = gl.ones_like(x)
    f = smooth(student, more, few)
    first, again = jacobian(f, x), jacobian(f, x)
    same = first is not None and again is not None and np.array_equal(np.asarray(gl.as_tensor(first)), np.asarray(
        gl.as_tensor(again)))
    kept = x.grad is before and bool((x.grad == 1).all())
    student.check(4, "the tensor that came in is left alone, and a second call says the same", kept and same,
                  "`x.grad` of the caller's tensor has changed" if not kept else "the second call gives other numbers",
                  "work on a tensor of your own: a copy, without history, that asks for a gradient.")


@homework.exercise(2, "The Jacobian by columns", points=20)
def by_columns(student: Student) -> None:
    jacobian = student.function("jacobian_by_columns", forbidden=(
        "jacobian", "hessian", "jacrev", "jacfwd", "vmap", "linearize", "jacobian_by_rows"))
    few, more = sizes(student)
    for m, n, points in ((few, more, 6), (more, few, 6)):
        f, x = smooth(student, m, n), point(student, n)
        counted, calls = counts_calls(f)
        with student.counted() as sweeps:
            J = jacobian(counted, x)
        right = student.close(points, f"{m} by {n}", J, central_differences(f, x),
                              hint="u = (0, 1, 0, …) gives the column that belongs to the second input.")
        if m > n:
            swept = sweeps.backward + sweeps.grad
            price(student, 8, "one forward sweep a column, no backward", right, not swept and len(calls) <= n + 1,
                  f"{swept} backward sweeps" if swept else f"f was called {len(calls)} times for {n} inputs",
                  "`gl.func.jvp` runs f once and carries one direction u through it.", f"{n} for {n} inputs")


@homework.exercise(3, "A batch of weights", points=20)
def batch(student: Student) -> None:
    mixes = student.function("mixes", forbidden=(*WHOLE, *FORWARD, "jacobian_by_rows", "jacobian_by_columns"))
    m, n = sizes(student)
    f, x, k = smooth(student, m, n), point(student, n), int(student.random.integers(7, 10))
    V = gl.tensor(student.random.normal(size=(k, m)))
    with student.counted() as sweeps:
        got = mixes(f, x, V)
    right = student.close(12, f"{k} weight vectors, {m} outputs, {n} inputs", got, np.asarray(V) @ central_differences(f, x),
                          hint="row i of the answer belongs to row i of V.")
    made = sweeps.backward + sweeps.grad
    price(student, 8, "all in one sweep", right, made == 1, f"{made} sweeps",
          "`gl.autograd.grad(…, is_grads_batched=True)` takes all of V at once.", "1 sweep")


@homework.exercise(4, "The cheaper way", points=15)
def choice(student: Student) -> None:
    jacobian = student.function("jacobian", forbidden=tuple(name for name in WHOLE if name != "jacobian") + BATCHED)
    few, more = sizes(student)
    for m, n in ((few, 6 + more), (6 + more, few)):
        f, x = smooth(student, m, n), point(student, n)
        counted, calls = counts_calls(f)
        with student.counted() as sweeps:
            J = jacobian(counted, x)
        right = student.close(3, f"{m} by {n}", J, central_differences(f, x))
        made = max(sweeps.backward + sweeps.grad, len(calls) - 2)
        price(student, 4.5, f"{m} by {n}: at most {min(m, n)} sweeps", right, made <= min(m, n), f"{made} sweeps",
              "a row costs one sweep, and so does a column: of which are there fewer?", f"{min(m, n)} sweeps")


@homework.exercise(5, "Forgetting, on purpose", points=15)
def forgetting(student: Student) -> None:
    summed = student.function("sum_of_rows", forbidden=(*WHOLE, *BATCHED, *FORWARD, "jacobian_by_rows", "jacobian_by_columns"))
    m, n = sizes(student)
    f, x = smooth(student, m, n), point(student, n)
    with student.counted() as sweeps:
        got = summed(f, x)
    right = student.close(5, f"the sum of {m} rows", got, central_differences(f, x).sum(0),
                          hint="which weights v make vᵀJ the sum of all rows?")
    made = sweeps.backward + sweeps.grad
    price(student, 4, "in one backward call", right, made == 1, f"{made} calls", "rows add up when their weights do.", "1 call")
    message = student.function("message_of_the_second_call")(f, x)
    said = second_call(f, x).partition(". ")[0]
    student.check(6, "what the second call says", isinstance(message, str) and message.startswith(said),
                  "this is not the text of the error" if isinstance(message, str) else
                  "a str was expected: `str(error)`", "call `backward` twice without retain_graph, and catch the RuntimeError.",
                  "word for word")


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

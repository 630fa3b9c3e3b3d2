"""The checks of homework 2: a student's own autograd, on NumPy.

Single rules are compared with difference quotients. Whole programs run on the student's `Value` and on gradlab's tensors, and
the results are compared. Shapes and numbers are random. A wrong `unbroadcast` or `order` costs points once: later exercises
replace them with right ones.
"""

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, central_differences
from gradlab.homework.cotangents import diagnose_cotangent
from gradlab.homework.programs import Program
from gradlab.homework.references import order as walk
from gradlab.homework.verdicts import as_array, compare_arrays, describe

homework = Homework("Homework 2, an autograd of your own")

FOREIGN = ("gradlab.*", "torch.*", "jax.*", "autograd.*")  # forbidden in a student's engine
RIGHT = {"unbroadcast": "unbroadcast", "order": "order"}
LATER, UNWRITTEN = "it counts once the rules are right", "not written yet"


def numbers(student: Student, *shape: int) -> np.ndarray:
    """Return positive numbers, which all operations accept."""
    return student.random.uniform(0.5, 2.0, shape)


def by_differences(text: str, inputs: dict, g: np.ndarray) -> dict:
    """Return the value of an operation, and the gradient of each input for the cotangent g."""
    program = Program(text)
    tensors = {name: gl.tensor(array) for name, array in inputs.items()}
    made = {"value": np.asarray(program(*tensors.values()))}
    for name, array in inputs.items():
        J = central_differences(lambda t, name=name: program(*(tensors | {name: t}).values()), tensors[name])
        made[f"to {name}"] = (g.reshape(-1) @ J).reshape(array.shape)
    return made


def explain_rule(result: dict, expected: dict) -> tuple[str, str]:
    """Return what is wrong with an operation and its rule, and a hint; two "" if nothing is."""
    if result.get("unwritten"):
        return UNWRITTEN, "replace `raise NotImplementedError()` with your code, and run the cell again."
    if not result:
        return "there is no result", ""
    if "value" in result:
        good, words = compare_arrays(result["value"], expected["value"], 1e-6)
        if not good:
            return f"the value itself: {words}", ""
    if "words" in result:
        return result["words"], ""
    for key, right in expected.items():
        if key == "value":
            continue
        good, words = compare_arrays(result.get(key), right, 1e-5)
        if not good:
            return f"the gradient of `{key[3:]}`: {words}", diagnose_cotangent(result.get(key), right)
    return "", ""


# ------------------------------------------------------------------------------------------------------------------- rules
def operations(student: Student) -> list:
    """Return (name, points, [(program, inputs)]) of each of the seven operations."""
    shapes = [(), (3,), (2, int(student.random.integers(3, 6)))]
    n = int(student.random.integers(2, 5))
    two = [{"a": numbers(student, *shape), "b": numbers(student, *shape)} for shape in shapes]
    one = [{"a": numbers(student, *shape)} for shape in shapes]
    rows, inner, columns = (int(k) for k in student.random.permutation([2, 3, 4]))
    return [
        ("`+`", 2, [("out = a + b", each) for each in two]),
        ("`*`", 2, [("out = a * b", each) for each in two]),
        ("`**`", 2, [(f"out = a ** {power}", each) for power, each in zip((n, -1, 0.5), one, strict=True)]),
        ("`@`", 4, [("out = a @ b", {"a": numbers(student, rows, inner), "b": numbers(student, inner, columns)})]),
        ("`exp`", 2, [("out = a.exp()", each) for each in one]),
        ("`log`", 2, [("out = a.log()", each) for each in one]),
        (
            "`sum`",
            2,
            [
                ("out = a.sum()", one[0]),
                ("out = a.sum()", one[2]),
                ("out = a.sum(0)", one[1]),
                ("out = a.sum(0)", one[2]),
                ("out = a.sum(1)", one[2]),
            ],
        ),
    ]


@homework.exercise(1, "Seven rules", points=20)
def rules(student: Student) -> None:
    value = student.function("Value", forbidden=FOREIGN, given={"unbroadcast": "unbroadcast"}, way="engine")
    tried, wrote = [], ""
    for name, points, cases in operations(student):
        found = []
        for text, inputs in cases:
            g = student.random.normal(size=np.shape(Program(text)(*(gl.tensor(array) for array in inputs.values()))))
            expected = by_differences(text, inputs, g)
            answer = value("rule", text, inputs, g, False)
            result = answer.value if isinstance(answer.value, dict) else {}
            wrong, hint = explain_rule(result, expected)
            if result.get("wrote") and not wrote:
                wrote = f"{name}: your rule wrote to its cotangent, which another parent also gets"
            found.append((wrong, hint, answer.case, text, inputs))
        wrong, hint, case, text, inputs = next((one for one in found if one[0]), found[-1])
        shapes = " and ".join(str(array.shape) for array in inputs.values())
        words = wrong if wrong == UNWRITTEN else f"`{text}` of {shapes}: {wrong}"
        student.check(points, name, not wrong, words, hint, case="" if wrong == UNWRITTEN else case)
        tried.append((name, not wrong, cases[-1], g, expected))
    right = all(good for _, good, *_ in tried)
    late, its = "", None
    for name, _, (text, inputs), g, expected in tried:
        if name in ("`+`", "`sum`"):
            continue
        answer = value("rule", text, inputs, g, True)
        result = answer.value if isinstance(answer.value, dict) else {}
        if not late and explain_rule(result, expected)[0] and not result.get("words", "").startswith("raised RuntimeError"):
            late, its = f"{name}: backward saw `a.data` after you changed it", answer.case
    student.check(
        2,
        "a rule uses the numbers of the forward pass",
        right and not late,
        late if right else LATER,
        "`a.data += 1` between forward and backward: which numbers does the rule read then?" if right else "",
        case=its or "" if right else "",
    )
    student.check(
        2,
        "a rule does not modify its cotangent",
        right and not wrote,
        wrote or LATER,
        "do not modify `g`: create a new array." if wrote else "",
        case="",
    )


# ------------------------------------------------------------------------------------------------------------- unbroadcast
def reference_unbroadcast(g: np.ndarray, shape: tuple) -> np.ndarray:
    """Compute `unbroadcast` element by element: the product of g with the broadcast unit vector."""
    made = np.zeros(shape)
    for at in np.ndindex(shape):
        unit = np.zeros(shape)
        unit[at] = 1
        made[at] = (np.broadcast_to(unit, g.shape) * g).sum()
    return made


@homework.exercise(2, "Back to the operand's shape", points=10)
def unbroadcast(student: Student) -> None:
    function = student.function("unbroadcast", forbidden=FOREIGN, way="engine")
    m, n = (int(k) for k in student.random.permutation([2, 3, 4])[:2])
    wrote, right = False, True
    for shape in ((n,), (m, 1), (1, n), (), (m, n)):
        g = student.random.normal(size=(m, n))
        answer = function("unbroadcast", g, list(shape))
        result = answer.value if isinstance(answer.value, dict) else {}
        wrote = wrote or bool(result.get("wrote"))
        good, words = compare_arrays(result.get("value"), reference_unbroadcast(g, shape), 1e-9)
        hint = diagnose_cotangent(result.get("value"), reference_unbroadcast(g, shape))
        right = student.check(1, f"{(m, n)} to {shape}", good, words, hint, words, answer.case) and right
    shape, wide = (m, 1), (2, m, n)
    g, u = student.random.normal(size=wide), student.random.normal(size=shape)
    answer = function("unbroadcast", g, list(shape))
    result = answer.value if isinstance(answer.value, dict) else {}
    back = as_array(result.get("value"))
    there = float((np.broadcast_to(u, wide) * g).sum())
    fits = back is not None and back.shape == shape
    again = float((u * back).sum()) if fits else float("nan")
    student.check(
        2,
        f"the adjoint of broadcasting {shape} to {wide}",
        abs(there - again) < 1e-9,
        f"⟨B u, g⟩ is {there:.4g}, ⟨u, unbroadcast g⟩ is {again:.4g}"
        if fits
        else compare_arrays(result.get("value"), np.zeros(shape), 1)[1],
        "sum over leading axes that the operand does not have, and over axes where it has length 1.",
        "both products agree",
        answer.case,
    )
    if wrote:
        student.check(0, "g is unchanged", False, "g itself was modified (no points lost here)")
    value = student.function("Value", forbidden=FOREIGN, way="engine")
    for text, points in (("out = a + b", 1), ("out = a * b", 2)):
        inputs, g = {"a": numbers(student, m, n), "b": numbers(student, n)}, student.random.normal(size=(m, n))
        expected = by_differences(text, inputs, g)
        answer = value("rule", text, inputs, g, False)
        wrong, hint = explain_rule(answer.value if isinstance(answer.value, dict) else {}, expected)
        hint = hint and f"{hint} The cotangent must have the shape of the parent."
        student.check(points, f"`{text[6:]}` of {(m, n)} and {(n,)}", not wrong, wrong, hint, case=answer.case)


# -------------------------------------------------------------------------------------------------------------------- order
def names(nodes) -> str:
    return " and ".join(f"`{name}`" for name in nodes)


def explain_order(result: dict, parents: list) -> tuple[str, str]:
    """Return what is wrong with an order, and a hint."""
    if result.get("deep"):
        return "deeper than Python's stack", "keep a list of the values to visit."
    if "words" in result:
        return result["words"], ""
    got = [int(k) for k in result.get("order", [])]
    name = lambda k: chr(ord("a") + k) if len(parents) <= 26 else f"n{k}"  # noqa: E731
    if -1 in got:
        return "it has a value that `out` does not depend on", ""
    if twice := [k for k in dict.fromkeys(got) if got.count(k) > 1] if len(parents) < 1000 else []:
        return f"`{name(twice[0])}` is in it {got.count(twice[0])} times", "how do you know which values you have visited?"
    if len(set(got)) != len(got):
        return "some values are in it more than once", ""
    reached, todo = set(), [len(parents) - 1]
    while todo:
        if (k := todo.pop()) not in reached:
            reached.add(k)
            todo += parents[k]
    if missing := sorted(reached - set(got)):
        return (
            f"{names([name(k) for k in missing[:3]])}{f' and {len(missing) - 3} more' if len(missing) > 3 else ''} missing",
            "it must have every value that `out` depends on, including the leaves and `out`.",
        )
    place = {k: at for at, k in enumerate(got)}
    wrong = [(k, parent) for k in got for parent in parents[k] if place[parent] < place[k]]
    if not wrong:
        return "", ""
    if all(place[parent] < place[k] for k in got for parent in parents[k]):
        return "the order is reversed: it starts with the leaves", ""
    k, parent = wrong[0]
    return (
        f"`{name(parent)}` is before `{name(k)}`, which is computed from it",
        "a value must come after all values computed from it.",
    )


@homework.exercise(3, "The order", points=15)
def in_order(student: Student) -> None:
    order = student.function(
        "order", forbidden=FOREIGN, way="engine", late="is each value searched for in a long list, or visited for every path?"
    )
    tangled = [[], []]
    for k in range(2, 9):
        tangled.append([int(j) for j in student.random.choice(k, 2)] if k > 2 else [0, 1])
        tangled[-1][0] = k - 1
    right = True
    for what, parents, points in (
        ("a chain", [[], [0], [1], [2]], 3),
        ("a diamond", [[], [0], [0], [1, 2]], 3),
        ("a shared parent, far and near", [[], [0], [1], [1, 2], [3, 1]], 3),
        ("a tangle of nine", tangled, 3),
    ):
        answer = order("order", parents)
        wrong, hint = explain_order(answer.value if isinstance(answer.value, dict) else {}, parents)
        right = student.check(points, what, not wrong, wrong, hint, case=answer.case) and right
    deep = [[], *([k] for k in range(20_000))]
    answer = order("order", deep)
    result = answer.value if isinstance(answer.value, dict) else {}
    wrong, hint = explain_order(result, deep)
    words = "right; a graph of 20 000 operations is deeper than Python's stack: keep a list" if result.get("deep") else wrong
    if result.get("deep"):
        hint = ""
    student.check(
        3,
        "20 000 operations, one after the other",
        right and not wrong,
        words if right else "it counts once the others are right",
        hint if right else "",
        f"{result.get('seconds', 0):.2g} s",
        answer.case if right else "",
    )


# ----------------------------------------------------------------------------------------------------------------- backward
def gradients(student: Student, points: float, what: str, run, hint: str = "") -> bool:
    """Record whether all inputs have gradlab's gradient."""
    if run.refusal:
        return student.check(points, what, False, run.refusal)
    for name in run.program.inputs:
        good, words = compare_arrays(run.own_grads.get(name), run.grads[name], 1e-9)
        if run.own_grads.get(name) is None:
            words = f"`{name}.grad` is None"
        if not good:
            own = as_array(run.own_grads.get(name))
            nothing = own is not None and own.shape == run.grads[name].shape and not own.any()
            if nothing and student.verdict.number == 4 and "0.5" in run.program.text:
                return student.check(points, what, False, f"`{name}.grad`: 0.5 became 0: integer data cannot hold it")
            shaped = own is not None and own.shape != run.grads[name].shape
            said = (
                diagnose_cotangent(own, run.grads[name])
                if shaped
                else run.fault(name) or diagnose_cotangent(own, run.grads[name])
            )
            return student.check(points, what, False, f"`{name}.grad`: {words}", said or hint)
    if changed := run.changed_data():
        return student.check(points, what, False, changed)
    return student.check(points, what, True, "")


@homework.exercise(4, "backward", points=25)
def backward(student: Student) -> None:
    value = student.function("Value", forbidden=FOREIGN, given=RIGHT, way="engine")
    like = lambda program, inputs, *calls: student.like_gradlab(  # noqa: E731
        program, inputs, calls, forbidden=FOREIGN, given=RIGHT, late="does a rule run for each path, or does a loop never end?"
    )
    m, n = (int(k) for k in student.random.permutation([2, 3, 4])[:2])
    scalar = lambda: numbers(student)  # noqa: E731
    often, right = "", True

    run = like("b = a + a\nc = b + b", {"a": scalar()})
    right = gradients(student, 3, "`b = a + a`, `c = b + b`", run) and right
    often = often or run.repeated_rule()
    run = like("c = a * 2\nd = c * 2\ny = c + d", {"a": scalar()})
    right = gradients(student, 4, "`c = a * 2`, `y = c + c * 2`", run) and right
    often = often or run.repeated_rule()
    run = like("y = a * b\nz = a * a", {"a": scalar(), "b": scalar()}, ("y", None), ("z", None))
    right = gradients(student, 3, "a leaf of two roots", run) and right
    run = like("c = a * b\ny = c * c", {"a": scalar(), "b": scalar()}, ("y", None), ("y", None))
    right = gradients(student, 3, "a second call adds", run, "a second call must add.") and right
    if right and any(run.own_values) and _has_intermediate_grad(run):
        student.check(0, "intermediate values", True, "", words="they keep a gradient, too, which is allowed")
    g = student.random.normal(size=(m, n))
    run = like("y = a * b + a", {"a": numbers(student, m, n), "b": numbers(student, n)}, ("y", g))
    right = gradients(student, 3, f"`y = a * b + a` of {(m, n)} and {(n,)}, with a gradient", run) and right
    often = often or run.repeated_rule()
    inputs, v = {"a": numbers(student, n), "b": numbers(student, n)}, student.random.normal(size=n)
    run = like("c = a + b", inputs, ("c", v), ("c", v), ("c", v))
    gradients(student, 2, "three calls with `c = a + b`", run, "whose array is `a.grad`?")
    run = like("y = (a * 0.5).sum()", {"a": student.random.integers(1, 9, n)})
    gradients(student, 1, "integers for data", run)

    said = sentence(n)
    answer = value("refused", "y = a * 2", {"a": numbers(student, n)}, "y")
    result = answer.value if isinstance(answer.value, dict) else {}
    raised = result.get("error", "")
    student.check(
        2,
        "several outputs and no gradient",
        raised == "RuntimeError" and said in result.get("words", ""),
        "no error was raised" if not raised else f"raised {raised}: {result.get('words', '')}",
        "which error does gradlab raise there? Raise it with the same first sentence.",
        "refused",
    )
    check_scaling(student, value, right, often)


def check_scaling(student: Student, value, right: bool, often: str) -> None:
    """Check that each rule runs once for any number of paths, and that deep graphs work."""
    what = "each rule runs once: 40 doublings"
    if often:
        student.check(
            2, what, False, f"{often}; 40 doublings have 2^40 paths", "run a value's rule once, when all its shares have arrived."
        )
        student.check(2, "20 000 additions", False, "it is checked once each rule runs once", case="")
        return
    if not right:
        for one in (what, "20 000 additions"):
            student.check(2, one, False, "it counts once the gradients are right", case="")
        return
    for one, kind, count, expected in ((what, "doublings", 40, 2.0**40), ("20 000 additions", "additions", 20_000, 20_001.0)):
        answer = value("long", kind, count)
        result = answer.value if isinstance(answer.value, dict) else {}
        if result.get("deep"):
            words = "right; a graph of 20 000 operations is deeper than Python's stack: keep a list"
            student.check(2, one, False, words, case=answer.case)
        else:
            good, words = compare_arrays(result.get("grad"), np.asarray(expected), 1e-9)
            student.check(2, one, good, words, words=f"{result.get('seconds', 0):.2g} s", case=answer.case)


def sentence(n: int) -> str:
    """Return the first sentence of gradlab's error for several outputs without a gradient."""
    try:
        gl.ones(n, requires_grad=True).exp().backward()
    except RuntimeError as error:
        return str(error).partition(". ")[0]
    return ""


def _has_intermediate_grad(run) -> bool:
    return any(run.grad_in_between(name) for name in run.program.names)


# --------------------------------------------------------------------------------------------------------------------- the loss
def compare_programs(student: Student, points: float, what: str, run, n: int = 0) -> None:
    """Record whether all values and gradients equal gradlab's, or name the first that does not."""
    if run.refusal:
        student.check(points, what, False, run.refusal)
        return
    for name in run.program.names:
        own = run.own_values.get(name)
        good, words = compare_arrays(own, run.values[name], 1e-9)
        if not good:
            hint = diagnose_cotangent(own, run.values[name])
            array = as_array(own)
            if n and array is not None and array.shape == run.values[name].shape and "std" in run.program.text:
                ratio = float(np.linalg.norm(array) / np.linalg.norm(run.values[name]))
                if abs(ratio - np.sqrt((n - 1) / n)) < 1e-9:
                    hint = f"it is too small by the square root of (N-1)/N: gradlab divides by N - 1 (N is {n})."
            student.check(points, what, False, f"`{name}`: {words}", hint)
            return
    for name in (*reversed(run.program.names), *run.program.inputs):
        own, right = run.own_grads.get(name), run.grads.get(name)
        if right is None:
            continue
        good, words = compare_arrays(own, right, 1e-9)
        if own is None:
            good, words = False, "no cotangent has reached it"
        if not good:
            student.check(points, what, False, f"`{name}.grad`: {words}", run.fault(name) or diagnose_cotangent(own, right))
            return
    student.check(points, what, True, "", words=f"{len(run.program.names)} values and their gradients equal gradlab's")


LOSS = """
m1 = x1.mean(0)
s1 = x1.std(0)
z1 = (x1 - m1) / s1
m2 = x2.mean(0)
s2 = x2.std(0)
z2 = (x2 - m2) / s2
c = z1.T @ z2 / {N}
d = c.diagonal()
loss = -d.sum()
"""


@homework.exercise(5, "mean, std, diagonal, and the loss", points=20)
def the_loss(student: Student) -> None:
    like = lambda program, inputs: student.like_gradlab(program, inputs, forbidden=FOREIGN, given=RIGHT)  # noqa: E731
    m, n = (int(k) for k in student.random.permutation([3, 4, 5])[:2])
    draw = lambda *shape: student.random.normal(size=shape)  # noqa: E731
    for points, what, text, shape in (
        (1, "`mean(0)`", "out = a.mean(0)\ny = (out * out).sum()", (m, n)),
        (1, "`mean(1)`", "out = a.mean(1)\ny = (out * out).sum()", (m, n)),
        (1, "`mean()`", "out = a.mean()\ny = out * out", (m, n)),
        (2, "`std(0)`", "out = a.std(0)\ny = (out * out * out).sum()", (m, n)),
        (2, "`std()`", "out = a.std()\ny = out * out", (m,)),
        (3, "`diagonal()`", "out = a.diagonal()\ny = (out * out).sum()", (n, n)),
    ):
        compare_programs(student, points, what, like(text, {"a": draw(*shape)}), shape[0])
    for N in (2, 40):
        compare_programs(student, 5, f"the loss, N = {N}", like(LOSS.format(N=N), {"x1": draw(N, 3), "x2": draw(N, 3)}), N)


# ---------------------------------------------------------------------------------------------------------------- break it
BROKEN = {
    1: "b = a * a\ny = b * 2",
    2: "b = a * 2\ny = b * 3",
    3: "b = a + a\ny = b + b",
    4: "c = a * 2\nd = c * 2\ny = c + d",
    5: "b = a * 5\ny = b * 1 + 4",
}
AT = 3.0


class Number:
    """A number whose autograd has one fault: a share replaces the previous one."""

    def __init__(self, data: float, parents: tuple = (), slopes: tuple = ()) -> None:
        self.data, self.parents, self.slopes, self.grad = data, parents, slopes, 0.0

    def __add__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Number) else Number(other)
        return Number(self.data * other.data, (self, other), (other.data, self.data))

    def backward(self) -> None:
        self.grad = 1.0
        for node in walk(self):
            for parent, slope in zip(node.parents, node.slopes, strict=True):
                parent.grad = node.grad * slope


def faulty_gradient(text: str) -> float:
    """Return a.grad of this autograd."""
    a = Number(AT)
    Program(text)(a).backward()
    return a.grad


@homework.exercise(6, "Break it", points=10)
def break_it(student: Student) -> None:
    said = student.value("broken")
    if said is not None and not isinstance(said, dict):
        raise student.stop("`broken`", f"a dict was expected, got {describe(said)}")
    for number, text in BROKEN.items():
        own, what = (said or {}).get(number), f"program {number}, `{'; '.join(text.splitlines())}`"
        given = as_array(own)
        if given is None or given.ndim:
            answered = (
                "not answered yet"
                if own is None or describe(own) == "an ellipsis"
                else f"a number was expected, got {describe(own)}"
            )
            student.check(2, what, False, answered)
            continue
        expected = faulty_gradient(text)
        a = gl.tensor(AT, dtype=gl.float64, requires_grad=True)
        Program(text)(a).backward()
        usual = float(a.grad)
        words = "that is the result if shares are added" if abs(float(given) - usual) < 1e-9 else "that is not the result"
        student.check(
            2,
            what,
            abs(float(given) - expected) < 1e-9,
            words,
            "use `=` in your own `backward`, and run it: where do two shares meet?",
        )

"""The checks of homework 1: reading a graph, its nodes and its leaves, repairing a cut graph, and a backward pass by hand.

Graphs are built from random recipes, from which the right answer is known. Gradients are compared with difference quotients, and
those of exercise 5, step by step, with the retained gradient of each tensor.
"""

import warnings

import numpy as np

import gradlab as gl
from gradlab.homework import Homework, Student, central_differences
from gradlab.homework.cotangents import diagnose_cotangent
from gradlab.homework.student import Stopped
from gradlab.homework.verdicts import as_array, compare_arrays, describe

homework = Homework("Homework 1, read the graph")

AUTOGRAD = (
    "gradlab.Tensor.backward",
    "gradlab.autograd.grad",
    "gradlab.autograd.backward",
    "gradlab.autograd.functional",
    "gradlab.func",
    "gradlab.jacobian",
    "gradlab.hessian",
)


# --------------------------------------------------------------------------------------------------------------- ten lines
RULES = {
    "a": "when a result requires a gradient: one operand that does is enough.",
    "b": "which `.grad` is filled: only that of leaves that require a gradient.",
    "c": "what a leaf is: a tensor that is not the result of a recorded operation.",
    "d": "which numbers can have a gradient: only floating-point numbers.",
    "e": "which operations are recorded: those with an operand that requires a gradient.",
    "f": "what `backward` stores on intermediate tensors.",
    "g": "what `detach` returns: a tensor without history.",
    "h": "how a node is named: after the operation in the code.",
    "i": "what `x.grad` holds: the derivative of the tensor on which `backward` was called.",
    "j": "how often `next_functions` lists a parent: once for each operand.",
}


def ten_lines() -> dict:
    """Run the notebook's lines, and return their results."""
    x = gl.tensor([1.0, 2.0, 3.0], requires_grad=True)
    w = gl.tensor([2.0, 2.0, 2.0])
    n = gl.tensor([1, 2, 3])
    h = x * w
    h.sum().backward()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "a": h.requires_grad,
            "b": w.grad,
            "c": h.is_leaf,
            "d": (x > 1).requires_grad,
            "e": n.float().is_leaf,
            "f": h.grad,
            "g": x.detach().requires_grad,
            "h": (x**3).grad_fn.name(),
            "i": x.grad,
            "j": len((h * h).grad_fn.next_functions),
        }


def is_same(said: object, right: object) -> bool:
    """Return whether an answer equals a result or its printed text."""
    if isinstance(right, gl.Tensor):
        array = as_array(said)
        good = array is not None and array.shape == right.shape and np.allclose(array, np.asarray(right))
    elif isinstance(right, bool) or right is None:
        good = said is right
    else:
        good = type(said) is not bool and isinstance(said, type(right)) and said == right
    return good or (isinstance(said, str) and _normalize_text(said) == _normalize_text(right))


def _normalize_text(thing: object) -> str:
    return "".join(str(thing).split()).lower()


@homework.exercise(1, "Ten lines", points=20)
def lines(student: Student) -> None:
    said = student.value("answers")
    if said is not None and not isinstance(said, dict):
        raise student.stop("`answers`", f"a dict was expected, got {describe(said)}")
    for key, right in ten_lines().items():
        own = (said or {}).get(key, ...)
        if own is ... or describe(own) == "an ellipsis":
            student.check(2, f"line {key}", False, "not answered yet")
        else:
            student.check(2, f"line {key}", is_same(own, right), "the line prints something else", f"read again {RULES[key]}")


# ------------------------------------------------------------------------------------------------------------------ graphs
def leaf(student: Student, wanted: bool = True) -> list:
    return ["leaf", student.random.uniform(0.5, 1.5, 3), wanted]


def tangle(student: Student) -> list:
    """Return a recipe of three leaves and about ten operations on random operands; the last ones join unused results."""
    recipe = [leaf(student), leaf(student, wanted=False), leaf(student), ["mul", 0, 1]]
    used = set()
    for _ in range(7):
        i, j = (int(k) for k in student.random.integers(max(0, len(recipe) - 4), len(recipe), 2))
        recipe.append([str(student.random.choice(["add", "mul", "sub"])), i, j])
        used |= {i, j}
    for k in range(3, len(recipe)):
        if k not in used and k != len(recipe) - 1:
            recipe.append(["add", len(recipe) - 1, k])
    return [*recipe, ["add", len(recipe) - 1, 0]]


def is_recorded(recipe: list) -> list:
    """Return for each step whether it is in the graph: a leaf that requires grad, or an operation on one in the graph."""
    on = []
    for operation, *args in recipe:
        of = [args[0]] if operation == "times" else args
        on.append(args[1] if operation == "leaf" else operation != "detach" and any(on[k] for k in of))
    return on


def operands(recipe: list, on: list, k: int) -> list:
    operation, *args = recipe[k]
    of = [] if operation == "leaf" else args[:1] if operation == "times" else args
    return [j for j in of if on[j]]


def reachable_steps(recipe: list) -> set:
    """Return the steps in the graph of the last one."""
    on, found, todo = is_recorded(recipe), set(), [len(recipe) - 1]
    while todo:
        if (k := todo.pop()) not in found:
            found.add(k)
            todo += operands(recipe, on, k)
    return found


def count_variants(recipe: list) -> dict:
    """Return the number of nodes, and the results of common wrong ways to count."""
    on, found = is_recorded(recipe), reachable_steps(recipe)
    many = lambda k: recipe[k][3] if recipe[k][0] == "times" else int(recipe[k][0] != "leaf")  # noqa: E731
    right = sum(many(k) for k in found)
    paths, with_leaves = {}, {}
    for k in range(len(recipe)):
        of = operands(recipe, on, k)
        paths[k] = many(k) + sum(paths[j] for j in of) if on[k] else 0
        with_leaves[k] = (1 if recipe[k][0] == "leaf" else many(k)) + sum(with_leaves[j] for j in of) if on[k] else 0
    leaves = sum(recipe[k][0] == "leaf" for k in found)
    last = len(recipe) - 1
    return {"right": right, "paths": paths[last], "leaves": right + leaves, "both": with_leaves[last]}


def explain_count(got: object, recipe: list, what: str) -> str:
    """Return the cause of a wrong number of nodes, or ""."""
    its = count_variants(recipe)
    array = as_array(got)
    if array is None or array.ndim or array != np.round(array):
        return f"a number was expected, got {'None' if got is None else describe(got)}"
    got = int(array)
    if got == its["right"]:
        return ""
    said = f"{got} for {what} of {its['right']}"
    if got == its["leaves"]:
        return f"{said}: one too many for each leaf. AccumulateGrad is not an operation"
    if got == its["both"] != its["paths"]:
        return f"{said}: shared nodes and the AccumulateGrad of leaves were counted once for each path"
    if got == its["paths"]:
        return (
            f"{said}: the shared node was counted twice"
            if its["paths"] - its["right"] == 1
            else f"{said}: it counts paths, not nodes"
        )
    if got == its["right"] - 1:
        return f"{said}: one is missing. Is it the node of y itself?"
    return said


GRAPHS = "`next_functions` lists the parent nodes; how do you know which nodes you have visited?"


@homework.exercise(2, "Each operation once", points=15)
def nodes(student: Student) -> None:
    count = student.function("count_nodes", way="graph", late="is a node visited again for every path?")
    chain = [leaf(student), ["exp", 0], ["sin", 1], ["times", 2, 2.0, int(student.random.integers(3, 7))]]
    diamond = [leaf(student), leaf(student), ["mul", 0, 1], ["sin", 2], ["cos", 2], ["mul", 3, 4]]
    shared = [leaf(student), leaf(student, wanted=False), ["mul", 1, 1], ["mul", 0, 2], ["sin", 3], ["add", 3, 4], ["mul", 5, 3]]
    shared.append(["times", 6, 0.5, int(student.random.integers(2, 6))])
    roots = [leaf(student), leaf(student), ["mul", 0, 1], ["exp", 2], ["add", 2, 0], ["sin", 4], ["add", 3, 5]]
    right = True
    for points, what, recipe in (
        (2, "a chain", chain),
        (3, "a diamond", diamond),
        (2, "a shared parent, and an operation that is not recorded", shared),
        (2, "two roots joined", roots),
        (3, "a tangle", tangle(student)),
    ):
        answer = count(recipe, {})
        result = answer.value if isinstance(answer.value, dict) else {}
        wrong = explain_count(result.get("value"), recipe, what if what in ("a chain", "a diamond") else "a graph")
        right = student.check(points, what, not wrong, wrong, GRAPHS, case=answer.case) and right
    deep = [leaf(student), ["times", 0, 1.0, 10_000]]
    answer = count(deep, {})
    result = answer.value if isinstance(answer.value, dict) else {}
    words = explain_count(result.get("value"), deep, "a chain")
    if result.get("deep"):
        words = "right; a graph of 10 000 operations is deeper than Python's stack: keep a list"
    student.check(
        3,
        "10 000 operations, one after the other",
        right and not words and not result.get("deep"),
        words if right else "it counts once the others are right",
        "keep a list of the nodes to visit instead of recursion." if right else "",
        case=answer.case if right else "",
    )


@homework.exercise(3, "Which tensors get a gradient", points=15)
def leaves(student: Student) -> None:
    function = student.function("leaves", way="graph")
    two = ([leaf(student), leaf(student), ["mul", 0, 1], ["exp", 2]], "ab")
    again = ([leaf(student), leaf(student), ["mul", 0, 1], ["add", 2, 0], ["mul", 3, 2]], "ab")
    frozen = ([leaf(student), leaf(student, wanted=False), leaf(student), ["mul", 0, 1], ["mul", 3, 2]], "abc")
    cut = ([leaf(student), leaf(student), ["exp", 1], ["detach", 2], ["mul", 0, 3]], "ab")
    drawn = (tangle(student), "abc")
    for points, what, (recipe, names) in (
        (3, "two leaves", two),
        (3, "leaves that are used again", again),
        (4, "a frozen leaf among them", frozen),
        (2, "a leaf behind a `detach`", cut),
        (3, "a tangle", drawn),
    ):
        answer = function(recipe, dict(zip(names, range(len(names)), strict=True)))
        result = answer.value if isinstance(answer.value, dict) else {}
        wrong, hint = explain_leaves(result, recipe, names)
        student.check(points, what, not wrong, wrong, hint, case=answer.case)


def explain_leaves(result: dict, recipe: list, names: str) -> tuple[str, str]:
    """Return what is wrong with a list of leaves, and a hint."""
    if result.get("deep"):
        return "it recursed deeper than Python's stack", "keep a list of the nodes to visit."
    came = result.get("value")
    if not isinstance(came, list):
        return f"a list of tensors was expected, got {'None' if came is None else describe(came)}", ""
    right = [k for k in sorted(reachable_steps(recipe)) if recipe[k][0] == "leaf"]
    got = [one["step"] if isinstance(one, dict) and "step" in one else None for one in came]
    name = lambda k: f"`{names[k]}`" if k < len(names) else "y" if k == len(recipe) - 1 else "an intermediate tensor"  # noqa: E731
    if None in got:
        kind = came[got.index(None)]
        return (
            f"it has {describe(kind)} that is not one of the graph's tensors",
            "`AccumulateGrad` holds its tensor as `variable`.",
        )
    if frozen := [k for k in got if recipe[k][0] == "leaf" and not recipe[k][2]]:
        return (
            f"{name(frozen[0])} is in the list, but does not require a gradient",
            "only leaves that require grad have a node.",
        )
    if wrong := [k for k in got if k not in right]:
        return f"{name(wrong[0])} is in the list, but gets no gradient", "of which tensors does `backward` fill `.grad`?"
    if twice := [k for k in got if got.count(k) > 1]:
        return f"{name(twice[0])} is in the list {got.count(twice[0])} times", "how do you know which nodes you have visited?"
    if missing := [k for k in right if k not in got]:
        return f"{name(missing[0])} is missing", "follow every entry of `next_functions`, to its end."
    return "", ""


# ----------------------------------------------------------------------------------------------------------------- repairs
BROKEN = {
    "broken_int": '''
def broken_int(numbers=(1, 2, 3)):
    """The gradient of the sum of cubes."""
    x = gl.tensor(numbers, requires_grad=True)
    loss = (x**3).sum()
    loss.backward()
    return x.grad
''',
    "broken_middle": '''
def broken_middle(numbers=(1.0, 2.0, 3.0)):
    """The gradients of the loss by x and by h."""
    x = gl.tensor(numbers, requires_grad=True)
    h = x.exp()
    loss = (h * x).sum()
    loss.backward()
    return x.grad, h.grad
''',
    "broken_leaf": '''
def broken_leaf(numbers=(1.0, -2.0)):
    """x after five steps of gradient descent, ready for the sixth."""
    x = gl.tensor(numbers, requires_grad=True)
    for step in range(5):
        x.grad = None
        loss = (x**4).sum()
        loss.backward()
        x = x - 0.01 * x.grad
    return x
''',
    "broken_item": '''
def broken_item(numbers=(1.0, 2.0, 3.0)):
    """The gradient of the mean of squares."""
    x = gl.tensor(numbers, requires_grad=True)
    total = 0.0
    for one in x:
        total += (one**2).item()
    loss = gl.tensor(total / len(numbers))
    loss.backward()
    return x.grad
''',
}
MAX_LINES = 2  # lines


def derivative(f, at: list) -> np.ndarray:
    return central_differences(f, gl.tensor(at, dtype=gl.float64))[0]


def five_steps(at: list) -> np.ndarray:
    x = np.array(at, float)
    for _ in range(5):
        x = x - 0.01 * derivative(lambda t: (t**4).sum().reshape(1), list(x))
    return x


@homework.exercise(4, "Four repairs", points=20)
def repairs(student: Student) -> None:
    for name, original in BROKEN.items():
        whole = name == "broken_int"
        n = int(student.random.integers(2, 5))
        drawn = student.random.integers(2, 6, n) if whole else student.random.uniform(0.5, 1.5, n)
        at = [int(k) if whole else float(k) for k in drawn]
        try:
            answer = student.function(name, way="repair")(original, at)
        except Stopped:  # recorded; the others are still checked
            continue
        result = answer.value if isinstance(answer.value, dict) else {}
        wrong, hint = explain_repair(name, result, at)
        student.check(3, f"`{name}`", not wrong, wrong, hint)
        changed = result.get("lines")
        words = (
            "it counts once the function is right"
            if wrong
            else "its source cannot be read"
            if changed is None
            else f"{changed} lines were changed"
        )
        student.check(
            2, f"`{name}`, in at most {MAX_LINES} lines", not wrong and changed is not None and changed <= MAX_LINES, words
        )


def explain_repair(name: str, result: dict, at: list) -> tuple[str, str]:
    """Return what is wrong with a repair, and a hint."""
    value = result.get("value")
    if name == "broken_middle":
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            return f"two gradients were expected, got {describe(value)}", ""
        of_h = lambda h: (h * gl.tensor(at, dtype=gl.float64)).sum().reshape(1)  # noqa: E731
        for one, got, right in (
            ("x", value[0], derivative(lambda t: (t.exp() * t).sum().reshape(1), at)),
            ("h", value[1], derivative(of_h, list(np.exp(at)))),
        ):
            if got is None:
                return (
                    f"`{one}.grad` is None",
                    "`backward` keeps the gradient of an intermediate tensor only after `retain_grad`.",
                )
            good, words = compare_arrays(got, right, 1e-4)
            if not good:
                hint = "x is reached by two paths: is one of them cut?" if one == "x" else ""
                return f"`{one}.grad`: {words}", diagnose_cotangent(got, right) or hint
        return "", ""
    if name == "broken_leaf":
        good, words = compare_arrays(value, five_steps(at), 1e-4)
        if value is not None and good and not result.get("leaf"):
            return (
                "each step creates a new x, which is not a leaf; `x.grad` belongs to the first one",
                "the step itself must not be recorded.",
            )
        return ("", "") if good else (words, "one step is x - 0.01 times the gradient at that x alone.")
    f = (lambda t: (t**3).sum().reshape(1)) if name == "broken_int" else (lambda t: (t * t).mean().reshape(1))
    right = derivative(f, at)
    if value is None and name == "broken_item":
        return (
            "`x.grad` is None: `backward` runs, but no path leads back to x",
            "`item()` returns a Python number: does it have a history?",
        )
    if value is None:
        return "`x.grad` is None", "which leaf's `.grad` has `backward` filled?"
    good, words = compare_arrays(value, right, 1e-4)
    return ("", "") if good else (words, diagnose_cotangent(value, right))


# ----------------------------------------------------------------------------------------------------------------- by hand
STEPS = ("loss", "r", "d", "a", "h", "p", "x", "w", "b", "t")


def forward(x, w, b, t) -> dict:
    """Run the chain of six. Return all its tensors."""
    p = x @ w
    h = p + b
    a = h.tanh()
    d = a - t
    r = (d * d).sum(1)
    loss = r.mean()
    return {"loss": loss, "r": r, "d": d, "a": a, "h": h, "p": p, "x": x, "w": w, "b": b, "t": t}


def reference_gradients(given: list) -> dict:
    """Return gradlab's gradient at each tensor of the chain."""
    made = forward(*(tensor.detach().clone().requires_grad_() for tensor in given))
    for tensor in made.values():
        tensor.retain_grad()
    made["loss"].backward()
    return {name: np.asarray(tensor.grad) for name, tensor in made.items()}


def expected_from_own(given: list, own: dict) -> dict:
    """Return the result of each single backward step, computed from the student's own gradient."""
    made = {name: np.asarray(tensor) for name, tensor in forward(*given).items()}
    g = {name: as_array(own.get(name)) for name in STEPS}
    fits = {name: g[name] is not None and g[name].shape == made[name].shape for name in STEPS}
    n = len(made["r"])
    steps = {
        "r": ("loss", lambda g: np.full(n, g / n)),
        "d": ("r", lambda g: 2 * made["d"] * g[:, None]),
        "a": ("d", lambda g: g),
        "h": ("a", lambda g: g * (1 - made["a"] ** 2)),
        "p": ("h", lambda g: g),
        "x": ("p", lambda g: g @ made["w"].T),
        "w": ("p", lambda g: made["x"].T @ g),
        "b": ("h", lambda g: g.sum(0)),
        "t": ("d", lambda g: -g),
    }
    return {name: (of, step(g[of])) for name, (of, step) in steps.items() if fits[of]}


@homework.exercise(5, "A chain of six by hand", points=30)
def by_hand(student: Student) -> None:
    function = student.function("backward_by_hand", forbidden=AUTOGRAD, names=("x", "w", "b", "t"))
    for rows in (5, int(student.random.choice([2, 6, 7]))):
        inner, columns = (2, 3) if rows == 5 else (int(k) for k in student.random.permutation([1, 3, 4])[:2])
        draw = lambda *shape: gl.tensor(student.random.normal(size=shape))  # noqa: E731
        given = [draw(rows, inner), draw(inner, columns), draw(columns), draw(rows, columns)]
        expected = reference_gradients(given)
        answer = function(*given)
        own = answer.value
        if own is not None and not isinstance(own, dict):
            raise student.stop("`backward_by_hand`", f"a dict was expected, got {describe(own)}")
        if own is None:
            own = {}
        follows = expected_from_own(given, own)
        for name in STEPS:
            step(student, name, own, expected[name], follows.get(name), f"{rows} rows: " if rows != 5 else "", answer.case)
        if answer.changed:
            student.check(0, "the inputs are unchanged", False, f"an input was modified: {answer.changed} (no points lost here)")


def step(student: Student, name: str, own: dict, right: np.ndarray, follows, where: str, case: str) -> None:
    """Record one gradient. A right step from a wrong gradient gets half of the points."""
    what = f"{where}`{name}`"
    if name not in own:
        student.check(1.5, what, False, "it is not in the dict", case=case)
        return
    good, words = compare_arrays(own[name], right, 1e-6)
    if not good and follows is not None and compare_arrays(own[name], follows[1], 1e-6)[0]:
        student.check(0.75, what, True, "", words=f"a right step from your `{follows[0]}`, which is wrong: half of the points")
        return
    student.check(1.5, what, good, words, diagnose_cotangent(own[name], right), words, case)

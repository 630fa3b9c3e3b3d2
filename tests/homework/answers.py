"""Answers to homework 3 as they are typed in: right ones in unusual ways, and wrong ones in likely ones, each with the points
that it is worth and a sentence that its verdict says. A name, the exercise, the cells, the points, the sentence (none where
all is right)."""

from __future__ import annotations

from typing import NamedTuple

from homework.submissions import (
    ALWAYS_ROWS,
    BORROWS,
    FORGETS_TO_ZERO,
    HARD_CODED,
    ONE_AT_A_TIME,
    QUOTED,
    RIGHT,
)


class Typed(NamedTuple):
    """An answer."""

    name: str
    exercise: int
    cells: list[str]
    points: float
    says: str = ""


ROWS, COLUMNS, MIXES, CHOICE, LAST = (RIGHT[f"answer{n}"] for n in range(1, 6))


def rows(old: str, new: str, *more: str) -> list[str]:
    """The solution by rows with something replaced."""
    return [_replace_in(ROWS, old, new, *more)]


def columns(old: str, new: str, *more: str) -> list[str]:
    return [_replace_in(COLUMNS, old, new, *more)]


def _replace_in(text: str, *pairs: str) -> str:
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return text


def by_rows(body: str) -> list[str]:
    """A function by rows with another body."""
    return ["def jacobian_by_rows(f, x):\n" + "\n".join(f"    {line}" for line in body.strip("\n").splitlines())]


def by_columns(body: str) -> list[str]:
    return [text.replace("by_rows", "by_columns") for text in by_rows(body)]


CENTRAL = """
import numpy as np

def differences(f, x, h=1e-6):
    flat, made = x.detach().reshape(-1), []
    for j in range(flat.numel()):
        e = gl.zeros_like(flat)
        e[j] = h
        made.append((f((flat + e).reshape(x.shape)) - f((flat - e).reshape(x.shape))) / (2 * h))
    return gl.stack(made, dim=1).detach()
"""
ONE_SIDED = by_columns("""
y, made = f(x), []
for j in range(len(x)):
    e = gl.zeros_like(x)
    e[j] = 1e-7
    made.append((f(x + e) - y) / 1e-7)
return gl.stack(made, dim=1)
""")
IDLE = [
    CENTRAL,
    *by_rows("""
x = x.detach().clone().requires_grad_()
y = f(x)
for i in range(len(y)):
    y.backward(gl.zeros_like(y), retain_graph=True)
return differences(f, x)
"""),
]
COPIED = [
    """
from gradlab.homework import central_differences

def jacobian_by_rows(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    for i in range(len(y)):
        y[i].backward(retain_graph=True)
    return gl.tensor(central_differences(f, x))
"""
]
SPLIT_NAME = by_rows("""
return eval("gl.auto" + "grad.func" + "tional.jaco" + "bian")(f, x).reshape(-1, x.numel())
""")

# The table of the course's design: answers as typed, and the expected verdict.
# fmt: off
TABLE = [
    Typed("a local variable called jacobian", 1, rows("rows = []", "jacobian = []", "rows.append", "jacobian.append",
                                                      "gl.stack(rows)", "gl.stack(jacobian)"), 30),
    Typed("a helper called vjp", 1, ["""
def vjp(y, x, v):
    x.grad = None
    y.backward(v, retain_graph=True)
    return x.grad.reshape(-1)
""", *by_rows("""
x = x.detach().clone().requires_grad_()
y = f(x)
return gl.stack([vjp(y, x, v) for v in gl.eye(len(y), dtype=y.dtype)])
""")], 30),
    Typed("a list of tensors", 1, rows("gl.stack(rows)", "rows"), 0, "a list of 2 tensors: combine them with `gl.stack`"),
    Typed("central differences", 1, [CENTRAL, *by_rows("return differences(f, x)")], 4,
          "no sweep reached x: these are difference quotients"),
    Typed("central differences with idle backward calls", 1, IDLE, 4, "these are difference quotients"),
    Typed("the library's central_differences with idle backward calls", 1, COPIED, 4, "these are difference quotients"),
    Typed("one-sided differences", 2, ONE_SIDED, 6, "no sweep: these are difference quotients"),
    Typed("the library's Jacobian in exercise 4", 4, ["def jacobian(f, x):\n    return gl.autograd.functional.jacobian(f, x)"], 0,
          "it uses `gl.autograd.functional.jacobian`"),
    Typed("the input overwritten", 1, rows("    return gl.stack", "    given[...] = 0\n    return gl.stack",
                                           "    x = x.detach()", "    given = x.detach()\n    x = x.detach()"), 26,
          "x itself was modified"),
    Typed("requires_grad set", 1, rows("    x = x.detach()", "    x.requires_grad_()\n    x = x.detach()"), 26,
          "x itself was modified: its `requires_grad`"),
    Typed("v kept between rows", 1, rows("    for i in range(len(y)):\n        v = gl.zeros_like(y)\n",
                                         "    v = gl.zeros_like(y)\n    for i in range(len(y)):\n"), 0,
          "either `x.grad` or v still holds the previous rows"),
    Typed("rows shifted by one", 1, rows("v[i] = 1", "v[i - 1] = 1"), 0, "your row i is row i - 1"),
    Typed("an axis too many", 1, rows("x.grad.reshape(-1)", "x.grad.reshape(-1, 1)"), 0,
          "the numbers are right, but with an extra axis of length 1"),
    Typed("[0] forgotten", 3, [MIXES.replace("is_grads_batched=True)[0]", "is_grads_batched=True)")], 0,
          "a tuple of 1 tensor: use its first element, `[0]`"),
    Typed("the pair forgotten", 2, columns("(u,))[1]", "(u,))[0]"), 0, "each of your columns is f(x) itself"),
    Typed("u kept", 2, columns("    for j in range(len(x)):\n        u = gl.zeros_like(x)\n",
                               "    u = gl.zeros_like(x)\n    for j in range(len(x)):\n"), 0,
          "your column j is the sum of the columns 0 to j: u still holds the previous directions"),
    Typed("twice the value", 1, rows("v[i] = 1", "v[i] = 2"), 0, "every entry is 2 times the right one"),
    Typed("a constant matrix", 1, by_rows("return gl.ones(len(f(x)), x.numel(), dtype=x.dtype)"), 0,
          "it counts once the numbers are right"),
    Typed("code below the line that is to go", 1, rows("    x = x.detach()",
                                                       "    # YOUR CODE HERE\n    raise NotImplementedError()\n"
                                                      "    x = x.detach()"), 0,
          "the line `raise NotImplementedError()` is still above your code"),
    Typed("a slip in exercise 1 is paid once", 4, [FORGETS_TO_ZERO, COLUMNS, CHOICE], 15),
    Typed("exercise 4 by rows alone", 4, [ROWS, ALWAYS_ROWS], 10.5, "rows swept backward"),
]
# fmt: on

# Right, in unusual ways.
RIGHT_TOO = [
    Typed(
        "y[i].backward()",
        1,
        by_rows("""
x = x.detach().clone().requires_grad_()
y, made = f(x), []
for i in range(y.numel()):
    x.grad = None
    y[i].backward(retain_graph=True)
    made.append(x.grad.clone().flatten())
return gl.stack(made)
"""),
        30,
    ),
    Typed(
        "autograd.grad of each element",
        1,
        by_rows("""
x = x.detach().requires_grad_()
return gl.cat([gl.autograd.grad(one, x, retain_graph=True)[0].reshape(1, -1) for one in f(x)])
"""),
        30,
    ),
    Typed(
        "with the rows of the identity",
        1,
        by_rows("""
leaf = gl.tensor(x.tolist(), dtype=x.dtype, requires_grad=True)
y = f(leaf)
J = gl.zeros(y.shape[0], leaf.numel(), dtype=y.dtype)
for i, e in enumerate(gl.eye(y.shape[0], dtype=y.dtype)):
    J[i] = gl.autograd.grad(y, leaf, e, retain_graph=True)[0].reshape(-1)
return J
"""),
        30,
    ),
    Typed(
        "f called again for each row",
        1,
        by_rows("""
m, made = len(f(x)), []
for i in range(m):
    leaf = x.detach().clone().requires_grad_()
    f(leaf)[i].backward()
    made.append(leaf.grad.reshape(-1))
return gl.stack(made)
"""),
        30,
    ),
    Typed(
        "zeroed in place, copied",
        1,
        rows("x.grad = None\n", "x.grad = gl.zeros_like(x)\n", "x.grad.reshape(-1)", "x.grad.clone().reshape(-1)"),
        30,
    ),
    Typed("v of Python numbers", 1, rows("v = gl.zeros_like(y)", "v = [0.0] * len(y)"), 30),
    Typed("the result requires grad", 1, rows("gl.stack(rows)", "gl.stack(rows).requires_grad_()"), 30),
    Typed(
        "create_graph",
        1,
        by_rows("""
x = x.detach().clone().requires_grad_()
y = f(x)
return gl.stack([gl.autograd.grad(y[i], x, create_graph=True)[0].reshape(-1) for i in range(len(y))])
"""),
        30,
    ),
    Typed("a NumPy array", 1, rows("return gl.stack(rows)", "return gl.stack(rows).numpy()"), 30),
    Typed("in float32", 1, rows("x = x.detach().clone()", "x = x.detach().float()"), 30),
    Typed(
        "a generator inside",
        1,
        by_rows("""
def each():
    leaf = x.detach().clone().requires_grad_()
    y = f(leaf)
    for i in range(len(y)):
        yield gl.autograd.grad(y[i], leaf, retain_graph=True)[0].reshape(-1)
return gl.stack(list(each()))
"""),
        30,
    ),
    Typed(
        "recursion",
        1,
        by_rows("""
leaf = x.detach().clone().requires_grad_()
y = f(leaf)
def below(i):
    if i == len(y):
        return []
    leaf.grad = None
    y[i].backward(retain_graph=True)
    return [leaf.grad.reshape(-1), *below(i + 1)]
return gl.stack(below(0))
"""),
        30,
    ),
    Typed(
        "a lambda",
        1,
        [
            """
leaf_of = lambda x: x.detach().clone().requires_grad_()
each = lambda y, x: [gl.autograd.grad(y[i], x, retain_graph=True)[0].reshape(-1) for i in range(len(y))]
jacobian_by_rows = lambda f, x: (lambda leaf: gl.stack(each(f(leaf), leaf)))(leaf_of(x))
"""
        ],
        30,
    ),
    Typed(
        "a class that can be called",
        1,
        [
            """
class Rows:
    def __call__(self, f, x):
        x = x.detach().clone().requires_grad_()
        y = f(x)
        return gl.stack([gl.autograd.grad(y, x, e, retain_graph=True)[0].reshape(-1) for e in gl.eye(len(y), dtype=y.dtype)])

jacobian_by_rows = Rows()
"""
        ],
        30,
    ),
    Typed(
        "gl.func.grad of each output",
        1,
        by_rows("""
return gl.stack([gl.func.grad(lambda t: f(t)[i])(x.detach()).reshape(-1) for i in range(len(f(x)))])
"""),
        30,
    ),
    Typed(
        "deepcopy, and printing",
        1,
        ["import copy\n" + rows("x = x.detach().clone()", "print('rows')\n    x = copy.deepcopy(x.detach())")[0]],
        30,
    ),
    Typed(
        "under no_grad, with a block that records",
        1,
        by_rows("""
with gl.no_grad():
    with gl.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        y = f(leaf)
    J = gl.empty(len(y), x.numel(), dtype=y.dtype)
    for i in range(len(y)):
        J[i] = gl.autograd.grad(y, leaf, gl.eye(len(y), dtype=y.dtype)[i], retain_graph=True)[0].flatten()
    return J
"""),
        30,
    ),
    Typed(
        "the dual numbers of forward_ad",
        2,
        [
            "import gradlab.autograd.forward_ad as fwAD\n"
            + by_columns("""
made = []
for e in gl.eye(len(x), dtype=x.dtype):
    with fwAD.dual_level():
        made.append(fwAD.unpack_dual(f(fwAD.make_dual(x, e))).tangent)
return gl.stack(made, dim=1)
""")[0]
        ],
        20,
    ),
    Typed("transposed at the end", 2, columns("dim=1)", "dim=0).T"), 20),
    Typed(
        "columns written into a matrix",
        2,
        by_columns("""
J = None
for j in range(x.numel()):
    u = gl.tensor([float(i == j) for i in range(x.numel())], dtype=x.dtype)
    y, column = gl.func.jvp(f, (x,), (u,))
    J = gl.zeros(y.numel(), x.numel(), dtype=x.dtype) if J is None else J
    J[:, j] = column
return J
"""),
        20,
    ),
    Typed(
        "functional.jvp",
        2,
        by_columns("""
return gl.stack([gl.autograd.functional.jvp(f, x, u)[1] for u in gl.eye(len(x), dtype=x.dtype)], dim=1)
"""),
        20,
    ),
    Typed(
        "a comprehension in between",
        2,
        by_columns("""
basis = [gl.nn.functional.one_hot(gl.tensor(j), len(x)).to(x.dtype) for j in range(len(x))]
return gl.stack([gl.func.jvp(f, (x,), (u,))[1] for u in basis], -1)
"""),
        20,
    ),
    Typed(
        "a batch of weights by keyword",
        3,
        [
            """
def mixes(f, x, V):
    leaf = x.detach().clone()
    leaf.requires_grad = True
    (made,) = gl.autograd.grad(outputs=[f(leaf)], inputs=[leaf], grad_outputs=[V], is_grads_batched=True)
    return made.detach()
"""
        ],
        20,
    ),
    Typed(
        "x.requires_grad_ on the input itself costs nothing in exercise 3",
        3,
        ["def mixes(f, x, V):\n    x.requires_grad_()\n    return gl.autograd.grad(f(x), x, V, is_grads_batched=True)[0]"],
        20,
    ),
    Typed(
        "the choice by two lines",
        4,
        [
            ROWS,
            COLUMNS,
            (
                "def jacobian(f, x):\n    m, n = f(x).numel(), x.numel()\n"
                "    return (jacobian_by_rows if m <= n else jacobian_by_columns)(f, x)"
            ),
        ],
        15,
    ),
    Typed(
        "the choice without the two functions",
        4,
        [
            """
def jacobian(f, x):
    leaf = x.detach().clone().requires_grad_()
    y = f(leaf)
    if len(y) < len(x):
        return gl.stack([gl.autograd.grad(y[i], leaf, retain_graph=True)[0] for i in range(len(y))])
    return gl.stack([gl.func.jvp(f, (x,), (e,))[1] for e in gl.eye(len(x), dtype=x.dtype)], dim=1)
"""
        ],
        15,
    ),
    Typed(
        "the sum through a loss",
        5,
        [
            """
def sum_of_rows(f, x):
    x = x.detach().clone().requires_grad_()
    f(x).sum().backward()
    return x.grad
""",
            LAST.partition("def message")[1] + LAST.partition("def message")[2],
        ],
        15,
    ),
    Typed(
        "str of a saved exception",
        5,
        [
            """
def sum_of_rows(f, x):
    x = x.detach().requires_grad_()
    return gl.autograd.grad(f(x).sum(), x)[0]

def message_of_the_second_call(f, x):
    x = x.detach().requires_grad_()
    y = f(x).sum()
    y.backward()
    said = ""
    try:
        y.backward()
    except RuntimeError as error:
        said = f"{error}"
    finally:
        return said
"""
        ],
        15,
    ),
]

# Wrong, in likely ways.
WRONG = [
    Typed("forgets to zero", 1, [FORGETS_TO_ZERO], 0, "your row i is the sum of the rows 0 to i"),
    Typed("forgets retain_graph", 1, rows(", retain_graph=True", ""), 0, "backward through the graph a second time"),
    Typed("forgets the weights", 1, rows("y.backward(v, ", "y.backward("), 0, "grad can be implicitly created only for scalar"),
    Typed("weights of ones", 1, rows("v = gl.zeros_like(y)", "v = gl.ones_like(y)"), 0, "all your rows are the sum of all rows"),
    Typed(
        "keeps no copy",
        1,
        rows("x.grad = None", "\n        if x.grad is not None: x.grad.zero_()"),
        0,
        "all your rows are the last one",
    ),
    Typed("transposed", 1, rows("return gl.stack(rows)", "return gl.stack(rows).T"), 0, "it is the transpose"),
    Typed("one long row", 1, rows("return gl.stack(rows)", "return gl.cat(rows)"), 0, "in one long row"),
    Typed("no return", 1, rows("return gl.stack(rows)", "gl.stack(rows)"), 0, "Does it end with `return`?"),
    Typed(
        "works on the caller's tensor",
        1,
        rows("x = x.detach().clone().requires_grad_()", "x.requires_grad_()"),
        26,
        "x itself was modified: its `.grad`",
    ),
    Typed("keeps the shape of x", 1, rows("x.grad.reshape(-1)", "x.grad"), 26, "the numbers are right: reshape them to (2, 6)"),
    Typed("forgets requires_grad", 1, rows(".requires_grad_()", ""), 0, "does not require grad"),
    Typed("not written", 1, ["def jacobian_by_rows(f, x):\n    raise NotImplementedError()\n"], 0, "not written yet"),
    Typed("no such name", 1, ["def jacobian_rows(f, x):\n    pass\n"], 0, "this name is not defined"),
    Typed("a name for something else", 1, ["jacobian_by_rows = 3"], 0, "a function was expected, got an int"),
    Typed("borrows", 1, [BORROWS], 0, "it uses `gl.autograd.functional.jacobian`"),
    Typed(
        "borrows by another name",
        1,
        ["import gradlab.autograd.functional as F\nJ = F.jacobian\ndef jacobian_by_rows(f, x):\n    return J(f, x)"],
        0,
        "it uses `gl.autograd.functional.jacobian`",
    ),
    Typed(
        "borrows through a helper",
        1,
        [("def helper(f, x):\n    return gl.func.jacrev(f)(x)\ndef jacobian_by_rows(f, x):\n    return helper(f, x)")],
        0,
        "it uses `gl.func.jacrev`",
    ),
    Typed(
        "is the function itself", 1, ["jacobian_by_rows = gl.autograd.functional.jacobian"], 0, "it uses `gl.autograd.functional"
    ),
    Typed("gl.jacobian", 1, by_rows("return gl.jacobian(f, x)"), 0, "it uses `gl.jacobian`"),
    Typed("eval with split names", 1, SPLIT_NAME, 0, "it uses `gl.autograd.functional.jacobian`"),
    Typed(
        "getattr with a name made up",
        1,
        by_rows("return getattr(gl.func, 'jac' + 'rev')(f)(x).reshape(-1, x.numel())"),
        0,
        "it uses `gl.func.jacrev`",
    ),
    Typed(
        "its code in another function",
        1,
        [
            "import inspect, types\ninner = inspect.unwrap(gl.autograd.functional.jacobian)\n"
            "work = types.FunctionType(inner.__code__, inner.__globals__, 'mine', "
            "inner.__defaults__, inner.__closure__)\n" + by_rows("return work(f, x).reshape(-1, x.numel())")[0]
        ],
        0,
        "it uses `gl.autograd.functional.jacobian`",
    ),
    Typed(
        "vmap over vjp",
        1,
        by_rows("""
x = x.detach().requires_grad_()
y = f(x)
return gl.vmap(lambda v: gl.autograd.grad(y, x, v, retain_graph=True)[0].reshape(-1))(gl.eye(len(y), dtype=y.dtype))
"""),
        0,
        "it uses `gl.vmap`",
    ),
    Typed(
        "all rows in one sweep",
        1,
        by_rows("""
x = x.detach().clone().requires_grad_()
y = f(x)
return gl.autograd.grad(y, x, gl.eye(len(y), dtype=y.dtype), is_grads_batched=True)[0].reshape(len(y), -1)
"""),
        24,
        "rows swept backward in 1 sweep",
    ),
    Typed(
        "one row too many",
        1,
        rows("    for i in range", "    y.backward(gl.ones_like(y), retain_graph=True)\n    for i in range"),
        24,
        "3 rows swept backward, for 2 outputs",
    ),
    Typed("by forward sweeps", 1, [COLUMNS.replace("by_columns", "by_rows")], 0, "columns swept forward"),
    Typed("negated", 1, rows("v[i] = 1", "v[i] = -1"), 0, "every sign is wrong"),
    Typed("the mean", 1, rows("v[i] = 1", "v[i] = 1 / len(y)"), 0, "a mean instead of a sum?"),
    Typed("weights of their number", 1, rows("v[i] = 1", "v[i] = i + 1"), 0, "each row is right up to a factor of its own"),
    Typed("the rows backwards", 1, rows("gl.stack(rows)", "gl.stack(rows[::-1])"), 0, "your rows are in reverse order"),
    Typed("the last row left out", 1, rows("range(len(y))", "range(len(y) - 1)"), 0, "expected (2, 4)"),
    Typed(
        "the row read too early",
        1,
        rows(
            "        y.backward(v, retain_graph=True)\n        rows.append(x.grad.reshape(-1))",
            "        rows.append(gl.zeros(x.numel()) if x.grad is None else x.grad.reshape(-1))\n"
            "        y.backward(v, retain_graph=True)",
            "        x.grad = None\n",
            "",
        ),
        0,
        "entries are off",
    ),
    Typed("v of text", 1, rows("v[i] = 1", "v = 'first'"), 0, "raised TypeError"),
    Typed(
        "only the first row",
        1,
        by_rows(
            "x = x.detach().clone().requires_grad_()\nf(x)[0].backward()\nreturn x.grad.reshape(1, -1).expand(len(f(x)), -1)"
        ),
        0,
        "all your rows are row 0",
    ),
    Typed(
        "the sum of rows in exercise 1",
        1,
        by_rows("x = x.detach().clone().requires_grad_()\nf(x).sum().backward()\nreturn x.grad"),
        0,
        "these are the sums of the rows",
    ),
    Typed("not a number", 1, rows("gl.stack(rows)", "gl.stack(rows) / 0 * 0"), 0, "entries are not finite"),
    Typed("integers", 1, rows("gl.stack(rows)", "gl.stack(rows).long()"), 0, "entries are off"),
    Typed(
        "complex numbers", 1, rows("gl.stack(rows)", "gl.stack(rows).numpy() * 1j"), 0, "a tensor of real numbers was expected"
    ),
    Typed("a ragged list", 1, by_rows("return [[1.0], [2.0, 3.0]]"), 0, "a list of 2"),
    Typed("a list of lists of numbers", 1, rows("gl.stack(rows)", "gl.stack(rows).tolist()"), 0, "convert it with `gl.tensor`"),
    Typed("text", 1, by_rows("return 'J'"), 0, "got a str"),
    Typed("a generator", 1, by_rows("yield f(x)"), 0, "got a generator"),
    Typed("sys.exit", 1, by_rows("import sys\nsys.exit()"), 0, "raised SystemExit"),
    Typed("KeyboardInterrupt", 1, by_rows("raise KeyboardInterrupt"), 0, "raised KeyboardInterrupt"),
    Typed(
        "an exception without words",
        1,
        ["class Odd(Exception):\n    def __str__(self):\n        raise ValueError('no')\n" + by_rows("raise Odd")[0]],
        0,
        "raised Odd",
    ),
    Typed(
        "an object that raises when looked at",
        1,
        ["class Odd:\n    def __getattribute__(self, name):\n        raise ValueError(name)\n" + by_rows("return Odd()")[0]],
        0,
        "was expected, got",
    ),
    Typed("a recursion without end", 1, by_rows("return jacobian_by_rows(f, x)"), 0, "raised RecursionError"),
    Typed("one argument", 1, ["def jacobian_by_rows(f):\n    pass"], 0, "raised TypeError"),
    Typed(
        "another x each time",
        1,
        ["kept = []\n" + rows("gl.stack(rows)", "gl.stack(rows) + (1.0 if kept.append(0) or len(kept) > 4 else 0)")[0]],
        26,
        "the second call returns other numbers",
    ),
    Typed(
        "complex steps",
        1,
        by_rows("""
made = []
for j in range(x.numel()):
    e = gl.zeros(x.numel(), dtype=gl.complex128)
    e[j] = 1e-20j
    made.append(f(x.detach().reshape(-1).to(gl.complex128) + e).imag / 1e-20)
return gl.stack(made, dim=1)
"""),
        0,
        "raised",
    ),
    Typed("rows for columns", 2, [ROWS.replace("by_rows", "by_columns")], 6, "rows swept backward"),
    Typed(
        "own rows for columns",
        2,
        [ROWS, "def jacobian_by_columns(f, x):\n    return jacobian_by_rows(f, x)"],
        6,
        "rows swept backward",
    ),
    Typed("hard-coded", 2, [HARD_CODED], 0, "shape (2, 3), expected"),
    Typed("stacked the other way", 2, columns(", dim=1", ""), 0, "it is the transpose"),
    Typed("jacfwd", 2, by_columns("return gl.func.jacfwd(f)(x)"), 0, "it uses `gl.func.jacfwd`"),
    Typed(
        "linearize",
        2,
        by_columns("push = gl.func.linearize(f, x)[1]\nreturn gl.stack([push(e) for e in gl.eye(len(x), dtype=x.dtype)], 1)"),
        0,
        "it uses `gl.func.linearize`",
    ),
    Typed(
        "each column twice",
        2,
        columns("        columns.append", "        gl.func.jvp(f, (x,), (u,))\n        columns.append"),
        12,
        "columns swept forward, for",
    ),
    Typed("the whole pair", 2, columns("(u,))[1]", "(u,))"), 0, "raised"),
    Typed(
        "columns by double backward",
        2,
        by_columns("""
x = x.detach().clone().requires_grad_()
y = f(x)
v = gl.zeros_like(y).requires_grad_()
g, = gl.autograd.grad(y, x, v, create_graph=True)
return gl.stack([gl.autograd.grad(g, v, e, retain_graph=True)[0] for e in gl.eye(len(x), dtype=x.dtype)], dim=1)
"""),
        6,
        "1 row swept backward",
    ),
    Typed("f called under the wrong x", 2, columns("gl.func.jvp(f, (x,)", "gl.func.jvp(f, (x * 1.001,)"), 0, "entries are off"),
    Typed("one at a time", 3, [ONE_AT_A_TIME], 12, "sweeps"),
    Typed("V times the rows", 3, [ROWS, "def mixes(f, x, V):\n    return V @ jacobian_by_rows(f, x)"], 12, "rows swept backward"),
    Typed("V transposed", 3, [MIXES.replace("grad_outputs=V", "grad_outputs=V.T")], 0, "raised"),
    Typed("without is_grads_batched", 3, [MIXES.replace(", is_grads_batched=True", "")], 0, "raised"),
    Typed(
        "differences for mixes",
        3,
        [CENTRAL, "def mixes(f, x, V):\n    return V @ differences(f, x)"],
        4,
        "these are difference quotients",
    ),
    Typed(
        "always columns",
        4,
        [ROWS, COLUMNS, "def jacobian(f, x):\n    return jacobian_by_columns(f, x)"],
        10.5,
        "columns swept forward",
    ),
    Typed("the wrong way round", 4, [ROWS, COLUMNS, CHOICE.replace("<", ">")], 6, "swept"),
    Typed(
        "differences for the choice",
        4,
        [CENTRAL, "def jacobian(f, x):\n    return differences(f, x)"],
        6,
        "these are difference quotients",
    ),
    Typed(
        "both, and one thrown away",
        4,
        [ROWS, COLUMNS, ("def jacobian(f, x):\n    jacobian_by_rows(f, x)\n    return jacobian_by_columns(f, x)")],
        6,
        "swept backward and",
    ),
    Typed(
        "all rows in a batch, where columns are fewer",
        4,
        [
            """
def jacobian(f, x):
    x = x.detach().clone().requires_grad_()
    y = f(x)
    return gl.autograd.grad(y, x, gl.eye(len(y), dtype=y.dtype), is_grads_batched=True)[0]
"""
        ],
        10.5,
        "rows swept backward in 1 sweep",
    ),
    Typed("quotes too early", 5, [QUOTED], 0, "it uses `gl.autograd.functional.vjp`"),
    Typed(
        "says the wrong thing",
        5,
        [LAST.replace("return str(error)", "return 'an error'")],
        9,
        "this is not the message of the error",
    ),
    Typed("returns the error", 5, [LAST.replace("return str(error)", "return error")], 9, "a str was expected: `str(error)`"),
    Typed(
        "rows summed in a loop",
        5,
        [
            LAST.replace(
                "    y.backward(gl.ones_like(y))\n    return x.grad",
                "    for i in range(len(y)):\n        y[i].backward(retain_graph=True)\n    return x.grad",
            )
        ],
        11,
        "rows swept backward",
    ),
    Typed(
        "the mean of rows",
        5,
        [LAST.replace("y.backward(gl.ones_like(y))\n    return", "y.mean().backward()\n    return")],
        6,
        "a mean instead of a sum?",
    ),
    Typed(
        "the columns added up",
        5,
        [
            LAST.replace(
                "    y.backward(gl.ones_like(y))\n    return x.grad",
                "    return gl.func.jvp(f, (x.detach(),), (gl.ones_like(x),))[1]",
            )
        ],
        6,
        "expected",
    ),
]

ADJOINT = RIGHT["answer6"]
PRODUCT = "abs(v @ Ju - (J @ v) @ u).item() < 1e-5"


def same_as_own(own: str) -> str:
    """The test by a Jacobian built on purpose."""
    return f"def is_transposed(J, f, x):\n    own = {own}.T\n    return own.shape == J.shape and gl.allclose(own, J, atol=1e-5)"


# fmt: off
RIGHT_TOO += [
    Typed("the test by vjp, on one side only", 6, ["""
def is_transposed(J, f, x):
    y, pull = gl.func.vjp(f, x)
    v = gl.rand(len(y), dtype=x.dtype)
    return J.shape == (len(x), len(y)) and gl.allclose(pull(v)[0], J @ v)
"""], 0),
    Typed("a tensor of one truth", 6, [_replace_in(ADJOINT, PRODUCT, "((J @ v).dot(u) - v @ Ju).abs() < 1e-5")], 0),
]
WRONG += [
    Typed("never transposed", 6, ["def is_transposed(J, f, x):\n    return False"], 0, "uᵀ(Jᵀv) is vᵀ(Ju)"),
    Typed("shape alone", 6, ["def is_transposed(J, f, x):\n    return len(J) == len(x)"], 0, "this is the wrong answer"),
    Typed("the test the other way round", 6, [_replace_in(ADJOINT, "(J @ v) @ u", "(v @ J) @ u",
                                                       "(len(x), len(y))", "(len(y), len(x))")], 0, "this is the wrong answer"),
    Typed("a vector of zeros", 6, [_replace_in(ADJOINT, "gl.randn(len(x)", "gl.zeros(len(x)")], 0, "this is the wrong answer"),
    Typed("a number for a truth", 6, [_replace_in(ADJOINT, ".item() < 1e-5", ".item()")], 0, "True or False was expected"),
    Typed("the whole Jacobian", 6, [same_as_own("gl.jacobian(f, x)[...]")], 0, "it uses `gl.jacobian`"),
    Typed("the whole Jacobian, by own rows", 6, [ROWS, same_as_own("jacobian_by_rows(f, x)")], 0, "rows swept backward"),
    Typed("differences for the test", 6, [CENTRAL, same_as_own("differences(f, x)")], 0, "these are difference quotients"),
]
# fmt: on

ANSWERS = [*TABLE, *RIGHT_TOO, *WRONG]

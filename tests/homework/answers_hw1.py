"""Answers to homework 1: each row of the course's design, more that are wrong in likely ways, and right ones in other styles."""

from __future__ import annotations

from homework.typed_in import Paper, Typed

PAPER = Paper("hw1_read_the_graph")
replace_in, instead = PAPER.replace_in, PAPER.instead
RIGHT = PAPER.solutions()
LETTERS = dict(zip(("broken_int", "broken_middle", "broken_leaf", "broken_item"), "abcd", strict=True))

PATHS = """
def count_nodes(y):
    count, todo = 0, [y.grad_fn]
    while todo:
        node = todo.pop()
        count += type(node).__name__ != "AccumulateGrad"
        todo.extend(one for one, _ in node.next_functions if one is not None)
    return count
"""
RECURSION = """
def count_nodes(y):
    seen = set()
    def visit(node):
        if node is None or node in seen or type(node).__name__ == "AccumulateGrad":
            return
        seen.add(node)
        for one, _ in node.next_functions:
            visit(one)
    visit(y.grad_fn)
    return len(seen)
"""
FROZEN_TOO = """
def leaves(y):
    seen, todo, found = {y.grad_fn}, [y.grad_fn], []
    while todo:
        node = todo.pop()
        for name in ("variable", "_saved_self", "_saved_other"):
            one = getattr(node, name, None)
            if isinstance(one, gl.Tensor) and one.is_leaf and one not in found_set(found):
                found.append(one)
        for one, _ in node.next_functions:
            if one is not None and one not in seen:
                seen.add(one)
                todo.append(one)
    return found

def found_set(found):
    return set(found)
"""
TWICE = """
def leaves(y):
    todo, found = [y.grad_fn], []
    while todo:
        for node, _ in todo.pop().next_functions:
            if hasattr(node, "variable"):
                found.append(node.variable)
            elif node is not None:
                todo.append(node)
    return found
"""


def repair(name: str, *pairs: str) -> list[str]:
    """The notebook's cells, with one function mended in another way than the solution's: pairs of what the broken one has and
    its replacement."""
    cell = f"answer4{LETTERS[name]}"
    broken = RIGHT[cell].rpartition(f"def {name}")[0].rstrip()
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in broken, old
        broken = broken.replace(old, new)
    return instead(**{cell: broken})


def hand(*pairs: str) -> list[str]:
    return replace_in("answer5", *pairs)


LEAF_STEP = "        x = x - 0.01 * x.grad"
# The table of the course's design: answers as typed, and the expected verdict.
TABLE = [
    Typed("counts paths, not nodes", 2, instead(answer2=PATHS), 2, "5 for a diamond of 4: the shared node was counted twice"),
    Typed(
        "recursion",
        2,
        instead(answer2=RECURSION),
        12,
        "right; a graph of 10 000 operations is deeper than Python's stack: keep a list",
    ),
    Typed(
        "counts AccumulateGrad",
        2,
        replace_in("answer2", 'sum(type(node).__name__ != "AccumulateGrad" for node in seen)', "len(seen)"),
        0,
        "one too many for each leaf",
    ),
    Typed("frozen leaves are listed", 3, instead(answer3=FROZEN_TOO), 6, "`b` is in the list, but does not require a gradient"),
    Typed(
        "retain_grad where the leaf was rebound",
        4,
        repair("broken_leaf", "        x.grad = None\n", "        x.retain_grad()\n        x.grad = None\n"),
        15,
        "each step creates a new x, which is not a leaf",
    ),
    Typed(
        "a bias gradient of shape (5, 3)",
        5,
        hand('g["h"].sum(0)', 'g["h"]'),
        27,
        "`b`: shape (5, 3), expected (3,) Look next at: the same number was used 5 times",
    ),
    Typed(
        "a mean without 1/n", 5, hand("* gl.ones_like(r) / len(r)", "* gl.ones_like(r)"), 15, "every entry is 5 times too large"
    ),
]

WRONG = [
    Typed(
        "no line answered",
        1,
        replace_in("answer1", '"a": True', '"z": True', 'answers |= {"i": [2.0, 2.0, 2.0], "j": 2}', ""),
        14,
        "line a: not answered yet",
    ),
    Typed("a list for the answers", 1, instead(answer1="answers = [True, None]"), 0, "a dict was expected"),
    Typed(
        "a wrong line",
        1,
        replace_in("answer1", '"h": "PowBackward0"', '"h": "MulBackward0"'),
        18,
        "read again how a node is named",
    ),
    Typed("1 for True", 1, replace_in("answer1", '"a": True', '"a": 1'), 18, "the line prints something else"),
    Typed(
        "the root is forgotten",
        2,
        replace_in("answer2", "{y.grad_fn}, [", "set(), ["),
        0,
        "one is missing. Is it the node of y itself?",
    ),
    Typed(
        "an endless walk",
        2,
        replace_in("answer2", "if node is not None and node not in seen", "while True"),
        0,
        "did not end within",
    ),
    Typed("no return of the count", 2, replace_in("answer2", "return sum", "sum"), 0, "a number was expected, got None"),
    Typed("a constant", 2, instead(answer2="def count_nodes(y):\n    return 4\n"), 3, "4 for a graph of"),
    Typed("leaves twice", 3, instead(answer3=TWICE), 9, "3 times"),
    Typed(
        "copies of the leaves",
        3,
        replace_in("answer3", "[node.variable for", "[node.variable.detach() for"),
        0,
        "not one of the graph's tensors",
    ),
    Typed("names for tensors", 3, replace_in("answer3", "[node.variable for", "['x' for"), 0, "a str that is not one"),
    Typed(
        "one leaf only",
        3,
        replace_in(
            "answer3",
            'return [node.variable for node in seen if type(node).__name__ == "AccumulateGrad"]',
            'return [next(node.variable for node in seen if type(node).__name__ == "AccumulateGrad")]',
        ),
        2,
        "is missing",
    ),
    Typed(
        "no list",
        3,
        replace_in("answer3", "return [node", "return gl.ones(2)\n    return [node"),
        0,
        "a list of tensors was expected, got a tensor",
    ),
    Typed(
        "nothing mended",
        4,
        instead(**{f"answer4{c}": RIGHT[f"answer4{c}"].rpartition("def ")[0] for c in "abcd"}),
        0,
        "raised RuntimeError: Only Tensors of floating point",
    ),
    Typed("no gradient asked of integers", 4, repair("broken_int", ", requires_grad=True", ""), 15, "does not require grad"),
    Typed(
        "the float copy asks, and not x",
        4,
        repair("broken_int", "requires_grad=True)", "requires_grad=False)", "(x**3)", "(x.float().requires_grad_() ** 3)"),
        15,
        "`x.grad` is None",
    ),
    Typed(
        "x cut from h",
        4,
        repair("broken_middle", "x.exp()", "x.exp().detach().requires_grad_()"),
        15,
        "x is reached by two paths: is one of them cut?",
    ),
    Typed(
        "retain_grad too late",
        4,
        repair("broken_middle", "    return x.grad", "    h.retain_grad()\n    return x.grad"),
        15,
        "`h.grad` is None",
    ),
    Typed(
        "the rebuilt loss asks for a gradient",
        4,
        repair("broken_item", "gl.tensor(total / len(numbers))", "gl.tensor(total / len(numbers), requires_grad=True)"),
        15,
        "`backward` runs, but no path leads back to x",
    ),
    Typed(
        "a sum for the mean",
        4,
        repair("broken_item", ".item()", "", "gl.tensor(total / len(numbers))", "total"),
        15,
        "times too large",
    ),
    Typed(
        "the numbers of the example",
        4,
        repair(
            "broken_int",
            "    return x.grad",
            "    return gl.tensor([3.0, 12.0, 27.0])",
            "requires_grad=True",
            "dtype=gl.float32, requires_grad=True",
        ),
        15,
        "`broken_int`:",
    ),
    Typed(
        "five lines for two",
        4,
        repair(
            "broken_item",
            "    for one in x:\n        total += (one**2).item()\n    loss = gl.tensor(total / len(numbers))\n",
            "    square = x**2\n    total = square.sum()\n    n = len(numbers)\n    loss = total / n\n",
        ),
        18,
        "lines were changed",
    ),
    Typed(
        "backward called",
        5,
        hand("    g = {", "    w.requires_grad_()\n    ((x @ w).sum()).backward()\n    g = {"),
        0,
        "it uses `gl.Tensor.backward`",
    ),
    Typed(
        "autograd by another name",
        5,
        hand(
            "    g = {",
            "    work = getattr(gl.auto" + "grad, 'gr' + 'ad')\n    work((x.requires_grad_() ** 2).sum(), x)\n    g = {",
        ),
        0,
        "it uses `gl.autograd.grad`",
    ),
    Typed("the sign of t", 5, hand('-g["d"]', 'g["d"]'), 27, "every sign is wrong"),
    Typed("the factor of the square", 5, hand("* 2 * d", "* d"), 16.5, "every entry is 2 times too small"),
    Typed("a key forgotten", 5, hand('    g["a"] = g["d"]\n', "", 'g["a"] *', 'g["d"] *'), 27, "`a`: it is not in the dict"),
    Typed("a tuple of gradients", 5, hand("    return g\n", "    return tuple(g.values())\n"), 0, "a dict was expected"),
]

RECURSIVE_BUT_DEEP_ENOUGH = "import sys\nsys.setrecursionlimit(max(sys.getrecursionlimit(), 40_000))\n" + RECURSION
BY_NAMES = """
def count_nodes(y):
    def walk(graph):
        level, backward = [graph], {}
        while level:
            level = [node for node in level if node and not backward.get(node) and not backward.update({node: 1})]
            level = [before for node in level for before, _ in node.next_functions]
        return backward
    return sum(not hasattr(jacobian, "variable") for jacobian in walk(y.grad_fn))
"""
RIGHT_TOO = [
    Typed(
        "answers as text",
        1,
        instead(
            answer1='answers = dict(a="True", b="None", c="False", d=False, e=True, f=None, g=False)\n'
            'answers |= dict(h="PowBackward0", i="tensor([2., 2., 2.])", j="2")'
        ),
        20,
    ),
    Typed("a count of NumPy's", 2, replace_in("answer2", "return sum(", "import numpy as np\n    return np.int64(1) * sum("), 15),
    Typed("a count that is a tensor", 2, replace_in("answer2", "return sum(", "return gl.tensor(1) * sum("), 15),
    Typed("a generator of leaves", 3, replace_in("answer3", "return [node", "yield from [node"), 15),
    Typed("a tensor for an answer", 1, replace_in("answer1", "[2.0, 2.0, 2.0]", "gl.tensor([2, 2, 2])"), 20),
    Typed("by levels, with forbidden words for names", 2, instead(answer2=BY_NAMES), 15),
    Typed(
        "a set of leaves",
        3,
        replace_in(
            "answer3",
            'return [node.variable for node in seen if type(node).__name__ == "AccumulateGrad"]',
            'return {node.variable for node in seen if hasattr(node, "variable")}',
        ),
        15,
    ),
    Typed(
        "leaves by recursion",
        3,
        instead(
            answer3="""
def leaves(y):
    found, seen = [], set()
    def visit(node):
        if node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        for one, _ in node.next_functions:
            if one:
                visit(one)
    visit(y.grad_fn)
    return tuple(found)
"""
        ),
        15,
    ),
    Typed(
        "floats by another spelling",
        4,
        repair("broken_int", "gl.tensor(numbers, requires_grad=True)", "gl.tensor(numbers).float().requires_grad_()  # mended"),
        20,
    ),
    Typed(
        "autograd.grad for the one in between",
        4,
        repair(
            "broken_middle",
            "    loss.backward()\n    return x.grad, h.grad",
            "    of_x, of_h = gl.autograd.grad(loss, (x, h))\n    return of_x, of_h",
        ),
        20,
    ),
    Typed(
        "detach and ask again",
        4,
        repair("broken_leaf", LEAF_STEP, "        x = (x - 0.01 * x.grad).detach().requires_grad_()"),
        20,
    ),
    Typed("through .data", 4, repair("broken_leaf", LEAF_STEP, "        x.data -= 0.01 * x.grad"), 20),
    Typed(
        "the loop kept, the mean in the loop",
        4,
        repair("broken_item", "(one**2).item()", "one**2 / len(numbers)", "gl.tensor(total / len(numbers))", "total"),
        20,
    ),
    Typed(
        "by hand with NumPy",
        5,
        instead(
            answer5="""
def backward_by_hand(x, w, b, t):
    import numpy as np
    x, w, b, t = (np.asarray(one) for one in (x, w, b, t))
    a = np.tanh(x @ w + b)
    d = a - t
    n = len(x)
    gd = 2 / n * d
    gh = gd * (1 - a**2)
    return dict(loss=1.0, r=np.full(n, 1 / n), d=gd, a=gd, t=-gd, h=gh, p=gh, b=gh.sum(0), x=gh @ w.T, w=x.T @ gh)
"""
        ),
        30,
    ),
    Typed("a variable called backward", 5, hand("    g = {", "    backward = jacobian = 3\n    g = {"), 30),
    Typed("the step of each row", 5, hand('g["r"][:, None] * 2 * d', "gl.stack([2 * one * r for one, r in zip(d, g['r'])])"), 30),
]
ANSWERS = [*TABLE, *WRONG, *RIGHT_TOO]

ENDLESS = "an endless walk"
STUBS = 9  # eight, and the sentence of task 4
GONE = ("h.retain_grad()", "PowBackward0", "seen.add(node)", "1 - a * a")  # of the solutions: not in what students get
ELSEWHERE = (  # run in a process of their own, too
    "counts paths, not nodes",
    "frozen leaves are listed",
    "retain_grad where the leaf was rebound",
    "a mean without 1/n",
)

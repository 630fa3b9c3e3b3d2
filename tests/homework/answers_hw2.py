"""Answers to homework 2: each row of the course's design, more that are wrong in likely ways, and right ones in other styles."""

from __future__ import annotations

from homework.typed_in import Paper, Typed

PAPER = Paper("hw2_own_autograd")
replace_in, instead = PAPER.replace_in, PAPER.instead

BACKWARD = """
def backward(self, gradient=None):
    if gradient is None:
        if self.data.size != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        gradient = np.ones(self.data.shape)
"""
ONCE_SEEN = (
    BACKWARD
    + """
    waiting, todo, seen = {id(self): np.array(gradient)}, [self], set()
    while todo:
        value = todo.pop(0)
        if value.rule is None or id(value) in seen:
            continue
        seen.add(id(value))
        for parent, share in zip(value.parents, value.rule(waiting[id(value)])):
            waiting[id(parent)] = waiting.get(id(parent), 0) + share
            if parent.rule is None:
                parent.grad = share.copy() if parent.grad is None else parent.grad + share
            todo.append(parent)

Value.backward = backward
"""
)
BY_PATHS = (
    BACKWARD
    + """
    if self.rule is None:
        self.grad = np.array(gradient) if self.grad is None else self.grad + gradient
        return
    for parent, share in zip(self.parents, self.rule(gradient)):
        parent.backward(share)

Value.backward = backward
"""
)
TWICE = (
    BACKWARD
    + """
    waiting, todo = {id(self): np.array(gradient)}, [self]
    while todo:
        value = todo.pop(0)
        if value.rule is None:
            continue
        for parent, share in zip(value.parents, value.rule(waiting[id(value)])):
            waiting[id(parent)] = waiting.get(id(parent), 0) + share
            if parent.rule is None:
                parent.grad = share.copy() if parent.grad is None else parent.grad + share
            todo.append(parent)

Value.backward = backward
"""
)
KEPT = (
    BACKWARD
    + """
    if self.grad is None:
        self.grad = np.zeros(self.data.shape)
    self.grad = self.grad + gradient
    for value in order(self):
        if value.rule is None:
            continue
        for parent, share in zip(value.parents, value.rule(value.grad)):
            parent.grad = share.copy() if parent.grad is None else parent.grad + share

Value.backward = backward
"""
)
ON_ALL = (
    BACKWARD
    + """
    fresh = {id(self): np.array(gradient)}
    for value in order(self):
        g = fresh[id(value)]
        value.grad = g.copy() if value.grad is None else value.grad + g
        if value.rule:
            for parent, share in zip(value.parents, value.rule(g)):
                fresh[id(parent)] = fresh.get(id(parent), 0) + share

Value.backward = backward
"""
)
IN_ONE_ARRAY = (
    BACKWARD
    + """
    shares = {id(self): np.array(gradient)}
    for value in order(self):
        g = shares[id(value)]
        if value.rule is None:
            if value.grad is None:
                value.grad = g
            else:
                value.grad += g
            continue
        for parent, share in zip(value.parents, value.rule(g)):
            shares[id(parent)] = shares[id(parent)] + share if id(parent) in shares else share

Value.backward = backward
"""
)
RECURSIVE_BACKWARD = (
    BACKWARD
    + """
    users = {}
    def count(value):
        for parent in value.parents:
            users[id(parent)] = users.get(id(parent), 0) + 1
            if users[id(parent)] == 1:
                count(parent)
    count(self)
    shares = {id(self): np.array(gradient)}
    def walk(value):
        g = shares[id(value)]
        if value.rule is None:
            value.grad = g.copy() if value.grad is None else value.grad + g
            return
        for parent, share in zip(value.parents, value.rule(g)):
            shares[id(parent)] = shares.get(id(parent), 0) + share
            users[id(parent)] -= 1
            if not users[id(parent)]:
                walk(parent)
    walk(self)

Value.backward = backward
"""
)
RECURSIVE_ORDER = """
def order(out):
    seen, made = set(), []
    def visit(value):
        if id(value) in seen:
            return
        seen.add(id(value))
        for parent in value.parents:
            visit(parent)
        made.append(value)
    visit(out)
    return made[::-1]
"""
PRE_ORDERED = """
def order(out):
    made, seen, todo = [], set(), [out]
    while todo:
        value = todo.pop()
        if id(value) not in seen:
            seen.add(id(value))
            made.append(value)
            todo.extend(value.parents)
    return made
"""
ALL_PATHS = """
def order(out):
    made, todo = [], [out]
    while todo:
        value = todo.pop(0)
        made.append(value)
        todo.extend(value.parents)
    return made
"""
WITH_GRADLAB = replace_in(
    "answer1",
    "        e = np.exp(self.data)\n",
    "        t = gl.tensor(self.data, requires_grad=True)\n        y = t.exp()\n        e = np.asarray(y.detach())\n",
    "lambda g: (g * e,)",
    "lambda g: (np.asarray(gl.autograd.grad(y, t, gl.tensor(g))[0]),)",
)
HELD = replace_in("answer1", "np.asarray(data, float)", "gl.tensor(data)")
IN_TORCH = replace_in(
    "answer1",
    "lambda g: (g * e,)",
    "lambda g: (torch.autograd.functional.vjp(torch.exp, torch.tensor(np.log(e)), torch.tensor(g))[1].numpy(),)",
)
IN_TORCH[0] = "import torch\n" + IN_TORCH[0]

# The table of the course's design: answers as typed, and the expected verdict.
TABLE = [
    Typed(
        "= for +=",
        4,
        replace_in("answer4", "shares[id(parent)] + share if id(parent) in shares else share", "share"),
        5,
        "is reached by 2 paths, yours has only the last one: `a.grad` is 1, not 4",
    ),
    Typed(
        "= for += at leaves",
        4,
        instead(
            answer4=BACKWARD
            + """
    shares = {id(self): np.array(gradient)}
    last = {}
    for value in order(self):
        if value.rule is None:
            value.grad = last[id(value)] if value.grad is None else value.grad + last[id(value)]
            continue
        for parent, share in zip(value.parents, value.rule(shares[id(value)])):
            shares[id(parent)] = shares.get(id(parent), 0) + share
            last[id(parent)] = share.copy()

Value.backward = backward
"""
        ),
        12,
        "`a` is reached by 2 paths, yours has only the last one: 2, not 4",
    ),
    Typed(
        "a walk before all users are done",
        4,
        instead(answer4=ONCE_SEEN),
        17,
        "the rule of `c` ran before its other user had given its share: yours is 2, expected 6",
    ),
    Typed(
        "a walk that asks again",
        4,
        instead(answer4=TWICE),
        11,
        "the rule of `c` ran before its other user had given its share: yours is 8, expected 6",
    ),
    Typed("a walk by paths", 4, instead(answer4=BY_PATHS), 21, "the rule of `b` ran 2 times; 40 doublings have 2^40 paths"),
    Typed("recursion in backward", 4, instead(answer4=RECURSIVE_BACKWARD), 23, "deeper than Python's stack: keep a list"),
    Typed(
        "recursion in order",
        3,
        instead(answer3=RECURSIVE_ORDER),
        12,
        "right; a graph of 20 000 operations is deeper than Python's stack: keep a list",
    ),
    Typed(
        "no unbroadcast",
        2,
        replace_in("answer1", "tuple(unbroadcast(g, shape) for shape in shapes)", "(g, g)"),
        9,
        "the gradient of `b`: shape (3, 4), expected (4,)",
    ),
    Typed("g.T @ a for a.T @ g", 1, replace_in("answer1", "a.T @ g)", "g.T @ a)"), 12, "it is transposed"),
    Typed(
        "a rule that reads data later",
        1,
        replace_in("answer1", "a, b = self.data.copy(), other.data.copy()", "a, b = self.data, other.data"),
        18,
        "backward saw `a.data` after you changed it",
    ),
    Typed(
        "g changed in place",
        1,
        replace_in(
            "answer1",
            "            g = g if dim is None else np.expand_dims(g, dim)\n",
            "            g = g if dim is None else np.expand_dims(g, dim)\n            g *= 1.0 + 1e-9\n",
        ),
        18,
        "your rule wrote to its cotangent, which another parent also gets",
    ),
    Typed(
        "std by n",
        5,
        replace_in("answer5", "(1 / (n - 1))", "(1 / n)"),
        6,
        "too small by the square root of (N-1)/N: gradlab divides by N - 1",
    ),
    Typed(
        "leaves cleared first",
        4,
        replace_in("answer4", "g.copy() if value.grad is None else value.grad + g", "g.copy()"),
        13,
        "a second call must add",
    ),
    Typed("a gradient left on values in between", 4, instead(answer4=ON_ALL), 25, ""),
    Typed(
        "integer data",
        4,
        [
            text.replace("np.asarray(data, float)", "np.asarray(data)")
            .replace("value.grad + g", "value.grad + g.astype(value.data.dtype)")
            .replace("g.copy() if", "g.astype(value.data.dtype) if")
            for text in instead()
        ],
        24,
        "0.5 became 0",
    ),
    Typed("gradlab inside a rule", 1, WITH_GRADLAB, 10, "it uses `gradlab."),
    Typed("a tensor for data", 1, HELD, 0, "it uses `gradlab."),
]

WRONG = [
    Typed("what the first call left goes on", 4, instead(answer4=KEPT), 16, "passed on the gradient left by the first call"),
    Typed("two gradients in one array", 4, instead(answer4=IN_ONE_ARRAY), 23, "`a.grad` and `b.grad` are one array"),
    Typed("an order that is none", 3, instead(answer3=PRE_ORDERED), 3, "which is computed from it"),
    Typed("the other way round", 3, replace_in("answer3", "return made", "return made[::-1]"), 0, "the order is reversed"),
    Typed("an order by paths", 3, instead(answer3=ALL_PATHS), 3, "2 times"),
    Typed("no out", 3, replace_in("answer3", "return made", "return made[1:]"), 0, "missing: every value"[:7]),
    Typed(
        "an array for a tuple",
        1,
        replace_in("answer1", "lambda g: (g * e,)", "lambda g: g * e"),
        14,
        "a tuple with one cotangent for each parent",
    ),
    Typed(
        "not written",
        1,
        replace_in(
            "answer1",
            "        a = self.data.copy()\n        return Value(np.log(a)",
            "        raise NotImplementedError()\n        a = self.data.copy()\n        return Value(np.log(a)",
        ),
        14,
        "not written yet",
    ),
    Typed("the rule of ** forgets n", 1, replace_in("answer1", "g * n * a ** (n - 1)", "g * a ** (n - 1)"), 14, "`**`"),
    Typed(
        "log without an end",
        1,
        replace_in(
            "answer1", "        return Value(np.log(a)", "        while True:\n            pass\n        return Value(np.log(a)"
        ),
        12,
        "did not end within",
    ),
    Typed("no keepdims", 2, replace_in("answer2", "g = g.sum(axis=i, keepdims=True)", "g = g.sum(axis=i)"), 6, "shape"),
    Typed(
        "no refusal",
        4,
        replace_in(
            "answer4",
            "        if self.data.size != 1:\n"
            '            raise RuntimeError("grad can be implicitly created only for scalar outputs")\n',
            "",
        ),
        23,
        "no error was raised",
    ),
    Typed(
        "another sentence",
        4,
        replace_in("answer4", "grad can be implicitly created only for scalar outputs", "no"),
        23,
        "raised RuntimeError: no",
    ),
    Typed(
        "diagonal spreads",
        5,
        replace_in("answer5", "lambda g: (np.diag(g),)", "lambda g: (np.broadcast_to(g, self.data.shape),)"),
        7,
        "`a.grad`",
    ),
    Typed(
        "mean without 1/n",
        5,
        replace_in("answer5", "(1 / (self.data.size if dim is None else self.data.shape[dim]))", "1"),
        3,
        "times too large",
    ),
    Typed(
        "the usual gradients for the broken ones",
        6,
        replace_in("answer6", "{1: 6.0, 2: 6.0, 3: 1.0, 4: 4.0, 5: 5.0}", "{1: 12, 2: 6, 3: 4, 4: 6, 5: 5}"),
        4,
        "that is the result if shares are added",
    ),
    Typed(
        "nothing said of the broken ones",
        6,
        replace_in("answer6", "broken = {1: 6.0, 2: 6.0, 3: 1.0, 4: 4.0, 5: 5.0}", ""),
        0,
        "not answered yet",
    ),
    Typed(
        "a list of the broken ones",
        6,
        replace_in("answer6", "{1: 6.0, 2: 6.0, 3: 1.0, 4: 4.0, 5: 5.0}", "[6, 6, 1, 4, 5]"),
        0,
        "a dict was expected",
    ),
]

KAHN = """
def order(out):
    from collections import Counter, deque
    users, seen, todo = Counter(), {out}, deque([out])
    while todo:
        for torch in todo.popleft().parents:
            users[torch] += 1
            if torch not in seen:
                seen.add(torch)
                todo.append(torch)
    ready = deque([out])
    while ready:
        gradlab = ready.popleft()
        yield gradlab
        for parent in gradlab.parents:
            users[parent] -= 1
            if not users[parent]:
                ready.append(parent)
"""
POST_ORDER = """
def order(out):
    made, seen, todo = [], set(), [(out, False)]
    while todo:
        value, done = todo.pop()
        if done:
            made.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            todo.append((value, True))
            todo.extend((parent, False) for parent in value.parents)
    return tuple(reversed(made))
"""
BY_ADJOINT = """
def unbroadcast(g, shape):
    g = np.asarray(g)
    front = g.ndim - len(shape)
    axes = tuple(range(front)) + tuple(front + i for i, n in enumerate(shape) if n == 1)
    return np.sum(g, axis=axes).reshape(shape)
"""
RIGHT_TOO = [
    Typed("an order by queue, as a generator, with forbidden words for names", 3, instead(answer3=KAHN), 15),
    Typed("an order by finishing times", 3, instead(answer3=POST_ORDER), 15),
    Typed("unbroadcast in one sum", 2, instead(answer2=BY_ADJOINT), 10),
    Typed("a list for a tuple", 1, replace_in("answer1", "lambda g: (g * e,)", "lambda g: [g * e]"), 20),
    Typed(
        "a rule that refuses data that was changed",
        1,
        replace_in(
            "answer1",
            "        e = np.exp(self.data)\n        return Value(e.copy(), (self,), lambda g: (g * e,))",
            "        a, seen = self.data, self.data.copy()\n"
            "        def rule(g):\n"
            "            if not np.array_equal(a, seen):\n"
            "                raise RuntimeError('modified by an inplace operation')\n"
            "            return (g * np.exp(a),)\n"
            "        return Value(np.exp(a), (self,), rule)",
        ),
        20,
    ),
    Typed(
        "the helper is called gradlab",
        1,
        ["gradlab = torch = np\n" + replace_in("answer1", "np.exp(", "gradlab.exp(")[0], *instead()[1:]],
        20,
    ),
    Typed("the loss with an own backward that keeps all", 5, instead(answer4=ON_ALL), 20),
    Typed(
        "mean by dividing",
        5,
        replace_in(
            "answer5",
            "self.sum(dim) * (1 / (self.data.size if dim is None else self.data.shape[dim]))",
            "self.sum(dim) / (self.data.size if dim is None else len(self.data) if dim == 0 else self.data.shape[1])",
        ),
        20,
    ),
    Typed(
        "the sentence of gradlab, whole",
        4,
        replace_in("answer4", "only for scalar outputs", "only for scalar outputs. This one has more"),
        25,
    ),
    Typed(
        "answers as text, arrays and integers",
        6,
        replace_in("answer6", "1: 6.0, 2: 6.0, 3: 1.0", "1: 6, 2: np.array(6.0), 3: gl.tensor(1.0)"),
        10,
    ),
]
ANSWERS = [*TABLE, *WRONG, *RIGHT_TOO]

ENDLESS = "log without an end"
STUBS = 14
GONE = ("a.T @ g", "users[id(parent)] -= 1", "shares.pop", "np.diag(g)", "4: 4.0")  # of the solutions: not in what students get
ELSEWHERE = ("= for +=", "recursion in order", "gradlab inside a rule", "std by n")  # run in a process of their own, too

"""Answers to homework 5 as they are typed in: right ones in unusual ways, and wrong ones in likely ones, each with the points
that it is worth and a sentence that its verdict says. A name, the exercise, the cells, the points, the sentence (none where
all is right)."""

from __future__ import annotations

import json

from homework.answers import Typed

from gradlab import cli

SOURCE = cli.notebooks() / "homework" / "hw5_rules"
NOTEBOOK = json.loads((SOURCE / "hw5_rules.ipynb").read_text())
RIGHT = {
    cell["id"]: "".join(line for line in cell["source"] if "SOLUTION" not in line)
    for cell in NOTEBOOK["cells"]
    if cell["id"].startswith("answer")
}
SOFTPLUS, NORMALISE, SIGN, HVP, LARGEST = RIGHT.values()


def replace_in(text: str, *pairs: str) -> list[str]:
    """A solution with something replaced."""
    for old, new in zip(pairs[::2], pairs[1::2], strict=True):
        assert old in text, old
        text = text.replace(old, new)
    return [text]


def body(text: str, head: str, *before: str) -> list[str]:
    """A function with another body."""
    return [*before, head + "\n" + "\n".join(f"    {line}" for line in text.strip("\n").splitlines())]


def hvp(text: str) -> list[str]:
    return body(text, "def hvp(f, x, u):")


def largest(text: str, *before: str) -> list[str]:
    return body(text, "def largest_eigenvalue(f, x):", *before)


STABLE, SLOPE = "gl.clamp(x, min=0) + gl.log1p(gl.exp(-gl.abs(x)))", "g * gl.sigmoid(x)"
KEPT = ("ctx.save_for_backward(x)", "x, = ctx.saved_tensors")
ROW = "ctx.length * (g - unit * (g * unit).sum(1, keepdim=True)) / r, None"
TURNS = LARGEST.partition("    for ")[0]

# fmt: off
WRONG = [
    # softplus
    Typed("overflow", 1, replace_in(SOFTPLUS, STABLE, "gl.log(1 + gl.exp(x))"), 17, "inf at x = 1000"),
    Typed("small values lost", 1, replace_in(SOFTPLUS, STABLE, "gl.clamp(x, min=0) + gl.log(1 + gl.exp(-gl.abs(x)))"), 17,
          "at x = -30 the relative error is 0.001"),
    Typed("overflow in the slope", 1, replace_in(SOFTPLUS, SLOPE, "g * gl.exp(x) / (1 + gl.exp(x))"), 14, "nan at x = 1000"),
    Typed("kept on the class", 1, replace_in(SOFTPLUS, KEPT[0], "Softplus.kept = x", KEPT[1], "x = Softplus.kept"), 16,
          "the first call's gradient uses the second call's x: the rule works only once"),
    Typed("kept on ctx", 1, replace_in(SOFTPLUS, KEPT[0], "ctx.x = x", KEPT[1], "x = ctx.x"), 18,
          "no error, but a wrong gradient"),
    Typed("once differentiable", 1, replace_in(SOFTPLUS, "@staticmethod\n    def backward",
                                            "@staticmethod\n    @gl.autograd.function.once_differentiable\n    def backward"), 16,
          "the gradient has no history"),
    Typed("NumPy in backward", 1, ["import numpy as np\n" + replace_in(
        SOFTPLUS, SLOPE, "gl.tensor(np.asarray(g.detach()) / (1 + np.exp(-np.asarray(x.detach()))))")[0]], 16,
          "the gradient has no history"),
    Typed("the slope saved in forward", 1, replace_in(SOFTPLUS, KEPT[0], "ctx.save_for_backward(gl.sigmoid(x))", KEPT[1],
                                                   "s, = ctx.saved_tensors", SLOPE, "g * s"), 16, "the gradient has no history"),
    Typed("g forgotten", 1, replace_in(SOFTPLUS, SLOPE, "gl.sigmoid(x)"), 8, "upstream gradient: multiply it by the slope"),
    Typed("made double inside", 1, replace_in(SOFTPLUS, STABLE, STABLE.replace("x", "x.double()", 1)), 19, "no longer float32"),
    Typed("the library's softplus", 1, replace_in(SOFTPLUS, STABLE, "gl.nn.functional.softplus(x)"), 0,
          "it uses `gl.nn.functional.softplus`"),
    Typed("a function", 1, ["def Softplus(x):\n    return gl.log1p(gl.exp(x))"], 0,
          "a class of gl.autograd.Function was expected, got a function"),
    Typed("a class without a base", 1, replace_in(SOFTPLUS, "(gl.autograd.Function)", ""), 0,
          "a class of gl.autograd.Function was expected"),
    Typed("a gradient too many", 1, replace_in(SOFTPLUS, SLOPE, SLOPE + ", g"), 6, "returned 2, forward took 1"),
    Typed("no return in forward", 1, replace_in(SOFTPLUS, "return " + STABLE, STABLE), 0, "the function returned None"),
    Typed("without history", 1, replace_in(SOFTPLUS, KEPT[0], KEPT[0] + "\n        out = " + STABLE
                                        + "\n        ctx.mark_non_differentiable(out)\n        return out"), 6,
          "the result of `apply` does not require a gradient"),
    Typed("not written", 1, replace_in(SOFTPLUS, "return " + STABLE, "raise NotImplementedError()"), 0, "not written yet"),
    Typed("no class at all", 1, ["x = 1"], 0, "this name is not defined in the notebook yet"),
    # rows to one length
    Typed("one gradient for two arguments", 2, replace_in(NORMALISE, " / r, None", " / r"), 4, "returned 1, forward took 2"),
    Typed("a length that does not depend on x", 2, replace_in(NORMALISE, ROW, "ctx.length * g / r, None"), 4,
          "that is the gradient for lengths that do not depend on x"),
    Typed("the factor forgotten", 2, replace_in(NORMALISE, "ctx.length * (g", "(g"), 8, "only the factor"),
    Typed("1 / r forgotten", 2, replace_in(NORMALISE, "/ r, None", ", None"), 8, "the division by the row's length"),
    Typed("x for the row of length one", 2, replace_in(NORMALISE, "unit = x / r", "unit = x"), 4, "which of the two is of"),
    Typed("one length for all rows", 2, replace_in(NORMALISE, "(x * x).sum(1, keepdim=True)", "(x * x).sum()"), 3,
          "each row has its own length"),
    Typed("one sum for all rows", 2, replace_in(NORMALISE, "(g * unit).sum(1, keepdim=True)", "(g * unit).sum()"), 7,
          "each row has its own sum"),
    Typed("g passed on", 2, replace_in(NORMALISE, ROW, "g, None"), 4, "that is g itself"),
    Typed("length kept on the class", 2, replace_in(NORMALISE, "ctx.length", "Normalise.length"), 22,
          "the gradient of the first call is wrong after a second call"),
    Typed("r saved in forward", 2,
          replace_in(NORMALISE, KEPT[0], "ctx.save_for_backward(x, gl.sqrt((x * x).sum(1, keepdim=True)))",
                                           KEPT[1] + "\n        r = gl.sqrt((x * x).sum(1, keepdim=True))",
                                           "x, r = ctx.saved_tensors"), 21, "must be inputs or outputs"),
    Typed("the library's normalize", 2, replace_in(NORMALISE, "length * x / gl.sqrt((x * x).sum(1, keepdim=True))",
                                                "length * gl.nn.functional.normalize(x)"), 0,
          "it uses `gl.nn.functional.normalize`"),
    Typed("zeros", 2, replace_in(NORMALISE, ROW, "g * 0, None"), 4, "it counts once the gradient is right"),
    # sign
    Typed("through everywhere", 3, replace_in(SIGN, "g * (gl.abs(x) <= 1)", "g"), 10, "g passes everywhere"),
    Typed("the true derivative", 3, replace_in(SIGN, "g * (gl.abs(x) <= 1)", "g * 0"), 10,
          "earlier layers could not learn"),
    Typed("1 for g", 3, replace_in(SIGN, "g * (gl.abs(x) <= 1)", "(gl.abs(x) <= 1).double()"), 10, "return g itself, not 1"),
    Typed("less than 1", 3, replace_in(SIGN, "<= 1", "< 1"), 14, "the task says |x| ≤ 1"),
    Typed("gradcheck passes", 3, replace_in(SIGN, '"Sign": True', '"Sign": False'), 14, "%gradcheck Sign.apply(x)"),
    Typed("float32 passes", 3, replace_in(SIGN, '"Softplus in float32": True', '"Softplus in float32": False'), 14,
          "%gradcheck Softplus.apply(x)"),
    Typed("a quotient of 1", 3, replace_in(SIGN, '"quotient": 0.0', '"quotient": 1.0'), 13, "this is not the answer"),
    Typed("an error of 1e-7", 3, replace_in(SIGN, "0.06", "1e-7"), 13, "near 1 by 2e-6"),
    Typed("words for a number", 3, replace_in(SIGN, "0.06", "'large'"), 13, "a number was expected"),
    Typed("words for True", 3, replace_in(SIGN, '"Sign": True', '"Sign": "yes"'), 14, "True or False was expected"),
    Typed("a bool for fails", 3, [SIGN, "fails = True"], 13, "True or False was expected"),
    # hvp
    Typed("no create_graph", 4, replace_in(HVP, ", create_graph=True", ""), 0, "the gradient has no history"),
    Typed("H formed, row by row", 4, hvp("""
x = x.detach().clone().requires_grad_()
g, = gl.autograd.grad(f(x), x, create_graph=True)
rows = [gl.autograd.grad(one, x, retain_graph=True)[0].reshape(-1) for one in g.reshape(-1)]
return (gl.stack(rows) @ u.reshape(-1)).reshape(x.shape)
"""), 13, "sweeps, but 2 are enough"),
    Typed("H formed in one batch", 4, hvp("""
x = x.detach().clone().requires_grad_()
g, = gl.autograd.grad(f(x), x, create_graph=True)
n = x.numel()
H, = gl.autograd.grad(g, x, gl.eye(n, dtype=x.dtype).reshape(n, *x.shape), is_grads_batched=True)
return (H.reshape(n, n) @ u.reshape(-1)).reshape(x.shape)
"""), 13, "sweeps, but 2 are enough"),
    Typed("differences of gradients", 4, hvp("""
def g(x):
    x = x.detach().clone().requires_grad_()
    return gl.autograd.grad(f(x), x)[0]
return (g(x + 1e-5 * u) - g(x - 1e-5 * u)) / 2e-5
"""), 0, "0 sweeps of second order: these are differences of gradients"),
    Typed("differences with an idle product", 4, hvp("""
def g(x, **more):
    x = x.detach().clone().requires_grad_()
    return gl.autograd.grad(f(x), x, **more)[0]
leaf = x.detach().clone().requires_grad_()
slope, = gl.autograd.grad(f(leaf), leaf, create_graph=True)
gl.autograd.grad((slope * u).sum(), leaf)
return (g(x + 1e-5 * u) - g(x - 1e-5 * u)) / 2e-5
"""), 0, "these are differences of gradients"),
    Typed("differences of values", 4, hvp("""
h, e = 1e-3, gl.eye(x.numel(), dtype=x.dtype).reshape(-1, *x.shape)
up = [f(x + h * u + h * one) - f(x + h * u - h * one) - f(x - h * u + h * one) + f(x - h * u - h * one) for one in e]
return gl.stack(up).detach().reshape(x.shape) / (4 * h * h)
"""), 0, "0 sweeps: these are difference quotients"),
    Typed("functional.hvp", 4, hvp("return gl.autograd.functional.hvp(f, x, u)[1]"), 0, "it uses `gl.autograd.functional.hvp`"),
    Typed("func.hessian", 4, hvp("return gl.func.hessian(f)(x) @ u"), 0, "it uses `gl.func.hessian`"),
    Typed("the gradient added", 4, hvp("""
x = x.detach().clone().requires_grad_()
f(x).backward(create_graph=True)
(x.grad * u).sum().backward()
return x.grad.detach()
"""), 0, "that is H u plus the gradient of f"),
    Typed("u forgotten", 4, replace_in(HVP, "(g * u).sum()", "g.sum()"), 0, "that is H times ones"),
    Typed("the gradient", 4, hvp("x = x.detach().clone().requires_grad_()\nreturn gl.autograd.grad(f(x), x)[0]"), 0,
          "that is the gradient of f"),
    Typed("times u, entry by entry", 4, hvp("x = x.detach().clone().requires_grad_()\nreturn u * gl.autograd.grad(f(x), x)[0]"),
          0, "that is the gradient times u"),
    Typed("one-dimensional only", 4, replace_in(HVP, "(g * u).sum()", "g @ u"), 13, "raised"),
    Typed("x made to require a gradient", 4, replace_in(HVP, "x = x.detach().clone().requires_grad_()",
                                                     "x.requires_grad_()"), 16,
          "an input was modified: its `requires_grad`"),
    Typed("a tuple", 4, replace_in(HVP, "sum(), x)[0]", "sum(), x)"), 0, "a tuple of 1 tensor: use its first element"),
    # the largest eigenvalue
    Typed("the sign lost", 5, replace_in(LARGEST, "(u @ w).item()", "gl.sqrt(w @ w).item()"), 15,
          "right size, wrong sign: uᵀHu"),
    Typed("a start of ones", 5, replace_in(LARGEST, "gl.randn(len(x)", "gl.ones(len(x)"), 17, "another eigenvalue"),
    Typed("never normalised", 5, replace_in(LARGEST, "        u = u / gl.sqrt(u @ u)\n", "", "range(150)", "range(60)",
                                         "abs(value - before)", "1 + abs(value - before)"), 0,
          "normalize u to length one in each iteration"),
    Typed("too few turns", 5, replace_in(LARGEST, "range(150)", "range(4)"), 0, "iterate until uᵀHu no longer changes"),
    Typed("never stops early", 5, replace_in(LARGEST, "range(150)", "range(210)", "            break", "            pass"), 15,
          "210 products"),
    Typed("H formed, and NumPy's eigenvalues", 5, largest("""
H = np.stack([np.asarray(hvp(f, x, e).detach()) for e in gl.eye(len(x), dtype=x.dtype)])
values = np.linalg.eigvalsh(H)
return float(values[np.abs(values).argmax()])
""", "import numpy as np"), 15, "300 products"),
    Typed("eigvalsh", 5, largest("""
H = gl.stack([hvp(f, x, e).detach() for e in gl.eye(len(x), dtype=x.dtype)])
return gl.linalg.eigvalsh((H + H.T) / 2).abs().max()
"""), 0, "it uses `gl.linalg.eigvalsh`"),
    Typed("differences for products", 5, largest("""
def g(x):
    x = x.detach().clone().requires_grad_()
    return gl.autograd.grad(f(x), x)[0]
u = gl.randn(len(x), dtype=x.dtype)
for _ in range(100):
    u = u / gl.sqrt(u @ u)
    w = (g(x + 1e-4 * u) - g(x - 1e-4 * u)) / 2e-4
    value = u @ w
    u = w
return value
"""), 15, "0 sweeps of second order: these are differences of gradients"),
    Typed("the largest, not the largest in size", 5, largest("""
u, shift = gl.randn(len(x), dtype=x.dtype), 10.0
for _ in range(150):
    u = u / gl.sqrt(u @ u)
    w = hvp(f, x, u) + shift * u
    value = (u @ w).item() - shift
    u = w
return value
"""), 15, "find the largest by size"),
    Typed("no number", 5, replace_in(LARGEST, "return value", "return u"), 0, "shape"),
    Typed("no return", 5, replace_in(LARGEST, "    return value", "    value"), 0, "Does it end with `return`?"),
]

RIGHT_TOO = [
    Typed("softplus by cases", 1, replace_in(SOFTPLUS, STABLE,
          "gl.where(x > 0, x + gl.log1p(gl.exp(-gl.abs(x))), gl.log1p(gl.exp(-gl.abs(x))))"), 20),
    Typed("softplus from its output", 1, replace_in(SOFTPLUS, KEPT[0] + "\n        return " + STABLE,
          "y = " + STABLE + "\n        ctx.save_for_backward(y)\n        return y", KEPT[1], "y, = ctx.saved_tensors",
          SLOPE, "-g * gl.expm1(-y)"), 20),
    Typed("setup_context", 1, ["""
class Softplus(gl.autograd.Function):
    @staticmethod
    def forward(x):
        return gl.relu(x) + gl.log1p(gl.exp(-x.abs()))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        sigmoid, = [gl.sigmoid(one) for one in ctx.saved_tensors]
        return sigmoid * g
"""], 20),
    Typed("a helper called softplus, a variable called normalize", 1, ["""
def softplus(x):
    normalize = gl.maximum(x, gl.zeros_like(x))
    return normalize + gl.log1p(gl.exp(-gl.abs(x)))
""", *replace_in(SOFTPLUS, STABLE, "softplus(x)")], 20),
    Typed("the slope by hand", 1, replace_in(SOFTPLUS, SLOPE,
          "g * gl.where(x > 0, 1 / (1 + gl.exp(-gl.abs(x))), 1 - 1 / (1 + gl.exp(-gl.abs(x))))".replace(
              "1 - 1 / (1 + gl.exp(-gl.abs(x)))", "gl.exp(-gl.abs(x)) / (1 + gl.exp(-gl.abs(x)))")), 20),
    Typed("gl.linalg.norm", 2, replace_in(NORMALISE, "gl.sqrt((x * x).sum(1, keepdim=True))",
                                       "gl.linalg.norm(x, dim=1, keepdim=True)"), 25),
    Typed("x and y saved", 2, ["""
class Normalise(gl.autograd.Function):
    @staticmethod
    def forward(ctx, x, length=1.0):
        y = length * x / x.norm(dim=-1, keepdim=True)
        ctx.save_for_backward(x, y)
        ctx.set = length
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        along = (g * y).sum(-1, keepdim=True) / ctx.set ** 2
        return (g - along * y) * ctx.set / x.norm(dim=-1, keepdim=True), None
"""], 25),
    Typed("sign by where", 3, replace_in(SIGN, "g * (gl.abs(x) <= 1)", "gl.where(x.abs() > 1, gl.zeros_like(g), g)"), 15),
    Typed("sign in a copy of g", 3, replace_in(SIGN, "return g * (gl.abs(x) <= 1)",
                                            "h = g.clone()\n        h[x.abs() > 1] = 0\n        return h"), 15),
    Typed("integers, and another error", 3, replace_in(SIGN, '0.0, "backward": 1.0', '0, "backward": 1', "0.06", "0.1"), 15),
    Typed("forward over reverse", 4, hvp("return gl.func.jvp(gl.func.grad(f), (x,), (u,))[1]"), 20),
    Typed("reverse over forward", 4, hvp("return gl.func.grad(lambda t: gl.func.jvp(f, (t,), (u,))[1])(x.detach())"), 20),
    Typed("in float32", 4, replace_in(HVP, "x.detach().clone()", "x.detach().float()"), 20),
    Typed("u as the weights of the second sweep", 4, replace_in(HVP, "(g * u).sum(), x)", "g, x, u)"), 20),
    Typed("backward twice", 4, hvp("""
hessian = x.detach().clone().requires_grad_()
f(hessian).backward(create_graph=True)
jacobian = hessian.grad
hessian.grad = None
jacobian.backward(u)
return hessian.grad.detach()
"""), 20),
    Typed("vjp of grad", 4, hvp("return gl.func.vjp(gl.func.grad(f), x.detach())[1](u)[0]"), 20),
    Typed("a fixed number of turns, a tensor", 5, largest("""
u = gl.rand(len(x), dtype=x.dtype) - 0.5
for _ in range(100):
    u = hvp(f, x, u / u.norm())
return hvp(f, x, u / u.norm()) @ (u / u.norm())
"""), 20),
    Typed("in NumPy", 5, largest("""
u, values = np.random.default_rng(1).normal(size=len(x)), [np.inf, 0.0]
while abs(values[-1] - values[-2]) > 1e-8:
    u /= np.linalg.norm(u)
    w = np.asarray(hvp(f, x, gl.tensor(u)).detach())
    values.append(float(u @ w))
    u = w
return values[-1]
""", "import numpy as np"), 20),
    Typed("one graph kept", 5, largest("""
leaf = x.detach().clone().requires_grad_()
g, = gl.autograd.grad(f(leaf), leaf, create_graph=True)
u = gl.randn(len(x), dtype=x.dtype)
for _ in range(120):
    u = u / gl.sqrt(u @ u)
    w, = gl.autograd.grad(g, leaf, u, retain_graph=True)
    value, u = u @ w, w
return value
"""), 20),
]
# fmt: on

ENDLESS = largest("""
u = gl.randn(len(x), dtype=x.dtype)
while True:
    before = u / gl.sqrt(u @ u)
    u = hvp(f, x, before)
    u = u / gl.sqrt(u @ u)
    if gl.abs(u - before).max() < 1e-9:
        return u @ hvp(f, x, u)
""")
ANSWERS = [*WRONG, *RIGHT_TOO]

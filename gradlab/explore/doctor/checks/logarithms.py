"""What to write in place of a logarithm of probabilities or of a sum of exponentials: one function that does not overflow.

`log(softmax(z))` is `log_softmax(z)`, `log(sigmoid(z))` is `logsigmoid(z)`, `log(1 - sigmoid(z))` is `logsigmoid(-z)`, and
`log(exp(z).sum(1))` is `logsumexp(z, 1)`. The code is built from the source: a name in it is looked up in the statements above,
and if the source does not say all of it, no code is given.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, expression, instead
from gradlab.explore.doctor.context.definitions import calls, enclosing, is_same_at, maker, value_at
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.names import prefixes
from gradlab.explore.trace.data import Line

# Methods that only move elements: the logarithm may be taken before them.
MOVES = frozenset(("squeeze", "unsqueeze", "view", "reshape", "flatten", "gather", "permute", "transpose", "t", "select", "take"))
DEEP = 6  # names that are followed


def instead_of_log(flow: Flow, at: int) -> str:
    """Return "`new` in place of `old`" for a logarithm of probabilities; "" where the source does not say how."""
    place = flow.nodes[at].place
    own = expression(place.source) if place is not None else None
    if place is None or own is None:
        return ""
    entropy = _cross_entropy_by_hand(flow, place)
    if entropy:
        return entropy
    inner = expression(argument(place.source))
    word = flow.words[at]
    if inner is None or word not in ("Log", "Log1P"):
        return ""
    logarithm = Logarithm(flow, place)
    made = logarithm.of(inner) if word == "Log" else logarithm.of_one_plus(inner)
    return instead(ast.unparse(ast.fix_missing_locations(made)), ast.unparse(own)) if made is not None else ""


class Logarithm:
    """Takes logarithms of expressions of the source, as they stand at one place."""

    def __init__(self, flow: Flow, place: Line) -> None:
        self.flow, self.place, self.left = flow, place, DEEP

    def of(self, node: ast.expr) -> ast.expr | None:
        """Return the logarithm of an expression."""
        name = _function(node)
        if isinstance(node, ast.Call) and name == "softmax":
            call = copy.deepcopy(node)
            assert isinstance(call.func, ast.Attribute)
            call.func.attr = "log_softmax"
            return call
        if isinstance(node, ast.Call) and name in ("sigmoid", "expit"):
            return self._log_sigmoid(_first(node))
        if isinstance(node, ast.Call) and name == "sum":
            return self._log_sum(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_one(node.left):
            return self.of_one_plus(ast.UnaryOp(ast.USub(), node.right))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and (_is_one(node.left) or _is_one(node.right)):
            return None
        if isinstance(node, ast.Subscript):
            inner = self.of(node.value)
            return None if inner is None else ast.Subscript(inner, copy.deepcopy(node.slice), ast.Load())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name in MOVES:
            return _moved(node, self.of(node.func.value))
        return self._named(node, self.of)

    def of_one_plus(self, node: ast.expr) -> ast.expr | None:
        """Return the logarithm of 1 plus an expression, which is minus a sigmoid."""
        if not (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)):
            return None
        return self._of_one_minus(node.operand)

    def _of_one_minus(self, node: ast.expr) -> ast.expr | None:
        if isinstance(node, ast.Call) and _function(node) in ("sigmoid", "expit"):
            inner = _first(node)
            return None if inner is None else self._log_sigmoid(ast.UnaryOp(ast.USub(), inner))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _function(node) in MOVES:
            inner = self._of_one_minus(node.func.value)
            if inner is None:
                return None
            return ast.Call(
                ast.Attribute(inner, node.func.attr, ast.Load()), copy.deepcopy(node.args), copy.deepcopy(node.keywords)
            )
        return self._named(node, self._of_one_minus)

    def logits(self, node: ast.expr) -> ast.expr | None:
        """Return what a probability is the sigmoid of."""
        if isinstance(node, ast.Call) and _function(node) in ("sigmoid", "expit"):
            return _first(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _function(node) in MOVES:
            inner = self.logits(node.func.value)
            if inner is None:
                return None
            return ast.Call(
                ast.Attribute(inner, node.func.attr, ast.Load()), copy.deepcopy(node.args), copy.deepcopy(node.keywords)
            )
        return self._named(node, self.logits)

    def _named(self, node: ast.expr, take: Callable[[ast.expr], ast.expr | None]) -> ast.expr | None:
        """Follow a name to the expression that it was assigned."""
        if not isinstance(node, ast.Name) or not self.place.in_cell or self.left == 0:
            return None
        program = self.flow.case.program
        found = value_at(program, node.id, self.place.line)
        if found is None:
            return None
        self.left -= 1
        made = take(found[0])
        own = enclosing(program, self.place.line)
        return made if made is not None and is_same_at(own, made, found[1], self.place.line) else None

    def _log_sigmoid(self, inner: ast.expr | None) -> ast.expr | None:
        return None if inner is None else _call(f"{functional(self.flow)}.logsigmoid", inner)

    def _log_sum(self, node: ast.Call) -> ast.expr | None:
        """Return the logsumexp of `exp(z).sum(1)` or `torch.sum(exp(z), 1)`."""
        summed, exponential = copy.deepcopy(node), _first(node)
        if isinstance(exponential, ast.Name):
            found = value_at(self.flow.case.program, exponential.id, self.place.line) if self.place.in_cell else None
            exponential = found[0] if found is not None else exponential
        inner = _first(exponential) if isinstance(exponential, ast.Call) and _function(exponential) == "exp" else None
        rest = summed.args if _is_method(summed) else summed.args[1:]
        if inner is None or not (rest or any(one.arg in ("dim", "axis") for one in summed.keywords)):
            return None
        name = self.flow.case.spelled("gradlab.logsumexp")
        return ast.Call(_call(name).func, [copy.deepcopy(inner), *rest], summed.keywords)


def functional(flow: Flow) -> str:
    """What the user calls nn.functional."""
    wanted = sys.modules.get(f"{flow.trace.library}.nn.functional")
    names = [name for name, value in flow.case.namespace.items() if wanted is not None and value is wanted]
    return "F" if "F" in names else names[0] if names else flow.case.spelled("gradlab.nn.functional")


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.parse(name, mode="eval").body, [copy.deepcopy(one) for one in args], [])


def _function(node: ast.AST) -> str:
    """Return "softmax" for `torch.softmax(z, 1)` and `z.softmax(1)`; "" for any other node."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _moved(node: ast.Call, inner: ast.expr | None) -> ast.expr | None:
    """A call such as `x.squeeze(1)` of another tensor."""
    assert isinstance(node.func, ast.Attribute)
    call = copy.deepcopy(node)
    assert isinstance(call.func, ast.Attribute)
    call.func.value = inner if inner is not None else call.func.value
    return None if inner is None else call


def _first(node: ast.Call) -> ast.expr | None:
    """What a function or a method is given first."""
    first: ast.expr | None = expression(argument(ast.unparse(node)))
    return first


def _is_method(node: ast.Call) -> bool:
    """Whether a call is `x.sum(1)` and not `torch.sum(x, 1)`."""
    assert isinstance(node.func, ast.Attribute)
    return argument(ast.unparse(node)) == ast.unparse(node.func.value)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


# ------------------------------------------------------------------------------------------------- cross-entropy by hand
def _cross_entropy_by_hand(flow: Flow, place: Line) -> str:
    """Return the library's function in place of `-(y * log(p) + (1 - y) * log(1 - p)).mean()`, where p is a sigmoid."""
    tree = _parsed(place.statement)
    for node in ast.walk(tree) if tree is not None else ():
        parts = _binary(node)
        if parts is None:
            continue
        target, p, reduction, old = parts
        logits = Logarithm(flow, place).logits(p)
        if logits is None:
            return ""
        made = _call(f"{functional(flow)}.binary_cross_entropy_with_logits", logits, target)
        if reduction == "sum":
            made.keywords.append(ast.keyword("reduction", ast.Constant("sum")))
        return instead(ast.unparse(ast.fix_missing_locations(made)), ast.unparse(old))
    return ""


def _parsed(source: str) -> ast.AST | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _binary(node: ast.AST) -> tuple[ast.expr, ast.expr, str, ast.expr] | None:
    """The target, the probability, "mean" or "sum", and the whole of a binary cross-entropy by hand."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _reduced(node.operand)
        terms = _terms(inner[0]) if inner is not None else None
        return (*terms, inner[1], node) if inner is not None and terms is not None else None
    if isinstance(node, ast.Call):  # (-(…)).mean()
        inner = _reduced(node)
        if inner is not None and isinstance(inner[0], ast.UnaryOp) and isinstance(inner[0].op, ast.USub):
            terms = _terms(inner[0].operand)
            return (*terms, inner[1], node) if terms is not None else None
    return None


def _reduced(node: ast.expr) -> tuple[ast.expr, str] | None:
    """What is averaged or added up, and which of both."""
    name = _function(node)
    if not isinstance(node, ast.Call) or name not in ("mean", "sum") or node.keywords:
        return None
    inner = _first(node)
    return (inner, name) if inner is not None and len(node.args) == (0 if _is_method(node) else 1) else None


def _terms(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """(y, p) of `y * log(p) + (1 - y) * log(1 - p)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        first, second = _weighted_log(one), _weighted_log(other)
        if first is None or second is None:
            continue
        target, p = (ast.unparse(part) for part in first)
        if [ast.unparse(part) for part in second] == [f"1 - {target}", f"1 - {p}"]:
            return first
    return None


def _weighted_log(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """(y, p) of `y * log(p)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return None
    for weight, log in ((node.left, node.right), (node.right, node.left)):
        if isinstance(log, ast.Call) and _function(log) == "log":
            inner = _first(log)
            return (weight, inner) if inner is not None else None
    return None


# ------------------------------------------------------------------------------------------------------- softmax modules
def of_module(flow: Flow, at: int, before: int) -> str:
    """What to do about the logarithm of what a Softmax or Sigmoid module made, as code where the program says all of it."""
    module, kind = flow.nodes[before].module, flow.kinds.get(flow.nodes[before].module, "")
    if kind not in ("Softmax", "Sigmoid"):
        return ""
    name, whole = module, prefixes(module)[0]
    other = "LogSoftmax" if kind == "Softmax" else "LogSigmoid"
    code = _both(flow, at, before, kind, other, whole)
    if code:
        return f"Let the model give the logarithm: {code}."
    if kind == "Sigmoid":
        return f"Leave `{name}` out and use logsigmoid or binary_cross_entropy_with_logits of its input, the logits."
    return f"Make `{name}` an `nn.{other}` and leave the logarithm out, or leave `{name}` out and use a loss that takes logits."


# Methods of a model that do not compute its output.
SILENT = frozenset(
    ("parameters", "named_parameters", "train", "eval", "zero_grad", "to", "cuda", "state_dict", "load_state_dict")
)


def _is_used(case: Case, model: str) -> bool:
    """Whether a model is given to a function, or a method of its own is called that may give its output."""
    for call in calls(case, model):
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        if any(isinstance(one, ast.Name) and one.id == model for one in given):
            return True
        method = call.func
        if isinstance(method, ast.Attribute) and ast.unparse(method.value) == model and method.attr not in SILENT:
            return True
    return False


def _both(flow: Flow, at: int, before: int, kind: str, other: str, whole: str) -> str:
    """Two replacements that belong together, if nothing else uses the probabilities."""
    place = flow.nodes[at].place
    inner = argument(place.source) if place is not None else ""
    if place is None or not inner or flow.words[at] != "Log" or [e.target for e in flow.uses[before]] != [at]:
        return ""
    case = flow.case
    made = [one for one in calls(case, whole) if (ast.unparse(one.func)).rpartition(".")[2] == kind]
    used = [one for one in calls(case, whole) if ast.unparse(one.func) == whole]
    if len(made) != 1 or len(used) != 1 or ast.unparse(used[0]) != inner or maker(case, whole) is None or _is_used(case, whole):
        return ""
    new = copy.deepcopy(made[0])
    assert isinstance(new.func, (ast.Attribute, ast.Name))
    if isinstance(new.func, ast.Name):
        return ""
    new.func.attr = other
    return f"{instead(ast.unparse(new), ast.unparse(made[0]))} and {instead(inner, ast.unparse(ast.parse(place.source)))}"

"""Replace the logarithm of probabilities or of a sum of exponentials by one function that does not overflow.

`log(softmax(z))` is `log_softmax(z)`, `log(sigmoid(z))` is `logsigmoid(z)`, `log(1 - sigmoid(z))` is `logsigmoid(-z)`,
`log(exp(z).sum(1))` is `logsumexp(z, 1)`, and `log(1 + exp(z))` is `softplus(z)`. A softmax and a sigmoid may be written by hand.
The code is built from the source: a name in it is looked up in the statements above. If the source does not show all parts, no
code is suggested.
"""

from __future__ import annotations

import ast
import copy
import sys
from collections.abc import Callable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, instead, parse_expression
from gradlab.explore.doctor.context.definitions import enclosing_statements, find_calls, find_definition, is_same_at, value_at
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import Line, Shape

# Methods that only move elements: the logarithm may be taken before them.
MOVES = frozenset(("squeeze", "unsqueeze", "view", "reshape", "flatten", "gather", "permute", "transpose", "t", "select", "take"))
MAX_NAMES = 6  # followed to their assignments, one after the other


def replace_log(flow: Flow, at: int) -> str:
    """Return "`new` in place of `old`" for a logarithm of probabilities; "" if the source does not show how."""
    place = flow.nodes[at].place
    own = parse_expression(place.source) if place is not None else None
    if place is None or own is None:
        return ""
    entropy = _cross_entropy_by_hand(flow, place) if _has_target_like_it(flow, at) else ""
    if entropy:
        return entropy
    inner = parse_expression(argument(place.source))
    op = flow.ops[at]
    if inner is None or op not in ("Log", "Log1P"):
        return ""
    logarithm = Logarithm(flow, place, _summed_shape(flow, at))
    new = logarithm.log(inner) if op == "Log" else logarithm.log_one_plus(inner)
    return instead(ast.unparse(ast.fix_missing_locations(new)), ast.unparse(own)) if new is not None else ""


def replace_softmax(flow: Flow, at: int) -> str:
    """Return "`torch.softmax(z, 1)` in place of `e / e.sum(1, keepdim=True)`"; "" if the source does not show all parts."""
    place = flow.nodes[at].place
    own = parse_expression(place.source) if place is not None else None
    if place is None or own is None:
        return ""
    parts = Logarithm(flow, place, flow.nodes[at].shape or ()).softmax_by_hand(own)
    new = _make_call(flow.case.spell("gradlab.softmax"), *parts) if parts is not None else None
    return instead(ast.unparse(new), ast.unparse(own)) if new is not None else ""


def _summed_shape(flow: Flow, at: int) -> Shape:
    """Return the shape of the exponentials that are summed in the argument of a logarithm."""
    maker = flow.origin_of(flow.inputs[at][0].source) if flow.inputs[at] else at
    before = flow.inputs[maker][0].source if flow.inputs[maker] else maker
    return flow.nodes[before].shape or ()


class Logarithm:
    """Logarithms of expressions of the source, with the values that names have at one place.

    `shape` is that of the exponentials, for a sum over all of them.
    """

    def __init__(self, flow: Flow, place: Line, shape: Shape = ()) -> None:
        self.flow, self.place, self.shape, self.left = flow, place, shape, MAX_NAMES

    def log(self, node: ast.expr) -> ast.expr | None:
        """Return the logarithm of an expression."""
        name = _function_name(node)
        if isinstance(node, ast.Call) and name == "softmax":
            call = copy.deepcopy(node)
            assert isinstance(call.func, ast.Attribute)
            call.func.attr = "log_softmax"
            return call
        if isinstance(node, ast.Call) and name in ("sigmoid", "expit"):
            return self._log_sigmoid(_first_argument(node))
        if isinstance(node, ast.Call) and name == "sum":
            return self._log_sum(node)
        if isinstance(node, ast.Call) and name == "add" and _is_method(node) and len(node.args) == 1 and _is_one(node.args[0]):
            inner = _first_argument(node)
            return self.log_one_plus(inner) if inner is not None and not node.keywords else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and _is_one(node.left):
            return self.log_one_plus(ast.UnaryOp(ast.USub(), node.right))
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and (_is_one(node.left) or _is_one(node.right)):
            return self.log_one_plus(node.right if _is_one(node.left) else node.left)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if (inner := _sigmoid_argument(node)) is not None:
                return self._log_sigmoid(inner)
            parts = self.softmax_by_hand(node)
            return _make_call(f"{functional(self.flow)}.log_softmax", *parts) if parts is not None else None
        if isinstance(node, ast.Subscript):
            inner = self.log(node.value)
            return None if inner is None else ast.Subscript(inner, copy.deepcopy(node.slice), ast.Load())
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and name in MOVES:
            return _move_method(node, self.log(node.func.value))
        return self._follow_name(node, self.log)

    def log_one_plus(self, node: ast.expr) -> ast.expr | None:
        """Return the logarithm of 1 plus an expression, if this is minus a sigmoid or an exponential."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._log_one_minus(node.operand)
        if _function_name(node) == "exp" and isinstance(node, ast.Call):
            inner = _first_argument(node)
            return _make_call(f"{functional(self.flow)}.softplus", inner) if inner is not None else None
        return self._follow_name(node, self.log_one_plus)

    def _log_one_minus(self, node: ast.expr) -> ast.expr | None:
        if (inner := _sigmoid_argument(node)) is not None:
            return self._log_sigmoid(ast.UnaryOp(ast.USub(), inner))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _function_name(node) in MOVES:
            inner = self._log_one_minus(node.func.value)
            if inner is None:
                return None
            return ast.Call(
                ast.Attribute(inner, node.func.attr, ast.Load()), copy.deepcopy(node.args), copy.deepcopy(node.keywords)
            )
        return self._follow_name(node, self._log_one_minus)

    def logits(self, node: ast.expr) -> ast.expr | None:
        """Return the logits of a probability that is their sigmoid."""
        if (inner := _sigmoid_argument(node)) is not None:
            return inner
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _function_name(node) in MOVES:
            inner = self.logits(node.func.value)
            if inner is None:
                return None
            return ast.Call(
                ast.Attribute(inner, node.func.attr, ast.Load()), copy.deepcopy(node.args), copy.deepcopy(node.keywords)
            )
        return self._follow_name(node, self.logits)

    def _follow_name(self, node: ast.expr, take: Callable[[ast.expr], ast.expr | None]) -> ast.expr | None:
        """Apply a function to the expression that was assigned to a name."""
        if not isinstance(node, ast.Name) or not self.place.in_cell or self.left == 0:
            return None
        program = self.flow.case.program
        found = value_at(program, node.id, self.place.line)
        if found is None:
            return None
        self.left -= 1
        new = take(found[0])
        own = enclosing_statements(program, self.place.line)
        return new if new is not None and is_same_at(own, new, found[1], self.place.line) else None

    def _log_sigmoid(self, inner: ast.expr | None) -> ast.expr | None:
        return None if inner is None else _make_call(f"{functional(self.flow)}.logsigmoid", inner)

    def _log_sum(self, node: ast.Call) -> ast.expr | None:
        """Return the logsumexp of `exp(z).sum(1)` or `torch.sum(exp(z), 1)`."""
        summed, inner = copy.deepcopy(node), self._exponent(_first_argument(node))
        rest = summed.args if _is_method(summed) else summed.args[1:]
        if inner is None:
            return None
        if not (rest or any(one.arg in ("dim", "axis") for one in summed.keywords)):  # the sum of all elements
            axes = tuple(range(len(self.shape)))
            rest = [parse_expression(repr(axes[0] if len(axes) == 1 else axes))] if axes else []
        if not rest and not summed.keywords:
            return None
        name = self.flow.case.spell("gradlab.logsumexp")
        return ast.Call(_make_call(name).func, [copy.deepcopy(inner), *rest], summed.keywords)

    def _value_of(self, node: ast.expr | None) -> ast.expr | None:
        """Return the expression that a name stands for, if it has the same value here; any other expression itself."""
        if not isinstance(node, ast.Name):
            return node
        program = self.flow.case.program
        found = value_at(program, node.id, self.place.line) if self.place.in_cell else None
        own = enclosing_statements(program, self.place.line)
        return found[0] if found is not None and is_same_at(own, found[0], found[1], self.place.line) else None

    def _exponent(self, node: ast.expr | None) -> ast.expr | None:
        """Return z of `exp(z)`, or of a name with this value."""
        call = self._value_of(node)
        return _first_argument(call) if isinstance(call, ast.Call) and _function_name(call) == "exp" else None

    def softmax_by_hand(self, node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Return z and the axis of `exp(z) / exp(z).sum(axis, keepdim=True)`, in which names may stand for the parts."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)):
            return None
        inner, total = self._exponent(node.left), self._value_of(node.right)
        if inner is None or not isinstance(total, ast.Call) or _function_name(total) != "sum":
            return None
        summed = self._exponent(_first_argument(total))
        if summed is None or ast.unparse(summed) != ast.unparse(inner):
            return None
        rest = total.args if _is_method(total) else total.args[1:]
        given = {one.arg: one.value for one in total.keywords}
        axis = given.get("dim", given.get("axis", rest[0] if rest else None))
        keeps = given.get("keepdim", given.get("keepdims", rest[1] if len(rest) > 1 else None))
        if axis is None and len(self.shape) == 1 and not given:
            return inner, ast.Constant(0)
        kept = isinstance(keeps, ast.Constant) and keeps.value is True
        return (inner, axis) if axis is not None and (kept or len(self.shape) == 1) else None


def functional(flow: Flow) -> str:
    """Return the user's name of `nn.functional`."""
    wanted = sys.modules.get(f"{flow.trace.library}.nn.functional")
    names = [name for name, value in flow.case.namespace.items() if wanted is not None and value is wanted]
    return "F" if "F" in names else names[0] if names else flow.case.spell("gradlab.nn.functional")


def _make_call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.parse(name, mode="eval").body, [copy.deepcopy(one) for one in args], [])


def _function_name(node: ast.AST) -> str:
    """Return "softmax" for `torch.softmax(z, 1)` and `z.softmax(1)`; "" for any other node."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def _move_method(node: ast.Call, inner: ast.expr | None) -> ast.expr | None:
    """Return a call such as `x.squeeze(1)` on another tensor."""
    assert isinstance(node.func, ast.Attribute)
    call = copy.deepcopy(node)
    assert isinstance(call.func, ast.Attribute)
    call.func.value = inner if inner is not None else call.func.value
    return None if inner is None else call


def _first_argument(node: ast.Call) -> ast.expr | None:
    """Return the first argument of a function, or the object of a method."""
    first: ast.expr | None = parse_expression(argument(ast.unparse(node)))
    return first


def _sigmoid_argument(node: ast.AST) -> ast.expr | None:
    """Return z of `sigmoid(z)` and of `1 / (1 + exp(-z))`."""
    if isinstance(node, ast.Call) and _function_name(node) in ("sigmoid", "expit"):
        return _first_argument(node)
    below = node.right if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _is_one(node.left) else None
    if not (isinstance(below, ast.BinOp) and isinstance(below.op, ast.Add)):
        return None
    call = below.right if _is_one(below.left) else below.left if _is_one(below.right) else None
    inner = _first_argument(call) if isinstance(call, ast.Call) and _function_name(call) == "exp" else None
    return inner.operand if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.USub) else None


def _is_method(node: ast.Call) -> bool:
    """Return whether a call is `x.sum(1)` and not `torch.sum(x, 1)`."""
    assert isinstance(node.func, ast.Attribute)
    return argument(ast.unparse(node)) == ast.unparse(node.func.value)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


# ------------------------------------------------------------------------------------------------- cross-entropy by hand
def _cross_entropy_by_hand(flow: Flow, place: Line) -> str:
    """Return the library's function in place of `-(y * log(p) + (1 - y) * log(1 - p)).mean()`, where p is a sigmoid."""
    tree = _parse(place.statement)
    for node in ast.walk(tree) if tree is not None else ():
        parts = _binary_cross_entropy(node)
        if parts is None:
            continue
        target, p, reduction, old = parts
        logits = Logarithm(flow, place).logits(p)
        if logits is None:
            return ""
        new = _make_call(f"{functional(flow)}.binary_cross_entropy_with_logits", logits, target)
        if reduction == "sum":
            new.keywords.append(ast.keyword("reduction", ast.Constant("sum")))
        return instead(ast.unparse(ast.fix_missing_locations(new)), ast.unparse(old))
    return ""


def _has_target_like_it(flow: Flow, at: int) -> bool:
    """Return whether a logarithm is multiplied by a floating point tensor of its shape, as the library's function requires."""
    shape = flow.nodes[at].shape
    for edge in flow.uses[at]:
        node = flow.nodes[edge.target]
        others = [flow.nodes[other.source] for other in flow.inputs[edge.target] if other.source != at]
        given = [(one.shape, one.dtype) for one in others]
        given += [(operand.value.shape, operand.value.dtype) for operand in node.operands if operand.value is not None]
        if flow.properties[edge.target].multiplies and any(size == shape and "float" in dtype for size, dtype in given):
            return True
    return False


def _parse(source: str) -> ast.AST | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _binary_cross_entropy(node: ast.AST) -> tuple[ast.expr, ast.expr, str, ast.expr] | None:
    """Return the target, the probability, "mean" or "sum", and the whole expression of a binary cross-entropy by hand."""
    negative = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
    whole = node.operand if isinstance(node, ast.UnaryOp) and negative else node
    inner = _reduction(whole) if isinstance(whole, ast.expr) else None
    terms = _signed_terms(inner[0], not negative) if inner is not None else []
    if inner is None or len(terms) != 2 or any(positive for positive, _ in terms) or not isinstance(node, ast.expr):
        return None
    pair = _target_and_probability(terms[0][1], terms[1][1])
    return (*pair, inner[1], node) if pair is not None else None


def _reduction(node: ast.expr) -> tuple[ast.expr, str] | None:
    """Return the argument of a mean or a sum, and "mean" or "sum"."""
    name = _function_name(node)
    if not isinstance(node, ast.Call) or name not in ("mean", "sum") or node.keywords:
        return None
    inner = _first_argument(node)
    return (inner, name) if inner is not None and len(node.args) == (0 if _is_method(node) else 1) else None


def _signed_terms(node: ast.expr, positive: bool) -> list[tuple[bool, ast.expr]]:
    """Return the terms of a sum, and whether each has a plus sign: that of `-y * log(p)` is a minus."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        second = positive if isinstance(node.op, ast.Add) else not positive
        return _signed_terms(node.left, positive) + _signed_terms(node.right, second)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _signed_terms(node.operand, not positive)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        left = node.left
        if isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub):
            return [(not positive, ast.BinOp(left.operand, ast.Mult(), node.right))]
    return [(positive, node)]


def _target_and_probability(a: ast.expr, b: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return (y, p) of the terms `y * log(p)` and `(1 - y) * log(1 - p)`."""
    for one, other in ((a, b), (b, a)):
        first, second = _weighted_log(one), _weighted_log(other)
        if first is None or second is None:
            continue
        target, p = (ast.unparse(part) for part in first)
        if [ast.unparse(part) for part in second] == [f"1 - {target}", f"1 - {p}"]:
            return first
    return None


def _weighted_log(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return (y, p) of `y * log(p)`."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return None
    for weight, log in ((node.left, node.right), (node.right, node.left)):
        if isinstance(log, ast.Call) and _function_name(log) == "log":
            inner = _first_argument(log)
            return (weight, inner) if inner is not None else None
    return None


# ------------------------------------------------------------------------------------------------------- softmax modules
def module_fix(flow: Flow, at: int, before: int) -> str:
    """Return a fix for the logarithm of the output of a Softmax or Sigmoid module, as code if the program shows all parts."""
    module, kind = flow.nodes[before].module, flow.kinds.get(flow.nodes[before].module, "")
    if kind not in ("Softmax", "Sigmoid"):
        return ""
    name, whole = module, prefixes(module)[0]
    other = "LogSoftmax" if kind == "Softmax" else "LogSigmoid"
    code = _replace_module(flow, at, before, kind, other, whole)
    if code:
        return f"Let the model return the logarithm: {code}."
    if kind == "Sigmoid":
        return f"Leave `{name}` out and use logsigmoid or binary_cross_entropy_with_logits of its input, the logits."
    return f"Make `{name}` an `nn.{other}` and leave the logarithm out, or leave `{name}` out and use a loss that takes logits."


# Methods of a model that do not compute its output.
METHODS_WITHOUT_OUTPUT = frozenset(
    ("parameters", "named_parameters", "train", "eval", "zero_grad", "to", "cuda", "state_dict", "load_state_dict")
)


def _is_used(case: Case, model: str) -> bool:
    """Return whether a model is passed to a function, or a method is called that may return its output."""
    for call in find_calls(case, model):
        given = (*call.args, *(keyword.value for keyword in call.keywords))
        if any(isinstance(one, ast.Name) and one.id == model for one in given):
            return True
        method = call.func
        if isinstance(method, ast.Attribute) and ast.unparse(method.value) == model and method.attr not in METHODS_WITHOUT_OUTPUT:
            return True
    return False


def _replace_module(flow: Flow, at: int, before: int, kind: str, other: str, whole: str) -> str:
    """Return two replacements that belong together, if no other operation uses the probabilities."""
    place = flow.nodes[at].place
    inner = argument(place.source) if place is not None else ""
    if place is None or not inner or flow.ops[at] != "Log" or [e.target for e in flow.uses[before]] != [at]:
        return ""
    case = flow.case
    created = [one for one in find_calls(case, whole) if (ast.unparse(one.func)).rpartition(".")[2] == kind]
    used = [one for one in find_calls(case, whole) if ast.unparse(one.func) == whole]
    if (
        len(created) != 1
        or len(used) != 1
        or ast.unparse(used[0]) != inner
        or find_definition(case, whole) is None
        or _is_used(case, whole)
    ):
        return ""
    new = copy.deepcopy(created[0])
    assert isinstance(new.func, (ast.Attribute, ast.Name))
    if isinstance(new.func, ast.Name):
        return ""
    new.func.attr = other
    return f"{instead(ast.unparse(new), ast.unparse(created[0]))} and {instead(inner, ast.unparse(ast.parse(place.source)))}"

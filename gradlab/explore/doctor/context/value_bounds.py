"""Bounds of the values that nodes can have for any weights: 0 and 1 for a sigmoid, 1e-8 and ∞ for `x.exp() + 1e-8`.

Bounds follow from the operations and the constants between a node and the weights. Data count with the values that they have.
An end that does not follow from these is NaN, so that no comparison with it is true. This also holds for `torch.where` and for
writes in place, which may keep numbers out of a range. Bounds that the recorded value does not respect are not used.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass

from gradlab.explore.doctor.context.code_edits import argument, parse_expression
from gradlab.explore.doctor.context.flow import Flow, extremes
from gradlab.explore.trace.values import Value

MAX_DEPTH = 40  # nodes on the way to the weights
TOLERANCE = 1e-3  # relative to the bounds, of recorded values: float16 rounds to 5e-4


@dataclass(frozen=True)
class Bounds:
    """The least and the greatest value that a node can have; NaN if it is not known."""

    low: float
    high: float


UNKNOWN, ANY, NONNEGATIVE = Bounds(math.nan, math.nan), Bounds(-math.inf, math.inf), Bounds(0.0, math.inf)


class ValueBounds:
    """The bounds of the nodes of a graph, which are computed when they are asked for."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._known: dict[int, Bounds] = {}

    def of(self, i: int, depth: int = 0) -> Bounds:
        """Return the bounds of a node."""
        if i not in self._known:
            if depth > MAX_DEPTH:
                return UNKNOWN
            found = self._compute(i, depth)
            self._known[i] = found if _respects(self.flow.nodes[i].value, found) else UNKNOWN
        return self._known[i]

    def of_argument(self, i: int, which: int, depth: int = 0) -> Bounds:
        """Return the bounds of an argument of an operation, those of its values if it is a constant."""
        edge = next((edge for edge in self.flow.inputs[i] if edge.argument == which), None)
        if edge is not None:
            return self.of(edge.source, depth)
        value = next((operand.value for operand in self.flow.nodes[i].operands if operand.argument == which), None)
        if value is None or not value.size or value.nans or value.dtype.startswith("complex"):
            return UNKNOWN
        return Bounds(*map(float, extremes(value)))

    def _compute(self, i: int, depth: int) -> Bounds:
        flow, node, facts = self.flow, self.flow.nodes[i], self.flow.properties[i]
        if node.kind == "leaf":
            return ANY
        if node.kind == "folded" or not flow.inputs[i]:
            return UNKNOWN
        if node.kind == "output":
            return self.of(flow.inputs[i][0].source, depth + 1)
        if (rule := RULES_OF_BOUNDS.get(flow.ops[i])) is not None:
            return rule(self, i, depth + 1)
        if facts.chooses or facts.writes:
            return UNKNOWN
        if facts.adds:
            return self._add(i, depth + 1)
        if facts.reduces or facts.moves or facts.product:
            return self._combine(i, depth + 1)
        if facts.normalises or facts.looks_up:
            return ANY
        if facts.low >= 0 or facts.high <= 0:
            return Bounds(facts.low, facts.high)
        return _of_sign(self.of_argument(i, 0, depth + 1)) if facts.keeps_sign and facts.elementwise else UNKNOWN

    def _all_arguments(self, i: int, depth: int) -> list[Bounds]:
        others = [operand.argument for operand in self.flow.nodes[i].operands]
        return [self.of_argument(i, k, depth) for k in dict.fromkeys((*(e.argument for e in self.flow.inputs[i]), *others))]

    def _combine(self, i: int, depth: int) -> Bounds:
        """Return the bounds of an operation that moves or reduces data, or of a product of matrices."""
        facts, first = self.flow.properties[i], self.of_argument(i, 0, depth)
        if facts.moves == "join":
            several = self._all_arguments(i, depth)
            return Bounds(_least([one.low for one in several]), -_least([-one.high for one in several]))
        if facts.moves or facts.reduces in ("mean", "extreme", "rank"):
            return first
        if facts.reduces in ("sum", "nansum"):
            terms = _terms(self.flow, i)
            return Bounds(_scale(first.low, terms), _scale(first.high, terms))
        if facts.reduces in ("norm", "spread"):
            return NONNEGATIVE
        if facts.reduces == "product":
            return Bounds(0.0, 1.0 if first.high <= 1 else math.inf) if first.low >= 0 else UNKNOWN
        if not facts.product:
            return UNKNOWN
        if len(self.flow.inputs[i]) == 2 and all(is_unit(self.flow, edge.source) for edge in self.flow.inputs[i]):
            return Bounds(-1.0, 1.0)
        return NONNEGATIVE if all(one.low >= 0 for one in self._all_arguments(i, depth)) else ANY

    def _add(self, i: int, depth: int) -> Bounds:
        place, op = self.flow.nodes[i].place, self.flow.ops[i]
        if place is not None and "alpha" in place.source:
            return UNKNOWN
        a, b = (self.of_argument(i, k, depth) for k in (0, 1))
        if op == "Rsub":
            constant = constant_before(self.flow, i)
            a, b = (b, a) if constant is None else (Bounds(constant, constant), a)
        if op == "Add":
            return Bounds(a.low + b.low, a.high + b.high)
        return Bounds(a.low - b.high, a.high - b.low)


def constant_before(flow: Flow, i: int) -> float | None:
    """Return c of `c - x`, which gradlab does not record: the sum of the result and of x, at both ends of their ranges."""
    if flow.ops[i] != "Rsub" or len(flow.inputs[i]) != 1 or flow.nodes[i].operands:
        return None
    value, result = flow.nodes[flow.inputs[i][0].source].value, flow.nodes[i].value
    if value is None or result is None or not value.size or value.odd or result.odd:
        return None
    (low, high), (least, greatest) = extremes(value), extremes(result)
    constant, other = low + greatest, high + least
    size = max(1.0, abs(low), abs(high))
    return round(constant, 5) if abs(constant - other) <= 1e-3 * size else None


def is_unit(flow: Flow, i: int) -> bool:
    """Return whether a node is a tensor divided by its own norm, with or without a small number added to it."""
    i = flow.origin_of(i)
    if flow.ops[i] != "Div" or len(flow.inputs[i]) != 2:
        return False
    above, below = (next(edge.source for edge in flow.inputs[i] if edge.argument == k) for k in (0, 1))
    for _ in range(4):
        below = flow.before_reshapes(below)
        if flow.properties[below].reduces == "norm" or flow.ops[below] == "Sqrt":
            break
        if not flow.inputs[below]:
            return False
        below = flow.inputs[below][0].source
    reached = {flow.origin_of(edge.source) for edge in flow.inputs[below]}
    for _ in range(3):
        reached |= {flow.origin_of(edge.source) for one in reached for edge in flow.inputs[one]}
    root = flow.properties[below].reduces == "norm" or flow.ops[below] == "Sqrt"
    return root and flow.origin_of(above) in reached


def _respects(value: Value | None, bounds: Bounds) -> bool:
    """Return whether the finite elements of a recorded value are within bounds."""
    if value is None or not value.size or value.odd or value.dtype.startswith("complex"):
        return True
    least, greatest = extremes(value)
    slack = TOLERANCE * max(1e-30, abs(least), abs(greatest))
    return not (least < bounds.low - slack or greatest > bounds.high + slack)


def _least(numbers: list[float]) -> float:
    return math.nan if any(x != x for x in numbers) else min(numbers, default=math.nan)


def _scale(x: float, factor: float) -> float:
    return 0.0 if x == 0 or factor == 0 else x * factor


def _terms(flow: Flow, i: int) -> float:
    """Return how many elements one element of a sum adds up."""
    above = flow.nodes[flow.inputs[i][0].source].shape
    size = math.prod(flow.nodes[i].shape or ())
    return math.prod(above) / size if above is not None and size else 1.0


def _of_sign(x: Bounds) -> Bounds:
    """Return the bounds of a value that has the sign of x, or is 0."""
    low, high = 0.0 if x.low >= 0 else -math.inf, 0.0 if x.high <= 0 else math.inf
    return Bounds(low if x.low == x.low else math.nan, high if x.high == x.high else math.nan)


# --------------------------------------------------------------------------------------------------------- single rules
Rule = Callable[[ValueBounds, int, int], Bounds]


def _monotone(function: Callable[[float], float], low: float, high: float) -> Rule:
    """Return the rule of an increasing function with these limits."""

    def at(x: float, limit: float) -> float:
        if abs(x) == math.inf:
            return limit
        try:
            return function(x)
        except (OverflowError, ValueError):
            return limit

    def rule(bounds: ValueBounds, i: int, depth: int) -> Bounds:
        x = bounds.of_argument(i, 0, depth)
        least = at(x.low, low) if x.low == x.low else low
        return Bounds(least, at(x.high, high) if x.high == x.high else high)

    return rule


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _multiply(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    flow = bounds.flow
    sources = [flow.before_reshapes(edge.source) for edge in flow.inputs[i]]
    a, b = (bounds.of_argument(i, k, depth) for k in (0, 1))
    if len(sources) == 2 and sources[0] == sources[1]:
        return _square(a)
    products = [_scale(x, y) if abs(y) != math.inf or x else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    return Bounds(_least(products), -_least([-x for x in products]))


def _square(x: Bounds) -> Bounds:
    ends = sorted((x.low * x.low, x.high * x.high))
    return Bounds(0.0 if not (x.low > 0 or x.high < 0) else ends[0], math.inf if x.low != x.low or x.high != x.high else ends[1])


def _divide(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    a, b = (bounds.of_argument(i, k, depth) for k in (0, 1))
    if is_unit(bounds.flow, i):
        return Bounds(0.0 if a.low >= 0 else -1.0, 1.0)
    if b.low > 0 or b.high < 0:
        quotients = [x / y if abs(y) != math.inf else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
        return Bounds(_least(quotients), -_least([-x for x in quotients]))
    return NONNEGATIVE if a.low >= 0 and b.low >= 0 else ANY if a.low == a.low and b.low == b.low else UNKNOWN


def _reciprocal(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    x = bounds.of_argument(i, 0, depth)
    if x.low >= 0:
        return Bounds(0.0 if x.high == math.inf else 1 / x.high, 1 / x.low if x.low > 0 else math.inf)
    return ANY if x.low == x.low else UNKNOWN


def _power(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    x, exponent = (bounds.of_argument(i, k, depth) for k in (0, 1))
    p = exponent.low
    if exponent.low != exponent.high:
        return UNKNOWN
    if p == 2:
        return _square(x)
    if x.low >= 0 and p > 0:
        return Bounds(x.low**p, x.high**p if x.high < 1e30 else math.inf)
    return NONNEGATIVE if x.low >= 0 or p % 2 == 0 else UNKNOWN


def _clamp(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    """Return the bounds of a clamp, whose limits are read from the source."""
    place = bounds.flow.nodes[i].place
    tree = parse_expression(place.source) if place is not None else None
    x = bounds.of_argument(i, 0, depth)
    name = tree.func.attr if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) else ""
    if not isinstance(tree, ast.Call) or name.rstrip("_") not in ("clamp", "clip", "clamp_min", "clamp_max"):
        return UNKNOWN
    rest = [one for one in tree.args if ast.unparse(one) != argument(ast.unparse(tree))]
    given = {one.arg: one.value for one in tree.keywords}
    low = given.get("min", rest[0] if rest and not name.startswith("clamp_max") else None)
    high = given.get("max", rest[-1] if len(rest) > 1 or (rest and name.startswith("clamp_max")) else None)
    least, greatest = (_number(bounds.flow, one) for one in (low, high))
    return Bounds(
        x.low if low is None else max(x.low, least) if x.low == x.low and least == least else least,
        x.high if high is None else min(x.high, greatest) if x.high == x.high and greatest == greatest else greatest,
    )


def _number(flow: Flow, node: ast.expr | None) -> float:
    """Return the value of an expression of numbers and of names of numbers; NaN if it is not known."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return float(node.value)
    if isinstance(node, ast.Name) and isinstance(value := flow.case.namespace.get(node.id), (int, float)):
        return float(value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(flow, node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        left, right = _number(flow, node.left), _number(flow, node.right)
        return left + right if isinstance(node.op, ast.Add) else left - right
    return math.nan


def _larger(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    a, b = (bounds.of_argument(i, k, depth) for k in (0, 1))
    return Bounds(-_least([-a.low, -b.low]), -_least([-a.high, -b.high]))


def _smaller(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    a, b = (bounds.of_argument(i, k, depth) for k in (0, 1))
    return Bounds(_least([a.low, b.low]), _least([a.high, b.high]))


def _softmax(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    x = bounds.of_argument(i, 0, depth)
    width = x.high - x.low
    return Bounds(math.exp(-width) / max(bounds.flow.nodes[i].shape or (1,)) if width < 700 else 0.0, 1.0)


def _masked_fill(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    """Return the bounds of `masked_fill`: as a rule with a large negative number, so the upper one is kept."""
    return Bounds(math.nan, bounds.of_argument(i, 0, depth).high)


def _negative(bounds: ValueBounds, i: int, depth: int) -> Bounds:
    x = bounds.of_argument(i, 0, depth)
    return Bounds(-x.high, -x.low)


RULES_OF_BOUNDS: dict[str, Rule] = {
    "Exp": _monotone(math.exp, 0.0, math.inf),
    "Sqrt": _monotone(math.sqrt, 0.0, math.inf),
    "Sigmoid": _monotone(_sigmoid, 0.0, 1.0),
    "Tanh": _monotone(math.tanh, -1.0, 1.0),
    "Relu": _monotone(lambda x: max(x, 0.0), 0.0, math.inf),
    "Log": _monotone(math.log, -math.inf, math.inf),
    "Softmax": _softmax,
    "Neg": _negative,
    "Mul": _multiply,
    "Div": _divide,
    "Reciprocal": _reciprocal,
    "Pow": _power,
    "Clamp": _clamp,
    "ClampMin": _clamp,
    "ClampMax": _clamp,
    "Maximum": _larger,
    "Minimum": _smaller,
    "MaskedFill": _masked_fill,
}

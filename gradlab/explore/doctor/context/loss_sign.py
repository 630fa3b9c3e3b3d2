"""The sign of a loss, as far as its operations show it, and whether it compares predictions with targets."""

from __future__ import annotations

from collections.abc import Callable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.operations import lookup, operation_name
from gradlab.explore.trace.data import GraphNode

MAX_DEPTH = 40


def sign_of_loss(case: Case) -> int:
    """Return 1 if the operations of the loss show that it is never below 0, −1 if it is never above 0, and 0 otherwise."""
    trace = case.trace
    if trace is None or not trace.nodes or not trace.outputs:
        return 0

    known: dict[int, int] = {}

    def sign(node: int, depth: int) -> int:
        if node not in known:
            known[node] = compute_sign(node, depth)
        return known[node]

    def compute_sign(node: int, depth: int) -> int:
        one = trace.nodes[node]
        name, properties, inputs = operation_name(one.operation), lookup(one.operation), case.inputs[node]
        if depth > MAX_DEPTH:
            return 0
        if properties.low >= 0:
            return 1
        if properties.high <= 0:
            return -1
        if name == "Pow" and _is_even_power(one):
            return 1
        if name == "Mul" and len(inputs) == 2 and inputs[0] == inputs[1]:
            return 1
        if len(inputs) == 1 or (inputs and _keeps_sign(one)):
            factor = _sign_of_factor(one)
            return sign(inputs[0], depth + 1) * factor if factor else 0
        if name in ("Add", "Sub") and len(inputs) == 2:
            a, b = (sign(source, depth + 1) for source in inputs)
            return a if a == (b if name == "Add" else -b) else 0
        return 0

    return sign(trace.outputs[0], 0)


def is_bounded(case: Case) -> bool:
    """Return whether the operations of the loss show that all its values are in a finite range, as those of a sigmoid."""

    def test(node: int) -> bool:
        assert case.trace is not None
        properties = lookup(case.trace.nodes[node].operation)
        return -properties.low < float("inf") and properties.high < float("inf")

    return _holds_for_all_terms(case, test)


def is_fit(case: Case) -> bool:
    """Return whether each term of the loss compares predictions with data.

    Terms are losses of targets, squared differences and logarithms of the probabilities of given classes.
    Factors must be numbers in the source.
    """
    trace = case.trace
    assert trace is not None

    def test(node: int) -> bool:
        one = trace.nodes[node]
        name, properties, inputs = operation_name(one.operation), lookup(one.operation), case.inputs[node]
        if properties.loss is not None:
            return properties.loss.nonnegative and len(inputs) == 1 and not _has_cut(one)
        if properties.moves == "part" and len(inputs) == 1 and not _has_cut(one):
            return operation_name(trace.nodes[inputs[0]].operation) == "LogSoftmax"
        squares = (name == "Pow" and _is_even_power(one)) or name in ("Square", "Abs")
        if squares or (name == "Mul" and len(inputs) == 2 and inputs[0] == inputs[1]):
            difference = trace.nodes[inputs[0]]
            return lookup(difference.operation).adds and len(case.inputs[inputs[0]]) == 1 and not _has_cut(difference)
        return False

    return _holds_for_all_terms(case, test)


def find_negation(case: Case) -> int | None:
    """Return the node that makes the loss negative: a minus, or a negative factor; None if no single operation does."""
    assert case.trace is not None
    at = case.inputs[case.trace.outputs[0]][0]
    for _ in range(MAX_DEPTH):
        one = case.trace.nodes[at]
        if operation_name(one.operation) == "Neg" or _sign_of_factor(one) < 0:
            return at
        if len(case.inputs[at]) != 1 or _sign_of_factor(one) != 1:
            return None
        at = case.inputs[at][0]
    return None


def _holds_for_all_terms(case: Case, test: Callable[[int], bool]) -> bool:
    """Return whether a test holds for each term of the loss: what is left without its sums, means, moves, signs and factors."""
    trace = case.trace
    if trace is None or not trace.outputs:
        return False
    waiting, seen = [trace.outputs[0]], set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        one, inputs = trace.nodes[node], case.inputs[node]
        if len(seen) > MAX_DEPTH:
            return False
        if test(node):
            continue
        is_sum = operation_name(one.operation) in ("Add", "Sub") and len(inputs) == 2
        if not is_sum and not (len(inputs) == 1 and _sign_of_factor(one, literal=True)):
            return False
        waiting += inputs
    return True


def _keeps_sign(one: GraphNode) -> bool:
    """Return whether an operation keeps the sign of its first input.

    A join has several inputs, and an elementwise operation may have an operand that is not recorded.
    """
    properties = lookup(one.operation)
    return properties.keeps_sign and bool(properties.reduces or properties.moves not in ("", "join"))


def _sign_of_factor(one: GraphNode, *, literal: bool = False) -> int:
    """Return the sign by which an operation multiplies that of its input; 0 if it is not known.

    With `literal`, a number must be written in the source as one.
    """
    if one.kind == "output" or _keeps_sign(one):
        return 1
    if operation_name(one.operation) == "Neg":
        return -1
    numbers = _numbers(one)
    if not lookup(one.operation).multiplies or len(one.operands) != 1 or len(numbers) != 1:
        return 0
    if literal and not _is_number(one.operands[0].text):
        return 0
    return 1 if numbers[0] > 0 else -1 if numbers[0] < 0 else 0


def _numbers(one: GraphNode) -> list[float]:
    """Return the first number of each operand that is a number, or a tensor with few."""
    firsts = [operand.value.numbers[0] for operand in one.operands if operand.value is not None and operand.value.numbers]
    return [number for number in firsts if isinstance(number, (int, float))]


def _is_even_power(one: GraphNode) -> bool:
    numbers = _numbers(one)
    return bool(numbers) and numbers[0] % 2 == 0


def _has_cut(one: GraphNode) -> bool:
    """Return whether an operation was given a tensor that lost its history."""
    return any(operand.kind == "cut" for operand in one.operands)


def _is_number(text: str) -> bool:
    try:
        float(text.replace(" ", "").strip("()"))
    except ValueError:
        return False
    return True

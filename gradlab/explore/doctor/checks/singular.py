"""Explain by operation why a value or a derivative is not finite, and suggest a fix."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradlab.explore.doctor.checks.class_weights import find_zero_weights
from gradlab.explore.doctor.checks.logarithms import module_fix, replace_log
from gradlab.explore.doctor.context.code_edits import (
    argument,
    instead,
    parenthesize,
    parse_expression,
    replace_expression,
    small_number,
    wrap_argument,
)
from gradlab.explore.doctor.context.flow import Flow, digits, extremes, operand_text, plural
from gradlab.explore.doctor.context.number_limits import LARGEST_NUMBERS, largest_exponent, largest_finite
from gradlab.explore.libraries.loss_scaling import factor_text
from gradlab.explore.trace.values import Value

RECURRENT_USES = 8  # a weight that is used so often is that of a recurrence
ROUNDING_OF_ONE = 1e-6  # in float32, a cosine so near to 1 may be rounded to 1


@dataclass
class Explanation:
    """An explanation of a value that is not finite: a message, a fix and the numbers in the message."""

    message: str
    fix: str
    evidence: Mapping[str, object]


def argument_value(flow: Flow, at: int, argument: int = 0) -> Value | None:
    """Return the value of an argument of an operation, whether it is a node of the graph or a constant."""
    for edge in flow.inputs[at]:
        if edge.argument == argument:
            return flow.nodes[edge.source].value
    return next((operand.value for operand in flow.nodes[at].operands if operand.argument == argument), None)


def argument_name(flow: Flow, at: int, argument: int = 0) -> str:
    """Return the user's name of an argument, in backticks."""
    for edge in flow.inputs[at]:
        if edge.argument == argument:
            return flow.name(edge.source)
    operand = next((o for o in flow.nodes[at].operands if o.argument == argument), None)
    if operand is not None:
        return operand_text(operand)
    return "its second input" if argument == 1 else "its input"


def least(value: Value) -> float:
    return extremes(value)[0]


def code_at(flow: Flow, at: int) -> str:
    """Return the code of an operation with its line: "`torch.log(p)` on line 3"."""
    return f"{flow.code(at)}{flow.place(at)}"


def guard_argument(flow: Flow, at: int, by: Callable[[str], str], argument: int = 0) -> str:
    """Return "`new` in place of `old`" for an operation whose argument `by` makes safe; "" if the source does not show it."""
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    if argument:
        tree = parse_expression(source)
        own = ast.unparse(tree.right) if isinstance(tree, ast.BinOp) else ""
        return instead(replace_expression(source, own, by(parenthesize(own))), source) if own else ""
    tree = parse_expression(source)
    if isinstance(tree, ast.BinOp):
        own = ast.unparse(tree.left)
        return instead(replace_expression(source, own, by(parenthesize(own))), source)
    return instead(wrap_argument(source, argument_name(flow, at).strip("`"), by), source)


def add_small(flow: Flow, at: int) -> Callable[[str], str]:
    """Return a function that adds a small number, of a size that the dtype of the operation can represent."""
    return lambda x: f"({x} + {small_number(flow.nodes[at].dtype)})"


def clamp_below(flow: Flow, at: int) -> Callable[[str], str]:
    return lambda x: f"{x}.clamp(min={small_number(flow.nodes[at].dtype)})"


def suffix(code: str, otherwise: str = "") -> str:
    """Return the code of a fix after a colon; `otherwise` if there is no code."""
    return f": {code}" if code else otherwise


# ------------------------------------------------------------------------------------------------------------- functions
def explain_value(flow: Flow, at: int) -> Explanation | None:
    """Return why an operation computed a NaN or an infinity; None if it is not known."""
    op = flow.ops[at]
    explain = FUNCTIONS.get(op)
    explanation = explain(flow, at) if explain is not None else None
    return explanation or _overflow(flow, at)


def _log(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None:
        return None
    op, name = flow.ops[at].lower(), argument_name(flow, at)
    edge = -1.0 if op == "log1p" else 0.0
    if value.nans == 0 and least(value) < edge:
        how_many = (
            f"{plural(n, 'number')} below {digits(edge)}" if (n := count_below(value, edge)) is not None else "negative numbers"
        )
        return Explanation(
            f"{code_at(flow, at)} takes the logarithm of {how_many} among {value.size} (the least is "
            f"{digits(least(value))}), where {op} is NaN.",
            f"Make {name} positive by exp or softplus, or clamp it{suffix(guard_argument(flow, at, clamp_below(flow, at)))}.",
            {"least": least(value), "size": value.size, "argument": 0} | ({"below": n} if n is not None else {}),
        )
    result = flow.nodes[at].value
    if edge:  # log1p of -1
        if value.nans or least(value) > edge or result is None or not result.infs:
            return None
        return Explanation(
            f"{code_at(flow, at)} had -1 at {result.infs} of {plural(value.size, 'input')}: the log1p of -1 is -inf.",
            log_fix(flow, at, name),
            {"infs": result.infs, "size": value.size, "argument": 0},
        )
    if not value.zeros:
        return None
    return Explanation(
        f"{code_at(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: the {op} of 0 is -inf, "
        "and its derivative 1/0 is inf.",
        log_fix(flow, at, name),
        {"zeros": value.zeros, "size": value.size, "argument": 0, "infs": result.infs if result is not None else 0},
    )


def log_fix(flow: Flow, at: int, name: str) -> str:
    code = replace_log(flow, at)
    before = flow.inputs[at][0].source if flow.inputs[at] else at
    before = before if flow.ops[before] in ("Softmax", "Sigmoid") else flow.origin_of(before)
    op = flow.ops[before]
    sigmoid = op == "Sigmoid" or ((flow.properties[before].adds or op == "Neg") and "Sigmoid" in _input_ops(flow, before))
    if code and (op == "Softmax" or sigmoid):
        name = "log_softmax" if op == "Softmax" else "binary_cross_entropy_with_logits" if "_with_" in code else "logsigmoid"
        return f"Use {name}, which takes the logits: {code}."
    if code:
        return f"Use one function for both steps: {code}."
    if op not in ("Softmax", "Sigmoid") and sigmoid:
        before = next(edge.source for edge in flow.inputs[before] if flow.ops[edge.source] == "Sigmoid")
    if (op == "Softmax" or sigmoid) and (module := module_fix(flow, at, before)):
        return module
    if op == "Softmax":
        return "Use log_softmax of the logits in place of the logarithm of their softmax."
    if sigmoid:
        return "Use logsigmoid of the logits, or binary_cross_entropy_with_logits, in place of the logarithm of their sigmoid."
    return f"Clamp {name} from below{suffix(guard_argument(flow, at, clamp_below(flow, at)))}."


def _input_ops(flow: Flow, at: int) -> set[str]:
    return {flow.ops[edge.source] for edge in flow.inputs[at]}


def count_below(value: Value, edge: float) -> int | None:
    return None if value.numbers is None else sum(x < edge for x in value.numbers)


def _sqrt(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None or not least(value) < 0:
        return _reciprocal(flow, at) if flow.ops[at] == "Rsqrt" else None
    n = count_below(value, 0.0)
    count = f"{plural(n, 'negative number')}" if n is not None else "negative numbers"
    return Explanation(
        f"{code_at(flow, at)} takes the square root of {count} among {value.size} (the least is {digits(least(value))}), "
        "which is NaN.",
        f"Clamp {argument_name(flow, at)} from below with a small number above 0"
        f"{suffix(guard_argument(flow, at, clamp_below(flow, at)))}.",
        {"least": least(value), "size": value.size, "argument": 0},
    )


def _divide(flow: Flow, at: int) -> Explanation | None:
    divisor = argument_value(flow, at, 1)
    if divisor is None or not divisor.zeros:
        return None
    name = argument_name(flow, at, 1)
    quotient = flow.nodes[at].value
    result = "NaN (0 / 0)" if quotient is not None and quotient.nans else "infinite"
    whole = divisor.zeros == divisor.size
    fix = f"Check why {name} is 0{' everywhere' if divisor.size > 1 else ''}." if whole else divisor_fix(flow, at, name)
    return Explanation(
        f"{code_at(flow, at)} divides by {name}, which has {plural(divisor.zeros, 'zero')} among "
        f"{plural(divisor.size, 'element')}: the result is {result}.",
        fix,
        {"zeros": divisor.zeros, "size": divisor.size, "argument": 1},
    )


def divisor_fix(flow: Flow, at: int, name: str) -> str:
    """Return how to avoid a divisor of 0. The derivative of a square root or a standard deviation is infinite at 0, so in these a
    small number is added under the root."""
    source = next((edge.source for edge in flow.inputs[at] if edge.argument == 1), None)
    origin = flow.origin_of(source) if source is not None else None
    if origin is not None and flow.ops[origin] == "Sqrt":
        return f"Add a small number under the root{suffix(guard_argument(flow, origin, add_small(flow, origin)))}."
    if origin is not None and flow.ops[origin] == "Std":
        return f"Use the square root of the variance plus a small number{suffix(_replace_std(flow, origin))}."
    divisor = argument_value(flow, at, 1)
    if divisor is None or divisor.nans or least(divisor) < 0:  # a clamp would change negative numbers
        return f"Check why {name} has zeros, or leave these elements out."
    code = suffix(guard_argument(flow, at, clamp_below(flow, at), 1), f": add a small number to {name}")
    return f"Use a divisor that cannot be 0{code}."


def _replace_std(flow: Flow, at: int) -> str:
    """Return "`(x.var(0) + 1e-12).sqrt()` in place of `x.std(0)`"."""
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    tree = parse_expression(source)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute) or tree.func.attr != "std":
        return ""
    tree.func.attr = "var"
    return instead(f"({ast.unparse(tree)} + {small_number(flow.nodes[at].dtype)}).sqrt()", source)


def _reciprocal(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None or not value.zeros:
        return None
    return Explanation(
        f"{code_at(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: 1/0 is inf.",
        f"Add a small number to {argument_name(flow, at)}{suffix(guard_argument(flow, at, add_small(flow, at)))}.",
        {"zeros": value.zeros, "size": value.size, "argument": 0},
    )


def _power(flow: Flow, at: int) -> Explanation | None:
    value, exponent = argument_value(flow, at), argument_value(flow, at, 1)
    if value is None or exponent is None or not exponent.numbers:
        return None
    p = float(exponent.numbers[0])
    if p < 0 and value.zeros:
        return Explanation(
            f"{code_at(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: 0 to the power "
            f"of {digits(p)} is inf.",
            f"Add a small number to {argument_name(flow, at)}{suffix(guard_argument(flow, at, add_small(flow, at)))}.",
            {"zeros": value.zeros, "size": value.size, "argument": 0, "exponent": p},
        )
    if p != int(p) and least(value) < 0:
        return Explanation(
            f"{code_at(flow, at)} takes negative numbers (the least is {digits(least(value))}) to the power of "
            f"{digits(p)}, which is NaN.",
            f"Clamp {argument_name(flow, at)} from below{suffix(guard_argument(flow, at, clamp_below(flow, at)))}.",
            {"least": least(value), "size": value.size, "argument": 0, "exponent": p},
        )
    return None


def _exp(flow: Flow, at: int) -> Explanation | None:
    value, result = argument_value(flow, at), flow.nodes[at].value
    if value is None or result is None or value.nans:
        return None
    op = flow.ops[at]
    limit, top = largest_exponent(result.dtype, op), largest_finite(value)
    if top <= limit:
        return None
    return Explanation(
        f"{code_at(flow, at)} overflows {result.dtype}: {op.lower()} of {digits(top)} is above "
        f"{digits(LARGEST_NUMBERS[result.dtype])}, the largest number, at {result.infs} of "
        f"{plural(result.size, 'element')}; the limit is {limit:.1f}.",
        _exp_fix(flow, at, limit),
        {"greatest": top, "infs": result.infs, "size": result.size, "limit": limit, "argument": 0},
    )


def _exp_fix(flow: Flow, at: int, limit: float) -> str:
    """Return a fix: logsumexp or softmax if the program computes them by hand, else a clamp of the input."""
    users = [edge.target for edge in flow.uses[at]]
    sums = [i for i in users if flow.ops[i] == "Sum"]
    logs = [edge.target for i in sums for edge in flow.uses[i] if flow.ops[edge.target] == "Log"]
    if logs:
        return f"Use logsumexp{suffix(replace_log(flow, logs[0]))}."
    if sums and any(flow.ops[i] == "Div" for i in users):
        axis = _axis(flow, sums[0])
        code = guard_argument(flow, at, lambda x: f"({x} - {x}.amax({axis}, keepdim=True))") if axis else ""
        return f"Use softmax, or subtract the largest element of each row first{suffix(code)}."
    code = suffix(guard_argument(flow, at, lambda x: f"{x}.clamp(max={limit // 2:g})"))
    return f"Clamp the input{code}, or make it smaller." if not sums else "Make the input smaller."


def _axis(flow: Flow, at: int) -> str:
    """Return the axis of a sum as it is written; "" if it is not known."""
    place = flow.nodes[at].place
    tree = parse_expression(place.source) if place is not None else None
    if not isinstance(tree, ast.Call):
        return ""
    named = next((one.value for one in tree.keywords if one.arg in ("dim", "axis")), None)
    first = tree.args[-1] if tree.args and ast.unparse(tree.args[-1]) != argument(ast.unparse(tree)) else None
    axis = named if named is not None else first
    return ast.unparse(axis) if axis is not None else ""


def _clamp_inside(x: str) -> str:
    """Return an expression clamped to just inside -1 and 1."""
    return f"{x}.clamp(-1 + 1e-6, 1 - 1e-6)"


def _arc_function(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None or value.largest <= 1:
        return None
    return Explanation(
        f"{code_at(flow, at)} has inputs of magnitude {digits(value.largest)}, and {flow.ops[at].lower()} is NaN beyond 1.",
        f"Clamp {argument_name(flow, at)} between -1 + 1e-6 and 1 - 1e-6{suffix(guard_argument(flow, at, _clamp_inside))}.",
        {"largest": value.largest, "argument": 0},
    )


def _softmax(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None or not value.infs:
        return None
    return Explanation(
        f"{code_at(flow, at)} has {plural(value.infs, 'infinity', 'infinities')} in its input: inf / inf is NaN.",
        "",
        {"infs": value.infs},
    )


def _std(flow: Flow, at: int) -> Explanation | None:
    value, result = argument_value(flow, at), flow.nodes[at].value
    if value is None or result is None or not result.nans or value.nans:
        return None
    return Explanation(
        f"{code_at(flow, at)} is NaN at {result.nans} of {plural(result.size, 'element')}: the {flow.ops[at].lower()} of "
        "one number divides 0 by n - 1 = 0.",
        "Compute it of more than one number, or divide by n instead of n - 1 (correction=0).",
        {"nans": result.nans, "size": result.size},
    )


def _mean(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is None or value.size:
        return None
    return Explanation(
        f"{code_at(flow, at)} is the mean of an empty tensor: {argument_name(flow, at)} has 0 elements, and 0 / 0 is NaN.",
        "Check why it is empty.",
        {"size": 0},
    )


def _nll_loss(flow: Flow, at: int) -> Explanation | None:
    value = argument_value(flow, at)
    if value is not None and (value.nans or value.infs):
        return None
    weights = find_zero_weights(flow, at)
    if weights is not None:
        why = f"{code_at(flow, at)} divides by the sum of the targets' class weights: {weights[0]}, and 0 / 0 is NaN."
        return Explanation(why, "Give the classes that occur weights above 0.", weights[1])
    return Explanation(
        f"{code_at(flow, at)} is the mean over 0 targets: all of them are ignored, and 0 / 0 is NaN.",
        "Leave out batches without a target.",
        {},
    )


def _overflow(flow: Flow, at: int) -> Explanation | None:
    """Return the explanation of a result above the largest number of its dtype."""
    node = flow.nodes[at]
    result = node.value
    if result is None or not result.infs or result.dtype not in LARGEST_NUMBERS:
        return None
    known = [v for v in (argument_value(flow, at, k) for k in range(3)) if v is not None]
    if not known or any(v.nans or v.infs for v in known):
        return None
    if not _can_overflow(flow, at, known, LARGEST_NUMBERS[result.dtype]):
        return None
    sizes = " and ".join(digits(v.largest) for v in known[:2] if v.dtype != "bool")
    half = result.dtype in ("float16", "bfloat16")
    limit = "65504" if result.dtype == "float16" else digits(LARGEST_NUMBERS[result.dtype])
    return Explanation(
        f"{code_at(flow, at)} overflows {result.dtype} at {result.infs} of {plural(result.size, 'element')}: with inputs up to "
        f"{sizes} the result exceeds {limit}, the largest number.",
        f"Compute this step in float32{suffix(guard_argument(flow, at, lambda x: f'{x}.float()'))}, or scale the input."
        if half
        else _growth_fix(flow, at),
        {"infs": result.infs, "size": result.size, "largest": tuple(v.largest for v in known)},
    )


def _growth_fix(flow: Flow, at: int) -> str:
    """Return a fix for an overflow of float32: another matrix if it is that of a recurrence."""
    weight = flow.weights[at]
    if weight is not None and weight >= 0 and flow.weights.count(weight) >= RECURRENT_USES and flow.nodes[weight].name:
        return f"Initialise `{flow.nodes[weight].name}` with an orthogonal matrix of scale 1, or use fewer steps."
    return "Make the inputs smaller, or find out why they grow."


def _can_overflow(flow: Flow, at: int, known: list[Value], limit: float) -> bool:
    """Return whether an operation on numbers of these magnitudes can exceed a limit."""
    op, properties, sizes = flow.ops[at], flow.properties[at], [v.largest for v in known]
    try:
        if op == "Pow":
            return len(sizes) > 1 and sizes[0] ** sizes[1] > limit
        if properties.product:
            terms = max((v.shape[-1] for v in known if v.shape), default=1)
            products = [a * b for k, a in enumerate(sizes) for b in sizes[k + 1 :]]
            return max(products, default=0.0) * terms > limit
        if op in ("Mul", "Prod"):
            return math.prod(sizes) > limit
        if properties.adds or properties.reduces == "sum" or op == "Cumsum":
            return sum(sizes) * max(v.size for v in known) > limit
        if op == "ToCopy":
            return sizes[0] > limit
        return op == "MseLoss" and (2 * max(sizes)) ** 2 * known[0].size > limit
    except OverflowError:
        return True


FUNCTIONS: dict[str, Callable[[Flow, int], Explanation | None]] = {
    "Log": _log,
    "Log2": _log,
    "Log10": _log,
    "Log1P": _log,
    "Sqrt": _sqrt,
    "Rsqrt": _sqrt,
    "Div": _divide,
    "Reciprocal": _reciprocal,
    "Pow": _power,
    "Exp": _exp,
    "Exp2": _exp,
    "Expm1": _exp,
    "Sinh": _exp,
    "Cosh": _exp,
    "Acos": _arc_function,
    "Asin": _arc_function,
    "Atanh": _arc_function,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Std": _std,
    "Var": _std,
    "Mean": _mean,
    "NllLoss": _nll_loss,
    "NllLoss2D": _nll_loss,
}


# ----------------------------------------------------------------------------------------------------------- derivatives
# Powers with smaller exponents make a large number of 1e-12.
LEAST_POWER = 0.5
VISIBLE_CHANGE = 1e-4  # relative change of a value that the fix mentions


def _is_half(flow: Flow, at: int) -> bool:
    """Return whether the dtype is so coarse that the smallest number that can be added changes a value."""
    return flow.nodes[at].dtype in ("float16", "bfloat16")


def _clamp_effect(flow: Flow, at: int, ends: int | None) -> str:
    """Return how the clamp to just inside -1 and 1 changes the loss: acos(1) is 0, acos(1 - 1e-6) is 0.0014."""
    result = flow.nodes[at].value
    if result is None or flow.ops[at] == "Atanh" or result.odd:
        return ""
    moved = math.acos(1 - 1e-6) * (ends if ends is not None else 1)
    return " This changes the loss a little: an angle at the end becomes 0.0014." if moved > VISIBLE_CHANGE * result.norm else ""


def arc_advice(flow: Flow, at: int, ends: int | None) -> str:
    """Return advice to clamp the input of an arc function to just inside -1 and 1. `ends` of its elements are at the end."""
    code = suffix(guard_argument(flow, at, _clamp_inside))
    return f"Clamp {argument_name(flow, at)} between -1 + 1e-6 and 1 - 1e-6{code}.{_clamp_effect(flow, at, ends)}"


def explain_derivative(flow: Flow, at: int) -> Explanation | None:
    """Return why the derivative of an operation is not finite though its value is."""
    value, properties = argument_value(flow, at), flow.properties[at]
    if value is None:
        return None
    by_fact = _overflowing_gradient if properties.product else _root_of_zero if properties.reduces == "norm" else None
    explain = DERIVATIVES.get(flow.ops[at], by_fact)
    return explain(flow, at, value) if explain is not None else None


def _pole_at_zero(flow: Flow, at: int, value: Value) -> Explanation | None:
    if not value.zeros:
        return None
    op, name = flow.ops[at], argument_name(flow, at)
    slope = {"Sqrt": "1 / (2 · sqrt(0))", "Log": "1/0"}.get(op, "at 0")
    return Explanation(
        f"{code_at(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}; the derivative of "
        f"{op.lower()} there, {slope}, is inf.",
        f"Add a small number {'under the root' if op == 'Sqrt' else f'to {name}'}"
        f"{suffix('' if _is_half(flow, at) else guard_argument(flow, at, add_small(flow, at)))}.",
        {"zeros": value.zeros, "size": value.size, "argument": 0},
    )


def _power_of_zero(flow: Flow, at: int, value: Value) -> Explanation | None:
    if not value.zeros:
        return _overflowing_gradient(flow, at, value)
    exponent = argument_value(flow, at, 1)
    p = float(exponent.numbers[0]) if exponent is not None and exponent.numbers else math.nan
    if not p < 1:
        return None
    code = guard_argument(flow, at, add_small(flow, at)) if p >= LEAST_POWER and not _is_half(flow, at) else ""
    return Explanation(
        f"{code_at(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}; the derivative of the power "
        f"{digits(p)} there, {digits(p)} · 0 ** {digits(p - 1)}, is inf.",
        f"Add a small number to {argument_name(flow, at)} before the power{suffix(code)}.",
        {"zeros": value.zeros, "size": value.size, "argument": 0, "exponent": p, "slope": p - 1},
    )


def _end_of_domain(flow: Flow, at: int, value: Value) -> Explanation | None:
    """Explain the derivative of an arc function at -1 or 1."""
    if value.largest < 1 - ROUNDING_OF_ONE:
        return None
    size = plural(value.size, "input")
    ends = None if value.numbers is None else sum(abs(x) == 1 for x in value.numbers)
    count = f"{ends} of {size}" if ends is not None else f"some of {size}"
    return Explanation(
        f"{code_at(flow, at)} is at the end of its domain, ±1, at {count}; the derivative of {flow.ops[at].lower()} there, "
        "is infinite.",
        arc_advice(flow, at, ends),
        {"largest": value.largest, "size": value.size, "argument": 0},
    )


def _root_of_zero(flow: Flow, at: int, value: Value) -> Explanation | None:
    """Explain the derivative of a norm or a standard deviation that is 0."""
    result = flow.nodes[at].value
    if result is None or not result.zeros:
        return None
    return Explanation(
        f"{code_at(flow, at)} is 0 at {result.zeros} of {plural(result.size, 'element')}, and the derivative "
        "of its square root is not finite there.",
        f"Use the square root of the variance plus a small number{suffix(_replace_std(flow, at))}."
        if flow.ops[at] == "Std"
        else "Use the square root of the sum of squares plus a small number.",
        {"zeros": result.zeros, "size": result.size, "made": True},
    )


def _angle_of_zero(flow: Flow, at: int, value: Value) -> Explanation | None:
    if not value.zeros:
        return None
    return Explanation(
        f"{code_at(flow, at)} has the input (0, 0), where it has no derivative.",
        f"Add a small number to {argument_name(flow, at)}.",
        {"zeros": value.zeros},
    )


def _overflowing_gradient(flow: Flow, at: int, value: Value) -> Explanation | None:
    arrived = flow.nodes[at].gradient
    passed = next((e.gradient for e in flow.inputs[at] if e.gradient is not None and e.gradient.infs), None)
    if arrived is None or passed is None or passed.dtype not in LARGEST_NUMBERS:
        return None
    limit = "65504" if passed.dtype == "float16" else digits(LARGEST_NUMBERS[passed.dtype])
    scale = flow.trace.scale
    scaled = "" if scale == 1.0 else f", with the factor {factor_text(scale)} of the GradScaler,"
    return Explanation(
        f"In the backward pass of {code_at(flow, at)} the gradient overflows {passed.dtype} at {passed.infs} of "
        f"{plural(passed.size, 'element')}: {digits(arrived.largest * scale)}{scaled} arrives, and the result exceeds {limit}.",
        ("Scale the loss down before backward(), or compute in float32." if scale == 1.0 else "Compute in float32 or bfloat16.")
        if passed.dtype in ("float16", "bfloat16")
        else "Make the weights or the inputs smaller, or scale the loss down before backward().",
        {"infs": passed.infs, "size": passed.size, "arrived": arrived.largest},
    )


DERIVATIVES: dict[str, Callable[[Flow, int, Value], Explanation | None]] = {
    **dict.fromkeys(("Sqrt", "Rsqrt", "Reciprocal", "Log", "Log2", "Log10"), _pole_at_zero),
    **dict.fromkeys(("Acos", "Asin", "Atanh"), _end_of_domain),
    "Pow": _power_of_zero,
    "Std": _root_of_zero,
    "Atan2": _angle_of_zero,
    "Div": lambda flow, at, value: _divide(flow, at),
    "Mul": _overflowing_gradient,
    "Exp": _overflowing_gradient,
    "ToCopy": _overflowing_gradient,
}

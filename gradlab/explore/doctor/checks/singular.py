"""Where functions and their derivatives are not finite, and what is to be done: by operation, in words with the numbers."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradlab.explore.doctor.checks.class_weights import zero_weights
from gradlab.explore.doctor.checks.logarithms import instead_of_log, of_module
from gradlab.explore.doctor.context.code_edits import argument, expression, grouped, instead, protected, replaced, small
from gradlab.explore.doctor.context.flow import PRODUCTS, Flow, extremes, figure, operand_text, plural
from gradlab.explore.trace.values import Value

# The largest numbers (IEEE 754; bfloat16 has float32's exponents).
GREATEST = {
    "float16": 65504.0,
    "bfloat16": 3.3895313892515355e38,
    "float32": 3.4028234663852886e38,
    "float64": 1.7976931348623157e308,
}
STEPS = 8  # uses of one weight that are a recurrence
ROUNDING_OF_ONE = 1e-6  # of float32: how near to 1 an angle's cosine is rounded to it


@dataclass
class Singular:
    """What is said of an operation."""

    message: str
    fix: str
    evidence: Mapping[str, object]


def given_value(flow: Flow, at: int, argument: int = 0) -> Value | None:
    """The value of an operation's argument, of the graph or not."""
    for edge in flow.given[at]:
        if edge.argument == argument:
            return flow.nodes[edge.source].value
    return next((operand.value for operand in flow.nodes[at].operands if operand.argument == argument), None)


def given_name(flow: Flow, at: int, argument: int = 0) -> str:
    """What the user calls an argument, in backticks."""
    for edge in flow.given[at]:
        if edge.argument == argument:
            return flow.name(edge.source)
    operand = next((o for o in flow.nodes[at].operands if o.argument == argument), None)
    return operand_text(operand) if operand is not None else "what it is given"


def least(value: Value) -> float:
    return extremes(value)[0]


def greatest(value: Value) -> float:
    return extremes(value)[1]


def where(flow: Flow, at: int) -> str:
    return f"{flow.code(at)}{flow.place(at)}"


def guarded(flow: Flow, at: int, by: Callable[[str], str], argument: int = 0) -> str:
    """What to write in place of an operation, with its argument made safe; "" where the source does not say."""
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    if argument:
        tree = expression(source)
        own = ast.unparse(tree.right) if isinstance(tree, ast.BinOp) else ""
        return instead(replaced(source, own, by(grouped(own))), source) if own else ""
    tree = expression(source)
    if isinstance(tree, ast.BinOp):
        own = ast.unparse(tree.left)
        return instead(replaced(source, own, by(grouped(own))), source)
    return instead(protected(source, given_name(flow, at).strip("`"), by), source)


def added(flow: Flow, at: int) -> Callable[[str], str]:
    """A small number added, of the size that the operation's dtype can hold."""
    return lambda x: f"({x} + {small(flow.nodes[at].dtype)})"


def clamped(flow: Flow, at: int) -> Callable[[str], str]:
    return lambda x: f"{x}.clamp(min={small(flow.nodes[at].dtype)})"


def told(code: str, otherwise: str = "") -> str:
    """ ": `new` in place of `old`" where that is known."""
    return f": {code}" if code else otherwise


# ------------------------------------------------------------------------------------------------------------- functions
def function(flow: Flow, at: int) -> Singular | None:
    """Why an operation made a NaN or an infinity; None if that is not known."""
    word = flow.words[at]
    explanation = FUNCTIONS.get(word)
    told = explanation(flow, at) if explanation is not None else None
    return told or _overflow(flow, at)


def _log(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None:
        return None
    word, name = flow.words[at].lower(), given_name(flow, at)
    edge = -1.0 if word == "log1p" else 0.0
    if value.nans == 0 and least(value) < edge:
        how_many = f"{plural(n, 'number')} below {figure(edge)}" if (n := below(value, edge)) is not None else "negative numbers"
        return Singular(
            f"{where(flow, at)} takes the logarithm of {how_many} among {value.size} (the least is "
            f"{figure(least(value))}): {word} of "
            "it is NaN.",
            f"Make {name} positive, by exp or softplus of what it is computed from, or clamp it"
            f"{told(guarded(flow, at, clamped(flow, at)))}.",
            {"least": least(value), "size": value.size, "argument": 0} | ({"below": n} if n is not None else {}),
        )
    result = flow.nodes[at].value
    if edge:  # log1p of -1
        if value.nans or least(value) > edge or result is None or not result.infs:
            return None
        return Singular(
            f"{where(flow, at)} had -1 at {result.infs} of {plural(value.size, 'input')}: the log1p of -1 is -inf.",
            _instead_of_log(flow, at, name),
            {"infs": result.infs, "size": value.size, "argument": 0},
        )
    if not value.zeros:
        return None
    return Singular(
        f"{where(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: the {word} of 0 is -inf, "
        "and its derivative 1/0 is inf.",
        _instead_of_log(flow, at, name),
        {"zeros": value.zeros, "size": value.size, "argument": 0, "infs": result.infs if result is not None else 0},
    )


def _instead_of_log(flow: Flow, at: int, name: str) -> str:
    code = instead_of_log(flow, at)
    before = flow.given[at][0].source if flow.given[at] else at
    before = before if flow.words[before] in ("Softmax", "Sigmoid") else flow.moved_from(before)
    word = flow.words[before]
    sigmoid = word == "Sigmoid" or (word in ("Rsub", "Sub", "Add", "Neg") and "Sigmoid" in _words_before(flow, before))
    if code and (word == "Softmax" or sigmoid):
        function = (
            "log_softmax" if word == "Softmax" else "binary_cross_entropy_with_logits" if "_with_" in code else "logsigmoid"
        )
        return f"Use {function}, which takes the logits: {code}."
    if code:
        return f"Use one function for both steps: {code}."
    if word not in ("Softmax", "Sigmoid") and sigmoid:
        before = next(edge.source for edge in flow.given[before] if flow.words[edge.source] == "Sigmoid")
    if (word == "Softmax" or sigmoid) and (module := of_module(flow, at, before)):
        return module
    if word == "Softmax":
        return "Use log_softmax of the logits in place of the logarithm of their softmax."
    if sigmoid:
        return "Use logsigmoid of the logits, or binary_cross_entropy_with_logits, in place of the logarithm of their sigmoid."
    return f"Clamp {name} from below{told(guarded(flow, at, clamped(flow, at)))}."


def _words_before(flow: Flow, at: int) -> set[str]:
    return {flow.words[edge.source] for edge in flow.given[at]}


def below(value: Value, edge: float) -> int | None:
    return None if value.numbers is None else sum(x < edge for x in value.numbers)


def _root(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None or not least(value) < 0:
        return _reciprocal(flow, at) if flow.words[at] == "Rsqrt" else None
    n = below(value, 0.0)
    count = f"{plural(n, 'negative number')}" if n is not None else "negative numbers"
    return Singular(
        f"{where(flow, at)} takes the square root of {count} among {value.size} (the least is {figure(least(value))}): "
        "it is NaN.",
        f"Clamp {given_name(flow, at)} from below with a small number above 0{told(guarded(flow, at, clamped(flow, at)))}.",
        {"least": least(value), "size": value.size, "argument": 0},
    )


def _divide(flow: Flow, at: int) -> Singular | None:
    below_ = given_value(flow, at, 1)
    if below_ is None or not below_.zeros:
        return None
    name = given_name(flow, at, 1)
    quotient = flow.nodes[at].value
    result = "NaN (0 / 0)" if quotient is not None and quotient.nans else "infinite"
    whole = below_.zeros == below_.size
    fix = f"See why {name} is 0{' everywhere' if below_.size > 1 else ''}." if whole else _instead_of_zero(flow, at, name)
    return Singular(
        f"{where(flow, at)} divides by {name}, which has {plural(below_.zeros, 'zero')} among "
        f"{plural(below_.size, 'element')}: the "
        f"result is {result}.",
        fix,
        {"zeros": below_.zeros, "size": below_.size, "argument": 1},
    )


def _instead_of_zero(flow: Flow, at: int, name: str) -> str:
    """What to divide by. A root or a spread of 0 has no finite slope either: then what it is of is made greater."""
    source = next((edge.source for edge in flow.given[at] if edge.argument == 1), None)
    below_ = flow.moved_from(source) if source is not None else None
    if below_ is not None and flow.words[below_] == "Sqrt":
        return f"Add a small number below the root{told(guarded(flow, below_, added(flow, below_)))}."
    if below_ is not None and flow.words[below_] == "Std":
        return f"Take the root of the variance plus a small number{told(_of_variance(flow, below_))}."
    divisor = given_value(flow, at, 1)
    if divisor is None or divisor.nans or least(divisor) < 0:  # a clamp would change what is negative
        return f"See why {name} has zeros, or leave out what is divided by them."
    return f"Divide by what cannot be 0{told(guarded(flow, at, clamped(flow, at), 1), f': a small number added to {name}')}."


def _of_variance(flow: Flow, at: int) -> str:
    """`(x.var(0) + 1e-12).sqrt()` in place of `x.std(0)`."""
    place = flow.nodes[at].place
    source = place.source if place is not None else ""
    tree = expression(source)
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Attribute) or tree.func.attr != "std":
        return ""
    tree.func.attr = "var"
    return instead(f"({ast.unparse(tree)} + {small(flow.nodes[at].dtype)}).sqrt()", source)


def _reciprocal(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None or not value.zeros:
        return None
    return Singular(
        f"{where(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: 1/0 is inf.",
        f"Add a small number to {given_name(flow, at)}{told(guarded(flow, at, added(flow, at)))}.",
        {"zeros": value.zeros, "size": value.size, "argument": 0},
    )


def _power(flow: Flow, at: int) -> Singular | None:
    value, exponent = given_value(flow, at), given_value(flow, at, 1)
    if value is None or exponent is None or not exponent.numbers:
        return None
    p = float(exponent.numbers[0])
    if p < 0 and value.zeros:
        return Singular(
            f"{where(flow, at)} had {plural(value.zeros, 'zero')} among {plural(value.size, 'input')}: 0 to the power "
            f"of {figure(p)} is inf.",
            f"Add a small number to {given_name(flow, at)}{told(guarded(flow, at, added(flow, at)))}.",
            {"zeros": value.zeros, "size": value.size, "argument": 0, "exponent": p},
        )
    if p != int(p) and least(value) < 0:
        return Singular(
            f"{where(flow, at)} takes negative numbers (the least is {figure(least(value))}) to the power of "
            f"{figure(p)}: that is NaN.",
            f"Clamp {given_name(flow, at)} from below{told(guarded(flow, at, clamped(flow, at)))}.",
            {"least": least(value), "size": value.size, "argument": 0, "exponent": p},
        )
    return None


def _exp(flow: Flow, at: int) -> Singular | None:
    value, result = given_value(flow, at), flow.nodes[at].value
    if value is None or result is None or value.nans:
        return None
    limit, top = largest_exponent(result.dtype), greatest_finite(value)
    if top <= limit:
        return None
    return Singular(
        f"{where(flow, at)} overflows {result.dtype}: exp of {figure(top)} is above "
        f"{figure(GREATEST[result.dtype])}, the largest number, at {result.infs} of {plural(result.size, 'element')}; the limit "
        f"is {limit:.1f}.",
        _instead_of_exp(flow, at, limit),
        {"greatest": top, "infs": result.infs, "size": result.size, "limit": limit, "argument": 0},
    )


def largest_exponent(dtype: str) -> float:
    """The largest number of which exp is finite."""
    return math.log(GREATEST[dtype]) if dtype in GREATEST else math.inf


def greatest_finite(value: Value) -> float:
    """The greatest number of a value that is finite, -inf if there is none."""
    if value.numbers is not None:
        return max((float(x) for x in value.numbers if math.isfinite(x)), default=-math.inf)
    return float(value.statistics.maximum)


def _instead_of_exp(flow: Flow, at: int, limit: float) -> str:
    """Use logsumexp or softmax where they are made by hand, else clamp what goes in."""
    users = [edge.target for edge in flow.uses[at]]
    sums = [i for i in users if flow.words[i] == "Sum"]
    logs = [edge.target for i in sums for edge in flow.uses[i] if flow.words[edge.target] == "Log"]
    if logs:
        return f"Use logsumexp{told(instead_of_log(flow, logs[0]))}."
    if sums and any(flow.words[i] == "Div" for i in users):
        axis = _axis(flow, sums[0])
        code = guarded(flow, at, lambda x: f"({x} - {x}.amax({axis}, keepdim=True))") if axis else ""
        return f"Use softmax, or subtract the greatest of each row first{told(code)}."
    code = told(guarded(flow, at, lambda x: f"{x}.clamp(max={limit // 2:g})"))
    return f"Clamp what goes in{code}, or make it smaller." if not sums else "Make what goes in smaller."


def _axis(flow: Flow, at: int) -> str:
    """Along which axis a sum is taken, as it is written; "" if that is not known."""
    place = flow.nodes[at].place
    tree = expression(place.source) if place is not None else None
    if not isinstance(tree, ast.Call):
        return ""
    named = next((one.value for one in tree.keywords if one.arg in ("dim", "axis")), None)
    first = tree.args[-1] if tree.args and ast.unparse(tree.args[-1]) != argument(ast.unparse(tree)) else None
    axis = named if named is not None else first
    return ast.unparse(axis) if axis is not None else ""


def _inside(x: str) -> str:
    """Of what ends at ±1."""
    return f"{x}.clamp(-1 + 1e-6, 1 - 1e-6)"


def _arc(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None or value.largest <= 1:
        return None
    return Singular(
        f"{where(flow, at)} was given {figure(value.largest)}: {flow.words[at].lower()} ends at 1, and beyond it is NaN.",
        f"Clamp {given_name(flow, at)} between -1 + 1e-6 and 1 - 1e-6{told(guarded(flow, at, _inside))}.",
        {"largest": value.largest, "argument": 0},
    )


def _softmax(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None or not value.infs:
        return None
    return Singular(
        f"{where(flow, at)} was given {plural(value.infs, 'infinity', 'infinities')}: inf / inf is NaN.", "", {"infs": value.infs}
    )


def _spread(flow: Flow, at: int) -> Singular | None:
    value, result = given_value(flow, at), flow.nodes[at].value
    if value is None or result is None or not result.nans or value.nans:
        return None
    return Singular(
        f"{where(flow, at)} is NaN at {result.nans} of {plural(result.size, 'element')}: the {flow.words[at].lower()} of "
        "one number, with n - 1 "
        "= 0 below, is 0 / 0.",
        "Take it over more than one number, or use n in place of n - 1 (correction=0).",
        {"nans": result.nans, "size": result.size},
    )


def _mean(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is None or value.size:
        return None
    return Singular(
        f"{where(flow, at)} takes the mean of nothing: {given_name(flow, at)} has 0 elements, and 0 / 0 is NaN.",
        "See why it is empty.",
        {"size": 0},
    )


def _no_target(flow: Flow, at: int) -> Singular | None:
    value = given_value(flow, at)
    if value is not None and (value.nans or value.infs):
        return None
    weighed = zero_weights(flow, at)
    if weighed is not None:
        return Singular(f"{where(flow, at)} divides by the sum of the targets' class weights: {weighed[0]}.", *weighed[1:])
    return Singular(
        f"{where(flow, at)} takes the mean over no target: all of them are ignored, and 0 / 0 is NaN.",
        "Leave batches without a target out.",
        {},
    )


def _overflow(flow: Flow, at: int) -> Singular | None:
    """The result is beyond the largest number of its type."""
    node = flow.nodes[at]
    result = node.value
    if result is None or not result.infs or result.dtype not in GREATEST:
        return None
    known = [v for v in (given_value(flow, at, k) for k in range(3)) if v is not None]
    if not known or any(v.nans or v.infs for v in known):
        return None
    if not _reaches(flow, at, known, GREATEST[result.dtype]):
        return None
    sizes = " and ".join(figure(v.largest) for v in known[:2] if v.dtype != "bool")
    half = result.dtype in ("float16", "bfloat16")
    limit = "65504" if result.dtype == "float16" else figure(GREATEST[result.dtype])
    return Singular(
        f"{where(flow, at)} overflows {result.dtype} at {result.infs} of {plural(result.size, 'element')}: of numbers up to "
        f"{sizes} it makes "
        f"more than {limit}, the largest there is.",
        f"Compute this step in float32{told(guarded(flow, at, lambda x: f'{x}.float()'))}, or scale what goes in."
        if half
        else _less_growth(flow, at),
        {"infs": result.infs, "size": result.size, "largest": tuple(v.largest for v in known)},
    )


def _less_growth(flow: Flow, at: int) -> str:
    """What to do about an overflow of float32: of a recurrence, its matrix."""
    weight = flow.weights[at]
    if weight is not None and weight >= 0 and flow.weights.count(weight) >= STEPS and flow.nodes[weight].name:
        return f"Start `{flow.nodes[weight].name}` from an orthogonal matrix of scale 1, or use fewer steps."
    return "Make what goes in smaller, or find what makes it grow."


def _reaches(flow: Flow, at: int, known: list[Value], limit: float) -> bool:
    """Whether numbers of the size of what was given can make one beyond the limit."""
    word, sizes = flow.words[at], [v.largest for v in known]
    try:
        if word == "Pow":
            return len(sizes) > 1 and sizes[0] ** sizes[1] > limit
        if word in PRODUCTS:
            terms = max((v.shape[-1] for v in known if v.shape), default=1)
            products = [a * b for k, a in enumerate(sizes) for b in sizes[k + 1 :]]
            return max(products, default=0.0) * terms > limit
        if word in ("Mul", "Prod"):
            return math.prod(sizes) > limit
        if word in ("Sum", "Add", "Sub", "Cumsum"):
            return sum(sizes) * max(v.size for v in known) > limit
        if word == "ToCopy":
            return sizes[0] > limit
        return word == "MseLoss" and (2 * max(sizes)) ** 2 * known[0].size > limit
    except OverflowError:
        return True


FUNCTIONS: dict[str, Callable[[Flow, int], Singular | None]] = {
    "Log": _log,
    "Log2": _log,
    "Log10": _log,
    "Log1P": _log,
    "Sqrt": _root,
    "Rsqrt": _root,
    "Div": _divide,
    "Reciprocal": _reciprocal,
    "Pow": _power,
    "Exp": _exp,
    "Exp2": _exp,
    "Expm1": _exp,
    "Sinh": _exp,
    "Cosh": _exp,
    "Acos": _arc,
    "Asin": _arc,
    "Atanh": _arc,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
    "Std": _spread,
    "Var": _spread,
    "Mean": _mean,
    "NllLoss": _no_target,
    "NllLoss2D": _no_target,
}


# ----------------------------------------------------------------------------------------------------------- derivatives
# The least exponent of a power to which 1e-12 is still a small number.
LEAST_POWER = 0.5
SEEN = 1e-4  # relative: a change of a value that is told


def _is_half(flow: Flow, at: int) -> bool:
    """Whether a small number that the type can hold changes a value."""
    return flow.nodes[at].dtype in ("float16", "bfloat16")


def _moved_end(flow: Flow, at: int, ends: int | None) -> str:
    """What a clamp that ends before ±1 changes: acos(1) is 0, acos(1 - 1e-6) is 0.0014."""
    result = flow.nodes[at].value
    if result is None or flow.words[at] == "Atanh" or result.odd:
        return ""
    moved = math.acos(1 - 1e-6) * (ends if ends is not None else 1)
    return " This changes the loss a little: an angle at the end becomes 0.0014." if moved > SEEN * result.norm else ""


def derivative(flow: Flow, at: int) -> Singular | None:
    """Why the derivative of an operation is not finite where its value is."""
    word, value = flow.words[at], given_value(flow, at)
    if value is None:
        return None
    name = given_name(flow, at)
    size = plural(value.size, "input")
    if word in ("Sqrt", "Log", "Reciprocal", "Rsqrt", "Cbrt") and value.zeros:
        slope = {"Sqrt": "1 / (2 · sqrt(0))", "Log": "1/0"}.get(word, "at 0")
        return Singular(
            f"{where(flow, at)} had {plural(value.zeros, 'zero')} among {size}; the derivative of {word.lower()} there, "
            f"{slope}, is inf.",
            f"Add a small number {'below the root' if word == 'Sqrt' else f'to {name}'}"
            f"{told('' if _is_half(flow, at) else guarded(flow, at, added(flow, at)))}.",
            {"zeros": value.zeros, "size": value.size, "argument": 0},
        )
    if word == "Pow" and value.zeros:
        exponent = given_value(flow, at, 1)
        p = float(exponent.numbers[0]) if exponent is not None and exponent.numbers else math.nan
        if p < 1:
            return Singular(
                f"{where(flow, at)} had {plural(value.zeros, 'zero')} among {size}; the derivative of the power "
                f"{figure(p)} there, "
                f"{figure(p)} · 0 ** {figure(p - 1)}, is inf.",
                f"Add a small number to {name} before the power"
                f"{told(guarded(flow, at, added(flow, at)) if p >= LEAST_POWER and not _is_half(flow, at) else '')}.",
                {"zeros": value.zeros, "size": value.size, "argument": 0, "exponent": p, "slope": p - 1},
            )
        return None
    if word in ("Acos", "Asin", "Atanh") and value.largest >= 1 - ROUNDING_OF_ONE:
        ends = None if value.numbers is None else sum(abs(x) == 1 for x in value.numbers)
        count = f"{ends} of {size}" if ends is not None else f"some of {size}"
        return Singular(
            f"{where(flow, at)} is at the end of its domain, ±1, at {count}; the derivative of {word.lower()} there, 1 "
            "/ sqrt(1 - 1), is inf.",
            f"Clamp {name} between -1 + 1e-6 and 1 - 1e-6{told(guarded(flow, at, _inside))}.{_moved_end(flow, at, ends)}",
            {"largest": value.largest, "size": value.size, "argument": 0},
        )
    if word in ("Std", "LinalgVectorNorm", "Norm", "Cdist"):
        result = flow.nodes[at].value
        if result is not None and result.zeros:
            return Singular(
                f"{where(flow, at)} is 0 at {result.zeros} of {plural(result.size, 'element')}, where all that goes in is "
                "alike; the root in it has "
                "no finite slope there.",
                f"Take the root of the variance plus a small number{told(_of_variance(flow, at))}."
                if word == "Std"
                else "Take the root of the sum of squares plus a small number.",
                {"zeros": result.zeros, "size": result.size, "made": True},
            )
    if word == "Atan2" and value.zeros:
        return Singular(
            f"{where(flow, at)} was given (0, 0), where it has no slope.",
            f"Add a small number to {name}.",
            {"zeros": value.zeros},
        )
    if word == "Div":
        return _divide(flow, at)
    arrived = flow.nodes[at].gradient
    if arrived is not None and (word in PRODUCTS or word in ("Mul", "Exp", "Pow")):
        handed = next((e.gradient for e in flow.given[at] if e.gradient is not None and e.gradient.infs), None)
        if handed is not None and handed.dtype in GREATEST:
            limit = "65504" if handed.dtype == "float16" else figure(GREATEST[handed.dtype])
            return Singular(
                f"Backward through {where(flow, at)} the gradient overflows {handed.dtype} at {handed.infs} of "
                f"{plural(handed.size, 'element')}: {figure(arrived.largest)} arrives, and more than {limit} goes on.",
                "Scale the loss down before backward(), or compute in float32."
                if handed.dtype in ("float16", "bfloat16")
                else "Make the weights or the inputs smaller, or scale the loss down before backward().",
                {"infs": handed.infs, "size": handed.size, "arrived": arrived.largest},
            )
    return None

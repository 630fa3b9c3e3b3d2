"""Find formulas that overflow, or take the logarithm of 0, long before their result does, and that have a stable spelling.

These are the logarithm of a softmax, of a sigmoid or of 1 minus a sigmoid, of a sum of exponentials and of 1 plus an exponential,
and a softmax by hand. They are recognised in the graph, so it does not matter over how many statements or functions they are
spread. Nothing is reported if the inputs are bounded so that the formula cannot overflow: by a clamp, a tanh, a small number
added, or the largest element subtracted. Operations that have made a NaN or an infinity are reported by `non_finite`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.doctor.checks.logarithms import replace_log, replace_softmax
from gradlab.explore.doctor.checks.non_finite import result_is_non_finite
from gradlab.explore.doctor.checks.singular import code_at, log_fix
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.flow import Flow, digits, extremes, flow_of, has_gradients
from gradlab.explore.doctor.context.number_limits import LARGEST_NUMBERS, largest_exponent, largest_sigmoid_input
from gradlab.explore.doctor.context.operands import is_written
from gradlab.explore.doctor.context.value_bounds import Bounds, ValueBounds, constant_before
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import NOTE, check, declare

SMALL = 1e-6  # probabilities below it are near enough to 0 to be reported first


declare(
    "unstable",
    severity=NOTE,
    meaning="A formula can overflow, or take the logarithm of 0, where its result is an ordinary number.",
    why="""
        The softmax of logits that differ by 104 contains an exact 0 in float32, whose logarithm is -inf, though the
        log-softmax is -104. A sigmoid is rounded to 1 above 16.6, so log(1 - sigmoid) is -inf there. exp overflows above 88.7.
        As training goes on, the logits of a classifier grow, and the loss becomes infinite or NaN from one step to the next.
        The Note says where this happens and what the inputs are now. Nothing is reported where the inputs are bounded.
    """,
    remedy="""
        Use the function that computes both steps at once: `log_softmax` or `cross_entropy`, `logsigmoid` or
        `binary_cross_entropy_with_logits`, `logsumexp`, `softplus`, `softmax`.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        w = torch.randn(8, 3, requires_grad=True)
        logits = x @ w
        counts = logits.exp()
        probs = counts / counts.sum(1, keepdim=True)
        loss = -probs[torch.arange(64), y].log().mean()  #!
        loss.backward()
    """,
    healthy="""
        import torch
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
        w = torch.randn(8, 3, requires_grad=True)
        logits = x @ w
        loss = F.cross_entropy(logits, y)
        loss.backward()
    """,
)


@dataclass(frozen=True)
class Formula:
    """A formula with a stable spelling.

    Attributes
    ----------
    at : int
        The node of its result.
    name : str
        The stable function: "log_softmax".
    maker : int
        The softmax, the sigmoid, or the operation that sums or divides exponentials.
    exponential : int or None
        The exponential, if the program computes it.
    """

    at: int
    name: str
    maker: int
    exponential: int | None = None


@check("unstable", of_each_loss=True)
def find_unstable_formulas(case: Case) -> Iterable[Finding]:
    """Find formulas that can overflow and have a stable spelling."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    if result_is_non_finite(flow):
        return
    closest: dict[object, Formula] = {}
    for formula in find_formulas(flow, ValueBounds(flow)):  # in a loop, the one that is closest to its limit
        place = flow.nodes[formula.at].place, formula.name
        if place not in closest or _exposure(flow, formula) > _exposure(flow, closest[place]):
            closest[place] = formula
    for formula in closest.values():
        yield _finding(flow, formula)


def find_formulas(flow: Flow, bounds: ValueBounds) -> list[Formula]:
    """Return the unstable formulas of a graph whose inputs can reach the point where they overflow."""
    logarithms = [one for i in range(len(flow.nodes)) if (one := _logarithm(flow, i)) and _can_overflow(flow, bounds, one)]
    covered = {formula.maker for formula in logarithms}
    quotients = (_softmax_by_hand(flow, i) for i in range(len(flow.nodes)) if flow.ops[i] == "Div" and i not in covered)
    softmaxes = [one for one in quotients if one is not None and is_written(flow, one.at)]
    return logarithms + [one for one in softmaxes if _can_overflow(flow, bounds, one)]


# ------------------------------------------------------------------------------------------------------------- formulas
def _logarithm(flow: Flow, i: int) -> Formula | None:
    """Return the formula that ends in a logarithm which the program takes itself."""
    if flow.ops[i] not in ("Log", "Log1P") or not flow.inputs[i]:
        return None
    formula = _of_logarithm(flow, i)
    return formula if formula is not None and is_written(flow, i) else None


def _of_logarithm(flow: Flow, i: int) -> Formula | None:
    """Return the formula that ends in a logarithm."""
    maker = flow.origin_of(flow.inputs[i][0].source)
    op = flow.ops[maker]
    if flow.ops[i] == "Log1P":
        if op == "Exp":
            return Formula(i, "softplus", maker, maker)
        before = _source(flow, maker)
        return Formula(i, "1 - sigmoid", before) if op == "Neg" and before is not None and is_sigmoid(flow, before) else None
    if op == "Softmax":
        return Formula(i, "log_softmax", maker)
    if is_sigmoid(flow, maker):
        return Formula(i, "logsigmoid", maker)
    if op == "Sum" and (exponential := _exponential(flow, maker)) is not None:
        return Formula(i, "logsumexp", maker, exponential)
    if op == "Div" and (by_hand := _softmax_by_hand(flow, maker)) is not None:
        return Formula(i, "log_softmax", maker, by_hand.exponential)
    if flow.properties[maker].adds and (sigmoid := _one_minus(flow, maker)) is not None:
        return Formula(i, "1 - sigmoid", sigmoid)
    if op == "Add" and _constant(flow, maker) == 1 and (exponential := _exponential(flow, maker)) is not None:
        return Formula(i, "softplus", maker, exponential)
    return None


def _source(flow: Flow, i: int) -> int | None:
    """Return the node that the first argument of a node is, up to its shape."""
    return flow.before_reshapes(flow.inputs[i][0].source) if flow.inputs[i] else None


def _constant(flow: Flow, i: int) -> float | None:
    """Return the number that a node adds to its input; None if it adds a tensor."""
    numbers = [operand.value.numbers for operand in flow.nodes[i].operands if operand.kind == "constant" and operand.value]
    if len(flow.inputs[i]) == 1 and len(numbers) == 1 and numbers[0] is not None and len(numbers[0]) == 1:
        return float(numbers[0][0])
    return constant_before(flow, i)


def _exponential(flow: Flow, i: int) -> int | None:
    """Return the exponential that is the only input of a node."""
    before = _source(flow, i)
    return before if before is not None and len(flow.inputs[i]) == 1 and flow.ops[before] == "Exp" else None


def _one_minus(flow: Flow, i: int) -> int | None:
    """Return the sigmoid p of a node that is 1 - p or -p + 1."""
    if _constant(flow, i) != 1:
        return None
    before = _source(flow, i)
    if before is not None and flow.ops[i] == "Add":
        before = _source(flow, before) if flow.ops[before] == "Neg" else None
    elif flow.ops[i] != "Rsub":
        return None
    return before if before is not None and is_sigmoid(flow, before) else None


def is_sigmoid(flow: Flow, i: int) -> bool:
    """Return whether a node is a sigmoid, of the library or written as 1 / (1 + exp(-x))."""
    return flow.ops[i] == "Sigmoid" or _exponential_of_sigmoid(flow, i) is not None


def _exponential_of_sigmoid(flow: Flow, i: int) -> int | None:
    """Return exp(-x) of 1 / (1 + exp(-x))."""
    if flow.ops[i] == "Mul" and _constant(flow, i) == 1:
        i = _source(flow, i) or i
    below = _source(flow, i) if flow.ops[i] == "Reciprocal" else None
    if below is None or flow.ops[below] != "Add" or _constant(flow, below) != 1:
        return None
    exponential = _exponential(flow, below)
    return exponential if exponential is not None and flow.ops[_source(flow, exponential) or 0] == "Neg" else None


def _softmax_by_hand(flow: Flow, i: int) -> Formula | None:
    """Return the formula of a quotient of an exponential and the sum of the same exponential."""
    arguments = {edge.argument: edge.source for edge in flow.inputs[i]}
    if flow.ops[i] != "Div" or len(arguments) != 2:
        return None
    above, below = flow.origin_of(arguments[0]), flow.before_reshapes(arguments[1])
    if flow.ops[below] == "Add" and _constant(flow, below) is not None:  # a small number, which prevents no overflow
        below = _source(flow, below) or below
    summed = _exponential(flow, below) if flow.ops[below] == "Sum" else None
    if summed is None or flow.ops[above] != "Exp" or _source(flow, above) != _source(flow, summed):
        return None
    return Formula(i, "softmax", i, above)


def _can_overflow(flow: Flow, bounds: ValueBounds, formula: Formula) -> bool:
    """Return whether the weights can bring the inputs of a formula to the point where it overflows."""
    dtype = flow.nodes[formula.maker].dtype
    if dtype not in LARGEST_NUMBERS:
        return False
    limit = largest_exponent(dtype, "Exp")
    if formula.exponential is not None:
        return bounds.of_argument(formula.exponential, 0).high > limit and not _is_shifted(flow, formula.exponential)
    x = bounds.of_argument(formula.maker, 0)
    if flow.ops[formula.maker] == "Softmax":
        return x.high - x.low > limit or (x.low != x.low and x.high == math.inf)
    by_hand = _exponential_of_sigmoid(flow, formula.maker)
    if by_hand is not None:
        negated = bounds.of_argument(by_hand, 0)
        x = Bounds(-negated.high, -negated.low)
    return x.high > largest_sigmoid_input(dtype) if formula.name == "1 - sigmoid" else -x.low > limit


def _is_shifted(flow: Flow, exponential: int) -> bool:
    """Return whether the largest element has been subtracted from the input of an exponential, with or without its gradient."""
    before = _source(flow, exponential)
    if before is None or flow.ops[before] != "Sub":
        return False
    value = flow.nodes[before].value
    return value is not None and value.size > 0 and value.zeros > 0 and extremes(value)[1] == 0


def _exposure(flow: Flow, formula: Formula) -> float:
    """Return a number that grows as the inputs of a formula come closer to its limit."""
    if formula.exponential is not None:
        return _range_of(flow, formula.exponential, before=True)[1]
    low, high = _range_of(flow, formula.maker)
    return high if formula.name == "1 - sigmoid" else -low


# ---------------------------------------------------------------------------------------------------------------- words
def _finding(flow: Flow, formula: Formula) -> Finding:
    at, maker = formula.at, formula.maker
    dtype = flow.nodes[maker].dtype
    limit = largest_exponent(dtype, "Exp")
    evidence: dict[str, object] = {"at": at, "maker": maker}
    code = replace_softmax(flow, at) if formula.name == "softmax" else replace_log(flow, at)
    low, high = _range_of(flow, maker)
    known = low == low
    entropy = "_with_logits" in code and formula.name != "log_softmax"
    if formula.exponential is not None:
        message = _overflow_message(flow, formula, limit)
        top = _range_of(flow, formula.exponential, before=True)[1]
        evidence |= {"limit": limit, "source": formula.exponential} | ({"greatest": top} if top == top else {})
        if flow.ops[maker] == "Div" and formula.name == "log_softmax" and known:
            message += f" The smallest probability is {digits(low)}."
            evidence["least"] = low
    elif entropy or formula.name == "1 - sigmoid":
        limit = largest_sigmoid_input(dtype)
        what = "is part of a binary cross entropy by hand" if entropy else "is the logarithm of 1 minus a sigmoid"
        message = (
            f"{code_at(flow, at)} {what}. {dtype} rounds the sigmoid of a number above {limit:.1f} to 1, and the logarithm "
            f"of 1 - 1 is -inf.{f' The largest sigmoid is {_near_one(high)} now.' if known else ''}"
        )
        evidence |= {"rounds": limit} | ({"largest": high} if known else {})
    else:
        softmax = formula.name == "log_softmax"
        message = (
            f"{code_at(flow, at)} is the logarithm of a {'softmax' if softmax else 'sigmoid'}. If a logit is more than "
            f"{limit:.1f} below {'the largest of its row' if softmax else '0'}, 1 / p overflows {dtype} in the backward pass; "
            f"a little further p is 0, and its logarithm -inf.{f' The smallest p is {digits(low)} now.' if known else ''}"
        )
        evidence |= {"limit": limit} | ({"least": low} if known else {})
    near = known and (low < SMALL or (formula.name == "1 - sigmoid" and 1 - high < SMALL))
    line = flow.line(maker)
    lines = (line,) if line is not None and line != flow.line(at) else ()
    return Finding(
        "unstable",
        message,
        flow.line(at),
        at,
        _advice(flow, formula, code),
        evidence,
        remark=True,
        worth=3.0 if near else 2.0,
        lines=lines,
    )


def _overflow_message(flow: Flow, formula: Formula, limit: float) -> str:
    at, exponential = formula.at, formula.exponential
    assert exponential is not None
    dtype = flow.nodes[exponential].dtype
    what = {
        "logsumexp": "is the logarithm of a sum of exponentials",
        "softplus": "is the logarithm of 1 plus an exponential",
        "softmax": "is a softmax by hand",
        "log_softmax": "is the logarithm of a softmax by hand",
    }[formula.name]
    top = _range_of(flow, exponential, before=True)[1]
    now = f" The largest input of exp is {digits(top)} now." if top == top else ""
    then = ", and inf / inf is NaN" if flow.ops[formula.maker] == "Div" else ""
    underflow = " A probability that underflows to 0 has the logarithm -inf." if formula.name == "log_softmax" else ""
    return f"{code_at(flow, at)} {what}. exp overflows {dtype} above {limit:.1f}{then}.{underflow}{now}"


def _near_one(x: float) -> str:
    """Return a number with enough digits to distinguish it from 1."""
    return digits(x) if x < 0.999 else f"1 - {digits(1 - x)}" if x < 1 else "1"


def _range_of(flow: Flow, i: int, *, before: bool = False) -> tuple[float, float]:
    """Return the least and the greatest element of a node, or of its input; NaN if they are not known."""
    value = flow.nodes[flow.inputs[i][0].source if before else i].value
    if value is None or not value.size or value.nans:
        return math.nan, math.nan
    low, high = extremes(value)
    return float(low), float(high)


def _advice(flow: Flow, formula: Formula, code: str) -> str:
    """Return the stable function, as code if the source shows all parts."""
    if formula.exponential is None and flow.ops[formula.maker] in ("Softmax", "Sigmoid"):
        return log_fix(flow, formula.at, "its input")
    name = "logsigmoid" if formula.name == "1 - sigmoid" else formula.name
    name = "binary_cross_entropy_with_logits" if "_with_logits" in code else name
    if code:
        return f"Use {name}: {code}."
    return {
        "softmax": "Use softmax of the input of exp, or subtract the largest element of each row first.",
        "log_softmax": "Use log_softmax of the input of exp, or cross_entropy, which takes the logits.",
        "logsumexp": "Use logsumexp of the input of exp.",
        "softplus": "Use softplus of the input of exp.",
    }.get(formula.name, "Use logsigmoid of the logits, or binary_cross_entropy_with_logits.")

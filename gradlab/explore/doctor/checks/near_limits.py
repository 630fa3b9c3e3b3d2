"""Find operations whose inputs are close to a point where the operation or its derivative is infinite.

These are logarithms, roots and quotients of numbers near 0, exponentials near the overflow, arc functions near ±1, and sums and
products of float16 near 65504. An input is reported only if the weights can bring it to this point: not if it is clamped, if a
small number is added, or if it is computed by data alone. Infinities and NaN themselves are reported by `non_finite`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from gradlab.explore.doctor.checks.non_finite import result_is_non_finite
from gradlab.explore.doctor.checks.singular import (
    add_small,
    arc_advice,
    argument_name,
    argument_value,
    code_at,
    divisor_fix,
    guard_argument,
    least,
    log_fix,
    suffix,
)
from gradlab.explore.doctor.checks.unstable import find_formulas
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import small_number
from gradlab.explore.doctor.context.flow import Flow, digits, flow_of, has_gradients, plural
from gradlab.explore.doctor.context.number_limits import LARGEST_NUMBERS, largest_exponent, largest_finite
from gradlab.explore.doctor.context.operands import is_written
from gradlab.explore.doctor.context.value_bounds import ValueBounds
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import NOTE, check, declare
from gradlab.explore.trace.values import Value

NEAR = 1e-6  # distance from a pole, of numbers of size 1; its derivative is 1e6 there
NEAR_HALF = 1e-4  # of float16, whose least normal number is 6e-5
NEAR_ROOT = 1e-12  # under a root: the root is then 1e-6
SHARE_OF_LIMIT = 0.9  # of the largest exponent: 79.9 in float32, 9.98 in float16
SHARE_OF_LARGEST = 0.5  # of 65504
MIN_EXPECTED_ROWS = 1e-3  # rows of zeros expected in a batch: one in a thousand steps
VISIBLE_CHANGE = 1e-5  # relative change of a result that the advice mentions


declare(
    "near-limit",
    severity=NOTE,
    meaning="The input of an operation is close to a point where the operation or its derivative is infinite.",
    why="""
        The logarithm of 0, a division by 0 and exp of a large number are infinite, and so are the derivatives of a square root
        at 0 and of acos at ±1. If the input is close to such a point now, the next batch or the next step may reach it, and one
        infinite gradient makes all parameters NaN. The Note gives the input that is closest. Also reported are norms, standard
        deviations and sums of rows of ReLU units if a row of zeros is likely within a thousand steps. Nothing is
        reported if the input cannot get there, because it is clamped or a small number is added to it.
    """,
    remedy="""
        Keep the input away from the point: a small number under the root, `clamp(min=1e-12)` before a logarithm or of a
        divisor, `clamp(-1 + 1e-6, 1 - 1e-6)` before acos. Compute sums of many float16 numbers in float32.
    """,
    fault="""
        import torch

        torch.manual_seed(0)
        a = torch.randn(16, 4, requires_grad=True)
        b = a.detach() + 0.1
        b[3] = a[3].detach() + 2e-7 * torch.randn(4)  # nearly the same point
        distance = ((a - b) ** 2).sum(1).sqrt()  #!
        loss = distance.mean()
        loss.backward()
    """,
    healthy={"distance = ((a - b) ** 2).sum(1).sqrt()": "distance = (((a - b) ** 2).sum(1) + 1e-12).sqrt()"},
)


@dataclass(frozen=True)
class Hazard:
    """An operation near its limit: the words and numbers of a finding."""

    at: int
    message: str
    fix: str
    evidence: dict[str, object]


@dataclass(frozen=True)
class Rows:
    """Rows of an activation that are summed, or whose norm or standard deviation is taken.

    Attributes
    ----------
    maker : int
        The activation.
    name : str
        Its code.
    share : float
        The share of its elements that are 0.
    length : int
        The elements of a row.
    """

    maker: int
    name: str
    share: float
    length: int

    def __str__(self) -> str:
        what = f"{digits(100 * self.share)} % of the elements of {self.name} are 0"
        return f"{what}, and a row of {self.length} may be 0 throughout."

    @property
    def evidence(self) -> dict[str, object]:
        """The numbers of the sentence."""
        return {"maker": self.maker, "share": self.share, "length": self.length}


@check("near-limit", of_each_loss=True)
def find_inputs_near_limits(case: Case) -> Iterable[Finding]:
    """Find operations whose inputs are close to a point where they or their derivatives are infinite."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    if result_is_non_finite(flow):
        return
    bounds = ValueBounds(flow)
    covered: set[int] | None = None
    reported: set[object] = set()
    for i in range(len(flow.nodes)):
        place = flow.nodes[i].place or i
        if place in reported or (hazard := _find_hazard(flow, bounds, i)) is None:
            continue
        if covered is None:
            covered = _parts_of_formulas(flow, bounds)
        if i in covered or _follows_root(flow, i):
            continue
        reported.add(place)
        yield Finding(
            "near-limit", hazard.message, flow.line(i), i, hazard.fix, {"at": i, **hazard.evidence}, remark=True, worth=2.5
        )


def _parts_of_formulas(flow: Flow, bounds: ValueBounds) -> set[int]:
    """Return the nodes of formulas that are reported as unstable."""
    formulas = find_formulas(flow, bounds)
    parts = {i for one in formulas for i in (one.at, one.maker, one.exponential) if i is not None}
    return parts | {edge.source for i in tuple(parts) if flow.ops[i] == "Div" for edge in flow.inputs[i]}


def _find_hazard(flow: Flow, bounds: ValueBounds, i: int) -> Hazard | None:
    node, facts = flow.nodes[i], flow.properties[i]
    if node.kind != "operation" or not flow.inputs[i]:
        return None
    if facts.poles_at:
        return _near_pole(flow, bounds, i)
    if facts.poles and facts.saturates == "below":
        return _near_overflow(flow, bounds, i)
    if flow.ops[i] == "Div":
        return _near_zero_divisor(flow, bounds, i)
    if flow.ops[i] == "Pow":
        return _near_power(flow, bounds, i)
    return _near_largest(flow, i) if node.dtype == "float16" else None


def _follows_root(flow: Flow, i: int) -> bool:
    """Return whether the divisor of a quotient is a root that is reported itself."""
    below = next((edge.source for edge in flow.inputs[i] if edge.argument == 1), None) if flow.ops[i] == "Div" else None
    origin = flow.origin_of(below) if below is not None else None
    value = argument_value(flow, origin) if origin is not None and flow.ops[origin] == "Sqrt" else None
    return value is not None and _is_small_root(value)


def _near(flow: Flow, i: int) -> float:
    return NEAR_HALF if flow.nodes[i].dtype == "float16" else NEAR


def _smallest(value: Value) -> float | None:
    """Return the smallest size of the elements; None if it is not known, as of many elements of both signs."""
    if not value.size or value.odd or value.dtype.startswith("complex"):
        return None
    if value.numbers is not None:
        return min(abs(float(x)) for x in value.numbers)
    low, high = value.statistics.minimum, value.statistics.maximum
    return low if low >= 0 else -high if high <= 0 else None


# ---------------------------------------------------------------------------------------------------------------- poles
def _near_pole(flow: Flow, bounds: ValueBounds, i: int) -> Hazard | None:
    """Return the hazard of a function whose input is near one of its poles."""
    value, facts = argument_value(flow, i), flow.properties[i]
    if value is None or not value.size or value.odd or value.dtype.startswith("complex"):
        return None
    if len(facts.poles_at) > 1:
        return _near_ends(flow, bounds, i, value)
    (pole,) = facts.poles_at
    reach = bounds.of_argument(i, 0)
    if flow.ops[i] == "Reciprocal":
        return _near_zero_divisor(flow, bounds, i, 0)
    if not reach.low <= pole or not (distance := float(least(value)) - pole) > 0:
        return None
    if facts.low == 0 and pole == 0:
        rows = None if _is_small_root(value) else _rows_of_zeros(flow, bounds, flow.inputs[i][0].source)
        near = _is_small_root(value) or rows is not None
        return _root(flow, i, value, rows) if near and is_written(flow, i) else None
    if distance > _near(flow, i) or not is_written(flow, i):
        return None
    op, name = flow.ops[i].lower(), argument_name(flow, i)
    is_log = op.startswith("log") and not pole
    fix = log_fix(flow, i, name) if is_log else f"Keep {name} away from {digits(pole)}."
    if is_log and "clamp" in fix and distance < float(small_number(flow.nodes[i].dtype)):
        fix += " This changes the loss where the input is smaller."
    if flow.ops[flow.origin_of(flow.inputs[i][0].source)] == "Sum":
        fix += " The logsumexp of the logarithms of the terms needs no clamp."
    least_input = digits(distance) if not pole else f"{digits(pole)} + {digits(distance)}"
    return Hazard(
        i,
        f"{code_at(flow, i)}: the smallest of {plural(value.size, 'input')} is {least_input}. At {digits(pole)} "
        f"{'the logarithm is -inf and its derivative' if op.startswith('log') else f'the derivative of {op}'} is infinite.",
        fix,
        {"distance": distance, "size": value.size, "argument": 0},
    )


def _is_small_root(value: Value) -> bool:
    if not value.size or value.odd:
        return False
    limit = NEAR if value.dtype == "float16" else NEAR_ROOT
    low, high = float(least(value)), value.largest
    return 0 < low <= limit * max(1.0, high if value.size > 1 else 0.0)


def _root(flow: Flow, i: int, value: Value, rows: Rows | None) -> Hazard:
    """Return the hazard of a root near 0, or of a sum over rows of which one may be 0 throughout."""
    low, op = float(least(value)), flow.ops[i].lower()
    power = 0.5 if op == "sqrt" else -0.5
    code = guard_argument(flow, i, add_small(flow, i)) if flow.nodes[i].dtype != "float16" else ""
    slope = "the derivative of the root, 1 / (2 · sqrt(0)), is inf" if op == "sqrt" else f"{op} and its derivative are inf"
    if rows is not None:
        return Hazard(
            i, f"{code_at(flow, i)}: {rows} At 0 {slope}.", f"Add a small number under the root{suffix(code)}.", rows.evidence
        )
    return Hazard(
        i,
        f"{code_at(flow, i)}: the smallest of {plural(value.size, 'input')} is {digits(low)}. At 0 {slope}.",
        f"Add a small number under the root{suffix(code)}.{_root_effect(flow, i, low, power)}",
        {"distance": low, "size": value.size, "argument": 0},
    )


def _root_effect(flow: Flow, i: int, low: float, power: float) -> str:
    """Return how a small number under a root changes the loss, if it does so visibly."""
    added, result = float(small_number(flow.nodes[i].dtype)), flow.nodes[i].value
    moved = abs((low + added) ** power - low**power)
    if result is not None and moved < VISIBLE_CHANGE * result.norm:
        return ""
    return f" This changes the loss a little: {digits(low**power)} becomes {digits((low + added) ** power)}."


def _near_ends(flow: Flow, bounds: ValueBounds, i: int, value: Value) -> Hazard | None:
    """Return the hazard of acos, asin or atanh near ±1."""
    reach = bounds.of_argument(i, 0)
    distance = 1 - value.largest
    if not 0 < distance <= _near(flow, i) or not (reach.high >= 1 or reach.low <= -1) or not is_written(flow, i):
        return None
    op = flow.ops[i].lower()
    infinite = f"{op} and its derivative are" if op == "atanh" else f"the derivative of {op} is"
    return Hazard(
        i,
        f"{code_at(flow, i)}: the largest of {plural(value.size, 'input')} is 1 - {digits(distance)} in size. At ±1 "
        f"{infinite} infinite.",
        arc_advice(flow, i, 1),
        {"distance": distance, "size": value.size, "argument": 0},
    )


def _near_power(flow: Flow, bounds: ValueBounds, i: int) -> Hazard | None:
    """Return the hazard of `x ** 0.5` or another power below 1 near 0."""
    value, exponent = argument_value(flow, i), argument_value(flow, i, 1)
    p = float(exponent.numbers[0]) if exponent is not None and exponent.numbers and exponent.size == 1 else math.nan
    if p <= -1:
        return _near_zero_divisor(flow, bounds, i, 0)
    if value is None or not 0 < abs(p) < 1 or not bounds.of_argument(i, 0).low <= 0 or not _is_small_root(value):
        return None
    if not is_written(flow, i):
        return None
    low = float(least(value))
    infinite = f"The derivative of the power {digits(p)} is infinite at 0" if p > 0 else f"0 to the power of {digits(p)} is inf"
    code = guard_argument(flow, i, add_small(flow, i)) if p >= 0.5 and flow.nodes[i].dtype != "float16" else ""
    return Hazard(
        i,
        f"{code_at(flow, i)}: the smallest of {plural(value.size, 'input')} is {digits(low)}. {infinite}.",
        f"Add a small number to {argument_name(flow, i)} before the power{suffix(code)}."
        f"{_root_effect(flow, i, low, p) if code else ''}",
        {"distance": low, "size": value.size, "argument": 0, "exponent": p},
    )


def _near_zero_divisor(flow: Flow, bounds: ValueBounds, i: int, which: int = 1) -> Hazard | None:
    """Return the hazard of a quotient whose divisor has elements near 0, much smaller than its largest one."""
    source = next((edge.source for edge in flow.inputs[i] if edge.argument == which), None)
    divisor = flow.nodes[source].value if source is not None else None
    smallest = _smallest(divisor) if divisor is not None else None
    if source is None or divisor is None or not smallest:
        return None
    origin = flow.before_reshapes(source)
    exponentials = flow.ops[origin] == "Sum" and any(flow.ops[edge.source] == "Exp" for edge in flow.inputs[origin])
    near = 1e-30 if exponentials else _near(flow, i) * (divisor.largest if divisor.size > 1 else 1.0)
    reach = bounds.of(source)
    name = argument_name(flow, i, which)
    if not reach.low <= 0 <= reach.high:
        return None
    if smallest > min(near, _near(flow, i)):
        rows = _rows_of_zeros(flow, bounds, source) if which and flow.ops[flow.origin_of(source)] != "Sqrt" else None
        if rows is None or not is_written(flow, i):
            return None
        return Hazard(
            i,
            f"{code_at(flow, i)} divides by {name}, which is 0 for such a row: {rows}",
            divisor_fix(flow, i, name),
            rows.evidence,
        )
    if not is_written(flow, i):
        return None
    fix = divisor_fix(flow, i, name) if which else f"Use a divisor that cannot be 0: add a small number to {name}."
    if ").sqrt()` in place of" in fix:
        fix += f" This changes the loss where {name} is that small."
    return Hazard(
        i,
        f"{code_at(flow, i)} divides by {name}, of which the smallest of {plural(divisor.size, 'element')} is "
        f"{digits(smallest)} in size, close to a division by 0.",
        fix,
        {"distance": smallest, "size": divisor.size, "argument": which},
    )


def _rows_of_zeros(flow: Flow, bounds: ValueBounds, i: int) -> Rows | None:
    """Return the rows that a sum, a norm or a standard deviation is of, if a rectifier will soon make one that is 0 throughout.

    With a share s of zeros, a row of n elements is 0 with the probability s ** n if its elements are independent.
    """
    i = flow.before_reshapes(i)
    result, facts = flow.nodes[i].value, flow.properties[i]
    if facts.reduces not in ("sum", "mean", "norm", "spread") or result is None or result.zeros:
        return None
    maker: int | None = i
    for _ in range(3):  # the squares of the activation
        maker = flow.before_reshapes(flow.inputs[maker][0].source) if maker is not None and flow.inputs[maker] else None
        if maker is None or flow.properties[maker].rectifier:
            break
    value = flow.nodes[maker].value if maker is not None else None
    if maker is None or value is None or not flow.properties[maker].rectifier or bounds.of(maker).low != 0 or not value.zeros:
        return None
    share, length = value.zeros / value.size, value.size // max(result.size, 1)
    if length < 2 or result.size * share**length < MIN_EXPECTED_ROWS:
        return None
    return Rows(maker, flow.name(maker), share, length)


# ------------------------------------------------------------------------------------------------------------- overflow
def _near_overflow(flow: Flow, bounds: ValueBounds, i: int) -> Hazard | None:
    """Return the hazard of an exponential near its overflow."""
    value, result = argument_value(flow, i), flow.nodes[i].value
    dtype = result.dtype if result is not None else flow.nodes[i].dtype
    if value is None or not value.size or value.nans or dtype not in LARGEST_NUMBERS:
        return None
    limit, top = largest_exponent(dtype, flow.ops[i]), largest_finite(value)
    if not SHARE_OF_LIMIT * limit < top <= limit or not bounds.of_argument(i, 0).high > limit:
        return None
    op = flow.ops[i].lower()
    return Hazard(
        i,
        f"{code_at(flow, i)}: the largest input of {op} is {digits(top)}, and {op} overflows {dtype} above {limit:.1f}.",
        f"Make {argument_name(flow, i)} smaller or clamp it, or compute with its logarithm, as logsumexp and softmax do.",
        {"greatest": top, "limit": limit, "argument": 0},
    )


def _near_largest(flow: Flow, i: int) -> Hazard | None:
    """Return the hazard of a sum, a power or a product of float16 near the largest number."""
    facts, result = flow.properties[i], flow.nodes[i].value
    computes = facts.reduces in ("sum", "norm") or facts.product or (facts.multiplies and len(flow.inputs[i]) == 2)
    if not computes or result is None or result.dtype != "float16" or result.odd or not result.size:
        return None
    bound = LARGEST_NUMBERS["float16"]
    inputs = [flow.nodes[edge.source].value for edge in flow.inputs[i]]
    before = max((value.largest for value in inputs if value is not None and value.size), default=bound)
    if result.largest <= SHARE_OF_LARGEST * bound or before > SHARE_OF_LARGEST * bound:
        return None
    return Hazard(
        i,
        f"{code_at(flow, i)} computes {digits(result.largest)} in float16, whose largest number is 65504.",
        "Compute this step in float32, or scale its input down.",
        {"largest": result.largest, "bound": bound},
    )

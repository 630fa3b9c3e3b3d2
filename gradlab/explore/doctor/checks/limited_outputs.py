"""Find activations whose range does not fit the loss: logits from a ReLU, and targets that a sigmoid cannot reach."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, instead, parenthesize, parse_expression
from gradlab.explore.doctor.context.flow import Flow, digits, extremes, flow_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.data import Operand
from gradlab.explore.trace.values import Value

MIN_TARGETS = 4
# A finding needs a target this many half widths from the middle of the range. Noise of a tenth of the range, which is added to
# the targets of a denoiser on purpose, ends at 1.8.
MIN_DISTANCE = 2.0
MIN_BEYOND = 0.75  # of the targets' root mean square, beyond the end of a range with one end
# A Problem also needs this share of the targets out of reach, by a bound that holds for all targets with these extremes and
# moments.
MIN_SHARE = 0.01


declare(
    "limited-output",
    meaning="The last activation limits the outputs to a range that does not fit the loss or the targets.",
    why="""
        A sigmoid cannot exceed 1, tanh stays between -1 and 1, and ReLU and softplus are never negative. Targets outside that
        range cannot be reached: the outputs move to its end, where the slope is 0. Logits need both signs. After a ReLU a binary
        cross-entropy never sees a probability below 0.5. A ReLU or tanh before `cross_entropy` is reported as a Note, because the
        largest class can still be right.
    """,
    remedy="""
        Leave the activation after the last layer out. Or scale the targets to its range. `cross_entropy` and
        `binary_cross_entropy_with_logits` take the output of a linear layer.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = 5 * torch.rand(64, 1)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(5):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={"nn.Linear(16, 1), nn.Sigmoid()": "nn.Linear(16, 1)"},
    notes=True,
)


@check("limited-output", of_each_loss=True)
def find_limited_outputs(case: Case) -> Iterable[Finding]:
    """Find losses of the output of a sigmoid, tanh, ReLU or softplus that targets or logits must be able to leave."""
    if case.trace is None or not case.trace.outputs:
        return
    flow = flow_of(case)
    for i, node in enumerate(flow.nodes):
        if node.kind != "operation" or not flow.inputs[i]:
            continue
        maker = flow.before_reshapes(flow.inputs[i][0].source)
        if not _is_limited(flow, maker):
            continue
        loss = flow.properties[i].loss
        if flow.ops[i] == "LogSoftmax":
            found = _limited_logits(flow, i, maker) if _is_cross_entropy(flow, i) else None
        elif loss is not None and loss.takes == "logits":
            found = _positive_logits(flow, i, maker)
        elif (loss is not None and loss.takes == "values") or _is_difference(flow, i):
            found = _unreachable_targets(flow, i, maker)
        else:
            found = None
        if found is not None:
            yield found


def _is_limited(flow: Flow, i: int) -> bool:
    """Return whether a node is an activation whose values have a bound."""
    one = flow.properties[i]
    limited = math.isfinite(one.low) or math.isfinite(one.high)
    return limited and one.elementwise and bool(one.saturates) and not one.flat


def _is_cross_entropy(flow: Flow, i: int) -> bool:
    """Return whether the results of a log_softmax are looked up by targets."""
    return any(
        (loss := flow.properties[edge.target].loss) is not None
        and loss.takes == "log-probabilities"
        and loss.nonnegative
        and not flow.properties[edge.target].poles
        for edge in flow.uses[i]
    )


def _is_difference(flow: Flow, i: int) -> bool:
    """Return whether a node is a difference of an output and targets that is squared, or whose absolute value is taken."""
    if not flow.properties[i].adds or flow.ops[i] == "Add" or len(flow.inputs[i]) != 1 or len(flow.uses[i]) < 1:
        return False
    for edge in flow.uses[i]:
        t = edge.target
        constants = [o.value.numbers for o in flow.nodes[t].operands if o.kind == "constant" and o.value is not None]
        even = flow.ops[t] == "Pow" and any(numbers and numbers[0] == 2 for numbers in constants)
        squared = flow.ops[t] == "Mul" and [one.source for one in flow.inputs[t]] == [i, i]
        if not (even or squared or flow.ops[t] in ("Square", "Abs")):
            return False
    return True


# ---------------------------------------------------------------------------------------------------------------- logits
def _limited_logits(flow: Flow, i: int, maker: int) -> Finding | None:
    """Note a cross-entropy of logits that are never negative, or that a tanh keeps between -1 and 1."""
    one, value = flow.properties[maker], flow.nodes[maker].value
    classes = (flow.nodes[i].shape or (0,))[-1] if len(flow.nodes[i].shape or ()) <= 2 else 0
    if value is None or not value.size:
        return None
    if one.low == 0 and math.isinf(one.high) and one.rectifier:
        evidence: dict[str, object] = {"zeros": value.zeros, "size": value.size, "at": i, "maker": maker}
        limit = f"They cannot be negative, and {value.zeros} of {value.size} are 0 and pass no gradient on."
    elif one.low == -one.high and classes > 1 and not value.odd:
        largest = 1 / (1 + (classes - 1) * math.exp(one.low - one.high))
        evidence = {"classes": classes, "largest": largest, "low": one.low, "high": one.high, "at": i, "maker": maker}
        limit = (
            f"They are between {digits(one.low)} and {digits(one.high)}, so with {classes} classes no probability can be above "
            f"{digits(largest)}."
        )
    else:
        return None
    return Finding(
        "limited-output",
        f"{flow.code(i)}{flow.place(i)} takes the output of {_made_by(flow, maker, i)} as logits. {limit}",
        flow.line(i),
        i,
        _advise_leaving_out(flow, maker),
        evidence,
        remark=True,
        worth=1.5,
    )


def _positive_logits(flow: Flow, i: int, maker: int) -> Finding | None:
    """Find a binary cross-entropy of logits that are never negative, with targets below 0.5."""
    targets = _targets(flow, i)
    if targets is None or targets.value is None or flow.properties[maker].low < 0 or not flow.properties[maker].rectifier:
        return None
    value = targets.value
    least = extremes(value)[0]
    if value.odd or value.size < MIN_TARGETS or not least < 0.4 or extremes(value)[1] > 1:
        return None
    below = f"{value.zeros} of the {value.size} targets are 0" if value.zeros else f"the targets go down to {digits(least)}"
    evidence = {"zeros": value.zeros, "size": value.size} if value.zeros else {"least": least}
    return Finding(
        "limited-output",
        f"{flow.code(i)}{flow.place(i)} takes the output of {_made_by(flow, maker, i)} as logits. They cannot be negative, so no "
        f"probability can be below 0.5, but {below}.",
        flow.line(i),
        i,
        _advise_leaving_out(flow, maker),
        {**evidence, "bound": 0.5, "at": i, "maker": maker, "argument": targets.argument},
        worth=7.0,
    )


# --------------------------------------------------------------------------------------------------------------- targets
def _unreachable_targets(flow: Flow, i: int, maker: int) -> Finding | None:
    """Find targets outside the range of an activation."""
    targets = _targets(flow, i)
    value = None if targets is None else targets.value
    if targets is None or value is None or value.odd or value.size < MIN_TARGETS:
        return None
    if not value.dtype.startswith(("float", "bfloat", "int", "uint")):
        return None
    low, high = flow.properties[maker].low, flow.properties[maker].high
    least, greatest = extremes(value)
    if not is_far_outside(value, low, high):
        return None
    is_certain = share_outside(value, low, high) >= MIN_SHARE and targets.kind == "input"
    if math.isinf(high):
        limit, beyond = f"is at least {digits(low)}", f"The targets below {digits(low)}"
    elif math.isinf(low):
        limit, beyond = f"is at most {digits(high)}", f"The targets above {digits(high)}"
    else:
        limit, beyond = f"is between {digits(low)} and {digits(high)}", "The targets outside that range"
    return Finding(
        "limited-output",
        f"{flow.code(i)}{flow.place(i)} compares the output of {_made_by(flow, maker, i)}, which {limit}, with targets between "
        f"{digits(least)} and {digits(greatest)}. {beyond} cannot be reached.",
        flow.line(i),
        i,
        _advise_leaving_out(flow, maker, " Or scale the targets to its range."),
        {
            "least": least,
            "greatest": greatest,
            "at": i,
            "maker": maker,
            "argument": targets.argument,
            **{name: bound for name, bound in (("low", low), ("high", high)) if math.isfinite(bound)},
        },
        remark=not is_certain,
        worth=7.0 if is_certain else 1.5,
    )


def share_outside(value: Value, low: float, high: float) -> float:
    """Return a lower bound of the share of elements outside [low, high], from the extremes, the mean and the norm.

    With c the middle and r half the width of a bounded range, elements inside have (t - c)² <= r² and others at most D². So the
    mean of (t - c)² is at most r² + share · (D² - r²). Of a range with one end, say t >= 0, let a and b be the means of the
    positive and negative parts. With t in [m, M] the mean square is at most M a + |m| b, and the mean is a - b. This bounds b,
    and the share is at least b / |m|.
    """
    least, greatest = extremes(value)
    mean, square = value.statistics.mean, value.norm**2 / value.size
    if math.isfinite(low) and math.isfinite(high):
        middle, half = (low + high) / 2, (high - low) / 2
        spread = square - 2 * middle * mean + middle**2
        farthest = max(greatest - middle, middle - least)
        return max(0.0, (spread - half**2) / (farthest**2 - half**2)) if farthest > half * (1 + 1e-6) else 0.0
    end, sign = (low, 1.0) if math.isfinite(low) else (high, -1.0)
    shifted = square - 2 * end * mean + end**2, sign * (mean - end)
    inside, outside = sorted((sign * (least - end), sign * (greatest - end)), reverse=True)
    if outside >= 0:
        return 0.0
    if inside <= 0:
        return 1.0 - value.zeros / value.size
    negative = (shifted[0] - inside * shifted[1]) / (inside - outside)
    return max(0.0, negative / -outside)


def is_far_outside(value: Value, low: float, high: float) -> bool:
    """Return whether a target is so far outside a range that noise does not explain it."""
    least, greatest = extremes(value)
    if math.isfinite(low) and math.isfinite(high):
        middle, half = (low + high) / 2, (high - low) / 2
        return max(greatest - middle, middle - least) > MIN_DISTANCE * half
    size = value.norm / math.sqrt(value.size)
    return low - least > MIN_BEYOND * size if math.isfinite(low) else greatest - high > MIN_BEYOND * size


def _targets(flow: Flow, i: int) -> Operand | None:
    """Return the targets of a loss: the only tensor that it is given without a gradient.

    PyTorch records some losses as several operations of one line, of which the last has what the loss was given.
    """
    at = i
    while not flow.nodes[at].operands and len(flow.uses[at]) == 1 and len(flow.inputs[at]) == 1:
        after = flow.uses[at][0].target
        if flow.nodes[after].place != flow.nodes[i].place:
            break
        at = after
    given = [
        one for one in flow.nodes[at].operands if one.kind in ("input", "cut") and one.value is not None and one.argument < 2
    ]
    return given[0] if len(given) == 1 and len(flow.inputs[i]) == 1 else None


# ---------------------------------------------------------------------------------------------------------------- advice
def _made_by(flow: Flow, maker: int, i: int) -> str:
    """Return the name of an activation, with its line if it is not that of the loss."""
    elsewhere = flow.place(maker) if flow.place(maker) != flow.place(i) else ""
    return f"{flow.operation(maker)}{elsewhere}"


def _advise_leaving_out(flow: Flow, maker: int, otherwise: str = "") -> str:
    """Return advice to leave an activation out, as code where it is a call of a function."""
    node, name = flow.nodes[maker], flow.properties[maker].short_name or flow.ops[maker].lower()
    source = node.place.source if node.place is not None and not node.module else ""
    call, inner = parse_expression(source), argument(source)
    is_call = call is not None and inner and name.replace("_", "") in source.partition("(")[0].lower().replace("_", "")
    if not is_call and not (inner and source.endswith(f".{name}()")):
        return f"Leave the last {flow.operation(maker)} out.{otherwise}"
    assert node.place is not None
    code = instead(inner if node.place.statement.endswith(f"= {source}") else parenthesize(inner), source)
    return f"Leave the last {name} out: {code}. This changes the loss.{otherwise}"

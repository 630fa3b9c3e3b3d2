"""Find units that pass no gradient back: rectifiers that are inactive for a whole batch, and saturated functions.

Both are determined from the gradients of an operation's input and output (`trace.slopes`), not from its values, so units whose
output has no gradient are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.flow import (
    LOSS_REDUCTIONS,
    Flow,
    digits,
    extremes,
    flow_of,
    has_gradients,
    leaf_names,
    plural,
    root_mean_square,
)
from gradlab.explore.doctor.context.step_history import has_converged, input_name, large_operand
from gradlab.explore.doctor.context.unit_advice import advise_dead_units, advise_scale
from gradlab.explore.doctor.context.zero_gradients import LostGradients, find_lost_gradients
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.slopes import FLAT, open_slope

# In the healthy examples in tests/doctor (measured_runs.py) at most 0.63 of the units of a layer are inactive, and in the faulty
# ones at least 0.85.
MIN_DEAD_SHARE = 0.8
# A unit that is active half of the time is inactive at all of 32 places with a probability of 2^-32.
MIN_PLACES = 32
# In the healthy examples at most 0.14 of the elements of a node have slopes below `FLAT`, and in the faulty ones at least 0.98.
MIN_SATURATED_SHARE = 0.9
MIN_ELEMENTS = 8  # of a node; with fewer a share of 0.9 is the same as all of them
MIN_ELEMENTS_OF_LINE = 32  # of all nodes of one line together, as many as `MIN_PLACES`
FEW_ELEMENTS = 64  # of a node, below which all may be inactive in one batch only
MIN_ROWS = 16  # of a softmax; a smaller batch may be learnt, and its rows one-hot
MIN_SHARE_OF_CALLS = 0.2  # of the nodes of one line: one of the four gates of an LSTM


declare(
    "dead",
    notes=True,
    meaning="Units of ReLU or a similar activation, or all elements of a clamp, pass no gradient for the whole batch.",
    why="""
        The derivative of ReLU is 0 below 0. If the input of a unit is negative for all examples, its weights get a gradient of
        exactly 0, and gradient descent does not bring the unit back. In the first backward call of a training a layer is
        reported as a Note if 60 % of its units are inactive, and clearly more than the half that is usual.
    """,
    remedy="""
        Start the biases at 0 and standardise the inputs. If the steps made the inputs of the units negative, use a smaller
        learning rate, or `leaky_relu`, which also passes a gradient where its input is negative.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x = torch.randn(64, 10)
        y = (torch.rand(64, 1) < 0.01).float()
        model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        for layer in (model[0], model[2]):
            nn.init.constant_(layer.bias, -4.6)  # the log-odds of 1 %
        loss = F.binary_cross_entropy_with_logits(model(x), y)  #!
        loss.backward()
    """,
    healthy="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x = torch.randn(64, 10)
        y = (torch.rand(64, 1) < 0.01).float()
        model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
        nn.init.constant_(model[2].bias, -4.6)  # the log-odds of 1 %
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
    """,
)

declare(
    "saturated",
    notes=True,
    meaning="A sigmoid, tanh, hardtanh or softmax is in its flat part for most of its inputs and passes next to no gradient.",
    why="""
        The derivative is near 0 in the flat part: that of tanh, 1 - tanh(x)**2, is below 0.01 for abs(x) > 3. The layers
        before the function get next to no gradient, and hardly learn. In the first backward call of a training a third of
        the elements is reported as a Note, if they are the inputs of a layer: a tanh beyond ±0.97, a sigmoid below 0.015 or
        above 0.985. Later in a training units may be saturated because they have learned.
    """,
    remedy="""
        Make the inputs of the function smaller: standardise the data, use smaller weights, or put a normalisation layer before
        it. Draw weights with the scale of Xavier or Kaiming, such as (5 / 3) / n**0.5 for n inputs before a tanh. Divide the
        scores of an attention by the square root of the length of the keys.
    """,
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        images = torch.randint(0, 256, (64, 100)).float()
        labels = torch.randint(0, 10, (64,))
        model = nn.Sequential(nn.Linear(100, 32), nn.Tanh(), nn.Linear(32, 10))
        loss = F.cross_entropy(model(images), labels)  #!
        loss.backward()
    """,
    healthy={
        "images = torch.randint(0, 256, (64, 100)).float()": "images = torch.randint(0, 256, (64, 100)).float() / 255",
    },
)


@check("dead", "saturated", keras=True)
def find_dead_and_saturated_units(case: Case) -> Iterable[Finding]:
    """Find dead and saturated units."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    lost = find_lost_gradients(flow)
    reported: set[int] = set()
    yield from _find_dead_units(flow, lost, reported)
    yield from _find_saturated_units(flow, lost, reported)
    yield from _find_sharp_softmax(flow, lost, reported)
    yield from _find_blocked_leaves(flow, lost, reported)


def _zero_leaves(flow: Flow, lost: LostGradients, i: int) -> str:
    """Return " `w` gets exactly 0." for the leaves whose gradient is lost at a node; "" if there is none."""
    leaves = lost.leaves.get(i, [])
    if not leaves:
        return ""
    return f" {join_names(leaf_names(flow, leaves))} {'gets' if len(leaves) == 1 else 'get'} exactly 0."


def _find_dead_units(flow: Flow, lost: LostGradients, reported: set[int]) -> Iterable[Finding]:
    """Find layers of rectifiers most of which are inactive. Of the layers on one line, report the one next to its leaves."""
    lines: set[object] = set()
    for i, node in enumerate(flow.nodes):
        slopes, properties = node.slopes, flow.properties[i]
        blocks_below = properties.rectifier and properties.saturates == "below"
        if slopes is None or not blocks_below or not slopes.units or slopes.places < MIN_PLACES:
            continue
        if slopes.shut <= MIN_DEAD_SHARE * slopes.units or not (flow.hidden[i] or i in lost.leaves):
            continue
        reported.add(i)
        if node.place in lines and i not in lost.leaves:
            continue
        lines.add(node.place)
        all_of = slopes.shut == slopes.units
        share = f"All {slopes.units}" if all_of else f"{slopes.shut} of {slopes.units}"
        given = flow.nodes[flow.inputs[i][0].source].value
        evidence: dict[str, object] = {
            "units": slopes.units,
            "shut": slopes.shut,
            "places": slopes.places,
            "share": slopes.shut / slopes.units,
        }
        highest, side = "", "below the bound" if flow.ops[i] in ("Threshold", "ClampMin") else "negative"
        if all_of and given is not None and given.summary is not None:
            evidence["greatest"] = given.summary.maximum
            highest = f" (at most {digits(given.summary.maximum)})"
        yield Finding(
            "dead",
            f"{share} units of {flow.operation(i)} in {flow.code(i)}{flow.place(i)} are inactive at all {slopes.places} places "
            f"of the batch: their inputs are {side} everywhere{highest}, so they pass back exactly 0 and do not recover by "
            f"themselves.{_zero_leaves(flow, lost, i)}",
            flow.line(i),
            i,
            advise_dead_units(flow, i),
            evidence,
            worth=5.0 + (i in lost.leaves),
        )


def _find_saturated_units(flow: Flow, lost: LostGradients, reported: set[int]) -> Iterable[Finding]:
    """Find saturated activations. The calls of a loop on one line are one finding."""
    groups: dict[object, list[int]] = {}
    for i, node in enumerate(flow.nodes):
        if node.slopes is not None and flow.properties[i].sigmoidal:
            groups.setdefault((node.place, node.module, flow.ops[i]), []).append(i)
    for members in groups.values():
        counted = [(i, s) for i in members if (s := flow.nodes[i].slopes) is not None and s.elements >= MIN_ELEMENTS]
        flat = [(i, s) for i, s in counted if s.flat > MIN_SATURATED_SHARE * s.elements and (flow.hidden[i] or i in lost.leaves)]
        elements, low = sum(s.elements for _, s in flat), sum(s.flat for _, s in flat)
        if elements < MIN_ELEMENTS_OF_LINE or len(flat) < MIN_SHARE_OF_CALLS * len(members):
            continue
        reported.update(members)
        i = flat[0][0]
        steepest = open_slope(flow.nodes[i].operation)
        assert steepest is not None
        source = flow.inputs[i][0].source
        given = flow.nodes[source].value
        input_size = "" if given is None else f" Its inputs reach {digits(given.largest)} in absolute value."
        large = large_operand(flow, source)
        if large is not None and large.value is not None:
            input_size += f" {input_name(flow, source, large)} has a root mean square of {digits(root_mean_square(large.value))}."
        op = flow.ops[i].lower()
        evidence: dict[str, object] = {
            "elements": elements,
            "flat": low,
            "share": low / elements,
            "slope": FLAT * steepest,
            "members": len(flat),
        }
        if given is not None:
            evidence["largest"] = given.largest
        if large is not None and large.value is not None:
            evidence["input"] = root_mean_square(large.value)
        yield Finding(
            "saturated",
            f"The {op} in {flow.code(i)}{flow.place(i)} is in its flat part at {low} of {elements} elements"
            f"{f' in {len(flat)} calls' if len(flat) > 1 else ''}: there it scales the gradient by less than "
            f"{digits(FLAT * steepest)}.{input_size}{_zero_leaves(flow, lost, i)}",
            flow.line(i),
            i,
            advise_scale(flow, source)
            or "Make its input smaller: use smaller weights, standardise the data, or normalise before it.",
            evidence,
            worth=4.0 + (i in lost.leaves),
        )


def _advise_softmax(flow: Flow, i: int) -> str:
    """Return what to do about a softmax with nearly one-hot rows."""
    at = flow.inputs[i][0].source
    scaled = False
    while (flow.is_reshape_or_cast(at) or flow.scales_or_masks(at)) and flow.inputs[at]:
        scaled = scaled or flow.properties[at].multiplies
        at = flow.inputs[at][0].source
    scores = flow.properties[at].product and flow.weights[at] is None
    if scores and not scaled:
        return "Divide the scores by the square root of the length of the keys."
    return "Make its input smaller: divide it by a larger number, or normalise the values that it is computed from."


def _find_sharp_softmax(flow: Flow, lost: LostGradients, reported: set[int]) -> Iterable[Finding]:
    """Find softmaxes with nearly one-hot rows."""
    for i, node in enumerate(flow.nodes):
        slopes = node.slopes
        if slopes is None or flow.ops[i] != "Softmax" or not slopes.elements:
            continue
        many = slopes.elements >= MIN_ROWS and flow.hidden[i]
        if slopes.flat <= MIN_SATURATED_SHARE * slopes.elements or not (many or i in lost.leaves):
            continue
        reported.add(i)
        source = flow.inputs[i][0].source
        given = flow.nodes[source].value
        evidence: dict[str, object] = {"rows": slopes.elements, "sharp": slopes.flat, "share": slopes.flat / slopes.elements}
        input_size = ""
        if given is not None and not given.infs:
            evidence["largest"] = given.largest
            input_size = f" Its inputs reach {digits(given.largest)} in absolute value."
        yield Finding(
            "saturated",
            f"The softmax in {flow.code(i)}{flow.place(i)} puts more than 0.999 on one entry in {slopes.flat} of "
            f"{plural(slopes.elements, 'row')}, where its slope is near 0.{input_size}{_zero_leaves(flow, lost, i)}",
            flow.line(i),
            i,
            _advise_softmax(flow, i),
            evidence,
            worth=4.0 + (i in lost.leaves),
        )


def _find_blocked_leaves(flow: Flow, lost: LostGradients, reported: set[int]) -> Iterable[Finding]:
    """Find activations with a slope of 0 at all elements, behind which leaves have no gradient. Their size does not matter."""
    for at, leaves in lost.leaves.items():
        node, properties = flow.nodes[at], flow.properties[at]
        if properties.recurrent and node.value is not None and node.value.all_zero:
            yield Finding(
                "saturated",
                f"The output of {flow.code(at)}{flow.place(at)} is 0 at all of its {node.value.size} elements, so a "
                f"sigmoid of its gates is 0.{_zero_leaves(flow, lost, at)}",
                flow.line(at),
                at,
                "Check the biases of the gates: the sigmoid of numbers below -100 is rounded to 0.",
                {"elements": node.value.size, "leaves": tuple(leaf_names(flow, leaves))},
                worth=5.0,
            )
        if at in reported or not (properties.rectifier or properties.sigmoidal) or node.shape is None:
            continue
        if node.slopes is None or not node.slopes.elements or _is_minimised(flow, lost, at):
            continue
        if node.slopes.elements < FEW_ELEMENTS and _passes_elsewhere(flow, leaves):
            continue
        given = flow.nodes[flow.inputs[at][0].source].value
        between = ""
        evidence: dict[str, object] = {"elements": node.slopes.elements, "leaves": tuple(leaf_names(flow, leaves))}
        if given is not None and given.size and given.nans == given.infs == 0:
            low, high = extremes(given)
            between = f" Its input is between {digits(low)} and {digits(high)}."
            evidence |= {"least": low, "greatest": high}
        kind = "dead" if properties.rectifier else "saturated"
        elements = plural(node.slopes.elements, "element")
        yield Finding(
            kind,
            f"{flow.code(at)}{flow.place(at)} passes no gradient back at any of its {elements}: the slope of "
            f"{flow.operation(at)} is 0 there.{between}{_zero_leaves(flow, lost, at)}",
            flow.line(at),
            at,
            _advise_flat_units(flow, at),
            evidence,
            worth=5.0,
        )


def _passes_elsewhere(flow: Flow, leaves: Sequence[int]) -> bool:
    """Return whether one of the two sweeps before this one, or a later one, brought leaves a gradient: then they get none for a
    batch of few elements only."""
    for leaf in leaves:
        timeline = flow.case.timelines.get(flow.keys.get(leaf, 0), ())
        earlier = [entry.arrived for swept, entry in timeline if swept.number < flow.trace.sweep]
        later = [entry.arrived for swept, entry in timeline if swept.number > flow.trace.sweep]
        if (len(earlier) > 1 and any(earlier[-2:])) or any(later):
            return True
    return False


def _advise_flat_units(flow: Flow, at: int) -> str:
    if flow.ops[at].startswith("Clamp"):
        return "Check the scale of its input: it is outside the bounds of the clamp everywhere."
    if flow.properties[at].rectifier:
        return "Check the sign and the scale of its input. The slope of softplus and leaky_relu is nowhere 0."
    return "Check the scale of its input."


def _is_minimised(flow: Flow, lost: LostGradients, at: int) -> bool:
    """Return whether the loss is a sum or mean of the results of a unit that have decreased to 0, as hinge losses do."""
    above = [i for i in flow.path_up(at) if i != at and flow.nodes[i].kind == "operation"]
    if not all(flow.properties[i].reduces in LOSS_REDUCTIONS or flow.ops[i] == "Add" for i in above):
        return False
    outputs = [flow.nodes[i].value for i in flow.trace.outputs]
    if all(value is not None and value.all_zero for value in outputs):
        return any(sweep.loss for sweep in flow.trace.journal if sweep.number < flow.trace.sweep)
    value = flow.nodes[at].value
    return value is not None and value.all_zero and has_converged(flow, lost.leaves[at])

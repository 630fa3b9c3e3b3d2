"""Units that pass nothing on: rectifiers that are shut for a whole batch, and what is in its flat part.

Both are read off the cotangents that came and went (`trace.slopes`), not off the values: a unit that nothing arrives at is no
one's fault, and one whose slope is small says nothing where the loss is steep.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case, listed
from gradlab.explore.doctor.context.flow import (
    CASTS,
    PRODUCTS,
    REDUCTIONS,
    SHAPES,
    Flow,
    extremes,
    figure,
    leaf_names,
    numbers_known,
    plural,
    root_mean_square,
)
from gradlab.explore.doctor.context.step_history import input_name, is_changed, large_operand, standardised
from gradlab.explore.doctor.context.zero_gradients import Starved, starved
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.trace.slopes import FLAT, STEEPEST

# Of the layers of the healthy cells in tests/doctor (measured_runs.py) at most 0.63 of the units are shut, of the planted ones at
# least 0.85.
DEAD = 0.8
# A unit that is open half of the time is shut for all of 32 with a probability of 2^-32.
PLACES = 32
# Of a node of the healthy cells at most 0.14 of the elements have slopes below `FLAT`, of the planted ones at least 0.98.
SATURATED = 0.9
SEEN = 8  # elements of a node from which on a share of 0.9 can be told from all of them
ENOUGH = 32  # elements of all nodes of one line together: as many as `PLACES`
ROWS = 16  # rows of a softmax: of fewer, one-hot ones are a batch that is learnt
OFTEN = 0.2  # of the nodes of one line: one gate of an LSTM's four

LOW = -3.0  # a bias below shuts a unit that is given three standard deviations of a normalised input
CHOOSING = frozenset(["Div", "Mul", "MaskedFill", "Where", "Add"])  # between scores and their softmax

RECTIFIERS = frozenset(["Relu", "Threshold", "ClampMin", "ClampMax", "Clamp", "Hardtanh", "Gelu", "Silu", "Elu"])
BENT = frozenset(["Sigmoid", "Tanh", "Hardtanh", "Hardsigmoid", "Softsign", "Erf"])
FUSED = frozenset(["MkldnnRnnLayer", "CudnnRnn", "MiopenRnn"])  # whole recurrent layers in one operation
UNITS = frozenset(["Relu", "Threshold", "ClampMin", "Gelu", "Silu", "Elu"])


declare(
    "dead",
    meaning="units whose rectifier is shut for all of the batch",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "saturated",
    meaning="units in the flat part of sigmoid, tanh, softmax or clamp",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("dead", "saturated")
def find_dead_and_saturated_units(case: Case) -> Iterable[Finding]:
    """Dead and saturated units."""
    if not numbers_known(case.trace):
        return
    flow = Flow(case)
    hungry = starved(flow)
    told: set[int] = set()
    yield from _dead(flow, hungry, told)
    yield from _saturated(flow, hungry, told)
    yield from _sharp(flow, hungry, told)
    yield from _shut(flow, hungry, told)


def _leaves(flow: Flow, hungry: Starved, i: int) -> str:
    """ " `w` gets exactly 0." of the leaves that starve by a node."""
    leaves = hungry.leaves.get(i, [])
    if not leaves:
        return ""
    return f" {listed(leaf_names(flow, leaves))} {'gets' if len(leaves) == 1 else 'get'} exactly 0."


def _dead(flow: Flow, hungry: Starved, told: set[int]) -> Iterable[Finding]:
    """Of a line the layer nearest to its leaves stands for the others."""
    lines: set[object] = set()
    for i, node in enumerate(flow.nodes):
        seen = node.slopes
        if seen is None or flow.words[i] not in UNITS or not seen.units or seen.places < PLACES:
            continue
        if seen.shut <= DEAD * seen.units or not (flow.hidden[i] or i in hungry.leaves):
            continue
        told.add(i)
        if node.place in lines and i not in hungry.leaves:
            continue
        lines.add(node.place)
        all_of = seen.shut == seen.units
        share = f"All {seen.units}" if all_of else f"{seen.shut} of {seen.units}"
        before = flow.nodes[flow.given[i][0].source].value
        evidence: dict[str, object] = {
            "units": seen.units,
            "shut": seen.shut,
            "places": seen.places,
            "share": seen.shut / seen.units,
        }
        highest = ""
        if all_of and before is not None and before.summary is not None:
            evidence["greatest"] = before.summary.maximum
            highest = f" (at most {figure(before.summary.maximum)})"
        yield Finding(
            "dead",
            f"{share} units of {flow.operation(i)} in {flow.code(i)}{flow.place(i)} are shut for all {seen.places} places of the "
            f"batch: what goes in is negative everywhere{highest}, so they pass on exactly 0 and do not come "
            f"back by themselves.{_leaves(flow, hungry, i)}",
            flow.line(i),
            i,
            _revived(flow, i),
            evidence,
            worth=5.0 + (i in hungry.leaves),
        )


def _saturated(flow: Flow, hungry: Starved, told: set[int]) -> Iterable[Finding]:
    """By line: a loop's operations are one thing."""
    groups: dict[object, list[int]] = {}
    for i, node in enumerate(flow.nodes):
        if node.slopes is not None and flow.words[i] in BENT:
            groups.setdefault((node.place, node.module, flow.words[i]), []).append(i)
    for members in groups.values():
        counted = [(i, s) for i in members if (s := flow.nodes[i].slopes) is not None and s.elements >= SEEN]
        flat = [(i, s) for i, s in counted if s.flat > SATURATED * s.elements and (flow.hidden[i] or i in hungry.leaves)]
        elements, low = sum(s.elements for _, s in flat), sum(s.flat for _, s in flat)
        if elements < ENOUGH or len(flat) < OFTEN * len(members):
            continue
        told.update(members)
        i = flat[0][0]
        steepest = STEEPEST[flow.nodes[i].operation]
        source = flow.given[i][0].source
        before = flow.nodes[source].value
        wide = "" if before is None else f" Its input goes up to {figure(before.largest)} in size."
        given = large_operand(flow, source)
        if given is not None and given.value is not None:
            wide += f" {input_name(flow, source, given)} has a root mean square of {figure(root_mean_square(given.value))}."
        word = flow.words[i].lower()
        evidence: dict[str, object] = {
            "elements": elements,
            "flat": low,
            "share": low / elements,
            "slope": FLAT * steepest,
            "members": len(flat),
        }
        if before is not None:
            evidence["largest"] = before.largest
        if given is not None and given.value is not None:
            evidence["input"] = root_mean_square(given.value)
        yield Finding(
            "saturated",
            f"The {word} in {flow.code(i)}{flow.place(i)} is in its flat part at {low} of {elements} elements"
            f"{f' in {len(flat)} calls' if len(flat) > 1 else ''}: there it passes on less than "
            f"{figure(FLAT * steepest)} of what "
            f"arrives.{wide}{_leaves(flow, hungry, i)}",
            flow.line(i),
            i,
            _scale(flow, source)
            or "Make what goes in smaller: smaller weights, standardised inputs, or a normalisation before it.",
            evidence,
            worth=4.0 + (i in hungry.leaves),
        )


def _scale(flow: Flow, source: int) -> str:
    """What to do where the steps made the weights large, or the layer before is given large numbers."""
    if _by_steps(flow, source):
        return "The steps of this cell have made the weights so: take a smaller learning rate."
    operand = large_operand(flow, source)
    return "" if operand is None else standardised(flow, operand)


def _by_steps(flow: Flow, product: int) -> bool:
    """Whether steps of the cell have changed a layer's parameters by a factor."""
    leaves = [leaf for edge in flow.given[product] if (leaf := flow.leaf_behind(edge.source)) is not None]
    return any(leaf in flow.keys and is_changed(flow.case, flow.keys[leaf]) for leaf in leaves)


def _revived(flow: Flow, i: int) -> str:
    """What to do about units that are shut: by what shut them, as far as that can be seen."""
    source = flow.given[i][0].source
    if _by_steps(flow, source):
        return "The steps of this cell have made the weights so: take a smaller learning rate."
    for edge in flow.given[source]:
        leaf = flow.leaf_behind(edge.source)
        value = flow.nodes[leaf].value if leaf is not None else None
        if leaf is None or value is None or len(value.shape) > 1 or value.odd:
            continue
        if extremes(value)[0] < LOW and root_mean_square(value) > -LOW and flow.nodes[leaf].name:
            return f"Start `{flow.nodes[leaf].name}` at 0."
    operand = large_operand(flow, source)
    if operand is not None:
        return standardised(flow, operand)
    return "Use leaky_relu or gelu, or a smaller learning rate if steps have made the weights so."


def _cooled(flow: Flow, i: int) -> str:
    """What to do about a softmax that is nearly one-hot."""
    at = flow.given[i][0].source
    scaled = False
    while flow.words[at] in SHAPES | CASTS | CHOOSING and flow.given[at]:
        scaled = scaled or flow.words[at] in ("Div", "Mul")
        at = flow.given[at][0].source
    scores = flow.words[at] in PRODUCTS and flow.weights[at] is None
    if scores and not scaled:
        return "Divide the scores by the square root of the keys' length."
    return "Make what goes in smaller: divide it by a larger number, or normalise what it is computed from."


def _sharp(flow: Flow, hungry: Starved, told: set[int]) -> Iterable[Finding]:
    for i, node in enumerate(flow.nodes):
        seen = node.slopes
        if seen is None or flow.words[i] != "Softmax" or not seen.elements:
            continue
        many = seen.elements >= ROWS and flow.hidden[i]
        if seen.flat <= SATURATED * seen.elements or not (many or i in hungry.leaves):
            continue
        told.add(i)
        source = flow.given[i][0].source
        before = flow.nodes[source].value
        evidence: dict[str, object] = {"rows": seen.elements, "sharp": seen.flat, "share": seen.flat / seen.elements}
        wide = ""
        if before is not None and not before.infs:
            evidence["largest"] = before.largest
            wide = f" Its input goes up to {figure(before.largest)} in size."
        yield Finding(
            "saturated",
            f"The softmax in {flow.code(i)}{flow.place(i)} puts more than 0.999 on one entry in {seen.flat} of "
            f"{plural(seen.elements, 'row')}: there it passes on next to nothing.{wide}{_leaves(flow, hungry, i)}",
            flow.line(i),
            i,
            _cooled(flow, i),
            evidence,
            worth=4.0 + (i in hungry.leaves),
        )


def _shut(flow: Flow, hungry: Starved, told: set[int]) -> Iterable[Finding]:
    """What lets nothing through to some leaf, whatever the number of its elements."""
    for at, leaves in hungry.leaves.items():
        node, word = flow.nodes[at], flow.words[at]
        if word in FUSED and node.value is not None and node.value.all_zero:
            yield Finding(
                "saturated",
                f"The output of {flow.code(at)}{flow.place(at)} is 0 at all of its {node.value.size} elements, which "
                "the products of "
                f"its gates only are where a sigmoid is shut.{_leaves(flow, hungry, at)}",
                flow.line(at),
                at,
                "Look at the biases of the gates: a sigmoid is rounded to 0 where less than -100 goes in.",
                {"elements": node.value.size, "leaves": tuple(leaf_names(flow, leaves))},
                worth=5.0,
            )
        if at in told or word not in RECTIFIERS | BENT or node.shape is None:
            continue
        if node.slopes is None or not node.slopes.elements or _arrived(flow, at):
            continue
        before = flow.nodes[flow.given[at][0].source].value
        between = ""
        evidence: dict[str, object] = {"elements": node.slopes.elements, "leaves": tuple(leaf_names(flow, leaves))}
        if before is not None and before.size and before.nans == before.infs == 0:
            low, high = extremes(before)
            between = f" What goes in lies between {figure(low)} and {figure(high)}."
            evidence |= {"least": low, "greatest": high}
        kind = "dead" if word in RECTIFIERS else "saturated"
        elements = plural(node.slopes.elements, "element")
        yield Finding(
            kind,
            f"{flow.code(at)}{flow.place(at)} passes nothing on at any of its {elements}: each is where the slope of "
            f"{flow.operation(at)} is 0.{between}{_leaves(flow, hungry, at)}",
            flow.line(at),
            at,
            "Check the sign and the scale of what goes in; softplus and leaky_relu have a slope everywhere."
            if word in RECTIFIERS
            else "Check the scale of what goes in.",
            evidence,
            worth=5.0,
        )


def _arrived(flow: Flow, at: int) -> bool:
    """Whether nothing is left to be gained: the loss is a sum or mean of what the unit gives, and has come down to 0."""
    outputs = [flow.nodes[i].value for i in flow.trace.outputs]
    if any(value is None or not value.all_zero for value in outputs):
        return False
    above = [i for i in flow.way_up(at) if i != at and flow.nodes[i].kind == "operation"]
    earlier = [swept.loss for swept in flow.trace.journal if swept.number < flow.trace.sweep]
    return all(flow.words[i] in REDUCTIONS or flow.words[i] == "Add" for i in above) and any(earlier)

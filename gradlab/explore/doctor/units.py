"""Units that pass nothing on: rectifiers that are shut for a whole batch, and what is in its flat part.

Both are read off the cotangents that came and went (`trace.slopes`), not off the values: a unit that nothing arrives at is no
one's fault, and one whose slope is small says nothing where the loss is steep.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradlab.explore.doctor.advice import grouped, instead
from gradlab.explore.doctor.case import Case, listed
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.flow import REDUCTIONS, Flow, extremes, figure, leaf_names, numbers_known, plural
from gradlab.explore.doctor.starving import Starved, starved
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

RECTIFIERS = frozenset(["Relu", "Threshold", "ClampMin", "ClampMax", "Clamp", "Hardtanh", "Gelu", "Silu", "Elu"])
BENT = frozenset(["Sigmoid", "Tanh", "Hardtanh", "Hardsigmoid", "Softsign", "Erf"])
FUSED = frozenset(["MkldnnRnnLayer", "CudnnRnn", "MiopenRnn"])  # whole recurrent layers in one operation
UNITS = frozenset(["Relu", "Threshold", "ClampMin", "Gelu", "Silu", "Elu"])


def units(case: Case) -> Iterable[Finding]:
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
            "Lower the learning rate, start the bias at 0, or use leaky_relu or gelu.",
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
    """What to do where the layer before is given large numbers."""
    for operand in flow.nodes[source].operands:
        value = operand.value
        if operand.kind == "input" and operand.text and value is not None and value.summary is not None and value.largest > 10:
            own = grouped(operand.text)
            code = instead(f"(({own} - {own}.mean()) / {own}.std())", operand.text)
            return f"Standardise `{operand.text}`, which goes up to {figure(value.largest)}: {code}."
    return ""


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
            "Divide what goes in by a larger temperature; scores of attention by the square root of the keys' length.",
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
            "Check the sign and the scale of what goes in; something with a slope everywhere is softplus, or leaky_relu.",
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

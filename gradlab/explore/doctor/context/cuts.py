"""The cuts of history that reached the result, by line and by the way they were made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradlab.diagnose.history_loss import LOSS_FAMILIES as WAYS_OF
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.trace.data import Cut, Line
from gradlab.explore.trace.values import Value


@dataclass
class CutHistory:
    """The cuts of one line and way, of which something reached what is differentiated."""

    how: str
    kind: str
    place: Line | None
    cut: Cut
    reaches: dict[int, None] = field(default_factory=dict)
    keys: dict[int, None] = field(default_factory=dict)
    again: Line | None = None  # where the numbers came back as a tensor
    number: float | None = None  # that came back
    final: bool = False  # it is the very thing that was to be differentiated

    @property
    def nodes(self) -> list[int]:
        """The nodes of the graph that it reached."""
        return list(self.reaches)


def on(place: Line | None) -> str:
    """ " on line 3", or where else it is."""
    return "" if place is None else f" on line {place.line}" if place.in_cell else f" at {place.where}"


def kind_of(how: str) -> str:
    """The kind of a way to lose the history."""
    last = how.rpartition(", then ")[2].removesuffix("_")
    return WAYS_OF.get(last, "non-differentiable")


def reaching(case: Case) -> list[CutHistory]:
    """The cuts of which something reached what is differentiated, by line and way, in the order of the program."""
    trace = case.trace
    assert trace is not None
    by_site: dict[tuple[object, ...], CutHistory] = {}
    final = set(trace.losses)

    def add(at: int, nodes: Sequence[int], **more: object) -> None:
        cut = trace.cuts[at]
        key = (cut.how, cut.place, more.get("again"))
        torn = by_site.setdefault(key, CutHistory(cut.how, kind_of(cut.how), cut.place, cut))
        torn.reaches.update((node, None) for node in nodes if node >= 0)
        torn.keys.update((leaf, None) for leaf in cut.keys)
        torn.final |= at in final
        for name, value in more.items():
            setattr(torn, name, value)

    for at, cut in enumerate(trace.cuts):
        if cut.how == "born" and (cut.reaches or at in final):
            for source in _sources(case, at):
                here = trace.cuts[source].place == cut.place  # the numbers never stood by themselves: tensor([a, b])
                kind = "re-wrapped" if here and cut.place is not None else kind_of(trace.cuts[source].how)
                add(source, cut.reaches, again=cut.place, number=_single(trace.cuts[source].value), kind=kind)
                if at in final:
                    next(reversed(by_site.values())).final = True
        elif cut.how != "born" and (cut.reaches or at in final):
            add(at, cut.reaches)
    for at, node, number in _constants(case):
        add(at, [node], number=number, again=trace.nodes[node].place)
    return _first_cause(list(by_site.values()))


def through_a_buffer(case: Case) -> list[CutHistory]:
    """The numbers that left tensors and were written into what was to be differentiated, where that has no history at all and no
    cut of its own: `preds[i] = model(x[i]).item()`."""
    trace = case.trace
    if trace is None or trace.nodes or trace.losses or not case.root:
        return []
    assignment = next(iter(reversed(case.program.assigned(case.root))), None)
    sink = trace.asked if assignment is None else None
    for cut in reversed(trace.cuts):
        if kind_of(cut.how) not in ("item", "numpy") or not cut.keys:
            continue
        if case.program.flows(cut.place, sink) or (assignment is not None and case.program.leads(cut.place, assignment)):
            keys = dict.fromkeys(key for other in trace.cuts if other.place == cut.place for key in other.keys)
            return [CutHistory(cut.how, kind_of(cut.how), cut.place, cut, keys=keys, final=True)]
    return []


def _first_cause(torn: list[CutHistory]) -> list[CutHistory]:
    """Where the numbers of one source left after they had been cut off, the leaving is said and not the detach before it."""
    mine = [one for one in torn if not one.cut.aside]  # of topk's results the values have gone on, to a cut that is told of
    torn = [one for one in torn if not one.cut.aside or not any(set(one.keys) <= set(other.keys) for other in mine)]
    left = [one for one in torn if one.kind in ("numpy", "item")]
    return [
        one
        for one in torn
        if one in left or not any(other.place is not None and one.place is not None and _same(one, other) for other in left)
    ]


def _same(one: CutHistory, other: CutHistory) -> bool:
    a, b = one.place, other.place
    assert a is not None
    assert b is not None
    return (a.where, a.line, a.function) == (b.where, b.line, b.function) and set(one.keys) <= set(other.keys)


def _sources(case: Case, born: int) -> list[int]:
    """Where the numbers of a tensor that was made of numbers came from: what left before it, and is among its elements, or went
    its way by the names of the program."""
    trace = case.trace
    assert trace is not None
    origin = trace.cuts[born]
    ends = [i for i, cut in enumerate(trace.cuts) if i != born and kind_of(cut.how) in ("item", "numpy") and cut.how != "born"]
    equal = [i for i in ends if _among(trace.cuts[i].value, origin.value)]
    flowing = [i for i in ends if case.program.flows(trace.cuts[i].place, origin.place)]
    straight = {numbers for i in flowing if i in equal and (numbers := _numbers(trace.cuts[i].value))}
    # A number may have left at several places, to be printed at one and to go on at another.
    return [i for i in equal if i in flowing or _numbers(trace.cuts[i].value) not in straight] or flowing


def _numbers(value: Value | None) -> tuple[object, ...]:
    return () if value is None or value.numbers is None else tuple(value.numbers)


def _constants(case: Case) -> list[tuple[int, int, float]]:
    """The numbers that left a tensor and came back as an operand: (cut, node, number)."""
    trace = case.trace
    assert trace is not None
    left, written = {}, {}
    for i, cut in enumerate(trace.cuts):
        number = _single(cut.value)
        if number is not None and kind_of(cut.how) == "item" and cut.keys:
            left[number] = i
            if cut.place is not None and cut.place.source:
                written[cut.place.where, cut.place.line, cut.place.source] = i
    if not left:
        return []
    constants = []
    for at, node in enumerate(trace.nodes):
        for operand in node.operands:
            number = _single(operand.value) if operand.kind == "constant" else None
            if number is None or not telling(number):
                continue
            place = node.place
            within = [  # Python has reckoned with it on the way: `0.5 * loss.item()`
                i
                for (where, line, source), i in written.items()
                if place is not None and (where, line) == (place.where, place.line) and source in place.source
            ]
            if number in left or within:
                constants.append((left[number] if number in left else within[-1], at, number))
    return constants


def telling(number: float) -> bool:
    """Whether a number is its own mark: not one that programs are full of, such as 2, 0.1 or 1e-8."""
    if not math.isfinite(number):
        return False
    return len(f"{abs(number):.17g}".replace(".", "").lstrip("0").partition("e")[0].rstrip("0")) > 6


def _single(value: Value | None) -> float | None:
    if value is None or value.numbers is None or len(value.numbers) != 1 or isinstance(value.numbers[0], complex):
        return None
    return float(value.numbers[0])


def _among(left: Value | None, right: Value | None) -> bool:
    """Whether the numbers that left are among those of which a tensor was made."""
    if left is None or right is None or not left.numbers or not right.numbers:
        return False
    known = {float(number) for number in right.numbers if not isinstance(number, complex)}
    own = [float(number) for number in left.numbers if not isinstance(number, complex)]
    return all(number in known for number in own) and any(telling(number) for number in own)

"""The cuts of history that affect the result, grouped by line and by the kind of cut."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from gradlab.diagnose.history_loss import CHECKPOINT
from gradlab.diagnose.history_loss import LOSS_FAMILIES as WAYS_OF
from gradlab.explore.doctor.context.case import Case, Learner
from gradlab.explore.trace.data import Cut, Line
from gradlab.explore.trace.values import Value


@dataclass
class CutHistory:
    """The cuts of one line and one kind, some of whose values reached the result.

    Attributes
    ----------
    how : str
        The call that cut the history.
    kind : str
        The kind of finding that it leads to.
    place : Line or None
    cut : Cut
        The first of them.
    reaches : dict
        The nodes of the graph that their values reached.
    keys : dict
        The keys of the leaves that the values were computed from.
    again : Line or None
        Where numbers became a tensor or an operand again.
    number : float or None
        The number that did.
    final : bool
        Whether the result itself is such a value.
    """

    how: str
    kind: str
    place: Line | None
    cut: Cut
    reaches: dict[int, None] = field(default_factory=dict)
    keys: dict[int, None] = field(default_factory=dict)
    again: Line | None = None
    number: float | None = None
    final: bool = False

    @property
    def nodes(self) -> list[int]:
        """The nodes of the graph that the values reached."""
        return list(self.reaches)


def on_line(place: Line | None) -> str:
    """Return " on line 3", or " at" and the place in another file."""
    return "" if place is None else f" on line {place.line}" if place.in_cell else f" at {place.where}"


def place_in_package(history: CutHistory) -> str:
    """Return " (there `self.fc(x)` at modeling.py line 12)" if a package that the user's line calls made the cut, else ""."""
    within = history.cut.within
    if within is None:
        return ""
    return f" (there `{within.source}`{on_line(within)})" if within.source else f" (there{on_line(within)})"


def kind_of(how: str) -> str:
    """Return the kind of finding for a call that cuts the history."""
    last = how.rpartition(", then ")[2].removesuffix("_")
    return WAYS_OF.get(last, "non-differentiable")


def collect_cuts(case: Case) -> list[CutHistory]:
    """Return the cuts some of whose values reached the result, grouped by line and kind, in the order of the program."""
    trace = case.trace
    assert trace is not None
    by_site: dict[tuple[object, ...], CutHistory] = {}
    final = set(trace.losses)

    def add(at: int, nodes: Sequence[int], **more: object) -> None:
        cut = trace.cuts[at]
        key = (cut.how, cut.place, more.get("again"))
        history = by_site.setdefault(key, CutHistory(cut.how, kind_of(cut.how), cut.place, cut))
        history.reaches.update((node, None) for node in nodes if node >= 0)
        history.keys.update((leaf, None) for leaf in cut.keys)
        history.final |= at in final
        for name, value in more.items():
            setattr(history, name, value)

    for at, cut in enumerate(trace.cuts):
        if cut.how == "born" and (cut.reaches or at in final):
            for source in _sources(case, at):
                here = trace.cuts[source].place == cut.place  # no number was stored in between: tensor([a, b])
                kind = "re-wrapped" if here and cut.place is not None else kind_of(trace.cuts[source].how)
                add(source, cut.reaches, again=cut.place, number=_single_number(trace.cuts[source].value), kind=kind)
                if at in final:
                    next(reversed(by_site.values())).final = True
        elif cut.how != "born" and (cut.reaches or at in final):
            add(at, cut.reaches)
    for at, node, number in _constants(case):
        add(at, [node], number=number, again=trace.nodes[node].place)
    for (how, place, _), history in by_site.items():
        if how == CHECKPOINT:  # each layer inside cuts off its parameters, and the result is that of the last one
            history.keys.update((key, None) for cut in trace.cuts if (cut.how, cut.place) == (how, place) for key in cut.keys)
    return _first_cause(list(by_site.values()))


def blocked_learners(case: Case, history: CutHistory) -> list[Learner]:
    """Return the leaves behind a cut that no sweep reached."""
    trace = case.trace
    assert trace is not None
    reached = case.reached_leaves
    if trace.sweeps > len(trace.journal):  # one that was not recorded may have reached the leaves with a gradient at a step
        reached |= {key for event in case.steps for key in event.keys}
    return [one for one in case.learners_of(history.keys) if one.key not in reached]


def collect_buffer_cuts(case: Case) -> list[CutHistory]:
    """Return the cuts whose numbers were written into the result, if it has no history: `preds[i] = model(x[i]).item()`."""
    trace = case.trace
    if trace is None or trace.nodes or trace.losses or not case.root:
        return []
    assignment = next(iter(reversed(case.program.assignments(case.root))), None)
    sink = trace.asked if assignment is None else None
    for cut in reversed(trace.cuts):
        if kind_of(cut.how) not in ("item", "numpy") or not cut.keys:
            continue
        if case.program.can_reach(cut.place, sink) or (
            assignment is not None and case.program.can_reach_statement(cut.place, assignment)
        ):
            keys = dict.fromkeys(key for other in trace.cuts if other.place == cut.place for key in other.keys)
            return [CutHistory(cut.how, kind_of(cut.how), cut.place, cut, keys=keys, final=True)]
    return []


def _first_cause(histories: list[CutHistory]) -> list[CutHistory]:
    """Keep one cut of each cause: of a detach() and a conversion to numbers on one line, the conversion."""
    # The indices of topk() are cut by topk() itself. They are left out if its values reach a cut.
    main = [one for one in histories if not one.cut.aside]
    histories = [one for one in histories if not one.cut.aside or not any(set(one.keys) <= set(other.keys) for other in main)]
    conversions = [one for one in histories if one.kind in ("numpy", "item")]
    return [
        one
        for one in histories
        if one in conversions
        or not any(other.place is not None and one.place is not None and _is_same_cause(one, other) for other in conversions)
    ]


def _is_same_cause(one: CutHistory, other: CutHistory) -> bool:
    a, b = one.place, other.place
    assert a is not None
    assert b is not None
    return (a.where, a.line, a.function) == (b.where, b.line, b.function) and set(one.keys) <= set(other.keys)


def _sources(case: Case, born: int) -> list[int]:
    """Return the conversions to numbers that a tensor was made from.

    The numbers are among its elements, or can reach it through the names of the program.
    """
    trace = case.trace
    assert trace is not None
    origin = trace.cuts[born]
    ends = [i for i, cut in enumerate(trace.cuts) if i != born and kind_of(cut.how) in ("item", "numpy") and cut.how != "born"]
    equal = [i for i in ends if _is_among(trace.cuts[i].value, origin.value)]
    reaching = [i for i in ends if case.program.can_reach(trace.cuts[i].place, origin.place)]
    both = {numbers for i in reaching if i in equal and (numbers := _numbers(trace.cuts[i].value))}
    # A number may be converted at several places, at one to be printed and at another to be used.
    return [i for i in equal if i in reaching or _numbers(trace.cuts[i].value) not in both] or reaching


def _numbers(value: Value | None) -> tuple[object, ...]:
    return () if value is None or value.numbers is None else tuple(value.numbers)


def _constants(case: Case) -> list[tuple[int, int, float]]:
    """Return the numbers that were taken out of a tensor and used as an operand: (cut, node, number)."""
    trace = case.trace
    assert trace is not None
    by_number, by_code = {}, {}
    for i, cut in enumerate(trace.cuts):
        number = _single_number(cut.value)
        if number is not None and kind_of(cut.how) == "item" and cut.keys:
            by_number[number] = i
            if cut.place is not None and cut.place.source:
                by_code[cut.place.where, cut.place.line, cut.place.source] = i
    if not by_number:
        return []
    constants = []
    for at, node in enumerate(trace.nodes):
        for operand in node.operands:
            number = _single_number(operand.value) if operand.kind == "constant" else None
            if number is None or not is_distinctive(number):
                continue
            place = node.place
            within = [  # Python computed with it: `0.5 * loss.item()`
                i
                for (where, line, source), i in by_code.items()
                if place is not None and (where, line) == (place.where, place.line) and source in place.source
            ]
            if number in by_number or within:
                constants.append((by_number[number] if number in by_number else within[-1], at, number))
    return constants


def is_distinctive(number: float) -> bool:
    """Return whether a number identifies its source: programs do not often contain it, as they do 2, 0.1 or 1e-8."""
    if not math.isfinite(number):
        return False
    return len(f"{abs(number):.17g}".replace(".", "").lstrip("0").partition("e")[0].rstrip("0")) > 6


def _single_number(value: Value | None) -> float | None:
    if value is None or value.numbers is None or len(value.numbers) != 1 or isinstance(value.numbers[0], complex):
        return None
    return float(value.numbers[0])


def _is_among(left: Value | None, right: Value | None) -> bool:
    """Return whether numbers taken out of a tensor are among the elements of another one."""
    if left is None or right is None or not left.numbers or not right.numbers:
        return False
    known = {float(number) for number in right.numbers if not isinstance(number, complex)}
    own = [float(number) for number in left.numbers if not isinstance(number, complex)]
    return all(number in known for number in own) and any(is_distinctive(number) for number in own)

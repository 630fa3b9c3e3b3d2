"""What tells several trainings of one program from each other: the variables of the loops around them, what their functions were
given, their models' names.

A variable is of use if it has one value as long as a training lasts, and another one in another training: `act` of
`for act in (Sigmoid, Tanh): train(make(act))`, and not the number of a step. Values are kept as texts, so that nothing lives on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType
from typing import Any

from gradlab.explore.module_paths import is_model
from gradlab.explore.trace.loops import loops_around
from gradlab.explore.trace.notes import Frame

WIDEST = 24  # characters of a value
CLASS_NAME = type.__dict__["__name__"]  # whatever a metaclass makes of it
FEW = 4  # numbers of a sequence

Variable = tuple[str, int]  # its name, and how deep in the program its function runs
Values = dict[Variable, str]


@dataclass
class Identity:
    """What may tell a training from others.

    Attributes
    ----------
    model : str
        The user's name for what learns; "" for none.
    line : str
        "line 4", from which the cell runs it; "" where that is not known.
    loops, given : dict
        The values of the loops' variables around it and of the functions' arguments that have stayed as they were.
    """

    model: str = ""
    line: str = ""
    loops: Values = field(default_factory=dict)
    given: Values = field(default_factory=dict)
    _kept: bool = False

    def keep(self, frames: Sequence[Frame]) -> None:
        """Keep those values that are as they were; the first time all."""
        loops, given = values_around(frames)
        if not self._kept:
            self.loops, self.given, self._kept = loops, given, True
        else:
            self.loops = {one: text for one, text in self.loops.items() if loops.get(one) == text}
            self.given = {one: text for one, text in self.given.items() if given.get(one) == text}


def values_around(frames: Sequence[Frame]) -> tuple[Values, Values]:
    """What the variables of the loops are that a program is in, and what its running functions were given, as short texts; the
    outermost first. What has no short text is left out."""
    loops: Values = {}
    given: Values = {}
    for depth, frame in enumerate(reversed(frames)):
        for name in (name for loop in loops_around(frame) for name in loop.targets):
            if name in frame.names and (text := short(frame.names[name])):
                loops[name, depth] = text
        for name in frame.arguments:
            if name in frame.names and (text := short(frame.names[name])):
                given[name, depth] = text
    return loops, given


def short(value: Any) -> str:
    """A value in a few characters, without running code of the user's: numbers, texts, functions and classes by their names,
    modules by their class; "" of others."""
    kind = type(value)
    if kind is str:
        text = value
    elif kind in (bool, type(None), int, complex):
        text = repr(value)
    elif kind is float:
        text = f"{value:.6g}"
    elif kind in (tuple, list) and len(value) <= FEW and all(type(one) in (int, float, str, bool) for one in value):
        text = repr(value)
    elif issubclass(kind, type):
        text = CLASS_NAME.__get__(value)
    elif kind in (FunctionType, BuiltinFunctionType):
        text = value.__name__
    elif is_model(value):
        text = CLASS_NAME.__get__(kind)
    else:
        return ""
    return text if text.isprintable() and text != "<lambda>" and len(text) <= WIDEST else ""


def labels(trainings: Sequence[Identity]) -> list[str]:
    """What each is called beside the others, in a few words: "act=Sigmoid"; else "critic"; "net, line 7"; "net, 2 of 3". A single
    one is called nothing."""
    if len(trainings) < 2:
        return [""] * len(trainings)
    loops = [training.loops for training in trainings]
    both = [training.loops | training.given for training in trainings]
    if found := _fewest(loops) or _fewest(both):
        return found
    models = [training.model for training in trainings]
    lines = [training.line for training in trainings]
    if all(models) and len(set(models)) == len(models):
        return models
    both_said = [", ".join(filter(None, pair)) for pair in zip(models, lines, strict=True)]
    if all(both_said) and len(set(both_said)) == len(both_said):
        return both_said
    return [f"{model or 'model'}, {i} of {len(models)}" for i, model in enumerate(models, start=1)]


def _fewest(values: Sequence[Mapping[Variable, str]]) -> list[str]:
    """The fewest values that tell all apart, those of the outermost loops first and numbers that count last; none if they do
    not."""
    variables = list(dict.fromkeys(one for known in values for one in known))
    differ = [one for one in variables if len({known.get(one) for known in values}) > 1]
    counts = {one: all(known.get(one, "0").isdigit() for known in values) for one in differ}
    differ.sort(key=counts.__getitem__)
    chosen: list[Variable] = []
    for one in differ:
        chosen.append(one)
        for some in ([one], chosen):
            texts = [", ".join(f"{name}={known[name, at]}" for name, at in some if (name, at) in known) for known in values]
            if all(texts) and len(set(texts)) == len(texts):
                return texts
    return []

"""Labels that distinguish several trainings of a program: loop variables, arguments of functions, names of models.

A variable is useful if it is constant during a training and differs between trainings: `act` in `for act in (Sigmoid, Tanh):
train(make(act))`, but not the number of a step. Values are stored as text, so that they keep no object alive.
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
CLASS_NAME = type.__dict__["__name__"]  # a metaclass may override it
FEW = 4  # elements of a sequence

Variable = tuple[str, int]  # its name, and how deep in the program its function runs
Values = dict[Variable, str]


@dataclass
class Identity:
    """Properties that may distinguish a training from others.

    Attributes
    ----------
    model : str
        The user's name for the model; "" if there is none.
    line : str
        The line of the cell that runs the training, "line 4"; "" if it is unknown.
    loops, given : dict
        The constant values of the loop variables around it and of the arguments of its functions.
    """

    model: str = ""
    line: str = ""
    loops: Values = field(default_factory=dict)
    given: Values = field(default_factory=dict)
    _kept: bool = False

    def keep(self, frames: Sequence[Frame]) -> None:
        """Keep the values that have not changed, or all in the first call."""
        loops, given = values_around(frames)
        if not self._kept:
            self.loops, self.given, self._kept = loops, given, True
        else:
            self.loops = {one: text for one, text in self.loops.items() if loops.get(one) == text}
            self.given = {one: text for one, text in self.given.items() if given.get(one) == text}


def values_around(frames: Sequence[Frame]) -> tuple[Values, Values]:
    """Return the loop variables and the arguments of the running functions as short texts, outermost first. Values without a
    short text are left out."""
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
    """Return a value as a short text without running code of the user: a number, a string, the name of a function or class, or
    the class of a module; "" for others."""
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
    """Return a short label for each training: "act=Sigmoid"; else "critic"; "net, line 7"; "net, 2 of 3". A single training has
    the label ""."""
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
    both_labels = [", ".join(filter(None, pair)) for pair in zip(models, lines, strict=True)]
    if all(both_labels) and len(set(both_labels)) == len(both_labels):
        return both_labels
    return [f"{model or 'model'}, {i} of {len(models)}" for i, model in enumerate(models, start=1)]


def _fewest(values: Sequence[Mapping[Variable, str]]) -> list[str]:
    """Return the fewest values that distinguish all trainings, outermost loops first and counters last; [] if none do."""
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

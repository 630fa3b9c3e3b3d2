"""What a run has left behind, parameter by parameter: gradients that are missing, zero or no numbers, weights that are none.

No trace is needed, and little can be claimed without one. That all `.grad` are None, or all zero, is how zero_grad() leaves them.
So a parameter is compared with those that are cleared together with it: the others of its optimizer. One of them without a
gradient is told of only if nothing says that it had one in another step: the optimizer keeps nothing of it, and its memory was
written to no more often than an initialisation does. A target network, a critic, a backbone that is not to learn are in no
optimizer, or require no gradient, and are let be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, called, listed
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import STATE, check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_optimizer
from gradlab.explore.trace.values import Value

WRITES = 6  # that initialising, loading and moving a parameter takes; each step of an optimizer is one more
SEEN = "Put %%doctor on the first line of the cell: run so, it names the operation and the line."
WALKED = 50_000  # nodes that are looked at


declare(
    "no-gradient",
    meaning="parameters without a gradient after a run",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "zero-gradient",
    meaning="weights whose gradient is exactly 0 after a run",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "nan-weights",
    meaning="NaN or infinity in the weights after a run",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "nan-gradient",
    meaning="NaN or infinity in the gradients after a run",
    why="",
    remedy="",
    fault="",
    healthy="",
)

declare(
    "nan-loss",
    meaning="NaN or infinity in the loss after a run",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@dataclass(frozen=True)
class Held:
    """A parameter as it is now.

    Attributes
    ----------
    learner : Learner
    tensor : Tensor
    value, gradient : Value or None
        Of it and of its `.grad`; None where there is none, or none with numbers.
    writes : int
        How often its memory was written to.
    """

    learner: Learner
    tensor: Any
    value: Value | None
    gradient: Value | None
    writes: int

    @property
    def is_weight(self) -> bool:
        """Whether it is more than a bias."""
        return len(self.learner.shape) >= 2


@check("zero-gradient", "nan-weights", "nan-gradient", "nan-loss", "stale-optimizer", "frozen", looks_at=STATE)
def find_faulty_state(case: Case) -> Iterable[Finding]:
    """Yield findings on weights, gradients and optimizers as they are after a run."""
    held = held_in(case)
    yield from _broken(case, held)
    for name, group in _groups(case, held):
        yield from _zero(name, group)
    yield from _strangers(case, held)
    yield from _nothing_learns(case, held)


@check("no-gradient", looks_at=STATE)
def find_missing_gradients(case: Case) -> Iterable[Finding]:
    """Yield findings on parameters without a gradient. A trace of the loss shows the cause, and this does not."""
    for name, group in _groups(case, held_in(case)):
        yield from _without(case, name, group)


def held_in(case: Case) -> dict[int, Held]:
    """The parameters of models and those that optimizers hold, by what tells them from others. They are read once a case."""
    held: dict[int, Held] = _read(case) if case.held is None else case.held
    case.held = held
    return held


def _read(case: Case) -> dict[int, Held]:
    wanted = [one for one in case.learners.values() if one.model or one.optimizers]
    held: dict[int, Held] = {}
    by_library: dict[str, list[tuple[Learner, Any]]] = {}
    for one in wanted:
        tensor = case.tensors[one.key]
        library = library_of(tensor)
        assert library is not None
        by_library.setdefault(library.name, []).append((one, tensor))
    for group in by_library.values():
        library = library_of(group[0][1])
        assert library is not None
        graded = [tensor.grad for _, tensor in group if tensor.grad is not None]
        numbers = library.values([*(tensor for _, tensor in group), *graded])
        gradients = iter(numbers[len(group) :])
        for (one, tensor), value in zip(group, numbers, strict=False):
            gradient = next(gradients) if tensor.grad is not None else None
            held[one.key] = Held(one, tensor, value, gradient, library.version(tensor))
    return held


# ------------------------------------------------------------------------------------------------------- not any numbers
def _broken(case: Case, held: Mapping[int, Held]) -> Iterator[Finding]:
    weights = [one for one in held.values() if one.value is not None and not math.isfinite(one.value.norm)]
    gradients = [one for one in held.values() if one.gradient is not None and not math.isfinite(one.gradient.norm)]
    scaled = any(type(value).__name__ == "GradScaler" for value in case.namespace.values())
    losses = [name for name, value in _losses(case) if (x := _number(value)) is not None and not math.isfinite(x)]
    if weights:
        what = _what(one.value for one in weights)
        yield Finding(
            "nan-weights",
            f"{called([one.learner for one in weights])} {'holds' if len(weights) == 1 else 'hold'} {what}: what is computed "
            "from them is no number either.",
            fix=f"Make the model anew, or load it; the first {what} came about earlier. {SEEN}",
            evidence=_counts("weights", weights, [one.value for one in weights]),
            worth=8.5,
        )
    elif gradients:
        what = _what(one.gradient for one in gradients)
        yield Finding(
            "nan-gradient",
            f"`.grad` of {called([one.learner for one in gradients])} holds {what}, and the weights are numbers still: a step "
            f"writes it into them.{' (A GradScaler leaves such steps out.)' if scaled else ''}",
            fix=f"Clear the gradients before a step. {SEEN}",
            evidence=_counts("gradients", gradients, [one.gradient for one in gradients]),
            remark=scaled,
            worth=8.0,
        )
    elif losses:
        yield Finding(
            "nan-loss",
            f"{listed(losses)} {'is no number' if len(losses) == 1 else 'are no numbers'}: NaN or infinite.",
            fix=SEEN,
            evidence={"losses": losses},
            worth=7.0,
        )


def _what(values: Iterable[Value | None]) -> str:
    return "NaN" if any(value is not None and value.nans for value in values) else "infinity"


def _counts(what: str, group: Sequence[Held], values: Sequence[Value | None]) -> dict[str, Any]:
    return {
        what: [one.learner.name for one in group],
        "NaN": sum(value.nans for value in values if value is not None),
        "infinite": sum(value.infs for value in values if value is not None),
    }


def _losses(case: Case) -> Iterator[tuple[str, Any]]:
    """The scalars of the namespace that were computed and have a history."""
    for name, value in case.namespace.items():
        if library_of(value) is None or name.startswith("_"):
            continue
        if value.requires_grad and not value.is_leaf and math.prod(tuple(value.shape)) == 1:
            yield name, value


def _number(value: Any) -> float | None:
    library = library_of(value)
    with suppress(Exception):  # of a device that holds no numbers
        return None if library is None else float(library.array(value).reshape(-1)[0])
    return None


# ------------------------------------------------------------------------------------------------------------- no gradient
def _groups(case: Case, held: Mapping[int, Held]) -> Iterator[tuple[str, list[Held]]]:
    """The parameters that require grad, by what clears their gradients: an optimizer, or where there is none, a model."""
    if case.optimizers:
        for one in case.optimizers:
            yield f"`{one.name}`", [held[key] for key in one.keys if key in held and held[key].learner.requires]
    else:
        for name in case.models:
            yield f"`{name}`", [one for one in held.values() if one.learner.model == name and one.learner.requires]


def _without(case: Case, name: str, group: list[Held]) -> Iterator[Finding]:
    """Some of a group have had a gradient, and others never."""
    kept = _kept(case, group)
    touched = {one.learner.key for one in group if one.gradient is not None or one.learner.graded}
    how = f"the other {{n}} of {name} have one"
    if not touched and kept:
        touched, how = kept, f"{name} has made its steps without"
    if not touched:
        touched = _reached(case, group)
        root = next((loss for loss, _ in _losses(case)), "")
        how = f"`{root}` was computed from the other {{n}} of {name}"
    idle = [one for one in group if one.learner.key not in touched | kept and one.writes <= WRITES]
    idle = [one for one in idle if "param_groups" not in one.learner.name]  # what nobody else holds was replaced
    others = [one for one in group if one.learner.key in touched]
    if not idle or not others:
        return
    learners = [one.learner for one in idle]
    its, was = ("its", "it") if len(idle) == 1 else ("their", "they")
    yield Finding(
        "no-gradient",
        f"{called(learners)} got no gradient: {its} `.grad` is None, and {how.format(n=len(others))}. Either {was} "
        f"{'was' if was == 'it' else 'were'} not used, or the way to the loss is cut.",
        fix=SEEN,
        evidence={"leaves": [one.name for one in learners], "others": len(others)},
        worth=6.0,
    )


def _kept(case: Case, group: list[Held]) -> set[int]:
    """The parameters of a group of which an optimizer keeps something: it has made a step with their gradients."""
    keys = set()
    for value in case.namespace.values():
        kept = getattr(value, "state", None) if is_optimizer(value) else None
        if isinstance(kept, Mapping):
            keys |= {id(tensor) for tensor, entry in kept.items() if entry}
    return keys & {one.learner.key for one in group}


def _reached(case: Case, group: list[Held]) -> set[int]:
    """The parameters of a group that a scalar of the namespace was computed from; none if the graph is gone or too large."""
    keys: set[int] = set()
    seen: set[Any] = set()
    for _, value in _losses(case):
        library = library_of(value)
        assert library is not None
        waiting = [library.node(value)]
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if len(seen) > (library.at_most(WALKED) or WALKED):
                return set()
            leaf = library.variable(node)
            if leaf is not None:
                keys.add(id(leaf))
            waiting += library.inputs(node)
    return keys & {one.learner.key for one in group}


# ------------------------------------------------------------------------------------------------------------ exactly zero
def _zero(name: str, group: list[Held]) -> Iterator[Finding]:
    """The gradients of weights that are exactly zero, while others that are cleared with them are not."""
    graded = [one for one in group if one.gradient is not None and math.isfinite(one.gradient.norm)]
    weights = [one for one in graded if one.is_weight]
    zero = [one for one in weights if one.gradient is not None and one.gradient.all_zero]
    alive = [one for one in graded if one.gradient is not None and one.gradient.norm > 0]
    blank = [one for one in group if one.is_weight and one.value is not None and one.value.all_zero]
    if not zero or not alive or blank:  # all are zero once they are cleared; zeros in the weights make zeros behind them
        return
    everything = len(zero) == len(weights)
    yield Finding(
        "zero-gradient",
        f"The gradient of {called([one.learner for one in zero])} is exactly 0, and that of "
        f"{listed([one.learner.name for one in alive], 2)} is not: "
        f"{'no weight learns' if everything else 'nothing came through to there'}.",
        fix=f"Units that are shut, a factor 0 or a mask make it so. {SEEN}",
        evidence={"zero": [one.learner.name for one in zero], "others": len(alive)},
        remark=not everything,
        worth=6.5,
    )


# --------------------------------------------------------------------------------------------------------------- optimizers
def _strangers(case: Case, held: Mapping[int, Held]) -> Iterator[Finding]:
    """Parameters with gradients that no optimizer holds."""
    if not case.optimizers:
        return
    free = [
        one
        for one in held.values()
        if one.learner.requires and not one.learner.optimizers and one.gradient is not None and one.gradient.norm > 0
    ]
    if not free:
        return
    orphans = [one for one in held.values() if "param_groups" in one.learner.name and one.writes >= 0]
    spare = [one.learner.shape for one in orphans]
    replaced = []
    for one in free:
        if one.learner.shape in spare:
            spare.remove(one.learner.shape)
            replaced.append(one)
    in_lists = [one for one in free if one.learner.listed and _partly(case, one.learner.model)]
    if replaced:
        names = list(dict.fromkeys(name for one in orphans for name in one.learner.optimizers))
        models = list(dict.fromkeys(one.learner.model for one in replaced))
        yield _stale(
            replaced,
            f"{listed(names)} {'holds' if len(names) == 1 else 'hold'} {len(orphans)} tensors of such shapes that the program "
            "has no other name for: what they belonged to was replaced",
            f"Make the optimizer anew after the change{f', of the parameters of `{models[0]}`' if models[0] else ''}.",
        )
    elif in_lists:
        homes = list(dict.fromkeys(one.learner.listed for one in in_lists))
        yield _stale(
            in_lists,
            f"{listed(homes)} is a plain list, in which parameters() does not look",
            f"Make {listed(homes)} an `nn.ModuleList`, and the optimizer after that.",
        )
    else:
        first = free[0].learner
        yield Finding(
            "stale-optimizer",
            f"{called([one.learner for one in free])} {'has a gradient' if len(free) == 1 else 'have gradients'}, and no "
            f"optimizer ({listed([one.name for one in case.optimizers])}) holds {'it' if len(free) == 1 else 'them'}.",
            fix=f"Give `{first.model or first.name}` to an optimizer. If it is not to learn, call requires_grad_(False) on it."
            if len({one.learner.model for one in free}) == 1 and not _partly(case, first.model)
            else "Give them to an optimizer. If they are not to learn, call requires_grad_(False) on them.",
            evidence={"leaves": [one.learner.name for one in free]},
            remark=True,
            worth=3.0,
        )


def _stale(group: list[Held], why: str, fix: str) -> Finding:
    norm = math.hypot(*(one.gradient.norm for one in group if one.gradient is not None))
    return Finding(
        "stale-optimizer",
        f"No step moves {called([one.learner for one in group])}: {'it is' if len(group) == 1 else 'they are'} in no optimizer, "
        f"with a gradient of norm {norm:.3g}. {why[:1].upper() if why[:1] != '`' else why[:1]}{why[1:]}.",
        fix=fix,
        evidence={"leaves": [one.learner.name for one in group], "gradient norm": norm},
        worth=8.0,
    )


def _partly(case: Case, model: str) -> bool:
    """Whether an optimizer holds a part of a model."""
    return bool(model) and any(one.model == model and one.optimizers for one in case.learners.values())


def _nothing_learns(case: Case, held: Mapping[int, Held]) -> Iterator[Finding]:
    """Nothing that the optimizers hold requires a gradient, and nothing says that it ever did."""
    every = [held[key] for one in case.optimizers for key in one.keys if key in held]
    if not every or any(one.learner.requires or one.gradient is not None or one.writes > WRITES for one in every):
        return
    if _kept(case, every):
        return
    names = listed([one.name for one in case.optimizers])
    models = list(dict.fromkeys(one.learner.model for one in every if one.learner.model))
    yield Finding(
        "frozen",
        f"None of the {len(every)} parameters that {names} {'holds' if len(case.optimizers) == 1 else 'hold'} requires a "
        "gradient: a step moves nothing.",
        fix=f"Call requires_grad_() on `{models[0]}`, or on its last layer alone." if models else "",
        evidence={"parameters": len(every)},
        worth=7.5,
    )


def cleared(case: Case) -> str:
    """In a sentence, why nothing can be said of the gradients; "" where there are some, or no parameters."""
    held = [one for one in held_in(case).values() if one.learner.requires]
    if not held:
        return ""
    if all(not one.learner.graded for one in held):
        return "No parameter has a `.grad` now: zero_grad() has cleared them, or backward() has not run."
    graded = [one.gradient for one in held if one.gradient is not None]
    if graded and all(gradient.all_zero for gradient in graded):
        return (
            "Every `.grad` is exactly 0: zero_grad(set_to_none=False) leaves them so, and so does a loss that depends on nothing."
        )
    return ""

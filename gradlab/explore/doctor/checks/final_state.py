"""Find missing, zero and non-finite gradients, non-finite weights, and parameters in no optimizer after a run.

These checks need no trace, so they compare parameters with each other. `zero_grad()` leaves all `.grad` None, or 0, together: a
parameter is compared with the others of its optimizer. A parameter without a gradient is reported only if it never had one: its
optimizer has no state for it, and its memory was written to no more often than by an initialisation. Target networks, critics and
frozen backbones are not reported: they are in no optimizer, or require no gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, join_names, learner_names
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import STATE, check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_optimizer
from gradlab.explore.trace.values import Value

MAX_INITIAL_WRITES = 6  # by initialising, loading and moving a parameter; each step of an optimizer adds one
RECORD_ADVICE = "Put %%doctor on the first line of the cell to find the operation and the line."
MAX_NODES = 50_000  # of a graph that are visited


declare(
    "no-gradient",
    meaning="Some parameters have no gradient after a run, while others of the same optimizer or model have one.",
    why="""
        `optimizer.step()` skips a parameter whose `.grad` is None, so it keeps its initial value. Either `forward()` does not use
        it, or the path from it to the loss is cut, for example by `detach()` or `no_grad()`.
    """,
    remedy="""
        Use the parameter in `forward()`, or remove it. If it is used, record the run (`%%doctor` in a notebook, `gradlab doctor`
        for a script): the finding then names the line of the cut.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        hidden, skip, head = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 1)
        model = nn.ModuleList([hidden, skip, head])
        optimizer = torch.optim.Adam(model.parameters())
        for step in range(3):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(head(torch.relu(hidden(x))), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"hidden(x)": "hidden(x) + skip(x)"},
)

declare(
    "zero-gradient",
    meaning="The gradient of weights is exactly 0 after a run, while other gradients are not.",
    why="""
        A gradient of exactly 0 usually comes from a factor 0: ReLU units that are negative for every example, a mask, or a
        product with 0. If it is 0 for every batch, the gradient never changes the weights.
    """,
    remedy="""
        Scale the inputs to unit size, use a smaller learning rate, or use LeakyReLU, whose derivative is never 0. Record the run
        (`%%doctor` in a notebook, `gradlab doctor` for a script) to find the operation.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = 255 * torch.rand(64, 4)
        y = x.mean(1, keepdim=True)
        model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"x = 255 * torch.rand(64, 4)": "x = torch.rand(64, 4)"},
    notes=True,
)

declare(
    "nan-weights",
    meaning="Weights are NaN or infinite after a run.",
    why="""
        Results computed from them are usually NaN too, and further steps cannot repair them. The first NaN was made earlier,
        usually by steps that are too large or by an operation outside its domain, such as `log(0)`.
    """,
    remedy="""
        Create the model again, or load a checkpoint. If the loss increased before, use a smaller learning rate, scale the inputs,
        or clip the gradients. Record the run (`%%doctor` in a notebook, `gradlab doctor` for a script) to find the operation that
        made the first NaN.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        area = 200 * torch.rand(64, 1)
        price = 3 * area + 50
        model = nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for step in range(100):
            optimizer.zero_grad()
            loss = F.mse_loss(model(area), price)
            loss.backward()
            optimizer.step()
    """,
    healthy={
        "area = 200 * torch.rand(64, 1)": "area = 2 * torch.rand(64, 1)  # in 100 square metres",
        "price = 3 * area + 50": "price = 300 * area + 50",
    },
)

declare(
    "nan-gradient",
    meaning="Gradients are NaN or infinite after a run, while the weights are still finite.",
    why="""
        The next step writes NaN into the weights. The loss can be finite when its gradient is not: the derivative of `sqrt` at 0
        is infinite, and infinity times 0 is NaN.
    """,
    remedy="""
        Clear the gradients before the next step. Keep the operation away from the singularity, for example by a small constant
        under the root: `(x + 1e-12).sqrt()`. Record the run (`%%doctor` in a notebook, `gradlab doctor` for a script) to find the
        operation.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        points = nn.Embedding(5, 2)
        optimizer = torch.optim.SGD(points.parameters(), lr=0.1)
        first = torch.tensor([0, 1, 2, 3])
        second = torch.tensor([1, 2, 2, 4])
        for step in range(3):
            optimizer.zero_grad()
            distance = (points(first) - points(second)).pow(2).sum(1).sqrt()
            loss = (distance - 1).pow(2).mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(points.parameters(), 1.0)
            if torch.isfinite(norm):
                optimizer.step()
    """,
    healthy={"sum(1).sqrt()": "sum(1).add(1e-12).sqrt()"},
    notes=True,
)

declare(
    "nan-loss",
    meaning="A loss is NaN or infinite after a run, while weights and gradients are still finite.",
    why="""
        Its gradient is usually NaN as well, and one step with it makes the weights NaN. Common causes are the logarithm of 0, a
        division by 0, an overflow, and NaN in the data.
    """,
    remedy="""
        Check inputs and targets with `torch.isfinite`. Use losses that take scores, such as `binary_cross_entropy_with_logits`
        and `cross_entropy`. Record the run (`%%doctor` in a notebook, `gradlab doctor` for a script) to find the operation that
        made the first NaN.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = 1000 * torch.randn(32, 4)
        y = (x[:, :1] > 0).float()
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for step in range(3):
            p = torch.sigmoid(model(x))
            loss = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
            if not torch.isfinite(loss):
                break
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    """,
    healthy={
        "p = torch.sigmoid(model(x))": "scores = model(x)",
        "-(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()": "nn.functional.binary_cross_entropy_with_logits(scores, y)",
    },
)


@dataclass(frozen=True)
class ParameterState:
    """A parameter after a run.

    Attributes
    ----------
    learner : Learner
    tensor : Tensor
    value, gradient : Value or None
        Numbers of it and of its `.grad`; None if there is none, or if it has no values.
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
        """Return whether it has at least two axes, unlike a bias."""
        return len(self.learner.shape) >= 2


@check("zero-gradient", "nan-weights", "nan-gradient", "nan-loss", "stale-optimizer", "frozen", looks_at=STATE)
def find_faulty_state(case: Case) -> Iterable[Finding]:
    """Yield findings on weights, gradients and optimizers as they are after a run."""
    states = parameter_states(case)
    yield from _find_non_finite(case, states)
    for _, group in _parameter_groups(case, states):
        yield from _find_zero_gradients(group)
    yield from _find_missing_in_optimizers(case, states)
    yield from _find_frozen(case, states)


@check("no-gradient", looks_at=STATE)
def find_missing_gradients(case: Case) -> Iterable[Finding]:
    """Yield findings on parameters without a gradient. A trace of the loss also shows the cause."""
    for name, group in _parameter_groups(case, parameter_states(case)):
        yield from _find_unreached(case, name, group)


def parameter_states(case: Case) -> dict[int, ParameterState]:
    """Return the parameters of models and optimizers by their keys. They are read once for each case."""
    states: dict[int, ParameterState] = _read_states(case) if case.final_values is None else case.final_values
    case.final_values = states
    return states


def _read_states(case: Case) -> dict[int, ParameterState]:
    wanted = [one for one in case.learners.values() if one.model or one.optimizers]
    states: dict[int, ParameterState] = {}
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
            states[one.key] = ParameterState(one, tensor, value, gradient, library.version(tensor))
    return states


# ----------------------------------------------------------------------------------------------------------- non-finite
def _find_non_finite(case: Case, states: Mapping[int, ParameterState]) -> Iterator[Finding]:
    weights = [one for one in states.values() if one.value is not None and not math.isfinite(one.value.norm)]
    gradients = [one for one in states.values() if one.gradient is not None and not math.isfinite(one.gradient.norm)]
    scaled = any(type(value).__name__ == "GradScaler" for value in case.namespace.values())
    losses = [name for name, value in _scalar_losses(case) if (x := _read_number(value)) is not None and not math.isfinite(x)]
    if weights:
        what = _name_non_finite(one.value for one in weights)
        yield Finding(
            "nan-weights",
            f"{learner_names([one.learner for one in weights])} {'holds' if len(weights) == 1 else 'hold'} {what}, and "
            f"most values computed from {'it' if len(weights) == 1 else 'them'} are NaN or infinite too.",
            fix=f"Create the model again, or load it: the first {what} was made earlier. {RECORD_ADVICE}",
            evidence=_count_non_finite("weights", weights, [one.value for one in weights]),
            worth=8.5,
        )
    elif gradients:
        what = _name_non_finite(one.gradient for one in gradients)
        yield Finding(
            "nan-gradient",
            f"`.grad` of {learner_names([one.learner for one in gradients])} holds {what}, and the weights are still finite: "
            f"the next step writes it into them.{' (A GradScaler skips such steps.)' if scaled else ''}",
            fix=f"Clear the gradients before the next step. {RECORD_ADVICE}",
            evidence=_count_non_finite("gradients", gradients, [one.gradient for one in gradients]),
            remark=scaled,
            worth=8.0,
        )
    elif losses:
        yield Finding(
            "nan-loss",
            f"{join_names(losses)} {'is' if len(losses) == 1 else 'are'} NaN or infinite.",
            fix=RECORD_ADVICE,
            evidence={"losses": losses},
            worth=7.0,
        )


def _name_non_finite(values: Iterable[Value | None]) -> str:
    return "NaN" if any(value is not None and value.nans for value in values) else "infinity"


def _count_non_finite(what: str, group: Sequence[ParameterState], values: Sequence[Value | None]) -> dict[str, Any]:
    return {
        what: [one.learner.name for one in group],
        "NaN": sum(value.nans for value in values if value is not None),
        "infinite": sum(value.infs for value in values if value is not None),
    }


def _scalar_losses(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield the scalars of the namespace that have a graph, with their names."""
    for name, value in case.namespace.items():
        if library_of(value) is None or name.startswith("_"):
            continue
        if value.requires_grad and not value.is_leaf and math.prod(tuple(value.shape)) == 1:
            yield name, value


def _read_number(value: Any) -> float | None:
    library = library_of(value)
    with suppress(Exception):  # a device without values, such as "meta"
        return None if library is None else float(library.array(value).reshape(-1)[0])
    return None


# ------------------------------------------------------------------------------------------------------------- no gradient
def _parameter_groups(case: Case, states: Mapping[int, ParameterState]) -> Iterator[tuple[str, list[ParameterState]]]:
    """Yield the parameters whose gradients are cleared together: those of an optimizer, or, if there is none, of a model."""
    if case.optimizers:
        for one in case.optimizers:
            yield f"`{one.name}`", [states[key] for key in one.keys if key in states and states[key].learner.requires_grad]
    else:
        for name in case.models:
            yield f"`{name}`", [one for one in states.values() if one.learner.model == name and one.learner.requires_grad]


def _find_unreached(case: Case, name: str, group: list[ParameterState]) -> Iterator[Finding]:
    """Find parameters that never had a gradient, in a group in which others had one."""
    with_state = _keys_with_state(case, group)
    touched = {one.learner.key for one in group if one.gradient is not None or one.learner.has_grad}
    how = f"the other {{others}} of {name} {{have}} one"
    if not touched and with_state:
        touched, how = with_state, f"{name} made its steps without {{them}}"
    if not touched:
        touched = _keys_in_graphs(case, group)
        root = next((loss for loss, _ in _scalar_losses(case)), "")
        how = f"`{root}` was computed from the other {{others}} of {name}"
    idle = [one for one in group if one.learner.key not in touched | with_state and one.writes <= MAX_INITIAL_WRITES]
    idle = [one for one in idle if "param_groups" not in one.learner.name]  # without another name: it was replaced
    others = [one for one in group if one.learner.key in touched]
    if not idle or not others:
        return
    learners = [one.learner for one in idle]
    its, they, them, were = ("its", "it", "it", "was") if len(idle) == 1 else ("their", "they", "them", "were")
    number, have = ("parameter", "has") if len(others) == 1 else (f"{len(others)} parameters", "have")
    contrast = how.format(others=number, have=have, them=them)
    yield Finding(
        "no-gradient",
        f"{learner_names(learners)} got no gradient: {its} `.grad` is None, and {contrast}. "
        f"Either {they} {were} not used, or the path to the loss is cut.",
        fix=RECORD_ADVICE,
        evidence={"leaves": [one.name for one in learners], "others": len(others)},
        worth=6.0,
    )


def _keys_with_state(case: Case, group: list[ParameterState]) -> set[int]:
    """Return the keys of the parameters for which an optimizer has state: it has made a step with their gradients."""
    keys = set()
    for value in case.namespace.values():
        state = getattr(value, "state", None) if is_optimizer(value) else None
        if isinstance(state, Mapping):
            keys |= {id(tensor) for tensor, entry in state.items() if entry}
    return keys & {one.learner.key for one in group}


def _keys_in_graphs(case: Case, group: list[ParameterState]) -> set[int]:
    """Return the keys of the parameters from which scalars were computed; none if a graph is freed or too large."""
    keys: set[int] = set()
    seen: set[Any] = set()
    for _, value in _scalar_losses(case):
        library = library_of(value)
        assert library is not None
        waiting = [library.node(value)]
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            if len(seen) > (library.at_most(MAX_NODES) or MAX_NODES):
                return set()
            leaf = library.variable(node)
            if leaf is not None:
                keys.add(id(leaf))
            waiting += library.inputs(node)
    return keys & {one.learner.key for one in group}


# ------------------------------------------------------------------------------------------------------------ exactly zero
def _find_zero_gradients(group: list[ParameterState]) -> Iterator[Finding]:
    """Find weights whose gradient is exactly 0, while other gradients of the group are not."""
    graded = [one for one in group if one.gradient is not None and math.isfinite(one.gradient.norm)]
    weights = [one for one in graded if one.is_weight]
    zero = [one for one in weights if one.gradient is not None and one.gradient.all_zero]
    alive = [one for one in graded if one.gradient is not None and one.gradient.norm > 0]
    blank = [one for one in group if one.is_weight and one.value is not None and one.value.all_zero]
    if not zero or not alive or blank:  # cleared; or zeros in the weights, which make zero gradients before them
        return
    everything = len(zero) == len(weights)
    yield Finding(
        "zero-gradient",
        f"The gradient of {learner_names([one.learner for one in zero])} is exactly 0, and that of "
        f"{join_names([one.learner.name for one in alive], 2)} is not: "
        f"{'no weight learns' if everything else 'so it does not learn' if len(zero) == 1 else 'so they do not learn'}.",
        fix=f"The usual causes are dead units, a factor 0 or a mask. {RECORD_ADVICE}",
        evidence={"zero": [one.learner.name for one in zero], "others": len(alive)},
        remark=not everything,
        worth=6.5,
    )


# --------------------------------------------------------------------------------------------------------------- optimizers
def _find_missing_in_optimizers(case: Case, states: Mapping[int, ParameterState]) -> Iterator[Finding]:
    """Find parameters with gradients that are in no optimizer."""
    if not case.optimizers:
        return
    free = [
        one
        for one in states.values()
        if one.learner.requires_grad and not one.learner.optimizers and one.gradient is not None and one.gradient.norm > 0
    ]
    if not free:
        return
    orphans = [one for one in states.values() if "param_groups" in one.learner.name and one.writes >= 0]
    spare = [one.learner.shape for one in orphans]
    replaced = []
    for one in free:
        if one.learner.shape in spare:
            spare.remove(one.learner.shape)
            replaced.append(one)
    in_lists = [one for one in free if one.learner.in_list and _is_partly_optimized(case, one.learner.model)]
    if replaced:
        names = list(dict.fromkeys(name for one in orphans for name in one.learner.optimizers))
        models = list(dict.fromkeys(one.learner.model for one in replaced))
        yield _stale_finding(
            replaced,
            f"{join_names(names)} {'holds' if len(names) == 1 else 'hold'} "
            f"{'1 tensor of this shape that has' if len(orphans) == 1 else f'{len(orphans)} tensors of these shapes that have'} "
            "no other name: their model or layer was replaced",
            f"Create the optimizer again after the change{f', with the parameters of `{models[0]}`' if models[0] else ''}.",
        )
    elif in_lists:
        lists = list(dict.fromkeys(one.learner.in_list for one in in_lists))
        yield _stale_finding(
            in_lists,
            f"{join_names(lists)} is a plain list, which parameters() does not search",
            f"Make {join_names(lists)} an `nn.ModuleList`, then create the optimizer.",
        )
    else:
        first = free[0].learner
        yield Finding(
            "stale-optimizer",
            f"{learner_names([one.learner for one in free])} {'has a gradient' if len(free) == 1 else 'have gradients'}, and no "
            f"optimizer ({join_names([one.name for one in case.optimizers])}) holds {'it' if len(free) == 1 else 'them'}.",
            fix=f"Give `{first.model or first.name}` to an optimizer. If it should not learn, call requires_grad_(False) on it."
            if len({one.learner.model for one in free}) == 1 and not _is_partly_optimized(case, first.model)
            else "Give them to an optimizer. If they should not learn, call requires_grad_(False) on them.",
            evidence={"leaves": [one.learner.name for one in free]},
            remark=True,
            worth=3.0,
        )


def _stale_finding(group: list[ParameterState], why: str, fix: str) -> Finding:
    norm = math.hypot(*(one.gradient.norm for one in group if one.gradient is not None))
    they = "it is" if len(group) == 1 else "they are"
    return Finding(
        "stale-optimizer",
        f"No step changes {learner_names([one.learner for one in group])}: {they} in no optimizer. "
        f"The gradient has norm {norm:.3g}. {why[:1].upper() if why[:1] != '`' else why[:1]}{why[1:]}.",
        fix=fix,
        evidence={"leaves": [one.learner.name for one in group], "gradient norm": norm},
        worth=8.0,
    )


def _is_partly_optimized(case: Case, model: str) -> bool:
    """Return whether an optimizer holds a part of a model."""
    return bool(model) and any(one.model == model and one.optimizers for one in case.learners.values())


def _find_frozen(case: Case, states: Mapping[int, ParameterState]) -> Iterator[Finding]:
    """Find optimizers of which no parameter requires a gradient, or ever had one."""
    every = [states[key] for one in case.optimizers for key in one.keys if key in states]
    if not every or any(
        one.learner.requires_grad or one.gradient is not None or one.writes > MAX_INITIAL_WRITES for one in every
    ):
        return
    if _keys_with_state(case, every):
        return
    names = join_names([one.name for one in case.optimizers])
    models = list(dict.fromkeys(one.learner.model for one in every if one.learner.model))
    yield Finding(
        "frozen",
        f"{names} {'has' if len(case.optimizers) == 1 else 'have'} no parameter that requires a gradient (of {len(every)}), so a "
        "step changes nothing.",
        fix=f"Call requires_grad_() on `{models[0]}`, or only on its last layer." if models else "",
        evidence={"parameters": len(every)},
        worth=7.5,
    )


def describe_cleared_gradients(case: Case) -> str:
    """Return a sentence on why gradients could not be checked; "" if there are some, or if there are no parameters."""
    states = [one for one in parameter_states(case).values() if one.learner.requires_grad]
    if not states:
        return ""
    if all(not one.learner.has_grad for one in states):
        return (
            "No parameter of a model or an optimizer has a `.grad` now: zero_grad() has cleared them, or backward() has not run."
        )
    graded = [one.gradient for one in states if one.gradient is not None]
    if graded and all(gradient.all_zero for gradient in graded):
        return "Every `.grad` is exactly 0, as after zero_grad(set_to_none=False) or if the loss depends on no parameter."
    return ""

"""Find steps that are rounded away because the weights are in float16 or bfloat16."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.events import entry_names, event_line, event_place, quote, write_after
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.number_limits import SIGNIFICAND_BITS
from gradlab.explore.doctor.context.step_history import rate_text
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.names import is_optimizer
from gradlab.explore.trace.data import Event
from gradlab.explore.trace.journal import Entry

MIN_STEPS = 3  # at which a matrix was compared
LOST, MANY = 0.9, 0.5  # share of the elements that do not change: a Problem, a Note
LEAST_GRADIENT = 1e-6  # relative to the weights; a smaller one is that of a training that has converged
# The state of PyTorch's optimizers. State of another name may compensate for rounding (Kahan summation).
KNOWN_STATE = frozenset(
    (
        *("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "grad_avg", "sum", "acc_delta"),
        *("exp_inf", "mu_product", "ax", "eta", "mu", "prev", "step_size"),
    )
)

declare(
    "rounded-update",
    notes=True,
    meaning="The steps of an optimizer are too short for the precision of the weights, and are rounded away.",
    why="""
        Numbers in bfloat16 have 8 significant bits: next to a weight of 0.1, the closest are 0.0005 away. A step of less than
        half of that leaves the weight as it is, and the next one too: short steps do not add up. float16 has 11 bits.
    """,
    remedy="""
        Keep the weights in float32, and compute in bfloat16 under `torch.autocast`. An optimizer that keeps float32 copies of the
        weights, or the sum of the rounding errors, helps as well.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 1)).bfloat16()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-5)
        x, y = torch.randn(64, 16).bfloat16(), torch.randn(64, 1).bfloat16()
        for step in range(10):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy={
        "nn.Linear(32, 1)).bfloat16()": "nn.Linear(32, 1))",
        "x, y = torch.randn(64, 16).bfloat16(), torch.randn(64, 1).bfloat16()": "x, y = torch.randn(64, 16), torch.randn(64, 1)",
        "loss = nn.functional.mse_loss(model(x), y)": 'with torch.autocast("cpu", dtype=torch.bfloat16):\n'
        "        loss = nn.functional.mse_loss(model(x), y)",
    },
    libraries=("torch",),
)


@check("rounded-update")
def find_rounded_updates(case: Case) -> Iterable[Finding]:
    """Find steps that leave most elements of the matrices in half precision as they are."""
    found = {leaf.key: steps for leaf in case.trace.leaves if (steps := _steps_of(case, leaf.key))} if case.trace else {}
    halves = [leaf for leaf in (case.trace.leaves if case.trace else ()) if _is_half_matrix(leaf.dtype, leaf.shape)]
    halves = [leaf for leaf in halves if leaf.key in found and leaf.value is not None]
    if not halves:
        return
    shares = {leaf.key: median(entry.stuck or 0.0 for entry, _ in found[leaf.key]) for leaf in halves}
    sizes = {leaf.key: math.prod(leaf.shape) for leaf in halves}
    share = sum(shares[key] * sizes[key] for key in shares) / sum(sizes.values())
    events = [event for steps in found.values() for _, event in steps]
    if share < MANY or any(_may_compensate(case, event) for event in events):
        return
    first = max(halves, key=lambda leaf: (shares[leaf.key], sizes[leaf.key]))
    entry, event = found[first.key][-1]
    size = first.value.norm / math.sqrt(sizes[first.key]) if first.value is not None else 0.0
    half_unit = 2.0 ** (math.frexp(size)[1] - SIGNIFICAND_BITS[first.dtype] - 1)
    those = entry_names(case, [found[leaf.key][-1][0] for leaf in halves])
    yield Finding(
        "rounded-update",
        f"{quote(event.place)} leaves {share:.0%} of the elements of {those} as they are, although their gradients are not 0"
        f"{rate_text(event)}. In {first.dtype} a weight of {digits(size)} changes only if its step is longer than "
        f"{digits(half_unit)}, half a unit in its last place.",
        event_line(event),
        fix="Keep the weights in float32 and compute in bfloat16 under torch.autocast."
        if share >= LOST
        else "If the loss stops falling early, keep the weights in float32 and compute in bfloat16 under torch.autocast.",
        evidence={"share": share, "weight": size, "half unit": half_unit, "of": entry.name, "dtype": first.dtype},
        remark=share < LOST,
        worth=7.5,
        place=event_place(event),
    )


def _is_half_matrix(dtype: str, shape: tuple[int, ...]) -> bool:
    return dtype in ("bfloat16", "float16") and len(shape) >= 2


def _steps_of(case: Case, key: int) -> list[tuple[Entry, Event]]:
    """Return the steps of an optimizer at which a leaf was compared with the weights before."""
    steps = []
    for sweep, entry in case.timelines.get(key, ()):
        if entry.stuck is None or entry.arrived <= LEAST_GRADIENT * entry.weight:
            continue
        event = write_after(case, sweep, [key])
        if event is not None and event.kind == "step" and key in event.keys and any(event.rates):
            steps.append((entry, event))
    return steps if len(steps) >= MIN_STEPS else []


def _may_compensate(case: Case, event: Event) -> bool:
    """Return whether an optimizer may keep the rounding errors, in state that PyTorch's own optimizers do not have."""
    own = next((value for value in case.namespace.values() if is_optimizer(value) and id(value) == event.whose), None)
    if own is None:
        return True
    return any(name not in KNOWN_STATE for state in own.state.values() if isinstance(state, dict) for name in state)

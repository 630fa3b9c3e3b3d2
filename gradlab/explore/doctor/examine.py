"""Every family of causes, asked in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from gradlab.explore.doctor.advice import as_written
from gradlab.explore.doctor.case import Case, listed
from gradlab.explore.doctor.cut_history import cuts, flat
from gradlab.explore.doctor.depth import depth
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.graph_errors import graph_errors
from gradlab.explore.doctor.late_parameters import made_anew
from gradlab.explore.doctor.leaves import frozen, rebound, unused
from gradlab.explore.doctor.loss_table import leaks
from gradlab.explore.doctor.losses import losses
from gradlab.explore.doctor.numbers import numbers
from gradlab.explore.doctor.progress import progress
from gradlab.explore.doctor.refusals import refusals
from gradlab.explore.doctor.replaced_leaves import replaced
from gradlab.explore.doctor.step_causes import without_consequences
from gradlab.explore.doctor.sums import sums
from gradlab.explore.doctor.training import accumulated, empty, stale
from gradlab.explore.doctor.units import units
from gradlab.explore.doctor.zeros import zeros

Family = Callable[[Case], Iterable[Finding]]

FAMILIES: list[Family] = [
    refusals,
    graph_errors,
    cuts,
    flat,
    rebound,
    unused,
    frozen,
    stale,
    replaced,
    made_anew,
    accumulated,
    leaks,
    empty,
    progress,
    depth,
    units,
    zeros,
    numbers,
    losses,
    sums,
]


OTHER_LOSSES: list[Family] = [depth, losses]  # what is looked for in the graph of a loss beside the one that is shown


def examine(case: Case, families: Sequence[Family] | None = None) -> Diagnosis:
    """What is found in a case, by all families unless some are given. One that fails is named in `unseen`."""
    findings: list[Finding] = []
    unseen: list[str] = []
    for family in FAMILIES if families is None else families:
        try:
            findings += family(case)
        except Exception as error:  # noqa: BLE001  (the user's cell must not fail by what is said about it)
            unseen.append(f"What `{family.__name__}` looks for could not be looked at: {type(error).__name__}: {error}.")
    if names := list(case.sharded.values()):
        unseen.append(
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} sharded (DTensor, as fully_shard makes them): "
            "which of them get a gradient, and what they keep from step to step, was not seen."
        )
    findings = list(without_consequences(case, findings))
    sources = [*case.programs, *([case.scene.program] if case.scene is not None else [])]
    findings = [replace(one, fix=as_written(one.fix, sources)) for one in findings]
    return Diagnosis.of(findings, unseen)

"""Run the checks on a case.

`ERRORS`, `RUNS` and `STATES` are the table of contents: the modules that define checks, in the order in which they are applied.
A check in one of these modules is registered by its decorator (see `registry`), and nothing else has to be changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import ModuleType

from gradlab import clock
from gradlab.explore.doctor.checks import (
    advantages,
    batch_softmax,
    checkpoints,
    clipping,
    cut_history,
    depth,
    dropped_outputs,
    equal_units,
    evaluation_mode,
    final_state,
    first_step,
    frozen_parts,
    kept_history,
    keras_outputs,
    late_parameters,
    learning_rates,
    leaves,
    limited_outputs,
    linear_models,
    loss_leaks,
    loss_scale,
    losses,
    membership,
    near_limits,
    non_finite,
    nothing_learns,
    rebound_leaves,
    recreated_leaves,
    replaced_leaves,
    rounded_updates,
    steps,
    sums,
    ties,
    training,
    units,
    unstable,
    watched_runs,
    zeros,
)
from gradlab.explore.doctor.checks.reduced_axes import drop_consequences_of_constants
from gradlab.explore.doctor.checks.step_causes import drop_consequences
from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.code_edits import quote_as_written
from gradlab.explore.doctor.errors import graph_errors, keras_training, refusals, training_calls
from gradlab.explore.doctor.findings import Diagnosis, Finding
from gradlab.explore.doctor.registry import CHECKS, ERROR, RUN, STATE, Check
from gradlab.explore.doctor.silencing import split_ignored

ERRORS = (
    refusals,  # numbers and arrays without a backward(), tensors that NumPy refuses
    graph_errors,  # errors of backward(), and shapes, dtypes and devices that do not fit
    keras_training,  # losses in the training of a Keras model
    training_calls,  # a GradScaler that is updated without a step, gradients that are clipped before there are any
)
RUNS = (
    cut_history,  # detach(), .data, item(), NumPy, no_grad, integers, functions with derivative 0
    checkpoints,  # reentrant checkpoints without an argument that requires grad
    rebound_leaves,  # the name of a leaf is bound to a computed tensor
    leaves,  # leaves and modules that are not used, models that are frozen
    training,  # optimizers with other parameters, gradients that add up, steps without gradients
    replaced_leaves,  # a leaf that is created again while the optimizer holds the old one
    recreated_leaves,  # weights that are created again in every step
    late_parameters,  # layers that are created in forward()
    membership,  # parameters that optimizers hold twice, groups with a learning rate of 0
    ties,  # tied weights that a load or a move separated
    evaluation_mode,  # models that are trained in evaluation mode
    frozen_parts,  # running statistics in training mode, frozen parameters that steps move
    loss_leaks,  # gradients of one loss that the step of another one uses
    learning_rates,  # schedules that end in the first steps, steps by hand with a learning rate of 0
    clipping,  # gradients that are clipped to nothing, before backward or after the step
    advantages,  # products of a log-probability and a value of the critic
    rounded_updates,  # steps that are rounded away in half precision
    steps,  # steps that increase the loss, or are too large or too small
    depth,  # gradients that vanish or explode over layers or time steps
    units,  # dead and saturated units
    equal_units,  # hidden units that started with the same weights
    first_step,  # the first backward call: a large loss, saturated and dead units
    zeros,  # gradients that are exactly 0: a factor 0, terms that cancel, underflow
    non_finite,  # the operation that made the first NaN or infinity
    loss_scale,  # a GradScaler that keeps skipping steps
    unstable,  # formulas that overflow and have a stable spelling
    near_limits,  # inputs close to a point where an operation or its derivative is infinite
    losses,  # shapes that broadcast, probabilities instead of logits
    limited_outputs,  # activations whose range does not fit the loss
    dropped_outputs,  # a dropout after the last layer
    batch_softmax,  # a softmax over the batch instead of the classes
    keras_outputs,  # last layers of Keras models that do not fit the loss
    linear_models,  # models of Keras without activations
    sums,  # a sum over the batch instead of a mean
    nothing_learns,  # methods that are not called, no step at all; gradients of 0 that no check above explains
    kept_history,  # losses that are kept with the graph of their step
)
STATES = (final_state,)  # what a run without a recorder has left
WATCHES = (watched_runs,)  # kinds that `gl.watch` reports over many steps (see watch/judging); it defines no checks


def _in_order(modules: Sequence[ModuleType], looks_at: str) -> tuple[Check, ...]:
    """Return the checks that modules define, in the order of the modules and of their definitions."""
    names = [module.__name__ for module in modules]
    own = [one for one in CHECKS if one.looks_at == looks_at]
    return tuple(sorted(own, key=lambda one: names.index(one.find.__module__)))


CHECKS_OF_ERRORS = _in_order(ERRORS, ERROR)
CHECKS_OF_RUNS = _in_order(RUNS, RUN)
CHECKS_OF_STATES = _in_order(STATES, STATE)
CHECKS_OF_EACH_LOSS = tuple(one for one in CHECKS_OF_RUNS if one.of_each_loss)


def examine(case: Case, checks: Iterable[Check] | None = None) -> Diagnosis:
    """Return what checks find in a case.

    A check runs once for each case: its findings are kept in `case.found`. One that raises is reported in `unseen`.

    Parameters
    ----------
    case : Case
    checks : iterable of Check, optional
        Default: those of errors and of runs.

    Returns
    -------
    Diagnosis
    """
    findings: list[Finding] = []
    unseen: list[str] = []
    seconds: dict[str, float] = {}
    chosen = (*CHECKS_OF_ERRORS, *CHECKS_OF_RUNS) if checks is None else tuple(checks)
    for one in chosen:
        if not one.keras and (case.failed_in_keras if one.looks_at == ERROR else case.is_of_keras):
            case.found[one.name] = [], ""
        if one.name not in case.found:
            seconds[one.name] = _run(one, case)
        found, failure = case.found[one.name]
        findings += found
        unseen += [failure] if failure else []
    case.flow = None  # it refers to the case, and the case to the user's tensors
    if names := list(case.sharded.values()):
        unseen.append(
            f"{join_names(names)} {'is' if len(names) == 1 else 'are'} sharded (DTensor, as fully_shard makes them): "
            "which of them get a gradient, and how they change from step to step, was not checked."
        )
    findings = drop_consequences_of_constants(case, drop_consequences(case, findings))
    findings, ignored, unknown = split_ignored(findings, case)
    sources = [*case.programs, *([case.scene.program] if case.scene is not None else [])]
    findings = [replace(one, fix=quote_as_written(one.fix, sources)) for one in findings]
    return Diagnosis.of(findings, (*unseen, *unknown), ignored=ignored, seconds=seconds)


def _run(one: Check, case: Case) -> float:
    """Run a check, keep its findings in the case, and return how long it took, in seconds."""
    start, failure = clock.now(), ""
    found: list[Finding] = []
    try:
        found.extend(one.find(case))
        if one.looks_at == ERROR and case.scene is not None:
            found = [replace(finding, place=finding.place or case.scene.source_line) for finding in found]
        if undeclared := sorted({finding.kind for finding in found} - set(one.kinds)):
            failure = f"The check `{one.name}` does not declare that it reports {', '.join(undeclared)}."
    except Exception as error:  # noqa: BLE001  (an error of the doctor must not make the user's cell fail)
        failure = f"The check `{one.name}` failed: {type(error).__name__}: {error}."
    case.found[one.name] = found, failure
    return clock.now() - start

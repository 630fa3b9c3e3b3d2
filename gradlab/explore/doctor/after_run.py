"""Diagnose a run that was not recorded: from its error, and from the tensors that it left in the namespace.

`Snapshot` shows whether a recorded cell is still the last one: whether anything has been computed, written or swept since.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradlab.diagnose.source_locations import notebook
from gradlab.explore.doctor.checks.final_state import describe_cleared_gradients
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.examine import CHECKS_OF_ERRORS, CHECKS_OF_STATES, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries import adapters, library_of

HALFWAY = ("in-place", "freed")  # errors that end a backward() before it has reached all parameters
NOTHING = "There is nothing to look at: no error, no model, no optimizer and no gradient."
LEFT = (
    "The run was not recorded, so only its error, the parameters and their `.grad` were checked. To find where a history was cut "
    "or which operation made the first NaN, put `%%doctor` on the first line of the cell."
)


def error_findings(namespace: Mapping[str, Any], error: BaseException) -> Diagnosis:
    """Return the findings on the error of a run, and nothing else."""
    return examine(Case(None, namespace, error), CHECKS_OF_ERRORS)


def diagnose_after_run(
    namespace: Mapping[str, Any],
    error: BaseException | None = None,
    older: str = "",
    ignore: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Return the findings on the error of a run and on the state that it left.

    Parameters
    ----------
    namespace : mapping of str to object
        The user's names now.
    error : BaseException, optional
        The error that ended the run.
    older : str, optional
        A sentence on an earlier error, which is not explained.
    ignore : frozenset of str, optional
        The kinds that are silenced.
    """
    case = Case(None, namespace, error, ignore=ignore)
    diagnosis = examine(case, (*CHECKS_OF_ERRORS, *CHECKS_OF_STATES))
    ended = explain_no_rule(case)
    unseen = [*diagnosis.unseen, *([older] if older else []), *ended]
    try:
        empty = describe_cleared_gradients(case)
    except Exception:  # noqa: BLE001  (what failed is in `unseen` already)
        empty = ""
    if empty and (error is None or ended):
        unseen.append(empty)
    if any(finding.kind in HALFWAY for found, _ in case.found.values() for finding in found):
        kept = tuple(one for one in diagnosis.findings if one.kind != "no-gradient")
        diagnosis = replace(diagnosis, findings=kept)
    nothing = error is None and not case.optimizers and not any(one.model or one.has_grad for one in case.learners.values())
    return replace(diagnosis, unseen=(*unseen, *([NOTHING] if nothing and not diagnosis.findings else []), LEFT))


def explain_no_rule(case: Case) -> tuple[str, ...]:
    """Return a sentence on the error that ended a run if no finding explains it; otherwise nothing."""
    findings = [finding for one in CHECKS_OF_ERRORS for finding in case.found[one.name][0]]
    if case.error is None or any(not finding.remark for finding in findings):
        return ()
    return (_no_rule(case, case.error),)


def _no_rule(case: Case, error: BaseException) -> str:
    first = str(error).partition("\n")[0]
    where = case.scene.code if case.scene is not None else ""
    what = f"{type(error).__name__}{f': {first:.160}' if first else ''}".rstrip(".")
    if isinstance(error, KeyboardInterrupt):
        return f"The run was interrupted{f' at {where}' if where else ''}."
    return f"The run ended{f' at {where}' if where else ''} with {what}. The doctor has no rule for this error."


def last_error() -> tuple[BaseException | None, str]:
    """Return the error that is being handled, or the last one that was shown if nothing has run since; and a sentence on an error
    that is older."""
    current = sys.exc_info()[1]
    if current is not None:
        return current, ""
    if notebook.last_error is not None:
        return notebook.last_error()
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None), ""


class Snapshot:
    """A few numbers on the tensors of a namespace, which change if anything happens to them: how many operations were recorded,
    which leaves have a `.grad`, and how often these were written to."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.recorded = _count_recorded()
        self.leaves = _versions_of_leaves(namespace)

    def is_current(self, namespace: Mapping[str, Any]) -> bool:
        """Return whether nothing has happened since, except that names were deleted or tensors without a gradient created."""
        if _count_recorded() != self.recorded:
            return False
        now = _versions_of_leaves(namespace)
        return all(self.leaves.get(key) == version or (key not in self.leaves and not version[1]) for key, version in now.items())


def _count_recorded() -> dict[str, int]:
    return {library.name: library.moment() for library in adapters()}


def _versions_of_leaves(namespace: Mapping[str, Any]) -> dict[int, tuple[int, bool, int]]:
    leaves = {}
    case = Case(None, namespace)
    for key in case.learners:
        tensor = case.tensors[key]
        library = library_of(tensor)
        assert library is not None
        gradient = tensor.grad
        leaves[key] = (library.version(tensor), gradient is not None, 0 if gradient is None else library.version(gradient))
    return leaves

"""What can be told after a run that nobody watched: from its error, and from what it left in the namespace.

Also whether a recorded cell is still the last word: `Marks` are a few numbers by which one sees that nothing has been computed,
written or swept since.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gradlab.diagnose.source_locations import notebook
from gradlab.explore.doctor.checks.final_state import cleared
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.examine import CHECKS_OF_ERRORS, CHECKS_OF_STATES, examine
from gradlab.explore.doctor.findings import Diagnosis
from gradlab.explore.libraries import adapters, library_of

HALFWAY = ("in-place", "freed")  # errors that end a backward() before it has reached all parameters
NOTHING = "There is nothing to look at: no error, no model, no optimizer and no gradient."
LEFT = (
    "Only what the run has left was looked at: its error, the parameters and their `.grad`. Where a history was cut, what each "
    "operation handed on and where a first NaN came from was not seen: `%%doctor` on the first line of a cell sees it."
)


def error_findings(namespace: Mapping[str, Any], error: BaseException) -> Diagnosis:
    """What is found in the error of a run alone."""
    return examine(Case(None, namespace, error), CHECKS_OF_ERRORS)


def aftermath(
    namespace: Mapping[str, Any],
    error: BaseException | None = None,
    older: str = "",
    ignore: frozenset[str] = frozenset(),
) -> Diagnosis:
    """Return what is found in the error of a run and in the state that it left.

    Parameters
    ----------
    namespace : mapping of str to object
        The user's names now.
    error : BaseException, optional
        The error that ended the run.
    older : str, optional
        A sentence on an error that is left out.
    ignore : frozenset of str, optional
        The kinds that are silenced.
    """
    case = Case(None, namespace, error, ignore=ignore)
    diagnosis = examine(case, (*CHECKS_OF_ERRORS, *CHECKS_OF_STATES))
    ended = unexplained(case)
    unseen = [*diagnosis.unseen, *([older] if older else []), *ended]
    try:
        empty = cleared(case)
    except Exception:  # noqa: BLE001  (what failed is in `unseen` already)
        empty = ""
    if empty and (error is None or ended):
        unseen.append(empty)
    if any(one.kind in HALFWAY for one in diagnosis.findings):
        kept = tuple(one for one in diagnosis.findings if one.kind != "no-gradient")
        diagnosis = replace(diagnosis, findings=kept)
    nothing = error is None and not case.optimizers and not any(one.model or one.graded for one in case.learners.values())
    return replace(diagnosis, unseen=(*unseen, *([NOTHING] if nothing and not diagnosis.findings else []), LEFT))


def unexplained(case: Case) -> tuple[str, ...]:
    """Return a sentence on an error that ended a run and that no finding explains; none of another."""
    findings = [finding for one in CHECKS_OF_ERRORS for finding in case.found[one.name][0]]
    if case.error is None or any(not finding.remark for finding in findings):
        return ()
    return (_ended(case, case.error),)


def _ended(case: Case, error: BaseException) -> str:
    """That an error is all that is known of it."""
    first = str(error).partition("\n")[0]
    where = case.scene.said if case.scene is not None else ""
    what = f"{type(error).__name__}{f': {first:.160}' if first else ''}".rstrip(".")
    if isinstance(error, KeyboardInterrupt):
        return f"The run was interrupted{f' at {where}' if where else ''}."
    return f"The run ended{f' at {where}' if where else ''} with {what}. The doctor has no rule for this error."


def last_error() -> tuple[BaseException | None, str]:
    """The error that is being handled, else the last one that was shown, as long as it is the last word; and a sentence on one
    that is not."""
    current = sys.exc_info()[1]
    if current is not None:
        return current, ""
    if notebook.last_error is not None:
        return notebook.last_error()
    return getattr(sys, "last_exc", None) or getattr(sys, "last_value", None), ""


class Marks:
    """What shows whether anything has happened to the tensors of a namespace: how many operations were recorded, which leaves
    have a `.grad`, and how often these were written to."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.moments = _moments()
        self.leaves = _leaves(namespace)

    def still(self, namespace: Mapping[str, Any]) -> bool:
        """Whether nothing has happened since, but that names were taken away or tensors without gradient made."""
        if _moments() != self.moments:
            return False
        now = _leaves(namespace)
        return all(self.leaves.get(key) == mark or (key not in self.leaves and not mark[1]) for key, mark in now.items())


def _moments() -> dict[str, int]:
    return {library.name: library.moment() for library in adapters()}


def _leaves(namespace: Mapping[str, Any]) -> dict[int, tuple[int, bool, int]]:
    leaves = {}
    case = Case(None, namespace)
    for key in case.learners:
        tensor = case.tensors[key]
        library = library_of(tensor)
        assert library is not None
        gradient = tensor.grad
        leaves[key] = (library.version(tensor), gradient is not None, 0 if gradient is None else library.version(gradient))
    return leaves

"""Explain the error that ended a cell, below its traceback: how far the cell came, and the doctor's findings."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.display import display


def explain_below(diagnosis: Any, error: BaseException | None, recorder: Any = None) -> None:
    """Display the findings on a cell that failed, if there are Problems among them, beside a picture of how far it came.

    IPython has already shown the traceback. An error in the options of a magic needs no explanation.

    Parameters
    ----------
    diagnosis : Diagnosis
    error : BaseException or None
    recorder : Recorder, optional
        The recorder of the cell. Without it there is no picture.
    """
    if isinstance(error, UsageError):
        return
    graph = None
    if recorder is not None and error is not None:
        from gradlab.explore.forward.unfinished import draw_unfinished

        with recorder.faults:
            graph = draw_unfinished(recorder, error)
    if diagnosis.findings or graph is not None:
        from gradlab.explore.forward.failure_view import FailureView

        remarks = diagnosis.remarks if diagnosis.findings else ()
        display(FailureView(diagnosis.findings, remarks, None if graph is None else graph.drawing()))

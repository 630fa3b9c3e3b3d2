"""What the doctor knows of the error that ended a cell, shown below it."""

from __future__ import annotations

from typing import Any

from IPython.core.error import UsageError
from IPython.display import display


def explain_below(diagnosis: Any, error: BaseException | None) -> None:
    """Display the findings on a cell that failed, if there are Problems among them; nothing otherwise.

    IPython has shown the traceback by then, so they stand below it. An error in the options of a magic is its own explanation.
    """
    if not diagnosis.findings or isinstance(error, UsageError):
        return
    display(card_of(diagnosis))


def card_of(diagnosis: Any) -> Any:
    """The findings as a card, as LaTeX and as text."""
    from gradlab.explore.markup import NO_MATH
    from gradlab.explore.report import findings_view
    from gradlab.explore.report.parts import Card
    from gradlab.explore.report.table import CARD

    both = diagnosis.findings, diagnosis.remarks
    return Card(
        f'<div {NO_MATH} style="{CARD};border-radius:4px">{findings_view.html(*both)}</div>',
        findings_view.latex(*both),
        findings_view.text(*both),
    )

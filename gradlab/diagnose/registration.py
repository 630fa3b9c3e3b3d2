"""Register `diagnose.autopsy` as the explainer of the core's errors. It is loaded when the first error is raised."""

from __future__ import annotations

from typing import Any

from gradlab.core.errors import explain_with


def explain(name: str, plain: Any, *about: Any) -> Any:
    """Load the explainer, and call it."""
    from gradlab.diagnose.autopsy import explain as worded

    explain_with(worded)
    return worded(name, plain, *about)


explain_with(explain)

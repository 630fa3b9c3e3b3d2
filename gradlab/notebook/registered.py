"""On import, the explorers know how their live views are opened; what these need is loaded when the first one is."""

from __future__ import annotations

from typing import Any

from gradlab.explore.views import VIEWS


def jacobian(shown: Any, **options: Any) -> Any:
    """The live view of a Jacobian. `options`: as `Jacobian.widget` has them."""
    from gradlab.notebook.jacobian_widget import JacobianWidget

    return JacobianWidget(shown, **options)


def watch(shown: Any, **options: Any) -> Any:
    """The live view of a training."""
    from gradlab.notebook.watch_widget import WatchWidget

    return WatchWidget(shown, **options)


def view_of_a_run(_: Any) -> tuple[str, str]:
    """The script and the styles of that view, for a saved page."""
    from gradlab.notebook.watch_view import script_and_styles

    return script_and_styles()


VIEWS["jacobian"] = jacobian
VIEWS["watch"] = watch
VIEWS["the view of a run"] = view_of_a_run

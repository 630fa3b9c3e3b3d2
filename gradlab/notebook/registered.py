"""On import, the explorers know how their live views are opened; what these need is loaded when the first one is."""

from __future__ import annotations

from typing import Any

from gradlab.explore.views import VIEWS


def jacobian(shown: Any, **options: Any) -> Any:
    """The live view of a Jacobian. `options`: as `Jacobian.widget` has them."""
    from gradlab.notebook.jacobian_widget import JacobianWidget

    return JacobianWidget(shown, **options)


def playground(shown: Any) -> Any:
    """The live view of a playground."""
    from gradlab.notebook.playground_widget import PlaygroundWidget

    return PlaygroundWidget(shown)


def shown_playground(shown: Any) -> None:
    """Display a playground in IPython: live where widgets can be, else as it stands."""
    from IPython.display import display

    try:
        widget = shown.widget()
    except ImportError:
        display(shown.bundle(), raw=True)
    else:
        display(widget)


def playground_page(shown: Any, *, live: bool) -> str:
    """A playground as a page of its own."""
    from gradlab.notebook.playground_widget import saved_page

    return saved_page(shown, live)


VIEWS["jacobian"] = jacobian
VIEWS["playground"] = playground
VIEWS["shown playground"] = shown_playground
VIEWS["playground page"] = playground_page

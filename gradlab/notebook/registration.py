"""Register how the explorers' live views are opened. Their modules are imported when the first view opens."""

from __future__ import annotations

from typing import Any

from gradlab.explore.views import VIEWS


def jacobian(shown: Any, **options: Any) -> Any:
    """Create the live view of a Jacobian. `options` are those of `Jacobian.widget`."""
    from gradlab.notebook.jacobian_widget import JacobianWidget

    return JacobianWidget(shown, **options)


def playground(shown: Any) -> Any:
    """Create the live view of a playground."""
    from gradlab.notebook.playground_widget import PlaygroundWidget

    return PlaygroundWidget(shown)


def show_playground(shown: Any) -> None:
    """Display a playground in IPython: live if widgets are available, else static."""
    from IPython.display import display

    try:
        widget = shown.widget()
    except ImportError:
        display(shown.bundle(), raw=True)
    else:
        display(widget)


def playground_page(shown: Any, *, live: bool) -> str:
    """Return a playground as a standalone page."""
    from gradlab.notebook.playground_widget import page_of

    return page_of(shown, live)


def question(asked: Any, **options: Any) -> None:
    """Display a lesson's question: with a field or buttons in a notebook, elsewhere as text."""
    from gradlab.notebook.question_display import put

    put(asked, **options)


def show_reveal(shown: Any) -> None:
    """Display an answer, and the object below it."""
    from gradlab.notebook.question_display import show

    show(shown)


def graph(shown: Any, *, outputs: Any, names: Any, space: Any, **options: Any) -> Any:
    """Create the live view of a graph. `outputs` are its tensors, if they still exist."""
    from gradlab.explore.explorer import Explorer
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.around(shown, outputs, space, names), **options)


def stepper(shown: Any, **options: Any) -> Any:
    """Create the live view of the steps of a sweep."""
    from gradlab.notebook.stepper_widget import StepperWidget

    return StepperWidget(shown, **options)


def stepper_page(shown: Any, **options: Any) -> Any:
    """Return the standalone page of the stepper as text. `shown` is the data of the view."""
    from gradlab.notebook.stepper_page import stepper_page

    return stepper_page(shown, **options)


def watch(shown: Any, **options: Any) -> Any:
    """Create the live view of a training."""
    from gradlab.notebook.watch_widget import WatchWidget

    return WatchWidget(shown, **options)


def view_of_a_run(_: Any) -> tuple[str, str]:
    """Return the script and the styles of the view of a run, for a saved page."""
    from gradlab.notebook.watch_view import script_and_styles

    return script_and_styles()


VIEWS.update(
    {
        "graph": graph,
        "jacobian": jacobian,
        "playground": playground,
        "playground page": playground_page,
        "question": question,
        "revealed": show_reveal,
        "shown playground": show_playground,
        "stepper": stepper,
        "stepper page": stepper_page,
        "the view of a run": view_of_a_run,
        "watch": watch,
    }
)

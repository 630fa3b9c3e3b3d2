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
    from gradlab.notebook.playground_widget import page_of

    return page_of(shown, live)


def question(asked: Any, **options: Any) -> None:
    """Ask a lesson's question: in a notebook with a field or with buttons, elsewhere as text."""
    from gradlab.notebook.question_display import put

    put(asked, **options)


def revealed(shown: Any) -> None:
    """Display an answer, and what is to be looked at below it."""
    from gradlab.notebook.question_display import show

    show(shown)


def graph(shown: Any, *, outputs: Any, names: Any, space: Any, **options: Any) -> Any:
    """The live view of a graph, of the tensors `outputs` if they still exist."""
    from gradlab.explore.explorer import Explorer
    from gradlab.notebook.graph_widget import GraphWidget

    return GraphWidget(Explorer.around(shown, outputs, space, names), **options)


def stepper(shown: Any, **options: Any) -> Any:
    """The live view of the steps of a sweep."""
    from gradlab.notebook.stepper_widget import StepperWidget

    return StepperWidget(shown, **options)


def stepper_page(shown: Any, **options: Any) -> Any:
    """The page that steps by itself, as text. `shown`: the data of the view."""
    from gradlab.notebook.stepper_page import stepper_page

    return stepper_page(shown, **options)


def watch(shown: Any, **options: Any) -> Any:
    """The live view of a training."""
    from gradlab.notebook.watch_widget import WatchWidget

    return WatchWidget(shown, **options)


def view_of_a_run(_: Any) -> tuple[str, str]:
    """The script and the styles of that view, for a saved page."""
    from gradlab.notebook.watch_view import script_and_styles

    return script_and_styles()


VIEWS.update(
    {
        "graph": graph,
        "jacobian": jacobian,
        "playground": playground,
        "playground page": playground_page,
        "question": question,
        "revealed": revealed,
        "shown playground": shown_playground,
        "stepper": stepper,
        "stepper page": stepper_page,
        "the view of a run": view_of_a_run,
        "watch": watch,
    }
)

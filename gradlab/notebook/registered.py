"""On import, the explorers know how their live views are opened; what these need is loaded when the first one is."""

from __future__ import annotations

from typing import Any

from gradlab.explore.views import VIEWS


def jacobian(shown: Any, **options: Any) -> Any:
    """The live view of a Jacobian. `options`: as `Jacobian.widget` has them."""
    from gradlab.notebook.jacobian_widget import JacobianWidget

    return JacobianWidget(shown, **options)


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


VIEWS.update({"jacobian": jacobian, "graph": graph, "stepper": stepper, "stepper page": stepper_page})

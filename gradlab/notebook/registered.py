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


VIEWS["jacobian"] = jacobian
VIEWS["graph"] = graph

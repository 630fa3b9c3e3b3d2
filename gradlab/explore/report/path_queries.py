"""Find the paths through which a gradient came, for `Report.paths`."""

from __future__ import annotations

import math
from typing import Any

from gradlab.explore.graph.contributions import flow_of, measure_flow
from gradlab.explore.graph.paths import Paths, leaf_called
from gradlab.explore.trace.data import Trace

TOLERANCE = 1e-3  # relative difference up to which the graph still gives the gradient of the report


def paths_of(trace: Trace, leaf: str, output: Any) -> Paths:
    """Return the paths to a leaf; see `Report.paths`. `output` is a weak reference to the output of the trace, or None."""
    if not trace.nodes:
        raise RuntimeError("this report has no graph. Run the cell without --no-graph.")
    at = leaf_called(trace, leaf, f"paths({leaf!r:.60})")
    flow = flow_of(trace, at)
    out = output() if output is not None else None
    if flow.why_not and out is not None and not trace.freed and len(trace.outputs) == 1:
        try:
            again = measure_flow(trace, at, [out])
        except RuntimeError:  # a saved tensor was changed since
            return Paths(trace, at, flow)
        if flow.total is None or _same(abs(flow.total), abs(again.total or 0.0)):
            flow = again
    return Paths(trace, at, flow)


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE * max(a, b) or not (math.isfinite(a) or math.isfinite(b))

"""What may be asked of a report that it does not show by itself: through which paths a gradient came."""

from __future__ import annotations

import math
from typing import Any

from gradlab.explore.graph.contributions import flow_of, swept
from gradlab.explore.graph.paths import Paths, leaf_called
from gradlab.explore.trace.data import Trace

SAME = 1e-3  # of the norm: the graph gives what the report shows


def paths_of(trace: Trace, leaf: str, output: Any) -> Paths:
    """The paths to a leaf; see `Report.paths`. `output` is a weak reference to what the trace is of, or None."""
    if not trace.nodes:
        raise RuntimeError("this report was made without the graph: leave --no-graph out.")
    at = leaf_called(trace, leaf, f"paths({leaf!r:.60})")
    flow = flow_of(trace, at)
    out = output() if output is not None else None
    if flow.why_not and out is not None and not trace.freed and len(trace.outputs) == 1:
        try:
            again = swept(trace, at, [out])
        except RuntimeError:  # something was written over since
            return Paths(trace, at, flow)
        if flow.total is None or _same(abs(flow.total), abs(again.total or 0.0)):
            flow = again
    return Paths(trace, at, flow)


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= SAME * max(a, b) or not (math.isfinite(a) or math.isfinite(b))

"""The finding of the doctor on a net of the sweep, from a trace recorded with gradlab or torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sweep import Net

from gradlab.explore.doctor.checks.depth import find_vanishing_and_exploding
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.trace.recorder import Recorder


def trace_of_net(net: Net, lib: Any, batch: int = 16, places: int = 8) -> Any:
    """Return the trace of a backward pass through the net, with a random upstream gradient."""
    rng = np.random.default_rng(net.seed + 1)
    acts: dict[str, Callable[[Any], Any]] = {"linear": lambda h: h, "relu": lib.relu, "tanh": lib.tanh, "sigmoid": lib.sigmoid}
    act, arrays = acts[net.activation], net.weights()
    made = {id(array): lib.tensor(array, requires_grad=True) for array in arrays}
    Ws = [made[id(array)] for array in arrays]
    h = lib.tensor(rng.normal(size=(batch, places, net.width) if net.kind == "conv" else (batch, net.width)))
    with Recorder(lambda: {"Ws": Ws}) as recorder:
        for W in Ws:
            h = act(sum(lib.roll(h, k - 1, 1) @ W[k] for k in range(3)) if net.kind == "conv" else h @ W)
        (h * lib.tensor(rng.normal(size=tuple(h.shape)))).sum().backward()
    return recorder.trace()


def claim(net: Net, lib: Any) -> str | None:
    """Return "vanishing", "exploding" or None. For a recurrent net, the gradient norms of its steps decide."""
    for finding in find_vanishing_and_exploding(Case(trace_of_net(net, lib), {})):
        if finding.kind == "recurrent":
            return "vanishing" if finding.evidence["first"] < finding.evidence["last"] else "exploding"
        return finding.kind
    return None

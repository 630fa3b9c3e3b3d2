"""Find hidden layers whose units are equal, because their weights were initialised with a constant.

Equal units compute equal values and get equal gradients, so steps keep them equal. It is certain if steps moved the weights of a
hidden layer and all its units are still equal at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.flow import Flow, flow_of, has_gradients
from gradlab.explore.doctor.context.random_weights import random_weights_advice
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.trace.journal import SAMPLE, sample_size

MIN_STEPS = 2  # that moved the weights
MAX_SPREAD = 3e-7  # of units that differ by rounding errors, relative to their largest weight
MIN_DISTANCE = 1e-5  # by which steps moved the weights, relative to the largest: with less, the spread may not show
MAX_SHARE = 1e-3  # of the spread in this distance
MIN_REMAINDER = 10 * MAX_SHARE  # of the first norm: weights that have shrunk by MAX_SHARE have a spread below that share

declare(
    "equal-units",
    meaning="All units of a hidden layer have the same weights after several steps, because they started with the same weights.",
    why="""
        Units with equal weights compute equal values. If the weights after them are equal too, they also get equal gradients, so
        each step keeps them equal: the layer can do no more than a layer of one unit.
    """,
    remedy="""
        Initialise weights with random numbers, as the layers of `nn` do, or with `nn.init.xavier_uniform_` or
        `nn.init.kaiming_uniform_`. Biases and the weights of normalisation layers may start with a constant.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x = torch.randn(64, 4)
        y = torch.sin(2 * x[:, :1])
        model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
        for layer in (model[0], model[2]):
            nn.init.constant_(layer.weight, 0.5)
            nn.init.zeros_(layer.bias)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)  #!
            loss.backward()
            optimizer.step()
    """,
    healthy={"nn.init.constant_(layer.weight, 0.5)": "nn.init.xavier_normal_(layer.weight)"},
)


@dataclass(frozen=True)
class EqualLayer:
    """A hidden layer with equal units: its node, the leaf of its weight, the number of units and of steps that moved it."""

    at: int
    leaf: int
    units: int
    steps: int


@check("equal-units", keras=True)
def find_equal_units(case: Case) -> Iterable[Finding]:
    """Find hidden layers whose weights moved and whose units are all equal."""
    if not has_gradients(case.trace):
        return
    flow = flow_of(case)
    found: dict[int, EqualLayer] = {}
    for i, weight in enumerate(flow.weights):
        leaf = flow.leaf_of(weight) if weight is not None and weight >= 0 else None
        if leaf is None or leaf in found or leaf not in flow.keys:
            continue
        one = _equal_layer(flow, i, leaf)
        if one is not None:
            found[leaf] = one
    if not found:
        return
    layers = list(found.values())
    names = [flow.nodes[one.leaf].name or flow.nodes[one.leaf].label for one in layers]
    first, counts = layers[0], list(dict.fromkeys(one.units for one in layers))
    units = f"All {counts[0]} units" if len(counts) == 1 else "All units"
    advice = random_weights_advice(flow, list(found), keep_last=False)
    yield Finding(
        "equal-units",
        f"{units} of {join_names(names)}{flow.place(first.at)} still have the same weights after {first.steps} steps that "
        "changed them. They started with the same weights and get the same gradient, so together they compute what one "
        "unit computes.",
        flow.line(first.at),
        first.at,
        f"{advice} This changes the loss." if "`" in advice.partition(":")[2] else advice,
        {"units": tuple(one.units for one in layers), "steps": first.steps, "leaves": tuple(names), "at": first.at},
        worth=6.5,
    )


def _equal_layer(flow: Flow, i: int, leaf: int) -> EqualLayer | None:
    """Return the layer at a node if its weight moved at least `MIN_STEPS` times, its units are equal and other layers follow."""
    key = flow.keys[leaf]
    line = [entry for _, entry in flow.case.timelines.get(key, ())]
    moved = [entry for entry in line if entry.moved and entry.arrived > 0]
    if len(moved) < MIN_STEPS or key not in flow.case.learners:
        return None
    if line[-1].weight < MIN_REMAINDER * line[0].weight:
        return None  # any units are equal, up to rounding, if weight decay has shrunk them
    tensor, axis = flow.case.tensors.get(key), _unit_axis(flow, i, leaf)
    units = 0 if tensor is None or axis is None else tensor.shape[axis]
    distance = sum(entry.moved or 0.0 for entry in moved) / math.sqrt(sample_size(moved[0].size))
    if units < 2 or tensor is None or axis is None or not _are_equal(tensor, axis, distance) or not _is_hidden(flow, i, leaf):
        return None
    biases = [flow.case.tensors.get(flow.keys.get(one, 0)) for one in _biases(flow, i, units)]
    if any(bias is not None and not _are_equal(bias, 0, math.inf) for bias in biases):
        return None  # equal slopes at different points
    return EqualLayer(i, leaf, units, len(moved))


def _is_hidden(flow: Flow, i: int, leaf: int) -> bool:
    """Return whether the result of a layer is the input of another trained layer."""
    behind = {i}
    for t in range(i + 1, len(flow.nodes)):
        if any(edge.source in behind for edge in flow.inputs[t]):
            behind.add(t)
            weight = flow.weights[t]
            other = flow.leaf_of(weight) if weight is not None and weight >= 0 else None
            if other is not None and other != leaf and other in flow.keys:
                return True
    return False


def _unit_axis(flow: Flow, i: int, leaf: int) -> int | None:
    """Return the axis of a weight that has one place for each unit; None if it is not known."""
    properties, ndim = flow.properties[i], len(flow.nodes[leaf].shape or ())
    if properties.product == "layer":
        return None if "Transpose" in flow.kinds.get(flow.nodes[i].module, "") else 0
    edge = next((edge for edge in flow.inputs[i] if flow.leaf_of(edge.source) == leaf), None)
    if edge is None or ndim != 2:
        return None
    at, turned = edge.source, False
    while at != leaf:
        turned ^= flow.properties[at].transposes
        at = flow.inputs[at][0].source
    left = properties.addend is None and edge.argument == 0  # W @ x
    return 0 if left != turned else 1


def _biases(flow: Flow, i: int, units: int) -> list[int]:
    """Return the vectors that are added to the result of a layer."""
    addend = flow.properties[i].addend
    edges = [edge for edge in flow.inputs[i] if edge.argument == addend]
    edges += [edge for use in flow.uses[i] if flow.properties[use.target].adds for edge in flow.inputs[use.target]]
    leaves = [leaf for edge in edges if (leaf := flow.leaf_of(edge.source)) is not None]
    return [leaf for leaf in leaves if math.prod(flow.nodes[leaf].shape or ()) == units]


def _are_equal(tensor: Any, axis: int, distance: float) -> bool:
    """Return whether the places of a tensor along an axis are equal, compared to the distance by which they moved."""
    library = library_of(tensor)
    sample = None if library is None else library.sample(tensor)
    if sample is None or not sample.size or not np.isfinite(sample).all():
        return False
    shape = tuple(tensor.shape)
    stride, step = max(1, -(-math.prod(shape) // SAMPLE)), math.prod(shape[axis + 1 :])
    largest = max(float(sample.max()), -float(sample.min()))
    bound = max(MAX_SPREAD * largest, 0.0 if distance == math.inf else MAX_SHARE * distance)
    apart = stride // math.gcd(stride, step)  # the next unit of which the same place is in the sample
    if distance < MIN_DISTANCE * largest or (apart < shape[axis] and abs(sample[0] - sample[apart * step // stride]) > bound):
        return False
    places = np.unravel_index(np.arange(sample.size) * stride, shape)
    rest = [place for k, place in enumerate(places) if k != axis]
    group = (
        np.ravel_multi_index(rest, [size for k, size in enumerate(shape) if k != axis]) if rest else np.zeros(sample.size, int)
    )
    order = np.argsort(group, kind="stable")
    starts = np.concatenate(([0], np.flatnonzero(np.diff(group[order])) + 1))
    if len(starts) == sample.size:
        return False  # no two units have a place in common
    spread = np.maximum.reduceat(sample[order], starts) - np.minimum.reduceat(sample[order], starts)
    return bool(spread.max() <= bound)

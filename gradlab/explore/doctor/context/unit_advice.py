"""Advice on units that pass no gradient back: saturated ones, and rectifiers that are inactive."""

from __future__ import annotations

from gradlab.explore.doctor.context.flow import Flow, extremes, root_mean_square
from gradlab.explore.doctor.context.step_history import is_changed, large_operand, standardising_advice

MIN_SHARE = 0.1  # of the root mean square of a layer's result, for a bias that explains it
LOW_BIAS = -3.0  # below three standard deviations of a normalised input


def advise_scale(flow: Flow, source: int) -> str:
    """Return what to do if the steps changed the weights, or the input of the layer before is large; "" otherwise."""
    if _is_changed_by_steps(flow, source):
        return "The steps of this cell changed the weights to this size: use a smaller learning rate."
    operand = large_operand(flow, flow.layer_at(source))
    return "" if operand is None else standardising_advice(flow, operand)


def _is_changed_by_steps(flow: Flow, result: int) -> bool:
    """Return whether the steps of the cell changed the size of the parameters of a layer: its matrix, or a bias that is not small
    next to the layer's result."""
    edges = [*flow.inputs[result], *flow.inputs[flow.layer_at(result)]]
    leaves = [leaf for edge in edges if (leaf := flow.leaf_of(edge.source)) is not None]
    return any(leaf in flow.keys and is_changed(flow.case, flow.keys[leaf]) and _counts(flow, leaf, result) for leaf in leaves)


def _counts(flow: Flow, leaf: int, result: int) -> bool:
    bias, value = flow.nodes[leaf].value, flow.nodes[result].value
    if len(flow.nodes[leaf].shape or ()) > 1 or bias is None or value is None or value.odd:
        return True
    return root_mean_square(bias) >= MIN_SHARE * root_mean_square(value)


def advise_dead_units(flow: Flow, i: int) -> str:
    """Return what to do about inactive units, depending on the cause if it is known."""
    source = flow.inputs[i][0].source
    if _is_changed_by_steps(flow, source):
        return "The steps of this cell changed the weights to this size: use a smaller learning rate."
    for edge in (*flow.inputs[source], *flow.inputs[flow.layer_at(source)]):
        leaf = flow.leaf_of(edge.source)
        value = flow.nodes[leaf].value if leaf is not None else None
        if leaf is None or value is None or len(value.shape) > 1 or value.odd:
            continue
        if extremes(value)[0] < LOW_BIAS and root_mean_square(value) > -LOW_BIAS and flow.nodes[leaf].name:
            return f"Start `{flow.nodes[leaf].name}` at 0."
    operand = large_operand(flow, flow.layer_at(source))
    if operand is not None:
        return standardising_advice(flow, operand)
    if flow.case.is_of_keras:
        return 'Use `activation="leaky_relu"`, or a smaller learning rate if steps changed the weights to this size.'
    return "Use leaky_relu, or a smaller learning rate if steps changed the weights to this size."

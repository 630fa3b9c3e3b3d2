"""Advice on units that pass no gradient back: saturated ones, and rectifiers that are inactive."""

from __future__ import annotations

from gradlab.explore.doctor.context.flow import Flow, extremes, root_mean_square
from gradlab.explore.doctor.context.step_history import is_changed, large_operand, standardising_advice

LOW_BIAS = -3.0  # below three standard deviations of a normalised input


def advise_scale(flow: Flow, source: int) -> str:
    """Return what to do if the steps changed the weights, or the input of the layer before is large; "" otherwise."""
    if _is_changed_by_steps(flow, source):
        return "The steps of this cell changed the weights to this size: use a smaller learning rate."
    operand = large_operand(flow, source)
    return "" if operand is None else standardising_advice(flow, operand)


def _is_changed_by_steps(flow: Flow, product: int) -> bool:
    """Return whether the steps of the cell changed the size of the parameters of a layer."""
    leaves = [leaf for edge in flow.inputs[product] if (leaf := flow.leaf_of(edge.source)) is not None]
    return any(leaf in flow.keys and is_changed(flow.case, flow.keys[leaf]) for leaf in leaves)


def advise_dead_units(flow: Flow, i: int) -> str:
    """Return what to do about inactive units, depending on the cause if it is known."""
    source = flow.inputs[i][0].source
    if _is_changed_by_steps(flow, source):
        return "The steps of this cell changed the weights to this size: use a smaller learning rate."
    for edge in flow.inputs[source]:
        leaf = flow.leaf_of(edge.source)
        value = flow.nodes[leaf].value if leaf is not None else None
        if leaf is None or value is None or len(value.shape) > 1 or value.odd:
            continue
        if extremes(value)[0] < LOW_BIAS and root_mean_square(value) > -LOW_BIAS and flow.nodes[leaf].name:
            return f"Start `{flow.nodes[leaf].name}` at 0."
    operand = large_operand(flow, source)
    if operand is not None:
        return standardising_advice(flow, operand)
    return "Use leaky_relu, or a smaller learning rate if steps changed the weights to this size."

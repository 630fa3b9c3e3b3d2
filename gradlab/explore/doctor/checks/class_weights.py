"""Explain a loss of targets whose weights are all 0: a sum that is 0, or a mean that is 0 / 0."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.code_edits import is_function, parse_expression
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.libraries import library_of
from gradlab.explore.module_paths import is_model
from gradlab.explore.trace.values import Value

IGNORED = -100  # the default of `ignore_index`


def find_zero_weights(flow: Flow, at: int) -> tuple[str, dict[str, object]] | None:
    """Return which weights of a loss are 0, and the evidence; None if a target has a weight above 0."""
    weight, name = _weights(flow, at)
    if weight is None or not weight.size:
        return None
    named = f" of `{name}`" if name else ""
    if not weight.any():
        return f"all {weight.size} weights{named} are 0", {"classes": int(weight.size), "weights": name}
    loss = flow.properties[at].loss
    targets = _targets(flow, at) if loss is not None and loss.takes == "log-probabilities" else None
    if targets is None:
        return None
    counted = targets[(targets >= 0) & (targets < weight.size) & (targets != _ignored_index(flow, at))]
    classes = np.unique(counted)
    if not len(classes) or weight[classes].any():
        return None
    shown = ", ".join(map(str, classes[:4].tolist())) + (" …" if len(classes) > 4 else "")
    which = f"class {shown}, the only one that occurs, has" if len(classes) == 1 else f"the classes that occur, {shown}, have"
    return (
        f"{which} weight 0{' in' + named[3:] if named else ''}",
        {"weights": name, "occurring": tuple(classes[:4].tolist())},
    )


def _weights(flow: Flow, at: int) -> tuple[np.ndarray | None, str]:
    """Return the class weights of a loss, and the user's name for them."""
    call = _call(flow, at)
    given = next((one.value for one in call.keywords if one.arg == "weight"), None) if call is not None else None
    if given is None and call is not None and len(call.args) > 2 and is_function(call):
        given = call.args[2]
    array = _array(flow, ast.unparse(given)) if given is not None else None
    if given is not None and array is not None:
        return array, _tensor_name(flow, ast.unparse(given))
    operand = next((one for one in flow.nodes[at].operands if one.argument == 2 and one.value is not None), None)
    if operand is not None and operand.value is not None and _is_float(operand.value):
        array = _array(flow, operand.text)
        if array is not None and array.shape == operand.value.shape:
            return array, _tensor_name(flow, operand.text)
        if operand.value.numbers is not None:
            return np.array(operand.value.numbers, float), ""
        return (np.zeros(operand.value.size), "") if operand.value.all_zero else (None, "")
    loss = _value(flow, ast.unparse(call.func)) if call is not None else None
    weight = getattr(loss, "weight", None) if is_model(loss) else None
    if weight is None or call is None:
        return None, ""
    return _to_array(weight), f"{ast.unparse(call.func)}.weight"


def _targets(flow: Flow, at: int) -> np.ndarray | None:
    operand = next((one for one in flow.nodes[at].operands if one.argument == 1 and one.value is not None), None)
    if operand is not None and operand.value is not None and operand.value.numbers is not None:
        return np.array(operand.value.numbers, int)
    if operand is not None and operand.text and (array := _array(flow, operand.text)) is not None:
        return array.astype(int)
    call = _call(flow, at)
    if call is None or len(call.args) < 2:
        return None
    array = _array(flow, ast.unparse(call.args[1]))
    return None if array is None else array.astype(int)


def _ignored_index(flow: Flow, at: int) -> int:
    """Return the target that a loss ignores: its `ignore_index`, by default -100."""
    call = _call(flow, at)
    if call is None:
        return IGNORED
    for keyword in call.keywords:
        if keyword.arg == "ignore_index":
            with suppress(ValueError):
                return int(ast.literal_eval(keyword.value))
    index = getattr(_value(flow, ast.unparse(call.func)), "ignore_index", IGNORED)
    return index if isinstance(index, int) else IGNORED


def _call(flow: Flow, at: int) -> ast.Call | None:
    place = flow.nodes[at].place
    tree = parse_expression(place.source) if place is not None else None
    return tree if isinstance(tree, ast.Call) else None


def _is_float(value: Value) -> bool:
    return value.dtype.startswith(("float", "bfloat"))


def _value(flow: Flow, name: str) -> Any:
    return flow.case.namespace.get(name)


def _tensor_name(flow: Flow, text: str) -> str:
    return text if library_of(_value(flow, text)) is not None else ""


def _array(flow: Flow, text: str) -> np.ndarray | None:
    """Return the values of a named tensor, or of an expression such as `torch.zeros(3)`."""
    value = _value(flow, text)
    if library_of(value) is not None:
        return _to_array(value)
    tree = parse_expression(text)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "zeros" and len(tree.args) == 1:
        with suppress(ValueError):
            return np.zeros(ast.literal_eval(tree.args[0]))
    return None


def _to_array(tensor: Any) -> np.ndarray | None:
    with suppress(Exception):
        return np.asarray(tensor.detach().cpu().numpy())
    return None

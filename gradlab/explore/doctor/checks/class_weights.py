"""A mean over targets whose class weights add up to 0: 0 / 0, though no target is ignored."""

from __future__ import annotations

import ast
from contextlib import suppress
from typing import Any

import numpy as np

from gradlab.explore.doctor.context.code_edits import expression
from gradlab.explore.doctor.context.flow import Flow
from gradlab.explore.libraries import library_of
from gradlab.explore.names import is_model
from gradlab.explore.trace.values import Value

IGNORED = -100  # unless it is given


def zero_weights(flow: Flow, at: int) -> tuple[str, str, dict[str, object]] | None:
    """Return why the class weights of a loss add up to 0, what to do, and the evidence; None where they do not."""
    weight, name = _weights(flow, at)
    if weight is None or not weight.size:
        return None
    named = f" of `{name}`" if name else ""
    if not weight.any():
        return (
            f"all {weight.size} weights{named} are 0, and 0 / 0 is NaN",
            "Give the classes that occur weights above 0.",
            {"classes": int(weight.size), "weights": name},
        )
    targets = _targets(flow, at)
    if targets is None:
        return None
    counted = targets[(targets >= 0) & (targets < weight.size)]
    classes = np.unique(counted)
    if not len(classes) or weight[classes].any():
        return None
    shown = ", ".join(map(str, classes[:4].tolist())) + (" …" if len(classes) > 4 else "")
    which = f"class {shown}, the only one that occurs, has" if len(classes) == 1 else f"the classes that occur, {shown}, have"
    return (
        f"{which} weight 0{' in' + named[3:] if named else ''}, and 0 / 0 is NaN",
        "Give the classes that occur weights above 0.",
        {"weights": name, "occurring": tuple(classes[:4].tolist())},
    )


def _weights(flow: Flow, at: int) -> tuple[np.ndarray | None, str]:
    """The class weights of a loss, and what the user calls them."""
    call = _call(flow, at)
    given = next((one.value for one in call.keywords if one.arg == "weight"), None) if call is not None else None
    array = _array(flow, ast.unparse(given)) if given is not None else None
    if given is not None and array is not None:
        return array, _name(flow, ast.unparse(given))
    operand = next((one for one in flow.nodes[at].operands if one.argument == 2 and one.value is not None), None)
    if operand is not None and operand.value is not None and _is_float(operand.value):
        array = _array(flow, operand.text)
        if array is not None and array.shape == operand.value.shape:
            return array, _name(flow, operand.text)
        if operand.value.numbers is not None:
            return np.array(operand.value.numbers, float), ""
        return (np.zeros(operand.value.size), "") if operand.value.all_zero else (None, "")
    loss = _value(flow, ast.unparse(call.func)) if call is not None else None
    held = getattr(loss, "weight", None) if is_model(loss) else None
    if held is None or call is None:
        return None, ""
    return _numbers(held), f"{ast.unparse(call.func)}.weight"


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


def _call(flow: Flow, at: int) -> ast.Call | None:
    place = flow.nodes[at].place
    tree = expression(place.source) if place is not None else None
    return tree if isinstance(tree, ast.Call) else None


def _is_float(value: Value) -> bool:
    return value.dtype.startswith(("float", "bfloat"))


def _value(flow: Flow, name: str) -> Any:
    return flow.case.namespace.get(name)


def _name(flow: Flow, text: str) -> str:
    return text if library_of(_value(flow, text)) is not None else ""


def _array(flow: Flow, text: str) -> np.ndarray | None:
    """The numbers of a named tensor, or of `torch.zeros(3)` written where it is used."""
    value = _value(flow, text)
    if library_of(value) is not None:
        return _numbers(value)
    tree = expression(text)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute) and tree.func.attr == "zeros" and len(tree.args) == 1:
        with suppress(ValueError):
            return np.zeros(ast.literal_eval(tree.args[0]))
    return None


def _numbers(tensor: Any) -> np.ndarray | None:
    with suppress(Exception):
        return np.asarray(tensor.detach().cpu().numpy())
    return None

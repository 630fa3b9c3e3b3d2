"""Explain errors of values that cannot be differentiated: numbers and arrays without `backward`, tensors that NumPy refuses,
inference tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradlab.diagnose.source_locations import receiver, source_of
from gradlab.explore.doctor.context.case import Case, cell_line
from gradlab.explore.doctor.context.code_edits import argument, instead, parenthesize
from gradlab.explore.doctor.context.cuts import kind_of, on_line
from gradlab.explore.doctor.context.program import bound_names
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check
from gradlab.explore.trace.data import Cut


@check("numpy", "item", "no_grad", looks_at=ERROR)
def explain_refusals(case: Case) -> Iterable[Finding]:
    """Explain backward() on a number or an array, a conversion to NumPy that fails, and uses of inference tensors."""
    error = case.error
    if error is None:
        return
    line = case.scene.line if case.scene is not None else None
    message = str(error)
    if isinstance(error, AttributeError) and error.name == "backward":
        number = isinstance(error.obj, (int, float, complex)) and not isinstance(error.obj, np.generic)
        kind = "item" if number else "numpy"
        cut = _last_cut(case, kind)
        place = cut.place if cut is not None else None
        what = type(error.obj).__name__
        if isinstance(error.obj, (int, float, complex, np.ndarray, np.generic)):
            where = f": `{place.source}`{on_line(place)} converted the values" if place else ""
            yield Finding(
                kind,
                f"backward() is called{_on_line(line)} on a {what}, which has no history{where}.",
                (cell_line(place) if cut is not None else None) or line,
                fix=_keep_tensor_fix(case.scene, kind)
                or "Compute with the tensors themselves. Convert them only for printing or logging.",
                evidence={"type": what},
                worth=9.0,
                lines=() if line is None else (line,),
            )
    elif "Can't call numpy() on Tensor that requires grad" in message:
        text = case.scene.place.text if case.scene is not None else ""
        yield Finding(
            "numpy",
            f"{f'`{text}`{_on_line(line)}' if text else 'The code'} converts a tensor that requires a gradient to a NumPy array, "
            "and NumPy cannot differentiate it.",
            line,
            fix=f"{_detach_fix(case.scene)}To differentiate it, use the library's functions instead of NumPy's.",
            worth=9.0,
        )
    elif "nference tensor" in message:
        cut = next((cut for cut in (case.trace.cuts if case.trace else ()) if cut.how == "inference_mode"), None)
        where = f"`{cut.place.source}`{on_line(cut.place)}" if cut is not None and cut.place is not None else "A tensor"
        yield Finding(
            "no_grad",
            f"{where} was computed in inference_mode(), and{_on_line(line)} it is used in a computation that is differentiated, "
            "which is not allowed.",
            (cell_line(cut.place) if cut is not None else None) or line,
            fix="Compute it outside inference_mode(): under no_grad() if it needs no gradient, otherwise without both.",
            worth=9.0,
            lines=() if line is None else (line,),
        )


def _detach_fix(scene: Scene | None) -> str:
    """Return the advice to detach a tensor before NumPy gets it, or ""."""
    node: Any = scene.node if scene is not None else None
    if scene is None or not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "__array__") and not scene.is_module(node.func.value):
        own: Any = node.func.value
    else:
        own = next((one for one, value in scene.operands if value.requires_grad), None)
    code = scene.replace(f"{parenthesize(source_of(own))}.detach()", own) if own is not None else ""
    return f"To plot or print its values, detach it: {code}. " if code else ""


def _keep_tensor_fix(scene: Scene | None, kind: str) -> str:
    """Return the advice to keep the tensor instead of its number or array, or ""."""
    name = receiver(scene.place, "backward") if scene is not None else ""
    if scene is None or not name.isidentifier():
        return ""
    assignment = next(
        (node for node in reversed(scene.scope) if name in bound_names(node) and node.lineno <= scene.place.line), None
    )
    value = assignment.value if isinstance(assignment, ast.Assign) else None
    if isinstance(value, ast.Call):
        method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        is_method = method == kind
        is_float = kind == "item" and isinstance(value.func, ast.Name) and value.func.id == "float"
        if is_method or is_float:
            return f"Keep the tensor: {instead(argument(source_of(value)), source_of(value))}."
    return ""


def _last_cut(case: Case, kind: str) -> Cut | None:
    """Return the last recorded cut of a kind that has a history behind it."""
    return next((cut for cut in reversed(case.trace.cuts if case.trace else ()) if kind_of(cut.how) == kind and cut.keys), None)


def _on_line(line: int | None) -> str:
    return "" if line is None else f" on line {line}"

"""What an error that ended the cell tells of a gradient: numbers and arrays that have no `backward`, tensors that NumPy may not
have, inference tensors that a gradient needs."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import numpy as np

from gradlab.diagnose.source_locations import receiver, source_of
from gradlab.explore.doctor.context.case import Case, cell_line
from gradlab.explore.doctor.context.code_edits import argument, grouped, instead
from gradlab.explore.doctor.context.cuts import kind_of, on
from gradlab.explore.doctor.context.program import bound
from gradlab.explore.doctor.context.scene import Scene
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import ERROR, check
from gradlab.explore.trace.data import Cut


@check("numpy", "item", "no_grad", "frozen", "rebound-leaf", looks_at=ERROR)
def explain_refusals(case: Case) -> Iterable[Finding]:
    """Findings on the error with which the cell ended."""
    error = case.error
    if error is None:
        return
    line = case.scene.line if case.scene is not None else None
    said = str(error)
    if isinstance(error, AttributeError) and error.name == "backward":
        number = isinstance(error.obj, (int, float, complex)) and not isinstance(error.obj, np.generic)
        ended = _left(case, "item" if number else "numpy")
        what = type(error.obj).__name__
        kind = "item" if number else "numpy"
        if isinstance(error.obj, (int, float, complex, np.ndarray, np.generic)):
            where = f": `{ended.place.source}`{on(ended.place)} took the values out" if ended is not None and ended.place else ""
            yield Finding(
                kind,
                f"backward() is called{_at(line)} on a {what}, which has no history as a tensor has{where}.",
                (cell_line(ended.place) if ended is not None else None) or line,
                fix=_kept(case.scene, kind)
                or "Go on with the tensors themselves. Take numbers out only to print or to keep them.",
                evidence={"type": what},
                worth=9.0,
                lines=() if line is None else (line,),
            )
    elif "Can't call numpy() on Tensor that requires grad" in said:
        text = case.scene.place.text if case.scene is not None else ""
        yield Finding(
            "numpy",
            f"{f'`{text}`{_at(line)}' if text else 'It'} makes a NumPy array of a tensor that requires a gradient, and NumPy "
            "cannot differentiate it.",
            line,
            fix=f"{_detached(case.scene)}To differentiate it, use the library's own functions in place of NumPy's.",
            worth=9.0,
        )
    elif "nference tensor" in said:
        cut = next((cut for cut in (case.trace.cuts if case.trace else ()) if cut.how == "inference_mode"), None)
        where = f"`{cut.place.source}`{on(cut.place)}" if cut is not None and cut.place is not None else "A tensor"
        yield Finding(
            "no_grad",
            f"{where} was made in inference_mode(), and{_at(line)} it enters a computation that is to be differentiated, "
            "which is not allowed.",
            (cell_line(cut.place) if cut is not None else None) or line,
            fix="Make it outside of inference_mode(): under no_grad() if nothing of it is to learn, else without either.",
            worth=9.0,
            lines=() if line is None else (line,),
        )


def _detached(scene: Scene | None) -> str:
    """The values alone, for a plot or a print."""
    node: Any = scene.node if scene is not None else None
    if scene is None or not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("numpy", "__array__") and not scene.is_module(node.func.value):
        own: Any = node.func.value
    else:
        own = next((one for one, value in scene.operands if value.requires_grad), None)
    code = scene.swapped(f"{grouped(source_of(own))}.detach()", own) if own is not None else ""
    return f"For a plot or a print, take its values: {code}. " if code else ""


def _kept(scene: Scene | None, kind: str) -> str:
    """The tensor whose number was taken out, in place of it."""
    name = receiver(scene.place, "backward") if scene is not None else ""
    if scene is None or not name.isidentifier():
        return ""
    made = next((node for node in reversed(scene.scope) if name in bound(node) and node.lineno <= scene.place.line), None)
    value = made.value if isinstance(made, ast.Assign) else None
    if isinstance(value, ast.Call):
        method = value.func.attr if isinstance(value.func, ast.Attribute) else ""
        taken = (kind == "item" and method == "item") or (kind == "numpy" and method == "numpy")
        number = kind == "item" and isinstance(value.func, ast.Name) and value.func.id == "float"
        if taken or number:
            return f"Keep the tensor: {instead(argument(source_of(value)), source_of(value))}."
    return ""


def _left(case: Case, kind: str) -> Cut | None:
    return next((cut for cut in reversed(case.trace.cuts if case.trace else ()) if kind_of(cut.how) == kind and cut.keys), None)


def _at(line: int | None) -> str:
    return "" if line is None else f" on line {line}"

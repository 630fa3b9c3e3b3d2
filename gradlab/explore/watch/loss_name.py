"""The name of a loss, read from the call that logs it."""

from __future__ import annotations

import ast
from types import FrameType

from gradlab.diagnose.source_locations import location_of

READS = ("item", "detach", "cpu", "mean")  # methods that may be called on a loss to log it
CONVERTS = ("float",)


def logged_name(frame: FrameType, method: str) -> str:
    """Return the name of the argument in a running call `w.log(NAME)`, "rmse" also for `w.log(rmse.item())`; "" without one."""
    location = location_of((frame.f_code, frame.f_lasti))
    node = None if location is None else location.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != method:
        return ""
    given = node.args[0] if node.args else next((one.value for one in node.keywords), None)
    while isinstance(given, ast.Call):
        if isinstance(given.func, ast.Attribute) and given.func.attr in READS:
            given = given.func.value
        elif isinstance(given.func, ast.Name) and given.func.id in CONVERTS and given.args:
            given = given.args[0]
        else:
            return ""
    return ast.unparse(given) if isinstance(given, (ast.Name, ast.Attribute)) else ""

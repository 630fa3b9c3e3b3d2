"""Names of leaves that stand for another tensor from some sweep on, while the optimizer holds the one before."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check


def replaced_leaves(case: Case) -> dict[int, str]:
    """The leaves that got a gradient under a name whose earlier tensor an optimizer holds and steps, with that name."""
    trace = case.trace
    if trace is None or not case.steps:
        return {}
    held = {key for one in case.optimizers for key in one.keys} | {key for event in case.steps for key in event.held}
    bearers: dict[str, dict[int, bool]] = {}
    for swept in trace.journal:
        for entry in swept.entries:
            if entry.name:
                bearers.setdefault(entry.name, {})[entry.key] = entry.arrived > 0
    replaced_names: dict[int, str] = {}
    for name, keys in bearers.items():
        first, *later = keys
        if first in held and later and not held & {*later}:
            replaced_names |= {key: name for key in later if keys[key]}
    return replaced_names


@check("stale-optimizer")
def find_replaced_leaves(case: Case) -> Iterable[Finding]:
    """A leaf was made anew under its name, and the optimizer goes on stepping the old one."""
    names: dict[str, int] = {}
    for name in replaced_leaves(case).values():
        names[name] = names.get(name, 0) + 1
    for name, times in names.items():
        statement = _made_anew(case, name)
        text = f"`{ast.unparse(statement)}` on line {statement.lineno} gives" if statement is not None else "The program gives"
        holder = next((one.name for one in case.optimizers if one.name), "") or case.steps[-1].optimizer
        yield Finding(
            "stale-optimizer",
            f"{text} the name `{name}` to a new tensor{f', {times} times' * (times > 1)}: `{holder}` holds the one before, and "
            "its step() does not move what the gradient is of.",
            statement.lineno if statement is not None else None,
            fix=_written_into(case, name, statement),
            evidence={"name": name, "times": times},
            worth=8.5,
        )


def _written_into(case: Case, name: str, statement: ast.stmt | None) -> str:
    """How the tensor that the optimizer holds gets the new numbers, or how it is made once."""
    if not isinstance(statement, ast.Assign) or name not in _parts(statement):
        return "Make it once, before the optimizer."
    value = statement.value
    while isinstance(value, ast.Call) and (inner := _within(value)) is not None:
        value = inner
    text = ast.unparse(value)
    code = instead(case.spelled(f"with gradlab.no_grad(): {name}.copy_({text})"), ast.unparse(statement))
    return f"Write into the tensor that the optimizer holds: {code}."


def _within(call: ast.Call) -> ast.expr | None:
    """What a call makes a leaf of: `x` of `x.detach().requires_grad_()` and of `nn.Parameter(x)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("detach", "requires_grad_", "clone"):
        return func.value
    is_parameter = ast.unparse(func).rpartition(".")[2] == "Parameter"
    return call.args[0] if is_parameter and len(call.args) == 1 else None


def _parts(statement: ast.Assign) -> list[str]:
    """The expressions in what a statement assigns."""
    return [ast.unparse(part) for part in ast.walk(statement.value) if isinstance(part, ast.expr)]


def _made_anew(case: Case, name: str) -> ast.stmt | None:
    """The last statement that binds a name, or an attribute, in a loop if there is one that does."""
    assignments = [
        node
        for node in case.program.statements
        if isinstance(node, ast.Assign) and name in [ast.unparse(target) for target in node.targets]
    ]
    again = [node for node in assignments if name in _parts(node)]
    return next(reversed(again or assignments), None)

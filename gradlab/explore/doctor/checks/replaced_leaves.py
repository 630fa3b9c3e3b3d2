"""Leaves and modules that are created again under their name, while the optimizer holds the old tensors."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from gradlab.diagnose.source_locations import clip
from gradlab.explore.doctor.context.case import Case, Learner
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check
from gradlab.explore.module_paths import prefixes


def replaced_leaves(case: Case) -> dict[int, str]:
    """Return the name of each leaf that got a gradient while an optimizer holds an earlier tensor of this name.

    Returns
    -------
    dict of {int: str}
        By the key of the new leaf.
    """
    trace = case.trace
    if trace is None or not case.steps:
        return {}
    held = {key for one in case.optimizers for key in one.keys} | {key for event in case.steps for key in event.held}
    leaves: dict[str, dict[int, bool]] = {}  # whether each got a gradient, by name and key
    for swept in trace.journal:
        for entry in swept.entries:
            if entry.name:
                leaves.setdefault(entry.name, {})[entry.key] = entry.arrived > 0
    names: dict[int, str] = {}
    for name, keys in leaves.items():
        first, *later = keys
        if first in held and later and not held & {*later}:
            names |= {key: name for key in later if keys[key]}
    return names


def find_replacement(case: Case, learners: Sequence[Learner], optimizer: str) -> str:
    """Return the statement that assigns a module of all these leaves after an optimizer was made: "`net[2] = …` on line 3".

    "" if the cell has no such statement outside functions.
    """
    made = next(iter(case.program.assignments(optimizer)), None)
    paths = set.intersection(*({*prefixes(one.name)[1:]} for one in learners))
    for node in case.program.statements if made is not None else ():
        is_later = made is not None and node.lineno > made.lineno and node in case.program.outer
        if is_later and isinstance(node, ast.Assign) and paths & {ast.unparse(target) for target in node.targets}:
            return f"`{clip(ast.unparse(node))}` on line {node.lineno}"
    return ""


@check("stale-optimizer")
def find_replaced_leaves(case: Case) -> Iterable[Finding]:
    """Find leaves that are created again while the optimizer steps the old tensor."""
    names: dict[str, int] = {}
    for name in replaced_leaves(case).values():
        names[name] = names.get(name, 0) + 1
    for name, times in names.items():
        statement = _creation(case, name)
        text = f"`{ast.unparse(statement)}` on line {statement.lineno}" if statement is not None else "The program"
        holder = next((one.name for one in case.optimizers if one.name), "") or case.steps[-1].optimizer
        yield Finding(
            "stale-optimizer",
            f"{text} assigns a new tensor to the name `{name}`{f', {times} times' * (times > 1)}: `{holder}` holds the old one, "
            "so its step() does not change the tensor that gets the gradient.",
            statement.lineno if statement is not None else None,
            fix=_suggest_copy(case, name, statement),
            evidence={"name": name, "times": times},
            worth=8.5,
        )


def _suggest_copy(case: Case, name: str, statement: ast.stmt | None) -> str:
    """Return advice that copies the new values into the tensor that the optimizer holds, or creates the leaf once."""
    if not isinstance(statement, ast.Assign) or name not in _parts(statement):
        return "Create it once, before the optimizer."
    value = statement.value
    while isinstance(value, ast.Call) and (inner := _source_of_leaf(value)) is not None:
        value = inner
    text = ast.unparse(value)
    code = instead(case.spell(f"with gradlab.no_grad(): {name}.copy_({text})"), ast.unparse(statement))
    return f"Write into the tensor that the optimizer holds: {code}."


def _source_of_leaf(call: ast.Call) -> ast.expr | None:
    """Return the operand of a call that makes a leaf: `x` in `x.requires_grad_()` and in `nn.Parameter(x)`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in ("detach", "requires_grad_", "clone"):
        return func.value
    is_parameter = ast.unparse(func).rpartition(".")[2] == "Parameter"
    return call.args[0] if is_parameter and len(call.args) == 1 else None


def _parts(statement: ast.Assign) -> list[str]:
    """Return the expressions in the value of an assignment."""
    return [ast.unparse(part) for part in ast.walk(statement.value) if isinstance(part, ast.expr)]


def _creation(case: Case, name: str) -> ast.stmt | None:
    """Return the last assignment to a name or an attribute, if possible one that also reads it."""
    assignments = [
        node
        for node in case.program.statements
        if isinstance(node, ast.Assign) and name in [ast.unparse(target) for target in node.targets]
    ]
    again = [node for node in assignments if name in _parts(node)]
    return next(reversed(again or assignments), None)

"""Names that stood for a leaf and stand for something computed from it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from gradlab.diagnose.requires_grad_calls import (
    FIX_EARLY_REQUEST,
    FIX_REBOUND_NAME,
    move_request_last,
    requires_grad_in,
    requires_grad_inside,
)
from gradlab.diagnose.source_locations import as_update
from gradlab.explore.doctor.context.case import Case, listed
from gradlab.explore.doctor.context.code_edits import CLEARS, cleared, grouped, instead
from gradlab.explore.doctor.context.program import bound, read
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of

WALKED = 2000  # nodes that are looked at behind a rebound name


declare(
    "rebound-leaf",
    meaning="the name of a leaf now stands for something computed from it",
    why="",
    remedy="",
    fault="",
    healthy="",
)


@check("rebound-leaf")
def find_rebound_leaves(case: Case) -> Iterable[Finding]:
    """A name that stood for a leaf stands for something computed from it."""
    if case.trace is None:
        return
    roots = {node.name for node in case.trace.nodes if node.kind == "output"} | {swept.root for swept in case.trace.journal}
    for name, value in case.namespace.items():
        tensors = list(value) if type(value) in (list, tuple) else [value]
        tensors = [one for one in tensors if library_of(one) is not None]
        if case.error is not None and len(tensors) == 1 and tensors[0] is value and not value.requires_grad:
            yield from _update_without_history(case, name, value)
            continue
        tensors = [one for one in tensors if one.requires_grad and not one.is_leaf]
        if not tensors or name.startswith("_") or name in roots:  # a result is no leaf, and is not meant to be one
            continue
        statements = [node for node in case.program.assigned(name) if isinstance(node, (ast.Assign, ast.AnnAssign))]
        assignment = next((node for node in reversed(statements) if name in read(node)), None)
        inline = next((node for node in reversed(statements) if requires_grad_inside(node)), None)
        if assignment is None and inline is not None and inline is statements[-1] and type(value) not in (list, tuple):
            if _lost_leaf(case, tensors[0]):
                yield _asked_too_early(name, inline)
        elif (
            assignment is not None
            and _was_leaf(case, name, value, statements[: statements.index(assignment)])
            and any(_lost_leaf(case, one) for one in tensors)
        ):
            yield _rebound(case, name, assignment, type(value) in (list, tuple))
    yield from _written_over(case)
    yield from _left_behind(case)


def _written_over(case: Case) -> Iterable[Finding]:
    """The same of an attribute or an item, `self.w = self.w - …`, and of a dictionary that is built anew of itself."""
    for statement in case.program.statements:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        place = ast.unparse(target)
        if isinstance(target, ast.Name):
            held = case.namespace.get(place)
            tensors = list(held.values()) if type(held) is dict and place in read(statement) else []
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            reads = any(isinstance(node, ast.expr) and ast.unparse(node) == place for node in ast.walk(statement.value))
            tensors = _held_at(case, target) if reads else []
        else:
            continue
        tensors = [one for one in tensors if library_of(one) is not None and one.requires_grad and not one.is_leaf]
        if any(_lost_leaf(case, one, swept=True) for one in tensors):
            yield _rebound(case, place, statement, isinstance(target, ast.Name))


def _held_at(case: Case, target: ast.Attribute | ast.Subscript) -> list[Any]:
    """What an attribute or an item of the user's own objects holds now; of an unknown one, `self.w`, of all that have it."""
    if isinstance(target, ast.Subscript):
        holder = case.namespace.get(ast.unparse(target.value))
        return list(holder.values()) if type(holder) is dict else list(holder) if type(holder) is list else []
    own = [one for one in case.namespace.values() if type(one).__module__ == "__main__"]
    return [value for one in own if (value := getattr(one, "__dict__", {}).get(target.attr)) is not None]


def _left_behind(case: Case) -> Iterable[Finding]:
    """A step that gives a name of its own to its result, `p = p - rate * p.grad` for each `p`: the leaves stay as they are."""
    trace = case.trace
    assert trace is not None
    entries = [entry for swept in trace.journal for entry in swept.entries if entry.arrived > 0]
    if not entries or any(entry.moved != 0 or entry.written for entry in entries):
        return
    for tree, line, where in [
        (case.program.tree, 0, ""),
        *((one.tree, one.line, f" in `{one.name}`, called on line {one.line}") for one in case.program.helpers(case.namespace)),
    ]:
        for name, statement in _local_steps(tree):
            still = list(dict.fromkeys(entry.name for entry in entries if entry.name))
            yield Finding(
                "rebound-leaf",
                f"`{ast.unparse(statement)}`{where or f' on line {statement.lineno}'} gives the name `{name}` to a result, and "
                f"leaves what it stood for as it is: {listed(still) or 'the leaves'} did not move.",
                line or statement.lineno,
                fix=_in_place(case, as_update(statement, name), ast.unparse(statement)),
                evidence={"name": name, "leaves": still},
                worth=8.5,
            )
            return


def _local_steps(tree: ast.AST) -> Iterable[tuple[str, ast.Assign]]:
    """The assignments to the variable of a loop, or to an argument that is not returned, that make a step of its `.grad`."""
    for around in ast.walk(tree):
        if isinstance(around, ast.For):
            names = bound(around)
        elif isinstance(around, ast.FunctionDef):
            returned = {name for node in ast.walk(around) if isinstance(node, ast.Return) for name in read(node)}
            names = {argument.arg for argument in around.args.args} - returned
        else:
            continue
        for node in ast.walk(around):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in names and as_update(node, name):
                    yield name, node


def _update_without_history(case: Case, name: str, value: Any) -> Iterable[Finding]:
    """A leaf's name was given to what was computed from it under no_grad, and then the program failed."""
    statements = [node for node in case.program.statements if isinstance(node, ast.Assign) and name in bound(node)]
    assignment = next((node for node in reversed(statements) if name in read(node)), None)
    if assignment is None or not _was_leaf(case, name, value, []):
        return
    update = as_update(assignment, name)
    yield Finding(
        "rebound-leaf",
        f"`{ast.unparse(assignment)}` on line {assignment.lineno} gives the name `{name}` to a new tensor, made under "
        f"no_grad(), which requires no gradient: backward() writes no `{name}.grad` any more.",
        assignment.lineno,
        fix=_in_place(case, update or f"{name}.copy_({ast.unparse(assignment.value)})", ast.unparse(assignment)),
        evidence={"name": name},
        worth=8.5,
    )


def _asked_too_early(name: str, statement: Any) -> Finding:
    return Finding(
        "rebound-leaf",
        f"`{ast.unparse(statement)}` on line {statement.lineno}: the gradient was asked for before the last "
        f"operation, so `{name}` "
        f"is computed from a leaf that has no name, and `{name}.grad` stays None.",
        statement.lineno,
        fix=sentence(
            f"{FIX_EARLY_REQUEST.format(name=name, value=move_request_last(statement.value))} in place of "
            f"`{ast.unparse(statement)}`"
        ),
        evidence={"name": name},
        worth=8.5,
    )


def _rebound(case: Case, name: str, statement: Any, several: bool) -> Finding:
    update = "" if several else as_update(statement, name) or _step_of(case, statement, name)
    by_gradient = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement))
    wanted = by_gradient or case.program.reads(name, "grad") is not None or case.error is not None
    looped = any(isinstance(node, (ast.For, ast.While)) and statement in ast.walk(node) for node in case.program.statements)
    by_sweep = _from_autograd_grad(case, statement)
    text = ast.unparse(statement)
    inner = _helper_step(case, statement)
    if update:
        fix = _in_place(case, update, text)
    elif inner is not None:
        fix = _in_place(case, as_update(inner[1], inner[0]), ast.unparse(inner[1]))
    elif several and (all_of := _updates(case, statement)):
        fix = _in_place(case, all_of, text)
    elif several:
        fix = f"Update the leaves themselves, in place and under no_grad(), and leave `{name}` as it is."
    elif by_gradient or by_sweep:
        fix = _in_place(case, f"{name}.copy_({ast.unparse(statement.value)})", text)
    elif looped or not isinstance(statement, ast.Assign):
        fix = sentence(FIX_REBOUND_NAME.format(name=name))
    else:
        again = f"{name} = {grouped(ast.unparse(statement.value))}.detach().requires_grad_()"
        fix = f"{sentence(FIX_REBOUND_NAME.format(name=name))[:-1]}; or make a leaf of the result: {instead(again, text)}."
    return Finding(
        "rebound-leaf",
        f"`{ast.unparse(statement)}` on line {statement.lineno} gives the name `{name}` to "
        f"{'results' if several else 'a result'}: from there on `{name}` {'are no leaves' if several else 'is no leaf'}, and "
        f"backward() writes {'their' if several else 'its'} `.grad` no more.",
        statement.lineno,
        fix=fix,
        evidence={"name": name},
        remark=by_sweep or (looped and not wanted and not any(case.optimizers)),
        worth=8.5,
    )


def _in_place(case: Case, update: str, old: str) -> str:
    """The advice to write into the leaf, and to clear its gradient if nothing does: a new tensor had none."""
    update = cleared(update, ast.unparse(case.program.tree))
    return case.spelled(f"Write into the leaf: {instead(f'with gradlab.no_grad(): {update}', old)}.")


def _step_of(case: Case, statement: Any, name: str) -> str:
    """`p -= 0.1 * v` of `p = p - 0.1 * v` in a loop that calls backward."""
    value = statement.value
    target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and ast.unparse(value.left) == name):
        return ""
    around = [node for node in case.program.statements if isinstance(node, (ast.For, ast.While)) and statement in ast.walk(node)]
    swept = any(isinstance(node, ast.Attribute) and node.attr == "backward" for loop in around for node in ast.walk(loop))
    simple = isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
    return ast.unparse(ast.AugAssign(target, value.op, value.right)) if swept and simple else ""


def _helper_step(case: Case, statement: Any) -> tuple[str, ast.Assign] | None:
    """Where the function that makes the result, `w = step(w)`, gives the name of its argument to it."""
    called_here = {node.func.id for node in ast.walk(statement) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    own = [node for node in ast.walk(case.program.tree) if isinstance(node, ast.FunctionDef)]
    for tree in [*own, *(one.tree for one in case.program.helpers(case.namespace))]:
        for node in ast.walk(tree) if tree.name in called_here else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in {argument.arg for argument in tree.args.args} and as_update(node, name):
                    return name, node
    return None


def _updates(case: Case, statement: Any) -> str:
    """The updates of `[p - rate * p.grad for p in params]`, as a loop on one line."""
    comprehension = statement.value
    if isinstance(comprehension, ast.ListComp) and len(comprehension.generators) == 1:
        item, of = comprehension.elt, comprehension.generators[0].iter
    elif isinstance(comprehension, ast.DictComp) and len(comprehension.generators) == 1:
        item, of = comprehension.value, comprehension.generators[0].iter
    else:
        return ""
    name = ast.unparse(item.left) if isinstance(item, ast.BinOp) else ""
    assign = ast.parse(f"{name} = {ast.unparse(item)}").body[0] if name.isidentifier() else None
    update = as_update(assign, name) if isinstance(assign, ast.Assign) else ""
    target = ast.unparse(comprehension.generators[0].target)
    if " -= " not in update:
        return ""
    step = f"{update.replace(' -= ', '.sub_(', 1)})"
    step = step if CLEARS.search(ast.unparse(case.program.tree)) else f"({step}, {name}.grad.zero_())"
    return f"[{step} for {target} in {ast.unparse(of)}]"


def _from_autograd_grad(case: Case, statement: ast.stmt) -> bool:
    """Whether a step is made of what `autograd.grad` returned: then `.grad` is not wanted."""
    calls = [node for node in ast.walk(case.program.tree) if isinstance(node, ast.Call)]
    by_grad = any(isinstance(call.func, ast.Attribute) and call.func.attr == "grad" for call in calls)
    return by_grad and not any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement))


def _was_leaf(case: Case, name: str, value: Any, before: list[Any]) -> bool:
    """Whether a name stood for a leaf: a sweep has seen it, or the statement that made it asked for a gradient last."""
    now = {id(one) for one in (value if type(value) in (list, tuple) else [value])}
    assert case.trace is not None
    seen = [(entry.name, entry.key) for swept in case.trace.journal for entry in swept.entries]
    seen += [(known.name, key) for key, known in case.past.leaves.items()]
    if any(one.partition("[")[0] == name and key not in now for one, key in seen):
        return True
    return any(requires_grad_in(node.value) for node in before if getattr(node, "value", None) is not None)


def _lost_leaf(case: Case, tensor: Any, *, swept: bool = False) -> bool:
    """Whether a tensor is computed from a leaf that the namespace knows no more by itself, and that a sweep has reached if it
    has to be `swept`."""
    library = library_of(tensor)
    assert library is not None
    held = {key for key, one in case.learners.items() if "param_groups" not in one.name}
    assert case.trace is not None
    reached = {entry.key for one in case.trace.journal for entry in one.entries} | set(case.past.leaves)
    seen: set[Any] = set()
    waiting = [library.node(tensor)]
    while waiting and len(seen) < WALKED:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if library.name_of(node) == "AccumulateGrad":
            variable = library.variable(node)
            known = variable is not None and id(variable) in held
            if not known and (not swept or variable is None or id(variable) in reached):
                return True
        waiting += library.inputs(node)
    return False

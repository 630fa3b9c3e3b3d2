"""Names of leaves that are assigned to a tensor that was computed from the leaf."""

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
from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.code_edits import CLEARING_CODE, clear_gradient_after, instead, parenthesize
from gradlab.explore.doctor.context.program import bound_names, read_names
from gradlab.explore.doctor.findings import Finding, sentence
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of

MAX_NODES = 2000  # nodes of the graph of a name's tensor that are visited


declare(
    "rebound-leaf",
    meaning="The name of a leaf now refers to a tensor that was computed from it.",
    why="""
        `backward()` writes `.grad` only into leaves. After `w = w - lr * w.grad` the name `w` refers to a result: `w.grad` is
        None, and the leaf itself did not change.
    """,
    remedy="""
        Write into the leaf under `torch.no_grad()`: `w -= lr * w.grad`, then `w.grad = None`. Or use an optimizer. If a result
        should become a leaf, use `.detach().requires_grad_()`.
    """,
    notes=True,
    fault="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(20, 3)
        y = x @ torch.tensor([1.0, -2.0, 0.5])
        w = torch.zeros(3, requires_grad=True)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            w = w - 0.1 * w.grad  #!
    """,
    healthy="""
        import torch

        torch.manual_seed(0)
        x = torch.randn(20, 3)
        y = x @ torch.tensor([1.0, -2.0, 0.5])
        w = torch.zeros(3, requires_grad=True)
        for step in range(5):
            loss = ((x @ w - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
    """,
)


@check("rebound-leaf")
def find_rebound_leaves(case: Case) -> Iterable[Finding]:
    """Find names of leaves that now refer to a computed tensor."""
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
        if not tensors or name.startswith("_") or name in roots:  # a result is not expected to be a leaf
            continue
        statements = [node for node in case.program.assignments(name) if isinstance(node, (ast.Assign, ast.AnnAssign))]
        assignment = next((node for node in reversed(statements) if name in read_names(node)), None)
        inline = next((node for node in reversed(statements) if requires_grad_inside(node)), None)
        if assignment is None and inline is not None and inline is statements[-1] and type(value) not in (list, tuple):
            if _lost_leaf(case, tensors[0]):
                yield _early_request(name, inline)
        elif (
            assignment is not None
            and _was_leaf(case, name, value, statements[: statements.index(assignment)])
            and any(_lost_leaf(case, one) for one in tensors)
        ):
            yield _assigned_result(case, name, assignment, type(value) in (list, tuple))
    yield from _find_rebound_attributes(case)
    yield from _find_local_steps(case)


def _find_rebound_attributes(case: Case) -> Iterable[Finding]:
    """Find attributes and items, as in `self.w = self.w - …`, and dictionaries that are built from themselves."""
    for statement in case.program.statements:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        place = ast.unparse(target)
        if isinstance(target, ast.Name):
            holder = case.namespace.get(place)
            tensors = list(holder.values()) if type(holder) is dict and place in read_names(statement) else []
        elif isinstance(target, (ast.Attribute, ast.Subscript)):
            reads = any(isinstance(node, ast.expr) and ast.unparse(node) == place for node in ast.walk(statement.value))
            tensors = _values_at(case, target) if reads else []
        else:
            continue
        tensors = [one for one in tensors if library_of(one) is not None and one.requires_grad and not one.is_leaf]
        if any(_lost_leaf(case, one, swept=True) for one in tensors):
            yield _assigned_result(case, place, statement, isinstance(target, ast.Name))


def _values_at(case: Case, target: ast.Attribute | ast.Subscript) -> list[Any]:
    """Return the values of a container, or of an attribute such as `self.w` of all the user's objects that have it."""
    if isinstance(target, ast.Subscript):
        holder = case.namespace.get(ast.unparse(target.value))
        return list(holder.values()) if type(holder) is dict else list(holder) if type(holder) is list else []
    own = [one for one in case.namespace.values() if type(one).__module__ == "__main__"]
    return [value for one in own if (value := getattr(one, "__dict__", {}).get(target.attr)) is not None]


def _find_local_steps(case: Case) -> Iterable[Finding]:
    """Find steps that assign their result to a local name, as in `p = p - rate * p.grad` for each `p`. No leaf changes."""
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
            unmoved = list(dict.fromkeys(entry.name for entry in entries if entry.name))
            yield Finding(
                "rebound-leaf",
                f"`{ast.unparse(statement)}`{where or f' on line {statement.lineno}'} assigns a result to the name `{name}` and "
                f"does not change the leaf: {join_names(unmoved) or 'the leaves'} did not change.",
                line or statement.lineno,
                fix=_in_place(case, as_update(statement, name), ast.unparse(statement)),
                evidence={"name": name, "leaves": unmoved},
                worth=8.5,
            )
            return


def _local_steps(tree: ast.AST) -> Iterable[tuple[str, ast.Assign]]:
    """Yield steps by `.grad` that are assigned to the variable of a loop, or to an argument that is not returned."""
    for around in ast.walk(tree):
        if isinstance(around, ast.For):
            names = bound_names(around)
        elif isinstance(around, ast.FunctionDef):
            returned = {name for node in ast.walk(around) if isinstance(node, ast.Return) for name in read_names(node)}
            names = {argument.arg for argument in around.args.args} - returned
        else:
            continue
        for node in ast.walk(around):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in names and as_update(node, name):
                    yield name, node


def _update_without_history(case: Case, name: str, value: Any) -> Iterable[Finding]:
    """Find the name of a leaf that was assigned to a result computed under no_grad, after which the program failed."""
    statements = [node for node in case.program.statements if isinstance(node, ast.Assign) and name in bound_names(node)]
    assignment = next((node for node in reversed(statements) if name in read_names(node)), None)
    if assignment is None or not _was_leaf(case, name, value, []):
        return
    update = as_update(assignment, name)
    yield Finding(
        "rebound-leaf",
        f"`{ast.unparse(assignment)}` on line {assignment.lineno} assigns a new tensor to the name `{name}`. It was made under "
        f"no_grad() and does not require a gradient, so backward() no longer writes `{name}.grad`.",
        assignment.lineno,
        fix=_in_place(case, update or f"{name}.copy_({ast.unparse(assignment.value)})", ast.unparse(assignment)),
        evidence={"name": name},
        worth=8.5,
    )


def _early_request(name: str, statement: Any) -> Finding:
    """Return a finding on requires_grad that was set before the last operation of a statement."""
    return Finding(
        "rebound-leaf",
        f"`{ast.unparse(statement)}` on line {statement.lineno}: requires_grad was set before the last operation, so `{name}` "
        f"is computed from a leaf that has no name, and `{name}.grad` stays None.",
        statement.lineno,
        fix=sentence(
            f"{FIX_EARLY_REQUEST.format(name=name, value=move_request_last(statement.value))} in place of "
            f"`{ast.unparse(statement)}`"
        ),
        evidence={"name": name},
        worth=8.5,
    )


def _assigned_result(case: Case, name: str, statement: Any, several: bool) -> Finding:
    """Return a finding on the assignment of a result to the name of a leaf, or of several results to that of a container."""
    update = "" if several else as_update(statement, name) or _augmented_assignment(case, statement, name)
    by_gradient = any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement))
    wanted = by_gradient or case.program.line_that_reads(name, "grad") is not None or case.error is not None
    looped = any(isinstance(node, (ast.For, ast.While)) and statement in ast.walk(node) for node in case.program.statements)
    by_sweep = _from_autograd_grad(case, statement)
    text = ast.unparse(statement)
    inner = _helper_step(case, statement)
    if update:
        fix = _in_place(case, update, text)
    elif inner is not None:
        fix = _in_place(case, as_update(inner[1], inner[0]), ast.unparse(inner[1]))
    elif several and (updates := _updates(case, statement)):
        fix = _in_place(case, updates, text)
    elif several:
        fix = f"Update the leaves in place, under no_grad(), and do not assign to `{name}`."
    elif by_gradient or by_sweep:
        fix = _in_place(case, f"{name}.copy_({ast.unparse(statement.value)})", text)
    elif looped or not isinstance(statement, ast.Assign):
        fix = sentence(FIX_REBOUND_NAME.format(name=name))
    else:
        again = f"{name} = {parenthesize(ast.unparse(statement.value))}.detach().requires_grad_()"
        fix = f"{sentence(FIX_REBOUND_NAME.format(name=name))[:-1]}; or make the result a leaf: {instead(again, text)}."
    return Finding(
        "rebound-leaf",
        f"`{ast.unparse(statement)}` on line {statement.lineno} assigns {'results' if several else 'a result'} to the name "
        f"`{name}`: from there on {f'the tensors of `{name}` are not leaves' if several else f'`{name}` is not a leaf'}, and "
        f"backward() no longer writes {'their' if several else 'its'} `.grad`.",
        statement.lineno,
        fix=fix,
        evidence={"name": name},
        remark=by_sweep or (looped and not wanted and not any(case.optimizers)),
        worth=8.5,
    )


def _in_place(case: Case, update: str, old: str) -> str:
    """Return the advice to write into the leaf, and to clear its gradient if the program does not: a new tensor had none."""
    update = clear_gradient_after(update, ast.unparse(case.program.tree))
    return case.spell(f"Write into the leaf: {instead(f'with gradlab.no_grad(): {update}', old)}.")


def _augmented_assignment(case: Case, statement: Any, name: str) -> str:
    """Return `p -= 0.1 * v` for `p = p - 0.1 * v` in a loop that calls backward; "" for other statements."""
    value = statement.value
    target: Any = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not (isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.Sub)) and ast.unparse(value.left) == name):
        return ""
    around = [node for node in case.program.statements if isinstance(node, (ast.For, ast.While)) and statement in ast.walk(node)]
    swept = any(isinstance(node, ast.Attribute) and node.attr == "backward" for loop in around for node in ast.walk(loop))
    simple = isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
    return ast.unparse(ast.AugAssign(target, value.op, value.right)) if swept and simple else ""


def _helper_step(case: Case, statement: Any) -> tuple[str, ast.Assign] | None:
    """Return the argument, and its assignment, in the function that computes the result of `w = step(w)`."""
    called = {node.func.id for node in ast.walk(statement) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    own = [node for node in ast.walk(case.program.tree) if isinstance(node, ast.FunctionDef)]
    for tree in [*own, *(one.tree for one in case.program.helpers(case.namespace))]:
        for node in ast.walk(tree) if tree.name in called else ():
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if name in {argument.arg for argument in tree.args.args} and as_update(node, name):
                    return name, node
    return None


def _updates(case: Case, statement: Any) -> str:
    """Return the updates of `[p - rate * p.grad for p in params]`, as a loop on one line; "" for other statements."""
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
    step = step if CLEARING_CODE.search(ast.unparse(case.program.tree)) else f"({step}, {name}.grad.zero_())"
    return f"[{step} for {target} in {ast.unparse(of)}]"


def _from_autograd_grad(case: Case, statement: ast.stmt) -> bool:
    """Return whether a step uses the result of `autograd.grad`, so that the program does not need `.grad`."""
    calls = [node for node in ast.walk(case.program.tree) if isinstance(node, ast.Call)]
    by_grad = any(isinstance(call.func, ast.Attribute) and call.func.attr == "grad" for call in calls)
    return by_grad and not any(isinstance(node, ast.Attribute) and node.attr == "grad" for node in ast.walk(statement))


def _was_leaf(case: Case, name: str, value: Any, before: list[Any]) -> bool:
    """Return whether a name referred to a leaf: a sweep reached it, or the statement that made it set requires_grad last."""
    now = {id(one) for one in (value if type(value) in (list, tuple) else [value])}
    assert case.trace is not None
    seen = [(entry.name, entry.key) for swept in case.trace.journal for entry in swept.entries]
    seen += [(known.name, key) for key, known in case.past.leaves.items()]
    if any(one.partition("[")[0] == name and key not in now for one, key in seen):
        return True
    return any(requires_grad_in(node.value) for node in before if getattr(node, "value", None) is not None)


def _lost_leaf(case: Case, tensor: Any, *, swept: bool = False) -> bool:
    """Return whether a tensor is computed from a leaf that no name of the namespace refers to.

    Parameters
    ----------
    case : Case
    tensor : Tensor
    swept : bool, default: False
        Whether a sweep must have reached the leaf.
    """
    library = library_of(tensor)
    assert library is not None
    named = {key for key, one in case.learners.items() if "param_groups" not in one.name}
    assert case.trace is not None
    reached = {entry.key for one in case.trace.journal for entry in one.entries} | set(case.past.leaves)
    seen: set[Any] = set()
    waiting = [library.node(tensor)]
    while waiting and len(seen) < MAX_NODES:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if library.name_of(node) == "AccumulateGrad":
            variable = library.variable(node)
            known = variable is not None and id(variable) in named
            if not known and (not swept or variable is None or id(variable) in reached):
                return True
        waiting += library.inputs(node)
    return False

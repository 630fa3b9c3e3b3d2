"""Find losses that are kept with their history after backward(): a running loss, and a list of losses."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import instead
from gradlab.explore.doctor.context.definitions import LOOPS, enclosing_statements
from gradlab.explore.doctor.context.events import sweep_call
from gradlab.explore.doctor.context.program import Program, bound_names, changed_names, read_names, root_of
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import NOTE, check, declare
from gradlab.explore.libraries import library_of
from gradlab.explore.trace.data import Line

MIN_STEPS = 3
DIFFERENTIATING = ("backward", "grad")  # functions that need the history of what they are given


declare(
    "kept-history",
    severity=NOTE,
    meaning="A running loss or a list of losses keeps the history of every step, although nothing differentiates it.",
    why="""
        A loss is a tensor that refers to the graph it was computed with. If it is added to a total or appended to a list, the
        nodes of that graph stay in memory as long as the total or the list. The memory grows with each step, and after some
        epochs it may be used up. A number has no history.
    """,
    remedy="Add or append `loss.item()`, or `loss.detach()` where a tensor is needed.",
    fault="""
        import torch
        from torch import nn
        import torch.nn.functional as F

        torch.manual_seed(0)
        x, y = torch.randn(160, 4), torch.randn(160, 1)
        model = nn.Linear(4, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        running = 0.0
        for xb, yb in zip(x.split(32), y.split(32)):
            optimizer.zero_grad()
            loss = F.mse_loss(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss  #!
        print(running / 5)
    """,
    healthy={"running += loss": "running += loss.item()"},
)


@dataclass(frozen=True)
class Keeping:
    """A statement that keeps a loss: the statement, the expression that is kept, and the code of what keeps it."""

    statement: ast.stmt
    kept: ast.expr
    holder: str


@check("kept-history")
def find_kept_histories(case: Case) -> Iterable[Finding]:
    """Find statements of a training loop that add a differentiated loss to a total, or append it to a list."""
    trace = case.trace
    if trace is None or len(trace.journal) < MIN_STEPS:
        return
    calls: dict[Line, int] = {}
    for swept in trace.journal:
        call = sweep_call(case, swept)
        if call is not None and call.place is not None:
            calls[call.place] = calls.get(call.place, 0) + 1
    for place, times in calls.items():
        program = _program_at(case, place)
        if times < MIN_STEPS or program is None:
            continue
        for keeping in _find_keepings(case, program, place):
            line = keeping.statement.lineno
            where = f"on line {line}" if place.in_cell else f"in {place.where.rpartition(' line ')[0]} line {line}"
            text = ast.unparse(keeping.statement)
            yield Finding(
                "kept-history",
                f"`{text}` {where} keeps the history of `{_name_of(keeping)}` in each of {times} steps: the graphs stay in "
                f"memory as long as `{keeping.holder}`, and nothing differentiates it.",
                line if place.in_cell else None,
                fix=_advise_number(program, place, keeping),
                evidence={"steps": times},
                remark=True,
                worth=1.2,
                place=None if place.in_cell else place,
            )


def _program_at(case: Case, place: Line) -> Program | None:
    """Return the program around a place: the cell that ran, or the file."""
    if place.in_cell:
        return case.program
    return Program.of_file(place.file) if place.file else None


def _find_keepings(case: Case, program: Program, place: Line) -> Iterator[Keeping]:
    """Yield the statements in the loop around a backward call that keep the loss with its history."""
    if not any("append(" in line or "+" in line for line in program.lines):
        return
    own = enclosing_statements(program, place.line)
    calls = [node for node in own if node.lineno <= place.line <= (node.end_lineno or 0) and _differentiated_name(node)]
    call = next((node for node in calls if " ".join(ast.unparse(node).split()) == place.statement), next(iter(calls), None))
    loss = _differentiated_name(call)
    loops = [node for node in own if isinstance(node, LOOPS) and node.lineno <= place.line <= (node.end_lineno or 0)]
    if not loss or call is None or not loops:
        return
    body = [node for node in own if loops[-1].lineno < node.lineno <= (loops[-1].end_lineno or 0)]
    if any(_retains_graph(node) for node in body):
        return
    for node in body:
        keeping = _keeping(node, loss)
        if keeping is None or not _has_history(program, body, node, loss, call):
            continue
        name = keeping.holder.partition(".")[0].partition("[")[0]
        if _is_reset(body, keeping) or _reaches_backward(own, name, call) or _is_known_to_be_free(case, keeping):
            continue
        yield keeping


def _differentiated_name(statement: ast.stmt | None) -> str:
    """Return the name in `loss.backward()` and `scaler.scale(loss).backward()`; "" if there is none."""
    call = getattr(statement, "value", None)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "backward":
        return ""
    receiver: Any = call.func.value
    if isinstance(receiver, ast.Call) and len(receiver.args) == 1:
        receiver = receiver.args[0]
    if isinstance(receiver, ast.BinOp) and isinstance(receiver.op, (ast.Mult, ast.Div)):
        receiver = receiver.left
    return receiver.id if isinstance(receiver, ast.Name) else ""


def _keeping(node: ast.stmt, loss: str) -> Keeping | None:
    """Return what a statement keeps of a loss: `total += loss`, `total = total + loss`, `losses.append(loss)`."""
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _is_loss(node.value, loss):
        return Keeping(node, node.value, ast.unparse(node.target))
    value: Any = node.value if isinstance(node, (ast.Assign, ast.Expr)) else None
    if isinstance(node, ast.Assign) and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        holder = ast.unparse(node.targets[0])
        for one, other in ((value.left, value.right), (value.right, value.left)):
            if ast.unparse(one) == holder and _is_loss(other, loss):
                return Keeping(node, other, holder)
    holder, method = _called_method(node)
    if method == "append" and len(value.args) == 1 and _is_loss(value.args[0], loss):
        return Keeping(node, value.args[0], holder)
    return None


def _called_method(node: ast.stmt) -> tuple[str, str]:
    """Return the receiver and the name of the method that a statement calls: "losses" and "append"; "" of other statements."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return ast.unparse(call.func.value), call.func.attr
    return "", ""


def _is_loss(value: ast.expr, loss: str) -> bool:
    """Return whether an expression is a loss, or a multiple of it."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Mult, ast.Div)):
        return _is_loss(value.left, loss) or (isinstance(value.op, ast.Mult) and _is_loss(value.right, loss))
    return isinstance(value, ast.Name) and value.id == loss


def _has_history(program: Program, body: Sequence[ast.stmt], node: ast.stmt, loss: str, call: ast.stmt) -> bool:
    """Return whether the loss still has its history at a statement: it is not bound anew since it was differentiated."""
    for other in body:
        contexts = [ast.unparse(item.context_expr) for item in other.items] if isinstance(other, ast.With) else []
        is_around = other.lineno <= node.lineno <= (other.end_lineno or 0)
        if is_around and any("grad" in context or "inference" in context for context in contexts):
            return False
        if other is not node and loss in bound_names(other) and min(call.lineno, node.lineno) < other.lineno:
            return False
    return True


def _is_reset(body: Sequence[ast.stmt], keeping: Keeping) -> bool:
    """Return whether the loop assigns a new value to the total or clears the list."""
    for node in body:
        if node is keeping.statement:
            continue
        targets: list[ast.expr] = node.targets if isinstance(node, (ast.Assign, ast.Delete)) else []
        targets = [node.target] if isinstance(node, (ast.AnnAssign, ast.For)) else targets
        if any(text == keeping.holder or text.startswith(f"{keeping.holder}[") for text in map(ast.unparse, targets)):
            return True
        if _called_method(node) in ((keeping.holder, "clear"), (keeping.holder, "pop"), (keeping.holder, "popleft")):
            return True
    return False


def _retains_graph(node: ast.stmt) -> bool:
    """Return whether a statement keeps the graph for another backward call."""
    call = getattr(node, "value", None)
    return isinstance(call, ast.Call) and any(one.arg in ("retain_graph", "create_graph") for one in call.keywords)


def _reaches_backward(own: Sequence[ast.stmt], name: str, call: ast.stmt) -> bool:
    """Return whether what a name holds may be differentiated: it reaches a backward call through other names."""
    names = {name}
    for _ in range(len(own)):
        more = {one for node in own if node is not call and names & read_names(node) for one in changed_names(node)} - names
        if not more:
            break
        names |= more
    for node in own:
        if node is call or not names & read_names(node):
            continue
        for part in ast.walk(node) if not isinstance(node, (*LOOPS, ast.If, ast.With)) else ():
            if isinstance(part, ast.Call) and ast.unparse(part.func).rpartition(".")[2] in DIFFERENTIATING:
                return True
    return False


def _is_known_to_be_free(case: Case, keeping: Keeping) -> bool:
    """Return whether the total or the list is still there, and has no history."""
    value: Any = case.namespace.get(keeping.holder)
    if value is None:
        return False
    if isinstance(value, (list, tuple)):
        value = value[-1] if value else None
    elif getattr(value, "maxlen", None) is not None:
        return True
    return library_of(value) is None or not value.requires_grad


def _name_of(keeping: Keeping) -> str:
    return next(node.id for node in ast.walk(keeping.kept) if isinstance(node, ast.Name))


def _advise_number(program: Program, place: Line, keeping: Keeping) -> str:
    """Return advice to keep the number, or the detached tensor if the program uses methods of it."""
    loss = next(node for node in ast.walk(keeping.kept) if isinstance(node, ast.Name) and _is_loss(node, node.id))
    method = "detach" if isinstance(keeping.statement, ast.Expr) or _is_used_as_tensor(program, place, keeping) else "item"

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> Any:
            if node.id != loss.id or not isinstance(node.ctx, ast.Load):
                return node
            return ast.parse(f"{node.id}.{method}()", mode="eval").body

    new = ast.unparse(ast.fix_missing_locations(Replace().visit(copy.deepcopy(keeping.statement))))
    what = "Keep the number" if method == "item" else "Keep it without its history"
    return f"{what}: {instead(new, ast.unparse(keeping.statement))}."


def _is_used_as_tensor(program: Program, place: Line, keeping: Keeping) -> bool:
    """Return whether the program reads an attribute of the total, which a number may not have, or gives it to a function."""
    root = keeping.holder
    for node in ast.walk(program.tree):
        if (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) == root
            and root_of(node)
            and isinstance(node.ctx, ast.Load)
        ):
            return True
        if isinstance(node, ast.Call) and any(ast.unparse(one) == root for one in node.args):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name not in ("print", "append", "float", "round", "str", "len", "format"):
                return True
    return False

"""Find models that are trained in evaluation mode: batch normalisation with constant statistics, dropout without effect.

It is a Problem if the running statistics of a batch normalisation are those that it was created with: they were neither computed
nor loaded, so the layer normalises nothing. Frozen layers with pretrained statistics, and a model of which only parts are in
evaluation mode, are not reported. A model that was trained in training mode before, or whose dropout is off, is a Note.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradlab.explore.doctor.context.case import Case, cell_line, join_names
from gradlab.explore.doctor.context.code_edits import before, instead, parse_expression
from gradlab.explore.doctor.context.program import Program
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import prefixes
from gradlab.explore.trace.data import ModuleCall

declare(
    "evaluation-mode",
    meaning="The weights of a model are trained while the model is in evaluation mode.",
    why="""
        After `model.eval()`, batch normalisation uses its running mean and variance and does not update them, and dropout does
        nothing. A new batch normalisation has the mean 0 and the variance 1, so it does not normalise. Often `eval()` was called
        to validate the model, and `train()` was not called after it: this, and dropout without effect, are reported as a Note.
    """,
    remedy="""
        Call `model.train()` before the training steps of each epoch, and `model.eval()` before the validation. To train with
        frozen pretrained statistics, call `eval()` on the batch normalisation layers alone.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = 5 + 3 * torch.randn(64, 4), torch.randn(64, 1)
        model = nn.Sequential(
            nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1)
        )
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        model.eval()  #!
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"model.eval()": "model.train()"},
    notes=True,
)


@dataclass(frozen=True)
class Layers:
    """Layers of a model that work in another way in training mode.

    Attributes
    ----------
    norms : tuple of str
        The paths of its batch normalisations with trained parameters.
    new : tuple of str
        The norms whose running statistics have not changed since they were created.
    dropouts : tuple of str
        The paths of its dropouts.
    """

    norms: tuple[str, ...]
    new: tuple[str, ...]
    dropouts: tuple[str, ...]


@dataclass(frozen=True)
class Switch:
    """A statement that puts a model into evaluation mode.

    Attributes
    ----------
    statement : ast.stmt
    program : Program
        Its cell.
    line : int or None
        Its line, if it is in the cell that ran.
    single : bool
        Whether its cell has no other one.
    """

    statement: ast.stmt
    program: Program
    line: int | None
    single: bool


@check("evaluation-mode")
def find_training_in_evaluation_mode(case: Case) -> Iterable[Finding]:
    """Find models in evaluation mode whose weights a step changed."""
    trace = case.trace
    if trace is None or all(call.training for call in trace.calls):
        return
    moved = _moved_leaves(case)
    if not moved:
        return
    for root in dict.fromkeys(call.path for call in trace.calls if not call.depth and call.in_graph):
        calls = [call for call in trace.calls if call.graded and call.path == root]
        last = next((call for call in reversed(calls) if call.in_graph), None)
        model = case.modules.get(root)
        if last is None or last.training or model is None or moved.isdisjoint(map(id, model.parameters())):
            continue
        layers = _layers_in_evaluation(case, root, moved)
        finding = _judge(case, root, last, layers, any(call.training for call in calls[: calls.index(last)]))
        if finding is not None:
            yield finding


def _moved_leaves(case: Case) -> set[int]:
    """Return the keys of the leaves that steps changed after the sweep in the trace, and after at least one sweep before it."""
    assert case.trace is not None
    moved = [
        {entry.key for entry in swept.entries if entry.moved and entry.arrived > 0}
        for swept in case.trace.journal
        if swept.number <= case.trace.sweep
    ]
    last = case.trace.journal[-1] if case.trace.journal else None
    if last is None or last.number != case.trace.sweep or len(moved) < 2:
        return set()
    return moved[-1] & set().union(*moved[:-1])


def _layers_in_evaluation(case: Case, root: str, moved: set[int]) -> Layers:
    """Return the layers of a model that were called in evaluation mode in the graph."""
    assert case.trace is not None
    norms, new, dropouts = [], [], []
    for call in dict.fromkeys(call for call in case.trace.calls if call.in_graph and not call.training):
        module = case.modules.get(call.path)
        if module is None or root not in prefixes(call.path):
            continue
        if getattr(module, "running_mean", None) is not None:
            parameters = set(map(id, module.parameters()))
            if not parameters or parameters & moved:
                norms.append(call.path)
                new += [call.path] if _is_new(module) else []
        elif "Dropout" in call.kind and getattr(module, "p", 0.0) > 0:
            dropouts.append(call.path)
    return Layers(*(tuple(dict.fromkeys(paths)) for paths in (norms, new, dropouts)))


def _is_new(module: Any) -> bool:
    """Return whether the running statistics are those of a new layer: no batch was counted, mean 0 and variance 1."""
    with suppress(Exception):  # a layer on another device, or of another library
        counted = module.num_batches_tracked
        return not int(counted) and not bool((module.running_mean != 0).any()) and not bool((module.running_var != 1).any())
    return False


def _judge(case: Case, root: str, last: ModuleCall, layers: Layers, trained_before: bool) -> Finding | None:
    """Return a finding on a model that is trained in evaluation mode; None if it may be intended, or makes no difference."""
    receiver = _receiver(last) or root
    found = _find_eval(case, receiver)
    line = found.line if found is not None else cell_line(last.place)
    where = "" if line is None else f" on line {line}"
    since = f", since `{ast.unparse(found.statement)}`{where}" if found is not None else where
    norms, dropouts = layers.norms, layers.dropouts
    idle = f"{join_names(dropouts)} {_verb(dropouts, 'drops', 'drop')} nothing"
    worth, again, then = 3.0, "", " of the later steps"
    if layers.new:
        kind = case.modules[layers.new[0]].__class__.__name__
        effect = (
            f"{join_names(layers.new)} ({kind}) {_verb(layers.new, 'normalises', 'normalise')} with the running mean 0 and "
            f"variance 1 of a new layer, and {_verb(layers.new, 'does', 'do')} not update them"
        )
        worth, then = 7.0, f": {kind} then uses the mean and the variance of the batch"
    elif trained_before and (norms or dropouts):
        frozen = f"{join_names(norms)} no longer {_verb(norms, 'updates its', 'update their')} running statistics"
        effect = ", and ".join([frozen] * bool(norms) + [idle] * bool(dropouts))
        again = " after steps in training mode"
    elif dropouts and not norms:
        effect, then = idle, ": dropout is then applied"
    else:
        return None
    return Finding(
        "evaluation-mode",
        f"`{root}` is trained in evaluation mode{again}{since}: {effect}.",
        line,
        fix=_advise(case, last, receiver, None if again else found, then),
        evidence={"name": root, "modules": (root,)},
        remark=not layers.new,
        worth=worth,
    )


def _verb(paths: Sequence[str], one: str, several: str) -> str:
    return one if len(paths) == 1 else several


def _receiver(call: ModuleCall) -> str:
    """Return the code of the model in a call: "self.net" of `self.net(x)`."""
    tree = parse_expression(call.place.source) if call.place is not None else None
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            name = ast.unparse(node.func)
            if name.rpartition(".")[2] == call.path.rpartition(".")[2]:
                return name
    return ast.unparse(tree.func) if isinstance(tree, ast.Call) and isinstance(tree.func, (ast.Name, ast.Attribute)) else ""


def _find_eval(case: Case, receiver: str) -> Switch | None:
    """Return the last statement of the newest cell that puts a model into evaluation mode."""
    for program in case.programs:
        found = [statement for statement in program.statements if _sets_evaluation(statement, receiver)]
        if found:
            return Switch(found[-1], program, found[-1].lineno if program is case.program else None, len(found) == 1)
    return None


def _sets_evaluation(statement: ast.stmt, receiver: str) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != receiver:
        return False
    argument = call.args[0] if call.args else call.keywords[0].value if call.keywords else None
    return (call.func.attr == "eval" and argument is None) or (
        call.func.attr == "train" and isinstance(argument, ast.Constant) and argument.value is False
    )


def _advise(case: Case, last: ModuleCall, receiver: str, found: Switch | None, then: str) -> str:
    """Return advice to train in training mode, as code that keeps an evaluation as it is."""
    code, line = "", cell_line(last.place)
    statement = case.program.simple_statement_at(line) if line is not None else None
    if found is not None and _is_for_training(case, last, found):
        code = instead(f"{receiver}.train()", ast.unparse(found.statement))
    elif statement is not None and last.place is not None and case.program.on_one_line.count(last.place.statement) == 1:
        code = before(f"{receiver}.train()", last.place.statement)
    how = f": {code}. This changes the loss{then}" if code else ""
    return f"Call train() on `{receiver}` before the training steps{how}."


def _is_for_training(case: Case, last: ModuleCall, found: Switch) -> bool:
    """Return whether only training steps follow a call of eval(): no call under `no_grad`, and none in another function."""
    assert case.trace is not None
    if not found.single or any(call.path == last.path and not call.graded for call in case.trace.calls):
        return False
    around = [one for one in found.program.statements if _contains(one, found.statement.lineno)]
    line = cell_line(last.place)
    return all(isinstance(one, ast.FunctionDef) and line is not None and _contains(one, line) for one in around)


def _contains(outer: ast.stmt, line: int) -> bool:
    return hasattr(outer, "body") and outer.lineno <= line <= (outer.end_lineno or 0)

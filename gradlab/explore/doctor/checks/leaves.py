"""Leaves and layers that are not used, and models that are frozen."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, cell_line, join_names, learner_names
from gradlab.explore.doctor.context.code_edits import before
from gradlab.explore.doctor.context.cuts import collect_buffer_cuts, collect_cuts
from gradlab.explore.doctor.context.program import bound_names, read_names
from gradlab.explore.doctor.errors.lost_history import explain_missing_requires_grad
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.libraries import library_of

declare(
    "unused-leaf",
    meaning="A tensor requires a gradient, and the result does not depend on it.",
    why="""
        Its gradient is None, an optimizer skips it, and it keeps its initial value. Often a term was forgotten, or a name was
        used again for another tensor.
    """,
    remedy="Use it in the computation of the result, or remove it.",
    notes=True,
    fault="""
        import torch

        torch.manual_seed(0)
        x, y = torch.randn(20, 4), torch.randn(20, 1)
        w1 = torch.randn(4, 4, requires_grad=True)
        w2 = torch.randn(4, 1, requires_grad=True)
        hidden = torch.tanh(x @ w1)  #!
        loss = ((x @ w2 - y) ** 2).mean()
        loss.backward()
    """,
    healthy={"loss = ((x @ w2 - y) ** 2).mean()": "loss = ((hidden @ w2 - y) ** 2).mean()"},
)

declare(
    "unused-module",
    meaning="A layer of a model was not called, or its output is not used.",
    why="""
        Its parameters get no gradient and keep their initial values, so the model is smaller than it was meant to be.
        DistributedDataParallel also raises an error, unless `find_unused_parameters=True`.
    """,
    remedy="Call the layer in `forward` and use its output, or remove it from the model.",
    notes=True,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(4, 8)
                self.second = nn.Linear(8, 8)
                self.head = nn.Linear(8, 1)

            def forward(self, x):
                h = torch.relu(self.first(x))
                return self.head(h)

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
    """,
    healthy="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = nn.Linear(4, 8)
                self.second = nn.Linear(8, 8)
                self.head = nn.Linear(8, 1)

            def forward(self, x):
                h = torch.relu(self.first(x))
                h = torch.relu(self.second(h))
                return self.head(h)

        torch.manual_seed(0)
        x, y = torch.randn(32, 4), torch.randn(32, 1)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            optimizer.zero_grad()
            F.mse_loss(model(x), y).backward()
            optimizer.step()
    """,
)

declare(
    "frozen",
    meaning="No tensor that the result was computed from, or no parameter of the optimizers, requires a gradient.",
    why="""
        An operation is recorded only if one of its inputs requires a gradient. Without a record, `backward()` raises "element
        0 of tensors does not require grad and does not have a grad_fn". A step of an optimizer without such parameters changes
        nothing.
    """,
    remedy="""
        Set `requires_grad=True` where the parameters are created, or call `requires_grad_()` on the layers that should learn.
    """,
    fault="""
        import torch
        import torch.nn.functional as F
        from torch import nn

        torch.manual_seed(0)
        x, labels = torch.randn(16, 4), torch.randint(0, 3, (16,))
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        for parameter in model.parameters():  #!
            parameter.requires_grad = False
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
    """,
    healthy={"for parameter in model.parameters():": "for parameter in model[0].parameters():"},
)


@check("unused-leaf", "unused-module")
def find_unused_leaves(case: Case) -> Iterable[Finding]:
    """Find leaves and layers that the result does not depend on."""
    trace = case.trace
    if trace is None or not trace.nodes or trace.cut_off:
        return
    explained = {key for history in collect_cuts(case) for key in history.keys}
    if not trace.recorded:
        yield from _find_without_record(case, explained)
        return
    named = {entry.name for swept in trace.journal for entry in swept.entries}
    idle = [
        one
        for one in case.learners.values()
        if one.requires_grad and not one.has_grad and one.key not in case.reached_leaves and one.key not in explained
        if not one.in_list and one.name not in named and "param_groups" not in one.name
    ]
    yield from _find_leaves(case, [one for one in idle if not one.model])
    yield from _find_parameters(case, [one for one in idle if one.model])


def _find_without_record(case: Case, explained: set[int]) -> Iterable[Finding]:
    """Find tensors that should learn and are not in a graph that was not recorded while it was built: its cuts are not known."""
    if case.meant is None:
        return
    lost = [
        one
        for one in case.learners.values()
        if one.requires_grad and one.key in case.meant and one.key not in case.reached_leaves and one.key not in explained
    ]
    if lost:
        it, was = ("them", "they were") if len(lost) > 1 else ("it", "it was")
        yield Finding(
            "unused-leaf",
            f"No path leads from the result back to {learner_names(lost)}, so backward() gives {it} no gradient: {was} not "
            "used, or cut off on the way, for example by detach(), no_grad or item(). The graph was not recorded while it was "
            "built, so the cause is not known.",
            None,
            fix="To see the line, put %%doctor above the cell that computes it.",
            evidence={"leaves": [one.name for one in lost]},
            worth=5.0,
        )


def _find_leaves(case: Case, idle: list[Learner]) -> Iterable[Finding]:
    by_hand = {
        name.id
        for node in ast.walk(case.program.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "grad"
        for name in ast.walk(node)
        if isinstance(name, ast.Name)
    }
    for one in idle:
        root = one.name.partition("[")[0].partition(".")[0]
        if root not in case.program.mentioned_names or root in by_hand or not case.should_learn(one):
            continue
        line, how = _explain_unused(case, root)
        yield Finding(
            "unused-leaf",
            f"`{one.name}` requires a gradient, and {how}: its `.grad` is None.",
            line,
            fix="Use it in the computation of the result, or remove it.",
            evidence={"leaves": [one.name]},
            worth=5.0,
        )


def _explain_unused(case: Case, name: str) -> tuple[int | None, str]:
    """Return a line, and why the result does not depend on a leaf, in words."""
    statements = case.program.statements
    used = [node for node in statements if name in read_names(node) and name not in bound_names(node)]
    for node in used:
        for target in bound_names(node):
            after = [other for other in statements if other.lineno > node.lineno]
            for other in after:
                if target in read_names(other):
                    break
                if target in bound_names(other):
                    return other.lineno, (
                        f"line {other.lineno} assigns another value to the name `{target}` before the result of "
                        f"`{ast.unparse(node)}` on line {node.lineno} is used"
                    )
    if used:
        return used[-1].lineno, "no value computed from it reaches the result"
    assignments = case.program.assignments(name)
    return (assignments[0].lineno if assignments else None), "nothing was computed from it"


def _find_parameters(case: Case, idle: list[Learner]) -> Iterable[Finding]:
    trace = case.trace
    assert trace is not None
    calls: dict[str, Any] = {}
    for one_call in trace.calls:
        calls.setdefault(one_call.path, one_call)
    called_models = {
        model for model in case.models if any(path == model or path.startswith((f"{model}.", f"{model}[")) for path in calls)
    }
    groups: dict[str, list[Learner]] = {}
    for one in idle:
        if one.model in called_models:
            groups.setdefault(one.module, []).append(one)
    for path, group in groups.items():
        whole = [one for one in case.learners.values() if one.module == path and one.requires_grad]
        meant = any(case.should_learn(one) for one in group)
        call: Any = calls.get(path)
        if call is not None and not call.graded:
            continue
        names = ", ".join(one.name.rpartition(".")[2] for one in group)
        if call is None and len(group) == len(whole):
            message = f"`{path}` was not called on the way to the result, so its parameters ({names}) got no gradient."
            kind, fix = "unused-module", f"Call `{path}` in forward, or remove it from the model."
        elif call is not None and call.nodes == 0 and len(group) == len(whole):
            at = cell_line(call.place)
            where = f" on line {at}" if at is not None else ""
            message = f"`{path}` was called{where}, and its output is not used, so its parameters ({names}) got no gradient."
            kind, fix = "unused-module", "Use its output."
        else:
            when = f"when `{path}` was called" if call is not None else "on the way to the result"
            message = f"{learner_names(group)} {'was' if len(group) == 1 else 'were'} not used {when}."
            kind, fix = "unused-leaf", "Use it in forward, or remove it."
        line = None if call is None else cell_line(call.place)
        yield Finding(kind, message, line, fix=fix, evidence={"leaves": [one.name for one in group]}, remark=not meant, worth=5.0)


# ----------------------------------------------------------------------------------------------------------------- frozen
@check("frozen", "no_grad")
def find_frozen(case: Case) -> Iterable[Finding]:
    """Find results without any input that requires a gradient."""
    trace = case.trace
    if trace is None or trace.nodes or not case.root:
        return
    optimized = [one for one in case.learners.values() if one.optimizers]
    off = optimized and not any(one.requires_grad for one in optimized)  # then a cut is not the cause
    if not off and any(trace.cuts[i].how != "born" for i in trace.losses):
        return
    if any(trace.cuts[i].how == "born" for i in trace.losses) and any(cut.keys for cut in trace.cuts):
        return
    if collect_buffer_cuts(case):
        return
    assignment = next(iter(reversed(case.program.assignments(case.root))), None)
    line = assignment.lineno if assignment is not None else cell_line(trace.asked)
    statement = assignment if assignment is not None else case.program.statement_at(line) if line is not None else None
    modules = list(dict.fromkeys(call.path for call in trace.calls if call.depth == 0))
    frozen = [path for path in modules if _is_frozen(case, path)]
    frozen_at = next((at for path in frozen if (at := _line_that_freezes(case, path)) is not None), None)
    if frozen:
        parameters = [one for one in case.learners.values() if one.model in frozen or one.module in frozen]
        why = f"all {len(parameters)} parameters of {join_names(frozen)} have requires_grad=False"
        caller = _first_call(case, frozen[0])
        code = before(f"{frozen[0]}.requires_grad_()", ast.unparse(caller).partition("\n")[0] if caller is not None else "")
        advice = f"If the model should learn, use {code}" if code else f"Call requires_grad_() on `{frozen[0]}`"
        fix = f"{advice}, or the same for its last layer only."
    elif (finding := explain_missing_requires_grad(case.scene)) is not None:
        yield replace(finding, worth=9.0)
        return
    else:
        names = sorted(read_names(statement), key=str) if statement else []
        names = [name for name in names if _can_require_grad(case.namespace.get(name))]
        why = f"no tensor that it was computed from requires a gradient{f' ({join_names(names)})' if names else ''}"
        codes = (
            [before(f"{name}.requires_grad_()", ast.unparse(statement)) for name in names[:3]] if statement is not None else []
        )
        fix = f"Create the tensors that should learn with requires_grad=True, or use {' or '.join(codes)}."
        fix = fix if codes else ""
    yield Finding(
        "frozen",
        f"`{case.root}` has no history: {why}{f' (line {frozen_at})' if frozen_at else ''}.",
        frozen_at or line,
        fix=fix,
        evidence={"modules": frozen} | ({"parameters": len(parameters)} if frozen else {}),
        worth=9.0,
    )


def _first_call(case: Case, path: str) -> ast.stmt | None:
    """Return the first simple statement of the cell that calls a model."""
    for node in case.program.statements:
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and ast.unparse(part.func) == path]
        if calls and not hasattr(node, "body"):
            return node
    return None


def _line_that_freezes(case: Case, path: str) -> int | None:
    """Return the line that freezes a model: a loop over its parameters, or `requires_grad_(False)`."""
    for node in case.program.statements:
        text = ast.unparse(node)
        loop = isinstance(node, ast.For) and ast.unparse(node.iter).startswith(
            (f"{path}.parameters(", f"{path}.named_parameters(")
        )
        if (loop and ".requires_grad" in text) or text == f"{path}.requires_grad_(False)":
            return node.lineno
    return None


def _is_frozen(case: Case, path: str) -> bool:
    own = [one for one in case.learners.values() if one.model == path or one.module == path]
    return bool(own) and not any(one.requires_grad for one in own)


def _can_require_grad(value: Any) -> bool:
    library = library_of(value)
    return library is not None and library.is_leaf(value) and str(value.dtype).rpartition(".")[2].startswith(("float", "bfloat"))

"""Frozen parts that change: running statistics in training mode, and parameters that the optimizer still moves."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, cell_line, join_names, learner_names
from gradlab.explore.doctor.context.code_edits import after, before, instead
from gradlab.explore.doctor.context.definitions import enclosing_statements
from gradlab.explore.doctor.context.events import quote
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import NOTE, check, declare
from gradlab.explore.module_paths import prefixes
from gradlab.explore.names import module_names
from gradlab.explore.trace.data import MovedLeaf, MovedStatistics

SHIFT, SPREAD = 0.1, 1.1  # changes of statistics: less is the noise of batches of the same data
MIN_STEPS = 2  # that moved a frozen parameter: the first may use a gradient from before it was frozen
MAX_PARTS = 4  # frozen parts that a fix names

declare(
    "moving-statistics",
    severity=NOTE,
    meaning="A frozen batch normalisation is in training mode, so its running statistics change.",
    why="""
        `requires_grad=False` freezes the weight and the bias. The running mean and variance are buffers, which every call in
        training mode updates. After `model.eval()`, the frozen part then computes something else than before.
    """,
    remedy="""
        Call `eval()` on the frozen part after each `model.train()`. If the statistics are meant to adapt to the new data, ignore
        this Note.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 4), torch.randn(64, 1)
        body = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU())
        for step in range(20):
            body(x)  # pretrained
        body.requires_grad_(False)
        model = nn.Sequential(body, nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model[1].parameters(), lr=0.02)
        model.train()  #!
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(1 + 2 * x), y)
            loss.backward()
            optimizer.step()
    """,
    healthy={"model.train()": "model.train()\nbody.eval()"},
)
declare(
    "frozen-moves",
    meaning="An optimizer moves parameters that do not require a gradient.",
    why="""
        A step leaves out parameters whose `.grad` is None. If a parameter is frozen when it has a gradient, it keeps it, and
        `zero_grad(set_to_none=False)` only fills it with zeros. The step then moves it by its momentum, its average of former
        gradients or its weight decay.
    """,
    remedy="""
        Set the gradient to None when you freeze a parameter: `layer.zero_grad()` after `layer.requires_grad_(False)`. Or give the
        optimizer only the parameters that learn.
    """,
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)
        x, y = torch.randn(64, 4), torch.randn(64, 1)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(10):
            if step == 5:
                model[0].requires_grad_(False)
            optimizer.zero_grad(set_to_none=False)
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()  #!
    """,
    healthy={"zero_grad(set_to_none=False)": "zero_grad()"},
)


# ------------------------------------------------------------------------------------------------------ moving statistics
@dataclass(frozen=True)
class Norm:
    """A frozen batch normalisation whose statistics moved.

    Attributes
    ----------
    moved : MovedStatistics
    path : str
        Its path from the whole model: "model[0][1]", where `moved` may have "body[1]".
    part : str
        The path of the outermost module around it whose parameters are all frozen: "model[0]".
    """

    moved: MovedStatistics
    path: str
    part: str


@check("moving-statistics")
def find_moving_statistics(case: Case) -> Iterable[Finding]:
    """Find frozen batch normalisations behind frozen layers whose statistics changed while something else was trained.

    A model is left out if the input of one of them has a history: their inputs change while it trains.
    """
    trace = case.trace
    if trace is None or not trace.moved_statistics or not any(event.keys and any(event.rates) for event in case.steps):
        return
    paths = {id(module): path for path, module in reversed(case.modules.items())}
    in_graph = {call.path for call in trace.calls if call.nodes}
    by_model: dict[str, list[Norm]] = {}
    for one in trace.moved_statistics:
        path = paths.get(one.key, "")
        part = next((outer for outer in prefixes(path) if _is_frozen(case.modules.get(outer))), "")
        if part:
            by_model.setdefault(prefixes(path)[0], []).append(Norm(one, path, part))
    for norms in by_model.values():
        wrong = [one for one in norms if _has_moved(one.moved) and _is_behind_frozen_layer(case, one.path)]
        wrong = [one for one in wrong if not _has_trained_twin(case, one.part)]
        if wrong and not any(one.moved.path in in_graph for one in norms):
            yield _report_statistics(case, wrong)


def _has_moved(one: MovedStatistics) -> bool:
    far = one.shift >= SHIFT or not 1 / SPREAD < one.spread < SPREAD
    return one.while_training and far and math.isfinite(one.shift) and math.isfinite(one.spread) and one.spread > 0


def _is_behind_frozen_layer(case: Case, path: str) -> bool:
    """Return whether the layer with parameters before a batch normalisation, or after it if it is the first, is frozen."""
    root = prefixes(path)[0]
    own = {one: module for one, module in case.modules.items() if prefixes(one)[0] == root and (one == path or _is_layer(module))}
    layers = list(own)
    at = layers.index(path)
    beside = layers[at - 1 : at] or layers[at + 1 : at + 2]
    return bool(beside) and not any(parameter.requires_grad for parameter in own[beside[0]].parameters(recurse=False))


def _is_layer(module: Any) -> bool:
    """Return whether a module has parameters of its own and does not normalise."""
    return "Norm" not in type(module).__name__ and any(True for _ in module.parameters(recurse=False))


def _is_frozen(module: Any) -> bool:
    return module is not None and not any(parameter.requires_grad for parameter in module.parameters())


def _has_trained_twin(case: Case, part: str) -> bool:
    """Return whether a network with the same shapes is trained, of which a frozen one may be a copy or an average.

    Blocks in a list, which often have the same shapes, are not compared.
    """
    module = case.modules[part]
    if part.endswith("]") or case.trace is None:
        return False
    twins = [one for one in case.modules.values() if type(one) is type(module) and _shapes(one) == _shapes(module)]
    held = case.trace.held_by_steps
    return any(parameter.requires_grad and id(parameter) in held for one in twins for parameter in one.parameters())


def _shapes(module: Any) -> list[tuple[int, ...]]:
    return [tuple(parameter.shape) for parameter in module.parameters()]


def _report_statistics(case: Case, norms: Sequence[Norm]) -> Finding:
    moved, names = [one.moved for one in norms], module_names([case.namespace])
    most = max(moved, key=lambda one: max(one.shift, one.spread, 1 / one.spread))
    parts = list(dict.fromkeys(names.get(id(case.modules[one.part]), one.part) for one in norms))
    statement = _train_statement(case, norms[0])
    line = cell_line(moved[0].place) if statement is None else statement.lineno
    verb, their = ("is", "its") if len(norms) == 1 else ("are", "their")
    whose, variances = ("", "the variances") if len(norms) == 1 else (f" of `{most.path}`", "its variances")
    return Finding(
        "moving-statistics",
        f"{join_names(one.path for one in moved)} ({most.kind}) {verb} frozen, but each call in training mode updates {their} "
        f"running statistics: the mean{whose} moved by {digits(most.shift)} standard deviations, and the sum of {variances} is "
        f"{digits(most.spread)} times what it was. In evaluation mode, {join_names(parts)} will not compute what it computed "
        "before this training.",
        line,
        fix=_advise_evaluation(case, moved[0], parts, statement),
        evidence={"modules": [one.path for one in moved], "shift": most.shift, "spread": most.spread, "of": most.path},
        remark=True,
        worth=2.5,
        place=moved[0].place if statement is None else None,
    )


def _train_statement(case: Case, norm: Norm) -> ast.stmt | None:
    """Return the statement that puts a module around a batch normalisation into training mode.

    It has to be the only one in the cell, and in the same function as the call of the model, above it. If the layer was called
    before it was frozen, the statement has to be below that call.
    """
    around = {
        f"{one}.train{given}" for path in (norm.path, norm.moved.path) for one in prefixes(path) for given in ("()", "(True)")
    }
    found = [node for node in case.program.statements if isinstance(node, ast.Expr) and ast.unparse(node) in around]
    line, earlier = cell_line(norm.moved.place), norm.moved.learning
    if line is None or len(found) != 1 or found[0] not in enclosing_statements(case.program, line):
        return None
    start = 0 if earlier is None else cell_line(earlier) or line
    return found[0] if start < found[0].lineno < line else None


def _advise_evaluation(case: Case, moved: MovedStatistics, parts: Sequence[str], statement: ast.stmt | None) -> str:
    """Return advice to put the frozen parts into evaluation mode, as code if one place of the cell is right for it."""
    new, code, place = "; ".join(f"{part}.eval()" for part in parts), "", moved.place
    line = cell_line(place)
    is_known = line is not None and len(parts) <= MAX_PARTS and all(_is_known_at(case, prefixes(one)[0], line) for one in parts)
    if is_known and statement is not None:
        code = after(new, ast.unparse(statement))
    elif is_known and place is not None and line and place != moved.learning and case.program.simple_statement_at(line):
        code = before(new, place.statement) if case.program.on_one_line.count(place.statement) == 1 else ""
    effect = f": {code}. This changes the loss, which is then computed with the statistics from before" if code else ""
    return (
        f"Call eval() on {join_names(parts)} after each train() of the whole model{effect}. If the statistics are meant to "
        "adapt, leave it as it is."
    )


def _is_known_at(case: Case, name: str, line: int) -> bool:
    """Return whether a plain name is known to be defined on a line of the cell.

    It is outside functions. In a function, its own statements name it, or an earlier cell binds it.
    """
    own = enclosing_statements(case.program, line)
    if any(one in case.program.outer for one in own):
        return True
    named = {node.id for one in own for node in ast.walk(one) if isinstance(node, ast.Name)}
    return name in named or any(program.assignments(name) for program in case.programs if program is not case.program)


# ------------------------------------------------------------------------------------------- parameters that steps move
@check("frozen-moves")
def find_frozen_parameters_that_move(case: Case) -> Iterable[Finding]:
    """Find parameters without requires_grad that steps of an optimizer changed."""
    by_step: dict[Any, list[tuple[MovedLeaf, Learner]]] = {}
    for one in case.trace.moved_leaves if case.trace is not None else ():
        learner = case.learners.get(one.key)
        if learner is not None and one.steps >= MIN_STEPS and one.moved > 0 and one.weight > 0 and math.isfinite(one.moved):
            by_step.setdefault(one.place, []).append((one, learner))
    for moved in by_step.values():
        yield _report_moves(case, moved)


def _report_moves(case: Case, moved: Sequence[tuple[MovedLeaf, Learner]]) -> Finding:
    learners = [learner for _, learner in moved]
    most, its = max(moved, key=lambda pair: pair[0].moved / pair[0].weight)
    share, they = most.moved / most.weight, "it still has" if len(moved) == 1 else "they still have"
    return Finding(
        "frozen-moves",
        f"{quote(most.place)} changes {learner_names(learners)} although requires_grad is False: {they} a gradient that is not "
        "None, so the optimizer applies what it keeps of former gradients, or weight decay. "
        f"{most.steps} of these steps changed `{its.name}` by {digits(100 * share)}% of its norm.",
        cell_line(most.place) or cell_line(most.cell),
        fix=_advise_none(case, learners),
        evidence={"steps": most.steps, "share": share, "of": its.name},
        worth=6.0,
        place=most.place,
    )


def _advise_none(case: Case, learners: Sequence[Learner]) -> str:
    """Return advice to set the gradients to None, as code at the statement that freezes the parameters or clears gradients."""
    frozen = [(node, owner) for node in case.program.statements if (owner := _frozen_by(case, node, learners))]
    calls = [call for node in case.program.statements if (call := _fills_with_zeros(node)) is not None]
    clearing = [call for call in calls if len(calls) == 1 and _clears(case, call, {one.key for one in learners})]
    if len(frozen) == 1:
        node, clear = frozen[0]
        code = instead(f"{ast.unparse(node)}; {clear}", ast.unparse(node))
    elif clearing and not frozen:
        code = instead(ast.unparse(ast.Call(clearing[0].func, [], [])), ast.unparse(clearing[0]))
    else:
        code = ""
    advice = "Set the gradient to None when a parameter is frozen, because step() leaves out only parameters without one"
    return f"{advice}{f': {code}' if code else ''}."


def _frozen_by(case: Case, node: ast.stmt, learners: Sequence[Learner]) -> str:
    """Return the code that clears the gradients of what a statement freezes; "" if it does not freeze all these parameters."""
    owner = _freezes(node)
    if owner is None:
        return ""
    text, names, keys = ast.unparse(owner), {one.name for one in learners}, {one.key for one in learners}
    if names == {text}:
        return f"{text}.grad = None"
    if _holds(case, text, keys):
        return f"{text}.zero_grad()"
    for loop in case.program.statements:
        if isinstance(loop, ast.For) and node in ast.walk(loop) and text in [ast.unparse(name) for name in _targets(loop)]:
            call = loop.iter
            func = call.func if isinstance(call, ast.Call) else None
            if isinstance(func, ast.Attribute) and func.attr in ("parameters", "named_parameters"):
                return f"{text}.grad = None" if _holds(case, ast.unparse(func.value), keys) else ""
    return ""


def _freezes(node: ast.stmt) -> ast.expr | None:
    """Return `x` of the statements `x.requires_grad_(False)` and `x.requires_grad = False`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_":
        return call.func.value if _is_given_false(call) else None
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False:
        target = node.targets[0] if len(node.targets) == 1 else None
        return target.value if isinstance(target, ast.Attribute) and target.attr == "requires_grad" else None
    return None


def _targets(loop: ast.For) -> list[ast.expr]:
    return list(loop.target.elts) if isinstance(loop.target, ast.Tuple) else [loop.target]


def _holds(case: Case, path: str, keys: set[int]) -> bool:
    """Return whether a module has all parameters with some keys."""
    module = case.modules.get(path)
    return module is not None and keys <= set(map(id, module.parameters()))


def _clears(case: Case, call: ast.Call, keys: set[int]) -> bool:
    """Return whether a call of zero_grad() clears the gradients of all parameters with some keys."""
    name = ast.unparse(call.func).removesuffix(".zero_grad")
    one = next((one for one in case.optimizers if one.name == name or len(case.optimizers) == 1), None)
    return _holds(case, name, keys) or (one is not None and keys <= set(one.keys))


def _fills_with_zeros(node: ast.stmt) -> ast.Call | None:
    """Return the call of a statement `optimizer.zero_grad(set_to_none=False)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "zero_grad":
        return None
    return call if _is_given_false(call) else None


def _is_given_false(call: ast.Call) -> bool:
    """Return whether the only argument of a call is False."""
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is False

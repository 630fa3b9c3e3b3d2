"""Weights that are created again in every step: tensors in forward, in a function or in the loop, and layers in the loop.

Layers that forward creates are found in `late_parameters`, and new tensors under the name of one that an optimizer holds in
`replaced_leaves`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gradlab.explore.doctor.context.case import Case, Learner, learner_names
from gradlab.explore.doctor.context.code_edits import MODULES, parse_expression
from gradlab.explore.doctor.context.definitions import LOOPS, enclosing_class, enclosing_statements
from gradlab.explore.doctor.context.events import event_line, quote, sweep_place
from gradlab.explore.doctor.context.flow import Flow, flow_of, is_positive
from gradlab.explore.doctor.context.operands import argument_text
from gradlab.explore.doctor.context.program import Program, read_names
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check
from gradlab.explore.module_paths import is_model
from gradlab.explore.trace.data import Event, Line
from gradlab.explore.trace.journal import SweepEntry

MIN_SWEEPS = 3
# Functions whose result depends on no tensor.
FACTORIES = frozenset(
    ("randn", "rand", "zeros", "ones", "empty", "full", "normal", "eye", "linspace", "tensor", "Tensor", "randint")
)


@dataclass(frozen=True)
class Creation:
    """A creation of a tensor.

    Attributes
    ----------
    statement : ast.stmt
    value : ast.expr
        The expression in it that creates the tensor.
    name : str
        The name or the attribute that it is assigned to; "" if it is used where it is created.
    program : Program
        The program of the statement.
    place : Line
        Where the tensor is used.
    """

    statement: ast.stmt
    value: ast.expr
    name: str
    program: Program
    place: Line


@check("stale-optimizer")
def find_recreated_tensors(case: Case) -> Iterable[Finding]:
    """Find weights that the program creates again before each backward call, so that no step changes them."""
    trace = case.trace
    if trace is None or len(trace.journal) < MIN_SWEEPS or not trace.outputs:
        return
    held = {key for one in case.optimizers for key in one.keys} | trace.held_by_steps
    last = trace.journal[-1]
    alike = [one for one in trace.journal if (one.root, one.operation) == (last.root, last.operation)]
    if len(alike) < MIN_SWEEPS or not any(entry.moved for swept in alike for entry in swept.entries):
        return
    new = [entry for entry in last.entries if _is_new(case, alike, entry.key, held)]
    # gradlab frees a leaf with the function that made it: then the graph has a leaf without a name, and no sweep has an entry.
    is_freed = not any(not entry.name for swept in alike for entry in swept.entries)
    flow = flow_of(case)
    names = {entry.name for entry in new if entry.name}
    leaves = [
        i
        for i, node in enumerate(flow.nodes)
        if node.kind == "leaf"
        and (node.name in names or (not node.name and (is_freed or any(not entry.name for entry in new))))
        and is_positive(flow.norms[i])
        and flow.uses[i]
    ]
    reported: set[int] = set()
    for leaf in leaves:
        for creation in _find_creations(case, flow, leaf, leaves, sweep_place(case, last)):
            if creation.statement.lineno in reported:
                continue
            if _is_weight(flow, leaf) or (_makes_parameter(creation.value) and not _is_input(flow, leaf)):
                reported.add(creation.statement.lineno)
                yield _finding(creation, stepped=bool(case.steps))


def _is_new(case: Case, alike: Sequence[SweepEntry], key: int, held: Iterable[int]) -> bool:
    """Return whether a leaf got its only gradient in one sweep, is in no optimizer, and each sweep has such a leaf."""
    if key in held or len(case.timelines[key]) > 1 or any(entry.moved for _, entry in case.timelines[key]):
        return False
    name = case.timelines[key][0][1].name
    return all(
        any(entry.name == name and entry.key not in held and len(case.timelines[entry.key]) == 1 for entry in swept.entries)
        for swept in alike
    )


# ---------------------------------------------------------------------------------------------------------- what it is used as
def _is_weight(flow: Flow, leaf: int) -> bool:
    """Return whether a leaf is the matrix of a layer, and not an input that is multiplied by another leaf."""
    for t in _users(flow, leaf):
        one = flow.properties[t]
        if not (one.product or one.looks_up):
            continue
        others = [edge.source for edge in flow.inputs[t] if flow.origin_of(edge.source) != leaf and edge.argument != one.addend]
        if not any(flow.weight_of(other) is not None for other in others):
            return True
    return False


def _is_input(flow: Flow, leaf: int) -> bool:
    """Return whether a leaf is multiplied by the weights of a layer."""
    for t in _users(flow, leaf):
        factors = [edge.source for edge in flow.inputs[t] if edge.argument != flow.properties[t].addend]
        leaves = [flow.weight_of(source) for source in factors]
        if flow.properties[t].product and len([one for one in leaves if one is not None]) > 1:
            return True
    return False


def _users(flow: Flow, leaf: int) -> Iterator[int]:
    """Yield the operations that use a leaf, or a transposed or converted leaf."""
    for edge in flow.uses[leaf]:
        if flow.is_reshape_or_cast(edge.target):
            yield from (inner.target for inner in flow.uses[edge.target])
        else:
            yield edge.target


# --------------------------------------------------------------------------------------------------------- where it is created
def _find_creations(case: Case, flow: Flow, leaf: int, leaves: Sequence[int], swept: Line | None) -> list[Creation]:
    """Return the statement that creates a leaf, or those of all leaves that one operation uses, if they run each time."""
    place = _place_of_use(flow, leaf)
    if place is None or swept is None:
        return []
    program = case.program if place.in_cell else Program.of_file(place.file)
    own = enclosing_statements(program, place.line)
    users = [node for node in own if node.lineno <= place.line <= (node.end_lineno or 0)]
    argument = argument_text(flow, flow.uses[leaf][0].target, flow.uses[leaf][0].argument)
    read = {one for node in users for one in read_names(node)}
    wanted = {argument} if re.fullmatch(r"\w+(\.\w+)?", argument) else read
    inline = parse_expression(argument)
    is_same_function = (swept.file, swept.function) == (place.file, place.function)
    if not is_same_function and place.function == "<module>":
        return []
    found: list[Creation] = []
    for node in own:
        value: Any = inline if node in users[-1:] and inline is not None and _is_creation(inline, case.namespace) else None
        name = ""
        if (
            value is None
            and isinstance(node, ast.Assign)
            and node.lineno <= place.line
            and _is_creation(node.value, case.namespace)
        ):
            name = next((text for text in map(ast.unparse, node.targets) if text in wanted), "")
            # `late_parameters` finds Parameters that forward assigns to an attribute.
            value = node.value if name and not ("." in name and _makes_parameter(node.value)) else None
        if value is None or _is_conditional(own, node, place.line) or (name and _is_updated(own, node, name)):
            continue
        if is_same_function and not _is_in_loop_with(own, node, swept.line):
            continue
        found.append(Creation(node, value, name, program, place))
    together = [one for one in leaves if _place_of_use(flow, one) == place]
    return found if len(found) <= len(together) else []


def _is_updated(own: Sequence[ast.stmt], creation: ast.stmt, name: str) -> bool:
    """Return whether the program updates a tensor or asks for its gradient, as an inner optimization does."""
    for node in own:
        if node is not creation and name in map(ast.unparse, getattr(node, "targets", ())):
            return True
        if isinstance(node, (ast.For, ast.While, ast.If, ast.With, ast.Try)):
            continue  # `own` has the statements in it
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call) and _last_name(part.func) == "grad"):
            if name in [ast.unparse(part) for part in ast.walk(call) if isinstance(part, (ast.Name, ast.Attribute))]:
                return True
    return False


def _place_of_use(flow: Flow, leaf: int) -> Line | None:
    return next((place for edge in flow.uses[leaf] if (place := flow.nodes[edge.target].place) is not None), None)


def _is_creation(value: ast.expr, namespace: Mapping[str, Any]) -> bool:
    """Return whether an expression makes a leaf of numbers that are drawn or written down, and copies no other tensor."""
    calls = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    makes_leaf = _makes_parameter(value) or any(
        (isinstance(call.func, ast.Attribute) and call.func.attr == "requires_grad_")
        or any(one.arg == "requires_grad" and ast.unparse(one.value) == "True" for one in call.keywords)
        for call in calls
    )
    if not makes_leaf or not any(_last_name(call.func) in FACTORIES for call in calls):
        return False
    for call in calls:
        func, is_factory = call.func, _last_name(call.func) in FACTORIES
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and not _is_module(func.value.id, namespace):
            return False  # a method of another tensor, or of an object
        arguments = [*call.args, *(one.value for one in call.keywords)]
        if not is_factory and any(isinstance(one, ast.Name) for one in arguments):
            return False
        if is_factory and any(hasattr(namespace.get(node.id), "requires_grad") for one in arguments for node in _names(one)):
            return False
        if _last_name(func) in ("tensor", "Tensor") and any(_names(one) for one in call.args):
            return False
    return True


def _names(value: ast.expr) -> list[ast.Name]:
    return [node for node in ast.walk(value) if isinstance(node, ast.Name)]


def _last_name(func: ast.expr) -> str:
    return ast.unparse(func).rpartition(".")[2]


def _is_module(name: str, namespace: Mapping[str, Any]) -> bool:
    return isinstance(namespace.get(name), ModuleType) or (name not in namespace and name in MODULES)


def _makes_parameter(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and _last_name(node.func) == "Parameter" for node in ast.walk(value))


def _is_conditional(own: Sequence[ast.stmt], statement: ast.stmt, line: int) -> bool:
    """Return whether a condition is around a statement and not around a line."""
    return any(
        isinstance(node, ast.If)
        and node.lineno <= statement.lineno <= (node.end_lineno or 0)
        and not node.lineno <= line <= (node.end_lineno or 0)
        for node in own
    )


def _is_in_loop_with(own: Sequence[ast.stmt], statement: ast.stmt, line: int) -> bool:
    """Return whether a loop is around a statement and a line."""
    return any(
        isinstance(node, LOOPS) and all(node.lineno <= one <= (node.end_lineno or 0) for one in (statement.lineno, line))
        for node in own
    )


def _finding(creation: Creation, *, stepped: bool) -> Finding:
    place, name, line = creation.place, creation.name, creation.statement.lineno
    where = f"on line {line}" if place.in_cell else f"in {place.where.rpartition(' line ')[0]} line {line}"
    text = ast.unparse(creation.statement if name else creation.value)
    if enclosing_class(creation.program, creation.statement):
        own = name if "." in name else f"self.{name}" if name else ""
        named = f" `{own}`, and use `{own}` in `{place.function}`" if own else f" of the module, and use it in `{place.function}`"
        fix = f"Create it once, in `__init__`, as a Parameter{named}."
    else:
        fix = f"Create it once, before the loop, and {'pass it to the optimizer' if stepped else 'update it like the others'}."
    when = "in each iteration" if _is_loop_around(creation) else f"at every call of `{place.function}`"
    return Finding(
        "stale-optimizer",
        f"`{text}` {where} creates a new tensor {when}: {f'`{name}`' if name else 'it'} is initialised again each time, and "
        f"{'no optimizer holds it' if stepped else 'no step changes it'}.",
        line if place.in_cell else None,
        fix=fix,
        evidence={"name": name or text},
        worth=8.5,
        place=None if place.in_cell else place,
    )


def _is_loop_around(creation: Creation) -> bool:
    own = enclosing_statements(creation.program, creation.statement.lineno)
    return _is_in_loop_with(own, creation.statement, creation.statement.lineno)


# ------------------------------------------------------------------------------------------------------- layers of the loop
def find_layer_of_loop(case: Case, learners: Sequence[Learner], step: Event) -> ast.Assign | None:
    """Return the statement in the loop of a step that creates the layer or model of some parameters again in each iteration."""
    line, models = event_line(step), {one.model for one in learners if one.model}
    if line is None or len(models) != 1:
        return None
    (name,) = models
    model, own = case.namespace.get(name), enclosing_statements(case.program, line)
    found = [
        node
        for node in own
        if isinstance(node, ast.Assign)
        and [ast.unparse(target) for target in node.targets] == [name]
        and is_model(model)
        and _class_called(node.value) == type(model).__name__
        and _is_in_loop_with(own, node, line)
    ]
    return found[0] if len(found) == 1 and not _is_conditional(own, found[0], line) else None


def _class_called(value: ast.expr) -> str:
    """Return the name of the class that an expression calls: "Linear" of `nn.Linear(2, 3).to(device)`; "" if it calls none."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and isinstance(value.func.value, ast.Call):
        value = value.func.value
    return _last_name(value.func) if isinstance(value, ast.Call) else ""


def layer_of_loop_finding(learners: Sequence[Learner], statement: ast.Assign, step: Event, norm: float, old: int) -> Finding:
    """Return the finding on a layer or model that is created again in each iteration."""
    name = ast.unparse(statement.targets[0])
    holds = "The optimizer holds the parameters of an earlier one" if old else "No optimizer holds its parameters"
    return Finding(
        "stale-optimizer",
        f"`{ast.unparse(statement)}` on line {statement.lineno} creates a new `{name}` in each iteration, with initial weights. "
        f"{holds}, so {quote(step.place)} does not change {learner_names(learners)}, although they got a gradient of norm "
        f"{norm:.3g}.",
        statement.lineno,
        fix=f"Create `{name}` once, before the loop"
        + (" and before the optimizer." if old else ", and pass its parameters to the optimizer."),
        evidence={
            "leaves": [one.name for one in learners],
            "gradient norm": norm,
            "unnamed": old,
            "parameters": len(learners),
        },
        worth=8.0,
        lines=tuple(line for line in (event_line(step),) if line is not None),
    )

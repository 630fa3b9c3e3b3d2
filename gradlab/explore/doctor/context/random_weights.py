"""Advice to initialise weights that start at a constant with random numbers, once, where they are created."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from gradlab.explore.doctor.context.case import Case, join_names
from gradlab.explore.doctor.context.code_edits import after, instead
from gradlab.explore.doctor.context.definitions import enclosing_class, find_attribute_definition, find_definition, module_class
from gradlab.explore.doctor.context.flow import Flow, leaf_names
from gradlab.explore.doctor.context.keras_models import change_layer

CONSTANT_INITIALISERS = ("zeros_", "constant_")  # in nn.init
FILLING_METHODS = (*CONSTANT_INITIALISERS, "zero_", "fill_", "apply", "mul_", "copy_", "load_state_dict")


def random_weights_advice(flow: Flow, zeros: Sequence[int], *, keep_last: bool = True) -> str:
    """Return advice to draw the matrices among some leaves, with `keep_last` except the last one: 0 there keeps the loss."""
    matrices = [i for i in zeros if len(flow.nodes[i].shape or ()) >= 2]
    ordered = sorted(matrices, key=lambda i: max((edge.target for edge in flow.uses[i]), default=i))
    wanted = ordered[:-1] if keep_last and len(ordered) > 1 else ordered
    names = leaf_names(flow, wanted) if wanted else []
    if not names:
        return "Draw one of them at random where it is made."
    pieces = [_without_initialiser(flow, name) if flow.case.is_of_keras else _where_made(flow, name) for name in names]
    code = f": {' and '.join(pieces)}" if all(pieces) else ""
    they_are = "it is" if len(names) == 1 else "they are"
    return f"Draw {join_names(names)} at random where {they_are} made, before the training{code}."


def _without_initialiser(flow: Flow, name: str) -> str:
    """Return the edit that leaves out the initialiser of a weight of a Keras layer, as Keras draws weights by default."""
    path, _, weight = name.rpartition(".")
    return change_layer(flow.case, path, **{f"{weight}_initializer": None})


def _where_made(flow: Flow, name: str) -> str:
    """Return code that draws a leaf once: in place of the call that fills it with zeros, or after its definition."""
    case = flow.case
    if "." not in name:
        definition = None if _is_filled_outside(case, name) else find_definition(case, name)
        return after(_normal(case, name), ast.unparse(definition)) if definition is not None else ""
    edit = _replace_fill(case, name)
    if edit is not None:
        return edit
    definition = find_attribute_definition(case, name)
    if definition is not None:
        assert isinstance(definition, ast.Assign)
        return after(_normal(case, ast.unparse(definition.targets[0])), ast.unparse(definition))
    root = name.partition(".")[0].partition("[")[0]
    model = None if _is_filled_outside(case, root) else find_definition(case, root)
    return after(_normal(case, name), ast.unparse(model)) if model is not None else ""


def _is_filled_outside(case: Case, name: str) -> bool:
    """Return whether tensors are filled outside functions and classes, in or after the cell that binds a name."""
    for program in case.programs:
        for statement in program.outer:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in FILLING_METHODS and not ast.unparse(call.func.value).endswith(".grad"):
                return True
        if program.assignments(name):
            break  # older cells ran before it
    return False


def _normal(case: Case, name: str) -> str:
    return case.spell(f"gradlab.nn.init.normal_({name}, std=0.1)")


def _replace_fill(case: Case, name: str) -> str | None:
    """Return code in place of `nn.init.zeros_(self.fc.weight)`; None if there is no such call for this leaf alone."""
    model, _, wanted = name.partition(".")
    for program in case.programs:
        found = []
        for statement in program.statements:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr in CONSTANT_INITIALISERS
                and call.args
            ):
                given = ast.unparse(call.args[0])
                own = given == f"self.{wanted}" and enclosing_class(program, statement) == module_class(case, model)
                if own or given == name:
                    found.append(call)
        if found:
            if len(found) > 1:
                return None
            new = copy.deepcopy(found[0])
            assert isinstance(new.func, ast.Attribute)
            new.func.attr, new.args, new.keywords = "normal_", new.args[:1], [ast.keyword("std", ast.Constant(0.1))]
            return instead(ast.unparse(new), ast.unparse(found[0]))
    return None

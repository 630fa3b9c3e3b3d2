"""How weights that start at 0 get random numbers: where they are made, so that it happens once."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from gradlab.explore.doctor.context.case import Case, listed
from gradlab.explore.doctor.context.code_edits import after, instead
from gradlab.explore.doctor.context.definitions import attribute_maker, class_around, maker, module_class
from gradlab.explore.doctor.context.flow import Flow, leaf_names

ZEROS = ("zeros_", "constant_")  # of nn.init
FILLING = (*ZEROS, "zero_", "fill_", "apply", "mul_", "copy_", "load_state_dict")


def drawn(flow: Flow, still: Sequence[int]) -> str:
    """Draw the matrices among some leaves that are 0, all but the last of the program: the loss stays as it is."""
    matrices = [i for i in still if len(flow.nodes[i].shape or ()) >= 2]
    ordered = sorted(matrices, key=lambda i: max((edge.target for edge in flow.uses[i]), default=i))
    wanted = ordered[:-1] if len(ordered) > 1 else ordered
    names = leaf_names(flow, wanted) if wanted else []
    if not names:
        return "Draw one of them at random where it is made."
    pieces = [_where_made(flow, name) for name in names]
    code = f": {' and '.join(pieces)}" if all(pieces) else ""
    return f"Draw {listed(names)} at random where {'it is' if len(names) == 1 else 'they are'} made, before the training{code}."


def _where_made(flow: Flow, name: str) -> str:
    """Code that draws a leaf once: in place of the call that fills it with zeros, or after the statement that makes it."""
    case = flow.case
    if "." not in name:
        made = None if _is_filled_outside(case, name) else maker(case, name)
        return after(_normal(case, name), ast.unparse(made)) if made is not None else ""
    filled = _filled(case, name)
    if filled is not None:
        return filled
    made = attribute_maker(case, name)
    if made is not None:
        assert isinstance(made, ast.Assign)
        return after(_normal(case, ast.unparse(made.targets[0])), ast.unparse(made))
    root = name.partition(".")[0].partition("[")[0]
    model = None if _is_filled_outside(case, root) else maker(case, root)
    return after(_normal(case, name), ast.unparse(model)) if model is not None else ""


def _is_filled_outside(case: Case, name: str) -> bool:
    """Whether tensors are filled outside of functions and classes, maybe after a name is bound there: `for p in …: p.zero_()`."""
    for program in case.programs:
        for statement in program.outer:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            if call.func.attr in FILLING and not ast.unparse(call.func.value).endswith(".grad"):
                return True
        if program.assigned(name):
            break  # what is older ran before
    return False


def _normal(case: Case, name: str) -> str:
    return case.spelled(f"gradlab.nn.init.normal_({name}, std=0.1)")


def _filled(case: Case, name: str) -> str | None:
    """Code in place of `nn.init.zeros_(self.fc.weight)`; None where no such call fills just this leaf."""
    model, _, wanted = name.partition(".")
    for program in case.programs:
        found = []
        for statement in program.statements:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ZEROS and call.args:
                given = ast.unparse(call.args[0])
                own = given == f"self.{wanted}" and class_around(program, statement) == module_class(case, model)
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

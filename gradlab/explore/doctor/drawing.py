"""How weights that start at 0 get random numbers: where they are made, so that it happens once."""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence

from gradlab.explore.doctor.advice import after, instead
from gradlab.explore.doctor.case import Case, listed
from gradlab.explore.doctor.flow import Flow, leaf_names
from gradlab.explore.doctor.makers import attribute_maker, maker, programs

ZEROS = ("zeros_", "constant_")  # of nn.init


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
        made = maker(case, name)
        return after(_normal(case, name), ast.unparse(made)) if made is not None else ""
    filled = _filled(case, name)
    if filled is not None:
        return filled
    made = attribute_maker(case, name)
    if made is not None:
        assert isinstance(made, ast.Assign)
        return after(_normal(case, ast.unparse(made.targets[0])), ast.unparse(made))
    model = maker(case, name.partition(".")[0].partition("[")[0])
    return after(_normal(case, name), ast.unparse(model)) if model is not None else ""


def _normal(case: Case, name: str) -> str:
    return case.spelled(f"gradlab.nn.init.normal_({name}, std=0.1)")


def _filled(case: Case, name: str) -> str | None:
    """Code in place of `nn.init.zeros_(self.fc.weight)`; None where no such call fills just this leaf."""
    wanted = name.partition(".")[2]
    for program in programs(case):
        found = []
        for statement in program.statements:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in ZEROS and call.args:
                given = ast.unparse(call.args[0])
                if given in (name, f"self.{wanted}"):
                    found.append(call)
        if found:
            if len(found) > 1:
                return None
            new = copy.deepcopy(found[0])
            assert isinstance(new.func, ast.Attribute)
            new.func.attr, new.args, new.keywords = "normal_", new.args[:1], [ast.keyword("std", ast.Constant(0.1))]
            return instead(ast.unparse(new), ast.unparse(found[0]))
    return None

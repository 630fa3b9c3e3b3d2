"""Advice on a cut of the history: the operation that made it, its operand, and code without the cut."""

from __future__ import annotations

import ast
from typing import Any

from gradlab.diagnose.history_loss import HISTORY_LOSSES
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import argument, instead, parenthesize, parse_expression
from gradlab.explore.doctor.context.cuts import CutHistory, on_line
from gradlab.explore.doctor.context.program import bound_names
from gradlab.explore.doctor.findings import sentence
from gradlab.explore.operations import lookup, operation_name
from gradlab.explore.trace.data import Line


def explain_cut(case: Case, history: CutHistory) -> tuple[str, str]:
    """Return the cause of a cut and general advice, in the words of the errors."""
    last = history.how.rpartition(", then ")[2].removesuffix("_")
    why, fix = HISTORY_LOSSES.get(last, HISTORY_LOSSES["no derivative"])
    what = f"`{_operand(history)}`"
    at = f"{on_line(history.place)}" if history.place is not None else ""
    return case.spell(why.format(what=what, how=last)), case.spell(fix.format(at=at))


def _operand(history: CutHistory) -> str:
    """Return the source of the operand that was cut off: the name of the leaf, the argument, or the whole operation."""
    source = history.place.source if history.place is not None else ""
    if history.cut.operation == "AccumulateGrad" and history.cut.leaves:
        return history.cut.label
    tree = parse_expression(source)
    if isinstance(tree, ast.Compare):
        sides = [tree.left, *tree.comparators]
        return ast.unparse(next((side for side in sides if not isinstance(side, ast.Constant)), tree.left))
    return argument(source) or source or history.cut.label


def suggest_fix(case: Case, history: CutHistory, fix: str) -> str:
    """Return advice with the code without the cut, if this code is known, otherwise the general advice `fix`."""
    source = history.place.source if history.place is not None else ""
    if history.cut.within is not None and (history.kind != "no_grad" or history.cut.by_them):
        return f"`{source}` cuts the history inside: call a function that keeps it." if source else ""
    last = history.how.rpartition(", then ")[2].removesuffix("_")
    if last == "cast" and _is_index(case, history):
        return "An index has no gradient: interpolate between the neighbouring entries, or weight all entries by a softmax."
    if last not in ("detach", "data", "cast", "tensor()", "Parameter()"):
        return sentence(fix)
    own = argument(source)
    if last == "tensor()" and _is_list(case, history, own):
        own = case.spell(f"gradlab.stack({own})") if _value_of_name(case, own) or own.startswith("[") else ""
    code = " and ".join([instead(own, source), *_similar_edits(case, history)]) if own else ""
    changes = " This changes the loss: the numbers are no longer rounded." if last == "cast" and _may_round(history) else ""
    return f"{sentence(fix)[:-1]}: {code}.{changes}" if code else sentence(fix)


def _similar_edits(case: Case, history: CutHistory) -> list[str]:
    """Return edits for the other cuts of the same sort in the statement, as in `p.data - rate * g.data`."""
    assert case.trace is not None
    codes = []
    if history.kind == "detached" and history.place is not None:
        own = history.place
        places = dict.fromkeys(cut.place for cut in case.trace.cuts if cut.how == history.how and cut.reaches)
        for place in places:
            alike = place is not None and (place.where, place.statement) == (own.where, own.statement)
            if place is not None and alike and place.source != own.source and argument(place.source):
                codes.append(instead(argument(place.source), place.source))
    return list(dict.fromkeys(codes))


def _is_list(case: Case, history: CutHistory, text: str) -> bool:
    """Return whether the argument of `tensor(…)` is a list of tensors, as far as that is known, and not a tensor."""
    value = _value_of_name(case, text)
    if value is not None:
        return type(value) in (list, tuple)
    assert case.trace is not None
    tree = parse_expression(text)
    several = sum(cut.place == history.place and cut.how == history.how for cut in case.trace.cuts) > 1
    return isinstance(tree, (ast.List, ast.Tuple, ast.ListComp)) or (several and isinstance(tree, (ast.Name, ast.Attribute)))


def _value_of_name(case: Case, text: str) -> Any:
    """Return the value of a plain name of the namespace; None for any other expression."""
    return case.namespace.get(text) if text.isidentifier() else None


def _may_round(history: CutHistory) -> bool:
    """Return whether a cast to integers changed a number. True if the numbers are not known."""
    value = history.cut.value
    if value is None or value.numbers is None or not value.dtype.startswith(("float", "bfloat")):
        return True
    return any(isinstance(number, complex) or number != int(number) for number in value.numbers)


def _is_index(case: Case, history: CutHistory) -> bool:
    """Return whether a name that is bound on the line of a cast is used in square brackets."""
    place = history.place
    at = case.program.statement_at(place.line) if place is not None and place.in_cell else None
    names = bound_names(at) if at is not None else set()
    return any(
        isinstance(node, ast.Subscript) and names & {n.id for n in ast.walk(node.slice) if isinstance(n, ast.Name)}
        for node in ast.walk(case.program.tree)
    )


def suggest_smooth_operation(operation: str, place: Line | None) -> str:
    """Return advice on an operation with the derivative 0, given by the name of its node."""
    name, properties = operation_name(operation).lower(), lookup(operation)
    source = place.source if place is not None else ""
    tree, own = parse_expression(source), parenthesize(argument(source))
    writes = isinstance(tree, ast.Call) and ast.unparse(tree.func).endswith("_")  # `x.sign_()` leaves no other `x`
    through = instead(f"({own} + ({source} - {own}).detach())", source) if argument(source) and not writes else ""
    if name == "normal" and isinstance(tree, ast.Call) and len(tree.args) == 2 and not tree.keywords:
        mu, sigma = (ast.unparse(arg) for arg in tree.args)
        code = instead(f"({mu} + {parenthesize(sigma)} * gradlab.randn_like({mu}))", source)
        return f"Write the draw as a function of its parameters: {code}."
    estimator = f", or pass the gradient straight through: {through}" if through else ""
    if properties.draws:
        return (
            "Write the draw as a function of its parameters (a relaxation such as Gumbel-softmax), or use the probabilities "
            f"themselves{estimator}."
        )
    if (properties.low, properties.high) == (0, 1):  # a comparison
        return f"Use a smooth function (sigmoid){estimator}."
    smooth = "a smooth function (tanh)" if name in ("sign", "sgn", "heaviside") else "the number itself"
    return f"Use {smooth}{estimator}."

"""Weights that a model ties, `self.head.weight = self.embed.weight`, and that a load or a move separated.

A tie is an assignment of one parameter to the name of another: in `__init__` of a module, outside of branches and loops, or in a
cell. Models of Transformers tie the embeddings that they return if their config says so. Two calls of PyTorch end a tie without
an error: `load_state_dict(…, assign=True)` makes a parameter of its own for each name, and so does `to_empty()` for parameters on
the meta device.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from gradlab.diagnose.source_locations import clip
from gradlab.explore.doctor.context.case import Case
from gradlab.explore.doctor.context.code_edits import after
from gradlab.explore.doctor.context.flow import digits
from gradlab.explore.doctor.context.methods import methods_of, parse_method
from gradlab.explore.doctor.context.program import Program, bound_names, own_statements
from gradlab.explore.doctor.findings import Finding
from gradlab.explore.doctor.registry import check, declare
from gradlab.explore.module_paths import attribute, prefixes
from gradlab.explore.names import modules_in
from gradlab.explore.trace.journal import Entry, SweepEntry

declare(
    "broken-tie",
    meaning="Two weights that a model ties are two parameters after a load or a move, and learn separately.",
    why="""
        `self.head.weight = self.embed.weight` gives one parameter two names. `load_state_dict(state, assign=True)`, and
        `to_empty()` for a model on the meta device, make a parameter of its own for each name. Each then has its own gradient.
        If they have memory of their own, their values part with the first step; if not, each step changes it twice.
    """,
    remedy="Tie them again after the call and before the optimizer is made: `model.head.weight = model.embed.weight`.",
    fault="""
        import torch
        from torch import nn

        torch.manual_seed(0)

        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(10, 8)
                self.head = nn.Linear(8, 10, bias=False)
                self.head.weight = self.embed.weight

            def forward(self, tokens):
                return self.head(self.embed(tokens))

        model = Tied()
        model.load_state_dict(Tied().state_dict(), assign=True)  #!
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        tokens, following = torch.randint(0, 10, (64,)), torch.randint(0, 10, (64,))
        for step in range(5):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(tokens), following)
            loss.backward()
            optimizer.step()
    """,
    healthy={", assign=True": ""},
    libraries=("torch",),
)


@dataclass(frozen=True)
class Tie:
    """An assignment of one parameter to the name of another.

    Attributes
    ----------
    left, right : str
        The paths of both: "model.head.weight".
    text : str
        Its source, and where it is: "`self.head.weight = self.embed.weight` in `__init__`".
    again : str
        Code that ties them again.
    program : Program or None
        The program that it is in; None for a method.
    line : int
        Its line there.
    """

    left: str
    right: str
    text: str
    again: str
    program: Program | None = None
    line: int = 0


@dataclass(frozen=True)
class Separation:
    """A call that makes a parameter of its own for each name.

    Attributes
    ----------
    program : Program
        The program that it is in.
    statement : ast.stmt
    call : ast.Call
    """

    program: Program
    statement: ast.stmt
    call: ast.Call


@check("broken-tie")
def find_broken_ties(case: Case) -> Iterable[Finding]:
    """Find parameters that a model ties, that are two since a load or a move, and that both get gradients."""
    if case.trace is None or case.trace.library != "torch":
        return
    learners = case.learners
    for name, model in case.models.items():
        separation = _find_separation(case, name)
        if separation is None:
            continue
        parameters = {attribute(name, path, model): p for path, p in model.named_parameters(remove_duplicate=False)}
        for tie in _ties_of(case, name, model, parameters):
            both = [parameters.get(path) for path in (tie.left, tie.right)]
            known = [learners[id(one)] for one in both if id(one) in learners]
            lines = [case.timelines.get(one.key, []) for one in known]
            if len(known) < 2 or both[0] is both[1] or not all(lines) or not all(one.requires_grad for one in known):
                continue
            if not _is_later(tie, separation) or _is_assigned_again(case, tie):
                continue
            yield _separated_finding(case, tie, separation, lines)


def _separated_finding(
    case: Case, tie: Tie, separation: Separation, lines: Sequence[Sequence[tuple[SweepEntry, Entry]]]
) -> Finding:
    call, is_here = separation.call, separation.program is case.program
    where = f" on line {call.lineno}" if is_here else " in an earlier cell"
    norms = tuple(line[-1][1].arrived for line in lines)
    are_equal = len({line[0][1].weight for line in lines}) == 1
    code = after(tie.again, ast.unparse(separation.statement))
    return Finding(
        "broken-tie",
        f"`{tie.left}` and `{tie.right}` were one parameter ({tie.text}), and are two since `{clip(ast.unparse(call))}`{where}: "
        f"each has a gradient of its own, of norms {digits(norms[0])} and {digits(norms[1])}.",
        call.lineno if is_here else None,
        fix=f"Tie them again before the optimizer is made: {code}."
        + ("" if are_equal else " This changes the loss, because their values differ."),
        evidence={"norms": norms, "of": (tie.left, tie.right)},
        worth=8.0,
    )


def _is_later(tie: Tie, separation: Separation) -> bool:
    """Return whether a call came after a tie."""
    return tie.program is None or (tie.program is separation.program and tie.line < separation.statement.lineno)


def _find_separation(case: Case, name: str) -> Separation | None:
    """Return the last call outside functions that separates the tied parameters of a model; None if the model was made after it.

    The newest cell that binds the name of the model made it.
    """
    for program in case.programs:
        may_separate = "load_state_dict" in program.text or "to_empty" in program.text
        for statement in sorted(program.outer, key=lambda node: node.lineno, reverse=True):
            is_bound = name in bound_names(statement)
            for call in ast.walk(statement) if may_separate and isinstance(statement, (ast.Expr, ast.Assign)) else ():
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                    continue
                is_own = is_bound or ast.unparse(call.func.value) == name
                if is_own and _separates(call, call.func.attr):
                    return Separation(program, statement, call)
            if is_bound:
                return None
    return None


def _separates(call: ast.Call, method: str) -> bool:
    given = {one.arg: one.value for one in call.keywords}
    assign = given.get("assign", call.args[2] if len(call.args) > 2 else None)
    loads = method == "load_state_dict" and isinstance(assign, ast.Constant) and assign.value is True
    return loads or method == "to_empty"


# -------------------------------------------------------------------------------------------------------------------- ties
def _ties_of(case: Case, name: str, model: Any, parameters: Mapping[str, Any]) -> Iterator[Tie]:
    """Yield the ties of a model: those in `__init__` of its modules, those of configs, and those in cells."""
    paths = {id(parameter): path for path, parameter in parameters.items()}
    by_config: dict[tuple[str, str], Tie] = {}
    by_class = {kind: list(_ties_in_init(kind)) for kind in {type(module) for module in model.modules()}}
    for whole, module in modules_in(name, model):
        for own, *both, text in by_class[type(module)]:
            left, right = (whole + path.removeprefix(own) for path in both)
            yield Tie(left, right, f"`{text}` in `__init__`", f"{left} = {right}")
        left, right = (paths.get(id(weight), "") for weight in _embeddings_tied_by_config(module))
        if left and right:
            text = f"`{whole}.config.tie_word_embeddings` is True"
            by_config.setdefault((left, right), Tie(left, right, text, f"{whole}.tie_weights()"))
    yield from by_config.values()
    for program in case.programs:
        for node in program.statements:
            if node in program.outer and (pair := _pair(node)) is not None and all(path.startswith(f"{name}.") for path in pair):
                yield Tie(*pair, f"`{ast.unparse(node)}`", ast.unparse(node), program, node.lineno)


def _embeddings_tied_by_config(module: Any) -> tuple[Any, Any]:
    """Return the weights of the output and the input embedding of a model of Transformers that ties them; else (None, None)."""
    tied = getattr(getattr(module, "config", None), "tie_word_embeddings", False) is True and hasattr(module, "tie_weights")
    with suppress(Exception):
        if tied:
            return module.get_output_embeddings().weight, module.get_input_embeddings().weight
    return None, None


def _ties_in_init(kind: type) -> Iterator[tuple[str, str, str, str]]:
    """Yield the ties that `__init__` of a class makes at every call: the name of the module in it, both paths, and the source."""
    function = next((one for one in methods_of(kind) if one.__name__ == "__init__"), None)
    source = parse_method(function) if function is not None and function.__code__.co_argcount else None
    if function is None or source is None:
        return
    own = function.__code__.co_varnames[0]
    tree: Any = next(ast.iter_child_nodes(source[1]))
    for node in tree.body:
        pair = _pair(node)
        if pair is None or not all(path.startswith(f"{own}.") for path in pair):
            continue
        later = [one for one in own_statements(tree) if one.lineno > node.lineno]
        if not any(_assigns(one, pair) for one in later):
            yield own, *pair, ast.unparse(node)


def _pair(node: ast.stmt) -> tuple[str, str] | None:
    """Return the two paths of an assignment of an attribute to another, `a.b.weight = a.c.weight`; None for other statements."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    if not isinstance(node.targets[0], ast.Attribute) or not isinstance(node.value, ast.Attribute):
        return None
    return ast.unparse(node.targets[0]), ast.unparse(node.value)


def _assigns(node: ast.stmt, pair: tuple[str, str]) -> bool:
    """Return whether a statement assigns to one of two paths, or to a module on the way to it."""
    paths = {step for path in pair for step in prefixes(path)[1:]}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return any(ast.unparse(target) in paths for target in targets)


def _is_assigned_again(case: Case, tie: Tie) -> bool:
    """Return whether a cell assigns to one of the tied names, in a statement other than the tie."""
    pair = (tie.left, tie.right)
    nodes = [node for program in case.programs for node in program.outer if _assigns(node, pair)]
    return any(_pair(node) not in (pair, pair[::-1]) for node in nodes)
